//! Measures one scenario: an idle link first, then TCP connections together with a ping.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fairgate_run_api::Status;
use serde::Serialize;

use crate::testbed::error::TestbedError;
use crate::testbed::network::{Network, received};
use crate::testbed::process::{Interrupt, Process};
use crate::testbed::scenario::Scenario;
use crate::testbed::traffic::{Downloads, Load, Ping, PingTimes};

/// How long the idle link is pinged.
const IDLE: Duration = Duration::from_secs(1);

/// TCP fills the queue before the measurement. CUBIC leaves slow start early (HyStart) and needs some seconds
/// to fill a deep queue.
const WARM_UP: Duration = Duration::from_secs(5);

/// The first packets wait for address resolution. The measurement also ends this much before the traffic.
const MARGIN: Duration = Duration::from_millis(200);

/// How long a bridge may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// What to measure.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The program `fairgate`.
    pub program: PathBuf,
    /// The number of TCP connections from left to right.
    pub flows: u32,
    /// Their congestion control, by the kernel's name: `cubic`, `reno`, `bbr`.
    pub congestion: String,
    /// How long they are measured, in whole seconds.
    pub duration: Duration,
    /// The seed of the bridge's random numbers, such as the key of the flow hash. It does not control the
    /// kernel and the processor.
    pub seed: u64,
    /// Asks the run at a socket for its status.
    pub fetch: fn(&Path) -> io::Result<Status>,
}

/// The stage that an experiment has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The bridge is starting.
    Starting,
    /// The idle link is pinged.
    Idle,
    /// TCP fills the queue.
    WarmUp,
    /// Traffic is measured.
    Load,
    /// Results are collected.
    Collecting,
}

/// The result of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlowOutcome {
    /// TCP payload at the receiver, bits per second.
    pub goodput_bps: f64,
    /// The number of retransmitted segments.
    pub retransmits: u64,
}

/// The result of an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The scenario.
    pub scenario: String,
    /// The rate of the bottleneck in bits per second, if it is known.
    pub rate_bps: Option<u64>,
    /// All frames that arrived at the right host during the measurement, including Ethernet headers, bits per
    /// second. A shaper counts the same bytes. In full-sized frames, TCP payload is 0.956 of it.
    pub frames_bps: f64,
    /// TCP payload of all flows, bits per second.
    pub goodput_bps: f64,
    /// The result of each flow.
    pub flows: Vec<FlowOutcome>,
    /// Jain's fairness index over the flows. It is 1 if all flows got the same.
    pub jain: f64,
    /// Round-trip times over the idle link.
    pub ping_idle: PingTimes,
    /// Round-trip times during the load.
    pub ping_load: PingTimes,
    /// The status of the bridge at the end.
    pub status: Status,
}

impl Experiment {
    /// Runs a scenario in a new network. Calls `progress` at the start of each stage.
    ///
    /// # Errors
    /// Fails if any step fails. The network is taken down in any case.
    pub fn run(
        &self,
        scenario: &Scenario,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(Stage),
    ) -> Result<Outcome, TestbedError> {
        progress(Stage::Starting);
        // Dropped last, so that processes end before their namespaces.
        let network = Network::build()?;
        let folder = tempfile::tempdir().map_err(TestbedError::io("creating a temporary folder"))?;
        let socket = folder.path().join("status.sock");
        let file = folder.path().join("testbed.toml");
        fs::write(&file, scenario.text()).map_err(TestbedError::io("writing the configuration"))?;
        let mut command = network.router.command(&self.program.to_string_lossy());
        command
            .args(["run", "--json", "--socket"])
            .arg(&socket)
            .args(["--seed", &self.seed.to_string()])
            .arg(&file);
        let mut router = Process::spawn(command, &self.program.to_string_lossy(), "iproute2")?;
        let started = interrupt.wait_for(PATIENCE, || (self.fetch)(&socket).is_ok() || router.has_ended())?;
        if !started || router.has_ended() {
            return Err(router.failure());
        }
        interrupt.sleep(MARGIN)?;

        progress(Stage::Idle);
        let ping_idle = Ping::start(&network.left, IDLE)?.finish(interrupt)?;

        progress(Stage::WarmUp);
        let load = Load {
            flows: self.flows,
            duration: self.duration,
            congestion: &self.congestion,
        };
        let downloads = Downloads::start(&network, &load, WARM_UP, interrupt)?;
        interrupt.sleep(WARM_UP)?;

        progress(Stage::Load);
        let loaded = self.duration - MARGIN;
        let (start, before) = (Instant::now(), received(&network.right)?);
        let ping = Ping::start(&network.left, loaded)?;
        interrupt.sleep(loaded)?;
        let (elapsed, after) = (start.elapsed(), received(&network.right)?);
        let ping_load = ping.finish(interrupt)?;

        progress(Stage::Collecting);
        let flows: Vec<FlowOutcome> = downloads
            .finish(interrupt)?
            .into_iter()
            .map(|connection| FlowOutcome {
                goodput_bps: connection.bits_per_second,
                retransmits: connection.retransmits,
            })
            .collect();
        let status = (self.fetch)(&socket).map_err(TestbedError::io("fetching the status of the bridge"))?;
        router.interrupt(interrupt)?;
        Ok(Outcome {
            scenario: scenario.label.clone(),
            rate_bps: scenario.rate.map(fairgate::Rate::bits_per_second),
            frames_bps: (after.bytes - before.bytes) as f64 * 8.0 / elapsed.as_secs_f64(),
            goodput_bps: flows.iter().map(|flow| flow.goodput_bps).sum(),
            jain: fairgate::jain_index(flows.iter().map(|flow| flow.goodput_bps)),
            flows,
            ping_idle,
            ping_load,
            status,
        })
    }
}
