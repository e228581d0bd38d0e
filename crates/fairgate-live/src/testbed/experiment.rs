//! One scenario, measured: an idle line, then TCP connections with a ping beside them.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::status::{Status, fetch};
use crate::testbed::error::TestbedError;
use crate::testbed::network::{Network, received};
use crate::testbed::process::{Interrupt, Process};
use crate::testbed::scenario::Scenario;
use crate::testbed::traffic::{Downloads, Ping, PingTimes};

/// For how long the idle line is pinged.
const IDLE: Duration = Duration::from_secs(1);

/// TCP fills the queue before anything is measured. CUBIC leaves slow start early (HyStart) and needs some seconds to
/// fill a deep one.
const WARM_UP: Duration = Duration::from_secs(5);

/// The first packets after a start wait for address resolution; and measuring ends a little before the traffic does.
const MARGIN: Duration = Duration::from_millis(200);

/// How long a bridge may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// What to measure.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The program `fairgate`.
    pub program: PathBuf,
    /// TCP connections from left to right.
    pub flows: u32,
    /// Their congestion control, as the kernel calls it: `cubic`, `reno`, `bbr`.
    pub congestion: String,
    /// For how long they are measured; whole seconds.
    pub duration: Duration,
    /// Seed of the bridge's own chance: the key of its hash. What kernel and processor do is beyond it.
    pub seed: u64,
}

/// Where an experiment has got to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The bridge starts.
    Starting,
    /// The idle line is pinged.
    Idle,
    /// TCP fills the queue.
    WarmUp,
    /// Traffic is measured.
    Load,
    /// Results are collected.
    Collecting,
}

/// What one connection got.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlowOutcome {
    /// TCP payload at the receiver, bits per second.
    pub goodput_bps: f64,
    /// Segments sent again.
    pub retransmits: u64,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The scenario.
    pub scenario: String,
    /// The bottleneck's rate, if it is known, bits per second.
    pub rate_bps: Option<u64>,
    /// All frames that arrived at the right host while measured, Ethernet headers counted, bits per second. This is
    /// what a shaper counts; TCP payload is 0.956 of it in full-sized frames.
    pub frames_bps: f64,
    /// TCP payload of all flows, bits per second.
    pub goodput_bps: f64,
    /// What each flow got.
    pub flows: Vec<FlowOutcome>,
    /// Jain's fairness index over the flows: 1 if all got the same.
    pub jain: f64,
    /// Round trips over the idle line.
    pub ping_idle: PingTimes,
    /// Round trips beside the flows.
    pub ping_load: PingTimes,
    /// The bridge's books at the end.
    pub status: Status,
}

impl Experiment {
    /// Runs a scenario in a network of its own. `progress` is told each stage as it begins.
    ///
    /// # Errors
    /// If anything fails. The network is taken down in any case.
    pub fn run(
        &self,
        scenario: &Scenario,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(Stage),
    ) -> Result<Outcome, TestbedError> {
        progress(Stage::Starting);
        // Dropped last: processes end before their namespaces.
        let network = Network::build()?;
        let folder = tempfile::tempdir().map_err(TestbedError::io("making a temporary folder"))?;
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
        let started = interrupt.wait_for(PATIENCE, || fetch(&socket).is_ok() || router.has_ended())?;
        if !started || router.has_ended() {
            return Err(router.failure());
        }
        interrupt.sleep(MARGIN)?;

        progress(Stage::Idle);
        let ping_idle = Ping::start(&network.left, IDLE)?.finish(interrupt)?;

        progress(Stage::WarmUp);
        let downloads = Downloads::start(&network, self, WARM_UP, interrupt)?;
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
        let status = fetch(&socket)
            .map_err(std::io::Error::other)
            .map_err(TestbedError::io("asking the bridge for its status"))?;
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
