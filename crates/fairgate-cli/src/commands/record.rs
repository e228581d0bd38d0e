//! `fairgate record`: writes what a run does at each interval, class by class, as CSV.
//!
//! ALTQ's cbqprobe wrote the rates of all classes every 400 ms, and cbqmonitor drew them.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use fairgate_live::status::{DirectionStatus, NodeStatus, Status};
use miette::Diagnostic;
use thiserror::Error;

use crate::commands::status;
use crate::failure::{Failure, Outcome};
use crate::input::positive_duration;
use crate::output::{self, Format};

/// Record rates, delays, backlogs and drops of a run, class by class
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate record -o evening.csv                 every 400 ms, until Ctrl-C or the end of the run
  fairgate record --interval 1s --for 10min -o evening.csv
  fairgate record --for 5s                       to standard output

A row for each discipline of each tree at each interval. The columns:
  time_s           the end of the interval, in seconds since the start of the run
  from             the interface that the direction receives from
  class            the class numbers from the root on, like 1/30; empty for the root
  discipline, host
  seconds          the length of the interval for this row
  rate_bps         what left the discipline in the interval, in bits per second with Ethernet headers
  packets, bytes   the same
  delay_ms         their mean delay from the arrival at the tree; empty if none left
  dropped, marked  packets in the interval
  backlog_packets, backlog_bytes   at the end of the interval

Each interval is written at once, so that the file has whole rows whenever it ends.")]
pub(crate) struct Args {
    /// The socket of the run; optional if there is only one
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// The time between two readings
    #[arg(long, value_name = "TIME", default_value = "400ms", value_parser = positive_duration)]
    interval: Duration,

    /// How long to record [default: until Ctrl-C or the end of the run]
    #[arg(long = "for", value_name = "TIME", value_parser = positive_duration)]
    length: Option<Duration>,

    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Error, Diagnostic)]
#[error("can't write {path}")]
#[diagnostic(help("make room, or name another file; the rows before are whole"))]
struct Unwritten {
    path: String,
    source: io::Error,
}

const COLUMNS: &str = "time_s,from,class,discipline,host,seconds,rate_bps,packets,bytes,delay_ms,dropped,\
                       marked,backlog_packets,backlog_bytes\n";

pub(crate) fn run(args: &Args, format: Format) -> Result<Outcome, Failure> {
    let mut before = status::ask(args.socket.as_deref())?;
    let path = args.output.as_ref();
    let unwritten = |source| {
        let path = path.map_or("standard output".to_owned(), |path| path.display().to_string());
        Failure::environment(Unwritten { path, source })
    };
    let mut file = path.map(File::create).transpose().map_err(unwritten)?;
    let mut write = |rows: &str| match &mut file {
        Some(file) => file.write_all(rows.as_bytes()).map_err(unwritten),
        None => output::text(rows),
    };
    write(COLUMNS)?;
    let is_told = format == Format::Text && path.is_some();
    if is_told {
        let name = output::harmless(&before.name);
        output::say(format_args!(
            "Recording {name} every {:?}; Ctrl-C ends it.",
            args.interval
        ));
    }
    let (begin, mut next) = (Instant::now(), Instant::now());
    let mut intervals = 0u64;
    while args.length.is_none_or(|length| begin.elapsed() < length) {
        next += args.interval;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        let now = match status::ask(args.socket.as_deref()) {
            Ok(now) if now.pid == before.pid => now,
            // The first reading was possible, so the run has ended.
            Ok(_) | Err(Failure::Environment(_)) => break,
            Err(error) => return Err(error),
        };
        write(&rows(&before, &now))?;
        intervals += 1;
        before = now;
    }
    if is_told {
        output::say(format_args!("Recorded {intervals} intervals."));
    }
    Ok(Outcome::Yes)
}

/// Returns the rows of an interval.
fn rows(before: &Status, now: &Status) -> String {
    let mut text = String::new();
    for (direction, before) in now.directions.iter().zip(&before.directions) {
        add(&mut text, direction, &direction.tree, Some(&before.tree), "");
    }
    text
}

/// Adds the rows of a discipline and of all below it. `class` is the path to it.
fn add(
    text: &mut String,
    direction: &DirectionStatus,
    node: &NodeStatus,
    before: Option<&NodeStatus>,
    class: &str,
) {
    // A class that was replaced, or that another host has now, counts from 0.
    let before = before.filter(|before| {
        before.host == node.host
            && before.enqueued.packets <= node.enqueued.packets
            && before.dequeued.packets <= node.dequeued.packets
    });
    let since = |count: fn(&NodeStatus) -> u64| count(node) - before.map_or(0, count).min(count(node));
    let seconds = node.at_s - before.map_or(0.0, |before| before.at_s);
    let bytes = since(|node| node.dequeued.bytes);
    let packets = since(|node| node.dequeued.packets);
    let sojourn_s = node.sojourn_s - before.map_or(0.0, |before| before.sojourn_s);
    let delay = match packets {
        0 => String::new(),
        packets => format!("{:.6}", sojourn_s.max(0.0) * 1e3 / packets as f64),
    };
    text.push_str(&format!(
        "{:.6},{},{class},{},{},{seconds:.6},{:.0},{packets},{bytes},{delay},{},{},{},{}\n",
        node.at_s,
        quoted(&direction.from),
        quoted(&node.discipline),
        quoted(node.host.as_deref().unwrap_or_default()),
        bytes as f64 * 8.0 / seconds.max(1e-9),
        since(|node| node.dropped.packets),
        since(|node| node.marked),
        node.backlog.packets,
        node.backlog.bytes,
    ));
    let mut of_before = before.map(|before| before.classes.iter().peekable());
    for below in &node.classes {
        let number = below.class.unwrap_or(0);
        let path = match class {
            "" => number.to_string(),
            class => format!("{class}/{number}"),
        };
        // Both are in the order of their numbers.
        let before = of_before.as_mut().and_then(|of_before| {
            while of_before.next_if(|other| other.class < below.class).is_some() {}
            of_before.next_if(|other| other.class == below.class)
        });
        add(text, direction, below, before, &path);
    }
}

/// Quotes a value that could be taken for more than one (RFC 4180).
fn quoted(value: &str) -> String {
    match value.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value.to_owned(),
    }
}
