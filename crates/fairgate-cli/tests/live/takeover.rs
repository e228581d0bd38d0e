//! How a run takes its interfaces over, and other uses of them by this machine.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use fairgate_live::testbed::{Namespace, Network};
use nix::sys::signal::Signal;

use crate::common::{live, until};
use crate::harness::{ping, refusal};
use crate::run::{BACKENDS, PLAIN, Run, call, plain, succeeds, transfer};

/// Writes a setting of the kernel in a namespace, below /proc/sys/net.
fn set(namespace: &Namespace, name: &str, value: &str) {
    let write = || fs::write(format!("/proc/sys/net/{name}"), value);
    namespace.enter(write).unwrap().unwrap();
}

fn ip(namespace: &Namespace, command: &str) -> String {
    let words: Vec<&str> = command.split(' ').collect();
    namespace.ip(&words).unwrap()
}

/// Returns the number of packets that the kernel of a namespace has forwarded itself.
fn forwarded_by_kernel(namespace: &Namespace) -> u64 {
    let read = || fs::read_to_string("/proc/thread-self/net/snmp");
    let text = namespace.enter(read).unwrap().unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.split(' ').position(|name| name == "ForwDatagrams").unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

/// Without isolation the kernel would also route between the two interfaces, unshaped.
#[test]
fn a_router_that_routes_itself_is_refused_or_kept_away() {
    let Some(_watched) = live("a_router_that_routes_itself_is_refused_or_kept_away") else {
        return;
    };
    BACKENDS.into_iter().for_each(keeps_router_away);
}

fn keeps_router_away(backend: &str) {
    let network = Network::build().unwrap();
    let router = &network.router;
    ip(router, "address add 10.77.0.254/24 dev left");
    ip(router, "address add 10.78.0.254/24 dev right");
    set(router, "ipv4/ip_forward", "1");
    let (code, message) = refusal(router, PLAIN);
    assert_eq!(code, Some(3));
    assert!(
        message.contains("`left` has the address 10.77.0.254/24"),
        "{message}"
    );

    // The hosts are in two networks and send to the router's address. Only the kernel's own forwarding
    // connects them.
    ip(&network.right, "address add 10.78.0.2/24 dev eth0");
    ip(&network.right, "address del 10.77.0.2/24 dev eth0");
    ip(&network.left, "route add 10.78.0.0/24 via 10.77.0.254");
    ip(&network.right, "route add 10.77.0.0/24 via 10.78.0.254");
    assert!(ping(&network, "10.78.0.2"), "the router routes before the run");
    let before = forwarded_by_kernel(router);
    assert!(before > 0);

    let run = Run::start(router, &format!("{}isolate = true\n", plain(backend)));
    assert!(run.status().isolated);
    assert!(!ping(&network, "10.78.0.2"), "the kernel routes beside the run");
    assert!(
        !ping(&network, "10.77.0.254"),
        "the kernel answers beside the run"
    );
    assert_eq!(forwarded_by_kernel(router), before);
    run.stop();
    assert!(ping(&network, "10.78.0.2"), "the router routes again");

    // A run that is killed leaves nothing behind either.
    let mut run = Run::start(router, &format!("{}isolate = true\n", plain(backend)));
    assert!(!ping(&network, "10.77.0.254"));
    run.signal(Signal::SIGKILL);
    run.output();
    assert!(ping(&network, "10.78.0.2"), "the router routes again");
}

#[test]
fn ports_of_a_bridge_are_refused_or_kept_away() {
    let Some(_watched) = live("ports_of_a_bridge_are_refused_or_kept_away") else {
        return;
    };
    BACKENDS.into_iter().for_each(keeps_bridge_away);
}

fn keeps_bridge_away(backend: &str) {
    let network = Network::build().unwrap();
    let router = &network.router;
    ip(router, "link add br0 type bridge");
    ip(router, "link set left master br0");
    ip(router, "link set right master br0");
    ip(router, "link set br0 up");
    let (code, message) = refusal(router, PLAIN);
    assert_eq!(code, Some(3));
    assert!(message.contains("`left` is a port of `br0`"), "{message}");
    let run = Run::start(router, &format!("{}isolate = true\n", plain(backend)));
    let arguments = ["-n", "-c", "5", "-i", "0.05", Network::RIGHT];
    let text = call(&network.left, "ping", &arguments);
    assert!(
        text.contains(" 5 received") && !text.contains("duplicate"),
        "{text}"
    );
    run.stop();
    assert!(ping(&network, Network::RIGHT), "the kernel's bridge works again");
}

/// A VLAN on top is found in the same way, but not every kernel supports VLANs.
#[test]
fn an_interface_with_others_on_top_is_refused() {
    let Some(_watched) = live("an_interface_with_others_on_top_is_refused") else {
        return;
    };
    let network = Network::build().unwrap();
    ip(&network.router, "link add link right name above type macvlan");
    let (code, message) = refusal(&network.router, PLAIN);
    assert_eq!(code, Some(3));
    assert!(message.contains("`right` carries `above`"), "{message}");
    ip(&network.router, "link del above");
    Run::start(&network.router, PLAIN).stop();
}

/// Nothing uses the interfaces. Without isolation their kernel would take an address from a router
/// advertisement that passes.
#[test]
fn router_advertisements_pass_and_leave_no_address() {
    let Some(_watched) = live("router_advertisements_pass_and_leave_no_address") else {
        return;
    };
    BACKENDS.into_iter().for_each(passes_advertisements);
}

fn passes_advertisements(backend: &str) {
    let network = Network::build().unwrap();
    let router = &network.router;
    for interface in ["left", "right"] {
        set(router, &format!("ipv6/conf/{interface}/accept_ra"), "1");
        set(router, &format!("ipv6/conf/{interface}/disable_ipv6"), "0");
    }
    let run = Run::start(router, &plain(backend));
    assert!(run.status().isolated);
    // When the left host has configured the address, the advertisement has passed.
    until("the advertisement passes", || {
        advertise(&network.right);
        ip(&network.left, "-6 address show dev eth0").contains("fd0f::1:")
    });
    let addresses = ip(router, "-6 address show");
    assert!(!addresses.contains("fd0f"), "{addresses}");
    assert_eq!(ip(router, "-6 route show default"), "");
    run.stop();
}

/// Sends a router advertisement with a prefix from a host (RFC 4861, section 4.2).
fn advertise(host: &Namespace) {
    let mut message = vec![134, 0, 0, 0, 64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0];
    message.extend([3, 4, 64, 0xc0]);
    message.extend([0, 1, 0x51, 0x80, 0, 0, 0x38, 0x40, 0, 0, 0, 0]);
    message.extend([0xfd, 0x0f, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    let send = || -> nix::Result<()> {
        use nix::sys::socket::*;
        let socket = socket(
            AddressFamily::Inet6,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::IcmpV6,
        )?;
        let hops = 255;
        setsockopt(&socket, sockopt::Ipv6MulticastHops, &hops)?;
        let index = nix::net::if_::if_nametoindex("eth0")?;
        let to = std::net::SocketAddrV6::new("ff02::1".parse().unwrap(), 0, 0, index);
        sendto(
            socket.as_raw_fd(),
            &message,
            &SockaddrIn6::from(to),
            MsgFlags::empty(),
        )
        .map(drop)
    };
    // A link-local address is not usable before it is known to be unique.
    until("the host has a link-local address to send from", || {
        host.enter(send).unwrap().is_ok()
    });
}

#[test]
fn an_interface_belongs_to_one_run() {
    let Some(_watched) = live("an_interface_belongs_to_one_run") else {
        return;
    };
    let network = Network::build().unwrap();
    // Any user may bind these names, which locks once had.
    let bind = || {
        let name =
            |index: u32| SocketAddr::from_abstract_name(format!("fairgate/interface/{index}")).unwrap();
        let bound = (1..=400).map(|index| UnixListener::bind_addr(&name(index)).unwrap());
        bound.collect::<Vec<_>>()
    };
    let _squatted = network.router.enter(bind).unwrap();
    let run = Run::start(&network.router, PLAIN);
    for other in [PLAIN, "[run]\nleft = \"tap:fg0\"\nright = \"right\"\n"] {
        let (code, message) = refusal(&network.router, other);
        assert_eq!(code, Some(3));
        assert!(
            message.contains("already forwards from") && message.contains("process "),
            "{message}"
        );
    }
    // The same names in another namespace are different interfaces.
    let beside = Network::build().unwrap();
    Run::start(&beside.router, PLAIN).stop();
    run.stop();
    // Nobody else takes the place of an interface that is away.
    let run = Run::start(&network.router, PLAIN);
    ip(&network.router, "link del right");
    until("the run notices", || run.said().contains("`right` was removed"));
    let (code, message) = refusal(
        &network.router,
        "[run]\nleft = \"tap:fg0\"\nright = \"tap:right\"\n",
    );
    assert_eq!(code, Some(3));
    assert!(message.contains("already forwards from `right`"), "{message}");
    run.stop();
}

/// Returns whether generic receive offload is on at the two interfaces of the router.
fn merging(network: &Network) -> Vec<bool> {
    let is_on = |interface: &&str| {
        let offloads = call(&network.router, "ethtool", &["-k", interface]);
        offloads.contains("generic-receive-offload: on")
    };
    ["left", "right"].iter().map(is_on).collect()
}

#[test]
fn offloads_are_switched_off_and_on_again() {
    let Some(_watched) = live("offloads_are_switched_off_and_on_again") else {
        return;
    };
    let network = Network::build().unwrap();
    // An offload that was off before stays off.
    for (interface, state) in [("right", "off"), ("left", "on")] {
        call(&network.router, "ethtool", &["-K", interface, "gro", state]);
    }
    assert_eq!(merging(&network), [true, false]);
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
        let mut run = Run::start(&network.router, &format!("{PLAIN}offloads = \"off\"\n"));
        assert_eq!(merging(&network), [false, false]);
        transfer(
            &network,
            &format!("{}:4000", Network::RIGHT),
            "offloads switched off",
        );
        run.signal(signal);
        run.output();
        // After a kill another process restores them a moment later.
        let what = format!("offloads are restored after {signal}");
        until(&what, || merging(&network) == [true, false]);
    }
}

/// Kills a run and all its children at once, as the kernel does with a whole control group.
fn kill_with_children(run: &mut Run) {
    let process = run.program.as_ref().expect("the run has not ended").id();
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap();
    let children: Vec<&str> = children.split_whitespace().collect();
    assert!(!children.is_empty(), "it has children that restore settings");
    for child in children {
        let child = nix::unistd::Pid::from_raw(child.parse().unwrap());
        nix::sys::signal::kill(child, Signal::SIGKILL).unwrap();
    }
    run.signal(Signal::SIGKILL);
    run.output();
}

/// If nobody was left to restore the offloads, the next run does, whatever it does with them itself.
#[test]
fn offloads_are_restored_by_the_next_run_if_all_processes_were_killed() {
    let Some(_watched) = live("offloads_are_restored_by_the_next_run_if_all_processes_were_killed") else {
        return;
    };
    let network = Network::build().unwrap();
    for (interface, state) in [("right", "off"), ("left", "on")] {
        call(&network.router, "ethtool", &["-K", interface, "gro", state]);
    }
    let off = format!("{PLAIN}offloads = \"off\"\n");
    let undone = "a killed run had left gro of `left` off; that was undone";
    for (next, while_it_runs) in [(PLAIN, [true, false]), (&off, [false, false])] {
        kill_with_children(&mut Run::start(&network.router, &off));
        assert_eq!(merging(&network), [false, false], "nobody restored it");
        let run = Run::start(&network.router, next);
        assert_eq!(merging(&network), while_it_runs);
        until("the log says so", || run.said().contains(undone));
        run.stop();
        assert_eq!(merging(&network), [true, false]);
    }
    // What was restored is not noted any more: it may be switched off by hand afterwards.
    let mut run = Run::start(&network.router, &off);
    run.signal(Signal::SIGKILL);
    run.output();
    until("the children restore it", || merging(&network) == [true, false]);
    call(&network.router, "ethtool", &["-K", "left", "gro", "off"]);
    let run = Run::start(&network.router, PLAIN);
    assert_eq!(merging(&network), [false, false]);
    run.stop();
}

/// The offloads are those of the device, whatever its name is in the end.
#[test]
fn offloads_of_a_renamed_interface_are_restored() {
    let Some(_watched) = live("offloads_of_a_renamed_interface_are_restored") else {
        return;
    };
    let network = Network::build().unwrap();
    call(&network.router, "ethtool", &["-K", "left", "gro", "on"]);
    let run = Run::start(&network.router, &format!("{PLAIN}offloads = \"off\"\n"));
    ip(&network.router, "link set left down");
    ip(&network.router, "link set left name other");
    ip(&network.router, "link set other up");
    until("the run follows", || {
        run.said().contains("`left` was renamed to `other`")
    });
    run.stop();
    let offloads = call(&network.router, "ethtool", &["-k", "other"]);
    assert!(offloads.contains("generic-receive-offload: on"), "{offloads}");
}

/// Returns whether echo requests of `payload` bytes, which must not be fragmented, are answered.
fn echo_passes(network: &Network, address: &str, payload: usize) -> bool {
    let payload = payload.to_string();
    let arguments = "-n -c 3 -i 0.05 -W 2 -M do -s".split(' ');
    let arguments: Vec<&str> = arguments.chain([payload.as_str(), address]).collect();
    succeeds(&network.left, "ping", &arguments)
}

#[test]
fn a_raised_mtu_is_followed() {
    let Some(_watched) = live("a_raised_mtu_is_followed") else {
        return;
    };
    let network = Network::build().unwrap();
    let mut run = Run::start(&network.router, PLAIN);
    assert!(echo_passes(&network, Network::RIGHT, 1472));
    for (namespace, interface) in [
        (&network.router, "right"),
        (&network.router, "left"),
        (&network.right, "eth0"),
        (&network.left, "eth0"),
    ] {
        ip(namespace, &format!("link set {interface} mtu 9000"));
    }
    assert!(echo_passes(&network, Network::RIGHT, 8972));
    transfer(&network, &format!("{}:4000", Network::RIGHT), "a raised MTU");
    let sent = run.status().directions[0].sent;
    assert!(sent.bytes / sent.packets > 3000, "{sent:?}");
    run.signal(Signal::SIGINT);
    let said = run.output().stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("the MTU of `left` was raised to 9000"), "{said}");
}
