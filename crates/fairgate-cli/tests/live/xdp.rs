//! AF_XDP as the back end: what it says, and where it is refused. Its forwarding is tested with that of the
//! packet sockets.

use std::process::Command;

use fairgate_live::testbed::Network;
use nix::sys::signal::Signal;

use crate::common::{live, output, until};
use crate::harness::{code_and_message, ping, refusal};
use crate::run::{PLAIN, Run, plain, transfer, transfer_between};

/// The hosts leave checksums to their interfaces. The run completes them, so no host counts a wrong one.
#[test]
fn the_mode_is_said_and_checksums_are_complete() {
    let Some(_watched) = live("the_mode_is_said_and_checksums_are_complete") else {
        return;
    };
    let network = Network::build().unwrap();
    let mut run = Run::spawn(&network.router, PLAIN, &["run", "--backend", "xdp"], |_| {}).wait();
    for (host, number) in [(&network.left, 1), (&network.right, 2)] {
        let address = format!("fd77::{number}/64");
        host.ip(&["address", "add", &address, "dev", "eth0", "nodad"])
            .unwrap();
    }
    transfer(&network, &format!("{}:4000", Network::RIGHT), "IPv4");
    transfer(&network, "[fd77::2]:4000", "IPv6");
    for host in [&network.left, &network.right] {
        let counters = output(host.command("nstat").args(["-az"]));
        let counters = String::from_utf8(counters.stdout).unwrap();
        let wrong: Vec<&str> = counters
            .lines()
            .filter(|line| line.contains("CsumErrors"))
            .collect();
        assert!(!wrong.is_empty(), "the counters are there: {counters}");
        for line in wrong {
            assert_eq!(line.split_whitespace().nth(1), Some("0"), "{line}");
        }
    }
    let status = run.status();
    for direction in &status.directions {
        let lost = direction.lost;
        assert_eq!(lost.refused + lost.too_long + lost.truncated, 0, "{lost:?}");
    }
    run.signal(Signal::SIGINT);
    let said = run.output().stderr;
    let said = String::from_utf8_lossy(&said);
    for interface in ["left", "right"] {
        let line = format!(
            "`{interface}`: AF_XDP with copies, because the configuration names it, but the driver can't use \
             our memory"
        );
        assert!(said.contains(&line), "{said}");
    }
}

#[test]
fn it_is_refused_where_frames_would_be_lost() {
    let Some(_watched) = live("it_is_refused_where_frames_would_be_lost") else {
        return;
    };
    let network = Network::build().unwrap();
    let router = &network.router;
    let refused = |configuration: &str, code: i32, part: &str| {
        let (found, message) = refusal(router, configuration);
        assert_eq!(found, Some(code), "{message}");
        assert!(message.contains(part), "{message}");
    };
    let alone =
        "[queue.q]\ndiscipline = \"fifo\"\n[run]\ndevice = \"left\"\negress = \"q\"\nbackend = \"xdp\"\n";
    refused(alone, 2, "can't run on `left` alone");
    refused(
        &format!("{}isolate = false\n", plain("xdp")),
        2,
        "but `isolate` is false",
    );

    router.ip(&["link", "add", "br0", "type", "bridge"]).unwrap();
    router.ip(&["link", "set", "br0", "up"]).unwrap();
    let on_bridge = "[run]\nleft = \"br0\"\nright = \"right\"\nbackend = \"xdp\"\n";
    refused(on_bridge, 3, "packets that a `bridge` device merges");

    for interface in ["left", "right"] {
        router.ip(&["link", "set", interface, "mtu", "3499"]).unwrap();
    }
    refused(&plain("xdp"), 3, "its MTU is 3499, but a frame must fit a page");
    for interface in ["left", "right"] {
        router.ip(&["link", "set", interface, "mtu", "3498"]).unwrap();
    }
    for host in [&network.left, &network.right] {
        host.ip(&["link", "set", "eth0", "mtu", "9000"]).unwrap();
    }
    refused(&plain("xdp"), 3, "the MTU of its other end is too large");
    for host in [&network.left, &network.right] {
        host.ip(&["link", "set", "eth0", "mtu", "3498"]).unwrap();
    }
    let run = Run::start(router, &plain("xdp"));
    transfer(&network, &format!("{}:4000", Network::RIGHT), "the largest MTU");
    let sent = run.status().directions[0].sent;
    assert!(sent.bytes / sent.packets > 2000, "{sent:?}");
    run.stop();
}

/// The memory for frames is locked, so it is not made larger while the run goes on.
#[test]
fn an_mtu_beyond_the_memory_is_reported() {
    let Some(_watched) = live("an_mtu_beyond_the_memory_is_reported") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, &plain("xdp"));
    for interface in ["left", "right"] {
        network
            .router
            .ip(&["link", "set", interface, "mtu", "3000"])
            .unwrap();
    }
    for interface in ["left", "right"] {
        let notice = format!("the MTU of `{interface}` was raised to 3000, but this run has no room for it");
        until(&notice, || run.said().contains(&notice));
        assert!(run.said().contains("longer than an MTU of 1770 allows"));
    }
    for host in [&network.left, &network.right] {
        host.ip(&["link", "set", "eth0", "mtu", "1770"]).unwrap();
    }
    transfer(
        &network,
        &format!("{}:4000", Network::RIGHT),
        "the largest MTU with room",
    );
    let sent = run.status().directions[0].sent;
    assert!(sent.bytes / sent.packets > 1500, "{sent:?}");
    run.stop();
}

/// A TAP device has no sockets, but its frames are in the memory that the sockets of the other end use. The
/// device gives frames that have to be cut.
#[test]
fn a_tap_device_can_be_the_other_end() {
    let Some(_watched) = live("a_tap_device_can_be_the_other_end") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(
        &network.router,
        "[run]\nleft = \"left\"\nright = \"tap:fgr\"\nbackend = \"xdp\"\n",
    );
    let link = ["link", "set", "fgr", "netns", network.right.name()];
    network.router.ip(&link).unwrap();
    network.right.ip(&["link", "set", "fgr", "up"]).unwrap();
    for (host, device, number) in [(&network.left, "eth0", 1), (&network.right, "fgr", 2)] {
        let address = format!("10.79.0.{number}/24");
        host.ip(&["address", "add", &address, "dev", device]).unwrap();
    }
    let lost = || {
        let directions = run.status().directions.into_iter();
        let lost = directions.map(|direction| {
            let lost = direction.lost;
            lost.refused + lost.too_long + lost.unsupported_offload
        });
        lost.collect::<Vec<_>>()
    };
    // A TAP device that is down refuses frames, and moving it took it down: a neighbour's solicitation that came
    // meanwhile is lost.
    let before = lost();
    transfer(&network, "10.79.0.2:4000", "AF_XDP to TAP");
    transfer_between(&network.right, &network.left, "10.79.0.1:4000", "TAP to AF_XDP");
    assert_eq!(lost(), before, "{:?}", run.status().directions);
    run.stop();
}

/// The run that has the interfaces goes on.
#[test]
fn a_second_run_and_an_unknown_back_end_are_refused() {
    let Some(_watched) = live("a_second_run_and_an_unknown_back_end_are_refused") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, &plain("xdp"));
    let (code, message) = refusal(&network.router, &plain("xdp"));
    assert_eq!(code, Some(3), "{message}");
    assert!(message.contains("already forwards from"), "{message}");
    assert!(ping(&network, Network::RIGHT));
    run.stop();
    let unknown = ["run", "--json", "--backend", "xpd", "x.toml"];
    let unknown = output(Command::new(env!("CARGO_BIN_EXE_fairgate")).args(unknown));
    let (code, message) = code_and_message(&unknown);
    assert_eq!(code, Some(2), "{message}");
}
