//! `fairgate show`: prints the trees of a run in the format of tc.

use std::collections::BTreeMap;

use clap::ValueEnum;
use fairgate::Variable;
use fairgate_config::{Document, Registry};
use fairgate_run_api::{DirectionStatus, NodeStatus, QUEUE, RateStatus, SHARDED, Status, ValueStatus};
use fairgate_scripts::tc::{ClassState, EstimatedRate, Line, Listing, State, TreeState, View};
use miette::Diagnostic;
use serde::Serialize;
use serde_json::Value as Json;
use thiserror::Error;

use crate::commands::status;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::remote::RunArgs;

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

    #[command(flatten)]
    run: RunArgs,

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
struct Listed<'l> {
    qdiscs: &'l [Line],
    classes: &'l [Line],
}

pub(crate) fn run(args: Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let status = status::ask(&args.run.find()?, false)?;
    let listing = listing(&status, registry, &args)?;
    let [qdiscs, classes] = match args.object {
        Some(Object::Qdisc) => [&listing.qdiscs[..], &[]],
        Some(Object::Class) => [&[], &listing.classes[..]],
        None => [&listing.qdiscs[..], &listing.classes[..]],
    };
    match (format, args.j) {
        (_, true) => {
            let text = match args.object {
                Some(Object::Class) => {
                    let classes: Vec<Json> = classes.iter().map(Line::class_json).collect();
                    serde_json::to_string(&classes)
                }
                Some(Object::Qdisc) | None => serde_json::to_string(qdiscs),
            };
            let mut text = text.expect("lines have text keys and finite numbers");
            text.push('\n');
            output::exact(&output::harmless_json(&text))?;
        }
        (Format::Json, false) => output::json("show", &Listed { qdiscs, classes })?,
        (Format::Text, false) => {
            let mut text = String::new();
            qdiscs
                .iter()
                .chain(classes)
                .for_each(|line| line.add_to(&mut text, true));
            output::text(&text)?;
        }
    }
    Ok(Outcome::Yes)
}

fn listing(status: &Status, registry: &Registry, args: &Args) -> Result<Listing, Failure> {
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
    let view = View {
        names_device: args.dev.is_none(),
        in_detail: args.d,
    };
    let mut listing = Listing::default();
    for direction in directions {
        let document = Document::parse_with("status", &direction.queue, registry)?;
        if let Some(spec) = document.queue(QUEUE) {
            match direction.tree.discipline.as_str() {
                SHARDED => {
                    let workers = &direction.tree.classes;
                    let states = workers.iter().map(tree_state).collect();
                    listing.add_of_workers(spec, together(workers), states, &direction.to, view);
                }
                _ => listing.add(spec, &tree_state(&direction.tree), &direction.to, view),
            }
        }
    }
    Ok(listing)
}

/// Returns the state of a tree of which each worker has one: what all of them did.
fn together(workers: &[NodeStatus]) -> TreeState {
    let mut states = workers.iter().map(tree_state);
    let mut all = states.next().unwrap_or_default();
    states.for_each(|one| include(&mut all, one));
    all
}

fn include(all: &mut TreeState, one: TreeState) {
    all.state.statistics += &one.state.statistics;
    include_variables(&mut all.state.variables, &one.state.variables);
    for (all, one) in all.state.parts.iter_mut().zip(&one.state.parts) {
        include_variables(all, one);
    }
    for (minor, child) in one.children {
        match all.children.get_mut(&minor) {
            Some(all) => include(all, child),
            None => drop(all.children.insert(minor, child)),
        }
    }
    for (minor, class) in one.classes {
        match all.classes.get_mut(&minor) {
            Some(all) => {
                all.sent += class.sent;
                all.overlimits += class.overlimits;
                include_variables(&mut all.variables, &class.variables);
            }
            None => drop(all.classes.insert(minor, class)),
        }
    }
    let sum = |all: &mut EstimatedRate, one: EstimatedRate| {
        all.bytes += one.bytes;
        all.packets += one.packets;
    };
    if let (Some(all), Some(one)) = (&mut all.rate, one.rate) {
        sum(all, one);
    }
    for (minor, one) in one.class_rates {
        sum(all.class_rates.entry(minor).or_default(), one);
    }
}

/// Counts add up. Of times, and of the longest packet, there is the largest.
fn include_variables(all: &mut [(String, Variable)], one: &[(String, Variable)]) {
    for ((name, all), (_, one)) in all.iter_mut().zip(one) {
        *all = match (*all, *one) {
            (Variable::Integer(all), Variable::Integer(one)) if name == "maxpacket" => {
                Variable::Integer(all.max(one))
            }
            (Variable::Integer(all), Variable::Integer(one)) => Variable::Integer(all + one),
            (Variable::Nanos(all), Variable::Nanos(one)) => Variable::Nanos(all.max(one)),
            (Variable::Flag(all), Variable::Flag(one)) => Variable::Flag(all || one),
            (Variable::Unset, one) => one,
            (all, _) => all,
        };
    }
}

/// Returns the state of a tree that runs elsewhere.
fn tree_state(node: &NodeStatus) -> TreeState {
    let numbered = node
        .classes
        .iter()
        .filter_map(|class| Some((class.class?, class)));
    let known = node.class_states.iter().map(|known| {
        let state = ClassState {
            sent: known.sent.into(),
            overlimits: known.overlimits,
            variables: variables(&known.variables),
        };
        (known.class, state)
    });
    TreeState {
        state: state(node),
        host: node.host.clone(),
        children: numbered
            .map(|(minor, class)| (minor, tree_state(class)))
            .collect(),
        classes: known.collect(),
        rate: node.estimated.map(rate),
        class_rates: node
            .estimated_classes
            .iter()
            .map(|estimated| (estimated.class, rate(estimated.rate)))
            .collect(),
    }
}

fn rate(estimated: RateStatus) -> EstimatedRate {
    EstimatedRate {
        bytes: estimated.rate_bps / 8,
        packets: estimated.rate_pps,
    }
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

fn variables(known: &BTreeMap<String, ValueStatus>) -> Vec<(String, Variable)> {
    let known = known.iter();
    known
        .map(|(name, value)| (name.clone(), (*value).into()))
        .collect()
}
