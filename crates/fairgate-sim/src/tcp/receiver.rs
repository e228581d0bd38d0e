//! The receiving end: puts segments in order and decides when to acknowledge them, as Linux does.
//!
//! If full segments arrive in order, every second one is acknowledged at once. A single one is acknowledged
//! after 40 to 200 ms (delayed acknowledgement), unless that is switched off. The following are acknowledged
//! at once: the first 16 segments, segments while the window grows, duplicates, the first CE mark ("quick
//! acknowledgement"), and the segment that fills the last hole. Behind a hole, the first three segments are
//! acknowledged at once. After that, at most one acknowledgement is sent per millisecond or twentieth of the
//! RTT ("SACK compression").
//!
//! The application reads at once, so the buffer holds only segments behind a hole. Sequence numbers don't
//! wrap here, so timestamps need not protect against old duplicates (PAWS).

use fairgate::{Ecn, Time};

use super::accurate_ecn::{AccurateEcn, MarkCounts};
use super::clock::{Clock, Moment};
use super::config::Config;
use super::reassembly::Reassembly;
use super::receive_window::ReceiveWindow;
use super::rtt::{RTO_MAX, RttEstimator};
use super::segment::{Flags, MAX_SACK_BLOCKS, Range, SackBlocks, Segment};

/// The assumed segment size of the peer before its first segment.
const MSS_GUESS: u32 = 536;
/// The maximum number of consecutive quick acknowledgements, at the start or after a duplicate.
const QUICK_ACKS: u32 = 16;
/// The same after a CE mark.
const QUICK_ACKS_ECN: u32 = 2;
/// The number of duplicate acknowledgements before compression begins. The sender's loss detection needs
/// three.
const UNCOMPRESSED: u32 = 3;
/// The maximum of the delay of an acknowledgement, µs (`TCP_DELACK_MAX`).
const DELAY_MAX: u64 = 200_000;
/// The maximum number of acknowledgements compressed into one.
const COMPRESSED_MAX: u32 = 44;
/// The maximum delay of a compressed acknowledgement, ns, and what the kernel's timer adds to it (`slack`).
const COMPRESSION_DELAY_MAX: u64 = 1_000_000;
const COMPRESSION_SLACK: u64 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listening,
    SynReceived,
    Established,
}

/// The receiving end of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    clock: Clock,
    now: Moment,
    state: State,
    wants_ecn: bool,
    ecn: bool,
    /// When the last data arrived.
    last_data: Moment,
    /// The next number expected.
    next: u64,
    /// The number that was last acknowledged.
    acknowledged: u64,
    /// The number of the FIN, once it was seen.
    fin: Option<u64>,
    reassembly: Reassembly,
    window: ReceiveWindow,
    rtt: RttEstimator,
    /// The TSval to echo (RFC 7323, 4.3).
    timestamp: u32,
    /// The duplicate to report.
    duplicate: Option<Range>,
    acks: AckPolicy,
    /// Whether acknowledgements carry ECE: a CE mark was received, but no CWR since. With exact echo: the
    /// last segment was marked.
    echo_congestion: bool,
    /// Whether every mark is echoed, instead of the first one until it is answered.
    echoes_exactly: bool,
    /// The counts of marks, if they are reported instead of an echo (AccECN).
    marks: Option<MarkCounts>,
    /// Whether acknowledgements report what arrived behind a hole.
    sack: bool,
    /// The state of the SYN-ACK until it is acknowledged.
    syn_ack: Option<SynAck>,
    /// The segment that `poll_transmit` has to send.
    pending: Option<Pending>,
    acks_sent: u64,
}

#[derive(Clone, Copy, Debug)]
struct SynAck {
    sent_at: u64,
    repeated: bool,
    again_at: Time,
    timeout: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    SynAck,
    Ack,
}

/// Decides when to acknowledge.
#[derive(Clone, Debug)]
struct AckPolicy {
    /// The size of the peer's full segments, bytes.
    segment_size: u32,
    /// The remaining number of quick acknowledgements.
    quick: u32,
    /// The delay of an acknowledgement, ticks. It is 0 before the first segment.
    delay: u64,
    /// Whether acknowledgements may wait.
    may_wait: bool,
    /// The minimum and maximum of the delay, ticks.
    delay_min: u64,
    delay_max: u64,
    /// The tick of the last segment in order.
    last_segment: u64,
    /// Whether there is something to acknowledge.
    scheduled: bool,
    /// Whether it has to be acknowledged at once.
    now: bool,
    /// Whether a write of the peer has ended. It is then acknowledged as soon as the application has read it.
    pushed: bool,
    /// The tick and time of the delayed acknowledgement.
    delayed: Option<(u64, Time)>,
    /// The number of compressed acknowledgements, and when one is sent for all of them.
    compressed: u32,
    compressed_until: Option<Time>,
    /// The number of duplicate acknowledgements of `duplicates_of`.
    duplicates: u32,
    duplicates_of: u64,
}

impl Receiver {
    /// Creates a receiver that waits for a SYN.
    ///
    /// # Panics
    /// Panics if a number of the configuration is 0.
    pub fn new(config: &Config, now: Time) -> Receiver {
        config.assert_sound();
        let clock = Clock::new(config.hz);
        let now = clock.read(now);
        let delay = config.delayed_ack.unwrap_or_default().as_micros() as u64;
        Receiver {
            clock,
            now,
            state: State::Listening,
            wants_ecn: config.ecn,
            ecn: false,
            last_data: now,
            next: 0,
            acknowledged: 0,
            fin: None,
            reassembly: Reassembly::default(),
            window: ReceiveWindow::new(config, now),
            rtt: RttEstimator::new(config),
            timestamp: 0,
            duplicate: None,
            acks: AckPolicy {
                segment_size: MSS_GUESS,
                quick: 0,
                delay: 0,
                may_wait: config.delayed_ack.is_some(),
                delay_min: clock.ticks(delay).max(1),
                delay_max: clock.ticks(delay.max(DELAY_MAX)),
                last_segment: 0,
                scheduled: false,
                now: false,
                pushed: false,
                delayed: None,
                compressed: 0,
                compressed_until: None,
                duplicates: 0,
                duplicates_of: 0,
            },
            echo_congestion: false,
            echoes_exactly: config.congestion_control.is_scalable(),
            marks: config
                .congestion_control
                .needs_accurate_ecn()
                .then(MarkCounts::default),
            sack: config.sack,
            syn_ack: None,
            pending: None,
            acks_sent: 0,
        }
    }

    /// Opens the receiver of the end that has opened the connection: `segment` is the SYN-ACK. `rtt` is the
    /// round-trip time of the handshake, µs, if it was measured. Does nothing if the receiver is open.
    pub fn accept(&mut self, segment: &Segment, rtt: Option<u64>, now: Time) {
        if self.state != State::Listening {
            return;
        }
        self.clock.advance(&mut self.now, now);
        self.state = State::Established;
        self.ecn = self.wants_ecn && segment.flags.contains(Flags::ECE);
        self.next = 1;
        self.acknowledged = 1;
        self.timestamp = segment.timestamp;
        if let Some(rtt) = rtt {
            self.rtt.measure(rtt, 1, 1);
        }
        self.window.establish(self.now);
        self.last_data = self.now;
    }

    /// Writes the acknowledgement into a segment that the same host sends in the opposite direction. It
    /// replaces an acknowledgement that is due. If there are blocks to report, an acknowledgement of its own
    /// follows, because a full segment has no room for them.
    pub fn piggyback(&mut self, segment: &mut Segment, now: Time) {
        if self.state != State::Established {
            return;
        }
        self.clock.advance(&mut self.now, now);
        segment.ack = self.next;
        segment.window = self.window.offer(self.next, self.reassembly.bytes());
        segment.echo = self.timestamp;
        if self.echo_congestion {
            segment.flags |= Flags::ECE;
        }
        if self.duplicate.is_none() && self.reassembly.is_empty() {
            self.pending = None;
            self.acknowledged = self.next;
            self.acks.on_sent();
        }
    }

    /// Returns whether the handshake is complete.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Returns the smoothed RTT, µs, if it was measured: that of the handshake.
    pub fn smoothed_rtt(&self) -> Option<u64> {
        self.rtt.smoothed()
    }

    /// Handles a segment that has arrived. Afterwards, poll for segments to send, and read the timer again.
    pub fn on_segment(&mut self, segment: &Segment, now: Time) {
        self.clock.advance(&mut self.now, now);
        if segment.flags.contains(Flags::SYN) {
            self.on_syn(segment);
            return;
        }
        match self.state {
            // The segment overtook the SYN. There is no connection yet.
            State::Listening => return,
            State::SynReceived => self.establish(segment),
            State::Established => {}
        }
        if segment.range().is_empty() {
            if segment.seq <= self.acknowledged {
                self.timestamp = self.timestamp.max(segment.timestamp);
            }
            return;
        }
        self.on_data(segment);
    }

    /// Handles the timer. Afterwards, poll for segments to send, and read the timer again.
    pub fn on_timer(&mut self, now: Time) {
        self.clock.advance(&mut self.now, now);
        if let Some(syn_ack) = &mut self.syn_ack
            && syn_ack.again_at <= now
        {
            syn_ack.repeated = true;
            syn_ack.timeout = (syn_ack.timeout * 2).min(RTO_MAX);
            syn_ack.again_at = self.clock.expiry(self.now, self.clock.ticks(syn_ack.timeout));
            self.pending = Some(Pending::SynAck);
        }
        if self.acks.compressed_until.is_some_and(|until| until <= now) {
            self.acks.compressed_until = None;
            self.pending = Some(Pending::Ack);
        }
        if self.acks.delayed.is_some_and(|(_, until)| until <= now) {
            self.acks.delayed = None;
            if self.acks.scheduled {
                // The peer sends more slowly than assumed, so wait longer next time.
                self.acks.delay = (self.acks.delay * 2).min(self.clock.ticks(self.rtt.timeout()));
                self.pending = Some(Pending::Ack);
            }
        }
    }

    /// Returns the next segment to send, if there is one.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let pending = self.pending.take()?;
        self.clock.advance(&mut self.now, now);
        Some(match pending {
            Pending::SynAck => self.make_syn_ack(),
            Pending::Ack => self.make_ack(),
        })
    }

    /// Returns when to call [`on_timer`](Receiver::on_timer).
    pub fn timer(&self) -> Option<Time> {
        [
            self.syn_ack.map(|syn_ack| syn_ack.again_at),
            self.acks.compressed_until,
            self.acks.delayed.map(|(_, until)| until),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Returns the payload delivered in order to the application, bytes.
    pub fn delivered(&self) -> u64 {
        let fin = self.fin.is_some_and(|fin| fin < self.next);
        self.next.saturating_sub(1) - u64::from(fin)
    }

    /// Returns whether everything up to the sender's FIN was delivered to the application.
    pub fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| fin < self.next)
    }

    /// Releases memory that is needed only while segments are missing.
    pub fn release_memory(&mut self) {
        self.reassembly.release_memory();
    }

    /// Returns the number of segments sent: acknowledgements and SYN-ACKs.
    pub fn segments_sent(&self) -> u64 {
        self.acks_sent
    }

    fn on_syn(&mut self, segment: &Segment) {
        if self.state == State::Established {
            // The SYN-ACK was already acknowledged, so this SYN is an old copy.
            self.pending = Some(Pending::Ack);
            return;
        }
        if self.state == State::Listening {
            self.state = State::SynReceived;
            self.ecn = self.wants_ecn && segment.flags.contains(Flags::ECE | Flags::CWR);
            self.next = 1;
            self.acknowledged = 1;
            self.timestamp = segment.timestamp;
            let timeout = self.rtt.timeout_initial();
            self.syn_ack = Some(SynAck {
                sent_at: self.now.micros,
                repeated: false,
                again_at: self.clock.expiry(self.now, self.clock.ticks(timeout)),
                timeout,
            });
        } else if let Some(syn_ack) = &mut self.syn_ack {
            syn_ack.repeated = true;
        }
        self.pending = Some(Pending::SynAck);
    }

    fn establish(&mut self, segment: &Segment) {
        self.state = State::Established;
        if let Some(syn_ack) = self.syn_ack.take()
            && !syn_ack.repeated
        {
            self.rtt.measure(self.now.micros - syn_ack.sent_at, 1, 1);
        }
        self.window.establish(self.now);
        self.last_data = self.now;
        // A SYN-ACK that was not sent yet is no longer needed.
        self.pending = None;
        self.timestamp = segment.timestamp;
    }

    fn on_data(&mut self, segment: &Segment) {
        self.finish_read();
        let range = segment.range();
        if segment.flags.contains(Flags::FIN) {
            self.fin = Some(range.end - 1);
        }
        if range.end <= self.next {
            self.on_duplicate(range);
        } else if range.start > self.next {
            if range.end > self.window.right_edge() {
                // It is outside of the window, which was never offered.
                self.on_duplicate(Range::default());
            } else {
                self.on_gap(segment, range);
            }
        } else {
            self.on_next(segment, range);
        }
        if self.acks.scheduled && self.pending.is_none() {
            self.decide();
        }
        self.read();
    }

    fn on_duplicate(&mut self, range: Range) {
        if !range.is_empty() {
            self.duplicate = Some(range);
        }
        self.acks.be_quick(QUICK_ACKS, self.window.current(self.next));
        self.acks.scheduled = true;
    }

    fn on_gap(&mut self, segment: &Segment, range: Range) {
        self.window.measure_echo(segment, self.now);
        self.check_congestion(segment);
        self.acks.scheduled = true;
        if !self.reassembly.insert(range) {
            self.duplicate = Some(range);
        } else if self.window.on_full_segment(self.reassembly.bytes()) {
            self.acks.quick |= 1;
        }
    }

    fn on_next(&mut self, segment: &Segment, range: Range) {
        if segment.seq <= self.acknowledged {
            self.timestamp = self.timestamp.max(segment.timestamp);
        }
        if range.start < self.next {
            self.duplicate = Some(Range {
                start: range.start,
                end: self.next,
            });
        }
        if segment.flags.contains(Flags::CWR) && !self.echoes_exactly {
            self.echo_congestion = false;
            // The sender's window may be one segment, so do not let it wait.
            self.acks.now = true;
        }
        self.window.measure_echo(segment, self.now);
        self.next = range.end;
        self.on_progress(segment);
        if !self.reassembly.is_empty() {
            self.next = self.reassembly.advance(self.next);
            // RFC 5681, 4.2: a filled gap is acknowledged at once.
            self.acks.now |= self.reassembly.is_empty();
        }
        self.acks.now |= self.is_finished();
    }

    /// Learns the peer's segment size and timing from a segment in order.
    fn on_progress(&mut self, segment: &Segment) {
        self.acks.scheduled = true;
        if segment.length >= self.acks.segment_size {
            self.acks.segment_size = segment.length;
        }
        self.acks.pushed |= segment.flags.contains(Flags::PSH);
        self.window.measure_round(self.next, self.now);
        let timeout = || self.clock.ticks(self.rtt.timeout());
        self.acks
            .on_segment_in_order(self.now.jiffies, timeout, self.window.current(self.next));
        self.check_congestion(segment);
        if segment.length >= 128 && self.window.on_full_segment(self.reassembly.bytes()) {
            self.acks.quick |= 1;
        }
    }

    fn check_congestion(&mut self, segment: &Segment) {
        if self.ecn
            && let Some(marks) = &mut self.marks
        {
            self.acks.now |= marks.count(segment.ecn == Ecn::Ce, segment.length);
            return;
        }
        if self.ecn && self.echoes_exactly {
            // A change is reported at once. RFC 8257 requires a separate acknowledgement with the old echo
            // for earlier segments. It is omitted here: it concerns at most one segment, which is marked as
            // often as unmarked.
            let is_marked = segment.ecn == Ecn::Ce;
            self.acks.now |= is_marked != self.echo_congestion;
            self.echo_congestion = is_marked;
            return;
        }
        if self.ecn && segment.ecn == Ecn::Ce && !self.echo_congestion {
            self.echo_congestion = true;
            self.acks.be_quick(QUICK_ACKS_ECN, self.window.current(self.next));
        }
    }

    /// Decides whether to acknowledge now, together with others, or later.
    fn decide(&mut self) {
        let unacknowledged = self.next - self.acknowledged;
        let window_moves =
            self.window.selectable(self.reassembly.bytes()) >= self.window.current(self.acknowledged);
        if (unacknowledged > u64::from(self.acks.segment_size) && window_moves)
            || self.acks.quick > 0
            || self.acks.now
            || !self.acks.may_wait
        {
            self.pending = Some(Pending::Ack);
        } else if self.reassembly.is_empty() {
            self.delay();
        } else {
            self.compress();
        }
    }

    /// SACK compression: acknowledges the first duplicates at once and the others together.
    fn compress(&mut self) {
        let acks = &mut self.acks;
        if acks.duplicates_of != self.next {
            acks.duplicates_of = self.next;
            acks.duplicates = 0;
        }
        if !self.sack || acks.duplicates < UNCOMPRESSED || acks.compressed >= COMPRESSED_MAX {
            acks.duplicates += 1;
            self.pending = Some(Pending::Ack);
            return;
        }
        acks.compressed += 1;
        if acks.compressed_until.is_none() {
            let rtt = self
                .rtt
                .smoothed()
                .map_or(self.window.rtt(), |rtt| rtt.min(self.window.rtt()));
            let delay = (rtt * 1000 / 20).min(COMPRESSION_DELAY_MAX);
            acks.compressed_until = Some(self.now.time + delay + COMPRESSION_SLACK);
        }
    }

    /// Delayed acknowledgement (RFC 1122, 4.2.3.2).
    fn delay(&mut self) {
        let acks = &mut self.acks;
        let mut delay = acks.delay;
        if delay > acks.delay_min {
            let mut most = self.clock.ticks(500_000);
            if let Some(rtt) = self.rtt.smoothed() {
                most = most.min(self.clock.ticks(rtt).max(acks.delay_min));
            }
            delay = delay.min(most);
        }
        let delay = delay.min(acks.delay_max);
        let due = self.now.jiffies + delay;
        if let Some((earlier, _)) = acks.delayed {
            if earlier <= self.now.jiffies + delay / 4 {
                self.pending = Some(Pending::Ack);
                return;
            }
            if earlier <= due {
                return;
            }
        }
        acks.delayed = Some((due, self.clock.expiry(self.now, delay)));
    }

    /// Ends a read of the application. It reads everything that arrives at one instant at once, so a later
    /// segment ends the read.
    fn finish_read(&mut self) {
        if self.now.time > self.last_data.time {
            self.window.on_read(self.next, self.last_data);
        }
    }

    /// The application reads all data in order. This may require an acknowledgement.
    fn read(&mut self) {
        self.last_data = self.now;
        if self.pending.is_some() || !self.acks.scheduled {
            return;
        }
        let unacknowledged = self.next - self.acknowledged;
        let offered = self.window.current(self.next);
        let worth_telling = 2 * offered <= self.window.selectable(self.reassembly.bytes());
        if unacknowledged > u64::from(self.acks.segment_size) || worth_telling || self.acks.pushed {
            self.pending = Some(Pending::Ack);
        }
    }

    fn make_syn_ack(&mut self) -> Segment {
        self.acks_sent += 1;
        let mut flags = Flags::SYN | Flags::ACK;
        if self.ecn {
            flags |= Flags::ECE;
        }
        Segment {
            seq: 0,
            ack: 1,
            window: self.window.current(1) as u32,
            timestamp: self.now.timestamp(),
            echo: self.timestamp,
            flags,
            ..Segment::default()
        }
    }

    fn make_ack(&mut self) -> Segment {
        self.acks_sent += 1;
        self.acks.on_sent();
        self.acknowledged = self.next;
        let mut sack = SackBlocks::NONE;
        let duplicate = self.duplicate.take();
        if self.sack {
            if let Some(duplicate) = duplicate {
                sack.push(duplicate);
            }
            self.reassembly.report(&mut sack);
        }
        let has_room = sack.as_slice().len() < MAX_SACK_BLOCKS;
        let accurate_ecn = match &mut self.marks {
            Some(marks) if self.ecn => marks.report(has_room),
            _ => AccurateEcn::default(),
        };
        let mut flags = Flags::ACK;
        if self.echo_congestion {
            flags |= Flags::ECE;
        }
        Segment {
            seq: 1,
            ack: self.next,
            window: self.window.offer(self.next, self.reassembly.bytes()),
            timestamp: self.now.timestamp(),
            echo: self.timestamp,
            flags,
            sack,
            accurate_ecn,
            ..Segment::default()
        }
    }
}

impl AckPolicy {
    /// Acknowledges the next segments at once: up to `most`, or fewer if the window is small.
    fn become_quick(&mut self, most: u32, window: u64) {
        let half_window = (window / (2 * u64::from(self.segment_size))) as u32;
        let acks = if half_window == 0 { 2 } else { half_window }.min(most);
        self.quick = self.quick.max(acks);
    }

    fn be_quick(&mut self, most: u32, window: u64) {
        self.become_quick(most, window);
        self.delay = self.delay_min;
    }

    /// Adapts the delay to the gap between segments. `timeout` is the peer's timeout. All are in ticks.
    fn on_segment_in_order(&mut self, now: u64, timeout: impl Fn() -> u64, window: u64) {
        if self.delay == 0 {
            self.become_quick(QUICK_ACKS, window);
            self.delay = self.delay_min;
        } else {
            let gap = now - self.last_segment;
            if gap <= self.delay_min / 2 {
                self.delay = self.delay / 2 + self.delay_min / 2;
            } else if gap < self.delay {
                self.delay = (self.delay / 2 + gap).min(timeout());
            } else if gap > timeout() {
                // The sender has been idle and starts with a small window.
                self.become_quick(QUICK_ACKS, window);
            }
        }
        self.last_segment = now;
    }

    fn on_sent(&mut self) {
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay = self.delay_min;
            }
        }
        self.scheduled = false;
        self.now = false;
        self.pushed = false;
        self.delayed = None;
        self.compressed = 0;
        self.compressed_until = None;
    }
}
