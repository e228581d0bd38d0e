//! RED's curve: the probability of a mark or drop at an average, and the spacing of marks.
//!
//! ```text
//!   p_b  1 |                               /--------   `gentle`: from max_p at `max` to 1 at twice `max`
//!          |                            /
//!          |                         /
//!   max_p  |              ........./  (without it: 1 from `max` on)
//!          |        .......
//!        0 +--------+-------------+-------------+---->  average
//!                  min           max          2 max
//! ```
//!
//! **Spacing** (the paper, section 7): if each packet were marked with `p_b` independently, gaps between
//! marks would be geometric, and marks would cluster. With `p_a = p_b / (1 - count p_b)`, where `count` is
//! the number of packets since the last mark, gaps are uniform from 1 to `1/p_b`. This is equivalent to one
//! draw of `U` between 0 and 1 after each mark; the first packet with `count p_b >= U` is marked. Linux does
//! it like this, without a division. Each packet is judged by the average at its own arrival.
//!
//! By length (the paper's byte mode), a packet of twice the mean length counts for two: gaps are uniform in
//! bytes.

use crate::error::ConfigError;
use crate::probability::Probability;
use crate::structures::Random;

/// 1 % in units of 2^-32.
const ONE_PERCENT: u64 = 42_949_673;

/// The largest threshold: its double, scaled by 2^31, fits in 64 bits.
const LARGEST: u32 = u32::MAX >> 1;

/// What to do with an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Queue it.
    Pass,
    /// Mark or drop it: the random draw says so.
    Early,
    /// Mark or drop it: the average is above the curve.
    Forced,
}

/// The shape of the curve. Thresholds are in the unit of the queue's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) min: u32,
    pub(crate) max: u32,
    /// The probability at `max`.
    pub(crate) probability: Probability,
    pub(crate) gentle: bool,
    /// The mean length of packets, if they count by their length.
    pub(crate) by_length: Option<u32>,
    /// Whether an average equal to a threshold is still below it, as in CHOKe.
    pub(crate) is_exclusive: bool,
}

/// The curve as the packet path needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Curve {
    /// Where the slope begins. Scaled like the average; so are the next three.
    start: u64,
    min: u64,
    max: u64,
    /// From here on all packets are marked.
    end: u64,
    w_log: u32,
    /// `probability` in units of 2^-32; changed by [`Curve::adapt`].
    max_p: u64,
    /// The slope from `min` to `max`, per unit of length; at least 2^-32.
    slope: u64,
    /// The slope from `max` to `end`, in units of 2^-48.
    gentle_slope: u64,
    /// The divisor of a packet's length: the mean length, or 1.
    unit: u32,
    shape: Shape,
}

/// The distance from the last mark and to the next one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spacing {
    /// Packets or bytes since the last mark; -1 while the average is not on the slope of the curve.
    count: i64,
    /// `U`, in units of 2^-32.
    drawn: u32,
}

impl Spacing {
    pub(crate) const NEW: Spacing = Spacing { count: -1, drawn: 0 };

    /// Linux's `qcount`.
    pub(crate) fn count(&self) -> i64 {
        self.count
    }
}

impl Curve {
    /// Checks the thresholds of an average with weight 2^-w_log.
    pub(crate) fn new(shape: Shape, w_log: u32) -> Result<Curve, ConfigError> {
        let Shape { min, max, .. } = shape;
        if max > LARGEST {
            return Err(ConfigError::conflict(
                "max",
                max,
                format!("at most {LARGEST}"),
                "lower it: no queue is that long",
            ));
        }
        if max <= min {
            return Err(ConfigError::conflict(
                "max",
                max,
                format!("above `min`, {min}"),
                "three times `min` is a good choice",
            ));
        }
        let scaled = |threshold: u32| u64::from(threshold) << w_log;
        let max_p = shape.probability.parts();
        let mut curve = Curve {
            start: scaled(min) + u64::from(shape.is_exclusive),
            min: scaled(min),
            max: scaled(max),
            end: (scaled(max) << u32::from(shape.gentle)) + u64::from(shape.is_exclusive),
            w_log,
            max_p,
            slope: (max_p / u64::from(max - min)).max(1),
            gentle_slope: 0,
            unit: shape.by_length.unwrap_or(1),
            shape,
        };
        curve.set_gentle_slope();
        Ok(curve)
    }

    fn set_gentle_slope(&mut self) {
        let rest = Probability::ONE.parts().saturating_sub(self.max_p);
        self.gentle_slope = (rest << 16) / u64::from(self.shape.max);
    }

    /// The probability at `max`, in units of 2^-32.
    pub(crate) fn max_p(&self) -> u64 {
        self.max_p
    }

    /// Whether no packet is marked at this scaled average.
    #[inline]
    pub(crate) fn is_below(&self, average: u64) -> bool {
        average < self.start
    }

    /// Decides about an arriving packet by the average at its arrival.
    pub(crate) fn judge(
        &self,
        spacing: &mut Spacing,
        average: u64,
        length: u32,
        random: &mut Random,
    ) -> Action {
        if self.is_below(average) {
            spacing.count = -1;
            return Action::Pass;
        }
        if average >= self.end {
            spacing.count = -1;
            return Action::Forced;
        }
        if spacing.count < 0 {
            *spacing = Spacing {
                count: 0,
                drawn: random.bits32(),
            };
            return Action::Pass;
        }
        let step = if self.shape.by_length.is_some() { length } else { 1 };
        spacing.count = spacing.count.saturating_add(step.into());
        // Linux divides U by the slope, rounds down, and compares. Multiplied by the slope, this side gets
        // one slope more.
        let unit = u128::from(self.unit);
        let passed =
            u128::from(self.probability(average)) * spacing.count as u128 + u128::from(self.slope) * unit;
        if passed <= u128::from(spacing.drawn) * unit {
            return Action::Pass;
        }
        *spacing = Spacing {
            count: 0,
            drawn: random.bits32(),
        };
        Action::Early
    }

    /// `p_b` at a scaled average between `min` and `end`, in units of 2^-32.
    fn probability(&self, average: u64) -> u64 {
        if average < self.max {
            return ((average - self.min) >> self.w_log) * self.slope;
        }
        let above = (average - self.max) >> self.w_log;
        // At most `max` units with a slope of at most 2^48 / max.
        self.max_p + ((above * self.gentle_slope) >> 16)
    }

    /// Adapts `max_p` so that the scaled average moves to the middle fifth between the thresholds (Adaptive
    /// RED). It is called every 0.5 s. `max_p` rises by a quarter, but at most by 1 %; it falls by a tenth.
    /// It stays between 1 and 50 %.
    pub(crate) fn adapt(&mut self, average: u64) {
        let Shape { min, max, .. } = self.shape;
        let fifth = (max - min) / 5;
        let average = average >> self.w_log;
        if average > u64::from(min + 3 * fifth) && self.max_p <= 50 * ONE_PERCENT {
            self.max_p += ONE_PERCENT.min(self.max_p / 4);
        } else if average < u64::from(min + 2 * fifth) && self.max_p >= ONE_PERCENT {
            self.max_p = self.max_p / 10 * 9;
        }
        // A division once in 0.5 s is cheap enough.
        let delta = u64::from(max - min);
        self.slope = ((self.max_p + delta / 2) / delta).max(1);
        self.set_gentle_slope();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape {
        min: 30_000,
        max: 90_000,
        probability: Probability::ratio(1, 50),
        gentle: false,
        by_length: None,
        is_exclusive: false,
    };
    const W_LOG: u32 = 5;

    /// Gaps between marks at a constant average.
    fn gaps(shape: Shape, average: u64, length: u32, marks: u32) -> Vec<u32> {
        let curve = Curve::new(shape, W_LOG).unwrap();
        let (mut spacing, mut random) = (Spacing::NEW, Random::new(5));
        let mut next = || {
            (1..)
                .find(|_| curve.judge(&mut spacing, average << W_LOG, length, &mut random) != Action::Pass)
                .expect("a mark comes after a finite number of packets")
        };
        // The first gap begins before the first draw, so it is not used.
        next();
        (0..marks).map(|_| next()).collect()
    }

    fn mean(gaps: &[u32]) -> f64 {
        f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64
    }

    /// Section 7 of the paper: `P[gap = n] = p_b` for n from 1 to 1/p_b. Each tenth of that range gets a
    /// tenth of the gaps.
    #[test]
    fn gaps_between_marks_are_uniform() {
        // Halfway up the slope: p_b = 1 %.
        let gaps = gaps(SHAPE, 60_000, 1000, 20_000);
        assert!(gaps.iter().all(|gap| (1..=101).contains(gap)));
        for tenth in 0..10 {
            let within = gaps.iter().filter(|&&gap| (gap - 1) / 10 == tenth).count();
            assert!((1_850..2_150).contains(&within), "{within} gaps in tenth {tenth}");
        }
    }

    /// The mean of uniform gaps is (1/p_b + 1) / 2: on the slope, and on the ramp of `gentle` from max_p to
    /// 1.
    #[test]
    fn the_curve_rises_as_drawn() {
        let gentle = Shape {
            gentle: true,
            ..SHAPE
        };
        for (average, probability) in [
            (45_000, 0.005),
            (75_000, 0.015),
            (90_000, 0.02),
            (135_000, 0.02 + 0.98 / 2.0),
            (171_000, 0.02 + 0.98 * 0.9),
        ] {
            let exact = curve_at(gentle, average);
            assert!((exact - probability).abs() < 1e-4, "p_b {exact} at {average}");
            let mean = mean(&gaps(gentle, average, 1000, 10_000));
            // Gaps are whole numbers, so of the last one only a part counts.
            let whole = (1.0 / probability).ceil();
            let expected = (0..whole as u32)
                .map(|n| 1.0 - f64::from(n) * probability)
                .sum::<f64>();
            assert!(
                (mean / expected - 1.0).abs() < 0.05,
                "mean {mean} for {expected} at {average}"
            );
        }
        let curve = Curve::new(gentle, W_LOG).unwrap();
        let judge = |curve: &Curve, average: u64| {
            let mut spacing = Spacing::NEW;
            curve.judge(&mut spacing, average << W_LOG, 1, &mut Random::new(1))
        };
        assert_eq!(judge(&curve, 180_000), Action::Forced);
        assert_eq!(judge(&Curve::new(SHAPE, W_LOG).unwrap(), 90_000), Action::Forced);
        assert_eq!(judge(&curve, 29_999), Action::Pass);
        let exclusive = Shape {
            is_exclusive: true,
            ..SHAPE
        };
        let curve = Curve::new(exclusive, W_LOG).unwrap();
        assert!(curve.is_below(30_000 << W_LOG) && !curve.is_below((30_000 << W_LOG) + 1));
        assert_eq!(judge(&curve, 90_000), Action::Pass);
        assert_eq!(judge(&curve, 90_001), Action::Forced);
    }

    fn curve_at(shape: Shape, average: u64) -> f64 {
        let curve = Curve::new(shape, W_LOG).unwrap();
        curve.probability(average << W_LOG) as f64 / 2f64.powi(32)
    }

    /// Packets of half the mean length are marked half as often.
    #[test]
    fn by_length_every_byte_counts_the_same() {
        let shape = Shape {
            by_length: Some(1000),
            ..SHAPE
        };
        for (length, expected) in [(500, 100.5), (1000, 50.5), (2000, 25.5)] {
            let mean = mean(&gaps(shape, 60_000, length, 20_000));
            assert!(
                (mean / expected - 1.0).abs() < 0.05,
                "mean {mean} for {expected} at {length} bytes"
            );
        }
    }

    /// Compares the steps of Adaptive RED with the paper's real numbers.
    #[test]
    fn max_p_rises_by_a_quarter_and_falls_by_a_tenth() {
        let mut curve = Curve::new(SHAPE, W_LOG).unwrap();
        let mut exact: f64 = 0.02;
        let follows = |curve: &Curve, exact: f64| {
            let ours = curve.max_p as f64 / 2f64.powi(32);
            assert!((ours - exact).abs() < 1e-6, "{ours} for {exact}");
        };
        for _ in 0..60 {
            curve.adapt(70_000 << W_LOG);
            if exact <= 0.5 {
                exact += (exact / 4.0).min(0.01);
            }
            follows(&curve, exact);
        }
        for _ in 0..60 {
            curve.adapt(50_000 << W_LOG);
            if exact >= 0.01 {
                exact *= 0.9;
            }
            follows(&curve, exact);
        }
        let before = curve.max_p;
        curve.adapt(60_000 << W_LOG);
        assert_eq!(curve.max_p, before, "the average is in the middle fifth");
    }

    #[test]
    fn invalid_thresholds_are_rejected() {
        let refused = |min, max| {
            Curve::new(Shape { min, max, ..SHAPE }, W_LOG)
                .unwrap_err()
                .parameter()
        };
        assert_eq!(refused(90_000, 90_000), Some("max"));
        assert_eq!(refused(1, 1 << 31), Some("max"));
    }

    proptest! {
        /// Linux's test with its rounded quotient and ours without a division mark the same packets.
        #[test]
        fn the_test_without_division_marks_the_same_packets(
            excess in 0u64..60_000, count in 1i64..5_000, drawn in any::<u32>(), parts in 0..1u64 << 32,
        ) {
            let probability = Probability::from_parts(parts);
            let curve = Curve::new(Shape { probability, ..SHAPE }, W_LOG).unwrap();
            let mut spacing = Spacing { count: count - 1, drawn };
            let average = (30_000 + excess) << W_LOG;
            let ours = curve.judge(&mut spacing, average, 1000, &mut Random::new(1));
            let is_marked = excess * count as u64 >= u64::from(drawn) / curve.slope;
            prop_assert_eq!(ours == Action::Early, is_marked);
        }

        /// The probability never decreases as the average rises.
        #[test]
        fn the_curve_never_falls(
            min in 1u32..1 << 24,
            above in 1u32..1 << 24,
            parts in 0..=1u64 << 32,
            at in [0.0..1.0f64, 0.0..1.0f64],
        ) {
            let max = min + above;
            let shape = Shape {
                min,
                max,
                probability: Probability::from_parts(parts),
                gentle: true,
                by_length: None,
                is_exclusive: false,
            };
            let curve = Curve::new(shape, 3).unwrap();
            let place = |at: f64| curve.min + ((curve.end - 1 - curve.min) as f64 * at) as u64;
            let [low, high] = [at[0].min(at[1]), at[0].max(at[1])].map(|at| curve.probability(place(at)));
            // The quotient of the slope is rounded down, but never to 0.
            prop_assert!(low <= high + u64::from(above), "{low} below {high}");
        }
    }
}
