//! The object for the kernel against the library on this machine: the same packets leave at the same times,
//! and the same ones are dropped.
//!
//! The object is linked into a program (`build/outside.c`), so that no kernel is needed. It is compiled with
//! other flags, without floating point, and with a `core` of its own.

mod recorded;

use std::fmt::Write as _;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use fairgate::flow::ethertype;
use fairgate::{Next, Packet, Time};
use fairgate_config::Spec;

use crate::convert::tree_of;
use crate::{Arriving, Plan, Prepared, Queue};

const TRACES: u64 = 200;
const OPERATIONS: usize = 200;
const KEY: [u64; 2] = [3, 5];

/// xorshift64*: the operations of a trace.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

/// A packet that arrives.
struct Arrival {
    number: u64,
    /// Bytes.
    length: u64,
    memory: u64,
    /// The kernel's, which may be a class.
    priority: u64,
    /// The network header and what follows.
    head: Vec<u8>,
}

impl Arrival {
    fn random(number: u64, random: &mut Random) -> Arrival {
        let head = headers(random);
        let length = [60, 200, 1000, 1514][random.below(4) as usize];
        Arrival {
            number,
            length,
            memory: length + 768,
            priority: [0, random.below(16), 1 << 16 | random.below(4)][random.below(3) as usize],
            head,
        }
    }
}

/// What both sides do, as the program reads it, and what the library made of it, as the program prints it.
#[derive(Default)]
struct Trace {
    operations: Vec<u8>,
    outcome: String,
}

impl Trace {
    fn numbers(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.operations.extend(number.to_le_bytes());
        }
    }

    fn begin(&mut self, plan: &Plan, seed: u64) -> Queue {
        let bytes = plan.to_bytes();
        self.operations.push(b'N');
        self.numbers(&[seed, KEY[0], KEY[1], bytes.len() as u64]);
        self.operations.extend(bytes);
        self.outcome += "new\n";
        Queue::new(&mut Prepared::new(plan.clone(), seed).unwrap(), KEY)
    }

    fn enqueue(&mut self, queue: &mut Queue, arrival: &Arrival, now: Time) {
        let Arrival {
            number,
            length,
            memory,
            priority,
            ref head,
        } = *arrival;
        let ethertype = match head[0] >> 4 {
            6 => ethertype::IPV6,
            _ => ethertype::IPV4,
        };
        self.operations.push(b'E');
        self.numbers(&[now.nanos(), number, length, memory, priority]);
        self.numbers(&[ethertype.into(), head.len() as u64]);
        self.operations.extend(head);
        let is_queued = queue.enqueue(
            &Arriving {
                head,
                ethertype,
                outer_ethertype: ethertype,
                vlan: 0,
                priority: priority as u32,
                packet: Packet {
                    cookie: number,
                    memory: memory as u32,
                    ..Packet::of_length(length as u32)
                },
            },
            now,
        );
        let _ = writeln!(self.outcome, "in {}", u8::from(is_queued));
        self.finish(queue, now);
    }

    fn dequeue(&mut self, queue: &mut Queue, now: Time) {
        self.operations.push(b'D');
        self.numbers(&[now.nanos()]);
        let _ = match queue.dequeue(now) {
            Next::Packet(departure) => {
                let slot = departure.slot;
                let class = match slot.is_remarked() {
                    true => slot.traffic_class().into(),
                    false => -1,
                };
                let (marked, corrupted) = (u8::from(slot.is_marked()), u8::from(slot.is_corrupted()));
                writeln!(self.outcome, "out {} {marked} {class} {corrupted}", slot.cookie)
            }
            Next::Wait(until) => writeln!(self.outcome, "wait {}", until.nanos()),
            Next::Idle => writeln!(self.outcome, "idle 0"),
        };
        self.finish(queue, now);
    }

    fn finish(&mut self, queue: &mut Queue, now: Time) {
        queue.enqueue_copies(now, |cookie| Some(cookie | 1 << 63));
        while let Some(dropped) = queue.take_dropped() {
            let _ = writeln!(
                self.outcome,
                "dropped {} {}",
                dropped.slot.cookie, dropped.reason as u8
            );
        }
    }

    /// Packets of a few flows, at random times: bursts, pauses, and more than can leave.
    fn append(&mut self, plan: &Plan, seed: u64) {
        let mut random = Random(seed + 1);
        let mut queue = self.begin(plan, seed);
        let mut now = Time::from_millis(1);
        for number in 1..=OPERATIONS as u64 {
            now += [0, 1_000, 100_000, 3_000_000][random.below(4) as usize];
            match random.below(9) {
                0..5 => self.enqueue(&mut queue, &Arrival::random(number, &mut random), now),
                _ => self.dequeue(&mut queue, now),
            }
        }
    }
}

/// UDP or TCP, IPv4 or IPv6, sometimes a fragment, or cut off.
fn headers(random: &mut Random) -> Vec<u8> {
    let traffic_class = [0, 1, 2, 3, 0xb8, 0x20][random.below(6) as usize];
    let protocol = [17, 6][random.below(2) as usize];
    let host = random.below(3) as u8;
    let mut head = match random.below(4) {
        0 => {
            let mut head = vec![0x60, traffic_class << 4, 0, 0, 0, 20, protocol, 64];
            head[0] |= traffic_class >> 4;
            head.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
            head.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
            head
        }
        _ => {
            let more = [0, 0, 0, 0, 0x20][random.below(5) as usize];
            let mut head = vec![0x45, traffic_class, 0, 40, 0, 0, more, 0, 64, protocol, 0, 0];
            head.extend([192, 0, 2, host, 198, 51, 100, 9]);
            head
        }
    };
    head.extend([0, random.below(6) as u8, 0, 53]);
    // The rest of a TCP header: an acknowledgement without data.
    head.extend([
        0,
        0,
        0,
        1,
        0,
        0,
        0,
        random.below(4) as u8,
        0x50,
        0x10,
        1,
        0,
        0,
        0,
        0,
        0,
    ]);
    if random.below(20) == 0 {
        head.truncate(random.below(30) as usize + 1);
    }
    head
}

/// Links the object into a program, once.
fn program() -> PathBuf {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let object = std::env::var("FAIRGATE_OBJECT").expect("FAIRGATE_OBJECT names the object");
        link(Path::new(&object))
    });
    PROGRAM.clone()
}

fn link(object: &Path) -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = object.parent().unwrap();
    // The header names types of the kernel, which the program has defined.
    std::fs::create_dir_all(folder.join("outside/linux")).unwrap();
    std::fs::write(folder.join("outside/linux/types.h"), "").unwrap();
    // gcc knows an object by its ending.
    let (linked, program) = (folder.join("outside/object.o"), folder.join("outside/program"));
    std::fs::copy(object, &linked).unwrap();
    let done = Command::new("gcc")
        .args(["-O1", "-static", "-no-pie", "-fno-pie"])
        .args([
            Path::new("-I"),
            &folder.join("outside"),
            Path::new("-I"),
            &own.join("module"),
        ])
        .args([Path::new("-o"), &program, &own.join("build/outside.c"), &linked])
        .status()
        .expect("gcc compiles the program");
    assert!(done.success());
    program
}

/// Runs the program. What it prints is read while it runs.
fn outcome_of(program: &Path, operations: &[u8]) -> String {
    let mut input = tempfile::tempfile().unwrap();
    input.write_all(operations).unwrap();
    input.rewind().unwrap();
    let output = Command::new(program).stdin(input).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Checks that the object and the library did the same.
fn assert_equal(of: &str, object: &str, library: &str) {
    for (at, (object, library)) in object.lines().zip(library.lines()).enumerate() {
        assert_eq!(object, library, "{of}: line {at}, the object's and the library's");
    }
    assert_eq!(object.lines().count(), library.lines().count(), "{of}");
}

#[test]
#[ignore = "needs the object, FAIRGATE_OBJECT: scripts/kernel/test runs it"]
fn the_object_does_what_the_library_does() {
    let program = program();
    let (mut sent, mut dropped) = (0, 0);
    let lines = include_str!("../../../scripts/kernel/guest/disciplines").lines();
    for line in lines.filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let tree = tree_of(&Spec::inline(line).unwrap()).unwrap();
        let plan = Plan {
            slots: 60,
            cuts: false,
            tree,
        };
        let mut trace = Trace::default();
        (0..TRACES).for_each(|seed| trace.append(&plan, seed));
        let outcome = outcome_of(&program, &trace.operations);
        assert_equal(line, &outcome, &trace.outcome);
        let count = |word: &str| outcome.lines().filter(|line| line.starts_with(word)).count();
        sent += count("out");
        dropped += count("dropped");
    }
    eprintln!("{sent} packets left and {dropped} were dropped in both");
    assert!(sent > 100_000 && dropped > 1000);
}
