//! Rates that follow a file, and the delay of probes.

use std::fs;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fairgate_live::testbed::{Namespace, Network};
use fairgate_run::client::ClientError;
use fairgate_run_api::{AutorateStatus, ChangeMade};
use nix::sys::signal::Signal;

use crate::common::{live, until};
use crate::harness::refusal;
use crate::privileges::{NEEDED, holds};
use crate::run::{Run, transfer};

/// A shaper from left to right, whose rate follows a file.
const BY_FILE: &str = "\
[queue.up]
discipline = \"tbf\"
rate = \"20mbit\"
burst = \"20kb\"
inner = { discipline = \"fq_codel\" }

[run]
left = \"left\"
right = \"right\"
left_to_right = \"up\"

[run.autorate]
file = \"rates.txt\"
left_to_right = { min = \"2mbit\", base = \"10mbit\", max = \"50mbit\" }
";

fn autorate(run: &Run) -> Option<AutorateStatus> {
    run.status().autorate
}

/// Returns the rate of the only direction that follows, bit/s. It is 0 before the first review.
fn rate(run: &Run) -> u64 {
    let autorate = autorate(run);
    let direction = autorate.as_ref().and_then(|autorate| autorate.directions.first());
    direction.map_or(0, |direction| direction.rate_bps)
}

/// Replaces the file as a script should do it.
fn write(run: &Run, text: &str) {
    let new = run.folder.path().join("rates.new");
    fs::write(&new, text).unwrap();
    fs::rename(new, run.folder.path().join("rates.txt")).unwrap();
}

fn change(run: &Run, line: &str) -> Result<ChangeMade, ClientError> {
    run.change(Some("left"), &[line.to_owned()])
}

#[test]
fn the_rate_follows_a_file() {
    let Some(_watched) = live("the_rate_follows_a_file") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, BY_FILE);
    holds(&run, NEEDED);
    // Without the file the rate is the base.
    until("the missing file is reported", || {
        run.said().contains("can't be read")
    });
    until("the base rate is set", || rate(&run) == 10_000_000);
    write(&run, "7mbit\n");
    until("the rate of the file is set", || rate(&run) == 7_000_000);
    until("the file is right", || {
        run.said().contains("those of the file again")
    });
    let queue = run.status().directions[0].queue.clone();
    assert!(queue.contains("rate = \"7mbit\""), "{queue}");

    // The revision is for changes that somebody has asked for. These stay when the rate changes.
    assert_eq!(run.status().revision, 0);
    assert_eq!(change(&run, "queue change root burst=30kb").unwrap().revision, 1);
    transfer(&network, &format!("{}:4100", Network::RIGHT), "at 7 Mbit/s");
    write(&run, "# faster\nright_to_left 3mbit\nleft_to_right 8mbit\n");
    until("the rate of the direction is set", || rate(&run) == 8_000_000);
    let status = run.status();
    assert_eq!((status.revision, status.changes.applied), (1, 1));
    assert!(
        status.directions[0].queue.contains("30kb"),
        "{}",
        status.directions[0].queue
    );
    // Whoever changes the rate himself is overruled.
    change(&run, "queue change root rate=9mbit").unwrap();
    until("the rate of the file is set again", || {
        run.status().directions[0].queue.contains("rate = \"8mbit\"")
    });
    // A tree without a rate can't follow. The run says so, and goes on when there is one.
    change(&run, "queue change root fq_codel").unwrap();
    until("it is reported", || run.said().contains("`fq_codel` has no rate"));
    change(&run, "queue add root tbf rate=9mbit burst=20kb").unwrap();
    until("the rate of the file is set once more", || {
        run.status().directions[0].queue.contains("rate = \"8mbit\"")
    });

    write(&run, "left_to_right 60mbit\n");
    until("the wrong rate is reported", || {
        run.said().contains("not from 2Mbit to 50Mbit")
    });
    assert_eq!(rate(&run), 8_000_000);
    // Reading the configuration again keeps the rate, and the section can't change.
    run.signal(Signal::SIGHUP);
    until("the file is read again", || {
        run.said().contains("its queues are active")
    });
    until("the rate is set", || {
        run.status().directions[0].queue.contains("rate = \"8mbit\"")
    });
    // Each thing was said once.
    assert_eq!(run.said().matches("not from 2Mbit to 50Mbit").count(), 1);
    run.stop();
}

#[test]
fn what_can_not_follow_is_refused_at_the_start() {
    let Some(_watched) = live("what_can_not_follow_is_refused_at_the_start") else {
        return;
    };
    let network = Network::build().unwrap();
    let configuration = BY_FILE.replace("file = \"rates.txt\"\n", "");
    let (code, message) = refusal(&network.router, &configuration);
    assert_eq!(
        (code, message.contains("nothing says what the rates are")),
        (Some(2), true),
        "{message}"
    );
}

/// Joins the hosts by a run in the router, which is the line, and starts a run on the left host, whose rate
/// follows it.
fn follower_and_line(network: &Network) -> [Run; 2] {
    let line = Run::start(
        &network.router,
        "[queue.line]\ndiscipline = \"tbf\"\nrate = \"20mbit\"\nburst = \"20kb\"\n\
         inner = { discipline = \"fifo\", limit = 200 }\n\
         [run]\nleft = \"left\"\nright = \"right\"\nleft_to_right = \"line\"\ndelay = \"10ms\"\n",
    );
    let follower = Run::start(
        &network.left,
        &format!(
            "[queue.up]\ndiscipline = \"tbf\"\nrate = \"20mbit\"\nburst = \"20kb\"\n\
             inner = {{ discipline = \"fq_codel\" }}\n\
             [run]\ndevice = \"eth0\"\negress = \"up\"\n\
             [run.autorate]\nreflectors = [\"{}\"]\n\
             egress = {{ min = \"1mbit\", base = \"10mbit\", max = \"50mbit\" }}\n",
            Network::RIGHT
        ),
    );
    [follower, line]
}

/// Sends more than the line carries, until `is_over`.
fn flood(from: &Namespace, is_over: &AtomicBool) {
    let bind = || UdpSocket::bind("0.0.0.0:0");
    let sender = from.enter(bind).unwrap().unwrap();
    sender.connect(format!("{}:5200", Network::RIGHT)).unwrap();
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..5 {
            // Nobody listens there, so the right host may refuse them.
            let _ = sender.send(&[0; 1458]);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_rate_follows_the_line_by_probes() {
    let Some(_watched) = live("the_rate_follows_the_line_by_probes") else {
        return;
    };
    let network = Network::build().unwrap();
    let [follower, line] = follower_and_line(&network);
    holds(&follower, NEEDED);
    until("reflectors answer", || {
        let autorate = autorate(&follower);
        autorate.is_some_and(|autorate| autorate.baseline_us.is_some_and(|baseline| baseline > 19_000.0))
    });
    assert_eq!(rate(&follower), 10_000_000);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| flood(&network.left, &is_over));
        until("the rate rises to that of the line", || {
            rate(&follower) > 16_000_000
        });
        change(&line, "queue change root rate=4mbit").unwrap();
        until("the rate falls with the line", || rate(&follower) < 5_000_000);
        change(&line, "queue change root rate=20mbit").unwrap();
        until("the rate rises again", || rate(&follower) > 12_000_000);
        is_over.store(true, Ordering::Relaxed);
    });
    let status = follower.status();
    let autorate = status.autorate.unwrap();
    assert_eq!((autorate.source.as_str(), autorate.refused), ("probes", 0));
    assert!(autorate.changes > 3 && status.revision == 0, "{autorate:?}");
    line.stop();
    until("the silence is reported", || {
        follower.said().contains("no reflector answers")
    });
    until("the rate is the base", || rate(&follower) == 10_000_000);
    follower.stop();
}
