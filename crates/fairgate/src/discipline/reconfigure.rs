//! What changes a discipline while packets are queued.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;

use super::{Discipline, Inspect};
use crate::error::ConfigError;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::time::Time;

/// The part of a [`Discipline`] that changes it: parameters, classes, and the discipline that succeeds it.
/// Packets stay queued as far as the new parameters allow.
pub trait Reconfigure: Inspect {
    /// Changes parameters. `config` is the discipline's own `Config`. On an error nothing has changed.
    fn reconfigure(&mut self, config: &dyn Any, now: Time, pool: &mut Pool) -> Result<(), ConfigError>;

    /// Calls `change` to reconfigure or flush the discipline of class `minor`, or to go down to one of its
    /// classes. Packets that this drops and flushes are counted at every node on the path. Afterwards the
    /// driver empties [`Pool::take_returned`]. Only the root may be used to enqueue and dequeue.
    fn change_class(
        &mut self,
        minor: u32,
        pool: &mut Pool,
        change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool),
    ) -> Result<(), ConfigError>;

    /// Replaces the discipline of class `minor` by `child` and moves the packets to it. Packets that `child`
    /// drops are given back through the pool.
    ///
    /// # Errors
    /// As of [`succeed_class`](Self::succeed_class).
    fn replace_class(
        &mut self,
        minor: u32,
        child: Box<dyn Discipline>,
        now: Time,
        pool: &mut Pool,
    ) -> Result<(), ConfigError> {
        self.succeed_class(minor, child, &Heritage::default(), now, pool)
            .map(drop)
    }

    /// Replaces the discipline of class `minor` by `child`, which takes over from it as of
    /// [`take_over`](Self::take_over). Returns the old one, so that its memory can be released
    /// elsewhere.
    ///
    /// # Errors
    /// If there is no such class, or if this discipline does not support it. Nothing has changed then.
    fn succeed_class(
        &mut self,
        minor: u32,
        child: Box<dyn Discipline>,
        heritage: &Heritage,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Box<dyn Discipline>, ConfigError> {
        let _ = (child, heritage, now, pool);
        Err(no_such_class(self.name(), minor))
    }

    /// Exchanges the discipline of class `minor` for another one. Both keep their packets. A successor gets
    /// the classes that it inherits in this way.
    ///
    /// # Errors
    /// If there is no such class, or if this discipline does not support it. Nothing has changed then.
    fn exchange_class(
        &mut self,
        minor: u32,
        child: &mut Box<dyn Discipline>,
        now: Time,
        pool: &mut Pool,
    ) -> Result<(), ConfigError> {
        let _ = (child, now, pool);
        Err(no_such_class(self.name(), minor))
    }

    /// Takes the place of `old`, which ran until now. The packets are moved in the order of their flows, and
    /// keep their arrival times. Packets that this discipline drops are given back through the pool.
    ///
    /// This discipline must be new. Its classes that `heritage` names must exist in both.
    fn take_over(&mut self, old: &mut dyn Discipline, heritage: &Heritage, now: Time, pool: &mut Pool);

    /// Does what [`take_over`](Self::take_over) would have to do otherwise, if the discipline whose
    /// place this one takes has the parameters `old` then. A driver calls it on a thread that forwards
    /// nothing.
    fn prepare_to_take_over(&mut self, _old: &dyn Any) {}

    /// Moves all packets to `into`, in the order of their flows, for the discipline that replaces this one.
    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue);

    /// Takes out the packet that a peek has chosen and that is no longer in a queue. A successor sends it
    /// first.
    fn take_chosen(&mut self, _pool: &mut Pool) -> Option<PacketId> {
        None
    }

    /// Returns this discipline as the value that it is, for a successor of the same type, which may take over
    /// its state. `None` if no successor can.
    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        None
    }
}

/// What a discipline keeps of the one whose place it takes, besides the packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heritage {
    /// Whether the statistics go on. Packets that move were counted before, and are not counted again. If
    /// they do not go on, they begin at 0, and packets that move count as enqueued.
    pub statistics: bool,
    /// The classes that keep their disciplines.
    pub classes: Vec<u32>,
}

/// Returns the error for a class that a discipline does not have.
pub(super) fn no_such_class(discipline: &'static str, minor: u32) -> ConfigError {
    ConfigError::NoSuchClass {
        discipline,
        class: format!("{minor:x}"),
    }
}
