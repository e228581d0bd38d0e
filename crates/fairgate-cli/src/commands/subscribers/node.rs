//! `fairgate subscribers node`: changes the rates of a site or an access point.

use std::collections::BTreeSet;

use fairgate::Rate;
use fairgate_config::suggest;
use fairgate_config::units::format_rate;
use fairgate_run_api::{ListedNode, NodePatch, SubscriberDocument};
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::remote::{RunArgs, failed, unchanged};

/// Change what a site or an access point of LibreQoS' network.json sends at most
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate subscribers node 'AP 3'                      what it has, and how many are connected there
  fairgate subscribers node 'AP 3' down=200mbit         what would change; nothing does
  fairgate subscribers node 'AP 3' down=200mbit up=50mbit --yes

The rates are written into network.json, so that they stay; all else of the file is as it was. Nothing is
changed if anybody has changed the run since it was shown: exit code 2. Nodes are added, moved and removed in
network.json: the run takes it over.")]
pub(super) struct Args {
    /// Its name
    #[arg(value_name = "NODE")]
    node: String,

    /// What it sends to the subscribers and from them: down=RATE, up=RATE
    #[arg(value_name = "KEY=VALUE")]
    words: Vec<String>,

    /// Make the change; without this, it is shown only
    #[arg(long, requires = "words")]
    yes: bool,

    #[command(flatten)]
    run: RunArgs,
}

/// Why nothing is asked for.
#[derive(Debug, Error, Diagnostic)]
enum Unclear {
    #[error("`{0}` is no rate of a node")]
    #[diagnostic(help("write down=200mbit or up=50mbit"))]
    Word(String),
    #[error("`{0}` is given twice")]
    #[diagnostic(help("leave one of them out"))]
    Twice(&'static str),
    #[error("there is no node `{name}`")]
    #[diagnostic(help("{help}"))]
    Unknown { name: String, help: String },
}

/// `fairgate.subscribers_node/1`.
#[derive(Debug, Serialize)]
struct Document {
    /// The revision of the trees: after the change, or as it was when the change was shown.
    revision: u64,
    /// Whether the change was made.
    is_made: bool,
    node: String,
    /// The node above it. None: the line itself.
    above: Option<String>,
    /// How many subscribers are connected to it, or below it.
    subscribers: usize,
    /// Of the change that was made.
    pause_us: Option<f64>,
    dropped: Option<u64>,
    rates: Vec<Change>,
}

/// A rate, and what becomes of it.
#[derive(Debug, PartialEq, Serialize)]
struct Change {
    member: &'static str,
    /// As it is.
    running: String,
    /// As it is to be. None: as it is.
    to: Option<String>,
}

pub(super) fn run(args: &Args, format: Format) -> Result<Outcome, Failure> {
    let patch = understood(&args.words)?;
    let run = args.run.find()?;
    let running = run.subscribers().map_err(failed(&run))?;
    let node = found(&running, &args.node)?;
    let made = match args.yes {
        true => {
            let made = run.change_node(&node.name, patch.clone(), Some(running.revision));
            Some(made.map_err(unchanged(&run))?)
        }
        false => None,
    };
    let change = |(member, bits, to): (&'static str, u64, Option<String>)| Change {
        member,
        running: Rate::from_bits_per_second(bits).map_or_else(|_| bits.to_string(), format_rate),
        to,
    };
    let rates = [("down", node.down_bps, patch.down), ("up", node.up_bps, patch.up)];
    let document = Document {
        revision: made.as_ref().map_or(running.revision, |made| made.revision),
        is_made: made.is_some(),
        node: node.name.clone(),
        above: node.above.clone(),
        subscribers: below(&running, &node.name),
        pause_us: made.as_ref().map(|made| made.pause_us),
        dropped: made.as_ref().map(|made| made.dropped),
        rates: rates.map(change).into(),
    };
    match format {
        Format::Json => output::json("subscribers_node", &document)?,
        Format::Text => output::text(&text(&document))?,
    }
    Ok(Outcome::Yes)
}

fn understood(words: &[String]) -> Result<NodePatch, Unclear> {
    let mut patch = NodePatch::default();
    for word in words {
        let unclear = || Unclear::Word(word.clone());
        let (key, value) = word.split_once('=').ok_or_else(unclear)?;
        let (key, rate) = match key {
            "down" => ("down", &mut patch.down),
            "up" => ("up", &mut patch.up),
            _ => return Err(unclear()),
        };
        if value.is_empty() {
            return Err(unclear());
        }
        if rate.replace(value.to_owned()).is_some() {
            return Err(Unclear::Twice(key));
        }
    }
    Ok(patch)
}

fn found<'r>(running: &'r SubscriberDocument, name: &str) -> Result<&'r ListedNode, Unclear> {
    let known = running.nodes.iter().find(|node| node.name == name);
    known.ok_or_else(|| Unclear::Unknown {
        name: output::harmless(name),
        help: match running.nodes.is_empty() {
            true => "the list of this run has none: nodes are those of LibreQoS' network.json".to_owned(),
            false => {
                let names = running.nodes.iter().map(|node| node.name.as_str());
                output::harmless(&suggest::remedy(name, "nodes that shape", names.take(20)))
            }
        },
    })
}

/// Counts the subscribers that are connected to a node, or below it.
fn below(running: &SubscriberDocument, name: &str) -> usize {
    // Each node comes behind the one above it.
    let mut nodes = BTreeSet::from([name]);
    for node in &running.nodes {
        if node.above.as_deref().is_some_and(|above| nodes.contains(above)) {
            nodes.insert(&node.name);
        }
    }
    let all = running.shaped.values();
    all.filter(|shaped| shaped.node.as_deref().is_some_and(|node| nodes.contains(node)))
        .count()
}

fn text(document: &Document) -> String {
    let mut table = output::table(["NODE", "WHAT", "RUN", "NEW"]);
    for rate in &document.rates {
        table.add_row([
            document.node.clone(),
            rate.member.to_owned(),
            rate.running.clone(),
            rate.to.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    let who = match document.subscribers {
        1 => "1 subscriber is".to_owned(),
        count => format!("{count} subscribers are"),
    };
    let at = document.above.as_deref().map_or("the line", |above| above);
    let place = output::harmless(&format!("It is below {at}, and {who} connected there.\n"));
    let end = match (
        &document.pause_us,
        document.rates.iter().any(|rate| rate.to.is_some()),
    ) {
        (Some(pause_us), _) => format!(
            "Made: revision {}. Forwarding paused for {:.3} ms, {} packets dropped.\n",
            document.revision,
            pause_us / 1e3,
            document.dropped.unwrap_or_default()
        ),
        (None, true) => "Nothing is changed yet. With --yes this is made.\n".to_owned(),
        (None, false) => String::new(),
    };
    output::table_text(&table) + &place + &end
}

#[cfg(test)]
mod tests {
    use fairgate_run_api::Shaped;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn words_are_rates() {
        let patch = understood(&words("up=5mbit down=50mbit")).unwrap();
        assert_eq!(
            (patch.down.as_deref(), patch.up.as_deref()),
            (Some("50mbit"), Some("5mbit"))
        );
        for wrong in ["down", "down=", "plan=home"] {
            assert!(
                matches!(understood(&words(wrong)), Err(Unclear::Word(_))),
                "{wrong}"
            );
        }
        assert!(matches!(
            understood(&words("up=1mbit up=2mbit")),
            Err(Unclear::Twice("up"))
        ));
    }

    #[test]
    fn those_below_a_node_are_counted() {
        let node = |name: &str, above: Option<&str>| ListedNode {
            name: name.to_owned(),
            above: above.map(str::to_owned),
            ..ListedNode::default()
        };
        let at = |node: Option<&str>| Shaped {
            node: node.map(str::to_owned),
            ..Shaped::default()
        };
        let shaped = [
            ("1", Some("AP 3")),
            ("2", Some("Site")),
            ("3", None),
            ("4", Some("AP 4")),
        ];
        let running = SubscriberDocument {
            revision: 1,
            subscribers: Vec::new(),
            classes: Default::default(),
            shaped: shaped.map(|(id, node)| (id.to_owned(), at(node))).into(),
            nodes: vec![node("Site", None), node("AP 3", Some("Site")), node("AP 4", None)],
            difference: None,
            is_changeable: true,
            unchangeable: None,
        };
        assert_eq!(below(&running, "Site"), 2);
        assert_eq!(below(&running, "AP 3"), 1);
        assert!(found(&running, "AP 4").is_ok());
        let Err(Unclear::Unknown { help, .. }) = found(&running, "AP 5") else {
            panic!("there is none");
        };
        assert!(help.contains("AP 3"), "{help}");
    }
}
