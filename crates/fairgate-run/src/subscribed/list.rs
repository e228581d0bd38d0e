//! The list of a run, and the one that was read and does not run yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairgate::harmless::text as harmless;
use fairgate_config::Spec;
use fairgate_live::Plan;
use fairgate_run_api::{Difference, Mistake};

use crate::run::Owner;
use crate::subscribers::{Source, Subscribers as List, Text, now_s};

/// The names of the trees, down and up.
const QUEUES: [&str; 2] = ["down", "up"];

/// The subscribers whose trees run, and those that were read and do not run yet. Copies are the same.
#[derive(Clone, Debug, Default)]
pub struct RunningList(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    pages: Mutex<Pages>,
    /// Held for the whole of a change, so that there is one at a time.
    turn: Mutex<()>,
    /// Tells who waits for the end of limits that the list is another one.
    ending: Mutex<Ending>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Ending {
    /// Whether limits could not be ended the last time.
    has_failed: bool,
    has_ended: bool,
}

/// How long a wait for the end of limits lasts at most: the clock may be set meanwhile. And how long it lasts
/// at least, if they could not be ended.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct Pages {
    running: Option<Page>,
    read: Option<Page>,
}

/// A list.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) subscribers: Arc<List>,
    /// The directions of the run in which the trees `down` and `up` are.
    pub(super) sides: [usize; 2],
    /// How it differed from the list before it when it was last read or replaced as a whole.
    pub(super) difference: Option<Difference>,
}

impl Page {
    /// Returns the running plan, which has the trees of this list, with those of another one.
    pub(super) fn planned(&self, list: &List, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        for (tree, side) in self.sides.into_iter().enumerate() {
            plan.queues[side] = list.trees()[tree].clone();
            // Those of thousands of classes are not made again.
            if !list.has_names_of(&self.subscribers, tree) {
                plan.class_names[side] = list.names(tree).collect();
            }
        }
        plan
    }

    /// Returns a plan with the trees of this list, whatever it has.
    pub(super) fn put_back(&self, plan: &Plan) -> Plan {
        let mut plan = self.planned(&self.subscribers, plan);
        self.name_classes(&self.subscribers, &mut plan);
        plan
    }

    /// Says in a plan what the classes are called, for this list.
    fn name_classes(&self, list: &List, plan: &mut Plan) {
        for (tree, side) in self.sides.into_iter().enumerate() {
            plan.class_names[side] = list.names(tree).collect();
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
        let names = list.list().nodes.iter().map(|node| node.name.as_str());
        let is_of = |name: &&str| changed.is_some() && numbers.of_node(name) == changed;
        let node = names.into_iter().find(is_of);
        if let (Some(name), Some(class)) = (node, changed) {
            let name = harmless(name);
            return Mistake::new(
                format!("class {class} is node `{name}`: network.json decides about it"),
                format!(
                    "change network.json, or PATCH /v1/nodes/{name} with {{\"{tree}\": RATE}}; a change of \
                     the class would be undone by the next one of the list"
                ),
            );
        }
        let message = match (of, changed) {
            (Some(id), Some(class)) => format!(
                "class {class} is that of subscriber `{}`: the list decides about it",
                harmless(id)
            ),
            _ => format!("the tree `{tree}` is made from the list of subscribers"),
        };
        let help = match (of, &list.settings().source) {
            (None, Source::LibreQos { .. }) => {
                "change ShapedDevices.csv or network.json: the run takes it over".to_owned()
            }
            (Some(id), Source::File(_) | Source::LibreQos { .. }) => format!(
                "change the subscriber's line in the list, or PATCH /v1/subscribers/{} with \
                 {{\"{tree}\": RATE}}; a change of the class would be undone by the next one of the list",
                harmless(id)
            ),
            (Some(id), Source::Api) => format!(
                "PATCH /v1/subscribers/{} with {{\"{tree}\": RATE}}; a change of the class would be undone \
                 by the next one of the list",
                harmless(id)
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
fn changed_class(old: &Spec, new: &Spec) -> Option<u32> {
    let known: BTreeMap<u32, String> = described(new).collect();
    let mut classes = described(old);
    let changed = classes.find(|(class, text)| known.get(class) != Some(text));
    changed.map(|(class, _)| class)
}

/// Returns each class with a description that differs if the class does.
fn described(tree: &Spec) -> impl Iterator<Item = (u32, String)> {
    let classes = tree.classes().into_iter();
    classes.map(|class| (class.minor, format!("{class:?}")))
}

impl RunningList {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other change is made.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        self.0.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the list that runs, and forgets the one that was read last: another one is read.
    pub fn read_anew(&self) -> Option<Arc<List>> {
        let mut pages = self.pages();
        pages.read = None;
        pages.running.as_ref().map(|page| Arc::clone(&page.subscribers))
    }

    /// Notes a list that was read. Its trees `down` and `up` are in these directions of the run. Call
    /// [`keep`](RunningList::keep) when they run.
    pub fn note(&self, list: List, sides: [usize; 2]) {
        self.pages().read = Some(Page {
            subscribers: Arc::new(list),
            sides,
            difference: None,
        });
    }

    /// Says in the plan of a document what the classes of the list are called that was read for it.
    pub fn name_classes(&self, plan: &mut Plan) {
        if let Some(page) = &self.pages().read {
            page.name_classes(&page.subscribers, plan);
        }
    }

    /// Notes that the trees of the subscribers that were read last are running. Returns how the list differs
    /// from the one before it, if there was one.
    pub fn keep(&self) -> Option<Difference> {
        let mut pages = self.pages();
        let before = pages.running.take();
        pages.running = pages.read.take();
        let (before, page) = (before?, pages.running.as_mut()?);
        let difference = page.subscribers.since(&before.subscribers);
        page.difference = Some(difference);
        drop(pages);
        self.wake(|_| {});
        Some(difference)
    }

    /// Says why a change by hand of the tree of this direction is refused: the next change of the list would
    /// undo it.
    pub fn owner(&self) -> Owner {
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

    /// Returns whether the list that runs was read from these texts.
    pub fn is_of(&self, texts: &[Text]) -> bool {
        self.running()
            .is_some_and(|page| page.subscribers.texts() == texts)
    }

    /// Returns whether the run has subscribers.
    pub fn is_running(&self) -> bool {
        self.pages().running.is_some()
    }

    /// Notes that the trees of another list are running.
    pub(super) fn replace(&self, page: Page) {
        self.pages().running = Some(page);
        self.wake(|_| {});
    }

    /// Changes what the thread that ends limits looks at, and wakes it.
    fn wake(&self, change: impl FnOnce(&mut Ending)) {
        change(&mut self.0.ending.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.changed.notify_all();
    }

    /// Ends the wait for the end of limits.
    pub fn end(&self) {
        self.wake(|ending| ending.has_ended = true);
    }

    /// Notes whether limits could not be ended.
    pub(super) fn retry_limits(&self, has_failed: bool) {
        self.wake(|ending| ending.has_failed = has_failed);
    }

    /// Waits until a limit has to end. Returns false when the run ends.
    pub(super) fn waits_for_end_of_limits(&self) -> bool {
        let mut ending = self.0.ending.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if ending.has_ended {
                return false;
            }
            let end_s = self.running().and_then(|page| page.subscribers.next_end_s());
            let left = end_s.map(|end_s| Duration::from_secs(end_s.saturating_sub(now_s())));
            let wait = match (left, ending.has_failed) {
                (Some(Duration::ZERO), false) => return true,
                (Some(Duration::ZERO), true) => RETRY,
                (left, _) => left.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT),
            };
            let waited = self.0.changed.wait_timeout(ending, wait);
            let (awake, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            ending = awake;
            if waited.timed_out() {
                ending.has_failed = false;
            }
        }
    }

    /// Returns the list that was read last.
    pub fn last(&self) -> Option<Arc<List>> {
        let pages = self.pages();
        let last = pages.read.as_ref().or(pages.running.as_ref());
        last.map(|page| Arc::clone(&page.subscribers))
    }

    /// Returns warnings for the list.
    pub fn warnings(&self) -> Vec<String> {
        self.last().map(|last| last.warnings()).unwrap_or_default()
    }
}
