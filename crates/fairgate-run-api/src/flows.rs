//! The flows of a run, as a document for programs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::SubscriberName;

/// The number of flows in an answer, if none is given.
pub const DEFAULT_FLOWS: u32 = 100;

/// By what flows are sorted, the largest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlowOrder {
    /// The rate.
    #[default]
    Rate,
    /// The bytes that were sent.
    Bytes,
    /// The delay in the queue.
    Delay,
    /// The packets that were dropped.
    Dropped,
    /// The median of the round trip times.
    RoundTrip,
}

/// The flows of a run that had packets in the last minute.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FlowsStatus {
    /// For how long flows have been observed, seconds. It begins when somebody asks for them, and ends half a
    /// minute after the last one has, unless the run has a packet log.
    pub observed_s: f64,
    /// The number of flows.
    pub active: u64,
    /// The number of flows that were forgotten, because there was no room for more.
    pub forgotten: u64,
    /// The number of packets that are missing here, because the run was too busy to note them.
    pub missed_packets: u64,
    /// The first of the flows, in the order that was asked for.
    pub flows: Vec<FlowStatus>,
}

/// A flow in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FlowStatus {
    /// The interface that its direction receives from.
    pub from: String,
    /// The source address. It is `::` if the packets are no IP packets.
    pub source: String,
    /// Its port, or 0.
    pub source_port: u16,
    /// The destination address.
    pub destination: String,
    /// Its port, or 0.
    pub destination_port: u16,
    /// Whose flow this is in the LAN, if the run is on a router that translates its address (`nat`). It is
    /// behind the destination of received packets, and behind the source of packets that are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lan: Option<LanStatus>,
    /// The name of the transport protocol, or the number of one without a name here.
    pub protocol: String,
    /// The numbers of the classes to the queue that its last packet was in, like `20/3`. Empty for the root.
    pub class: String,
    /// The discipline of that queue. Empty if it is not there any more.
    pub discipline: String,
    /// The subscriber whose class that queue is in, if the tree is that of a list of subscribers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber: Option<SubscriberName>,
    /// What was sent over the last second, bit/s.
    pub rate_bps: f64,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Packets that were sent.
    pub packets: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Packets that the trees marked with congestion experienced.
    pub marked: u64,
    /// The time in the tree, milliseconds: the mean of about the last 16 packets.
    pub delay_ms: f64,
    /// The time from here to the destination and back, of a TCP connection with timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ms: Option<RoundTripStatus>,
    /// What of it was lost before it got here, of a TCP flow that had data in the last 10 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_before: Option<LossStatus>,
    /// The time since its first packet, seconds.
    pub age_s: f64,
    /// The time since its last packet, seconds.
    pub idle_s: f64,
}

/// A host in the LAN, behind a translated address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LanStatus {
    /// Its address.
    pub address: String,
    /// Its port, or the identifier of ICMP.
    pub port: u16,
}

/// Writes the flow like `tcp 192.0.2.1:443 > [2001:db8::7]:50000`, and the host in the LAN in parentheses
/// after it.
impl fmt::Display for FlowStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |address: &str, port: u16| match (port, address.contains(':')) {
            (0, _) => address.to_owned(),
            (port, true) => format!("[{address}]:{port}"),
            (port, false) => format!("{address}:{port}"),
        };
        let source = end(&self.source, self.source_port);
        let destination = end(&self.destination, self.destination_port);
        write!(f, "{} {source} > {destination}", self.protocol)?;
        match &self.lan {
            Some(lan) => write!(f, " ({})", end(&lan.address, lan.port)),
            None => Ok(()),
        }
    }
}

impl FlowOrder {
    /// All orders.
    pub const ALL: [FlowOrder; 5] = [
        FlowOrder::Rate,
        FlowOrder::Bytes,
        FlowOrder::Delay,
        FlowOrder::Dropped,
        FlowOrder::RoundTrip,
    ];

    /// Returns what flows are sorted by, in words.
    pub fn name(self) -> &'static str {
        match self {
            FlowOrder::Rate => "rate",
            FlowOrder::Bytes => "bytes",
            FlowOrder::Delay => "delay",
            FlowOrder::Dropped => "drops",
            FlowOrder::RoundTrip => "round trip",
        }
    }
}

/// TCP segments with data in the last 10 to 20 seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LossStatus {
    /// How many arrived.
    pub segments: u64,
    /// How many of them had been lost on the way here, and were sent again: they filled a gap in the sequence
    /// numbers more than 3 ms later.
    pub lost: u64,
}

/// Round trip times, milliseconds. They begin behind the queue of this run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RoundTripStatus {
    /// The last one.
    pub latest: f64,
    /// The shortest one.
    pub minimum: f64,
    /// The median of the last 16.
    pub median: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_named_by_their_ends() {
        let of = |source_port, destination_port| {
            let flow = FlowStatus {
                source: "192.0.2.1".to_owned(),
                source_port,
                destination: "2001:db8::7".to_owned(),
                destination_port,
                protocol: "udp".to_owned(),
                ..FlowStatus::default()
            };
            flow.to_string()
        };
        assert_eq!(of(53, 5_000), "udp 192.0.2.1:53 > [2001:db8::7]:5000");
        assert_eq!(of(0, 0), "udp 192.0.2.1 > 2001:db8::7");
        let translated = FlowStatus {
            lan: Some(LanStatus {
                address: "10.0.0.2".to_owned(),
                port: 7,
            }),
            ..FlowStatus::default()
        };
        assert!(translated.to_string().ends_with(" (10.0.0.2:7)"), "{translated}");
    }
}
