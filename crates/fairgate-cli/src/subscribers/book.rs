//! The subscribers of a run, kept in step with its trees.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairgate_config::{Document, Registry};
use fairgate_subscribers::{Source, Subscribers};

use super::{added_to, files, sides};
use crate::failure::Failure;

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
    pub(crate) fn add_to(&self, document: Document, registry: &Registry) -> Result<Document, Failure> {
        let before = {
            let mut pages = self.pages();
            pages.read = None;
            pages.running.clone()
        };
        let before = before.as_ref().map(|page| &*page.subscribers);
        let sides = sides(&document)?;
        let (document, read) = added_to(document, before, registry)?;
        self.pages().read = read.map(|subscribers| Page {
            subscribers: Arc::new(subscribers),
            sides,
        });
        Ok(document)
    }

    /// Notes that the trees of the subscribers that were read last are running.
    pub(crate) fn keep(&self) {
        let mut pages = self.pages();
        pages.running = pages.read.take();
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
