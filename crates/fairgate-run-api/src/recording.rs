//! What the classes of a run did, interval after interval.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::status::CountStatus;

/// The shortest interval of a recording, microseconds.
pub const SHORTEST_INTERVAL_US: u64 = 1_000;

/// A recording in this process: it returns what each class did since the last call, and ends with the run.
/// The first interval has no rows. The run notes sojourn times as long as this exists.
pub type Recorder = Box<dyn Iterator<Item = Interval> + Send>;

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
