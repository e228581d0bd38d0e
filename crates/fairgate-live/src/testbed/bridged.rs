//! A bridge that runs on a thread of this process while something is measured.

use std::thread;
use std::time::{Duration, Instant};

use fairgate_run_api::Status;
use nix::time::ClockId;

use crate::bridge::Bridge;
use crate::config::Plan;
use crate::error::LiveError;
use crate::testbed::error::TestbedError;
use crate::testbed::network::Network;

/// What was measured, and what the bridge says at its end.
pub(crate) struct Bridged<T> {
    pub(crate) measured: T,
    pub(crate) status: Status,
    /// The share of a core that the forwarding thread took, from its start to its end. Further workers are
    /// not counted.
    pub(crate) of_a_core: f64,
}

/// Calls `measure` while a bridge runs `plan` between `left` and `right` in the router of `network`.
///
/// # Errors
/// Fails if the bridge or the measurement fails.
pub(crate) fn with_bridge<T>(
    network: &Network,
    plan: &Plan,
    measure: impl FnOnce() -> Result<T, TestbedError>,
) -> Result<Bridged<T>, TestbedError> {
    let mut bridge = network.router.enter(|| Bridge::open(plan, None))??;
    let stopper = bridge.stopper();
    thread::scope(|scope| {
        let router = scope.spawn(|| {
            // If the kernel refuses, the result is that of an ordinary thread.
            let _ = bridge.prioritise();
            let busy = Busy::begin();
            let result = bridge.run();
            (bridge.status(), result.and_then(|_| busy?.of_a_core()))
        });
        let measured = measure();
        stopper.stop();
        let (status, of_a_core) = router
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(Bridged {
            of_a_core: of_a_core?,
            measured: measured?,
            status,
        })
    })
}

/// The processor time of a thread from a moment on.
pub(crate) struct Busy {
    began: Instant,
    before: Duration,
}

impl Busy {
    /// Begins to measure the calling thread.
    pub(crate) fn begin() -> Result<Busy, LiveError> {
        Ok(Busy {
            began: Instant::now(),
            before: Busy::processor_time()?,
        })
    }

    /// Returns the share of a core that the thread took. Call it on the same thread.
    pub(crate) fn of_a_core(&self) -> Result<f64, LiveError> {
        let busy = Busy::processor_time()? - self.before;
        Ok(busy.as_secs_f64() / self.began.elapsed().as_secs_f64())
    }

    fn processor_time() -> Result<Duration, LiveError> {
        let now = ClockId::CLOCK_THREAD_CPUTIME_ID.now();
        now.map(Duration::from)
            .map_err(LiveError::system("reading the processor time of a thread"))
    }
}
