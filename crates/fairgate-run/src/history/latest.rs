//! What a class did between the last two readings.

use fairgate_run_api::{NetworkNode, NodeStatus, SubscriberName};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Moved, ROOT};
use crate::metrics::Node;

/// What a class did between the last two readings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct ClassFigures {
    /// The numbers of the classes from the root on, as `20/3`; `root` for the root.
    pub(crate) class: String,
    /// What a list of subscribers calls the class: the name of a node of the network, or that of a
    /// subscriber, or its identifier if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The class of the node that it is connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<u32>,
    /// What the list lets it send at most, bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit_bps: Option<u64>,
    /// The discipline in it. It is empty for a node of a network.
    pub(crate) discipline: String,
    /// The host that has the class, if classes are given to hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
    /// The subscriber that the class belongs to, if the tree is that of a list of subscribers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subscriber: Option<SubscriberName>,
    /// What left it, bits per second.
    pub(crate) rate_bps: f64,
    /// What left it.
    pub(crate) packets_per_s: f64,
    /// The mean time that the packets which left it had spent there; null if none did.
    pub(crate) delay_ms: Option<f64>,
    /// The 95th percentile of these times, accurate to 7 %; null if none was counted: no packet left, or
    /// nobody has asked for the classes or the history in the last minute.
    pub(crate) p95_ms: Option<f64>,
    /// The 99th percentile of these times.
    pub(crate) p99_ms: Option<f64>,
    /// Packets dropped.
    pub(crate) dropped_per_s: f64,
    /// Packets marked with Congestion Experienced.
    pub(crate) marked_per_s: f64,
    /// What waits.
    pub(crate) backlog_bytes: u64,
    /// What waits.
    pub(crate) backlog_packets: u64,
    /// What left it since the start of the run.
    pub(crate) sent_bytes: u64,
    /// Packets dropped since the start of the run.
    pub(crate) dropped_packets: u64,
}

impl ClassFigures {
    pub(super) fn of(node: &Node<'_>, moved: &Moved) -> ClassFigures {
        let status = node.status;
        ClassFigures {
            class: match node.depth {
                0 => ROOT.to_owned(),
                _ => node.path.clone(),
            },
            name: status.name.clone(),
            node: status.node,
            limit_bps: status.limit_bps,
            discipline: status.discipline.clone(),
            host: status.host.clone(),
            subscriber: status.subscriber.clone(),
            rate_bps: moved.per_second(8 * moved.bytes),
            packets_per_s: moved.per_second(moved.packets),
            delay_ms: moved.delay_ms(),
            p95_ms: moved.p95_ms,
            p99_ms: moved.p99_ms,
            dropped_per_s: moved.per_second(moved.dropped),
            marked_per_s: moved.per_second(moved.marked),
            backlog_bytes: status.backlog.bytes,
            backlog_packets: status.backlog.packets,
            sent_bytes: status.dequeued.bytes,
            dropped_packets: status.dropped.packets,
        }
    }

    /// Returns a node that has done nothing in the interval.
    pub(super) fn of_node(node: &NetworkNode<'_>) -> ClassFigures {
        ClassFigures {
            class: node.path.clone(),
            name: Some(node.name.to_owned()),
            node: node.state.node,
            limit_bps: node.state.limit_bps,
            sent_bytes: node.state.sent.bytes,
            ..ClassFigures::default()
        }
    }

    /// Adds what a class below a node has counted, and what waits there.
    pub(super) fn add_counts(&mut self, class: &NodeStatus) {
        self.backlog_bytes += class.backlog.bytes;
        self.backlog_packets += class.backlog.packets;
        self.dropped_packets += class.dropped.packets;
    }

    /// Says what a node did in the interval.
    pub(super) fn set_moved(&mut self, moved: &Moved) {
        self.rate_bps = moved.per_second(8 * moved.bytes);
        self.packets_per_s = moved.per_second(moved.packets);
        self.delay_ms = moved.delay_ms();
        self.dropped_per_s = moved.per_second(moved.dropped);
        self.marked_per_s = moved.per_second(moved.marked);
    }
}
