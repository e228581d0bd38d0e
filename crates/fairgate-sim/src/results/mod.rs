//! The results of a simulation: plain data. The same scenario and seed give the same results to the last
//! digit.
//!
//! Durations are in whole nanoseconds and rates in whole bits per second, both rounded down.

mod csv;
#[cfg(feature = "parquet")]
mod parquet;
mod table;

use std::collections::BTreeMap;

use fairgate::balance::{self, Imbalance};
use fairgate::{Count, DropCounts};
use serde::{Deserialize, Serialize};

use crate::monitor::{Recorder, Tally};

pub use table::{Column, Table};

/// The results of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The seed.
    pub seed: u64,
    /// The simulated time, ns.
    pub duration_ns: u64,
    /// The measurement window: its first nanosecond, and the nanosecond after its last one.
    pub measured_ns: [u64; 2],
    /// The interval between the points of time series, ns.
    pub interval_ns: u64,
    /// The number of events handled.
    pub events: u64,
    /// The number of packets transmitted by all interfaces.
    pub packet_hops: u64,
    /// The sum of all flows' goodput in the window.
    pub goodput_bps: u64,
    /// Jain's fairness index of all flows' goodput in the window.
    pub jain: f64,
    /// One entry per flow, in the order of the scenario.
    pub flows: Vec<FlowResults>,
    /// One entry per group of copies of a flow (`count`), in the order of the scenario.
    pub groups: Vec<GroupResults>,
    /// One entry per interface: two per link, in the order of the scenario, the one at `a` first.
    pub interfaces: Vec<InterfaceResults>,
}

/// The results of a flow. Figures are of the measurement window, except the series and `whole_run`. Bytes are
/// those of IP packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResults {
    /// The name.
    pub name: String,
    /// The name of the group.
    pub group: String,
    /// The name of the source node.
    pub source: String,
    /// The name of the destination node.
    pub destination: String,
    /// `udp` or `tcp`.
    pub transport: String,
    /// Packets sent.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Packets dropped on the path.
    pub lost: u64,
    /// `lost` by reason. Reasons without drops are left out.
    pub lost_by_reason: BTreeMap<String, u64>,
    /// The ratio of `lost` to `sent`. It is 0 if nothing was sent.
    pub loss_ratio: f64,
    /// Packets received with a congestion experienced mark.
    pub marked: u64,
    /// The rate of IP packets received.
    pub throughput_bps: u64,
    /// The rate of payload delivered in order, without duplicates.
    pub goodput_bps: u64,
    /// The delay from the first transmission by the source to the arrival.
    pub delay: Durations,
    /// The mean absolute difference between the delays of successive packets.
    pub jitter_ns: u64,
    /// The throughput in each interval of the whole run.
    pub throughput_series_bps: Vec<u64>,
    /// The totals of data packets over the whole run.
    pub whole_run: Totals,
    /// The results that only TCP has.
    pub connection: Option<ConnectionResults>,
}

/// The results that only TCP has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionResults {
    /// `reno`, `cubic`, `dctcp` or `ledbat`.
    pub congestion_control: String,
    /// When the handshake was complete; `None` if it never was.
    pub established_ns: Option<u64>,
    /// Data segments sent, including retransmissions.
    pub data_segments: u64,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast recoveries.
    pub recoveries: u64,
    /// Reductions of the window because of ECN marks.
    pub ecn_reductions: u64,
    /// The durations of completed transfers over the whole run, from the write to the arrival of the last
    /// byte.
    pub transfers: Durations,
    /// The congestion window at the end of each interval of the whole run, segments.
    pub window_series_segments: Vec<u32>,
    /// The smoothed round-trip time at the end of each interval of the whole run. It is 0 before the first
    /// measurement.
    pub rtt_series_ns: Vec<u64>,
    /// The totals of acknowledgement packets over the whole run.
    pub acknowledgements: Totals,
}

/// Totals of packets and bytes of IP packets. Conservation must hold: `sent = received + lost + in_flight`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Packets sent.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Packets dropped on the path.
    pub lost: u64,
    /// Packets still in the network at the end. They are counted where they are, not computed as a
    /// difference.
    pub in_flight: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes dropped on the path.
    pub lost_bytes: u64,
    /// Bytes still in the network at the end.
    pub in_flight_bytes: u64,
}

/// The results of all copies of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupResults {
    /// The flow's name in the scenario.
    pub name: String,
    /// The number of copies.
    pub flows: u64,
    /// The sum of their goodput.
    pub goodput_bps: u64,
    /// Jain's fairness index of their goodput.
    pub jain: f64,
    /// Packets sent by all copies.
    pub sent: u64,
    /// Packets lost by all copies.
    pub lost: u64,
    /// The mean delay of their packets.
    pub delay_mean_ns: u64,
    /// The mean of their jitters.
    pub jitter_ns: u64,
}

/// The results of an interface. Figures are of the measurement window, except the series. Bytes include
/// framing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterfaceResults {
    /// `a->b`, with the names of the nodes at both ends.
    pub name: String,
    /// The name of the root discipline.
    pub discipline: String,
    /// The rate of the link. `None` if transmission takes no time.
    pub rate_bps: Option<u64>,
    /// Packets enqueued.
    pub enqueued: u64,
    /// Packets transmitted.
    pub transmitted: u64,
    /// Bytes transmitted.
    pub transmitted_bytes: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// `dropped` by reason. Reasons without drops are left out.
    pub dropped_by_reason: BTreeMap<String, u64>,
    /// Packets marked with congestion experienced.
    pub marked: u64,
    /// The ratio of what was transmitted to what the rate allows. `None` without a rate.
    pub utilisation: Option<f64>,
    /// The sojourn times of the packets that left the queue.
    pub sojourn: Durations,
    /// Packets queued at the end of each interval of the whole run.
    pub backlog_series_packets: Vec<u64>,
    /// Bytes queued at the end of each interval of the whole run.
    pub backlog_series_bytes: Vec<u64>,
    /// The mean sojourn time of the packets that left in each interval. It is 0 if none left.
    pub sojourn_series_ns: Vec<u64>,
}

/// A distribution of durations. All values are 0 if there were none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durations {
    /// The number of durations.
    pub count: u64,
    /// The mean.
    pub mean_ns: u64,
    /// The standard deviation.
    pub deviation_ns: u64,
    /// The minimum.
    pub min_ns: u64,
    /// The maximum.
    pub max_ns: u64,
    /// The median. Percentiles are accurate to 0.1 %.
    pub p50_ns: u64,
    /// The 95th percentile.
    pub p95_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The 99.9th percentile.
    pub p999_ns: u64,
    /// The percentiles 0 to 100, for plots of the distribution.
    pub percentiles_ns: Vec<u64>,
}

impl Durations {
    pub(crate) fn of(recorder: &Recorder) -> Durations {
        let [p50_ns, p95_ns, p99_ns, p999_ns] = recorder.quantiles([0.5, 0.95, 0.99, 0.999]);
        let percents: [f64; 101] = std::array::from_fn(|percent| percent as f64 / 100.0);
        Durations {
            count: recorder.count(),
            mean_ns: recorder.mean(),
            deviation_ns: recorder.deviation(),
            min_ns: recorder.min(),
            max_ns: recorder.max(),
            p50_ns,
            p95_ns,
            p99_ns,
            p999_ns,
            percentiles_ns: recorder.quantiles(percents).to_vec(),
        }
    }
}

/// Returns the bits per second of `bytes` in `nanos`, rounded down.
pub(crate) fn bits_per_second(bytes: u64, nanos: u64) -> u64 {
    (u128::from(bytes) * 8_000_000_000)
        .checked_div(nanos.into())
        .map_or(0, |rate| rate as u64)
}

pub(crate) fn by_reason(drops: &DropCounts) -> BTreeMap<String, u64> {
    drops
        .iter()
        .map(|(reason, packets)| (reason.name().to_owned(), packets))
        .collect()
}

impl Totals {
    pub(crate) fn of(tally: &Tally, in_flight: Count) -> Totals {
        Totals {
            sent: tally.sent.packets,
            received: tally.received.packets,
            lost: tally.lost.count.packets,
            in_flight: in_flight.packets,
            sent_bytes: tally.sent.bytes,
            received_bytes: tally.received.bytes,
            lost_bytes: tally.lost.count.bytes,
            in_flight_bytes: in_flight.bytes,
        }
    }

    fn check(&self, place: &str) -> Result<(), Imbalance> {
        let count = |packets, bytes| Count { packets, bytes };
        balance::of_counts(
            place,
            ("sent", count(self.sent, self.sent_bytes)),
            &[
                ("received", count(self.received, self.received_bytes)),
                ("lost", count(self.lost, self.lost_bytes)),
                ("in flight", count(self.in_flight, self.in_flight_bytes)),
            ],
        )
    }
}

impl Results {
    /// Checks that the figures add up: each flow's over the whole run, drops with their reasons, and groups
    /// with their flows. The figures of the measurement window are not checked for conservation, because
    /// packets received or lost in it may have been sent before it.
    ///
    /// # Errors
    /// Reports the first figures that do not add up.
    pub(crate) fn check(&self) -> Result<(), Imbalance> {
        for flow in &self.flows {
            let name = &flow.name;
            flow.whole_run.check(&format!("flow `{name}`"))?;
            if let Some(connection) = &flow.connection {
                let place = format!("the acknowledgements of flow `{name}`");
                connection.acknowledgements.check(&place)?;
            }
            check_reasons(
                &format!("flow `{name}`"),
                ("lost", flow.lost),
                &flow.lost_by_reason,
            )?;
        }
        for group in &self.groups {
            let place = format!("group `{}`", group.name);
            let of_flows = |figure: fn(&FlowResults) -> u64| -> u64 {
                let flows = self.flows.iter().filter(|flow| flow.group == group.name);
                flows.map(figure).sum()
            };
            let (sent, lost) = (of_flows(|flow| flow.sent), of_flows(|flow| flow.lost));
            balance::of(&place, "packets", ("sent", group.sent), &[("by its flows", sent)])?;
            balance::of(&place, "packets", ("lost", group.lost), &[("by its flows", lost)])?;
        }
        for interface in &self.interfaces {
            let place = format!("interface {}", interface.name);
            check_reasons(
                &place,
                ("dropped", interface.dropped),
                &interface.dropped_by_reason,
            )?;
        }
        Ok(())
    }
}

/// Checks that the reasons add up to all drops.
fn check_reasons(
    place: &str,
    whole: (&str, u64),
    by_reason: &BTreeMap<String, u64>,
) -> Result<(), Imbalance> {
    let parts: Vec<(&str, u64)> = by_reason
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    balance::of(place, "packets", whole, &parts)
}
