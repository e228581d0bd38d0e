//! Receive offloads of an interface: checks them, disables them if configured, and enables them again.

use crate::config::Offloads;
use crate::error::LiveError;
use crate::sys::interface::{Merging, MergingGuardian};

/// Enables what it disabled, on drop and also if this process is killed.
#[derive(Debug)]
pub(crate) struct MergingGuard {
    _switched_off: Option<MergingGuardian>,
}

impl MergingGuard {
    /// Applies the configuration to `interface`.
    pub(crate) fn apply(interface: &str, offloads: Offloads) -> Result<MergingGuard, LiveError> {
        let mut on = [false; 2];
        for (is_on, merging) in on.iter_mut().zip(Merging::ALL) {
            let asking = LiveError::system(format!("querying the offloads of `{interface}`"));
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
        let switching = || LiveError::system(format!("disabling offloads of `{interface}`"));
        // Start the guardian that restores them before changing them.
        let guardian = MergingGuardian::start(interface, on).map_err(switching())?;
        for (_, merging) in on.iter().zip(Merging::ALL).filter(|(is_on, _)| **is_on) {
            merging.set(interface, false).map_err(switching())?;
        }
        Ok(MergingGuard {
            _switched_off: Some(guardian),
        })
    }
}
