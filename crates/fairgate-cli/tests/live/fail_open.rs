//! A run that starts takes traffic over, and one that dies gives it back to the kernel.
//!
//! The tests report on standard error how many packets were lost, for how long, and how late packets were.
//! They assert only that packets arrive again, once each and in order: the gap depends on the machine.

use std::net::UdpSocket;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairgate_live::testbed::{Namespace, Network};
use nix::sys::signal::Signal;

use crate::common::{live, output, say, until};
use crate::run::{BACKENDS, Run, plain, succeeds};

/// The time between two packets of the stream.
const BETWEEN: Duration = Duration::from_micros(200);

fn ip(namespace: &Namespace, command: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    namespace.ip(&words).unwrap();
}

/// The hosts, joined by a bridge of the kernel in the router.
fn joined() -> Network {
    let network = Network::build().unwrap();
    let router = &network.router;
    ip(router, "link add br0 type bridge");
    ip(router, "link set left master br0");
    ip(router, "link set right master br0");
    ip(router, "link set br0 up");
    until("the hosts reach each other", || {
        succeeds(
            &network.left,
            "ping",
            &["-n", "-c", "1", "-W", "1", Network::RIGHT],
        )
    });
    network
}

/// A packet of the stream that has arrived.
#[derive(Clone, Copy)]
struct Arrival {
    number: u32,
    /// Times since the start of the stream.
    sent: Duration,
    received: Duration,
}

type Arrivals = Mutex<Vec<Arrival>>;

/// What happened to a stream around an event.
#[derive(Default)]
struct Gap {
    lost: u32,
    /// The longest time in which all packets that were sent are lost.
    silence: Duration,
    /// The longest time from sending to receiving.
    latest: Duration,
}

/// Waits until packets of a stream arrive that were sent after now.
fn goes_on(arrivals: &Arrivals, start: Instant) {
    let before = start.elapsed();
    until("the stream goes on", || {
        let arrivals = arrivals.lock().unwrap();
        let later = arrivals.iter().rev().take_while(|arrival| arrival.sent > before);
        later.count() > 500
    });
}

/// Runs `events` while numbered packets go from the left to the right host. Between events, `mark` waits
/// until the stream goes on and returns what happened to it since the last one.
fn with_stream(network: &Network, events: impl FnOnce(&mut dyn FnMut(&str))) {
    let bind = |address: &'static str| move || UdpSocket::bind((address, 5000)).unwrap();
    let sink = network.right.enter(bind(Network::RIGHT)).unwrap();
    let source = network.left.enter(bind(Network::LEFT)).unwrap();
    sink.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (done, arrivals, start) = (AtomicBool::new(false), Arrivals::default(), Instant::now());
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0u32.. {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                // The interface may have no room for a moment. Then the packet is lost and counted.
                let sent = start.elapsed().as_nanos() as u64;
                let packet = [&number.to_be_bytes()[..], &sent.to_be_bytes()].concat();
                let _ = source.send_to(&packet, (Network::RIGHT, 5000));
                let due = start + BETWEEN * (number + 1);
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        });
        scope.spawn(|| {
            let mut bytes = [0; 12];
            while !done.load(Ordering::Relaxed) {
                if sink.recv(&mut bytes).is_ok() {
                    let (number, sent) = bytes.split_at(4);
                    let arrival = Arrival {
                        number: u32::from_be_bytes(number.try_into().unwrap()),
                        sent: Duration::from_nanos(u64::from_be_bytes(sent.try_into().unwrap())),
                        received: start.elapsed(),
                    };
                    arrivals.lock().unwrap().push(arrival);
                }
            }
        });
        let _stop = StopOnDrop(&done);
        let mut reported = 0;
        events(&mut |what| {
            goes_on(&arrivals, start);
            let arrivals = arrivals.lock().unwrap();
            let part = &arrivals[reported..];
            reported = arrivals.len() - 1;
            let gap = gap(part, what);
            let millis = |time: Duration| time.as_secs_f64() * 1e3;
            say(&format!(
                "{what}: {} of {} packets lost, all of them for at most {:.1} ms; the latest by {:.1} ms",
                gap.lost,
                part.len(),
                millis(gap.silence),
                millis(gap.latest)
            ));
        });
    });
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Checks that no packet arrived twice or out of order, and returns what was lost.
fn gap(arrivals: &[Arrival], what: &str) -> Gap {
    let mut gap = Gap::default();
    for (before, after) in arrivals.iter().zip(&arrivals[1..]) {
        let (first, second) = (before.number, after.number);
        assert!(first < second, "{what}: packet {second} arrived after {first}");
        gap.latest = gap.latest.max(after.received - after.sent);
        if second > first + 1 {
            gap.lost += second - first - 1;
            gap.silence = gap.silence.max(after.sent - before.sent);
        }
    }
    gap
}

/// Starts and kills runs while a stream passes.
fn comes_and_goes(network: &Network, router: &Namespace, configuration: &str, what: &str) {
    with_stream(network, |mark| {
        mark("without a run");
        for signal in [Signal::SIGKILL, Signal::SIGABRT, Signal::SIGTERM] {
            let mut run = Run::start(router, configuration);
            mark(&format!("{what}: a run starts"));
            run.signal(signal);
            run.output();
            mark(&format!("{what}: a run ends by {signal}"));
            let programs = router.ip(&["-d", "link"]).unwrap();
            assert!(!programs.contains("xdp"), "a program is left behind: {programs}");
        }
    });
}

/// Both interfaces are ports of a bridge of the kernel, which takes over when the run is gone.
#[test]
fn a_bump_in_the_wire_fails_to_the_bridge_below() {
    let Some(_watched) = live("a_bump_in_the_wire_fails_to_the_bridge_below") else {
        return;
    };
    let network = joined();
    for backend in BACKENDS {
        let configuration = format!("{}isolate = true\n", plain(backend));
        comes_and_goes(&network, &network.router, &configuration, backend);
    }
}

#[test]
fn a_run_on_one_interface_fails_to_the_hosts_stack() {
    let Some(_watched) = live("a_run_on_one_interface_fails_to_the_hosts_stack") else {
        return;
    };
    let network = joined();
    let configuration = "[queue.q]\ndiscipline = \"fifo\"\n\n\
                         [run]\ndevice = \"eth0\"\ningress = \"q\"\negress = \"q\"\n";
    // What the left host sends, and what the right host receives.
    comes_and_goes(&network, &network.left, configuration, "sending host");
    comes_and_goes(&network, &network.right, configuration, "receiving host");
}

/// What is queued leaves before the run ends, unshaped and in order.
#[test]
fn a_stop_sends_what_is_queued() {
    let Some(_watched) = live("a_stop_sends_what_is_queued") else {
        return;
    };
    // They fit into the receiver's socket, which nobody reads meanwhile.
    const COUNT: u8 = 50;
    let network = joined();
    let queue = "[queue.q]\ndiscipline = \"tbf\"\nrate = \"100kbit\"\nburst = \"2kb\"\nlimit = \"1mb\"\n\n";
    let between = "[run]\nleft = \"left\"\nright = \"right\"\nisolate = true\nleft_to_right = \"q\"\n";
    let xdp = format!("{between}backend = \"xdp\"\n");
    let alone = "[run]\ndevice = \"eth0\"\negress = \"q\"\n";
    let runs = [
        (&network.router, between),
        (&network.router, &xdp),
        (&network.left, alone),
        (
            &network.left,
            "[run]\ndevice = \"eth0\"\negress = \"q\"\ndelay = \"5s\"\n",
        ),
    ];
    let bind = |address: &'static str| move || UdpSocket::bind((address, 5000)).unwrap();
    let sink = network.right.enter(bind(Network::RIGHT)).unwrap();
    let source = network.left.enter(bind(Network::LEFT)).unwrap();
    sink.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    for (router, run) in runs {
        let run = Run::start(router, &format!("{queue}{run}"));
        for number in 0..COUNT {
            source.send_to(&[number; 1000], (Network::RIGHT, 5000)).unwrap();
        }
        // At its rate, the queue would need four seconds.
        until("the run has the datagrams", || {
            let tree = &run.status().directions[usize::from(router.name() != network.router.name())].tree;
            tree.enqueued.packets >= u64::from(COUNT)
        });
        let last = run.stop();
        for number in 0..COUNT {
            let mut bytes = [0; 1000];
            sink.recv(&mut bytes)
                .unwrap_or_else(|error| panic!("datagram {number}: {error}; {last}"));
            assert_eq!(bytes[0], number);
        }
    }
}

/// Without the interface of the run, the kernel's bridge goes on between the others.
#[test]
fn an_unplugged_interface_does_not_stop_the_rest() {
    let Some(_watched) = live("an_unplugged_interface_does_not_stop_the_rest") else {
        return;
    };
    let network = joined();
    let router = &network.router;
    // A run between `left` and a third interface, which is unplugged. The stream passes `left` as well.
    ip(router, "link add third type veth peer name fourth");
    ip(router, "link set third up");
    ip(router, "link set fourth up");
    let run = Run::start(
        router,
        "[queue.q]\ndiscipline = \"fifo\"\n\n[run]\ndevice = \"third\"\negress = \"q\"\n",
    );
    with_stream(&network, |mark| {
        mark("a run beside the stream");
        ip(router, "link del third");
        until("the run notices", || run.said().contains("`third` was removed"));
        mark("its interface is removed");
    });
    run.stop();
}

/// The end of pings: how many were sent, and how many were answered.
fn pings(from: &Namespace, words: &str) -> (u64, u64) {
    let words: Vec<&str> = words
        .split(' ')
        .chain(["-n", "-q", "-W", "1", Network::RIGHT])
        .collect();
    let output = output(from.command("ping").args(&words));
    let text = String::from_utf8(output.stdout).unwrap();
    let summary = text
        .lines()
        .find(|line| line.contains("transmitted"))
        .unwrap_or_else(|| panic!("no summary: {text}"));
    let mut numbers = summary.split_whitespace().filter_map(|word| word.parse().ok());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// Both directions of the left host.
const SHAPED: &str = "[queue.q]\ndiscipline = \"fq_codel\"\n\n\
                      [run]\ndevice = \"eth0\"\ningress = \"q\"\negress = \"q\"\n";

/// Checks that pings pass the run, and nothing passes by it.
fn is_shaped(run: &Run, left: &Namespace) {
    let before = run.status();
    // An idle run does not wake up, which must not look like one that hangs.
    assert_eq!(pings(left, "-c 4 -i 0.4"), (4, 4));
    let after = run.status();
    assert_eq!(after.passed_by, before.passed_by);
    for (after, before) in after.directions.iter().zip(&before.directions) {
        assert_eq!(after.passed_by, before.passed_by);
        let sent = after.sent.packets - before.sent.packets;
        assert!(sent >= 4, "{sent} packets from {} to {}", after.from, after.to);
    }
}

/// Checks the figures of a run that was passed by once, by `least` packets or more in each direction.
fn was_passed_by(run: &Run, times: u64, least: u64) {
    let status = run.status();
    assert_eq!(status.passed_by.times, times);
    assert!(status.passed_by.seconds > 0.0);
    for direction in &status.directions {
        let count = direction.passed_by;
        assert!(
            count >= least,
            "{count} from {} to {}",
            direction.from,
            direction.to
        );
    }
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fairgate"));
    let output = output(command.arg("status").arg("--socket").arg(&run.socket));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("went past this run, unshaped"), "{text}");
}

/// The whole process is stopped, so nothing of it can help: the programs of the kernel let frames pass.
#[test]
fn a_run_that_hangs_is_passed_by() {
    let Some(_watched) = live("a_run_that_hangs_is_passed_by") else {
        return;
    };
    let network = joined();
    let left = &network.left;
    let run = Run::start(left, SHAPED);
    is_shaped(&run, left);
    run.signal(Signal::SIGSTOP);
    let (sent, answered) = pings(left, "-c 300 -i 0.01");
    run.signal(Signal::SIGCONT);
    say(&format!(
        "a run hangs: {} of {sent} pings are lost",
        sent - answered
    ));
    // 300 ms at 100 a second.
    assert!(sent - answered <= 30, "{answered} of {sent}");
    until("the run says so", || run.said().contains("went past this run"));
    was_passed_by(&run, 1, 270);
    is_shaped(&run, left);
    let last = run.stop();
    assert!(last["passed_by"]["times"] == 1, "{last}");
    assert!(last["directions"][0]["passed_by"].as_u64() >= Some(270), "{last}");
}

/// Somebody sets the TAP device of the run down, or moves it away.
#[test]
fn a_run_without_its_device_is_passed_by() {
    let Some(_watched) = live("a_run_without_its_device_is_passed_by") else {
        return;
    };
    let network = joined();
    let left = &network.left;
    let run = Run::start(left, SHAPED);
    is_shaped(&run, left);
    ip(left, "link set fairgate0 down");
    until("the run says so", || run.said().contains("go past this run"));
    let (sent, answered) = pings(left, "-c 100 -i 0.01");
    assert_eq!(answered, sent);
    ip(left, "link set fairgate0 up");
    until("the run says how many", || {
        run.said().contains("went past this run")
    });
    was_passed_by(&run, 1, 100);
    is_shaped(&run, left);
    ip(
        left,
        &format!("link set fairgate0 netns {}", network.right.name()),
    );
    until("pings pass", || pings(left, "-c 1").1 == 1);
    let (sent, answered) = pings(left, "-c 100 -i 0.01");
    assert_eq!(answered, sent);
    run.stop();
}
