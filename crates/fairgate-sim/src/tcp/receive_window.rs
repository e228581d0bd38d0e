//! The receive window and its automatic growth ("dynamic right-sizing", Feng and Fisk, in Linux's form).
//!
//! Half of the receive buffer is offered as window. The other half is for the overhead of small packets. The
//! buffer grows with the amount that the application reads per round trip. The window follows the buffer by
//! two segments per received segment.

use super::clock::Moment;
use super::config::Config;
use super::segment::Segment;

/// The buffer that Linux calculates per full segment of window: twice the segment, rounded up to 2932 bytes
/// for 1460.
const BUFFER_PER_MSS: u64 = 2_932;
/// The payload of a full segment without options. Linux counts buffers in this unit.
const ADVERTISED_MSS: u64 = 1_460;
/// The bytes of a segment that the timestamps option takes.
const TIMESTAMPS: u64 = 12;
/// The number of segments at which the measurement of growth starts.
const INITIAL_SEGMENTS: u64 = 10;
/// The window is offered in units of 2^7 bytes. 6 MiB need this scale.
const SCALE_UNIT: u64 = 128;
/// The maximum window that a SYN-ACK can offer, bytes. It is not scaled.
const UNSCALED_MAX: u64 = 65_535;

/// The state of the window.
#[derive(Clone, Debug)]
pub(super) struct ReceiveWindow {
    /// The receive buffer and its maximum, bytes.
    buffer: u64,
    buffer_max: u64,
    /// The maximum window that may be offered with this buffer.
    clamp: u64,
    /// The window that is offered while there is room (`rcv_ssthresh`).
    threshold: u64,
    /// The first number after the window that was last offered.
    right_edge: u64,
    /// The RTT as measured by the receiver, µs, times 8. It is 0 before the first measurement.
    rtt8: u64,
    /// Measures an RTT as the time in which a window of data arrives: the start time, and the last number.
    rtt_round: Option<(u64, u64)>,
    /// The last echoed timestamp that was measured.
    last_echo: u32,
    /// The bytes read in the last round trip, and the number and time at which the current measurement began.
    read: u64,
    read_from: u64,
    read_since: u64,
}

/// Returns the window for a buffer.
fn offered_by(buffer: u64) -> u64 {
    buffer - buffer / 2
}

impl ReceiveWindow {
    /// Creates the window before the first byte, which has number 1.
    pub(super) fn new(config: &Config, now: Moment) -> ReceiveWindow {
        let buffer = u64::from(config.receive_buffer);
        let space = offered_by(buffer);
        let unit = ADVERTISED_MSS - TIMESTAMPS;
        let whole_segments = if space > unit { space / unit * unit } else { space };
        let offered = whole_segments.min(UNSCALED_MAX);
        // One segment is kept in reserve.
        let clamp = if space > 2 * ADVERTISED_MSS {
            (space - ADVERTISED_MSS).max(2 * ADVERTISED_MSS)
        } else {
            space
        };
        ReceiveWindow {
            buffer,
            buffer_max: u64::from(config.receive_buffer_max),
            clamp,
            threshold: offered.min(clamp),
            right_edge: 1 + offered,
            rtt8: 0,
            rtt_round: None,
            last_echo: 0,
            read: offered.min(clamp).min(INITIAL_SEGMENTS * ADVERTISED_MSS),
            read_from: 1,
            read_since: now.micros,
        }
    }

    /// The handshake is complete. Reading is measured from now on.
    pub(super) fn establish(&mut self, now: Moment) {
        self.read_since = now.micros;
    }

    /// Returns the first number after the window.
    pub(super) fn right_edge(&self) -> u64 {
        self.right_edge
    }

    /// Returns the bytes that are currently offered, from `next` on.
    pub(super) fn current(&self, next: u64) -> u64 {
        self.right_edge.saturating_sub(next)
    }

    /// Returns the window that could be offered now. `held` bytes are queued behind holes.
    pub(super) fn selectable(&self, held: u64) -> u64 {
        let free = offered_by(self.buffer.saturating_sub(held));
        let full = self.clamp.min(offered_by(self.buffer));
        if free < full / 2 && (free < offered_by(self.buffer) / 16 || free < ADVERTISED_MSS) {
            return 0;
        }
        free.min(self.threshold).next_multiple_of(SCALE_UNIT)
    }

    /// Offers a window. A window that was offered is never taken back.
    pub(super) fn offer(&mut self, next: u64, held: u64) -> u32 {
        self.right_edge = self.right_edge.max(next + self.selectable(held));
        self.current(next) as u32
    }

    /// Handles a full segment, after which more may be offered. Returns true if the offer grows. Linux then
    /// acknowledges at once.
    pub(super) fn on_full_segment(&mut self, held: u64) -> bool {
        let free = offered_by(self.buffer.saturating_sub(held));
        let room = self.clamp.min(free).saturating_sub(self.threshold);
        self.threshold += room.min(2 * ADVERTISED_MSS);
        room > 0
    }

    /// Measures the RTT from the timestamp that the sender echoes, ms.
    pub(super) fn measure_echo(&mut self, segment: &Segment, now: Moment) {
        if segment.echo == 0 || segment.echo == self.last_echo {
            return;
        }
        self.last_echo = segment.echo;
        let millis = u64::from(now.timestamp().saturating_sub(segment.echo)).max(1);
        let micros = millis * 1000;
        self.rtt8 = if self.rtt8 == 0 {
            micros * 8
        } else {
            self.rtt8 + micros - self.rtt8 / 8
        };
    }

    /// Measures the RTT as the time in which a window of data arrives. This is an upper bound, so the minimum
    /// is used.
    pub(super) fn measure_round(&mut self, next: u64, now: Moment) {
        if let Some((since, end)) = self.rtt_round {
            if next < end {
                return;
            }
            let micros = now.micros.saturating_sub(since).max(1);
            if self.rtt8 == 0 || micros * 8 < self.rtt8 {
                self.rtt8 = micros * 8;
            }
        }
        self.rtt_round = Some((now.micros, self.right_edge.max(next)));
    }

    /// Returns the RTT, µs. It is 0 before the first measurement.
    pub(super) fn rtt(&self) -> u64 {
        self.rtt8 / 8
    }

    /// Handles that the application has read everything below `next`.
    pub(super) fn on_read(&mut self, next: u64, now: Moment) {
        let elapsed = now.micros - self.read_since;
        if self.rtt8 == 0 || elapsed < self.rtt() {
            return;
        }
        let read = next - self.read_from;
        if read > self.read {
            // Twice the amount read allows for a loss. The second term lets the sender go on growing at its
            // rate.
            let mut window = 2 * read + 16 * ADVERTISED_MSS;
            window += 2 * (u128::from(window) * u128::from(read - self.read) / u128::from(self.read)) as u64;
            let buffer = (window / ADVERTISED_MSS * BUFFER_PER_MSS).min(self.buffer_max);
            if buffer > self.buffer {
                self.buffer = buffer;
                self.clamp = offered_by(buffer);
            }
            self.read = read;
        }
        self.read_from = next;
        self.read_since = now.micros;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::clock::Clock;
    use fairgate::Time;

    fn at(millis: u64) -> Moment {
        Clock::new(100).read(Time::from_millis(millis))
    }

    #[test]
    fn the_first_window_equals_that_of_linux() {
        let window = ReceiveWindow::new(&Config::default(), at(0));
        assert_eq!(window.current(1), 65_160);
        assert_eq!(window.threshold, 64_076);
    }

    #[test]
    fn grows_with_what_is_read_in_a_round_trip_and_never_shrinks() {
        let mut window = ReceiveWindow::new(&Config::default(), at(0));
        let answer = Segment {
            echo: 1,
            ..Segment::default()
        };
        window.measure_echo(&answer, at(100));
        assert_eq!(window.rtt(), 100_000);
        assert!(!window.on_full_segment(0), "the offer is already at its maximum");
        window.on_read(50_001, at(99));
        assert_eq!(window.buffer, 131_072, "a round trip is not over yet");
        window.on_read(50_001, at(100));
        assert!(window.buffer > 131_072);
        let mut offered = window.offer(50_001, 0);
        while window.on_full_segment(0) {
            let next = window.offer(50_001, 0);
            assert!(next >= offered);
            offered = next;
        }
        assert!(u64::from(offered) >= 2 * 50_000);
        assert_eq!(
            window.offer(50_001, window.buffer),
            offered,
            "an offer is not taken back"
        );
    }

    #[test]
    fn growth_ends_at_the_maximum() {
        let mut window = ReceiveWindow::new(&Config::default(), at(0));
        let answer = Segment {
            echo: 1,
            ..Segment::default()
        };
        window.measure_echo(&answer, at(10));
        let mut next = 1;
        for step in 1..20 {
            next += 1_000_000 << step;
            window.on_read(next, at(10 + 20 * step));
        }
        assert_eq!(window.buffer, 6_291_456);
    }
}
