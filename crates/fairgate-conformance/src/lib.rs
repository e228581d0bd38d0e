//! The suite that every queueing discipline must pass, ours and yours.
//!
//! It throws random operations at a discipline, shrinks what fails, and holds the discipline to the contract of
//! [`fairgate::discipline`]:
//!
//! * **Conservation**: at every node, after every call, the ledger equals the packets truly there: those handed in and
//!   not yet back, packet by packet and byte by byte. Every packet comes back exactly once.
//! * **Peek**: what a peek showed is what the next dequeue returns, whatever came in between.
//! * **Work**: a discipline that holds packets sends one, or it is a shaper and tells a later time to ask again; asked
//!   then, it makes progress.
//! * **Order**: packets of one flow leave in the order in which they came.
//! * **Determinism**: the same calls give the same answers, whatever slots the packets sit in.
//! * **No allocation** in enqueue, dequeue, peek and watchdog.
//! * **A clock that is set back**, which no driver should have, breaks no books, loses no packet and hangs no call.
//! * **Refusals change nothing**, packets and ECN marks are not tampered with, a packet's time in the queue survives
//!   the replacement of a discipline.
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
//! Each line becomes a test of its own, another one under a clock that is set back now and then, and `random_trees` composes
//! trees up to five levels deep of all of them.
//!
//! A driver joins by [`check_driver`]: it must make the same calls at the same times as the simplest driver there is.
//!
//! How it works: a [`Case`] is a tree, other trees to put in place of its classes, a seed and a list of operations.
//! [`check`] runs it twice: once with a *probe* around every node, which keeps books of its own and compares; and once
//! bare, in other slots of the pool, counting allocations. Both must give the same record of events.
//!
//! This crate counts allocations by replacing the program's allocator: use it in tests only.

#![forbid(unsafe_code)]

mod case;
mod driver;
mod probe;
mod recipe;
mod schedule;

pub use case::{Case, Operation, cases, cases_with_setbacks};
pub use driver::{check, check_setbacks};
pub use proptest;
pub use recipe::{Recipe, Tree, random_trees};
pub use schedule::{Arrival, RATE, Schedule, check_driver};

/// Makes a test of each discipline, and one of random trees of all of them. See the [crate's head](crate).
///
/// In front of a name may stand attributes, for instance comments.
#[macro_export]
macro_rules! conformance_suite {
    ($($(#[$attribute:meta])* $name:ident: $recipe:expr;)+) => {
        fn recipes() -> Vec<$crate::Recipe> {
            vec![$($recipe),+]
        }

        $crate::proptest::proptest! {
            $(
                $(#[$attribute])*
                #[test]
                fn $name(case in $crate::cases($recipe.trees_of_fifos())) {
                    $crate::check(&case);
                }
            )+

            #[test]
            fn random_trees(case in $crate::cases($crate::random_trees(&recipes()))) {
                $crate::check(&case);
            }
        }

        /// Under a clock that is set back now and then.
        mod set_back {
            use super::*;

            $crate::proptest::proptest! {
                $(
                    $(#[$attribute])*
                    #[test]
                    fn $name(case in $crate::cases_with_setbacks($recipe.trees_of_fifos())) {
                        $crate::check_setbacks(&case);
                    }
                )+

                #[test]
                fn random_trees(case in $crate::cases_with_setbacks($crate::random_trees(&recipes()))) {
                    $crate::check_setbacks(&case);
                }
            }
        }
    };
}
