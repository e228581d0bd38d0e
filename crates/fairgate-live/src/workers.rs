//! What the workers of a run share. Each one is a bridge of its own, with its own sockets, trees and thread.
//!
//! ```text
//!   interface -> fanout -> worker 0: ring -> tree -> gate -> socket -> interface
//!                     |--> worker 1: ring -> tree -> gate -> socket -> interface
//!                              |               ^
//!                            report          rate       Shares: one for each direction
//! ```
//!
//! The kernel divides arriving frames among the sockets ([`Fanout`]), so that all frames of a flow (or host)
//! come to one worker. Workers share two numbers: what each asks for, and the rate that each gets
//! ([`fairgate::sharding`]). The worker that finds an interval over rebalances for all; nobody waits for it.

mod shard;
mod shares;

pub(crate) use shard::Shard;
pub(crate) use shares::Shares;

use std::sync::Arc;

use fairgate::flow::FlowByHasher;
use fairgate_config::ShardBy;

use crate::config::Plan;
use crate::fanout::Fanout;
use crate::port::Membership;
use crate::randomness::Randomness;

/// A worker's place among the workers of a run.
#[derive(Clone)]
pub(crate) struct Seat {
    /// Its number. Worker 0 owns the interfaces.
    pub(crate) worker: usize,
    /// The frames that arrive at the left and at the right port.
    pub(crate) fanouts: [Arc<Fanout>; 2],
    /// The rates of the directions from left to right and from right to left.
    pub(crate) shares: [Arc<Shares>; 2],
}

impl Seat {
    /// Returns the place of worker 0, or `None` if the run has one worker.
    pub(crate) fn first(plan: &Plan, randomness: &mut Randomness) -> Option<Seat> {
        let [left, right] = [plan.workers_at(0)?, plan.workers_at(1)?];
        let shares = |side: usize| Arc::new(Shares::new(plan.workers, plan.limit(side)));
        let mut fanout = |by| Arc::new(Fanout::new(by, randomness.seed()));
        Some(Seat {
            worker: 0,
            fanouts: [fanout(left.by), fanout(right.by)],
            shares: [shares(0), shares(1)],
        })
    }

    /// Returns the books of this worker for the direction from the port at `side`.
    pub(crate) fn shard(&self, plan: &Plan, side: usize, randomness: &mut Randomness) -> Shard {
        let by = plan.workers_at(side).map_or(ShardBy::Flow, |workers| workers.by);
        let hasher = FlowByHasher::new(by.key(), randomness.seed());
        let shares = Arc::clone(&self.shares[side]);
        Shard::new(shares, self.worker, plan.limit(side), hasher, plan.frames)
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
    pub(crate) fn of(&self, worker: usize) -> Seat {
        Seat {
            worker,
            ..self.clone()
        }
    }
}
