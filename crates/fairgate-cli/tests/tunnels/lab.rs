//! Two hosts, the router between them, and sockets that see the frames on their interfaces.

use std::time::Duration;

use fairgate_live::testbed::{Namespace, Network};
use pnet_datalink::{Channel, Config, DataLinkReceiver, DataLinkSender, channel, interfaces};

use crate::run::call;

/// A socket that sends and receives whole frames.
pub(crate) struct FrameSocket {
    sender: Box<dyn DataLinkSender>,
    receiver: Box<dyn DataLinkReceiver>,
}

impl FrameSocket {
    /// Opens the socket on an interface of a namespace. Reading ends when no frame arrives for `quiet`.
    pub(crate) fn open(namespace: &Namespace, interface: &str, quiet: Duration) -> FrameSocket {
        let open = || {
            let interface = interfaces()
                .into_iter()
                .find(|found| found.name == interface)
                .unwrap_or_else(|| panic!("`{interface}` is in {}", namespace.name()));
            let config = Config {
                // Room for a super-packet with its headers.
                read_buffer_size: 128 << 10,
                read_timeout: Some(quiet),
                ..Config::default()
            };
            match channel(&interface, config) {
                Ok(Channel::Ethernet(sender, receiver)) => FrameSocket { sender, receiver },
                Ok(_) => panic!("`{}` is not Ethernet", interface.name),
                Err(error) => panic!("`{}`: {error}", interface.name),
            }
        };
        namespace.enter(open).unwrap()
    }

    pub(crate) fn send(&mut self, frames: &[Vec<u8>]) {
        for frame in frames {
            self.sender
                .send_to(frame, None)
                .expect("a packet socket returns a result")
                .unwrap();
        }
    }

    /// Returns the frames from a sender with this address, at most `most`, until no more arrive.
    pub(crate) fn arrived(&mut self, from: &[u8], most: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while frames.len() < most
            && let Ok(frame) = self.receiver.next()
        {
            if frame.get(6..12) == Some(from) {
                frames.push(frame.to_vec());
            }
        }
        frames
    }

    /// Returns the length of the longest frame that arrives, or 0 if none does.
    pub(crate) fn longest(&mut self) -> usize {
        let mut longest = 0;
        while let Ok(frame) = self.receiver.next() {
            longest = longest.max(frame.len());
        }
        longest
    }
}

/// Switches offloads of an interface.
pub(crate) fn offloads(namespace: &Namespace, interface: &str, offloads: &[&str], to: &str) {
    let mut arguments = vec!["-K", interface];
    arguments.extend(offloads.iter().flat_map(|offload| [*offload, to]));
    call(namespace, "ethtool", &arguments);
}

/// Returns a network in which the router's left interface merges packets that the left host sends one by one.
pub(crate) fn merging_network() -> Network {
    let network = Network::build().unwrap();
    // veth merges only packets of a sender without segmentation offload.
    for host in [&network.left, &network.right] {
        offloads(host, "eth0", &["tso", "gso", "gro", "tx"], "off");
    }
    offloads(&network.router, "left", &["gro", "rx-udp-gro-forwarding"], "on");
    // Packets wait for others to merge with, instead of being passed on at once.
    for (file, value) in [("gro_flush_timeout", 2_000_000), ("napi_defer_hard_irqs", 2)] {
        let script = format!("echo {value} > /sys/class/net/left/{file}");
        call(&network.router, "sh", &["-c", &script]);
    }
    network
}
