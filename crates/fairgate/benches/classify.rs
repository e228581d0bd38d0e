//! Measures the cost of finding the first of many filters that matches a packet: time, and instructions
//! counted by callgrind.
//!
//! `wildcard` filters are mixed as in access lists: prefixes of every length on either address or both, ports
//! open, single or in ranges, protocols, DSCPs, marks, VLANs. `exact` filters fix the whole five-tuple. Of
//! 4096 packets, half are made to match a filter chosen at random, and half are random. `narrow` filters are
//! like `wildcard` with prefixes of /24 and longer. `unmatched` uses the packets of `wildcard` that no filter
//! matches, repeatedly. The column `linear` is a linear search through the list.
//!
//! It also measures the cost of finding the class of a packet's host: a packet passes a round robin over
//! classes, one for each of a number of hosts. With `hosts`, every host sends in turn. With `new hosts`, each
//! host takes the class of another. `no hosts` has one class for all.
//!
//!     cargo bench -p fairgate --bench classify -- [--most NUMBER]     with at most so many filters and hosts
//!
//! The program runs itself under valgrind with few and with many packets, and divides the difference.

use std::hint::black_box;
use std::net::IpAddr;
use std::process::Command;
use std::time::Instant;

use fairgate::classify::{Classifier, Filter, Filters, HostBy, Masked, Match, Prefix, Template, Templates};
use fairgate::flow::FlowKey;
use fairgate::queues::fifo::{self, Fifo};
use fairgate::rounds::drr_classes::{self, DrrClasses};
use fairgate::{Discipline, Node, Packet, Pool, Slot, Time};

/// What is measured: the name, and the number of filters or hosts.
const SUBJECTS: [(&str, usize); 11] = [
    ("none", 0),
    ("wildcard", 1),
    ("wildcard", 10),
    ("wildcard", 100),
    ("wildcard", 1_000),
    ("wildcard", 10_000),
    ("unmatched", 10),
    ("unmatched", 1_000),
    ("unmatched", 10_000),
    ("narrow", 10_000),
    ("exact", 1_000_000),
];

const HOSTS: [(&str, usize); 6] = [
    ("no hosts", 1),
    ("hosts", 10),
    ("hosts", 1_000),
    ("hosts", 10_000),
    ("new hosts", 10),
    ("new hosts", 10_000),
];

const PACKETS: usize = 4096;
/// The passes over all packets in a sample. On a busy machine, the minimum of many short samples is the best
/// measure.
const PASSES: usize = 4;
const SAMPLES: usize = 200;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, run, name, count, passes] = &arguments[..]
        && run == "--run"
    {
        let number = |text: &str| text.parse().expect("the counting process passes numbers");
        let (count, passes) = (number(count), number(passes));
        match HOSTS.contains(&(name.as_str(), count)) {
            true => {
                let mut subject = RoundRobin::new(name, count);
                (0..passes).for_each(|_| subject.pass());
            }
            false => {
                let subject = Subject::new(name, count);
                (0..passes).for_each(|_| subject.pass());
            }
        }
        return;
    }
    let most = arguments
        .windows(2)
        .find(|pair| pair[0] == "--most")
        .map_or(usize::MAX, |pair| {
            pair[1].parse().expect("a number behind --most")
        });
    let has_valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    if !has_valgrind {
        eprintln!(
            "counting instructions needs valgrind, which is not installed; `apt install valgrind` installs it"
        );
    }
    println!(
        "{:10}{:>9}{:>10}{:>14}{:>12}{:>11}{:>10}",
        "filters", "number", "ns", "instructions", "linear, ns", "built, ms", "matching"
    );
    for (name, count) in SUBJECTS.into_iter().filter(|(_, count)| *count <= most) {
        let began = Instant::now();
        let subject = Subject::new(name, count);
        let built = began.elapsed().as_secs_f64() * 1e3;
        let instructions = match has_valgrind {
            true => format!("{:.0}", instructions(name, count)),
            false => "-".to_owned(),
        };
        let linear = match count {
            0..=10_000 => format!(
                "{:.1}",
                least(1 + 100_000 / (count + 1) / 100, || subject.search_linearly())
            ),
            _ => "-".to_owned(),
        };
        println!(
            "{name:10}{count:>9}{:>10.1}{instructions:>14}{linear:>12}{built:>11.1}{:>9}%",
            least(SAMPLES, || (0..PASSES).for_each(|_| subject.pass())) / PASSES as f64,
            subject.matching() * 100 / PACKETS,
        );
    }
    println!(
        "\n{:10}{:>9}{:>10}{:>14}",
        "a class of", "number", "ns", "instructions"
    );
    for (name, count) in HOSTS.into_iter().filter(|(_, count)| *count <= most) {
        let mut subject = RoundRobin::new(name, count);
        let instructions = match has_valgrind {
            true => format!("{:.0}", instructions(name, count)),
            false => "-".to_owned(),
        };
        let ns = least(SAMPLES, || (0..PASSES).for_each(|_| subject.pass())) / PASSES as f64;
        println!("{name:10}{count:>9}{ns:>10.1}{instructions:>14}");
    }
}

/// Returns the nanoseconds per packet in the fastest of `samples` runs of `pass`.
fn least(samples: usize, mut pass: impl FnMut()) -> f64 {
    let mut sample = || {
        let began = Instant::now();
        pass();
        began.elapsed().as_secs_f64() * 1e9 / PACKETS as f64
    };
    (0..samples).map(|_| sample()).fold(f64::INFINITY, f64::min)
}

/// Returns the instructions per packet, from callgrind's summary: `==123== Collected : 4567`.
fn instructions(name: &str, count: usize) -> f64 {
    let run = |passes: usize| -> u64 {
        let program = std::env::current_exe().expect("a running program has a path");
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(program)
            .args(["--run", name, &count.to_string(), &passes.to_string()])
            .output()
            .expect("valgrind was found before");
        let summary = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the counted run failed:\n{summary}");
        let collected = summary.lines().find_map(|line| line.split_once("Collected : "));
        let (_, count) = collected.expect("callgrind reports the number of instructions");
        count.trim().parse().expect("callgrind reports a whole number")
    };
    // Hashes are built with random keys, so the count differs a little from run to run.
    (run(17) - run(1)) as f64 / (16 * PACKETS) as f64
}

struct Subject {
    filters: Filters,
    packets: Vec<(Slot, FlowKey)>,
}

impl Subject {
    fn new(name: &str, count: usize) -> Subject {
        let mut random = Random(1);
        let list: Vec<Filter> = (0..count)
            .map(|place| Filter {
                condition: match name {
                    "exact" => exact(&mut random),
                    "narrow" => mixed(&mut random, 24),
                    _ => mixed(&mut random, 8),
                },
                outcome: (place as u32 + 1).into(),
                ..Filter::default()
            })
            .collect();
        let packets = (0..PACKETS).map(|place| match list.len() {
            0 => packet(&Match::default(), &mut random),
            _ if place % 2 == 0 => packet(&Match::default(), &mut random),
            count => packet(&list[random.below(count as u64) as usize].condition, &mut random),
        });
        let mut subject = Subject {
            packets: packets.collect(),
            filters: Filters::new(list),
        };
        if name == "unmatched" {
            let filters = &subject.filters;
            subject
                .packets
                .retain(|(packet, headers)| filters.find(packet, Some(headers), None).is_none());
            subject.packets = subject.packets.into_iter().cycle().take(PACKETS).collect();
        }
        subject
    }

    fn pass(&self) {
        for (packet, headers) in &self.packets {
            black_box(self.filters.find(packet, Some(headers), None));
        }
    }

    fn search_linearly(&self) {
        for (packet, headers) in &self.packets {
            let mut filters = self.filters.iter();
            black_box(filters.find(|filter| filter.condition.matches(packet, Some(headers), None)));
        }
    }

    fn matching(&self) -> usize {
        let is_matching =
            |(packet, headers): &&(Slot, FlowKey)| self.filters.find(packet, Some(headers), None).is_some();
        self.packets.iter().filter(is_matching).count()
    }
}

/// A round robin over classes that are assigned to hosts.
struct RoundRobin {
    root: Node<DrrClasses>,
    pool: Pool,
    /// The number of hosts, which send in turn.
    hosts: u32,
    next: u32,
}

impl RoundRobin {
    /// Creates it for a number of hosts. With `new hosts`, there are twice as many hosts as classes.
    fn new(name: &str, hosts: usize) -> RoundRobin {
        let overflow = hosts as u32 + 1;
        let template = Template {
            class: 1,
            count: hosts as u32,
            by: HostBy::destination(),
            overflow,
        };
        let list = if name == "no hosts" {
            Vec::new()
        } else {
            vec![template]
        };
        let config = drr_classes::Config {
            classifier: Classifier {
                default: Some(1),
                ..Classifier::default()
            },
            classes: (1..=overflow)
                .map(|minor| drr_classes::ClassConfig { minor, quantum: 1514 })
                .collect(),
            templates: Templates { list, seed: 1 },
        };
        let fifo = || Fifo::node(fifo::Config::default()).expect("the default is valid");
        let inner = (1..=overflow).map(|_| -> Box<dyn Discipline> { Box::new(fifo()) });
        let mut round_robin = RoundRobin {
            root: DrrClasses::node(config, inner.collect()).expect("the configuration is valid"),
            pool: Pool::with_capacity(8),
            hosts: if name == "new hosts" {
                2 * hosts as u32
            } else {
                hosts as u32
            },
            next: 0,
        };
        // All hosts have sent, so that the measurement is steady.
        (0..round_robin.hosts).for_each(|_| round_robin.send());
        round_robin
    }

    fn pass(&mut self) {
        (0..PACKETS).for_each(|_| self.send());
    }

    fn send(&mut self) {
        self.next = if self.next + 1 < self.hosts {
            self.next + 1
        } else {
            0
        };
        let host = IpAddr::V4((0x6440_0000 + self.next).into());
        let key = FlowKey::of([192, 0, 2, 1].into(), host, 6, 443, 5000);
        let id = self
            .pool
            .insert((Packet::of_length(1000), key))
            .expect("there is a free slot");
        self.root.enqueue(id, Time::ZERO, &mut self.pool);
        let sent = self
            .root
            .dequeue(Time::ZERO, &mut self.pool)
            .expect("a packet is queued");
        black_box(self.pool.release(sent));
    }
}

/// SplitMix64 (Steele et al. 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }

    /// Returns true with a probability of `percent`.
    fn is_so(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Half of the addresses are in ten networks, like those of a site.
fn address(random: &mut Random) -> u32 {
    match random.is_so(50) {
        true => 10 << 24 | (random.below(10) as u32) << 16 | random.next() as u32 & 0xffff,
        false => random.next() as u32,
    }
}

fn prefix(random: &mut Random, length: u8) -> Option<Prefix> {
    Some(Prefix::new(IpAddr::V4(address(random).into()), length).expect("at most 32 bits"))
}

const PORTS: [u16; 10] = [22, 25, 53, 80, 123, 443, 1194, 5060, 8080, 8443];

fn port(random: &mut Random) -> Option<std::ops::RangeInclusive<u16>> {
    match random.below(10) {
        0..=3 => None,
        4..=6 => {
            let port = PORTS[random.below(10) as usize];
            Some(port..=port)
        }
        7 => Some(1024..=65_535),
        _ => {
            let first = random.below(60_000) as u16;
            Some(first..=first + random.below(5_000) as u16)
        }
    }
}

fn mixed(random: &mut Random, shortest: u8) -> Match {
    let mut condition = Match::default();
    let length = |random: &mut Random| shortest + random.below(33 - u64::from(shortest)) as u8;
    let both = random.below(10);
    if both < 8 {
        let length = length(random);
        condition.destination = prefix(random, length);
    }
    if both >= 4 {
        let length = length(random);
        condition.source = prefix(random, length);
    }
    if random.is_so(70) {
        condition.protocol = Some(if random.is_so(60) { 6 } else { 17 });
        condition.destination_port = port(random);
        if random.is_so(20) {
            condition.source_port = port(random);
        }
    }
    if random.is_so(10) {
        let first = random.below(50) as u8;
        condition.dscp = Some(first..=first + random.below(10) as u8);
    }
    if random.is_so(5) {
        condition.mark = Some(Masked::<u32>::exactly(random.below(16) as u32));
    }
    if random.is_so(5) {
        condition.vlan = Some(random.below(100) as u16);
    }
    condition
}

fn exact(random: &mut Random) -> Match {
    let port = |random: &mut Random| {
        let port = 1 + random.below(65_535) as u16;
        Some(port..=port)
    };
    Match {
        source: prefix(random, 32),
        destination: prefix(random, 32),
        protocol: Some(if random.is_so(60) { 6 } else { 17 }),
        source_port: port(random),
        destination_port: port(random),
        ..Match::default()
    }
}

/// Creates a packet that matches `condition`. Everything else is random.
fn packet(condition: &Match, random: &mut Random) -> (Slot, FlowKey) {
    let mut host = |prefix: Option<Prefix>| {
        let random = address(random);
        let bits = prefix.map_or(random, |prefix| match prefix.address() {
            IpAddr::V4(first) => {
                first.to_bits() | random & u32::MAX.checked_shr(prefix.length().into()).unwrap_or(0)
            }
            IpAddr::V6(_) => random,
        });
        IpAddr::V4(bits.into())
    };
    let (source, destination) = (host(condition.source), host(condition.destination));
    let mut port = |range: &Option<std::ops::RangeInclusive<u16>>| match range {
        Some(range) => *range.start(),
        None if random.is_so(50) => PORTS[random.below(10) as usize],
        None => 1 + random.below(65_535) as u16,
    };
    let (source_port, destination_port) = (port(&condition.source_port), port(&condition.destination_port));
    let protocol = condition
        .protocol
        .unwrap_or(if random.is_so(60) { 6 } else { 17 });
    let mut key = FlowKey::of(source, destination, protocol, source_port, destination_port);
    key.vlan = condition.vlan.unwrap_or(random.below(100) as u16);
    let packet = Packet {
        dscp: condition
            .dscp
            .as_ref()
            .map_or(random.below(64) as u8, |range| *range.start()),
        mark: condition
            .mark
            .map_or(random.below(16) as u32, Masked::<u32>::value),
        ..Packet::of_length(1000)
    };
    (packet.into(), key)
}
