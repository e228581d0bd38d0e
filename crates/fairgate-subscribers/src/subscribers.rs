//! The subscribers of a run: the list, the numbers of their classes, and the trees.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairgate_config::{FileError, Registry, Spec};
use miette::NamedSource;

use crate::Entry;
use crate::check::{self, Read};
use crate::fields::Raw;
use crate::file::{self, Written};
use crate::libreqos;
use crate::list::{List, Subscriber};
use crate::numbers::{MOST, Numbers, TooMany};
use crate::section::{Settings, Source};
use crate::texts::{Mistake, Place, Text, Texts};
use crate::trees::{self, Refused};

/// A checked list with the trees that it gives.
#[derive(Clone, Debug)]
pub struct Subscribers {
    settings: Settings,
    list: List,
    numbers: Numbers,
    trees: [Spec; 2],
    source: Arc<NamedSource<String>>,
}

impl Subscribers {
    /// Reads a list. The texts are all files of [`Source::File`], or the two of [`Source::LibreQos`], devices
    /// first. Without a file the list is that of `before`. Who was in the list before keeps its class.
    ///
    /// # Errors
    /// If a text has a mistake. All mistakes are reported.
    pub fn read(
        settings: Settings,
        texts: &[Text],
        before: Option<&Subscribers>,
        registry: &Registry,
    ) -> Result<Subscribers, FileError> {
        let mut known = Texts::new(texts);
        let mut list = List::default();
        let mut read = Vec::new();
        match (&settings.source, texts) {
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
                for (number, text) in texts.iter().enumerate() {
                    let written = file::read(number, &text.name, &text.content, &mut known);
                    let checked = written.into_iter();
                    read.extend(
                        checked.filter_map(|one| check::subscriber(one, &settings.plans, &mut known)),
                    );
                }
            }
            (Source::Api, _) => {
                let entries = before.map(Subscribers::entries).unwrap_or_default();
                return Subscribers::of_entries(settings, entries, "the subscribers", before, registry);
            }
        }
        Subscribers::checked(settings, list, read, known, before, registry)
    }

    /// Takes a list of documents, which messages call `name`.
    fn of_entries(
        settings: Settings,
        entries: Vec<Entry>,
        name: &str,
        before: Option<&Subscribers>,
        registry: &Registry,
    ) -> Result<Subscribers, FileError> {
        let mut lines = Lines::new(name);
        let written: Vec<Written> = entries.iter().map(|entry| lines.add(entry)).collect();
        let mut known = Texts::new(&[lines.text]);
        let read = written
            .into_iter()
            .filter_map(|one| check::subscriber(one, &settings.plans, &mut known))
            .collect();
        Subscribers::checked(settings, List::default(), read, known, before, registry)
    }

    fn checked(
        settings: Settings,
        mut list: List,
        read: Vec<Read>,
        mut texts: Texts,
        before: Option<&Subscribers>,
        registry: &Registry,
    ) -> Result<Subscribers, FileError> {
        check::identifiers(&read, &mut texts);
        let known = before.map(|before| &before.list);
        check::prefixes_are_apart(&read, known, &mut texts);
        let unnamed = || Arc::new(NamedSource::new("the subscribers", String::new()));
        let source = texts.source(0).unwrap_or_else(unnamed);
        // What is wrong with the whole is shown where it was changed.
        let changed = known.and_then(|list| changed(&read, list));
        let changed = changed.unwrap_or(Place { text: 0, span: 0..0 });
        let changed_source = texts.source(changed.text).unwrap_or_else(|| Arc::clone(&source));
        let has_mistakes = texts.count() > 0;
        list.subscribers = read.into_iter().map(|read| read.subscriber).collect();
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
        match trees::trees(&settings, &list, &numbers, &source, registry) {
            Ok(trees) => Ok(Subscribers {
                settings,
                list,
                numbers,
                trees,
                source,
            }),
            Err(Refused::Leaf(error)) => Err(error),
            Err(Refused::Tree(error)) => {
                let message = format!("the tree of the subscribers is refused: {error}");
                let help = "correct the rates that it names in the list or in [subscribers]";
                let text = Text {
                    name: changed_source.name().to_owned(),
                    content: changed_source.inner().clone(),
                };
                let mut texts = Texts::new(&[text]);
                texts.report(0, Mistake::new(changed.span, message, "refused", help));
                Err(refused(texts))
            }
        }
    }

    /// Returns the list with a subscriber added, or in the place of the one with its identifier.
    ///
    /// # Errors
    /// If the document has a mistake, or if the list does not belong to the API and the program.
    pub fn with(&self, entry: Entry, registry: &Registry) -> Result<Subscribers, FileError> {
        let mut entries = self.entries_of_its_own(&entry.id)?;
        match entries.iter_mut().find(|known| known.id == entry.id) {
            Some(known) => *known = entry,
            None => entries.push(entry),
        }
        self.changed(entries, registry)
    }

    /// Returns the list without a subscriber. `None` if there is no such one.
    ///
    /// # Errors
    /// If the list is LibreQoS'.
    pub fn without(&self, id: &str, registry: &Registry) -> Result<Option<Subscribers>, FileError> {
        let mut entries = self.entries_of_its_own(id)?;
        let before = entries.len();
        entries.retain(|entry| entry.id != id);
        match entries.len() < before {
            true => self.changed(entries, registry).map(Some),
            false => Ok(None),
        }
    }

    /// Returns another list with the same settings.
    ///
    /// # Errors
    /// If a document has a mistake, or if the list is LibreQoS'.
    pub fn with_all(&self, entries: Vec<Entry>, registry: &Registry) -> Result<Subscribers, FileError> {
        self.entries_of_its_own("")?;
        self.changed(entries, registry)
    }

    fn changed(&self, entries: Vec<Entry>, registry: &Registry) -> Result<Subscribers, FileError> {
        Subscribers::of_entries(self.settings.clone(), entries, "the list", Some(self), registry)
    }

    /// Returns the documents of a list that may be changed one by one.
    fn entries_of_its_own(&self, id: &str) -> Result<Vec<Entry>, FileError> {
        match self.settings.source {
            Source::LibreQos { .. } => {
                let mut texts = Texts::new(&[Text {
                    name: "the list".to_owned(),
                    content: id.to_owned(),
                }]);
                let message = "the subscribers of LibreQoS' files are changed there";
                let help = "change ShapedDevices.csv; the run takes it over";
                texts.report(0, Mistake::new(0..id.len(), message, "not here", help));
                Err(refused(texts))
            }
            Source::File(_) | Source::Api => Ok(self.entries()),
        }
    }

    /// Returns the documents of all subscribers, in the order of the list.
    pub fn entries(&self) -> Vec<Entry> {
        self.list.subscribers.iter().map(Entry::of).collect()
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

    /// Returns what the sections of the configuration say.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns warnings for settings that are valid but probably not intended: guarantees that together
    /// exceed the line or a node, so that they can't be kept.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (side, direction) in ["down", "up"].into_iter().enumerate() {
            let guaranteed = |node: Option<&str>| -> u64 {
                let of_node = self.list.subscribers.iter();
                let of_node = of_node.filter(|one| node.is_none() || one.node.as_deref() == node);
                of_node.filter_map(|one| one.rates[side].least).sum()
            };
            let mut check = |what: String, sum: u64, rate: u64| {
                if sum > rate {
                    warnings.push(format!(
                        "{}: {sum} bit/s are guaranteed {direction} together, but {what} has {rate}: the \
                         guarantees can't all be kept",
                        self.source.name()
                    ));
                }
            };
            check("the line".to_owned(), guaranteed(None), self.settings.line[side]);
            for node in &self.list.nodes {
                check(
                    format!("`{}`", node.name),
                    guaranteed(Some(&node.name)),
                    node.rates[side],
                );
            }
        }
        warnings
    }
}

/// Returns the mistakes as an error.
fn refused(texts: Texts) -> FileError {
    texts.unless_any(()).expect_err("a mistake was reported")
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
            place: Place {
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
fn changed(read: &[Read], list: &List) -> Option<Place> {
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
