//! Builds a layout from network namespaces. Everything is taken down on drop.

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use fairgate_live::testbed::{Interrupt, Namespace, TestbedError, connect};

use crate::lab::layout::{Layout, Wire};

/// The namespaces of a layout.
#[derive(Debug)]
pub(crate) struct Network {
    /// One for each node.
    pub(crate) hosts: Vec<Namespace>,
    /// One for each link that has a bridge.
    pub(crate) middles: Vec<Option<Namespace>>,
}

/// Settings of each host, by their file below `/proc/sys/net`.
const SETTINGS: [(&str, &str); 6] = [
    ("ipv6/conf/all/disable_ipv6", "1"),
    ("ipv6/conf/default/disable_ipv6", "1"),
    ("ipv4/ip_forward", "1"),
    // Routers answer with no redirects: the way of a packet is the scenario's.
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/send_redirects", "0"),
    ("ipv4/conf/all/rp_filter", "0"),
];

impl Network {
    /// Builds the network. Hosts reach one another once the bridges run.
    /// Stops with an error if the process is asked to end meanwhile.
    pub(crate) fn build(layout: &Layout, interrupt: &Interrupt) -> Result<Network, TestbedError> {
        Namespace::remove_orphans()?;
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let create = |what: String| {
            interrupt.check()?;
            Namespace::of_testbed(&format!("{number}-{what}"))
        };
        let hosts = (0..layout.nodes.len()).map(|node| create(format!("host-{node}")));
        // Namespaces that exist are removed if a later one can't be created.
        let hosts = hosts.collect::<Result<Vec<_>, TestbedError>>()?;
        let middles = layout.wires.iter().enumerate().map(|(link, wire)| {
            let is_bridged = wire.plan.is_some();
            is_bridged.then(|| create(format!("link-{link}"))).transpose()
        });
        let middles = middles.collect::<Result<Vec<_>, TestbedError>>()?;
        let network = Network { hosts, middles };
        for host in &network.hosts {
            configure(host, &SETTINGS)?;
            if layout.ecn {
                configure(host, &[("ipv4/tcp_ecn", "1")])?;
            }
        }
        for middle in network.middles.iter().flatten() {
            configure(middle, &SETTINGS[..2])?;
        }
        for (link, wire) in layout.wires.iter().enumerate() {
            interrupt.check()?;
            network.lay(layout, link, wire)?;
        }
        for (node, host) in layout.nodes.iter().enumerate() {
            for &(to, link, next) in &host.routes {
                interrupt.check()?;
                network.route(layout, node, (to, link, next))?;
            }
        }
        for (link, wire) in layout.wires.iter().enumerate() {
            for (end, script) in wire.kernel.iter().enumerate() {
                if let Some(script) = script {
                    network.run_tc(wire.ends[end], link, script)?;
                }
            }
        }
        Ok(network)
    }

    /// Creates the interfaces of a link, with addresses that need no ARP. An ARP packet would wait in the
    /// queue under test.
    fn lay(&self, layout: &Layout, link: usize, wire: &Wire) -> Result<(), TestbedError> {
        let name = interface(link);
        let [a, b] = wire.ends.map(|node| &self.hosts[node]);
        match &self.middles[link] {
            None => connect((a, &name), (b, &name), layout.mtu)?,
            Some(middle) => {
                connect((a, &name), (middle, "left"), layout.mtu)?;
                connect((b, &name), (middle, "right"), layout.mtu)?;
            }
        }
        for (end, host) in [a, b].into_iter().enumerate() {
            let own = layout.nodes[wire.ends[end]].address;
            let other = layout.nodes[wire.ends[1 - end]].address;
            let own_mac = mac(link, end);
            host.ip(&["link", "set", &name, "address", &own_mac])?;
            host.ip(&["address", "add", &format!("{own}/32"), "dev", &name])?;
            let (other, other_mac) = (other.to_string(), mac(link, 1 - end));
            let neighbour = ["neighbour", "replace", &other, "lladdr", &other_mac, "dev", &name];
            host.ip(&[&neighbour[..], &["nud", "permanent"]].concat())?;
        }
        Ok(())
    }

    fn route(
        &self,
        layout: &Layout,
        node: usize,
        (to, link, next): (usize, usize, usize),
    ) -> Result<(), TestbedError> {
        let text = |node: usize| -> String { Ipv4Addr::to_string(&layout.nodes[node].address) };
        let (own, far, near, name) = (text(node), text(to), text(next), interface(link));
        let mut words = vec!["route", "replace", far.as_str()];
        if next != to {
            words.extend(["via", near.as_str()]);
        }
        words.extend(["dev", name.as_str(), "src", own.as_str()]);
        if next != to {
            words.push("onlink");
        }
        self.hosts[node].ip(&words).map(drop)
    }

    /// Runs tc's commands for the interface of a node to a link.
    fn run_tc(&self, node: usize, link: usize, script: &str) -> Result<(), TestbedError> {
        let host = &self.hosts[node];
        let device = interface(link);
        // One packet for each segment, as on a wire: tc counts merged packets as one.
        host.ip(&["link", "set", &device, "gso_max_segs", "1"])?;
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line
                .split_whitespace()
                .map(|word| if word == "DEV" { device.as_str() } else { word })
                .collect();
            let mut command: Command = host.command("tc");
            command.args(&words);
            let done = command.output().map_err(|error| TestbedError::System {
                action: format!("starting `tc {line}`"),
                reason: error.to_string(),
            })?;
            if !done.status.success() {
                return Err(TestbedError::Program {
                    command: format!("tc {line}"),
                    output: String::from_utf8_lossy(&done.stderr).trim().to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// Writes settings of a namespace.
fn configure(namespace: &Namespace, settings: &[(&str, &str)]) -> Result<(), TestbedError> {
    let write = || {
        settings
            .iter()
            .try_for_each(|(name, value)| fs::write(format!("/proc/sys/net/{name}"), value))
    };
    namespace.enter(write)?.map_err(|error| TestbedError::System {
        action: format!("configuring {}", namespace.name()),
        reason: error.to_string(),
    })
}

/// Returns the name of a node's interface to a link.
pub(crate) fn interface(link: usize) -> String {
    format!("link{link}")
}

/// Returns the address of the interface at an end of a link. The second bit of the first byte says that it is
/// given locally.
fn mac(link: usize, end: usize) -> String {
    let [high, low] = (link as u16).to_be_bytes();
    format!("02:fa:00:{high:02x}:{low:02x}:{end:02x}")
}
