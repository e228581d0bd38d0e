//! Runs on one interface that carries IP packets without Ethernet headers.
//!
//! The line is a run of its own between two TUN devices. Each of them is moved to a host, and is that host's
//! only interface to the other one.

use fairgate_live::testbed::{Namespace, Network};
use nix::sys::signal::Signal;

use crate::common::program::Program;
use crate::common::{live, say, until};
use crate::harness::refusal;
use crate::run::{Run, call, succeeds, transfer_between};

const ADDRESSES: [[&str; 2]; 2] = [["10.79.0.1", "fd79::1"], ["10.79.0.2", "fd79::2"]];

/// The hosts of a network, and the line between their interfaces `wan0`.
struct Line {
    network: Network,
    run: Run,
}

fn ip(namespace: &Namespace, command: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    namespace.ip(&words).unwrap();
}

impl Line {
    fn build() -> Line {
        let network = Network::build().unwrap();
        let line = "[run]\nleft = \"tun:fgl\"\nright = \"tun:fgr\"\n";
        let run = Run::start(&network.router, line);
        let hosts = [&network.left, &network.right];
        for (side, device) in ["fgl", "fgr"].iter().enumerate() {
            let host = hosts[side];
            ip(
                &network.router,
                &format!("link set {device} netns {}", host.name()),
            );
            ip(host, &format!("link set {device} name wan0"));
            ip(host, "link set wan0 up");
            let [v4, v6] = ADDRESSES[side];
            ip(host, &format!("address add {v4}/24 dev wan0"));
            ip(host, &format!("address add {v6}/64 dev wan0 nodad"));
        }
        let line = Line { network, run };
        until("the hosts reach each other", || line.pings(1));
        line
    }

    fn pings(&self, count: u32) -> bool {
        let count = count.to_string();
        ADDRESSES[1].iter().all(|to| {
            succeeds(
                &self.network.left,
                "ping",
                &["-n", "-c", &count, "-i", "0.05", "-W", "5", to],
            )
        })
    }

    /// Sends byte-exact data over TCP in both directions, over IPv4 and IPv6.
    fn transfers(&self, what: &str) {
        let hosts = [&self.network.left, &self.network.right];
        for (from, to) in [(0, 1), (1, 0)] {
            for (address, port) in [(ADDRESSES[to][0], 4000), (ADDRESSES[to][1], 4001)] {
                let address = match address.contains(':') {
                    true => format!("[{address}]:{port}"),
                    false => format!("{address}:{port}"),
                };
                transfer_between(hosts[from], hosts[to], &address, what);
            }
        }
    }
}

/// Starts `fairgate run --dev wan0` on a host with these words.
fn spawn(host: &Namespace, words: &str) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("sock");
    let mut command = host.command(env!("CARGO_BIN_EXE_fairgate"));
    command.args(["--json", "run", "--dev", "wan0"]);
    command.args(words.split(' ')).arg("--socket").arg(&socket);
    Run {
        program: Some(Program::start(&mut command)),
        folder,
        socket,
    }
    .wait()
}

fn has_host_end(host: &Namespace) -> bool {
    call(host, "ip", &["-brief", "link"]).contains("fairgate")
}

/// Both directions pass a run on an interface without Ethernet headers, which leaves it as it was.
#[test]
fn an_interface_without_ethernet_headers_is_scheduled() {
    let Some(_watched) = live("an_interface_without_ethernet_headers_is_scheduled") else {
        return;
    };
    let line = Line::build();
    let host = &line.network.left;
    let run = spawn(host, "--down 200mbit --up 100mbit pppoe-ptm");
    assert!(has_host_end(host));
    assert!(line.pings(5));
    line.transfers("through a run without Ethernet headers");
    let status = run.status();
    let directions = &status.directions;
    assert_eq!(
        (directions[0].from.as_str(), directions[0].to.as_str()),
        ("wan0", "host")
    );
    for direction in directions {
        // Two transfers of 4 MB in full-sized packets. When the machine stands still, some pass by.
        assert!(direction.sent.packets > 4_000, "{:?}", direction.sent);
        assert!(direction.sent.bytes > 6_000_000, "{:?}", direction.sent);
        assert!(direction.sent.bytes / direction.sent.packets <= 1514);
        let lost = direction.lost;
        assert_eq!(
            lost.unsupported_offload + lost.truncated + lost.refused,
            0,
            "{lost:?}"
        );
        // All of it passed the cake of its direction, nothing twice.
        assert_eq!(direction.tree.dequeued.packets, direction.sent.packets);
    }
    run.stop();
    assert!(!has_host_end(host));
    assert!(line.pings(3));
    line.transfers("after the run");
    line.run.stop();
}

/// A tree counts the framing that the words name, on top of the IP packet.
#[test]
fn packets_without_ethernet_headers_are_shaped_to_the_rate() {
    let Some(_watched) = live("packets_without_ethernet_headers_are_shaped_to_the_rate") else {
        return;
    };
    let line = Line::build();
    let (host, other) = (&line.network.left, &line.network.right);
    for (words, side) in [("--up 20mbit overhead 44", 1), ("--down 20mbit overhead 44", 0)] {
        let run = spawn(host, words);
        let counts = || {
            let direction = &run.status().directions[side];
            let tree = &direction.tree.dequeued;
            (tree.packets, tree.bytes, direction.tree.at_s)
        };
        let before = counts();
        match side {
            1 => transfer_between(host, other, "10.79.0.2:4000", words),
            _ => transfer_between(other, host, "10.79.0.1:4000", words),
        }
        let after = counts();
        // On the line, each packet has 44 bytes more than IP. Frames are counted with 14 bytes of a header.
        let (packets, bytes) = (after.0 - before.0, after.1 - before.1);
        let on_line = bytes + packets * (44 - 14);
        let rate = on_line as f64 * 8.0 / (after.2 - before.2);
        say(&format!("{words}: {:.2} Mbit/s on the line", rate / 1e6));
        // A busy machine can only make it slower.
        assert!(rate < 20.2e6, "{words}: {rate}");
        run.stop();
    }
    line.run.stop();
}

#[test]
fn a_killed_run_leaves_an_interface_without_ethernet_headers_as_it_was() {
    let Some(_watched) = live("a_killed_run_leaves_an_interface_without_ethernet_headers_as_it_was") else {
        return;
    };
    let line = Line::build();
    let host = &line.network.left;
    let mut run = spawn(host, "--down 200mbit --up 100mbit");
    assert!(line.pings(2));
    run.signal(Signal::SIGKILL);
    run.output();
    until("the device is gone", || !has_host_end(host));
    assert!(line.pings(3));
    line.transfers("after a kill");
    // A run that hangs is passed by.
    let run = spawn(host, "--down 200mbit --up 100mbit");
    run.signal(Signal::SIGSTOP);
    until("packets pass by", || line.pings(1));
    run.signal(Signal::SIGCONT);
    until("they are counted", || {
        run.status()
            .directions
            .iter()
            .all(|direction| direction.passed_by > 0)
    });
    assert!(line.pings(2));
    run.stop();
    line.run.stop();
}

/// Between two interfaces, all frames have Ethernet headers.
#[test]
fn interfaces_without_ethernet_headers_are_not_joined() {
    let Some(_watched) = live("interfaces_without_ethernet_headers_are_not_joined") else {
        return;
    };
    let line = Line::build();
    let configuration = "[run]\nleft = \"wan0\"\nright = \"eth0\"\n";
    let (code, message) = refusal(&line.network.left, configuration);
    assert_eq!(code, Some(3), "{message}");
    assert!(message.contains("has no Ethernet headers"), "{message}");
    line.run.stop();
}
