//! `fairgate show`: a running tree as tc would show it.

use std::fmt::Write;
use std::path::PathBuf;

use fairgate::ClassId;
use fairgate_config::tc::{Amount, Detail, Shown, show};
use fairgate_config::{Document, Spec};
use fairgate_live::status::{DirectionStatus, NodeStatus, QUEUE};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::commands::status;
use crate::exit::{Failure, Outcome};
use crate::output::{self, Format};

/// Show the trees of a `fairgate run` as `tc -s` does
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate show                     as tc -s qdisc show and tc -s class show
  fairgate show -j | jq '.[].drops' as tc -s -j qdisc show prints it
  fairgate show --json              the same with the classes, in an envelope
  fairgate show --socket /run/fairgate/home.sock

A qdisc without a handle of its own has one from 8001: on. A discipline that tc does not know has its own name. Of what tc
shows with -d alone, that of the discipline is there: priorities, quanta, levels.")]
pub(crate) struct Args {
    /// The socket of the run; may be left out if there is only one
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Print a JSON array of qdiscs, as tc -j does
    #[arg(short)]
    j: bool,
}

/// `fairgate.show/1`.
#[derive(Serialize)]
struct Listing {
    qdiscs: Vec<Line>,
    classes: Vec<Line>,
}

/// A qdisc or a class, its keys in tc's order.
#[derive(Serialize)]
struct Line {
    kind: &'static str,
    handle: String,
    dev: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leaf: Option<String>,
    /// Of a class that a host has.
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
    /// The options as text.
    #[serde(skip)]
    shown: String,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let status = status::ask(args.socket.as_deref())?;
    let mut listing = Listing {
        qdiscs: Vec::new(),
        classes: Vec::new(),
    };
    for direction in &status.directions {
        listing.add(direction)?;
    }
    match (format, args.j) {
        (_, true) => {
            let mut text =
                serde_json::to_string(&listing.qdiscs).expect("lines have text keys and finite numbers");
            text.push('\n');
            output::text(&text)?;
        }
        (Format::Json, false) => output::json("show", &listing)?,
        (Format::Text, false) => output::text(&listing.text())?,
    }
    Ok(Outcome::Yes)
}

impl Listing {
    fn add(&mut self, direction: &DirectionStatus) -> Result<(), Failure> {
        let document = Document::parse("status", &direction.queue)?;
        let Some(spec) = document.queue(QUEUE) else {
            return Ok(());
        };
        let (qdiscs, classes) = show(spec);
        let lines = |shown: &Shown| Line::all_of(shown, &direction.to, spec, &direction.tree);
        self.qdiscs.extend(qdiscs.iter().flat_map(lines));
        self.classes.extend(classes.iter().flat_map(lines));
        Ok(())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for qdisc in &self.qdiscs {
            let place = qdisc.place("root refcnt 2");
            let head = format!(
                "qdisc {} {} dev {} {place} {}",
                qdisc.kind, qdisc.handle, qdisc.dev, qdisc.shown
            );
            qdisc.add_to(&mut text, &head);
        }
        for class in &self.classes {
            let leaf = class
                .leaf
                .as_ref()
                .map_or(String::new(), |leaf| format!("leaf {leaf} "));
            let host = class
                .host
                .as_ref()
                .map_or(String::new(), |host| format!(" host {host}"));
            let head = format!(
                "class {} {} dev {} {} {leaf}{}{host}",
                class.kind,
                class.handle,
                class.dev,
                class.place("root"),
                class.shown.trim_end()
            );
            class.add_to(&mut text, &head);
        }
        text
    }
}

impl Line {
    /// One line; of a class for hosts and of what is in it, one for each host. A qdisc of which there are many has no handle.
    fn all_of(shown: &Shown, device: &str, spec: &Spec, tree: &NodeStatus) -> Vec<Line> {
        let Some((depth, hosts)) = hosts(spec, tree, &shown.path) else {
            return vec![Line::of(shown, device, node(tree, &shown.path))];
        };
        let below = &shown.path[depth..];
        let is_class = shown.id.minor() != 0;
        let of_host = |(minor, class): (u16, &NodeStatus)| {
            let mut line = Line::of(shown, device, node(class, below));
            line.leaf = None;
            line.host.clone_from(&class.host);
            let own = |id: ClassId| ClassId::new(id.major(), minor).to_string();
            match (is_class, below.is_empty()) {
                (true, true) => line.handle = own(shown.id),
                (false, true) => line.parent = shown.parent.map(own),
                (_, false) => {}
            }
            if !is_class {
                line.handle = "0:".to_owned();
            }
            line
        };
        hosts.into_iter().map(of_host).collect()
    }

    fn of(shown: &Shown, device: &str, node: Option<&NodeStatus>) -> Line {
        let handle = |major: u16| format!("{major:x}:");
        // tc leaves a minor number of 0 out.
        let id = |id: ClassId| match id.minor() {
            0 => handle(id.major()),
            _ => id.to_string(),
        };
        let count = |of: fn(&NodeStatus) -> u64| node.map_or(0, of);
        let words: Vec<String> = shown.options.iter().filter_map(Detail::text).collect();
        let in_json = shown.options.iter().filter(|detail| !detail.key.is_empty());
        Line {
            kind: shown.kind,
            handle: id(shown.id),
            dev: device.to_owned(),
            root: shown.parent.is_none().then_some(true),
            parent: shown.parent.map(id),
            leaf: shown.leaf.map(handle),
            host: None,
            options: in_json
                .map(|detail| (detail.key.to_owned(), as_json(&detail.amount)))
                .collect(),
            bytes: count(|node| node.dequeued.bytes),
            packets: count(|node| node.dequeued.packets),
            drops: count(|node| node.dropped.packets),
            overlimits: count(|node| node.overlimits),
            requeues: 0,
            backlog: count(|node| node.backlog.bytes),
            qlen: count(|node| node.backlog.packets),
            shown: words.join(" "),
        }
    }

    fn place(&self, root: &str) -> String {
        let parent = self.parent.as_ref();
        parent.map_or(root.to_owned(), |parent| format!("parent {parent}"))
    }

    fn add_to(&self, text: &mut String, head: &str) {
        let _ = writeln!(text, "{}", head.trim_end());
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
    }
}

/// The discipline at the end of a path of classes.
fn node<'s>(tree: &'s NodeStatus, path: &[u16]) -> Option<&'s NodeStatus> {
    path.iter().try_fold(tree, |node, minor| {
        node.classes.iter().find(|class| class.class == Some(*minor))
    })
}

/// If a path leads through a class for hosts: how long it is up to there, and the classes that hosts have.
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

/// As tc -j gives it: times in microseconds, rates in bytes per second.
fn as_json(amount: &Amount) -> Json {
    match amount {
        Amount::Count(number, _) | Amount::Size(number) => json!(number),
        Amount::Time(nanos) => json!(nanos / 1000),
        Amount::Rate(rate) => json!(rate.bits_per_second() / 8),
        // With the digits of the text.
        Amount::Decimal(number) => json!((number * 1e6).round() / 1e6),
        Amount::Curve(_) => json!(amount.text()),
        Amount::Flag(flag) | Amount::Switch(flag) => json!(flag),
        Amount::Bare(word) => json!(word),
        Amount::Numbers(numbers) => json!(numbers),
        Amount::Text(text) => json!(text),
    }
}
