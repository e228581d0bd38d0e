//! `fairgate subscribers set`: changes members of subscribers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fairgate::Rate;
use fairgate_config::units::{format_duration, format_rate, parse_duration};
use fairgate_run_api::{Entry, SubscriberDocument, SubscriberMade};
use miette::Diagnostic;
use serde::Serialize;
use serde_json::{Map, Value};
use thiserror::Error;

use super::super::status::NAME;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::remote::{RunArgs, failed, unchanged};

/// Change the rates, plan, name or addresses of subscribers, of all of them or of none
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate subscribers set 1001 down=50mbit up=10mbit     what would change; nothing does
  fairgate subscribers set 1001 down=50mbit up=10mbit --yes
  fairgate subscribers set 1001 1002 down= up= --yes      a key without a value comes from the plan
  fairgate subscribers set --plan home down=120mbit --yes
  fairgate subscribers set --node 'AP 3' plan=fast --yes  all at this node, and at those below it
  fairgate subscribers set 1001 'prefixes=192.0.2.7 2001:db8:7::/56' --yes
  fairgate subscribers set 1001 down=5mbit --for 2h --yes  then it has the rates of the list again
  fairgate subscribers set 1001 --for 0s --yes             at once

Keys are name, prefixes, down, up, down_min, up_min and plan. The change is written into the file of the list,
so that it stays. Nothing is changed if anybody has changed the run since it was shown, or if one of the
subscribers can't be changed: exit code 2.")]
pub(super) struct Args {
    /// Identifiers of subscribers, and what they get: KEY=VALUE
    #[arg(value_name = "ID|KEY=VALUE")]
    words: Vec<String>,

    /// All subscribers that have this plan
    #[arg(long, value_name = "PLAN")]
    plan: Option<String>,

    /// All subscribers that are connected to this node of the network, or to one below it
    #[arg(long, value_name = "NODE")]
    node: Option<String>,

    /// For how long `down` and `up` hold, like 2h; then those of the list do again. 0s ends it now
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    time: Option<u64>,

    /// Make the change; without this, it is shown only
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    run: RunArgs,
}

/// The members that can be changed.
const KEYS: [&str; 7] = ["name", "prefixes", "down", "up", "down_min", "up_min", "plan"];

/// Why nothing is asked for.
#[derive(Debug, Error, Diagnostic)]
enum Unclear {
    #[error("nothing is to change")]
    #[diagnostic(help("write what they get: down=50mbit, up=10mbit, plan=fast"))]
    NoChange,
    #[error("--for 0s ends a limit, and rates are given, too")]
    #[diagnostic(help("leave the rates out, or give a time above 0s"))]
    NoRates,
    #[error("for a time, only rates of `down` and `up` can be given")]
    #[diagnostic(help("write down=50mbit or up=10mbit, or leave --for out"))]
    OnlyRates,
    #[error("no subscriber is named")]
    #[diagnostic(help("write identifiers, or choose all of a plan or a node with --plan or --node"))]
    Nobody,
    #[error("identifiers are given, and --plan or --node, too")]
    #[diagnostic(help("give identifiers, or choose by plan and node"))]
    Both,
    #[error("`{0}` is given twice")]
    #[diagnostic(help("leave one of them out"))]
    Twice(String),
    #[error("there is no subscriber {ids}")]
    #[diagnostic(help("correct it, or leave it out; keys of values are {}", KEYS.join(", ")))]
    Unknown { ids: String },
    #[error("no subscriber {what}")]
    #[diagnostic(help("{help}"))]
    Nowhere { what: String, help: String },
}

/// `fairgate.subscribers_set/1`.
#[derive(Debug, Serialize)]
struct Document {
    /// The revision of the trees: after the change, or as it was when the change was shown.
    revision: u64,
    /// Whether the change was made.
    is_made: bool,
    /// The number of subscribers that it is for.
    subscribers: usize,
    /// Of the change that was made.
    pause_us: Option<f64>,
    dropped: Option<u64>,
    /// For how long it holds. None: it stays.
    for_s: Option<u64>,
    changes: Vec<Change>,
}

/// A member that changes.
#[derive(Debug, PartialEq, Serialize)]
struct Change {
    id: String,
    name: Option<String>,
    member: &'static str,
    /// As it is. None if it comes from the plan, or is nothing.
    running: Option<String>,
    /// As it is to be.
    to: Option<String>,
}

pub(super) fn run(args: &Args, format: Format) -> Result<Outcome, Failure> {
    let (ids, members) = understood(&args.words, args.time)?;
    let run = args.run.find()?;
    let running = run.subscribers().map_err(failed(&run))?;
    let chosen = chosen(&running, &ids, args.plan.as_deref(), args.node.as_deref())?;
    let changes = chosen.iter().flat_map(|entry| match args.time {
        None => changes(entry, &members),
        Some(_) => limits(&running, entry, &members),
    });
    let changes = changes.collect();
    let made = match args.yes {
        true => {
            let patches = chosen.iter().map(|entry| (entry.id.clone(), members.clone()));
            let made = run.patch_subscribers(patches.collect(), args.time, Some(running.revision));
            Some(made.map_err(unchanged(&run))?)
        }
        false => None,
    };
    let document = Document {
        revision: made.as_ref().map_or(running.revision, |made| made.revision),
        is_made: made.is_some(),
        subscribers: chosen.len(),
        pause_us: made.as_ref().map(|made| made.pause_us),
        dropped: made.as_ref().map(|made| made.dropped),
        for_s: args.time,
        changes,
    };
    match format {
        Format::Json => output::json("subscribers_set", &document)?,
        Format::Text => output::text(&text(&document, made.as_ref()))?,
    }
    Ok(Outcome::Yes)
}

/// Divides words into identifiers and members. For a time there are rates only, and for 0 s there is nothing.
fn understood(words: &[String], time: Option<u64>) -> Result<(Vec<&str>, Map<String, Value>), Unclear> {
    let (mut ids, mut members) = (Vec::new(), Map::new());
    for word in words {
        let pair = word.split_once('=').filter(|(key, _)| KEYS.contains(key));
        let is_twice = match pair {
            Some((key, value)) => members.insert(key.to_owned(), member(key, value)).is_some(),
            None if ids.contains(&word.as_str()) => true,
            None => {
                ids.push(word.as_str());
                false
            }
        };
        if is_twice {
            return Err(Unclear::Twice(word.clone()));
        }
    }
    let no_rate =
        |(key, value): &(&String, &Value)| !matches!(key.as_str(), "down" | "up") || value.is_null();
    match (time, members.is_empty()) {
        (None | Some(1..), true) => Err(Unclear::NoChange),
        (Some(0), false) => Err(Unclear::NoRates),
        (Some(_), _) if members.iter().any(|member| no_rate(&member)) => Err(Unclear::OnlyRates),
        _ => Ok((ids, members)),
    }
}

/// Returns what a subscriber gets for a time, and what it gets now.
fn limits(running: &SubscriberDocument, entry: &Entry, members: &Map<String, Value>) -> Vec<Change> {
    let shaped = running.shaped.get(&entry.id);
    let now = |down: bool| {
        let bits = shaped.map(|shaped| if down { shaped.down_bps } else { shaped.up_bps })?;
        Rate::from_bits_per_second(bits).ok().map(format_rate)
    };
    let change = |(key, member): (&'static str, Option<&Value>)| {
        Some(Change {
            id: entry.id.clone(),
            name: entry.name.clone(),
            member: key,
            running: now(key == "down"),
            to: Some(member?.as_str()?.to_owned()),
        })
    };
    let keys = ["down", "up"].map(|key| (key, members.get(key)));
    keys.into_iter().filter_map(change).collect()
}

/// Returns a time in whole seconds.
fn time(text: &str) -> Result<u64, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    match time.subsec_nanos() {
        0 => Ok(time.as_secs()),
        _ => Err("it must be whole seconds".to_owned()),
    }
}

/// Returns a value as the API has it.
fn member(key: &str, value: &str) -> Value {
    let is_gap = |character: char| character.is_whitespace() || matches!(character, ',' | ';');
    match key {
        "prefixes" => {
            let prefixes = value.split(is_gap).filter(|prefix| !prefix.is_empty());
            prefixes.map(Value::from).collect()
        }
        _ if value.is_empty() => Value::Null,
        _ => value.into(),
    }
}

/// Returns the subscribers that are named or chosen, in the order of the list.
fn chosen<'r>(
    running: &'r SubscriberDocument,
    ids: &[&str],
    plan: Option<&str>,
    node: Option<&str>,
) -> Result<Vec<&'r Entry>, Unclear> {
    let all = running.subscribers.iter();
    match (ids.is_empty(), plan.is_some() || node.is_some()) {
        (true, false) => Err(Unclear::Nobody),
        (false, true) => Err(Unclear::Both),
        (false, false) => {
            let wanted: BTreeSet<&str> = ids.iter().copied().collect();
            let found: Vec<&Entry> = all.filter(|entry| wanted.contains(entry.id.as_str())).collect();
            let known: BTreeSet<&str> = found.iter().map(|entry| entry.id.as_str()).collect();
            let missing: Vec<String> = wanted.difference(&known).map(|id| format!("`{id}`")).collect();
            match missing.is_empty() {
                true => Ok(found),
                false => Err(Unclear::Unknown {
                    ids: output::harmless(&missing.join(", ")),
                }),
            }
        }
        (true, true) => {
            let above: BTreeMap<&str, Option<&str>> = running
                .nodes
                .iter()
                .map(|node| (node.name.as_str(), node.above.as_deref()))
                .collect();
            let is_at = |entry: &&Entry| {
                let at = running
                    .shaped
                    .get(&entry.id)
                    .and_then(|shaped| shaped.node.as_deref());
                let up = |node: &&str| above.get(*node).copied().flatten();
                // Whatever a document says: no circle has more steps than there are nodes.
                let mut nodes = std::iter::successors(at, up).take(above.len());
                node.is_none_or(|node| nodes.any(|at| at == node))
            };
            let has_plan = |entry: &&Entry| plan.is_none() || entry.plan.as_deref() == plan;
            let found: Vec<&Entry> = all.filter(has_plan).filter(is_at).collect();
            match found.is_empty() {
                true => Err(nowhere(running, plan, node)),
                false => Ok(found),
            }
        }
    }
}

/// Says which plans and nodes there are.
fn nowhere(running: &SubscriberDocument, plan: Option<&str>, node: Option<&str>) -> Unclear {
    let plan_of = plan.map(|plan| format!("has the plan `{plan}`"));
    let node_of = node.map(|node| format!("is connected to the node `{node}`"));
    let what: Vec<String> = plan_of.into_iter().chain(node_of).collect();
    let plans = running
        .subscribers
        .iter()
        .filter_map(|entry| entry.plan.as_deref());
    let nodes = running.nodes.iter().map(|node| node.name.as_str());
    let listed = |names: BTreeSet<&str>| match names.is_empty() {
        true => "none".to_owned(),
        false => names.into_iter().take(20).collect::<Vec<_>>().join(", "),
    };
    Unclear::Nowhere {
        what: output::harmless(&what.join(" and ")),
        help: output::harmless(&format!(
            "plans that somebody has: {}; nodes: {}",
            listed(plans.collect()),
            listed(nodes.collect())
        )),
    }
}

/// Returns what changes of a subscriber.
fn changes(entry: &Entry, members: &Map<String, Value>) -> Vec<Change> {
    let now = |key: &str| match key {
        "name" => entry.name.clone(),
        "down" => entry.down.clone(),
        "up" => entry.up.clone(),
        "down_min" => entry.down_min.clone(),
        "up_min" => entry.up_min.clone(),
        "plan" => entry.plan.clone(),
        _ => Some(entry.prefixes.join(" ")),
    };
    let shown = |value: &Value| match value {
        Value::Array(values) => {
            let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            Some(values.join(" "))
        }
        value => value.as_str().map(str::to_owned),
    };
    let of = |key: &'static str| {
        let to = shown(members.get(key)?);
        let running = now(key);
        (running != to).then(|| Change {
            id: entry.id.clone(),
            name: entry.name.clone(),
            member: key,
            running,
            to,
        })
    };
    KEYS.into_iter().filter_map(of).collect()
}

fn text(document: &Document, made: Option<&SubscriberMade>) -> String {
    let mut table = output::table(["ID", "NAME", "WHAT", "RUN", "NEW"]);
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    for change in &document.changes {
        let name = change.name.as_deref().unwrap_or_default();
        table.add_row([
            change.id.clone(),
            fairgate_run_api::brief(name, NAME),
            change.member.to_owned(),
            shown(&change.running),
            shown(&change.to),
        ]);
    }
    let table = match table.is_empty() {
        true if document.for_s == Some(0) => "They get the rates of the list again.\n".to_owned(),
        true => "They have this already.\n".to_owned(),
        false => output::table_text(&table),
    };
    let count = match document.subscribers {
        1 => "1 subscriber".to_owned(),
        count => format!("{count} subscribers"),
    };
    let time = match document.for_s {
        Some(seconds) if seconds > 0 => format!(", for {}", format_duration(Duration::from_secs(seconds))),
        _ => String::new(),
    };
    let end = match made {
        None => format!("Nothing is changed yet. With --yes this is made for {count}{time}.\n"),
        Some(made) => format!(
            "Made for {count}{time}: revision {}. Forwarding paused for {:.3} ms, {} packets dropped.\n",
            made.revision,
            made.pause_us / 1e3,
            made.dropped
        ),
    };
    table + &end
}

#[cfg(test)]
mod tests {
    use fairgate_run_api::{ListedNode, Shaped};
    use serde_json::json;

    use super::*;

    fn running() -> SubscriberDocument {
        let nodes = [("Site", None), ("AP 3", Some("Site")), ("AP 4", Some("Site"))];
        let all = [
            ("1", "home", "AP 3"),
            ("2", "fast", "AP 3"),
            ("3", "home", "AP 4"),
        ];
        SubscriberDocument {
            revision: 3,
            subscribers: all
                .iter()
                .map(|(id, plan, _)| Entry {
                    id: (*id).to_owned(),
                    plan: Some((*plan).to_owned()),
                    ..Entry::default()
                })
                .collect(),
            classes: BTreeMap::new(),
            shaped: all
                .iter()
                .map(|(id, _, node)| {
                    let node = Some((*node).to_owned());
                    (
                        (*id).to_owned(),
                        Shaped {
                            node,
                            ..Shaped::default()
                        },
                    )
                })
                .collect(),
            nodes: nodes
                .iter()
                .map(|(name, above)| ListedNode {
                    name: (*name).to_owned(),
                    above: above.map(str::to_owned),
                    ..ListedNode::default()
                })
                .collect(),
            difference: None,
            is_changeable: true,
            unchangeable: None,
        }
    }

    #[test]
    fn subscribers_are_chosen_by_identifier_plan_and_node() {
        let running = running();
        let chosen = |ids: &[&str], plan, node| {
            let chosen = chosen(&running, ids, plan, node).map_err(|error| error.to_string());
            chosen.map(|chosen| {
                chosen
                    .iter()
                    .map(|entry| entry.id.as_str())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
        };
        let fine = |ids: &str| Ok(ids.to_owned());
        assert_eq!(chosen(&["3", "1"], None, None), fine("1 3"));
        assert_eq!(chosen(&[], Some("home"), None), fine("1 3"));
        assert_eq!(chosen(&[], None, Some("AP 3")), fine("1 2"));
        assert_eq!(chosen(&[], None, Some("Site")), fine("1 2 3"));
        assert_eq!(chosen(&[], Some("home"), Some("AP 3")), fine("1"));
        let refused = |words: &str| Err(words.to_owned());
        assert_eq!(
            chosen(&["9", "1"], None, None),
            refused("there is no subscriber `9`")
        );
        assert_eq!(chosen(&[], None, None), refused("no subscriber is named"));
        assert_eq!(
            chosen(&["1"], Some("home"), None),
            refused("identifiers are given, and --plan or --node, too")
        );
        assert_eq!(
            chosen(&[], Some("slow"), Some("AP 9")),
            refused("no subscriber has the plan `slow` and is connected to the node `AP 9`")
        );
    }

    #[test]
    fn words_are_identifiers_and_members() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let given = words("1001 down=5mbit up= a=b prefixes=192.0.2.1,fd00::/56");
        let (ids, members) = understood(&given, None).unwrap();
        assert_eq!(ids, ["1001", "a=b"]);
        let expected = json!({"down": "5mbit", "up": null, "prefixes": ["192.0.2.1", "fd00::/56"]});
        assert_eq!(Value::Object(members), expected);
        assert!(matches!(understood(&words("1001"), None), Err(Unclear::NoChange)));
        assert!(matches!(
            understood(&words("1 up=1mbit 1"), None),
            Err(Unclear::Twice(_))
        ));
        assert!(matches!(
            understood(&words("1 up=1mbit up=2mbit"), None),
            Err(Unclear::Twice(_))
        ));
        let entry = Entry {
            id: "1".to_owned(),
            down: Some("5mbit".to_owned()),
            ..Entry::default()
        };
        let (_, members) = understood(&given, None).unwrap();
        let members: Vec<&str> = changes(&entry, &members)
            .iter()
            .map(|change| change.member)
            .collect();
        // It has this rate already.
        assert_eq!(members, ["prefixes"]);
    }

    #[test]
    fn for_a_time_there_are_rates_and_whole_seconds() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(understood(&words("1 down=5mbit"), Some(60)).is_ok());
        assert!(understood(&words("1"), Some(0)).is_ok());
        assert!(matches!(
            understood(&words("1"), Some(60)),
            Err(Unclear::NoChange)
        ));
        for wrong in ["1 plan=fast", "1 down=5mbit name=Anna", "1 down="] {
            assert!(
                matches!(understood(&words(wrong), Some(60)), Err(Unclear::OnlyRates)),
                "{wrong}"
            );
        }
        assert!(matches!(
            understood(&words("1 down=5mbit"), Some(0)),
            Err(Unclear::NoRates)
        ));
        assert_eq!(time("2h"), Ok(7200));
        // It would be 0 s, which ends a limit.
        assert!(time("500ms").is_err());
    }
}
