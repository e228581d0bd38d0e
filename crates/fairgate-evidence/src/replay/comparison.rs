//! Replays a trace: makes the same calls on a tree of disciplines and compares the results.

use std::collections::BTreeSet;
use std::path::Path;

use fairgate::{
    ClassId, Discipline, Ecn, FlowHasher, FlowKey, Link, Next, Packet, Pool, Time, Variable, Verdict,
};

use crate::replay::error::{Error, Mistake};
use crate::replay::find::setup_of;
use crate::replay::format::{Dequeue, Enqueue, Nothing, Operation, Operations, Recorded};
use crate::replay::setup::{Setup, refused};

/// The number of packets that can be queued: three times the default limit of fq_codel, which is the largest.
const CAPACITY: u32 = 1 << 15;

/// The variables that are times in ticks of 1024 ns since `t` = 0.
const IN_TICKS: [&str; 2] = ["first_above", "drop_next"];

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every operation had the recorded results.
    Equal {
        /// The number of operations.
        operations: u64,
    },
    /// The results of some operation differ.
    Different(Difference),
    /// The recorded discipline can't be built here.
    Unsupported {
        /// The discipline or option that is missing, and the reason.
        reason: String,
    },
}

/// The first operation whose results differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The line of the operation in the trace, from 1.
    pub line: u64,
    /// The time of the operation, ns.
    pub t: u64,
    /// `enq`, `deq` or `none`, as recorded.
    pub operation: &'static str,
    /// All results that differ; at least one.
    pub mismatches: Vec<Mismatch>,
}

/// A result that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The name of the result in the trace.
    pub field: String,
    /// The recorded value.
    pub expected: String,
    /// The value of the replay.
    pub got: String,
}

/// Replays the trace `TRACE.jsonl.gz` with the setup beside it. `seed` is for disciplines with random
/// decisions.
///
/// # Errors
/// Returns an error if a file can't be read or is damaged. A difference is not an error.
pub fn replay(trace: &Path, seed: u64) -> Result<Outcome, Error> {
    let setup_path = setup_of(trace);
    let script = Setup::read(&setup_path)?.script(&setup_path)?;
    if let Some(reason) = script.unsupported() {
        return Ok(Outcome::Unsupported { reason });
    }
    let spec = script.spec().map_err(|error| refused(&error, &setup_path))?;
    let mut root = spec
        .build(seed)
        .map_err(|error| Mistake::Commands(error.to_string()).in_file(&setup_path))?;
    replay_with(trace, root.as_mut())
}

/// Replays the trace `TRACE.jsonl.gz` through `root`. The setup is ignored.
///
/// # Errors
/// Returns an error if the file can't be read or is damaged. A difference is not an error.
pub fn replay_with(trace: &Path, root: &mut dyn Discipline) -> Result<Outcome, Error> {
    let mut operations = Operations::open(trace)?;
    let mut driver = Driver::new(root);
    let mut replayed = 0;
    while let Some((line, operation)) = operations.read()? {
        let (name, t, mismatches) = match &operation {
            Operation::Origin { ktime_ns } => {
                driver.origin = *ktime_ns;
                continue;
            }
            Operation::Note { .. } | Operation::Params {} => continue,
            Operation::Enq(enqueue) => {
                let mismatches = driver
                    .enqueue(enqueue)
                    .map_err(|mistake| operations.error(mistake))?;
                ("enq", enqueue.t, mismatches)
            }
            Operation::Deq(dequeue) => ("deq", dequeue.t, driver.dequeue(dequeue)),
            Operation::None(nothing) => ("none", nothing.t, driver.dequeue_nothing(nothing)),
        };
        replayed += 1;
        if !mismatches.is_empty() {
            return Ok(Outcome::Different(Difference {
                line,
                t,
                operation: name,
                mismatches,
            }));
        }
    }
    Ok(Outcome::Equal { operations: replayed })
}

/// The tree of disciplines that replaces the kernel's, and the state of the replay.
struct Driver<'r> {
    /// A packet's cookie is its number in the trace.
    link: Link<(), &'r mut dyn Discipline>,
    hasher: FlowHasher,
    /// The kernel's clock at `t` = 0. It is added to all times: some disciplines compare the clock with a
    /// time that is not set yet, and they must see the same difference.
    origin: u64,
    /// The kernel's watchdog timer. It is set when the discipline throttles, and not cancelled if the queue
    /// becomes empty before it expires.
    timer: Option<Time>,
    /// The numbers of the packets that the current operation dropped.
    dropped: BTreeSet<u64>,
    mismatches: Vec<Mismatch>,
}

impl<'r> Driver<'r> {
    fn new(root: &'r mut dyn Discipline) -> Driver<'r> {
        Driver {
            link: Link::with_pool(root, Pool::with_capacity(CAPACITY)),
            hasher: FlowHasher::new([0, 0]),
            origin: 0,
            timer: None,
            dropped: BTreeSet::new(),
            mismatches: Vec::new(),
        }
    }

    fn enqueue(&mut self, enqueue: &Enqueue) -> Result<Vec<Mismatch>, Mistake> {
        let (packet, now) = (self.packet(enqueue), self.now(enqueue.t));
        let verdict = self
            .link
            .enqueue(packet, (), now)
            .map_err(|error| Mistake::TooManyPackets {
                capacity: error.full.capacity,
            })?;
        self.expect("rc", enqueue.rc, return_value(verdict));
        Ok(self.settle(&enqueue.after))
    }

    fn dequeue(&mut self, dequeue: &Dequeue) -> Vec<Mismatch> {
        let now = self.now(dequeue.t);
        match self.link.dequeue(now).packet() {
            Some(departure) => {
                let packet = departure.slot;
                self.expect("seq", dequeue.seq, packet.cookie);
                self.expect("flow", dequeue.flow as u32, packet.mark);
                self.expect("size", dequeue.size, packet.length);
                self.expect("ecn", dequeue.ecn, packet.ecn as u8);
            }
            None => self.expect("seq", &*dequeue.seq.to_string(), "no packet"),
        }
        self.settle(&dequeue.after)
    }

    fn dequeue_nothing(&mut self, nothing: &Nothing) -> Vec<Mismatch> {
        let now = self.now(nothing.t);
        match self.link.dequeue(now) {
            Next::Packet(departure) => {
                self.expect("seq", "no packet", &*departure.slot.cookie.to_string());
            }
            next => {
                if !next.is_idle() {
                    self.timer = self.link.root().watchdog().or(self.timer);
                }
                let pending = self.timer.filter(|&due| due >= now);
                let wd = pending.map_or(-1, |due| due.nanos() as i64 - self.origin as i64);
                self.expect("wd", nothing.wd, wd);
            }
        }
        self.settle(&nothing.after)
    }

    fn now(&self, t: u64) -> Time {
        Time::from_nanos(self.origin + t)
    }

    fn packet(&self, enqueue: &Enqueue) -> Packet {
        let (class, priority) = match enqueue.prio.major() {
            0 => (ClassId::NONE, (enqueue.prio.minor() & 15) as u8),
            _ => (enqueue.prio, 0),
        };
        // The flows of the trace were UDP flows with different source ports.
        let key = FlowKey {
            source_port: (1000 + enqueue.flow % 60_000) as u16,
            protocol: 17,
            ..FlowKey::default()
        };
        Packet {
            memory: enqueue.mem,
            flow: self.hasher.five_tuple(&key),
            cookie: enqueue.seq,
            mark: enqueue.flow as u32,
            class,
            priority,
            ecn: Ecn::from_bits(enqueue.ecn),
            ..Packet::of_length(enqueue.size)
        }
    }

    fn expect<T: PartialEq + ToString>(&mut self, field: &str, expected: T, got: T) {
        if expected != got {
            self.mismatches.push(Mismatch {
                field: field.to_owned(),
                expected: expected.to_string(),
                got: got.to_string(),
            });
        }
    }

    /// Compares the state after the operation. Returns all results that differ.
    fn settle(&mut self, after: &Recorded) -> Vec<Mismatch> {
        self.dropped.clear();
        while let Some(dropped) = self.link.take_dropped() {
            self.dropped.insert(dropped.slot.cookie);
        }
        let recorded: BTreeSet<u64> = after.drops.iter().copied().collect();
        if recorded != self.dropped {
            self.expect("drops", list(&recorded), list(&self.dropped));
        }
        let backlog = self.link.backlog();
        self.expect("qlen", after.qlen, backlog.packets);
        self.expect("backlog", after.backlog, backlog.bytes);
        for (name, &recorded) in &after.variables {
            match self.variable(name) {
                Some(ours) => self.expect(name, recorded, ours),
                None => self.expect(name, &*recorded.to_string(), "not shown"),
            }
        }
        std::mem::take(&mut self.mismatches)
    }

    /// Returns a variable of the root in the recorded representation.
    fn variable(&self, wanted: &str) -> Option<i64> {
        let mut found = None;
        self.link.root().visit_variables(&mut |name, value| {
            if name == wanted {
                found = Some(value);
            }
        });
        Some(match found? {
            Variable::Unset => -1,
            Variable::Flag(flag) => flag.into(),
            // Ticks are counted modulo 2^32.
            Variable::Integer(ticks) if IN_TICKS.contains(&wanted) => {
                (ticks as u32).wrapping_sub((self.origin >> 10) as u32).into()
            }
            Variable::Integer(integer) => integer,
            Variable::Nanos(nanos) => nanos as i64 - self.origin as i64,
        })
    }
}

/// Returns Linux's return value.
fn return_value(verdict: Verdict) -> u32 {
    match verdict {
        Verdict::Queued => 0,
        Verdict::Dropped => 1,
        Verdict::Congested => 2,
        Verdict::Unclassified => 0x2_0000,
    }
}

fn list(numbers: &BTreeSet<u64>) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    match numbers.is_empty() {
        true => "none".to_owned(),
        false => numbers.join(" "),
    }
}
