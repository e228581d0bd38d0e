//! Turns the results of the simulations into a comparison.

use std::cmp::Reverse;

use fairgate_report::{Comparison, Completion, Discipline, Fact, Group, Input, Measured, bin_width, jain};
use fairgate_sim::results::{ApplicationResults, FlowResults};
use fairgate_sim::{Results, Scenario};

use fairgate::Time;

use super::Options;
use super::build::{ACCESS, HOME, usual_millis};
use super::traffic::{Connection, Traffic};
use crate::commands::compare::simulated::{Packets, queue, together};
use crate::commands::compare::trace::irregularities;

/// The flows of a group, by their index in the scenario.
struct Members {
    group: Group,
    flows: Vec<usize>,
}

pub(super) fn assemble(
    options: &Options,
    traffic: &Traffic,
    scenario: &Scenario,
    outcomes: Vec<(String, Results)>,
    command: String,
) -> Comparison {
    let members = groups(options, traffic, scenario);
    let duration_ns = scenario.duration.as_nanos() as u64;
    Comparison {
        version: env!("CARGO_PKG_VERSION"),
        command,
        seed: options.trace.seed,
        input: Input::Connections {
            file: options.trace.source.to_string(),
            packets: traffic.packets,
            connections: traffic.connections.len() as u64,
            replayed: traffic.datagrams.iter().map(|flow| flow.captured).sum(),
        },
        rate_bps: Some(options.trace.rate.bits_per_second()),
        duration_ns,
        bin_ns: bin_width(Time::from_nanos(duration_ns)),
        facts: facts(options, traffic),
        remarks: remarks(traffic),
        groups: members.iter().map(|members| members.group.clone()).collect(),
        fairness_over: "the goodput of the connections shown one by one, while they lasted".into(),
        disciplines: outcomes
            .into_iter()
            .map(|(name, results)| discipline(name, &results, traffic, &members, options.trace.top))
            .collect(),
    }
}

/// Groups the flows: the connections with most bytes one by one, then the others. The flows of other packets
/// follow, in each direction likewise.
fn groups(options: &Options, traffic: &Traffic, scenario: &Scenario) -> Vec<Members> {
    let connections = &traffic.connections;
    let bytes = |index: usize| connections[index].conversation.bytes().iter().sum::<u64>();
    let mut by_bytes: Vec<usize> = (0..connections.len()).collect();
    by_bytes.sort_by_key(|&index| (Reverse(bytes(index)), index));
    let (shown, others) = by_bytes.split_at(by_bytes.len().min(options.trace.top));
    let mut groups: Vec<Members> = shown
        .iter()
        .map(|&index| Members {
            group: Group {
                name: scenario.flows[index].name.clone(),
                detail: detail(&connections[index]),
                in_total: true,
            },
            flows: vec![index],
        })
        .collect();
    if !others.is_empty() {
        groups.push(Members {
            group: Group {
                name: "all other connections".into(),
                detail: format!("{} connections", others.len()),
                in_total: true,
            },
            flows: others.to_vec(),
        });
    }
    for (name, is_downwards) in [("other packets", true), ("other packets, upwards", false)] {
        groups.extend(datagrams(name, is_downwards, options, traffic, scenario));
    }
    groups
}

/// Groups the flows of a direction that are not TCP. `others` is the name of those that are not shown one by
/// one.
fn datagrams(
    others: &str,
    is_downwards: bool,
    options: &Options,
    traffic: &Traffic,
    scenario: &Scenario,
) -> Vec<Members> {
    let flows = &traffic.datagrams;
    let mut by_bytes: Vec<usize> = (0..flows.len())
        .filter(|&index| flows[index].is_downwards == is_downwards)
        .collect();
    by_bytes.sort_by_key(|&index| (Reverse(flows[index].bytes()), index));
    let (shown, hidden) = by_bytes.split_at(by_bytes.len().min(options.trace.top));
    let detail = |indices: &[usize]| {
        let packets: u64 = indices.iter().map(|&index| flows[index].captured).sum();
        let bytes: u64 = indices.iter().map(|&index| flows[index].bytes()).sum();
        format!(
            "{packets} packets, {:.3} MB, sent when they were captured",
            bytes as f64 / 1e6
        )
    };
    let first = traffic.connections.len();
    let mut groups: Vec<Members> = shown
        .iter()
        .map(|&index| Members {
            group: Group {
                name: scenario.flows[first + index].name.clone(),
                detail: detail(&[index]),
                in_total: is_downwards,
            },
            flows: vec![first + index],
        })
        .collect();
    if !hidden.is_empty() {
        groups.push(Members {
            group: Group {
                name: others.into(),
                detail: format!("{} flows, {}", hidden.len(), detail(hidden)),
                in_total: is_downwards,
            },
            flows: hidden.iter().map(|&index| first + index).collect(),
        });
    }
    groups
}

/// Describes a connection as it was recorded.
fn detail(connection: &Connection) -> String {
    let conversation = &connection.conversation;
    let [up, down] = match connection.is_local_client {
        true => conversation.bytes(),
        false => {
            let [from_client, from_server] = conversation.bytes();
            [from_server, from_client]
        }
    };
    let round_trip = match conversation.round_trip {
        Some(nanos) => format!("round trip {:.1} ms", nanos as f64 / 1e6),
        None => "round trip unknown".to_owned(),
    };
    format!(
        "{:.3} MB down, {:.3} MB up, {} turns, {round_trip}; took {:.3} s in the capture",
        down as f64 / 1e6,
        up as f64 / 1e6,
        conversation.turns.len(),
        (conversation.end - conversation.start) as f64 / 1e9
    )
}

fn discipline(
    name: String,
    results: &Results,
    traffic: &Traffic,
    members: &[Members],
    top: usize,
) -> Discipline {
    let measured = |flows: &[usize]| {
        let flows = flows.iter().map(|&index| &results.flows[index]);
        together(results, flows.filter_map(downwards))
    };
    let groups: Vec<Measured> = members
        .iter()
        .map(|members| {
            let is_tcp = members
                .flows
                .iter()
                .all(|&index| index < traffic.connections.len());
            let times = members
                .flows
                .iter()
                .map(|&index| completion(&results.flows[index]));
            Measured {
                completion: is_tcp.then(|| Completion::of(times)),
                // Packets of the other direction are shown, but do not pass the queue that is measured.
                ..match members.group.in_total {
                    true => measured(&members.flows),
                    false => {
                        let flows = members.flows.iter().map(|&index| &results.flows[index]);
                        together(results, flows.map(Packets::Data))
                    }
                }
            }
        })
        .collect();
    let all: Vec<usize> = (0..results.flows.len()).collect();
    let line = &results.interfaces[2 * ACCESS];
    let rates: Vec<f64> = members
        .iter()
        .take(top)
        .filter_map(|members| match members.flows.as_slice() {
            &[index] if index < traffic.connections.len() => {
                goodput(&traffic.connections[index], &results.flows[index])
            }
            _ => None,
        })
        .collect();
    Discipline {
        name,
        total: measured(&all),
        groups,
        utilisation: line.utilisation.unwrap_or(0.0),
        fairness: jain(&rates),
        drops: line.dropped_by_reason.clone(),
        queue: queue(line),
    }
}

/// Returns the packets of a flow that pass the queue towards the local side.
fn downwards(flow: &FlowResults) -> Option<Packets<'_>> {
    match (flow.destination == HOME, &flow.connection) {
        (true, _) => Some(Packets::Data(flow)),
        (false, Some(connection)) => Some(Packets::Back(&connection.acknowledgements)),
        (false, None) => None,
    }
}

/// Returns how long a connection took, if it was completed.
fn completion(flow: &FlowResults) -> Option<u64> {
    match flow.application {
        Some(ApplicationResults::Conversation { completion_ns, .. }) => completion_ns,
        _ => None,
    }
}

/// Returns the bytes of a completed connection per second of its time.
fn goodput(connection: &Connection, flow: &FlowResults) -> Option<f64> {
    let bytes: u64 = connection.conversation.bytes().iter().sum();
    Some(bytes as f64 / (completion(flow)? as f64).max(1.0))
}

fn facts(options: &Options, traffic: &Traffic) -> Vec<Fact> {
    let fact = |label: &str, value: String| Fact {
        label: label.into(),
        value,
    };
    let unmeasured = traffic
        .connections
        .iter()
        .filter(|connection| connection.conversation.round_trip.is_none())
        .count();
    let mut facts = vec![
        fact("Capture", options.trace.source.to_string()),
        fact("Local side", traffic.view.describe()),
        fact(
            "Link",
            format!(
                "{} to the local side, {} from it; the discipline at both ends",
                options.trace.rate, options.up
            ),
        ),
        fact(
            "Packets",
            format!(
                "{} in the capture, {} of them not on the link (local, multicast, no IP)",
                traffic.packets, traffic.elsewhere
            ),
        ),
        fact(
            "Connections",
            format!(
                "{} with data, {} without; CUBIC as in Linux 6.1, for all",
                traffic.connections.len(),
                traffic.without_data
            ),
        ),
        fact(
            "Round-trip times",
            format!(
                "the least of each connection, in milliseconds, rounded up; {unmeasured} connections could \
                 not be measured and have {} ms",
                usual_millis(traffic)
            ),
        ),
        fact(
            "Time of a connection",
            "from its SYN to the last byte of its last turn; it includes the pauses of the applications"
                .into(),
        ),
        fact(
            "Throughput, delay and loss",
            "packets to the local side: IP packets, from the sender's first transmission to the arrival; of \
             what remote clients send, only totals are known"
                .into(),
        ),
    ];
    if traffic.unread > 0 {
        facts.push(fact(
            "TCP packets that could not be read",
            format!(
                "{} (fragments, and headers that were not captured)",
                traffic.unread
            ),
        ));
    }
    facts
}

fn remarks(traffic: &Traffic) -> Vec<String> {
    let mut remarks = vec![
        "The connections of the capture are simulated: each transfers the recorded bytes in the recorded \
         turns, after the recorded pauses of its applications. A sender that was slow for another reason \
         than the link (a busy server, another bottleneck) is simulated as fast as TCP allows. All \
         connections use CUBIC."
            .to_owned(),
    ];
    if !traffic.datagrams.is_empty() {
        remarks.push(
            "Packets other than TCP, QUIC among them, are sent when they were captured. Their senders do not \
             react."
                .to_owned(),
        );
    }
    let irregular = irregularities(&traffic.counts, traffic.pauses, traffic.defect.as_deref());
    remarks.extend(irregular);
    remarks
}
