//! The sending end: opens the connection, sends the data that the application writes, and recovers from
//! losses.
//!
//! ```text
//!   on_segment -> ack.rs       what it acknowledges, SACKs and measures
//!              -> recovery.rs  loss or mark; states Open, Disorder, Reduced, Recovery, Loss; undo
//!   on_timer   -> timers.rs    timeout, tail loss probe (TLP), reordering timer
//!   poll_transmit -> transmit.rs   retransmissions, then new data, as far as the windows allow
//! ```

mod ack;
mod recovery;
mod timers;
mod transmit;

use fairgate::Time;

use super::clock::{Clock, Moment};
use super::config::Config;
use super::congestion::{Control, Window};
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
/// The memory that Linux counts per segment besides its payload, bytes. It limits the content of the send
/// buffer.
const SEGMENT_OVERHEAD: u32 = 768;
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
    control: Control,

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
        let rtt = RttEstimator::new();
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
            partial_end: 0,
            last_sent: now.jiffies,
            timestamp: 0,
            board: Scoreboard::new(),
            rack: Rack::new(),
            timeout: clock.ticks(rtt.timeout()),
            rtt,
            window: Window::new(config.initial_window),
            usage: Usage::new(now),
            control: Control::new(config, clock, now, 1),
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

    /// Lets the application write `bytes` more.
    ///
    /// # Panics
    /// Panics after [`close`](Sender::close).
    pub fn write(&mut self, bytes: u64, now: Time) {
        assert!(!self.closing, "`write` must not be called after `close`");
        self.now = self.clock.read(now);
        self.restart_after_idle();
        self.written = self.written.saturating_add(bytes).min(ENDLESS);
        self.polling = true;
    }

    /// Lets the application write without end.
    pub fn write_forever(&mut self, now: Time) {
        self.write(ENDLESS, now);
    }

    /// Lets the application finish writing: a FIN is sent after the last byte.
    pub fn close(&mut self, now: Time) {
        self.now = self.clock.read(now);
        self.closing = true;
        self.polling = true;
    }

    /// Handles a segment that has arrived. Afterwards, poll for segments to send, and read the timer again.
    pub fn on_segment(&mut self, segment: &Segment, now: Time) {
        self.now = self.clock.read(now);
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
        self.state = State::Established;
        self.established_at = Some(self.now.time);
        self.timestamp = segment.timestamp;
        self.ecn = self.config.ecn && segment.flags.contains(Flags::ECE);
        self.una = 1;
        self.peer_edge = segment.ack + u64::from(segment.window);
        if self.timeouts == 0 {
            let rtt = self.now.micros - self.syn_sent_at;
            self.rtt.observe_minimum(rtt);
            self.rtt.measure(rtt, self.una, self.next);
            self.timeout = self.clock.ticks(self.rtt.timeout());
        } else {
            // RFC 6298, 5.7: after a lost SYN the window is small (RFC 5681, 3.1).
            self.window.size = if self.timeouts > 1 { 1 } else { self.window.size };
            self.timeout = self.clock.ticks(3 * super::rtt::RTO_INITIAL);
        }
        self.timeouts = 0;
        self.timer = None;
        self.last_sent = self.now.jiffies;
        self.usage = Usage::new(self.now);
        self.control = Control::new(&self.config, self.clock, self.now, self.next);
    }

    /// Linux's `tcp_slow_start_after_idle`: halves the window for each timeout during which nothing was sent.
    fn restart_after_idle(&mut self) {
        if !self.config.slow_start_after_idle
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
        self.timer.map(|timer| timer.at)
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

    /// Returns the estimated number of segments in the network.
    pub fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    /// Returns the counters.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }
}
