//! `fairgate class`, `filter`, `queue` and `change`: change a run while it forwards.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;

use fairgate_client::Remote;
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::{self, Format};
use crate::remote::{RunArgs, failed};

/// What changes, in words, and in which run
#[derive(clap::Args)]
pub(crate) struct Words {
    #[command(flatten)]
    run: RunArgs,

    /// The direction that changes, by the interface that it receives from; optional if both have the same
    /// tree
    #[arg(long, value_name = "INTERFACE")]
    from: Option<String>,

    /// How it changes, and what
    #[arg(required = true, num_args = 1.., value_name = "WORDS")]
    words: Vec<String>,
}

/// Add, change, move or delete a class of a run
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate class add 30 parent=1 rate=5mbit ceil=20mbit / fq_codel target=5ms
  fairgate class add 20/3 quantum=3000 / sfq     a class of the discipline in class 20
  fairgate class change 30 rate=7mbit ceil=      a key without a value gets its default
  fairgate class change 30 / codel               the same class with another discipline
  fairgate class move 30 parent=2                to another place in a tree of classes
  fairgate class delete 30

A path leads to the class: the numbers of classes from the root on. Packets stay queued. The change is made as
a whole or, if it is refused, not at all: exit code 2. SIGHUP, which reads the file again, makes it undone.")]
pub(crate) struct ClassArgs {
    #[command(flatten)]
    pub(crate) words: Words,
}

/// Add, change, move or delete a filter of a run
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate filter add class=30 dscp=EF
  fairgate filter add in=20 class=2 destination_port=5000-5100 protocol=udp
  fairgate filter add class=30 dscp=EF police.rate=2mbit police.burst=20kb police.exceed=default
                                                 what exceeds goes to the default class, without
                                                 police.exceed it is dropped
  fairgate filter change 1 police.rate=3mbit     police= removes the policer
  fairgate filter change 1 dscp=AF41             the first filter, as `fairgate queue show` lists them
  fairgate filter move 3 1                       tried first from now on
  fairgate filter delete 1

in=PATH names the class whose discipline has the filter; without it, it is the root. Packets that are queued
stay where they are.")]
pub(crate) struct FilterArgs {
    #[command(flatten)]
    pub(crate) words: Words,
}

/// Show, add, change, move or delete a discipline of a run
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate queue show                            both trees, as a configuration file
  fairgate queue change 30 target=7ms            settings of the discipline in class 30
  fairgate queue change 30 fq_codel flows=64     another discipline there, which takes over the packets
  fairgate queue change root 'drr { 1 / fifo; 2 / codel }'
  fairgate queue add root tbf rate=20mbit burst=5kb   a shaper above the tree
  fairgate queue delete root                     what it holds takes its place
  fairgate queue move 10 20                      two classes exchange their disciplines")]
pub(crate) struct QueueArgs {
    #[command(flatten)]
    pub(crate) words: Words,
}

/// Make many changes of a run at once, or none
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate change night.txt                      a change in each line: class ..., filter ..., queue ...
  fairgate change --from eth0 -                  the same from standard input

The lines are what `fairgate class`, `fairgate filter` and `fairgate queue` have as words:
  class add 30 parent=1 rate=5mbit / fq_codel
  filter add class=30 dscp=EF
  queue change 20 codel
The tree is checked after the last line. Empty lines, and lines that begin with #, change nothing.")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArgs,

    /// The direction that changes, by the interface that it receives from; optional if both have the same
    /// tree
    #[arg(long, value_name = "INTERFACE")]
    from: Option<String>,

    /// The file with the changes, or - for standard input
    file: PathBuf,
}

#[derive(Debug, Error, Diagnostic)]
#[error("standard input can't be read")]
#[diagnostic(help("send text in UTF-8"))]
struct Unread(#[source] std::io::Error);

/// The result of a change, as JSON.
#[derive(Serialize)]
pub(crate) struct Changed {
    pause_us: f64,
    dropped: u64,
}

pub(crate) fn class(words: &Words, format: Format) -> Result<Outcome, Failure> {
    words.ask("class", format)
}

pub(crate) fn filter(words: &Words, format: Format) -> Result<Outcome, Failure> {
    words.ask("filter", format)
}

pub(crate) fn queue(words: &Words, format: Format) -> Result<Outcome, Failure> {
    match words.words.as_slice() {
        [only] if only == "show" => show(words, format),
        _ => words.ask("queue", format),
    }
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Outcome, Failure> {
    let text = match args.file.as_os_str() == "-" {
        false => input::text(&args.file)?,
        true => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(Unread)?;
            text
        }
    };
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    ask(&args.run, args.from.as_deref(), &lines, format)
}

impl Words {
    fn ask(&self, what: &str, format: Format) -> Result<Outcome, Failure> {
        let line = format!("{what} {}", self.words.join(" "));
        ask(&self.run, self.from.as_deref(), &[line], format)
    }
}

/// Prints the running trees as a configuration file.
fn show(words: &Words, format: Format) -> Result<Outcome, Failure> {
    let run = words.run.find()?;
    let trees = run.trees().map_err(failed(&run))?;
    let wanted = |from: &str| words.from.as_deref().is_none_or(|name| name == from);
    let trees = trees
        .directions
        .iter()
        .filter(|direction| wanted(&direction.from));
    let trees: Vec<(&str, &str)> = trees
        .map(|direction| (direction.from.as_str(), direction.queue.as_str()))
        .collect();
    match format {
        Format::Json => output::json("queues", &Queues { queues: trees })?,
        Format::Text => {
            let shown = trees
                .iter()
                .map(|(from, tree)| format!("# from {}\n{tree}\n", output::name(from)));
            output::text(&shown.collect::<String>())?;
        }
    }
    Ok(Outcome::Yes)
}

/// The running trees: the interface that a direction receives from, and its tree as TOML.
#[derive(Serialize)]
struct Queues<'a> {
    queues: Vec<(&'a str, &'a str)>,
}

/// Has a run make these changes.
fn ask(run: &RunArgs, from: Option<&str>, lines: &[String], format: Format) -> Result<Outcome, Failure> {
    let changed = make(&run.find()?, from, lines, None)?;
    match format {
        Format::Json => output::json("change", &changed)?,
        Format::Text => output::text(&format!("{changed}\n"))?,
    }
    Ok(Outcome::Yes)
}

/// Has a run make changes, if its trees have this revision or none is named.
pub(crate) fn make(
    run: &Remote,
    from: Option<&str>,
    lines: &[String],
    if_revision: Option<u64>,
) -> Result<Changed, Failure> {
    let made = run.change(from, lines, if_revision).map_err(failed(run))?;
    Ok(Changed {
        pause_us: made.pause_us,
        dropped: made.dropped,
    })
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Changed { pause_us, dropped } = self;
        write!(
            f,
            "Changed. Forwarding paused for {:.3} ms; the change dropped {dropped} packets.",
            pause_us / 1e3
        )
    }
}
