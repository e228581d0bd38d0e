//! Sites and access points become `network.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use super::left_out::{Kind, LeftOut, Reason};
use super::name::{distinct, shown};
use crate::subscribers::{DEPTH, LEAST};

/// What can be a rate, bit/s.
pub(crate) const RATES: RangeInclusive<u64> = LEAST..=1_000_000_000_000;

/// The rate of a node whose rate nobody knows, bit/s: it has a class, and limits nothing.
const UNKNOWN: u64 = 100_000_000_000;

/// A site, an access point, a router or a part of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) name: String,
    /// `Site` or `AP`, as LibreQoS calls it.
    pub(crate) kind: &'static str,
    /// The key of the one above it.
    pub(crate) above: Option<String>,
    /// Down and up, bit/s.
    pub(crate) rates: [Option<u64>; 2],
}

/// All of them, by keys that nothing else has, like `uisp:site:ID`.
pub(crate) type Places = BTreeMap<String, Place>;

/// The nodes of `network.json`.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    /// The names, by key.
    names: BTreeMap<String, String>,
    /// Those that are left out, with the ones above them.
    skipped: BTreeMap<String, Option<String>>,
}

/// What an operator has fixed of a node.
#[derive(Clone, Copy, Debug)]
struct Fixed {
    rates: [Option<u64>; 2],
    is_virtual: bool,
}

impl Nodes {
    /// Returns the name of the node that something is connected to, if it is not the line.
    pub(crate) fn name(&self, key: &str) -> Option<&str> {
        let mut key = key;
        // Those above others are skipped up to the top, in no circle.
        while let Some(above) = self.skipped.get(key) {
            key = above.as_deref()?;
        }
        self.names.get(key).map(String::as_str)
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Writes the nodes that are used, and those above them. What `old` says of nodes that are `fixed` there
    /// stays. Returns the text, too.
    ///
    /// # Errors
    /// If `old` is no JSON.
    pub(crate) fn of<'k>(
        places: &Places,
        used: impl Iterator<Item = &'k str>,
        old: Option<&str>,
        left_out: &mut Vec<LeftOut>,
    ) -> Result<(Nodes, String), serde_json::Error> {
        let fixed = old.map(fixed).transpose()?.unwrap_or_default();
        let above = without_circles(places);
        let mut kept = BTreeSet::new();
        for key in used {
            let mut at = places.get_key_value(key).map(|(key, _)| key);
            while let Some(key) = at.filter(|key| kept.insert(key.as_str())) {
                at = above
                    .get(key.as_str())
                    .and_then(|above| places.get_key_value(*above))
                    .map(|(key, _)| key);
            }
        }
        let fixed_of =
            |key: &str, place: &Place| fixed.get(key).or_else(|| fixed.get(place.name.as_str())).copied();
        let mut nodes = Nodes::default();
        for key in too_deep(&kept, &above, |key| {
            fixed_of(key, &places[key]).is_some_and(|fixed| fixed.is_virtual)
        }) {
            left_out.push(LeftOut {
                of: Kind::Node,
                id: key.to_owned(),
                name: shown(&places[key].name),
                reason: Reason::TooDeep,
                address: None,
            });
            kept.remove(key);
            nodes
                .skipped
                .insert(key.to_owned(), above.get(key).map(|above| (*above).to_owned()));
        }
        nodes.names = names(&kept, places);
        let mut children: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
        for key in &kept {
            // Those above are kept, or left out together with all that is above them.
            let above = above.get(key).copied().filter(|above| kept.contains(above));
            children.entry(above).or_default().push(key);
        }
        let object = nodes.object(None, &children, &|key| {
            let place = &places[key];
            let fixed = fixed_of(key, place);
            let rate = |side: usize| {
                let known = fixed.map_or(place.rates[side], |fixed| fixed.rates[side]);
                known.filter(|rate| RATES.contains(rate)).unwrap_or(UNKNOWN)
            };
            let mut node = Map::new();
            node.insert("downloadBandwidthMbps".to_owned(), mbps(rate(0)));
            node.insert("uploadBandwidthMbps".to_owned(), mbps(rate(1)));
            node.insert("type".to_owned(), place.kind.into());
            node.insert("id".to_owned(), key.into());
            if let Some(fixed) = fixed {
                node.insert("fixed".to_owned(), true.into());
                if fixed.is_virtual {
                    node.insert("virtual".to_owned(), true.into());
                }
            }
            node
        });
        let text = serde_json::to_string_pretty(&object).expect("a value is JSON");
        Ok((nodes, text + "\n"))
    }

    fn object(
        &self,
        above: Option<&str>,
        children: &BTreeMap<Option<&str>, Vec<&str>>,
        node: &impl Fn(&str) -> Map<String, Value>,
    ) -> Value {
        let below = children.get(&above).into_iter().flatten();
        let named: BTreeMap<&String, &str> = below.map(|key| (&self.names[*key], *key)).collect();
        let one = |(name, key): (&String, &str)| {
            let mut members = node(key);
            if children.contains_key(&Some(key)) {
                members.insert("children".to_owned(), self.object(Some(key), children, node));
            }
            (name.clone(), Value::Object(members))
        };
        Value::Object(named.into_iter().map(one).collect())
    }
}

/// Returns what is above each place. A circle is cut.
fn without_circles(places: &Places) -> BTreeMap<&str, &str> {
    let mut above: BTreeMap<&str, &str> = places
        .iter()
        .filter_map(|(key, place)| {
            let (above, _) = places.get_key_value(place.above.as_deref()?)?;
            Some((key.as_str(), above.as_str()))
        })
        .collect();
    let mut done = BTreeSet::new();
    for key in places.keys() {
        let (mut way, mut at) = (BTreeSet::new(), key.as_str());
        while !done.contains(at) {
            way.insert(at);
            match above.get(at).copied() {
                Some(next) if way.contains(next) => {
                    above.remove(at);
                }
                Some(next) => {
                    at = next;
                    continue;
                }
                None => {}
            }
            break;
        }
        done.extend(way);
    }
    above
}

/// Returns the nodes that are above too many others, of which only those at the bottom shape.
fn too_deep<'k>(
    kept: &BTreeSet<&'k str>,
    above: &BTreeMap<&'k str, &'k str>,
    is_virtual: impl Fn(&str) -> bool,
) -> Vec<&'k str> {
    let mut waiting: BTreeMap<&str, usize> = BTreeMap::new();
    for key in kept {
        if let Some(above) = above.get(key) {
            *waiting.entry(above).or_default() += 1;
        }
    }
    // From the bottom to the top. Each with the levels that are below it.
    let mut ready: Vec<&str> = kept
        .iter()
        .copied()
        .filter(|key| !waiting.contains_key(key))
        .collect();
    let mut below: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found = Vec::new();
    while let Some(key) = ready.pop() {
        let mut levels = below.remove(key).unwrap_or(0);
        if !is_virtual(key) {
            match levels < DEPTH {
                true => levels += 1,
                false => found.push(key),
            }
        }
        let Some(above) = above.get(key).copied() else {
            continue;
        };
        let most = below.entry(above).or_default();
        *most = levels.max(*most);
        if let Some(count) = waiting.get_mut(above) {
            *count -= 1;
            if *count == 0 {
                ready.push(above);
            }
        }
    }
    found.sort_unstable();
    found
}

/// Gives each node a name that no other one has.
fn names(kept: &BTreeSet<&str>, places: &Places) -> BTreeMap<String, String> {
    let plain: BTreeMap<&str, String> = kept.iter().map(|key| (*key, shown(&places[*key].name))).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in plain.values() {
        *counts.entry(name).or_default() += 1;
    }
    // Devices without a node say `none`.
    let is_free = |name: &str| !name.is_empty() && !name.eq_ignore_ascii_case("none") && counts[name] == 1;
    let mut taken: BTreeSet<String> = counts.keys().map(|name| (*name).to_owned()).collect();
    let mut names = BTreeMap::new();
    for (key, name) in &plain {
        let name = match is_free(name) {
            true => name.clone(),
            false => {
                let id: String = key.rsplit(':').next().unwrap_or(key).chars().take(8).collect();
                let numbers = (2..).map(|number| format!("{key} {number}"));
                let mut ids = [id, (*key).to_owned()].into_iter().chain(numbers);
                let free = ids.find_map(|id| Some(distinct(name, &id)).filter(|name| !taken.contains(name)));
                free.expect("there are numbers without end")
            }
        };
        taken.insert(name.clone());
        names.insert((*key).to_owned(), name);
    }
    names
}

/// Returns what an operator has fixed, by the identifier of each node, or by its name.
fn fixed(text: &str) -> Result<BTreeMap<String, Fixed>, serde_json::Error> {
    let whole: Value = serde_json::from_str(text)?;
    let (mut fixed, mut waiting) = (BTreeMap::new(), vec![&whole]);
    while let Some(Value::Object(nodes)) = waiting.pop() {
        for (name, node) in nodes {
            waiting.extend(node.get("children"));
            if node.get("fixed") != Some(&json!(true)) {
                continue;
            }
            let rate = |key: &str| {
                let number = node.get(key)?;
                let mbps = number.as_f64().or_else(|| number.as_str()?.parse().ok())?;
                Some((mbps * 1e6).round() as u64)
            };
            let key = node.get("id").and_then(Value::as_str).unwrap_or(name);
            fixed.insert(
                key.to_owned(),
                Fixed {
                    rates: [rate("downloadBandwidthMbps"), rate("uploadBandwidthMbps")],
                    is_virtual: node.get("virtual") == Some(&json!(true)),
                },
            );
        }
    }
    Ok(fixed)
}

/// Returns a rate in Mbit/s, with decimals if it has some.
fn mbps(bits: u64) -> Value {
    match bits % 1_000_000 {
        0 => (bits / 1_000_000).into(),
        // At most 15 digits count, which a number of 64 bits holds.
        _ => (bits as f64 / 1e6).into(),
    }
}
