//! `fairgate simulate`: runs a scenario file in the discrete-event simulator.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use comfy_table::CellAlignment;
use fairgate::Time;
use fairgate_config::Registry;
use fairgate_sim::results::{ConnectionResults, FlowResults, Table};
use fairgate_sim::{Results, Scenario, Simulation};
use miette::Diagnostic;
use thiserror::Error;

use crate::exit::{Failure, Outcome};
use crate::input;
use crate::output::{self, Format, Target, Targets};
use crate::progress;

/// The maximum number of flows in the table. If there are more, groups are shown too.
const MOST_ROWS: usize = 40;

/// Simulate a network described in a file
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate simulate home.toml                     a table of flows and queues
  fairgate simulate home.toml --seed 2            the same with other random numbers
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
  [[simulate.flow]]
  name = \"downloads\"
  from = \"server\"
  to = \"home\"
  count = 4
  tcp = {}                         # or { congestion_control = \"reno\" }: cubic (default), reno, dctcp or
                                   # ledbat
                                   # or udp = { rate = \"1mbit\", size = \"1000b\" }")]
pub(crate) struct Args {
    /// The scenario file
    file: PathBuf,

    /// Seed of all random numbers; equal seeds give equal results [default: the file's]
    #[arg(long)]
    seed: Option<u64>,

    /// Simulated time instead of the file's duration: 10s, 5min
    #[arg(long, value_parser = input::positive_duration)]
    duration: Option<Duration>,

    /// Write results to a file (.json, .csv, .parquet) or a folder
    #[arg(long, value_name = "PATH")]
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
    let document = input::document(&args.file, registry)?;
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
    let mut targets = Targets::beside([args.file.as_path()]);
    let sink = args.out.as_deref().map(|path| Sink::open(path, &mut targets));
    let sink = sink.transpose()?.unwrap_or_default();
    let results = simulate(&scenario, format)?;
    output::deliver(
        || sink.write(&results),
        |_| match format {
            Format::Json => output::json("simulate", &results),
            Format::Text => output::text(&tables(&results)),
        },
    )?;
    Ok(Outcome::Yes)
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

fn simulate(scenario: &Scenario, format: Format) -> Result<Results, SimulateError> {
    let simulation = Simulation::new(scenario).map_err(fairgate_sim::Error::from)?;
    let bar = progress::simulated(scenario.duration.as_millis() as u64, format);
    let results = simulation.run_with(|now: Time| bar.set_position(now.nanos() / 1_000_000));
    bar.finish_and_clear();
    Ok(results?)
}

/// The files for results, found to be writable before the simulation.
#[derive(Default)]
struct Sink(Vec<(Target, Content)>);

#[derive(Clone, Copy)]
enum Content {
    /// All results.
    Json,
    Csv(Figures),
    #[cfg(feature = "parquet")]
    Parquet(Figures),
}

/// A table of results.
#[derive(Clone, Copy)]
enum Figures {
    Flows,
    Interfaces,
    Series,
}

impl Sink {
    /// Opens the file or folder. The extension of the name decides on the format.
    fn open(path: &Path, targets: &mut Targets) -> Result<Sink, Failure> {
        let content = match path.extension().and_then(|ending| ending.to_str()) {
            None => return Sink::folder(path, targets),
            Some(_) if path.is_dir() => return Sink::folder(path, targets),
            Some("json") => Content::Json,
            Some("csv") => Content::Csv(Figures::Flows),
            #[cfg(feature = "parquet")]
            Some("parquet") => Content::Parquet(Figures::Flows),
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => return Err(SimulateError::NoParquet.into()),
            Some(_) => {
                let path = path.display().to_string();
                return Err(SimulateError::Format { path }.into());
            }
        };
        Ok(Sink(vec![(targets.open(path)?, content)]))
    }

    /// Opens a folder for all results in all formats.
    fn folder(path: &Path, targets: &mut Targets) -> Result<Sink, Failure> {
        let mut files = Vec::new();
        let mut add = |name: &str, content| -> Result<(), Failure> {
            files.push((targets.open_in(path, name)?, content));
            Ok(())
        };
        add("results.json", Content::Json)?;
        for (name, figures) in [
            ("flows", Figures::Flows),
            ("interfaces", Figures::Interfaces),
            ("series", Figures::Series),
        ] {
            add(&format!("{name}.csv"), Content::Csv(figures))?;
            #[cfg(feature = "parquet")]
            add(&format!("{name}.parquet"), Content::Parquet(figures))?;
        }
        Ok(Sink(files))
    }

    fn write(self, results: &Results) -> Result<(), Failure> {
        output::each(self.0, |(target, content)| {
            target.write(|file| content.write(results, file))
        })
    }
}

impl Content {
    fn write(self, results: &Results, file: &mut File) -> io::Result<()> {
        match self {
            Content::Json => file.write_all(output::json_text("simulate", results).as_bytes()),
            Content::Csv(figures) => figures.table(results).write_csv(file),
            #[cfg(feature = "parquet")]
            Content::Parquet(figures) => figures.table(results).write_parquet(file),
        }
    }
}

impl Figures {
    fn table(self, results: &Results) -> Table {
        match self {
            Figures::Flows => results.flow_table(),
            Figures::Interfaces => results.interface_table(),
            Figures::Series => results.series_table(),
        }
    }
}

fn tables(results: &Results) -> String {
    let [from, to] = results.measured_ns.map(|nanos| nanos as f64 / 1e9);
    let mut text = format!(
        "Measured from {from} s to {to} s, seed {}: goodput {}, Jain's index {:.3}.\n\n",
        results.seed,
        mbit(results.goodput_bps),
        results.jain
    );
    text.push_str(&flow_table(results));
    text.push('\n');
    text.push_str(&queue_table(results));
    text.push_str(&format!(
        "\n{} packet-hops, {} events.\n",
        results.packet_hops, results.events
    ));
    text
}

fn flow_table(results: &Results) -> String {
    let header = [
        "FLOW", "GOODPUT", "SENT", "LOST", "MARKED", "DELAY", "P95", "P99", "MAX", "JITTER", "RESENT",
    ];
    let mut table = output::table(header);
    for flow in results.flows.iter().take(MOST_ROWS) {
        let delay = &flow.delay;
        table.add_row([
            flow.name.clone(),
            mbit(flow.goodput_bps),
            flow.sent.to_string(),
            share(flow),
            flow.marked.to_string(),
            millis(delay.mean_ns),
            millis(delay.p95_ns),
            millis(delay.p99_ns),
            millis(delay.max_ns),
            millis(flow.jitter_ns),
            flow.connection
                .as_ref()
                .map_or_else(String::new, |connection: &ConnectionResults| {
                    connection.retransmissions.to_string()
                }),
        ]);
    }
    align(&mut table, 1);
    let mut text = output::table_text(&table);
    if results.flows.len() > MOST_ROWS {
        text.push_str(&format!(
            "... and {} more; --json and --out have all\n",
            results.flows.len() - MOST_ROWS
        ));
    }
    if results.groups.iter().any(|group| group.flows > 1) {
        let mut table = output::table([
            "GROUP", "FLOWS", "GOODPUT", "JAIN", "SENT", "LOST", "DELAY", "JITTER",
        ]);
        for group in &results.groups {
            table.add_row([
                group.name.clone(),
                group.flows.to_string(),
                mbit(group.goodput_bps),
                format!("{:.3}", group.jain),
                group.sent.to_string(),
                group.lost.to_string(),
                millis(group.delay_mean_ns),
                millis(group.jitter_ns),
            ]);
        }
        align(&mut table, 1);
        text.push('\n');
        text.push_str(&output::table_text(&table));
    }
    text
}

/// Returns a table of the interfaces that packets passed.
fn queue_table(results: &Results) -> String {
    let header = [
        "INTERFACE",
        "DISCIPLINE",
        "RATE",
        "USED",
        "SENT",
        "DROPPED",
        "MARKED",
        "SOJOURN",
        "P95",
        "P99",
        "MAX",
    ];
    let mut table = output::table(header);
    let passed: Vec<_> = results
        .interfaces
        .iter()
        .filter(|interface| interface.enqueued > 0)
        .collect();
    for interface in passed.iter().take(MOST_ROWS) {
        let sojourn = &interface.sojourn;
        table.add_row([
            interface.name.clone(),
            interface.discipline.clone(),
            interface.rate_bps.map_or_else(String::new, mbit),
            interface
                .utilisation
                .map_or_else(String::new, |share| format!("{:.1} %", 100.0 * share)),
            interface.transmitted.to_string(),
            interface.dropped.to_string(),
            interface.marked.to_string(),
            millis(sojourn.mean_ns),
            millis(sojourn.p95_ns),
            millis(sojourn.p99_ns),
            millis(sojourn.max_ns),
        ]);
    }
    align(&mut table, 2);
    let mut text = output::table_text(&table);
    if passed.len() > MOST_ROWS {
        text.push_str(&format!(
            "... and {} more; --json and --out have all\n",
            passed.len() - MOST_ROWS
        ));
    }
    text
}

/// Right-aligns the columns from this one on, which hold numbers.
fn align(table: &mut comfy_table::Table, from: usize) {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn share(flow: &FlowResults) -> String {
    format!("{:.2} %", 100.0 * flow.loss_ratio)
}

fn mbit(bits_per_second: u64) -> String {
    format!("{:.3} Mbit/s", bits_per_second as f64 * 1e-6)
}

fn millis(nanos: u64) -> String {
    format!("{:.3} ms", nanos as f64 * 1e-6)
}
