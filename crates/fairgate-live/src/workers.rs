//! What the workers of a run share. Each one is a bridge of its own, with its own sockets, trees and thread.
//!
//! ```text
//!   interface -> fanout -> worker 0: ring -> tree -> gate -> socket -> interface
//!                     |--> worker 1: ring -> tree -> gate -> socket -> interface
//!                              |               ^
//!                            report          rate       Shares: one for each direction
//! ```
//!
//! The kernel divides arriving frames among the sockets ([`Fanout`]), so that all frames of a flow (or host,
//! or class) come to one worker. Workers share two numbers: what each asks for, and the rate that each gets
//! ([`fairgate::sharding`]). The worker that finds an interval over rebalances for all; nobody waits for it.

mod shard;
mod shares;

pub(crate) use shard::{Key, Shard};
pub(crate) use shares::Shares;

use std::sync::Arc;

use fairgate::flow::FlowByHasher;
use nix::errno::Errno;

use crate::config::Plan;
use crate::fanout::Fanout;
use crate::port::Membership;
use crate::randomness::Randomness;

/// A worker's place among the workers of a run.
#[derive(Clone)]
pub(crate) struct WorkerSlot {
    /// Its number. Worker 0 owns the interfaces.
    pub(crate) worker: usize,
    /// The frames that arrive at the left and at the right port.
    pub(crate) fanouts: [Arc<Fanout>; 2],
    /// The rates of the directions from left to right and from right to left.
    pub(crate) shares: [Arc<Shares>; 2],
}

impl WorkerSlot {
    /// Returns the place of worker 0, or `None` if the run has one worker.
    ///
    /// # Errors
    /// If the kernel can't divide frames by classes.
    pub(crate) fn first(plan: &Plan, randomness: &mut Randomness) -> Result<Option<WorkerSlot>, Errno> {
        let (Some(left), Some(right)) = (plan.workers_at(0), plan.workers_at(1)) else {
            return Ok(None);
        };
        let shares = |side: usize| {
            let classes = plan.division(side).map(|division| division.classes());
            Arc::new(Shares::new(plan.workers, plan.limit(side), classes))
        };
        let mut fanout = |side: usize, by| {
            let fanout = match plan.division(side) {
                Some(division) => Fanout::of_classes(division)?,
                None => Fanout::new(by, randomness.seed()),
            };
            Ok(Arc::new(fanout))
        };
        Ok(Some(WorkerSlot {
            worker: 0,
            fanouts: [fanout(0, left.by)?, fanout(1, right.by)?],
            shares: [shares(0), shares(1)],
        }))
    }

    /// Returns the books of this worker for the direction from the port at `side`.
    pub(crate) fn shard(&self, plan: &Plan, side: usize, randomness: &mut Randomness) -> Shard {
        let by = plan.workers_at(side).and_then(|workers| workers.by.hashed());
        let key = match plan.division(side) {
            Some(division) => Key::Classes(Arc::clone(division)),
            None => Key::Flows(FlowByHasher::new(by.unwrap_or_default(), randomness.seed())),
        };
        let shares = Arc::clone(&self.shares[side]);
        Shard::new(shares, self.worker, plan.limit(side), key, plan.frames)
    }

    /// Returns the membership of the port at `side`. `pushes_tags` is for workers that do not own the
    /// interface.
    pub(crate) fn membership(&self, side: usize, pushes_tags: bool) -> Membership {
        Membership {
            fanout: Arc::clone(&self.fanouts[side]),
            is_first: self.worker == 0,
            pushes_tags,
        }
    }

    /// Returns the place of another worker.
    pub(crate) fn of(&self, worker: usize) -> WorkerSlot {
        WorkerSlot {
            worker,
            ..self.clone()
        }
    }
}
