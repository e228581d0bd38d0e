//! Which places of a tree are shown, in which order.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

use crate::top::outline::Kind;
use crate::top::tree::Tree;

/// By what classes are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Their numbers.
    #[default]
    Class,
    /// Bits per second, most first.
    Rate,
    /// The 99th percentile of the delay, longest first.
    Delay,
    /// Dropped packets per second, most first.
    Drops,
    /// Waiting packets, most first.
    Backlog,
}

/// No such order.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no order is called `{0}`: write class, rate, delay, drops or backlog")]
pub struct UnknownSort(String);

impl Sort {
    /// All orders.
    pub const ALL: [Sort; 5] = [Sort::Class, Sort::Rate, Sort::Delay, Sort::Drops, Sort::Backlog];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Sort::Class => "class",
            Sort::Rate => "rate",
            Sort::Delay => "delay",
            Sort::Drops => "drops",
            Sort::Backlog => "backlog",
        }
    }

    /// Returns the order that is so many further.
    pub(crate) fn further(self, steps: usize) -> Sort {
        let place = Sort::ALL
            .iter()
            .position(|sort| *sort == self)
            .unwrap_or_default();
        Sort::ALL[(place + steps) % Sort::ALL.len()]
    }

    /// Returns what is compared. More comes first.
    fn value(self, tree: &Tree, index: usize) -> f64 {
        let Some(figures) = tree.figures(index) else {
            return 0.0;
        };
        match self {
            Sort::Class => 0.0,
            Sort::Rate => figures.rate_bps,
            Sort::Delay => figures.typical_us().unwrap_or(0.0),
            Sort::Drops => figures.per_second(figures.dropped()),
            Sort::Backlog => figures.backlog as f64,
        }
    }
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Sort {
    type Err = UnknownSort;

    fn from_str(text: &str) -> Result<Sort, UnknownSort> {
        let mut all = Sort::ALL.into_iter();
        all.find(|sort| sort.name() == text)
            .ok_or_else(|| UnknownSort(text.to_owned()))
    }
}

/// What is listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The tree.
    #[default]
    Tree,
    /// The classes that hold packets, without those above them.
    Flat,
    /// The classes of hosts.
    Hosts,
}

impl Shape {
    pub(crate) fn next(self) -> Shape {
        match self {
            Shape::Tree => Shape::Flat,
            Shape::Flat => Shape::Hosts,
            Shape::Hosts => Shape::Tree,
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Shape::Tree => "CLASS",
            Shape::Flat => "CLASS, FLAT",
            Shape::Hosts => "HOST",
        }
    }
}

/// What a listing is made by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'r> {
    pub(crate) shape: Shape,
    pub(crate) sort: Sort,
    /// Only places with this in their names are listed, with those above them. It has no capital letters.
    pub(crate) filter: &'r str,
    /// Whether places that no packet has come to are left out.
    pub(crate) only_used: bool,
    /// Whose classes are hidden.
    pub(crate) collapsed: &'r HashSet<Arc<str>>,
}

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The place.
    pub(crate) index: usize,
    /// The number of places above it, up to the root.
    pub(crate) depth: usize,
}

/// Returns the lines.
pub(crate) fn lines(tree: &Tree, rules: &Rules<'_>) -> Vec<Line> {
    match rules.shape {
        Shape::Tree => tree_lines(tree, rules),
        Shape::Flat | Shape::Hosts => flat_lines(tree, rules),
    }
}

fn tree_lines(tree: &Tree, rules: &Rules<'_>) -> Vec<Line> {
    let is_kept = kept(tree, rules);
    let mut lines = Vec::new();
    let mut open = vec![Line { index: 0, depth: 0 }];
    while let Some(line) = open.pop() {
        lines.push(line);
        let node = tree.node(line.index);
        // A filter shows what is hidden, too.
        if rules.filter.is_empty() && rules.collapsed.contains(&node.key) {
            continue;
        }
        let children = node.children.iter().copied();
        let mut children: Vec<usize> = children.filter(|child| is_kept[*child]).collect();
        sort(tree, rules.sort, &mut children);
        let depth = line.depth + 1;
        open.extend(children.into_iter().rev().map(|index| Line { index, depth }));
    }
    lines
}

fn flat_lines(tree: &Tree, rules: &Rules<'_>) -> Vec<Line> {
    let is_wanted = |index: &usize| {
        let node = tree.node(*index);
        let is_of_host = |index: usize| tree.node(index).host.is_some();
        let is_shown = match rules.shape {
            Shape::Hosts => node.host.is_some(),
            // What is below the class of a host is a part of it.
            _ => {
                node.host.is_some()
                    || (node.children.is_empty()
                        && node.kind == Kind::Discipline
                        && !node.parent.is_some_and(is_of_host))
            }
        };
        is_shown && is_match(tree, *index, rules)
    };
    let mut all: Vec<usize> = (0..tree.nodes().len()).filter(is_wanted).collect();
    sort(tree, rules.sort, &mut all);
    all.into_iter().map(|index| Line { index, depth: 0 }).collect()
}

/// Returns for each place whether the tree shows it. It shows a place that matches, and all places above it.
fn kept(tree: &Tree, rules: &Rules<'_>) -> Vec<bool> {
    let mut kept = vec![false; tree.nodes().len()];
    for index in 0..kept.len() {
        if !is_match(tree, index, rules) {
            continue;
        }
        let mut above = Some(index);
        while let Some(index) = above
            && !kept[index]
        {
            kept[index] = true;
            above = tree.node(index).parent;
        }
    }
    kept
}

fn is_match(tree: &Tree, index: usize, rules: &Rules<'_>) -> bool {
    (!rules.only_used || tree.is_used(index)) && fits(tree, index, rules.filter)
}

/// Returns whether a filter in lower case finds a place: by its host, its name or its discipline. The
/// number of a class looks like the identifier of a subscriber, so it is one only behind `class:`.
pub(crate) fn fits(tree: &Tree, index: usize, filter: &str) -> bool {
    let Some(number) = filter.strip_prefix("class:") else {
        return described("", tree, index).to_lowercase().contains(filter);
    };
    let (key, number) = (&*tree.node(index).key, number.trim());
    number.is_empty()
        || key == number
        || key.strip_suffix(number).is_some_and(|above| above.ends_with('/'))
        || key
            .strip_prefix(number)
            .is_some_and(|below| below.starts_with('/'))
}

fn sort(tree: &Tree, by: Sort, places: &mut [usize]) {
    let number = |index: usize| tree.node(index).number;
    let by_number =
        |one: &usize, other: &usize| number(*one).cmp(&number(*other)).then_with(|| one.cmp(other));
    if by == Sort::Class {
        places.sort_by(by_number);
        return;
    }
    let more =
        |one: &usize, other: &usize| -> Ordering { by.value(tree, *other).total_cmp(&by.value(tree, *one)) };
    places.sort_by(|one, other| more(one, other).then_with(|| by_number(one, other)));
}

/// Returns the whole name of a place: what a list of subscribers calls it, or its path and its host, and its
/// discipline.
pub(crate) fn name(tree: &Tree, index: usize) -> String {
    let node = tree.node(index);
    let path = if node.key.is_empty() { "root" } else { &*node.key };
    described(path, tree, index)
}

/// Returns the name of a place below the one above it.
pub(crate) fn short_name(tree: &Tree, index: usize) -> String {
    let node = tree.node(index);
    let class = node.key.rsplit('/').next().unwrap_or_default();
    let class = if node.key.is_empty() { "root" } else { class };
    described(class, tree, index)
}

fn described(path: &str, tree: &Tree, index: usize) -> String {
    let node = tree.node(index);
    // As in `status`. The number of a class looks like the identifier of another subscriber.
    let mut text = match (&node.subscriber, &node.name) {
        (Some(subscriber), _) => format!("{subscriber} /"),
        (None, Some(name)) if node.discipline.is_empty() => name.clone(),
        (None, Some(name)) => format!("{name} /"),
        (None, None) => path.to_owned(),
    };
    for word in [node.host.as_deref().unwrap_or_default(), &node.discipline] {
        if !word.is_empty() {
            text.push(' ');
            text.push_str(word);
        }
    }
    if matches!(node.kind, Kind::Hosts(_)) {
        let count = node.children.len();
        text.push_str(&format!(", {count} host{}", if count == 1 { "" } else { "s" }));
    }
    text
}

#[cfg(test)]
mod tests {
    use fairgate_config::Spec;

    use super::*;
    use crate::top::outline::Outline;
    use crate::top::testing::row;

    fn tree() -> Tree {
        let text = "htb default=9 { 1 rate=1gbit { 9 rate=10mbit / drr { 1 / fifo; 2 / codel }; \
            100 each=destination count=20 overflow=9 rate=2mbit / fifo } }";
        let mut tree = Tree::default();
        tree.reshape(Arc::new(Outline::of(&Spec::inline(text).unwrap())));
        let mut rows = [
            row("", 9.0),
            row("9", 3.0),
            row("9/2", 3.0),
            row("101", 2.0),
            row("104", 4.0),
        ];
        rows[3].host = Some("10.0.0.7".to_owned());
        rows[4].host = Some("10.0.0.8".to_owned());
        tree.take(1, rows.iter());
        tree
    }

    fn shown(shape: Shape, sort: Sort, filter: &str, only_used: bool, collapsed: &[&str]) -> Vec<String> {
        let tree = tree();
        let collapsed = collapsed.iter().map(|key| Arc::from(*key)).collect();
        let rules = Rules {
            shape,
            sort,
            filter,
            only_used,
            collapsed: &collapsed,
        };
        let lines = lines(&tree, &rules);
        let text = |line: &Line| format!("{}{}", " ".repeat(line.depth), short_name(&tree, line.index));
        lines.iter().map(text).collect()
    }

    #[test]
    fn a_tree_is_sorted_among_siblings() {
        let all = shown(Shape::Tree, Sort::Class, "", false, &[]);
        let wanted = [
            "root fifo",
            " 1",
            "  9 fifo",
            "   1 fifo",
            "   2 fifo",
            "  100-119 fifo, 2 hosts",
            "   101 10.0.0.7 fifo",
            "   104 10.0.0.8 fifo",
        ];
        assert_eq!(all, wanted);
        let by_rate = shown(Shape::Tree, Sort::Rate, "", true, &["9"]);
        let wanted = [
            "root fifo",
            " 1",
            "  100-119 fifo, 2 hosts",
            "   104 10.0.0.8 fifo",
            "   101 10.0.0.7 fifo",
            "  9 fifo",
        ];
        assert_eq!(by_rate, wanted);
    }

    #[test]
    fn a_filter_shows_what_is_above_its_matches() {
        let found = shown(Shape::Tree, Sort::Class, "0.0.8", false, &["100-119"]);
        assert_eq!(found.len(), 4);
        assert_eq!(found[3], "   104 10.0.0.8 fifo");
        // The root stays, so that there is always a line.
        assert_eq!(
            shown(Shape::Tree, Sort::Class, "nothing", false, &[]),
            ["root fifo"]
        );
    }

    /// Those of subscribers are taken for identifiers.
    #[test]
    fn a_filter_takes_numbers_for_those_of_classes_only_if_it_says_so() {
        let found = |filter| shown(Shape::Tree, Sort::Class, filter, false, &[]);
        assert_eq!(found("104"), ["root fifo"]);
        assert_eq!(
            found("class:104"),
            [
                "root fifo",
                " 1",
                "  100-119 fifo, 2 hosts",
                "   104 10.0.0.8 fifo"
            ]
        );
        assert_eq!(
            found("class:9"),
            ["root fifo", " 1", "  9 fifo", "   1 fifo", "   2 fifo"]
        );
        assert_eq!(found("class:2"), ["root fifo", " 1", "  9 fifo", "   2 fifo"]);
        assert_eq!(found("class:0"), ["root fifo"]);
    }

    #[test]
    fn hosts_are_listed_with_most_first() {
        let hosts = shown(Shape::Hosts, Sort::Rate, "", false, &[]);
        assert_eq!(hosts, ["104 10.0.0.8 fifo", "101 10.0.0.7 fifo"]);
        let flat = shown(Shape::Flat, Sort::Rate, "", true, &[]);
        assert_eq!(flat, ["104 10.0.0.8 fifo", "2 fifo", "101 10.0.0.7 fifo"]);
    }
}
