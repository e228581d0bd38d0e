//! Delays as captures on both sides of a run see them.
//!
//! Numbered packets pass beside TCP at full rate in both directions. The kernel notes when each of them
//! leaves its sender, before the run, and when it arrives at its receiver, after it. A busy machine makes
//! packets late. None may be early.

use std::collections::HashMap;
use std::fs;
use std::io::{IoSliceMut, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fairgate_live::testbed::{Namespace, Network};
use nix::cmsg_space;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg, setsockopt,
    socket, sockopt,
};
use nix::sys::time::{TimeSpec, TimeVal};

use crate::common::{live, output, say, until};
use crate::run::{PLAIN, Run, TWO_WORKERS, plain};

/// What the packets that are followed begin with. Their number comes after it.
const MARK: [u8; 8] = *b"followed";
/// The length of Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;
/// How many packets must have come through in each direction.
const FOLLOWED: usize = 600;

/// The delay of every tree here, ns.
const DELAY: i64 = 10_000_000;
/// How much earlier a capture may see a packet, ns: its clock is adjusted while the run's is not stepped.
const CLOCKS: i64 = 20_000;

/// A direction and a number to a time of the kernel, ns.
type Times = Mutex<HashMap<(u8, u32), i64>>;

fn number_of(frame: &[u8]) -> Option<(u8, u32)> {
    let (mark, rest) = frame.get(HEADERS..)?.split_first_chunk::<8>()?;
    let (side, rest) = rest.split_first()?;
    (*mark == MARK).then_some(())?;
    Some((*side, u32::from_be_bytes(*rest.first_chunk()?)))
}

/// Opens a capture of everything that this namespace's interfaces send and receive.
fn capture() -> OwnedFd {
    let flags = SockFlag::SOCK_CLOEXEC;
    let all = SockProtocol::EthAll;
    let socket = socket(AddressFamily::Packet, SockType::Raw, flags, all).unwrap();
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true).unwrap();
    setsockopt(&socket, sockopt::RcvBufForce, &(64 << 20)).unwrap();
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(0, 100_000)).unwrap();
    socket
}

/// Returns the time of the kernel that came with a message.
fn stamp(parts: impl Iterator<Item = ControlMessageOwned>) -> i64 {
    let stamps = parts.filter_map(|part| match part {
        ControlMessageOwned::ScmTimestampns(time) => Some(time.tv_sec() * 1_000_000_000 + time.tv_nsec()),
        _ => None,
    });
    stamps.last().expect("the option is set")
}

/// Waits until the kernel notes when packets pass. It begins a moment after a socket has asked for it. A
/// packet before that has the time at which it is read, and seems to have passed the run sooner than it did.
fn wait_for_stamps() {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.connect(socket.local_addr().unwrap()).unwrap();
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true).unwrap();
    let mut space = cmsg_space!(TimeSpec);
    until("the kernel notes when packets pass", || {
        socket.send(&[0]).unwrap();
        thread::sleep(Duration::from_millis(1));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let mut byte = [0; 1];
        let mut parts = [IoSliceMut::new(&mut byte)];
        let (socket, flags) = (socket.as_raw_fd(), MsgFlags::empty());
        let message = recvmsg::<()>(socket, &mut parts, Some(&mut space), flags).unwrap();
        stamp(message.cmsgs().unwrap()) < now.as_nanos() as i64
    });
}

/// Notes when packets that are followed were sent or received.
fn note(capture: &OwnedFd, times: &Times, done: &AtomicBool) {
    let mut bytes = [0; 64];
    let mut space = cmsg_space!(TimeSpec);
    while !done.load(Ordering::Relaxed) {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::empty();
        let Ok(message) = recvmsg::<()>(capture.as_raw_fd(), &mut parts, Some(&mut space), flags) else {
            continue;
        };
        let (time, length) = (stamp(message.cmsgs().unwrap()), message.bytes);
        if let Some(number) = number_of(&bytes[..length]) {
            times.lock().unwrap().entry(number).or_insert(time);
        }
    }
}

/// Sends numbered packets to an address until `done`.
fn follow(socket: &UdpSocket, side: u8, to: &str, done: &AtomicBool) {
    for number in 0u32.. {
        if done.load(Ordering::Relaxed) {
            return;
        }
        let packet = [&MARK[..], &[side], &number.to_be_bytes()].concat();
        // The interface may have no room for a moment.
        let _ = socket.send_to(&packet, to);
        // Not in step with the run: it rests for multiples of 100 us.
        thread::sleep(Duration::from_micros(
            500 + u64::from(number.wrapping_mul(7919) % 700),
        ));
    }
}

/// Sends over TCP until `done`.
fn load(from: &Namespace, to: &Namespace, address: &str, done: &AtomicBool) {
    let listener = to.enter(|| TcpListener::bind(address)).unwrap().unwrap();
    let mut sender = from.enter(|| TcpStream::connect(address)).unwrap().unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    let timeout = Some(Duration::from_millis(100));
    sender.set_write_timeout(timeout).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || std::io::copy(&mut receiver, &mut std::io::sink()));
        while !done.load(Ordering::Relaxed) {
            let _ = sender.write(&[7; 1 << 16]);
        }
        drop(sender);
    });
}

/// The delays on the wire of the packets that came through, ns, sorted, by direction and number.
struct Wire {
    delays: [HashMap<u32, i64>; 2],
}

/// Sends packets in both directions beside TCP until enough have come through.
fn on_the_wire(network: &Network) -> Wire {
    let hosts = [&network.left, &network.right];
    let addresses = [Network::LEFT, Network::RIGHT];
    let captures = hosts.map(|host| host.enter(capture).unwrap());
    wait_for_stamps();
    let [left, right] = [0, 1].map(|side: usize| {
        let bind = || UdpSocket::bind((addresses[side], 5000)).unwrap();
        hosts[side].enter(bind).unwrap()
    });
    let times = [Times::default(), Times::default()];
    let (done, unloaded) = (AtomicBool::new(false), AtomicBool::new(false));
    let delays = || {
        [0u8, 1].map(|side| {
            let from = times[usize::from(side)].lock().unwrap();
            let to = times[1 - usize::from(side)].lock().unwrap();
            let sent = from.iter().filter(|((from, _), _)| *from == side);
            let come = sent.filter_map(|(key, sent)| to.get(key).map(|come| (key.1, come - sent)));
            come.collect::<HashMap<_, _>>()
        })
    };
    thread::scope(|scope| {
        let _stop = (StopOnDrop(&done), StopOnDrop(&unloaded));
        for (capture, times) in captures.iter().zip(&times) {
            let done = &done;
            scope.spawn(move || note(capture, times, done));
        }
        scope.spawn(|| follow(&left, 0, &format!("{}:5000", Network::RIGHT), &done));
        scope.spawn(|| follow(&right, 1, &format!("{}:5000", Network::LEFT), &done));
        scope.spawn(|| load(hosts[0], hosts[1], &format!("{}:5001", Network::RIGHT), &unloaded));
        scope.spawn(|| load(hosts[1], hosts[0], &format!("{}:5002", Network::LEFT), &unloaded));
        let come_through = |count: usize| {
            until("packets come through", || {
                delays().iter().all(|delays| delays.len() >= count)
            });
        };
        come_through(FOLLOWED);
        // The packet log of the run forgets the oldest packets. These are in it.
        unloaded.store(true, Ordering::Relaxed);
        let most = delays().iter().map(HashMap::len).max();
        come_through(most.unwrap_or(FOLLOWED) + 200);
    });
    Wire { delays: delays() }
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The times in the tree that a capture of the run's last packets has, ns, by direction and number. The
/// comment of a packet follows its bytes. Call it after the traffic.
fn recorded(run: &Run) -> HashMap<(u8, u32), i64> {
    let file = run.folder.path().join("last.pcapng");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    command
        .args(["packets", "--socket"])
        .arg(&run.socket)
        .arg("--out")
        .arg(&file);
    let written = output(&mut command);
    assert!(written.status.success(), "{written:?}");
    let bytes = fs::read(&file).unwrap();
    let after = |part: &[u8], what: &[u8]| part.windows(what.len()).position(|window| window == what);
    let mut recorded = HashMap::new();
    let mut rest = &bytes[..];
    while let Some(place) = after(rest, &MARK) {
        let packet = &rest[place + MARK.len()..];
        let number = u32::from_be_bytes(*packet[1..].first_chunk().unwrap());
        let next = after(packet, &MARK).unwrap_or(packet.len());
        if let Some(comment) = after(&packet[..next], b"sent after ") {
            let text = String::from_utf8_lossy(&packet[comment + 11..next]);
            let millis: f64 = text.split(' ').next().unwrap().parse().unwrap();
            recorded.insert((packet[0], number), (millis * 1e6) as i64);
        }
        rest = packet;
    }
    recorded
}

/// Checks that no packet was later in the records of the run than on the wire, where it was before.
fn compare(recorded: &HashMap<(u8, u32), i64>, wire: &Wire, least: i64, what: &str) {
    let both = recorded.iter().filter_map(|((side, number), time)| {
        let delays = &wire.delays[usize::from(*side)];
        delays.get(number).map(|wire| (*time, *wire))
    });
    let both: Vec<(i64, i64)> = both.collect();
    assert!(both.len() > 100, "{what}: {} packets are in both", both.len());
    for (time, wire) in both {
        assert!(time >= least, "{what}: recorded {time} ns");
        assert!(
            time <= wire + CLOCKS,
            "{what}: recorded {time} ns, on the wire {wire} ns"
        );
    }
}

/// Checks that no packet was early, and reports the earliest and the median one.
fn check(wire: &Wire, what: &str) {
    for (side, delays) in wire.delays.iter().enumerate() {
        let mut sorted: Vec<i64> = delays.values().copied().collect();
        sorted.sort_unstable();
        let (least, median) = (sorted[0], sorted[sorted.len() / 2]);
        let millis = |nanos: i64| nanos as f64 / 1e6;
        say(&format!(
            "{what}, from side {side}: {} packets, the earliest after {:.3} ms, the median {:.3} ms",
            sorted.len(),
            millis(least),
            millis(median)
        ));
        assert!(least >= DELAY - CLOCKS, "{what}: {} ms", millis(least));
    }
}

#[test]
fn no_packet_leaves_before_the_end_of_a_delay() {
    let Some(_watched) = live("no_packet_leaves_before_the_end_of_a_delay") else {
        return;
    };
    let both = "left_to_right = \"line\"\nright_to_left = \"line\"\n";
    let netem = "[queue.line]\ndiscipline = \"netem\"\ndelay = \"10ms\"\nlimit = 10000\n";
    let shaped = "[queue.line]\ndiscipline = \"tbf\"\nrate = \"200mbit\"\nburst = \"30kb\"\n\
                  inner = { discipline = \"netem\", delay = \"10ms\", limit = 10000 }\n";
    let line = "[queue.line]\ndiscipline = \"tbf\"\nrate = \"200mbit\"\nburst = \"30kb\"\n\
                inner = { discipline = \"fq_codel\" }\n";
    let log = "packet_log = \"60s\"\npacket_log_memory = \"64mb\"\n";
    let delayed = |run: &str| format!("{run}delay = \"10ms\"\n");
    // The delay of a tree is in its records, and that of a line behind it is not.
    for (what, tree, run, least) in [
        ("netem", netem, plain("packet"), DELAY),
        ("netem, AF_XDP", netem, plain("xdp"), DELAY),
        ("netem behind a shaper", shaped, PLAIN.to_owned(), DELAY),
        ("delay behind a shaper", line, delayed(PLAIN), 0),
        ("delay, two workers", line, delayed(&plain(TWO_WORKERS)), 0),
    ] {
        let network = Network::build().unwrap();
        let run = Run::start(&network.router, &format!("{tree}{run}{log}{both}"));
        let wire = on_the_wire(&network);
        check(&wire, what);
        compare(&recorded(&run), &wire, least, what);
        for direction in run.status().directions {
            // Percentiles are accurate to 1 %.
            let least = least as f64 / 1e3 * 0.99;
            assert!(
                direction.sojourn.p50_us >= least,
                "{what}: {:?}",
                direction.sojourn
            );
        }
        run.stop();
    }
}
