//! The replay: the same calls on our tree, and the comparison.

use std::collections::BTreeSet;
use std::path::Path;

use fairgate::{ClassId, Discipline, Ecn, FlowHasher, FlowKey, Packet, Pool, Time, Variable, Verdict};

use crate::error::{Error, Mistake};
use crate::find::setup_of;
use crate::format::{Dequeue, Enqueue, Nothing, Operation, Operations, Recorded};
use crate::setup::{Setup, refused};

/// Room for packets: three times the default limit of fq_codel, the largest there is.
const CAPACITY: u32 = 1 << 15;

/// Variables that are times in ticks of 1024 ns since `t` = 0.
const IN_TICKS: [&str; 2] = ["first_above", "drop_next"];

/// What a replay found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every operation had the recorded results.
    Equal {
        /// How many operations there were.
        operations: u64,
    },
    /// Some operation had not.
    Different(Difference),
    /// The recorded discipline can't be built here.
    Unsupported {
        /// Which discipline or option, and why.
        reason: String,
    },
}

/// The first operation whose results differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its line in the trace, from 1.
    pub line: u64,
    /// Its time, ns.
    pub t: u64,
    /// `enq`, `deq` or `none`, as recorded.
    pub operation: &'static str,
    /// All its results that differ; at least one.
    pub mismatches: Vec<Mismatch>,
}

/// One result that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The result's name in the trace.
    pub field: String,
    /// What was recorded.
    pub expected: String,
    /// What ours gave.
    pub got: String,
}

/// Replays the trace `TRACE.jsonl.gz` with the setup beside it. `seed` is for disciplines with random decisions.
///
/// # Errors
/// If a file can't be read or is damaged; a difference is no error.
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

/// Replays the trace `TRACE.jsonl.gz` through `root`, whatever its setup says.
///
/// # Errors
/// If the file can't be read or is damaged; a difference is no error.
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

/// Our tree, in the place of the kernel's.
struct Driver<'r> {
    root: &'r mut dyn Discipline,
    pool: Pool,
    hasher: FlowHasher,
    /// The kernel's clock at `t` = 0: disciplines that compare with a time not yet set see the same difference.
    origin: u64,
    /// The kernel's watchdog timer: set when a packet is held back, and never cancelled when the queue empties before.
    timer: Option<Time>,
    /// Numbers of the packets dropped by the operation.
    dropped: BTreeSet<u64>,
    mismatches: Vec<Mismatch>,
}

impl<'r> Driver<'r> {
    fn new(root: &'r mut dyn Discipline) -> Driver<'r> {
        Driver {
            root,
            pool: Pool::with_capacity(CAPACITY),
            hasher: FlowHasher::new([0, 0]),
            origin: 0,
            timer: None,
            dropped: BTreeSet::new(),
            mismatches: Vec::new(),
        }
    }

    fn enqueue(&mut self, enqueue: &Enqueue) -> Result<Vec<Mismatch>, Mistake> {
        let id = self
            .pool
            .insert(self.packet(enqueue))
            .map_err(|full| Mistake::TooManyPackets {
                capacity: full.capacity,
            })?;
        let now = self.now(enqueue.t);
        let rc = return_value(self.root.enqueue(id, now, &mut self.pool));
        self.expect("rc", enqueue.rc, rc);
        Ok(self.settle(&enqueue.after))
    }

    fn dequeue(&mut self, dequeue: &Dequeue) -> Vec<Mismatch> {
        let now = self.now(dequeue.t);
        match self.root.dequeue(now, &mut self.pool) {
            Some(id) => {
                let packet = self.pool.release(id);
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
        match self.root.dequeue(now, &mut self.pool) {
            Some(id) => {
                let packet = self.pool.release(id);
                self.expect("seq", "no packet", &*packet.cookie.to_string());
            }
            None => {
                if self.root.backlog().packets > 0 {
                    self.timer = self.root.watchdog().or(self.timer);
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
        // The flows of the recording were UDP flows told apart by their source ports.
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

    /// Compares what is left after the operation, and returns all that differed.
    fn settle(&mut self, after: &Recorded) -> Vec<Mismatch> {
        self.dropped.clear();
        while let Some((id, _)) = self.pool.take_returned() {
            self.dropped.insert(self.pool.release(id).cookie);
        }
        let recorded: BTreeSet<u64> = after.drops.iter().copied().collect();
        if recorded != self.dropped {
            self.expect("drops", list(&recorded), list(&self.dropped));
        }
        let backlog = self.root.backlog();
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

    /// A variable of the root as it would have been recorded.
    fn variable(&self, wanted: &str) -> Option<i64> {
        let mut found = None;
        self.root.visit_variables(&mut |name, value| {
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

/// Linux's return value.
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
