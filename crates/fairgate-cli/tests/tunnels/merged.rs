//! Packets that the kernel merges when they enter the router. The output of `fairgate run` is compared with
//! what was sent, and with the kernel's own output on an interface without offloads.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use fairgate_live::testbed::Network;

use crate::common::{live, say};
use crate::kinds::{Kind, Merged, all};
use crate::lab::{FrameSocket, merging_network, offloads};
use crate::missing;
use crate::run::{PLAIN, Run, call, succeeds};
use crate::wire::SegmentFields;

const TEST: &str = "merged_packets_arrive_as_they_were_sent";
const COUNT: usize = 64;
const SIZE: usize = 700;
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

/// Returns a burst of one connection.
fn burst(kind: &Kind) -> Vec<Vec<u8>> {
    let packets = (0..COUNT).map(|index| {
        let payload: Vec<u8> = (0..SIZE)
            .map(|byte| {
                ((index * SIZE + byte) as u32)
                    .wrapping_mul(2_654_435_761)
                    .to_be_bytes()[0]
            })
            .collect();
        let last = index + 1 == COUNT;
        let fields = SegmentFields {
            index: index as u16,
            offset: (index * SIZE) as u32,
            flags: if last { ACK | PSH } else { ACK },
            payload: &payload,
            unfinished: false,
        };
        kind.stack.build(fields).0
    });
    packets.collect()
}

/// The result of a burst.
struct Passage {
    /// The number of frames that entered the router after merging.
    came_in: usize,
    /// The length of the longest of them.
    longest: usize,
    arrived: Vec<Vec<u8>>,
}

/// Sends a burst of each kind from left to right.
fn pass(network: &Network, kinds: &[Kind]) -> HashMap<String, Passage> {
    // The right side waits for all frames, so that a loss is noticed. By then they have passed the router.
    let timeout = Duration::from_secs(1);
    let at_once = Duration::from_millis(5);
    let mut left = FrameSocket::open(&network.left, "eth0", at_once);
    let mut router = FrameSocket::open(&network.router, "left", at_once);
    let mut right = FrameSocket::open(&network.right, "eth0", timeout);
    let mut passages = HashMap::new();
    for kind in kinds {
        let sent = burst(kind);
        let from = &sent[0][6..12];
        if kind.stack.constant {
            // The second super-packet shows that an identification is constant.
            left.send(&sent);
            right.arrived(from, COUNT);
            router.arrived(from, COUNT);
        }
        left.send(&sent);
        let arrived = right.arrived(from, COUNT);
        let came_in = router.arrived(from, COUNT);
        let passage = Passage {
            came_in: came_in.len(),
            longest: came_in.iter().map(Vec::len).max().unwrap_or(0),
            arrived,
        };
        passages.insert(kind.name.clone(), passage);
    }
    passages
}

/// Creates the devices that make the kernel merge. Returns the devices that it cannot create.
fn make_devices(network: &Network, kinds: &[Kind]) -> HashSet<&'static [&'static str]> {
    let router = &network.router;
    // The devices need IPv6 sockets, although the router sends nothing over IPv6.
    call(
        router,
        "sysctl",
        &["-q", "-w", "net.ipv6.conf.all.disable_ipv6=0"],
    );
    let wanted: HashSet<_> = kinds
        .iter()
        .filter_map(|kind| match kind.merged {
            Merged::With(device) => Some(device),
            _ => None,
        })
        .collect();
    let mut lacking = HashSet::new();
    for device in wanted {
        let made = succeeds(router, "ip", device)
            && (device[0] != "link" || succeeds(router, "ip", &["link", "set", device[2], "up"]));
        if !made {
            lacking.insert(device);
        }
    }
    lacking
}

/// Returns how many packets of a burst did not arrive as they were sent, at their position.
fn wrong(sent: &[Vec<u8>], arrived: &[Vec<u8>]) -> usize {
    let differ = sent.iter().zip(arrived).filter(|(sent, arrived)| sent != arrived);
    differ.count() + sent.len().abs_diff(arrived.len())
}

#[test]
fn merged_packets_arrive_as_they_were_sent() {
    let Some(_watched) = live(TEST) else {
        return;
    };
    let kinds = all();

    // First the kernel alone: a bridge, and an outgoing interface without offloads.
    let network = merging_network();
    let router = &network.router;
    make_devices(&network, &kinds);
    offloads(router, "right", &["tso", "gso", "gro", "tx"], "off");
    call(router, "ip", &["link", "add", "bridge", "type", "bridge"]);
    for interface in ["left", "right"] {
        call(router, "ip", &["link", "set", interface, "master", "bridge"]);
    }
    call(router, "ip", &["link", "set", "bridge", "up"]);
    let kernel = pass(&network, &kinds);
    drop(network);

    let network = merging_network();
    let lacking = make_devices(&network, &kinds);
    // An interface with offloads delivers segments joined. Without offloads the kernel refuses joined
    // segments, and the run sends each alone.
    offloads(&network.router, "right", &["tso", "gso", "gro", "tx"], "off");
    let run = Run::start(&network.router, PLAIN);
    let ours = pass(&network, &kinds);
    let lost = run.status().directions[0].lost;
    assert_eq!(lost.unsupported_offload, 0, "all kinds are understood");
    run.stop();

    for device in &lacking {
        missing(TEST, &format!("`ip {}`", device.join(" ")));
    }
    let mut as_the_kernel = 0;
    let mut failures = Vec::new();
    for kind in &kinds {
        let sent = burst(kind);
        let (ours, kernel) = (&ours[&kind.name], &kernel[&kind.name]);
        let wrong_ours = wrong(&sent, &ours.arrived);
        if wrong_ours > 0 {
            failures.push(format!(
                "{}: {wrong_ours} of {COUNT} packets are wrong",
                kind.name
            ));
        }
        // This was seen only with VXLAN-GPE of Linux 6.18, where nothing arrives.
        let wrong_kernels = wrong(&sent, &kernel.arrived);
        if wrong_kernels > 0 {
            let name = &kind.name;
            say(&format!(
                "{TEST}: the kernel has {wrong_kernels} of {COUNT} packets wrong: {name}"
            ));
        } else {
            as_the_kernel += 1;
        }
        let was_merged = ours.came_in < COUNT && ours.longest > 2 * SIZE;
        match kind.merged {
            Merged::With(device) if lacking.contains(device) => {}
            Merged::Always | Merged::With(_) if !was_merged => {
                failures.push(format!(
                    "{}: nothing was merged, so nothing was tested",
                    kind.name
                ));
            }
            Merged::Never if was_merged => {
                failures.push(format!("{}: merged, which this test does not expect", kind.name));
            }
            Merged::Perhaps if !was_merged => missing(TEST, &format!("merging of {}", kind.name)),
            _ => {}
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(
        as_the_kernel > kinds.len() / 2,
        "the kernel is not a good reference"
    );
}
