//! Changes of a list, one subscriber or many at once. A list of files changes with its texts: it is what is
//! read from the new ones. So a run has what its files have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fairgate_config::{FileError, Registry};
use fairgate_run_api::Entry;

use super::{Lines, Subscribers, at, read_entries, refused};
use crate::subscribers::check;
use crate::subscribers::limits::{self, Limits};
use crate::subscribers::list::{Limit, Subscriber};
use crate::subscribers::rewrite::{self, Edit};
use crate::subscribers::section::Source;
use crate::subscribers::texts::{Mistake, Text, Texts};

/// What becomes of subscribers, by their identifiers: those with nothing are removed.
pub type Changes = Vec<(String, Option<Entry>)>;

/// What subscribers get for a time, by their identifiers: with nothing, they have the rates of the list.
pub type LimitChanges = Vec<(String, Option<Limit>)>;

/// A list after changes.
#[derive(Clone, Debug)]
pub struct Edited {
    /// The list.
    pub list: Subscribers,
    /// The numbers of the texts in [`Subscribers::texts`] that are other ones than before, or new ones.
    pub texts: Vec<usize>,
}

/// A list whose texts are as they were.
impl From<Subscribers> for Edited {
    fn from(list: Subscribers) -> Edited {
        Edited {
            list,
            texts: Vec::new(),
        }
    }
}

/// What messages call the documents of a client.
const REQUEST: &str = "the request";

impl Subscribers {
    /// Returns the list after these changes, all of them or none.
    ///
    /// # Errors
    /// If a document has a mistake, or if the texts can't hold the change.
    pub fn with(&self, changes: Changes, registry: &Registry) -> Result<Edited, FileError> {
        if self.settings.source == Source::Api {
            return Ok(self.with_entries(changes, registry)?.into());
        }
        let edits = self.edits(changes)?;
        let rewritten = rewrite::rewritten(&self.settings.source, &self.texts, &edits);
        let edited = self.of_texts(rewritten, registry)?;
        self.is_as_wanted(&edits, &edited.list)?;
        Ok(edited)
    }

    /// Returns the list after these changes of what subscribers get for a time. Limits that have ended are
    /// forgotten.
    ///
    /// # Errors
    /// If the discipline refuses a rate.
    pub fn with_limits(&self, changes: LimitChanges, registry: &Registry) -> Result<Edited, FileError> {
        let mut limits = self.limits.clone();
        for (id, limit) in changes {
            match limit {
                Some(limit) => drop(limits.insert(id, limit)),
                None => drop(limits.remove(&id)),
            }
        }
        let known: BTreeMap<&str, &Subscriber> = self.by_identifier().collect();
        limits.retain(|id, _| known.contains_key(id.as_str()));
        let settings = self.settings.clone();
        let mut texts = self.texts.to_vec();
        // Those of a folder have other names than the folder.
        let first = texts.first().map(|text| Path::new(&text.name));
        let is_folder = !matches!(&settings.source, Source::File(file) if first == Some(file));
        let Some(file) = settings.source.limits(is_folder) else {
            return Ok(self.of_request(self.entries(), limits, registry)?.into());
        };
        let content = limits::written(&limits, limits::now_s());
        let place = limits::place(&texts).unwrap_or(texts.len());
        match texts.get_mut(place) {
            Some(text) => text.content = content,
            None => texts.push(Text {
                name: file.display().to_string(),
                content,
            }),
        }
        let list = Subscribers::read_whole(settings, &texts, Some(self), registry)?;
        Ok(Edited {
            list,
            texts: vec![place],
        })
    }

    /// Returns the list after a node of the network has got other rates, down and up, bit/s. A name that no
    /// node has changes nothing.
    ///
    /// # Errors
    /// If a rate is too low, or if the discipline refuses it.
    pub fn with_node(
        &self,
        name: &str,
        rates: [Option<u64>; 2],
        registry: &Registry,
    ) -> Result<Edited, FileError> {
        // One that is virtual shapes nothing.
        if self.list.nodes.iter().all(|node| node.name != name) {
            return Ok(self.clone().into());
        }
        let edited = self.of_texts(rewrite::with_node(&self.texts, name, rates), registry)?;
        let found = edited.list.list.nodes.iter().find(|node| node.name == name);
        let has = |(given, rate): (Option<u64>, u64)| given.is_none_or(|given| given == rate);
        if found.is_none_or(|node| !rates.into_iter().zip(node.rates).all(has)) {
            let message = format!("the file can't say what node `{name}` is to be");
            return Err(at(&self.source, 0..0, message, "change it in network.json"));
        }
        Ok(edited)
    }

    /// Returns the list that is read from other texts.
    fn of_texts(
        &self,
        rewritten: Result<Vec<rewrite::Rewritten>, rewrite::Refused>,
        registry: &Registry,
    ) -> Result<Edited, FileError> {
        let rewritten = rewritten.map_err(|refused| self.wrong(refused))?;
        if rewritten.is_empty() {
            return Ok(self.clone().into());
        }
        let (mut texts, mut numbers) = (self.texts.to_vec(), Vec::new());
        for (number, content) in rewritten {
            texts[number].content = content;
            numbers.push(number);
        }
        let list = Subscribers::read_whole(self.settings.clone(), &texts, Some(self), registry)?;
        Ok(Edited { list, texts: numbers })
    }

    /// Shows a mistake in one of the texts.
    fn wrong(&self, (text, mistake): rewrite::Refused) -> FileError {
        let mut texts = Texts::new(&self.texts);
        texts.report(text, mistake);
        refused(texts)
    }

    /// Returns the same list as it is now: limits may have ended.
    ///
    /// # Errors
    /// If the discipline refuses a rate.
    pub fn now(&self, registry: &Registry) -> Result<Edited, FileError> {
        Ok(Subscribers::read_whole(self.settings.clone(), &self.texts, Some(self), registry)?.into())
    }

    /// Returns when the next limit ends that holds in this list, seconds since 1970.
    pub fn next_end_s(&self) -> Option<u64> {
        let limits = self.list.subscribers.iter().filter_map(|one| one.limit);
        limits.map(|limit| limit.until_s).min()
    }

    /// Returns another list with the same settings. It may remove `confirmed_removed` subscribers whatever
    /// their share is.
    ///
    /// # Errors
    /// As of [`Subscribers::with`], or if the list lacks more of those in this list than
    /// [`Settings::most_removed`](super::Settings::most_removed) allows.
    pub fn with_all(
        &self,
        entries: Vec<Entry>,
        confirmed_removed: Option<u64>,
        registry: &Registry,
    ) -> Result<Edited, FileError> {
        let Edited { list, texts } = match self.settings.source {
            // The order is that of the request.
            Source::Api => self.of_request(entries, self.limits.clone(), registry)?.into(),
            _ => {
                let named: BTreeSet<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
                let ids = self.list.subscribers.iter().map(|one| &one.id);
                let missing: Vec<String> = ids.filter(|id| !named.contains(id.as_str())).cloned().collect();
                let removed = missing.into_iter().map(|id| (id, None));
                let changes = entries.into_iter().map(|entry| (entry.id.clone(), Some(entry)));
                self.with(changes.chain(removed).collect(), registry)?
            }
        };
        let list = list.unless_cut_off(self, confirmed_removed, |removed| {
            format!(
                "if the list was cut off, send it again as a whole; if it is right, confirm it: send \
                 \"confirmed_removed\": {removed} beside \"subscribers\"; most_removed of the run changes \
                 the limit"
            )
        })?;
        Ok(Edited { list, texts })
    }

    /// Changes a list that has no file.
    fn with_entries(&self, changes: Changes, registry: &Registry) -> Result<Subscribers, FileError> {
        let mut entries: Vec<Option<Entry>> = self.entries().into_iter().map(Some).collect();
        let places = self.list.subscribers.iter().zip(0..);
        let mut places: BTreeMap<&str, usize> = places.map(|(one, at)| (one.id.as_str(), at)).collect();
        for (id, entry) in changes {
            // One that is named twice is added, and refused because it is there already.
            match places.remove(id.as_str()) {
                Some(place) => entries[place] = entry,
                None => entries.push(entry),
            }
        }
        self.of_request(
            entries.into_iter().flatten().collect(),
            self.limits.clone(),
            registry,
        )
    }

    /// Returns a list that has no file, of the documents of a client.
    fn of_request(
        &self,
        entries: Vec<Entry>,
        limits: Limits,
        registry: &Registry,
    ) -> Result<Subscribers, FileError> {
        Subscribers::of_entries(
            self.settings.clone(),
            entries,
            REQUEST,
            Some(self),
            limits,
            registry,
        )
    }

    /// Checks the documents of changes, and takes them as the list says them.
    fn edits(&self, changes: Changes) -> Result<Vec<Edit>, FileError> {
        let known: BTreeMap<&str, &Subscriber> = self.by_identifier().collect();
        let (ids, documents): (Vec<String>, Vec<Option<Entry>>) = changes.into_iter().unzip();
        let documents: Vec<Option<Entry>> = documents.into_iter().map(|entry| entry.map(trimmed)).collect();
        let given = documents.iter().flatten();
        let checked = match &self.settings.source {
            Source::LibreQos { .. } => circuits(given)?,
            _ => {
                let (read, mut texts) = read_entries(&self.settings, given, REQUEST);
                check::identifiers(&read, &mut texts);
                texts.unless_any(())?;
                read.iter().map(|read| Entry::from(&read.subscriber)).collect()
            }
        };
        // Each document was checked, in this order.
        let mut checked = checked.into_iter();
        let edit = |(id, document): (String, &Option<Entry>)| Edit {
            known: known.get(id.as_str()).map(|known| Entry::from(*known)),
            becomes: document.as_ref().and_then(|_| checked.next()),
            id,
        };
        Ok(ids.into_iter().zip(&documents).map(edit).collect())
    }

    /// Refuses texts that would be read otherwise than it was asked for. No text should do that.
    fn is_as_wanted(&self, edits: &[Edit], list: &Subscribers) -> Result<(), FileError> {
        let now: BTreeMap<&str, &Subscriber> = list.by_identifier().collect();
        let found = |edit: &Edit| now.get(edit.id.as_str()).map(|one| Entry::from(*one));
        let differs = |edit: &&Edit| found(edit).map(sorted) != edit.becomes.clone().map(sorted);
        match edits.iter().find(differs) {
            None => Ok(()),
            Some(edit) => {
                let message = format!("the file can't say what subscriber `{}` is to be", edit.id);
                let help = "write no white space around the identifier, and no address twice";
                Err(at(&self.source, 0..0, message, help))
            }
        }
    }
}

/// Returns a document without white space around its values: CSV has none.
fn trimmed(entry: Entry) -> Entry {
    let trim = |text: Option<String>| text.map(|text| text.trim().to_owned());
    Entry {
        id: entry.id,
        name: trim(entry.name),
        prefixes: entry.prefixes,
        down: trim(entry.down),
        up: trim(entry.up),
        down_min: trim(entry.down_min),
        up_min: trim(entry.up_min),
        plan: trim(entry.plan),
    }
}

/// Returns a document with its addresses in a fixed order: columns and devices have an order of their own.
fn sorted(mut entry: Entry) -> Entry {
    entry.prefixes.sort_unstable();
    entry
}

/// Checks documents of LibreQoS' circuits.
fn circuits<'e>(documents: impl Iterator<Item = &'e Entry>) -> Result<Vec<Entry>, FileError> {
    let documents: Vec<&Entry> = documents.collect();
    let mut lines = Lines::new(REQUEST);
    let places: Vec<_> = documents
        .iter()
        .map(|entry| lines.add(entry).place.span)
        .collect();
    let mut texts = Texts::new(&[lines.text]);
    let mut ids = BTreeSet::new();
    let mut checked = Vec::new();
    for (entry, span) in documents.into_iter().zip(places) {
        let twice = || {
            let message = format!("subscriber `{}` is given twice", entry.id);
            Mistake::new(0..0, message, "given before", "remove one of them")
        };
        let circuit = match ids.insert(&entry.id) {
            true => rewrite::checked_circuit(entry),
            false => Err(twice()),
        };
        match circuit {
            Ok(circuit) => checked.push(circuit),
            Err(mistake) => texts.report(0, Mistake { span, ..mistake }),
        }
    }
    texts.unless_any(checked)
}
