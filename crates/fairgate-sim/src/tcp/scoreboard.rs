//! All segments that were sent and not acknowledged yet, one entry each, with what is known about their
//! delivery.
//!
//! ```text
//!   sequence order   [ a ][ b ][ c ][ d ][ e ]      a ring buffer; a segment's number never changes
//!   time order       b <-> d <-> e <-> a(again)     linked through the ring: RACK's candidates, oldest first
//! ```
//!
//! Four counters follow from the tags. The number of segments in flight is calculated from them (RFC 6675's
//! "pipe", with Linux's arithmetic): in flight = sent - SACKed - lost + retransmitted. Once the ring has
//! grown to the largest window, nothing is allocated.

use std::collections::VecDeque;

use prefetch_index::prefetch_index;

use super::delivery_rate::{LostTransmission, RateSample, RateSampler};
use super::rack::Rack;
use super::segment::{MAX_SACK_BLOCKS, Range, SackBlocks};

/// What is known about the delivery of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tags(u8);

impl Tags {
    /// The receiver has it, behind a hole.
    const SACKED: Tags = Tags(1);
    /// It is considered lost.
    const LOST: Tags = Tags(2);
    /// It was retransmitted, and the retransmission is in flight.
    const RESENT: Tags = Tags(4);
    /// It was sent more than once.
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

/// No neighbour in the time order, or not in the time order.
const NONE: u64 = u64::MAX;

/// A segment that was sent.
#[derive(Clone, Debug)]
struct Sent {
    range: Range,
    /// The time of the last transmission, µs.
    sent_at: u64,
    /// The position of that transmission in the order of all transmissions.
    order: u64,
    older: u64,
    newer: u64,
    /// The total number of segments delivered when it was last sent.
    delivered_before: u64,
    tags: Tags,
    in_time_order: bool,
}

/// An outstanding segment, with the data for its retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outstanding {
    /// The number of the segment.
    pub(super) number: u64,
    /// The sequence numbers of the segment.
    pub(super) range: Range,
    /// The time of the last transmission, µs.
    pub(super) sent_at: u64,
}

/// What was learnt from an acknowledgement.
#[derive(Clone, Debug)]
pub(super) struct Findings {
    /// The number of segments acknowledged cumulatively.
    pub(super) acked: u32,
    /// The number of segments newly SACKed.
    pub(super) sacked: u32,
    /// Whether a segment that was sent more than once was acknowledged cumulatively.
    pub(super) resent_acked: bool,
    /// Whether a segment was delivered that was sent only once, before the `high` of the recovery (F-RTO's
    /// proof).
    pub(super) original_delivered: bool,
    /// When the first and the last of the never retransmitted segments acknowledged cumulatively were sent.
    pub(super) acked_sent_at: Option<(u64, u64)>,
    /// The same for segments newly SACKed.
    pub(super) sacked_sent_at: Option<(u64, u64)>,
    /// The lowest number that was delivered after a higher one without a retransmission. It shows reordering.
    pub(super) late_from: u64,
    /// `delivered_before` of the newest delivered segment.
    pub(super) delivered_before: u64,
}

impl Findings {
    pub(super) fn new() -> Findings {
        Findings {
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

/// The sender's state that is needed to process an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckContext {
    /// The current time, µs.
    pub(super) now: u64,
    /// The minimum RTT, µs.
    pub(super) rtt_min: u64,
    /// The end of the recovery: lower numbers were sent before it began.
    pub(super) high: u64,
    /// The timestamp that the acknowledgement echoes, ms.
    pub(super) echo: u32,
}

/// All outstanding segments.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    ring: VecDeque<Sent>,
    /// The number of the ring's first segment.
    first: u64,
    /// The number of transmissions since the connection began.
    transmissions: u64,
    oldest: u64,
    newest: u64,
    sacked: u32,
    lost: u32,
    resent: u32,
    /// The number of segments delivered since the connection began.
    delivered: u64,
    /// The number of losses detected since the connection began, including repeated ones.
    losses: u64,
    /// The end of the highest SACKed segment.
    highest_sacked: u64,
    /// No lost segment to be retransmitted has a lower number.
    resend_from: u64,
    /// The blocks of the last acknowledgement. Segments in them are already SACKed.
    known_blocks: SackBlocks,
    /// Whether the receiver sends SACK blocks. Otherwise `sacked` counts duplicate acknowledgements, and no
    /// segment has the tag.
    selective: bool,
    /// Takes samples of the delivery rate, if the congestion control needs them.
    rates: Option<Box<RateSampler>>,
}

impl Scoreboard {
    /// Creates an empty scoreboard. `selective`: the receiver sends SACK blocks. `sampled`: the delivery rate
    /// is measured.
    pub(super) fn new(selective: bool, sampled: bool) -> Scoreboard {
        Scoreboard {
            selective,
            rates: sampled.then(Box::default),
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

    /// Releases the ring's memory if no segment is outstanding.
    pub(super) fn release_memory(&mut self) {
        if self.ring.is_empty() {
            self.ring = VecDeque::new();
        }
    }

    /// Prefetches the first three segments and the last one.
    #[inline]
    pub(super) fn prefetch(&self) {
        let (front, back) = self.ring.as_slices();
        for place in 0..front.len().min(3) {
            prefetch_index(front, place);
        }
        let rear = if back.is_empty() { front } else { back };
        if let Some(last) = rear.len().checked_sub(1) {
            prefetch_index(rear, last);
        }
    }

    /// Records that a new segment was sent.
    pub(super) fn sent(&mut self, range: Range, now: u64) {
        let number = self.first + self.ring.len() as u64;
        self.transmissions += 1;
        let older = self.link_newest(number);
        self.ring.push_back(Sent {
            range,
            sent_at: now,
            order: self.transmissions,
            older,
            newer: NONE,
            delivered_before: self.delivered,
            tags: Tags::default(),
            in_time_order: true,
        });
        self.sample_transmission(number, now, false);
    }

    /// Records that a segment was sent again. A `probe` does not count as a retransmission.
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
                "a segment is resent again only after its retransmission was lost"
            );
            segment.tags.set(Tags::RESENT);
            self.resent += 1;
        }
        self.remove_from_time_order(number);
        self.append_to_time_order(number);
        self.sample_transmission(number, now, true);
    }

    #[inline]
    fn sample_transmission(&mut self, number: u64, now: u64, again: bool) {
        let in_flight = self.in_flight();
        if let Some(rates) = &mut self.rates {
            rates.sent(number, now, (self.delivered, self.losses), in_flight, again);
        }
    }

    /// Handles that everything below `una` has arrived.
    pub(super) fn acknowledge(
        &mut self,
        una: u64,
        context: AckContext,
        rack: &mut Rack,
        findings: &mut Findings,
    ) {
        while let Some(segment) = self.ring.front()
            && segment.range.end <= una
        {
            let (range, tags) = (segment.range, segment.tags);
            let (sent_at, order) = (segment.sent_at, segment.order);
            let delivered_before = segment.delivered_before;
            if segment.in_time_order {
                let (older, newer) = (segment.older, segment.newer);
                self.unlink(older, newer);
            }
            if tags.any(Tags::EVER_RESENT) {
                self.resent -= u32::from(tags.any(Tags::RESENT));
                findings.resent_acked = true;
            } else if !tags.any(Tags::SACKED) {
                let first = findings.acked_sent_at.map_or(sent_at, |(first, _)| first);
                findings.acked_sent_at = Some((first, sent_at));
                findings.late_from = findings.late_from.min(range.start);
                findings.original_delivered |= range.end <= context.high;
            }
            if let Some(rates) = &mut self.rates {
                rates.delivered(self.first);
            }
            if tags.any(Tags::SACKED) {
                self.sacked -= 1;
            } else if self.selective {
                self.delivered += 1;
                findings.delivered_before = findings.delivered_before.max(delivered_before);
                let spurious = tags.any(Tags::EVER_RESENT)
                    && context.echo != 0
                    && context.echo < super::clock::timestamp_of(sent_at);
                if !spurious {
                    let resent = tags.any(Tags::EVER_RESENT);
                    rack.delivered(order, sent_at, resent, context.now, context.rtt_min);
                }
            }
            self.lost -= u32::from(tags.any(Tags::LOST));
            findings.acked += 1;
            self.ring.pop_front();
            self.first += 1;
        }
        self.resend_from = self.resend_from.max(self.first);
        if let Some(rates) = &mut self.rates {
            rates.forget_below(self.first);
        }
    }

    /// Processes the SACK blocks above `una`. With `duplicate`, the first block reports a duplicate instead.
    pub(super) fn read_sack(
        &mut self,
        blocks: &SackBlocks,
        duplicate: bool,
        una: u64,
        context: AckContext,
        rack: &mut Rack,
        findings: &mut Findings,
    ) {
        let next = self.ring.back().map_or(0, |last| last.range.end);
        let mut known = SackBlocks::NONE;
        for &block in &blocks.as_slice()[usize::from(duplicate)..] {
            // Blocks that are not above `una`, or not below the next number, carry no information.
            if block.is_empty() || block.start <= una || block.end > next {
                continue;
            }
            self.read_unknown(block, MAX_SACK_BLOCKS, context, rack, findings);
            known.push(block);
        }
        self.known_blocks = known;
    }

    /// Marks the part of `block` that is outside of the previously known blocks. The first `depth` of these
    /// still have to be cut out.
    fn read_unknown(
        &mut self,
        block: Range,
        depth: usize,
        context: AckContext,
        rack: &mut Rack,
        findings: &mut Findings,
    ) {
        if block.is_empty() {
            return;
        }
        if depth == 0 {
            self.mark_sacked(block, context, rack, findings);
            return;
        }
        let known = self
            .known_blocks
            .as_slice()
            .get(depth - 1)
            .copied()
            .unwrap_or_default();
        if known.is_empty() || known.end <= block.start || block.end <= known.start {
            self.read_unknown(block, depth - 1, context, rack, findings);
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
        self.read_unknown(before, depth - 1, context, rack, findings);
        self.read_unknown(after, depth - 1, context, rack, findings);
    }

    fn mark_sacked(&mut self, block: Range, context: AckContext, rack: &mut Rack, findings: &mut Findings) {
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
            rack.delivered(order, sent_at, resent, context.now, context.rtt_min);
            if tags.any(Tags::RESENT) {
                // A retransmission of a segment that is not, or no longer, considered lost stays in flight.
                if tags.any(Tags::LOST) {
                    segment.tags.clear(Tags::LOST.and(Tags::RESENT));
                    self.lost -= 1;
                    self.resent -= 1;
                }
            } else {
                if !resent {
                    if self.sacked > 0 && range.start < self.highest_sacked {
                        findings.late_from = findings.late_from.min(range.start);
                    }
                    findings.original_delivered |= range.end <= context.high;
                    let first = findings.sacked_sent_at.map_or(sent_at, |(first, _)| first);
                    findings.sacked_sent_at = Some((first, sent_at));
                }
                if tags.any(Tags::LOST) {
                    segment.tags.clear(Tags::LOST);
                    self.lost -= 1;
                }
            }
            if let Some(rates) = &mut self.rates {
                rates.delivered(self.first + index as u64);
            }
            findings.sacked += 1;
            findings.delivered_before = findings.delivered_before.max(segment.delivered_before);
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

    /// Handles the report of a duplicate of this block. Retransmissions in it are no longer in flight.
    /// Returns how many segments in it were ever retransmitted.
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

    /// RACK: marks segments as lost that were sent before the newest delivered transmission, if the
    /// reordering window has passed since. Returns how long, in µs, until all the others count as lost.
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
                // A loss probe repeats the last segment, even if it has arrived.
                None if segment.tags.any(Tags::SACKED) => self.remove_from_time_order(number),
                None => self.mark_lost(number),
                Some(micros) => wait = wait.max(Some(micros)),
            }
            number = newer;
        }
        wait
    }

    /// Handles a timeout: marks as lost the first segment and all others that were not sent very recently.
    /// `forget_sack` says that the receiver has discarded data that it had SACKed (reneging).
    pub(super) fn mark_timed_out(&mut self, rack: &Rack, forget_sack: bool, now: u64) {
        if forget_sack || !self.selective {
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
        debug_assert!(
            !segment.tags.any(Tags::SACKED),
            "a segment that has arrived is not lost"
        );
        let resent = segment.tags.any(Tags::RESENT);
        let is_news = resent || !segment.tags.any(Tags::LOST);
        if !segment.tags.any(Tags::LOST) {
            segment.tags.set(Tags::LOST);
            self.lost += 1;
        }
        if resent {
            segment.tags.clear(Tags::RESENT);
            self.resent -= 1;
        }
        if is_news {
            self.losses += 1;
            if let Some(rates) = &mut self.rates {
                rates.lost(number, self.losses);
            }
        }
        self.resend_from = self.resend_from.min(number);
        self.remove_from_time_order(number);
    }

    /// Without SACK: handles a duplicate acknowledgement, which shows that one more segment has arrived
    /// behind the first one. Returns true if there are more duplicates than segments, which shows reordering.
    pub(super) fn add_duplicate(&mut self) -> bool {
        self.sacked += 1;
        let too_many = self.limit_duplicates();
        self.delivered += u64::from(!too_many);
        too_many
    }

    /// Without SACK: handles that `acked` segments were acknowledged. One of them was missing. The others
    /// were already counted as duplicates, as far as there were any. Returns true if there are more
    /// duplicates than segments.
    pub(super) fn remove_duplicates(&mut self, acked: u32) -> bool {
        if acked == 0 {
            return false;
        }
        self.delivered += u64::from(acked.saturating_sub(self.sacked).max(1));
        self.sacked = self.sacked.saturating_sub(acked - 1);
        self.limit_duplicates()
    }

    /// Without SACK: at least one segment is missing, so fewer duplicates than segments are possible.
    fn limit_duplicates(&mut self) -> bool {
        let outstanding = self.outstanding_segments();
        let most = outstanding - self.lost.max(1).min(outstanding);
        let too_many = self.sacked > most;
        self.sacked = self.sacked.min(most);
        too_many
    }

    /// Without SACK: forgets the duplicates.
    pub(super) fn forget_duplicates(&mut self) {
        self.sacked = 0;
    }

    /// Without SACK: the first segment is lost.
    pub(super) fn mark_head_lost(&mut self) {
        if self.ring.front().is_some_and(|head| !head.tags.any(Tags::LOST)) {
            self.mark_lost(self.first);
            self.limit_duplicates();
        }
    }

    /// Returns the sample of the delivery rate after an acknowledgement, if rates are sampled.
    pub(super) fn take_rate(&mut self, rtt_min: u64, now: u64) -> Option<RateSample> {
        let (delivered, losses) = (self.delivered, self.losses);
        let rates = self.rates.as_mut()?;
        Some(rates.take(delivered, losses, rtt_min, now))
    }

    /// Moves the losses detected since the last call into `list`, if rates are sampled.
    pub(super) fn take_lost(&mut self, list: &mut Vec<LostTransmission>) {
        if let Some(rates) = &mut self.rates {
            rates.take_lost(list);
        }
    }

    /// The application, or the congestion control on purpose, sends less than the path could deliver.
    pub(super) fn limit_rates(&mut self) {
        let in_flight = self.in_flight();
        if let Some(rates) = &mut self.rates {
            rates.limit_by_application(self.delivered, in_flight);
        }
    }

    /// Returns whether the application limits the sender. False if rates are not sampled.
    pub(super) fn is_app_limited(&self) -> bool {
        self.rates.as_ref().is_some_and(|rates| rates.is_app_limited())
    }

    /// Clears all loss marks, because nothing was lost.
    pub(super) fn unmark_lost(&mut self) {
        for segment in &mut self.ring {
            segment.tags.clear(Tags::LOST);
        }
        self.lost = 0;
    }

    /// Returns the first lost segment that was not retransmitted since.
    pub(super) fn next_to_resend(&mut self) -> Option<Outstanding> {
        // As many retransmissions are in flight as segments are lost, so none is missing.
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

    /// Returns the first outstanding segment.
    pub(super) fn head(&self) -> Option<Outstanding> {
        (!self.ring.is_empty()).then(|| self.outstanding(0))
    }

    /// Returns the last outstanding segment.
    pub(super) fn tail(&self) -> Option<Outstanding> {
        let last = self.ring.len().checked_sub(1)?;
        Some(self.outstanding(last))
    }

    /// Returns whether the first outstanding segment is SACKed, which contradicts the cumulative
    /// acknowledgement.
    pub(super) fn is_head_sacked(&self) -> bool {
        self.ring.front().is_some_and(|head| head.tags.any(Tags::SACKED))
    }

    /// Returns whether a retransmission may be in flight, or the first segment was ever retransmitted.
    pub(super) fn is_any_resent(&self) -> bool {
        let head_resent = self
            .ring
            .front()
            .is_some_and(|head| head.tags.any(Tags::EVER_RESENT));
        self.resent > 0 || head_resent
    }

    /// Returns the number of segments sent and not acknowledged cumulatively.
    pub(super) fn outstanding_segments(&self) -> u32 {
        self.ring.len() as u32
    }

    /// Returns the estimated number of segments in the network.
    pub(super) fn in_flight(&self) -> u32 {
        self.outstanding_segments() + self.resent - self.sacked - self.lost
    }

    /// Returns the number of segments that the receiver holds behind a hole.
    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Returns the number of segments considered lost, retransmitted or not.
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    /// Returns the number of retransmissions in flight.
    pub(super) fn resent_in_flight(&self) -> u32 {
        self.resent
    }

    /// Returns the number of segments delivered since the connection began.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the number of losses detected since the connection began.
    pub(super) fn losses(&self) -> u64 {
        self.losses
    }

    /// Returns the number after the highest SACKed one, or `una` if nothing is SACKed.
    pub(super) fn highest_sacked(&self, una: u64) -> u64 {
        if self.sacked == 0 {
            una
        } else {
            self.highest_sacked
        }
    }

    /// Makes a segment the newest one in the time order. Returns the one before it.
    #[inline]
    fn link_newest(&mut self, number: u64) -> u64 {
        let newest = std::mem::replace(&mut self.newest, number);
        match newest {
            NONE => self.oldest = number,
            _ => self.ring[(newest - self.first) as usize].newer = number,
        }
        newest
    }

    fn append_to_time_order(&mut self, number: u64) {
        let newest = self.link_newest(number);
        let segment = &mut self.ring[(number - self.first) as usize];
        segment.older = newest;
        segment.newer = NONE;
        segment.in_time_order = true;
    }

    fn remove_from_time_order(&mut self, number: u64) {
        let segment = &mut self.ring[(number - self.first) as usize];
        if !segment.in_time_order {
            return;
        }
        segment.in_time_order = false;
        let (older, newer) = (segment.older, segment.newer);
        self.unlink(older, newer);
    }

    /// Links the neighbours of a segment in the time order with each other.
    #[inline]
    fn unlink(&mut self, older: u64, newer: u64) {
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

/// Returns how long RACK still waits for a transmission, µs.
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

    /// A segment of the model: plain flags, searched one by one.
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

    /// A model of the scoreboard: all segments ever sent, and RACK's newest delivery.
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
                    // The retransmission of a segment that is not considered lost stays in flight.
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
        fn the_counters_equal_those_of_a_plain_list(steps in prop::collection::vec(step(), 1..120)) {
            let mut board = Scoreboard::new(true, false);
            let mut rack = Rack::new();
            let mut model = Model::default();
            // Late enough that every round trip is positive.
            let mut now = 1000;
            for step in steps {
                now += 3;
                let (una, end) = (model.una(), model.segments.len());
                let context = AckContext { now, rtt_min: 0, high: 0, echo: 0 };
                let mut findings = Findings::new();
                match step {
                    Step::Send(count) => for index in end..end + usize::from(count) {
                        board.sent(range(index, index + 1), now);
                        model.segments.push(Known::default());
                        model.transmit(index, now);
                    },
                    Step::Acknowledge(count) => {
                        let count = usize::from(count).min(end - una);
                        board.acknowledge(range(0, una + count).end, context, &mut rack, &mut findings);
                        prop_assert_eq!(findings.acked as usize, count);
                        model.acknowledge(count, now);
                    }
                    Step::Sack(from, count) if end > una + 1 => {
                        // Never the first segment, because that would be acknowledged.
                        let from = una + 1 + usize::from(from) % (end - una - 1);
                        let to = (from + usize::from(count)).min(end);
                        let mut option = SackBlocks::NONE;
                        option.push(range(from, to));
                        let before = model.segments.iter().filter(|segment| segment.sacked).count();
                        let una_number = range(0, una).end;
                        board.read_sack(&option, false, una_number, context, &mut rack, &mut findings);
                        model.sack(from, to, now);
                        let after = model.segments.iter().filter(|segment| segment.sacked).count();
                        prop_assert_eq!(findings.sacked as usize, after - before);
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
                        for (index, segment) in outstanding.enumerate() {
                            if !segment.sacked && (index == 0 || segment.sent_at + rtt <= now) {
                                segment.lost = true;
                                segment.resent = false;
                            }
                        }
                    }
                    Step::TimeOut => {}
                }
                let count = |of: fn(&Known) -> bool| {
                    model.outstanding().filter(|segment| of(segment)).count() as u32
                };
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
    fn a_probe_of_a_segment_that_has_arrived_is_not_lost() {
        let mut board = Scoreboard::new(true, false);
        let mut rack = Rack::new();
        let sack = |board: &mut Scoreboard, rack: &mut Rack, block: Range, now: u64| {
            let mut blocks = SackBlocks::NONE;
            blocks.push(block);
            let context = AckContext {
                now,
                rtt_min: 1,
                high: 0,
                echo: 0,
            };
            board.read_sack(&blocks, false, 1, context, rack, &mut Findings::new());
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
