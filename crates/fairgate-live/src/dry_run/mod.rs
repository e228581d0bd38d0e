//! A dry run: frames come from captures and go to captures, in the time of the captures.
//!
//! ```text
//!   source   the frames that an end receives, from a capture
//!   merged   packets that an offload had merged before they were captured
//!   sink     the frames that an end sends, into a capture
//! ```
//!
//! Frames take the same way as live: [`Direction`] with its store, tree and delay line. Only the ends and the
//! clock differ. The clock jumps to the next arrival or departure, so a day takes as long as its packets
//! need. An end takes frames as fast as its tree lets them go.

mod merged;
mod sink;
mod source;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use fairgate::Time;
use fairgate_capture::CaptureError;
use fairgate_run_api::{ChangesStatus, Detail, ProcessorStatus, Status};
use miette::Diagnostic;
use nix::errno::Errno;
use thiserror::Error;

use crate::bypass::Bypass;
use crate::config::Plan;
use crate::direction::{Direction, TooLong, Turn};
use crate::error::LiveError;
use crate::ethernet::longest_frame;
use crate::fitness;
use crate::randomness::Randomness;
use crate::status::{Board, DirectionReading, Estimators, RunReading, TreeReading, status_of};
use crate::sys::frames::FrameStore;
use sink::Sink;
use source::Source;

pub use source::CapturedPacket;

/// The MTU of both ends, bytes.
const MTU: usize = 1500;

/// Each pass through the captures begins this long after the last arrival of the pass before, ns.
const BETWEEN_PASSES: u64 = 1_000_000;

/// Where frames come from and go to. The first of each pair is for the left end, or for the network's side of
/// one interface.
#[derive(Debug, Default)]
pub struct Captures {
    /// The capture of the frames that an end receives. Without one, it receives nothing.
    pub received: [Option<PathBuf>; 2],
    /// The file for the frames that an end sends, as pcap. Without one, they are only counted.
    pub sent: [Option<File>; 2],
    /// How often the captures are read, at least once.
    pub passes: u64,
}

/// Why a dry run ended.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum DryRunError {
    /// The trees can't be built, or do not suit the frames.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Plan(#[from] LiveError),
    /// A capture can't be read.
    #[error("can't read {path}")]
    Capture {
        /// The capture.
        path: String,
        /// What is wrong with it.
        source: CaptureError,
    },
    /// A capture has packets without an Ethernet header.
    #[error("{packet} has no Ethernet header: its link type is {link}")]
    #[diagnostic(help(
        "capture on an Ethernet interface; `fairgate compare --trace` reads captures of other links"
    ))]
    NotEthernet {
        /// The packet.
        packet: CapturedPacket,
        /// The link type of the packet.
        link: String,
    },
    /// A packet arrives later than times can be.
    #[error(
        "the time of {packet} is {time} after 1970, and this pass adds {}: that is after {}, the latest time \
         of a dry run",
        Time::from_nanos(*.later),
        Time::LAST
    )]
    #[diagnostic(help(
        "if the times of the capture are wrong, set them: editcap -t OFFSET; if not, read it fewer times \
         (`--repeat`)"
    ))]
    TooLate {
        /// The packet.
        packet: CapturedPacket,
        /// Its time in the capture.
        time: Time,
        /// What is added in this pass, ns.
        later: u64,
    },
    /// A tree never sends some of its packets.
    #[error(
        "{from} -> {to} still holds {held} packets after all others were sent, and sends none before {}, the \
         latest time of a dry run; the last to arrive was {packet}, at {arrived}",
        Time::LAST
    )]
    #[diagnostic(help(
        "give the tree a higher rate, or correct the times of the capture: editcap -t OFFSET"
    ))]
    Held {
        /// The end that receives the packets.
        from: String,
        /// The end that would send them.
        to: String,
        /// How many packets are queued.
        held: u64,
        /// The last packet that arrived.
        packet: CapturedPacket,
        /// When it arrived.
        arrived: Time,
    },
    /// Translations, of which captures say nothing.
    #[error("`nat` looks connections up in this machine's table, which knows none of those of a capture")]
    #[diagnostic(help("remove `nat` for a dry run: hosts behind the router are one then"))]
    Nat,
    /// Several workers.
    #[error(
        "a dry run has one worker, but `workers` in [run] is {workers}: several are threads, which have no \
         common time but the clock's"
    )]
    #[diagnostic(help("remove `workers` and `shard_by` from [run], or simulate: links have `workers`, too"))]
    Workers {
        /// The number of workers.
        workers: u16,
    },
    /// A capture has nothing to forward.
    #[error("{path} contains no packets")]
    #[diagnostic(help("capture some seconds of traffic: tcpdump -i IFACE -Q in -w received.pcap"))]
    NoPackets {
        /// The capture.
        path: String,
    },
    /// A frame can't be written.
    #[error("can't write the frames that `{to}` sends")]
    #[diagnostic(help("make room, or choose another file"))]
    Unwritten {
        /// The end that sends them.
        to: String,
        /// The error of the file.
        source: std::io::Error,
    },
}

/// Counts what a dry run did to frames of its captures before they were forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Adapted {
    /// Frames that were captured in part. Zeros replace their missing bytes.
    pub completed: u64,
    /// Frames that an offload had merged from several packets. They were cut again.
    pub cut: u64,
    /// Frames of a capture whose time is before that of a frame before them. They arrive at the latest time
    /// so far.
    pub out_of_order: u64,
    /// The greatest difference between such a frame's time and its arrival, ns.
    pub furthest_back: u64,
}

/// A run from captures to captures, in the time of the captures. Frames take the same way as between
/// interfaces.
pub struct DryRun {
    plan: Arc<Plan>,
    directions: [Direction; 2],
    estimators: [Estimators; 2],
    sources: [Option<Source>; 2],
    sinks: [Sink; 2],
    now: Time,
    started: Time,
    last_arrival: Time,
    /// The end that received the last frame, and the frame's number in its capture.
    last_packet: (usize, u64),
    passes_left: u64,
}

/// Prints the name of the type only.
impl std::fmt::Debug for DryRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DryRun").finish_non_exhaustive()
    }
}

/// Returns what a lack of memory for frames is reported as.
fn no_memory() -> impl FnOnce(Errno) -> LiveError {
    LiveError::system("getting memory for frames")
}

impl DryRun {
    /// Builds the trees of `plan` and opens the captures. `seed` is as of [`Bridge::open`].
    ///
    /// [`Bridge::open`]: crate::Bridge::open
    ///
    /// # Errors
    /// Fails if the plan has several workers or `nat`, if a capture can't be read or has no packets, or if a
    /// tree can't be built or drops every full-sized frame of an MTU of 1500 bytes.
    pub fn open(plan: &Plan, captures: Captures, seed: Option<u64>) -> Result<DryRun, DryRunError> {
        if plan.workers > 1 {
            return Err(DryRunError::Workers {
                workers: plan.workers,
            });
        }
        if plan.nat != [false; 2] {
            return Err(DryRunError::Nat);
        }
        fitness::check(plan, MTU).map_err(LiveError::from)?;
        let mut randomness = Randomness::new(seed);
        let mut direction = |side| {
            let store = FrameStore::new(plan.frames, longest_frame(MTU)).map_err(no_memory())?;
            Direction::of_plan(plan, side, store, &mut randomness, None)
        };
        let directions = [direction(0)?, direction(1)?];
        let [left, right] = captures.received;
        let source = |path: Option<PathBuf>| path.map(|path| Source::open(path, MTU)).transpose();
        let sources = [source(left)?, source(right)?];
        let [left, right] = captures.sent;
        let unwritten = |side: usize| {
            let to = plan.ends[side].title().to_owned();
            |source| DryRunError::Unwritten { to, source }
        };
        let sinks = [
            Sink::new(left).map_err(unwritten(0))?,
            Sink::new(right).map_err(unwritten(1))?,
        ];
        let arrivals = sources.iter().flatten().filter_map(Source::next_arrival);
        let started = arrivals.min().unwrap_or(Time::ZERO);
        Ok(DryRun {
            plan: Arc::new(plan.clone()),
            directions,
            estimators: [0, 1].map(|side: usize| Estimators::of(&plan.queues[side])),
            sources,
            sinks,
            now: started,
            started,
            last_arrival: started,
            last_packet: (0, 0),
            passes_left: captures.passes.max(1) - 1,
        })
    }

    /// Goes on for about `events` arrivals and departures. Returns false at the end: when all frames have
    /// arrived, and those that may leave have left.
    ///
    /// # Errors
    /// Fails if a capture is damaged or has packets without an Ethernet header, if a frame can't be written,
    /// or if a time is later than [`Time::LAST`]: a packet's in the capture, or that of the next departure.
    pub fn go_on(&mut self, events: usize) -> Result<bool, DryRunError> {
        for _ in 0..events {
            let arrival = match self.next_arrival() {
                None if self.passes_left > 0 => {
                    self.begin_pass()?;
                    self.next_arrival()
                }
                arrival => arrival,
            };
            let departures = self.directions.iter().filter_map(Direction::next_departure);
            let Some(next) = departures.chain(arrival).min() else {
                return Ok(false);
            };
            if next > Time::LAST {
                return Err(self.held());
            }
            self.now = self.now.max(next);
            self.look_at_estimators();
            for side in 0..2 {
                self.receive(side)?;
            }
            for from in 0..2 {
                self.send(from)?;
            }
        }
        Ok(true)
    }

    /// Writes what is left of the captures.
    ///
    /// # Errors
    /// Fails if they can't be written.
    pub fn finish(&mut self) -> Result<(), DryRunError> {
        for (side, sink) in self.sinks.iter_mut().enumerate() {
            let to = || self.plan.ends[side].title().to_owned();
            sink.finish()
                .map_err(|source| DryRunError::Unwritten { to: to(), source })?;
        }
        Ok(())
    }

    /// Returns the status, with all counters since the first frame.
    pub fn status(&mut self) -> Status {
        let names = [0, 1].map(|side: usize| self.plan.ends[side].title());
        let directions = [0, 1].map(|from: usize| {
            let direction = &mut self.directions[from];
            let mut reading = DirectionReading::new(direction, self.now, names[from], names[1 - from], 0);
            reading.tree = TreeReading::at(self.now, direction.link.root());
            reading.rates = self.estimators[from].rates();
            reading
        });
        let reading = RunReading {
            plan: Arc::clone(&self.plan),
            changes: ChangesStatus::default(),
            isolated: false,
            processor: ProcessorStatus::default(),
            started: self.started,
            at: self.now,
            sent: Vec::new(),
            board: Board::default(),
            bypass: Bypass::default(),
            nat: None,
            directions,
        };
        status_of(reading, Detail::All)
    }

    /// Returns what was done to frames of the captures before they were forwarded.
    pub fn adapted(&self) -> Adapted {
        let mut all = Adapted::default();
        for source in self.sources.iter().flatten() {
            all.completed += source.adapted.completed;
            all.cut += source.adapted.cut;
            all.out_of_order += source.adapted.out_of_order;
            all.furthest_back = all.furthest_back.max(source.adapted.furthest_back);
        }
        all
    }

    /// Returns how many bytes of the captures were read in this pass, and how many they have if all of them
    /// are regular files.
    pub fn position(&self) -> (u64, Option<u64>) {
        let sources = || self.sources.iter().flatten();
        (
            sources().map(Source::position).sum(),
            sources().map(Source::size).sum(),
        )
    }

    /// Returns how often the captures will be read from their beginning again.
    pub fn passes_left(&self) -> u64 {
        self.passes_left
    }

    /// Takes the samples that are due.
    fn look_at_estimators(&mut self) {
        for (estimators, direction) in self.estimators.iter_mut().zip(&self.directions) {
            while estimators.due().is_some_and(|due| due <= self.now) {
                estimators.look_at(direction.link.root(), self.now);
            }
        }
    }

    fn next_arrival(&self) -> Option<Time> {
        self.sources
            .iter()
            .flatten()
            .filter_map(Source::next_arrival)
            .min()
    }

    /// Returns the error for packets that their tree never sends.
    #[cold]
    fn held(&self) -> DryRunError {
        let queued = |from: &usize| self.directions[*from].link.backlog().packets;
        let from = (0..2).max_by_key(queued).expect("there are two");
        let (side, packet) = self.last_packet;
        let names = [0, 1].map(|side: usize| self.plan.ends[side].title().to_owned());
        DryRunError::Held {
            from: names[from].clone(),
            to: names[1 - from].clone(),
            held: queued(&from),
            packet: CapturedPacket {
                path: self.sources[side].as_ref().map_or(String::new(), Source::path),
                packet,
            },
            arrived: self.last_arrival,
        }
    }

    /// Reads both captures from their beginning, with later times.
    #[cold]
    fn begin_pass(&mut self) -> Result<(), DryRunError> {
        self.passes_left -= 1;
        let later = (self.last_arrival - self.started).saturating_add(BETWEEN_PASSES);
        for source in self.sources.iter_mut().flatten() {
            source.begin_again(later)?;
        }
        Ok(())
    }

    /// Takes in the frames that have arrived at an end.
    fn receive(&mut self, side: usize) -> Result<(), DryRunError> {
        let Some(source) = &mut self.sources[side] else {
            return Ok(());
        };
        let direction = &mut self.directions[side];
        while let Some(arrival) = source.next_arrival().filter(|arrival| *arrival <= self.now) {
            direction.link.refill();
            let received = source.front();
            if let Err(TooLong) = direction.accept(&received, self.now) {
                direction.grow(received.length).map_err(no_memory())?;
                continue;
            }
            self.last_arrival = arrival;
            self.last_packet = (side, source.number());
            source.release()?;
        }
        Ok(())
    }

    /// Sends what may leave now.
    fn send(&mut self, from: usize) -> Result<(), DryRunError> {
        let sink = &mut self.sinks[1 - from];
        sink.now = self.now;
        loop {
            match self.directions[from].send(self.now, 0, sink) {
                Ok(Turn::More) => {}
                Ok(Turn::Done | Turn::Waiting | Turn::Blocked) => return Ok(()),
                Err(errno) => {
                    return Err(DryRunError::Unwritten {
                        to: self.plan.ends[1 - from].title().to_owned(),
                        source: sink.take_error().unwrap_or_else(|| errno.into()),
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
