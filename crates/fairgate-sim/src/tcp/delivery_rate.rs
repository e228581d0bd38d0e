//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation; in draft-ietf-ccwg-bbr section 4.1), in
//! Linux's form: how fast the path delivers, as each acknowledgement shows it.
//!
//! A sample counts the segments delivered since the newest delivered segment was sent. Its interval is the
//! longer of two: the time in which these segments were sent, and the time in which they were acknowledged.
//! So neither a burst of acknowledgements nor a burst of segments gives too high a rate. Samples of a time in
//! which the application did not write enough are flagged, because they show the application's rate.
//!
//! Only congestion controls that ask for samples pay for them: the state of each transmission is in a list
//! beside the scoreboard's ring. Times are in µs.

use std::collections::VecDeque;

/// The state of the connection when a segment was last sent.
#[derive(Clone, Copy, Debug, Default)]
struct Transmission {
    sent_at: u64,
    /// When the first segment of the sending interval was sent.
    first_sent: u64,
    /// The segments delivered by then, and when the last of them was.
    delivered: u64,
    delivered_at: u64,
    /// The segments in flight, this one included.
    in_flight: u32,
    /// The losses detected by then.
    losses: u64,
    app_limited: bool,
    /// Whether it has not arrived yet.
    is_open: bool,
}

/// The state of the connection when a segment was sent that is now lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LostTransmission {
    /// The segments in flight when it was sent, itself included.
    pub(super) in_flight: u32,
    /// The segments lost since it was sent, itself included.
    pub(super) losses: u32,
    /// Whether the application limited the sender.
    pub(super) app_limited: bool,
}

/// A sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RateSample {
    /// The segments delivered in the interval. `None` if nothing was delivered that a sample can use.
    pub(super) delivered: Option<u32>,
    /// The length of the interval, µs. It is 0 if the interval is too short to be credible: below the minimum
    /// RTT.
    pub(super) interval: u64,
    /// The total of delivered segments at the beginning of the interval.
    pub(super) prior_delivered: u64,
    /// Whether the application limited the sender.
    pub(super) app_limited: bool,
    /// The segments in flight when the newest delivered segment was sent, itself included.
    pub(super) in_flight: u32,
    /// The segments lost since it was sent.
    pub(super) losses: u32,
}

impl RateSample {
    /// Returns the delivery rate, in segments per µs times 2^[`RATE_SHIFT`]. It is 0 if the sample has none.
    pub(super) fn rate(&self) -> u64 {
        let delivered = u64::from(self.delivered.unwrap_or(0));
        (delivered << RATE_SHIFT).checked_div(self.interval).unwrap_or(0)
    }
}

/// The binary logarithm of the unit of rates. One segment per second is 16.8.
pub(super) const RATE_SHIFT: u32 = 24;

/// Takes samples.
#[derive(Clone, Debug, Default)]
pub(super) struct RateSampler {
    /// One for each segment of the scoreboard's ring, in its order.
    transmissions: VecDeque<Transmission>,
    /// The number of the first one.
    first: u64,
    /// When the newest delivered segment was sent.
    first_sent: u64,
    /// When a segment was last delivered.
    delivered_at: u64,
    /// The sender is limited by the application until more segments than this are delivered. 0: it is not.
    app_limited: u64,
    /// The newest delivered transmission of this acknowledgement, and its number.
    newest: Option<(u64, Transmission)>,
    /// The losses detected since [`take_lost`](RateSampler::take_lost).
    lost: Vec<LostTransmission>,
}

impl RateSampler {
    /// Records a transmission of the segment `number`. `delivered` and `losses` are totals. `in_flight`
    /// includes the segment.
    pub(super) fn sent(
        &mut self,
        number: u64,
        now: u64,
        (delivered, losses): (u64, u64),
        in_flight: u32,
        retransmitted: bool,
    ) {
        if in_flight <= 1 && !retransmitted {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let transmission = Transmission {
            sent_at: now,
            first_sent: self.first_sent,
            delivered,
            delivered_at: self.delivered_at,
            in_flight,
            losses,
            app_limited: self.app_limited > 0,
            is_open: true,
        };
        let index = (number - self.first) as usize;
        match self.transmissions.get_mut(index) {
            Some(earlier) => *earlier = transmission,
            None => self.transmissions.push_back(transmission),
        }
        debug_assert!(index < self.transmissions.len(), "segments are sent in order");
    }

    /// Records that the segment `number` has arrived.
    pub(super) fn delivered(&mut self, number: u64) {
        let transmission = &mut self.transmissions[(number - self.first) as usize];
        if !std::mem::take(&mut transmission.is_open) {
            return;
        }
        let is_newer = self
            .newest
            .is_none_or(|(newest, other)| (transmission.sent_at, number) > (other.sent_at, newest));
        if is_newer {
            self.newest = Some((number, *transmission));
        }
    }

    /// Records that everything below `number` is acknowledged.
    pub(super) fn forget_below(&mut self, number: u64) {
        let count = (number - self.first) as usize;
        self.transmissions.drain(..count);
        self.first = number;
    }

    /// Records that the segment `number` is lost. `losses` is the total, this one included.
    pub(super) fn lost(&mut self, number: u64, losses: u64) {
        let transmission = &self.transmissions[(number - self.first) as usize];
        self.lost.push(LostTransmission {
            in_flight: transmission.in_flight,
            losses: (losses - transmission.losses) as u32,
            app_limited: transmission.app_limited,
        });
    }

    /// Moves the losses detected since the last call into `list`, which is empty.
    pub(super) fn take_lost(&mut self, list: &mut Vec<LostTransmission>) {
        debug_assert!(list.is_empty(), "earlier losses were not handled");
        std::mem::swap(&mut self.lost, list);
    }

    /// The application has nothing more to send, although the window has room. Samples of what is in flight
    /// and later don't show the path's rate.
    pub(super) fn limit_by_application(&mut self, delivered: u64, in_flight: u32) {
        self.app_limited = (delivered + u64::from(in_flight)).max(1);
    }

    /// Returns whether the application limits the sender.
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// Takes the sample of an acknowledgement, after which `delivered` and `losses` are the totals.
    pub(super) fn take(&mut self, delivered: u64, losses: u64, rtt_min: u64, now: u64) -> RateSample {
        if self.app_limited > 0 && delivered > self.app_limited {
            self.app_limited = 0;
        }
        let Some((_, newest)) = self.newest.take() else {
            return RateSample::default();
        };
        self.delivered_at = now;
        self.first_sent = newest.sent_at;
        let sending = newest.sent_at - newest.first_sent;
        let acknowledging = now - newest.delivered_at;
        let interval = sending.max(acknowledging);
        RateSample {
            delivered: Some((delivered - newest.delivered) as u32),
            // Such an interval comes from a segment that was retransmitted although it was not lost.
            interval: if interval < rtt_min { 0 } else { interval },
            prior_delivered: newest.delivered,
            app_limited: newest.app_limited,
            in_flight: newest.in_flight,
            losses: (losses - newest.losses) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RTT: u64 = 40_000;

    /// Sends `window` segments at a time over a path that delivers one segment each `gap`, and returns the
    /// samples of later round trips. The first one begins with an empty path.
    fn over_a_path(window: u64, gap: u64, acks_together: u64) -> Vec<RateSample> {
        let mut sampler = RateSampler::default();
        let (mut sent, mut delivered) = (0u64, 0u64);
        let mut free_at = 0u64;
        let mut arrivals = VecDeque::new();
        let mut samples = Vec::new();
        let mut now = 0;
        while samples.len() < 2_500 {
            while sent - delivered < window {
                let in_flight = (sent - delivered + 1) as u32;
                sampler.sent(sent, now, (delivered, 0), in_flight, false);
                free_at = free_at.max(now) + gap;
                arrivals.push_back(free_at + RTT);
                sent += 1;
            }
            let count = acks_together.min(arrivals.len() as u64);
            for _ in 0..count {
                now = arrivals.pop_front().expect("counted");
                sampler.delivered(delivered);
                delivered += 1;
            }
            sampler.forget_below(delivered);
            samples.push(sampler.take(delivered, 0, RTT, now));
        }
        samples.split_off(2_400)
    }

    #[test]
    fn a_full_path_shows_its_rate() {
        for (gap, together) in [(1_000, 1), (1_000, 2), (200, 4)] {
            for sample in over_a_path(10 * RTT / gap, gap, together) {
                let exact = (1u64 << RATE_SHIFT) / gap;
                assert!(
                    sample.rate().abs_diff(exact) <= 1 + exact / 100,
                    "{sample:?} {exact}"
                );
            }
        }
    }

    proptest! {
        /// However acknowledgements are bundled, no sample is above the path's rate.
        #[test]
        fn no_sample_exceeds_the_path(window in 1u64..200, gap in 10u64..5_000, together in 1u64..20) {
            for sample in over_a_path(window, gap, together) {
                let exact = (1u64 << RATE_SHIFT) / gap;
                prop_assert!(sample.rate() <= exact + 1, "{:?} above {}", sample, exact);
            }
        }
    }

    #[test]
    fn samples_of_an_idle_application_are_flagged_until_it_writes_again() {
        let mut sampler = RateSampler::default();
        sampler.sent(0, 0, (0, 0), 1, false);
        sampler.limit_by_application(0, 1);
        sampler.sent(1, 10, (0, 0), 2, false);
        sampler.delivered(0);
        assert!(
            !sampler.take(1, 0, 0, RTT).app_limited,
            "it was sent before the limit"
        );
        sampler.sent(2, RTT + 5, (1, 0), 2, false);
        sampler.delivered(1);
        assert!(sampler.take(2, 0, 0, RTT + 10).app_limited);
        assert!(!sampler.is_app_limited());
        sampler.sent(3, RTT + 20, (2, 0), 2, false);
        sampler.delivered(2);
        assert!(sampler.take(3, 0, 0, 2 * RTT + 5).app_limited);
        sampler.delivered(3);
        assert!(!sampler.take(4, 0, 0, 2 * RTT + 20).app_limited);
    }

    #[test]
    fn a_loss_remembers_the_state_when_its_segment_was_sent() {
        let mut sampler = RateSampler::default();
        for number in 0..5 {
            sampler.sent(number, number, (0, 2), number as u32 + 1, false);
        }
        sampler.lost(3, 4);
        let mut lost = Vec::new();
        sampler.take_lost(&mut lost);
        let expected = LostTransmission {
            in_flight: 4,
            losses: 2,
            app_limited: false,
        };
        assert_eq!(lost, [expected]);
    }
}
