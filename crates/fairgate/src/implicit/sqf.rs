//! Shortest queue first (Bonald, Muscariello & Ostallo, "Self-prioritization of audio and video traffic", 2011): the flow
//! with the least bytes queued is always served, first come first served among equals.
//!
//! What an audio or video codec sends at its own pace, below the rate of the line, never queues much, while what TCP sends
//! queues until the buffer is full. So the first is served at once and the second gets the rest, with no marking, no rates
//! and no knowledge of applications. Unlike with fair queueing a stream may take far more than an equal share: it keeps its
//! priority while its backlog is below `limit / (flows + 1)`.
//!
//! What counts is the pace, not that it is video. On 20 Mbit/s beside twelve downloads a stream of 5 or 10 Mbit/s in UDP packets at
//! even intervals loses nothing and is late by a packet (p95 14.2 ms, 13 of it the path), where fq_codel holds it to its share of
//! 1.7 Mbit/s. Video that is fetched in pieces over TCP, as in the scenario of `fairgate compare`, is bulk while a piece
//! comes: its window grows until it has the longest queue, and then it waits for all others (p95 some 300 ms, beside
//! 30 ms under fq_codel, which gives every flow its turn). Section V-E of the paper has the same of packets sent in bursts.
//!
//! Over the limit the flow with the most bytes loses its oldest packet, or with tail drop its newest (LQD, longest queue
//! drop; Suter et al. 1998), so that streams lose nothing while there is any bulk traffic to pay.
//!
//! A flow is what [`FlowBy`](super::FlowBy) says, known exactly: no two share a queue, however many there are behind the
//! link. A packet that came without header fields is of the flow that the driver's hash says; a field that a packet does not
//! have (ports of a fragment, addresses of ARP) is 0, and packets without it are one flow. Deviation: a flow by port is
//! that of one address and protocol, where the paper says "the source port", so that two hosts are not mixed up.
//!
//! Cost: O(log n) a packet for the choice and for LQD, amortised, n the flows with packets at most: a tournament with four
//! players a match, which a flow that grows comes to only when it would be first, and bounds that are corrected when they
//! turn out wrong. The most that one choice can cost is 4096 times O(log n), if as many flows grew since the last one.
//!
//! No bound on delay or fairness is published, and none can be: as long as shorter flows have packets a longer one is not
//! served. Not meant for lines that several users share, where one could take all from the others: there
//! [`hsqf`](super::hsqf) shares fairly between them first.

use alloc::boxed::Box;

use super::by_backlog::{ByBacklog, Order};
pub use super::by_backlog::{Config, PARAMETERS};
use crate::registry::{About, Children, Description, Family};

/// The shortest first.
#[derive(Clone, Copy, Debug)]
pub struct Shortest;

impl Order for Shortest {
    const NAME: &'static str = "sqf";
    const LONGEST_FIRST: bool = false;
}

/// The discipline. Make one with [`Sqf::node`].
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
        summary: "Shortest queue first: streams below the line's rate go first by themselves, bulk traffic \
            gets the rest",
        when: "On one user's access line, inside a shaper, for calls and video beside downloads with \
            nothing marked.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(Sqf::node(config, parts.seed)?)),
)
.with_memory(Config::allocated);
