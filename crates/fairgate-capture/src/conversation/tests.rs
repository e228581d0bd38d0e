//! Connections whose packets are made from a script of turns.

use super::*;
use proptest::prelude::*;

const MILLI: u64 = 1_000_000;
const CLIENT: [u8; 4] = [192, 168, 1, 20];
const SERVER: [u8; 4] = [203, 0, 113, 5];

/// A packet at the point of the capture.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: u64,
    by_client: bool,
    segment: TcpSegment,
}

/// A connection that is written by hand. It is seen at a point between the ends.
struct Wire {
    /// The time from the point of the capture to each end and back: the server, the client.
    distances: [u64; 2],
    /// The next numbers of client and server.
    next: [u32; 2],
    seen: Vec<Seen>,
}

impl Wire {
    /// Opens a connection at 0. The sequence numbers wrap soon.
    fn open(to_server: u64, to_client: u64) -> Wire {
        let mut wire = Wire {
            distances: [to_server, to_client],
            next: [u32::MAX - 100, u32::MAX - 5000],
            seen: Vec::new(),
        };
        wire.put(0, true, true, false, 0);
        wire.next[0] = wire.next[0].wrapping_add(1);
        wire.put(to_server, false, true, true, 0);
        wire.next[1] = wire.next[1].wrapping_add(1);
        wire.acknowledge(to_server + to_client, true);
        wire
    }

    fn put(&mut self, at: u64, by_client: bool, syn: bool, ack: bool, payload: u32) {
        let by = usize::from(!by_client);
        self.seen.push(Seen {
            at,
            by_client,
            segment: TcpSegment {
                sequence: self.next[by],
                acknowledged: ack.then_some(self.next[1 - by]),
                syn,
                ends: false,
                payload,
            },
        });
    }

    fn acknowledge(&mut self, at: u64, by_client: bool) {
        self.put(at, by_client, false, true, 0);
    }

    /// Sends data in segments of 1448 bytes, one each millisecond, and acknowledges each. Returns when the
    /// last one is seen.
    fn data(&mut self, mut at: u64, by_client: bool, bytes: u64) -> u64 {
        let mut left = bytes;
        let by = usize::from(!by_client);
        loop {
            let payload = left.min(1448) as u32;
            self.put(at, by_client, false, true, payload);
            self.next[by] = self.next[by].wrapping_add(payload);
            self.acknowledge(at + self.distances[by], !by_client);
            left -= u64::from(payload);
            if left == 0 {
                return at;
            }
            at += MILLI;
        }
    }

    /// Writes the turns, and returns when the last packet is seen.
    fn turns(&mut self, turns: &[Turn]) -> u64 {
        let mut last = self.distances[0] + self.distances[1];
        for (index, turn) in turns.iter().enumerate() {
            let distance = match turn.by_client {
                true => self.distances[1],
                false => self.distances[0],
            };
            // The handshake ends at the client.
            let distance = if index == 0 && turn.by_client { 0 } else { distance };
            last = self.data(last + distance + turn.wait, turn.by_client, turn.bytes);
        }
        last
    }

    fn read(mut self, keep: impl Fn(&Seen) -> bool) -> Vec<Conversation> {
        self.seen.sort_by_key(|seen| seen.at);
        let mut conversations = Conversations::new();
        for seen in self.seen.iter().filter(|seen| keep(seen)) {
            conversations.add(Time::from_nanos(seen.at), &key(seen.by_client), &seen.segment);
        }
        conversations.finish()
    }
}

fn key(by_client: bool) -> FlowKey {
    match by_client {
        true => FlowKey::of(CLIENT.into(), SERVER.into(), 6, 50_000, 443),
        false => FlowKey::of(SERVER.into(), CLIENT.into(), 6, 443, 50_000),
    }
}

fn turn(by_client: bool, millis: u64, bytes: u64) -> Turn {
    Turn {
        by_client,
        wait: millis * MILLI,
        bytes,
    }
}

#[test]
fn requests_and_responses_are_turns_with_the_waits_of_applications() {
    let turns = [
        turn(true, 5, 400),
        turn(false, 30, 5_000),
        turn(true, 1_000, 500),
        turn(false, 0, 100_000),
    ];
    for (to_server, to_client) in [(20, 1), (1, 20), (10, 10)] {
        let mut wire = Wire::open(to_server * MILLI, to_client * MILLI);
        let last = wire.turns(&turns);
        let found = wire.read(|_| true);
        assert_eq!(found.len(), 1);
        let conversation = &found[0];
        assert_eq!(conversation.turns, turns, "{to_server} ms, {to_client} ms");
        assert_eq!(conversation.key, key(true));
        assert!(conversation.has_opening);
        assert_eq!(conversation.round_trip, Some((to_server + to_client) * MILLI));
        assert_eq!(conversation.end, Time::from_nanos(last));
        assert_eq!(
            (conversation.bytes(), conversation.repeated_bytes),
            ([900, 105_000], 0)
        );
    }
}

#[test]
fn a_server_may_speak_first() {
    let turns = [turn(false, 0, 80), turn(true, 200, 300), turn(false, 10, 9_000)];
    let mut wire = Wire::open(20 * MILLI, MILLI);
    wire.turns(&turns);
    assert_eq!(wire.read(|_| true)[0].turns, turns);
}

#[test]
fn a_capture_from_the_middle_begins_with_its_first_data() {
    let turns = [turn(true, 0, 400), turn(false, 30, 5_000), turn(true, 100, 10)];
    let mut wire = Wire::open(20 * MILLI, MILLI);
    wire.turns(&turns);
    let found = wire.read(|seen| seen.at > 21 * MILLI || seen.segment.payload > 0);
    assert!(!found[0].has_opening);
    assert_eq!(found[0].key, key(true), "the lower port is the server's");
    assert_eq!(found[0].turns, turns);
}

#[test]
fn retransmissions_count_once() {
    let turns = [turn(true, 0, 400), turn(false, 0, 14_480), turn(true, 0, 400)];
    let mut wire = Wire::open(20 * MILLI, 5 * MILLI);
    wire.turns(&turns);
    // Each data segment is seen again 3 ms later.
    let again: Vec<Seen> = wire
        .seen
        .iter()
        .filter(|seen| seen.segment.payload > 0)
        .map(|seen| Seen {
            at: seen.at + 3 * MILLI,
            ..*seen
        })
        .collect();
    wire.seen.extend(again);
    let found = wire.read(|_| true);
    assert_eq!(found[0].bytes(), [800, 14_480]);
    assert_eq!(found[0].turns.len(), 3);
    assert_eq!(found[0].repeated_bytes, 800 + 14_480);
}

/// A segment was lost before the point of the capture, and its retransmission comes after later data.
#[test]
fn a_hole_is_counted_when_later_data_shows_it() {
    let turns = [turn(true, 0, 400), turn(false, 0, 14_480)];
    for retransmitted in [false, true] {
        let mut wire = Wire::open(20 * MILLI, 5 * MILLI);
        let last = wire.turns(&turns);
        let third = wire
            .seen
            .iter()
            .enumerate()
            .filter(|(_, seen)| !seen.by_client && seen.segment.payload > 0)
            .map(|(index, _)| index)
            .nth(2)
            .expect("there are ten");
        match retransmitted {
            true => wire.seen[third].at = last + 2 * MILLI,
            false => drop(wire.seen.remove(third)),
        }
        let found = wire.read(|_| true);
        assert_eq!(found[0].bytes(), [400, 14_480]);
        assert_eq!(found[0].turns.len(), 2);
    }
}

/// A client that grants window in the middle of a response does not cut the response into turns.
#[test]
fn a_stream_goes_on_beside_data_of_the_other_direction() {
    let mut wire = Wire::open(20 * MILLI, MILLI);
    wire.turns(&[turn(true, 0, 400)]);
    wire.data(41 * MILLI, false, 300 * 1448);
    for at in (60..300).step_by(40) {
        wire.data(at * MILLI + MILLI / 2, true, 13);
    }
    let found = wire.read(|_| true);
    assert_eq!(found[0].bytes(), [400 + 6 * 13, 300 * 1448]);
    assert!(found[0].turns.len() <= 3, "{:?}", found[0].turns);
    assert_eq!(found[0].turns[1].bytes, 300 * 1448);
}

#[test]
fn a_pause_with_nothing_outstanding_ends_a_turn() {
    let turns = [
        turn(true, 0, 400),
        turn(false, 0, 10_000),
        turn(false, 2_000, 10_000),
    ];
    let mut wire = Wire::open(20 * MILLI, MILLI);
    wire.turns(&turns);
    let found = wire.read(|_| true);
    assert_eq!(found[0].turns.len(), 3);
    let wait = found[0].turns[2].wait;
    // The next data is seen up to a round trip later than it could have been.
    assert!(wait.abs_diff(2_000 * MILLI) <= 20 * MILLI, "{wait}");
}

#[test]
fn ports_that_are_used_again_are_another_connection() {
    let mut wire = Wire::open(20 * MILLI, MILLI);
    wire.turns(&[turn(true, 0, 400), turn(false, 0, 800)]);
    let mut second = Wire::open(20 * MILLI, MILLI);
    second.turns(&[turn(true, 0, 7)]);
    wire.seen.extend(second.seen.iter().map(|seen| {
        Seen {
            at: seen.at + 10_000 * MILLI,
            segment: TcpSegment {
                sequence: seen.segment.sequence.wrapping_add(77_777),
                acknowledged: seen
                    .segment
                    .acknowledged
                    .map(|number| number.wrapping_add(77_777)),
                ..seen.segment
            },
            ..*seen
        }
    }));
    let found = wire.read(|_| true);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].bytes(), found[1].bytes()), ([400, 800], [7, 0]));
    assert_eq!(found[1].start, Time::from_nanos(10_000 * MILLI));
}

#[test]
fn a_repeated_syn_is_the_same_connection() {
    let mut wire = Wire::open(20 * MILLI, MILLI);
    let syn = wire.seen[0];
    wire.seen.push(Seen { at: MILLI, ..syn });
    wire.turns(&[turn(true, 0, 400)]);
    let found = wire.read(|_| true);
    assert_eq!((found.len(), found[0].bytes()), (1, [400, 0]));
}

prop_compose! {
    /// Turns of alternating ends.
    fn scripts()(
        server_first in any::<bool>(),
        steps in prop::collection::vec((0u64..3_000, 1u64..60_000), 1..12),
    ) -> Vec<Turn> {
        steps
            .into_iter()
            .enumerate()
            .map(|(index, (millis, bytes))| turn((index % 2 == 0) != server_first, millis, bytes))
            .collect()
    }
}

proptest! {
    #[test]
    fn any_script_is_found_again(
        turns in scripts(),
        to_server in 1u64..200,
        to_client in 1u64..200,
        lost in prop::collection::btree_set(0usize..200, 0..20),
    ) {
        let mut wire = Wire::open(to_server * MILLI, to_client * MILLI);
        wire.turns(&turns);
        let found = wire.read(|_| true);
        prop_assert_eq!(&found[0].turns, &turns);

        // Data segments that are missing in the capture change no bytes and no turns, if they are not at an
        // end of a turn.
        let mut wire = Wire::open(to_server * MILLI, to_client * MILLI);
        wire.turns(&turns);
        let data: Vec<usize> = (0..wire.seen.len()).filter(|&i| wire.seen[i].segment.payload > 0).collect();
        let inner = |place: usize| {
            place > 0
                && place + 1 < data.len()
                && wire.seen[data[place - 1]].by_client == wire.seen[data[place]].by_client
                && wire.seen[data[place + 1]].by_client == wire.seen[data[place]].by_client
        };
        let missing: Vec<(u64, u32)> = lost
            .iter()
            .filter(|&&place| place < data.len() && inner(place))
            .map(|&place| (wire.seen[data[place]].at, wire.seen[data[place]].segment.sequence))
            .collect();
        let found = wire.read(|seen| {
            seen.segment.payload == 0 || !missing.contains(&(seen.at, seen.segment.sequence))
        });
        prop_assert_eq!(&found[0].turns, &turns);
    }

    /// No bytes whatever make it panic, and all bytes that it counts have numbers.
    #[test]
    fn any_segments_are_accepted(
        segments in prop::collection::vec(
            (
                any::<bool>(),
                any::<u32>(),
                prop::option::of(any::<u32>()),
                any::<bool>(),
                0u32..70_000,
                0u64..1_000_000_000,
            ),
            0..60,
        ),
    ) {
        let mut conversations = Conversations::new();
        let mut now = 0;
        for (by_client, sequence, acknowledged, syn, payload, gap) in segments {
            now += gap;
            let segment = TcpSegment { sequence, acknowledged, syn, ends: false, payload };
            conversations.add(Time::from_nanos(now), &key(by_client), &segment);
        }
        for conversation in conversations.finish() {
            prop_assert!(conversation.turns.iter().all(|turn| turn.bytes > 0));
            prop_assert!(conversation.start <= conversation.end);
        }
    }
}
