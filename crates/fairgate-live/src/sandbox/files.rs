//! The files that a run may use, by Landlock.
//!
//! A rule is for a folder and everything below it. A file that is read again may be replaced by another one
//! of the same name, as editors do it, and that is a new file for the kernel. So what is allowed is its
//! folder.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use nix::errno::Errno;

use crate::config::{Address, End, Plan, RateSource};
use crate::folders::lock_folders;
use crate::privileges::{LaterFiles, existing_folder};
use crate::sys::landlock_refusal;

/// The newest version of Landlock's interface whose rights this module knows. Older kernels have fewer.
const KNOWN: ABI = ABI::V6;

/// Where the system's databases of users and groups are, and the libraries that read them (nsswitch.conf(5)).
const USERS: [&str; 8] = [
    "/etc",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/run/nscd",
    "/run/systemd/userdb",
    "/var/lib/sss",
];

/// What is allowed.
#[derive(Debug)]
pub(super) struct Files(RulesetCreated);

impl Files {
    pub(super) fn new(plan: &Plan, later: &LaterFiles<'_>) -> Result<Files, String> {
        ruleset(&needed(plan, later))
            .map(Files)
            .map_err(|error| explained(&error))
    }

    /// Limits this thread. Returns the version of the interface.
    pub(super) fn enter(&self) -> Result<u32, String> {
        let copy = self.0.try_clone().map_err(|error| error.to_string())?;
        let status = copy.restrict_self().map_err(|error| explained(&error))?;
        match (status.ruleset, status.landlock) {
            (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => {
                Err("Landlock is turned off in this kernel (boot parameter `lsm`)".to_owned())
            }
            (RulesetStatus::NotEnforced, _) => Err(match landlock_refusal() {
                Some(Errno::ENOSYS) | None => {
                    "this kernel has no Landlock, which needs Linux 5.13".to_owned()
                }
                Some(errno) => blocked(errno),
            }),
            (_, LandlockStatus::Available { effective_abi, .. }) => Ok(effective_abi as u32),
            (..) => Ok(ABI::V1 as u32),
        }
    }
}

/// Explains an error of Landlock's calls.
fn explained(error: &RulesetError) -> String {
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(error) = cause {
        let refused = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error);
        if let Some(errno @ (Errno::EPERM | Errno::EACCES)) = refused.map(Errno::from_raw) {
            return blocked(errno);
        }
        cause = error.source();
    }
    error.to_string()
}

/// Says that the kernel may have Landlock, and that it can't be used.
fn blocked(errno: Errno) -> String {
    format!(
        "the calls of Landlock are blocked ({errno:?}), by a filter of system calls (seccomp) that this \
         process was started with, or by a security module; allow landlock_create_ruleset, \
         landlock_add_rule and landlock_restrict_self there"
    )
}

/// A folder or file, and what may be done with it and everything below it.
type Right = (PathBuf, BitFlags<AccessFs>);

/// Returns what a run needs after its start.
fn needed(plan: &Plan, later: &LaterFiles<'_>) -> Vec<Right> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut rights: Vec<Right> = Vec::new();
    for file in later.read {
        // A symbolic link, and the file that it leads to.
        let whole = file.canonicalize().ok();
        for file in [Some(file), whole.as_ref()].into_iter().flatten() {
            rights.push((folder_of(file), read));
        }
    }
    if let Some(RateSource::File(file)) = plan.autorate.as_ref().map(|autorate| &autorate.source) {
        rights.push((folder_of(file), read));
    }
    // The sockets are there already.
    let sockets = [Some(later.socket), later.api];
    for folder in sockets.into_iter().flatten().filter_map(existing_folder) {
        rights.push((folder, AccessFs::RemoveFile.into()));
    }
    let replaced = read | AccessFs::MakeReg | AccessFs::WriteFile | AccessFs::RemoveFile | AccessFs::Truncate;
    rights.extend(later.kept.iter().map(|kept| (folder_of(kept), replaced)));
    // A file is made beside the old one, and takes its name. An open folder would not do: Landlock decides
    // about each file that is made, whatever folder it is made by.
    let made = read | AccessFs::MakeReg | AccessFs::WriteFile | AccessFs::RemoveFile;
    let written = later.written.iter().filter_map(|file| file.canonicalize().ok());
    rights.extend(written.map(|file| (folder_of(&file), made)));
    // The locks of its interfaces are removed in the end.
    let locks = lock_folders().unwrap_or_default();
    rights.extend(
        locks
            .into_iter()
            .map(|folder| (folder, AccessFs::RemoveFile.into())),
    );
    // The waiting time of threads; the kernel's types, for programs of AF_XDP.
    for folder in ["/proc", "/sys"] {
        rights.push((folder.into(), AccessFs::ReadFile.into()));
    }
    if plan.ends.iter().any(|end| !matches!(end, End::Interface(_))) {
        // A device that was removed is created again.
        let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
        rights.push(("/dev/net/tun".into(), device));
    }
    if asks_for_groups(plan) {
        rights.extend(USERS.map(|folder| (folder.into(), read)));
    }
    rights
}

/// Returns whether the groups of clients are looked up while the run forwards. That reads files and loads
/// libraries that the system chooses.
pub(super) fn asks_for_groups(plan: &Plan) -> bool {
    let api = plan.endpoints.api.as_ref();
    api.is_some_and(|api| matches!(api.address, Address::Unix(_)) && api.group.is_some())
}

/// Returns the folder of a file, or a folder itself.
fn folder_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_path_buf();
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Makes the rules. Everything else is forbidden: other files, connections and ports of TCP (those of the
/// endpoints are open), abstract sockets and signals of other processes.
fn ruleset(rights: &[Right]) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?;
    for (path, access) in rights {
        // What does not exist needs no right.
        if let Ok(place) = PathFd::new(path) {
            ruleset = ruleset.add_rule(PathBeneath::new(place, *access))?;
        }
    }
    Ok(ruleset)
}
