//! A run with subscribers: their list, kept in step with its trees.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairgate::harmless::text as harmless;
use fairgate_config::{FileError, Registry, Spec};
use fairgate_live::Plan;
use fairgate_run_api::{
    Answer, Ask, ChangeMade, Difference, Entry, Features, Mistake, Question, Recorder, Refused,
    SubscriberChange, SubscriberChanged, SubscriberDocument, SubscriberMade, SubscriberStatus, WhatIf,
    no_list, unknown,
};
use serde_json::{Map, Value};

use crate::run::{Owner, Run};
use crate::subscribers::{Source, Subscribers as List};

/// The names of the trees, down and up.
const QUEUES: [&str; 2] = ["down", "up"];

/// A run with a list of subscribers, if it has one. Copies are the same run.
#[derive(Clone)]
pub struct SubscribedRun {
    run: Run,
    list: RunningList,
    registry: Registry,
    what_if: Option<Arc<WhatIfs>>,
}

type WhatIfs = dyn Fn(&Run, &WhatIf) -> Result<String, Refused> + Send + Sync;

impl SubscribedRun {
    /// Returns a run whose subscribers have the classes of `list`.
    pub fn new(run: Run, list: RunningList, registry: Registry) -> SubscribedRun {
        SubscribedRun {
            run,
            list,
            registry,
            what_if: None,
        }
    }

    /// Adds a function that compares disciplines with the last packets of the run, as a page of HTML.
    #[must_use]
    pub fn with_what_if(
        self,
        what_if: impl Fn(&Run, &WhatIf) -> Result<String, Refused> + Send + Sync + 'static,
    ) -> SubscribedRun {
        SubscribedRun {
            what_if: Some(Arc::new(what_if)),
            ..self
        }
    }

    /// Changes the trees to those of another list. `difference` is that of a list that was replaced as a
    /// whole.
    fn take_over(
        &self,
        who: &str,
        what: &str,
        page: &Page,
        if_revision: Option<u64>,
        difference: Option<Difference>,
        list: impl FnOnce() -> Result<Option<List>, FileError>,
    ) -> Result<SubscriberMade, Refused> {
        let mut new = None;
        let ChangeMade {
            revision,
            pause_us,
            dropped,
        } = self.run.replace(who, what, if_revision, |plan| {
            let mut plan = plan.clone();
            if let Some(list) = list()? {
                for (side, tree) in page.sides.into_iter().zip(list.trees()) {
                    plan.queues[side] = tree.clone();
                }
                page.name_classes(&list, &mut plan);
                new = Some(list);
            }
            Ok(plan)
        })?;
        if let Some(list) = new {
            self.list.replace(Page {
                subscribers: Arc::new(list),
                difference: difference.or(page.difference),
                ..page.clone()
            });
        }
        Ok(SubscriberMade {
            revision,
            pause_us,
            dropped,
            difference,
        })
    }

    fn all(&self) -> Result<SubscriberDocument, Refused> {
        let _turn = self.list.turn();
        let Page {
            subscribers: list,
            difference,
            ..
        } = self.list.running().ok_or_else(no_list)?;
        let ids = list.list().subscribers.iter().map(|one| one.id.clone());
        let classed = |id: String| {
            let class = list.numbers().of_subscriber(&id).unwrap_or(0);
            (id, class)
        };
        Ok(SubscriberDocument {
            revision: self.run.plan().revision,
            subscribers: list.entries(),
            classes: ids.map(classed).collect(),
            shaped: list.shaped(),
            nodes: list.nodes(),
            difference,
            is_changeable: list.is_changeable(),
        })
    }

    fn one(&self, id: &str) -> Result<SubscriberStatus, Refused> {
        let page = self.list.running().ok_or_else(no_list)?;
        let subscriber = page.subscribers.list().find(id).ok_or_else(|| unknown(id))?;
        let class = page.subscribers.numbers().of_subscriber(id);
        Ok(SubscriberStatus {
            class: class.ok_or_else(|| unknown(id))?,
            shaped: subscriber.into(),
            subscriber: Entry::from(subscriber),
        })
    }

    fn change(
        &self,
        who: &str,
        id: &str,
        change: SubscriberChange,
        if_version: Option<&[u64]>,
    ) -> Result<SubscriberChanged, Refused> {
        let _turn = self.list.turn();
        let page = self.list.running().ok_or_else(no_list)?;
        let list = Arc::clone(&page.subscribers);
        let known = list.list().find(id).map(Entry::from);
        let method = change.method();
        let becomes = change.apply(id, known.as_ref(), if_version)?;
        let what = described_change(method, id, known.as_ref(), becomes.as_ref());
        let wanted = becomes.clone();
        let made = self.take_over(who, &what, &page, None, None, || match becomes {
            Some(entry) => list.with(entry, &self.registry).map(Some),
            None => list.without(id, &self.registry),
        })?;
        // As it is from now on: the list writes rates and prefixes in its own way.
        let now = self.one(id).ok().map(|found| found.subscriber);
        Ok(SubscriberChanged {
            made,
            is_new: known.is_none(),
            subscriber: now.or(wanted).or(known).unwrap_or_default(),
        })
    }

    fn replace(
        &self,
        who: &str,
        entries: Vec<Entry>,
        confirmed_removed: Option<u64>,
        if_revision: Option<u64>,
    ) -> Result<SubscriberMade, Refused> {
        let _turn = self.list.turn();
        let page = self.list.running().ok_or_else(no_list)?;
        let list = Arc::clone(&page.subscribers);
        let known = list.entries();
        let difference = Difference::of(
            known.iter().map(|entry| (entry.id.as_str(), entry)),
            entries.iter().map(|entry| (entry.id.as_str(), entry)),
        );
        let what = format!("PUT subscribers: {difference}");
        self.take_over(who, &what, &page, if_revision, Some(difference), || {
            list.with_all(entries, confirmed_removed, &self.registry)
                .map(Some)
        })
    }
}

impl Ask for SubscribedRun {
    type Error = Refused;
    type Recording = Recorder;

    fn ask(&self, who: &str, question: Question) -> Result<Answer, Refused> {
        Ok(match (question, &self.what_if) {
            (Question::Features, _) => Features {
                subscribers: self.list.is_running(),
                packets: self.run.plan().packet_log.is_some(),
            }
            .into(),
            (Question::WhatIf(question), Some(what_if)) => what_if(&self.run, &question)?.into(),
            (Question::Subscribers, _) => self.all()?.into(),
            (Question::Subscriber { id }, _) => self.one(&id)?.into(),
            (
                Question::ChangeSubscriber {
                    id,
                    change,
                    if_version,
                },
                _,
            ) => self.change(who, &id, change, if_version.as_deref())?.into(),
            (
                Question::ReplaceSubscribers {
                    subscribers,
                    confirmed_removed,
                    if_revision,
                },
                _,
            ) => self
                .replace(who, subscribers, confirmed_removed, if_revision)?
                .into(),
            (question, _) => self.run.ask(who, question)?,
        })
    }

    fn record(&self, interval: Duration) -> Result<Recorder, Refused> {
        self.run.record(interval)
    }
}

/// Prints the name of the type only.
impl fmt::Debug for SubscribedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscribedRun").finish_non_exhaustive()
    }
}

/// The subscribers whose trees run, and those that were read and do not run yet. Copies are the same.
#[derive(Clone, Debug, Default)]
pub struct RunningList(Arc<Inner>);

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
struct Page {
    subscribers: Arc<List>,
    /// The directions of the run in which the trees `down` and `up` are.
    sides: [usize; 2],
    /// The list as the files have it. Clients of the API have changed what differs from it.
    of_files: Arc<List>,
    /// How it differed from the list before it when it was last read or replaced as a whole.
    difference: Option<Difference>,
}

/// What a reading of the files has done.
#[derive(Debug)]
pub struct Reading {
    /// How the list differs from the one that ran before.
    pub difference: Difference,
    /// The subscribers that clients of the API had changed otherwise.
    pub undone: Vec<String>,
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
            .map(|id| harmless(&format!("`{id}`")))
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
        let message = match (of, changed) {
            (Some(id), Some(class)) => format!(
                "class {class} is that of subscriber `{}`: the list decides about it",
                harmless(id)
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
        let subscribers = Arc::new(list);
        self.pages().read = Some(Page {
            of_files: Arc::clone(&subscribers),
            subscribers,
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

    /// Notes that the trees of the subscribers that were read last are running. Returns what has changed, if
    /// there was a list before.
    pub fn keep(&self) -> Option<Reading> {
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
    pub fn owner(&self) -> Owner {
        let book = self.clone();
        Owner::new(move |side, old, new| {
            let page = book.running()?;
            let place = page.sides.iter().position(|other| *other == side)?;
            (old != new).then(|| page.refusal(QUEUES[place], old, new))
        })
    }

    /// Returns the list that runs.
    fn running(&self) -> Option<Page> {
        self.pages().running.clone()
    }

    /// Returns whether the run has subscribers.
    pub fn is_running(&self) -> bool {
        self.pages().running.is_some()
    }

    /// Notes that the trees of another list are running.
    fn replace(&self, page: Page) {
        self.pages().running = Some(page);
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

/// Describes a change of a subscriber for the audit: each member as it was and as it is to be.
fn described_change(method: &str, id: &str, known: Option<&Entry>, made: Option<&Entry>) -> String {
    let members = |entry: Option<&Entry>| match entry.map(serde_json::to_value) {
        Some(Ok(Value::Object(members))) => members,
        _ => Map::new(),
    };
    let (old, new) = (members(known), members(made));
    let names: BTreeSet<&String> = old
        .keys()
        .chain(new.keys())
        .filter(|name| *name != "id")
        .collect();
    let shown = |value: Option<&Value>| value.map_or("none".to_owned(), Value::to_string);
    let changed = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
    let changed: Vec<String> = changed
        .map(|name| format!("{name} {} -> {}", shown(old.get(name)), shown(new.get(name))))
        .collect();
    let changed = match changed.is_empty() {
        true => "no change".to_owned(),
        false => changed.join(", "),
    };
    format!("{method} subscriber {id}: {changed}")
}
