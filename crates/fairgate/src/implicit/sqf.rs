//! Shortest queue first (Bonald, Muscariello & Ostallo, "Self-prioritization of audio and video traffic",
//! 2011): the flow with the least bytes is served. Of equal flows, the one that reached its bytes first is
//! served.
//!
//! An audio or video codec sends at its own pace, below the rate of the link, and never queues much. TCP
//! queues packets until the buffer is full. So the codec is served at once and TCP gets the rest, without
//! marks, rates or knowledge of applications. Unlike in fair queueing, a stream can take far more than an
//! equal share: it keeps its priority while its backlog is below `limit / (flows + 1)`.
//!
//! The pace matters, not the application. On 20 Mbit/s next to twelve downloads, a stream of 5 or 10 Mbit/s
//! in UDP packets at even intervals loses nothing and is delayed by one packet (p95 14.2 ms, of which 13 ms
//! are the path), whereas fq_codel limits it to its share of 1.7 Mbit/s. Video that is fetched in pieces over
//! TCP, as in the scenario of `fairgate compare`, is bulk traffic while a piece is fetched: its window grows
//! until it has the longest queue, and then it waits for all others (p95 about 300 ms, compared with 30 ms
//! under fq_codel, which serves every flow in turn). Section V-E of the paper shows the same for packets sent
//! in bursts.
//!
//! Above the limit the flow with the most bytes loses its oldest packet, or its newest with tail drop (LQD,
//! longest queue drop; Suter et al. 1998). So streams lose nothing while there is bulk traffic that can lose
//! packets.
//!
//! [`FlowBy`](super::FlowBy) defines what a flow is. Flows never share a queue, however many there are behind
//! the link. A packet without header fields belongs to the flow of the driver's hash. A field that a packet
//! does not have (ports of a fragment, addresses of ARP) is 0, so packets without the field are one flow.
//! Deviation: a flow by port also includes one address and protocol, so that two hosts are not mixed up. The
//! paper says "the source port".
//!
//! Cost: the choice and LQD take O(log n) per packet, amortised, where n is the number of flows with packets.
//! They use a tournament with four players per match, which a growing flow enters only when it would be
//! first, and bounds that are corrected when they turn out wrong. One choice costs at most 4096 times O(log
//! n), if as many flows grew since the last one.
//!
//! No bound on delay or fairness is published, and there is none: while shorter flows have packets, a longer
//! one is not served. Do not use sqf on links that several users share, where one user could take everything:
//! [`hsqf`](super::hsqf) first shares fairly between them.

use alloc::boxed::Box;

use super::by_backlog::{ByBacklog, Order};
pub use super::by_backlog::{Config, PARAMETERS};
use crate::registry::{About, Children, Description, Family};

/// The shortest flow is served first.
#[derive(Clone, Copy, Debug)]
pub struct Shortest;

impl Order for Shortest {
    const NAME: &'static str = "sqf";
    const LONGEST_FIRST: bool = false;
}

/// The discipline. [`Sqf::node`] creates it.
///
/// ```
/// use fairgate::implicit::sqf::{Config, Sqf};
/// use fairgate::{Discipline, FlowHash, Packet, Pool, Time};
///
/// let mut pool = Pool::with_capacity(16);
/// let mut sqf = Sqf::node(Config::default(), 1)?;
/// for (flow, length) in [(1, 1500), (1, 1500), (2, 200)] {
///     let packet = Packet { flow: FlowHash::from_raw(flow), ..Packet::of_length(length) };
///     let id = pool.insert(packet).expect("16 slots");
///     sqf.enqueue(id, Time::ZERO, &mut pool);
/// }
/// let first = sqf.dequeue(Time::ZERO, &mut pool).expect("three packets are queued");
/// assert_eq!(pool[first].length, 200);
/// # Ok::<(), fairgate::ConfigError>(())
/// ```
pub type Sqf = ByBacklog<Shortest>;

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "sqf",
        family: Family::Implicit,
        summary: "Shortest queue first: streams below the link's rate go first, bulk traffic \
            gets the rest",
        when: "On one user's access line, inside a shaper, for calls and video next to downloads, with \
            nothing marked.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(Sqf::node(config, parts.seed)?)),
)
.with_memory(Config::allocated);
