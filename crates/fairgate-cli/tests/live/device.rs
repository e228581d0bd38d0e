//! Runs on one interface that this machine itself uses.

use fairgate_live::testbed::{Namespace, Network};
use nix::sys::signal::Signal;

use crate::common::program::Program;
use crate::common::{live, until};
use crate::harness::{ping, refusal};
use crate::run::{Run, call, succeeds, transfer, transfer_between};

/// Both directions through a discipline that changes nothing.
const BOTH: &str = "[queue.q]\ndiscipline = \"fq_codel\"\n\n\
                    [run]\ndevice = \"eth0\"\ningress = \"q\"\negress = \"q\"\n";

fn ip(namespace: &Namespace, command: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    namespace.ip(&words).unwrap();
}

fn write(namespace: &Namespace, name: &str, value: &str) {
    let write = || std::fs::write(format!("/proc/sys/net/{name}"), value);
    namespace.enter(write).unwrap().unwrap();
}

/// Joins the two hosts by a bridge of the kernel in the router. The run is on the left host.
fn joined() -> Network {
    let network = Network::build().unwrap();
    let router = &network.router;
    ip(router, "link add br0 type bridge");
    ip(router, "link set left master br0");
    ip(router, "link set right master br0");
    ip(router, "link set br0 up");
    ip(&network.left, "address add fd0f::1/64 dev eth0 nodad");
    ip(&network.right, "address add fd0f::2/64 dev eth0 nodad");
    until("the hosts reach each other", || {
        let once = |to| succeeds(&network.left, "ping", &["-n", "-c", "1", "-W", "1", to]);
        once(Network::RIGHT) && once("fd0f::2")
    });
    network
}

/// Returns whether the TAP device of a run is there.
fn has_tap(namespace: &Namespace) -> bool {
    call(namespace, "ip", &["-brief", "link"]).contains("fairgate")
}

/// The host's own packets have partial checksums, and TCP hands over up to 64 KiB at once.
#[test]
fn what_a_host_sends_and_receives_is_scheduled() {
    let Some(_watched) = live("what_a_host_sends_and_receives_is_scheduled") else {
        return;
    };
    let network = joined();
    let run = Run::start(&network.left, BOTH);
    assert!(ping(&network, Network::RIGHT));
    transfer(&network, &format!("{}:4000", Network::RIGHT), "sent over IPv4");
    transfer(&network, "[fd0f::2]:4001", "sent over IPv6");
    let (left, right) = (&network.left, &network.right);
    transfer_between(
        right,
        left,
        &format!("{}:4002", Network::LEFT),
        "received over IPv4",
    );
    transfer_between(right, left, "[fd0f::1]:4003", "received over IPv6");
    // Address resolution from nothing, from both sides.
    for (host, to) in [(left, Network::RIGHT), (right, Network::LEFT), (left, "fd0f::2")] {
        ip(left, "neigh flush dev eth0");
        ip(right, "neigh flush dev eth0");
        assert!(
            succeeds(host, "ping", &["-n", "-c", "2", "-i", "0.1", "-W", "5", to]),
            "{to}"
        );
    }
    let status = run.status();
    for direction in &status.directions {
        // Two transfers of 4 MB in full-sized frames of a real link.
        assert!(direction.sent.packets > 5_000, "{:?}", direction.sent);
        assert!(direction.sent.bytes > 8_000_000, "{:?}", direction.sent);
        assert!(direction.sent.bytes / direction.sent.packets <= 1514);
        assert_eq!(direction.lost.unsupported_offload, 0);
        assert_eq!(direction.lost.too_long, 0);
        assert_eq!(direction.passed_by, 0);
    }
    assert_eq!(status.directions[0].from, "eth0");
    assert_eq!(status.directions[0].to, "host");
    assert!(has_tap(left));
    run.stop();
    assert!(!has_tap(left));
    assert!(ping(&network, Network::RIGHT));
}

#[test]
fn one_direction_alone_is_scheduled() {
    let Some(_watched) = live("one_direction_alone_is_scheduled") else {
        return;
    };
    let network = joined();
    // 4 MB are sent: of what is received, most are acknowledgements.
    for (key, taken, least) in [("ingress", 0, 20), ("egress", 1, 2_500)] {
        let configuration =
            format!("[queue.q]\ndiscipline = \"fifo\"\n\n[run]\ndevice = \"eth0\"\n{key} = \"q\"\n");
        let run = Run::start(&network.left, &configuration);
        transfer(&network, &format!("{}:4000", Network::RIGHT), key);
        let status = run.status();
        assert!(status.directions[taken].sent.packets > least, "{key}");
        assert_eq!(status.directions[1 - taken].sent.packets, 0);
        run.stop();
    }
}

/// A router forwards between its interfaces. One of them has a run for both directions.
#[test]
fn a_routers_interface_is_scheduled() {
    let Some(_watched) = live("a_routers_interface_is_scheduled") else {
        return;
    };
    let network = Network::build().unwrap();
    let router = &network.router;
    ip(router, "address add 10.77.0.254/24 dev left");
    ip(router, "address add 10.78.0.254/24 dev right");
    ip(&network.right, "address add 10.78.0.2/24 dev eth0");
    ip(&network.right, "address del 10.77.0.2/24 dev eth0");
    ip(&network.left, "route add 10.78.0.0/24 via 10.77.0.254");
    ip(&network.right, "route add 10.77.0.0/24 via 10.78.0.254");
    write(router, "ipv4/ip_forward", "1");
    let run = Run::start(router, &BOTH.replace("eth0", "right"));
    transfer(&network, "10.78.0.2:4000", "through a router");
    let (left, right) = (&network.left, &network.right);
    transfer_between(
        right,
        left,
        &format!("{}:4001", Network::LEFT),
        "through a router, back",
    );
    for direction in run.status().directions {
        assert!(direction.sent.bytes > 4_000_000, "{:?}", direction.sent);
    }
    run.stop();
}

/// A killed run leaves neither programs nor a device behind.
#[test]
fn a_killed_run_leaves_the_host_as_it_was() {
    let Some(_watched) = live("a_killed_run_leaves_the_host_as_it_was") else {
        return;
    };
    let network = joined();
    for signal in [Signal::SIGKILL, Signal::SIGABRT] {
        let mut run = Run::start(&network.left, BOTH);
        assert!(ping(&network, Network::RIGHT));
        run.signal(signal);
        run.output();
        until("the TAP device is gone", || !has_tap(&network.left));
        assert!(ping(&network, Network::RIGHT));
        transfer(&network, &format!("{}:4000", Network::RIGHT), "after a kill");
    }
}

/// The interface, and the TAP device of the run, are removed and made again.
#[test]
fn a_run_follows_the_hosts_interface() {
    let Some(_watched) = live("a_run_follows_the_hosts_interface") else {
        return;
    };
    let network = joined();
    let run = Run::start(&network.left, BOTH);
    let reaches = || {
        succeeds(
            &network.left,
            "ping",
            &["-n", "-c", "1", "-W", "1", Network::RIGHT],
        )
    };
    assert!(reaches());
    ip(&network.left, "link del eth0");
    until("the run notices", || run.said().contains("`eth0` was removed"));
    let left = network.left.name();
    ip(
        &network.router,
        &format!("link add left type veth peer name eth0 netns {left}"),
    );
    ip(&network.router, "link set left master br0");
    ip(&network.router, "link set left up");
    ip(
        &network.left,
        &format!("address add {}/24 dev eth0", Network::LEFT),
    );
    ip(&network.left, "link set eth0 up");
    ip(&network.right, "neigh flush dev eth0");
    until("the hosts reach each other again", reaches);
    until("the run has the interface", || {
        run.said().contains("`eth0` is back")
    });
    let before = run.status().directions[1].sent.packets;
    until("the host's packets pass the run", || {
        reaches() && run.status().directions[1].sent.packets > before
    });
    let tap = call(&network.left, "ip", &["-brief", "link"]);
    let tap = tap
        .split_whitespace()
        .find(|word| word.starts_with("fairgate"))
        .unwrap();
    ip(&network.left, &format!("link del {tap}"));
    until("the run has a new device", || {
        run.said().contains(&format!("`{tap}` was removed"))
    });
    until("the hosts reach each other through it", reaches);
    run.stop();
}

#[test]
fn a_home_line_needs_no_file() {
    let Some(_watched) = live("a_home_line_needs_no_file") else {
        return;
    };
    let network = joined();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("sock");
    let start = |words: &str| {
        let mut command = network.left.command(env!("CARGO_BIN_EXE_fairgate"));
        command
            .args(["--json", "run", "--dev", "eth0"])
            .args(words.split(' '))
            .arg("--socket")
            .arg(&socket);
        crate::common::program::Program::start(&mut command)
    };
    let run = Run {
        program: Some(start(
            "--down 50mbit --up 10mbit --down-words dual-dsthost --up-words dual-srchost --packet-log 30s \
             docsis overhead 20 ack-filter",
        )),
        folder: tempfile::tempdir().unwrap(),
        socket: socket.clone(),
    }
    .wait();
    assert!(ping(&network, Network::RIGHT));
    let status = serde_json::to_string(&run.status()).unwrap();
    for written in [
        "50mbit",
        "10mbit",
        "docsis",
        "20b",
        "ingress = true",
        "ack_filter",
        "dual-dsthost",
        "dual-srchost",
    ] {
        assert!(status.contains(written), "{written}: {status}");
    }
    let ask = |words: &[&str]| {
        let mut command = network.left.command(env!("CARGO_BIN_EXE_fairgate"));
        command.args(words).arg("--socket").arg(&socket);
        let output = crate::common::output(&mut command);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    // The machine's own stack is an end of this run.
    let text = ask(&["status"]);
    assert!(text.contains("eth0") && !text.contains("kept away"), "{text}");
    let capture = folder.path().join("last.pcapng");
    let text = ask(&["packets", "-o", capture.to_str().unwrap()]);
    assert!(text.contains("last.pcapng: "), "{text}");
    run.stop();
    for (words, said) in [
        ("--down 50mbit --packet-log 2h", "`packet_log` is"),
        ("--down 50mbit nonsense", "nonsense"),
        ("--down 50mbit no-split-gso", "a run cuts merged packets"),
        ("docsis", "--dev needs a rate"),
    ] {
        let output = start(words).output();
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn keys_that_do_not_fit_one_interface_are_rejected() {
    let Some(_watched) = live("keys_that_do_not_fit_one_interface_are_rejected") else {
        return;
    };
    let network = Network::build().unwrap();
    for (change, said) in [
        ("left = \"left\"\n", "`left` is for two interfaces"),
        ("isolate = true\n", "`isolate` is for two interfaces"),
    ] {
        let (code, message) = refusal(&network.left, &format!("{BOTH}{change}"));
        assert_eq!((code, message.contains(said)), (Some(2), true), "{message}");
    }
    let (code, message) = refusal(&network.left, "[run]\ndevice = \"eth0\"\n");
    assert_eq!(
        (code, message.contains("has no tree")),
        (Some(2), true),
        "{message}"
    );
    let (code, message) = refusal(
        &network.left,
        "[run]\nleft = \"a\"\nright = \"b\"\negress = \"q\"\n",
    );
    assert_eq!(
        (code, message.contains("needs `device`")),
        (Some(2), true),
        "{message}"
    );
}

/// Runs `fairgate run --dev eth0` on the left host with these words, and returns what it says of shapers.
fn shapers(network: &Network, words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("sock");
    let mut command = network.left.command(env!("CARGO_BIN_EXE_fairgate"));
    command
        .args(["run", "--json", "--dev", "eth0", "--socket"])
        .arg(&socket)
        .args(words);
    let run = Run {
        program: Some(Program::start(&mut command)),
        folder,
        socket,
    };
    let run = run.wait();
    let mut said = String::new();
    // The pulse of the threads comes after the notices of the start.
    until("the run says what it has found", || {
        said = run.said();
        said.contains("of the kernel") || run.status().uptime_s > 2.0
    });
    run.stop();
    said.lines()
        .filter(|line| line.contains("kernel"))
        .map(str::to_owned)
        .collect()
}

/// An SQM that is on the device is named with its rate and the remedy: what is sent goes past it, and what is
/// received is shaped twice.
#[test]
fn a_shaper_that_is_there_already_is_named() {
    let Some(_watched) = live("a_shaper_that_is_there_already_is_named") else {
        return;
    };
    let network = Network::build().unwrap();
    let tc = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        call(&network.left, "tc", &words);
    };
    let past = "`eth0` has a shaper of the kernel already, ";
    tc("qdisc add dev eth0 root pfifo limit 100");
    assert_eq!(
        shapers(&network, &["--up", "10mbit", "--down", "10mbit"]),
        [""; 0]
    );
    tc("qdisc replace dev eth0 root handle 1: tbf rate 20mbit burst 10kb latency 50ms");
    let said = shapers(&network, &["--up", "10mbit"]);
    assert!(
        said.len() == 1 && said[0].contains(&format!("{past}tbf at 20Mbit: ")),
        "{said:?}"
    );
    assert!(said[0].contains("tc qdisc del dev eth0 root"), "{said:?}");
    assert_eq!(
        shapers(&network, &["--down", "10mbit"]),
        [""; 0],
        "it is not passed by"
    );

    tc("qdisc replace dev eth0 root handle 2: htb default 10");
    tc("class add dev eth0 parent 2: classid 2:1 htb rate 5mbit ceil 7mbit");
    tc("class add dev eth0 parent 2:1 classid 2:10 htb rate 1mbit ceil 90mbit");
    ip(&network.left, "link add ifb4eth0 type ifb");
    ip(&network.left, "link set ifb4eth0 up");
    tc("qdisc add dev eth0 handle ffff: ingress");
    let redirect = "action mirred egress redirect dev ifb4eth0";
    tc(&format!(
        "filter add dev eth0 parent ffff: protocol all u32 match u32 0 0 {redirect}"
    ));
    let sent = format!("{past}htb at 7Mbit: ");
    let said = shapers(&network, &["--up", "10mbit", "--down", "10mbit"]);
    assert!(
        said.len() == 1 && said[0].contains(&sent),
        "an ifb without a shaper: {said:?}"
    );
    tc("qdisc add dev ifb4eth0 root handle 1: tbf rate 50mbit burst 10kb latency 50ms");
    let said = shapers(&network, &["--up", "10mbit", "--down", "10mbit"]);
    let received = "what `eth0` receives is also shaped by the kernel, by tbf at 50Mbit on `ifb4eth0`: ";
    assert!(
        said.len() == 2 && said[0].contains(&sent) && said[1].contains(received),
        "{said:?}"
    );
}
