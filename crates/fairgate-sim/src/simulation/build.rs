//! Builds the parts of a simulation from a scenario.

use std::collections::BTreeMap;
use std::ops::Range;

use fairgate::{Ecn, FlowHasher, FlowKey, Packet, Time};

use crate::events::{Event, Events, Ticket, time};
use crate::monitor::{FlowMonitor, GroupMonitor, InterfaceMonitor, Observer, Phase};
use crate::network::{Cell, Impairments, Interface, Line, Network, Origin, Processor, Receiver, Template};
use crate::random::{Stream, derive_seed};
use crate::scenario::{
    Access, Application, Flow, LineRate, Mistake, NodeId, Observation, Observed, OneWayRoute, Router,
    Scenario, ScenarioError, ScenarioPart, Tcp, Traffic,
};
use crate::simulation::flows::{Acknowledged, LiveFlow};
use crate::simulation::starts::{Start, Starts, later};
use crate::tcp;
use crate::traffic::{
    Browser, Connection, Datagrams, Emitter, Media, PatternSource, Ping, Program, Recorded, Session, Source,
    VideoSource,
};
use crate::wifi::Medium;

/// The first source port. Copies of a flow have different ports. If there are more flows than ports, their
/// numbers still differ.
const FIRST_PORT: u32 = 10_000;
const PORTS: u32 = 50_000;

/// Builds the network: interfaces, two per link, numbered like hops, and the processors of nodes.
pub(super) fn network(scenario: &Scenario, intervals: usize) -> Result<Network, ScenarioError> {
    let mut processors = Vec::new();
    let of_node = scenario.nodes.iter().map(|node| {
        let delay = node.processing.clone()?;
        processors.push(Processor::new(delay, scenario.seed, &node.name));
        Some(processors.len() as u32 - 1)
    });
    let mut nodes = Nodes {
        processors: of_node.collect(),
        interfaces: vec![0; scenario.nodes.len()],
    };
    let mut interfaces = Vec::with_capacity(2 * scenario.links.len());
    let mut names = scenario.interface_names().into_iter();
    let mut next_name = || names.next().expect("each interface has a name");
    for (index, link) in scenario.links.iter().enumerate() {
        let ends = [link.a, link.b];
        let receivers = ends.map(|node| nodes.receiver(node));
        let [at_a, at_b] = receivers;
        for (direction, receiver) in link.directions().into_iter().zip([at_b, at_a]) {
            let name = next_name();
            let discipline = direction
                .queue
                .build(derive_seed(scenario.seed, "queue", &name))
                .map_err(|error| Mistake::new("queue", error.to_string()).of(ScenarioPart::Link(index)))?;
            let impairments = Impairments::new(direction, scenario.seed, &name);
            interfaces.push(Interface {
                far_number: receiver.number,
                far_processor: receiver.processor,
                impairments,
                line: Line::new(direction.rate, link.send_buffer),
                timer: time(link.timer).nanos(),
                spec: direction.queue.description(),
                sharded: direction.queue.sharded(),
                ..Interface::new(
                    name,
                    discipline,
                    direction.rate.clone(),
                    time(direction.delay).nanos(),
                    link.overhead,
                    InterfaceMonitor::new(intervals),
                )
            });
        }
    }
    let mut network = Network::new(interfaces, 0);
    network.processors = processors;
    cells(scenario, &mut network, &mut nodes, next_name, intervals)?;
    Ok(network)
}

/// What the interfaces of each node need to know.
struct Nodes {
    processors: Vec<Option<u32>>,
    /// The number of interfaces seen so far.
    interfaces: Vec<u32>,
}

impl Nodes {
    /// Counts a further interface of a node. Interfaces beyond the 65,535th have the number 0.
    fn receiver(&mut self, node: NodeId) -> Receiver {
        self.interfaces[node.index()] += 1;
        Receiver {
            number: u16::try_from(self.interfaces[node.index()]).unwrap_or(0),
            processor: self.processors[node.index()],
        }
    }
}

/// Adds the Wi-Fi cells to the network.
fn cells(
    scenario: &Scenario,
    network: &mut Network,
    nodes: &mut Nodes,
    mut next_name: impl FnMut() -> String,
    intervals: usize,
) -> Result<(), ScenarioError> {
    for (index, cell) in scenario.cells.iter().enumerate() {
        let stations = cell
            .stations
            .iter()
            .map(|_| ("queue_stations", &cell.queue_stations));
        let own = ("queue_ap", &cell.queue_ap);
        let members = std::iter::once(cell.access_point).chain(cell.stations.iter().copied());
        let receivers: Vec<Receiver> = members.map(|node| nodes.receiver(node)).collect();
        let mut interfaces = Vec::with_capacity(cell.stations.len() + 1);
        for (field, queue) in std::iter::once(own).chain(stations) {
            let name = next_name();
            let discipline = queue
                .build(derive_seed(scenario.seed, "queue", &name))
                .map_err(|error| Mistake::new(field, error.to_string()).of(ScenarioPart::Cell(index)))?;
            let monitor = InterfaceMonitor::new(intervals);
            let unlimited = LineRate::Unlimited;
            interfaces.push(Interface::new(
                name,
                discipline,
                unlimited,
                0,
                cell.overhead,
                monitor,
            ));
        }
        let medium = Medium::new(cell.settings(), cell.rates(scenario.seed));
        let random = Stream::new(scenario.seed, "cell", &cell.name);
        network.add_cell(
            Cell::new(medium, cell.access == Access::Edca, random),
            interfaces,
            &receivers,
        );
    }
    Ok(())
}

/// Builds the observers of variables.
pub(super) fn observers(scenario: &Scenario, intervals: usize) -> Result<Vec<Observer>, ScenarioError> {
    let places = scenario.observed_places()?;
    let observer = |(observation, place): (&Observation, Observed)| {
        let variable = observation.variable.clone();
        Observer::new(place.interface, place.path, variable, intervals)
    };
    Ok(scenario.observations.iter().zip(places).map(observer).collect())
}

/// Adds the routes of all flows to the network. Returns the positions of each flow's routes: to its
/// destination, and back.
fn routes(scenario: &Scenario, network: &mut Network) -> Result<Vec<[u32; 2]>, ScenarioError> {
    let found = Router::new(&scenario.for_routes()).routes()?;
    let mut add = |way: &OneWayRoute| match way {
        OneWayRoute::Line(hops) => network.routes.add_line(hops.iter().map(|hop| hop.0)),
        OneWayRoute::Forks(forks) => {
            let mut positions: Vec<u32> = Vec::with_capacity(forks.len());
            for fork in forks {
                let salt = derive_seed(scenario.seed, "ecmp", scenario.node_name(fork.node));
                let choices = fork.choices.iter();
                let choices: Vec<(u32, u32)> = choices.map(|&(hop, next)| (hop.0, positions[next])).collect();
                positions.push(network.routes.add_fork(salt, &choices));
            }
            positions[forks.len() - 1]
        }
    };
    let positions: Vec<[u32; 2]> = found
        .routes
        .iter()
        .map(|route| [add(&route.forth), add(&route.back)])
        .collect();
    Ok(found.by_flow.into_iter().map(|index| positions[index]).collect())
}

/// A group of flows with common results.
pub(super) struct Group {
    pub(super) name: String,
    /// The indices of its entries in the scenario's flows: at least one.
    pub(super) entries: Vec<u32>,
    pub(super) monitor: GroupMonitor,
}

/// An entry of the scenario's flows, with all copies or arrivals. Its flows are built when they start.
pub(super) struct Entry {
    pub(super) starts: Starts,
    /// The index of the group.
    pub(super) group: u32,
    /// Whether each flow has a row of results.
    pub(super) rows: bool,
    /// Whether a flow ends when admission control rejects one of its packets.
    pub(super) gives_up: bool,
    /// What the packets of all flows have in common.
    packet: Packet,
    /// Where in the network's routes the first hop stands, forth and back.
    forth: u32,
    back: u32,
    lifetimes: Stream,
    /// The number of the first flow among all flows of the scenario.
    number: u32,
    /// The places of the entry's events in the order of events: two for each copy, for its start and its
    /// stop. If flows arrive at random, one for the next arrival.
    tickets: Ticket,
}

/// Builds the groups, in the order in which the scenario names them.
pub(super) fn groups(scenario: &Scenario, intervals: usize) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, flow) in (0..).zip(&scenario.flows) {
        let group = *known.entry(flow.group_name()).or_insert_with(|| {
            groups.push(Group {
                name: flow.group_name().to_owned(),
                entries: Vec::new(),
                monitor: GroupMonitor::new(intervals),
            });
            groups.len() - 1
        });
        groups[group].entries.push(index);
    }
    groups
}

/// Builds the entries, and adds their routes to the network.
pub(super) fn entries(
    scenario: &Scenario,
    network: &mut Network,
    events: &mut Events,
    groups: &[Group],
) -> Result<Vec<Entry>, ScenarioError> {
    let mut group_of = vec![0; scenario.flows.len()];
    for (group, entries) in (0..).zip(groups.iter().map(|group| &group.entries)) {
        entries.iter().for_each(|&entry| group_of[entry as usize] = group);
    }
    let routes = routes(scenario, network)?;
    let mut entries = Vec::with_capacity(scenario.flows.len());
    let mut number = 0;
    for ((flow, [forth, back]), group) in scenario.flows.iter().zip(routes).zip(group_of) {
        let starts = Starts::new(scenario, flow);
        let is_random = starts.are_arrivals();
        entries.push(Entry {
            tickets: events.tickets(if is_random { 1 } else { 2 * u64::from(flow.count) }),
            starts,
            group,
            rows: flow.has_rows(),
            gives_up: flow.gives_up,
            packet: Packet {
                class: flow.class,
                mark: flow.mark,
                priority: flow.priority,
                dscp: flow.dscp,
                ecn: if flow.ecn { Ecn::Ect0 } else { Ecn::NotEct },
                // `Network::create` adds the time of sending.
                stamp: flow.departs_after.map_or(0, |wait| wait.as_nanos() as u64),
                ..Packet::of_length(0)
            },
            forth,
            back,
            lifetimes: Stream::new(scenario.seed, "lifetimes", &flow.name),
            number,
        });
        number += if is_random { 0 } else { flow.count };
    }
    Ok(entries)
}

impl Entry {
    /// Schedules the start of the next flow. `index` is the entry's.
    pub(super) fn schedule_start(&self, index: u32, events: &mut Events) {
        if let Some(start) = self.starts.peek() {
            let place = if self.starts.are_arrivals() {
                0
            } else {
                2 * u64::from(start.copy)
            };
            events.schedule_with(self.tickets.nth(place), start.at, Event::Start(index));
        }
    }

    /// Schedules the stop of a flow that has started, if it stops.
    pub(super) fn schedule_stop(&self, flow: &LiveFlow, events: &mut Events) {
        if flow.stop == Time::MAX {
            return;
        }
        let event = Event::Stop(flow.data.origin.flow);
        if self.starts.are_arrivals() {
            events.schedule(flow.stop, event);
        } else {
            let place = 2 * u64::from(flow.copy) + 1;
            events.schedule_with(self.tickets.nth(place), flow.stop, event);
        }
    }
}

/// Builds flows.
pub(super) struct FlowBuilder {
    hasher: FlowHasher,
    /// The number of the next flow that arrives at random. Such flows are numbered after all others.
    next_number: u32,
}

impl FlowBuilder {
    pub(super) fn new(scenario: &Scenario) -> FlowBuilder {
        let copies = |flow: &Flow| if flow.arrivals.is_some() { 0 } else { flow.count };
        FlowBuilder {
            hasher: FlowHasher::new([scenario.seed, derive_seed(scenario.seed, "flow hash", "")]),
            next_number: scenario.flows.iter().map(copies).sum(),
        }
    }

    /// Builds the flow that `start` tells about, for a place.
    pub(super) fn build(
        &mut self,
        scenario: &Scenario,
        (index, entry): (u32, &mut Entry),
        start: Start,
        place: u32,
        phase: Phase,
    ) -> LiveFlow {
        let flow = &scenario.flows[index as usize];
        let number = if entry.starts.are_arrivals() {
            self.next_number = self.next_number.wrapping_add(1);
            self.next_number.wrapping_sub(1)
        } else {
            entry.number + start.copy
        };
        let template = |back: bool, headers: FlowKey, route| Template {
            packet: Packet {
                flow: self.hasher.five_tuple(&headers),
                ..entry.packet
            },
            headers,
            origin: Origin { flow: place, back },
            route,
        };
        let templates = |connection| {
            let key = flow_key(scenario, flow, number, connection);
            [
                template(false, key, entry.forth),
                template(true, reverse(key), entry.back),
            ]
        };
        let [data, acknowledgements] = templates(0);
        let more = (1..flow.traffic.connections()).map(templates).collect();
        // The `stop` of an entry with random arrivals ends the arrivals, not the flows.
        let stop = match (&flow.arrivals, flow.stop) {
            (None, Some(stop)) => time(stop),
            _ => Time::MAX,
        };
        let lifetime = flow.lifetime.as_ref();
        let lifetime = lifetime.map_or(u64::MAX, |lifetime| lifetime.sample(&mut entry.lifetimes));
        LiveFlow {
            start: [],
            quiet_intervals: 0,
            monitor: FlowMonitor::new(phase),
            acknowledged: Acknowledged::default(),
            source: source(scenario, flow, &flow.copy_name(start.copy), start.at),
            data,
            acknowledgements,
            more,
            entry: index,
            group: entry.group,
            copy: start.copy,
            started: start.at,
            stop: stop.min(later(start.at, lifetime)),
            ended: None,
            series: None,
        }
    }
}

fn source(scenario: &Scenario, flow: &Flow, name: &str, start: Time) -> Source {
    match &flow.traffic {
        Traffic::Tcp(tcp) => {
            let seed = derive_seed(scenario.seed, "tcp", name);
            let stream = Stream::new(scenario.seed, "flow", name);
            let window = time(scenario.measure.start)..time(scenario.measure.end);
            connections(flow, tcp, seed, stream, start, window)
        }
        traffic => Source::Datagrams(datagrams(scenario, traffic, name)),
    }
}

/// Returns the datagrams of the flow that is called `name`. Its traffic is not TCP.
pub(super) fn datagrams(scenario: &Scenario, traffic: &Traffic, name: &str) -> Datagrams {
    let stream = Stream::new(scenario.seed, "flow", name);
    let window = time(scenario.measure.start)..time(scenario.measure.end);
    let pattern = |udp, stream| Emitter::Pattern(PatternSource::new(udp, stream));
    let (emitter, session) = match traffic {
        Traffic::Tcp(_) => unreachable!("connections have no datagrams"),
        Traffic::Udp(udp) => (pattern(udp, stream), None),
        Traffic::Video(video) => (
            Emitter::Video(Box::new(VideoSource::new(video, stream))),
            Some(Session::Media(Media::new(window))),
        ),
        Traffic::Voice(voice) => {
            let udp = voice.datagrams().expect("the flow was checked");
            (pattern(&udp, stream), Some(Session::Media(Media::new(window))))
        }
        Traffic::Ping(ping) => (
            pattern(&ping.requests(), stream),
            Some(Session::Ping(Ping::new(window))),
        ),
        Traffic::Recorded(packets) => (Emitter::Recorded(Recorded::new(packets.clone())), None),
    };
    Datagrams::new(emitter, session)
}

fn connections(
    flow: &Flow,
    tcp: &Tcp,
    seed: u64,
    stream: Stream,
    start: Time,
    window: Range<Time>,
) -> Source {
    let config = tcp::Config {
        ecn: tcp.config.ecn || flow.ecn || tcp.config.congestion_control.is_scalable(),
        seed,
        ..tcp.config.clone()
    };
    if let Application::Web(web) = &tcp.application {
        return Source::Browser(Box::new(Browser::new(web.clone(), config, stream, start, window)));
    }
    let program = Program::new(&tcp.application, stream, start, window);
    Source::Connection(Box::new(Connection::new(&config, program, start)))
}

/// Returns the header fields of a connection of a flow.
fn flow_key(scenario: &Scenario, flow: &Flow, number: u32, connection: u16) -> FlowKey {
    // Further connections of a flow get ports that are far from those of the next flows.
    let number = number.wrapping_add(u32::from(connection) * PORTS / 7);
    let own = (FIRST_PORT + number % PORTS) as u16;
    let known = flow.port.unwrap_or(flow.traffic.default_port());
    let ports = match flow.traffic {
        Traffic::Ping(_) => [0, 0],
        _ if flow.traffic.is_opened_by_destination() => [known, own],
        _ => [own, known],
    };
    FlowKey {
        traffic_class: flow.dscp << 2,
        ..FlowKey::of(
            scenario.nodes[flow.source.index()].address,
            scenario.nodes[flow.destination.index()].address,
            flow.traffic.protocol(),
            ports[0],
            ports[1],
        )
    }
}

/// Returns the key of packets in the opposite direction.
fn reverse(key: FlowKey) -> FlowKey {
    FlowKey {
        source: key.destination,
        destination: key.source,
        source_port: key.destination_port,
        destination_port: key.source_port,
        ..key
    }
}
