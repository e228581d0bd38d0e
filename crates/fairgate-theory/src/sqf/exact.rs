//! The time to the first loss of priority, without approximation.
//!
//! TCP keeps the buffer full, so the link sends packets back to back, and time is counted in transmissions.
//! Let `x` be the number of the video's packets in the buffer at the end of a transmission. If `0 < x <
//! limit`, the next packet sent is one of the video's. `A` packets arrive during the transmission, Poisson
//! distributed: `x' = max(x - 1, 0) + A`. The process ends with the first `x >= limit`.
//!
//! All sums have only positive terms, so that times of millions of years keep their digits. The mean uses the
//! algorithm of Grassmann, Taksar and Heyman (1985).

use crate::queueing::poisson_tail;
use crate::sqf::Sharing;

/// The Markov chain of the number of the video's packets in the buffer at the ends of transmissions.
#[derive(Clone, Debug)]
pub struct Exact {
    /// Probabilities of going from row to column. The last state is the loss of priority and is absorbing.
    transitions: Vec<Vec<f64>>,
    /// The time of a transmission, s.
    transmission: f64,
}

impl Exact {
    /// Creates the chain of a video of `rate` packets a second, above 0. It starts without a packet of the
    /// video in the buffer.
    pub fn new(sharing: &Sharing, rate: f64) -> Exact {
        let transmission = 1.0 / sharing.capacity();
        let mean = rate * transmission;
        // The first number of packets that is not below the limit.
        let lost = libm::ceil(sharing.limit() * (1.0 - 1e-12)) as usize;
        let arrivals: Vec<f64> = (0..=lost as u64)
            .map(|n| libm::exp(n as f64 * libm::log(mean) - mean - libm::lgamma(n as f64 + 1.0)))
            .collect();
        let mut transitions: Vec<Vec<f64>> = (0..lost)
            .map(|queued: usize| {
                let left = queued.saturating_sub(1);
                let mut row: Vec<f64> = (0..lost)
                    .map(|next| if next < left { 0.0 } else { arrivals[next - left] })
                    .collect();
                row.push(poisson_tail((lost - left) as u64, mean));
                row
            })
            .collect();
        let mut stay = vec![0.0; lost];
        stay.push(1.0);
        transitions.push(stay);
        Exact {
            transitions,
            transmission,
        }
    }

    /// Returns the probability that priority is lost within `time` s.
    pub fn probability(&self, time: f64) -> f64 {
        let mut left = libm::floor(time / self.transmission * (1.0 + 1e-12)) as u64;
        let mut power = self.transitions.clone();
        let mut state = vec![0.0; power.len()];
        state[0] = 1.0;
        while left > 0 {
            if left % 2 == 1 {
                state = times(&state, &power);
            }
            left /= 2;
            if left > 0 {
                power = power.iter().map(|row| times(row, &power)).collect();
            }
        }
        state[power.len() - 1]
    }

    /// Returns the mean time until priority is lost, s.
    pub fn mean_time(&self) -> f64 {
        // If the chain is restarted after each loss, it has a steady state. In it a loss occurs once per mean
        // time plus one transmission for the restart.
        let mut chain = self.transitions.clone();
        let lost = chain.len() - 1;
        chain[lost].fill(0.0);
        chain[lost][0] = 1.0;
        for n in (1..=lost).rev() {
            let out: f64 = chain[n][..n].iter().sum();
            for i in 0..n {
                chain[i][n] /= out;
                for j in 0..n {
                    chain[i][j] += chain[i][n] * chain[n][j];
                }
            }
        }
        let mut steady = vec![1.0];
        for n in 1..=lost {
            steady.push(steady.iter().zip(&chain).map(|(share, row)| share * row[n]).sum());
        }
        let total: f64 = steady.iter().sum();
        (total / steady[lost] - 1.0) * self.transmission
    }
}

/// Returns a row of probabilities times a matrix.
fn times(row: &[f64], matrix: &[Vec<f64>]) -> Vec<f64> {
    let mut product = vec![0.0; row.len()];
    for (&share, line) in row.iter().zip(matrix) {
        if share > 0.0 {
            for (sum, &probability) in product.iter_mut().zip(line) {
                *sum += share * probability;
            }
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::Dice;
    use crate::sqf::Count;

    fn line(flows: u32) -> Sharing {
        Sharing::new(1000.0, 200, flows).unwrap()
    }

    #[test]
    fn with_a_limit_of_one_packet_the_first_arrival_decides() {
        // The buffer holds two packets, and there is one TCP flow: the limit is 1. It is reached with the
        // first packet.
        let sharing = Sharing::new(1000.0, 2, 1).unwrap();
        let exact = Exact::new(&sharing, 100.0);
        let hit = 1.0 - (-0.1f64).exp();
        assert!((exact.mean_time() / (0.001 / hit) - 1.0).abs() < 1e-12);
        assert!((exact.probability(0.005) - (1.0 - (-0.5f64).exp())).abs() < 1e-12);
    }

    #[test]
    fn rows_are_probabilities() {
        for row in Exact::new(&line(5), 930.0).transitions {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn probability_and_mean_agree_with_a_simulation() {
        let (sharing, rate) = (line(20), 800.0);
        let exact = Exact::new(&sharing, rate);
        let mut dice = Dice::new(5, "chain");
        let runs = 3_000;
        let (mut within, mut sum) = (0, 0.0);
        for _ in 0..runs {
            let (mut queued, mut steps) = (0u64, 0u64);
            while (queued as f64) < sharing.limit() {
                queued = queued.saturating_sub(1) + dice.poisson(rate / 1000.0);
                steps += 1;
            }
            within += u64::from(steps <= 200);
            sum += steps as f64 / 1000.0;
        }
        let share = within as f64 / f64::from(runs);
        assert!(
            (share - exact.probability(0.2)).abs() < 0.03,
            "{share} {}",
            exact.probability(0.2)
        );
        assert!((sum / f64::from(runs) / exact.mean_time() - 1.0).abs() < 0.06);
    }

    #[test]
    fn the_mean_is_the_integral_of_the_probability_that_remains() {
        let exact = Exact::new(&line(20), 900.0);
        let sum: f64 = (0..4_000)
            .map(|i| 0.001 * (1.0 - exact.probability(f64::from(i) * 0.001)))
            .sum();
        assert!(
            (sum / exact.mean_time() - 1.0).abs() < 1e-6,
            "{sum} {}",
            exact.mean_time()
        );
    }

    #[test]
    fn the_papers_estimate_is_a_lower_bound() {
        for flows in [5, 10, 20] {
            for rate in [500.0, 700.0, 900.0] {
                let estimate = line(flows).estimate(rate, 600.0, Count::Poisson);
                let exact = Exact::new(&line(flows), rate).probability(600.0);
                assert!(
                    estimate <= exact,
                    "{flows} flows, {rate}/s: {estimate} above {exact}"
                );
            }
        }
    }
}
