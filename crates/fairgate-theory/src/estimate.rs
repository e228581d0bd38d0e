//! Means with 95 % confidence intervals.
//!
//! The interval of a mean uses Student's t. The interval of a share of runs is Wilson's. Wilson's interval
//! stays within 0 and 1, and is also useful if all runs were hits or none was.

use serde::Serialize;

/// A mean of several runs, and the interval that contains the true mean with a probability of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean, or the share of hits.
    pub mean: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// The number of runs.
    pub runs: u64,
}

/// Upper 97.5 % points of Student's t, by degrees of freedom from 1.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The upper 97.5 % point of the normal distribution, to which Student's t converges.
const NORMAL: f64 = 1.960;

/// Returns the upper 97.5 % point of Student's t. Beyond the table the distance to the normal point falls
/// like 1/n.
fn student(freedom: u64) -> f64 {
    match STUDENT.get(freedom.saturating_sub(1) as usize) {
        Some(&point) => point,
        None => NORMAL + (STUDENT[29] - NORMAL) * 30.0 / freedom as f64,
    }
}

impl Estimate {
    /// Returns an estimate for a number that does not depend on chance.
    pub fn exact(value: f64) -> Estimate {
        Estimate {
            mean: value,
            low: value,
            high: value,
            runs: 1,
        }
    }

    /// Computes the mean of independent runs. With a single run the interval is that value alone, because the
    /// spread is unknown.
    ///
    /// Returns `None` without runs.
    pub fn of(runs: &[f64]) -> Option<Estimate> {
        let count = runs.len() as f64;
        if runs.is_empty() {
            return None;
        }
        let mean = runs.iter().sum::<f64>() / count;
        let spread = runs.iter().map(|run| (run - mean) * (run - mean)).sum::<f64>();
        let half = match runs.len() {
            1 => 0.0,
            more => student(more as u64 - 1) * libm::sqrt(spread / (count - 1.0) / count),
        };
        Some(Estimate {
            mean,
            low: mean - half,
            high: mean + half,
            runs: runs.len() as u64,
        })
    }

    /// Computes the share of runs that were hits (Wilson 1927). Returns `None` without runs.
    pub fn share(hits: u64, runs: u64) -> Option<Estimate> {
        if runs == 0 {
            return None;
        }
        let (n, share, z2) = (runs as f64, hits as f64 / runs as f64, NORMAL * NORMAL);
        let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let half = NORMAL / (1.0 + z2 / n) * libm::sqrt(share * (1.0 - share) / n + z2 / (4.0 * n * n));
        Some(Estimate {
            mean: share,
            low: if hits == 0 { 0.0 } else { middle - half },
            high: if hits == runs { 1.0 } else { middle + half },
            runs,
        })
    }

    /// Returns half the length of the interval.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Returns the standard deviation of a single run, as these runs show it. It is 0 for a single run.
    pub fn deviation(&self) -> f64 {
        match self.runs {
            0 | 1 => 0.0,
            runs => self.half_width() * libm::sqrt(runs as f64) / student(runs - 1),
        }
    }

    /// Returns the distance from the mean within which one more run is with a probability of 95 %: half of
    /// the prediction interval. The estimate is that of [`Estimate::of`], and it is 0 for a single run.
    pub fn reach(&self) -> f64 {
        self.half_width() * libm::sqrt(self.runs as f64 + 1.0)
    }

    /// Returns the ratio of two means from runs that are independent of each other. Its interval is that of
    /// small relative deviations.
    pub fn over(&self, other: &Estimate) -> Estimate {
        let mean = self.mean / other.mean;
        let half = mean.abs() * libm::hypot(self.half_width() / self.mean, other.half_width() / other.mean);
        // 0 divided by 0 in the term of a mean that is 0.
        let half = if half.is_nan() { 0.0 } else { half };
        Estimate {
            mean,
            low: mean - half,
            high: mean + half,
            runs: self.runs.min(other.runs),
        }
    }

    /// Whether the interval contains `value`.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_by_hand() {
        // The mean is 3, the standard deviation sqrt(2.5), that of the mean sqrt(0.5). t is 2.776 for 4
        // degrees of freedom.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(estimate.mean, 3.0);
        assert!((estimate.half_width() - 2.776 * 0.5f64.sqrt()).abs() < 1e-12);
        assert!(estimate.holds(1.1) && !estimate.holds(1.0));
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[7.0]).unwrap().half_width(), 0.0);
    }

    /// The reach by hand: 2.776 standard deviations, and the mean itself is uncertain by a fifth of the
    /// variance.
    #[test]
    fn the_reach_of_one_more_run() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((estimate.deviation() - 2.5f64.sqrt()).abs() < 1e-12);
        assert!((estimate.reach() - 2.776 * (2.5f64 * 1.2).sqrt()).abs() < 1e-12);
        let single = Estimate::of(&[7.0]).unwrap();
        assert_eq!((single.deviation(), single.reach()), (0.0, 0.0));
    }

    #[test]
    fn a_ratio_adds_relative_deviations() {
        let (a, b) = (
            Estimate::of(&[9.0, 11.0]).unwrap(),
            Estimate::of(&[19.0, 21.0]).unwrap(),
        );
        let ratio = a.over(&b);
        let relative = ratio.half_width() / ratio.mean;
        let each = [a.half_width() / a.mean, b.half_width() / b.mean];
        assert_eq!(ratio.mean, 0.5);
        assert!((relative - each[0].hypot(each[1])).abs() < 1e-12);
        let exact = Estimate::exact(0.0).over(&Estimate::exact(2.0));
        assert_eq!((exact.mean, exact.half_width()), (0.0, 0.0));
    }

    #[test]
    fn a_share_stays_within_0_and_1() {
        let none = Estimate::share(0, 100).unwrap();
        assert_eq!((none.mean, none.low), (0.0, 0.0));
        // Wilson's upper end without hits: z² / (n + z²).
        assert!((none.high - 3.8416 / 103.8416).abs() < 1e-12);
        let all = Estimate::share(100, 100).unwrap();
        assert_eq!(all.high, 1.0);
        assert!(all.low > 0.96);
        // 50 of 100: 0.4038 to 0.5962.
        let half = Estimate::share(50, 100).unwrap();
        assert!((half.low - 0.4038).abs() < 1e-4 && (half.high - 0.5962).abs() < 1e-4);
        assert_eq!(Estimate::share(0, 0), None);
    }

    #[test]
    fn the_interval_contains_the_true_mean_in_95_percent_of_trials() {
        use crate::measured::Dice;
        let mut dice = Dice::new(11, "estimate");
        let trials = 4_000;
        let held = (0..trials)
            .filter(|_| {
                let runs: Vec<f64> = (0..5)
                    .map(|_| (0..12).map(|_| dice.unit()).sum::<f64>() - 6.0)
                    .collect();
                Estimate::of(&runs).unwrap().holds(0.0)
            })
            .count();
        let share = held as f64 / trials as f64;
        assert!((share - 0.95).abs() < 0.012, "{share}");
    }
}
