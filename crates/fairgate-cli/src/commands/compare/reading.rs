//! Reads a capture for the links, once from front to back, so that it can come through a pipe.
//!
//! The first packets are kept until they have shown which side of the link is local. Then they are passed on,
//! and the rest follows as it is read.

use std::time::Duration;

use fairgate::balance::{self, Imbalance};
use fairgate::flow::Dissection;
use fairgate::{Acknowledgement, FlowHasher, Time};
use fairgate_capture::{Capture, CaptureError, Counts, Record, TcpSegment};
use indicatif::ProgressBar;

use super::capture::{Options, TraceError};
use super::direction::{Direction, Side, Survey, View};
use super::flows::FlowTable;
use super::offload::{self, Pieces};
use super::open_loop::Arrival;
use crate::progress;

/// The number of packets at the beginning of the capture that determine the local side.
const SURVEYED: usize = 50_000;

/// Every packet counts as an Ethernet frame without check sequence, whatever the link layer of the capture.
pub(super) const ETHERNET_HEADER: u32 = 14;

/// The longest pause between two packets that is taken for real. After a longer one a clock was set, or two
/// captures were joined.
const LONGEST_PAUSE: u64 = 86_400 * SECOND;

const SECOND: u64 = 1_000_000_000;

/// The results of reading a capture, besides the arrivals.
pub(super) struct Reading {
    pub(super) view: View,
    pub(super) counts: Counts,
    pub(super) flows: FlowTable,
    /// Packets of the capture, in the wanted part of it.
    pub(super) packets: u64,
    pub(super) taken: u64,
    pub(super) opposite: u64,
    pub(super) elsewhere: u64,
    /// Packets of the capture that were several packets on the link.
    pub(super) joined: u64,
    /// Packets on the link.
    pub(super) on_line: u64,
    pub(super) defect: Option<String>,
    pub(super) pauses: Pauses,
}

/// Pauses that are too long to be real. They are replayed as one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pauses {
    pub(super) count: u64,
    pub(super) longest_nanos: u64,
    /// The number of packets before the longest pause.
    pub(super) behind: u64,
}

/// The time since the first packet.
#[derive(Default)]
struct Clock {
    /// The time at which the latest packet was captured.
    captured: Option<Time>,
    now: Time,
    packets: u64,
    pauses: Pauses,
}

/// A captured packet.
#[derive(Clone, Copy)]
pub(super) struct Captured {
    /// Time since the first packet.
    pub(super) time: Time,
    pub(super) dissection: Dissection,
    /// The TCP header, if it was captured.
    pub(super) segment: Option<TcpSegment>,
    /// What it acknowledges, if a discipline reads that.
    acknowledgement: Option<Acknowledgement>,
    /// Length of the frame on the link, in bytes.
    frame_length: u32,
    /// Length of the IP packet, in bytes.
    ip_length: Option<u32>,
    /// How it was cut on the link, if it was not one packet there.
    pieces: Option<Pieces>,
}

/// The packets of a capture, in the part that the user wants.
pub(super) struct Packets<'a> {
    options: &'a Options,
    reads_acknowledgements: bool,
    pub(super) capture: Capture,
    pub(super) bar: ProgressBar,
    clock: Clock,
    pub(super) defect: Option<String>,
    has_ended: bool,
}

/// Reads the capture and passes the replayed packets to `deliver`, which returns whether it wants more. They
/// say what they acknowledge if `reads_acknowledgements`.
pub(super) fn read(
    options: &Options,
    reads_acknowledgements: bool,
    mut deliver: impl FnMut(Arrival) -> bool,
) -> Result<Reading, TraceError> {
    let mut packets = Packets {
        reads_acknowledgements,
        ..Packets::open(options)?
    };
    let (view, held) = match (options.from.as_slice(), options.to.as_slice()) {
        ([], []) => packets.survey(options.direction)?,
        (from, to) => {
            let view = View::Between {
                from: from.to_vec(),
                to: to.to_vec(),
            };
            (view, Vec::new())
        }
    };
    let hasher = FlowHasher::new([options.seed, 0]);
    let mut reading = Reading {
        view,
        counts: Counts::default(),
        flows: FlowTable::default(),
        packets: 0,
        taken: 0,
        opposite: 0,
        elsewhere: 0,
        joined: 0,
        on_line: 0,
        defect: None,
        pauses: Pauses::default(),
    };
    let mut wanted = held
        .into_iter()
        .all(|packet| reading.take(&packet, &hasher, &mut deliver));
    while wanted && let Some(packet) = packets.next()? {
        wanted = reading.take(&packet, &hasher, &mut deliver);
    }
    reading.counts = packets.capture.counts();
    reading.pauses = packets.pauses();
    reading.defect = packets.defect;
    packets.bar.finish_and_clear();
    Ok(reading)
}

impl Packets<'_> {
    pub(super) fn open(options: &Options) -> Result<Packets<'_>, TraceError> {
        let capture = options.source.open()?;
        Ok(Packets {
            bar: progress::bytes(capture.size(), options.format),
            options,
            reads_acknowledgements: false,
            capture,
            clock: Clock::default(),
            defect: None,
            has_ended: false,
        })
    }

    /// Reads the beginning of the capture, and finds out which side is local. Returns the view of this
    /// direction, and the packets that were read.
    pub(super) fn survey(&mut self, direction: Direction) -> Result<(View, Vec<Captured>), TraceError> {
        let mut survey = Survey::default();
        let mut held = Vec::new();
        while held.len() < SURVEYED
            && let Some(packet) = self.next()?
        {
            survey.add(&packet.dissection.key, packet.frame_length);
            held.push(packet);
        }
        Ok((survey.view(direction, &self.options.local), held))
    }

    pub(super) fn pauses(&self) -> Pauses {
        self.clock.pauses
    }

    /// Returns the next packet. Returns none at the end of the file, at the end of the duration that the user
    /// wants, or at a defect if the user accepts it.
    pub(super) fn next(&mut self) -> Result<Option<Captured>, TraceError> {
        if self.has_ended {
            return Ok(None);
        }
        let packet = match self.capture.next_record() {
            Ok(Some(record)) => {
                let time = self.clock.read(record.time);
                if time > Time::LAST {
                    return Err(TraceError::TooLate {
                        file: self.options.source.to_string(),
                        packet: self.clock.packets,
                    });
                }
                is_within(time, self.options.duration).then(|| {
                    let mut captured = Captured::of(&record, time, self.options.mtu);
                    if self.reads_acknowledgements {
                        captured.acknowledgement = captured.dissection.acknowledgement(record.data);
                    }
                    captured
                })
            }
            Ok(None) => None,
            Err(error) if self.options.partial && error.leaves_a_sound_beginning() => {
                self.defect = Some(described(&error));
                None
            }
            Err(error) => return Err(TraceError::of(&self.options.source, error)),
        };
        self.has_ended = packet.is_none();
        if self.capture.counts().packets.is_multiple_of(2048) {
            self.bar.set_position(self.capture.position());
        }
        Ok(packet)
    }
}

impl Clock {
    /// Returns the time at which a packet arrives that was captured at `time`. `time` never decreases.
    fn read(&mut self, time: Time) -> Time {
        let before = self.captured.replace(time).unwrap_or(time);
        let pause = time - before;
        if pause <= LONGEST_PAUSE {
            self.now += pause;
        } else {
            self.now += SECOND;
            self.pauses.count += 1;
            if pause > self.pauses.longest_nanos {
                (self.pauses.longest_nanos, self.pauses.behind) = (pause, self.packets);
            }
        }
        self.packets += 1;
        self.now
    }
}

fn is_within(time: Time, duration: Option<Duration>) -> bool {
    duration.is_none_or(|most| u128::from(time.nanos()) < most.as_nanos())
}

/// Returns an error with its cause in one line.
fn described(error: &CaptureError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

impl Captured {
    fn of(record: &Record, time: Time, mtu: u32) -> Captured {
        let headers = record.headers();
        let protocol = headers.dissection.key.protocol;
        Captured {
            time,
            dissection: headers.dissection,
            segment: headers.packet.as_ref().and_then(TcpSegment::of),
            acknowledgement: None,
            frame_length: record.length,
            ip_length: headers.packet.map(|packet| packet.length),
            pieces: headers
                .packet
                .and_then(|packet| offload::cut(packet.captured, packet.length, protocol, mtu)),
        }
    }

    /// Returns the lengths of the packets on the link.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u32> + use<> {
        // Without an IP header there is nothing to subtract: the frame counts as it is.
        let whole = self
            .ip_length
            .map_or(self.frame_length, |length| ETHERNET_HEADER + length);
        let (full, full_length, last) = match self.pieces {
            None => (0, 0, Some(whole)),
            Some(pieces) => (
                pieces.full,
                ETHERNET_HEADER + pieces.full_length,
                (pieces.last_length > 0).then_some(ETHERNET_HEADER + pieces.last_length),
            ),
        };
        std::iter::repeat_n(full_length, full as usize).chain(last)
    }
}

impl Reading {
    /// Checks that every packet is counted once.
    pub(super) fn check(&self) -> Result<(), Imbalance> {
        balance::of(
            "the capture",
            "packets",
            ("read", self.packets),
            &[
                ("taken", self.taken),
                ("of the opposite direction", self.opposite),
                ("elsewhere", self.elsewhere),
            ],
        )
    }

    /// Passes a packet on if it crossed the link in the replayed direction. Returns false if no more packets
    /// are wanted.
    fn take(
        &mut self,
        packet: &Captured,
        hasher: &FlowHasher,
        deliver: &mut impl FnMut(Arrival) -> bool,
    ) -> bool {
        self.packets += 1;
        match self.view.side(&packet.dissection.key) {
            Side::Taken => self.taken += 1,
            Side::Opposite => {
                self.opposite += 1;
                return true;
            }
            Side::Elsewhere => {
                self.elsewhere += 1;
                return true;
            }
        }
        self.joined += u64::from(packet.pieces.is_some());
        packet.lengths().all(|length| {
            self.on_line += 1;
            deliver(Arrival {
                time: packet.time,
                flow: self.flows.count(&packet.dissection.key, length),
                packet: packet.dissection.packet(length, hasher),
                key: packet.dissection.key,
                acknowledgement: packet.acknowledgement,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_longer_than_a_day_last_a_second() {
        let mut clock = Clock::default();
        let seconds = |seconds: u64| Time::from_secs(seconds);
        assert_eq!(clock.read(seconds(0)), Time::ZERO);
        assert_eq!(clock.read(seconds(1_300_000_000)), seconds(1));
        assert_eq!(clock.read(seconds(1_300_000_005)), seconds(6));
        assert_eq!(clock.read(seconds(1_300_086_405)), seconds(86_406));
        assert_eq!(clock.read(seconds(1_300_172_806)), seconds(86_407));
        let expected = Pauses {
            count: 2,
            longest_nanos: 1_300_000_000 * SECOND,
            behind: 1,
        };
        assert_eq!(clock.pauses, expected);
    }
}
