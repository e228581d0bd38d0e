//! The results of a simulation: plain data. The same scenario and seed give the same results to the last
//! digit.
//!
//! Durations are in whole nanoseconds and rates in whole bits per second, both rounded down.

mod application;
mod cells;
mod classes;
mod csv;
mod measure;
mod observations;
#[cfg(feature = "parquet")]
mod parquet;
mod table;

use std::collections::{BTreeMap, HashMap};

use fairgate::balance::{self, Imbalance};
use fairgate::{Count, DropCounts};
use serde::{Deserialize, Serialize};

use crate::monitor::{Lost, Recorder, Tally};

pub use application::ApplicationResults;
pub use cells::{AirResults, CellResults, StationResults};
pub use classes::{ClassQueue, ClassResults};
pub use csv::CsvFile;
pub use measure::Measure;
pub use observations::ObservationResults;
#[cfg(feature = "parquet")]
pub use parquet::{ParquetFile, parquet_note};
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
    /// The sum of all flows' goodput in the window, or `u64::MAX` if it is greater.
    pub goodput_bps: u64,
    /// Jain's fairness index of all flows' goodput in the window.
    pub jain: f64,
    /// One entry per flow, in the order of the scenario. Groups that report only together have none.
    pub flows: Vec<FlowResults>,
    /// One entry per group of flows (`count`, `arrivals`), in the order of the scenario.
    pub groups: Vec<GroupResults>,
    /// One entry per interface: two per link, in the order of the scenario, the one at `a` first. Those of
    /// cells follow: the access point's, then its stations'.
    pub interfaces: Vec<InterfaceResults>,
    /// One entry per Wi-Fi cell, in the order of the scenario. Left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<CellResults>,
    /// One entry per observed variable, in the order of the scenario. Left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observations: Vec<ObservationResults>,
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
    /// `udp`, `tcp` or `icmp`.
    pub transport: String,
    /// When it started, or was to start after the end of the run.
    pub started_ns: u64,
    /// When its source stopped, or its last transfer arrived. `None` if it was active at the end.
    pub ended_ns: Option<u64>,
    /// Packets sent.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Packets lost on the path: dropped by disciplines, or lost by links.
    pub lost: u64,
    /// `lost` by reason. Reasons without losses are left out. Packets lost by links have the reason `link`.
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
    /// The beginning of the first interval of the series. It is 0, except for flows that arrived at random.
    /// Their series have no points after their last packet.
    pub series_from_ns: u64,
    /// The throughput in each interval.
    pub throughput_series_bps: Vec<u64>,
    /// The totals of data packets over the whole run.
    pub whole_run: Totals,
    /// The results that only TCP has.
    pub connection: Option<ConnectionResults>,
    /// What the application measured, if it measures anything.
    pub application: Option<ApplicationResults>,
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
    /// The congestion window at the end of each interval, segments.
    pub window_series_segments: Vec<u32>,
    /// The smoothed round-trip time at the end of each interval. It is 0 before the first measurement.
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
    /// Packets lost on the path.
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

/// The results of all flows of a group. Figures are of the measurement window, except `flows`, `started`,
/// `ended`, `active`, the series and the totals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupResults {
    /// The flow's name in the scenario.
    pub name: String,
    /// `udp` or `tcp`.
    pub transport: String,
    /// The number of copies, or of flows that arrived at random.
    pub flows: u64,
    /// The number of flows that started.
    pub started: u64,
    /// The number of flows that ended: their source stopped, or their last transfer arrived.
    pub ended: u64,
    /// The number of flows that ended because admission control rejected a packet (`gives_up`).
    #[serde(default)]
    pub gave_up: u64,
    /// The number of flows that started in the measurement window.
    #[serde(default)]
    pub offered: u64,
    /// The number of flows that started in the measurement window and gave up: `blocked / offered` is the
    /// blocking probability.
    #[serde(default)]
    pub blocked: u64,
    /// The number of flows that were active at the end of the run: `started - ended`.
    pub active: u64,
    /// The mean number of active flows over the window.
    pub active_mean: f64,
    /// The sum of their goodput, or `u64::MAX` if it is greater.
    pub goodput_bps: u64,
    /// The goodput of each flow while it was active in the window.
    pub goodput: Rates,
    /// Jain's fairness index of their goodput over the window. If flows arrive at random, or have no rows, it
    /// is that of `goodput`.
    pub jain: f64,
    /// Packets sent by all flows.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Packets lost by all flows.
    pub lost: u64,
    /// `lost` by reason. Reasons without drops are left out.
    pub lost_by_reason: BTreeMap<String, u64>,
    /// The ratio of `lost` to `sent`. It is 0 if nothing was sent.
    pub loss_ratio: f64,
    /// Packets received with a congestion experienced mark.
    pub marked: u64,
    /// The rate of IP packets received.
    pub throughput_bps: u64,
    /// The mean delay of their packets.
    pub delay_mean_ns: u64,
    /// The delays of their packets.
    pub delay: Durations,
    /// The harmonic mean of the delays of their packets, accurate to 0.4 %.
    pub delay_harmonic_ns: u64,
    /// The harmonic mean of the flows' mean delays.
    pub delay_harmonic_of_flows_ns: u64,
    /// The mean of their jitters. If flows arrive at random, flows that received less than two packets do not
    /// count.
    pub jitter_ns: u64,
    /// The jitter of each flow that received at least two packets.
    pub jitter: Durations,
    /// The durations of the transfers completed in the window, from the write to the arrival of the last
    /// byte: response times.
    pub transfers: Durations,
    /// The number of active flows at the end of each interval of the whole run.
    pub active_series: Vec<u32>,
    /// The throughput of all flows in each interval of the whole run.
    pub throughput_series_bps: Vec<u64>,
    /// The totals of data packets over the whole run.
    pub whole_run: Totals,
    /// The totals of acknowledgement packets over the whole run. `None` for UDP.
    pub acknowledgements: Option<Totals>,
}

/// The results of an interface. Figures are of the measurement window, except the series. Bytes include
/// framing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterfaceResults {
    /// `a->b`, with the names of the nodes at both ends. In a cell `ap->cell` and `station->ap`.
    pub name: String,
    /// The name of the root discipline.
    pub discipline: String,
    /// The rate of the link. If it changes, its mean in the window. `None` if transmission takes no time.
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
    /// Packets transmitted and lost on the link.
    pub lost: u64,
    /// The ratio of what was transmitted to what the rate allows. `None` without a rate, and if the
    /// rate is 0 in the whole window.
    pub utilisation: Option<f64>,
    /// The sojourn times of the packets that left the queue.
    pub sojourn: Durations,
    /// Packets queued at the end of each interval of the whole run.
    pub backlog_series_packets: Vec<u64>,
    /// Bytes queued at the end of each interval of the whole run.
    pub backlog_series_bytes: Vec<u64>,
    /// The mean sojourn time of the packets that left in each interval. It is 0 if none left.
    pub sojourn_series_ns: Vec<u64>,
    /// The classes of the tree, inner ones included: those of the root by number, each followed by the
    /// classes below it. Left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassResults>,
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
    /// The median. Percentiles are accurate to 1 %, those of interfaces to 0.1 %.
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

/// A distribution of rates of flows. All values are 0 if there were none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// The number of flows.
    pub count: u64,
    /// The mean.
    pub mean_bps: u64,
    /// The standard deviation.
    pub deviation_bps: u64,
    /// The minimum.
    pub min_bps: u64,
    /// The maximum.
    pub max_bps: u64,
    /// The 5th percentile. Percentiles are accurate to 1 %.
    pub p5_bps: u64,
    /// The median.
    pub p50_bps: u64,
    /// The 95th percentile.
    pub p95_bps: u64,
    /// The percentiles 0 to 100, for plots of the distribution.
    pub percentiles_bps: Vec<u64>,
}

impl Rates {
    /// Returns the distribution of these rates, bit/s.
    pub fn of_all(rates: impl IntoIterator<Item = u64>) -> Rates {
        let mut recorder = Recorder::coarse();
        rates.into_iter().for_each(|rate| recorder.record(rate));
        Rates::of(&recorder)
    }

    pub(crate) fn of(recorder: &Recorder) -> Rates {
        let [p5_bps, p50_bps, p95_bps] = recorder.quantiles([0.05, 0.5, 0.95]);
        Rates {
            count: recorder.count(),
            mean_bps: recorder.mean(),
            deviation_bps: recorder.deviation(),
            min_bps: recorder.min(),
            max_bps: recorder.max(),
            p5_bps,
            p50_bps,
            p95_bps,
            percentiles_bps: percentiles(recorder),
        }
    }
}

/// Returns the percentiles 0 to 100.
fn percentiles(recorder: &Recorder) -> Vec<u64> {
    let percents: [f64; 101] = std::array::from_fn(|percent| percent as f64 / 100.0);
    recorder.quantiles(percents).to_vec()
}

impl Durations {
    /// Returns the distribution of these durations, ns.
    pub fn of_all(nanos: impl IntoIterator<Item = u64>) -> Durations {
        let mut recorder = Recorder::new();
        nanos.into_iter().for_each(|nanos| recorder.record(nanos));
        Durations::of(&recorder)
    }

    pub(crate) fn of(recorder: &Recorder) -> Durations {
        let [p50_ns, p95_ns, p99_ns, p999_ns] = recorder.quantiles([0.5, 0.95, 0.99, 0.999]);
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
            percentiles_ns: percentiles(recorder),
        }
    }
}

/// Returns the bits per second of `bytes` in `nanos`, rounded down, and at most `u64::MAX`.
pub(crate) fn bits_per_second(bytes: u64, nanos: u64) -> u64 {
    (u128::from(bytes) * 8_000_000_000)
        .checked_div(nanos.into())
        .map_or(0, |rate| u64::try_from(rate).unwrap_or(u64::MAX))
}

pub(crate) fn by_reason(drops: &DropCounts) -> BTreeMap<String, u64> {
    drops
        .iter()
        .map(|(reason, packets)| (reason.name().to_owned(), packets))
        .collect()
}

/// The reason of packets that links have lost. No drop reason of a discipline has this name.
const LOST_ON_LINK: &str = "link";
/// The reason of packets given up on air.
const GIVEN_UP_ON_AIR: &str = "retry_limit";

/// Returns the losses of a flow by reason.
pub(crate) fn losses(lost: &Lost) -> BTreeMap<String, u64> {
    let lost = lost.details();
    let mut reasons = by_reason(&lost.by_reason);
    if lost.on_links > 0 {
        reasons.insert(LOST_ON_LINK.to_owned(), lost.on_links);
    }
    if lost.on_air > 0 {
        reasons.insert(GIVEN_UP_ON_AIR.to_owned(), lost.on_air);
    }
    reasons
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
    /// Returns the rows of each group's flows, in the order of the groups. The rows of two groups can
    /// alternate: repeated entries with a flow in each direction.
    pub(crate) fn flows_by_group(&self) -> Vec<Vec<&FlowResults>> {
        let groups = self.groups.iter().enumerate();
        let numbers: HashMap<&str, usize> = groups
            .map(|(number, group)| (group.name.as_str(), number))
            .collect();
        let mut rows = vec![Vec::new(); self.groups.len()];
        for flow in &self.flows {
            rows[numbers[flow.group.as_str()]].push(flow);
        }
        rows
    }

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
        for (group, flows) in self.groups.iter().zip(self.flows_by_group()) {
            group.check(&flows)?;
        }
        for interface in &self.interfaces {
            let place = format!("interface {}", interface.name);
            check_reasons(
                &place,
                ("dropped", interface.dropped),
                &interface.dropped_by_reason,
            )?;
            for class in &interface.classes {
                if let Some(queue) = &class.queue {
                    let place = format!("class {} of {place}", class.class);
                    check_reasons(&place, ("dropped", queue.dropped), &queue.dropped_by_reason)?;
                }
            }
        }
        Ok(())
    }
}

impl GroupResults {
    /// Checks that the figures add up: those of the whole run, and with the rows of the flows, if they have
    /// any.
    fn check(&self, flows: &[&FlowResults]) -> Result<(), Imbalance> {
        let place = format!("group `{}`", self.name);
        self.whole_run.check(&place)?;
        if let Some(acknowledgements) = &self.acknowledgements {
            acknowledgements.check(&format!("the acknowledgements of {place}"))?;
        }
        check_reasons(&place, ("lost", self.lost), &self.lost_by_reason)?;
        let parts = [("ended", self.ended), ("active", self.active)];
        balance::of(&place, "flows", ("started", self.started), &parts)?;
        type Figure = fn(&FlowResults) -> u64;
        let figures: [(&str, u64, Figure); 5] = [
            ("sent", self.sent, |flow| flow.sent),
            ("received", self.received, |flow| flow.received),
            ("lost", self.lost, |flow| flow.lost),
            ("sent in the whole run", self.whole_run.sent, |flow| {
                flow.whole_run.sent
            }),
            ("received in the whole run", self.whole_run.received, |flow| {
                flow.whole_run.received
            }),
        ];
        if flows.is_empty() {
            return Ok(());
        }
        for (name, of_group, figure) in figures {
            let sum = flows.iter().map(|flow| figure(flow)).sum();
            balance::of(&place, "packets", (name, of_group), &[("by its flows", sum)])?;
        }
        Ok(())
    }
}

impl FlowResults {
    /// Continues the series of a flow that is over until there are `intervals` points.
    pub(crate) fn pad(&mut self, intervals: usize) {
        self.throughput_series_bps.resize(intervals, 0);
        if let Some(connection) = &mut self.connection {
            let window = connection.window_series_segments.last().copied().unwrap_or(0);
            connection.window_series_segments.resize(intervals, window);
            let rtt = connection.rtt_series_ns.last().copied().unwrap_or(0);
            connection.rtt_series_ns.resize(intervals, rtt);
        }
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
