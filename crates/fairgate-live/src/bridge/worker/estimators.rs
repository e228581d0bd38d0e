//! The estimators of both trees, in the loop and when the trees change.

use fairgate::Time;

use super::Worker;
use crate::status::Estimators;

impl Worker {
    /// Takes the samples that are due.
    #[inline]
    pub(in crate::bridge) fn look_at_estimators(&mut self, now: Time) {
        for (estimators, direction) in self.estimators.iter_mut().zip(&self.directions) {
            estimators.look_at(direction.link.root(), now);
        }
    }

    /// Returns when the next sample is due.
    #[inline]
    pub(in crate::bridge) fn next_sample(&self) -> Option<Time> {
        self.estimators.iter().filter_map(Estimators::due).min()
    }

    /// Notes what was sent, because the trees are going to change.
    pub(in crate::bridge) fn hold_estimators(&mut self) {
        for (estimators, direction) in self.estimators.iter_mut().zip(&self.directions) {
            estimators.hold(direction.link.root());
        }
    }

    /// Goes on after the trees have changed, or have changed back: with `new`, if there are any, and leaves
    /// the old estimators there.
    pub(in crate::bridge) fn resume_estimators(&mut self, new: Option<&mut [Estimators; 2]>, now: Time) {
        for (running, new) in self.estimators.iter_mut().zip(new.into_iter().flatten()) {
            running.change_to(new, now);
        }
        for (estimators, direction) in self.estimators.iter_mut().zip(&self.directions) {
            estimators.resume(direction.link.root());
        }
    }
}
