//! The rates that estimators show of a run.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fairgate_live::testbed::Network;
use fairgate_scripts::tc::{Device, Script};

use crate::common::{live, output, until};
use crate::run::Run;

const SCRIPT: &str = "\
tc qdisc add dev right root handle 1: estimator 250ms 1s htb default 10
tc class add dev right parent 1: classid 1:1 estimator 250ms 1s htb rate 4mbit
tc class add dev right parent 1:1 classid 1:10 estimator 250ms 1s htb rate 4mbit
tc class add dev right parent 1:1 classid 1:20 htb rate 1mbit
tc qdisc add dev right parent 1:10 handle 10: estimator 250ms 1s pfifo limit 50
";

/// Returns what `fairgate show` prints.
fn show(network: &Network, run: &Run, words: &[&str]) -> String {
    let mut command = network.router.command(env!("CARGO_BIN_EXE_fairgate"));
    command.arg("show").args(words).arg("--socket").arg(&run.socket);
    let output = output(&mut command);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The bytes per second of all qdiscs and classes with estimators.
fn rates(network: &Network, run: &Run) -> Vec<u64> {
    let mut rates = Vec::new();
    for object in ["qdisc", "class"] {
        let text = show(network, run, &["-j", object, "--dev", "right"]);
        let lines: serde_json::Value = serde_json::from_str(&text).unwrap();
        let lines = lines.as_array().unwrap();
        rates.extend(lines.iter().filter_map(|line| {
            let counters = line.get("stats").unwrap_or(line);
            assert_eq!(counters.get("rate").is_some(), counters.get("pps").is_some());
            counters.get("rate")?.as_u64()
        }));
    }
    rates
}

/// Packets come faster than the shaper sends, so that its rate is the one to be shown.
#[test]
fn the_rate_of_a_steady_stream_is_shown() {
    let Some(_watched) = live("the_rate_of_a_steady_stream_is_shown") else {
        return;
    };
    let network = Network::build().unwrap();
    let script = Script::parse("test.tc", SCRIPT, Device::default()).unwrap();
    let tree = script.spec().unwrap().to_toml("out");
    let run = "[run]\nleft = \"left\"\nright = \"right\"\nleft_to_right = \"out\"\n";
    let run = Run::start(&network.router, &format!("{tree}\n{run}"));
    // Hosts announce themselves with a few packets.
    assert!(rates(&network, &run).iter().all(|&rate| rate < 1000));
    let to = format!("{}:5100", Network::RIGHT);
    let bind = || UdpSocket::bind("0.0.0.0:0");
    let sender = network.left.enter(bind).unwrap().unwrap();
    sender.connect(&to).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // Nobody listens there, so the right host may refuse them.
                let _ = sender.send(&[0; 1458]);
                thread::sleep(Duration::from_millis(1));
            }
        });
        let is_shown = || {
            let rates = rates(&network, &run);
            assert_eq!(rates.len(), 4);
            rates.iter().all(|rate| rate.abs_diff(500_000) < 15_000)
        };
        until("4 Mbit/s are shown to 3 %", is_shown);
        let add_or_delete = |line: &str| {
            run.change(Some("left"), &[line.to_owned()]).unwrap();
        };
        // A class that is added has nothing to show. The others go on.
        add_or_delete("class add 30 parent=1 rate=1mbit estimator=250ms,1s / fifo");
        let all = rates(&network, &run);
        assert_eq!(all.len(), 5);
        assert_eq!(all.iter().filter(|rate| **rate == 0).count(), 1, "{all:?}");
        add_or_delete("class delete 30");
        until("4 Mbit/s are still shown", is_shown);
        is_over.store(true, Ordering::Relaxed);
    });
    let text = show(&network, &run, &["--dev", "right"]);
    let measured = text.lines().filter(|line| line.starts_with(" rate ")).count();
    assert_eq!(measured, 4, "{text}");
    let plain = text.lines().filter(|line| line.starts_with(" backlog ")).count();
    assert_eq!(plain, 1, "only class 1:20 has no estimator: {text}");
    run.stop();
}
