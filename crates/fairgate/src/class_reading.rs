//! The progress of a reading of class states, which can be made in steps.

use alloc::vec::Vec;

use crate::count::Count;

/// How far the states of a discipline's classes are read
/// ([`read_class_states`](crate::Inspect::read_class_states)). A new reading starts with the default.
#[derive(Debug, Default)]
pub struct ClassReading {
    /// The number of steps that were made.
    pub(crate) place: usize,
    /// What each class has sent, as far as it is added up.
    pub(crate) sums: Vec<ClassSums>,
}

impl ClassReading {
    /// Returns a reading that allocates nothing in disciplines of at most `classes` classes.
    pub(crate) fn with_room(classes: usize) -> ClassReading {
        ClassReading {
            place: 0,
            sums: Vec::with_capacity(classes),
        }
    }

    /// Begins with another discipline. What was allocated is kept.
    pub(crate) fn begin_anew(&mut self) {
        self.place = 0;
        self.sums.clear();
    }
}

/// What a class and the leaves below it have sent, and which class was charged for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassSums {
    pub(crate) sent: Count,
    /// Packets that the class was charged for as the lender, or that it sent at its own rate.
    pub(crate) lent: u64,
    /// Packets that a class above lent.
    pub(crate) borrowed: u64,
}
