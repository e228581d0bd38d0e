//! Tunnels of the hosts themselves, whose devices leave segmentation and checksums to the hardware.

use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use fairgate_live::testbed::{Namespace, Network};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

use crate::common::live;
use crate::lab::{FrameSocket, offloads};
use crate::missing;
use crate::run::{BACKENDS, Run, STALLED, call, plain, succeeds, transfer};

/// MTU and header of Ethernet.
const LONGEST_FRAME: usize = 1514;

/// Commands of `ip` that create the device `t0`. LOCAL4, REMOTE4, LOCAL6 and REMOTE6 are placeholders for the
/// hosts' addresses.
const DEVICES: [&[&str]; 21] = [
    &["link add t0 type vxlan id 42 local LOCAL4 remote REMOTE4 dstport 4789 noudpcsum"],
    &["link add t0 type vxlan id 42 local LOCAL4 remote REMOTE4 dstport 4789 udpcsum"],
    &["link add t0 type vxlan id 42 local LOCAL4 remote REMOTE4 dstport 8472 gbp udpcsum"],
    &["link add t0 type vxlan id 42 local LOCAL4 remote REMOTE4 dstport 9999 udpcsum"],
    &["link add t0 type vxlan id 42 local LOCAL6 remote REMOTE6 dstport 4789"],
    &["link add t0 type vxlan id 42 local LOCAL6 remote REMOTE6 dstport 4789 udp6zerocsumtx udp6zerocsumrx"],
    // A tunnel in a tunnel.
    &[
        "link add t1 type vxlan id 41 local LOCAL4 remote REMOTE4 dstport 4789 udpcsum",
        "address add INNER4/24 dev t1",
        "link set t1 up",
        "link add t0 type vxlan id 42 local INNER4 remote OPPOSITE4 dstport 4790 udpcsum",
    ],
    &["link add t0 type geneve id 42 remote REMOTE4 udpcsum"],
    &["link add t0 type geneve id 42 remote REMOTE6"],
    &["link add t0 type gre local LOCAL4 remote REMOTE4 ttl 64"],
    &["link add t0 type gre local LOCAL4 remote REMOTE4 ttl 64 key 7 csum"],
    &["link add t0 type gre local LOCAL4 remote REMOTE4 ttl 64 key 7 seq"],
    &["link add t0 type gretap local LOCAL4 remote REMOTE4 ttl 64 key 7 csum"],
    &["link add t0 type ip6gre local LOCAL6 remote REMOTE6"],
    &["link add t0 type ip6gretap local LOCAL6 remote REMOTE6 key 7 csum"],
    &["link add t0 type ipip local LOCAL4 remote REMOTE4 ttl 64"],
    &["link add t0 type sit local LOCAL4 remote REMOTE4 ttl 64"],
    &["link add t0 type ip6tnl local LOCAL6 remote REMOTE6 mode any"],
    &[
        "fou add port 5555 ipproto 4",
        "link add t0 type ipip local LOCAL4 remote REMOTE4 encap fou encap-sport auto encap-dport 5555",
    ],
    &[
        "fou add port 6080 gue",
        "link add t0 type ipip local LOCAL4 remote REMOTE4 encap gue encap-sport auto encap-dport 6080",
    ],
    &["link add t0 link eth0 type vlan id 5"],
];

/// Fills in the placeholders of a command for host 1 or 2.
fn filled(command: &str, number: u8) -> String {
    let other = 3 - number;
    command
        .replace("LOCAL4", &format!("10.77.0.{number}"))
        .replace("REMOTE4", &format!("10.77.0.{other}"))
        .replace("LOCAL6", &format!("fd77::{number}"))
        .replace("REMOTE6", &format!("fd77::{other}"))
        .replace("INNER4", &format!("10.79.0.{number}"))
        .replace("OPPOSITE4", &format!("10.79.0.{other}"))
}

fn ip(host: &Namespace, command: &str) -> bool {
    let arguments: Vec<&str> = command.split(' ').collect();
    succeeds(host, "ip", &arguments)
}

/// Creates the device on both hosts, with addresses inside the tunnel. Returns false if this kernel cannot do
/// it.
fn build(network: &Network, commands: &[&str]) -> bool {
    [(&network.left, 1), (&network.right, 2)]
        .into_iter()
        .all(|(host, number)| {
            commands.iter().all(|command| ip(host, &filled(command, number)))
                && ip(host, &format!("address add 10.78.0.{number}/24 dev t0"))
                && ip(host, &format!("address add fd78::{number}/64 dev t0 nodad"))
                && ip(host, "link set t0 up")
        })
}

/// Returns the right host's addresses inside a tunnel, for the IP versions that the tunnel carries.
fn inside(commands: &str) -> &'static [&'static str] {
    const BOTH: [&str; 2] = ["10.78.0.2:4000", "[fd78::2]:4000"];
    if commands.contains("type ipip") {
        &BOTH[..1]
    } else if commands.contains("type sit") {
        &BOTH[1..]
    } else {
        &BOTH
    }
}

/// Removes the devices.
fn clear(network: &Network) {
    for host in [&network.left, &network.right] {
        for device in ["t0", "t1"] {
            ip(host, &format!("link del {device}"));
        }
    }
}

/// Sends one buffer that the kernel cuts into datagrams (`UDP_SEGMENT`), and compares the received ones.
fn datagrams(network: &Network, address: &str, what: &str) {
    const SIZE: u16 = 1000;
    let bytes: Vec<u8> = (0..20_500u32).map(|number| (number % 251) as u8).collect();
    let address: SocketAddr = address.parse().unwrap();
    let bind = || UdpSocket::bind(address);
    let receiver = network.right.enter(bind).unwrap().unwrap();
    receiver.set_read_timeout(Some(STALLED)).unwrap();
    let bind = || {
        let socket = UdpSocket::bind(if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
        socket.connect(address).map(|()| socket)
    };
    let sender = network.left.enter(bind).unwrap().unwrap();
    sendmsg::<()>(
        sender.as_raw_fd(),
        &[IoSlice::new(&bytes)],
        &[ControlMessage::UdpGsoSegments(&SIZE)],
        MsgFlags::empty(),
        None,
    )
    .expect(what);
    for part in bytes.chunks(SIZE.into()) {
        let mut datagram = [0; 2000];
        let length = receiver.recv(&mut datagram).expect(what);
        assert!(datagram[..length] == *part, "a datagram differs: {what}");
    }
}

/// Returns how many wrong checksums a host has counted.
fn checksum_errors(host: &Namespace) -> u64 {
    let named = call(host, "nstat", &["-az"]);
    named
        .lines()
        .filter(|line| line.contains("CsumErrors"))
        .map(|line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap())
        .sum()
}

#[test]
fn segmentation_and_checksums_left_by_a_local_tunnel_are_done() {
    const TEST: &str = "segmentation_and_checksums_left_by_a_local_tunnel_are_done";
    let Some(_watched) = live(TEST) else {
        return;
    };
    let network = Network::build().unwrap();
    for (host, number) in [(&network.left, 1), (&network.right, 2)] {
        assert!(ip(host, &format!("address add fd77::{number}/64 dev eth0 nodad")));
    }
    // Frames are checked before the receiver merges them again.
    offloads(&network.right, "eth0", &["gro"], "off");
    for backend in BACKENDS {
        let tested = sends_through_tunnels(&network, backend, TEST);
        assert!(tested > 0, "this kernel has no tunnel at all");
    }
}

/// Sends through every tunnel that this kernel has. Returns how many there are.
fn sends_through_tunnels(network: &Network, backend: &str, test: &str) -> usize {
    let run = Run::start(&network.router, &plain(backend));
    let quiet = Duration::from_millis(20);
    let mut left = FrameSocket::open(&network.router, "left", quiet);
    let mut right = FrameSocket::open(&network.right, "eth0", quiet);
    let mut tested = 0;
    for commands in DEVICES {
        let what = commands.join("; ");
        if build(network, commands) {
            // A device sends packets as soon as it is up. The other host may not be able to receive them yet.
            let errors = checksum_errors(&network.right);
            left.longest();
            right.longest();
            for address in inside(&what) {
                let what = format!("{what}; to {address}");
                transfer(network, address, &what);
                datagrams(network, address, &what);
                let before = left.longest();
                let after = right.longest();
                // Devices cut packets themselves if hardware cannot: packets with sequence numbers, and a
                // tunnel in a tunnel.
                let cuts_itself = what.contains(" seq") || what.contains(" t1 ");
                // AF_XDP takes frames before this socket sees them, and veth cuts super-packets for it.
                let is_unseen = backend == "xdp";
                assert!(
                    before > LONGEST_FRAME || cuts_itself || is_unseen,
                    "no super-packets: {what}"
                );
                assert!(after <= LONGEST_FRAME, "{after} bytes in a frame: {what}");
            }
            let lost = &run.status().directions[0].lost;
            assert_eq!(lost.unsupported_offload, 0, "{what}");
            assert_eq!(checksum_errors(&network.right), errors, "wrong checksums: {what}");
            tested += 1;
        } else {
            missing(test, &format!("`ip {what}`"));
        }
        clear(network);
    }
    run.stop();
    tested
}
