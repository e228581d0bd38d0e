//! Builds the scenario: the access link, a node for each delay of servers, and a flow for each connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fairgate::Time;
use fairgate_report::bin_width;
use fairgate_sim::{Application, Flow, Link, NodeId, RecordedTurn, Scenario, Tcp, Traffic as Sent, tcp};

use super::traffic::{Connection, Datagrams, Traffic};
use super::{AFTERWARDS, Options};
use crate::commands::compare::Contestant;
use crate::commands::compare::flows::FiveTuple;
use crate::commands::compare::simulated::SAMPLES;

/// The index of the access link.
pub(super) const ACCESS: usize = 0;

/// The round-trip time of connections whose round trip was not measured, if no other one was, ms.
const USUAL_MILLIS: u64 = 40;

/// The name of the node on the local side.
pub(super) const HOME: &str = "home";

/// Returns the scenario, with default queues.
pub(super) fn scenario(options: &Options, traffic: &Traffic) -> Scenario {
    let duration = Duration::from_nanos(traffic.end.nanos()) + AFTERWARDS;
    let mut scenario = Scenario::new(duration);
    scenario.seed = options.trace.seed;
    let bin = bin_width(Time::from_nanos(duration.as_nanos() as u64));
    scenario.interval = Duration::from_nanos(bin / SAMPLES).min(duration);
    let (provider, home) = (scenario.node("provider"), scenario.node(HOME));
    scenario.links.push(Link {
        rate_b: options.up.into(),
        ..Link::new(provider, home, options.trace.rate, Duration::ZERO)
    });
    let usual = usual_millis(traffic);
    let mut builder = Builder {
        scenario,
        provider,
        home,
        remotes: HashMap::new(),
        names: HashMap::new(),
    };
    for connection in &traffic.connections {
        builder.add_connection(connection, usual);
    }
    for datagrams in &traffic.datagrams {
        builder.add_datagrams(datagrams, usual);
    }
    builder.scenario
}

/// Returns the scenario with a discipline at both ends of the access link.
pub(super) fn with_queue(template: &Scenario, contestant: &Contestant) -> Scenario {
    let mut scenario = template.clone();
    let link = &mut scenario.links[ACCESS];
    link.queue_a = contestant.spec.clone().into();
    link.queue_b = contestant.spec.clone().into();
    scenario
}

/// Returns the round-trip time of a connection, ms, rounded up.
fn millis(connection: &Connection) -> Option<u64> {
    let nanos = connection.conversation.round_trip?;
    Some(nanos.div_ceil(1_000_000).max(1))
}

/// Returns the median of the measured round-trip times, ms.
pub(super) fn usual_millis(traffic: &Traffic) -> u64 {
    let mut measured: Vec<u64> = traffic.connections.iter().filter_map(millis).collect();
    measured.sort_unstable();
    measured.get(measured.len() / 2).copied().unwrap_or(USUAL_MILLIS)
}

struct Builder {
    scenario: Scenario,
    provider: NodeId,
    home: NodeId,
    /// The node with each round-trip time, ms.
    remotes: HashMap<u64, NodeId>,
    /// How often each name was given.
    names: HashMap<String, u32>,
}

impl Builder {
    fn add_connection(&mut self, connection: &Connection, usual: u64) {
        let conversation = &connection.conversation;
        let remote = self.remote(millis(connection).unwrap_or(usual));
        let turns: Arc<[RecordedTurn]> = conversation
            .turns
            .iter()
            .map(|turn| RecordedTurn {
                by_client: turn.by_client,
                wait: turn.wait,
                bytes: turn.bytes,
            })
            .collect();
        let application = Application::Conversation(turns);
        let tcp = Tcp {
            config: tcp::Config::default(),
            application,
        };
        let key = &conversation.key;
        let server_to_client = fairgate::FlowKey {
            source: key.destination,
            destination: key.source,
            source_port: key.destination_port,
            destination_port: key.source_port,
            ..*key
        };
        let name = self.name(FiveTuple::of(&server_to_client).name());
        let (server, client) = match connection.is_local_client {
            true => (remote, self.home),
            false => (self.home, remote),
        };
        self.scenario.flows.push(Flow {
            start: Duration::from_nanos(conversation.start.nanos()),
            dscp: connection.dscp,
            priority: connection.priority,
            port: Some(key.destination_port),
            ..Flow::new(name, server, client, tcp)
        });
    }

    fn add_datagrams(&mut self, datagrams: &Datagrams, usual: u64) {
        let remote = self.remote(usual);
        let name = self.name(FiveTuple::of(&datagrams.key).name());
        let (source, destination) = match datagrams.is_downwards {
            true => (remote, self.home),
            false => (self.home, remote),
        };
        let sent = Sent::Recorded(datagrams.packets.as_slice().into());
        self.scenario.flows.push(Flow {
            start: Duration::from_nanos(datagrams.start.nanos()),
            dscp: datagrams.dscp,
            priority: datagrams.priority,
            port: Some(datagrams.key.destination_port),
            ..Flow::new(name, source, destination, sent)
        });
    }

    /// Returns the node whose round-trip time to the home is `millis`.
    fn remote(&mut self, millis: u64) -> NodeId {
        if let Some(&node) = self.remotes.get(&millis) {
            return node;
        }
        let node = self.scenario.node(format!("remote {millis}ms"));
        let one_way = Duration::from_micros(millis * 500);
        self.scenario
            .links
            .push(Link::unlimited(node, self.provider, one_way));
        self.remotes.insert(millis, node);
        node
    }

    /// Returns a name that no other flow has.
    fn name(&mut self, name: String) -> String {
        let count = self.names.entry(name.clone()).or_default();
        *count += 1;
        match *count {
            1 => name,
            number => format!("{name} ({number})"),
        }
    }
}
