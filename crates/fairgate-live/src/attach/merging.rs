//! Receive offloads of an interface: checks them, disables them if configured, and enables them again.
//!
//! Three things enable them again. When the run ends, or dies, a child process does ([`MergingGuardian`]). If
//! that was killed as well, the next run does that locks the interface, because the lock's file has a note of
//! what was disabled ([`Lock::note`]).

use std::os::fd::BorrowedFd;

use nix::errno::Errno;

use super::Lock;
use super::lock::NO_NOTE;
use crate::config::Offloads;
use crate::error::LiveError;
use crate::notice::Notice;
use crate::sys::interface::{Interface, Merging, MergingGuardian};

/// Enables what it disabled, on drop and also if this process is killed.
#[derive(Debug)]
pub(crate) struct MergingGuard {
    _switched_off: Option<MergingGuardian>,
}

impl MergingGuard {
    /// Restores what a killed run has left at `interface`, which `lock` locks, and applies the configuration.
    /// Also returns what users should know of the restoring.
    pub(crate) fn apply(
        interface: &Interface,
        lock: &Lock,
        offloads: Offloads,
    ) -> Result<(MergingGuard, Option<Notice>), LiveError> {
        let name = &interface.name;
        let notice = restore(interface, lock);
        let mut on = [false; 2];
        for (is_on, merging) in on.iter_mut().zip(Merging::ALL) {
            let asking = LiveError::system(format!("querying the offloads of `{name}`"));
            *is_on = merging.is_on(interface.index).map_err(asking)?;
            if *is_on && offloads == Offloads::Keep && merging == Merging::Lro {
                return Err(LiveError::LargeReceiveOffload {
                    interface: name.clone(),
                });
            }
        }
        if offloads == Offloads::Keep {
            on = [false; 2];
        }
        let noting = LiveError::io(format!("noting the offloads of `{name}`"));
        lock.note(on).map_err(noting)?;
        if on == [false; 2] {
            return Ok((MergingGuard { _switched_off: None }, notice));
        }
        let switching = || LiveError::system(format!("disabling offloads of `{name}`"));
        // Start the guardian that restores them before changing them.
        let notes: Vec<BorrowedFd<'_>> = lock.notes().collect();
        let guardian = MergingGuardian::start(interface.index, on, &notes, NO_NOTE).map_err(switching())?;
        for merging in chosen(on) {
            merging.set(interface.index, false).map_err(switching())?;
        }
        let guard = MergingGuard {
            _switched_off: Some(guardian),
        };
        Ok((guard, notice))
    }
}

fn chosen(on: [bool; 2]) -> impl Iterator<Item = Merging> {
    let all = on.into_iter().zip(Merging::ALL);
    all.filter_map(|(is_on, merging)| is_on.then_some(merging))
}

/// Enables what a killed run has left disabled.
fn restore(interface: &Interface, lock: &Lock) -> Option<Notice> {
    let not_restored = |why: String| {
        let interface = interface.name.clone();
        Some(Notice::NotRestored { interface, why })
    };
    let left_off = match lock.left_off() {
        Ok([false, false]) => return None,
        Ok(left_off) => left_off,
        Err(damaged) => return not_restored(damaged.to_string()),
    };
    let restored: Result<(), Errno> =
        chosen(left_off).try_for_each(|merging| merging.set(interface.index, true));
    match restored {
        Ok(()) => Some(Notice::Restored {
            interface: interface.name.clone(),
            what: chosen(left_off)
                .map(|merging| merging.to_string())
                .collect::<Vec<_>>()
                .join(" and "),
        }),
        Err(errno) => not_restored(errno.desc().to_owned()),
    }
}
