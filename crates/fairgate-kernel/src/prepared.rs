//! Trees that are ready to run, made before the qdisc is locked.

use alloc::boxed::Box;
use core::fmt;

use fairgate::change::{Change, Replaced};
use fairgate::registry::Tables;
use fairgate::registry::tree::build;
use fairgate::{Discipline, Needs};

use crate::classes::Parents;
use crate::form::{Refused, refused};
use crate::tree::{Plan, Reads};

/// What refused changes need instead.
const REMEDY: &str = "replace the qdisc under another handle";

/// A plan, and what was made of it. Once a queue runs it, it is what the next change is planned from.
pub struct Prepared {
    plan: Box<Plan>,
    /// What is kept of each packet while it is queued.
    needs: Needs,
    manner: Manner,
    parents: Parents,
    made: Made,
}

/// How a queue runs a tree. It is found before the queue is locked, because all of the tree is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Whether merged packets are cut before they are enqueued.
    pub(crate) cuts: bool,
    pub(crate) reads: Reads,
    /// The largest number of classes that a discipline has.
    pub(crate) widest: usize,
}

impl Manner {
    fn of(plan: &Plan) -> Manner {
        Manner {
            cuts: plan.cuts,
            reads: plan.tree.reads(),
            widest: plan.tree.widest(),
        }
    }
}

/// What was made of a plan. Some parts of it are empty after the queue runs it.
enum Made {
    /// The tree, for a new queue.
    Tree(Box<dyn Discipline>),
    /// The steps from the running tree to this one.
    Change(Change),
    /// What the change has replaced.
    Replaced {
        _replaced: Replaced,
    },
    Nothing,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Prepared").field(&self.plan).finish()
    }
}

impl Prepared {
    /// Builds the tree of a plan, for a new queue.
    ///
    /// # Errors
    /// If a discipline refuses its settings.
    pub fn new(plan: impl Into<Box<Plan>>, seed: u64) -> Result<Box<Prepared>, Refused> {
        let plan = plan.into();
        let tree = build(&plan.tree, seed, Tables::Now)?;
        Ok(Prepared::of(plan, tree.needs(), Made::Tree(tree)))
    }

    // Not inlined: where a tree is built, the stack has nothing of this.
    #[inline(never)]
    fn of(plan: Box<Plan>, needs: Needs, made: Made) -> Box<Prepared> {
        Box::new(Prepared {
            needs,
            manner: Manner::of(&plan),
            parents: Parents::of(&plan.tree),
            made,
            plan,
        })
    }

    /// Prepares the change from this plan, which a queue runs, to `plan`. What `plan` needs for each packet
    /// can't be allocated while packets are queued.
    ///
    /// # Errors
    /// Says what is wrong, or what to do instead. Nothing has changed.
    pub fn change_to(&self, plan: impl Into<Box<Plan>>, seed: u64) -> Result<Box<Prepared>, Refused> {
        let plan = plan.into();
        if plan.slots != self.plan.slots {
            return refused(format!("slots stay at {}: {REMEDY}", self.plan.slots));
        }
        let change = Change::plan(&self.plan.tree, &plan.tree, seed, Tables::Now);
        let change = change.map_err(|error| match build(&plan.tree, seed, Tables::Now) {
            // This knows which discipline it is.
            Err(error) => Refused::from(error),
            Ok(_) => Refused::new(format!("{error}")),
        })?;
        let needs = change.needs();
        if needs.acknowledgements && !self.needs.acknowledgements {
            return refused(format!("the running tree keeps no ACKs: {REMEDY}"));
        }
        if needs.bytes && !self.needs.bytes {
            return refused(format!("the running tree keeps no header bytes: {REMEDY}"));
        }
        Ok(Prepared::of(plan, self.needs | needs, Made::Change(change)))
    }

    /// Returns the number of slots.
    pub(crate) fn slots(&self) -> u32 {
        self.plan.slots
    }

    pub(crate) fn manner(&self) -> Manner {
        self.manner
    }

    /// Returns which class is above which.
    pub fn parents(&self) -> &Parents {
        &self.parents
    }

    /// Takes the tree, for a new queue.
    ///
    /// # Panics
    /// If it was taken before, or if this is a change.
    pub(crate) fn take_tree(&mut self) -> Box<dyn Discipline> {
        match core::mem::replace(&mut self.made, Made::Nothing) {
            Made::Tree(tree) => tree,
            _ => panic!("a queue begins with a tree that was built for it"),
        }
    }

    /// Takes the change of the running tree.
    ///
    /// # Panics
    /// If it was taken before, or if this is no change.
    pub(crate) fn take_change(&mut self) -> Change {
        match core::mem::replace(&mut self.made, Made::Nothing) {
            Made::Change(change) => change,
            _ => panic!("a running tree is changed by what was planned for it"),
        }
    }

    /// Keeps what a change has replaced until [`settle`](Prepared::settle).
    pub(crate) fn keep(&mut self, replaced: Replaced) {
        self.made = Made::Replaced { _replaced: replaced };
    }

    /// Releases what a change has replaced, where nobody waits.
    pub fn settle(&mut self) {
        self.made = Made::Nothing;
    }
}
