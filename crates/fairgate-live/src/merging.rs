//! Receive offloads of our interfaces: looked at, switched off if the configuration says so, switched on again.

use crate::config::Offloads;
use crate::error::LiveError;
use crate::sys::interface::Merging;

/// Restores on drop what it switched off.
#[derive(Debug)]
pub(crate) struct MergingGuard {
    interface: String,
    switched_off: Vec<Merging>,
}

impl MergingGuard {
    /// Does what the configuration says about `interface`.
    pub(crate) fn apply(interface: &str, offloads: Offloads) -> Result<MergingGuard, LiveError> {
        let mut guard = MergingGuard {
            interface: interface.to_string(),
            switched_off: Vec::new(),
        };
        for merging in [Merging::Gro, Merging::Lro] {
            let asking = LiveError::system(format!("asking for the offloads of `{interface}`"));
            if !merging.is_on(interface).map_err(asking)? {
                continue;
            }
            match (offloads, merging) {
                (Offloads::Off, _) => {
                    let switching = LiveError::system(format!("switching offloads of `{interface}` off"));
                    merging.set(interface, false).map_err(switching)?;
                    guard.switched_off.push(merging);
                }
                (Offloads::Keep, Merging::Lro) => {
                    return Err(LiveError::LargeReceiveOffload {
                        interface: interface.to_string(),
                    });
                }
                (Offloads::Keep, Merging::Gro) => {}
            }
        }
        Ok(guard)
    }
}

impl Drop for MergingGuard {
    fn drop(&mut self) {
        for merging in &self.switched_off {
            // The interface may be gone; then there is nothing to restore.
            let _ = merging.set(&self.interface, true);
        }
    }
}
