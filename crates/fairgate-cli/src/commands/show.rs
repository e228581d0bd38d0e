//! `fairgate show`: prints the trees of a run in the format of tc.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use fairgate::{ClassId, Variable};
use fairgate_config::{Document, Registry, Spec};
use fairgate_live::status::{DirectionStatus, NodeStatus, QUEUE, Status, ValueStatus};
use fairgate_scripts::tc::{Amount, Detail, Shown, State, show};
use miette::Diagnostic;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use thiserror::Error;

use crate::commands::status;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};

/// Show the trees of a `fairgate run` as `tc -s` does
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate show                      like tc -s qdisc show and tc -s class show
  fairgate show -d qdisc --dev eth1  like tc -s -d qdisc show dev eth1
  fairgate show -j | jq '.[].drops'  like tc -s -j qdisc show
  fairgate show --json               the same with classes, in a document with a schema
  fairgate show --socket /run/fairgate/home.sock

A qdisc without a configured handle gets one from 8001: on. A discipline that tc does not have keeps its
name.")]
pub(crate) struct Args {
    /// Show only these
    #[arg(value_enum)]
    object: Option<Object>,

    /// Show only the tree of the packets that leave by this interface
    #[arg(long, value_name = "INTERFACE")]
    dev: Option<String>,

    /// Show the details that tc shows with -d
    #[arg(short)]
    d: bool,

    /// The socket of the run; optional if there is only one
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Print a JSON array of qdiscs, as tc -j does, or of classes
    #[arg(short)]
    j: bool,
}

/// The kind of objects to show.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Object {
    Qdisc,
    Class,
}

#[derive(Debug, Error, Diagnostic)]
#[error("nothing of this run leaves by `{dev}`")]
#[diagnostic(help("its interfaces are {known}"))]
struct UnknownInterface {
    dev: String,
    known: String,
}

/// `fairgate.show/1`.
#[derive(Serialize)]
struct Listing {
    qdiscs: Vec<Line>,
    classes: Vec<Line>,
}

/// A qdisc or a class, with keys in tc's order.
#[derive(Serialize)]
struct Line {
    kind: &'static str,
    handle: String,
    /// Left out, as in tc, if `--dev` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    dev: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<bool>,
    /// Only of a root: one reference from the device's single queue, and one from the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    refcnt: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leaf: Option<String>,
    /// Only of a class that is assigned to a host.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    options: Map<String, Json>,
    bytes: u64,
    packets: u64,
    drops: u64,
    overlimits: u64,
    requeues: u64,
    backlog: u64,
    qlen: u64,
    /// Counters that only this kind has.
    #[serde(flatten)]
    own: Map<String, Json>,
    #[serde(skip)]
    text: Text,
}

/// The text of a line that depends on its kind.
struct Text {
    options: String,
    statistics: Vec<String>,
}

/// What lines contain.
#[derive(Clone, Copy)]
struct Style {
    in_detail: bool,
    has_devices: bool,
}

const ROOT_REFERENCES: u8 = 2;

pub(crate) fn run(args: Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let status = status::ask(args.socket.as_deref())?;
    let listing = Listing::of(&status, registry, &args)?;
    match (format, args.j) {
        (_, true) => {
            let lines = match args.object {
                Some(Object::Class) => &listing.classes,
                Some(Object::Qdisc) | None => &listing.qdiscs,
            };
            let mut text = serde_json::to_string(lines).expect("lines have text keys and finite numbers");
            text.push('\n');
            output::text(&text)?;
        }
        (Format::Json, false) => output::json("show", &listing)?,
        (Format::Text, false) => output::text(&listing.text())?,
    }
    Ok(Outcome::Yes)
}

impl Listing {
    fn of(status: &Status, registry: &Registry, args: &Args) -> Result<Listing, Failure> {
        let is_asked_for = |direction: &&DirectionStatus| match &args.dev {
            Some(dev) => direction.to == *dev,
            None => true,
        };
        let directions: Vec<_> = status.directions.iter().filter(is_asked_for).collect();
        if let (Some(dev), true) = (&args.dev, directions.is_empty()) {
            let known: Vec<&str> = status
                .directions
                .iter()
                .map(|direction| direction.to.as_str())
                .collect();
            let (dev, known) = (dev.clone(), known.join(" and "));
            return Err(UnknownInterface { dev, known }.into());
        }
        let style = Style {
            in_detail: args.d,
            has_devices: args.dev.is_none(),
        };
        let mut listing = Listing {
            qdiscs: Vec::new(),
            classes: Vec::new(),
        };
        for direction in directions {
            listing.add(direction, registry, args.object, style)?;
        }
        Ok(listing)
    }

    fn add(
        &mut self,
        direction: &DirectionStatus,
        registry: &Registry,
        object: Option<Object>,
        style: Style,
    ) -> Result<(), Failure> {
        let document = Document::parse_with("status", &direction.queue, registry)?;
        let Some(spec) = document.queue(QUEUE) else {
            return Ok(());
        };
        let (qdiscs, classes) = show(spec);
        let lines = |shown: &Shown| Line::all_of(shown, direction, spec, style);
        if object != Some(Object::Class) {
            self.qdiscs.extend(qdiscs.iter().flat_map(lines));
        }
        if object != Some(Object::Qdisc) {
            self.classes.extend(classes.iter().flat_map(lines));
        }
        Ok(())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for qdisc in &self.qdiscs {
            qdisc.add_to(&mut text, "qdisc");
        }
        for class in &self.classes {
            class.add_to(&mut text, "class");
        }
        text
    }
}

impl Line {
    /// Returns one line, or one line for each host if the path leads through a class for hosts. A qdisc
    /// inside such a class has no handle, because there are many of it.
    fn all_of(shown: &Shown, direction: &DirectionStatus, spec: &Spec, style: Style) -> Vec<Line> {
        let tree = &direction.tree;
        let line = |state: Option<State>| Line::of(shown, &direction.to, &state.unwrap_or_default(), style);
        let Some((depth, hosts)) = hosts(spec, tree, &shown.path) else {
            let of_class = class_state(shown, tree);
            return vec![line(of_class.or_else(|| node(tree, &shown.path).map(state)))];
        };
        let below = &shown.path[depth..];
        let of_host = |(minor, class): (u16, &NodeStatus)| {
            let mut line = line(node(class, below).map(state));
            line.leaf = None;
            line.host.clone_from(&class.host);
            let own = |id: ClassId| ClassId::new(id.major(), minor).to_string();
            match (shown.is_class, below.is_empty()) {
                (true, true) => line.handle = own(shown.id),
                (false, true) => line.parent = shown.parent.map(own),
                (_, false) => {}
            }
            if !shown.is_class {
                line.handle = "0:".to_owned();
            }
            line
        };
        hosts.into_iter().map(of_host).collect()
    }

    fn of(shown: &Shown, device: &str, state: &State, style: Style) -> Line {
        let handle = |major: u16| format!("{major:x}:");
        // tc does not print a minor number of 0.
        let id = |id: ClassId| match id.minor() {
            0 => handle(id.major()),
            _ => id.to_string(),
        };
        let options = shown.options(state, style.in_detail);
        let rows = shown.statistics(state);
        let is_root = shown.parent.is_none();
        let statistics = &state.statistics;
        Line {
            kind: shown.kind,
            handle: id(shown.id),
            dev: style.has_devices.then(|| device.to_owned()),
            root: is_root.then_some(true),
            refcnt: (is_root && !shown.is_class).then_some(ROOT_REFERENCES),
            parent: shown.parent.map(id),
            leaf: shown.leaf.map(handle),
            host: None,
            options: as_map(&options),
            bytes: statistics.dequeued.bytes,
            packets: statistics.dequeued.packets,
            drops: statistics.dropped.packets,
            overlimits: statistics.overlimits,
            requeues: 0,
            backlog: statistics.backlog().bytes,
            qlen: statistics.backlog().packets,
            own: rows.iter().flat_map(|row| as_map(&row.details)).collect(),
            text: Text {
                options: words(&options),
                statistics: rows
                    .iter()
                    .map(|row| {
                        row.text
                            .clone()
                            .unwrap_or_else(|| format!("{}{}", row.indent, words(&row.details)))
                    })
                    .collect(),
            },
        }
    }

    /// Appends the words in tc's order, with the statistics below them.
    fn add_to(&self, text: &mut String, object: &str) {
        let word = |name: &str, value: &Option<String>| {
            value
                .as_ref()
                .map_or(String::new(), |value| format!(" {name} {value}"))
        };
        let root = match self.refcnt {
            Some(references) => format!(" root refcnt {references}"),
            None => " root".to_owned(),
        };
        let parent = match self.parent {
            Some(_) => word("parent", &self.parent),
            None => root,
        };
        let head = format!(
            "{object} {} {}{}{parent}{} {}",
            self.kind,
            self.handle,
            word("dev", &self.dev),
            word("leaf", &self.leaf),
            self.text.options,
        );
        let _ = writeln!(text, "{}{}", head.trim_end(), word("host", &self.host));
        let _ = writeln!(
            text,
            " Sent {} bytes {} pkt (dropped {}, overlimits {} requeues {})",
            self.bytes, self.packets, self.drops, self.overlimits, self.requeues
        );
        let _ = writeln!(
            text,
            " backlog {} {}p requeues {}",
            Amount::Size(self.backlog).text().unwrap_or_default(),
            self.qlen,
            self.requeues
        );
        for line in &self.text.statistics {
            let _ = writeln!(text, "{line}");
        }
    }
}

fn words(details: &[Detail]) -> String {
    let words: Vec<String> = details.iter().filter_map(Detail::text).collect();
    words.join(" ")
}

fn as_map(details: &[Detail]) -> Map<String, Json> {
    let in_json = details.iter().filter(|detail| !detail.key.is_empty());
    in_json
        .map(|detail| (detail.key.to_owned(), as_json(&detail.amount)))
        .collect()
}

/// Returns the discipline at the end of a path of classes.
fn node<'s>(tree: &'s NodeStatus, path: &[u16]) -> Option<&'s NodeStatus> {
    path.iter().try_fold(tree, |node, minor| {
        node.classes.iter().find(|class| class.class == Some(*minor))
    })
}

/// The statistics and variables of a discipline that runs elsewhere.
fn state(node: &NodeStatus) -> State {
    State {
        statistics: node.statistics(),
        variables: variables(&node.variables),
        parts: node
            .class_states
            .iter()
            .map(|part| variables(&part.variables))
            .collect(),
    }
}

/// The same of a class, if its discipline knows more about it than the child does that the class holds.
fn class_state(shown: &Shown, tree: &NodeStatus) -> Option<State> {
    let (minor, path) = shown.path.split_last().filter(|_| shown.is_class)?;
    let parent = node(tree, path)?;
    let known = parent.class_states.iter().find(|known| known.class == *minor)?;
    let held = node(parent, &[*minor]).map_or_else(State::default, state);
    Some(held.of_class(known.sent.into(), known.overlimits, variables(&known.variables)))
}

fn variables(known: &BTreeMap<String, ValueStatus>) -> Vec<(String, Variable)> {
    let known = known.iter();
    known
        .map(|(name, value)| (name.clone(), (*value).into()))
        .collect()
}

/// If a path leads through a class for hosts: returns the length of the path up to it, and the classes that
/// are assigned.
fn hosts<'s>(spec: &Spec, tree: &'s NodeStatus, path: &[u16]) -> Option<(usize, Vec<(u16, &'s NodeStatus)>)> {
    let (mut spec, mut tree) = (spec, tree);
    for (depth, minor) in (1..).zip(path) {
        let classes = spec.classes();
        let class = classes.into_iter().find(|class| class.minor == *minor)?;
        if let Some(template) = class.template {
            let numbered = tree
                .classes
                .iter()
                .filter_map(|class| Some((class.class?, class)));
            let own = numbered.filter(|(minor, _)| template.classes().contains(minor));
            return Some((depth, own.collect()));
        }
        spec = class.tree?;
        tree = node(tree, &[*minor])?;
    }
    None
}

/// Returns a value as tc -j prints it: times in microseconds, rates in bytes per second.
fn as_json(amount: &Amount) -> Json {
    match amount {
        Amount::Count(number, _) | Amount::Size(number) => json!(number),
        Amount::Signed(number) => json!(number),
        Amount::Time(nanos) => json!(nanos / 1000),
        Amount::Rate(rate) => json!(rate.bits_per_second() / 8),
        // Rounded to the digits of the text.
        Amount::Decimal(number) => json!((number * 1e6).round() / 1e6),
        Amount::Digits(_) => amount
            .text()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default(),
        Amount::InCells(_) | Amount::Variable(_) | Amount::VariableRate(_) => json!(amount.text()),
        Amount::Objects(objects) => json!(objects.iter().map(|object| as_map(object)).collect::<Vec<_>>()),
        Amount::Curve(_) => json!(amount.text()),
        Amount::Object(numbers) => {
            let number = |number: f64| match number.fract() == 0.0 {
                true => json!(number as i64),
                false => json!(number),
            };
            let pairs = numbers.iter();
            Json::Object(
                pairs
                    .map(|(key, value)| ((*key).to_owned(), number(*value)))
                    .collect(),
            )
        }
        Amount::Flag(flag) | Amount::Switch(flag) => json!(flag),
        Amount::Bare(word) => json!(word),
        Amount::Numbers(numbers) => json!(numbers),
        Amount::Text(text) => json!(text),
    }
}
