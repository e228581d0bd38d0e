//! Runs a scenario: builds the network, then takes one event after the other until the end.

use std::net::IpAddr;
use std::time::Duration;

use fairgate::{Ecn, FlowHasher, FlowKey, Packet, PacketId, Time};
use thiserror::Error;

use crate::events::{Event, Events, Ticket};
use crate::monitor::{FlowMonitor, FlowWindow, InterfaceMonitor, InterfaceWindow};
use crate::network::{Interface, Network, Origin, Template, TooManyPackets};
use crate::random::{Stream, derive_seed};
use crate::results::{
    Durations, FlowResults, GroupResults, InterfaceResults, Results, Totals, bits_per_second, by_reason, jain,
};
use crate::scenario::{Culprit, Flow, Hop, Router, Scenario, ScenarioError, Traffic, UDP_HEADERS};
use crate::traffic::Datagrams;

/// Why there are no results.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The scenario makes no sense.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Memory would not hold the packets.
    #[error(transparent)]
    TooManyPackets(#[from] TooManyPackets),
}

/// A scenario ready to run.
pub struct Simulation {
    scenario: Scenario,
    events: Events<Event>,
    network: Network,
    flows: Vec<RunningFlow>,
    /// By [`Origin::index`].
    monitors: Vec<FlowMonitor>,
    schedule: Schedule,
    events_taken: u64,
    flow_windows: Vec<FlowWindow>,
    interface_windows: Vec<InterfaceWindow>,
}

/// One flow while it runs.
struct RunningFlow {
    name: String,
    /// Index in the scenario's flows.
    group: usize,
    data: Template,
    stop: Time,
    source: Datagrams,
}

/// The events that are not about packets. Their tickets come first, so that intervals and the window are half open: what
/// happens at their end is no longer in them.
struct Schedule {
    interval: u64,
    interval_ticket: Ticket,
    duration: Time,
}

fn time(duration: Duration) -> Time {
    Time::ZERO + duration
}

impl Simulation {
    /// Checks a scenario and builds its network.
    pub fn new(scenario: &Scenario) -> Result<Simulation, ScenarioError> {
        scenario.check()?;
        let mut events = Events::new();
        let schedule = Schedule {
            interval: time(scenario.interval).nanos(),
            interval_ticket: events.ticket(),
            duration: time(scenario.duration),
        };
        if time(scenario.interval) <= schedule.duration {
            events.schedule_with(schedule.interval_ticket, time(scenario.interval), Event::Interval);
        }
        events.schedule(time(scenario.measure.start), Event::Opening);
        events.schedule(time(scenario.measure.end), Event::Closing);
        events.schedule(schedule.duration, Event::End);
        let intervals = (schedule.duration.nanos() / schedule.interval) as usize;

        let count: usize = scenario.flows.iter().map(|flow| flow.count as usize).sum();
        let mut network = Network::new(build_interfaces(scenario, intervals)?, 2 * count);
        let flows = build_flows(scenario, &mut network)?;
        for (index, flow) in flows.iter().enumerate() {
            let group = &scenario.flows[flow.group];
            let within_group = index
                - flows
                    .iter()
                    .position(|other| other.group == flow.group)
                    .unwrap_or(index);
            let start = time(group.start) + time(group.stagger).nanos() * within_group as u64;
            if start < schedule.duration.min(flow.stop) {
                events.schedule(start, Event::Source(index as u32));
            }
        }
        Ok(Simulation {
            scenario: scenario.clone(),
            events,
            network,
            monitors: vec![FlowMonitor::new(intervals); 2 * flows.len()],
            flows,
            schedule,
            events_taken: 0,
            flow_windows: Vec::new(),
            interface_windows: Vec::new(),
        })
    }

    /// Runs to the end.
    pub fn run(self) -> Result<Results, Error> {
        self.run_with(|_| ())
    }

    /// Runs to the end and tells the simulated time after each interval of the time series.
    pub fn run_with(mut self, mut progress: impl FnMut(Time)) -> Result<Results, Error> {
        loop {
            let event = self
                .events
                .next()
                .expect("the end is scheduled from the beginning on");
            self.events_taken += 1;
            match event {
                Event::Arrival(interface) => {
                    let id = self.network.arrive(interface, &mut self.events);
                    if !self.network.forward(id, &mut self.events) {
                        self.receive(id);
                    }
                }
                Event::Wake(interface) => self.network.wake(interface, &mut self.events),
                Event::Source(flow) => self.send(flow)?,
                Event::Interval => {
                    self.interval_ends();
                    progress(self.events.now());
                }
                Event::Opening => self.window_opens(),
                Event::Closing => self.window_closes(),
                Event::End => return Ok(self.results()),
            }
        }
    }

    /// Lets a flow's source send what is due.
    #[inline]
    fn send(&mut self, index: u32) -> Result<(), TooManyPackets> {
        let now = self.events.now();
        let flow = &mut self.flows[index as usize];
        let (payload, next) = flow.source.next(now);
        let length = payload + UDP_HEADERS;
        let id = self.network.create(&flow.data, length, now)?;
        self.monitors[flow.data.origin.index()].sent(length);
        if next < flow.stop {
            self.events.schedule(next, Event::Source(index));
        }
        self.network.forward(id, &mut self.events);
        Ok(())
    }

    /// A packet has reached the end of its route.
    #[inline]
    fn receive(&mut self, id: PacketId) {
        let journey = self.network.journey(id);
        let delay = self.events.now() - journey.sent_at;
        let marked = self.network.pool[id].ecn == Ecn::Ce;
        let monitor = &mut self.monitors[journey.origin.index()];
        monitor.received(journey.length, delay, marked);
        monitor.delivered(u64::from(journey.length - UDP_HEADERS));
        self.network.pool.release(id);
    }

    fn interval_ends(&mut self) {
        for monitor in &mut self.monitors {
            monitor.interval_ends();
        }
        for interface in &mut self.network.interfaces {
            interface.monitor.interval_ends(interface.discipline.backlog());
        }
        let next = self.events.now() + self.schedule.interval;
        if next <= self.schedule.duration {
            self.events
                .schedule_with(self.schedule.interval_ticket, next, Event::Interval);
        }
    }

    fn window_opens(&mut self) {
        for (monitor, lost) in self.monitors.iter_mut().zip(&self.network.lost) {
            monitor.window_opens(*lost);
        }
        for interface in &mut self.network.interfaces {
            interface.monitor.window_opens(interface.discipline.statistics());
        }
    }

    fn window_closes(&mut self) {
        self.flow_windows = self
            .monitors
            .iter_mut()
            .zip(&self.network.lost)
            .map(|(monitor, lost)| monitor.window_closes(*lost))
            .collect();
        self.interface_windows = self
            .network
            .interfaces
            .iter_mut()
            .map(|interface| interface.monitor.window_closes(interface.discipline.statistics()))
            .collect();
    }

    fn results(&self) -> Results {
        let flows: Vec<FlowResults> = self.flows.iter().map(|flow| self.flow_results(flow)).collect();
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
            jain: jain(flows.iter().map(|flow| flow.goodput_bps)),
            flows,
            groups,
            interfaces: (0..self.network.interfaces.len())
                .map(|index| self.interface_results(index))
                .collect(),
        }
    }

    /// Length of the window of measurement, ns.
    fn window(&self) -> u64 {
        time(self.scenario.measure.end) - time(self.scenario.measure.start)
    }

    fn flow_results(&self, flow: &RunningFlow) -> FlowResults {
        let group = &self.scenario.flows[flow.group];
        let index = flow.data.origin.index();
        let (window, monitor) = (&self.flow_windows[index], &self.monitors[index]);
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
            whole_run: Totals::of(totals.sent, totals.received, totals.lost.count),
            acknowledgements: None,
        }
    }

    fn interface_results(&self, index: usize) -> InterfaceResults {
        let interface = &self.network.interfaces[index];
        let window = &self.interface_windows[index];
        let series = interface.monitor.series();
        InterfaceResults {
            name: interface_name(&self.scenario, index),
            discipline: interface.discipline.name().to_owned(),
            rate_bps: interface.rate.map(|rate| rate.bits_per_second()),
            enqueued: window.books.enqueued.packets,
            transmitted: window.books.dequeued.packets,
            transmitted_bytes: window.books.dequeued.bytes,
            dropped: window.books.dropped.packets,
            dropped_by_reason: by_reason(&window.books.dropped_by_reason),
            marked: window.books.marked,
            utilisation: interface.rate.map(|rate| {
                bits_per_second(window.books.dequeued.bytes, self.window()) as f64
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
        jain: jain(flows.clone().map(|flow| flow.goodput_bps)),
        sent: sum(|flow| flow.sent),
        lost: sum(|flow| flow.lost),
        delay_mean_ns: delays.checked_div(received.into()).unwrap_or(0) as u64,
        jitter_ns: sum(|flow| flow.jitter_ns) / count,
    }
}

/// Names and builds: `a->b` is even, `b->a` odd, as [`Hop`] counts.
fn build_interfaces(scenario: &Scenario, intervals: usize) -> Result<Vec<Interface>, ScenarioError> {
    let mut interfaces = Vec::with_capacity(2 * scenario.links.len());
    for (index, link) in scenario.links.iter().enumerate() {
        for (queue, rate) in [(&link.queue_a, link.rate_a), (&link.queue_b, link.rate_b)] {
            let name = interface_name(scenario, interfaces.len());
            let discipline = queue
                .build(derive_seed(scenario.seed, "queue", &name))
                .map_err(|error| ScenarioError::new(Culprit::Link(index), error.to_string()))?;
            interfaces.push(Interface::new(
                discipline,
                rate,
                time(link.delay).nanos(),
                link.overhead,
                InterfaceMonitor::new(intervals),
            ));
        }
    }
    Ok(interfaces)
}

fn interface_name(scenario: &Scenario, index: usize) -> String {
    let link = &scenario.links[index / 2];
    let (from, to) = if index.is_multiple_of(2) {
        (link.a, link.b)
    } else {
        (link.b, link.a)
    };
    format!("{}->{}", scenario.node_name(from), scenario.node_name(to))
}

fn build_flows(scenario: &Scenario, network: &mut Network) -> Result<Vec<RunningFlow>, ScenarioError> {
    let hasher = FlowHasher::new([scenario.seed, derive_seed(scenario.seed, "flow hash", "")]);
    let router = Router::new(scenario);
    let mut flows = Vec::new();
    for (group, flow) in scenario.flows.iter().enumerate() {
        let hops = router
            .route(flow)
            .map_err(|what| ScenarioError::new(Culprit::Flow(group), what))?;
        let route = network.add_route(hops.iter().map(|hop: &Hop| hop.0));
        for name in flow.names() {
            let number = flows.len() as u32;
            let headers = flow_key(scenario, flow, number);
            let origin = Origin {
                flow: number,
                back: false,
            };
            let data = Template {
                packet: Packet {
                    flow: hasher.five_tuple(&headers),
                    class: flow.class,
                    mark: flow.mark,
                    priority: flow.priority,
                    dscp: flow.dscp,
                    ecn: if flow.ecn { Ecn::Ect0 } else { Ecn::NotEct },
                    ..Packet::of_length(0)
                },
                headers,
                origin,
                route,
            };
            let Traffic::Udp(udp) = &flow.traffic;
            flows.push(RunningFlow {
                group,
                data,
                stop: flow.stop.map_or(Time::MAX, time),
                source: Datagrams::new(udp, Stream::new(scenario.seed, "flow", &name)),
                name,
            });
        }
    }
    Ok(flows)
}

/// Source ports tell the flows apart: 10,000 and up, by the flow's number.
fn flow_key(scenario: &Scenario, flow: &Flow, number: u32) -> FlowKey {
    let address = |node: crate::NodeId| -> IpAddr { scenario.nodes[node.index()].address };
    let mut key = FlowKey::of(
        address(flow.source),
        address(flow.destination),
        flow.traffic.protocol(),
        10_000 + (number % 50_000) as u16,
        flow.port.unwrap_or(flow.traffic.default_port()),
    );
    key.traffic_class = flow.dscp << 2;
    key
}
