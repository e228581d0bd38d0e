//! TCP segments that were lost before they got here, from their sequence numbers.
//!
//! A segment that begins behind all that was seen before leaves a gap. If what is missing comes after all,
//! either it was lost on the way here and its sender has sent it again, which takes a round trip or longer,
//! or packets have overtaken each other, which takes much less. A segment that was seen before and comes
//! again was lost behind this machine, or in it, and is not counted.

use fairgate::Time;

/// Up to this time, packets have overtaken each other, ns. A sender learns of a loss, and sends again, after
/// a round trip: through the Internet that takes longer.
const OVERTAKING: u64 = 3_000_000;

/// The most gaps of a flow. In a burst of losses the oldest ones are given up.
const MOST: usize = 16;

/// After this time what was counted is old, ns. It is forgotten after twice as long.
const RECENT: u64 = 10_000_000_000;

/// The data of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Data {
    /// Its first sequence number, and the one behind its last.
    pub(super) begin: u32,
    pub(super) end: u32,
}

/// Sequence numbers that were not seen.
#[derive(Clone, Copy, Debug)]
struct Gap {
    begin: u32,
    end: u32,
    /// When the segment behind it arrived.
    at: Time,
}

/// Segments with data, and how many of them were lost before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) segments: u64,
    pub(super) lost: u64,
}

/// What was lost of the segments in one direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// The number behind all that was seen.
    next: Option<u32>,
    gaps: Vec<Gap>,
    /// What was counted since a time, and in the time of the same length before.
    since: Time,
    now: Counted,
    before: Counted,
}

/// Whether `a` is before `b` in the circle of sequence numbers.
fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Data {
    /// Returns the data of a TCP segment in an IP packet, whose end may be cut off. `None` if it has none,
    /// and behind extension headers.
    pub(super) fn of(packet: &[u8]) -> Option<Data> {
        let u16_at = |at: usize| Some(usize::from(u16::from_be_bytes(*packet.get(at..)?.first_chunk()?)));
        let (header, length) = match packet.first()? >> 4 {
            4 if packet.get(9) == Some(&6) => (usize::from(packet[0] & 15) * 4, u16_at(2)?),
            6 if packet.get(6) == Some(&6) => (40, 40 + u16_at(4)?),
            _ => return None,
        };
        let tcp: &[u8; 20] = packet.get(header..)?.first_chunk()?;
        let before = header + usize::from(tcp[12] >> 4) * 4;
        let data = u32::try_from(length.checked_sub(before)?)
            .ok()
            .filter(|data| *data > 0)?;
        let begin = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        Some(Data {
            begin,
            end: begin.wrapping_add(data),
        })
    }
}

impl Losses {
    /// Notes that a segment has arrived. Segments come in the order in which they left the tree: one that was
    /// dropped on arrival comes before those that waited.
    pub(super) fn arrived(&mut self, data: Data, at: Time) {
        self.turn(at);
        self.now.segments += 1;
        let next = *self.next.get_or_insert(data.begin);
        if !is_before(data.begin, next) {
            if data.begin != next {
                if self.gaps.len() == MOST {
                    self.gaps.remove(0);
                }
                self.gaps.push(Gap {
                    begin: next,
                    end: data.begin,
                    at,
                });
            }
            self.next = Some(data.end);
            return;
        }
        if is_before(next, data.end) {
            self.next = Some(data.end);
        }
        let is_in = |gap: &Gap| is_before(data.begin, gap.end) && is_before(gap.begin, data.end);
        let Some(place) = self.gaps.iter().position(is_in) else {
            return;
        };
        let gap = self.gaps.remove(place);
        if at.nanos() > gap.at.nanos() + OVERTAKING {
            self.now.lost += 1;
        }
        // What of the gap is still missing, on both sides of the segment.
        let rest = [(gap.begin, data.begin), (data.end, gap.end)];
        let rest = rest.into_iter().filter(|(begin, end)| is_before(*begin, *end));
        for (begin, end) in rest.take(MOST - self.gaps.len()) {
            self.gaps.push(Gap { begin, end, ..gap });
        }
    }

    /// Returns what was counted in the last 10 to 20 seconds.
    pub(super) fn recent(&mut self, now: Time) -> Counted {
        self.turn(now);
        Counted {
            segments: self.now.segments + self.before.segments,
            lost: self.now.lost + self.before.lost,
        }
    }

    /// Forgets the past: packets were not noted, so that gaps mean nothing.
    pub(super) fn begin_anew(&mut self) {
        self.next = None;
        self.gaps.clear();
    }

    fn turn(&mut self, now: Time) {
        let age = now.nanos().saturating_sub(self.since.nanos());
        if age >= RECENT {
            let old = std::mem::take(&mut self.now);
            self.before = match age < 2 * RECENT {
                true => old,
                false => Counted::default(),
            };
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;

    /// Segments of 100 bytes by their numbers, which arrive at these milliseconds.
    fn counted(first: u32, segments: &[(u32, u64)]) -> [u64; 2] {
        let mut losses = Losses::default();
        let mut last = 0;
        for &(number, millis) in segments {
            let begin = first.wrapping_add(100 * number);
            let end = begin.wrapping_add(100);
            losses.arrived(Data { begin, end }, Time::from_millis(millis));
            last = last.max(millis);
        }
        let Counted { segments, lost } = losses.recent(Time::from_millis(last));
        [segments, lost]
    }

    #[test]
    fn what_fills_a_gap_late_was_lost_on_the_way_here() {
        // Also where the numbers pass 2^32.
        for first in [7, u32::MAX - 250] {
            assert_eq!(counted(first, &[(0, 0), (1, 1), (2, 2), (3, 3)]), [4, 0]);
            // One that was lost, three in a row in any order, and one that was lost twice.
            assert_eq!(counted(first, &[(0, 0), (2, 2), (3, 3), (1, 42)]), [4, 1]);
            assert_eq!(
                counted(first, &[(0, 0), (4, 1), (2, 40), (1, 41), (3, 42)]),
                [5, 3]
            );
            assert_eq!(counted(first, &[(0, 0), (2, 1), (1, 400), (3, 401)]), [4, 1]);
            // Packets that have overtaken each other.
            assert_eq!(counted(first, &[(0, 0), (2, 2), (1, 3), (4, 4), (3, 7)]), [5, 0]);
            // What was lost behind this machine comes a second time.
            assert_eq!(
                counted(first, &[(0, 0), (1, 1), (2, 2), (1, 40), (3, 41)]),
                [5, 0]
            );
            // The third one was dropped on arrival, while the second one waited.
            assert_eq!(counted(first, &[(0, 0), (2, 2), (1, 1), (3, 3), (2, 50)]), [5, 0]);
        }
    }

    #[test]
    fn what_was_not_noted_is_no_loss() {
        let mut losses = Losses::default();
        let data = |begin| Data {
            begin,
            end: begin + 10,
        };
        losses.arrived(data(0), Time::from_millis(0));
        losses.begin_anew();
        losses.arrived(data(100), Time::from_millis(1));
        losses.arrived(data(50), Time::from_millis(90));
        assert_eq!(
            losses.recent(Time::from_millis(91)),
            Counted { segments: 3, lost: 0 }
        );
        // And what was counted is old after a while.
        assert_eq!(losses.recent(Time::from_millis(15_000)).segments, 3);
        assert_eq!(losses.recent(Time::from_millis(26_000)).segments, 0);
    }

    #[test]
    fn data_are_found_behind_the_headers() {
        let mut packets = [Vec::new(), Vec::new()];
        let ends = ([192, 0, 2, 1], [198, 51, 100, 7]);
        let payload = [0; 300];
        let v4 = PacketBuilder::ipv4(ends.0, ends.1, 64).tcp(1, 2, 77, 1000);
        v4.write(&mut packets[0], &payload).unwrap();
        let v6 = PacketBuilder::ipv6([1; 16], [2; 16], 64).tcp(1, 2, 77, 1000);
        v6.write(&mut packets[1], &payload).unwrap();
        for packet in &packets {
            let data = Data { begin: 77, end: 377 };
            assert_eq!(Data::of(packet), Some(data));
            assert_eq!(
                Data::of(&packet[..60]),
                Some(data),
                "what is noted of it suffices"
            );
            assert_eq!(Data::of(&packet[..38]), None);
        }
        let mut empty = Vec::new();
        let v4 = PacketBuilder::ipv4(ends.0, ends.1, 64).tcp(1, 2, 77, 1000);
        v4.write(&mut empty, &[]).unwrap();
        // Ethernet pads short frames.
        empty.extend([0; 6]);
        assert_eq!(Data::of(&empty), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(packet in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Data::of(&packet);
        }

        /// Whatever comes: memory is bounded, and no more is lost than has come.
        #[test]
        fn gaps_are_bounded(segments in prop::collection::vec((0_u32..2000, 1_u32..200, 0_u64..50), 1..300)) {
            let mut losses = Losses::default();
            let mut at = 0;
            for (begin, length, later) in segments {
                at += later;
                let data = Data { begin, end: begin + length };
                losses.arrived(data, Time::from_millis(at));
                prop_assert!(losses.gaps.len() <= MOST);
                prop_assert!(losses.gaps.iter().all(|gap| is_before(gap.begin, gap.end)));
                let Counted { segments, lost } = losses.recent(Time::from_millis(at));
                prop_assert!(lost <= segments);
            }
        }
    }
}
