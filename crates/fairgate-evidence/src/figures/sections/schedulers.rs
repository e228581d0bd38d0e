//! Schedulers under the controller of QFQ's Figure 8: `fairgate-lab bench schedulers`.

use serde_json::Value;

use super::{Blocks, aims};
use crate::figures::Result;
use crate::figures::bench::Bench;
use crate::figures::markdown::{Table, digits, whole};

/// Of the table of modes, and of the one with and without statistics.
const MIXED: &str = "fifo,drr,qfq,qfq_plus,sqf,fq_codel,wf2q_plus";
const COUNTED: &str = "fifo,drr,fq_codel";
const MANY: &str = "fifo,drr,qfq,qfq_plus,sqf,wf2q_plus";
const MODES: [&str; 3] = ["bare", "statistics", "classified"];

/// Aims for a pair, net, ns: scheduler, number of flows.
const AIMS: [(&str, u64, f64); 17] = [
    ("fifo", 64, 2.0),
    ("fifo", 512, 2.0),
    ("drr", 64, 5.0),
    ("drr", 512, 5.0),
    ("qfq_plus", 64, 7.0),
    ("qfq_plus", 512, 7.0),
    ("pdrr", 64, 8.0),
    ("pdrr", 512, 8.0),
    ("qfq", 64, 10.0),
    ("qfq", 512, 10.0),
    ("qfq", 1 << 20, 60.0),
    ("s_kps", 64, 25.0),
    ("s_kps", 512, 25.0),
    ("sqf", 64, 35.0),
    ("sqf", 512, 35.0),
    ("wf2q_plus", 512, 40.0),
    ("wf2q_plus", 4096, 70.0),
];

pub(super) fn measure(bench: &Bench) -> Result<Blocks> {
    let run = |arguments: &[&str]| bench.lab(&[&["bench", "schedulers"], arguments].concat());
    if bench.is_quick {
        // The same document for all tables: what counts is that each can be made.
        let figure = bench.folder().join("schedulers.svg").display().to_string();
        let few = [
            "--algorithms",
            "fifo,drr",
            "--flows",
            "1,64",
            "--runs",
            "1",
            "--out",
            &figure,
        ];
        let document = run(&few)?;
        let statistics = run(&[
            "--algorithms",
            "fifo,drr",
            "--flows",
            "64",
            "--runs",
            "1",
            "--mode",
            MODES[1],
        ])?;
        return blocks(
            &document,
            [&document, &statistics],
            &document,
            [&document, &statistics, &document],
        );
    }
    let all = run(&["--out", "docs/images/schedulers.svg"])?;
    let with = |mode: &'static str| run(&["--algorithms", COUNTED, "--flows", "64", "--mode", mode]);
    let (bare, counting) = (with(MODES[0])?, with(MODES[1])?);
    let flows = ["--flows", "64,8K,128K,1M", "--instructions", "64,8K"];
    let many = run(&[&["--algorithms", MANY, "--runs", "5"], &flows[..]].concat())?;
    let mixed = |mode: &'static str| {
        let chance = ["--order", "random", "--sizes", "64-1500", "--weights", "mix"];
        let algorithms = [
            "--algorithms",
            MIXED,
            "--flows",
            "64,512,4K",
            "--runs",
            "5",
            "--mode",
            mode,
        ];
        run(&[&algorithms[..], &chance].concat())
    };
    let [one, two, three] = MODES.map(mixed);
    blocks(&all, [&bare, &counting], &many, [&one?, &two?, &three?])
}

fn blocks(all: &Value, counted: [&Value; 2], many: &Value, mixed: [&Value; 3]) -> Result<Blocks> {
    let [bare, counting] = counted;
    let modes: Vec<(&str, &Value)> = MODES.into_iter().zip(mixed).collect();
    Ok(vec![
        ("schedulers", times(&[("", all)])?),
        ("statistics", statistics(bare, counting)?),
        ("many-flows", times(&[("", many)])?),
        ("mixed", times(&modes)?),
        ("scheduler-aims", aims_table(&[all, many])?),
        ("floor", floor(all)?),
    ])
}

/// What one scheduler needs for a pair.
struct Cost {
    algorithm: String,
    flows: u64,
    /// Net and NONE, ns; `None` if it can't be measured so.
    ns: Option<[f64; 2]>,
    /// Net and NONE.
    instructions: Option<[f64; 2]>,
}

fn costs(document: &Value) -> Result<Vec<Cost>> {
    let results = document["results"]
        .as_array()
        .ok_or("the document of the schedulers has no `results`")?;
    let cost = |result: &Value| {
        let number = |pointer: &str| result.pointer(pointer).and_then(Value::as_f64);
        let pair = |net: &str, none: &str| Some([number(net)?, number(none)?]);
        Some(Cost {
            algorithm: result["algorithm"].as_str()?.to_owned(),
            flows: result["flows"].as_u64()?,
            ns: pair("/time/net/median", "/time/none/median"),
            instructions: pair("/instructions/net", "/instructions/none"),
        })
    };
    let costs: Option<Vec<Cost>> = results.iter().map(cost).collect();
    match costs {
        Some(costs) if costs.iter().any(|cost| cost.ns.is_some()) => Ok(costs),
        _ => Err("the document of the schedulers has no times".to_owned()),
    }
}

/// Different values in their order.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// A row for each scheduler. Each document gives columns of times, `net (NONE)`, and of instructions.
fn times(documents: &[(&str, &Value)]) -> Result<String> {
    let mut heads = vec!["scheduler".to_owned()];
    let mut columns: Vec<(usize, u64, bool)> = Vec::new();
    let all: Vec<Vec<Cost>> = documents
        .iter()
        .map(|(_, document)| costs(document))
        .collect::<Result<_>>()?;
    for (at, ((title, _), costs)) in documents.iter().zip(&all).enumerate() {
        let title = if title.is_empty() {
            String::new()
        } else {
            format!("{title}: ")
        };
        for flows in distinct(costs.iter().map(|cost| cost.flows)) {
            heads.push(format!("{title}ns, {}", whole(flows as f64)));
            columns.push((at, flows, false));
        }
        let counted = costs.iter().filter(|cost| cost.instructions.is_some());
        for flows in distinct(counted.map(|cost| cost.flows)) {
            heads.push(format!("{title}instructions, {}", whole(flows as f64)));
            columns.push((at, flows, true));
        }
    }
    let mut table = Table::new(1, &heads.iter().map(String::as_str).collect::<Vec<_>>());
    for name in distinct(all[0].iter().map(|cost| cost.algorithm.as_str())) {
        let cell = |&(at, flows, is_count): &(usize, u64, bool)| {
            let cost = all[at]
                .iter()
                .find(|cost| cost.algorithm == name && cost.flows == flows);
            match (cost, is_count) {
                (
                    Some(Cost {
                        instructions: Some([net, _]),
                        ..
                    }),
                    true,
                ) => whole(*net),
                (
                    Some(Cost {
                        ns: Some([net, none]),
                        ..
                    }),
                    false,
                ) => format!("{} ({none:.0})", digits(*net)),
                _ => String::new(),
            }
        };
        let mut cells = vec![name.to_owned()];
        cells.extend(columns.iter().map(cell));
        table.add(&cells);
    }
    Ok(table.text())
}

/// Instructions with statistics and without.
fn statistics(bare: &Value, counting: &Value) -> Result<String> {
    let mut table = Table::new(1, &["instructions, 64 flows", "bare", "with statistics"]);
    let (bare, counting) = (costs(bare)?, costs(counting)?);
    for cost in bare.iter().filter(|cost| cost.instructions.is_some()) {
        let with = counting.iter().find(|other| other.algorithm == cost.algorithm);
        let cell = |cost: Option<&Cost>| {
            let counted = cost.and_then(|cost| cost.instructions);
            counted.map_or(String::new(), |[net, _]| whole(net))
        };
        table.add(&[cost.algorithm.clone(), cell(Some(cost)), cell(with)]);
    }
    Ok(table.text())
}

fn aims_table(documents: &[&Value]) -> Result<String> {
    let all: Vec<Cost> = documents
        .iter()
        .map(|document| costs(document))
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .flatten()
        .collect();
    let mut table = Table::new(1, &["scheduler", "flows", "ns", "aim, ns"]);
    for (name, flows, aim) in AIMS {
        let cost = all
            .iter()
            .find(|cost| cost.algorithm == name && cost.flows == flows);
        let net = cost.and_then(|cost| cost.ns).map(|[net, _]| net);
        table.add(&[
            name.to_owned(),
            whole(flows as f64),
            net.map_or(String::new(), digits),
            aims::cell(net, Some(aim)),
        ]);
    }
    Ok(table.text())
}

/// Loads that depend on the one before, by the memory walked over, and a branch guessed wrong.
fn floor(document: &Value) -> Result<String> {
    let floor = &document["floor"];
    let latency = floor["latency"]
        .as_array()
        .ok_or("the document of the schedulers has no `floor.latency`")?;
    let mut table = Table::new(1, &["", "ns"]);
    for step in latency {
        let (bytes, nanos) = (step["bytes"].as_f64(), step["nanos"].as_f64());
        let (bytes, nanos) = bytes
            .zip(nanos)
            .ok_or("a step of `floor.latency` has no numbers")?;
        table.add(&[
            format!("a load within {} KiB", whole(bytes / 1024.0)),
            digits(nanos),
        ]);
    }
    let branch = floor["branch_miss_ns"]
        .as_f64()
        .ok_or("the document has no `floor.branch_miss_ns`")?;
    table.add(&["a branch guessed wrong".to_owned(), digits(branch)]);
    Ok(table.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> Value {
        serde_json::from_str(include_str!("../recorded/schedulers.json")).unwrap()
    }

    #[test]
    fn times_and_counts_are_read_from_the_document() {
        let text = times(&[("", &recorded())]).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "| scheduler | ns, 1 | ns, 64 | instructions, 64 |");
        assert!(
            lines[2].starts_with("| fifo | ") && lines[3].starts_with("| drr | "),
            "{text}"
        );
        assert_eq!(
            lines[2].matches(" (").count(),
            2,
            "NONE stands beside each time: {text}"
        );
        let twice = times(&[("bare", &recorded()), ("statistics", &recorded())]).unwrap();
        assert!(twice.starts_with(
            "| scheduler | bare: ns, 1 | bare: ns, 64 | bare: instructions, 64 | statistics: ns, 1 |"
        ));
    }

    #[test]
    fn a_scheduler_that_could_not_be_measured_has_empty_cells() {
        let mut document = recorded();
        document["results"][0]["time"] = Value::Null;
        document["results"][0]["error"] = "it lost a packet".into();
        let text = times(&[("", &document)]).unwrap();
        assert!(text.contains("| fifo |  | "), "{text}");
        document["results"] = Value::Array(Vec::new());
        assert!(times(&[("", &document)]).unwrap_err().contains("no times"));
        assert!(times(&[("", &Value::Null)]).unwrap_err().contains("`results`"));
    }

    #[test]
    fn the_other_tables_are_made_of_the_same_document() {
        let document = recorded();
        let statistics = statistics(&document, &document).unwrap();
        assert_eq!(statistics.matches("\n| drr | ").count(), 1, "{statistics}");
        let aims = aims_table(&[&document]).unwrap();
        assert!(
            aims.lines()
                .any(|line| line.starts_with("| fifo | 64 | ") && line.ends_with(" |")),
            "{aims}"
        );
        assert!(
            aims.contains("| fifo | 512 |  | 2 |"),
            "not measured there: {aims}"
        );
        let floor = floor(&document).unwrap();
        assert!(
            floor.contains("| a load within ") && floor.contains("| a branch guessed wrong | "),
            "{floor}"
        );
    }
}
