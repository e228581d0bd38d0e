//! `fairgate reserve`: a promise to a flow of a run.

use std::net::UdpSocket;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fairgate_live::testbed::Network;
use nix::sys::signal::Signal;

use crate::common::{live, output, until};
use crate::harness::code_and_message;
use crate::run::{Run, call};

/// A link of 5 Mbit/s from the left host to the right one. Its queue holds 2 s of packets.
const TREE: &str = "[queue.line]\ndiscipline = \"tbf\"\nrate = \"5mbit\"\nburst = \"5kb\"\n\n\
    [queue.line.inner]\ndiscipline = \"hfsc\"\ndefault = 1\n\n\
    [[queue.line.inner.class]]\nid = 1\nls = \"5mbit\"\ndiscipline = \"fifo\"\nlimit_bytes = \"1250kb\"\n\n\
    [run]\nleft = \"left\"\nright = \"right\"\nleft_to_right = \"line\"\n";

fn reserve(run: &Run, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    command
        .args(["--json", "reserve", words[0], "--socket"])
        .arg(&run.socket);
    output(command.args(&words[1..]))
}

/// Returns the reservations that a command prints. It must succeed.
fn reserved(run: &Run, words: &[&str]) -> Vec<serde_json::Value> {
    let done = reserve(run, words);
    assert_eq!(done.status.code(), Some(0), "{words:?}: {done:?}");
    let document: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(document["schema"], "fairgate.reservations/1");
    document["reservations"].as_array().unwrap().clone()
}

/// Returns the longest round trip of some pings, ms.
fn longest_ping(network: &Network) -> f64 {
    let arguments = ["-n", "-q", "-c", "20", "-i", "0.05", "-W", "10", Network::RIGHT];
    let text = call(&network.left, "ping", &arguments);
    let times = text.split_once("mdev = ").expect("ping prints a summary").1;
    times.split('/').nth(2).unwrap().parse().unwrap()
}

/// Under a flood the reserved flow has its promised delay. The reservation ends by itself, and then the flow
/// waits behind the flood again.
#[test]
fn a_promise_holds_under_a_flood_and_ends_with_its_lifetime() {
    let Some(_watched) = live("a_promise_holds_under_a_flood_and_ends_with_its_lifetime") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, TREE);
    let before = run.status().directions[0].queue.clone();
    let terms = [
        "add",
        "echo",
        "--rate",
        "200kbit",
        "--burst",
        "2kb",
        "--max-packet",
        "200b",
    ];
    let words = [
        &terms[..],
        &["--delay", "200ms", "--lifetime", "60s", "protocol=icmp"],
    ]
    .concat();
    let made = reserved(&run, &words);
    assert!(made[0]["promised_us"].as_f64().unwrap() <= 200_000.0, "{made:?}");
    assert_eq!(made[0]["terms"]["excess"], "best_effort");
    assert_eq!(reserved(&run, &["list"]).len(), 1);

    let sender = network
        .left
        .enter(|| UdpSocket::bind("0.0.0.0:0"))
        .unwrap()
        .unwrap();
    sender.connect(format!("{}:9", Network::RIGHT)).unwrap();
    let goes_on = AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            while goes_on.load(Ordering::Relaxed) {
                // Nobody listens there, and the answer that says so is an error of the next call.
                let _ = sender.send(&[0; 1400]);
                thread::sleep(Duration::from_micros(500));
            }
        });
        until("the queue is full", || {
            run.status().directions[0].tree.dropped.packets > 0
        });
        let with = longest_ping(&network);
        // One that is refreshed in time does not end; this one is not.
        let words = [&["change"], &terms[1..], &["--lifetime", "1s", "protocol=icmp"]].concat();
        reserved(&run, &words);
        until("it has ended", || reserved(&run, &["list"]).is_empty());
        let without = longest_ping(&network);
        goes_on.store(false, Ordering::Relaxed);
        assert!(with < 200.0, "{with} ms with a promise of 200 ms");
        assert!(without > 1_000.0, "{without} ms behind a queue of 2 s");
    });
    assert_eq!(run.status().directions[0].queue, before);
    run.stop();
}

/// What can't be kept is refused, with what is left. Nothing takes a reservation away but its end.
#[test]
fn reservations_are_refused_and_protected() {
    let Some(_watched) = live("reservations_are_refused_and_protected") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, TREE);
    let of = |name: &'static str, rate: &'static str, how: &'static str| {
        [
            "--from",
            "left",
            name,
            "--rate",
            rate,
            "--burst",
            "4kb",
            "--max-packet",
            "1kb",
            how,
        ]
    };
    let add = |terms: [&str; 10]| reserve(&run, &[&["add"], &terms[..], &["dscp=EF"]].concat());
    assert_eq!(add(of("a", "2mbit", "--lifetime=1h")).status.code(), Some(0));
    let (code, message) = code_and_message(&add(of("b", "4mbit", "--lifetime=1h")));
    assert_eq!(code, Some(2));
    assert!(
        message.contains("only 3000000 bit/s of 5000000 bit/s"),
        "{message}"
    );
    let (code, message) = code_and_message(&add(of("b", "1mbit", "--delay=7ms")));
    assert_eq!(code, Some(2));
    assert!(message.contains("at best"), "{message}");
    let (code, message) = code_and_message(&add(of("a", "1mbit", "--lifetime=1h")));
    assert_eq!(code, Some(2));
    assert!(message.contains("`a` already"), "{message}");
    let (code, message) = code_and_message(&reserve(&run, &["refresh", "--from", "left", "b"]));
    assert_eq!(
        (code, message.contains("there are a")),
        (Some(2), true),
        "{message}"
    );
    let toward = [
        "add", "--from", "right", "c", "--rate", "1mbit", "--burst", "4kb", "dscp=EF",
    ];
    let (code, message) = code_and_message(&reserve(&run, &toward));
    assert_eq!((code, message.contains("`tbf`")), (Some(2), true), "{message}");

    // The file has no reservations. They are put into its trees again.
    let tree = run.status().directions[0].queue.clone();
    let applied = run.status().changes.applied;
    run.signal(Signal::SIGHUP);
    until("the file is read again", || {
        run.status().changes.applied > applied
    });
    assert_eq!(run.status().directions[0].queue, tree);
    let class = reserved(&run, &["list"])[0]["class"].as_str().unwrap().to_owned();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    command
        .args(["--json", "class", "--from", "left", "--socket"])
        .arg(&run.socket);
    let (code, message) = code_and_message(&output(command.args(["change", &class, "rt=1mbit"])));
    assert_eq!(
        (code, message.contains("belongs to reservation `a`")),
        (Some(2), true),
        "{message}"
    );
    assert!(reserved(&run, &["withdraw", "--from", "left", "a"]).is_empty());
    assert!(reserved(&run, &["list"]).is_empty());
    run.stop();
}

/// Sixty packets at once are more than the bucket of ten. With a peak rate they are more than its bucket,
/// too. What is beyond it is sent behind the rest, or dropped.
#[test]
fn excess_packets_are_sent_as_best_effort_or_dropped() {
    let Some(_watched) = live("excess_packets_are_sent_as_best_effort_or_dropped") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, TREE);
    let receiver = network
        .right
        .enter(|| UdpSocket::bind("0.0.0.0:5004"))
        .unwrap()
        .unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let sender = network
        .left
        .enter(|| UdpSocket::bind("0.0.0.0:0"))
        .unwrap()
        .unwrap();
    sender.connect(format!("{}:5004", Network::RIGHT)).unwrap();
    let add = |name: &str, how: &[&str]| {
        let words = [
            "add",
            name,
            "--rate=100kbit",
            "--burst=10420b",
            "--max-packet=1042b",
        ];
        let made = reserved(
            &run,
            &[&words, how, &["destination_port=5004", "protocol=udp"]].concat(),
        );
        made[0].clone()
    };
    let dropped = || run.status().directions[0].tree.dropped.packets;
    // Returns how many of sixty packets arrived, in which order, and how many were dropped.
    let send = || {
        let before = dropped();
        for number in 0..60_u8 {
            assert_eq!(sender.send(&[number; 1000]).unwrap(), 1000);
        }
        let mut came = Vec::new();
        let mut packet = [0; 1000];
        until("all packets have arrived or were dropped", || {
            while receiver.recv(&mut packet).is_ok() {
                came.push(packet[0]);
            }
            came.len() as u64 + dropped() - before >= 60
        });
        (came, dropped() - before)
    };
    let made = add("soft", &[]);
    // 1042 bytes; a frame of 1518 bytes at 5 Mbit/s, and 1 us.
    assert_eq!(made["error_terms"]["c_bytes"], 1042, "{made}");
    assert_eq!(made["error_terms"]["d_us"], 2430, "{made}");
    assert!(made["no_error_terms"].is_null(), "{made}");
    let (came, lost) = send();
    assert_eq!((came.len(), lost), (60, 0));
    assert!(
        !came.is_sorted(),
        "the excess overtakes what waits at the reserved rate"
    );
    reserved(&run, &["withdraw", "soft"]);
    let made = add("hard", &["--excess=drop", "--delay=50ms", "--peak=1mbit"]);
    assert!(made["error_terms"].is_null(), "{made}");
    assert!(
        made["no_error_terms"].as_str().unwrap().contains("two slopes"),
        "{made}"
    );
    let (came, lost) = send();
    assert!(came.is_sorted(), "{came:?}");
    assert!(came.len() < 40 && lost > 20, "{came:?} {lost}");
    run.stop();
}
