//! The files that a script may write, by Landlock: the second wall behind mounts that are read-only. A
//! process with Landlock's limits can't mount or unmount anything either, and sends signals and connects to
//! abstract sockets only among its own kind where the kernel knows these limits (Linux 6.12).

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use crate::record::sandbox::{Refusal, refused};

/// The newest version of Landlock's interface whose rights this module knows. Older kernels have fewer.
const KNOWN: ABI = ABI::V6;

/// The devices that a script has, all of which exist on every Linux and hold nothing.
pub(in crate::record::sandbox) const DEVICES: [&str; 4] = ["null", "zero", "full", "urandom"];

/// Limits what this process may write to the folders, and to the devices.
pub(in crate::record::sandbox) fn limit_files(writable: &[PathBuf]) -> Result<(), Refusal> {
    let step = "limiting files by Landlock, which needs Linux 5.13 and must be in the boot parameter `lsm`";
    match restrict(writable).map_err(refused(step))? {
        RulesetStatus::NotEnforced => Err(refused(step)("this kernel has none")),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

fn restrict(writable: &[PathBuf]) -> Result<RulesetStatus, RulesetError> {
    let all = AccessFs::from_all(KNOWN);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(KNOWN))?
        .create()?;
    let devices = DEVICES.map(|name| Path::new("/dev").join(name));
    let of_devices = AccessFs::ReadFile | AccessFs::WriteFile;
    let rights = std::iter::once((Path::new("/"), AccessFs::from_read(KNOWN)))
        .chain(devices.iter().map(|device| (device.as_path(), of_devices)))
        .chain(writable.iter().map(|folder| (folder.as_path(), all)));
    for (path, access) in rights {
        // A folder that the script may not look into needs no right.
        if let Ok(place) = PathFd::new(path) {
            ruleset = ruleset.add_rule(PathBeneath::new(place, access))?;
        }
    }
    Ok(ruleset.restrict_self()?.ruleset)
}
