//! Which back end an existing interface gets, and why.

use std::fmt;
use std::str::FromStr;

use crate::config::{Isolate, Plan};
use crate::error::LiveError;

/// A way to receive from and send to an existing interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// AF_PACKET sockets. They work with every Ethernet interface.
    Packet,
    /// AF_XDP sockets. They need native XDP in the driver, and take the frames from the kernel.
    Xdp,
}

fairgate::words!(BackendKind { "packet" => BackendKind::Packet, "xdp" => BackendKind::Xdp });

impl BackendKind {
    /// All of them, the preferred ones first.
    pub const ALL: [BackendKind; 2] = [BackendKind::Packet, BackendKind::Xdp];

    /// Returns the name in `backend = "..."` and `--backend`.
    pub fn name(self) -> &'static str {
        match self {
            BackendKind::Packet => "packet",
            BackendKind::Xdp => "xdp",
        }
    }
}

/// The error for a name that no back end has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no back end `{name}`; the back ends are: {}",
    BackendKind::ALL.map(BackendKind::name).join(", ")
)]
pub struct UnknownBackend {
    name: String,
}

impl FromStr for BackendKind {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<BackendKind, UnknownBackend> {
        let mut all = BackendKind::ALL.into_iter();
        all.find(|kind| kind.name() == text)
            .ok_or_else(|| UnknownBackend {
                name: text.to_owned(),
            })
    }
}

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
