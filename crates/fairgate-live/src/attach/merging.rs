//! Receive offloads of our interfaces: looked at, switched off if the configuration says so, switched on again.

use crate::config::Offloads;
use crate::error::LiveError;
use crate::sys::interface::{Merging, MergingGuardian};

/// Restores on drop what it switched off, and also if this process is killed.
#[derive(Debug)]
pub(crate) struct MergingGuard {
    _switched_off: Option<MergingGuardian>,
}

impl MergingGuard {
    /// Does what the configuration says about `interface`.
    pub(crate) fn apply(interface: &str, offloads: Offloads) -> Result<MergingGuard, LiveError> {
        let mut on = [false; 2];
        for (is_on, merging) in on.iter_mut().zip(Merging::ALL) {
            let asking = LiveError::system(format!("asking for the offloads of `{interface}`"));
            *is_on = merging.is_on(interface).map_err(asking)?;
            if *is_on && offloads == Offloads::Keep && merging == Merging::Lro {
                return Err(LiveError::LargeReceiveOffload {
                    interface: interface.to_string(),
                });
            }
        }
        if offloads == Offloads::Keep || on == [false; 2] {
            return Ok(MergingGuard { _switched_off: None });
        }
        let switching = || LiveError::system(format!("switching offloads of `{interface}` off"));
        // First who puts them back, then the change.
        let guardian = MergingGuardian::start(interface, on).map_err(switching())?;
        for (_, merging) in on.iter().zip(Merging::ALL).filter(|(is_on, _)| **is_on) {
            merging.set(interface, false).map_err(switching())?;
        }
        Ok(MergingGuard {
            _switched_off: Some(guardian),
        })
    }
}
