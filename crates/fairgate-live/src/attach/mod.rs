//! What is done to an interface before a bridge receives from it, and undone when the bridge ends.
//!
//! ```text
//!   lock        one bridge an interface
//!   survey      what else this machine does with it: addresses, bridges, VLANs on top
//!   isolation   the kernel's own stack sees none of its frames
//!   merging     receive offloads
//! ```
//!
//! A packet socket gets copies. Without isolation the kernel goes on to answer, route and bridge the same frames, beside
//! the queue and unshaped.

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

/// An interface that belongs to one bridge, until this is dropped.
#[derive(Debug)]
pub(crate) struct Attachment {
    _merging: MergingGuard,
    isolation: Option<Isolation>,
    _lock: Lock,
}

impl Attachment {
    /// Takes the interface over as `plan` says.
    ///
    /// `tap`: the other end of a TAP device is this process, and the kernel is a neighbour on the wire like any other.
    /// It keeps its addresses there and is not isolated.
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

    /// Whether the kernel's own stack is kept away.
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
                // An older kernel. Nothing uses the interface, so that there is little to keep away.
                Err(LiveError::NoIsolation { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        }
    }
}
