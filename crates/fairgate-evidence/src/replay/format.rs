//! Reads the lines of a trace.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use fairgate::ClassId;
use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Deserializer, de};

use crate::replay::error::{Error, Mistake};

/// More bytes than any valid line has. It limits how much is read from a damaged file.
const LONGEST_LINE: u64 = 64 << 10;

/// Times must be below this, so that sums of them don't overflow: 146 years in ns.
const LATEST: u64 = 1 << 62;

/// The longest packet, bytes: twice that of any segmentation offload.
const LONGEST_PACKET: u32 = 1 << 20;

/// An operation: one line of the trace.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(crate) enum Operation {
    /// The kernel's clock at `t` = 0.
    Origin {
        /// ns.
        ktime_ns: u64,
    },
    /// A comment for readers.
    Note {},
    /// The parameters in the kernel's representation, for disciplines that compute with derived ones.
    Params {},
    /// A packet was enqueued.
    Enq(Enqueue),
    /// A dequeue returned a packet.
    Deq(Dequeue),
    /// A dequeue returned no packet.
    None(Nothing),
}

/// The fields of `enq`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Enqueue {
    /// The time, ns.
    pub(crate) t: u64,
    /// The flow, as labelled by the traffic generator.
    pub(crate) flow: u64,
    /// `skb->priority`: a class, or a priority if the major number is 0.
    #[serde(deserialize_with = "class_id")]
    pub(crate) prio: ClassId,
    /// The length of the packet, bytes.
    pub(crate) size: u32,
    /// The packet's number.
    pub(crate) seq: u64,
    /// The ECN bits on arrival.
    pub(crate) ecn: u8,
    /// The memory that the packet uses, bytes.
    pub(crate) mem: u32,
    /// The return value of the enqueue function.
    pub(crate) rc: u32,
    /// The state afterwards.
    #[serde(flatten)]
    pub(crate) after: Recorded,
}

/// The fields of `deq`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Dequeue {
    /// The time, ns.
    pub(crate) t: u64,
    /// The packet's number.
    pub(crate) seq: u64,
    /// The ECN bits on departure.
    pub(crate) ecn: u8,
    /// The flow, as labelled by the traffic generator.
    pub(crate) flow: u64,
    /// The length of the packet, bytes.
    pub(crate) size: u32,
    /// The state afterwards.
    #[serde(flatten)]
    pub(crate) after: Recorded,
}

/// The fields of `none`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Nothing {
    /// The time, ns.
    pub(crate) t: u64,
    /// The time at which the watchdog expires, ns; -1 for never.
    pub(crate) wd: i64,
    /// The state afterwards.
    #[serde(flatten)]
    pub(crate) after: Recorded,
}

/// The state that was recorded after an operation.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Recorded {
    /// The numbers of the packets that the operation dropped.
    #[serde(default)]
    pub(crate) drops: Vec<u64>,
    /// The number of packets queued.
    pub(crate) qlen: u64,
    /// The number of bytes queued.
    pub(crate) backlog: u64,
    /// The variables of the discipline, by the kernel's names.
    #[serde(flatten)]
    pub(crate) variables: BTreeMap<String, i64>,
}

/// Parses `major:minor` in hexadecimal.
fn class_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ClassId, D::Error> {
    let text = String::deserialize(deserializer)?;
    let number = |text| u16::from_str_radix(text, 16).ok();
    text.split_once(':')
        .and_then(|(major, minor)| Some(ClassId::new(number(major)?, number(minor)?)))
        .ok_or_else(|| {
            de::Error::custom(format!(
                "`prio` is `{text}`, but must be major:minor in hexadecimal"
            ))
        })
}

/// Reads the operations of a trace one at a time, with their line numbers.
pub(crate) struct Operations {
    path: PathBuf,
    lines: BufReader<MultiGzDecoder<BufReader<File>>>,
    line: u64,
    /// The time of the last operation, ns.
    last: u64,
    buffer: Vec<u8>,
}

impl Operations {
    /// Opens `TRACE.jsonl.gz`.
    ///
    /// # Errors
    /// Returns an error if the file doesn't exist or can't be read.
    pub(crate) fn open(path: &Path) -> Result<Operations, Error> {
        let file = File::open(path).map_err(|error| Mistake::Unreadable(error).in_file(path))?;
        Ok(Operations {
            path: path.to_owned(),
            lines: BufReader::new(MultiGzDecoder::new(BufReader::new(file))),
            line: 0,
            last: 0,
            buffer: Vec::new(),
        })
    }

    /// Returns an error in the last line that was read.
    pub(crate) fn error(&self, mistake: Mistake) -> Error {
        mistake.in_line(&self.path, self.line)
    }

    /// Returns the next operation with its line number, or `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the data are damaged, or the line is not an operation.
    pub(crate) fn read(&mut self) -> Result<Option<(u64, Operation)>, Error> {
        self.line += 1;
        self.buffer.clear();
        let read = (&mut self.lines)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut self.buffer)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                    self.error(Mistake::Damaged(error))
                }
                _ => self.error(Mistake::Unreadable(error)),
            })?;
        if read == 0 {
            return match self.line {
                1 => Err(Mistake::Empty.in_file(&self.path)),
                _ => Ok(None),
            };
        }
        if read as u64 == LONGEST_LINE {
            return Err(self.error(Mistake::LongLine { limit: LONGEST_LINE }));
        }
        let operation = serde_json::from_slice(&self.buffer)
            .map_err(|error| self.error(Mistake::Json(without_position(&error))))?;
        self.check(&operation).map_err(|mistake| self.error(mistake))?;
        Ok(Some((self.line, operation)))
    }

    /// Rejects values that no trace can have and that would overflow.
    fn check(&mut self, operation: &Operation) -> Result<(), Mistake> {
        let impossible = |field, value: u64, rule| {
            Err(Mistake::Impossible {
                field,
                value: value.to_string(),
                rule,
            })
        };
        let (t, ecn) = match operation {
            Operation::Origin { ktime_ns } if *ktime_ns >= LATEST => {
                return impossible("ktime_ns", *ktime_ns, "below 2^62");
            }
            Operation::Origin { ktime_ns } if self.line != 1 => {
                return impossible("ktime_ns", *ktime_ns, "in the first line only");
            }
            Operation::Origin { .. } | Operation::Note { .. } | Operation::Params {} => return Ok(()),
            Operation::Enq(enqueue) if !(1..=LONGEST_PACKET).contains(&enqueue.size) => {
                return impossible("size", enqueue.size.into(), "1 to 1048576");
            }
            Operation::Enq(enqueue) => (enqueue.t, enqueue.ecn),
            Operation::Deq(dequeue) => (dequeue.t, dequeue.ecn),
            Operation::None(nothing) => (nothing.t, 0),
        };
        if t < self.last || t >= LATEST {
            return impossible("t", t, "below 2^62, and not before the previous operation");
        }
        if ecn > 3 {
            return impossible("ecn", ecn.into(), "0 to 3");
        }
        self.last = t;
        Ok(())
    }
}

/// Returns the text of the error without the position. serde_json counts lines within the one line that it
/// gets, which would look like a line of the file.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(position) => text[..position].to_owned(),
        None => text,
    }
}
