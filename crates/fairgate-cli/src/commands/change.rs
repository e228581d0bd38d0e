//! `fairgate class`, `filter`, `queue` and `change`: change a run while it forwards.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;

use fairgate_config::renamed;
use fairgate_run::client::Remote;
use fairgate_run_api::{Change, ChangeMade, LONGEST_CONFIRMATION_S, QUEUE, TreeStatus};
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::{self, Format};
use crate::remote::{RunArgs, failed, unchanged};

/// Which run changes, and until when
#[derive(clap::Args)]
struct Target {
    #[command(flatten)]
    run: RunArgs,

    /// The direction that changes, by the interface that it receives from; optional if both have the same
    /// tree
    #[arg(long, value_name = "INTERFACE")]
    from: Option<String>,

    /// Undo the change after this time, 1s to 1h, unless `fairgate change --confirm` is called before;
    /// nothing else can be changed meanwhile
    #[arg(long, value_name = "TIME", value_parser = confirmation)]
    confirm_within: Option<u64>,

    /// Why, for the log of the run
    #[arg(long, value_name = "TEXT")]
    because: Option<String>,
}

/// What changes, in words, and in which run
#[derive(clap::Args)]
pub(crate) struct Words {
    #[command(flatten)]
    target: Target,

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
  fairgate change night.txt --confirm-within 60s
                                                 undone after a minute, for example because it has cut you
                                                 off, unless you keep it
  fairgate change --confirm                      keep it
  fairgate change night.txt --because 'Anna asked, ticket 17'
                                                 the log of the run says why

The lines are what `fairgate class`, `fairgate filter` and `fairgate queue` have as words:
  class add 30 parent=1 rate=5mbit / fq_codel
  filter add class=30 dscp=EF
  queue change 20 codel
The tree is checked after the last line. Empty lines, and lines that begin with #, change nothing.")]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,

    /// The file with the changes, or - for standard input
    #[arg(required_unless_present = "confirm")]
    file: Option<PathBuf>,

    /// Keep the change that was made with --confirm-within
    #[arg(long, conflicts_with_all = ["file", "from", "confirm_within", "because"])]
    confirm: bool,
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
    /// The time within which it must be confirmed, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirm_within_s: Option<u64>,
}

/// A change that is kept, as JSON.
#[derive(Serialize)]
struct Confirmed {
    revision: u64,
}

/// Reads the time within which a change must be confirmed, whole seconds.
fn confirmation(text: &str) -> Result<u64, String> {
    let time = input::positive_duration(text)?;
    let seconds = time.as_secs();
    match time.subsec_nanos() == 0 && seconds <= LONGEST_CONFIRMATION_S {
        true => Ok(seconds),
        false => Err(format!(
            "must be whole seconds, 1s to {LONGEST_CONFIRMATION_S}s, such as 60s"
        )),
    }
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
    let Some(file) = &args.file else {
        return confirm(&args.target.run, format);
    };
    let text = match file.as_os_str() == "-" {
        false => input::text(file)?,
        true => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(Unread)?;
            text
        }
    };
    args.target.ask(text.lines().map(str::to_owned).collect(), format)
}

/// Has a run keep the change that waits for its confirmation.
fn confirm(run: &RunArgs, format: Format) -> Result<Outcome, Failure> {
    let run = run.find()?;
    let revision = run.confirm().map_err(unchanged(&run))?;
    match format {
        Format::Json => output::json("confirmed", &Confirmed { revision })?,
        Format::Text => output::text("The change is kept.\n")?,
    }
    Ok(Outcome::Yes)
}

impl Words {
    fn ask(&self, what: &str, format: Format) -> Result<Outcome, Failure> {
        let line = format!("{what} {}", self.words.join(" "));
        self.target.ask(vec![line], format)
    }
}

/// Prints the running trees as a configuration file.
fn show(words: &Words, format: Format) -> Result<Outcome, Failure> {
    let Target { run, from, .. } = &words.target;
    let run = run.find()?;
    let trees = run.trees().map_err(failed(&run))?;
    let wanted = |tree: &&TreeStatus| from.as_ref().is_none_or(|name| *name == tree.from);
    let trees = trees.directions.iter().filter(wanted);
    let trees: Vec<&TreeStatus> = trees.collect();
    match format {
        Format::Json => {
            let queues = trees.iter().map(|tree| (tree.from.as_str(), tree.queue.as_str()));
            output::json(
                "queues",
                &Queues {
                    queues: queues.collect(),
                },
            )?;
        }
        Format::Text => output::text(&as_file(&trees))?,
    }
    Ok(Outcome::Yes)
}

/// Returns the trees as a configuration file, with the names that the run's own file gives to them. One tree
/// of both directions is there once. If a change made them different, each has the interface in its name.
fn as_file(trees: &[&TreeStatus]) -> String {
    let mut text = String::new();
    let named: Vec<(&str, &TreeStatus)> = trees
        .iter()
        .map(|tree| (tree.name.as_deref().unwrap_or(&tree.from), *tree))
        .collect();
    for (place, (name, tree)) in named.iter().enumerate() {
        let same = |other: &(&str, &TreeStatus)| other.0 == *name;
        let mut before = named[..place].iter().filter(|other| same(other));
        if before.any(|(_, other)| other.queue == tree.queue) {
            text.push_str(&format!(
                "# from {}: {}, too\n\n",
                output::name(&tree.from),
                output::name(name)
            ));
            continue;
        }
        let differs = named
            .iter()
            .any(|other| same(other) && other.1.queue != tree.queue);
        let name = match differs {
            true => format!("{name} from {}", tree.from),
            false => (*name).to_owned(),
        };
        let queue = renamed(&tree.queue, QUEUE, &name);
        text.push_str(&format!("# from {}\n{queue}\n", output::name(&tree.from)));
    }
    text
}

/// The running trees: the interface that a direction receives from, and its tree as TOML.
#[derive(Serialize)]
struct Queues<'a> {
    queues: Vec<(&'a str, &'a str)>,
}

impl Target {
    /// Has a run make these changes.
    fn ask(&self, lines: Vec<String>, format: Format) -> Result<Outcome, Failure> {
        let change = Change {
            from: self.from.clone(),
            lines,
            if_revision: None,
            confirm_within_s: self.confirm_within,
            because: self.because.clone(),
        };
        let changed = make(&self.run.find()?, change)?;
        match format {
            Format::Json => output::json("change", &changed)?,
            Format::Text => output::text(&format!("{changed}\n"))?,
        }
        Ok(Outcome::Yes)
    }
}

/// Has a run make changes.
pub(crate) fn make(run: &Remote, change: Change) -> Result<Changed, Failure> {
    let confirm_within_s = change.confirm_within_s;
    let made = run.change(change).map_err(unchanged(run))?;
    Ok(Changed {
        confirm_within_s,
        ..made.into()
    })
}

impl From<ChangeMade> for Changed {
    fn from(made: ChangeMade) -> Changed {
        Changed {
            pause_us: made.pause_us,
            dropped: made.dropped,
            confirm_within_s: None,
        }
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Changed {
            pause_us,
            dropped,
            confirm_within_s,
        } = self;
        write!(
            f,
            "Changed. Forwarding paused for {:.3} ms; the change dropped {dropped} packets.",
            pause_us / 1e3
        )?;
        match confirm_within_s {
            Some(seconds) => write!(
                f,
                "\nIt is undone in {seconds} s, unless you keep it: fairgate change --confirm"
            ),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use fairgate_config::{Document, Spec};
    use proptest::prelude::*;

    use super::*;

    fn trees() -> impl Strategy<Value = String> {
        prop::sample::select(vec![
            "fifo",
            "fq_codel target=7ms",
            "tbf rate=20mbit burst=5kb / sqf",
            "drr { 1 / fifo; 2 quantum=3000 / htb default=1 { 1 rate=1mbit / codel } }",
        ])
        .prop_map(str::to_owned)
    }

    fn names() -> impl Strategy<Value = Option<String>> {
        prop::option::of(prop::sample::select(vec![
            "wan",
            "tree",
            "a \"b\"",
            "\u{fc}p.link",
        ]))
        .prop_map(|name| name.map(str::to_owned))
    }

    proptest! {
        /// What is printed is a configuration file with the same trees.
        #[test]
        fn what_is_shown_can_be_read_back(of in prop::array::uniform2((trees(), names()))) {
            let from = ["eth0", "eth1"];
            let trees: Vec<TreeStatus> = of.iter().zip(from).map(|((tree, name), from)| TreeStatus {
                from: from.to_owned(),
                to: "other".to_owned(),
                name: name.clone(),
                queue: Spec::inline(tree).unwrap().to_toml(QUEUE),
                names: Default::default(),
                workers: None,
            }).collect();
            let text = as_file(&trees.iter().collect::<Vec<_>>());
            let document = Document::parse("shown", &text).unwrap_or_else(|error| panic!("{text}{error:?}"));
            let found: Vec<&Spec> = document.queues().map(|(_, spec)| spec).collect();
            for (tree, _) in &of {
                let tree = Spec::inline(tree).unwrap();
                prop_assert!(found.contains(&&tree), "{text}");
            }
        }
    }
}
