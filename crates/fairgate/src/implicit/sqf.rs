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
//! **Credit** (not in the paper). With `credit` a flow collects bytes while it sends less than its fair
//! share, and its backlog counts only as far as it exceeds them. So video in bursts keeps its priority while
//! its mean rate is below its fair share. Flows with packets collect, too, at half of the fair share. So no
//! download starves. Everything above the fair share is served as in the paper. `credits.rs` describes the
//! rule.
//!
//! Measured: a video beside n CUBIC downloads on 10 Mbit/s, a round trip of 20 ms, `limit` 200, for a minute;
//! means of 5 runs (`crates/fairgate-sim/tests/simulation/sqf.rs`). Loss of the video, and Jain's index of
//! the downloads, without and with a credit of 100 kB:
//!
//! | video | n = 1 | 5 | 10 | 15 | 20 |
//! |---|---|---|---|---|---|
//! | 5 Mbit/s, Poisson | 0 %, 1.00 | 19 %, 0.75 | 45 %, 0.60 | 86 %, 0.57 | 96 %, 0.56 |
//! | with credit | 0 %, 1.00 | 52 %, 1.00 | 67 %, 1.00 | 85 %, 1.00 | 91 %, 1.00 |
//! | 5 Mbit/s, on and off for 100 ms | 0 %, 1.00 | 48 %, 0.75 | 74 %, 0.50 | 87 %, 0.45 | 97 %, 0.57 |
//! | with credit | 19 %, 1.00 | 81 %, 1.00 | 90 %, 1.00 | 93 %, 1.00 | 95 %, 1.00 |
//! | 5 Mbit/s, 25 frames a second | 60 %, 1.00 | 85 %, 0.76 | 87 %, 0.43 | 100 %, 0.56 | 100 %, 0.63 |
//! | with credit | 0 %, 1.00 | 78 %, 1.00 | 88 %, 1.00 | 91 %, 1.00 | 94 %, 1.00 |
//! | 400 kbit/s, Poisson | 0 %, 1.00 | 0 %, 0.81 | 15 %, 0.54 | 19 %, 0.48 | 30 %, 0.57 |
//! | with credit | 0 %, 1.00 | 0 %, 0.98 | 0 %, 0.99 | 0 %, 0.99 | 0 %, 1.00 |
//! | 400 kbit/s, 25 frames a second | 0 %, 1.00 | 0 %, 0.79 | 39 %, 0.57 | 34 %, 0.40 | 74 %, 0.45 |
//! | with credit | 0 %, 1.00 | 0 %, 0.99 | 0 %, 0.99 | 0 %, 0.99 | 0 %, 1.00 |
//!
//! So credit helps where the video is below its fair share: 5 Mbit/s less headers at n = 1, 476 kbit/s less
//! headers at n = 20. With its headers the video of 5 Mbit/s is just above it. There, in long bursts, credit
//! costs it 19 % that the paper's sqf gives it at the expense of the download. Far above its share it loses
//! most of its packets in both; no discipline without marks can know that it matters more than the downloads.
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
//! No bound on delay or fairness is published, and without credit there is none: while shorter flows have
//! packets, a longer one is not served. Do not use sqf on links that several users share, where one user
//! could take everything: [`hsqf`](super::hsqf) first shares fairly between them.

use alloc::boxed::Box;

use super::by_backlog::{ByBacklog, Order};
pub use super::by_backlog::{Config, PARAMETERS_WITH_CREDIT as PARAMETERS};
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
        summary: "Shortest queue first: flows that send at an even pace go first, bulk traffic gets the rest",
        when: "For calls and streams at an even pace beside one user's downloads; video in bursts loses its \
            priority, unless it is below its fair share and `credit` is set.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(Sqf::node(config, parts.seed)?)),
)
.with_memory(Config::allocated);
