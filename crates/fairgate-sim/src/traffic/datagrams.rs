//! A source of datagrams. It decides the length of each datagram and the time of the next one.

use fairgate::Time;

use crate::network::ExactClock;
use crate::random::{Distribution, Stream};
use crate::scenario::{Pattern, Udp};
use crate::traffic::bursts::BurstClock;
use crate::traffic::recorded::Recorded;
use crate::traffic::session::Session;
use crate::traffic::video::VideoSource;

/// A source of datagrams.
#[derive(Clone, Debug)]
pub(crate) struct Datagrams {
    emitter: Emitter,
    /// What the ends measure with numbers in the datagrams, if the application does so.
    session: Option<Box<Session>>,
}

/// Decides when and how much is sent.
#[derive(Clone, Debug)]
pub(crate) enum Emitter {
    Pattern(PatternSource),
    Video(Box<VideoSource>),
    Recorded(Recorded),
}

/// Datagrams of random lengths at the times of a [`Pattern`].
#[derive(Clone, Debug)]
pub(crate) struct PatternSource {
    size: Distribution,
    timing: Timing,
    stream: Stream,
}

#[derive(Clone, Debug)]
enum Timing {
    Constant(ExactClock),
    /// Each gap is drawn. Gaps do not depend on the lengths.
    Drawn(Distribution),
    OnOff(BurstClock),
}

impl PatternSource {
    pub(crate) fn new(udp: &Udp, mut stream: Stream) -> PatternSource {
        let Udp { size, pattern } = udp.clone();
        let timing = match pattern {
            Pattern::Constant { rate } => Timing::Constant(ExactClock::new(rate)),
            // With exponential lengths the arrivals are those of M/M/1.
            Pattern::Poisson { rate } => Timing::Drawn(Distribution::Exponential {
                mean: rate.transmission_nanos(size.mean()),
            }),
            Pattern::Interval { gap } => Timing::Drawn(gap),
            Pattern::OnOff { rate, on, off } => {
                Timing::OnOff(BurstClock::new(ExactClock::new(rate), on, off, &mut stream))
            }
        };
        PatternSource { size, timing, stream }
    }

    /// Returns the payload of the datagram that is due now, and the time until the next one, ns.
    #[inline]
    fn next(&mut self) -> (u32, u64) {
        let payload = Udp::payload(self.size.sample(&mut self.stream));
        let wait = match &mut self.timing {
            Timing::Constant(clock) => clock.advance(payload),
            Timing::Drawn(gap) => gap.sample(&mut self.stream),
            Timing::OnOff(clock) => clock.advance(payload, &mut self.stream),
        };
        (payload, wait)
    }
}

impl Datagrams {
    pub(crate) fn new(emitter: Emitter, session: Option<Session>) -> Datagrams {
        Datagrams {
            emitter,
            session: session.map(Box::new),
        }
    }

    /// Returns the payload of the datagram that is due now, and when the next one is due. That is
    /// [`Time::MAX`] after the last one.
    #[inline]
    pub(crate) fn next(&mut self, now: Time) -> (u32, Time) {
        let (payload, wait) = match &mut self.emitter {
            Emitter::Pattern(pattern) => pattern.next(),
            Emitter::Video(video) => video.next(),
            Emitter::Recorded(recorded) => recorded.next(),
        };
        (payload, now + wait)
    }

    /// Returns the number that the datagram of this moment carries, if the application numbers its datagrams.
    #[inline]
    pub(crate) fn number(&mut self, now: Time) -> Option<u64> {
        self.session.as_mut().map(|session| session.number(now))
    }

    /// Handles a datagram that has arrived after `delay` ns: at the source if it came `back`. Returns whether
    /// the destination answers it with a datagram of the same length and number.
    #[inline]
    pub(crate) fn arrived(&mut self, back: bool, number: u64, delay: u64, now: Time) -> bool {
        self.session
            .as_mut()
            .is_some_and(|session| session.arrived(back, number, delay, now))
    }

    /// Returns whether datagrams carry numbers.
    #[inline]
    pub(crate) fn has_numbers(&self) -> bool {
        self.session.is_some()
    }

    pub(crate) fn session(&self) -> Option<&Session> {
        self.session.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate::Rate;

    fn sent_in(udp: &Udp, seconds: u64) -> u64 {
        let pattern = PatternSource::new(udp, Stream::new(3, "test", "datagrams"));
        let mut source = Datagrams::new(Emitter::Pattern(pattern), None);
        let (mut now, mut bytes) = (Time::ZERO, 0);
        while now < Time::from_secs(seconds) {
            let (payload, next) = source.next(now);
            bytes += u64::from(payload);
            now = next;
        }
        bytes
    }

    #[test]
    fn a_constant_rate_is_exact_to_the_packet() {
        // 1000 bytes at 3 Mbit/s: 375 datagrams per second. Their gaps are not whole nanoseconds.
        let udp = Udp::constant(Rate::mbit(3), 1000);
        assert_eq!(sent_in(&udp, 1000), 375_000 * 1000);
    }

    #[test]
    fn mean_rates_are_as_configured() {
        let rate = Rate::mbit(8);
        let (on, off) = (
            Distribution::Exponential { mean: 10_000_000 },
            Distribution::Exponential { mean: 30_000_000 },
        );
        let on_off = Udp {
            size: Distribution::Constant(700),
            pattern: Pattern::OnOff { rate, on, off },
        };
        let interval = Udp {
            size: Distribution::Constant(1000),
            pattern: Pattern::Interval {
                gap: Distribution::Uniform {
                    low: 0,
                    high: 4_000_000,
                },
            },
        };
        for (udp, share) in [(Udp::poisson(rate, 500), 1.0), (on_off, 0.25), (interval, 0.5)] {
            let seconds = 400;
            let error = sent_in(&udp, seconds) as f64 / (seconds as f64 * 1e6 * share) - 1.0;
            assert!(error.abs() < 0.02, "{udp:?} is off by {error}");
        }
    }
}
