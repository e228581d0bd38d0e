//! The schedulers of dummynet beside ours, from a checkout of its sources that the user gives: `make peers
//! DIR=`. Its user-land harness is that of QFQ's Figure 8, of which our controller does the same work.
//!
//! The sources are compiled into the target folder; nothing is written into the checkout.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::figures::Result;
use crate::figures::bench::Bench;
use crate::figures::machine;
use crate::figures::markdown::{Table, digits, whole};

/// Where the schedulers are in a checkout. Other trees than dummynet's own have them at the second place.
const PLACES: [&str; 2] = ["sys/netinet/ipfw", "sys/netpfil/ipfw"];

/// What the harness is made of, in `test` and beside the schedulers.
const HARNESS: [&str; 2] = ["main.c", "test_dn_sched.c"];
const SCHEDULERS: [&str; 5] = [
    "dn_heap.c",
    "dn_sched_fifo.c",
    "dn_sched_qfq.c",
    "dn_sched_rr.c",
    "dn_sched_wf2q.c",
];

/// The names here and there. `none` is the controller with a queue.
const NAMES: [(&str, &str); 4] = [
    ("none", "null"),
    ("drr", "rr"),
    ("qfq", "qfq"),
    ("wf2q_plus", "wf2qp"),
];

const FLOWS: [u32; 3] = [64, 4_096, 32_768];

/// Both are measured in turn, so often.
const ROUNDS: usize = 5;

/// Steps of the harness: an enqueue or a dequeue each.
const STEPS: &str = "6000000";

/// Times of a pair, ns: here and there, by scheduler and number of flows.
type Times = Vec<Vec<[f64; 2]>>;

/// Returns the block of the document.
pub(crate) fn measure(bench: &Bench, checkout: &Path) -> Result<String> {
    let program = compile(bench, checkout)?;
    let commit = machine::commit(bench)?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let ours = bench.lab(&[
            "bench",
            "schedulers",
            "--algorithms",
            "drr,qfq,wf2q_plus",
            "--flows",
            "64,4K,32K",
            "--runs",
            "3",
        ])?;
        let mut times: Times = Vec::new();
        for (name, peer) in NAMES {
            let mut row = Vec::new();
            for flows in FLOWS {
                row.push([total(&ours, name, flows)?, run(bench, &program, peer, flows)?]);
            }
            times.push(row);
        }
        rounds.push(times);
    }
    Ok(format!("{}\n\nOurs is commit {commit}.", table(&rounds)))
}

/// Compiles the harness. Returns the path of the program.
fn compile(bench: &Bench, checkout: &Path) -> Result<String> {
    // Programs run in the root of the repository.
    let checkout =
        std::path::absolute(checkout).map_err(|error| format!("{}: {error}", checkout.display()))?;
    let test = checkout.join("test");
    let place = PLACES
        .map(|place| checkout.join(place))
        .into_iter()
        .find(|place| place.join("dn_sched_qfq.c").is_file())
        .filter(|_| test.join("main.c").is_file())
        .ok_or(format!(
            "{} is no checkout of dummynet: it has no test/main.c, or no {}/dn_sched_qfq.c; `git clone \
             https://github.com/luigirizzo/dummynet` gives one",
            checkout.display(),
            PLACES[0]
        ))?;
    let program = bench.folder().join("dummynet");
    let mut command = Command::new("cc");
    // Warnings are those of another day's compiler. Tables are defined in several files.
    command.args(["-O3", "-w", "-fcommon", "-DIPFW", "-I"]);
    command.arg(&test).arg("-I").arg(&place).arg("-o").arg(&program);
    command.args(HARNESS.map(|name| test.join(name)));
    command.args(SCHEDULERS.map(|name| place.join(name)));
    bench.run(&mut command)?;
    Ok(program.display().to_string())
}

/// Runs a scheduler of dummynet. Returns what a pair takes, ns.
fn run(bench: &Bench, program: &str, name: &str, flows: u32) -> Result<f64> {
    // As our load FULL: between one and 30 packets for each flow, of 1000 bytes, equal weights.
    let sets = format!("1:1000:{flows}");
    let arguments = [
        "-n",
        STEPS,
        "-qmin",
        "1n",
        "-qmax",
        "30n",
        "-alg",
        name,
        "-flowsets",
        &sets,
    ];
    let mut command = Command::new(program);
    // What it measures goes to standard error.
    let text = bench.said(command.args(arguments))?;
    pair_of(&text).ok_or(format!("dummynet's harness said no time: {text}"))
}

/// Reads the time of a pair: `... time 0.038044   12.678 qlen ...`.
fn pair_of(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace().skip_while(|word| *word != "time").skip(2);
    let nanos = words.next()?.parse().ok()?;
    (words.next() == Some("qlen")).then_some(nanos)
}

/// What a pair takes here, ns, the controller included.
fn total(document: &Value, name: &str, flows: u32) -> Result<f64> {
    let results = document["results"].as_array().map_or(&[][..], Vec::as_slice);
    // Each measurement has the time of the controller alone beside it.
    let measured = results.iter().find(|result| {
        result["flows"].as_u64() == Some(flows.into())
            && (result["algorithm"] == name || (name == "none" && result["algorithm"] == "drr"))
    });
    let number = |pointer: &str| measured?.pointer(pointer)?.as_f64();
    let net = if name == "none" {
        Some(0.0)
    } else {
        number("/time/net/median")
    };
    net.zip(number("/time/none/median"))
        .map(|(net, none)| net + none)
        .ok_or(format!("{name} with {flows} flows was not measured"))
}

/// The medians of all rounds.
fn table(rounds: &[Times]) -> String {
    let heads = FLOWS.map(|flows| {
        let flows = whole(flows.into());
        [format!("dummynet, {flows} flows"), format!("fairgate, {flows}")]
    });
    let heads: Vec<&str> = heads.as_flattened().iter().map(String::as_str).collect();
    let mut table = Table::new(1, &[&["ns for a pair"], &heads[..]].concat());
    for (row, (name, _)) in NAMES.into_iter().enumerate() {
        let label = if name == "none" {
            "the controller alone"
        } else {
            name
        };
        let mut cells = vec![label.to_owned()];
        for column in 0..FLOWS.len() {
            for side in [1, 0] {
                let times = rounds.iter().map(|times| times[row][column][side]);
                cells.push(digits(median(times.collect())));
            }
        }
        table.add(&cells);
    }
    table.text()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_pair_is_read_from_what_the_harness_says() {
        let said =
            "main     dn_rr    n 3000704 6000000 time 0.038044   12.678 qlen 64 1920 flows 1:1000:64 drops 0";
        assert_eq!(pair_of(said), Some(12.678));
        assert_eq!(pair_of("main     dn_rr    n 3000704"), None);
        assert_eq!(pair_of("time 0.1 drops 0"), None);
    }

    #[test]
    fn our_times_include_the_controller() {
        let document: Value = serde_json::from_str(include_str!("recorded/schedulers.json")).unwrap();
        let none = total(&document, "none", 64).unwrap();
        assert!(total(&document, "drr", 64).unwrap() > none && none > 0.0);
        assert!(total(&document, "drr", 77).unwrap_err().contains("77 flows"));
        assert!(total(&Value::Null, "drr", 64).is_err());
    }

    #[test]
    fn the_table_has_the_medians_of_both() {
        let round = |ours: f64| vec![vec![[ours, 20.0]; FLOWS.len()]; NAMES.len()];
        let text = table(&[round(3.0), round(1.0), round(2.0)]);
        assert!(
            text.contains("| drr | 20.0 | 2.00 | 20.0 | 2.00 | 20.0 | 2.00 |"),
            "{text}"
        );
        assert!(text.contains("| the controller alone | "), "{text}");
    }

    #[test]
    fn what_is_no_checkout_is_refused_with_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let bench = Bench::new(folder.path().to_owned(), folder.path().to_owned(), true).unwrap();
        let error = compile(&bench, folder.path()).unwrap_err();
        assert!(error.contains("no test/main.c"), "{error}");
    }
}
