//! What a simulation found out: plain data, the same to the last digit for the same scenario and seed.
//!
//! Durations are whole nanoseconds, rates whole bits per second, both rounded down.

mod csv;
#[cfg(feature = "parquet")]
mod parquet;
mod table;

use std::collections::BTreeMap;

use fairgate::balance::{self, Imbalance};
use fairgate::{Count, DropReason};
use serde::{Deserialize, Serialize};

use crate::monitor::{Recorder, Tally};

pub use table::{Column, Table};

/// The results of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The seed.
    pub seed: u64,
    /// Simulated time, ns.
    pub duration_ns: u64,
    /// The window of measurement: first and one past the last nanosecond.
    pub measured_ns: [u64; 2],
    /// Distance of the points of time series, ns.
    pub interval_ns: u64,
    /// Events that the engine went through.
    pub events: u64,
    /// Packets transmitted, over all interfaces.
    pub packet_hops: u64,
    /// Sum of all flows' goodput in the window.
    pub goodput_bps: u64,
    /// Jain's index of all flows' goodput in the window.
    pub jain: f64,
    /// By flow, in the order of the scenario.
    pub flows: Vec<FlowResults>,
    /// By group of flows alike (`count`), in the order of the scenario.
    pub groups: Vec<GroupResults>,
    /// By interface: each link's, in the order of the scenario, first the one at `a`.
    pub interfaces: Vec<InterfaceResults>,
}

/// A flow. Figures are of the window of measurement, but for the series and `whole_run`; bytes are those of IP packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResults {
    /// Its name.
    pub name: String,
    /// The name of its group.
    pub group: String,
    /// Name of the node where it starts.
    pub source: String,
    /// Name of the node where it ends.
    pub destination: String,
    /// `udp` or `tcp`.
    pub transport: String,
    /// Packets sent.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Packets dropped on the way.
    pub lost: u64,
    /// `lost` by reason; reasons without drops are left out.
    pub lost_by_reason: BTreeMap<String, u64>,
    /// `lost` in parts of `sent`; 0 if nothing was sent.
    pub loss_ratio: f64,
    /// Packets received with congestion experienced.
    pub marked: u64,
    /// IP packets received.
    pub throughput_bps: u64,
    /// Payload received, in order and once.
    pub goodput_bps: u64,
    /// From the first send to the arrival.
    pub delay: Durations,
    /// Mean difference between the delays of successive packets.
    pub jitter_ns: u64,
    /// Throughput of each interval of the whole run.
    pub throughput_series_bps: Vec<u64>,
    /// The data's packets over the whole run.
    pub whole_run: Totals,
    /// Of TCP.
    pub connection: Option<ConnectionResults>,
}

/// What TCP alone has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionResults {
    /// `reno`, `cubic`, `dctcp` or `ledbat`.
    pub congestion_control: String,
    /// When the handshake was complete; `None` if it never was.
    pub established_ns: Option<u64>,
    /// Data segments sent, retransmissions included.
    pub data_segments: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Fast recoveries.
    pub recoveries: u64,
    /// Reductions of the window for ECN marks.
    pub ecn_reductions: u64,
    /// Durations of transfers that ended, from the write to the arrival of the last byte, over the whole run.
    pub transfers: Durations,
    /// Congestion window at the end of each interval of the whole run, segments.
    pub window_series_segments: Vec<u32>,
    /// Smoothed round-trip time at the end of each interval of the whole run; 0 before the first measurement.
    pub rtt_series_ns: Vec<u64>,
    /// The acknowledgements' packets over the whole run.
    pub acknowledgements: Totals,
}

/// Conservation: `sent = received + lost + in_flight`, in packets and in bytes of IP packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Packets sent.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Packets dropped on the way.
    pub lost: u64,
    /// Packets still on the way at the end: counted where they are, not what remains of the others.
    pub in_flight: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes dropped on the way.
    pub lost_bytes: u64,
    /// Bytes still on the way at the end.
    pub in_flight_bytes: u64,
}

/// Flows alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupResults {
    /// The flow's name in the scenario.
    pub name: String,
    /// How many.
    pub flows: u64,
    /// Sum of their goodput.
    pub goodput_bps: u64,
    /// Jain's index of their goodput.
    pub jain: f64,
    /// Packets sent by all.
    pub sent: u64,
    /// Packets lost by all.
    pub lost: u64,
    /// Mean of their packets' delays.
    pub delay_mean_ns: u64,
    /// Mean of their jitters.
    pub jitter_ns: u64,
}

/// An interface. Figures are of the window of measurement, but for the series; bytes include framing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterfaceResults {
    /// `a->b`, the names of the nodes at both ends.
    pub name: String,
    /// The name of the discipline at the root of its tree.
    pub discipline: String,
    /// Its rate; `None` for a line that takes no time.
    pub rate_bps: Option<u64>,
    /// Packets handed to the queue.
    pub enqueued: u64,
    /// Packets transmitted.
    pub transmitted: u64,
    /// Bytes transmitted.
    pub transmitted_bytes: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// `dropped` by reason; reasons without drops are left out.
    pub dropped_by_reason: BTreeMap<String, u64>,
    /// Packets marked with congestion experienced.
    pub marked: u64,
    /// What was transmitted in parts of what the rate allows; `None` without a rate.
    pub utilisation: Option<f64>,
    /// Time in the queue of packets that left it.
    pub sojourn: Durations,
    /// Packets queued at the end of each interval of the whole run.
    pub backlog_series_packets: Vec<u64>,
    /// Bytes queued at the end of each interval of the whole run.
    pub backlog_series_bytes: Vec<u64>,
    /// Mean sojourn time of the packets that left in each interval, 0 if none did.
    pub sojourn_series_ns: Vec<u64>,
}

/// A distribution of durations. All 0 if there were none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durations {
    /// How many.
    pub count: u64,
    /// Mean.
    pub mean_ns: u64,
    /// Standard deviation.
    pub deviation_ns: u64,
    /// Least.
    pub min_ns: u64,
    /// Most.
    pub max_ns: u64,
    /// Median. Percentiles are within 0.1 %.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Percentiles 0 to 100, each: for plots of the distribution.
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

/// Bits per second that `bytes` in `nanos` make, rounded down.
pub(crate) fn bits_per_second(bytes: u64, nanos: u64) -> u64 {
    (u128::from(bytes) * 8_000_000_000)
        .checked_div(nanos.into())
        .map_or(0, |rate| rate as u64)
}

pub(crate) fn by_reason(counts: &[u64; DropReason::COUNT]) -> BTreeMap<String, u64> {
    DropReason::ALL
        .iter()
        .zip(counts)
        .filter(|&(_, &count)| count > 0)
        .map(|(reason, &count)| (reason.name().to_owned(), count))
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
    /// Checks that the figures add up: each flow's over the whole run, drops with their reasons, groups with
    /// their flows. Of the window of measurement alone, packets received or lost may have been sent before
    /// it.
    ///
    /// # Errors
    /// Where they do not.
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

/// Checks that reasons account for every drop.
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
