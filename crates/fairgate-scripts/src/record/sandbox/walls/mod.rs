//! What the script stage gives up before it becomes the script. None of it can be taken back, and all
//! children of the script have the same limits. If the kernel can't build one of these walls, nothing is
//! recorded.

mod calls;
mod files;
mod limits;

pub(super) use calls::limit_calls;
pub(super) use files::{DEVICES, limit_files};
pub(super) use limits::limit_resources;

use caps::CapSet;

use super::{Refusal, refused};

/// Gives up all capabilities of this process, and those that it could get by executing a program.
pub(super) fn give_up_capabilities() -> Result<(), Refusal> {
    let step = "giving up capabilities";
    let sets = [
        CapSet::Ambient,
        // The first of the others, because it takes a capability.
        CapSet::Bounding,
        CapSet::Inheritable,
        CapSet::Effective,
        CapSet::Permitted,
    ];
    for set in sets {
        caps::clear(None, set).map_err(refused(step))?;
    }
    nix::sys::prctl::set_no_new_privs().map_err(refused(step))
}
