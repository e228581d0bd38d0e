//! A run in this process: its packets are forwarded by a [`Plane`], and here it is asked and changed. All who
//! ask are answered here, whatever transport they use.

mod changes;
mod owner;
mod reservations;
mod reserver;
mod unconfirmed;

pub use changes::mistakes_of;
pub use owner::Owner;
pub use reserver::Reserver;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fairgate_config::Registry;
use fairgate_live::{Plan, Plane};
use fairgate_run_api::{
    Answer, Ask, Audit, ChangeMade, Detail, Features, Mistake, OutlineDocument, PlaceDocument, QUEUE,
    Question, Recorder, Refused, Status, TreeStatus, TreesStatus, changeable, no_list, places,
};

use self::changes::Refusal;
use self::reserver::check_revision;

/// A run. Copies are the same run.
#[derive(Clone)]
pub struct Run(Arc<Shared>);

struct Shared {
    plane: Arc<dyn Plane>,
    reserver: Reserver,
    audit: Audit,
    owner: Owner,
}

impl Run {
    /// Returns a run whose packets are forwarded by `plane`. Changes may name the disciplines of `registry`.
    ///
    /// The trees may hold reservations from now on. So they are changed by this run and its
    /// [`Reserver`] only. `audit` is told of each change that is asked for.
    pub fn new(plane: Arc<dyn Plane>, registry: &Registry, audit: Audit, owner: Owner) -> Run {
        Run(Arc::new(Shared {
            reserver: Reserver::new(Arc::clone(&plane), registry.clone(), audit.clone()),
            plane,
            audit,
            owner,
        }))
    }

    /// Returns what changes the trees together with the reservations.
    pub fn reserver(&self) -> &Reserver {
        &self.0.reserver
    }

    /// Returns the configuration that is running.
    pub fn plan(&self) -> Arc<Plan> {
        self.0.plane.plan()
    }

    /// Changes to the trees of the plan that `new` makes from the running one, for `who`. `what` says in the
    /// audit what was asked for. If the trees have another revision than the expected one, nothing changes.
    /// When the trees run, `finish` does what belongs to the change outside of the run. If it fails, the
    /// trees are changed back to those of the plan that `old` makes.
    ///
    /// # Errors
    /// Says why nothing was changed.
    pub(crate) fn replace(
        &self,
        who: &str,
        what: &str,
        if_revision: Option<u64>,
        new: impl FnOnce(&Plan) -> Result<Plan, Refused>,
        finish: impl FnOnce() -> Result<(), Mistake>,
        old: impl FnOnce(&Plan) -> Plan,
    ) -> Result<ChangeMade, Refused> {
        let changed = self.reserver().reload(|plan| {
            check_revision(plan, if_revision)?;
            new(plan).map_err(Refusal)
        });
        let made = changes::made(changed).and_then(|made| match finish() {
            Ok(()) => Ok(made),
            Err(mistake) => Err(self.put_back(mistake, old)),
        });
        self.0.audit.note(who, what, changes::outcome(&made));
        made
    }

    /// Changes back to the trees before a change that could not be finished. Returns why not.
    fn put_back(&self, mistake: Mistake, old: impl FnOnce(&Plan) -> Plan) -> Refused {
        let back = self.reserver().reload(|plan| Ok::<Plan, Refusal>(old(plan)));
        let mut mistakes = vec![mistake];
        if let Err(refused) = changes::made(back) {
            let message =
                format!("the trees have the change all the same, and can't be changed back: {refused}");
            mistakes.push(Mistake::new(message, "have the list read again: fairgate reload"));
        }
        Refused::Mistakes(mistakes)
    }

    fn status(&self, detail: Detail) -> Result<Status, Refused> {
        let mut status = self.0.plane.status(detail)?;
        status.changes.unconfirmed_s = self.reserver().unconfirmed().map(|left| left.as_secs_f64());
        Ok(status)
    }

    fn trees(&self) -> TreesStatus {
        let plan = self.plan();
        let tree = |side: usize| TreeStatus {
            from: plan.ends[side].title().to_owned(),
            to: plan.ends[1 - side].title().to_owned(),
            name: plan.queue_names[side].clone(),
            queue: plan.queues[side].to_toml(QUEUE),
            names: plan.class_names[side].called(),
            workers: plan.classes_of_workers(side),
        };
        TreesStatus {
            revision: plan.revision,
            directions: vec![tree(0), tree(1)],
        }
    }

    /// Returns the direction from this interface.
    fn side_of(plan: &Plan, from: &str) -> Result<usize, Refused> {
        let ends = plan.ends.each_ref().map(|end| end.title());
        let side = ends.iter().position(|end| *end == from);
        side.ok_or_else(|| Refused::no_direction(from, ends))
    }

    fn outline(&self, from: String) -> Result<OutlineDocument, Refused> {
        let plan = self.plan();
        let side = Run::side_of(&plan, &from)?;
        let mut places = places(&plan.queues[side]);
        plan.class_names[side].add_to_outline(&mut places);
        Ok(OutlineDocument {
            revision: plan.revision,
            from,
            to: plan.ends[1 - side].title().to_owned(),
            places,
        })
    }

    fn place(&self, from: String, path: String) -> Result<PlaceDocument, Refused> {
        let plan = self.plan();
        let side = Run::side_of(&plan, &from)?;
        let changeable = changeable(&plan.queues[side], &path)
            .ok_or_else(|| Refused::missing(format!("there is no class `{path}` from {from}"), ""))?;
        Ok(PlaceDocument {
            revision: plan.revision,
            from,
            path,
            changeable,
        })
    }
}

impl Ask for Run {
    type Error = Refused;
    type Recording = Recorder;

    fn ask(&self, who: &str, question: Question) -> Result<Answer, Refused> {
        let plane = &self.0.plane;
        Ok(match question {
            Question::Status { detail } => self.status(detail)?.into(),
            Question::Revision => self.plan().revision.into(),
            Question::Features => Features {
                subscribers: false,
                packets: self.plan().packet_log.is_some(),
            }
            .into(),
            Question::Trees => self.trees().into(),
            Question::Outline { from } => self.outline(from)?.into(),
            Question::Place { from, path } => self.place(from, path)?.into(),
            Question::Change(change) => self.change(who, &change)?.into(),
            Question::Confirm => self.confirm(who)?.into(),
            Question::Reload { because } => self.0.owner.reload(who, because)?.into(),
            Question::Reserve(order) => self.reserve(who, order)?.into(),
            Question::Flows { order, limit } => plane.flows(order, limit as usize)?.into(),
            Question::Packets { last, from } => plane.last_packets(last, from.as_deref())?.into(),
            Question::WhatIf(_) => {
                let message = "disciplines are compared by the API of a run only";
                return Err(Refused::missing(message, "start the run with `api` in [run]"));
            }
            Question::Subscribers
            | Question::Subscriber { .. }
            | Question::ChangeSubscriber { .. }
            | Question::PatchSubscribers { .. }
            | Question::ReplaceSubscribers { .. }
            | Question::ChangeNode { .. } => return Err(no_list()),
        })
    }

    fn record(&self, _interval: Duration) -> Result<Recorder, Refused> {
        Ok(self.0.plane.record())
    }
}

/// Prints the name of the type only.
impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}
