//! M/M/1: Poisson arrivals, exponential service times, one server, first come first served.

use crate::queueing::{QueueingError, check};

/// An M/M/1 queue in its steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mm1 {
    load: f64,
    service: f64,
}

impl Mm1 {
    /// Creates a queue. `load` is arrival rate times mean service time, above 0 and below 1. `service` is the
    /// mean service time, s.
    ///
    /// # Errors
    /// Returns an error if there is no steady state.
    pub fn new(load: f64, service: f64) -> Result<Mm1, QueueingError> {
        check(load, service)?;
        Ok(Mm1 { load, service })
    }

    /// Returns arrival rate times mean service time.
    pub fn load(&self) -> f64 {
        self.load
    }

    /// Returns the mean service time, s.
    pub fn service(&self) -> f64 {
        self.service
    }

    /// Returns the mean waiting time before service, s.
    pub fn mean_wait(&self) -> f64 {
        self.mean_delay() - self.service
    }

    /// Returns the mean of waiting time plus service time, s.
    pub fn mean_delay(&self) -> f64 {
        self.service / (1.0 - self.load)
    }

    /// Returns P(waiting time > `time`), `time` in s. It is 1 below 0, and the load at 0.
    pub fn wait_exceeds(&self, time: f64) -> f64 {
        if time < 0.0 {
            1.0
        } else {
            self.load * self.delay_exceeds(time)
        }
    }

    /// Returns P(waiting time plus service time > `time`). The PDRR paper draws this curve in its Figure 3.
    pub fn delay_exceeds(&self, time: f64) -> f64 {
        libm::exp(-(1.0 - self.load) / self.service * time.max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_by_hand() {
        let queue = Mm1::new(0.5, 0.001).unwrap();
        assert!((queue.mean_delay() - 0.002).abs() < 1e-15);
        assert!((queue.mean_wait() - 0.001).abs() < 1e-15);
        assert!((queue.delay_exceeds(0.002) - (-1f64).exp()).abs() < 1e-15);
        assert_eq!(queue.wait_exceeds(0.0), 0.5);
        assert_eq!(queue.wait_exceeds(-1.0), 1.0);
    }

    #[test]
    fn the_tail_integrates_to_the_mean() {
        let queue = Mm1::new(0.9, 0.8e-3).unwrap();
        let step = 1e-5;
        let sum: f64 = (0..20_000)
            .map(|i| queue.wait_exceeds((f64::from(i) + 0.5) * step) * step)
            .sum();
        assert!((sum / queue.mean_wait() - 1.0).abs() < 1e-5, "{sum}");
    }

    #[test]
    fn a_load_or_service_time_without_a_steady_state_is_an_error() {
        assert_eq!(Mm1::new(1.0, 1.0), Err(QueueingError::Load(1.0)));
        assert!(matches!(Mm1::new(f64::NAN, 1.0), Err(QueueingError::Load(_))));
        assert_eq!(Mm1::new(0.5, 0.0), Err(QueueingError::Service(0.0)));
    }
}
