//! The options of a comparison with a capture, and why it fails.

use std::fmt;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fairgate::Rate;
use fairgate::classify::Prefix;
use fairgate_capture::{Capture, CaptureError};
use fairgate_config::BuildError;
use miette::Diagnostic;
use thiserror::Error;

use super::direction::Direction;
use crate::output::Format;

/// Where a capture is.
#[derive(Clone)]
pub(super) enum Source {
    File(PathBuf),
    #[cfg_attr(
        not(feature = "live"),
        expect(dead_code, reason = "of the last packets of a run")
    )]
    Memory {
        name: String,
        bytes: Arc<[u8]>,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => path.display().fmt(f),
            Source::Memory { name, .. } => f.write_str(name),
        }
    }
}

impl Source {
    pub(super) fn open(&self) -> Result<Capture, TraceError> {
        let capture = match self {
            Source::File(path) => Capture::open(path),
            Source::Memory { bytes, .. } => Capture::from_reader(Box::new(Cursor::new(Arc::clone(bytes)))),
        };
        capture.map_err(|source| TraceError::of(self, source))
    }
}

/// The options of the user.
pub(super) struct Options {
    pub(super) source: Source,
    pub(super) rate: Rate,
    pub(super) direction: Direction,
    pub(super) local: Vec<(String, Prefix)>,
    pub(super) from: Vec<(String, Prefix)>,
    pub(super) to: Vec<(String, Prefix)>,
    /// Replays only this much of the capture.
    pub(super) duration: Option<Duration>,
    /// The number of flows that are shown one by one.
    pub(super) top: usize,
    /// The longest IP packet on the link.
    pub(super) mtu: u32,
    /// Whether to use what precedes a defect.
    pub(super) partial: bool,
    pub(super) seed: u64,
    /// Whether to show progress.
    pub(super) format: Format,
}

#[derive(Debug, Error, Diagnostic)]
pub(super) enum TraceError {
    #[error("can't read all of {file}")]
    #[diagnostic(help("`--partial` uses the packets before the damage"))]
    Broken { file: String, source: CaptureError },
    #[error("can't read {file}")]
    Unusable { file: String, source: CaptureError },
    #[error("{file} contains no packets")]
    #[diagnostic(help("capture at least some seconds of traffic: tcpdump -i IFACE -s 96 -w my.pcap"))]
    NoPackets { file: String },
    #[error("none of the {packets} packets of {file} is replayed ({view})")]
    #[diagnostic(help(
        "`--direction all` replays every packet; `--local PREFIX` sets the local side; `--from` and `--to` \
         select by address"
    ))]
    NothingTaken {
        file: String,
        packets: u64,
        view: String,
    },
    #[error(
        "the time of packet {packet} of {file} is more than {} s after that of the first, without the pauses \
         of more than a day: times end there",
        fairgate::Time::LAST.nanos() / 1_000_000_000
    )]
    #[diagnostic(help("the times of the capture are wrong; `--duration` replays its beginning"))]
    TooLate { file: String, packet: u64 },
    #[error(transparent)]
    Build(BuildError),
    #[error("the queue of `{discipline}` reached {packets} packets, which is the maximum here")]
    #[diagnostic(help("give it a lower limit, or give the link a rate closer to that of the traffic"))]
    QueueTooLong { discipline: String, packets: u32 },
}

impl TraceError {
    pub(super) fn of(file: &Source, source: CaptureError) -> TraceError {
        let file = file.to_string();
        match source.leaves_a_sound_beginning() {
            true => TraceError::Broken { file, source },
            false => TraceError::Unusable { file, source },
        }
    }
}
