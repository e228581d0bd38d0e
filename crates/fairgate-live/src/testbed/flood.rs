//! Measures how many small packets per second are forwarded.

use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::backend::BackendKind;
use crate::config::Plan;
use crate::testbed::bridged::with_bridge;
use crate::testbed::error::TestbedError;
use crate::testbed::network::{Network, received};
use crate::testbed::plain::{with_kernel, with_loop};
use crate::testbed::source::{Source, while_sending};

/// The time in which frames in transit arrive.
const TRANSIT: Duration = Duration::from_millis(100);

/// What forwards frames in the router.
#[derive(Clone, Copy, Debug)]
pub enum Forwarder<'p> {
    /// A bridge that runs this plan between `left` and `right`.
    Bridge(&'p Plan),
    /// A loop over a back end, without a queue and without rests.
    Loop(BackendKind),
    /// The kernel's own bridge.
    Kernel,
}

/// The result of a flood.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Flood {
    /// Frames per second sent by the source.
    pub offered_pps: f64,
    /// Frames per second received by the sink.
    pub forwarded_pps: f64,
    /// The number of offered frames that did not arrive.
    pub lost: u64,
    /// The processor time of the forwarding thread for each frame that it forwarded, ns, with what the kernel
    /// does on this thread. `None` for the kernel's bridge, which has no thread.
    pub nanos_per_frame: Option<f64>,
}

/// Sends frames for `duration` through a router that forwards them.
///
/// # Errors
/// Fails if the network can't be built or the forwarder fails.
pub fn flood(forwarder: Forwarder<'_>, source: Source, duration: Duration) -> Result<Flood, TestbedError> {
    let network = Network::build()?;
    let measure = || {
        let before = received(&network.right)?;
        let start = Instant::now();
        let (offered, ()) = while_sending(&network, source, || {
            thread::sleep(duration);
            Ok(())
        })?;
        let elapsed = start.elapsed().as_secs_f64();
        thread::sleep(TRANSIT);
        let forwarded = received(&network.right)?.packets - before.packets;
        Ok((offered, forwarded, elapsed))
    };
    let ((offered, forwarded, elapsed), of_a_core) = match forwarder {
        Forwarder::Bridge(plan) => {
            let bridged = with_bridge(&network, plan, measure)?;
            (bridged.measured, Some(bridged.of_a_core))
        }
        Forwarder::Loop(kind) => {
            let (measured, of_a_core) = with_loop(&network, kind, measure)?;
            (measured, Some(of_a_core))
        }
        Forwarder::Kernel => (with_kernel(&network, measure)?, None),
    };
    let took = elapsed + TRANSIT.as_secs_f64();
    Ok(Flood {
        offered_pps: offered as f64 / elapsed,
        forwarded_pps: forwarded as f64 / elapsed,
        lost: offered.saturating_sub(forwarded),
        nanos_per_frame: of_a_core.map(|share| share * took * 1e9 / forwarded as f64),
    })
}
