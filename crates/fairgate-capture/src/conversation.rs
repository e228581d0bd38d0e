//! Reconstructs the TCP connections of a capture: who opened them and when, and the data as turns of a
//! conversation.
//!
//! Bytes are counted by sequence numbers. A retransmission therefore counts nothing, and data that was lost
//! before the point of the capture, or is missing in the capture, counts as soon as later data shows it.
//!
//! A turn is data in one direction. A new turn begins if an end answers:
//!
//! * it has acknowledged all data of the other end,
//! * the data comes at least a round trip to this end after that data, so that it can be an answer, and
//! * this end was silent for as long.
//!
//! Otherwise the end goes on with its earlier turn, whatever the other end sends meanwhile: for example a
//! server that sends a long response while the client grants it more window (HTTP/2). An end that goes on
//! after a pause with nothing outstanding begins a new turn of its own.
//!
//! The wait before a turn is the time that the application took, not the network. The time from the point of
//! the capture to the answering end and back is subtracted. It is the least time from data to its
//! acknowledgement.

use std::collections::HashMap;

use fairgate::{FlowKey, Time};

use crate::segment::TcpSegment;

/// A pause of an end with nothing outstanding, ns. After it, the end begins a new turn. It is longer than
/// delays of acknowledgements.
const PAUSE: u64 = 250_000_000;

/// A step of sequence numbers that is no data of the same connection. It is more than any window.
const JUMP: u32 = 1 << 30;

/// A TCP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// The header fields of packets from client to server. The client is the end that opened the connection.
    /// If the capture has no SYN, it is the end with the higher port.
    pub key: FlowKey,
    /// The time of the first packet.
    pub start: Time,
    /// The time of the last new data, or of the first packet if there is no data.
    pub end: Time,
    /// Whether the capture has the SYN.
    pub has_opening: bool,
    /// The least round-trip time between the ends, ns. `None` if it could not be measured in both directions.
    pub round_trip: Option<u64>,
    /// The data.
    pub turns: Vec<Turn>,
    /// Packets in both directions.
    pub packets: u64,
    /// Payload bytes that were in the capture again.
    pub repeated_bytes: u64,
}

/// Data in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Whether it goes from the client to the server.
    pub by_client: bool,
    /// The wait after the end of the turn before, ns. For the first turn it counts from the start of the
    /// connection, without the handshake.
    pub wait: u64,
    /// The payload, bytes. It is above 0.
    pub bytes: u64,
}

impl Conversation {
    /// Returns the bytes from client to server, and from server to client.
    pub fn bytes(&self) -> [u64; 2] {
        [true, false].map(|by_client| {
            let turns = self.turns.iter().filter(|turn| turn.by_client == by_client);
            turns.map(|turn| turn.bytes).sum()
        })
    }
}

/// Collects the connections of a capture.
#[derive(Debug, Default)]
pub struct Conversations {
    /// The connection of each pair of ends that is under way, by its index in `trackers`.
    by_ends: HashMap<Ends, usize>,
    trackers: Vec<Tracker>,
}

/// Addresses and ports of both ends, the lower one first.
type Ends = [([u8; 16], u16); 2];

/// What is known of a connection. Directions are numbered by the end that sends: 0 is the client.
#[derive(Debug)]
struct Tracker {
    key: FlowKey,
    start: Time,
    end: Time,
    has_opening: bool,
    /// Whether a FIN or RST was seen.
    has_ended: bool,
    packets: u64,
    repeated_bytes: u64,
    directions: [Direction; 2],
    turns: Vec<Open>,
}

/// One direction.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    /// The number after the last byte, once a segment was seen.
    next: Option<u32>,
    /// The number that the other end has acknowledged, and when.
    acknowledged: Option<(u32, Time)>,
    /// When the last new data was seen.
    last_data: Option<Time>,
    /// The number that ends a measurement of the round trip, and when it began.
    measured: Option<(u32, Time)>,
    /// The least time from data to its acknowledgement, ns.
    round_trip: Option<u64>,
}

/// A turn while the connection is read.
#[derive(Clone, Copy, Debug)]
struct Open {
    by: usize,
    /// The time since the end of the turn before.
    gap: u64,
    /// Whether the turn before is of the other end, or there is none, so that the gap has a round trip in it.
    is_answer: bool,
    last: Time,
    bytes: u64,
}

impl Conversations {
    /// Creates an empty collection.
    pub fn new() -> Conversations {
        Conversations::default()
    }

    /// Adds a packet. Times never decrease.
    pub fn add(&mut self, time: Time, key: &FlowKey, segment: &TcpSegment) {
        let ends = ends(key);
        let opens = segment.syn && segment.acknowledged.is_none();
        let known = self.by_ends.get(&ends).copied();
        let index = match known {
            Some(index) if !(opens && self.trackers[index].is_over(segment)) => index,
            _ => {
                self.by_ends.insert(ends, self.trackers.len());
                self.trackers.push(Tracker::new(time, key, segment));
                self.trackers.len() - 1
            }
        };
        self.trackers[index].add(time, key, segment);
    }

    /// Returns the number of connections so far.
    pub fn len(&self) -> usize {
        self.trackers.len()
    }

    /// Returns whether there are no connections.
    pub fn is_empty(&self) -> bool {
        self.trackers.is_empty()
    }

    /// Returns the connections in the order of their first packets.
    pub fn finish(self) -> Vec<Conversation> {
        self.trackers.into_iter().map(Tracker::finish).collect()
    }
}

fn ends(key: &FlowKey) -> Ends {
    let mut ends = [
        (key.source, key.source_port),
        (key.destination, key.destination_port),
    ];
    ends.sort_unstable();
    ends
}

/// Returns whether `number` is at or after `other`, modulo 2^32.
fn reaches(number: u32, other: u32) -> bool {
    number.wrapping_sub(other) as i32 >= 0
}

impl Tracker {
    fn new(time: Time, key: &FlowKey, segment: &TcpSegment) -> Tracker {
        let from_client = match (segment.syn, segment.acknowledged) {
            (true, None) => true,
            (true, Some(_)) => false,
            (false, _) => key.source_port > key.destination_port,
        };
        let key = match from_client {
            true => *key,
            false => FlowKey {
                source: key.destination,
                destination: key.source,
                source_port: key.destination_port,
                destination_port: key.source_port,
                ..*key
            },
        };
        Tracker {
            key,
            start: time,
            end: time,
            has_opening: false,
            has_ended: false,
            packets: 0,
            repeated_bytes: 0,
            directions: [Direction::default(); 2],
            turns: Vec::new(),
        }
    }

    /// Returns whether a SYN opens another connection between the same ends, and is no repetition.
    fn is_over(&self, syn: &TcpSegment) -> bool {
        let is_repetition = self.has_opening
            && self.turns.is_empty()
            && !self.has_ended
            && self.directions[0].next == Some(syn.sequence.wrapping_add(1));
        !is_repetition
    }

    fn add(&mut self, time: Time, key: &FlowKey, segment: &TcpSegment) {
        self.packets += 1;
        let is_client = (key.source, key.source_port) == (self.key.source, self.key.source_port);
        let by = usize::from(!is_client);
        if let Some(number) = segment.acknowledged {
            self.directions[1 - by].acknowledge(number, time);
        }
        if segment.syn {
            self.has_opening |= segment.acknowledged.is_none();
            self.directions[by].open(segment.sequence.wrapping_add(1), time);
        } else if segment.payload > 0 {
            self.add_data(time, by, segment);
        } else if !segment.ends {
            // A number to count from, if the capture begins in the middle of the connection.
            self.directions[by].next.get_or_insert(segment.sequence);
        }
        self.has_ended |= segment.ends;
    }

    fn add_data(&mut self, time: Time, by: usize, segment: &TcpSegment) {
        let end = segment.sequence.wrapping_add(segment.payload);
        let direction = &mut self.directions[by];
        let before = *direction.next.get_or_insert(segment.sequence);
        let fresh = end.wrapping_sub(before);
        if fresh == 0 || fresh > JUMP {
            // Data that was seen before, or a number that does not belong here. An acknowledgement is
            // ambiguous after a repetition (Karn).
            self.repeated_bytes += u64::from(segment.payload);
            direction.measured = None;
            return;
        }
        self.repeated_bytes += u64::from(segment.payload.saturating_sub(fresh));
        self.note_turn(time, by, fresh.into());
        let direction = &mut self.directions[by];
        direction.next = Some(end);
        direction.last_data = Some(time);
        direction.measured.get_or_insert((end, time));
        self.end = time;
    }

    /// Adds new data to a turn, or begins one. The directions are those before the data.
    fn note_turn(&mut self, time: Time, by: usize, bytes: u64) {
        let own = self.directions[by];
        let other = self.directions[1 - by];
        let begun = match self.turns.last() {
            None => Some((time - self.start, true)),
            Some(turn) if turn.by == by => {
                // The other end had everything, and this end was silent.
                let since = own
                    .acknowledged
                    .filter(|&(number, _)| own.next.is_some_and(|next| reaches(number, next)));
                let pause = since.map_or(0, |(_, at)| time - at.max(turn.last));
                (pause > PAUSE).then_some((pause, false))
            }
            Some(turn) => {
                let has_all = match (other.next, other.acknowledged) {
                    (Some(next), Some((number, _))) => reaches(number, next),
                    _ => false,
                };
                // Nine tenths, because the least round trip may be found later.
                let distance = other.round_trip.unwrap_or(0) / 10 * 9;
                let is_late_enough = time - turn.last >= distance;
                let was_silent = own.last_data.is_none_or(|last| time - last >= distance);
                (has_all && is_late_enough && was_silent).then_some((time - turn.last, true))
            }
        };
        let earlier = self.turns.iter().rposition(|turn| turn.by == by);
        match (begun, earlier) {
            (None, Some(index)) => {
                self.turns[index].bytes += bytes;
                self.turns[index].last = time;
            }
            (begun, _) => {
                let since_last = self.turns.last().map_or(0, |turn| time - turn.last);
                let (gap, is_answer) = begun.unwrap_or((since_last, true));
                self.turns.push(Open {
                    by,
                    gap,
                    is_answer,
                    last: time,
                    bytes,
                });
            }
        }
    }

    fn finish(self) -> Conversation {
        // The round trip from the point of the capture to an end is measured with data for that end.
        let [to_server, to_client] = self.directions.map(|direction| direction.round_trip);
        let distance = |by: usize| match by {
            0 => to_client.unwrap_or(0),
            _ => to_server.unwrap_or(0),
        };
        let handshake = match self.has_opening {
            true => to_server.unwrap_or(0) + to_client.unwrap_or(0),
            false => 0,
        };
        let turns = self.turns.iter().enumerate().map(|(index, turn)| {
            let network = match (index, turn.is_answer) {
                (0, _) if turn.by == 0 => handshake,
                (0, _) => handshake + distance(turn.by),
                (_, true) => distance(turn.by),
                (_, false) => 0,
            };
            Turn {
                by_client: turn.by == 0,
                wait: turn.gap.saturating_sub(network),
                bytes: turn.bytes,
            }
        });
        Conversation {
            key: self.key,
            start: self.start,
            end: self.end,
            has_opening: self.has_opening,
            round_trip: to_server.zip(to_client).map(|(server, client)| server + client),
            turns: turns.collect(),
            packets: self.packets,
            repeated_bytes: self.repeated_bytes,
        }
    }
}

impl Direction {
    /// Handles a SYN. `next` is the number of the first byte.
    fn open(&mut self, next: u32, time: Time) {
        // A repeated SYN makes the measurement ambiguous.
        self.measured = match self.next {
            None => Some((next, time)),
            Some(_) => None,
        };
        self.next = Some(next);
    }

    /// Handles an acknowledgement by the other end.
    fn acknowledge(&mut self, number: u32, time: Time) {
        if self
            .acknowledged
            .is_none_or(|(before, _)| reaches(number, before) && number != before)
        {
            self.acknowledged = Some((number, time));
        }
        if let Some((end, began)) = self.measured
            && reaches(number, end)
        {
            self.measured = None;
            let round_trip = time - began;
            self.round_trip = Some(self.round_trip.map_or(round_trip, |least| least.min(round_trip)));
        }
    }
}

#[cfg(test)]
mod tests;
