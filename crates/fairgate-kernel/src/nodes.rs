//! What is read of a running tree: its disciplines and classes, and how long packets were in it. The kernel
//! writes it in parts, each of which fits a message, and the program reads them.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use fairgate::{ClassState, Count, DropCounts, DropReason, Found, Statistics, Time, Variable, Visitor, Walk};

use crate::form::{Form, Reader, Refused, fields, refused, write_text};
use crate::queue::Queue;
use crate::sojourns::{BUCKETS, Sojourns};
use crate::tree::MOST_DEPTH;

/// A part ends when it has this length, bytes. It is written under the lock of the queue.
const PART: usize = 4096;

/// Room for what is read before a part can end: a discipline with all reasons of drops, and some classes.
const MORE: usize = 10 * 1024;

/// Some of what was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A discipline. Those in its classes follow.
    Node(Box<NodeRecord>),
    /// A class of the discipline before it.
    Class(ClassRecord),
    /// The number of packets in a bucket of sojourn times ([`middle`](crate::middle)).
    Sojourn {
        /// The bucket.
        bucket: u16,
        /// The number of packets that have left the tree.
        packets: u64,
    },
}

/// What is read of a discipline.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRecord {
    /// The number of disciplines above it, at most 7.
    pub depth: u8,
    /// The class of the one above that it serves. `None` for the root.
    pub class: Option<u32>,
    /// The host that has this class.
    pub host: Option<String>,
    /// When it was read, ns since the machine started (CLOCK_MONOTONIC).
    pub at: u64,
    /// Its name.
    pub name: String,
    /// Its statistics.
    pub statistics: Statistics,
    /// Its state.
    pub variables: Vec<(String, Variable)>,
}

/// What is read of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassRecord {
    /// Its number.
    pub minor: u32,
    /// When it was read, as above.
    pub at: u64,
    /// The packets that left it.
    pub sent: Count,
    /// How often its own limit held it back.
    pub overlimits: u64,
    /// Its state.
    pub variables: Vec<(String, Variable)>,
}

fields! {
    NodeRecord { depth, class, host, at, name, statistics, variables }
    ClassRecord { minor, at, sent, overlimits, variables }
    Count { packets, bytes }
    Statistics { enqueued, dequeued, dropped, flushed, dropped_by_reason, marked, overlimits, sojourn }
}

/// The reasons that occurred, each with its number and that of its packets.
impl Form for DropCounts {
    fn write(&self, into: &mut Vec<u8>) {
        (self.iter().count() as u8).write(into);
        for (reason, packets) in self.iter() {
            (reason as u8).write(into);
            packets.write(into);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<DropCounts, Refused> {
        let mut counts = DropCounts::default();
        for _ in 0..u8::read(from)? {
            let reason = u8::read(from)?;
            let packets = u64::read(from)?;
            match DropReason::ALL.iter().find(|known| **known as u8 == reason) {
                Some(known) => counts.set(*known, packets),
                None => return refused(format!("there is no reason of drops of number {reason}")),
            }
        }
        Ok(counts)
    }
}

impl Form for Variable {
    fn write(&self, into: &mut Vec<u8>) {
        match *self {
            Variable::Integer(number) => {
                0u8.write(into);
                (number as u64).write(into);
            }
            Variable::Nanos(nanos) => {
                1u8.write(into);
                nanos.write(into);
            }
            Variable::Flag(flag) => {
                2u8.write(into);
                flag.write(into);
            }
            Variable::Unset => 3u8.write(into),
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Variable, Refused> {
        match u8::read(from)? {
            0 => Ok(Variable::Integer(u64::read(from)? as i64)),
            1 => Ok(Variable::Nanos(Form::read(from)?)),
            2 => Ok(Variable::Flag(Form::read(from)?)),
            3 => Ok(Variable::Unset),
            other => refused(format!("there is no kind of variable of number {other}")),
        }
    }
}

impl Form for (String, Variable) {
    fn write(&self, into: &mut Vec<u8>) {
        self.0.write(into);
        self.1.write(into);
    }

    fn read(from: &mut Reader<'_>) -> Result<(String, Variable), Refused> {
        Ok((Form::read(from)?, Form::read(from)?))
    }
}

/// The kinds of records.
const NODE: u8 = 0;
const CLASS: u8 = 1;
const SOJOURN: u8 = 2;

impl Form for Record {
    fn write(&self, into: &mut Vec<u8>) {
        match self {
            Record::Node(node) => {
                NODE.write(into);
                node.write(into);
            }
            Record::Class(class) => {
                CLASS.write(into);
                class.write(into);
            }
            Record::Sojourn { bucket, packets } => {
                SOJOURN.write(into);
                bucket.write(into);
                packets.write(into);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Record, Refused> {
        match u8::read(from)? {
            NODE => match NodeRecord::read(from)? {
                node if node.depth >= MOST_DEPTH => refused("a discipline is deeper than any tree"),
                node if (node.depth == 0) != node.class.is_none() => {
                    refused("a discipline is neither a root nor in a class")
                }
                node => Ok(Record::Node(Box::new(node))),
            },
            CLASS => Ok(Record::Class(Form::read(from)?)),
            SOJOURN => match (u16::read(from)?, u64::read(from)?) {
                (bucket, packets) if usize::from(bucket) < BUCKETS => Ok(Record::Sojourn { bucket, packets }),
                _ => refused("there is no such bucket of sojourn times"),
            },
            other => refused(format!("there is no record of number {other}")),
        }
    }
}

/// Reads the records of a part.
///
/// # Errors
/// If the bytes are not a part.
pub fn records(part: &[u8]) -> Result<Vec<Record>, Refused> {
    let mut from = Reader::new(part);
    let mut records = Vec::new();
    while !from.is_at_end() {
        records.push(Record::read(&mut from)?);
    }
    Ok(records)
}

/// The progress of a reading in the kernel. All its memory is allocated with it.
#[derive(Debug)]
pub struct Reading {
    walk: Walk,
    sojourns: Sojourns,
    /// The bucket that is written next. `None` before the root is read.
    bucket: Option<usize>,
    part: Vec<u8>,
}

impl Reading {
    /// Begins to read a queue.
    pub fn new(queue: &Queue) -> Reading {
        Reading {
            walk: Walk::with_room(MOST_DEPTH.into(), queue.widest()),
            sojourns: Sojourns::new(),
            bucket: None,
            part: Vec::with_capacity(PART + MORE),
        }
    }

    /// Returns the next part. It is empty behind the last one. Between two parts packets may come and go, but
    /// the tree must be the same.
    pub fn part(&mut self, queue: &Queue, now: Time) -> &[u8] {
        self.part.clear();
        let mut bucket = *self.bucket.get_or_insert_with(|| {
            // Together with the statistics of the root.
            self.sojourns.copy_from(queue.sojourns());
            0
        });
        let part = &mut self.part;
        if self.walk.go_on(queue.root(), &mut Writer { part, now }) {
            while !is_full(&self.part)
                && let Some((found, packets)) = self.sojourns.next(bucket)
            {
                let record = Record::Sojourn {
                    bucket: found as u16,
                    packets,
                };
                record.write(&mut self.part);
                bucket = found + 1;
            }
            self.bucket = Some(bucket);
        }
        &self.part
    }
}

fn is_full(part: &[u8]) -> bool {
    part.len() >= PART
}

/// Writes what a walk finds.
struct Writer<'w> {
    part: &'w mut Vec<u8>,
    now: Time,
}

impl Writer<'_> {
    /// Writes variables as `Vec<(String, Variable)>` is written. `each` calls its argument for each.
    fn variables(&mut self, each: impl FnOnce(&mut dyn FnMut(&'static str, Variable))) {
        let at = self.part.len();
        let mut count = 0u16;
        count.write(self.part);
        each(&mut |name, value| {
            count += 1;
            write_text(name, self.part);
            value.write(self.part);
        });
        self.part[at..at + 2].copy_from_slice(&count.to_le_bytes());
    }
}

impl Visitor for Writer<'_> {
    fn discipline(&mut self, found: &Found<'_>) {
        NODE.write(self.part);
        (found.depth as u8).write(self.part);
        found.class.write(self.part);
        found.host.is_some().write(self.part);
        if let Some(host) = &found.host {
            let at = self.part.len();
            0u16.write(self.part);
            // A vector takes all bytes.
            let _ = core::fmt::Write::write_fmt(&mut Text(self.part), format_args!("{host}"));
            let length = (self.part.len() - at - 2) as u16;
            self.part[at..at + 2].copy_from_slice(&length.to_le_bytes());
        }
        self.now.nanos().write(self.part);
        write_text(found.discipline.name(), self.part);
        found.statistics.write(self.part);
        self.variables(|add| found.discipline.visit_variables(add));
    }

    fn class(&mut self, state: &ClassState<'_>) {
        CLASS.write(self.part);
        state.minor.write(self.part);
        self.now.nanos().write(self.part);
        state.sent.write(self.part);
        state.overlimits.write(self.part);
        self.variables(|add| state.variables.iter().for_each(|(name, value)| add(name, *value)));
    }

    fn is_over(&mut self) -> bool {
        is_full(self.part)
    }
}

/// Bytes as a text that is written without memory of its own.
struct Text<'t>(&'t mut Vec<u8>);

impl core::fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
