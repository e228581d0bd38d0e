//! The conformance suite that every queueing discipline must pass, also disciplines of other crates.
//!
//! It runs random operations on a discipline, shrinks failing cases, and checks the contract of
//! [`fairgate::discipline`]:
//!
//! * **Conservation**: at every node, after every call, the statistics equal the packets that are really
//!   queued, packet by packet and byte by byte. Every packet is returned exactly once.
//! * **Peek**: the next dequeue returns the packet that a peek showed, whatever happens in between.
//! * **Work**: a discipline with packets sends one, or it is a shaper with a watchdog later than now. When
//!   asked at its watchdogs, it sends a packet after a limited number of them.
//! * **Copies**: a copy that a discipline asks for ([`Pool::copy`](fairgate::Pool::copy)) is enqueued at the
//!   root after the call, and all other rules hold for it too.
//! * **Order**: packets of one flow leave in the order of their arrival, unless the discipline emulates a
//!   network that reorders them ([`Recipe::reordering`]). Packets that were marked on their
//!   way in may overtake others, because a descendant may classify by the mark.
//! * **Determinism**: the same calls have the same results, whatever slots the packets are in.
//! * **No allocation** in enqueue, dequeue, peek and watchdog.
//! * **A clock that is set back**, which no driver should have, causes no wrong statistics, no lost packet
//!   and no endless call.
//! * **A rejected change changes nothing**. Packets and ECN marks are not modified. A packet keeps its
//!   arrival time when a discipline is replaced.
//!
//! A discipline joins by one line with the strategy of its configurations and its constructor:
//!
//! ```
//! use fairgate::queues::fifo::{Config, Fifo};
//! use fairgate_conformance::proptest::prelude::*;
//! use fairgate_conformance::{Recipe, conformance_suite};
//!
//! fn fifo_configs() -> impl Strategy<Value = Config> {
//!     (1u32..50).prop_map(|limit| Config { limit_packets: Some(limit), ..Config::default() })
//! }
//!
//! conformance_suite! {
//!     fifo: Recipe::leaf(fifo_configs, |config, _seed| Fifo::node(config));
//! }
//! ```
//!
//! Each line becomes a test, and another test with a clock that is sometimes set back. `random_trees`
//! composes trees of all of them, up to five levels deep.
//!
//! A discipline that shapes also keeps to its rate over every interval: [`check_ceilings`] tests that.
//!
//! A driver joins by [`check_driver`]: it must make the same calls at the same times as the simplest driver.
//!
//! How it works: a [`Case`] is a tree, other trees that replace the disciplines of its classes, a seed and a
//! list of operations. [`check`] runs it twice. The first run has a *probe* around every node, which counts
//! packets itself and compares. The second run has no probes, uses other slots of the pool and counts
//! allocations. Both runs must have the same events.
//!
//! The feature `allocations`, on by default, counts allocations by replacing the program's allocator, so use
//! it only in tests. [`check_allocating`] does without.

#![forbid(unsafe_code)]

mod case;
mod ceiling;
mod driver;
mod probe;
mod recipe;
mod schedule;
#[cfg(feature = "allocations")]
#[doc(hidden)]
pub mod suite;

pub use case::{Case, Operation, cases, cases_with_setbacks};
pub use ceiling::{Ceiling, LONGEST, Traffic, check_ceilings, traffic};
pub use driver::check_allocating;
#[cfg(feature = "allocations")]
pub use driver::{check, check_setbacks};
pub use proptest;
pub use recipe::{Recipe, Tree, random_trees};
pub use schedule::{Arrival, RATE, Schedule, check_driver};

/// Makes a test for each discipline, and one for random trees of all of them. See the [crate
/// documentation](crate).
///
/// Attributes such as comments may precede a name.
#[macro_export]
macro_rules! conformance_suite {
    ($($(#[$attribute:meta])* $name:ident: $recipe:expr;)+) => {
        /// Each recipe is written once: the compiler makes its closures anew in each place that has them.
        #[cfg(test)]
        mod recipe_of {
            use super::*;

            $(pub(super) fn $name() -> $crate::Recipe {
                $recipe
            })+
        }

        #[cfg(test)]
        fn trees_of_all() -> $crate::proptest::strategy::BoxedStrategy<$crate::Tree> {
            $crate::random_trees(&[$(recipe_of::$name()),+])
        }

        $crate::suite_of!(
            $crate::suite::conforms;
            $($(#[$attribute])* $name: recipe_of::$name().trees_of_fifos();)+
            random_trees: trees_of_all();
        );

        /// The same tests with a clock that is sometimes set back.
        #[cfg(test)]
        mod set_back {
            use super::*;

            $crate::suite_of!(
                $crate::suite::conforms_with_setbacks;
                $($(#[$attribute])* $name: recipe_of::$name().trees_of_fifos();)+
                random_trees: trees_of_all();
            );
        }
    };
}

/// Makes the tests of one kind for [`conformance_suite`].
#[doc(hidden)]
#[macro_export]
macro_rules! suite_of {
    ($conforms:path; $($(#[$attribute:meta])* $name:ident: $trees:expr;)+) => {
        $(
            $(#[$attribute])*
            #[test]
            fn $name() {
                $conforms(file!(), concat!(module_path!(), "::", stringify!($name)), $trees);
            }
        )+
    };
}
