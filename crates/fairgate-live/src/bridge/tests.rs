//! A bridge between hosts in network namespaces: VLAN tags, and several workers.

mod between;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use fairgate_config::Document;
use fairgate_run_api::Status;

use super::*;
use crate::attach::{Hooks, Switch, mark_of};
use crate::backend::BackendKind;
use crate::error::ReloadError;
use crate::outgoing::Outgoing;
use crate::pulse::Beat;
use crate::signals::Wake;
use crate::sys::interface::Interface;
use crate::sys::layout::Layout;
use crate::sys::socket::PacketSocket;
use crate::testbed::{Namespace, Network};
use crate::testing::{Times, live, measured, until};
use crate::vlan::Tag;

/// Opens a socket on the only interface of a host.
fn open_host(host: &Namespace) -> PacketSocket {
    let open = || {
        let interface = Interface::lookup("eth0").unwrap();
        PacketSocket::open(&interface, Layout::new(2000, 1).unwrap()).unwrap()
    };
    host.enter(open).unwrap()
}

/// Stops the bridge even if a test fails. Otherwise joining its thread would block forever.
struct StopOnDrop(Stopper);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs `work` with a socket on each host while a bridge of each back end forwards between them. Checks that
/// nothing was lost.
fn with_bridges(work: impl Fn(&Network, PacketSocket, PacketSocket)) {
    for backend in [BackendKind::Packet, BackendKind::Xdp] {
        let mut plan = plan_of("[run]\nleft = \"left\"\nright = \"right\"\n");
        plan.backend = Some(backend);
        let status = with_bridge(&plan, |network, _| {
            work(network, open_host(&network.left), open_host(&network.right));
        });
        let lost = status.directions[0].lost;
        assert_eq!(
            lost.refused + lost.truncated + lost.too_long,
            0,
            "{backend:?}: {lost:?}"
        );
    }
}

fn plan_of(text: &str) -> Plan {
    Plan::read(&Document::parse("test.toml", text).unwrap()).unwrap()
}

/// Runs `work` while a bridge forwards. Returns the final status.
fn with_bridge(plan: &Plan, work: impl FnOnce(&Network, &Changer)) -> Status {
    let network = Network::build().unwrap();
    let open = || Bridge::open(plan, Some(1));
    let mut bridge = network.router.enter(open).unwrap().unwrap();
    bridge.take_over().unwrap();
    let changer = bridge.changer();
    let stop = StopOnDrop(bridge.stopper());
    thread::scope(|scope| {
        let running = scope.spawn(|| bridge.run());
        let stop = stop;
        work(&network, &changer);
        drop(stop);
        until("the bridge stops", || running.is_finished());
        assert_eq!(running.join().unwrap().unwrap(), Wake::Stop);
    });
    bridge.wind_up().unwrap();
    bridge.status()
}

/// Builds a frame with a tag, four bytes, and `payload` bytes of payload.
fn tagged(tag: Tag, inner: [u8; 4], payload: usize) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend(tag.tpid.to_be_bytes());
    frame.extend(tag.tci.to_be_bytes());
    frame.extend(inner);
    frame.resize(frame.len() + payload, 9);
    frame
}

/// Waits for a tagged frame and checks that it is `frame`. Ignores frames of the hosts themselves (neighbour
/// discovery).
fn expect(sink: &mut PacketSocket, frame: &[u8]) {
    until("a frame with a tag arrives", || {
        let Some(received) = sink.front() else {
            return false;
        };
        let tag = received.tag;
        if tag.is_some() {
            assert_eq!(tag, Tag::of(frame));
            assert_eq!(received.bytes[..12], frame[..12]);
            assert_eq!(received.bytes[12..], frame[16..]);
        }
        let is_tagged = tag.is_some();
        sink.release();
        is_tagged
    });
}

/// The kernel removes the tag from received frames, both at the bridge and at the receiving host. The
/// receiver must be told the same tag, and must find a second tag at its position.
#[test]
fn vlan_tags_are_preserved() {
    let Some(_watched) = live("vlan_tags_are_preserved") else {
        return;
    };
    with_bridges(|_, mut source, mut sink| {
        for (tpid, tci, inner) in [
            (Tag::CUSTOMER, 0x2005, [0x12, 0x34, 9, 9]),
            (Tag::SERVICE, 0x0007, [0x81, 0x00, 9, 9]),
        ] {
            let frame = tagged(Tag { tpid, tci }, inner, 58);
            let (sent, result) = source.send(std::iter::once(Outgoing::whole(&frame)));
            assert_eq!((sent, result), (1, Ok(())));
            expect(&mut sink, &frame);
        }
    });
}

/// Frames that exceed the MTU only by their tags, as the hosts' VLAN interfaces send them: the kernel keeps
/// the outermost tag beside the frame. The kernel's bridge forwards them, and so must ours.
#[test]
fn full_sized_frames_with_tags_are_forwarded() {
    let Some(_watched) = live("full_sized_frames_with_tags_are_forwarded") else {
        return;
    };
    with_bridges(|network, mut source, mut sink| {
        let isolate = || {
            let switch = Switch::new().unwrap();
            switch.turn_on();
            let index = Interface::lookup("eth0").unwrap().index;
            (Hooks::isolate(index, &switch).unwrap(), switch)
        };
        let _pushes_tags = network.left.enter(isolate).unwrap();
        for (tpid, inner, length) in [
            (Tag::CUSTOMER, None, 1518),
            (Tag::SERVICE, None, 1518),
            (Tag::SERVICE, Some([0x81, 0x00, 0x20, 0x05]), 1522),
            (Tag::CUSTOMER, Some([0x81, 0x00, 0x20, 0x05]), 1522),
        ] {
            let tag = Tag { tpid, tci: 0x6007 };
            let mut frame = match inner {
                None => tagged(tag, [0x12, 0x34, 9, 9], 1498),
                Some(inner) => tagged(tag, inner, 1502),
            };
            // A protocol that no program uses.
            frame[length - 1502..length - 1500].copy_from_slice(&[0x12, 0x34]);
            assert_eq!(frame.len(), length);
            source.send_tagged(&frame, mark_of(tag)).unwrap();
            expect(&mut sink, &frame);
        }
    });
}

/// The first port of the floods.
const FIRST_PORT: u16 = 5000;

/// The UDP payload of a packet, and its Ethernet frame, in bytes.
const PAYLOAD: usize = 1400;
const FRAME: usize = PAYLOAD + 42;

/// Bits of frames for each bit of payload.
const OF_PAYLOAD: f64 = FRAME as f64 / PAYLOAD as f64;

/// Sends to `flows` ports of the right host for `time`, as [`flood_to`] does.
fn flood(network: &Network, flows: u16, rate: u64, time: Duration) -> Vec<f64> {
    let ports = FIRST_PORT..FIRST_PORT + flows;
    let right: IpAddr = Network::RIGHT.parse().unwrap();
    let to: Vec<SocketAddr> = ports.map(|port| (right, port).into()).collect();
    flood_to(network, &to, rate, time)
}

/// Sends to these addresses of the right host for `time`, together `rate` bits per second. Returns what
/// [`send_to`] does.
fn flood_to(network: &Network, to: &[SocketAddr], rate: u64, time: Duration) -> Vec<f64> {
    send_to(network, to, &vec![rate as f64 / to.len() as f64; to.len()], time)
}

/// Sends to each of these addresses of the right host for `time`, `rates` bits per second. Returns the bytes
/// of UDP payload that each has received after the first quarter of the time, in bits per second.
fn send_to(network: &Network, to: &[SocketAddr], rates: &[f64], time: Duration) -> Vec<f64> {
    const FRAME_BITS: f64 = FRAME as f64 * 8.0;
    let bind = |address: &SocketAddr| {
        let socket = UdpSocket::bind(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        socket
    };
    let sinks: Vec<UdpSocket> = network.right.enter(|| to.iter().map(bind).collect()).unwrap();
    let begin = Instant::now();
    let (from, end) = (begin + time / 4, begin + time);
    thread::scope(|scope| {
        let count = |sink: UdpSocket| {
            let (mut bytes, mut buffer) = (0, [0; 2000]);
            while Instant::now() < end {
                if let Ok(length) = sink.recv(&mut buffer)
                    && Instant::now() > from
                {
                    bytes += length;
                }
            }
            bytes as f64 * 8.0 / (end - from).as_secs_f64()
        };
        let counts: Vec<_> = sinks
            .into_iter()
            .map(|sink| scope.spawn(move || count(sink)))
            .collect();
        let send = || {
            let open = |address: &SocketAddr| {
                let any: SocketAddr = match address {
                    SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
                    SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
                };
                let socket = UdpSocket::bind(any).unwrap();
                socket.connect(address).unwrap();
                socket
            };
            let sockets: Vec<UdpSocket> = to.iter().map(open).collect();
            let mut sent = vec![0u64; sockets.len()];
            while begin.elapsed() < time {
                let passed = begin.elapsed().as_secs_f64();
                // One frame of each in turn, as long as any is due.
                let mut is_due = true;
                while std::mem::take(&mut is_due) {
                    for ((socket, rate), sent) in sockets.iter().zip(rates).zip(&mut sent) {
                        if (*sent as f64) * FRAME_BITS < passed * rate {
                            // The host's own queue may be full for a moment.
                            let _ = socket.send(&[7; PAYLOAD]);
                            *sent += 1;
                            is_due = true;
                        }
                    }
                }
                thread::sleep(Duration::from_millis(1));
            }
        };
        network.left.enter(send).unwrap();
        counts.into_iter().map(|count| count.join().unwrap()).collect()
    })
}

const SHARDED: &str = "\
[queue.line]
discipline = \"tbf\"
rate = \"100mbit\"
burst = \"100kb\"
inner = { discipline = \"fq_codel\" }
[run]
left = \"left\"
right = \"right\"
left_to_right = \"line\"
workers = 2
";

/// The part of the processors' time that is idle if an attempt has them for itself: about 0.8 of two.
const IDLE: f64 = 0.6;

/// How long an attempt of a measurement sends. Three quarters of it are measured.
const ATTEMPT: Duration = Duration::from_secs(2);

/// Records whether flows or hosts with these rates, in bits of UDP payload per second, have `line` bits per
/// second together, and equal parts of it.
fn expect_equal(times: &mut Times, what: &str, rates: &[f64], line: f64) {
    let total = rates.iter().sum::<f64>() * OF_PAYLOAD;
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let off: Vec<f64> = rates.iter().map(|rate| (rate / mean - 1.0) * 100.0).collect();
    let measured = format!("{what}: {:.3} Mbit/s in all, off by {off:.2?} %", total / 1e6);
    println!("{measured}");
    let is_right = (total / line - 1.0).abs() < 0.05 && off.iter().all(|off| off.abs() < 3.0);
    times.expect(is_right, measured);
}

/// Seven flows can't be spread equally over two workers. They have the line together, and equal shares of it.
#[test]
fn two_workers_share_a_line() {
    measured("two_workers_share_a_line", IDLE, || {
        let one = SHARDED.replace("workers = 2\n", "");
        let mut times = Times::default();
        for (workers, text) in [("one worker", one.as_str()), ("two workers", SHARDED)] {
            let mut rates = Vec::new();
            let status = with_bridge(&plan_of(text), |network, _| {
                rates = flood(network, 7, 150_000_000, ATTEMPT);
            });
            status.check().unwrap();
            let tree = &status.directions[0].tree;
            if tree.discipline == "sharded" {
                let sent: Vec<u64> = tree.classes.iter().map(|class| class.dequeued.packets).collect();
                assert!(sent.len() == 2 && sent.iter().all(|sent| *sent > 0), "{sent:?}");
            }
            expect_equal(&mut times, workers, &rates, 100e6);
        }
        times
    });
}

/// A flow that sends four fifths of its part gets all of it, and six floods share the rest equally, whichever
/// worker the flow has.
#[test]
fn a_light_flow_leaves_floods_equal() {
    const LIGHT: f64 = 0.8 * 100e6 / 7.0;
    let right: IpAddr = Network::RIGHT.parse().unwrap();
    let to: Vec<SocketAddr> = (FIRST_PORT..FIRST_PORT + 7)
        .map(|port| (right, port).into())
        .collect();
    let offered: Vec<f64> = (0..7).map(|flow| if flow == 0 { LIGHT } else { 30e6 }).collect();
    measured("a_light_flow_leaves_floods_equal", IDLE, || {
        let mut rates = Vec::new();
        let status = with_bridge(&plan_of(SHARDED), |network, _| {
            rates = send_to(network, &to, &offered, ATTEMPT);
        });
        status.check().unwrap();
        let mut times = Times::default();
        let light = rates[0] * OF_PAYLOAD / LIGHT;
        times.expect(
            (light - 1.0).abs() < 0.03,
            format!("the light flow has {light:.3} of what it sends"),
        );
        expect_equal(&mut times, "floods", &rates[1..], 100e6 - LIGHT);
        times
    });
}

/// A change reaches both workers, and a change that one worker can't run is refused as a whole.
#[test]
fn a_change_reaches_all_workers() {
    measured("a_change_reaches_all_workers", IDLE, || {
        let mut times = Times::default();
        let status = with_bridge(&plan_of(SHARDED), |network, changer| {
            let slow = SHARDED.replace("100mbit", "50mbit").replace("fq_codel", "drr");
            changer.reload(plan_of(&slow)).unwrap();
            let rates = flood(network, 4, 80_000_000, ATTEMPT);
            let total = rates.iter().sum::<f64>() * OF_PAYLOAD / 50e6;
            times.expect((total - 1.0).abs() < 0.05, format!("{total:.3} of the new rate"));
            let mut fewer = plan_of(SHARDED);
            fewer.workers = 3;
            assert!(matches!(
                changer.reload(fewer),
                Err(ReloadError::Fixed { key: "workers" })
            ));
        });
        let shards = &status.directions[0].tree.classes;
        assert!(
            shards.iter().all(|shard| shard.classes[0].discipline == "drr"),
            "{shards:?}"
        );
        times
    });
}

/// One flow has one worker, and still the whole line.
#[test]
fn one_flow_takes_the_line_of_two_workers() {
    measured("one_flow_takes_the_line_of_two_workers", IDLE, || {
        let mut rates = Vec::new();
        let status = with_bridge(&plan_of(SHARDED), |network, _| {
            rates = flood(network, 1, 150_000_000, ATTEMPT);
        });
        let shards = &status.directions[0].tree.classes;
        let busy = shards.iter().filter(|shard| shard.dequeued.packets > 1000);
        assert_eq!(busy.count(), 1, "{shards:?}");
        let mut times = Times::default();
        expect_equal(&mut times, "one flow", &rates, 100e6);
        times
    });
}

/// A line of 70 Mbit/s for seven subscribers. The first one has addresses of both families.
fn subscribers(workers: u16) -> String {
    let class = |number: u16| {
        let ceil = if number == 16 { 4 } else { 70 };
        format!(
            "{{ id = {number}, parent = 1, rate = \"10kbit\", ceil = \"{ceil}mbit\", quantum = 1518, \
             discipline = \"fq_codel\" }},\n"
        )
    };
    let filter = |number: u16| format!("{{ class = {number}, destination = \"100.64.0.{number}/32\" }},\n");
    let classes: String = (10..17).map(class).collect();
    let filters: String = (10..17).map(filter).collect();
    let divided = match workers {
        1 => String::new(),
        _ => format!("workers = {workers}\nshard_by = \"class\"\n"),
    };
    format!(
        "[queue.line]\ndiscipline = \"htb\"\ndefault = 2\nclass = [\n\
         {{ id = 1, rate = \"70mbit\", burst = \"70kb\" }},\n\
         {{ id = 2, parent = 1, rate = \"10kbit\", ceil = \"70mbit\", discipline = \"fifo\" }},\n{classes}]\n\
         filter = [\n{{ class = 10, destination = \"2001:db8::10/128\" }},\n{filters}]\n\
         [run]\nleft = \"left\"\nright = \"right\"\nleft_to_right = \"line\"\n{divided}"
    )
}

/// Gives the right host the addresses of the subscribers. Returns them, those of the first one first.
fn give_addresses(network: &Network) -> Vec<SocketAddr> {
    let mut all: Vec<IpAddr> = vec!["2001:db8::10".parse().unwrap()];
    all.extend((10..17).map(|number| IpAddr::from([100, 64, 0, number])));
    for address in &all {
        let (text, bits) = (address.to_string(), if address.is_ipv4() { 32 } else { 128 });
        let with_prefix = format!("{text}/{bits}");
        let flags: &[&str] = if bits == 32 { &[] } else { &["nodad"] };
        let add = [&["addr", "add", &with_prefix, "dev", "eth0"], flags].concat();
        network.right.ip(&add).unwrap();
        network
            .left
            .ip(&["route", "add", &with_prefix, "dev", "eth0"])
            .unwrap();
    }
    let own = ["addr", "add", "2001:db8::1/64", "dev", "eth0", "nodad"];
    network.left.ip(&own).unwrap();
    all.into_iter()
        .map(|address| SocketAddr::from((address, FIRST_PORT)))
        .collect()
}

/// Hosts share equally whatever their flows, and a host is served by one worker. Six hosts are hardly all in
/// one.
#[test]
fn workers_share_a_line_among_hosts() {
    let text = "[queue.line]\ndiscipline = \"cake\"\nbandwidth = \"60mbit\"\ntins = \"besteffort\"\n\
        isolation = \"dual-dsthost\"\n[run]\nleft = \"left\"\nright = \"right\"\nleft_to_right = \"line\"\n\
        workers = 2\nshard_by = \"right\"\n";
    measured("workers_share_a_line_among_hosts", IDLE, || {
        let mut hosts: Vec<(IpAddr, f64)> = Vec::new();
        let status = with_bridge(&plan_of(text), |network, _| {
            let addresses = give_addresses(network);
            // The first host has one flow, the next one two, and so on.
            let flows = |(number, address): (u16, &SocketAddr)| {
                let ip = address.ip();
                (0..number).map(move |port| SocketAddr::from((ip, FIRST_PORT + port)))
            };
            let to: Vec<SocketAddr> = (1..7).zip(&addresses[1..]).flat_map(flows).collect();
            // Each flow alone is more than the part of a host.
            let rates = flood_to(network, &to, 320_000_000, ATTEMPT);
            for (address, rate) in to.iter().zip(rates) {
                match hosts.last_mut() {
                    Some((host, sum)) if *host == address.ip() => *sum += rate,
                    _ => hosts.push((address.ip(), rate)),
                }
            }
        });
        status.check().unwrap();
        let rates: Vec<f64> = hosts.iter().map(|(_, rate)| *rate).collect();
        let mut times = Times::default();
        expect_equal(&mut times, "hosts", &rates, 60e6);
        times
    });
}

/// Seven subscribers can't be spread equally over two workers. Each gets what it gets of one worker: the one
/// with a limit has that, and the others share the rest. A subscriber is served by one worker, whatever its
/// addresses.
#[test]
fn workers_share_a_line_of_subscribers() {
    measured("workers_share_a_line_of_subscribers", IDLE, || {
        let mut times = Times::default();
        for workers in [1, 2] {
            let mut rates = Vec::new();
            let status = with_bridge(&plan_of(&subscribers(workers)), |network, _| {
                let to = give_addresses(network);
                rates = flood_to(network, &to, 120_000_000, ATTEMPT);
            });
            status.check().unwrap();
            // The first one has two flows.
            let mut each: Vec<f64> = rates[2..].to_vec();
            each.insert(0, rates[0] + rates[1]);
            let limited = each.pop().unwrap() * OF_PAYLOAD / 4e6;
            times.expect(
                (limited - 1.0).abs() < 0.05,
                format!("{workers}: {limited:.3} of the limit"),
            );
            expect_equal(&mut times, &format!("workers: {workers}"), &each, 70e6 - 4e6);
            if workers == 2 {
                let shards = &status.directions[0].tree.classes;
                for shard in shards {
                    let busy = shard.classes.iter().filter(|class| class.dequeued.packets > 500);
                    assert!(busy.count() > 0, "{shards:?}");
                }
            }
        }
        times
    });
}

/// Subscribers come and go while two workers forward. Packets of new ones find their class, and others are
/// not touched.
#[test]
fn classes_of_workers_change_while_they_forward() {
    let Some(_watched) = live("classes_of_workers_change_while_they_forward") else {
        return;
    };
    let all = subscribers(2);
    let without = |number: u16| {
        let lines = all.lines().filter(|line| {
            !line.contains(&format!("id = {number},")) && !line.contains(&format!("class = {number},"))
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let status = with_bridge(&plan_of(&without(15)), |network, changer| {
        let to = give_addresses(network);
        let flood = |to: &[SocketAddr]| flood_to(network, to, 20_000_000, Duration::from_secs(2));
        flood(&to);
        for _ in 0..20 {
            changer.reload(plan_of(&all)).unwrap();
            changer.reload(plan_of(&without(12))).unwrap();
        }
        changer.reload(plan_of(&all)).unwrap();
        flood(&to);
    });
    status.check().unwrap();
    let shards = &status.directions[0].tree.classes;
    let sent = |minor: u32| -> Vec<u64> {
        let classes = shards.iter().flat_map(|shard| &shard.classes);
        classes
            .filter(|class| class.class == Some(minor))
            .map(|class| class.dequeued.packets)
            .collect()
    };
    for minor in 10..17 {
        let of_class = sent(minor);
        assert_eq!(of_class.len(), 1, "class {minor} has one worker");
        assert!(of_class[0] > 100, "class {minor}: {of_class:?}");
    }
    assert_eq!(sent(2).len(), 2, "each worker has the default class");
}

/// A forwarding thread that is stuck does not beat, and neither does one that has not begun.
#[test]
fn a_run_beats_as_long_as_it_forwards() {
    let Some(_watched) = live("a_run_beats_as_long_as_it_forwards") else {
        return;
    };
    const SOON: Option<Duration> = Some(Duration::from_millis(200));
    for workers in [1, 2] {
        let network = Network::build().unwrap();
        let mut plan = plan_of("[run]\nleft = \"left\"\nright = \"right\"\n");
        plan.workers = workers;
        let open = || Bridge::open(&plan, Some(1));
        let mut bridge = network.router.enter(open).unwrap().unwrap();
        // The thread is stuck from the first notice on, until `release` is dropped.
        let (said, notices) = std::sync::mpsc::channel();
        let (release, held) = std::sync::mpsc::channel::<()>();
        bridge.on_notice(move |notice| {
            said.send(notice).unwrap();
            let _ = held.recv();
        });
        let pulse = bridge.pulse();
        assert_eq!(pulse.beat(SOON), Beat::Late);
        let stop = StopOnDrop(bridge.stopper());
        thread::scope(|scope| {
            let running = scope.spawn(|| bridge.run());
            let (stop, release) = (stop, release);
            assert_eq!(pulse.beat(None), Beat::Alive);
            network.router.ip(&["link", "set", "right", "down"]).unwrap();
            notices.recv().unwrap();
            assert_eq!(pulse.beat(SOON), Beat::Late);
            drop(release);
            assert_eq!(pulse.beat(None), Beat::Alive);
            drop(stop);
            assert_eq!(running.join().unwrap().unwrap(), Wake::Stop);
        });
        bridge.end_changes();
        assert_eq!(pulse.beat(None), Beat::Ended);
        bridge.wind_up().unwrap();
    }
}
