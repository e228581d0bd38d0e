//! The sending end: opens the connection, sends the data that the application writes, and recovers from
//! losses.
//!
//! ```text
//!   on_segment -> ack.rs       what it acknowledges, SACKs and measures
//!              -> recovery.rs  loss or mark; states Open, Disorder, Reduced, Recovery, Loss; undo
//!   on_timer   -> timers.rs    timeout, tail loss probe (TLP), reordering timer
//!   poll_transmit -> transmit.rs   retransmissions, then new data, as far as the windows allow
//!
//!   newreno.rs  loss detection without SACK      model.rs  congestion controls that own the window
//! ```

mod ack;
mod model;
mod newreno;
mod recovery;
mod timers;
mod transmit;

use fairgate::Time;

use super::accurate_ecn::MarkReader;
use super::clock::{Clock, Moment};
use super::config::{Config, SEGMENT_OVERHEAD};
use super::congestion::{CongestionState, Window};
use super::delivery_rate::LostTransmission;
use super::pacing::Pacer;
use super::prr::Reduction;
use super::rack::Rack;
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::segment::{Flags, Segment};
use super::usage::Usage;
use recovery::{Phase, Undo};
use timers::Timer;
use transmit::{Probe, Resend};

/// The first missing segment is considered lost after this many segments behind the hole (`tcp_reordering`).
const REORDERING: u32 = 3;
/// The timeout after a handshake that needed a timeout, µs (RFC 6298, 5.7).
const TIMEOUT_FALLBACK: u64 = 3_000_000;
/// More data than any simulation sends, bytes.
const ENDLESS: u64 = 1 << 62;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The SYN was sent or is to be sent.
    Opening,
    Established,
    /// Everything is acknowledged, including the FIN.
    Closed,
}

/// The counters of a sender, for results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Data segments sent, including retransmissions.
    pub data_segments: u64,
    /// Segments retransmitted, including probes.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Fast recoveries entered.
    pub recoveries: u64,
    /// Reductions of the window because of an ECN mark.
    pub ecn_reductions: u64,
    /// Reductions undone as spurious.
    pub undone: u64,
}

impl SenderCounters {
    /// Returns the sums of two senders' counters.
    pub fn plus(self, other: SenderCounters) -> SenderCounters {
        SenderCounters {
            data_segments: self.data_segments + other.data_segments,
            retransmissions: self.retransmissions + other.retransmissions,
            timeouts: self.timeouts + other.timeouts,
            probes: self.probes + other.probes,
            recoveries: self.recoveries + other.recoveries,
            ecn_reductions: self.ecn_reductions + other.ecn_reductions,
            undone: self.undone + other.undone,
        }
    }

    /// Returns what was counted since `earlier`.
    pub fn since(&self, earlier: &SenderCounters) -> SenderCounters {
        SenderCounters {
            data_segments: self.data_segments - earlier.data_segments,
            retransmissions: self.retransmissions - earlier.retransmissions,
            timeouts: self.timeouts - earlier.timeouts,
            probes: self.probes - earlier.probes,
            recoveries: self.recoveries - earlier.recoveries,
            ecn_reductions: self.ecn_reductions - earlier.ecn_reductions,
            undone: self.undone - earlier.undone,
        }
    }
}

/// The sending end of a connection.
#[derive(Clone, Debug)]
pub struct Sender {
    clock: Clock,
    now: Moment,
    config: Config,
    state: State,
    established_at: Option<Time>,

    /// The first unacknowledged number.
    una: u64,
    /// The next number to send.
    next: u64,
    /// The number after the last byte written.
    written: u64,
    /// Whether the application has finished writing, so that a FIN follows.
    closing: bool,
    fin_sent: bool,
    /// The first number after the peer's window.
    peer_edge: u64,
    /// The end of the write that the next new byte is in: writes are of equal size.
    write_end: u64,
    /// The most segments that fit into the send buffer.
    outstanding_max: u32,
    /// The end of the last segment that was not full (Minshall's form of Nagle's rule).
    partial_end: u64,
    /// The tick at which the last data segment was sent.
    last_sent: u64,
    /// The TSval to echo.
    timestamp: u32,

    board: Scoreboard,
    rack: Rack,
    rtt: RttEstimator,
    window: Window,
    usage: Usage,
    control: CongestionState,
    pacer: Pacer,
    /// An empty list, kept for its memory.
    lost: Vec<LostTransmission>,

    phase: Phase,
    /// Lower numbers were sent before the phase began.
    high: u64,
    reduction: Reduction,
    undo: Undo,
    /// Whether forward RTO recovery is in progress (RFC 5682).
    frto: bool,
    /// The learnt reordering of the path, segments.
    reordering: u32,

    /// The outstanding loss probe: `next` when it was sent, and whether it was a retransmission.
    probe_sent: Option<(u64, bool)>,
    timer: Option<Timer>,
    /// The retransmission timeout with back-off, ticks.
    timeout: u64,
    /// The number of consecutive timeouts.
    timeouts: u32,

    ecn: bool,
    /// Reads the counts of marks, if the receiver reports them (AccECN).
    marks: Option<MarkReader>,
    /// Whether the next new segment carries CWR.
    announce_reduction: bool,

    /// Whether an event occurred since `poll_transmit` last returned nothing.
    polling: bool,
    sent_while_polling: u32,
    syn_due: bool,
    /// The time at which the SYN was sent, µs.
    syn_sent_at: u64,
    ack_due: bool,
    probe: Option<Probe>,
    resend: Resend,
    head_resent: bool,

    /// The number of segments reported as duplicates.
    duplicates: u64,
    counters: SenderCounters,
}

impl Sender {
    /// Creates a sender. Its first poll sends the SYN.
    ///
    /// # Panics
    /// Panics if a number of the configuration is 0.
    pub fn new(config: &Config, now: Time) -> Sender {
        config.assert_sound();
        let clock = Clock::new(config.hz);
        let now = clock.read(now);
        let rtt = RttEstimator::new(config);
        Sender {
            clock,
            now,
            config: config.clone(),
            state: State::Opening,
            established_at: None,
            una: 0,
            next: 0,
            written: 1,
            closing: false,
            fin_sent: false,
            peer_edge: 1,
            write_end: 1 + u64::from(config.write_size),
            outstanding_max: (config.send_buffer_max / (config.mss + SEGMENT_OVERHEAD)).max(1),
            partial_end: 0,
            last_sent: now.jiffies,
            timestamp: 0,
            board: Scoreboard::new(config.sack, CongestionState::needs_rates(config)),
            rack: Rack::new(),
            timeout: clock.ticks(rtt.timeout()),
            rtt,
            window: Window::new(config.initial_window),
            usage: Usage::new(now),
            control: CongestionState::new(config, clock, now, 1),
            pacer: Pacer::new(config.is_paced()),
            lost: Vec::new(),
            phase: Phase::Open,
            high: 0,
            reduction: Reduction::default(),
            undo: Undo::default(),
            frto: false,
            reordering: REORDERING,
            probe_sent: None,
            timer: None,
            timeouts: 0,
            ecn: false,
            marks: None,
            announce_reduction: false,
            polling: true,
            sent_while_polling: 0,
            syn_due: true,
            syn_sent_at: 0,
            ack_due: false,
            probe: None,
            resend: Resend::Nothing,
            head_resent: false,
            duplicates: 0,
            counters: SenderCounters::default(),
        }
    }

    /// Creates the sender of the end that accepts a connection. It sends nothing before
    /// [`accept`](Sender::accept).
    ///
    /// # Panics
    /// Panics if a number of the configuration is 0.
    pub fn passive(config: &Config, now: Time) -> Sender {
        Sender {
            next: 1,
            syn_due: false,
            polling: false,
            ..Sender::new(config, now)
        }
    }

    /// Opens a [`passive`](Sender::passive) sender: `segment` has completed the handshake. `rtt` is the time
    /// from the SYN-ACK to this segment, µs. It is `None` if the SYN-ACK was repeated, because the answer is
    /// ambiguous then. Does nothing if the sender is open.
    pub fn accept(&mut self, segment: &Segment, rtt: Option<u64>, now: Time) {
        if self.state != State::Opening {
            return;
        }
        self.clock.advance(&mut self.now, now);
        self.polling = true;
        self.establish(segment, rtt, self.config.ecn);
    }

    /// Lets the application write `bytes` more.
    ///
    /// # Panics
    /// Panics after [`close`](Sender::close).
    pub fn write(&mut self, bytes: u64, now: Time) {
        assert!(!self.closing, "`write` must not be called after `close`");
        self.clock.advance(&mut self.now, now);
        self.restart_after_idle();
        self.written = self.written.saturating_add(bytes).min(ENDLESS);
        self.polling = true;
    }

    /// Lets the application write without end.
    pub fn write_forever(&mut self, now: Time) {
        self.write(ENDLESS, now);
    }

    /// Takes back what the application has written and the connection has not sent yet, except for the data
    /// that fit into a send buffer of `buffered` bytes, behind those that are not acknowledged yet. The
    /// application may write again.
    pub fn withdraw_unsent(&mut self, buffered: u64) {
        let kept = (self.una.max(1) + buffered).max(self.next);
        self.written = self.written.min(kept);
    }

    /// Returns whether a segment that carries data has news for this sender: it acknowledges more or opens
    /// the window. Other data segments repeat an acknowledgement without being a duplicate acknowledgement
    /// (RFC 5681, section 2).
    pub fn is_news(&self, segment: &Segment) -> bool {
        segment.ack > self.una || segment.ack + u64::from(segment.window) > self.peer_edge
    }

    /// Lets the application finish writing: a FIN is sent after the last byte.
    pub fn close(&mut self, now: Time) {
        self.clock.advance(&mut self.now, now);
        self.closing = true;
        self.polling = true;
    }

    /// Handles a segment that has arrived. Afterwards, poll for segments to send, and read the timer again.
    pub fn on_segment(&mut self, segment: &Segment, now: Time) {
        self.clock.advance(&mut self.now, now);
        self.polling = true;
        if segment.flags.contains(Flags::SYN | Flags::ACK) {
            self.on_syn_ack(segment);
        } else if segment.flags.contains(Flags::ACK) && self.state == State::Established {
            self.on_ack(segment);
        }
    }

    fn on_syn_ack(&mut self, segment: &Segment) {
        // A repeated SYN-ACK is also answered, because our ACK may have been lost.
        self.ack_due = true;
        if self.state != State::Opening {
            return;
        }
        let rtt = (self.timeouts == 0).then(|| self.now.micros - self.syn_sent_at);
        // RFC 6298, 5.7: after a lost SYN the window is small (RFC 5681, 3.1).
        if self.timeouts > 1 {
            self.window.size = 1;
        }
        self.establish(segment, rtt, segment.flags.contains(Flags::ECE));
    }

    /// The handshake is complete. `rtt` is its round-trip time, µs. `peer_has_ecn` says whether the peer
    /// supports ECN.
    fn establish(&mut self, segment: &Segment, rtt: Option<u64>, peer_has_ecn: bool) {
        self.state = State::Established;
        self.established_at = Some(self.now.time);
        self.timestamp = segment.timestamp;
        self.ecn = self.config.ecn && peer_has_ecn;
        let counts = self.ecn && self.config.congestion_control.needs_accurate_ecn();
        self.marks = counts.then(MarkReader::new);
        self.una = 1;
        self.peer_edge = segment.ack + u64::from(segment.window);
        match rtt {
            Some(rtt) => {
                self.rtt.observe_minimum(rtt);
                self.rtt.measure(rtt, self.una, self.next);
                self.timeout = self.clock.ticks(self.rtt.timeout());
            }
            None => self.timeout = self.clock.ticks(TIMEOUT_FALLBACK),
        }
        self.timeouts = 0;
        self.timer = None;
        self.last_sent = self.now.jiffies;
        self.usage = Usage::new(self.now);
        self.control = CongestionState::new(&self.config, self.clock, self.now, self.next);
        let (rtt, mss) = (self.rtt.smoothed(), self.config.mss);
        self.control.begin(rtt, &mut self.window, mss, &mut self.pacer);
    }

    /// Linux's `tcp_slow_start_after_idle`: halves the window for each timeout during which nothing was sent.
    fn restart_after_idle(&mut self) {
        if !self.config.slow_start_after_idle
            || self.control.owns_window()
            || self.board.outstanding_segments() > 0
            || self.written > self.next
        {
            return;
        }
        let mut idle = self.now.jiffies.saturating_sub(self.last_sent);
        if idle <= self.timeout {
            return;
        }
        self.window.threshold = self.current_threshold();
        let restart = self.config.initial_window.min(self.window.size);
        while idle > self.timeout && self.window.size > restart {
            idle -= self.timeout;
            self.window.size /= 2;
        }
        self.window.size = self.window.size.max(restart);
        self.usage.restart(self.now);
    }

    /// Returns when to call [`on_timer`](Sender::on_timer).
    pub fn timer(&self) -> Option<Time> {
        let timer = self.timer.map(|timer| timer.at);
        match self.pacer.wake() {
            Some(wake) => Some(timer.map_or(wake, |at| at.min(wake))),
            None => timer,
        }
    }

    /// Prefetches the segments that an acknowledgement is about.
    #[inline]
    pub(crate) fn prefetch_outstanding(&self) {
        self.board.prefetch();
    }

    /// Returns when the handshake was complete.
    pub fn established_at(&self) -> Option<Time> {
        self.established_at
    }

    /// Returns whether all data was acknowledged and the connection is closed.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Returns the bytes written that are not acknowledged yet. For an endless source, this is the rest of
    /// 2^62.
    pub fn unacknowledged(&self) -> u64 {
        self.written.saturating_sub(self.una.max(1))
    }

    /// Returns the congestion window, segments.
    pub fn congestion_window(&self) -> u32 {
        self.window.size
    }

    /// Returns the slow-start threshold, segments. `None` before the first reduction.
    pub fn slow_start_threshold(&self) -> Option<u32> {
        (self.window.threshold < super::congestion::INFINITE).then_some(self.window.threshold)
    }

    /// Returns the smoothed RTT, µs, if it was measured.
    pub fn smoothed_rtt(&self) -> Option<u64> {
        self.rtt.smoothed()
    }

    /// Returns the pacing rate, bytes of payload per second. `None` if segments leave at once.
    pub fn pacing_rate(&self) -> Option<u64> {
        self.pacer.rate()
    }

    /// Returns the estimated number of segments in the network.
    pub fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    /// Releases memory that is needed only while segments are outstanding.
    pub fn release_memory(&mut self) {
        self.board.release_memory();
    }

    /// Returns the counters.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }
}
