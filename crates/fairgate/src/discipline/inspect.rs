//! What can be read of a discipline, without a change of it.

use alloc::boxed::Box;
use core::any::Any;
use core::ops::Range;

use super::Discipline;
use crate::arrival::Needs;
use crate::class_reading::ClassReading;
use crate::classify::Holder;
use crate::count::Count;
use crate::pool::{NodeNumber, TableKind};
use crate::stats::Statistics;

/// The part of a [`Discipline`] that is read: parameters, statistics, classes and state.
pub trait Inspect {
    /// Returns the name by which users configure it.
    fn name(&self) -> &'static str;

    /// Returns the current parameters: the discipline's own `Config`.
    fn config(&self) -> Box<dyn Any>;

    /// Returns the statistics.
    fn statistics(&self) -> Statistics;

    /// Calls `visit` for each class, in the order of their numbers.
    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>));

    /// Calls `visit` for the classes at these places of the same order. A driver that forwards packets visits
    /// thousands of classes in steps, and packets pass between the steps.
    fn visit_classes_at(&self, places: Range<usize>, visit: &mut dyn FnMut(Class<'_>)) {
        self.visit_classes(&mut at_places(places, visit));
    }

    /// Calls `visit` with the state of each class, for disciplines whose classes have state besides a queue.
    /// Inner nodes are included.
    fn visit_class_states(&self, visit: &mut dyn FnMut(ClassState<'_>)) {
        self.read_class_states(&mut ClassReading::default(), usize::MAX, visit);
    }

    /// Does the same in steps: goes on with `reading`, by about `most` classes, and calls `visit` for each
    /// that is read. Returns true if there is more. What is sent meanwhile may be counted or not. After a
    /// change of classes a reading must begin anew.
    fn read_class_states(
        &self,
        _reading: &mut ClassReading,
        _most: usize,
        _visit: &mut dyn FnMut(ClassState<'_>),
    ) -> bool {
        false
    }

    /// Calls `visit` with internal state, under the field's usual names.
    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable));

    /// Returns what the disciplines of the tree read of packets besides descriptors and header fields. It
    /// changes only with parameters and classes. The driver's pool then [keeps](crate::Pool::keep) it, and
    /// the driver tells it with each [`Arrival`](crate::Arrival).
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Calls `visit` with the kinds of tables that disciplines of the tree take from the
    /// [pool's reserve](crate::Pool::refill). The driver's pool then [provides](crate::Pool::provide) them.
    fn visit_tables(&self, _visit: &mut dyn FnMut(TableKind)) {}

    /// Returns the number by which the pool knows this node ([`Pool::keep_delays`], [`Pool::keep_places`]).
    ///
    /// [`Pool::keep_delays`]: crate::Pool::keep_delays
    /// [`Pool::keep_places`]: crate::Pool::keep_places
    fn number(&self) -> NodeNumber {
        NodeNumber::NONE
    }
}

/// A child of a classful discipline.
#[derive(Debug)]
pub struct Class<'a> {
    /// The class's number within its parent.
    pub minor: u32,
    /// The discipline that holds its packets.
    pub discipline: &'a dyn Discipline,
    /// The host that the class belongs to, if it is one of a template.
    pub holder: Holder<'a>,
}

impl<'a> Class<'a> {
    /// Returns a class for all packets that are sent there.
    pub fn new(minor: u32, discipline: &'a dyn Discipline) -> Class<'a> {
        Class {
            minor,
            discipline,
            holder: Holder::Anyone,
        }
    }
}

/// The state of a class, for a leaf or an inner node.
#[derive(Clone, Copy, Debug)]
pub struct ClassState<'a> {
    /// The class's number.
    pub minor: u32,
    /// The packets that left the class or a class below it. The count stays with the class when its
    /// discipline is replaced.
    pub sent: Count,
    /// How often the class was throttled by its own limit.
    pub overlimits: u64,
    /// Other state, under the field's usual names.
    pub variables: &'a [(&'static str, Variable)],
}

/// A value of a discipline's internal state. The enum is exhaustive, so that a program that shows values is
/// not compiled if it misses a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Variable {
    /// A count, a length, a state.
    Integer(i64),
    /// A point in time or a duration, in nanoseconds.
    Nanos(u64),
    /// True or false.
    Flag(bool),
    /// There is no value yet.
    Unset,
}

/// Returns a visitor of all classes that passes on the classes at these places.
pub(super) fn at_places<'v>(
    places: Range<usize>,
    visit: &'v mut dyn FnMut(Class<'_>),
) -> impl FnMut(Class<'_>) + 'v {
    let mut place = 0;
    move |class| {
        if places.contains(&place) {
            visit(class);
        }
        place += 1;
    }
}
