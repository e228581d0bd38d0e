//! The subscribers of a run: the list, the numbers of their classes, and the trees.

mod changes;

pub use changes::{Changes, Edited, LimitChanges};

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use fairgate_config::{FileError, Registry, Spec};
use fairgate_run_api::{ClassName, Difference, Entry, ListedNode, Shaped};
use miette::NamedSource;

use super::check::{self, Read};
use super::fields::Raw;
use super::file::{self, Written};
use super::libreqos;
use super::limits::{self, Limits};
use super::list::{DOWN, List, Node, Subscriber, UP};
use super::names;
use super::numbers::{MOST, Numbers, OTHERS, TooMany};
use super::section::{Settings, Source};
use super::texts::{Mistake, Text, TextRange, Texts};
use super::trees::{self, Refused};

/// How many nodes a warning names.
const WORST: usize = 3;

/// A checked list with the trees that it gives.
#[derive(Clone, Debug)]
pub struct Subscribers {
    settings: Settings,
    list: List,
    numbers: Numbers,
    trees: [Spec; 2],
    source: Arc<NamedSource<String>>,
    /// What the list was read from.
    texts: Arc<[Text]>,
    /// Limits for a time, also those of others than the subscribers, and those that have ended.
    limits: Limits,
}

impl Subscribers {
    /// Reads a list. The texts are all files of [`Source::File`], or the two of [`Source::LibreQos`], devices
    /// first. Without a file the list is that of `before`. Who was in the list before keeps its class.
    ///
    /// # Errors
    /// If a text has a mistake; all of them are reported. And if the list lacks more of those in `before`
    /// than [`Settings::most_removed`] allows: then a file was probably cut off.
    pub fn read(
        settings: Settings,
        texts: &[Text],
        before: Option<&Subscribers>,
        registry: &Registry,
    ) -> Result<Subscribers, FileError> {
        let is_of_api = settings.source == Source::Api;
        let read = Subscribers::read_whole(settings, texts, before, registry)?;
        match before.filter(|_| !is_of_api) {
            Some(before) => {
                let confirmed_removed = read.settings.confirmed_removed;
                read.unless_cut_off(before, confirmed_removed, |removed| {
                    format!(
                        "if the file was cut off, write it again as a whole; if it is right, confirm it: \
                         write confirmed_removed = {removed} to [subscribers] and send SIGHUP; most_removed \
                         changes the limit"
                    )
                })
            }
            None => Ok(read),
        }
    }

    /// Reads a list, whoever is not in it any more.
    fn read_whole(
        settings: Settings,
        texts: &[Text],
        before: Option<&Subscribers>,
        registry: &Registry,
    ) -> Result<Subscribers, FileError> {
        let mut known = Texts::new(texts);
        let mut list = List::default();
        let mut read = Vec::new();
        let place = limits::place(texts);
        let limits = match place.map(|place| (place, limits::read(&texts[place].content))) {
            None => Limits::new(),
            Some((_, Ok(limits))) => limits,
            Some((place, Err(mistake))) => {
                known.report(place, mistake);
                Limits::new()
            }
        };
        let lists = &texts[..place.unwrap_or(texts.len())];
        match (&settings.source, lists) {
            (Source::LibreQos { .. }, [devices, network]) => {
                let network = libreqos::read_network(1, &network.content, &mut known);
                // A node with a mistake is missing: the devices of it would be reported, too.
                if known.count() == 0 {
                    let leaves = &settings.leaves;
                    read = libreqos::read_devices(0, &devices.content, &network, leaves, &mut known);
                }
                list.nodes = network.nodes;
            }
            (Source::LibreQos { .. }, _) => unreachable!("LibreQoS has two files"),
            (Source::File(_), _) => {
                for (number, text) in lists.iter().enumerate() {
                    let room = MOST - read.len();
                    let written = file::read(number, &text.name, &text.content, room, &mut known);
                    let checked = written.into_iter();
                    read.extend(
                        checked.filter_map(|one| check::subscriber(one, &settings.plans, &mut known)),
                    );
                }
            }
            (Source::Api, _) => {
                let entries = before.map(Subscribers::entries).unwrap_or_default();
                let (limits, name) = (before.map(|before| before.limits.clone()), "the subscribers");
                let limits = limits.unwrap_or_default();
                return Subscribers::of_entries(settings, entries, name, before, limits, registry);
            }
        }
        let read = Subscribers::checked(settings, list, read, known, before, limits, registry)?;
        Ok(Subscribers {
            texts: texts.into(),
            ..read
        })
    }

    /// Refuses a list that lacks too many of those before. `help` says how their number is confirmed.
    fn unless_cut_off(
        self,
        before: &Subscribers,
        confirmed_removed: Option<u64>,
        help: impl FnOnce(u64) -> String,
    ) -> Result<Subscribers, FileError> {
        let difference = self.since(before);
        let (removed, most) = (difference.removed as u64, self.settings.most_removed);
        let had = before.list.subscribers.len();
        if self.settings.may_remove(&difference) || confirmed_removed == Some(removed) {
            return Ok(self);
        }
        let message = format!(
            "{removed} of the {had} subscribers that run are not in the list any more ({difference}): a \
             list removes at most {most} percent of them, and never all"
        );
        Err(at(&self.source, 0..0, message, &help(removed)))
    }

    /// Takes a list of documents, which messages call `name`.
    fn of_entries(
        settings: Settings,
        entries: Vec<Entry>,
        name: &str,
        before: Option<&Subscribers>,
        limits: Limits,
        registry: &Registry,
    ) -> Result<Subscribers, FileError> {
        let (read, known) = read_entries(&settings, entries.iter(), name);
        Subscribers::checked(settings, List::default(), read, known, before, limits, registry)
    }

    fn checked(
        settings: Settings,
        mut list: List,
        read: Vec<Read>,
        mut texts: Texts,
        before: Option<&Subscribers>,
        limits: Limits,
        registry: &Registry,
    ) -> Result<Subscribers, FileError> {
        let known = before.map(|before| &before.list);
        check::all_apart(&read, known, &mut texts);
        let unnamed = || Arc::new(NamedSource::new("the subscribers", String::new()));
        let source = texts.source(0).unwrap_or_else(unnamed);
        // What is wrong with the whole is shown where it was changed.
        let changed = known.and_then(|list| changed(&read, list));
        let changed = changed.unwrap_or(TextRange { text: 0, span: 0..0 });
        let changed_source = texts.source(changed.text).unwrap_or_else(|| Arc::clone(&source));
        let has_mistakes = texts.count() > 0;
        list.subscribers = read.into_iter().map(|read| read.subscriber).collect();
        let now_s = limits::now_s();
        for subscriber in &mut list.subscribers {
            if let Some(limit) = limits.get(&subscriber.id).filter(|limit| limit.holds(now_s)) {
                subscriber.limit(*limit);
            }
        }
        let none = Numbers::default();
        let numbers = Numbers::of(&list, before.map_or(&none, |before| &before.numbers));
        let numbers = match numbers {
            Ok(numbers) => numbers,
            Err(TooMany(count)) => {
                let message = format!("there are {count} subscribers and nodes, but {MOST} classes");
                let help = "divide them among several runs";
                texts.report(
                    changed.text,
                    Mistake::new(changed.span, message, "too many", help),
                );
                return Err(refused(texts));
            }
        };
        if has_mistakes {
            return Err(refused(texts));
        }
        let known = before
            .filter(|before| before.settings == settings && before.numbers == numbers)
            .map(|before| (&before.list, &before.trees));
        match trees::trees(&settings, &list, &numbers, known, &source, registry) {
            Ok(trees) => Ok(Subscribers {
                settings,
                list,
                numbers,
                trees,
                source,
                texts: Arc::default(),
                limits,
            }),
            Err(Refused::Leaf(error)) => Err(error),
            Err(Refused::Tree(error)) => {
                let message = format!("the tree of the subscribers is refused: {error}");
                let help = "correct the rates that it names in the list or in [subscribers]";
                Err(at(&changed_source, changed.span, message, help))
            }
        }
    }

    /// Returns the texts that the list was read from.
    pub fn texts(&self) -> &[Text] {
        &self.texts
    }

    /// Returns the documents of all subscribers, in the order of the list.
    pub fn entries(&self) -> Vec<Entry> {
        self.list.subscribers.iter().map(Entry::from).collect()
    }

    /// Returns the trees, down and up.
    pub fn trees(&self) -> &[Spec; 2] {
        &self.trees
    }

    /// Returns the list.
    pub fn list(&self) -> &List {
        &self.list
    }

    /// Returns the numbers of the classes.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// Returns what the classes of a direction are called.
    pub fn names(&self, side: usize) -> impl Iterator<Item = (u32, ClassName)> {
        names::names(&self.settings, &self.list, &self.numbers, side)
    }

    /// Returns whether another list calls the classes of a direction the same.
    pub(crate) fn has_names_of(&self, other: &Subscribers, side: usize) -> bool {
        self.settings == other.settings
            && self.numbers == other.numbers
            && names::are_same(&self.list, &other.list, side)
    }

    /// Returns what each subscriber gets, by its identifier.
    pub fn shaped(&self) -> BTreeMap<String, Shaped> {
        let all = self.list.subscribers.iter();
        all.map(|one| (one.id.clone(), one.into())).collect()
    }

    /// Returns the nodes of the network.
    pub fn nodes(&self) -> Vec<ListedNode> {
        let nodes = self.list.nodes.iter();
        nodes
            .map(|node| ListedNode {
                name: node.name.clone(),
                class: self.numbers.of_node(&node.name).unwrap_or(0),
                above: node.above.clone(),
                down_bps: node.rates[DOWN],
                up_bps: node.rates[UP],
            })
            .collect()
    }

    /// Returns what the sections of the configuration say.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns how this list differs from one before it.
    pub fn since(&self, before: &Subscribers) -> Difference {
        Difference::of(before.by_identifier(), self.by_identifier())
    }

    fn by_identifier(&self) -> impl Iterator<Item = (&str, &Subscriber)> {
        let subscribers = self.list.subscribers.iter();
        subscribers.map(|one| (one.id.as_str(), one))
    }

    /// Returns warnings for settings that are valid but probably not intended: guarantees that together
    /// exceed the line or a node, so that they can't be kept.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let name = self.source.name();
        if self.list.subscribers.is_empty() && self.settings.source != Source::Api {
            warnings.push(format!(
                "{name}: the list is empty: all packets are those of no subscriber, in class {OTHERS}"
            ));
        }
        for (side, direction) in ["down", "up"].into_iter().enumerate() {
            let mut of_nodes: BTreeMap<&str, u64> = BTreeMap::new();
            let mut all = 0u64;
            for one in &self.list.subscribers {
                let least = one.rates[side].least.unwrap_or(0);
                all = all.saturating_add(least);
                if let Some(node) = &one.node {
                    let sum = of_nodes.entry(node).or_default();
                    *sum = sum.saturating_add(least);
                }
            }
            let line = self.settings.line[side];
            if all > line {
                warnings.push(format!(
                    "{name}: {all} bit/s are guaranteed {direction} together, but the line has {line}: the \
                     guarantees can't all be kept"
                ));
            }
            let sum = |node: &Node| of_nodes.get(node.name.as_str()).copied().unwrap_or(0);
            let mut short: Vec<(u64, &Node)> = self.list.nodes.iter().map(|node| (sum(node), node)).collect();
            short.retain(|(sum, node)| *sum > node.rates[side]);
            short.sort_by_key(|(sum, node)| Reverse(sum - node.rates[side]));
            let worst: Vec<String> = short
                .iter()
                .take(WORST)
                .map(|(sum, node)| format!("`{}` has {} for {sum} bit/s", node.name, node.rates[side]))
                .collect();
            if !worst.is_empty() {
                let which = if short.len() > worst.len() {
                    "the worst: "
                } else {
                    ""
                };
                warnings.push(format!(
                    "{name}: {} nodes have less than what is guaranteed {direction} below them together, so \
                     that it can't all be kept; {which}{}",
                    short.len(),
                    worst.join(", ")
                ));
            }
        }
        warnings
    }
}

/// Returns a mistake that is no line's, but the list's.
fn at(source: &NamedSource<String>, span: Range<usize>, message: String, help: &str) -> FileError {
    let text = Text {
        name: source.name().to_owned(),
        content: source.inner().clone(),
    };
    let mut texts = Texts::new(&[text]);
    texts.report(0, Mistake::new(span, message, "refused", help));
    refused(texts)
}

/// Returns the mistakes as an error.
fn refused(texts: Texts) -> FileError {
    texts.unless_any(()).expect_err("a mistake was reported")
}

/// Reads documents, which messages call `name`.
fn read_entries<'e>(
    settings: &Settings,
    entries: impl Iterator<Item = &'e Entry>,
    name: &str,
) -> (Vec<Read>, Texts) {
    let mut lines = Lines::new(name);
    let written: Vec<Written> = entries.map(|entry| lines.add(entry)).collect();
    let mut texts = Texts::new(&[lines.text]);
    let read = written
        .into_iter()
        .filter_map(|one| check::subscriber(one, &settings.plans, &mut texts))
        .collect();
    (read, texts)
}

/// The lines of documents: each subscriber's has its values, so that a mistake is shown there.
struct Lines {
    text: Text,
}

impl Lines {
    fn new(name: &str) -> Lines {
        Lines {
            text: Text {
                name: name.to_owned(),
                content: String::new(),
            },
        }
    }

    fn add(&mut self, entry: &Entry) -> Written {
        let start = self.text.content.len();
        let values = [
            ("id", Some(&entry.id)),
            ("name", entry.name.as_ref()),
            ("down", entry.down.as_ref()),
            ("up", entry.up.as_ref()),
            ("down_min", entry.down_min.as_ref()),
            ("up_min", entry.up_min.as_ref()),
            ("plan", entry.plan.as_ref()),
        ];
        let mut written = Written {
            place: TextRange {
                text: 0,
                span: start..start,
            },
            values: Default::default(),
            prefixes: Vec::new(),
        };
        for (key, value) in values {
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                continue;
            };
            let raw = self.word(key, value);
            let index = file::KEYS.iter().position(|known| *known == key);
            written.values[index.expect("it is one of the keys")] = Some(raw);
        }
        written.prefixes = entry
            .prefixes
            .iter()
            .map(|prefix| self.word("prefix", prefix))
            .collect();
        written.place.span.end = self.text.content.len();
        self.text.content.push('\n');
        written
    }

    /// Adds `KEY=VALUE` to the line. Returns the value with its place.
    fn word(&mut self, key: &str, value: &str) -> Raw {
        self.text.content.push_str(key);
        self.text.content.push('=');
        let start = self.text.content.len();
        self.text.content.push_str(value);
        let raw = Raw::new(value, start..self.text.content.len());
        self.text.content.push(' ');
        raw
    }
}

/// Returns the place of the first subscriber that is not in the list as it is.
fn changed(read: &[Read], list: &List) -> Option<TextRange> {
    let known: BTreeMap<&str, &Subscriber> = list
        .subscribers
        .iter()
        .map(|known| (known.id.as_str(), known))
        .collect();
    let is_changed = |read: &&Read| {
        let new = &read.subscriber;
        known.get(new.id.as_str()).is_none_or(|known| {
            (&known.name, &known.prefixes, &known.own, &known.plan)
                != (&new.name, &new.prefixes, &new.own, &new.plan)
        })
    };
    read.iter().find(is_changed).map(|read| read.place.clone())
}
