//! `fairgate simulate`: runs a scenario file in the discrete-event simulator.

mod captures;
mod seeds;
mod sink;
mod tables;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use fairgate_config::Registry;
use fairgate_sim::{Batch, Results, Scenario};
use miette::Diagnostic;
use thiserror::Error;

use crate::document;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::{self, Format, Targets};
use crate::progress;
use captures::Captures;
use seeds::Seeds;
use sink::Sink;

/// Simulate a network described in a file
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate simulate home.toml                     a table of flows and queues
  fairgate simulate home.toml --seed 2            the same with other random numbers
  fairgate simulate home.toml --seeds 20          20 seeds on all processors: means and 95 % intervals
  fairgate simulate home.toml --json              all results, with time series, for a script
  fairgate simulate home.toml --out flows.csv     a row for each flow (also .parquet; .json has all)
  fairgate simulate home.toml --out results       a folder with all results in all formats

The file's [simulate] section:
  [simulate]
  duration = \"60s\"
  measure = [\"10s\", \"60s\"]
  [[simulate.link]]                # without links: the network of [run] with nodes left, router, right
  a = \"home\"
  b = \"server\"
  rate = \"20mbit\"
  delay = \"10ms\"
  queue_b = \"wan\"                  # [queue.wan]; default: a fifo of 1000 packets
  [[simulate.cell]]                # Wi-Fi: an access point and its stations
  name = \"flat\"
  ap = \"home\"
  stations = [\"phone\", \"tv\"]
  distances = [3.0, 12.0]          # metres; or mcs = 9
  [[simulate.flow]]
  name = \"downloads\"
  from = \"server\"
  to = \"home\"
  count = 4
  tcp = {}                         # or { congestion_control = \"reno\" }: cubic (default), reno, dctcp,
                                   # prague, ledbat, bbr, bbr3; docs/tcp.md has all settings
                                   # or udp = { rate = \"1mbit\", size = \"1000b\" }
  [[simulate.flow]]                # flows that arrive at random and end; results for all together
  name = \"pages\"
  from = \"server\"
  to = \"home\"
  arrivals = { rate = \"5/s\" }    # or { load = \"2mbit\" }, { interval = { uniform = [\"0s\", \"1s\"] } }
  tcp = { size = { log_normal = \"50kb\", deviation = \"100kb\" }, transfers = 1 }
                                   # or lifetime = { exponential = \"60s\" } with udp
  [[simulate.observe]]             # a variable of a queue, at the end of each interval
  name = \"waiting\"
  interface = \"server->home\"
  variable = \"backlog_packets\"
  [[simulate.capture]]             # a pcapng file for Wireshark
  interface = \"server->home\"
  file = \"wan.pcapng\"
docs/simulation.md has all keys: jitter, loss, rates that change, routes, and more.")]
pub(crate) struct Args {
    /// The scenario file
    file: PathBuf,

    /// Seed of all random numbers; equal seeds give equal results [default: the file's]
    #[arg(long)]
    seed: Option<u64>,

    /// Simulate this number of seeds, one after the other from `--seed` on, and show means with 95 %
    /// intervals
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=10_000)
    )]
    seeds: u64,

    /// The number of simulations at a time [default: the number of processors]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Simulated time instead of the file's duration: 10s, 5min
    #[arg(long, value_parser = input::positive_duration)]
    duration: Option<Duration>,

    /// Write results to a file (.json, .csv, .parquet) or a folder
    #[arg(short, long, value_name = "PATH")]
    out: Option<PathBuf>,
}

#[derive(Debug, Error, Diagnostic)]
pub(crate) enum SimulateError {
    #[error(transparent)]
    #[diagnostic(help("check the queues and rates of the scenario"))]
    Simulation(#[from] fairgate_sim::Error),
    #[error("`--duration` ends before the measurement begins at {begins:?}")]
    #[diagnostic(help("simulate for longer, or change `measure` in the file"))]
    Short { begins: Duration },
    #[error("there are no {count} seeds from {first} on: the last one is {}", u64::MAX)]
    #[diagnostic(help("begin with a lower `--seed`"))]
    Seeds { first: u64, count: u64 },
    #[error("the format of {path} is unknown")]
    #[diagnostic(help("use a name that ends in .json, .csv or .parquet, or a folder without extension"))]
    Format { path: String },
    #[cfg(not(feature = "parquet"))]
    #[error("this program was built without Parquet")]
    #[diagnostic(help("write .csv, or build it with `--features parquet`"))]
    NoParquet,
}

pub(crate) fn run(args: Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let memory = input::available_memory();
    let document = document::read(&args.file, registry)?;
    let mut scenario = match args.duration {
        // The memory depends on the duration, so it is checked after the duration was changed.
        Some(_) => Scenario::read(&document)?,
        None => Scenario::read_for(&document, memory)?,
    };
    if let Some(seed) = args.seed {
        scenario.seed = seed;
    }
    if let Some(duration) = args.duration {
        shorten(&mut scenario, duration)?;
        let fits = scenario.check_memory(memory);
        fits.map_err(|error| SimulateError::Simulation(error.into()))?;
    }
    let first = scenario.seed;
    let last = first.checked_add(args.seeds - 1).ok_or(SimulateError::Seeds {
        first,
        count: args.seeds,
    })?;
    let mut targets = Targets::beside([args.file.as_path()]);
    let sink = args.out.as_deref();
    let sink = sink.map(|path| Sink::open(path, &scenario, &mut targets));
    let sink = sink.transpose()?.unwrap_or_default();
    let scenarios: Vec<Scenario> = (first..=last)
        .map(|seed| Scenario {
            seed,
            ..scenario.clone()
        })
        .collect();
    let batch = args.jobs.map_or_else(Batch::default, Batch::with_jobs);
    let captures = Captures::open(&scenarios, &mut targets)?;
    let runs = Runs::of(simulate(&scenarios, &captures, batch, format)?);
    output::deliver(
        || {
            captures.finish()?;
            sink.write(&runs)
        },
        |_| match format {
            Format::Json => output::exact(&runs.json_text()),
            Format::Text => output::text(&runs.tables()),
        },
    )?;
    Ok(Outcome::Yes)
}

/// The results of one seed, or of several.
enum Runs {
    One(Box<Results>),
    Seeds(Seeds),
}

impl Runs {
    fn of(mut runs: Vec<Results>) -> Runs {
        match runs.len() {
            1 => Runs::One(Box::new(runs.remove(0))),
            _ => Runs::Seeds(Seeds::of(runs)),
        }
    }

    fn json_text(&self) -> String {
        match self {
            Runs::One(results) => output::json_text("simulate", results),
            Runs::Seeds(seeds) => output::json_text("simulate-seeds", seeds),
        }
    }

    fn tables(&self) -> String {
        match self {
            Runs::One(results) => tables::tables(results),
            Runs::Seeds(seeds) => seeds.tables(),
        }
    }
}

/// Sets the duration, and the end of the measurement to the same time.
fn shorten(scenario: &mut Scenario, duration: Duration) -> Result<(), SimulateError> {
    if scenario.measure.start >= duration {
        return Err(SimulateError::Short {
            begins: scenario.measure.start,
        });
    }
    scenario.duration = duration;
    scenario.measure.end = duration;
    scenario.interval = scenario.interval.min(duration);
    Ok(())
}

fn simulate(
    scenarios: &[Scenario],
    captures: &Captures,
    batch: Batch,
    format: Format,
) -> Result<Vec<Results>, SimulateError> {
    let millis: u128 = scenarios
        .iter()
        .map(|scenario| scenario.duration.as_millis())
        .sum();
    let bar = progress::simulated(millis as u64, format);
    let results = batch.run_prepared(
        scenarios,
        |run, simulation| captures.prepare(run, simulation),
        |simulated| bar.inc(simulated.as_millis() as u64),
    );
    bar.finish_and_clear();
    Ok(results.into_iter().collect::<Result<_, fairgate_sim::Error>>()?)
}
