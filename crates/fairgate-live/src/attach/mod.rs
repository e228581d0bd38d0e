//! Prepares an interface before a bridge receives from it, and undoes the changes when the bridge ends.
//!
//! ```text
//!   lock        allows one bridge per interface
//!   survey      what else this machine uses it for: addresses, bridges, VLANs
//!   isolation   keeps its frames from the kernel's own stack
//!   merging     receive offloads
//! ```
//!
//! A packet socket receives copies. Without isolation, the kernel also answers, routes and bridges the same
//! frames, and these bypass the queue and the shaper.

mod isolation;
mod lock;
mod merging;
mod survey;

use crate::config::{Isolate, Plan};
use crate::error::LiveError;
use crate::sys::interface::Interface;

pub(crate) use isolation::{Isolation, mark_of};
use lock::Lock;
use merging::MergingGuard;
use survey::Survey;

/// An interface that belongs to one bridge until this is dropped.
#[derive(Debug)]
pub(crate) struct Attachment {
    _merging: MergingGuard,
    isolation: Option<Isolation>,
    _lock: Lock,
}

impl Attachment {
    /// Prepares the interface as `plan` says.
    ///
    /// `tap` says that this is a TAP device. The kernel is then an ordinary neighbour: it keeps its addresses
    /// on the device and is not isolated.
    pub(crate) fn take(interface: &Interface, tap: bool, plan: &Plan) -> Result<Attachment, LiveError> {
        let lock = Lock::take(interface)?;
        let isolation = if tap {
            None
        } else {
            isolate(interface, plan.isolate)?
        };
        Ok(Attachment {
            _merging: MergingGuard::apply(&interface.name, plan.offloads)?,
            isolation,
            _lock: lock,
        })
    }

    /// Returns whether the interface is isolated from the kernel's own stack.
    pub(crate) fn is_isolated(&self) -> bool {
        self.isolation.is_some()
    }
}

fn isolate(interface: &Interface, isolate: Isolate) -> Result<Option<Isolation>, LiveError> {
    match isolate {
        Isolate::Never => Ok(None),
        Isolate::Always => Isolation::of(interface).map(Some),
        Isolate::Unused => {
            let survey = Survey::of(interface)?;
            if let Some(used_for) = survey.used_for() {
                return Err(LiveError::Used {
                    interface: interface.name.clone(),
                    used_for,
                    remedy: survey.remedy(&interface.name),
                });
            }
            match Isolation::of(interface) {
                Ok(isolation) => Ok(Some(isolation)),
                // An older kernel. Nothing uses the interface, so isolation matters little.
                Err(LiveError::NoIsolation { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        }
    }
}
