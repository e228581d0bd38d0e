//! Longest queue first: the flow with the most bytes is served. Of equal flows, the one that reached its
//! bytes first is served. It is the exact opposite of [`sqf`](super::sqf) (Dimakis & Walrand 2006; as a
//! maximal weight schedule Tassiulas & Ephremides 1992).
//!
//! It keeps queues equally long. A switch or a radio channel wants this if none of its buffers may become
//! full. For a stream next to bulk traffic it is the worst choice: a flow that sends less than the others
//! waits until they are as short as it is. It is here for comparisons.
//!
//! Above the limit the longest flow loses a packet, as in sqf. Here this is the flow that is served next.
//! With head drop it is the packet that would be sent next, with tail drop the flow's newest packet.
//!
//! It is not meant for fairness or delay: a flow of one packet may wait as long as any other flow is longer.
//! Parameters, flow keys, ties and cost are the same as in [`sqf`](super::sqf).

use alloc::boxed::Box;

use super::by_backlog::{ByBacklog, Order};
pub use super::by_backlog::{Config, PARAMETERS};
use crate::registry::{About, Children, Description, Family};

/// The longest flow is served first.
#[derive(Clone, Copy, Debug)]
pub struct Longest;

impl Order for Longest {
    const NAME: &'static str = "lqf";
    const LONGEST_FIRST: bool = true;
}

/// The discipline. [`Lqf::node`] creates it.
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
        when: "For comparisons, and where no queue may become full, as in a switch; not for low delay.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(Lqf::node(config, parts.seed)?)),
)
.with_memory(Config::allocated);
