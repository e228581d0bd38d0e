//! The bridges of a network, each on a thread of its own with the priority of a live run.

use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread::Scope;
use std::time::Duration;

use fairgate_live::testbed::{Interrupt, TestbedError};
use fairgate_live::{Bridge, LiveError, Plane, Stopper};
use fairgate_run_api::{Detail, Status};

use crate::lab::layout::Layout;
use crate::lab::network::Network;

/// How long a bridge may take to open its interfaces.
const PATIENCE: Duration = Duration::from_secs(10);

/// Running bridges. They are stopped on drop.
pub(crate) struct Bridges {
    stoppers: Vec<Stopper>,
    /// What is asked of them, by link.
    planes: Vec<Option<Arc<dyn Plane>>>,
}

impl Bridges {
    /// Starts a bridge in the middle of each link that has one.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        layout: &'scope Layout,
        network: &'scope Network,
        seed: u64,
        interrupt: &Interrupt,
    ) -> Result<Bridges, TestbedError> {
        let mut bridges = Bridges {
            stoppers: Vec::new(),
            planes: Vec::new(),
        };
        for (link, middle) in network.middles.iter().enumerate() {
            let (Some(middle), Some(plan)) = (middle, &layout.wires[link].plan) else {
                bridges.planes.push(None);
                continue;
            };
            // A rendezvous: a bridge that nobody waits for any more must not run.
            let (opened, is_open) = mpsc::sync_channel(0);
            scope.spawn(move || {
                let failed = opened.clone();
                let entered = middle.enter(|| forward(plan, seed, opened));
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
                Some(opened) => {
                    let (stopper, plane) = opened?;
                    bridges.stoppers.push(stopper);
                    bridges.planes.push(Some(plane));
                }
                None => {
                    return Err(TestbedError::System {
                        action: format!("starting the bridge of link {link}"),
                        reason: "it did not answer for 10 s".to_owned(),
                    });
                }
            }
        }
        Ok(bridges)
    }

    /// Returns the statuses of all bridges, by link.
    pub(crate) fn statuses(&self) -> Result<Vec<Option<Status>>, TestbedError> {
        let read = |plane: &Option<Arc<dyn Plane>>| {
            let Some(plane) = plane else { return Ok(None) };
            let status = plane.status(Detail::All).map_err(|refused| TestbedError::System {
                action: "asking a bridge for its status".to_owned(),
                reason: refused.to_string(),
            });
            status.map(Some)
        };
        self.planes.iter().map(read).collect()
    }
}

impl Drop for Bridges {
    fn drop(&mut self) {
        for stopper in &self.stoppers {
            stopper.stop();
        }
    }
}

/// A bridge that is open: what stops it, and what is asked of it.
type Opened = (Stopper, Arc<dyn Plane>);

/// Forwards frames until the bridge is stopped. Reports first that it is open, or why it is not.
fn forward(plan: &fairgate_live::Plan, seed: u64, opened: SyncSender<Result<Opened, TestbedError>>) {
    let open = || -> Result<(Bridge, Arc<dyn Plane>), LiveError> {
        let mut bridge = Bridge::open(plan, Some(seed))?;
        let plane = bridge.observe()?;
        Ok((bridge, plane))
    };
    match open() {
        Err(error) => {
            let _ = opened.send(Err(error.into()));
        }
        Ok((mut bridge, plane)) => {
            // If the kernel refuses, the figures of the machine say how late the bridge was.
            let _ = bridge.prioritise();
            if opened.send(Ok((bridge.stopper(), plane))).is_err() {
                return;
            }
            // An interface that fails ends the run; the sampler then finds no status.
            let _ = bridge.run();
        }
    }
}
