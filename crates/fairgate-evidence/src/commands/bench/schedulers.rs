//! `fairgate-lab bench schedulers`: runs the controller of the QFQ paper's Figure 8 over every scheduler.

use std::path::{Path, PathBuf};

use fairgate_config::Memory;
use fairgate_report::command::failure::{Failure, Outcome};
use fairgate_report::command::output::{self, Format, Target, Targets};
use fairgate_report::command::progress;
use fairgate_report::command::shell;
use indicatif::ProgressBar;
use miette::{Diagnostic, miette};
use thiserror::Error;

use super::arguments::{LoadArg, Offered, format_sizes, parse_algorithm, parse_flows};
use super::document::{Document, Floor, Measurement};
use crate::bench::callgrind;
use crate::bench::measure::Plan;
use crate::bench::{ALGORITHMS, Algorithm, Instructions, Job, Load, floor};

/// The numbers of flows that are measured by default, and with `--full`.
const FLOWS: [u32; 6] = [1, 8, 64, 512, 4_096, 32_768];
const ALL_FLOWS: [u32; 8] = [1, 8, 64, 512, 4_096, 32_768, 131_072, 1_048_576];
/// The minimum number of enqueues and dequeues of a run.
const PAIRS: u64 = 100_000;

/// Measure an enqueue and a dequeue, by scheduler and number of flows
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate-lab bench schedulers                             all schedulers, 1 to 32K flows: 2 minutes
  fairgate-lab bench schedulers --algorithms drr,scfq       two of them
  fairgate-lab bench schedulers --flows 64,4K,1M            other numbers of flows
  fairgate-lab bench schedulers --full --out speed.html     to 1M flows, three loads, figures: half an hour
  fairgate-lab bench schedulers --order random --sizes 64-1500 --weights mix --mode classified
                                                        conditions as in a real program

One thread enqueues until the backlog reaches its upper limit, and dequeues until it reaches the lower one
(Checconi, Rizzo, Valente: QFQ, Figure 8). Schedulers get the flow with the packet, and are called through a
function pointer; `--mode` adds the other costs of a packet. Times are the thread's own, net of NONE, which is
the controller with only a queue; runs alternate with runs of NONE. Instructions are counted by valgrind's
callgrind.

Exit codes: 0 success; 1 a scheduler dropped, withheld or lost a packet; 2 invalid input; 3 no valgrind, or
too little memory.")]
pub(crate) struct Args {
    /// Numbers of flows, 1 to 1M [default: 1,8,64,512,4K,32K]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_flows)]
    flows: Vec<u32>,

    /// The number of queued packets [default: full]
    #[arg(long, value_enum, value_delimiter = ',')]
    load: Vec<LoadArg>,

    /// The schedulers to measure [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = parse_algorithm)]
    algorithms: Vec<Algorithm>,

    #[command(flatten)]
    offered: Offered,

    /// Number of runs of each, of which the median is shown
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// Measure 1 to 1M flows under all three loads, and instructions up to 4K flows
    #[arg(long)]
    full: bool,

    /// Numbers of flows with which instructions are counted [default: 64, if valgrind is installed]
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        value_parser = parse_flows,
        conflicts_with = "no_instructions"
    )]
    instructions: Vec<u32>,

    /// Do not count instructions
    #[arg(long)]
    no_instructions: bool,

    /// Also write the results to a file (.csv, .html, .svg, .json); can be given several times
    #[arg(short, long, value_name = "FILE")]
    out: Vec<PathBuf>,
}

#[derive(clap::Args)]
pub(super) struct CyclesArgs {
    #[arg(long)]
    algorithm: String,
    #[arg(long, value_parser = parse_flows)]
    flows: u32,
    #[arg(long, value_enum)]
    load: LoadArg,
    #[arg(long)]
    cycles: u64,
    #[command(flatten)]
    offered: Offered,
}

#[derive(Debug, Error, Diagnostic)]
enum BenchError {
    #[error(transparent)]
    #[diagnostic(help("add `--no-instructions` to measure only times"))]
    Count(#[from] callgrind::CountError),
    #[error("the format of {path} is unknown")]
    #[diagnostic(help("use a name that ends in .csv, .html, .svg or .json"))]
    Format { path: String },
    #[error(
        "{flows} flows under the load {load} need about {needed} MiB of memory, but only {available} MiB are \
         available"
    )]
    #[diagnostic(help("choose fewer flows, or the load `small`"))]
    Memory {
        flows: u32,
        load: &'static str,
        needed: u64,
        available: u64,
    },
}

pub(super) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let mut targets = Targets::beside([]);
    let outputs = args
        .out
        .iter()
        .map(|path| Ok((writer(path)?, targets.open(path)?)))
        .collect::<Result<Vec<(Write, Target)>, Failure>>()?;
    let counted_at = counted_at(&args)?;
    let jobs = jobs(&args);
    if let Some(refusal) = jobs.iter().find_map(too_big) {
        return Err(Failure::environment(refusal));
    }
    let counts = jobs
        .iter()
        .filter(|job| counted_at.contains(&job.workload.flows))
        .count() as u64;
    let progress = progress::steps(jobs.len() as u64 * u64::from(args.runs + 1) + counts + 1, format);
    progress.set_message("memory and branches");
    let mut document = document(&args);
    progress.inc(1);
    for job in &jobs {
        let counts = counted_at.contains(&job.workload.flows);
        document.results.push(measure(job, &args, counts, &progress)?);
    }
    progress.finish_and_clear();
    let write = |(write, target): (Write, Target)| target.write(|file| write(&document, file));
    output::deliver(
        || output::each(outputs, write),
        |_| match format {
            Format::Json => output::json("bench-schedulers", &document),
            Format::Text => output::text(&document.text()),
        },
    )?;
    Ok(if document.has_errors() {
        Outcome::No
    } else {
        Outcome::Yes
    })
}

pub(super) fn run_cycles(args: &CyclesArgs) -> Result<Outcome, Failure> {
    let algorithm = Algorithm::by_name(&args.algorithm);
    let job = args.offered.job(algorithm, args.flows, args.load.into());
    match job.run_cycles(args.cycles) {
        Ok(()) => Ok(Outcome::Yes),
        Err(error) => Err(Failure::Input(miette!("{error}"))),
    }
}

/// Returns a job for every scheduler with every number of flows under every load.
fn jobs(args: &Args) -> Vec<Job> {
    let algorithms = match args.algorithms.as_slice() {
        [] => ALGORITHMS,
        given => given,
    };
    let flows = match (args.flows.as_slice(), args.full) {
        ([], false) => &FLOWS[..],
        ([], true) => &ALL_FLOWS[..],
        (given, _) => given,
    };
    let loads: Vec<Load> = match (args.load.as_slice(), args.full) {
        ([], false) => vec![Load::Full],
        ([], true) => Load::ALL.to_vec(),
        (given, _) => given.iter().map(|&load| load.into()).collect(),
    };
    let mut jobs = Vec::new();
    for load in loads {
        for &algorithm in algorithms {
            for &flows in flows {
                jobs.push(args.offered.job(Some(algorithm), flows, load));
            }
        }
    }
    jobs
}

/// Returns the numbers of flows with which instructions are counted.
fn counted_at(args: &Args) -> Result<Vec<u32>, Failure> {
    if args.no_instructions {
        return Ok(Vec::new());
    }
    let is_asked_for = !args.instructions.is_empty();
    match callgrind::check() {
        Ok(()) if is_asked_for => Ok(args.instructions.clone()),
        Ok(()) if args.full => Ok(ALL_FLOWS.into_iter().filter(|&flows| flows <= 4_096).collect()),
        Ok(()) => Ok(vec![64]),
        Err(error) if is_asked_for => Err(Failure::environment(BenchError::Count(error))),
        Err(error) => {
            output::say(format_args!("{error}; instructions are not counted"));
            Ok(Vec::new())
        }
    }
}

fn measure(job: &Job, args: &Args, counts: bool, progress: &ProgressBar) -> Result<Measurement, Failure> {
    progress.set_message(format!("{}, {} flows", job.name(), job.workload.flows));
    let plan = Plan {
        runs: args.runs,
        pairs: PAIRS,
    };
    let timed = job.time(plan, || progress.inc(1));
    let (time, error) = match timed {
        Ok(timing) => (Some(timing), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let instructions = match (counts, &error) {
        (true, None) => Some(count(job)?),
        _ => None,
    };
    progress.inc(counts.into());
    Ok(Measurement {
        algorithm: job.name(),
        load: job.workload.load.name(),
        flows: job.workload.flows,
        time,
        instructions,
        error,
    })
}

/// Counts instructions, with those of NONE separate.
fn count(job: &Job) -> Result<Instructions, Failure> {
    let of = |job: &Job| instructions(job).map_err(|error| Failure::environment(BenchError::Count(error)));
    let none = of(&job.without_scheduler())?;
    Ok(Instructions {
        none,
        net: of(job)? - none,
    })
}

/// Counts the instructions of an enqueue and a dequeue, including the controller's own, by running this
/// program again.
pub(super) fn instructions(job: &Job) -> Result<f64, callgrind::CountError> {
    let program = std::env::current_exe().map_err(callgrind::CountError::NoProgram)?;
    job.instructions(&program, |job, cycles| {
        let mut arguments = ["bench", "cycles", "--algorithm", job.name()]
            .map(String::from)
            .to_vec();
        arguments.extend(["--flows".into(), job.workload.flows.to_string()]);
        arguments.extend(["--load".into(), job.workload.load.name().to_owned()]);
        arguments.extend(["--cycles".into(), cycles.to_string()]);
        arguments.extend(Offered::of(job).options());
        arguments
    })
}

fn document(args: &Args) -> Document {
    let job = args.offered.job(None, 1, Load::Full);
    let options = args.offered.options();
    let option = |index: usize| options.get(index).cloned().unwrap_or_default();
    Document {
        command: shell::words(std::env::args_os()),
        order: option(1),
        weights: option(3),
        sizes: format_sizes(job.workload.sizes),
        mode: option(7),
        seed: args.offered.seed,
        runs: args.runs,
        floor: Floor {
            latency: [32 << 10, 1 << 20, 16 << 20, 128 << 20]
                .map(floor::chase)
                .to_vec(),
            branch_miss_ns: floor::branch_miss(),
        },
        results: Vec::new(),
    }
}

type Write = fn(&Document, &mut std::fs::File) -> std::io::Result<()>;

/// Returns the function that writes the format of a file name's extension.
fn writer(path: &Path) -> Result<Write, BenchError> {
    use std::io::Write as _;
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("csv") => Ok(|document, file| document.csv(file)),
        Some("html") => Ok(|document, file| file.write_all(document.page().as_bytes())),
        Some("svg") => Ok(|document, file| {
            let figure = document.figure().map_or(String::new(), |figure| figure.svg());
            file.write_all(figure.as_bytes())
        }),
        Some("json") => {
            Ok(|document, file| file.write_all(output::json_text("bench-schedulers", document).as_bytes()))
        }
        _ => Err(BenchError::Format {
            path: path.display().to_string(),
        }),
    }
}

/// Returns an error if a job needs more memory than is available.
fn too_big(job: &Job) -> Option<BenchError> {
    job.is_too_big().then(|| BenchError::Memory {
        flows: job.workload.flows,
        load: job.workload.load.name(),
        needed: job.memory() >> 20,
        available: Memory::watch().available() >> 20,
    })
}
