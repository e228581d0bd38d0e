//! Longest queue first: the flow with the most bytes queued is always served, first come first served among equals; the
//! exact opposite of [`sqf`](super::sqf) (Dimakis & Walrand 2006; as a maximal weight schedule Tassiulas & Ephremides 1992).
//!
//! It keeps queues equally long, which is what a switch or a radio channel wants that must not let any of its buffers run
//! full, and the worst that can be done to a stream beside bulk traffic: a flow that sends less than the others waits until
//! they have come down to it. Here to compare with.
//!
//! Over the limit the longest flow pays, as in sqf: the very flow that would be served next. With head drop that is the
//! packet that would have left next, with tail drop the flow's newest one.
//!
//! Not meant for fairness or delay: a flow of one packet may wait as long as any other is longer. Parameters, flow keys,
//! ties and cost are those of [`sqf`](super::sqf).

use alloc::boxed::Box;

use super::by_backlog::{ByBacklog, Order};
pub use super::by_backlog::{Config, PARAMETERS};
use crate::registry::{About, Children, Description, Family};

/// The longest first.
#[derive(Clone, Copy, Debug)]
pub struct Longest;

impl Order for Longest {
    const NAME: &'static str = "lqf";
    const LONGEST_FIRST: bool = true;
}

/// The discipline. Make one with [`Lqf::node`].
///
/// ```
/// use fairgate::implicit::lqf::{Config, Lqf};
/// use fairgate::{Discipline, FlowHash, Packet, Pool, Time};
///
/// let mut pool = Pool::with_capacity(16);
/// let mut lqf = Lqf::node(Config::default(), 1)?;
/// for (flow, length) in [(1, 200), (2, 1500), (2, 1500)] {
///     let packet = Packet { flow: FlowHash::from_raw(flow), ..Packet::of_length(length) };
///     let id = pool.insert(packet).expect("16 slots");
///     lqf.enqueue(id, Time::ZERO, &mut pool);
/// }
/// let first = lqf.dequeue(Time::ZERO, &mut pool).expect("three packets are queued");
/// assert_eq!(pool[first].length, 1500);
/// # Ok::<(), fairgate::ConfigError>(())
/// ```
pub type Lqf = ByBacklog<Longest>;

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "lqf",
        family: Family::Implicit,
        summary: "Longest queue first: the exact opposite of sqf",
        when: "To compare with, and where no queue may run full, as in a switch; never for delay.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(Lqf::node(config, parts.seed)?)),
)
.with_memory(Config::allocated);
