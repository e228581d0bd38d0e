//! What the ends of a datagram flow measure with the numbers that its datagrams carry: media with RTP's
//! sequence numbers, and ping.
//!
//! Everything is measured in the measurement window: a value counts if the datagram that completes it arrives
//! within.

use std::ops::Range;

use fairgate::Time;

use crate::monitor::Recorder;
use crate::results::{ApplicationResults, Durations};

/// The measurements of an application.
#[derive(Clone, Debug)]
pub(crate) enum Session {
    Media(Media),
    Ping(Ping),
}

impl Session {
    /// Returns the number of the datagram that is sent now.
    pub(crate) fn number(&mut self, now: Time) -> u64 {
        match self {
            Session::Media(media) => {
                media.sent += 1;
                media.sent
            }
            Session::Ping(ping) => {
                ping.requests += u64::from(ping.window.contains(&now));
                now.nanos()
            }
        }
    }

    /// Handles a datagram that has arrived after `delay` ns: at the source if it came `back`. Returns whether
    /// it is answered.
    pub(crate) fn arrived(&mut self, back: bool, number: u64, delay: u64, now: Time) -> bool {
        match self {
            Session::Media(media) => {
                media.arrived(number, delay, now);
                false
            }
            Session::Ping(ping) => {
                if back {
                    ping.answered(number, now);
                }
                !back
            }
        }
    }

    pub(crate) fn results(&self) -> ApplicationResults {
        match self {
            Session::Media(media) => media.results(),
            Session::Ping(ping) => ping.results(),
        }
    }
}

/// The receiver of a media stream: interarrival jitter by RFC 3550, delay variation by RFC 3393, and gaps.
#[derive(Clone, Debug)]
pub(crate) struct Media {
    window: Range<Time>,
    /// Datagrams sent so far. The first one has number 1.
    sent: u64,
    /// The number and the delay of the datagram that arrived last.
    last: Option<(u64, u64)>,
    /// The highest number that has arrived.
    highest: u64,
    /// RFC 3550's estimate, ns times 16.
    jitter16: i64,
    /// The sum of the estimate over the datagrams of the window, ns times 16, and their number.
    jitter_sum: u128,
    received: u64,
    jitter_max: u64,
    variation: Recorder,
    gaps: u64,
    longest_gap: u64,
    out_of_order: u64,
}

impl Media {
    pub(crate) fn new(window: Range<Time>) -> Media {
        Media {
            window,
            sent: 0,
            last: None,
            highest: 0,
            jitter16: 0,
            jitter_sum: 0,
            received: 0,
            jitter_max: 0,
            variation: Recorder::new(),
            gaps: 0,
            longest_gap: 0,
            out_of_order: 0,
        }
    }

    fn arrived(&mut self, number: u64, delay: u64, now: Time) {
        let is_measured = self.window.contains(&now);
        let last = self.last.replace((number, delay));
        if let Some((before, delay_before)) = last {
            let difference = delay.abs_diff(delay_before);
            // RFC 3550, appendix A.8: in integers, with rounding.
            self.jitter16 += difference as i64 - ((self.jitter16 + 8) >> 4);
            // RFC 3393, 4.2: pairs of successive packets. A pair is undefined if one of them is lost.
            if is_measured && number == before + 1 {
                self.variation.record(difference);
            }
        }
        let missing = number.saturating_sub(self.highest + 1);
        if is_measured {
            self.received += 1;
            self.jitter_sum += self.jitter16 as u128;
            self.jitter_max = self.jitter_max.max(self.jitter16 as u64 >> 4);
            self.gaps += u64::from(missing > 0);
            self.longest_gap = self.longest_gap.max(missing);
            self.out_of_order += u64::from(number < self.highest);
        }
        self.highest = self.highest.max(number);
    }

    fn results(&self) -> ApplicationResults {
        let mean = self.jitter_sum.checked_div(u128::from(self.received) * 16);
        ApplicationResults::Media {
            interarrival_jitter_ns: mean.unwrap_or(0) as u64,
            interarrival_jitter_max_ns: self.jitter_max,
            delay_variation: Durations::of(&self.variation),
            gaps: self.gaps,
            longest_gap: self.longest_gap,
            out_of_order: self.out_of_order,
        }
    }
}

/// The sender of echo requests. A request carries the time at which it was sent, and so does its answer.
#[derive(Clone, Debug)]
pub(crate) struct Ping {
    window: Range<Time>,
    requests: u64,
    /// Answers to requests that were sent in the window.
    answers: u64,
    round_trips: Recorder,
}

impl Ping {
    pub(crate) fn new(window: Range<Time>) -> Ping {
        Ping {
            window,
            requests: 0,
            answers: 0,
            round_trips: Recorder::new(),
        }
    }

    fn answered(&mut self, sent_at: u64, now: Time) {
        if self.window.contains(&Time::from_nanos(sent_at)) {
            self.answers += 1;
            self.round_trips.record(now.nanos() - sent_at);
        }
    }

    fn results(&self) -> ApplicationResults {
        ApplicationResults::Ping {
            requests: self.requests,
            answers: self.answers,
            round_trip: Durations::of(&self.round_trips),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn media() -> Media {
        Media::new(Time::ZERO..Time::from_secs(1))
    }

    /// A model of the formulas in floating point.
    #[test]
    fn jitter_follows_the_formulas() {
        let mut media = media();
        let arrivals = [
            (1u64, 1000u64),
            (2, 5000),
            (4, 3000),
            (3, 9000),
            (5, 9500),
            (6, 100),
        ];
        let (mut model, mut sum, mut last) = (0.0f64, 0.0, None);
        for (number, delay) in arrivals {
            media.arrived(number, delay, Time::from_millis(number));
            if let Some(before) = last.replace(delay as f64) {
                model += ((delay as f64 - before).abs() - model) / 16.0;
            }
            sum += model;
        }
        let ApplicationResults::Media {
            interarrival_jitter_ns,
            delay_variation,
            gaps,
            longest_gap,
            out_of_order,
            ..
        } = media.results()
        else {
            unreachable!("a media session has media results")
        };
        assert!((interarrival_jitter_ns as f64 - sum / 6.0).abs() < 2.0);
        // The pairs (1, 2) and (5, 6). The others are not successive.
        assert_eq!(
            (
                delay_variation.count,
                delay_variation.min_ns,
                delay_variation.max_ns
            ),
            (2, 4000, 9400)
        );
        assert_eq!((gaps, longest_gap, out_of_order), (1, 1, 1));
    }

    #[test]
    fn only_the_window_is_measured() {
        let mut ping = Ping::new(Time::from_secs(1)..Time::from_secs(2));
        let mut session = Session::Ping(ping.clone());
        for millis in [500, 1000, 1999, 2000] {
            let number = session.number(Time::from_millis(millis));
            assert!(session.arrived(false, number, 7, Time::from_millis(millis + 7)));
            assert!(!session.arrived(true, number, 7, Time::from_millis(millis + 14)));
        }
        ping.requests = 2;
        ping.answers = 2;
        ping.round_trips.record(14_000_000);
        ping.round_trips.record(14_000_000);
        assert_eq!(session.results(), ping.results());
    }
}
