//! Reads all disciplines of a tree, in steps that packets pass between.

use alloc::vec::Vec;

use super::{Class, ClassState, Discipline};
use crate::class_reading::ClassReading;
use crate::classify::{Holder, Tenant};
use crate::stats::Statistics;

/// How many classes are looked for at once: to find the place of the first may take a look at all before it.
const CLASSES: usize = 64;

/// How many states of classes are read between two questions whether a step is over.
const STATES: usize = 16;

/// A discipline of a tree, as a [`Walk`] finds it.
#[derive(Debug)]
pub struct Found<'a> {
    /// The number of disciplines above it.
    pub depth: usize,
    /// The class of the one above that it serves. `None` for the root.
    pub class: Option<u32>,
    /// The host that has this class, if classes are assigned to hosts.
    pub host: Option<Tenant<'a>>,
    /// Its statistics: those of the host, if there is one.
    pub statistics: &'a Statistics,
    /// The discipline.
    pub discipline: &'a dyn Discipline,
}

/// Whoever reads a tree.
pub trait Visitor {
    /// Takes a discipline, before its classes and what is in them.
    fn discipline(&mut self, found: &Found<'_>);

    /// Takes the state of a class of the discipline that was found last.
    fn class(&mut self, state: &ClassState<'_>);

    /// Whether the step is over.
    fn is_over(&mut self) -> bool;
}

/// The progress of a reading. Between the steps packets may be enqueued and dequeued, but classes must not
/// change. Classes that are reserved for hosts and not assigned are left out.
#[derive(Debug, Default)]
pub struct Walk {
    /// The disciplines that are being read, from the root on.
    open: Vec<Open>,
    /// The progress within the classes of the last of them.
    classes: ClassReading,
    has_begun: bool,
}

/// A discipline that is being read.
#[derive(Debug, Default)]
struct Open {
    has_read_classes: bool,
    /// The place of the class whose discipline is read next.
    next: usize,
}

impl Walk {
    /// Returns a walk that allocates nothing in trees of at most `depth` disciplines inside one another, of
    /// which none has more than `classes` classes.
    pub fn with_room(depth: usize, classes: usize) -> Walk {
        Walk {
            open: Vec::with_capacity(depth),
            classes: ClassReading::with_room(classes),
            has_begun: false,
        }
    }

    /// Reads more of a tree until the step is over. Returns true if everything is read.
    pub fn go_on(&mut self, root: &dyn Discipline, visitor: &mut dyn Visitor) -> bool {
        if self.open.is_empty() {
            if self.has_begun {
                return true;
            }
            self.has_begun = true;
            self.enter(root, None, None, &root.statistics(), visitor);
        }
        let is_whole = self.read(root, 0, visitor);
        if is_whole {
            self.open.clear();
        }
        is_whole
    }

    /// Goes on with an open discipline. Returns true if it is read with all that it holds.
    fn read(&mut self, discipline: &dyn Discipline, depth: usize, visitor: &mut dyn Visitor) -> bool {
        while !self.open[depth].has_read_classes {
            let mut add = |state: ClassState<'_>| visitor.class(&state);
            let is_more = discipline.read_class_states(&mut self.classes, STATES, &mut add);
            self.open[depth].has_read_classes = !is_more;
            if visitor.is_over() {
                return false;
            }
        }
        loop {
            let first = self.open[depth].next;
            let (mut done, mut is_paused) = (0, false);
            discipline.visit_classes_at(first..first + CLASSES, &mut |class| {
                if is_paused {
                    return;
                }
                let is_open = self.open.len() > depth + 1 || self.enter_class(&class, visitor);
                if is_open && !self.read(class.discipline, depth + 1, visitor) {
                    is_paused = true;
                    return;
                }
                self.open.truncate(depth + 1);
                done += 1;
                is_paused = visitor.is_over();
            });
            self.open[depth].next += done;
            if is_paused {
                return false;
            }
            if done == 0 {
                return true;
            }
        }
    }

    /// Opens the discipline of a class. Returns false if the class is reserved for hosts, but not assigned.
    fn enter_class(&mut self, class: &Class<'_>, visitor: &mut dyn Visitor) -> bool {
        let statistics = class.discipline.statistics();
        let (host, statistics) = match class.holder {
            Holder::Anyone => (None, statistics),
            Holder::Free => return false,
            Holder::Host(tenant) => (Some(tenant), tenant.statistics(&statistics)),
        };
        self.enter(class.discipline, Some(class.minor), host, &statistics, visitor);
        true
    }

    fn enter(
        &mut self,
        discipline: &dyn Discipline,
        class: Option<u32>,
        host: Option<Tenant<'_>>,
        statistics: &Statistics,
        visitor: &mut dyn Visitor,
    ) {
        visitor.discipline(&Found {
            depth: self.open.len(),
            class,
            host,
            statistics,
            discipline,
        });
        self.classes.begin_anew();
        self.open.push(Open::default());
    }
}
