//! The first of many filters that matches, and the class of a host: `classify`.

use super::Blocks;
use crate::figures::Result;
use crate::figures::bench::Bench;
use crate::figures::columns::{Row, rows};
use crate::figures::markdown::{Table, digits, whole};

/// The head of the second table that the benchmark prints.
const HOSTS: &str = "a class of";

pub(super) fn measure(bench: &Bench) -> Result<Blocks> {
    let arguments: &[&str] = if bench.is_quick { &["--most", "100"] } else { &[] };
    blocks(&bench.bench("fairgate", "classify", arguments)?)
}

fn blocks(text: &str) -> Result<Blocks> {
    let (filters, hosts) = text
        .split_once(HOSTS)
        .ok_or(format!("there is no table of hosts:\n{text}"))?;
    Ok(vec![
        ("filters", filter_table(filters)?),
        ("hosts", host_table(hosts)?),
    ])
}

/// Number, ns, instructions, ns one by one, ms to build, per cent that match.
fn filter_table(text: &str) -> Result<String> {
    let heads = [
        "filters",
        "number",
        "ns",
        "instructions",
        "one by one, ns",
        "built in, ms",
        "packets that match",
    ];
    let mut table = Table::new(1, &heads);
    for Row { name, numbers } in rows(text, 6)? {
        let cell = |at: usize, form: fn(f64) -> String| numbers[at].map_or(String::new(), form);
        table.add(&[
            name,
            cell(0, whole),
            cell(1, digits),
            cell(2, whole),
            cell(3, digits),
            cell(4, digits),
            cell(5, |percent| format!("{percent:.0} %")),
        ]);
    }
    Ok(table.text())
}

/// Number, ns, instructions.
fn host_table(text: &str) -> Result<String> {
    let mut table = Table::new(1, &["hosts", "number", "ns", "instructions"]);
    for Row { name, numbers } in rows(text, 3)? {
        let cell = |at: usize, form: fn(f64) -> String| numbers[at].map_or(String::new(), form);
        table.add(&[name, cell(0, whole), cell(1, digits), cell(2, whole)]);
    }
    Ok(table.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tables_are_read() {
        let text = include_str!("../recorded/classify.txt");
        let blocks = blocks(text).unwrap();
        let lines = |block: usize| blocks[block].1.lines().collect::<Vec<_>>();
        let filters = lines(0);
        assert!(filters[2].starts_with("| none | 0 | "), "{filters:?}");
        assert!(
            filters.iter().any(|line| line.starts_with("| wildcard | 100 | ")),
            "{filters:?}"
        );
        assert!(
            filters[2..].iter().all(|line| line.ends_with(" % |")),
            "{filters:?}"
        );
        let hosts = lines(1);
        assert!(hosts[2].starts_with("| no hosts | 1 | "), "{hosts:?}");
        assert!(
            hosts.iter().any(|line| line.starts_with("| new hosts | 10 | ")),
            "{hosts:?}"
        );
    }
}
