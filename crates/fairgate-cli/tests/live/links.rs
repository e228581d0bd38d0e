//! Interfaces that go down, disappear, return and change while a run forwards.

use std::net::UdpSocket;

use fairgate_live::testbed::{Namespace, Network};
use nix::sys::signal::Signal;

use crate::common::{live, until};
use crate::harness::ping;
use crate::run::{BACKENDS, PLAIN, Run, plain, succeeds};

fn ip(namespace: &Namespace, command: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    namespace.ip(&words).unwrap();
}

/// Waits until the right host answers through the run.
fn until_forwarding(network: &Network) {
    until("the hosts reach each other", || {
        succeeds(
            &network.left,
            "ping",
            &["-n", "-c", "1", "-W", "1", Network::RIGHT],
        )
    });
}

/// Sends datagrams to the right host, which is not reachable, and then makes it reachable. All must arrive.
fn none_is_lost(network: &Network, unreachable: impl FnOnce(), reachable: impl FnOnce()) {
    let bind = |address: &'static str| move || UdpSocket::bind((address, 5000)).unwrap();
    let sink = network.right.enter(bind(Network::RIGHT)).unwrap();
    let source = network.left.enter(bind(Network::LEFT)).unwrap();
    unreachable();
    for number in 0..50u8 {
        source.send_to(&[number], (Network::RIGHT, 5000)).unwrap();
    }
    reachable();
    sink.set_read_timeout(Some(std::time::Duration::from_secs(60)))
        .unwrap();
    for number in 0..50 {
        let mut byte = [0];
        sink.recv(&mut byte).expect("a datagram that waited in the queue");
        assert_eq!(byte, [number]);
    }
}

#[test]
fn packets_wait_while_an_interface_is_down() {
    let Some(_watched) = live("packets_wait_while_an_interface_is_down") else {
        return;
    };
    BACKENDS.into_iter().for_each(waits_for_interface);
}

fn waits_for_interface(backend: &str) {
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, &plain(backend));
    assert!(ping(&network, Network::RIGHT));
    none_is_lost(
        &network,
        || {
            ip(&network.router, "link set right down");
            run.until_said("`right` went down");
        },
        || ip(&network.router, "link set right up"),
    );
    run.until_said("`right` is back");
    until_forwarding(&network);
    // The side that receives.
    ip(&network.router, "link set left down");
    run.until_said("`left` went down");
    ip(&network.router, "link set left up");
    until_forwarding(&network);
    run.stop();
}

#[test]
fn packets_wait_while_there_is_no_carrier() {
    let Some(_watched) = live("packets_wait_while_there_is_no_carrier") else {
        return;
    };
    BACKENDS.into_iter().for_each(waits_for_carrier);
}

fn waits_for_carrier(backend: &str) {
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, &plain(backend));
    assert!(ping(&network, Network::RIGHT));
    none_is_lost(
        &network,
        || {
            ip(&network.right, "link set eth0 down");
            run.until_said("`right` has no carrier");
        },
        || ip(&network.right, "link set eth0 up"),
    );
    run.until_said("`right` is back");
    until_forwarding(&network);
    run.stop();

    // A run that starts without a carrier says so, and forwards when there is one.
    ip(&network.right, "link set eth0 down");
    let run = Run::start(&network.router, &plain(backend));
    run.until_said("`right` has no carrier");
    ip(&network.right, "link set eth0 up");
    until_forwarding(&network);
    run.stop();
}

/// Makes a new link to the right host, whose interface is not up yet.
fn connect(network: &Network) {
    let right = network.right.name();
    let command = format!("link add right type veth peer name eth0 netns {right}");
    ip(&network.router, &command);
    ip(
        &network.right,
        &format!("address add {}/24 dev eth0", Network::RIGHT),
    );
    ip(&network.right, "link set eth0 up");
    // The right host has a new MAC address.
    ip(&network.left, "neigh flush dev eth0");
}

/// Removes the link to the right host and makes a new one.
fn replace(network: &Network) {
    ip(&network.router, "link del right");
    connect(network);
    ip(&network.router, "link set right up");
}

#[test]
fn a_new_interface_of_the_same_name_is_taken() {
    let Some(_watched) = live("a_new_interface_of_the_same_name_is_taken") else {
        return;
    };
    BACKENDS.into_iter().for_each(takes_new_interface);
}

fn takes_new_interface(backend: &str) {
    let network = Network::build().unwrap();
    let configuration = format!("{}isolate = true\noffloads = \"off\"\n", plain(backend));
    let run = Run::start(&network.router, &configuration);
    assert!(ping(&network, Network::RIGHT));
    for _ in 0..3 {
        replace(&network);
        until_forwarding(&network);
    }
    run.until_said("`right` was removed");
    // It is isolated again: the kernel of the router does not answer at an address there.
    assert!(run.status().isolated);
    ip(&network.router, "address add 10.77.0.254/24 dev right");
    assert!(!succeeds(
        &network.right,
        "ping",
        &["-n", "-c", "2", "-i", "0.1", "-W", "1", "10.77.0.254"]
    ));
    run.stop();
    assert!(succeeds(
        &network.right,
        "ping",
        &["-n", "-c", "1", "-W", "5", "10.77.0.254"]
    ));
}

/// With AF_XDP, sockets and waiting frames share memory. The chunks of a removed interface go to the new one:
/// without them it would receive nothing.
#[test]
fn a_removed_interface_keeps_no_memory() {
    let Some(_watched) = live("a_removed_interface_keeps_no_memory") else {
        return;
    };
    let network = Network::build().unwrap();
    let configuration = format!(
        "[queue.slow]\ndiscipline = \"tbf\"\nrate = \"5mbit\"\nburst = \"20kb\"\nlimit = \"1mb\"\n\
         {}left_to_right = \"slow\"\nframes = 64\n",
        plain("xdp")
    );
    let run = Run::start(&network.router, &configuration);
    let source = network
        .left
        .enter(|| UdpSocket::bind((Network::LEFT, 5000)))
        .unwrap();
    let source = source.unwrap();
    // A host refuses what nobody listens to, and may have no route for a moment: both are no failures here.
    let flood = || (0..500).for_each(|_| drop(source.send_to(&[0; 1000], (Network::RIGHT, 5000))));
    for _ in 0..6 {
        let before = run.status().directions.swap_remove(0);
        until("the store is full", || {
            flood();
            run.status().directions[0].lost.no_frame > before.lost.no_frame
        });
        replace(&network);
        until("frames pass that were received later", || {
            flood();
            run.status().directions[0].sent.packets > before.sent.packets + 200
        });
    }
    run.until_said("`right` was removed");
    until_forwarding(&network);
    run.stop();
}

/// An interface with an address may not be taken, just as at the start. It is taken when the address is gone.
#[test]
fn a_new_interface_must_be_unused() {
    let Some(_watched) = live("a_new_interface_must_be_unused") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, PLAIN);
    ip(&network.router, "link del right");
    run.until_said("`right` was removed");
    connect(&network);
    ip(&network.router, "address add 10.99.0.1/24 dev right");
    ip(&network.router, "link set right up");
    run.until_said("`right` is there again, but can't be used: `right` has the address 10.99.0.1/24");
    assert!(!ping(&network, Network::RIGHT));
    ip(&network.router, "address flush dev right");
    until_forwarding(&network);
    run.stop();
}

#[test]
fn a_renamed_interface_is_followed() {
    let Some(_watched) = live("a_renamed_interface_is_followed") else {
        return;
    };
    BACKENDS.into_iter().for_each(follows_name);
}

fn follows_name(backend: &str) {
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, &plain(backend));
    assert!(ping(&network, Network::RIGHT));
    ip(&network.router, "link set right down");
    ip(&network.router, "link set right name wan0");
    ip(&network.router, "link set wan0 up");
    run.until_said("`right` was renamed to `wan0`");
    until_forwarding(&network);
    assert_eq!(run.status().directions[0].to, "wan0");
    // It is removed: what counts is the name in the configuration.
    ip(&network.router, "link del wan0");
    run.until_said("`wan0` was removed");
    connect(&network);
    ip(&network.router, "link set right up");
    until_forwarding(&network);
    assert_eq!(run.status().directions[0].to, "right");
    run.stop();
}

#[test]
fn a_lowered_mtu_is_reported() {
    let Some(_watched) = live("a_lowered_mtu_is_reported") else {
        return;
    };
    BACKENDS.into_iter().for_each(reports_mtu);
}

fn reports_mtu(backend: &str) {
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, &plain(backend));
    ip(&network.router, "link set right mtu 1400");
    run.until_said("the MTU of `right` was lowered to 1400");
    assert!(ping(&network, Network::RIGHT));
    ip(&network.router, "link set right mtu 1500");
    run.until_said("the MTU of `right` was raised to 1500");
    let long = [
        "-n",
        "-c",
        "1",
        "-W",
        "60",
        "-M",
        "do",
        "-s",
        "1472",
        Network::RIGHT,
    ];
    assert!(succeeds(&network.left, "ping", &long));
    run.stop();
}

/// A TAP device belongs to its run, which makes it again.
#[test]
fn a_removed_tap_device_is_made_again() {
    let Some(_watched) = live("a_removed_tap_device_is_made_again") else {
        return;
    };
    let network = Network::build().unwrap();
    let configuration = "[run]\nleft = \"left\"\nright = \"tap:fg0\"\n";
    let mut run = Run::start(&network.router, configuration);
    for _ in 0..2 {
        ip(&network.router, "address add 10.77.0.9/24 dev fg0");
        until("the router answers through its TAP device", || {
            succeeds(&network.left, "ping", &["-n", "-c", "1", "-W", "1", "10.77.0.9"])
        });
        ip(&network.router, "link set fg0 down");
        run.until_said("`fg0` went down");
        ip(&network.router, "link del fg0");
        run.until_said("`fg0` is back");
        until("the device is there", || {
            succeeds(&network.router, "ip", &["link", "show", "dev", "fg0"])
        });
    }
    run.signal(Signal::SIGINT);
    assert_eq!(run.output().status.code(), Some(0));
    assert!(!succeeds(&network.router, "ip", &["link", "show", "dev", "fg0"]));
}
