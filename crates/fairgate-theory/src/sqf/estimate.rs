//! The paper's estimate: formulas (1) and (2) of its section IV, and the mean time.

use crate::queueing::{normal_tail, poisson_tail, poisson_tail_at_most};
use crate::sqf::{Count, Sharing};

/// The search for the best number of intervals ends where the probability of loss has fallen to this part of
/// the best one.
const FALLEN: f64 = 1e-3;
/// With an exponent above this one the probability is 1 to the last digit.
const CERTAIN: f64 = 40.0;
/// The most interval lengths that the search for the best one tries.
const MOST_LENGTHS: u32 = 10_000;
/// The ratio of successive interval lengths where any length is possible, and the shortest length in
/// transmissions.
const STEP: f64 = 1.005;
const SHORTEST: f64 = 1e-3;
/// The probability is exponential in time if the best intervals are this many and take at most this part of
/// the mean time.
const MANY: f64 = 1e3;
const SOON: f64 = 1e-3;
/// The integral over time ends where the remaining integrand is below this value.
const REST: f64 = 1e-9;

impl Sharing {
    /// Returns `q(t)`: the probability that more packets arrive in `time` s than the link and the video's
    /// part of the buffer accept.
    pub fn excess(&self, rate: f64, time: f64, count: Count) -> f64 {
        match count {
            Count::Poisson => poisson_tail(self.too_many(time), rate * time),
            Count::Normal => normal_tail(self.room(time), rate * time),
        }
    }

    /// Returns the number of packets that the link and the video's part of the buffer accept in `time` s.
    fn room(&self, time: f64) -> f64 {
        self.capacity * time + self.limit()
    }

    /// Returns the least number of arrivals that exceeds [`room`](Sharing::room).
    fn too_many(&self, time: f64) -> u64 {
        // If the sum is a whole number, that number is enough. Rounding may put the sum slightly above it.
        libm::ceil(self.room(time) * (1.0 - 1e-12)) as u64
    }

    /// Returns `p(T)`: the estimated probability that a video of `rate` packets a second, above 0, loses its
    /// priority within `time` s.
    pub fn estimate(&self, rate: f64, time: f64, count: Count) -> f64 {
        -libm::expm1(-self.exponent(rate, time, count))
    }

    /// Returns the estimated mean time until the video loses its priority, s.
    ///
    /// This is the integral of `1 - p(t)`, by Simpson's rule over the logarithm of `t`. If the mean is far
    /// longer than the best intervals, `1 - p(t)` is exponential to within a thousandth.
    pub fn estimated_time(&self, rate: f64, count: Count) -> f64 {
        const POINTS: usize = 240;
        let (intensity, length) = self.intensity(rate, count);
        if intensity * length * MANY < SOON {
            return 1.0 / intensity;
        }
        // Priority can't be lost before as many packets have arrived as the limit is. After the last point
        // the integrand is negligible.
        let start = 1e-3 * self.limit() / (self.capacity + rate);
        let mut end = start;
        while libm::exp(-self.exponent(rate, end, count)) > REST {
            end *= 2.0;
        }
        let step = libm::log(end / start) / POINTS as f64;
        let value = |i: usize| {
            let time = start * libm::exp(step * i as f64);
            time * libm::exp(-self.exponent(rate, time, count))
        };
        let weight = |i: usize| match i {
            0 | POINTS => 1.0,
            i if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let sum: f64 = (0..=POINTS).map(|i| weight(i) * value(i)).sum();
        start + sum * step / 3.0
    }

    /// Returns the greatest value of `-ln (1 - q(t)) / t` over all interval lengths `t`, and the length at
    /// which it is reached. This is the rate of losses of priority per second if the time is long enough for
    /// any number of intervals.
    fn intensity(&self, rate: f64, count: Count) -> (f64, f64) {
        let of = |length: f64| -libm::log1p(-self.excess(rate, length, count).min(1.0 - 1e-16)) / length;
        let first = libm::floor(self.limit()) + 1.0;
        let mut best = (0.0, 0.0);
        for step in 0..MOST_LENGTHS {
            let length = match count {
                // The lengths at which a whole number of arrivals just exceeds the room.
                Count::Poisson => (first + f64::from(step) - self.limit()) / self.capacity,
                Count::Normal => SHORTEST / self.capacity * libm::pow(STEP, f64::from(step)),
            };
            let value = of(length);
            if value > best.0 {
                best = (value, length);
            } else if value < best.0 * FALLEN {
                break;
            }
        }
        best
    }

    /// Returns the greatest value over all `k` of `-ln (1 - q(T/k))^k`. It keeps its digits where `p` itself
    /// is close to 0 or 1.
    fn exponent(&self, rate: f64, time: f64, count: Count) -> f64 {
        let with = |k: f64| of_intervals(k, self.excess(rate, time / k, count));
        let whole = with(1.0);
        match count {
            Count::Normal => {
                Lengths::geometric(time * self.capacity).fold(whole, |best, k| best.max(with(k)))
            }
            Count::Poisson => self.over_counts(rate, time, whole),
        }
    }

    /// Searches by the number `m` of arrivals that is one too many. For each `m` the longest intervals are
    /// best: those of length `(m - limit) / C`, or the next shorter length that divides `time`. So it is
    /// enough to try each m.
    fn over_counts(&self, rate: f64, time: f64, whole: f64) -> f64 {
        let mut best = whole;
        let first = libm::floor(self.limit()) + 1.0;
        let mut largest = 0.0f64;
        for m in 0.. {
            let length = (first + f64::from(m) - self.limit()) / self.capacity;
            if length > time {
                break;
            }
            let k = libm::ceil(time / length * (1.0 - 1e-12));
            let (too_many, mean) = (self.too_many(time / k), rate * time / k);
            // Most m can be excluded by the upper bound, which is cheaper than adding up the tail.
            let most = of_intervals(k, poisson_tail_at_most(too_many, mean));
            let value = match most > best {
                true => of_intervals(k, poisson_tail(too_many, mean)),
                false => most,
            };
            best = best.max(value);
            largest = largest.max(value);
            // The value rises to its maximum and then falls, except for the rounding of k, which matters if
            // there are few long intervals.
            if best > CERTAIN || value < largest * FALLEN && time > 100.0 * length {
                break;
            }
        }
        best
    }
}

/// Returns `-ln (1 - q)^k`.
fn of_intervals(k: f64, excess: f64) -> f64 {
    -k * libm::log1p(-excess.min(1.0 - 1e-16))
}

/// Numbers of intervals to try. Each is half a per cent above the one before.
struct Lengths {
    k: f64,
    most: f64,
}

impl Lengths {
    /// Starts at one interval and ends at the shortest interval within `transmissions`.
    fn geometric(transmissions: f64) -> Lengths {
        Lengths {
            k: 1.0,
            most: transmissions / SHORTEST,
        }
    }
}

impl Iterator for Lengths {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        self.k = libm::floor(self.k * STEP).max(self.k + 1.0);
        (self.k <= self.most).then_some(self.k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIDEO: f64 = 600.0;

    fn line(flows: u32) -> Sharing {
        Sharing::new(1000.0, 200, flows).unwrap()
    }

    /// Computes the maximum as the paper defines it: for all k from 1 on, one after the other.
    fn by_hand(sharing: &Sharing, rate: f64, time: f64, count: Count, most: u32) -> f64 {
        (1..=most)
            .map(|k| {
                let k = f64::from(k);
                let q = sharing.excess(rate, time / k, count);
                -(k * (-q).ln_1p()).exp_m1()
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn the_search_finds_the_maximum_over_all_k() {
        for (flows, rate, time) in [
            (20, 600.0, 1.0),
            (20, 850.0, 0.3),
            (5, 950.0, 4.0),
            (10, 700.0, 0.05),
        ] {
            for count in [Count::Poisson, Count::Normal] {
                let sharing = line(flows);
                let expected = by_hand(&sharing, rate, time, count, 20_000);
                let found = sharing.estimate(rate, time, count);
                // The normal count is searched in geometric steps, and the maximum may be between two of
                // them.
                let slack = if count == Count::Normal { 1e-3 } else { 1e-9 };
                assert!(
                    (found / expected - 1.0).abs() < slack,
                    "{flows} flows, {rate}/s, {time} s, {count:?}: {found} instead of {expected}"
                );
            }
        }
    }

    #[test]
    fn an_excess_is_a_poisson_tail() {
        // In 10 ms the link takes 10 packets and the buffer 9.52, so 20 arrivals of mean 6 are too many.
        let probability = (1..=19).fold((1.0, 1.0), |(term, sum): (f64, f64), k| {
            let term = term * 6.0 / f64::from(k);
            (term, sum + term)
        });
        let expected = 1.0 - probability.1 * (-6f64).exp();
        assert!((line(20).excess(VIDEO, 0.01, Count::Poisson) / expected - 1.0).abs() < 1e-6);
    }

    #[test]
    fn the_papers_numbers_follow_from_the_normal_count() {
        let sharing = line(20);
        let minutes = |count| sharing.estimated_time(VIDEO, count) / 60.0;
        assert!(sharing.estimate(VIDEO, 600.0, Count::Normal) < 0.01);
        assert!(minutes(Count::Normal) > 180.0);
        // They don't follow from the formula as it is printed.
        assert!(sharing.estimate(VIDEO, 600.0, Count::Poisson) > 0.4);
        assert!(minutes(Count::Poisson) < 20.0);
    }

    #[test]
    fn the_mean_time_is_the_integral_of_the_probability_that_remains() {
        let sharing = line(20);
        let step = 0.1;
        let sum: f64 = (0..1_500)
            .map(|i| (1.0 - sharing.estimate(800.0, (f64::from(i) + 0.5) * step, Count::Poisson)) * step)
            .sum();
        let mean = sharing.estimated_time(800.0, Count::Poisson);
        assert!((sum / mean - 1.0).abs() < 0.01, "{sum} {mean}");
    }

    #[test]
    fn a_long_mean_time_follows_from_the_best_intervals() {
        // At 4 Mbit/s priority is lost so rarely that p(T) is T divided by the mean time.
        for count in [Count::Poisson, Count::Normal] {
            let (mean, time) = (line(10).estimated_time(400.0, count), 100.0);
            let expected = time / line(10).estimate(400.0, time, count);
            assert!(
                (mean / expected - 1.0).abs() < 5e-3,
                "{count:?}: {mean} {expected}"
            );
        }
        // A time far longer than any test is still a finite number.
        assert!(line(5).estimated_time(20.0, Count::Normal) > 1e30);
    }

    #[test]
    fn more_traffic_more_flows_and_more_time_make_a_loss_more_likely() {
        let p = |flows, rate, time| line(flows).estimate(rate, time, Count::Poisson);
        assert!(p(20, 500.0, 600.0) < p(20, 550.0, 600.0));
        assert!(p(10, 600.0, 600.0) < p(20, 600.0, 600.0));
        assert!(p(20, 600.0, 60.0) < p(20, 600.0, 600.0));
        assert!(p(20, 1100.0, 600.0) > 0.999_999);
    }

    /// A link that is a million times faster differs only by the unit of time.
    #[test]
    fn a_faster_link_gives_the_same_result_in_less_time() {
        let (slow, fast) = (line(20), Sharing::new(1e9, 200, 20).unwrap());
        for count in [Count::Poisson, Count::Normal] {
            let (long, short) = (
                slow.estimate(800.0, 10.0, count),
                fast.estimate(800e6, 10e-6, count),
            );
            assert!((short / long - 1.0).abs() < 1e-6, "{count:?}: {short} {long}");
            let (long, short) = (
                slow.estimated_time(800.0, count),
                fast.estimated_time(800e6, count),
            );
            assert!(
                (short * 1e6 / long - 1.0).abs() < 1e-6,
                "{count:?}: {short} {long}"
            );
        }
    }
}
