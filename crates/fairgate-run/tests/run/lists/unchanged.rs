//! What no change of a list touches: random lists in random ways of writing, and random changes.

use fairgate_config::Registry;
use fairgate_run::subscribers::{Changes, Edited, Subscribers};
use fairgate_run_api::Entry;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::edits::{DEVICES, NO_DEVICE, changed, circuits, list, rate};
use super::{read, read_with};

/// A row of our own CSV in some way of writing it.
#[derive(Clone, Debug)]
struct Row {
    name: &'static str,
    has_plan: bool,
    down: Option<&'static str>,
    is_quoted: [bool; 7],
    spaces: [bool; 7],
    comment: bool,
}

const NAMES: [&str; 5] = ["", "Ann", "Bob, the builder", "5\" pipe", "# Ed"];
const RATES: [&str; 3] = ["5mbit", "30mbit", "128kbit"];
/// The columns in another order than ours.
const COLUMNS: &str = "name,plan,id,up,prefixes,down,down_min";

fn row() -> impl Strategy<Value = Row> {
    (
        select(&NAMES),
        any::<bool>(),
        proptest::option::of(select(&RATES)),
        any::<[bool; 7]>(),
        any::<[bool; 7]>(),
        any::<bool>(),
    )
        .prop_map(|(name, has_plan, down, is_quoted, spaces, comment)| Row {
            name,
            has_plan,
            down,
            is_quoted,
            spaces,
            comment,
        })
}

impl Row {
    fn line(&self, id: usize, end: &str) -> String {
        let own = if self.has_plan {
            self.down
        } else {
            self.down.or(Some("1mbit"))
        };
        let (plan, up) = if self.has_plan {
            ("home", "")
        } else {
            ("", "1mbit")
        };
        let values = [
            self.name.to_owned(),
            plan.to_owned(),
            id.to_string(),
            up.to_owned(),
            format!("10.0.{id}.0/24 fd00:{id}::/32"),
            own.unwrap_or_default().to_owned(),
            String::new(),
        ];
        let cell = |(at, value): (usize, &String)| {
            let space = if self.spaces[at] { "  " } else { "" };
            match self.is_quoted[at] || value.contains([',', '"']) || value.starts_with('#') {
                true => format!("\"{}\"{space}", value.replace('"', "\"\"")),
                false => format!("{space}{value}{space}"),
            }
        };
        let cells: Vec<String> = values.iter().enumerate().map(cell).collect();
        let comment = if self.comment {
            format!("# of {id}, {end}{end}")
        } else {
            String::new()
        };
        format!("{comment}{}{end}", cells.join(","))
    }
}

/// What a client may ask for: of whom, and the new name and rate, and whether the addresses are others.
/// Nothing: the subscriber is removed.
type Order = (usize, Option<(&'static str, Option<&'static str>, bool)>);

fn orders() -> impl Strategy<Value = Vec<Order>> {
    let values = (
        select(&NAMES),
        proptest::option::of(select(&RATES)),
        any::<bool>(),
    );
    vec((0..12usize, proptest::option::weighted(0.8, values)), 0..6)
}

/// Returns the changes of some orders, of which only the first one of each subscriber counts.
fn changes(before: &Subscribers, orders: &[Order]) -> Changes {
    let mut changes: Changes = Vec::new();
    for (id, order) in orders {
        let text = id.to_string();
        let known = before.list().find(&text).map(Entry::from);
        if changes.iter().any(|(other, _)| *other == text) || (known.is_none() && order.is_none()) {
            continue;
        }
        let entry = order.map(|(name, down, moves)| Entry {
            id: text.clone(),
            name: (!name.is_empty()).then(|| name.to_owned()),
            prefixes: match (&known, moves) {
                (Some(known), false) => known.prefixes.clone(),
                _ => vec![format!("172.16.{id}.0/25")],
            },
            down: down.map(str::to_owned),
            plan: Some("home".to_owned()),
            ..Entry::default()
        });
        changes.push((text, entry));
    }
    changes
}

/// Checks that a list has what was asked for, and is read again as it is.
fn is_as_wanted(before: &Subscribers, edited: &Edited, changes: &Changes) -> Result<(), TestCaseError> {
    let again = read_with(before.settings().clone(), edited.list.texts(), None).unwrap();
    prop_assert_eq!(again.list(), edited.list.list());
    // A tree that stays as it is was not made again.
    if again.numbers() == edited.list.numbers() {
        prop_assert_eq!(again.trees(), edited.list.trees());
    }
    for known in &before.list().subscribers {
        let is_changed = changes.iter().any(|(id, _)| *id == known.id);
        prop_assert!(is_changed || edited.list.list().find(&known.id) == Some(known));
    }
    for (id, wanted) in changes {
        let found = edited.list.list().find(id).map(Entry::from);
        prop_assert_eq!(found.is_some(), wanted.is_some());
        if let (Some(found), Some(wanted)) = (found, wanted) {
            prop_assert_eq!((&found.name, &found.down), (&wanted.name, &wanted.down));
        }
    }
    Ok(())
}

/// Returns the first eight fields of a line of LibreQoS' file.
fn before_rates(line: &str) -> &str {
    let mut is_quoted = false;
    let mut commas = line.char_indices().filter(|(_, sign)| {
        is_quoted ^= *sign == '"';
        *sign == ',' && !is_quoted
    });
    let (end, _) = commas.nth(7).expect("a comma in front of the rates");
    &line[..end]
}

/// A node of a network in some way of writing it. It is below one of those before it, or at the top.
#[derive(Clone, Debug)]
struct Node {
    above: usize,
    rates: [(&'static str, bool); 2],
    is_up_first: bool,
    gap: &'static str,
    more: &'static str,
    is_virtual: bool,
}

fn node() -> impl Strategy<Value = Node> {
    let rate = || (select(&["1000", "120.50", "0.01", "7.000001"]), any::<bool>());
    (
        any::<usize>(),
        [rate(), rate()],
        any::<bool>(),
        select(&["", " ", "\r\n\t", "\n  "]),
        select(&[
            "",
            "\"type\": \"AP\",",
            "\"\\u0061\" : {\"downloadBandwidthMbps\":[1, null]} ,",
        ]),
        proptest::bool::weighted(0.1),
    )
        .prop_map(|(above, rates, is_up_first, gap, more, is_virtual)| Node {
            above,
            rates,
            is_up_first,
            gap,
            more,
            is_virtual,
        })
}

/// Writes the nodes below `above`. `changed` is one of them with the texts of other rates.
fn network(nodes: &[Node], above: Option<usize>, changed: &(usize, [Option<String>; 2])) -> String {
    let is_below = |(at, node): &(usize, &Node)| match *at {
        0 => above.is_none(),
        at => Some(node.above % (at + 1)).filter(|above| *above < at) == above,
    };
    let object = |(at, node): (usize, &Node)| {
        let gap = node.gap;
        let rate = |side: usize| {
            let (known, is_text) = node.rates[side];
            let new = changed.1[side].as_deref().filter(|_| changed.0 == at);
            let value = new.unwrap_or(known);
            let value = if is_text {
                format!("\"{value}\"")
            } else {
                value.to_owned()
            };
            let key = ["downloadBandwidthMbps", "uploadBandwidthMbps"][side];
            format!("\"{key}\"{gap}:{value}{gap},")
        };
        let rates = [rate(0), rate(1)];
        let rates = if node.is_up_first {
            format!("{}{}", rates[1], rates[0])
        } else {
            rates.concat()
        };
        let is_virtual = if node.is_virtual { "\"virtual\": true," } else { "" };
        let below = network(nodes, Some(at), changed);
        format!(
            "\"N \\u00e9 {at}\"{gap}: {{{}{gap}{rates}{is_virtual}\"children\":{gap}{below}}}",
            node.more
        )
    };
    let objects: Vec<String> = nodes.iter().enumerate().filter(is_below).map(object).collect();
    format!("{{{}}}", objects.join(" ,"))
}

proptest! {
    /// Of network.json the two values of a node change, and no other byte.
    #[test]
    fn all_but_the_rates_of_a_node_stays(
        nodes in vec(node(), 1..7),
        which in any::<usize>(),
        rates in proptest::array::uniform2(proptest::option::of(select(&["20", "120.5", "1000", "0.064"]))),
    ) {
        let which = which % nodes.len();
        let content = network(&nodes, None, &(which, [None, None]));
        let settings = super::settings("libreqos = { devices = \"a.csv\", network = \"network.json\" }");
        let texts = [super::text("a.csv", NO_DEVICE), super::text("network.json", &content)];
        let before = read_with(settings, &texts, None).unwrap();
        let bits = |text: &str| (text.parse::<f64>().unwrap() * 1e6).round() as u64;
        let name = format!("N \u{e9} {which}");
        let edited = before.with_node(&name, rates.map(|rate| rate.map(bits)), &Registry::builtin()).unwrap();
        // One that is virtual shapes nothing, and one that says the same is not written.
        let new = [0, 1].map(|side| {
            let known = bits(nodes[which].rates[side].0);
            rates[side].filter(|new| bits(new) != known).map(str::to_owned)
        });
        let new = if nodes[which].is_virtual { [None, None] } else { new };
        let is_changed = new.iter().any(Option::is_some);
        let expected = network(&nodes, None, &(which, new));
        prop_assert_eq!(&edited.list.texts()[1].content, &expected);
        prop_assert_eq!(edited.texts, is_changed.then_some(1).into_iter().collect::<Vec<_>>());
        let again = read_with(before.settings().clone(), edited.list.texts(), None).unwrap();
        prop_assert_eq!(again.list(), edited.list.list());
    }

    /// Whatever changes, the new text is read as the list that runs, and rows of others are as they were.
    #[test]
    fn rows_of_others_stay_as_they_are(
        rows in vec(row(), 1..8),
        orders in orders(),
        end in select(&["\n", "\r\n"]),
    ) {
        let lines: Vec<String> = rows.iter().enumerate().map(|(id, row)| row.line(id, end)).collect();
        let content = format!("\u{feff}# list{end}{COLUMNS}{end}{}", lines.concat());
        let before = list(&content);
        let changes = changes(&before, &orders);
        let edited = before.with(changes.clone(), &Registry::builtin()).unwrap();
        is_as_wanted(&before, &edited, &changes)?;
        let is_changed = |id: usize| changes.iter().any(|(other, _)| *other == id.to_string());
        let new = &edited.list.texts()[0].content;
        let (mut expected, mut found) = (content.as_str(), new.as_str());
        // All that stands before, between and behind the rows that change.
        for (id, line) in lines.iter().enumerate().filter(|(id, _)| is_changed(*id)) {
            let own = line.split_inclusive('\n').next_back().unwrap();
            let (same, rest) = expected.split_once(own).unwrap();
            prop_assert!(found.starts_with(same), "{id}: {new:?}");
            expected = rest;
            found = &found[same.len()..];
            let is_removed = changes.iter().any(|(other, entry)| *other == id.to_string() && entry.is_none());
            if !is_removed {
                found = found.split_once('\n').unwrap().1;
            }
        }
        prop_assert!(found.starts_with(expected), "{found:?} {expected:?}");
        prop_assert!(new.split_inclusive('\n').all(|line| line.ends_with(end)), "{new:?}");
    }

    /// The same of objects.
    #[test]
    fn objects_of_others_stay_as_they_are(
        names in vec(select(&NAMES), 0..8),
        orders in orders(),
        gap in select(&[",", ",\n  ", " , "]),
        is_document in any::<bool>(),
    ) {
        let object = |(id, name): (usize, &&str)| {
            serde_json::json!({
                "id": id.to_string(), "name": name, "prefixes": [format!("10.0.{id}.0/24")], "plan": "home",
            })
            .to_string()
        };
        let objects: Vec<String> = names.iter().enumerate().map(object).collect();
        let all = objects.join(gap);
        let content = match is_document {
            true => format!("{{\"revision\": 7, \"subscribers\": [{all}] }}\n"),
            false => format!("[ {all}\n]"),
        };
        let before = read("list.json", &content, None).unwrap();
        let changes = changes(&before, &orders);
        let edited = before.with(changes.clone(), &Registry::builtin()).unwrap();
        is_as_wanted(&before, &edited, &changes)?;
        let new = &edited.list.texts()[0].content;
        for (id, object) in objects.iter().enumerate() {
            let is_changed = changes.iter().any(|(other, _)| *other == id.to_string());
            prop_assert!(is_changed || new.contains(object), "{new}");
        }
    }

    /// A circuit with several devices gets other addresses. An address that it keeps stays at its device, one
    /// that it loses is at no device, and new ones are at the first device. All else of its lines stays.
    #[test]
    fn addresses_stay_at_their_devices(
        devices in vec((0..4u8, 0..3u8), 1..5),
        stays in any::<[bool; 32]>(),
        new in 0..3u8,
        end in select(&["\n", "\r\n"]),
    ) {
        let four = |device: usize, one: u8| format!("10.{device}.{one}.0/24");
        let six = |device: usize, one: u8| format!("fd00:{device}:{one}::/48");
        let of = |count: u8, address: &dyn Fn(u8) -> String| (0..count).map(address).collect::<Vec<_>>();
        let of_device = |(device, (fours, sixes)): (usize, &(u8, u8))| {
            [of(*fours, &|one| four(device, one)), of(*sixes, &|one| six(device, one))]
        };
        let all: Vec<[Vec<String>; 2]> = devices.iter().enumerate().map(of_device).collect();
        // A cell keeps its quotation marks.
        let cell = |before: &[String], now: &[String]| match before.len().max(now.len()) {
            0 | 1 => now.concat(),
            _ => format!("\"{}\"", now.join(", ")),
        };
        let line = |(device, now): (usize, &[Vec<String>; 2])| {
            let [four, six] = [0, 1].map(|family| cell(&all[device][family], &now[family]));
            format!("c,{four},{six} ,1,1,20,10,{device}{end}")
        };
        let text = |now: &[[Vec<String>; 2]]| {
            let lines: String = now.iter().enumerate().map(line).collect();
            format!("{},Device ID{end}# x{end}{lines}", NO_DEVICE.trim_end())
        };
        let before = circuits(&text(&all));
        let mut expected = all.clone();
        let mut number = 0;
        for prefixes in expected.iter_mut().flatten() {
            prefixes.retain(|_| {
                number += 1;
                stays[number % 32]
            });
        }
        let kept: Vec<String> = expected.iter().flatten().flatten().rev().cloned().collect();
        let added = of(new, &|one| four(9, one));
        expected[0][0].extend(added.clone());
        let change = changed(&before, "c", |entry| entry.prefixes = [kept, added].concat());
        // One device has its addresses in the order that is asked for.
        prop_assume!(devices.len() > 1);
        let edited = before.with(vec![change], &Registry::builtin()).unwrap();
        prop_assert_eq!(&edited.list.texts()[0].content, &text(&expected));
    }

    /// The same of circuits, whose other columns stay in the lines that change, too.
    #[test]
    fn lines_of_other_circuits_stay_as_they_are(
        orders in vec((select(&["1", "2", "10", "11", "2794", "5", "9", "30"]), select(&RATES)), 0..6),
        end in select(&["\n", "\r\n"]),
    ) {
        let content = DEVICES.replace('\n', end);
        let before = circuits(&content);
        let mut changes = Changes::new();
        for (id, down) in orders {
            if changes.iter().all(|(other, _)| other != id) {
                changes.push(changed(&before, id, |entry| {
                    (entry.down, entry.down_min) = (rate(down), rate("64kbit"));
                }));
            }
        }
        let edited = before.with(changes.clone(), &Registry::builtin()).unwrap();
        is_as_wanted(&before, &edited, &changes)?;
        let new: Vec<&str> = edited.list.texts()[0].content.split_inclusive('\n').collect();
        let old: Vec<&str> = content.split_inclusive('\n').collect();
        prop_assert_eq!(old.len(), new.len());
        for (old, new) in old.into_iter().zip(new) {
            let is_changed = changes.iter().any(|(id, _)| old.starts_with(&format!("{id},")));
            match is_changed {
                false => prop_assert_eq!(old, new),
                // Names, addresses and nodes stand before the rates.
                true => prop_assert_eq!(before_rates(old), before_rates(new)),
            }
        }
    }
}
