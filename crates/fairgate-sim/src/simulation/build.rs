//! Builds the parts of a simulation from a scenario.

use std::time::Duration;

use fairgate::{Ecn, FlowHasher, FlowKey, Packet, Time};

use crate::monitor::InterfaceMonitor;
use crate::network::{Interface, Network, Origin, Template};
use crate::random::{Stream, derive_seed};
use crate::scenario::{Flow, Hop, Mistake, Router, Scenario, ScenarioError, ScenarioPart, Traffic};
use crate::simulation::RunningFlow;
use crate::tcp;
use crate::traffic::{Connection, Datagrams, Program, Source};

/// The first source port. Copies of a flow have different ports. If there are more flows than ports, their
/// numbers still differ.
const FIRST_PORT: u32 = 10_000;
const PORTS: u32 = 50_000;

/// Converts a duration to a point in simulated time.
pub(super) fn time(duration: Duration) -> Time {
    Time::ZERO + duration
}

/// Builds the interfaces: two per link, numbered like [`Hop`].
pub(super) fn interfaces(scenario: &Scenario, intervals: usize) -> Result<Vec<Interface>, ScenarioError> {
    let mut interfaces = Vec::with_capacity(2 * scenario.links.len());
    for (index, link) in scenario.links.iter().enumerate() {
        for (queue, rate) in [(&link.queue_a, link.rate_a), (&link.queue_b, link.rate_b)] {
            let name = interface_name(scenario, interfaces.len());
            let discipline = queue
                .build(derive_seed(scenario.seed, "queue", &name))
                .map_err(|error| Mistake::new("queue", error.to_string()).of(ScenarioPart::Link(index)))?;
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

/// Returns the name of an interface: `a->b` if the index is even, `b->a` if it is odd.
pub(super) fn interface_name(scenario: &Scenario, index: usize) -> String {
    let link = &scenario.links[index / 2];
    let (from, to) = if index.is_multiple_of(2) {
        (link.a, link.b)
    } else {
        (link.b, link.a)
    };
    format!("{}->{}", scenario.node_name(from), scenario.node_name(to))
}

/// Builds the flows, and adds their routes to the network.
pub(super) fn flows(scenario: &Scenario, network: &mut Network) -> Result<Vec<RunningFlow>, ScenarioError> {
    let hasher = FlowHasher::new([scenario.seed, derive_seed(scenario.seed, "flow hash", "")]);
    let router = Router::new(scenario);
    let mut flows = Vec::new();
    for (group, flow) in scenario.flows.iter().enumerate() {
        let hops = router
            .route(flow)
            .map_err(|mistake| mistake.of(ScenarioPart::Flow(group)))?;
        let forth = network.add_route(hops.iter().map(|hop| hop.0));
        let back = network.add_route(hops.iter().rev().copied().map(Hop::back).map(|hop| hop.0));
        for (copy, name) in flow.names().enumerate() {
            let number = flows.len() as u32;
            let start = time(flow.start) + time(flow.stagger).nanos() * copy as u64;
            let key = flow_key(scenario, flow, number);
            let template = |back: bool, headers: FlowKey, route| Template {
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
                origin: Origin { flow: number, back },
                route,
            };
            flows.push(RunningFlow {
                group,
                data: template(false, key, forth),
                acknowledgements: template(true, reverse(key), back),
                start,
                stop: flow.stop.map_or(Time::MAX, time),
                source: source(scenario, flow, &name, start),
                name,
            });
        }
    }
    Ok(flows)
}

fn source(scenario: &Scenario, flow: &Flow, name: &str, start: Time) -> Source {
    let stream = Stream::new(scenario.seed, "flow", name);
    match &flow.traffic {
        Traffic::Udp(udp) => Source::Datagrams(Datagrams::new(udp, stream)),
        Traffic::Tcp(tcp) => {
            let config = tcp::Config {
                ecn: tcp.config.ecn || flow.ecn || tcp.config.congestion_control.is_scalable(),
                ..tcp.config.clone()
            };
            let program = Program::new(&tcp.application, stream);
            Source::Connection(Box::new(Connection::new(&config, program, start)))
        }
    }
}

fn flow_key(scenario: &Scenario, flow: &Flow, number: u32) -> FlowKey {
    FlowKey {
        traffic_class: flow.dscp << 2,
        ..FlowKey::of(
            scenario.nodes[flow.source.index()].address,
            scenario.nodes[flow.destination.index()].address,
            flow.traffic.protocol(),
            (FIRST_PORT + number % PORTS) as u16,
            flow.port.unwrap_or(flow.traffic.default_port()),
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
