//! Measures time and instructions of a pair, net of NONE, for every scheduler under the load FULL. This is
//! the short form of `fairgate-lab bench schedulers`, for comparing one commit with the next.
//!
//!     cargo bench -p fairgate-evidence -- [statistics | classified] [NAME...] [FLOWS...]
//!
//! Instructions are counted if valgrind's callgrind is installed.

use std::process::ExitCode;

use fairgate_evidence::bench::callgrind;
use fairgate_evidence::bench::measure::Plan;
use fairgate_evidence::bench::{
    ALGORITHMS, Algorithm, Job, JobError, Load, Mode, Order, Sizes, Weights, Workload,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|text| text != "--bench")
        .collect();
    if let [run, name, flows, mode, cycles] = &arguments[..]
        && run == "--run"
    {
        let number = |text: &str| text.parse().expect("the counting process passes numbers");
        let mode = mode_of(mode).expect("the counting process passes a mode");
        let job = job(Algorithm::by_name(name), number(flows) as u32, mode);
        return match job.run_cycles(number(cycles)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let (modes, rest): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|text| mode_of(text).is_some());
    let mode = modes.last().and_then(|text| mode_of(text)).unwrap_or(Mode::Bare);
    let (flows, names): (Vec<String>, Vec<String>) =
        rest.into_iter().partition(|text| text.parse::<u32>().is_ok());
    let mut flows: Vec<u32> = flows.iter().filter_map(|text| text.parse().ok()).collect();
    if flows.is_empty() {
        flows = vec![1, 64, 512, 4096];
    }
    let counts = callgrind::check()
        .map_err(|error| eprintln!("SKIPPED: {error}"))
        .is_ok();
    println!("ns for a pair, net of NONE: median (least); instructions; the load FULL\n");
    let header: String = flows.iter().map(|flows| format!("{flows:>22}")).collect();
    println!("{:10}{header}  flows", "");
    for algorithm in ALGORITHMS {
        if names.is_empty() || names.iter().any(|name| name == algorithm.name) {
            let row: String = flows
                .iter()
                .map(|&flows| cell(job(Some(*algorithm), flows, mode), counts))
                .collect();
            println!("{:10}{row}", algorithm.name);
        }
    }
    ExitCode::SUCCESS
}

fn mode_of(name: &str) -> Option<Mode> {
    [Mode::Bare, Mode::Statistics, Mode::Classified]
        .into_iter()
        .find(|mode| mode.name() == name)
}

fn job(algorithm: Option<Algorithm>, flows: u32, mode: Mode) -> Job {
    Job {
        algorithm,
        workload: Workload {
            flows,
            load: Load::Full,
            order: Order::Shortest,
            sizes: Sizes::Constant(1000),
        },
        weights: Weights::Equal,
        mode,
        seed: 1,
    }
}

fn cell(job: Job, counts: bool) -> String {
    let plan = Plan {
        runs: 9,
        pairs: 100_000,
    };
    let mut text = match job.time(plan, || ()) {
        Ok(timing) => format!("{:>9.1} ({:>5.1})", timing.net.median, timing.net_least),
        Err(error) => format!(" {error}"),
    };
    if counts {
        text += &net_instructions(job).map_or(format!("{:>5}", "?"), |net| format!("{net:>5.0}"));
    }
    text
}

fn net_instructions(job: Job) -> Result<f64, JobError> {
    let program = std::env::current_exe().expect("a running program has a path");
    let count = |job: Job| {
        job.instructions(&program, |job, cycles| {
            [
                "--run",
                job.name(),
                &job.workload.flows.to_string(),
                job.mode.name(),
                &cycles.to_string(),
            ]
            .map(String::from)
            .to_vec()
        })
    };
    Ok(count(job)? - count(job.without_scheduler())?)
}
