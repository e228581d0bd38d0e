//! Packet scheduling and queue management as a library: packets, disciplines, classification.
//!
//! The library has no I/O, no clock, no threads and no configuration files. Time and randomness are
//! arguments. Packets are descriptors in a [`Pool`]. The same code runs in the simulator, on live traffic and
//! in other programs.
//!
//! A program drives a discipline through a [`Link`]: it enqueues a [`Packet`] with a payload, asks for
//! the next packet, and takes the dropped ones with their [`DropReason`]. A driver with a pool for many
//! interfaces uses an [`Egress`] for each. Every discipline has its name, a `Config` and a function
//! `node`:
//!
//! ```
//! use fairgate::{Link, Next, Packet, Qfq, Time, qfq};
//!
//! let queue = Qfq::node(qfq::Config::default(), 42)?; // 42: the seed of its hash
//! let mut link = Link::new(queue, 100);
//! link.enqueue(Packet::of_length(1514), "a frame", Time::ZERO)?;
//! assert!(matches!(link.dequeue(Time::ZERO), Next::Packet(sent) if sent.payload == "a frame"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate is `no_std` with `alloc`. Only the feature `prefetch` needs the standard library. It is on by
//! default.
//!
//! There is a folder for each family and a file for each discipline: [`queues`], [`aqm`], [`rounds`],
//! [`timestamps`], [`implicit`], [`sharing`].

#![forbid(unsafe_code)]
// The library needs only an allocator. Tests use the standard library.
#![cfg_attr(not(test), no_std)]

#[macro_use]
extern crate alloc;

pub mod aqm;
mod arrival;
pub mod autorate;
pub mod balance;
mod builtin;
pub mod change;
mod class_reading;
pub mod classify;
mod count;
pub mod discipline;
mod egress;
mod error;
pub mod flow;
pub mod harmless;
pub mod implicit;
mod link;
mod link_layer;
mod packet;
mod pool;
mod probability;
pub mod queues;
mod rate;
pub mod registry;
pub mod rounds;
pub mod scheduler;
mod service_curve;
pub mod sharding;
pub mod sharing;
mod slot;
mod stats;
mod structures;
#[cfg(test)]
mod testing;
mod time;
pub mod timestamps;

// Each discipline is exported by name, with the module of its `Config`: `Codel` and `codel::Config`.
pub use aqm::ared::{self, Ared};
pub use aqm::choke::{self, Choke};
pub use aqm::codel::{self, Codel};
pub use aqm::dualpi2::{self, DualPi2};
pub use aqm::gred::{self, Gred};
pub use aqm::pie::{self, Pie};
pub use aqm::red::{self, Red};
pub use aqm::rred::{self, Rred};
pub use aqm::sfb::{self, Sfb};
pub use aqm::wred::{self, Wred};
pub use implicit::admission::{self, Admission};
pub use implicit::hsqf::{self, Hsqf};
pub use implicit::lqf::{self, Lqf};
pub use implicit::pdrr::{self, Pdrr};
pub use implicit::sqf::{self, Sqf};
pub use queues::busy_link::{self, BusyLink};
pub use queues::cbs::{self, Cbs};
pub use queues::etf::{self, Etf};
pub use queues::fifo::{self, Fifo};
pub use queues::leaky_bucket::{self, LeakyBucket};
pub use queues::netem::{self, Netem};
pub use queues::pfifo_fast::{self, PfifoFast};
pub use queues::policer::{self, Policer};
pub use queues::prio::{self, Prio};
pub use queues::tbf::{self, Tbf};
pub use rounds::cake::{self, Cake};
pub use rounds::drr::{self, Drr};
pub use rounds::drr_classes::{self, DrrClasses};
pub use rounds::ets::{self, Ets};
pub use rounds::fq::{self, Fq};
pub use rounds::fq_codel::{self, FqCodel};
pub use rounds::fq_nagle::{self, FqNagle};
pub use rounds::fq_pie::{self, FqPie};
pub use rounds::hhf::{self, Hhf};
pub use rounds::mq::{self, Mq};
pub use rounds::msfc::{self, Msfc};
pub use rounds::sfq::{self, Sfq};
pub use sharing::cbq::{self, Cbq};
pub use sharing::hfsc::{self, Hfsc};
pub use sharing::htb::{self, Htb};
pub use timestamps::frr::{self, Frr};
pub use timestamps::gfq::{self, Gfq};
pub use timestamps::pfq::{self, Pfq};
pub use timestamps::qfq::{self, Qfq};
pub use timestamps::qfq_plus::{self, QfqPlus};
pub use timestamps::s_kps::{self, SKps};
pub use timestamps::scfq::{self, Scfq};
pub use timestamps::wf2q_plus::{self, Wf2qPlus};
pub use timestamps::wfq::{self, Wfq};

pub use arrival::{Arrival, Needs};
pub use class_reading::ClassReading;
pub use count::Count;
pub use discipline::{
    Algorithm, ByFlow, Class, ClassState, Discipline, Found, Heritage, Inspect, Node, Reconfigure, Variable,
    Verdict, Visitor, Walk,
};

pub use egress::{Egress, Next};
pub use error::{ConfigError, ParameterPath, Refusal};
pub use flow::{Acknowledgement, Dissection, FlowHash, FlowHasher, FlowKey};
pub use link::{Departure, Dropped, Link, LinkFull};
pub use link_layer::{Cells, LinkLayer};
pub use packet::{ClassId, DropReason, Ecn, LAST_CLASS, Packet};
pub use pool::{
    Copied, Delay, NodeNumber, PacketId, PacketQueue, Pool, PoolFull, Table, TableKind, TakenDelays,
};
pub use probability::Probability;
pub use rate::{Rate, RateMeter};
pub use slot::Slot;
pub use stats::{DropCounts, Statistics, jain_index};
pub use time::Time;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
