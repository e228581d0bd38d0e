//! Single-server queues with Poisson arrivals: M/M/1 and M/D/1, and the Poisson distribution itself.

mod md1;
mod mm1;
mod poisson;

pub use md1::Md1;
pub use mm1::Mm1;
pub use poisson::{normal_tail, poisson_tail, poisson_tail_at_most};

use thiserror::Error;

/// Parameters for which a queue has no steady state.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum QueueingError {
    /// At a load of 1 and above the queue grows without bound. At 0 nothing arrives.
    #[error("the load is {0}, but must be above 0 and below 1: otherwise there is no steady state")]
    Load(f64),
    /// The service takes no time, or no finite time.
    #[error("the mean service time is {0} s, but must be above 0 and finite")]
    Service(f64),
}

/// Checks the parameters of both queues.
fn check(load: f64, service: f64) -> Result<(), QueueingError> {
    if !(load > 0.0 && load < 1.0) {
        return Err(QueueingError::Load(load));
    }
    if !(service > 0.0 && service.is_finite()) {
        return Err(QueueingError::Service(service));
    }
    Ok(())
}
