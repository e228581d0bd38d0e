//! The lines of a trace.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use fairgate::ClassId;
use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Deserializer, de};

use crate::error::{Error, Mistake};

/// More bytes than any line has; bounds what a damaged file makes us read.
const LONGEST_LINE: u64 = 64 << 10;

/// Times below this leave room for sums of them: 146 years in ns.
const LATEST: u64 = 1 << 62;

/// The longest packet, bytes: twice that of any segmentation offload.
const LONGEST_PACKET: u32 = 1 << 20;

/// One line.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(crate) enum Operation {
    /// The kernel's clock at `t` = 0.
    Origin {
        /// ns.
        ktime_ns: u64,
    },
    /// For the reader.
    Note {},
    /// The parameters as the kernel holds them, for disciplines that compute with derived ones.
    Params {},
    /// A packet was handed in.
    Enq(Enqueue),
    /// A dequeue gave a packet.
    Deq(Dequeue),
    /// A dequeue gave nothing.
    None(Nothing),
}

/// `enq`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Enqueue {
    /// When, ns.
    pub(crate) t: u64,
    /// The generator's label.
    pub(crate) flow: u64,
    /// `skb->priority`: a class, or with major number 0 a priority.
    #[serde(deserialize_with = "class_id")]
    pub(crate) prio: ClassId,
    /// Bytes on the wire.
    pub(crate) size: u32,
    /// The packet's number.
    pub(crate) seq: u64,
    /// The ECN bits as it arrives.
    pub(crate) ecn: u8,
    /// Bytes of memory.
    pub(crate) mem: u32,
    /// The return value.
    pub(crate) rc: u32,
    /// The state afterwards.
    #[serde(flatten)]
    pub(crate) after: Recorded,
}

/// `deq`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Dequeue {
    /// When, ns.
    pub(crate) t: u64,
    /// The packet's number.
    pub(crate) seq: u64,
    /// The ECN bits as it leaves.
    pub(crate) ecn: u8,
    /// The generator's label.
    pub(crate) flow: u64,
    /// Bytes on the wire.
    pub(crate) size: u32,
    /// The state afterwards.
    #[serde(flatten)]
    pub(crate) after: Recorded,
}

/// `none`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Nothing {
    /// When, ns.
    pub(crate) t: u64,
    /// When the watchdog expires, ns; -1 for never.
    pub(crate) wd: i64,
    /// The state afterwards.
    #[serde(flatten)]
    pub(crate) after: Recorded,
}

/// What was recorded after an operation.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Recorded {
    /// Numbers of the packets dropped by it.
    #[serde(default)]
    pub(crate) drops: Vec<u64>,
    /// Packets queued.
    pub(crate) qlen: u64,
    /// Bytes queued.
    pub(crate) backlog: u64,
    /// The discipline's own variables, by the kernel's names.
    #[serde(flatten)]
    pub(crate) variables: BTreeMap<String, i64>,
}

/// `major:minor`, hexadecimal.
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

/// The operations of a trace, one at a time, with their line numbers.
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
    /// If there is no such file, or it may not be read.
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

    /// A mistake in the line read last.
    pub(crate) fn error(&self, mistake: Mistake) -> Error {
        mistake.in_line(&self.path, self.line)
    }

    /// The next line with its number; `None` at the end.
    ///
    /// # Errors
    /// If the data is damaged, or the line is no operation.
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

    /// Refuses what no recording can hold and what would overflow.
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
            return impossible("t", t, "below 2^62, and not before the operation above");
        }
        if ecn > 3 {
            return impossible("ecn", ecn.into(), "0 to 3");
        }
        self.last = t;
        Ok(())
    }
}

/// serde_json counts lines in the line that it was given: that would read as a line of the file.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(position) => text[..position].to_owned(),
        None => text,
    }
}
