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
}
