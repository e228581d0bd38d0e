//! A run with subscribers: their list, kept in step with its trees and with its files.

mod limits;
mod list;

pub use list::RunningList;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fairgate_config::{FileError, Registry};
use fairgate_run_api::{
    Answer, Ask, ChangeMade, Difference, Entry, Features, Mistake, NodePatch, Question, Recorder, Refused,
    SubscriberChange, SubscriberChanged, SubscriberDocument, SubscriberMade, SubscriberStatus, WhatIf,
    no_list, unknown,
};
use serde_json::{Map, Value};

use self::list::Page;
use crate::run::{Run, mistakes_of};
use crate::subscribers::{Changes, Edited, ListFiles, Source, Subscribers as List};

/// A run with a list of subscribers, if it has one. Copies are the same run.
#[derive(Clone)]
pub struct SubscribedRun {
    run: Run,
    list: RunningList,
    registry: Registry,
    files: Option<Arc<dyn ListFiles>>,
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
            files: None,
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

    /// Adds the files of the list, into which changes are written.
    #[must_use]
    pub fn with_files(self, files: impl ListFiles + 'static) -> SubscribedRun {
        SubscribedRun {
            files: Some(Arc::new(files)),
            ..self
        }
    }

    /// Says why a text of a list can't be changed, as far as that is known before.
    fn unchangeable(&self, list: &List, text: usize) -> Option<Mistake> {
        let not_written = |why: &str| {
            let help = "change the file of the list: the run takes it over";
            Some(Mistake::new(why, help))
        };
        match (&list.settings().source, &self.files) {
            (Source::Api, _) => None,
            _ if !list.settings().write => {
                not_written("the files of the list are not written: `write = false` in [subscribers]")
            }
            (_, None) => not_written("this run does not write the files of its list"),
            (_, Some(files)) => files.refusal(list, text),
        }
    }

    /// Changes the trees to those of another list, and its files. `difference` is that of many subscribers.
    fn take_over(
        &self,
        (who, what): (&str, &str),
        page: &Page,
        if_revision: Option<u64>,
        difference: Option<Difference>,
        edit: impl FnOnce(&List) -> Result<Edited, FileError>,
    ) -> Result<SubscriberMade, Refused> {
        let before = &page.subscribers;
        let (mut new, pending) = (None, Cell::new(None));
        let ChangeMade {
            revision,
            pause_us,
            dropped,
        } = self.run.replace(
            who,
            what,
            if_revision,
            |plan| {
                let Edited { list, texts } =
                    edit(before).map_err(|error| Refused::Mistakes(mistakes_of(&error)))?;
                if let Some(mistake) = texts.iter().find_map(|text| self.unchangeable(before, *text)) {
                    return Err(mistake.into());
                }
                if !texts.is_empty() {
                    let content = |text: usize| (text, list.texts()[text].content.as_str());
                    let changed: Vec<(usize, &str)> = texts.into_iter().map(content).collect();
                    let prepare = |files: &Arc<dyn ListFiles>| files.prepare(before, &changed, (who, what));
                    pending.set(self.files.as_ref().map(prepare).transpose()?);
                }
                let plan = page.planned(&list, plan);
                new = Some(list);
                Ok(plan)
            },
            || pending.take().map_or(Ok(()), |put| put()),
            |plan| page.put_back(plan),
        )?;
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

    /// Ends limits for a time when they have to end, until the run ends ([`RunningList::end`]).
    pub fn attend_limits(&self) {
        while self.list.waits_for_end_of_limits() {
            let _turn = self.list.turn();
            let Some(page) = self.list.running() else {
                continue;
            };
            let what = "limits for a time have ended";
            let made = self.take_over(("the run", what), &page, None, None, |list| {
                list.now(&self.registry)
            });
            self.list.retry_limits(made.is_err());
        }
    }

    fn all(&self) -> Result<SubscriberDocument, Refused> {
        let _turn = self.list.turn();
        let Page {
            subscribers: list,
            difference,
            ..
        } = self.list.running().ok_or_else(no_list)?;
        // Subscribers are in the first text.
        let unchangeable = self.unchangeable(&list, 0);
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
            is_changeable: unchangeable.is_none(),
            unchangeable,
        })
    }

    fn one(&self, id: &str) -> Result<SubscriberStatus, Refused> {
        let page = self.list.running().ok_or_else(no_list)?;
        let subscriber = page.subscribers.list().find(id).ok_or_else(|| unknown(id))?;
        let class = page.subscribers.numbers().of_subscriber(id);
        Ok(SubscriberStatus {
            class: class.ok_or_else(|| unknown(id))?,
            directions: page.sides,
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
        let known = page.subscribers.list().find(id).map(Entry::from);
        let method = change.method();
        let becomes = change.apply(id, known.as_ref(), if_version)?;
        let what = described_change(method, id, known.as_ref(), becomes.as_ref());
        let wanted = becomes.clone();
        let made = self.take_over((who, &what), &page, None, None, |list| {
            list.with(vec![(id.to_owned(), becomes)], &self.registry)
        })?;
        // As it is from now on: the list writes rates and prefixes in its own way.
        let now = self.one(id).ok().map(|found| found.subscriber);
        Ok(SubscriberChanged {
            made,
            is_new: known.is_none(),
            subscriber: now.or(wanted).or(known).unwrap_or_default(),
        })
    }

    /// Changes members of several subscribers: of all of them or of none.
    fn patch(
        &self,
        who: &str,
        patches: Vec<(String, Map<String, Value>)>,
        for_s: Option<u64>,
        if_revision: Option<u64>,
    ) -> Result<SubscriberMade, Refused> {
        let _turn = self.list.turn();
        let page = self.list.running().ok_or_else(no_list)?;
        let all = page.subscribers.list().subscribers.iter();
        let known: BTreeMap<&str, Entry> = all.map(|one| (one.id.as_str(), Entry::from(one))).collect();
        let missing = patches.iter().filter(|(id, _)| !known.contains_key(id.as_str()));
        let missing: Vec<Mistake> = missing
            .map(|(id, _)| Mistake::new(format!("there is no subscriber `{id}`"), "leave it out"))
            .collect();
        if !missing.is_empty() {
            return Err(Refused::Mistakes(missing));
        }
        let mut difference = Difference {
            count: known.len(),
            ..Difference::default()
        };
        if let Some(for_s) = for_s {
            let limits = limits::limits(patches, for_s)?;
            difference.changed = limits.len();
            let what = limits::described(&limits, for_s);
            return self.take_over((who, &what), &page, if_revision, Some(difference), |list| {
                list.with_limits(limits, &self.registry)
            });
        }
        let (mut changes, mut words) = (Changes::new(), Vec::new());
        for (id, members) in patches {
            let before = known.get(id.as_str());
            let becomes = SubscriberChange::Patch(members).apply(&id, before, None)?;
            difference.changed += usize::from(becomes.as_ref() != before);
            words.push(described_change("PATCH", &id, before, becomes.as_ref()));
            changes.push((id, becomes));
        }
        let what = words.join("; ");
        self.take_over((who, &what), &page, if_revision, Some(difference), |list| {
            list.with(changes, &self.registry)
        })
    }

    /// Changes the rates of a node of the network.
    fn change_node(
        &self,
        who: &str,
        name: &str,
        patch: &NodePatch,
        if_revision: Option<u64>,
    ) -> Result<SubscriberMade, Refused> {
        let _turn = self.list.turn();
        let page = self.list.running().ok_or_else(no_list)?;
        let nodes = &page.subscribers.list().nodes;
        let known = nodes.iter().find(|node| node.name == name).ok_or_else(|| {
            let help = match nodes.is_empty() {
                true => "only a list with `libreqos` in [subscribers] has nodes, those of network.json",
                false => "GET /v1/subscribers lists the nodes; one that is virtual shapes nothing",
            };
            Refused::missing(format!("there is no node `{name}`"), help)
        })?;
        let (mut rates, mut words) = ([None; 2], Vec::new());
        for (side, (key, given)) in [("down", &patch.down), ("up", &patch.up)].into_iter().enumerate() {
            let Some(text) = given else { continue };
            let bits = limits::rate(key, text)?;
            rates[side] = Some(bits);
            words.push(format!("{key} {} -> {bits}", known.rates[side]));
        }
        if words.is_empty() {
            return Err(Refused::Malformed("neither `down` nor `up` is given".to_owned()));
        }
        let what = format!("PATCH node {name}: {} bit/s", words.join(", "));
        self.take_over((who, &what), &page, if_revision, None, |list| {
            list.with_node(name, rates, &self.registry)
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
        let known = page.subscribers.entries();
        let difference = Difference::of(
            known.iter().map(|entry| (entry.id.as_str(), entry)),
            entries.iter().map(|entry| (entry.id.as_str(), entry)),
        );
        let what = format!("PUT subscribers: {difference}");
        self.take_over((who, &what), &page, if_revision, Some(difference), |list| {
            list.with_all(entries, confirmed_removed, &self.registry)
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
                Question::PatchSubscribers {
                    patches,
                    for_s,
                    if_revision,
                },
                _,
            ) => self.patch(who, patches, for_s, if_revision)?.into(),
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
            (
                Question::ChangeNode {
                    name,
                    patch,
                    if_revision,
                },
                _,
            ) => self.change_node(who, &name, &patch, if_revision)?.into(),
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
