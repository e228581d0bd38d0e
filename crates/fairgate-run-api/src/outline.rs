//! What trees are made of: places with what was set, and all parameters of one.

use std::collections::{BTreeMap, BTreeSet};

use fairgate_config::registry::PARENT;
use fairgate_config::{ClassSpec, ParameterInfo, Spec, Value};
use serde::Serialize;

/// What a tree is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OutlineDocument {
    /// The revision of the trees.
    pub revision: u64,
    /// The interface that the direction receives from.
    pub from: String,
    /// The interface that it sends to.
    pub to: String,
    /// Its places, each behind the one above it. The first is the root.
    pub places: Vec<OutlineEntry>,
}

/// What can be set at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlaceDocument {
    /// The revision of the trees.
    pub revision: u64,
    /// The interface that the direction receives from.
    pub from: String,
    /// The path of the place.
    pub path: String,
    /// What can be set: of the class, then of its discipline.
    pub changeable: Vec<Changeable>,
}

/// A discipline, a class or both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OutlineEntry {
    /// The numbers of the classes from the root on, as `20/3`; `root` for the root. Of classes for hosts it
    /// is the first.
    pub path: String,
    /// What a list of subscribers calls the class: the name of a node of the network, or that of a
    /// subscriber, or its identifier if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The index of the place above; null for the root.
    pub above: Option<usize>,
    /// The discipline. An inner class of a tree of classes has none.
    pub discipline: Option<&'static str>,
    /// How many classes there are for hosts, numbered on from that of the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u32>,
    /// What was set of the class and of its discipline, as users write it.
    pub settings: BTreeMap<&'static str, String>,
}

/// What can be set of a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Changeable {
    /// What is changed.
    pub title: String,
    /// The words of a change, up to the first parameter: `class change 20`.
    pub words: String,
    /// The parameters.
    pub parameters: Vec<ParameterDocument>,
}

/// A parameter and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ParameterDocument {
    /// Its name.
    name: &'static str,
    /// Its value, as users write it.
    value: String,
    /// Whether it was set. If not, it has its default.
    is_given: bool,
    /// What it is a number of: `packets`, `rate`, `time`.
    unit: &'static str,
    /// The allowed values, in words.
    allowed: String,
    /// What it does.
    meaning: &'static str,
}

/// A part of a tree: a discipline, a class or both.
#[derive(Debug)]
pub struct Part<'a> {
    /// The numbers of the classes from the root on, as `20/3`; empty for the root. Of classes for hosts it
    /// has the first.
    pub path: String,
    /// The index of the part above. None for the root.
    pub above: Option<usize>,
    /// The class. The root has none.
    pub class: Option<ClassSpec<'a>>,
    /// The discipline. An inner class of a tree of classes has none.
    pub tree: Option<&'a Spec>,
}

/// Lists the parts of a tree, each behind the one above it.
pub fn parts(tree: &Spec) -> Vec<Part<'_>> {
    let mut parts = vec![Part {
        path: String::new(),
        above: None,
        class: None,
        tree: Some(tree),
    }];
    add_classes(tree, 0, &mut parts);
    parts
}

fn add_classes<'a>(tree: &'a Spec, above: usize, parts: &mut Vec<Part<'a>>) {
    let mut left = tree.classes();
    let numbers: BTreeSet<u32> = left.iter().map(|class| class.minor).collect();
    // The index of each class. Parents may be listed behind their classes.
    let mut known: BTreeMap<u32, usize> = BTreeMap::new();
    loop {
        let before = left.len();
        for class in std::mem::take(&mut left) {
            let parent = class.parent().filter(|parent| numbers.contains(parent));
            let holder = match parent {
                None => Some(above),
                Some(parent) => known.get(&parent).copied(),
            };
            let Some(holder) = holder else {
                left.push(class);
                continue;
            };
            let index = parts.len();
            known.insert(class.minor, index);
            let (tree, is_one) = (class.tree, class.template.is_none());
            parts.push(Part {
                path: joined(&parts[above].path, class.minor),
                above: Some(holder),
                class: Some(class),
                tree,
            });
            if let Some(tree) = tree.filter(|_| is_one) {
                add_classes(tree, index, parts);
            }
        }
        // A checked tree has no circle of parents.
        if left.is_empty() || left.len() == before {
            return;
        }
    }
}

/// Lists the places of a tree, each behind the one above it.
pub fn places(tree: &Spec) -> Vec<OutlineEntry> {
    parts(tree).into_iter().map(OutlineEntry::of).collect()
}

impl OutlineEntry {
    fn of(part: Part<'_>) -> OutlineEntry {
        let mut settings = BTreeMap::new();
        for (info, value) in part.class.iter().flat_map(|class| &class.parameters) {
            if info.name != PARENT && info.default.as_ref() != Some(value) {
                settings.insert(info.name, info.unit.show(value));
            }
        }
        for (name, value) in part.tree.map(given).unwrap_or_default() {
            settings.entry(name).or_insert(value);
        }
        let template = part.class.as_ref().and_then(|class| class.template);
        OutlineEntry {
            path: match part.path.is_empty() {
                true => "root".to_owned(),
                false => part.path,
            },
            name: None,
            above: part.above,
            discipline: part.tree.map(Spec::discipline),
            hosts: template.map(|template| template.count),
            settings,
        }
    }
}

fn given(tree: &Spec) -> BTreeMap<&'static str, String> {
    let parameters = tree.parameters().into_iter();
    parameters
        .filter(|(info, _)| tree.is_given(info.name))
        .map(|(info, value)| (info.name, info.unit.show(&value)))
        .collect()
}

/// Returns what can be set at a place: of the class first, then of its discipline. There is nothing if there
/// is no such place.
pub fn changeable(tree: &Spec, path: &str) -> Option<Vec<Changeable>> {
    if path == "root" {
        return Some(vec![of_discipline(tree, path)]);
    }
    let mut holder = tree;
    let mut numbers = path.split('/').map(str::parse::<u32>).peekable();
    loop {
        let number = numbers.next()?.ok()?;
        let class = holder.classes().into_iter().find(|class| class.minor == number)?;
        if numbers.peek().is_some() {
            holder = class.tree?;
            continue;
        }
        let mut found = Vec::new();
        if holder.entry().about().children.are_classes() {
            let parameters = class.parameters.iter().filter(|(info, _)| info.name != PARENT);
            found.push(Changeable {
                title: match class.template {
                    None => format!("class {path} of {}", holder.discipline()),
                    Some(template) => format!("each of {} classes for hosts", template.count),
                },
                words: format!("class change {path}"),
                parameters: parameters
                    .map(|(info, value)| {
                        ParameterDocument::of(info, value, info.default.as_ref() != Some(value))
                    })
                    .collect(),
            });
        }
        found.extend(class.tree.map(|tree| of_discipline(tree, path)));
        return Some(found);
    }
}

fn of_discipline(tree: &Spec, path: &str) -> Changeable {
    let parameters = tree.parameters();
    let parameters = parameters.iter();
    Changeable {
        title: format!("{}: {}", tree.discipline(), tree.entry().about().summary),
        words: format!("queue change {path}"),
        parameters: parameters
            .map(|(info, value)| ParameterDocument::of(info, value, tree.is_given(info.name)))
            .collect(),
    }
}

impl ParameterDocument {
    fn of(info: &ParameterInfo, value: &Value, is_given: bool) -> ParameterDocument {
        ParameterDocument {
            name: info.name,
            value: info.unit.show(value),
            is_given,
            unit: info.unit.name(),
            allowed: info.allowed(),
            meaning: info.doc,
        }
    }
}

fn joined(path: &str, class: u32) -> String {
    match path.is_empty() {
        true => class.to_string(),
        false => format!("{path}/{class}"),
    }
}

#[cfg(test)]
mod tests {
    use fairgate_config::Registry;

    use super::*;

    const TREE: &str = "htb default=9 { 3 rate=1gbit { 2 rate=10mbit ceil=1gbit / drr { 1 / fifo }; \
        100 each=destination count=20 overflow=9 rate=2mbit / fq_codel flows=64; 9 rate=1mbit / fifo } }";

    #[test]
    fn classes_are_below_their_parents() {
        let places = places(&Spec::inline(TREE).unwrap());
        let mut listed: Vec<(&str, Option<&str>)> = places
            .iter()
            .map(|place| (&*place.path, place.above.map(|above| &*places[above].path)))
            .collect();
        listed.sort_unstable();
        assert_eq!(
            listed,
            [
                ("100", Some("3")),
                ("2", Some("3")),
                ("2/1", Some("2")),
                ("3", Some("root")),
                ("9", Some("3")),
                ("root", None),
            ]
        );
        assert!(
            places
                .iter()
                .enumerate()
                .all(|(index, place)| place.above.is_none_or(|above| above < index))
        );
        let of = |path: &str| places.iter().find(|place| place.path == path).unwrap();
        assert_eq!(of("2").settings["ceil"], "1gbit");
        assert_eq!((of("100").hosts, &*of("100").settings["flows"]), (Some(20), "64"));
        assert_eq!((of("3").discipline, of("2/1").discipline), (None, Some("fifo")));
    }

    /// The words that are offered change the tree, and the inverse gives the same tree again.
    #[test]
    fn every_parameter_that_is_set_can_be_changed_and_undone() {
        let text = "tbf rate=20mbit burst=5kb / htb default=2 { 1 rate=5mbit / cake bandwidth=4mbit; \
                    2 rate=6mbit / tbf rate=3mbit burst=4kb / fq_codel target=7ms }";
        let tree = Spec::inline(text).unwrap();
        let mut changed = 0;
        for place in places(&tree) {
            for part in changeable(&tree, &place.path).unwrap() {
                for parameter in part
                    .parameters
                    .iter()
                    .filter(|it| it.is_given && it.unit == "rate")
                {
                    let line = |value: &str| format!("{} {}={value}", part.words, parameter.name);
                    let registry = Registry::builtin();
                    let other = tree.edited(&line("2500kbit"), &registry).unwrap();
                    assert!(other != tree, "{}", line("2500kbit"));
                    assert!(other.edited(&line(&parameter.value), &registry).unwrap() == tree);
                    changed += 1;
                }
            }
        }
        assert_eq!(changed, 5);
        for missing in ["", "7", "1/1/1/9", "x", "root/1"] {
            assert_eq!(changeable(&tree, missing), None, "{missing}");
        }
    }
}
