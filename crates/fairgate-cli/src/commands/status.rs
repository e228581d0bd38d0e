//! `fairgate status`: what a run is doing.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use fairgate_live::status::{DirectionStatus, NodeStatus, Status, fetch, running};
use miette::Diagnostic;
use thiserror::Error;

use crate::exit::{Failure, Mistake, Outcome};
use crate::output::{self, Format};

/// Show what a `fairgate run` is doing
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate status                             the one run of this machine
  fairgate status --watch                     again every second
  fairgate status --socket /run/fairgate/home.sock --json")]
pub(crate) struct Args {
    /// The socket of the run; may be left out if there is only one
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Show it again every second, until Ctrl-C
    #[arg(long)]
    watch: bool,
}

#[derive(Debug, Error, Diagnostic)]
pub(crate) enum StatusError {
    #[error("no run answers here")]
    #[diagnostic(help("start one with `fairgate run FILE`, or give its --socket"))]
    NoneRuns,
    #[error("several runs may answer: {sockets}")]
    #[diagnostic(help("say which one, with --socket PATH"))]
    Several { sockets: String },
    #[error("no status from {socket}")]
    #[diagnostic(help("is the run still there? Its process must be yours, or you root"))]
    NoAnswer { socket: String, source: io::Error },
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    loop {
        let status = ask(args.socket.as_deref())?;
        match format {
            Format::Json => output::json("status", &status)?,
            Format::Text => {
                // Home and clear: the tables stand still and only the figures move.
                let clear = if args.watch && io::stdout().is_terminal() {
                    "\x1b[H\x1b[2J"
                } else {
                    ""
                };
                output::text(&format!("{clear}{}", tables(&status)))?;
            }
        }
        if !args.watch {
            return Ok(Outcome::Yes);
        }
        thread::sleep(Duration::from_secs(1));
    }
}

/// The status of the run at `socket`, or of the only one.
pub(crate) fn ask(socket: Option<&Path>) -> Result<Status, Failure> {
    let socket = match socket {
        Some(socket) => socket.to_owned(),
        None => only_socket().map_err(Failure::environment)?,
    };
    let status = fetch(&socket).map_err(|source| {
        Failure::environment(StatusError::NoAnswer {
            socket: socket.display().to_string(),
            source,
        })
    })?;
    status.check().map_err(Mistake::from)?;
    Ok(status)
}

fn only_socket() -> Result<PathBuf, StatusError> {
    let mut sockets = running();
    match sockets.len() {
        0 => Err(StatusError::NoneRuns),
        1 => Ok(sockets.remove(0)),
        _ => Err(StatusError::Several {
            sockets: sockets
                .iter()
                .map(|socket| socket.display().to_string())
                .collect::<Vec<_>>()
                .join(", "),
        }),
    }
}

/// The status for people.
pub(crate) fn tables(status: &Status) -> String {
    let mut text = format!(
        "{}: process {}, running for {:.1} s\n",
        status.name, status.pid, status.uptime_s
    );
    for direction in &status.directions {
        text.push('\n');
        text.push_str(&direction_text(direction));
    }
    text
}

fn direction_text(direction: &DirectionStatus) -> String {
    let sojourn = &direction.sojourn;
    let mut text = format!(
        "{} -> {}: {} packets, {} bytes sent, {:.3} Mbit/s in the last second\n",
        direction.from,
        direction.to,
        direction.sent.packets,
        direction.sent.bytes,
        direction.rate_bps / 1e6
    );
    let _ = writeln!(
        text,
        "in the queue: mean {}, median {}, 95 % {}, 99 % {}, longest {}",
        millis(sojourn.mean_us),
        millis(sojourn.p50_us),
        millis(sojourn.p95_us),
        millis(sojourn.p99_us),
        millis(sojourn.max_us)
    );
    let lost = &direction.lost;
    let causes = [
        ("ring full", lost.ring_full),
        ("no free frame", lost.no_frame),
        ("truncated", lost.truncated),
        ("too long", lost.too_long),
        ("unsupported offload", lost.unsupported_offload),
        ("refused by the interface", lost.refused),
    ];
    let lost: Vec<String> = causes
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(cause, count)| format!("{count} {cause}"))
        .collect();
    if !lost.is_empty() {
        let _ = writeln!(text, "lost outside of the queues: {}", lost.join(", "));
    }
    let mut table = output::table([
        "DISCIPLINE",
        "SENT",
        "BYTES",
        "DROPPED",
        "MARKED",
        "BACKLOG",
        "BYTES",
        "OVERLIMITS",
        "DROPPED FOR",
    ]);
    add_rows(&mut table, &direction.tree, 0);
    text.push_str(&output::table_text(&table));
    text
}

fn add_rows(table: &mut comfy_table::Table, node: &NodeStatus, depth: usize) {
    let host = node
        .host
        .as_ref()
        .map_or(String::new(), |host| format!("{host} "));
    let class = node
        .class
        .map_or(String::new(), |class| format!("{class:x}: {host}"));
    let drops: Vec<String> = node
        .drops
        .iter()
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    table.add_row([
        format!("{:indent$}{class}{}", "", node.discipline, indent = 2 * depth),
        node.dequeued.packets.to_string(),
        node.dequeued.bytes.to_string(),
        node.dropped.packets.to_string(),
        node.marked.to_string(),
        node.backlog.packets.to_string(),
        node.backlog.bytes.to_string(),
        node.overlimits.to_string(),
        drops.join(", "),
    ]);
    for class in &node.classes {
        add_rows(table, class, depth + 1);
    }
}

/// Microseconds as milliseconds, for a table.
fn millis(micros: f64) -> String {
    format!("{:.3} ms", micros / 1e3)
}
