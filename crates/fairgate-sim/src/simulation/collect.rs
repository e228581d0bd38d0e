//! Collects results: of a flow when it is over, of all else at the end of the run.

use fairgate::balance::{self, Imbalance};
use fairgate::{Count, Time};

use crate::events::time;
use crate::monitor::{ConnectionWindow, Contribution, FlowWindow, Lost, Shares, Tally};
use crate::network::Cell;
use crate::results::{
    CellResults, ConnectionResults, Durations, FlowResults, GroupResults, InterfaceResults,
    ObservationResults, Rates, Results, Totals, bits_per_second, by_reason, losses,
};
use crate::scenario::{Flow, Traffic};
use crate::simulation::Simulation;
use crate::simulation::build::{Entry, Group};
use crate::simulation::flows::LiveFlow;

/// The results of a flow, with its position among all flows.
pub(super) struct Row {
    entry: u32,
    copy: u32,
    results: FlowResults,
}

/// The packets of a flow's data and of its acknowledgements.
struct BothWays<T> {
    data: T,
    acknowledgements: T,
}

impl Simulation {
    /// Returns the results, after checking that the figures add up.
    pub(super) fn results(&mut self) -> Result<Results, Imbalance> {
        self.check_losses()?;
        let in_flight = self.network.take_left()?;
        for place in 0..self.flows.places() as u32 {
            if let Some(mut flow) = self.flows.remove(place) {
                let lost = [false, true].map(|back| self.take_lost(&flow, back));
                let left = [&flow.data, &flow.acknowledgements].map(|it| in_flight[it.origin.index()]);
                // The last interval has not ended.
                flow.monitor.interval_ends();
                self.finish(*flow, lost, left);
            }
        }
        self.finish_unstarted();
        let results = self.collect();
        results.check()?;
        Ok(results)
    }

    /// Checks that the losses of all flows equal the drops of all disciplines and the losses of all links.
    fn check_losses(&self) -> Result<(), Imbalance> {
        let interfaces = &self.network.interfaces;
        let dropped = interfaces
            .iter()
            .map(|interface| interface.egress.root().statistics().dropped.packets);
        let on_links = interfaces.iter().map(|interface| interface.monitor.lost_total());
        let lost = self.network.lost.iter().map(|lost| lost.count.packets);
        balance::of(
            "the network",
            "packets",
            ("lost by flows", self.lost_before + lost.sum::<u64>()),
            &[
                ("dropped at interfaces", dropped.sum()),
                ("lost on links", on_links.sum()),
                ("given up on air", self.network.cells.iter().map(Cell::lost).sum()),
            ],
        )
    }

    /// Makes rows for copies that never started.
    fn finish_unstarted(&mut self) {
        for index in 0..self.entries.len() {
            let entry = &self.entries[index];
            if !entry.rows || entry.starts.are_arrivals() {
                continue;
            }
            while let Some(start) = self.entries[index].starts.take() {
                let entry = (index as u32, &mut self.entries[index]);
                let mut flow = self.builder.build(&self.scenario, entry, start, 0, self.phase);
                flow.series = self.series(&flow).map(Box::new);
                self.finish(flow, [Lost::default(), Lost::default()], [Count::default(); 2]);
            }
        }
    }

    /// Adds a flow to its group, and makes its row of results. `lost` and `in_flight` are the packets of data
    /// and of acknowledgements that were dropped, and that are still in the network.
    pub(super) fn finish(&mut self, mut flow: LiveFlow, lost: [Lost; 2], in_flight: [Count; 2]) {
        let bytes = flow.monitor.interval_ends();
        if bytes > 0 {
            flow.add_point(bytes);
        }
        let [of_data, of_acknowledgements] = lost;
        let window = flow.monitor.finish(self.phase, of_data.clone());
        let connection = flow.source.finish(self.phase);
        // A copy counts as sent.
        let mut acknowledged = flow.acknowledged.sent;
        acknowledged += of_acknowledgements.copied();
        let totals = BothWays {
            data: flow.monitor.totals(of_data),
            acknowledgements: Tally {
                sent: acknowledged,
                received: flow.acknowledged.received,
                lost: of_acknowledgements,
                ..Tally::default()
            },
        };
        let active = self.active_in_window(&flow);
        let goodput_of_window = bits_per_second(window.tally.payload, self.window());
        self.groups[flow.group as usize].monitor.add(&Contribution {
            window: &window,
            goodput: (active > 0).then(|| bits_per_second(window.tally.payload, active)),
            goodput_of_window,
            transfers: connection.as_ref().map(|connection| &connection.transfers),
            totals: &totals.data,
            in_flight: in_flight[0],
            acknowledgements: &totals.acknowledgements,
            acknowledgements_in_flight: in_flight[1],
            interval_bytes: bytes,
        });
        if !self.entries[flow.entry as usize].rows {
            return;
        }
        let totals = BothWays {
            data: Totals::of(&totals.data, in_flight[0]),
            acknowledgements: Totals::of(&totals.acknowledgements, in_flight[1]),
        };
        let results = self.flow_results(&mut flow, &window, connection.as_ref(), totals);
        self.rows.push(Row {
            entry: flow.entry,
            copy: flow.copy,
            results,
        });
    }

    /// Returns for how long a flow was active in the measurement window, ns.
    fn active_in_window(&self, flow: &LiveFlow) -> u64 {
        let [opens, closes] = self.window_ends();
        let now = self.events.now();
        let begin = flow.started.max(opens);
        let end = flow.ended.unwrap_or(now).min(closes).min(now);
        if end > begin { end - begin } else { 0 }
    }

    pub(super) fn window_ends(&self) -> [Time; 2] {
        [time(self.scenario.measure.start), time(self.scenario.measure.end)]
    }

    /// Returns the length of the measurement window, ns.
    fn window(&self) -> u64 {
        let [opens, closes] = self.window_ends();
        closes - opens
    }

    fn flow_results(
        &self,
        flow: &mut LiveFlow,
        window: &FlowWindow,
        connection: Option<&ConnectionWindow>,
        totals: BothWays<Totals>,
    ) -> FlowResults {
        let entry = &self.scenario.flows[flow.entry as usize];
        let seen = &window.tally;
        let series = flow.series.take().map(|series| *series);
        let (first, bytes, windows, round_trips) = series.map_or_else(Default::default, |series| {
            (series.first, series.bytes, series.windows, series.round_trips)
        });
        FlowResults {
            name: entry.copy_name(flow.copy),
            group: entry.group_name().to_owned(),
            source: self.scenario.node_name(entry.source).to_owned(),
            destination: self.scenario.node_name(entry.destination).to_owned(),
            transport: entry.traffic.transport().to_owned(),
            started_ns: flow.started.nanos(),
            ended_ns: flow.ended.map(Time::nanos),
            sent: seen.sent.packets,
            received: seen.received.packets,
            lost: seen.lost.count.packets,
            lost_by_reason: losses(&seen.lost),
            loss_ratio: ratio(seen.lost.count.packets, seen.sent.packets),
            marked: seen.marked,
            throughput_bps: bits_per_second(seen.received.bytes, self.window()),
            goodput_bps: bits_per_second(seen.payload, self.window()),
            delay: Durations::of(&window.delay),
            jitter_ns: window.jitter,
            series_from_ns: first as u64 * self.schedule.interval,
            throughput_series_bps: self.rates(&bytes),
            whole_run: totals.data,
            application: flow.source.application(),
            connection: connection.and_then(|connection| {
                connection_results(
                    entry,
                    flow,
                    connection,
                    totals.acknowledgements,
                    windows,
                    round_trips,
                )
            }),
        }
    }

    /// Returns the rates of bytes received in intervals.
    fn rates(&self, bytes: &[u64]) -> Vec<u64> {
        bytes
            .iter()
            .map(|&bytes| bits_per_second(bytes, self.schedule.interval))
            .collect()
    }

    /// Collects the results. All flows are over.
    fn collect(&mut self) -> Results {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by_key(|row| (row.entry, row.copy));
        for row in &mut rows {
            if !self.entries[row.entry as usize].starts.are_arrivals() {
                row.results.pad(self.intervals);
            }
        }
        let mut goodput: Vec<Vec<u64>> = vec![Vec::new(); self.groups.len()];
        for row in &rows {
            goodput[self.entries[row.entry as usize].group as usize].push(row.results.goodput_bps);
        }
        let flows: Vec<FlowResults> = rows.into_iter().map(|row| row.results).collect();
        let groups: Vec<GroupResults> = (0..self.groups.len())
            .map(|index| self.group_results(index, &goodput[index]))
            .collect();
        Results {
            seed: self.scenario.seed,
            duration_ns: self.schedule.duration.nanos(),
            measured_ns: self.window_ends().map(Time::nanos),
            interval_ns: self.schedule.interval,
            events: self.events.taken(),
            packet_hops: self.network.hops,
            goodput_bps: (groups.iter().map(|group| group.goodput_bps)).fold(0, u64::saturating_add),
            jain: self.jain(&flows),
            flows,
            groups,
            interfaces: (0..self.network.interfaces.len())
                .map(|index| self.interface_results(index))
                .collect(),
            cells: (0..self.scenario.cells.len())
                .map(|index| self.cell_results(index))
                .collect(),
            observations: (self.scenario.observations.iter().zip(&self.observers))
                .map(|(observation, observer)| {
                    let measured = self.window_ends().map(Time::nanos);
                    ObservationResults::of(observation, observer, self.schedule.interval, measured)
                })
                .chain(self.followers.iter().map(|follower| {
                    let measured = self.window_ends().map(Time::nanos);
                    follower.results(self.schedule.interval, measured)
                }))
                .collect(),
        }
    }

    /// Returns Jain's index of all flows. If all have rows, it is exact to the last digit, because the rows
    /// are added in their order.
    fn jain(&self, flows: &[FlowResults]) -> f64 {
        let mut shares = Shares::default();
        for flow in flows {
            shares.add(flow.goodput_bps as f64);
        }
        for group in self.groups.iter().filter(|group| !self.first_entry(group).rows) {
            shares.merge(group.monitor.shares);
        }
        shares.jain()
    }

    /// Returns the first entry of a group. In what concerns results, the others are like it.
    fn first_entry(&self, group: &Group) -> &Entry {
        &self.entries[group.entries[0] as usize]
    }

    /// Returns the results of a group. `goodput` is that of the flows that have rows.
    fn group_results(&self, index: usize, goodput: &[u64]) -> GroupResults {
        let group = &self.groups[index];
        let (first, flow) = (
            self.first_entry(group),
            &self.scenario.flows[group.entries[0] as usize],
        );
        let monitor = &group.monitor;
        let tally = &monitor.tally;
        let is_random = first.starts.are_arrivals();
        let count = if is_random {
            monitor.started
        } else {
            let flows = &self.scenario.flows;
            let counts = group
                .entries
                .iter()
                .map(|&entry| u64::from(flows[entry as usize].count));
            counts.sum()
        };
        let mut shares = monitor.shares;
        if first.rows && !is_random {
            shares = Shares::default();
            goodput.iter().for_each(|&goodput| shares.add(goodput as f64));
        }
        GroupResults {
            name: group.name.clone(),
            transport: flow.traffic.transport().to_owned(),
            flows: count,
            started: monitor.started,
            ended: monitor.ended,
            gave_up: monitor.gave_up,
            offered: monitor.offered,
            blocked: monitor.blocked,
            active: monitor.active(),
            active_mean: monitor.mean_active(self.window()),
            goodput_bps: monitor.goodput_sum,
            goodput: Rates::of(&monitor.goodput),
            jain: shares.jain(),
            sent: tally.sent.packets,
            received: tally.received.packets,
            lost: tally.lost.count.packets,
            lost_by_reason: losses(&tally.lost),
            loss_ratio: ratio(tally.lost.count.packets, tally.sent.packets),
            marked: tally.marked,
            throughput_bps: bits_per_second(tally.received.bytes, self.window()),
            delay_mean_ns: monitor.delay.mean(),
            delay: Durations::of(&monitor.delay),
            delay_harmonic_ns: monitor.delay.harmonic_mean(),
            delay_harmonic_of_flows_ns: monitor.harmonic_delay_of_flows(),
            // Flows that received less than two packets have no jitter: their share counts as 0, if there is
            // a known number of flows.
            jitter_ns: match is_random {
                true => monitor.jitter.mean(),
                false => (monitor.jitter.sum() / u128::from(count)) as u64,
            },
            jitter: Durations::of(&monitor.jitter),
            transfers: Durations::of(&monitor.transfers),
            active_series: monitor.active_series.clone(),
            throughput_series_bps: self.rates(&monitor.series),
            whole_run: Totals::of(&monitor.totals, monitor.in_flight),
            acknowledgements: match flow.traffic {
                Traffic::Tcp(_) | Traffic::Ping(_) => Some(Totals::of(
                    &monitor.acknowledgements,
                    monitor.acknowledgements_in_flight,
                )),
                _ => None,
            },
        }
    }

    fn cell_results(&self, index: usize) -> CellResults {
        let (cell, running) = (&self.scenario.cells[index], &self.network.cells[index]);
        let names = cell
            .stations
            .iter()
            .map(|&node| self.scenario.node_name(node).to_owned());
        CellResults::of(
            cell,
            names,
            |station| running.medium.mcs(station),
            running.monitor.window(),
            self.window(),
        )
    }

    fn interface_results(&self, index: usize) -> InterfaceResults {
        let interface = &self.network.interfaces[index];
        let window = &self.interfaces[index];
        let series = interface.monitor.series();
        let measured = &self.scenario.measure;
        let capacity = interface.rate.nanobits(time(measured.start), time(measured.end));
        let rate_bps = capacity.map(|capacity| (capacity / u128::from(self.window())) as u64);
        InterfaceResults {
            name: interface.name.clone(),
            discipline: interface.egress.root().name().to_owned(),
            rate_bps,
            enqueued: window.statistics.enqueued.packets,
            transmitted: window.statistics.dequeued.packets,
            transmitted_bytes: window.statistics.dequeued.bytes,
            dropped: window.statistics.dropped.packets,
            dropped_by_reason: by_reason(&window.statistics.dropped_by_reason),
            marked: window.statistics.marked,
            lost: window.lost,
            utilisation: rate_bps.filter(|&rate| rate > 0).map(|rate| {
                bits_per_second(window.statistics.dequeued.bytes, self.window()) as f64 / rate as f64
            }),
            sojourn: Durations::of(&window.sojourn),
            backlog_series_packets: series.iter().map(|sample| sample.backlog.packets).collect(),
            backlog_series_bytes: series.iter().map(|sample| sample.backlog.bytes).collect(),
            sojourn_series_ns: series
                .iter()
                .map(|sample| sample.sojourn_sum.checked_div(sample.left).unwrap_or(0))
                .collect(),
            classes: window.classes.clone(),
        }
    }
}

fn connection_results(
    entry: &Flow,
    flow: &LiveFlow,
    window: &ConnectionWindow,
    acknowledgements: Totals,
    window_series_segments: Vec<u32>,
    rtt_series_ns: Vec<u64>,
) -> Option<ConnectionResults> {
    let Traffic::Tcp(tcp) = &entry.traffic else {
        return None;
    };
    Some(ConnectionResults {
        congestion_control: tcp.config.control_name().to_owned(),
        established_ns: flow.source.established_at().map(Time::nanos),
        data_segments: window.counters.data_segments,
        retransmissions: window.counters.retransmissions,
        timeouts: window.counters.timeouts,
        recoveries: window.counters.recoveries,
        ecn_reductions: window.counters.ecn_reductions,
        transfers: Durations::of(&window.all_transfers),
        window_series_segments,
        rtt_series_ns,
        acknowledgements,
    })
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}
