//! A line with recorded opportunities to deliver bytes, like mahimahi's mm-link (Netravali et al., "Mahimahi:
//! Accurate Record-and-Replay for HTTP", USENIX ATC 2015).
//!
//! An opportunity delivers up to [`Trace::OPPORTUNITY`] bytes at one moment. A packet may use several ones,
//! and arrives with the last. Several packets may share one. A packet is taken from the queue at the first
//! opportunity that it uses. What nobody uses at its moment is lost. A packet that is enqueued at the very
//! nanosecond of an unused opportunity may use it.

use fairgate::Time;

use crate::scenario::Trace;

/// The current position in the trace.
#[derive(Debug)]
pub(super) struct TraceClock {
    trace: Trace,
    /// The index of the opportunity after the current one.
    next: usize,
    /// The start of the round in which `next` is.
    round: Time,
    /// The time of the current opportunity.
    at: Time,
    /// The bytes that are left of the current opportunity.
    left: u32,
}

impl TraceClock {
    pub(super) fn new(trace: Trace) -> TraceClock {
        TraceClock {
            trace,
            next: 0,
            round: Time::ZERO,
            at: Time::ZERO,
            left: 0,
        }
    }

    /// Returns when the next byte may be transmitted.
    pub(super) fn next(&self) -> Time {
        match self.left {
            0 => self.round + self.trace.at(self.next),
            _ => self.at,
        }
    }

    /// Skips all opportunities before `now`. Returns when the next byte may be transmitted.
    #[cold]
    pub(super) fn skip_to(&mut self, now: Time) -> Time {
        if self.next() < now {
            self.left = 0;
        }
        if self.next() < now {
            let length = self.trace.round();
            // The last opportunity of a round is at the start of the next one, so it is in the earlier round.
            let rounds = (now - self.round - 1) / length;
            self.round += rounds * length;
            self.next = self.trace.first_from(now - self.round);
        }
        self.next()
    }

    /// Transmits `bytes` from the next opportunity on. Returns when the last byte has left.
    pub(super) fn transmit(&mut self, bytes: u32) -> Time {
        let mut bytes = bytes;
        while bytes > self.left || self.left == 0 {
            bytes -= self.left;
            self.at = self.round + self.trace.at(self.next);
            self.left = Trace::OPPORTUNITY;
            self.next += 1;
            if self.next == self.trace.len() {
                self.next = 0;
                self.round += self.trace.round();
            }
        }
        self.left -= bytes;
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::line::Line;
    use crate::scenario::LineRate;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const MILLI: u64 = 1_000_000;

    /// mahimahi's algorithm: from opportunity to opportunity, with a queue in between. Returns when each
    /// packet leaves. No packet arrives at the moment of an opportunity.
    fn reference(millis: &[u64], packets: &[(Time, u32)]) -> Vec<Time> {
        let mut left = vec![];
        let mut arriving: VecDeque<(Time, u32)> = packets.iter().copied().collect();
        let mut queue: VecDeque<u32> = VecDeque::new();
        let mut transit: Option<u32> = None;
        let round = millis[millis.len() - 1];
        for opportunity in 0.. {
            let rounds = (opportunity / millis.len()) as u64;
            let now = Time::from_nanos((rounds * round + millis[opportunity % millis.len()]) * MILLI);
            while let Some(&(at, bytes)) = arriving.front().filter(|packet| packet.0 < now) {
                assert!(at < now);
                queue.push_back(bytes);
                arriving.pop_front();
            }
            let mut room = 1500;
            while room > 0 {
                let Some(bytes) = transit.take().or_else(|| queue.pop_front()) else {
                    break;
                };
                let used = bytes.min(room);
                room -= used;
                match bytes - used {
                    0 => left.push(now),
                    rest => transit = Some(rest),
                }
            }
            if left.len() == packets.len() {
                return left;
            }
        }
        unreachable!("a trace never ends")
    }

    proptest! {
        #[test]
        fn packets_leave_when_mahimahi_sends_them(
            steps in prop::collection::vec(0u64..4, 1..12),
            packets in prop::collection::vec((0u64..9, 1u64..MILLI, 1u32..4_000), 1..40),
        ) {
            let mut at = 0;
            let millis: Vec<u64> = steps.iter().map(|step| { at += step; at }).collect();
            prop_assume!(at > 0);
            let mut now = 0;
            let packets: Vec<(Time, u32)> = packets
                .iter()
                .map(|&(pause, part, bytes)| {
                    // Never on a whole millisecond, and in ascending order.
                    now += pause;
                    (Time::from_nanos(now * MILLI + part), bytes)
                })
                .collect::<std::collections::BTreeMap<_, _>>()
                .into_iter()
                .collect();
            let mut line = Line::new(&LineRate::Trace(Trace::new(&millis).unwrap()), 0);
            let mut left = Vec::new();
            let mut queue: VecDeque<u32> = VecDeque::new();
            let mut arriving = packets.iter().copied().peekable();
            let mut wake: Option<Time> = None;
            while let Some(now) = wake.into_iter().chain(arriving.peek().map(|packet| packet.0)).min() {
                if let Some((_, bytes)) = arriving.next_if(|packet| packet.0 == now) {
                    queue.push_back(bytes);
                }
                while line.free_from(now) <= now {
                    let Some(bytes) = queue.pop_front() else { break };
                    left.push(line.transmit(now, bytes));
                }
                wake = (!queue.is_empty()).then(|| line.free_from(now));
            }
            prop_assert_eq!(left, reference(&millis, &packets));
        }
    }

    #[test]
    fn a_long_silence_is_skipped_at_once() {
        let mut clock = TraceClock::new(Trace::new(&[0, 3, 10]).unwrap());
        let year = Time::from_secs(365 * 86_400);
        assert_eq!(clock.skip_to(year), year);
        // The last opportunity of a round, and the first one of the next round.
        assert_eq!([clock.transmit(1500), clock.transmit(1500)], [year, year]);
        assert_eq!(clock.transmit(1500), year + 3 * MILLI);
    }
}
