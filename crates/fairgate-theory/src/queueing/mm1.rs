//! M/M/1: Poisson arrivals, exponential service times, one server, first come first served.

use crate::queueing::{QueueingError, check};

/// The queue in its steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mm1 {
    load: f64,
    service: f64,
}

impl Mm1 {
    /// `load` is arrivals times mean service time, above 0 and below 1; `service` the mean service time, s.
    ///
    /// # Errors
    /// If there is no steady state.
    pub fn new(load: f64, service: f64) -> Result<Mm1, QueueingError> {
        check(load, service)?;
        Ok(Mm1 { load, service })
    }

    /// Arrivals times mean service time.
    pub fn load(&self) -> f64 {
        self.load
    }

    /// Mean service time, s.
    pub fn service(&self) -> f64 {
        self.service
    }

    /// Mean wait before service, s.
    pub fn mean_wait(&self) -> f64 {
        self.mean_delay() - self.service
    }

    /// Mean of wait and service, s.
    pub fn mean_delay(&self) -> f64 {
        self.service / (1.0 - self.load)
    }

    /// P(wait > `time`), `time` in s: 1 below 0, the load at 0.
    pub fn wait_exceeds(&self, time: f64) -> f64 {
        if time < 0.0 {
            1.0
        } else {
            self.load * self.delay_exceeds(time)
        }
    }

    /// P(wait and service > `time`): the line that the PDRR paper lays over its Figure 3.
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
    fn without_a_steady_state_there_is_no_queue() {
        assert_eq!(Mm1::new(1.0, 1.0), Err(QueueingError::Load(1.0)));
        assert!(matches!(Mm1::new(f64::NAN, 1.0), Err(QueueingError::Load(_))));
        assert_eq!(Mm1::new(0.5, 0.0), Err(QueueingError::Service(0.0)));
    }
}
