//! Forwarding, and the state after a run ends.

use std::fs;
use std::process::Command;

use fairgate_live::testbed::Network;
use nix::sys::signal::Signal;

use crate::common::program::Program;
use crate::common::{live, output, until};
use crate::harness::{ping, promiscuity, refusal};
use crate::run::{BACKENDS, PLAIN, Run, TWO_WORKERS, plain, transfer};

/// Hosts with checksum offload and super-packets: TCP works, and its bytes are counted as full-sized frames.
#[test]
fn tcp_passes_with_all_offloads_on() {
    let Some(_watched) = live("tcp_passes_with_all_offloads_on") else {
        return;
    };
    BACKENDS.into_iter().for_each(passes_tcp);
}

fn passes_tcp(backend: &str) {
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, &plain(backend));
    transfer(&network, &format!("{}:4000", Network::RIGHT), "all offloads on");
    let status = run.status();
    let sent = &status.directions[0].sent;
    assert!(sent.bytes > 4_000_000);
    assert!(
        sent.bytes / sent.packets <= 1514,
        "super-packets were not cut: {sent:?}"
    );
    let last = run.stop();
    assert_eq!(last["schema"], "fairgate.status/1");
    let lost = last["directions"][0]["lost"].as_object().unwrap();
    let our_losses = lost
        .iter()
        .filter(|(reason, _)| *reason != "no_frame" && *reason != "ring_full");
    assert!(our_losses.clone().all(|(_, count)| count == 0), "{lost:?}");
}

/// One tree serves both directions. Filters distinguish them.
#[test]
fn filters_match_the_interface_that_a_packet_arrived_on() {
    let Some(_watched) = live("filters_match_the_interface_that_a_packet_arrived_on") else {
        return;
    };
    let network = Network::build().unwrap();
    let configuration = "\
[queue.line]
discipline = \"drr\"
[[queue.line.filter]]
interface = 1
class = 1
[[queue.line.filter]]
interface = 2
class = 2
[[queue.line.class]]
id = 1
discipline = \"fifo\"
[[queue.line.class]]
id = 2
discipline = \"fifo\"
[run]
left = \"left\"
right = \"right\"
left_to_right = \"line\"
right_to_left = \"line\"
";
    let run = Run::start(&network.router, configuration);
    assert!(ping(&network, Network::RIGHT));
    let sent = |direction: usize| {
        let classes = &run.status().directions[direction].tree.classes;
        [0, 1].map(|class: usize| classes[class].enqueued.packets)
    };
    let (right, left) = (sent(0), sent(1));
    assert!(right[0] >= 3 && right[1] == 0, "{right:?} of the left interface");
    assert!(left[0] == 0 && left[1] >= 3, "{left:?} of the right interface");
    run.stop();
}

/// Sends real TCP through the pipe of an office. All packets pass the queue of the last rule, at the pipe's
/// rate.
#[test]
fn a_script_of_dummynet_schedules_tcp() {
    let Some(_watched) = live("a_script_of_dummynet_schedules_tcp") else {
        return;
    };
    let network = Network::build().unwrap();
    let script = include_str!("../../../../examples/office.ipfw").replace("em1", "right");
    let run = Run::of_script(&network.router, "dummynet", &script, ["left", "right"]);
    transfer(
        &network,
        &format!("{}:4000", Network::RIGHT),
        "a pipe of dummynet",
    );
    let status = run.status();
    let [out, back] = &status.directions[..] else {
        panic!("two directions")
    };
    assert_eq!((out.to.as_str(), out.tree.discipline.as_str()), ("right", "tbf"));
    assert!(
        back.tree.classes.is_empty(),
        "the other direction is not scheduled"
    );
    let scheduler = &out.tree.classes[0];
    assert_eq!(scheduler.discipline, "wf2q_plus");
    let sent: Vec<u64> = scheduler
        .classes
        .iter()
        .map(|class| class.dequeued.bytes)
        .collect();
    assert!(sent[0] == 0 && sent[1] > 4_000_000 && sent[2] == 0, "{sent:?}");
    assert!(
        out.tree.overlimits > 0,
        "4 MB at once have to wait for a pipe of 20 Mbit/s"
    );
    run.stop();
}

#[test]
fn ipv6_passes() {
    let Some(_watched) = live("ipv6_passes") else {
        return;
    };
    BACKENDS.into_iter().for_each(passes_ipv6);
}

fn passes_ipv6(backend: &str) {
    let network = Network::build().unwrap();
    for (host, number) in [(&network.left, 1), (&network.right, 2)] {
        host.ip(&[
            "address",
            "add",
            &format!("fd00::{number}/64"),
            "dev",
            "eth0",
            "nodad",
        ])
        .unwrap();
    }
    let run = Run::start(&network.router, &plain(backend));
    transfer(&network, "[fd00::2]:4000", "IPv6");
    run.stop();
}

#[test]
fn jumbo_frames_pass() {
    let Some(_watched) = live("jumbo_frames_pass") else {
        return;
    };
    let network = Network::build().unwrap();
    for (namespace, interface) in [
        (&network.left, "eth0"),
        (&network.router, "left"),
        (&network.router, "right"),
        (&network.right, "eth0"),
    ] {
        namespace.ip(&["link", "set", interface, "mtu", "9000"]).unwrap();
    }
    let run = Run::start(&network.router, PLAIN);
    transfer(&network, &format!("{}:4000", Network::RIGHT), "jumbo frames");
    let status = run.status();
    let sent = &status.directions[0].sent;
    assert!(
        sent.bytes / sent.packets > 5000,
        "frames are not jumbo frames: {sent:?}"
    );
    run.stop();
}

#[test]
fn two_tap_devices_are_joined_and_removed() {
    let Some(_watched) = live("two_tap_devices_are_joined_and_removed") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(
        &network.router,
        "[run]\nleft = \"tap:fgl\"\nright = \"tap:fgr\"\n",
    );
    for (device, host, number) in [("fgl", &network.left, 1), ("fgr", &network.right, 2)] {
        network
            .router
            .ip(&["link", "set", device, "netns", host.name()])
            .unwrap();
        host.ip(&["link", "set", device, "up"]).unwrap();
        host.ip(&["address", "add", &format!("10.79.0.{number}/24"), "dev", device])
            .unwrap();
    }
    transfer(&network, "10.79.0.2:4000", "two TAP devices");
    run.stop();
    let links = network.left.ip(&["-brief", "link"]).unwrap();
    assert!(!links.contains("fgl"), "the TAP device is left behind: {links}");
}

/// A router of IP packets: what is routed into one TUN device comes out of the other one. The hosts' stacks
/// leave checksums and segmentation to the run.
#[test]
fn two_tun_devices_carry_ip_packets() {
    let Some(_watched) = live("two_tun_devices_carry_ip_packets") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(
        &network.router,
        "[run]\nleft = \"tun:fgl\"\nright = \"tun:fgr\"\n",
    );
    for (device, host, number) in [("fgl", &network.left, 1), ("fgr", &network.right, 2)] {
        let link = ["link", "set", device, "netns", host.name()];
        network.router.ip(&link).unwrap();
        host.ip(&["link", "set", device, "up"]).unwrap();
        for address in [format!("10.79.0.{number}/24"), format!("fd79::{number}/64")] {
            host.ip(&["address", "add", &address, "dev", device, "nodad"])
                .unwrap();
        }
    }
    // The device that came up first may have sent something before the other one took packets.
    let lost = || {
        let directions = run.status().directions.into_iter();
        let lost = directions.map(|direction| direction.lost.refused + direction.lost.unsupported_offload);
        lost.collect::<Vec<_>>()
    };
    let before = lost();
    transfer(&network, "10.79.0.2:4000", "two TUN devices");
    transfer(&network, "[fd79::2]:4000", "two TUN devices, IPv6");
    let status = run.status();
    let [there, back] = [0, 1].map(|side: usize| &status.directions[side]);
    assert!(there.sent.bytes > 8_000_000, "{there:?}");
    assert!(
        there.sent.bytes / there.sent.packets <= 1514,
        "super-packets were not cut: {there:?}"
    );
    assert_eq!(lost(), before, "{there:?} {back:?}");
    run.stop();
    let links = network.left.ip(&["-brief", "link"]).unwrap();
    assert!(!links.contains("fgl"), "the TUN device is left behind: {links}");
}

/// A device that exists before the run, and stays, is left without offloads: the next program that opens it
/// may not know them.
#[test]
fn a_persistent_tap_device_stays_as_it_was() {
    let Some(_watched) = live("a_persistent_tap_device_stays_as_it_was") else {
        return;
    };
    let network = Network::build().unwrap();
    let router = &network.router;
    router
        .ip(&["tuntap", "add", "dev", "fgp", "mode", "tap"])
        .unwrap();
    let offloads = || output(router.command("ethtool").args(["-k", "fgp"]));
    let before = offloads();
    let run = Run::start(router, "[run]\nleft = \"left\"\nright = \"tap:fgp\"\n");
    router
        .ip(&["address", "add", "10.77.0.9/24", "dev", "fgp"])
        .unwrap();
    until("the host behind the TAP device is reached", || {
        ping(&network, "10.77.0.9")
    });
    assert_eq!(offloads(), before);
    run.stop();
    assert_eq!(offloads(), before);
}

#[test]
fn an_interrupt_leaves_interfaces_as_they_were() {
    let Some(_watched) = live("an_interrupt_leaves_interfaces_as_they_were") else {
        return;
    };
    BACKENDS.into_iter().for_each(is_interrupted);
}

fn is_interrupted(backend: &str) {
    let network = Network::build().unwrap();
    // Each worker has sockets of its own.
    let workers = if backend == TWO_WORKERS { 2 } else { 1 };
    assert_eq!(promiscuity(&network), [0, 0]);
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
        let mut run = Run::start(&network.router, &plain(backend));
        assert_eq!(promiscuity(&network), [workers, workers]);
        assert!(ping(&network, Network::RIGHT));
        run.signal(signal);
        let output = run.output();
        if signal != Signal::SIGKILL {
            assert_eq!(output.status.code(), Some(0));
        }
        assert_eq!(promiscuity(&network), [0, 0], "after {signal}");
    }
}

#[test]
fn an_unusable_configuration_is_rejected_at_the_start() {
    let Some(_watched) = live("an_unusable_configuration_is_rejected_at_the_start") else {
        return;
    };
    let network = Network::build().unwrap();
    let router = &network.router;
    let (code, message) = refusal(router, "[run]\nleft = \"left\"\nright = \"nowhere\"\n");
    assert_eq!(code, Some(3));
    assert!(message.contains("`nowhere`"), "{message}");

    let (code, message) = refusal(router, "[run]\nleft = \"left\"\nright = \"left\"\n");
    assert_eq!(
        (code, message.contains("same interface")),
        (Some(2), true),
        "{message}"
    );

    let (code, message) = refusal(router, "[run]\nleft = \"left\"\nright = \"tun:fg0\"\n");
    assert_eq!(
        (code, message.contains("has Ethernet headers")),
        (Some(2), true),
        "{message}"
    );

    let (code, message) = refusal(router, "[run]\nleft = \"left\"\n");
    assert_eq!((code, message.contains("right")), (Some(2), true), "{message}");

    let (code, message) = refusal(router, "[run]\nleft = \"left\"\nright = \"lo\"\n");
    assert_eq!((code, message.contains("Ethernet")), (Some(3), true), "{message}");

    router.ip(&["link", "set", "right", "mtu", "1400"]).unwrap();
    let (code, message) = refusal(router, PLAIN);
    assert_eq!((code, message.contains("MTU")), (Some(3), true), "{message}");

    router.ip(&["link", "set", "right", "down"]).unwrap();
    let (code, message) = refusal(router, PLAIN);
    assert_eq!((code, message.contains("is down")), (Some(3), true), "{message}");
}

/// Runs without capabilities, like an ordinary user.
#[test]
fn missing_privileges_are_an_error_that_says_so() {
    let Some(_watched) = live("missing_privileges_are_an_error_that_says_so") else {
        return;
    };
    let network = Network::build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.toml");
    fs::write(&file, PLAIN).unwrap();
    let mut command = network.router.command("setpriv");
    command
        .args([
            "--bounding-set=-net_raw,-net_admin",
            "--inh-caps=-net_raw,-net_admin",
        ])
        .arg(env!("CARGO_BIN_EXE_fairgate"))
        .args(["run", "--json"])
        .arg(&file);
    let output = output(&mut command);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        document["errors"][0]["message"]
            .as_str()
            .unwrap()
            .contains("privileges")
    );
}

#[test]
fn a_second_run_of_the_same_name_is_refused() {
    let Some(_watched) = live("a_second_run_of_the_same_name_is_refused") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, PLAIN);
    let other = run.folder.path().join("other.toml");
    fs::write(&other, "[run]\nleft = \"tap:fgl\"\nright = \"tap:fgr\"\n").unwrap();
    let mut command = network.router.command(env!("CARGO_BIN_EXE_fairgate"));
    command.args(["run", "--socket"]).arg(&run.socket).arg(other);
    let output = output(&mut command);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("another process"));
    run.stop();
}

#[test]
fn a_hangup_changes_parameters_in_place() {
    let Some(_watched) = live("a_hangup_changes_parameters_in_place") else {
        return;
    };
    let network = Network::build().unwrap();
    let configuration = |limit: u32, left: &str| {
        format!(
            "[queue.line]\ndiscipline = \"fifo\"\nlimit = {limit}\n[run]\nleft = \"{left}\"\nright = \
             \"right\"\nleft_to_right = \"line\"\n"
        )
    };
    let mut run = Run::start(&network.router, &configuration(1000, "left"));
    let limit = |run: &Run| {
        let variables = &run.status().directions[0].tree.variables;
        serde_json::to_value(variables["limit_packets"]).unwrap()["integer"]
            .as_i64()
            .unwrap()
    };
    assert_eq!(limit(&run), 1000);
    let file = run.folder.path().join("run.toml");
    // The second file has a change that is not possible during a run. The third one is invalid. Both change
    // nothing.
    for (text, expected) in [
        (configuration(77, "left"), (1, 0)),
        (configuration(88, "nowhere"), (1, 1)),
        ("[run".to_owned(), (1, 2)),
    ] {
        fs::write(&file, text).unwrap();
        run.signal(Signal::SIGHUP);
        until("the file is read", || {
            let changes = run.status().changes;
            (changes.applied, changes.refused) == expected
        });
        assert_eq!(limit(&run), 77);
    }
    assert!(ping(&network, Network::RIGHT));
    run.signal(Signal::SIGTERM);
    let output = run.output();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("`left` in [run] has changed"), "{said}");
    assert!(said.contains("unclosed table"), "{said}");
}

/// Returns the number of network namespaces of process `id`.
fn namespaces(id: u32) -> usize {
    let output = output(Command::new("ip").args(["netns", "list"]));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter(|line| line.starts_with(&format!("fg-{id}-")))
        .count()
}

#[test]
fn an_interrupted_testbed_is_taken_down() {
    let Some(_watched) = live("an_interrupted_testbed_is_taken_down") else {
        return;
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    let mut testbed = Program::start(command.args(["testbed", "--queue", "fifo"]));
    let id = testbed.id();
    until("the testbed has three namespaces", || {
        assert!(!testbed.has_ended(), "the testbed ended early");
        namespaces(id) == 3
    });
    testbed.signal(Signal::SIGINT);
    assert_eq!(testbed.output().status.code(), Some(3));
    assert_eq!(namespaces(id), 0);
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let Some(_watched) = live("a_missing_program_is_named_with_its_package") else {
        return;
    };
    // A search path on which there is all but iperf3.
    let folder = tempfile::tempdir().unwrap();
    for program in ["ip", "ping"] {
        let path = std::env::var_os("PATH").unwrap();
        let found = std::env::split_paths(&path)
            .map(|folder| folder.join(program))
            .find(|path| path.exists());
        std::os::unix::fs::symlink(
            found.expect("the other tests need it too"),
            folder.path().join(program),
        )
        .unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    command.args(["testbed", "--json"]).env("PATH", folder.path());
    let testbed = Program::start(&mut command);
    let id = testbed.id();
    let output = testbed.output();
    assert_eq!(output.status.code(), Some(3));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        document["errors"][0]["message"]
            .as_str()
            .unwrap()
            .contains("`iperf3`")
    );
    assert!(
        document["errors"][0]["help"]
            .as_str()
            .unwrap()
            .contains("apt-get install iperf3")
    );
    assert_eq!(namespaces(id), 0);
}
