//! The classes of a direction, with their figures.
//!
//! The places come from the outline of the tree, and from readings: classes that are given to hosts, and what
//! this program knows no outline of. Work for a reading is proportional to the classes in it.

use std::collections::HashMap;
use std::sync::Arc;

use fairgate_run_api::{ClassInterval, Network, NodeStatus, SubscriberName};

use crate::top::figures::Figures;
use crate::top::history::{History, LENGTH};
use crate::top::outline::{Kind, Outline, OutlineRow, RateSetting};

/// A direction's classes.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    outline: Arc<Outline>,
    /// The first is the root. Those of the outline come first, in its order.
    nodes: Vec<Node>,
    by_key: HashMap<Arc<str>, usize>,
    /// The number of the last interval.
    tick: u64,
    /// The number of the last status.
    statuses: u64,
}

/// A place in a tree.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Its path, as in the outline and in recordings.
    pub(crate) key: Arc<str>,
    pub(crate) parent: Option<usize>,
    pub(crate) children: Vec<usize>,
    /// The classes for hosts of its discipline.
    groups: Vec<usize>,
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    pub(crate) discipline: String,
    pub(crate) host: Option<String>,
    /// What a list of subscribers calls its class, as the last status has it.
    pub(crate) name: Option<String>,
    /// Whose class it is, likewise.
    pub(crate) subscriber: Option<SubscriberName>,
    /// What the list lets it send at most, likewise.
    pub(crate) limit_bps: Option<u64>,
    /// What it did in interval `tick`.
    figures: Figures,
    tick: u64,
    history: History,
    /// The last status that had it. Packets have come to it before.
    status: u64,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree::of(Arc::default())
    }
}

impl Tree {
    fn of(outline: Arc<Outline>) -> Tree {
        let mut tree = Tree {
            nodes: outline.places.iter().map(Node::of).collect(),
            outline,
            by_key: HashMap::new(),
            tick: 0,
            statuses: 0,
        };
        if tree.nodes.is_empty() {
            tree.nodes.push(Node::read("", None));
        }
        for index in 0..tree.nodes.len() {
            tree.by_key.insert(Arc::clone(&tree.nodes[index].key), index);
            tree.attach(index);
        }
        tree
    }

    fn attach(&mut self, index: usize) {
        let Some(parent) = self.nodes[index].parent else {
            return;
        };
        self.nodes[parent].children.push(index);
        if let Kind::Hosts(_) = self.nodes[index].kind {
            let discipline = self.discipline_above(index);
            self.nodes[discipline].groups.push(index);
        }
    }

    /// Returns the place of the discipline whose class a place is. Classes are numbered in their discipline,
    /// whatever classes are above them there.
    fn discipline_above(&self, index: usize) -> usize {
        let mut above = self.nodes[index].parent.unwrap_or(0);
        while self.nodes[above].kind != Kind::Discipline
            && let Some(parent) = self.nodes[above].parent
        {
            above = parent;
        }
        above
    }

    /// Takes the places of another outline. What classes did stays with them.
    pub(crate) fn reshape(&mut self, outline: Arc<Outline>) {
        let mut new = Tree::of(outline);
        (new.tick, new.statuses) = (self.tick, self.statuses);
        for (place, mut old) in std::mem::take(&mut self.nodes).into_iter().enumerate() {
            let index = match new.by_key.get(&old.key) {
                Some(&index) => index,
                // A class that was deleted is not outlined any more.
                None if self.outline.has(place) || self.is_gone(&old) => continue,
                None => {
                    let index = new.find_or_add(&old.key);
                    std::mem::swap(&mut new.nodes[index].discipline, &mut old.discipline);
                    index
                }
            };
            let node = &mut new.nodes[index];
            // Another discipline begins anew.
            if node.discipline == old.discipline || old.discipline.is_empty() || node.discipline.is_empty() {
                node.host = old.host;
                node.name = node.name.take().or(old.name);
                node.subscriber = old.subscriber;
                node.limit_bps = old.limit_bps;
                node.figures = old.figures;
                node.tick = old.tick;
                node.history = old.history;
                node.status = old.status;
            }
        }
        *self = new;
    }

    /// Takes what classes did in the interval `tick`. Intervals are numbered from 1.
    pub(crate) fn take<'r>(&mut self, tick: u64, rows: impl Iterator<Item = &'r ClassInterval>) {
        self.tick = tick;
        let mut groups = Vec::new();
        for row in rows {
            let index = self.find_or_add(&row.class);
            let node = &mut self.nodes[index];
            if node.host != row.host {
                node.host.clone_from(&row.host);
                node.history = History::default();
            }
            if node.discipline != row.discipline {
                node.discipline.clone_from(&row.discipline);
            }
            node.figures = Figures::of(row);
            node.note(tick);
            self.add_above(index, &mut groups);
        }
        for group in groups {
            self.nodes[group].note(tick);
        }
    }

    /// Adds the figures of a class to the places above it that have none of their own. Those that are new in
    /// this interval are added to `groups`.
    fn add_above(&mut self, index: usize, groups: &mut Vec<usize>) {
        let figures = self.nodes[index].figures.clone();
        let mut above = self.nodes[index].parent;
        while let Some(parent) = above {
            let node = &mut self.nodes[parent];
            if node.kind == Kind::Discipline {
                return;
            }
            if node.tick != self.tick {
                node.tick = self.tick;
                node.figures = Figures::default();
                groups.push(parent);
            }
            node.figures.add(&figures);
            above = node.parent;
        }
    }

    /// Takes which classes a status has, and forgets those of hosts that it has no longer.
    pub(crate) fn take_status(&mut self, root: &NodeStatus) {
        self.statuses += 1;
        self.take_node(root, &mut String::new());
        let mut read = self.nodes.iter().skip(self.outline.places.len().max(1));
        if read.any(|node| self.is_gone(node)) {
            self.reshape(Arc::clone(&self.outline));
        }
    }

    /// Whether a place that is not of the outline is neither in the last status nor in the history.
    fn is_gone(&self, node: &Node) -> bool {
        node.status != self.statuses && !node.is_active_since(self.tick)
    }

    fn take_node(&mut self, status: &NodeStatus, path: &mut String) {
        let index = self.find_or_add(path);
        let node = &mut self.nodes[index];
        node.status = self.statuses;
        if node.host != status.host {
            node.host.clone_from(&status.host);
            node.history = History::default();
        }
        if node.subscriber != status.subscriber {
            node.subscriber.clone_from(&status.subscriber);
        }
        if node.discipline != status.discipline {
            node.discipline.clone_from(&status.discipline);
        }
        if status.class.is_some() && node.name != status.name {
            node.name.clone_from(&status.name);
        }
        node.limit_bps = status.limit_bps;
        self.take_nodes_of_network(status, path);
        // At most 80 levels: that bounds the trees of all configurations.
        for class in &status.classes {
            let length = path.len();
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(&class.class.unwrap_or_default().to_string());
            self.take_node(class, path);
            path.truncate(length);
        }
    }

    /// Takes what the inner classes of a discipline are called: those of a network.
    fn take_nodes_of_network(&mut self, status: &NodeStatus, path: &str) {
        for inner in Network::of(path, status).nodes {
            // The outline may not be known yet.
            let index = self.find_or_add(&inner.path);
            let node = &mut self.nodes[index];
            node.status = self.statuses;
            node.name = Some(inner.name.to_owned());
            node.limit_bps = inner.state.limit_bps;
        }
    }

    /// Whether a list of subscribers says what its classes may send.
    pub(crate) fn has_limits(&self) -> bool {
        self.nodes.iter().any(|node| node.limit_bps.is_some())
    }

    /// Returns the place with this path. It is added if there is none, and so are those above it.
    fn find_or_add(&mut self, key: &str) -> usize {
        if let Some(&index) = self.by_key.get(key) {
            return index;
        }
        let (above, class) = key.rsplit_once('/').unwrap_or(("", key));
        let parent = self.find_or_add(above);
        let number = class.parse().unwrap_or(u32::MAX);
        let is_of = |group: &&usize| match &self.nodes[**group].kind {
            Kind::Hosts(numbers) => numbers.contains(&number),
            _ => false,
        };
        let parent = self.nodes[parent]
            .groups
            .iter()
            .find(is_of)
            .copied()
            .unwrap_or(parent);
        let index = self.nodes.len();
        let mut node = Node::read(key, Some(parent));
        node.number = number;
        self.by_key.insert(Arc::clone(&node.key), index);
        self.nodes.push(node);
        self.nodes[parent].children.push(index);
        index
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn node(&self, index: usize) -> &Node {
        &self.nodes[index]
    }

    pub(crate) fn find(&self, key: &str) -> Option<usize> {
        self.by_key.get(key).copied()
    }

    /// Returns what a place did in the last interval. It is `None` if it did nothing.
    pub(crate) fn figures(&self, index: usize) -> Option<&Figures> {
        let node = &self.nodes[index];
        (node.tick == self.tick && self.tick > 0).then_some(&node.figures)
    }

    /// Returns the rates and delays of a place, from the last interval back.
    pub(crate) fn history(&self, index: usize) -> (Vec<u64>, Vec<u64>) {
        self.nodes[index].history.back_from(self.tick)
    }

    /// Returns whether packets have come to a place.
    pub(crate) fn is_used(&self, index: usize) -> bool {
        let node = &self.nodes[index];
        node.tick > 0 || node.status > 0
    }

    /// Returns the rates that can be changed at a place: those of all classes for hosts, if it is one of
    /// them.
    pub(crate) fn rates(&self, index: usize) -> &[RateSetting] {
        self.place(index).map_or(&[], |place| &place.rates)
    }

    /// Returns what was set at a place, likewise.
    pub(crate) fn settings(&self, index: usize) -> &[String] {
        self.place(index).map_or(&[], |place| &place.settings)
    }

    fn place(&self, index: usize) -> Option<&OutlineRow> {
        let of_hosts = || {
            let group = self.nodes[index].parent?;
            matches!(self.nodes[group].kind, Kind::Hosts(_)).then_some(group)
        };
        match self.outline.has(index) {
            true => self.outline.places.get(index),
            false => self.outline.places.get(of_hosts()?),
        }
    }
}

impl Node {
    fn of(place: &OutlineRow) -> Node {
        Node {
            number: place.number,
            kind: place.kind.clone(),
            name: place.name.clone(),
            discipline: place.discipline.unwrap_or_default().to_owned(),
            ..Node::read(&place.key, place.parent)
        }
    }

    /// A place that a reading has and the outline has not.
    fn read(key: &str, parent: Option<usize>) -> Node {
        Node {
            key: key.into(),
            parent,
            children: Vec::new(),
            groups: Vec::new(),
            number: 0,
            kind: Kind::Discipline,
            discipline: String::new(),
            host: None,
            name: None,
            subscriber: None,
            limit_bps: None,
            figures: Figures::default(),
            tick: 0,
            history: History::default(),
            status: 0,
        }
    }

    fn note(&mut self, tick: u64) {
        self.tick = tick;
        self.history
            .push(tick, self.figures.rate_bps, self.figures.typical_us());
    }

    /// Whether the history still shows something of it.
    fn is_active_since(&self, tick: u64) -> bool {
        self.tick > 0 && self.tick + LENGTH as u64 > tick
    }
}

#[cfg(test)]
mod tests {
    use fairgate_config::Spec;

    use super::*;
    use crate::top::outline::Trees;
    use crate::top::testing::row;

    fn outline(text: &str) -> Arc<Outline> {
        Arc::new(Outline::of(&Spec::inline(text).expect(text)))
    }

    const HOSTS: &str = "htb default=9 { 1 rate=1gbit { 9 rate=10mbit / fifo; \
        100 each=destination count=20 overflow=9 rate=2mbit / fifo } }";

    fn parent_key(tree: &Tree, key: &str) -> Option<String> {
        let node = tree.node(tree.find(key)?);
        node.parent.map(|parent| tree.node(parent).key.to_string())
    }

    #[test]
    fn an_inner_class_sums_what_is_below_it() {
        let mut tree = Tree::default();
        tree.reshape(outline(HOSTS));
        let rows = [row("", 30.0), row("9", 10.0), row("104", 20.0)];
        tree.take(1, rows.iter());
        assert_eq!(parent_key(&tree, "104").as_deref(), Some("100-119"));
        let rate = |tree: &Tree, key| tree.figures(tree.find(key).unwrap()).map(|it| it.rate_bps);
        assert_eq!(rate(&tree, "100-119"), Some(20.0));
        assert_eq!(rate(&tree, "1"), Some(30.0));
        assert_eq!(rate(&tree, ""), Some(30.0));
        tree.take(2, rows[..1].iter());
        assert_eq!((rate(&tree, "1"), rate(&tree, "9")), (None, None));
        assert_eq!(tree.history(tree.find("1").unwrap()).0, [0, 30]);
        let hosts = tree.rates(tree.find("104").unwrap());
        assert_eq!(hosts[0].words, "class change 100");
    }

    /// Readings can be ahead of the outline, and behind it.
    #[test]
    fn what_classes_did_stays_when_the_tree_changes() {
        let mut tree = Tree::default();
        tree.take(1, [row("", 1.0), row("9", 2.0), row("7/1", 3.0)].iter());
        assert_eq!(parent_key(&tree, "7/1").as_deref(), Some("7"));
        tree.reshape(outline(HOSTS));
        assert_eq!(parent_key(&tree, "9").as_deref(), Some("1"));
        assert_eq!(tree.history(tree.find("9").unwrap()).0, [2]);
        assert!(tree.find("7/1").is_some());
        tree.reshape(outline("htb default=10 { 10 rate=1mbit / fifo }"));
        assert!(tree.find("9").is_none(), "it was deleted");
    }

    /// A status says whose a class is. Another tree may give the class to somebody else.
    #[test]
    fn a_class_has_the_subscriber_of_the_last_status() {
        let mut tree = Tree::default();
        let outlined =
            || outline("htb default=2 { 1 rate=1gbit { 2 rate=1mbit / fifo; 16 rate=1mbit / fifo } }");
        tree.reshape(outlined());
        let status = |id: &str| {
            let mut class = crate::top::testing::status("fifo");
            class.class = Some(16);
            class.subscriber = Some(SubscriberName {
                id: id.to_owned(),
                name: Some("Anna".to_owned()),
                plan: None,
                limited_until_s: None,
            });
            let mut root = crate::top::testing::status("htb");
            root.classes.push(class);
            root
        };
        let shown = |tree: &Tree| crate::top::listing::name(tree, tree.find("16").unwrap());
        tree.take_status(&status("1001"));
        assert_eq!(shown(&tree), "1001 Anna / fifo");
        tree.reshape(outlined());
        assert_eq!(shown(&tree), "1001 Anna / fifo");
        tree.take_status(&status("1002"));
        assert_eq!(shown(&tree), "1002 Anna / fifo");
    }

    /// The outline has the names of all classes, also of those that no packet has come to.
    #[test]
    fn a_network_has_names_before_packets_come() {
        let text = "htb default=2 { 1 rate=1gbit { 2 rate=1mbit / fifo; \
            16 rate=1mbit { 17 rate=1mbit / fifo } } }";
        let queue = Spec::inline(text).expect(text).to_toml(fairgate_run_api::QUEUE);
        let names = [(1, "line"), (16, "Tower"), (17, "1001 Anna")];
        let trees = fairgate_run_api::TreesStatus {
            revision: 0,
            directions: vec![fairgate_run_api::TreeStatus {
                from: "left".to_owned(),
                to: "right".to_owned(),
                name: None,
                queue,
                names: names
                    .map(|(class, name)| (class, name.to_owned()))
                    .into_iter()
                    .collect(),
                workers: None,
            }],
        };
        let registry = fairgate_config::Registry::builtin();
        let outline = Trees::read(&trees, &registry)
            .directions
            .remove(0)
            .expect("it is read");
        // A status comes before the outline, and has a node only.
        let mut tree = Tree::default();
        let mut root = crate::top::testing::status("htb");
        root.class_states = vec![fairgate_run_api::ClassStatus {
            class: 16,
            name: Some("Tower".to_owned()),
            node: Some(1),
            limit_bps: Some(2_000_000),
            sent: crate::top::testing::NOTHING,
            overlimits: 0,
            variables: Default::default(),
            at_s: 0.0,
        }];
        tree.take_status(&root);
        tree.reshape(Arc::new(outline));
        let shown = |key| crate::top::listing::short_name(&tree, tree.find(key).unwrap());
        assert_eq!(
            ["1", "16", "17", "2"].map(shown),
            ["line", "Tower", "1001 Anna / fifo", "2 fifo"]
        );
        assert_eq!(tree.node(tree.find("16").unwrap()).limit_bps, Some(2_000_000));
    }

    /// The class of a host that has gone is forgotten when the screen shows nothing of it any more.
    #[test]
    fn classes_of_hosts_come_and_go() {
        let mut tree = Tree::default();
        tree.reshape(outline(HOSTS));
        tree.take(1, [row("", 1.0), row("104", 1.0)].iter());
        let mut host = row("104", 1.0);
        host.host = Some("10.0.0.1".to_owned());
        tree.take(2, [host].iter());
        let index = tree.find("104").unwrap();
        assert_eq!(tree.history(index).0, [1], "another host begins anew");
        let without = crate::top::testing::status("htb");
        for tick in 3..LENGTH as u64 + 4 {
            tree.take(tick, [row("", 1.0)].iter());
            tree.take_status(&without);
            assert_eq!(tree.find("104").is_some(), tick < LENGTH as u64 + 2, "{tick}");
        }
    }
}
