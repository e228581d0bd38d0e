//! Tails of the Poisson distribution, and of the normal distribution that approximates it.

/// The series of a tail ends when a term is less than this part of the sum.
const NEGLIGIBLE: f64 = 1e-17;

/// Returns P(N >= `count`) for a Poisson variable of mean `mean` >= 0.
///
/// If `count` is above the mean, the terms of the tail itself are added. They fall from the first on, so
/// tails far below 1e-16 keep their digits. If `count` is not above the mean, the other terms are added and
/// subtracted from 1.
pub fn poisson_tail(count: u64, mean: f64) -> f64 {
    if count == 0 {
        return 1.0;
    }
    if mean <= 0.0 {
        return 0.0;
    }
    if count as f64 > mean {
        let (mut term, mut sum, mut k) = (probability(count, mean), 0.0, count);
        while term > sum * NEGLIGIBLE {
            sum += term;
            k += 1;
            term *= mean / k as f64;
        }
        sum
    } else {
        // P(N < count), from its largest term downwards.
        let (mut term, mut sum, mut k) = (probability(count - 1, mean), 0.0, count - 1);
        while term > sum * NEGLIGIBLE {
            sum += term;
            if k == 0 {
                break;
            }
            term *= k as f64 / mean;
            k -= 1;
        }
        (1.0 - sum).max(0.0)
    }
}

/// Returns an upper bound on P(N >= `count`) for a Poisson variable of mean `mean` > 0, without adding up the
/// tail.
///
/// Above the mean each term of the tail is at most `mean / (count + 1)` times the term before it, so a
/// geometric series is an upper bound. Far above the mean the bound is tight. A millionth is added to
/// compensate for rounding.
pub fn poisson_tail_at_most(count: u64, mean: f64) -> f64 {
    let ratio = mean / (count as f64 + 1.0);
    match ratio < 1.0 {
        true => (probability(count, mean) / (1.0 - ratio) * (1.0 + 1e-6)).min(1.0),
        false => 1.0,
    }
}

/// Returns P(N = `count`) for a Poisson variable of mean `mean` > 0.
fn probability(count: u64, mean: f64) -> f64 {
    libm::exp(count as f64 * libm::log(mean) - mean - libm::lgamma(count as f64 + 1.0))
}

/// Returns P(N >= `value`) for a normal variable of mean and variance `mean` > 0. It approximates a Poisson
/// variable without a correction for whole numbers.
pub fn normal_tail(value: f64, mean: f64) -> f64 {
    0.5 * libm::erfc((value - mean) / libm::sqrt(2.0 * mean))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tails_by_hand() {
        assert_eq!(poisson_tail(0, 3.0), 1.0);
        assert_eq!(poisson_tail(1, 0.0), 0.0);
        assert!((poisson_tail(1, 2.0) - (1.0 - (-2f64).exp())).abs() < 1e-15);
        // 1 - e^-2 (1 + 2 + 2)
        assert!((poisson_tail(3, 2.0) - (1.0 - 5.0 * (-2f64).exp())).abs() < 1e-15);
        assert!((normal_tail(10.0, 10.0) - 0.5).abs() < 1e-15);
        // One standard deviation above the mean.
        assert!((normal_tail(110.0, 100.0) - 0.158_655_253_931).abs() < 1e-9);
    }

    #[test]
    fn a_tiny_tail_keeps_its_digits() {
        // P(N >= 40) for mean 1 is 1/40! e^-1 (1 + 1/41 + 1/(41 42) + ...).
        let factorial: f64 = (1..=40).map(f64::from).product();
        let series = 1.0 + 1.0 / 41.0 + 1.0 / (41.0 * 42.0) + 1.0 / (41.0 * 42.0 * 43.0);
        let expected = (-1f64).exp() / factorial * series;
        assert!((poisson_tail(40, 1.0) / expected - 1.0).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn no_tail_is_above_its_upper_bound(count in 0u64..400, mean in 0.05f64..300.0) {
            let (tail, most) = (poisson_tail(count, mean), poisson_tail_at_most(count, mean));
            if most < f64::MIN_POSITIVE {
                // Numbers below it have few digits, down to none. Both are nearly 0.
                prop_assert!(tail < 2.0 * f64::MIN_POSITIVE, "{tail:e} {most:e}");
                return Ok(());
            }
            prop_assert!(tail <= most, "{tail:e} {most:e}");
            if count as f64 > 2.0 * mean + 20.0 {
                prop_assert!(most <= 1.5 * tail, "{tail:e} {most:e}");
            }
        }

        /// P(N >= k) - P(N >= k + 1) = P(N = k), computed by a product.
        #[test]
        fn tails_differ_by_the_probability_between_them(count in 0u64..80, mean in 0.05f64..60.0) {
            let probability = (1..=count).fold((-mean).exp(), |p, k| p * mean / k as f64);
            let difference = poisson_tail(count, mean) - poisson_tail(count + 1, mean);
            prop_assert!((difference - probability).abs() < 1e-12, "{difference} {probability}");
        }
    }
}
