//! What clients ask a run at its socket, and what it answers. A request is one JSON object; the client then
//! ends its side of the connection, or a line. The run answers with one JSON document and ends its side.
//!
//! `{"request": "status"}`, or nothing at all, is answered by the [`Status`](super::Status).
//! `{"request": "change", "lines": ["class add 30 rate=5mbit / fq_codel"]}` is answered by an [`Answer`].
//! `{"request": "reload"}` has it read its configuration again, and is answered by an [`Answer`], too.
//! `{"request": "record", "interval_us": 400000}` is answered by many documents, one in each line:
//! [`Recorded`]. They end with the run, or when the client closes the connection.
//! `{"request": "reserve", "order": {"refresh": {"name": "call"}}}` is answered by [`Reserved`].
//! `{"request": "trees"}` is answered by [`TreesStatus`].
//! `{"request": "flows"}` is answered by [`FlowsStatus`](super::FlowsStatus).
//! `{"request": "packets"}` is answered by a capture in pcapng, or by an [`Answer`] if the run keeps no
//! packets.
//!
//! The trees have a revision. A client that has read them can ask for a change of this revision only: if
//! somebody else has changed them since, nothing is changed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::document::CountStatus;
use crate::packets::FlowOrder;

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The status.
    Status {
        /// Whether to leave out disciplines that no packet has come to, and classes that have sent none.
        #[serde(default)]
        only_used: bool,
    },
    /// The trees as configuration, and their revision. Counters are not read.
    Trees,
    /// To change the trees.
    Change {
        /// The interface from which the changed direction receives. It may be left out if both directions
        /// have the same tree: then both are changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// The changes in words, as of [`Spec::edited`](fairgate_config::Spec::edited). They are made
        /// together or not at all.
        lines: Vec<String>,
        /// The revision that is changed. If the trees have another one, nothing is changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        if_revision: Option<u64>,
    },
    /// To read the configuration again, as after SIGHUP.
    Reload,
    /// To be told at each interval what each class did.
    Record {
        /// The length of an interval in microseconds, at least 1,000.
        interval_us: u64,
    },
    /// The flows that had packets in the last minute. The first answer takes a second.
    Flows {
        /// Their order.
        #[serde(default)]
        order: FlowOrder,
        /// How many of them.
        #[serde(default = "default_flows")]
        limit: u32,
    },
    /// The last packets, as far as they are kept.
    Packets {
        /// The time before now from which packets are wanted, microseconds. Without it, all that are kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_us: Option<u64>,
        /// The interface that has received them. Without it, both.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
    },
    /// To reserve a rate and a delay.
    Reserve {
        /// The interface from which the reserved direction receives. It may be left out if reservations are
        /// possible in one direction only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// What is done.
        order: ReserveOrder,
        /// The revision of the trees that the client has seen. If they have another one, nothing is done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        if_revision: Option<u64>,
    },
}

/// The number of flows in an answer, if none is given.
pub const DEFAULT_FLOWS: u32 = 100;

fn default_flows() -> u32 {
    DEFAULT_FLOWS
}

/// What is done with a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReserveOrder {
    /// A reservation is added.
    Add(TermsStatus),
    /// It gets other terms.
    Change(TermsStatus),
    /// It ends.
    Withdraw {
        /// Its name.
        name: String,
    },
    /// It lives for another lifetime from now on.
    Refresh {
        /// Its name.
        name: String,
    },
    /// All are listed.
    List,
}

/// The terms of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TermsStatus {
    /// Its name.
    pub name: String,
    /// The token rate, bit/s.
    pub rate_bps: u64,
    /// The size of the token bucket, bytes.
    pub burst_bytes: u64,
    /// The peak rate, bit/s: at least the token rate. Without it, the bucket may come at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bps: Option<u64>,
    /// The minimum policed unit, bytes: shorter packets count as much. Without it, 60, the length of the
    /// shortest frame on an Ethernet cable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_packet_bytes: Option<u32>,
    /// The longest packet, bytes. Without it, the longest one of the interfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_packet_bytes: Option<u32>,
    /// The longest acceptable delay, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_us: Option<u64>,
    /// The conditions of the filter in words.
    pub filter: String,
    /// What happens to packets beyond the token bucket. Without it, they are best effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess: Option<ExcessStatus>,
    /// How long it exists unless it is refreshed, milliseconds.
    pub lifetime_ms: u64,
}

/// What happens to packets of a reserved flow that are beyond its token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExcessStatus {
    /// They go to the scheduler's default class.
    BestEffort,
    /// They are dropped.
    Drop,
}

/// What a hop adds to the delay along a path (RFC 2212).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ErrorTermsStatus {
    /// C, bytes: takes its time at the reserved rate.
    pub c_bytes: u64,
    /// D, microseconds: whatever the rate is.
    pub d_us: u64,
}

/// The answer to [`Request::Reserve`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Reserved {
    /// It was done.
    Reservations {
        /// The reservation that was added, changed or refreshed; or all of them.
        reservations: Vec<ReservationStatus>,
        /// The revision of the trees. A reservation that is added, changed or withdrawn changes them.
        #[serde(default)]
        revision: u64,
    },
    /// Nothing was done: the trees have another revision.
    Stale {
        /// Their revision.
        revision: u64,
    },
    /// Nothing was changed.
    Refused {
        /// Why, at least one.
        errors: Vec<Mistake>,
    },
}

/// A reservation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReservationStatus {
    /// The interface that its direction receives from.
    pub from: String,
    /// The path of classes to its class.
    pub class: String,
    /// What was asked for.
    pub terms: TermsStatus,
    /// The rate that is guaranteed, bit/s.
    pub reserved_bps: u64,
    /// The delay that is promised, microseconds.
    pub promised_us: f64,
    /// What the hop adds along a path. None if its bound does not have this form.
    #[serde(default)]
    pub error_terms: Option<ErrorTermsStatus>,
    /// Why there are none.
    #[serde(default)]
    pub no_error_terms: Option<String>,
    /// When it ends unless it is refreshed, in seconds from now.
    pub expires_s: f64,
}

/// The shortest interval of a recording, microseconds.
pub const SHORTEST_INTERVAL_US: u64 = 1_000;

/// The trees of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TreesStatus {
    /// It grows by 1 with each change of the trees, whoever makes it. A run starts with 0.
    pub revision: u64,
    /// From left to right, and from right to left.
    pub directions: Vec<TreeStatus>,
}

/// The tree of a direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TreeStatus {
    /// The interface that frames are received from.
    pub from: String,
    /// The interface that frames are sent to.
    pub to: String,
    /// The name that the configuration gives to the tree. None if the direction has the fifo of one for which
    /// it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its description: `[queue.tree]` of a configuration file.
    pub queue: String,
    /// The classes that each worker has, if several workers divide the classes of the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<Vec<Vec<u16>>>,
}

/// The answer to a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// It was made.
    Changed {
        /// For how long nothing was forwarded, microseconds.
        pause_us: f64,
        /// Packets for which a new limit had no room, or whose class was removed.
        dropped: u64,
        /// The revision of the trees from now on.
        #[serde(default)]
        revision: u64,
    },
    /// Nothing was changed: the trees have another revision.
    Stale {
        /// Their revision.
        revision: u64,
    },
    /// Nothing was changed.
    Refused {
        /// Why, at least one.
        errors: Vec<Mistake>,
    },
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Mistake {
    /// Where: `word 3` or `line 2, word 3` of a change, or a place in the tree that would result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// A line of the answer to [`Request::Record`]. The first one has no rows: it says that the run records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Recorded {
    /// An interval has ended.
    Interval(Interval),
    /// Nothing is recorded.
    Refused {
        /// Why, at least one.
        errors: Vec<Mistake>,
    },
}

/// What the disciplines of a run did in an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Interval {
    /// When it ended, in seconds since the start of the run.
    pub at_s: f64,
    /// Sojourn times that are not in the percentiles, because the run was too busy to count them.
    pub missed_delays: u64,
    /// A row for each root, and for each other discipline where packets came, left or waited.
    pub rows: Vec<ClassInterval>,
}

/// What a discipline did in an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClassInterval {
    /// The interface that the direction receives from.
    pub from: String,
    /// The numbers of the classes from the root on, like `1/30`. Empty for the root.
    pub class: String,
    /// The discipline's name.
    pub discipline: String,
    /// The host that has the class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// When its counters were read, in seconds since the start of the run.
    pub at_s: f64,
    /// The time since they were read before.
    pub seconds: f64,
    /// What left it.
    pub sent: CountStatus,
    /// The mean time from the arrival at the tree to the departure from this discipline, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_delay_us: Option<f64>,
    /// The distribution of these times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Percentiles>,
    /// Packets dropped, by reason. Reasons that did not occur are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drops: BTreeMap<String, u64>,
    /// Packets marked with congestion experienced.
    pub marked: u64,
    /// What is queued at the end of the interval.
    pub backlog: CountStatus,
}

impl ClassInterval {
    /// Returns what left it, in bits per second.
    pub fn rate_bps(&self) -> f64 {
        self.sent.bytes as f64 * 8.0 / self.seconds.max(1e-9)
    }
}

/// Sojourn times, in microseconds. Percentiles are accurate to 7 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Percentiles {
    /// The number of packets that were measured.
    pub packets: u64,
    /// The median.
    pub p50_us: f64,
    /// The 95th percentile.
    pub p95_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The maximum.
    pub max_us: f64,
}
