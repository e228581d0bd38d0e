//! Measures what hostile frames at full rate do to other traffic, and to the memory.

use std::time::Duration;

use fairgate_run_api::Status;
use serde::Serialize;

use crate::config::Plan;
use crate::testbed::bridged::with_bridge;
use crate::testbed::error::TestbedError;
use crate::testbed::network::Network;
use crate::testbed::process::Interrupt;
use crate::testbed::source::{Source, while_sending};
use crate::testbed::traffic::{Ping, PingTimes};

/// The hosts find each other's addresses before the attack, as they would have on a link in use.
const BEFORE: Duration = Duration::from_millis(500);

/// What an attack did.
#[derive(Clone, Debug, Serialize)]
pub struct Attack {
    /// The number of frames sent.
    pub frames: u64,
    /// Frames per second.
    pub frames_pps: f64,
    /// Round trips between the hosts during the attack.
    pub ping: PingTimes,
    /// By how many bytes the resident memory of this process grew from before the attack to its end.
    pub memory_growth: i64,
    /// The status of the bridge at the end.
    pub status: Status,
}

/// Sends frames for `duration` through a bridge that runs `plan` between `left` and `right`, and pings the
/// right host beside them.
///
/// # Errors
/// Fails if the network can't be built or the bridge fails, or on an interrupt.
pub fn attack(
    plan: &Plan,
    source: Source,
    duration: Duration,
    interrupt: &Interrupt,
) -> Result<Attack, TestbedError> {
    let network = Network::build()?;
    let bridged = with_bridge(&network, plan, || {
        Ping::start(&network.left, BEFORE)?.finish(interrupt)?;
        let before = resident()?;
        let (frames, (ping, after)) = while_sending(&network, source, || {
            let ping = Ping::start(&network.left, duration)?;
            interrupt.sleep(duration)?;
            Ok((ping, resident()?))
        })?;
        Ok((frames, ping.finish(interrupt)?, after - before))
    })?;
    let (frames, ping, memory_growth) = bridged.measured;
    Ok(Attack {
        frames,
        frames_pps: frames as f64 / duration.as_secs_f64(),
        ping,
        memory_growth,
        status: bridged.status,
    })
}

/// Returns the resident memory of this process, bytes (proc_pid_status(5), `VmRSS`).
fn resident() -> Result<i64, TestbedError> {
    let text = std::fs::read_to_string("/proc/self/status")
        .map_err(TestbedError::io("reading the memory of this process"))?;
    let kibibytes = text.lines().find_map(|line| {
        line.strip_prefix("VmRSS:")?
            .trim()
            .strip_suffix(" kB")?
            .parse()
            .ok()
    });
    kibibytes
        .map(|number: i64| number << 10)
        .ok_or_else(|| TestbedError::Output {
            program: "/proc/self/status",
            what: "the resident memory".to_owned(),
        })
}
