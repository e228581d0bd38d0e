//! Runs on the WAN interface of a router that translates addresses. Its hosts in the LAN are told apart.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fairgate_live::testbed::{Namespace, Network};
use nix::sys::signal::Signal;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, sendto, socket,
};
use serde_json::Value;

use crate::common::program::Program;
use crate::common::{live, output, say, until};
use crate::run::{Run, succeeds};

/// Two hosts of the LAN, both in the namespace at the left, and a server on the other side of the router.
const HOSTS: [&str; 2] = ["192.168.7.2", "192.168.7.3"];
const HOST_V6: &str = "fd07::2";
const SERVER: &str = "203.0.113.7";
const SERVER_V6: &str = "2001:db8::7";

fn ip(namespace: &Namespace, command: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    namespace.ip(&words).unwrap();
}

/// A router whose interface `right` masquerades. `None` if this kernel can't translate addresses.
fn router() -> Option<Network> {
    let network = Network::build().unwrap();
    let Network {
        left, router, right, ..
    } = &network;
    for (host, add) in [(left, HOSTS.as_slice()), (right, &[SERVER])] {
        ip(host, "address flush dev eth0");
        for address in add {
            ip(host, &format!("address add {address}/24 dev eth0"));
        }
    }
    let write_in = |namespace: &Namespace, name: &str, value: &str| {
        let write = || std::fs::write(format!("/proc/sys/net/{name}"), value);
        namespace.enter(write).unwrap().unwrap();
    };
    let write = |name: &str, value: &str| write_in(router, name, value);
    // With ECN. A loss can stop a connection that has two packets on the way for 200 ms, and a dropped packet
    // counts for its host in a download: both make shares vary by more than a test can allow.
    for host in [left, right] {
        write_in(host, "ipv4/tcp_ecn", "1");
    }
    for name in ["all", "default", "left", "right"] {
        write(&format!("ipv6/conf/{name}/disable_ipv6"), "0");
    }
    for (namespace, device, address) in [
        (left, "eth0", "fd07::2/64"),
        (router, "left", "fd07::1/64"),
        (router, "right", "2001:db8::1/64"),
        (right, "eth0", "2001:db8::7/64"),
    ] {
        ip(namespace, &format!("address add {address} dev {device} nodad"));
    }
    ip(router, "address add 192.168.7.1/24 dev left");
    ip(router, "address add 203.0.113.1/24 dev right");
    ip(left, "route add default via 192.168.7.1");
    ip(left, "route add default via fd07::1");
    write("ipv4/ip_forward", "1");
    write("ipv6/conf/all/forwarding", "1");
    let masquerading = router.enter(|| masquerade("right")).unwrap();
    if let Err(error) = masquerading {
        say(&format!(
            "SKIPPED: this kernel can't translate addresses: {error}"
        ));
        return None;
    }
    until("the hosts reach the server", || {
        [SERVER, SERVER_V6]
            .iter()
            .all(|to| succeeds(left, "ping", &["-n", "-c", "1", "-W", "1", to]))
    });
    Some(network)
}

/// Of linux/netfilter/nf_tables.h and nfnetlink.h.
mod nft {
    pub(super) const BEGIN: u16 = 0x10;
    pub(super) const END: u16 = 0x11;
    pub(super) const SUBSYSTEM: u16 = 10;
    pub(super) const TABLE: u16 = SUBSYSTEM << 8;
    pub(super) const CHAIN: u16 = SUBSYSTEM << 8 | 3;
    pub(super) const RULE: u16 = SUBSYSTEM << 8 | 6;
    /// `NFPROTO_INET`: IPv4 and IPv6.
    pub(super) const INET: u8 = 1;
    pub(super) const POSTROUTING: u32 = 4;
    pub(super) const SOURCE_NAT: u32 = 100;
    /// `NFT_META_OIFNAME`.
    pub(super) const OUTPUT_NAME: u32 = 7;
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len() as u16;
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn text(kind: u16, value: &str) -> Vec<u8> {
    attribute(kind, &[value.as_bytes(), &[0]].concat())
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_be_bytes())
}

fn nested(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | 0x8000, &parts.concat())
}

fn message(kind: u16, family: u8, resource: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    /// `NLM_F_REQUEST`, `NLM_F_ACK`, `NLM_F_CREATE`.
    const REQUEST: u16 = 1;
    const ANSWERED: u16 = 4;
    const CREATE: u16 = 0x400;
    let is_of_batch = matches!(kind, nft::BEGIN | nft::END);
    let flags = if is_of_batch {
        REQUEST
    } else {
        REQUEST | ANSWERED | CREATE
    };
    let body = parts.concat();
    let mut bytes = (20 + body.len() as u32).to_ne_bytes().to_vec();
    bytes.extend([kind, flags].map(u16::to_ne_bytes).concat());
    bytes.extend([0; 8]);
    bytes.extend([family, 0]);
    bytes.extend(resource.to_be_bytes());
    bytes.extend(body);
    bytes
}

/// Does what `nft add rule inet nat postrouting oifname DEVICE masquerade` does, in this thread's namespace.
fn masquerade(device: &str) -> nix::Result<()> {
    let (table, chain) = ("nat", "postrouting");
    let hook = [number(1, nft::POSTROUTING), number(2, nft::SOURCE_NAT)];
    let mut name = device.as_bytes().to_vec();
    name.resize(16, 0);
    let expression = |name: &str, parts: &[Vec<u8>]| nested(1, &[text(1, name), nested(2, parts)]);
    let load = [number(1, 1), number(2, nft::OUTPUT_NAME)];
    let compare = [number(1, 1), number(2, 0), nested(3, &[attribute(1, &name)])];
    let rule = [
        expression("meta", &load),
        expression("cmp", &compare),
        expression("masq", &[]),
    ];
    let batch = [
        message(nft::BEGIN, 0, nft::SUBSYSTEM, &[]),
        message(nft::TABLE, nft::INET, 0, &[text(1, table)]),
        message(
            nft::CHAIN,
            nft::INET,
            0,
            &[text(1, table), text(3, chain), nested(4, &hook), text(7, "nat")],
        ),
        message(
            nft::RULE,
            nft::INET,
            0,
            &[text(1, table), text(2, chain), nested(4, &rule)],
        ),
        message(nft::END, 0, nft::SUBSYSTEM, &[]),
    ];
    let flags = SockFlag::SOCK_CLOEXEC;
    let netfilter = SockProtocol::NetlinkNetFilter;
    let netlink = socket(AddressFamily::Netlink, SockType::Raw, flags, netfilter)?;
    bind(netlink.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
    let kernel = NetlinkAddr::new(0, 0);
    sendto(netlink.as_raw_fd(), &batch.concat(), &kernel, MsgFlags::empty())?;
    // Three messages are answered, each with an error or 0.
    for _ in 0..3 {
        let mut answer = [0; 1024];
        recv(netlink.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        match i32::from_ne_bytes(*answer[16..].first_chunk().unwrap()) {
            0 => {}
            error => return Err(nix::errno::Errno::from_raw(-error)),
        }
    }
    Ok(())
}

/// Starts `fairgate run --dev right` with these words on the router.
fn run(network: &Network, words: &str) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("sock");
    let mut command = network.router.command(env!("CARGO_BIN_EXE_fairgate"));
    command.args(["--json", "run", "--dev", "right"]);
    command.args(words.split(' ')).arg("--socket").arg(&socket);
    Run {
        program: Some(Program::start(&mut command)),
        folder,
        socket,
    }
    .wait()
}

/// Connects from an address of the LAN.
fn connect(network: &Network, from: IpAddr, to: SocketAddr) -> TcpStream {
    let connect = || {
        let domain = if from.is_ipv4() {
            AddressFamily::Inet
        } else {
            AddressFamily::Inet6
        };
        let socket = socket(domain, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
        let address = nix::sys::socket::SockaddrStorage::from;
        bind(socket.as_raw_fd(), &address(SocketAddr::new(from, 0))).unwrap();
        nix::sys::socket::connect(socket.as_raw_fd(), &address(to)).unwrap();
        TcpStream::from(socket)
    };
    network.left.enter(connect).unwrap()
}

/// Sends or receives over one connection of the first host and eight of the second one. Returns which part of
/// the bytes the first host has, once enough have come.
fn share_of_first(network: &Network, is_upload: bool) -> f64 {
    const BEFORE: u64 = 2_000_000;
    const COUNTED: u64 = 6_000_000;
    let counts = [AtomicU64::new(0), AtomicU64::new(0)];
    let done = AtomicBool::new(false);
    let connections = |host: usize| if host == 0 { 1 } else { 8 };
    let mut ends = Vec::new();
    for (host, address) in HOSTS.iter().enumerate() {
        let at = SocketAddr::new(SERVER.parse().unwrap(), 6000 + host as u16);
        let listener = network.right.enter(|| TcpListener::bind(at)).unwrap().unwrap();
        for _ in 0..connections(host) {
            let client = connect(network, address.parse().unwrap(), at);
            let (server, _) = listener.accept().unwrap();
            ends.push((
                host,
                if is_upload {
                    [client, server]
                } else {
                    [server, client]
                },
            ));
        }
    }
    let total = || {
        counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .collect::<Vec<_>>()
    };
    let mut share = 0.0;
    thread::scope(|scope| {
        for (host, [mut sender, mut receiver]) in ends {
            let (counts, done) = (&counts, &done);
            let timeout = Some(Duration::from_millis(100));
            sender.set_write_timeout(timeout).unwrap();
            receiver.set_read_timeout(timeout).unwrap();
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let _ = sender.write(&[7; 1 << 14]);
                }
            });
            scope.spawn(move || {
                let mut bytes = [0; 1 << 14];
                while !done.load(Ordering::Relaxed) {
                    if let Ok(count) = receiver.read(&mut bytes) {
                        counts[host].fetch_add(count as u64, Ordering::Relaxed);
                    }
                }
            });
        }
        let reach = |bytes: u64| {
            until("bytes come", || total().iter().sum::<u64>() >= bytes);
            total()
        };
        let before = reach(BEFORE);
        let after = reach(BEFORE + COUNTED);
        done.store(true, Ordering::Relaxed);
        let [first, second] = [0, 1].map(|host: usize| (after[host] - before[host]) as f64);
        share = first / (first + second);
    });
    share
}

/// The flows of a run that have a host in the LAN.
fn flows(run: &Run) -> Vec<Value> {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fairgate"));
    command
        .args(["--json", "flows", "--top", "1000", "--socket"])
        .arg(&run.socket);
    let shown = output(&mut command);
    assert!(shown.status.success(), "{shown:?}");
    let document: Value = serde_json::from_slice(&shown.stdout).unwrap();
    document["flows"].as_array().unwrap().clone()
}

/// One connection of a host beside eight of another one gets half of the line. Without `nat` it gets a ninth.
#[test]
fn hosts_behind_a_router_share_its_line() {
    let Some(_watched) = live("hosts_behind_a_router_share_its_line") else {
        return;
    };
    let Some(network) = router() else {
        return;
    };
    for (words, is_upload) in [
        ("--up 20mbit dual-srchost nat", true),
        ("--down 20mbit dual-dsthost nat", false),
        (
            "--down 20mbit --up 20mbit --down-words dual-dsthost --up-words dual-srchost nat",
            false,
        ),
    ] {
        let run = run(&network, words);
        let share = share_of_first(&network, is_upload);
        say(&format!("{words}: the first host has {share:.3}"));
        assert!((0.45..0.55).contains(&share), "{words}: {share}");
        run.stop();
    }
    let run = run(&network, "--up 20mbit dual-srchost");
    let share = share_of_first(&network, true);
    say(&format!("without nat: the first host has {share:.3}"));
    assert!(share < 0.2, "{share}");
    assert!(run.status().nat.is_none());
    run.stop();
}

/// Connections of all kinds are known by their hosts, also those that are older than the run.
#[test]
fn flows_have_the_names_of_hosts_in_the_lan() {
    let Some(_watched) = live("flows_have_the_names_of_hosts_in_the_lan") else {
        return;
    };
    let Some(network) = router() else {
        return;
    };
    let at = |address: &str, port| SocketAddr::new(address.parse().unwrap(), port);
    let mut kept = Vec::new();
    let mut pairs = Vec::new();
    for (host, server, port) in [(HOSTS[0], SERVER, 6000), (HOST_V6, SERVER_V6, 6001)] {
        let address = at(server, port);
        let listener = network
            .right
            .enter(|| TcpListener::bind(address))
            .unwrap()
            .unwrap();
        let client = connect(&network, host.parse().unwrap(), address);
        let (accepted, _) = listener.accept().unwrap();
        pairs.push((host, client.local_addr().unwrap().port(), [client, accepted]));
    }
    let run = run(&network, "--down 50mbit --up 50mbit dual-srchost nat");
    assert!(run.status().nat.unwrap().translations >= 2);
    let udp = at(SERVER, 6002);
    let server = network.right.enter(|| UdpSocket::bind(udp)).unwrap().unwrap();
    let client = network
        .left
        .enter(|| UdpSocket::bind((HOSTS[1], 7000)))
        .unwrap()
        .unwrap();
    // The first answer observes the flows.
    flows(&run);
    for (_, _, [client, server]) in &mut pairs {
        let mut bytes = [0; 5];
        client.write_all(b"hello").unwrap();
        server.read_exact(&mut bytes).unwrap();
        server.write_all(b"there").unwrap();
        client.read_exact(&mut bytes).unwrap();
    }
    for _ in 0..3 {
        client.send_to(b"hello", udp).unwrap();
        let mut bytes = [0; 5];
        let (_, from) = server.recv_from(&mut bytes).unwrap();
        server.send_to(b"there", from).unwrap();
        client.recv_from(&mut bytes).unwrap();
    }
    let pinged = |from: &str, to: &str| {
        succeeds(
            &network.left,
            "ping",
            &["-n", "-c", "3", "-i", "0.2", "-W", "5", "-I", from, to],
        )
    };
    assert!(pinged(HOSTS[1], SERVER) && pinged(HOST_V6, SERVER_V6));
    let flows = flows(&run);
    let has = |from: &str, protocol: &str, lan: &str, port: Option<u16>| {
        flows.iter().any(|flow| {
            flow["from"] == from
                && flow["protocol"] == protocol
                && flow["lan"]["address"] == lan
                && port.is_none_or(|port| flow["lan"]["port"] == port)
        })
    };
    for from in ["right", "host"] {
        for (host, port, _) in &pairs {
            assert!(has(from, "tcp", host, Some(*port)), "{from}, {host}: {flows:?}");
        }
        assert!(has(from, "udp", HOSTS[1], Some(7000)), "{from}: {flows:?}");
        assert!(has(from, "icmp", HOSTS[1], None), "{from}: {flows:?}");
        assert!(has(from, "icmpv6", HOST_V6, None), "{from}: {flows:?}");
    }
    // The router is named, too: it is what the frames say.
    assert!(
        flows.iter().any(|flow| flow["source"] == "203.0.113.1"),
        "{flows:?}"
    );
    kept.extend(pairs);
    run.stop();
}

/// The kernel drops events while the run stands still. Then all connections are read again.
#[test]
fn lost_events_are_made_up_for() {
    const MANY: u64 = 30_000;
    let Some(_watched) = live("lost_events_are_made_up_for") else {
        return;
    };
    let Some(network) = router() else {
        return;
    };
    let run = run(&network, "--up 1gbit dual-srchost nat");
    run.signal(Signal::SIGSTOP);
    let client = network
        .left
        .enter(|| UdpSocket::bind((HOSTS[0], 7000)))
        .unwrap()
        .unwrap();
    // The kernel forwards these itself: the run hangs. Those that the run was given make one in 200 ms.
    let tracked = || {
        let path = "/proc/sys/net/netfilter/nf_conntrack_count";
        let text = network
            .router
            .enter(|| std::fs::read_to_string(path))
            .unwrap()
            .unwrap();
        text.trim().parse::<u64>().unwrap()
    };
    let mut number = 0u32;
    until("there are many connections", || {
        for _ in 0..2_000 {
            number += 1;
            let port = 1_000 + (number % 60_000) as u16;
            let _ = client.send_to(b"x", (SERVER, port));
        }
        tracked() >= MANY
    });
    run.signal(Signal::SIGCONT);
    // They stay for half a minute.
    until("the run knows them", || {
        run.status().nat.unwrap().translations >= MANY * 9 / 10
    });
    run.stop();
}

/// Translations can't be known between two interfaces.
#[test]
fn nat_between_two_interfaces_is_refused() {
    let Some(_watched) = live("nat_between_two_interfaces_is_refused") else {
        return;
    };
    let network = Network::build().unwrap();
    let configuration = format!("{}nat = \"both\"\n", crate::run::PLAIN);
    let (code, message) = crate::harness::refusal(&network.router, &configuration);
    assert_eq!(code, Some(2));
    assert!(message.contains("`nat` needs `device`"), "{message}");
    let configuration =
        "[queue.q]\ndiscipline = \"cake\"\n[run]\ndevice = \"right\"\negress = \"q\"\nnat = \"ingress\"\n";
    let (code, message) = crate::harness::refusal(&network.router, configuration);
    assert_eq!(code, Some(2));
    assert!(message.contains("`nat` is for `ingress`"), "{message}");
}
