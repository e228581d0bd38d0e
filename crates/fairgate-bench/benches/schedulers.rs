//! Time and instructions for a pair, net of NONE, of every scheduler under the load FULL: the short form of
//! `fairgate bench schedulers`, to be compared from commit to commit.
//!
//!     cargo bench -p fairgate-bench -- [NAME...] [FLOWS...]
//!
//! Instructions are counted by callgrind where there is one.

use std::process::ExitCode;

use fairgate_bench::callgrind::{self, CountError};
use fairgate_bench::measure::{Plan, time};
use fairgate_bench::{
    ALGORITHMS, Algorithm, Drive, Fault, Load, Mode, Order, Sizes, Weights, Workload, none,
};

/// Cycles of a counted run, and of one to take off.
const CYCLES: [u64; 2] = [1, 4];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|text| text != "--bench")
        .collect();
    if let [run, name, flows, cycles] = &arguments[..]
        && run == "--run"
    {
        let number = |text: &str| text.parse().expect("the counting process passes numbers");
        return finish(run_cycles(name, number(flows) as u32, number(cycles)));
    }
    let (flows, names): (Vec<String>, Vec<String>) = arguments
        .into_iter()
        .partition(|text| text.parse::<u32>().is_ok());
    let mut flows: Vec<u32> = flows.iter().filter_map(|text| text.parse().ok()).collect();
    if flows.is_empty() {
        flows = vec![1, 64, 512, 4096];
    }
    let chosen = ALGORITHMS
        .iter()
        .filter(|algorithm| names.is_empty() || names.iter().any(|name| name == algorithm.name));
    let counts = callgrind::check()
        .map_err(|error| eprintln!("SKIPPED: {error}"))
        .is_ok();
    println!("ns and instructions for a pair, net of NONE; the load FULL\n");
    let header: String = flows.iter().map(|flows| format!("{flows:>22}")).collect();
    println!("{:10}{header}  flows", "");
    for algorithm in chosen {
        print!("{:10}", algorithm.name);
        for &flows in &flows {
            let work = workload(flows);
            let subject = subject(algorithm.name, work);
            let plan = Plan {
                runs: 9,
                pairs: 100_000,
            };
            match time(subject, none(work, Mode::Bare, 1), plan, || ()) {
                Ok(timing) => print!("{:>9.1} ({:>5.1})", timing.net.median, timing.net_least),
                Err(fault) => print!("{fault:>17}"),
            }
            if counts {
                let net = per_pair(algorithm.name, flows).and_then(|own| Ok(own - per_pair("none", flows)?));
                print!("{:>5}", net.map_or("?".into(), |net| format!("{net:.0}")));
            }
        }
        println!();
    }
    ExitCode::SUCCESS
}

fn workload(flows: u32) -> Workload {
    Workload {
        flows,
        load: Load::Full,
        order: Order::Shortest,
        sizes: Sizes::Constant(1000),
    }
}

fn subject(name: &str, workload: Workload) -> Box<dyn Drive> {
    match Algorithm::by_name(name) {
        Some(algorithm) => algorithm
            .drive(workload, Weights::Equal, Mode::Bare, 1)
            .expect("every scheduler takes equal weights"),
        None => none(workload, Mode::Bare, 1),
    }
}

fn run_cycles(name: &str, flows: u32, cycles: u64) -> Result<u64, Fault> {
    subject(name, workload(flows)).run(cycles * pairs_of_a_cycle(flows))
}

fn pairs_of_a_cycle(flows: u32) -> u64 {
    let (least, most) = Load::Full.bounds(flows);
    u64::from(most - least)
}

/// At least 3000 pairs more in the longer run.
fn per_pair(name: &str, flows: u32) -> Result<f64, CountError> {
    let cycle = pairs_of_a_cycle(flows);
    let [few, many] = CYCLES.map(|cycles| cycles * 1000u64.div_ceil(cycle));
    let program = std::env::current_exe().map_err(|error| CountError::Failed(error.to_string()))?;
    let count = |cycles: u64| {
        callgrind::instructions(&program, ["--run", name, &flows.to_string(), &cycles.to_string()])
    };
    Ok((count(many)? - count(few)?) as f64 / ((many - few) * cycle) as f64)
}

fn finish(result: Result<u64, Fault>) -> ExitCode {
    match result {
        Ok(_) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}
