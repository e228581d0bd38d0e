//! Collects the results of a run from the monitors.

use fairgate::balance::{self, Imbalance};
use fairgate::{Count, Time, jain_index};

use crate::results::{
    ConnectionResults, Durations, FlowResults, GroupResults, InterfaceResults, Results, Totals,
    bits_per_second, by_reason,
};
use crate::scenario::Traffic;
use crate::simulation::build::{interface_name, time};
use crate::simulation::{RunningFlow, Simulation};
use crate::traffic::Source;

impl Simulation {
    /// Returns the results, after checking that the figures add up.
    pub(super) fn results(&mut self) -> Result<Results, Imbalance> {
        self.check_losses()?;
        let in_flight = self.network.take_left()?;
        let results = self.collect(&in_flight);
        results.check()?;
        Ok(results)
    }

    /// Checks that the losses of all flows equal the drops of all disciplines.
    fn check_losses(&self) -> Result<(), Imbalance> {
        let interfaces = &self.network.interfaces;
        let dropped = interfaces
            .iter()
            .map(|interface| interface.egress.root().statistics().dropped.packets);
        let lost = self.network.lost.iter().map(|lost| lost.count.packets);
        balance::of(
            "the network",
            "packets",
            ("lost by flows", lost.sum()),
            &[("dropped at interfaces", dropped.sum())],
        )
    }

    /// Collects the results. `in_flight` holds the packets in the network at the end, by
    /// [`Origin::index`](crate::network::Origin::index).
    fn collect(&self, in_flight: &[Count]) -> Results {
        let flows: Vec<FlowResults> = self
            .flows
            .iter()
            .enumerate()
            .map(|(number, flow)| self.flow_results(number, flow, in_flight))
            .collect();
        let groups = self
            .scenario
            .flows
            .iter()
            .map(|group| group_results(&group.name, flows.iter().filter(|flow| flow.group == group.name)))
            .collect();
        Results {
            seed: self.scenario.seed,
            duration_ns: self.schedule.duration.nanos(),
            measured_ns: [
                time(self.scenario.measure.start).nanos(),
                time(self.scenario.measure.end).nanos(),
            ],
            interval_ns: self.schedule.interval,
            events: self.events_taken,
            packet_hops: self.network.hops,
            goodput_bps: flows.iter().map(|flow| flow.goodput_bps).sum(),
            jain: jain_index(flows.iter().map(|flow| flow.goodput_bps as f64)),
            flows,
            groups,
            interfaces: (0..self.network.interfaces.len())
                .map(|index| self.interface_results(index))
                .collect(),
        }
    }

    /// Returns the length of the measurement window, ns.
    fn window(&self) -> u64 {
        time(self.scenario.measure.end) - time(self.scenario.measure.start)
    }

    fn flow_results(&self, number: usize, flow: &RunningFlow, in_flight: &[Count]) -> FlowResults {
        let group = &self.scenario.flows[flow.group];
        let index = flow.data.origin.index();
        let (window, monitor) = (&self.measured.flows[index], &self.monitors[index]);
        let (seen, totals) = (&window.tally, monitor.totals(self.network.lost[index]));
        FlowResults {
            name: flow.name.clone(),
            group: group.name.clone(),
            source: self.scenario.node_name(group.source).to_owned(),
            destination: self.scenario.node_name(group.destination).to_owned(),
            transport: group.traffic.transport().to_owned(),
            sent: seen.sent.packets,
            received: seen.received.packets,
            lost: seen.lost.count.packets,
            lost_by_reason: by_reason(&seen.lost.by_reason),
            loss_ratio: match seen.sent.packets {
                0 => 0.0,
                sent => seen.lost.count.packets as f64 / sent as f64,
            },
            marked: seen.marked,
            throughput_bps: bits_per_second(seen.received.bytes, self.window()),
            goodput_bps: bits_per_second(seen.payload, self.window()),
            delay: Durations::of(&window.delay),
            jitter_ns: window.jitter,
            throughput_series_bps: monitor
                .series()
                .iter()
                .map(|&bytes| bits_per_second(bytes, self.schedule.interval))
                .collect(),
            whole_run: Totals::of(&totals, in_flight[index]),
            connection: self.connection_results(number, flow, in_flight),
        }
    }

    fn connection_results(
        &self,
        number: usize,
        flow: &RunningFlow,
        in_flight: &[Count],
    ) -> Option<ConnectionResults> {
        let (Traffic::Tcp(tcp), Source::Connection(connection)) =
            (&self.scenario.flows[flow.group].traffic, &flow.source)
        else {
            return None;
        };
        let (before, after) = (self.measured.opening[number]?, self.measured.closing[number]?);
        let back = flow.acknowledgements.origin.index();
        Some(ConnectionResults {
            congestion_control: tcp.config.congestion_control.name().to_owned(),
            established_ns: connection.sender.established_at().map(Time::nanos),
            data_segments: after.data_segments - before.data_segments,
            retransmissions: after.retransmissions - before.retransmissions,
            timeouts: after.timeouts - before.timeouts,
            recoveries: after.recoveries - before.recoveries,
            ecn_reductions: after.ecn_reductions - before.ecn_reductions,
            transfers: Durations::of(&connection.transfers),
            window_series_segments: connection.window_series.clone(),
            rtt_series_ns: connection.rtt_series.clone(),
            acknowledgements: Totals::of(
                &self.monitors[back].totals(self.network.lost[back]),
                in_flight[back],
            ),
        })
    }

    fn interface_results(&self, index: usize) -> InterfaceResults {
        let interface = &self.network.interfaces[index];
        let window = &self.measured.interfaces[index];
        let series = interface.monitor.series();
        InterfaceResults {
            name: interface_name(&self.scenario, index),
            discipline: interface.egress.root().name().to_owned(),
            rate_bps: interface.rate.map(|rate| rate.bits_per_second()),
            enqueued: window.statistics.enqueued.packets,
            transmitted: window.statistics.dequeued.packets,
            transmitted_bytes: window.statistics.dequeued.bytes,
            dropped: window.statistics.dropped.packets,
            dropped_by_reason: by_reason(&window.statistics.dropped_by_reason),
            marked: window.statistics.marked,
            utilisation: interface.rate.map(|rate| {
                bits_per_second(window.statistics.dequeued.bytes, self.window()) as f64
                    / rate.bits_per_second() as f64
            }),
            sojourn: Durations::of(&window.sojourn),
            backlog_series_packets: series.iter().map(|sample| sample.backlog.packets).collect(),
            backlog_series_bytes: series.iter().map(|sample| sample.backlog.bytes).collect(),
            sojourn_series_ns: series
                .iter()
                .map(|sample| sample.sojourn_sum.checked_div(sample.left).unwrap_or(0))
                .collect(),
        }
    }
}

fn group_results<'a>(name: &str, flows: impl Iterator<Item = &'a FlowResults> + Clone) -> GroupResults {
    let sum = |field: fn(&FlowResults) -> u64| flows.clone().map(field).sum::<u64>();
    let count = flows.clone().count() as u64;
    let received = sum(|flow| flow.delay.count);
    let delays: u128 = flows
        .clone()
        .map(|flow| u128::from(flow.delay.mean_ns) * u128::from(flow.delay.count))
        .sum();
    GroupResults {
        name: name.to_owned(),
        flows: count,
        goodput_bps: sum(|flow| flow.goodput_bps),
        jain: jain_index(flows.clone().map(|flow| flow.goodput_bps as f64)),
        sent: sum(|flow| flow.sent),
        lost: sum(|flow| flow.lost),
        delay_mean_ns: delays.checked_div(received.into()).unwrap_or(0) as u64,
        jitter_ns: sum(|flow| flow.jitter_ns) / count,
    }
}
