//! Counts the instructions to enqueue and dequeue a packet, by discipline and number of flows, with
//! callgrind. The counts are exact, also on a busy machine, where times are not. The driver's own
//! instructions are subtracted.
//!
//!     cargo bench -p fairgate --bench instructions -- [NAME...] [FLOWS...]
//!
//! The program runs itself under valgrind with few and with many pairs, and divides the difference. With
//! `--check` it compares with the counts that the repository keeps, with `--pin` it writes them:
//! `scripts/instructions`.

mod pinned;
mod workload;

use std::process::{Command, ExitCode};

use workload::{FLOWS, Pairs, SUBJECTS};

const FEW: u64 = 5_000;
const MANY: u64 = 45_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, run, name, flows, pairs] = &arguments[..]
        && run == "--run"
    {
        let number = |text: &str| text.parse().expect("the counting process passes numbers");
        run_pairs(name, number(flows) as u32, number(pairs));
        return ExitCode::SUCCESS;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!(
            "SKIPPED: counting instructions needs valgrind, which is not installed; `apt install valgrind` \
             installs it"
        );
        return ExitCode::SUCCESS;
    }
    // Cargo adds an argument of its own.
    let asked = arguments[1..].iter().filter(|argument| *argument != "--bench");
    let driver = per_pair("none", FLOWS[0]);
    let of_discipline = |name: &str, flows: u32| per_pair(name, flows) - driver;
    match asked.clone().next().map(String::as_str) {
        Some("--check") => return pinned::check(of_discipline),
        Some("--pin") => return pinned::write(of_discipline),
        _ => {}
    }
    let (flows, names): (Vec<&String>, Vec<&String>) = asked.partition(|text| text.parse::<u32>().is_ok());
    let flows: Vec<u32> = match flows.is_empty() {
        true => FLOWS.to_vec(),
        false => flows.iter().filter_map(|text| text.parse().ok()).collect(),
    };
    let header: String = flows.iter().map(|flows| format!("{flows:>10}")).collect();
    println!("instructions for a pair\n{:12}{header}  flows", "");
    let is_asked_for = |name: &str| names.is_empty() || names.iter().any(|asked| *asked == name);
    for (name, _) in SUBJECTS.into_iter().filter(|(name, _)| is_asked_for(name)) {
        let row: String = flows
            .iter()
            .map(|&flows| format!("{:>10.1}", of_discipline(name, flows)))
            .collect();
        println!("{name:12}{row}");
    }
    println!("driver, subtracted: {driver:.1}");
    ExitCode::SUCCESS
}

fn run_pairs(name: &str, flows: u32, count: u64) {
    let subject = SUBJECTS.into_iter().find(|subject| subject.0 == name);
    let mut pairs = Pairs::new(subject.unwrap_or(SUBJECTS[0]), flows);
    for _ in 0..count {
        match subject {
            Some(_) => pairs.step(),
            None => pairs.step_without_discipline(),
        }
    }
}

fn per_pair(name: &str, flows: u32) -> f64 {
    let difference = instructions(name, flows, MANY) - instructions(name, flows, FEW);
    difference as f64 / (MANY - FEW) as f64
}

/// Returns the instructions of a whole run, from callgrind's summary: `==123== Collected : 4567`.
fn instructions(name: &str, flows: u32, pairs: u64) -> u64 {
    let program = std::env::current_exe().expect("a running program has a path");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--run", name, &flows.to_string(), &pairs.to_string()])
        .output()
        .expect("valgrind was found before");
    let summary = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the counted run failed:\n{summary}");
    let collected = summary.lines().find_map(|line| line.split_once("Collected : "));
    let Some((_, count)) = collected else {
        panic!("callgrind did not report the number of instructions:\n{summary}");
    };
    count.trim().parse().expect("callgrind reports a whole number")
}
