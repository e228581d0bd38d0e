//! `fairgate compare`: one link, several disciplines side by side.

mod capture;
mod closed_loop;
mod direction;
mod flows;
mod home;
mod offload;
mod open_loop;
mod own;
mod reading;
mod services;
mod simulated;
mod trace;
#[cfg(feature = "live")]
pub(crate) mod what_if;

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairgate::Rate;
use fairgate::classify::Prefix;
use fairgate_config::units::parse_rate;
use fairgate_config::{Registry, Spec};
use fairgate_report::{Comparison, page, table};
use miette::Diagnostic;
use thiserror::Error;

use crate::failure::{Failure, Imbalanced, Outcome};
use crate::input::positive_duration;
use crate::output::{self, Format, Target, Targets, colour};
use crate::shell;
use direction::{Direction, parse_prefix};

/// The disciplines that are compared by default. drr gets the limit of the fifo. Its own default is ten times
/// as much, and then the result shows the effect of the buffer.
pub(crate) const DEFAULT_QUEUES: [&str; 7] = [
    "fifo",
    "pfifo_fast",
    "sfq",
    "drr limit=1000",
    "codel",
    "fq_codel",
    "msfc",
];

/// Compare disciplines: in a built-in home scenario, in your own scenario, or on a capture of your traffic
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate compare                                            an access line of 20 Mbit/s, seven disciplines
  fairgate compare --rate 50mbit --queue fifo --queue 'fq_codel target=10ms'
  fairgate compare office.toml                                my scenario, each queue in it replaced
  fairgate compare --trace my.pcap --rate 20mbit              what do they do to my traffic?
  fairgate compare --trace my.pcap --rate 5mbit --direction up --out upload.html
  fairgate compare --trace my.pcap --rate 20mbit --closed-loop
                                                              how long do my downloads take?

To make a capture: tcpdump -i eth0 -s 96 -w my.pcap")]
pub(crate) struct Args {
    /// A scenario file to simulate instead of the built-in scenario; each discipline replaces every queue
    /// that its links name
    #[arg(conflicts_with_all = ["trace", "rate"])]
    file: Option<PathBuf>,

    /// Replace only this queue of the scenario file, [queue.NAME]; can be given several times
    #[arg(long, value_name = "NAME", requires = "file")]
    replace: Vec<String>,

    /// The interface of the scenario file whose queue is shown, such as 'router->home' [default: the one with
    /// the longest queue]
    #[arg(long, value_name = "INTERFACE", requires = "file")]
    interface: Option<String>,

    /// Replay this capture (pcap or pcapng, compressed or not) instead of the built-in scenario
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Rate of the link
    #[arg(long, default_value = "20mbit", value_parser = parse_rate)]
    rate: Rate,

    /// A discipline to compare, with settings: 'fifo limit=100'; can be given several times [default: seven
    /// common ones]
    #[arg(long = "queue", value_name = "DISCIPLINE")]
    queues: Vec<String>,

    /// Duration of the scenario, or of the part of the capture from its beginning [default: 60s, or all of
    /// the capture]
    #[arg(long, value_parser = positive_duration)]
    duration: Option<Duration>,

    /// Seed of all random numbers [default: 1, or the scenario file's]
    #[arg(long)]
    seed: Option<u64>,

    /// The file for the report [default: fairgate-report.html, which replaces only another report; none with
    /// --json]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    view: ViewArgs,
}

/// Options that select packets of a capture.
#[derive(clap::Args)]
#[command(next_help_heading = "With --trace")]
struct ViewArgs {
    /// The direction whose queue is replayed
    #[arg(long, value_enum, default_value = "auto", requires = "trace")]
    direction: Direction,

    /// Addresses on the local side of the link [default: derived from the capture]
    #[arg(long, value_name = "PREFIX", value_parser = parse_prefix, requires = "trace")]
    local: Vec<(String, Prefix)>,

    /// Replay packets from these addresses, in any direction
    #[arg(
        long,
        value_name = "PREFIX",
        value_parser = parse_prefix,
        requires = "trace",
        conflicts_with_all = ["direction", "local"]
    )]
    from: Vec<(String, Prefix)>,

    /// Replay packets to these addresses, in any direction
    #[arg(
        long,
        value_name = "PREFIX",
        value_parser = parse_prefix,
        requires = "trace",
        conflicts_with_all = ["direction", "local"]
    )]
    to: Vec<(String, Prefix)>,

    /// Number of flows that are shown one by one
    #[arg(
        long,
        value_name = "N",
        default_value_t = 8,
        value_parser = clap::value_parser!(u8).range(1..=9),
        requires = "trace"
    )]
    top: u8,

    /// Longest IP packet on the link; longer ones in the capture were merged by the host and are cut again
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1500,
        value_parser = clap::value_parser!(u32).range(576..=65_535),
        requires = "trace"
    )]
    mtu: u32,

    /// Simulate the capture's TCP connections, with senders that react, instead of replaying its packets
    #[arg(long, requires = "trace", conflicts_with_all = ["direction", "from", "to"])]
    closed_loop: bool,

    /// Rate of the link from the local side [default: a quarter of --rate]
    #[arg(long, value_name = "RATE", value_parser = parse_rate, requires = "closed_loop")]
    up: Option<Rate>,

    /// Replay a damaged capture up to the damage
    #[arg(long, requires = "trace")]
    partial: bool,
}

/// A discipline in the comparison.
struct Contestant {
    /// The name as the user wrote it.
    name: String,
    spec: Spec,
}

#[derive(Debug, Error, Diagnostic)]
enum CompareError {
    #[error("`{name}` is given twice")]
    #[diagnostic(help("each discipline runs once; give it once, or with different settings"))]
    Twice { name: String },
    #[error("{DEFAULT_REPORT} exists and is no report of `fairgate compare`")]
    #[diagnostic(help(
        "use `--out FILE` to write to another file or to replace this one, or `--json` to write none"
    ))]
    NoReport,
}

/// The default seed.
const SEED: u64 = 1;

/// The default file for the report.
const DEFAULT_REPORT: &str = "fairgate-report.html";

pub(crate) fn run(args: Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let queues = match args.queues.as_slice() {
        [] => DEFAULT_QUEUES.map(str::to_owned).to_vec(),
        given => given.to_vec(),
    };
    if let Some(name) = (1..queues.len()).find(|&i| queues[..i].contains(&queues[i])) {
        return Err(CompareError::Twice {
            name: queues[name].clone(),
        }
        .into());
    }
    let command = command_line(&args, &queues);
    let contestants = queues
        .into_iter()
        .map(|name| {
            let spec = Spec::inline_with(&name, registry)?;
            Ok(Contestant { name, spec })
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    let report = report(&args, format)?;
    let comparison = match (args.trace, args.file) {
        (Some(file), _) => {
            let options = capture::Options {
                source: capture::Source::File(file),
                rate: args.rate,
                direction: args.view.direction,
                local: args.view.local,
                from: args.view.from,
                to: args.view.to,
                duration: args.duration,
                top: args.view.top.into(),
                mtu: args.view.mtu,
                partial: args.view.partial,
                seed: args.seed.unwrap_or(SEED),
                format,
            };
            match args.view.closed_loop {
                true => {
                    let up = args.view.up.unwrap_or_else(|| home::upstream(args.rate));
                    let options = closed_loop::Options { trace: options, up };
                    closed_loop::run(&options, contestants, command)?
                }
                false => trace::run(&options, contestants, command)?,
            }
        }
        (None, Some(file)) => {
            let options = own::Options {
                file,
                replace: args.replace,
                interface: args.interface,
                duration: args.duration,
                seed: args.seed,
                registry,
                format,
            };
            own::run(&options, contestants, command)?
        }
        (None, None) => {
            let options = home::Options {
                rate: args.rate,
                duration: args.duration.unwrap_or(home::DURATION),
                seed: args.seed.unwrap_or(SEED),
                format,
            };
            home::run(&options, contestants, command)?
        }
    };
    comparison.check().map_err(Imbalanced::from)?;
    show(&comparison, report, format)
}

/// Opens the file for the report, if one is wanted. The default file is replaced only if it is a report too.
fn report(args: &Args, format: Format) -> Result<Option<(PathBuf, Target)>, Failure> {
    let mut targets = Targets::beside(args.trace.as_deref().or(args.file.as_deref()));
    let path = match (&args.out, format) {
        (Some(path), _) => path.clone(),
        (None, Format::Json) => return Ok(None),
        (None, Format::Text) if is_taken(Path::new(DEFAULT_REPORT)) => {
            return Err(CompareError::NoReport.into());
        }
        (None, Format::Text) => PathBuf::from(DEFAULT_REPORT),
    };
    let target = targets.open(&path)?;
    Ok(Some((path, target)))
}

/// Returns whether a file exists that is not a report. A file that cannot be read counts as such.
fn is_taken(path: &Path) -> bool {
    if !path.exists() {
        return false;
    }
    let mut beginning = Vec::new();
    let read = match path.is_file() {
        true => File::open(path).and_then(|file| file.take(page::MARKED_WITHIN).read_to_end(&mut beginning)),
        false => return true,
    };
    read.is_err() || !page::is_report(&beginning)
}

fn show(
    comparison: &Comparison,
    report: Option<(PathBuf, Target)>,
    format: Format,
) -> Result<Outcome, Failure> {
    let path = report.as_ref().map(|(path, _)| path.display().to_string());
    let write = |(_, target): (PathBuf, Target)| {
        target.write(|file| file.write_all(page::render(comparison).as_bytes()))
    };
    output::deliver(
        || report.map_or(Ok(()), write),
        |is_written| match format {
            Format::Json => output::json("compare", comparison),
            Format::Text => {
                let table = output::coloured(&table::render(comparison, false), || {
                    table::render(comparison, colour::for_stdout())
                });
                let report = path.filter(|_| is_written);
                let report = report.map_or(String::new(), |path| {
                    format!("\nReport: {}\n", output::name(&path))
                });
                output::exact(&format!("{table}{report}"))
            }
        },
    )?;
    Ok(Outcome::Yes)
}

/// Returns the command that gives the same result again, even if defaults change.
fn command_line(args: &Args, queues: &[String]) -> String {
    let mut words: Vec<OsString> = vec!["fairgate".into(), "compare".into()];
    if let Some(trace) = &args.trace {
        words.extend(["--trace".into(), trace.clone().into_os_string()]);
    }
    if let Some(file) = &args.file {
        words.push(file.clone().into_os_string());
    }
    let mut option = |name: &str, value: String| words.extend([name.into(), value.into()]);
    args.replace
        .iter()
        .for_each(|name| option("--replace", name.clone()));
    if let Some(interface) = &args.interface {
        option("--interface", interface.clone());
    }
    if args.trace.is_some() {
        if args.view.direction != Direction::Auto {
            let value = clap::ValueEnum::to_possible_value(&args.view.direction);
            option(
                "--direction",
                value.expect("no direction is hidden").get_name().to_owned(),
            );
        }
        for (name, prefixes) in [
            ("--local", &args.view.local),
            ("--from", &args.view.from),
            ("--to", &args.view.to),
        ] {
            prefixes.iter().for_each(|(text, _)| option(name, text.clone()));
        }
        option("--top", args.view.top.to_string());
        option("--mtu", args.view.mtu.to_string());
    }
    if args.file.is_none() {
        option("--rate", args.rate.to_string().to_lowercase());
    }
    let is_home = args.trace.is_none() && args.file.is_none();
    if let Some(duration) = args.duration.or(is_home.then_some(home::DURATION)) {
        option("--duration", fairgate_config::units::format_duration(duration));
    }
    if let Some(seed) = args.seed.or(args.file.is_none().then_some(SEED)) {
        option("--seed", seed.to_string());
    }
    queues.iter().for_each(|queue| option("--queue", queue.clone()));
    if args.view.closed_loop {
        words.push("--closed-loop".into());
        let up = args.view.up.unwrap_or_else(|| home::upstream(args.rate));
        words.extend(["--up".into(), up.to_string().to_lowercase().into()]);
    }
    if args.view.partial {
        words.push("--partial".into());
    }
    shell::words(words)
}
