//! A packet in and out of a discipline: `pairs`, `instructions`, `overflow`.

use std::collections::BTreeMap;

use super::{Blocks, aims};
use crate::figures::Result;
use crate::figures::bench::Bench;
use crate::figures::columns::{number_behind, rows};
use crate::figures::criterion::{self, Measured};
use crate::figures::markdown::{Table, digits, whole};

/// Numbers of flows, as the benchmarks have them.
const FLOWS: [u32; 4] = [1, 64, 1024, 16_384];
/// Those of `overflow`.
const OVERFLOWING: [u32; 3] = [64, 1024, 16_384];

/// Aims at 1024 flows, ns.
const AIMS: [(&str, f64); 7] = [
    ("fifo", 10.0),
    ("drr", 20.0),
    ("fq_codel", 45.0),
    ("cake", 80.0),
    ("htb", 60.0),
    ("hfsc", 120.0),
    ("cbq", 80.0),
];

/// Disciplines over a tree of classes.
const TREES: [&str; 3] = ["htb", "hfsc", "cbq"];

pub(super) fn measure(bench: &Bench) -> Result<Blocks> {
    let times = bench.criterion("fairgate", "pairs")?;
    let few = ["fifo", "htb", "64"];
    let arguments: &[&str] = if bench.is_quick { &few } else { &[] };
    let counts = Counts::parse(&bench.bench("fairgate", "instructions", arguments)?)?;
    let overflow = bench.criterion("fairgate", "overflow")?;
    Ok(vec![
        ("pairs", table(&times, &counts, false)?),
        ("trees", table(&times, &counts, true)?),
        ("overflow", overflow_table(&overflow)?),
    ])
}

/// Instructions for a pair, without the driver's own.
struct Counts {
    /// In the order of the benchmark; by number of flows.
    disciplines: Vec<(String, BTreeMap<u32, f64>)>,
    driver: f64,
}

impl Counts {
    fn parse(text: &str) -> Result<Counts> {
        let heads = text.lines().find_map(|line| line.trim().strip_suffix("flows"));
        let heads: Vec<u32> = heads
            .map(|heads| {
                heads
                    .split_whitespace()
                    .filter_map(|head| head.parse().ok())
                    .collect()
            })
            .unwrap_or_default();
        if heads.is_empty() {
            return Err(format!("there is no line of numbers of flows:\n{text}"));
        }
        let disciplines = rows(text, heads.len())?.into_iter().map(|row| {
            let counts = heads.iter().zip(row.numbers);
            let counts = counts.filter_map(|(flows, count)| Some((*flows, count?)));
            (row.name, counts.collect())
        });
        Ok(Counts {
            // The driver's line ends in a number too.
            disciplines: disciplines.filter(|(name, _)| !name.contains(' ')).collect(),
            driver: number_behind(text, "driver, subtracted:")?,
        })
    }

    fn of(&self, name: &str, flows: u32) -> Option<f64> {
        let (_, counts) = self.disciplines.iter().find(|(other, _)| other == name)?;
        counts.get(&flows).copied()
    }
}

fn table(times: &[Measured], counts: &Counts, is_of_trees: bool) -> Result<String> {
    let driver = criterion::of(times, "pairs/none")?.median;
    let unit = if is_of_trees {
        ["leaf", "leaves"]
    } else {
        ["flow", "flows"]
    };
    let flows = FLOWS.map(|flows| format!("{} {}", whole(flows.into()), unit[usize::from(flows > 1)]));
    let ns = flows.iter().map(|flows| format!("ns, {flows}"));
    let instructions = FLOWS.map(|flows| format!("instructions, {}", whole(flows.into())));
    let heads: Vec<String> = [String::from("discipline")]
        .into_iter()
        .chain(ns)
        .chain([String::from("aim, ns")])
        .chain(instructions)
        .collect();
    let mut table = Table::new(1, &heads.iter().map(String::as_str).collect::<Vec<_>>());
    for name in names(times, counts) {
        if TREES.contains(&name.as_str()) != is_of_trees {
            continue;
        }
        let net = |flows: u32| -> Result<f64> {
            let measured = criterion::of(times, &format!("pairs/{name}/{flows}"))?;
            Ok(measured.median - driver)
        };
        let aim = AIMS.iter().find(|(other, _)| *other == name).map(|(_, aim)| *aim);
        let mut cells = vec![name.clone()];
        for flows in FLOWS {
            cells.push(digits(net(flows)?));
        }
        cells.push(aims::cell(Some(net(1024)?), aim));
        let count = |flows| counts.of(&name, flows).map_or(String::new(), whole);
        cells.extend(FLOWS.map(count));
        table.add(&cells);
    }
    Ok(format!(
        "{}\n\nThe driver's own part is subtracted: {} ns and {} instructions.",
        table.text(),
        digits(driver),
        whole(counts.driver)
    ))
}

/// Disciplines in the order of the benchmark of instructions; behind them those that only have times.
fn names(times: &[Measured], counts: &Counts) -> Vec<String> {
    let mut names: Vec<String> = counts.disciplines.iter().map(|(name, _)| name.clone()).collect();
    for measured in times {
        let name = measured.name.split('/').nth(1).unwrap_or_default();
        if name != "none" && names.iter().all(|other| other != name) {
            names.push(name.to_owned());
        }
    }
    names
}

fn overflow_table(times: &[Measured]) -> Result<String> {
    let mut heads = vec!["discipline".to_owned()];
    heads.extend(OVERFLOWING.map(|flows| format!("ns, {} flows", whole(flows.into()))));
    let mut table = Table::new(1, &heads.iter().map(String::as_str).collect::<Vec<_>>());
    for name in ["drr", "fq_codel"] {
        let mut cells = vec![name.to_owned()];
        for flows in OVERFLOWING {
            cells.push(digits(
                criterion::of(times, &format!("overflow/{name}/{flows}"))?.median,
            ));
        }
        table.add(&cells);
    }
    Ok(table.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = include_str!("../recorded/instructions.txt");

    fn times(names: &[&str]) -> Vec<Measured> {
        let measured = |name: String, median| Measured {
            name,
            median,
            elements: None,
        };
        let of = |name: &&str| FLOWS.map(|flows| measured(format!("pairs/{name}/{flows}"), f64::from(flows)));
        let mut times: Vec<Measured> = names.iter().flat_map(of).collect();
        times.push(measured("pairs/none".to_owned(), 3.0));
        times
    }

    #[test]
    fn counts_are_read_from_what_the_benchmark_prints() {
        let counts = Counts::parse(RECORDED).unwrap();
        assert!(counts.driver > 10.0, "{}", counts.driver);
        assert!(counts.of("fifo", 64).unwrap() > 10.0);
        assert!(counts.of("htb", 64).unwrap() > counts.of("drr", 64).unwrap());
        assert_eq!((counts.of("fifo", 1), counts.of("taken", 64)), (None, None));
        assert!(Counts::parse("SKIPPED: instructions are counted by valgrind").is_err());
    }

    #[test]
    fn a_row_has_net_times_the_aim_and_counts() {
        let counts = Counts::parse(RECORDED).unwrap();
        let times = times(&["fifo", "drr", "htb", "sfq"]);
        let flat = table(&times, &counts, false).unwrap();
        let fifo = format!(
            "| fifo | -2.00 | 61.0 | 1,021 | 16,381 | 10: missed |  | {} |  |  |",
            whole(counts.of("fifo", 64).unwrap())
        );
        assert!(flat.contains(&fifo), "{flat}");
        assert!(
            flat.contains("\n| sfq | -2.00 |") && !flat.contains("htb"),
            "{flat}"
        );
        assert!(table(&times, &counts, true).unwrap().contains("\n| htb |"));
        assert!(table(&[], &counts, false).unwrap_err().contains("pairs/none"));
    }
}
