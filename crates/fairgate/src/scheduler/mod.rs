//! Fair queueing schedulers, apart from queues.
//!
//! A [`Scheduler`] knows flows by number and, of packets, only the length of each flow's first. It says which flow sends
//! next. Two disciplines bring packets to it, the same for every scheduler:
//!
//! ```text
//!   Flows<S>     flat: packets are hashed into flows, a queue each, one limit over all
//!   Classes<S>   classful: a share for each class, any discipline inside
//!
//!   packet in    -> activate   if its flow was idle
//!   packet out   <- select     the flow that sends next
//!                -> update     what it sent, and its next packet, if there is one
//! ```
//!
//! A flow's state lies beside its queue in one cache line, so a scheduler is handed the array of flows with each call and
//! finds its own part by [`Holds`].

pub mod classes;
pub mod flows;
#[cfg(test)]
mod tests;

use core::fmt::Debug;

pub use classes::Classes;
pub use flows::Flows;

use crate::discipline::Variable;
use crate::error::ConfigError;
use crate::time::Time;

/// The longest packet that a scheduler takes, bytes: a segment of 64 KiB with all its headers, twice over. Longer ones
/// are dropped with [`LargerThanMaximum`](crate::DropReason::LargerThanMaximum).
pub const MAX_PACKET: u32 = 1 << 17;

/// What a flow or class is entitled to, if users write it as one number.
pub trait Entitlement: Clone {
    /// The weight or the quantum.
    fn amount_mut(&mut self) -> &mut u32;
}

/// What a scheduler knows of a flow's first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes. 0 in [`Scheduler::update`] where the scheduler does not read it ([`Scheduler::READS_HEADS`]).
    pub length: u32,
    /// What [`Scheduler::stamp`] gave the packet when it came; 0 where the scheduler does not stamp.
    pub stamp: u64,
}

/// An element of an array of flows, with a scheduler's state in it.
pub trait Holds {
    /// The state.
    type State;

    /// The state, to be read.
    fn state(&self) -> &Self::State;

    /// The state, to be changed.
    fn state_mut(&mut self) -> &mut Self::State;
}

/// Chooses among backlogged flows. One file for each, in `rounds/` and `timestamps/`.
///
/// Flows are numbered from 0 in the order of [`add_flow`](Scheduler::add_flow); the array passed to every call is the
/// same and holds them in this order. `now` never decreases; where it does by a caller's mistake, the clock stands
/// still. Nothing is allocated after construction.
pub trait Scheduler: Debug + Send + Sized + 'static {
    /// The name that users configure it by.
    const NAME: &'static str;

    /// Whether [`stamp`](Scheduler::stamp) is to be called for each packet and its result kept with the packet.
    const STAMPS: bool = false;

    /// Whether `update` looks at the length and stamp of the next packet. If not, it is not fetched.
    const READS_HEADS: bool = true;

    /// The parameter by which users list the shares of single flows.
    const SHARES: &'static str = "weights";

    /// What a flow is entitled to.
    type Share: Clone + Debug + PartialEq + Send + 'static;

    /// Parameters of the scheduler as a whole.
    type Settings: Clone + Debug + PartialEq + Send + 'static;

    /// Its state of one flow: at most 40 bytes, so that it fits in one cache line with the flow's queue.
    type Flow: Copy + Debug + Send + 'static;

    /// Without flows. Virtual time starts at `origin`: 0, but for tests of its wrap.
    ///
    /// # Errors
    /// If a setting is out of its range.
    fn new(settings: &Self::Settings, origin: u64) -> Result<Self, ConfigError>;

    /// One flow more, idle. Called at construction only.
    ///
    /// # Errors
    /// If the share is out of its range, or the sum of all is.
    fn add_flow(&mut self, share: &Self::Share) -> Result<Self::Flow, ConfigError>;

    /// Changes what a flow is entitled to, from its next packet on. All shares together have been tried on a new
    /// scheduler before; during a change of several their sum may be any.
    fn change_share(&mut self, flow: &mut Self::Flow, share: &Self::Share);

    /// A packet of `length` bytes came for `flow`, busy or idle. What is returned stays with the packet.
    #[inline]
    fn stamp<F: Holds<State = Self::Flow>>(
        &mut self,
        _flows: &mut [F],
        _flow: u32,
        _length: u32,
        _now: Time,
    ) -> u64 {
        0
    }

    /// The newest packet of `flow`, which stamped as `head`, was taken away unsent. It was not the flow's first. Or, only
    /// where the scheduler stamps: it was the one that has just been stamped, and its flow is idle and stays so.
    #[inline]
    fn stolen<F: Holds<State = Self::Flow>>(
        &mut self,
        _flows: &mut [F],
        _flow: u32,
        _head: Head,
        _now: Time,
    ) {
    }

    /// `flow` was idle and now has `head` as its first packet.
    fn activate<F: Holds<State = Self::Flow>>(&mut self, flows: &mut [F], flow: u32, head: Head, now: Time);

    /// The flow that sends next; `None` if and only if all are idle. Virtual time may advance. Asked again, it answers
    /// the same.
    fn select<F: Holds<State = Self::Flow>>(&mut self, flows: &mut [F], now: Time) -> Option<u32>;

    /// [`select`](Scheduler::select) as far as a look goes, which is all that most packets need: `None` also where it takes
    /// more than that. What is here is compiled into the path of every packet; a search would take its registers.
    #[inline(always)]
    fn ready<F: Holds<State = Self::Flow>>(&mut self, flows: &mut [F], now: Time) -> Option<u32> {
        self.select(flows, now)
    }

    /// The flow whose turn probably comes after that of `flow`, which is next, where it costs next to nothing to tell: to
    /// fetch its lines meanwhile. Without such a guess the number of no flow.
    #[inline(always)]
    fn next_after(&self, _flow: &Self::Flow) -> u32 {
        u32::MAX
    }

    /// `flow`, just selected, sent `sent` bytes, and its first packet is now `next`; `None`: it is idle. Where `sent` is
    /// 0 the packet that it was selected for had vanished, and only the length of its first packet is put right.
    fn update<F: Holds<State = Self::Flow>>(
        &mut self,
        flows: &mut [F],
        flow: u32,
        sent: u32,
        next: Option<Head>,
        now: Time,
    );

    /// All flows are idle from now on: their packets were taken away.
    fn clear<F: Holds<State = Self::Flow>>(&mut self, flows: &mut [F]);

    /// Shows inner state under the field's usual names.
    fn visit_variables(&self, _visit: &mut dyn FnMut(&'static str, Variable)) {}
}
