//! Which back end an existing interface gets, and why.

use std::fmt;

use super::BackendKind;
use crate::config::{Isolate, Plan};
use crate::error::LiveError;

/// The back end of one end of a run, and why it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The interface.
    pub interface: String,
    /// The back end in words.
    pub backend: &'static str,
    /// Why it was chosen, as a phrase after "because".
    pub reason: &'static str,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Choice {
            interface,
            backend,
            reason,
        } = self;
        write!(f, "`{interface}`: {backend}, because {reason}")
    }
}

/// Chooses the back end of an existing interface, and says why. `wanted` is what the configuration names.
///
/// AF_XDP must be named, also where an interface can use our memory: attaching its program resets most
/// interfaces for a moment, and they neither merge nor cut packets for this process then.
pub(crate) fn choose(wanted: Option<BackendKind>) -> (BackendKind, &'static str) {
    match wanted {
        Some(kind) => (kind, "the configuration names it"),
        None => (
            BackendKind::Packet,
            "it works with every Ethernet interface and keeps its offloads",
        ),
    }
}

/// Rejects plans that the named back end can't run.
pub(crate) fn check(plan: &Plan) -> Result<(), LiveError> {
    match plan.backend {
        Some(BackendKind::Kernel) => Err(LiveError::KernelForwards),
        Some(BackendKind::Xdp) if plan.is_on_one_interface() => Err(LiveError::XdpOnOneInterface {
            interface: plan.ends[0].name().to_owned(),
        }),
        Some(BackendKind::Xdp) if plan.isolate == Isolate::Never => Err(LiveError::XdpNotIsolated),
        Some(BackendKind::Xdp) if plan.workers > 1 => Err(LiveError::XdpWorkers {
            workers: plan.workers,
        }),
        _ => Ok(()),
    }
}
