//! What the status says of rates that follow the line.

use serde::{Deserialize, Serialize};

/// The rates that follow the line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AutorateStatus {
    /// Where the rates come from: `probes` or `file`.
    pub source: String,
    /// The round trip of a line without load, microseconds. `None` before the first answer, and with a file.
    pub baseline_us: Option<f64>,
    /// How much longer the last round trips were on average, microseconds. `None` with a file.
    pub excess_us: Option<f64>,
    /// How often a tree has got another rate.
    pub changes: u64,
    /// How often a tree has refused it.
    pub refused: u64,
    /// The longest time for which a change of a rate stopped forwarding, microseconds.
    pub longest_pause_us: f64,
    /// The directions that follow.
    pub directions: Vec<AutorateDirection>,
}

/// The rate of a direction that follows the line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AutorateDirection {
    /// The interface that frames are received from.
    pub from: String,
    /// The rate of the tree, bit/s.
    pub rate_bps: u64,
    /// It never falls below this.
    pub min_bps: u64,
    /// The rate at the start and under low load.
    pub base_bps: u64,
    /// It never rises above this.
    pub max_bps: u64,
    /// What has left the tree in the last two intervals, bit/s.
    pub achieved_bps: u64,
    /// What is done with the rate: `low` (it returns to the base), `high` (it rises), `congested` (it falls),
    /// `draining` (it waits until the queue is gone), `silent` (no probe is answered), `file`, or `refused`
    /// (the tree can't have it).
    pub state: String,
}
