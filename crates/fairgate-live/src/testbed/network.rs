//! The testbed's network: two hosts, a router, two links.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Deserialize;

use crate::testbed::awake::Awake;
use crate::testbed::error::TestbedError;
use crate::testbed::namespace::{Namespace, PREFIX, ip};

/// Three namespaces and the links between them.
#[derive(Debug)]
pub struct Network {
    /// The host that sends.
    pub left: Namespace,
    /// The router. The bridge runs between its interfaces `left` and `right`.
    pub router: Namespace,
    /// The host that receives.
    pub right: Namespace,
    /// None if the kernel refuses: then what is measured may be late.
    _awake: Option<Awake>,
}

/// The counters of an interface.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Counters {
    /// The number of packets.
    pub(crate) packets: u64,
    /// Their bytes, including the Ethernet header.
    pub(crate) bytes: u64,
}

impl Network {
    /// The address of the left host.
    pub const LEFT: &str = "10.77.0.1";
    /// The address of the right host.
    pub const RIGHT: &str = "10.77.0.2";

    /// Builds the network. The hosts can't reach each other until a bridge runs.
    ///
    /// # Errors
    /// Fails if privileges or `ip` are missing. Whatever was built is taken down.
    pub fn build() -> Result<Network, TestbedError> {
        Namespace::remove_orphans()?;
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = |what: &str| format!("{PREFIX}{}-{number}-{what}", std::process::id());
        let network = Network {
            left: Namespace::create(name("left"))?,
            router: Namespace::create(name("router"))?,
            right: Namespace::create(name("right"))?,
            _awake: Awake::keep().ok(),
        };
        network
            .router
            .enter(disable_ipv6)?
            .map_err(TestbedError::io("disabling IPv6 in the router"))?;
        for (host, port, address) in [
            (&network.left, "left", Network::LEFT),
            (&network.right, "right", Network::RIGHT),
        ] {
            let router = network.router.name();
            ip(&[
                "link",
                "add",
                port,
                "netns",
                router,
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                host.name(),
            ])?;
            network.router.ip(&["link", "set", port, "up"])?;
            host.ip(&["address", "add", &format!("{address}/24"), "dev", "eth0"])?;
            host.ip(&["link", "set", "eth0", "up"])?;
        }
        Ok(network)
    }
}

/// Disables IPv6, so that the router's interfaces send no neighbour discovery of their own.
fn disable_ipv6() -> std::io::Result<()> {
    fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1")?;
    fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")
}

/// Returns what the interface `eth0` of a host has received.
pub(crate) fn received(host: &Namespace) -> Result<Counters, TestbedError> {
    #[derive(Deserialize)]
    struct Link {
        stats64: Stats,
    }
    #[derive(Deserialize)]
    struct Stats {
        rx: Counters,
    }
    let text = host.ip(&["-s", "-j", "link", "show", "dev", "eth0"])?;
    let links: Result<[Link; 1], _> = serde_json::from_str(&text);
    links
        .map(|[link]| link.stats64.rx)
        .map_err(|_| TestbedError::Output {
            program: "ip",
            what: "the statistics of an interface".to_string(),
        })
}
