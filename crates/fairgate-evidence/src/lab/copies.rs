//! The copies of flows.

use std::time::Duration;

use fairgate_sim::{Flow, Scenario, Traffic};

use crate::lab::error::LabError;
use crate::lab::samples::Notes;
use crate::lab::sockets::Endpoint;

/// The first of the ports of the ends that open flows. The simulator's begin there, too.
const FIRST_PORT: u16 = 10_000;

/// A copy of a flow.
pub(crate) struct Copy<'a> {
    pub(crate) flow: &'a Flow,
    pub(crate) name: String,
    /// When it starts and stops, since the beginning.
    pub(crate) start: Duration,
    pub(crate) stop: Duration,
    /// The end that sends data, and the end that receives it.
    pub(crate) ends: [Endpoint; 2],
    pub(crate) notes: Notes,
}

impl Copy<'_> {
    /// Returns whether the receiver of the data opens the connection.
    pub(crate) fn is_opened_by_receiver(&self) -> bool {
        matches!(&self.flow.traffic, Traffic::Tcp(tcp)
            if matches!(tcp.application, fairgate_sim::Application::Requests(_)))
    }

    pub(crate) fn error(&self, action: &'static str) -> impl FnOnce(std::io::Error) -> LabError {
        let flow = self.name.clone();
        move |source| LabError::Flow { flow, action, source }
    }
}

/// Lists the copies of all flows that start before the end, with ports like the simulator's.
pub(crate) fn copies(scenario: &Scenario) -> Vec<Copy<'_>> {
    let mut copies = Vec::new();
    let mut port = FIRST_PORT;
    for flow in &scenario.flows {
        let starts = scenario.starts(flow).expect("the layout was checked");
        for (start, name) in starts {
            let known = flow.port.unwrap_or(match &flow.traffic {
                Traffic::Tcp(_) => 5001,
                Traffic::Video(_) | Traffic::Voice(_) => 5004,
                Traffic::Ping(_) => 7,
                _ => 4000,
            });
            let address = |node: fairgate_sim::NodeId| match scenario.nodes[node.index()].address {
                std::net::IpAddr::V4(address) => address,
                std::net::IpAddr::V6(_) => unreachable!("the layout was checked"),
            };
            let place = |node, port| Endpoint {
                address: address(node),
                port,
            };
            let mut copy = Copy {
                flow,
                name,
                start,
                stop: flow.stop.unwrap_or(scenario.duration).min(scenario.duration),
                ends: [place(flow.source, port), place(flow.destination, known)],
                notes: Notes::default(),
            };
            if copy.is_opened_by_receiver() {
                copy.ends = [place(flow.source, known), place(flow.destination, port)];
            }
            port += 1;
            if copy.start < scenario.duration {
                copies.push(copy);
            }
        }
    }
    copies
}
