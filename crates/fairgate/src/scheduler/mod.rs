//! Fair queueing schedulers, separate from queues.
//!
//! A [`Scheduler`] identifies flows by number. Of their packets it knows only the length of each flow's first
//! one. It decides which flow sends next. Two disciplines feed it with packets, in the same way for every
//! scheduler:
//!
//! ```text
//!   Flows<S>     flat: packets are hashed into flows, with a queue for each and one limit for all
//!   Classes<S>   classful: a share for each class, with any discipline inside
//!
//!   enqueue      -> activate   if the flow was idle
//!   dequeue      <- select     the flow that sends next
//!                -> update     what it sent, and its next packet, if there is one
//! ```
//!
//! A flow's state is in one cache line with its queue. Each call therefore gets the array of flows, and the
//! scheduler accesses its own part by [`Holds`].

pub mod classes;
pub mod flows;
pub(crate) mod parked;
mod separate;
#[cfg(test)]
mod tests;

use core::fmt::Debug;

pub use classes::Classes;
pub use flows::Flows;

use crate::discipline::Variable;
use crate::error::ConfigError;
use crate::time::Time;

/// The longest packet that a scheduler accepts, bytes: twice a segment of 64 KiB with all its headers. Longer
/// packets are dropped with [`LargerThanMaximum`](crate::DropReason::LargerThanMaximum).
pub const MAX_PACKET: u32 = 1 << 17;

/// Gives a scheduler what every discipline has: a `Config`, and `node`, which creates the
/// discipline over hashed
/// flows.
macro_rules! node {
    ($scheduler:ident) => {
        /// The parameters of the discipline over hashed flows.
        pub type Config = crate::scheduler::flows::ConfigOf<$scheduler>;

        crate::scheduler::node!($scheduler, has its Config);
    };
    ($scheduler:ident, has its Config) => {
        impl $scheduler {
            /// Creates the discipline over hashed flows. `seed` is the seed of its hash. The discipline over
            /// classes is [`Classes`](crate::scheduler::Classes).
            ///
            /// # Errors
            /// Fails if a parameter is out of range.
            pub fn node(
                config: Config,
                seed: u64,
            ) -> Result<crate::Node<crate::scheduler::Flows<$scheduler>>, crate::ConfigError> {
                crate::scheduler::Flows::node(config, seed)
            }
        }
    };
}

pub(crate) use node;

/// What a flow or class is entitled to, if users write it as one number.
pub trait Entitlement: Clone {
    /// The weight or the quantum.
    fn amount_mut(&mut self) -> &mut u32;
}

/// What a scheduler knows about a flow's first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The length, bytes. It is 0 in [`Scheduler::update`] if the scheduler does not read it
    /// ([`Scheduler::READS_HEADS`]).
    pub length: u32,
    /// The result of [`Scheduler::stamp`] for the packet, or 0 if the scheduler does not stamp.
    pub stamp: u64,
}

/// An element of an array of flows, which contains a scheduler's state.
pub trait Holds {
    /// The type of the state.
    type State;

    /// Returns the state.
    fn state(&self) -> &Self::State;

    /// Returns the state for changes.
    fn state_mut(&mut self) -> &mut Self::State;
}

/// Chooses among backlogged flows. Each scheduler has a file in `rounds/` or `timestamps/`.
///
/// Flows are numbered from 0 in the order of [`add_flow`](Scheduler::add_flow). Every call gets the same
/// array with the flows in this order. `now` never decreases. If it does by a bug of the caller, the clock
/// stands still. Nothing is allocated after construction.
pub trait Scheduler: Debug + Send + Sized + 'static {
    /// The name in configurations.
    const NAME: &'static str;

    /// Whether to call [`stamp`](Scheduler::stamp) for each packet and to keep its result with the packet.
    const STAMPS: bool = false;

    /// Whether `update` reads the length and stamp of the next packet. If not, they are not fetched.
    const READS_HEADS: bool = true;

    /// Whether flows can be told apart by their whole hash ([`separates`](Scheduler::separates)). It requires
    /// [`forget`](Scheduler::forget) and [`remembers`](Scheduler::remembers).
    const CAN_SEPARATE: bool = false;

    /// The parameter by which users list the shares of single flows.
    const SHARES: &'static str = "weights";

    /// The share that a flow is entitled to.
    type Share: Clone + Debug + PartialEq + Send + 'static;

    /// The parameters of the scheduler as a whole.
    type Settings: Clone + Debug + PartialEq + Send + 'static;

    /// The scheduler's state of one flow. It has at most 40 bytes, so that it fits into one cache line with
    /// the flow's queue.
    type Flow: Copy + Debug + Send + 'static;

    /// Creates a scheduler without flows. Virtual time starts at `origin`, which is 0 except in tests of its
    /// wrap.
    ///
    /// # Errors
    /// Fails if a setting is out of its range.
    fn new(settings: &Self::Settings, origin: u64) -> Result<Self, ConfigError>;

    /// Adds an idle flow. Called only during construction.
    ///
    /// # Errors
    /// Fails if the share, or the sum of all shares, is out of its range.
    fn add_flow(&mut self, share: &Self::Share) -> Result<Self::Flow, ConfigError>;

    /// Changes the share of a flow, from its next packet on. All new shares have been tried on a new
    /// scheduler before. If several shares are changed, their sum may temporarily have any value.
    fn change_share(&mut self, flow: &mut Self::Flow, share: &Self::Share);

    /// Returns the stamp of a new packet of `length` bytes for `flow`, which may be active or idle. The stamp
    /// is kept with the packet.
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

    /// Handles that the newest packet of `flow`, which was stamped as `head`, was removed unsent. It was not
    /// the flow's first packet. Exception: if the scheduler stamps, it may also be the packet that was just
    /// stamped, whose flow is idle and remains so.
    #[inline]
    fn stolen<F: Holds<State = Self::Flow>>(
        &mut self,
        _flows: &mut [F],
        _flow: u32,
        _head: Head,
        _now: Time,
    ) {
    }

    /// Handles that `flow` was idle and now has `head` as its first packet.
    fn activate<F: Holds<State = Self::Flow>>(&mut self, flows: &mut [F], flow: u32, head: Head, now: Time);

    /// Returns the flow that sends next, or `None` if and only if all flows are idle. Virtual time may
    /// advance. A repeated call returns the same flow.
    fn select<F: Holds<State = Self::Flow>>(&mut self, flows: &mut [F], now: Time) -> Option<u32>;

    /// Returns the result of [`select`](Scheduler::select) if it takes only a few instructions, which is so
    /// for most packets. Otherwise it may return `None`. This code is inlined into the path of every packet;
    /// a search would occupy its registers.
    #[inline(always)]
    fn ready<F: Holds<State = Self::Flow>>(&mut self, flows: &mut [F], now: Time) -> Option<u32> {
        self.select(flows, now)
    }

    /// Returns the flow whose first packet should be prefetched while a packet of `flow` is dequeued: one
    /// that is selected soon, whose state was prefetched by an earlier call. Prefetches the state of one that
    /// comes later. If there is no guess, returns a number that no flow has.
    #[inline(always)]
    fn upcoming<F: Holds<State = Self::Flow>>(&self, _flows: &[F], _flow: u32) -> u32 {
        u32::MAX
    }

    /// Handles that `flow`, which was just selected, sent `sent` bytes. Its first packet is now `next`;
    /// `None` means that it is idle. If `sent` is 0, the packet for which it was selected had been removed,
    /// and only the length of its first packet is corrected.
    fn update<F: Holds<State = Self::Flow>>(
        &mut self,
        flows: &mut [F],
        flow: u32,
        sent: u32,
        next: Option<Head>,
        now: Time,
    );

    /// Returns whether flows are told apart by their whole hash. If not, flows share queues by chance.
    fn separates(_settings: &Self::Settings) -> bool {
        false
    }

    /// Returns whether the scheduler treats an idle flow differently from a new one.
    #[inline]
    fn remembers(&self, _flow: &Self::Flow) -> bool {
        false
    }

    /// Handles that an idle flow's place is given to a new flow.
    fn forget(&self, _flow: &mut Self::Flow) {}

    /// Makes all flows idle, after their packets were removed.
    fn clear<F: Holds<State = Self::Flow>>(&mut self, flows: &mut [F]);

    /// Reports state variables under the field's usual names.
    fn visit_variables(&self, _visit: &mut dyn FnMut(&'static str, Variable)) {}
}
