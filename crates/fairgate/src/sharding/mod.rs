//! One queue on several processors: trees of disciplines side by side that share the rate of one line.
//!
//! Each worker has a whole tree and its own flows, hosts, or classes: a *shard*. No packet passes from one
//! shard to another one, so a flow keeps its order, and nothing on the packet path is shared.
//!
//! ```text
//!                      +-> shard 0: Account | tree -> gate -+
//!   packet --(key)-->  +-> shard 1: Account | tree -> gate -+--> line
//!                      +-> shard 2: Account | tree -> gate -+
//!                                     |          ^
//!                              report |          | rate         every few hundred microseconds
//!                                     +-> Balancer
//! ```
//!
//! * The **gate** of a shard holds its packets back to the shard's rate. It stands behind the tree, so the
//!   tree itself is unchanged: its own shaper has the rate of the whole line, and never holds back more than
//!   the gate does.
//! * The **census** of a shard counts its backlogged flows by what enters and leaves, whatever the
//!   discipline.
//! * Of a tree of htb or hfsc each worker has the line and a part of the classes below it. The **division**
//!   says which. A class gets what its guarantee, its share and its limit give it in one tree.
//! * The **balancer** turns the reports of all shards into their next rates. They add up to the rate of the
//!   line. A flow that always has packets gets the same rate in each shard: the fair rate, as in one tree.
//!
//! Linux's `cake_mq` divides the rate equally among the queues that are active, however many flows each has,
//! and what one leaves unused is lost.
//!
//! [`Sharded`] drives shards one after the other as one discipline, for the simulator. Programs with threads
//! use [`Account`] and [`Balancer`] directly.

mod account;
mod balancer;
mod census;
mod division;
mod gate;
mod sharded;
mod terms;

pub use account::{Account, State};
pub use balancer::{Balancer, Demand, Report, interval, share};
pub use division::{Division, Parts, Side, Unit};
pub use sharded::{Config, Key, Lengths, Limit, Sharded};
pub use terms::{Classes, KINDS, Limited, Member, Terms};

#[cfg(test)]
mod class_tests;
