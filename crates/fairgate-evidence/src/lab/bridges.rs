//! The bridges of a network, each on a thread of its own with the priority of a live run.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, SyncSender};
use std::thread::Scope;
use std::time::Duration;

use fairgate_config::Registry;
use fairgate_live::status::{Audit, Owner, Status, fetch};
use fairgate_live::testbed::{Interrupt, TestbedError};
use fairgate_live::{Bridge, LiveError, Stopper};

use crate::lab::layout::Layout;
use crate::lab::network::Network;

/// How long a bridge may take to open its interfaces.
const PATIENCE: Duration = Duration::from_secs(10);

/// Running bridges. They are stopped on drop.
#[derive(Debug)]
pub(crate) struct Bridges {
    stoppers: Vec<Stopper>,
    /// The status sockets, by link.
    sockets: Vec<Option<PathBuf>>,
}

impl Bridges {
    /// Starts a bridge in the middle of each link that has one.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        layout: &'scope Layout,
        network: &'scope Network,
        folder: &Path,
        seed: u64,
        interrupt: &Interrupt,
    ) -> Result<Bridges, TestbedError> {
        let mut bridges = Bridges {
            stoppers: Vec::new(),
            sockets: Vec::new(),
        };
        for (link, middle) in network.middles.iter().enumerate() {
            let (Some(middle), Some(plan)) = (middle, &layout.wires[link].plan) else {
                bridges.sockets.push(None);
                continue;
            };
            let socket = folder.join(format!("link-{link}.sock"));
            // A rendezvous: a bridge that nobody waits for any more must not run.
            let (opened, is_open) = mpsc::sync_channel(0);
            let path = socket.clone();
            scope.spawn(move || {
                let failed = opened.clone();
                let entered = middle.enter(|| forward(plan, &path, seed, opened));
                if let Err(error) = entered {
                    let _ = failed.send(Err(error));
                }
            });
            let mut answer = None;
            interrupt.wait_for(PATIENCE, || {
                answer = is_open.try_recv().ok();
                answer.is_some()
            })?;
            match answer {
                Some(stopper) => bridges.stoppers.push(stopper?),
                None => {
                    return Err(TestbedError::System {
                        action: format!("starting the bridge of link {link}"),
                        reason: "it did not answer for 10 s".to_owned(),
                    });
                }
            }
            bridges.sockets.push(Some(socket));
        }
        Ok(bridges)
    }

    /// Returns the statuses of all bridges, by link.
    pub(crate) fn statuses(&self) -> Result<Vec<Option<Status>>, TestbedError> {
        let fetch = |socket: &Option<PathBuf>| {
            let status = socket.as_ref().map(|socket| fetch(socket));
            status.transpose().map_err(|error| TestbedError::System {
                action: "asking a bridge for its status".to_owned(),
                reason: error.to_string(),
            })
        };
        self.sockets.iter().map(fetch).collect()
    }
}

impl Drop for Bridges {
    fn drop(&mut self) {
        for stopper in &self.stoppers {
            stopper.stop();
        }
    }
}

/// Forwards frames until the bridge is stopped. Reports first that it is open, or why it is not.
fn forward(
    plan: &fairgate_live::Plan,
    socket: &Path,
    seed: u64,
    opened: SyncSender<Result<Stopper, TestbedError>>,
) {
    let open = || -> Result<Bridge, LiveError> {
        let mut bridge = Bridge::open(plan, Some(seed))?;
        bridge.serve(socket, &Registry::builtin(), Audit::default(), Owner::default())?;
        Ok(bridge)
    };
    match open() {
        Err(error) => {
            let _ = opened.send(Err(error.into()));
        }
        Ok(mut bridge) => {
            // If the kernel refuses, the figures of the machine say how late the bridge was.
            let _ = bridge.prioritise();
            if opened.send(Ok(bridge.stopper())).is_err() {
                return;
            }
            // An interface that fails ends the run; the sampler then finds no status.
            let _ = bridge.run();
        }
    }
}
