//! `fairgate subscribers diff`: the list of a run beside its files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use fairgate::Rate;
use fairgate_config::Registry;
use fairgate_config::units::format_rate;
use fairgate_run::subscribers::Subscribers;
use fairgate_run_api::{Entry, ListedNode, Shaped, SubscriberDocument};
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use super::super::status::NAME;
use crate::document;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::{self, Format};
use crate::remote::{RunArgs, failed};
use crate::subscribers;

/// Compare the list of a run with its files: what a reload would do
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate subscribers diff isp.toml          what a reload would do, in the only run of this machine
  fairgate subscribers diff isp.toml --json   for a script; exit code 1 if something differs
  fairgate subscribers diff isp.toml --api https://router:8443 --token-file token

Who is added, removed or connected to another node, and whose name, addresses, plan or rates change. Rates
are those that count: a plan with other rates changes all who have it. Nodes of LibreQoS' network.json are
compared, too. What clients of the API change is in the files, and so it is no difference.
What is in the classes (leaf, sqm) and other keys of [subscribers] are not compared. Nothing is changed.")]
pub(super) struct Args {
    /// The file of the run, which names the list
    file: PathBuf,

    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Error, Diagnostic)]
#[error("{file} has no subscribers")]
#[diagnostic(help("give the file of the run: its [subscribers] names the list"))]
struct NoList {
    file: String,
}

/// `fairgate.subscribers_diff/1`.
#[derive(Debug, PartialEq, Serialize)]
struct Compared {
    /// The revision of the trees of the run.
    revision: u64,
    added: usize,
    removed: usize,
    changed: usize,
    /// Subscribers in the files.
    count: usize,
    /// Whether a reload refuses the list, because it removes too many.
    is_refused: bool,
    differences: Vec<Difference>,
}

/// A subscriber or a node that differs.
#[derive(Debug, PartialEq, Serialize)]
struct Difference {
    /// `subscriber` or `node`.
    of: &'static str,
    /// The identifier of the subscriber, or the name of the node.
    id: String,
    /// The name of the subscriber, if it has one.
    name: Option<String>,
    /// `added`, `removed` or `changed`.
    what: &'static str,
    /// What differs.
    members: Vec<Member>,
}

/// A member of a subscriber or a node that differs.
#[derive(Debug, PartialEq, Serialize)]
struct Member {
    member: &'static str,
    /// What the run has. None if it has nothing.
    running: Option<String>,
    /// What the files have.
    file: Option<String>,
}

pub(super) fn run(args: &Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let document = document::read(&args.file, registry)?;
    let (_, list) = subscribers::added_to(document, None, registry, &input::Texts::default())?;
    let list = list.ok_or_else(|| NoList {
        file: args.file.display().to_string(),
    })?;
    let run = args.run.find()?;
    let running = run.subscribers().map_err(failed(&run))?;
    let compared = Compared::of(&running, &list);
    match format {
        Format::Json => output::json("subscribers_diff", &compared)?,
        Format::Text => output::text(&text(&compared, list.settings().most_removed))?,
    }
    Ok(match compared.differences.is_empty() {
        true => Outcome::Yes,
        false => Outcome::No,
    })
}

/// The members of a subscriber or a node, by their names.
type Members = BTreeMap<&'static str, String>;

impl Compared {
    fn of(running: &SubscriberDocument, list: &Subscribers) -> Compared {
        let entries = running.subscribers.iter();
        let mut of_run = entries.map(|entry| (entry.clone(), shaped_of(running, &entry.id)));
        let of_file = list.list().subscribers.iter();
        let mut of_file = of_file.map(|one| (Entry::from(one), Shaped::from(one)));
        let known = |all: &mut dyn Iterator<Item = (Entry, Shaped)>| -> BTreeMap<String, _> {
            all.map(|(entry, shaped)| (entry.id.clone(), (entry.name.clone(), members(entry, shaped))))
                .collect()
        };
        let (before, now) = (known(&mut of_run), known(&mut of_file));
        let mut differences = compare("subscriber", &before, &now);
        let total = |what: &str| differences.iter().filter(|one| one.what == what).count();
        let difference = fairgate_run_api::Difference {
            added: total("added"),
            removed: total("removed"),
            changed: total("changed"),
            count: now.len(),
        };
        let nodes = |nodes: &[ListedNode]| -> BTreeMap<String, _> {
            let nodes = nodes.iter();
            nodes
                .map(|node| (node.name.clone(), (None, members_of_node(node))))
                .collect()
        };
        differences.extend(compare("node", &nodes(&running.nodes), &nodes(&list.nodes())));
        let settings = list.settings();
        let is_confirmed = settings.confirmed_removed == Some(difference.removed as u64);
        Compared {
            revision: running.revision,
            added: difference.added,
            removed: difference.removed,
            changed: difference.changed,
            count: difference.count,
            is_refused: !is_confirmed && !settings.may_remove(&difference),
            differences,
        }
    }
}

fn shaped_of(running: &SubscriberDocument, id: &str) -> Shaped {
    running.shaped.get(id).cloned().unwrap_or_default()
}

/// Returns the differences of each that is in one of both.
fn compare(
    of: &'static str,
    running: &BTreeMap<String, (Option<String>, Members)>,
    file: &BTreeMap<String, (Option<String>, Members)>,
) -> Vec<Difference> {
    let ids: BTreeSet<&String> = running.keys().chain(file.keys()).collect();
    let differing = |id: &String| {
        let (before, now) = (running.get(id), file.get(id));
        let member = |side: Option<&(Option<String>, Members)>, name: &str| side?.1.get(name).cloned();
        let names = before
            .into_iter()
            .chain(now)
            .flat_map(|(_, members)| members.keys());
        let names: BTreeSet<&'static str> = names.copied().collect();
        let members = names.into_iter().filter_map(|name| {
            let (running, file) = (member(before, name), member(now, name));
            (running != file).then_some(Member {
                member: name,
                running,
                file,
            })
        });
        let members: Vec<Member> = members.collect();
        let what = match (before, now) {
            (None, _) => "added",
            (_, None) => "removed",
            _ if members.is_empty() => return None,
            _ => "changed",
        };
        Some(Difference {
            of,
            id: id.clone(),
            name: now.or(before).and_then(|(name, _)| name.clone()),
            what,
            members,
        })
    };
    ids.into_iter().filter_map(differing).collect()
}

fn members(entry: Entry, shaped: Shaped) -> Members {
    let of_rate = |rate: Option<u64>| rate.map(rate_text);
    let all = [
        ("name", entry.name),
        (
            "prefixes",
            Some(entry.prefixes.join(" ")).filter(|text| !text.is_empty()),
        ),
        ("plan", entry.plan),
        ("down", Some(rate_text(shaped.down_bps))),
        ("up", Some(rate_text(shaped.up_bps))),
        ("down_min", of_rate(shaped.down_min_bps)),
        ("up_min", of_rate(shaped.up_min_bps)),
        ("node", shaped.node),
    ];
    let given = all.into_iter();
    given.filter_map(|(name, value)| Some((name, value?))).collect()
}

fn members_of_node(node: &ListedNode) -> Members {
    let all = [
        ("down", Some(rate_text(node.down_bps))),
        ("up", Some(rate_text(node.up_bps))),
        ("above", node.above.clone()),
    ];
    let given = all.into_iter();
    given.filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Returns a rate as lists have it.
fn rate_text(bps: u64) -> String {
    Rate::from_bits_per_second(bps).map_or_else(|_| bps.to_string(), format_rate)
}

/// Returns the differences as a table. Who comes or goes has one row, and who changes one for each member.
fn text(compared: &Compared, most_removed: u64) -> String {
    let mut table = output::table(["ID", "NAME", "WHAT", "RUN", "FILE"]);
    let shown = |value: Option<&String>| value.map_or_else(|| "-".to_owned(), Clone::clone);
    for difference in &compared.differences {
        let id = match difference.of {
            "node" => format!("node {}", difference.id),
            _ => difference.id.clone(),
        };
        let name = difference.name.as_deref().unwrap_or_default();
        let head = [id, fairgate_run_api::brief(name, NAME)];
        if difference.what == "changed" {
            for member in &difference.members {
                let cells = [
                    member.member.to_owned(),
                    shown(member.running.as_ref()),
                    shown(member.file.as_ref()),
                ];
                table.add_row(head.iter().cloned().chain(cells));
            }
            continue;
        }
        let of = |side: fn(&Member) -> Option<&String>| {
            let values = difference.members.iter().filter(|member| member.member != "name");
            let words = |member: &Member| Some(format!("{} {}", member.member, side(member)?));
            let values: Vec<String> = values.filter_map(words).collect();
            shown(Some(&values.join(", ")).filter(|text| !text.is_empty()))
        };
        let cells = [
            difference.what.to_owned(),
            of(|member| member.running.as_ref()),
            of(|member| member.file.as_ref()),
        ];
        table.add_row(head.into_iter().chain(cells));
    }
    let mut text = match table.is_empty() {
        true => "The run has the list of the files.\n".to_owned(),
        false => output::table_text(&table),
    };
    let Compared {
        added,
        removed,
        changed,
        count,
        ..
    } = compared;
    if !table.is_empty() {
        text.push_str(&format!(
            "A reload adds {added}, removes {removed} and changes {changed}; then there are {count}.\n"
        ));
    }
    if compared.is_refused {
        text.push_str(&format!(
            "It would be REFUSED: it removes more than most_removed = {most_removed} percent. If the list is \
             right, write confirmed_removed = {removed} to [subscribers].\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use fairgate_config::Document;
    use fairgate_run::subscribers::{Settings, Text};

    use super::*;

    const DEVICES: &str = "Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,\
        Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment,sqm\n\
        1,Anna,1,,AP_1,,192.0.2.1,,1,1,100,20,,\n\
        2,Ben,2,,AP_1,,192.0.2.2,,1,1,50,10,,\n\
        3,,3,,AP_2,,192.0.2.3,,1,1,50,10,,\n";
    const NETWORK: &str = "{\"AP_1\": {\"downloadBandwidthMbps\": 200, \"uploadBandwidthMbps\": 100}, \
        \"AP_2\": {\"downloadBandwidthMbps\": 200, \"uploadBandwidthMbps\": 100}}";

    fn read(devices: &str, network: &str) -> Subscribers {
        let file = "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\nlibreqos = { devices = \"d.csv\", \
            network = \"n.json\" }\n";
        let document = Document::parse("isp.toml", file).unwrap();
        let registry = Registry::builtin();
        let settings = Settings::read(&document, &registry).unwrap().unwrap();
        let text = |name: &str, content: &str| Text {
            name: name.to_owned(),
            content: content.to_owned(),
        };
        let texts = [text("d.csv", devices), text("n.json", network)];
        Subscribers::read(settings, &texts, None, &registry).unwrap()
    }

    /// What a run with this list says.
    fn running(list: &Subscribers) -> SubscriberDocument {
        SubscriberDocument {
            revision: 3,
            subscribers: list.entries(),
            classes: BTreeMap::new(),
            shaped: list.shaped(),
            nodes: list.nodes(),
            difference: None,
            is_changeable: true,
            unchangeable: None,
        }
    }

    fn between(devices: &str, network: &str) -> Compared {
        Compared::of(&running(&read(DEVICES, NETWORK)), &read(devices, network))
    }

    /// The differences as words: whose, what, member, values.
    fn words(compared: &Compared) -> Vec<String> {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let of = |one: &Difference| -> Vec<String> {
            let members = one.members.iter();
            members
                .map(|it| {
                    let (running, file) = (shown(&it.running), shown(&it.file));
                    format!("{} {} {} {running} {file}", one.id, one.what, it.member)
                })
                .collect()
        };
        compared.differences.iter().flat_map(of).collect()
    }

    #[test]
    fn whoever_differs_is_named() {
        let same = between(DEVICES, NETWORK);
        assert_eq!((same.differences.len(), same.count), (0, 3));
        assert!(text(&same, 10).contains("The run has the list of the files"));
        let faster = between(&DEVICES.replace("1,1,100,20", "1,1,150,20"), NETWORK);
        assert_eq!(words(&faster), ["1 changed down 100mbit 150mbit"]);
        assert_eq!((faster.changed, faster.is_refused), (1, false));
        let moved = between(&DEVICES.replace("2,Ben,2,,AP_1", "2,Ben,2,,AP_2"), NETWORK);
        assert_eq!(words(&moved), ["2 changed node AP_1 AP_2"]);
        let node = between(DEVICES, &NETWORK.replacen("200", "250", 1));
        assert_eq!(words(&node), ["AP_1 changed down 200mbit 250mbit"]);
        assert_eq!((node.differences[0].of, node.changed), ("node", 0));
        let other = between(
            &DEVICES.replace("3,,3,,AP_2,,192.0.2.3", "4,,4,,AP_2,,192.0.2.4"),
            NETWORK,
        );
        assert_eq!((other.added, other.removed, other.is_refused), (1, 1, false));
        let table = text(&other, 10);
        assert!(
            table.contains("A reload adds 1, removes 1 and changes 0; then there are 3."),
            "{table}"
        );
        assert!(table.contains("node AP_2, prefixes 192.0.2.4/32"), "{table}");
        // Half a file.
        let first_line = DEVICES.split_inclusive('\n').take(2).collect::<String>();
        let cut = between(&first_line, NETWORK);
        assert!(cut.is_refused);
        assert!(text(&cut, 10).contains("REFUSED"), "{cut:?}");
    }
}
