//! M/D/1: Poisson arrivals, constant service times, one server, first come first served.
//!
//! The mean is Pollaczek's and Khinchin's. The distribution of the waiting time is Erlang's. His alternating
//! sum loses all digits after about twenty service times. This module therefore uses the sum of positive
//! terms of Franx (2001, "A simple solution for the M/D/c waiting time distribution"): the waiting time is at
//! most `t` if the server finds few enough packets ahead of this one. That needs the distribution of the
//! number of packets in the queue a short time before.
//!
//! That distribution follows from the balance between n and n + 1 packets. During a service the number of
//! upward crossings, by arrivals, equals the number of downward crossings, one per service. So P(n+1) P(A =
//! 0) = P(0) P(A > n) + sum of P(i) P(A > n + 1 - i) for i = 1..=n, where A is the number of arrivals during
//! a service. Again all terms are positive.

use crate::queueing::{QueueingError, check, poisson_tail};

/// An M/D/1 queue in its steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Md1 {
    load: f64,
    service: f64,
}

impl Md1 {
    /// Creates a queue. `load` is arrival rate times service time, above 0 and below 1. `service` is the
    /// service time, s.
    ///
    /// # Errors
    /// Returns an error if there is no steady state.
    pub fn new(load: f64, service: f64) -> Result<Md1, QueueingError> {
        check(load, service)?;
        Ok(Md1 { load, service })
    }

    /// Returns arrival rate times service time.
    pub fn load(&self) -> f64 {
        self.load
    }

    /// Returns the service time, s.
    pub fn service(&self) -> f64 {
        self.service
    }

    /// Returns the mean waiting time before service, s.
    pub fn mean_wait(&self) -> f64 {
        self.load * self.service / (2.0 * (1.0 - self.load))
    }

    /// Returns the mean of waiting time plus service time, s.
    pub fn mean_delay(&self) -> f64 {
        self.mean_wait() + self.service
    }

    /// Returns P(n packets in the system), n = 0..=`most`.
    pub fn in_system(&self, most: usize) -> Vec<f64> {
        let more_than: Vec<f64> = (0..=most as u64 + 1)
            .map(|n| poisson_tail(n + 1, self.load))
            .collect();
        let none = libm::exp(-self.load);
        let mut probability = vec![1.0 - self.load];
        for n in 0..most {
            let from_behind: f64 = (1..=n).map(|i| probability[i] * more_than[n + 1 - i]).sum();
            probability.push((probability[0] * more_than[n] + from_behind) / none);
        }
        probability
    }

    /// Returns P(waiting time > `time`), `time` in s. It is 1 below 0, and the load at 0.
    pub fn wait_exceeds(&self, time: f64) -> f64 {
        if time < 0.0 {
            return 1.0;
        }
        // The end of the service that contains `time`, counted in services.
        let whole = libm::floor(time / self.service) as usize + 1;
        let arrivals = self.load * (whole as f64 - time / self.service);
        // P(at most j packets wait), j = 0..whole. One packet more is in the system.
        let mut within = 0.0;
        let at_most: Vec<f64> = self
            .in_system(whole)
            .iter()
            .map(|probability| {
                within += probability;
                within
            })
            .skip(1)
            .collect();
        let mut arrived = libm::exp(-arrivals);
        let mut sum = 0.0;
        for j in 0..whole {
            sum += at_most[whole - 1 - j] * arrived;
            arrived *= arrivals / (j + 1) as f64;
        }
        (1.0 - sum).max(0.0)
    }

    /// Returns P(waiting time plus service time > `time`).
    pub fn delay_exceeds(&self, time: f64) -> f64 {
        self.wait_exceeds(time - self.service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Erlang 1909: P(W <= t) = (1 - rho) sum of (-a_k)^k / k! e^(a_k), a_k = lambda (t - k D). The sum
    /// alternates.
    fn erlang(load: f64, services: f64) -> f64 {
        let mut sum = 0.0;
        let mut factorial = 1.0;
        for k in 0..=services.floor() as i32 {
            factorial *= f64::from(k.max(1));
            let a = load * (services - f64::from(k));
            sum += (-a).powi(k) / factorial * a.exp();
        }
        1.0 - (1.0 - load) * sum
    }

    #[test]
    fn the_waiting_time_is_erlangs_where_his_sum_is_accurate() {
        for load in [0.2, 0.6, 0.9] {
            let queue = Md1::new(load, 0.001).unwrap();
            for services in [0.0, 0.3, 0.999, 1.0, 1.7, 3.0, 5.25, 8.5] {
                let (ours, his) = (queue.wait_exceeds(services * 0.001), erlang(load, services));
                assert!(
                    (ours - his).abs() < 1e-9,
                    "load {load}, {services} services: {ours} {his}"
                );
            }
        }
    }

    #[test]
    fn the_tail_integrates_to_the_mean() {
        for load in [0.3, 0.8] {
            let queue = Md1::new(load, 1.0).unwrap();
            let step = 0.01;
            let sum: f64 = (0..6_000)
                .map(|i| queue.wait_exceeds((f64::from(i) + 0.5) * step) * step)
                .sum();
            assert!((sum / queue.mean_wait() - 1.0).abs() < 1e-4, "{load}: {sum}");
        }
    }

    #[test]
    fn the_numbers_in_the_system_satisfy_the_embedded_chain() {
        // The balance at the ends of services, solved directly for the first few states.
        let load: f64 = 0.7;
        let queue = Md1::new(load, 1.0).unwrap();
        let p = queue.in_system(60);
        let arrivals = |n: usize| (1..=n).fold((-load).exp(), |p, k| p * load / k as f64);
        for n in 0..6 {
            let into: f64 = p[0] * arrivals(n) + (1..=n + 1).map(|i| p[i] * arrivals(n + 1 - i)).sum::<f64>();
            assert!((into - p[n]).abs() < 1e-12, "state {n}");
        }
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let mean: f64 = p.iter().enumerate().map(|(n, p)| n as f64 * p).sum();
        assert!((mean - load * queue.mean_delay()).abs() < 1e-9, "Little's law");
    }
}
