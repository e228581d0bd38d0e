//! What has been sent and not yet acknowledged: one entry for each segment, with what is known of its fate.
//!
//! ```text
//!   sequence order   [ a ][ b ][ c ][ d ][ e ]      a ring; a segment's number never changes
//!   time order       b <-> d <-> e <-> a(again)     linked through the ring: RACK's candidates, oldest first
//! ```
//!
//! Four counters follow from the tags, and from them what is in flight (RFC 6675's "pipe", Linux's arithmetic):
//! in flight = sent - SACKed - lost + retransmitted. Once the ring has grown to the largest window nothing is allocated.

use std::collections::VecDeque;

use super::rack::Rack;
use super::segment::{MAX_SACK_BLOCKS, Range, SackBlocks};

/// What is known of a segment's fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tags(u8);

impl Tags {
    /// The receiver has it, behind a hole.
    const SACKED: Tags = Tags(1);
    /// Taken for lost.
    const LOST: Tags = Tags(2);
    /// Sent again, and that is on its way.
    const RESENT: Tags = Tags(4);
    /// Was sent more than once.
    const EVER_RESENT: Tags = Tags(8);

    const fn any(self, tags: Tags) -> bool {
        self.0 & tags.0 != 0
    }

    fn set(&mut self, tags: Tags) {
        self.0 |= tags.0;
    }

    fn clear(&mut self, tags: Tags) {
        self.0 &= !tags.0;
    }

    const fn and(self, tags: Tags) -> Tags {
        Tags(self.0 | tags.0)
    }
}

/// No neighbour in the time order, or not in it.
const NONE: u64 = u64::MAX;

/// One segment.
#[derive(Clone, Debug)]
struct Sent {
    range: Range,
    /// Last transmission, µs.
    sent_at: u64,
    /// Its place in the order of all transmissions.
    order: u64,
    older: u64,
    newer: u64,
    /// Segments delivered in all when it was last sent.
    delivered_before: u64,
    tags: Tags,
    in_time_order: bool,
}

/// What the retransmission of a segment needs to know, or what is still to be known of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outstanding {
    /// The segment's number.
    pub(super) number: u64,
    /// Its sequence numbers.
    pub(super) range: Range,
    /// Last transmission, µs.
    pub(super) sent_at: u64,
}

/// What an acknowledgement brought to light.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    /// Segments acknowledged cumulatively.
    pub(super) acked: u32,
    /// Segments newly SACKed.
    pub(super) sacked: u32,
    /// A segment sent more than once was acknowledged cumulatively.
    pub(super) resent_acked: bool,
    /// A segment sent only once, and before the episode's `high`, was delivered (F-RTO's proof).
    pub(super) original_delivered: bool,
    /// When the first and last of the never resent segments acknowledged cumulatively were sent.
    pub(super) acked_sent_at: Option<(u64, u64)>,
    /// The same of those newly SACKed.
    pub(super) sacked_sent_at: Option<(u64, u64)>,
    /// Lowest number delivered, without a retransmission, after a higher one: reordering.
    pub(super) late_from: u64,
    /// The newest delivered segment's count of segments delivered before it was sent.
    pub(super) delivered_before: u64,
}

impl Evidence {
    pub(super) fn new() -> Evidence {
        Evidence {
            acked: 0,
            sacked: 0,
            resent_acked: false,
            original_delivered: false,
            acked_sent_at: None,
            sacked_sent_at: None,
            late_from: u64::MAX,
            delivered_before: 0,
        }
    }
}

/// The circumstances in which an acknowledgement is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances {
    /// Now, µs.
    pub(super) now: u64,
    /// Least RTT, µs.
    pub(super) rtt_min: u64,
    /// End of the recovery episode: numbers below it were sent before it began.
    pub(super) high: u64,
    /// When the segment was sent that the acknowledgement's timestamp answers, ms.
    pub(super) echo: u32,
}

/// All outstanding segments.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    ring: VecDeque<Sent>,
    /// Number of the ring's first segment.
    first: u64,
    /// Transmissions since the connection began.
    transmissions: u64,
    oldest: u64,
    newest: u64,
    sacked: u32,
    lost: u32,
    resent: u32,
    /// Segments delivered since the connection began.
    delivered: u64,
    /// Losses marked since the connection began, repeated ones included.
    losses: u64,
    /// End of the highest SACKed segment.
    highest_sacked: u64,
    /// No lost segment that waits for retransmission has a lower number.
    resend_from: u64,
    /// The blocks of the last acknowledgement: segments in them are SACKed already.
    known_blocks: SackBlocks,
}

impl Scoreboard {
    pub(super) fn new() -> Scoreboard {
        Scoreboard {
            ring: VecDeque::new(),
            first: 0,
            transmissions: 0,
            oldest: NONE,
            newest: NONE,
            sacked: 0,
            lost: 0,
            resent: 0,
            delivered: 0,
            losses: 0,
            highest_sacked: 0,
            resend_from: 0,
            known_blocks: SackBlocks::NONE,
        }
    }

    /// A new segment was sent.
    pub(super) fn sent(&mut self, range: Range, now: u64) {
        let number = self.first + self.ring.len() as u64;
        self.transmissions += 1;
        self.ring.push_back(Sent {
            range,
            sent_at: now,
            order: self.transmissions,
            older: NONE,
            newer: NONE,
            delivered_before: self.delivered,
            tags: Tags::default(),
            in_time_order: false,
        });
        self.append_to_time_order(number);
    }

    /// A segment was sent again. `probe`: only to learn whether it is there; it doesn't count as a retransmission.
    pub(super) fn resent(&mut self, number: u64, now: u64, probe: bool) {
        let delivered = self.delivered;
        self.transmissions += 1;
        let segment = &mut self.ring[(number - self.first) as usize];
        segment.sent_at = now;
        segment.order = self.transmissions;
        segment.delivered_before = delivered;
        segment.tags.set(Tags::EVER_RESENT);
        if !probe {
            debug_assert!(
                !segment.tags.any(Tags::RESENT),
                "a segment is resent once until that is lost"
            );
            segment.tags.set(Tags::RESENT);
            self.resent += 1;
        }
        self.remove_from_time_order(number);
        self.append_to_time_order(number);
    }

    /// Everything below `una` has arrived.
    pub(super) fn acknowledge(
        &mut self,
        una: u64,
        circumstances: Circumstances,
        rack: &mut Rack,
        evidence: &mut Evidence,
    ) {
        while let Some(segment) = self.ring.front()
            && segment.range.end <= una
        {
            let (range, tags) = (segment.range, segment.tags);
            let (sent_at, order) = (segment.sent_at, segment.order);
            let delivered_before = segment.delivered_before;
            if tags.any(Tags::EVER_RESENT) {
                self.resent -= u32::from(tags.any(Tags::RESENT));
                evidence.resent_acked = true;
            } else if !tags.any(Tags::SACKED) {
                let first = evidence.acked_sent_at.map_or(sent_at, |(first, _)| first);
                evidence.acked_sent_at = Some((first, sent_at));
                evidence.late_from = evidence.late_from.min(range.start);
                evidence.original_delivered |= range.end <= circumstances.high;
            }
            if tags.any(Tags::SACKED) {
                self.sacked -= 1;
            } else {
                self.delivered += 1;
                evidence.delivered_before = evidence.delivered_before.max(delivered_before);
                let spurious = tags.any(Tags::EVER_RESENT)
                    && circumstances.echo != 0
                    && circumstances.echo < super::clock::timestamp_of(sent_at);
                if !spurious {
                    let resent = tags.any(Tags::EVER_RESENT);
                    rack.delivered(order, sent_at, resent, circumstances.now, circumstances.rtt_min);
                }
            }
            self.lost -= u32::from(tags.any(Tags::LOST));
            evidence.acked += 1;
            self.remove_from_time_order(self.first);
            self.ring.pop_front();
            self.first += 1;
        }
        self.resend_from = self.resend_from.max(self.first);
    }

    /// Reads the SACK blocks above `una`. `duplicate`: the first block reports a duplicate instead.
    pub(super) fn read_sack(
        &mut self,
        blocks: &SackBlocks,
        duplicate: bool,
        una: u64,
        circumstances: Circumstances,
        rack: &mut Rack,
        evidence: &mut Evidence,
    ) {
        let next = self.ring.back().map_or(0, |last| last.range.end);
        let mut known = SackBlocks::NONE;
        for &block in &blocks.as_slice()[usize::from(duplicate)..] {
            // Blocks at or below what is acknowledged, or above what was sent, say nothing.
            if block.is_empty() || block.start <= una || block.end > next {
                continue;
            }
            self.read_unknown(block, MAX_SACK_BLOCKS, circumstances, rack, evidence);
            known.push(block);
        }
        self.known_blocks = known;
    }

    /// Marks what of `block` lies outside of the blocks known before; `depth` of those are still to be cut out.
    fn read_unknown(
        &mut self,
        block: Range,
        depth: usize,
        circumstances: Circumstances,
        rack: &mut Rack,
        evidence: &mut Evidence,
    ) {
        if block.is_empty() {
            return;
        }
        if depth == 0 {
            self.mark_sacked(block, circumstances, rack, evidence);
            return;
        }
        let known = self
            .known_blocks
            .as_slice()
            .get(depth - 1)
            .copied()
            .unwrap_or_default();
        if known.is_empty() || known.end <= block.start || block.end <= known.start {
            self.read_unknown(block, depth - 1, circumstances, rack, evidence);
            return;
        }
        let before = Range {
            start: block.start,
            end: known.start,
        };
        let after = Range {
            start: known.end.max(block.start),
            end: block.end,
        };
        self.read_unknown(before, depth - 1, circumstances, rack, evidence);
        self.read_unknown(after, depth - 1, circumstances, rack, evidence);
    }

    fn mark_sacked(
        &mut self,
        block: Range,
        circumstances: Circumstances,
        rack: &mut Rack,
        evidence: &mut Evidence,
    ) {
        let from = self
            .ring
            .partition_point(|segment| segment.range.start < block.start);
        for index in from..self.ring.len() {
            let segment = &mut self.ring[index];
            if segment.range.end > block.end {
                break;
            }
            if segment.tags.any(Tags::SACKED) {
                continue;
            }
            let (range, tags) = (segment.range, segment.tags);
            let (sent_at, order) = (segment.sent_at, segment.order);
            segment.tags.set(Tags::SACKED);
            let resent = tags.any(Tags::EVER_RESENT);
            rack.delivered(order, sent_at, resent, circumstances.now, circumstances.rtt_min);
            if tags.any(Tags::RESENT) {
                // A retransmission of something not taken for lost (anymore) stays in flight.
                if tags.any(Tags::LOST) {
                    segment.tags.clear(Tags::LOST.and(Tags::RESENT));
                    self.lost -= 1;
                    self.resent -= 1;
                }
            } else {
                if !resent {
                    if self.sacked > 0 && range.start < self.highest_sacked {
                        evidence.late_from = evidence.late_from.min(range.start);
                    }
                    evidence.original_delivered |= range.end <= circumstances.high;
                    let first = evidence.sacked_sent_at.map_or(sent_at, |(first, _)| first);
                    evidence.sacked_sent_at = Some((first, sent_at));
                }
                if tags.any(Tags::LOST) {
                    segment.tags.clear(Tags::LOST);
                    self.lost -= 1;
                }
            }
            evidence.sacked += 1;
            evidence.delivered_before = evidence.delivered_before.max(segment.delivered_before);
            self.highest_sacked = if self.sacked == 0 {
                range.end
            } else {
                self.highest_sacked.max(range.end)
            };
            self.sacked += 1;
            self.delivered += 1;
            self.remove_from_time_order(self.first + index as u64);
        }
    }

    /// A duplicate of this block has arrived: retransmissions of it are no longer in flight. Returns how many segments
    /// of it were ever resent.
    pub(super) fn read_duplicate(&mut self, block: Range) -> u32 {
        let from = self
            .ring
            .partition_point(|segment| segment.range.start < block.start);
        let mut resent = 0;
        for segment in self.ring.iter_mut().skip(from) {
            if segment.range.end > block.end {
                break;
            }
            resent += u32::from(segment.tags.any(Tags::EVER_RESENT));
            if segment.tags.any(Tags::RESENT) && segment.tags.any(Tags::SACKED) {
                segment.tags.clear(Tags::RESENT);
                self.resent -= 1;
            }
        }
        resent
    }

    /// RACK: marks as lost what was sent before the newest delivered transmission, if the reordering window has passed
    /// since. Returns how long, in µs, until the last of the others must be given up.
    pub(super) fn detect_loss(&mut self, rack: &Rack, reordering_window: u64, now: u64) -> Option<u64> {
        let mut wait = None;
        let mut number = self.oldest;
        while number != NONE {
            let segment = &self.ring[(number - self.first) as usize];
            let newer = segment.newer;
            if !rack.is_newer_than(segment.order) {
                break;
            }
            match remaining(segment.sent_at, rack, reordering_window, now) {
                // A loss probe repeats the last segment even if that has arrived.
                None if segment.tags.any(Tags::SACKED) => self.remove_from_time_order(number),
                None => self.mark_lost(number),
                Some(micros) => wait = wait.max(Some(micros)),
            }
            number = newer;
        }
        wait
    }

    /// A time-out: takes for lost the first segment and all others not sent just recently. `forget_sack`: the receiver
    /// has thrown away what it had SACKed (reneging).
    pub(super) fn mark_timed_out(&mut self, rack: &Rack, forget_sack: bool, now: u64) {
        if forget_sack {
            self.sacked = 0;
            self.known_blocks = SackBlocks::NONE;
        }
        for index in 0..self.ring.len() {
            let segment = &mut self.ring[index];
            if forget_sack {
                segment.tags.clear(Tags::SACKED);
            } else if segment.tags.any(Tags::SACKED)
                || (index > 0 && remaining(segment.sent_at, rack, 0, now).is_some())
            {
                continue;
            }
            self.mark_lost(self.first + index as u64);
        }
    }

    fn mark_lost(&mut self, number: u64) {
        let segment = &mut self.ring[(number - self.first) as usize];
        debug_assert!(!segment.tags.any(Tags::SACKED), "what has arrived isn't lost");
        let resent = segment.tags.any(Tags::RESENT);
        if !segment.tags.any(Tags::LOST) {
            segment.tags.set(Tags::LOST);
            self.lost += 1;
            self.losses += 1;
        } else if resent {
            self.losses += 1;
        }
        if resent {
            segment.tags.clear(Tags::RESENT);
            self.resent -= 1;
        }
        self.resend_from = self.resend_from.min(number);
        self.remove_from_time_order(number);
    }

    /// Nothing was lost after all: takes every mark back.
    pub(super) fn unmark_lost(&mut self) {
        for segment in &mut self.ring {
            segment.tags.clear(Tags::LOST);
        }
        self.lost = 0;
    }

    /// The first lost segment that has not been resent since.
    pub(super) fn next_to_resend(&mut self) -> Option<Outstanding> {
        // As many are on their way again as are lost: none waits.
        if self.resent >= self.lost {
            return None;
        }
        let from = (self.resend_from - self.first) as usize;
        let index = (from..self.ring.len()).find(|&index| {
            let tags = self.ring[index].tags;
            tags.any(Tags::LOST) && !tags.any(Tags::RESENT)
        })?;
        self.resend_from = self.first + index as u64;
        Some(self.outstanding(index))
    }

    fn outstanding(&self, index: usize) -> Outstanding {
        let segment = &self.ring[index];
        Outstanding {
            number: self.first + index as u64,
            range: segment.range,
            sent_at: segment.sent_at,
        }
    }

    /// The first outstanding segment.
    pub(super) fn head(&self) -> Option<Outstanding> {
        (!self.ring.is_empty()).then(|| self.outstanding(0))
    }

    /// The last outstanding segment.
    pub(super) fn tail(&self) -> Option<Outstanding> {
        let last = self.ring.len().checked_sub(1)?;
        Some(self.outstanding(last))
    }

    /// Whether the first outstanding segment has been SACKed: the receiver contradicts itself.
    pub(super) fn is_head_sacked(&self) -> bool {
        self.ring.front().is_some_and(|head| head.tags.any(Tags::SACKED))
    }

    /// Whether a retransmission may be under way, or the first segment was ever resent.
    pub(super) fn is_any_resent(&self) -> bool {
        let head_resent = self
            .ring
            .front()
            .is_some_and(|head| head.tags.any(Tags::EVER_RESENT));
        self.resent > 0 || head_resent
    }

    /// Segments sent and not acknowledged cumulatively.
    pub(super) fn outstanding_segments(&self) -> u32 {
        self.ring.len() as u32
    }

    /// Segments believed to be in the network.
    pub(super) fn in_flight(&self) -> u32 {
        self.outstanding_segments() + self.resent - self.sacked - self.lost
    }

    /// Segments that the receiver holds behind a hole.
    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Segments taken for lost, resent or not.
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    /// Retransmissions in flight.
    pub(super) fn resent_in_flight(&self) -> u32 {
        self.resent
    }

    /// Segments delivered since the connection began.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Losses marked since the connection began.
    pub(super) fn losses(&self) -> u64 {
        self.losses
    }

    /// The number after the highest SACKed one; `una` if nothing is SACKed.
    pub(super) fn highest_sacked(&self, una: u64) -> u64 {
        if self.sacked == 0 {
            una
        } else {
            self.highest_sacked
        }
    }

    fn append_to_time_order(&mut self, number: u64) {
        let newest = self.newest;
        match newest {
            NONE => self.oldest = number,
            _ => self.ring[(newest - self.first) as usize].newer = number,
        }
        let segment = &mut self.ring[(number - self.first) as usize];
        segment.older = newest;
        segment.newer = NONE;
        segment.in_time_order = true;
        self.newest = number;
    }

    fn remove_from_time_order(&mut self, number: u64) {
        let segment = &mut self.ring[(number - self.first) as usize];
        if !segment.in_time_order {
            return;
        }
        segment.in_time_order = false;
        let (older, newer) = (segment.older, segment.newer);
        match older {
            NONE => self.oldest = newer,
            _ => self.ring[(older - self.first) as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.ring[(newer - self.first) as usize].older = older,
        }
    }
}

/// How long RACK still waits for a transmission, µs.
fn remaining(sent_at: u64, rack: &Rack, reordering_window: u64, now: u64) -> Option<u64> {
    (sent_at + rack.rtt + reordering_window)
        .checked_sub(now)
        .filter(|&micros| micros > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LENGTH: u64 = 10;

    /// A segment as the model knows it: plain flags, looked through one by one.
    #[derive(Clone, Debug, Default)]
    struct Known {
        sent_at: u64,
        order: u64,
        acked: bool,
        sacked: bool,
        lost: bool,
        resent: bool,
        ever_resent: bool,
    }

    /// All segments ever sent, and RACK's newest delivery.
    #[derive(Default)]
    struct Model {
        segments: Vec<Known>,
        order: u64,
        newest: u64,
        rtt: u64,
    }

    impl Model {
        fn outstanding(&self) -> impl Iterator<Item = &Known> {
            self.segments.iter().filter(|segment| !segment.acked)
        }

        fn una(&self) -> usize {
            self.segments.iter().filter(|segment| segment.acked).count()
        }

        fn transmit(&mut self, index: usize, now: u64) {
            self.order += 1;
            self.segments[index].sent_at = now;
            self.segments[index].order = self.order;
        }

        fn deliver(&mut self, index: usize, now: u64) {
            self.newest = self.newest.max(self.segments[index].order);
            self.rtt = now - self.segments[index].sent_at;
        }

        fn acknowledge(&mut self, count: usize, now: u64) {
            for index in self.una()..self.una() + count {
                if !self.segments[index].sacked {
                    self.deliver(index, now);
                }
                self.segments[index].acked = true;
            }
        }

        fn sack(&mut self, from: usize, to: usize, now: u64) {
            for index in from..to {
                if !self.segments[index].sacked {
                    self.deliver(index, now);
                    let segment = &mut self.segments[index];
                    segment.sacked = true;
                    // The retransmission of something not taken for lost stays in flight.
                    segment.resent &= !segment.lost;
                    segment.lost = false;
                }
            }
        }

        fn detect_loss(&mut self, window: u64, now: u64) {
            let (newest, rtt) = (self.newest, self.rtt);
            for segment in self
                .segments
                .iter_mut()
                .filter(|segment| !segment.acked && !segment.sacked)
            {
                let waits_for_resend = segment.lost && !segment.resent;
                if !waits_for_resend && segment.order < newest && segment.sent_at + rtt + window <= now {
                    segment.lost = true;
                    segment.resent = false;
                }
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Send(u8),
        Acknowledge(u8),
        Sack(u8, u8),
        Resend(u8),
        DetectLoss(u8),
        TimeOut,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (1u8..6).prop_map(Step::Send),
            2 => (1u8..4).prop_map(Step::Acknowledge),
            4 => (any::<u8>(), 1u8..6).prop_map(|(from, count)| Step::Sack(from, count)),
            2 => (1u8..4).prop_map(Step::Resend),
            3 => (0u8..8).prop_map(Step::DetectLoss),
            1 => Just(Step::TimeOut),
        ]
    }

    fn range(from: usize, to: usize) -> Range {
        Range {
            start: 1 + from as u64 * LENGTH,
            end: 1 + to as u64 * LENGTH,
        }
    }

    proptest! {
        #[test]
        fn keeps_the_books_that_a_plain_list_keeps(steps in prop::collection::vec(step(), 1..120)) {
            let mut board = Scoreboard::new();
            let mut rack = Rack::new();
            let mut model = Model::default();
            // Long enough after the origin for every round trip to be positive.
            let mut now = 1000;
            for step in steps {
                now += 3;
                let (una, end) = (model.una(), model.segments.len());
                let circumstances = Circumstances { now, rtt_min: 0, high: 0, echo: 0 };
                let mut evidence = Evidence::new();
                match step {
                    Step::Send(count) => for index in end..end + usize::from(count) {
                        board.sent(range(index, index + 1), now);
                        model.segments.push(Known::default());
                        model.transmit(index, now);
                    },
                    Step::Acknowledge(count) => {
                        let count = usize::from(count).min(end - una);
                        board.acknowledge(range(0, una + count).end, circumstances, &mut rack, &mut evidence);
                        prop_assert_eq!(evidence.acked as usize, count);
                        model.acknowledge(count, now);
                    }
                    Step::Sack(from, count) if end > una + 1 => {
                        // Never the first segment: that would be acknowledged.
                        let from = una + 1 + usize::from(from) % (end - una - 1);
                        let to = (from + usize::from(count)).min(end);
                        let mut option = SackBlocks::NONE;
                        option.push(range(from, to));
                        let before = model.segments.iter().filter(|segment| segment.sacked).count();
                        let una_number = range(0, una).end;
                        board.read_sack(&option, false, una_number, circumstances, &mut rack, &mut evidence);
                        model.sack(from, to, now);
                        let after = model.segments.iter().filter(|segment| segment.sacked).count();
                        prop_assert_eq!(evidence.sacked as usize, after - before);
                    }
                    Step::Sack(..) => {}
                    Step::Resend(count) => for _ in 0..count {
                        let expected = model.segments.iter().position(|segment| {
                            !segment.acked && segment.lost && !segment.resent
                        });
                        let waits = model.outstanding().filter(|segment| segment.resent).count()
                            < model.outstanding().filter(|segment| segment.lost).count();
                        let found = board.next_to_resend();
                        prop_assert_eq!(found.map(|found| found.number as usize), expected.filter(|_| waits));
                        if let Some(found) = found {
                            board.resent(found.number, now, false);
                            let index = found.number as usize;
                            model.transmit(index, now);
                            model.segments[index].resent = true;
                            model.segments[index].ever_resent = true;
                        }
                    },
                    Step::DetectLoss(window) => {
                        board.detect_loss(&rack, window.into(), now);
                        model.detect_loss(window.into(), now);
                    }
                    Step::TimeOut if !board.is_head_sacked() => {
                        board.mark_timed_out(&rack, false, now);
                        let rtt = model.rtt;
                        let outstanding = model.segments.iter_mut().filter(|segment| !segment.acked);
                        for (place, segment) in outstanding.enumerate() {
                            if !segment.sacked && (place == 0 || segment.sent_at + rtt <= now) {
                                segment.lost = true;
                                segment.resent = false;
                            }
                        }
                    }
                    Step::TimeOut => {}
                }
                let count = |of: fn(&Known) -> bool| model.outstanding().filter(|segment| of(segment)).count() as u32;
                prop_assert_eq!(board.sacked(), count(|segment| segment.sacked));
                prop_assert_eq!(board.lost(), count(|segment| segment.lost));
                prop_assert_eq!(board.resent_in_flight(), count(|segment| segment.resent));
                prop_assert_eq!(board.outstanding_segments(), count(|_| true));
                let in_flight = count(|_| true) + count(|segment| segment.resent)
                    - count(|segment| segment.sacked) - count(|segment| segment.lost);
                prop_assert_eq!(board.in_flight(), in_flight);
                let head_resent = model.outstanding().next().is_some_and(|head| head.ever_resent);
                prop_assert_eq!(board.is_any_resent(), head_resent || count(|segment| segment.resent) > 0);
            }
        }
    }

    #[test]
    fn a_probe_of_what_has_arrived_is_not_taken_for_lost() {
        let mut board = Scoreboard::new();
        let mut rack = Rack::new();
        let sack = |board: &mut Scoreboard, rack: &mut Rack, block: Range, now: u64| {
            let mut blocks = SackBlocks::NONE;
            blocks.push(block);
            let circumstances = Circumstances {
                now,
                rtt_min: 1,
                high: 0,
                echo: 0,
            };
            board.read_sack(&blocks, false, 1, circumstances, rack, &mut Evidence::new());
        };
        board.sent(range(0, 1), 100);
        board.sent(range(1, 2), 100);
        sack(&mut board, &mut rack, range(1, 2), 200);
        let tail = board.tail().expect("two segments are outstanding").number;
        board.resent(tail, 300, true);
        board.sent(range(2, 3), 400);
        sack(&mut board, &mut rack, range(2, 3), 500);
        board.detect_loss(&rack, 0, 10_000);
        assert_eq!((board.lost(), board.sacked()), (1, 2));
    }
}
