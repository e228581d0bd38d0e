//! The subscribers of a run, kept in step with its trees.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairgate_config::{Document, Registry, Spec};
use fairgate_live::Plan;
use fairgate_live::status::Owner;
use fairgate_live::status::protocol::Mistake;
use fairgate_subscribers::{Difference, Source, Subscribers};

use super::{QUEUES, added_to, files, names, sides};
use crate::failure::Failure;
use crate::input::Texts;
use crate::output;

/// The subscribers whose trees run, and those that were read and do not run yet. Copies are the same book.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    pages: Mutex<Pages>,
    /// Held for the whole of a change, so that there is one at a time.
    turn: Mutex<()>,
}

#[derive(Debug, Default)]
struct Pages {
    running: Option<Page>,
    read: Option<Page>,
}

/// A list.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) subscribers: Arc<Subscribers>,
    /// The directions of the run in which the trees `down` and `up` are.
    pub(super) sides: [usize; 2],
    /// The list as the files have it. Clients of the API have changed what differs from it.
    pub(super) of_files: Arc<Subscribers>,
    /// How it differed from the list before it when it was last read or replaced as a whole.
    pub(super) difference: Option<Difference>,
}

/// What a reading of the files has done.
pub(crate) struct Reading {
    pub(crate) difference: Difference,
    /// The subscribers that clients of the API had changed otherwise.
    pub(crate) undone: Vec<String>,
}

/// How many subscribers a message names.
const NAMED: usize = 3;

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.difference)?;
        if self.undone.is_empty() {
            return Ok(());
        }
        let more = if self.undone.len() > NAMED { ", ..." } else { "" };
        let named: Vec<String> = self
            .undone
            .iter()
            .take(NAMED)
            .map(|id| output::harmless(&format!("`{id}`")))
            .collect();
        write!(
            f,
            "; undone: what the API had changed of {} subscribers, {}{more}",
            self.undone.len(),
            named.join(", ")
        )
    }
}

impl Page {
    /// Says in a plan whose the classes are, for this list.
    pub(super) fn name_classes(&self, list: &Subscribers, plan: &mut Plan) {
        let names = names(list);
        for side in self.sides {
            plan.subscribers[side] = names.clone();
        }
    }

    fn refusal(&self, tree: &str, old: &Spec, new: &Spec) -> Mistake {
        let list = &self.subscribers;
        let numbers = list.numbers();
        let changed = changed_class(old, new);
        let is_changed = |id: &&str| changed.is_some() && numbers.of_subscriber(id) == changed;
        let of = list
            .list()
            .subscribers
            .iter()
            .map(|one| one.id.as_str())
            .find(is_changed);
        let message = match (of, changed) {
            (Some(id), Some(class)) => format!(
                "class {class} is that of subscriber `{}`: the list decides about it",
                output::harmless(id)
            ),
            _ => format!("the tree `{tree}` is made from the list of subscribers"),
        };
        let help = match (of, &list.settings().source) {
            (_, Source::LibreQos { .. }) => {
                "change ShapedDevices.csv or network.json: the run takes it over".to_owned()
            }
            (Some(id), Source::File(_)) => format!(
                "change the subscriber's line in the list, or PATCH /v1/subscribers/{} with \
                 {{\"{tree}\": RATE}}; a change of the class would be undone by the next one of the list",
                output::harmless(id)
            ),
            (Some(id), Source::Api) => format!(
                "PATCH /v1/subscribers/{} with {{\"{tree}\": RATE}}; a change of the class would be undone \
                 by the next one of the list",
                output::harmless(id)
            ),
            (None, _) => "change [subscribers] or the list and send SIGHUP; a change of the tree would be \
                 undone by the next one of the list"
                .to_owned(),
        };
        Mistake {
            place: None,
            message,
            help,
        }
    }
}

/// Returns the first class that differs between two trees.
fn changed_class(old: &Spec, new: &Spec) -> Option<u16> {
    let known: BTreeMap<u16, String> = described(new).collect();
    let mut classes = described(old);
    let changed = classes.find(|(class, text)| known.get(class) != Some(text));
    changed.map(|(class, _)| class)
}

/// Returns each class with a description that differs if the class does.
fn described(tree: &Spec) -> impl Iterator<Item = (u16, String)> {
    let classes = tree.classes().into_iter();
    classes.map(|class| (class.minor, format!("{class:?}")))
}

impl Book {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other change is made.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.0.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the subscribers of a document and adds their trees to it. Call [`keep`](Book::keep) when these
    /// run.
    pub(crate) fn add_to(
        &self,
        document: Document,
        registry: &Registry,
        texts: &Texts,
    ) -> Result<Document, Failure> {
        let before = {
            let mut pages = self.pages();
            pages.read = None;
            pages.running.clone()
        };
        let before = before.as_ref().map(|page| &*page.subscribers);
        let sides = sides(&document)?;
        let (document, read) = added_to(document, before, registry, texts)?;
        self.pages().read = read.map(|subscribers| {
            let subscribers = Arc::new(subscribers);
            Page {
                of_files: Arc::clone(&subscribers),
                subscribers,
                sides,
                difference: None,
            }
        });
        Ok(document)
    }

    /// Says in the plan of a document whose the classes of the list are that was read for it.
    pub(crate) fn name_classes(&self, plan: &mut Plan) {
        if let Some(page) = &self.pages().read {
            page.name_classes(&page.subscribers, plan);
        }
    }

    /// Notes that the trees of the subscribers that were read last are running. Returns what has changed, if
    /// there was a list before.
    pub(crate) fn keep(&self) -> Option<Reading> {
        let mut pages = self.pages();
        let before = pages.running.take();
        pages.running = pages.read.take();
        let (before, page) = (before?, pages.running.as_mut()?);
        let (ran, now) = (&before.subscribers, &page.subscribers);
        let of_api = ran.differing(&before.of_files);
        let replaced = now.differing(ran);
        let difference = now.since(ran);
        page.difference = Some(difference);
        Some(Reading {
            difference,
            undone: of_api
                .intersection(&replaced)
                .map(|id| (*id).to_owned())
                .collect(),
        })
    }

    /// Says why a change by hand of the tree of this direction is refused: the next change of the list would
    /// undo it.
    pub(crate) fn owner(&self) -> Owner {
        let book = self.clone();
        Owner::new(move |side, old, new| {
            let page = book.running()?;
            let place = page.sides.iter().position(|other| *other == side)?;
            (old != new).then(|| page.refusal(QUEUES[place], old, new))
        })
    }

    /// Returns the list that runs.
    pub(super) fn running(&self) -> Option<Page> {
        self.pages().running.clone()
    }

    /// Returns whether the run has subscribers.
    pub(crate) fn is_running(&self) -> bool {
        self.pages().running.is_some()
    }

    /// Notes that the trees of another list are running.
    pub(super) fn replace(&self, page: Page) {
        self.pages().running = Some(page);
    }

    /// Returns the list that was read last.
    fn last(&self) -> Option<Arc<Subscribers>> {
        let pages = self.pages();
        let last = pages.read.as_ref().or(pages.running.as_ref());
        last.map(|page| Arc::clone(&page.subscribers))
    }

    /// Returns the files and folders that the list was read from.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let last = self.last();
        last.map(|last| files::paths(&last.settings().source))
            .unwrap_or_default()
    }

    /// Returns the files whose changes are taken over by themselves.
    pub(super) fn watched(&self) -> Option<Source> {
        let last = self.last()?;
        last.settings().watch.then(|| last.settings().source.clone())
    }

    /// Returns warnings for the list.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.last().map(|last| last.warnings()).unwrap_or_default()
    }
}
