//! The results of the classes of an interface's tree.

use std::collections::BTreeMap;

use fairgate::Statistics;
use serde::{Deserialize, Serialize};

use crate::classes::ClassCounts;
use crate::results::by_reason;

/// The results of a class. Figures are of the measurement window. Bytes include framing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassResults {
    /// Its number, and those of the classes above it, from the root down: `20`, `20/1`.
    pub class: String,
    /// The host that had the class at the end of the window. Left out if the class is not for hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Packets that left it, or a class below it.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// How often its own limit stopped it. `None` if the discipline above does not limit classes.
    pub overlimits: Option<u64>,
    /// What its discipline counted. `None` for an inner class.
    pub queue: Option<ClassQueue>,
}

/// The results of the discipline in a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassQueue {
    /// The name of the discipline.
    pub discipline: String,
    /// Packets enqueued.
    pub enqueued: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// `dropped` by reason. Reasons without drops are left out.
    pub dropped_by_reason: BTreeMap<String, u64>,
    /// Packets marked with congestion experienced.
    pub marked: u64,
    /// The mean time from the arrival at the root to the departure from the class. It is 0 if nothing left.
    pub sojourn_mean_ns: u64,
    /// Packets queued at the end of the window.
    pub backlog_packets: u64,
    /// Bytes queued at the end of the window.
    pub backlog_bytes: u64,
}

impl ClassResults {
    /// Computes the figures between two counts.
    pub(crate) fn between(class: String, before: &ClassCounts, after: &ClassCounts) -> ClassResults {
        let queue = after.leaf.as_ref().map(|(discipline, now)| {
            let nothing = Statistics::default();
            let then = before.leaf.as_ref().map_or(&nothing, |(_, then)| then);
            let window = now.since(then);
            let sojourn = u128::from(window.sojourn) * u128::from(Statistics::SOJOURN_UNIT);
            ClassQueue {
                discipline: (*discipline).to_owned(),
                enqueued: window.enqueued.packets,
                dropped: window.dropped.packets,
                dropped_by_reason: by_reason(&window.dropped_by_reason),
                marked: window.marked,
                sojourn_mean_ns: sojourn
                    .checked_div(window.dequeued.packets.into())
                    .map_or(0, |mean| mean as u64),
                backlog_packets: now.backlog().packets,
                backlog_bytes: now.backlog().bytes,
            }
        });
        ClassResults {
            class,
            host: after.host.clone(),
            sent: after.sent.packets - before.sent.packets,
            sent_bytes: after.sent.bytes - before.sent.bytes,
            overlimits: after.overlimits.map(|now| now - before.overlimits.unwrap_or(0)),
            queue,
        }
    }
}
