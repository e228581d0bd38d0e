//! Gives up the privileges that a run needs only at its start.

use std::fmt;
use std::path::{Path, PathBuf};

use caps::errors::CapsError;
use caps::{CapSet, Capability, CapsHashSet};
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::sys::prctl;
use nix::unistd::{AccessFlags, faccessat};

use crate::backend::BackendKind;
use crate::config::Plan;
use crate::error::LiveError;

/// What forwarding needs whenever an interface comes back: packet sockets, settings of interfaces, and
/// programs at their hooks.
const NEEDED: [Capability; 3] = [
    Capability::CAP_NET_RAW,
    Capability::CAP_NET_ADMIN,
    Capability::CAP_BPF,
];

/// What a run needs whose packets the kernel forwards: to change and read its qdiscs.
const NEEDED_BY_KERNEL: [Capability; 1] = [Capability::CAP_NET_ADMIN];

/// Memory for the frames of AF_XDP sockets, above the limit of locked memory.
const NEEDED_BY_XDP: Capability = Capability::CAP_IPC_LOCK;

/// The files that a run uses after its start.
#[derive(Clone, Copy, Debug)]
pub struct LaterFiles<'a> {
    /// Files, and folders of files, that it reads again on a reload.
    pub read: &'a [PathBuf],
    /// The status socket, which it removes.
    pub socket: &'a Path,
    /// The unix socket of the API, which it removes.
    pub api: Option<&'a Path>,
    /// Files that it replaces by new ones, again and again.
    pub kept: &'a [PathBuf],
    /// Files, and folders of files, that it replaces by new ones if a client changes them, as far as its user
    /// may do that. No privilege is kept for it.
    pub written: &'a [PathBuf],
}

/// The privileges that a run has kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privileges {
    kept: Vec<Capability>,
    /// The file or folder because of which the rights of other users' files are kept.
    exception: Option<PathBuf>,
}

impl Privileges {
    /// Returns the file or folder because of which the process may still use files of other users.
    pub fn exception(&self) -> Option<&Path> {
        self.exception.as_deref()
    }
}

/// The names of the capabilities, as in capabilities(7).
impl fmt::Display for Privileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self
            .kept
            .iter()
            .map(|name| name.to_string().to_lowercase())
            .collect();
        match names.is_empty() {
            true => f.write_str("none"),
            false => f.write_str(&names.join(", ")),
        }
    }
}

/// Gives up all capabilities of this thread, and of the threads that it starts afterwards, except those that
/// a run of `plan` needs until its end: cap_net_admin; unless the kernel forwards packets, cap_net_raw and
/// cap_bpf; with AF_XDP, cap_ipc_lock. A program that is executed later gains none.
///
/// `cap_dac_override` is kept if the user of this process could not use the files of `later` without it.
///
/// The threads of further workers, which [`Bridge::prioritise`](crate::Bridge::prioritise) starts, follow
/// before they forward.
///
/// # Errors
/// Fails if the kernel refuses.
pub(crate) fn drop_privileges(plan: &Plan, later: &LaterFiles<'_>) -> Result<Privileges, LiveError> {
    drop_to_needed(plan, later).map_err(not_given_up)
}

fn drop_to_needed(plan: &Plan, later: &LaterFiles<'_>) -> Result<Privileges, CapsError> {
    let held = caps::read(None, CapSet::Permitted)?;
    let is_held = |capability: &Capability| held.contains(capability);
    let xdp = (plan.backend == Some(BackendKind::Xdp)).then_some(NEEDED_BY_XDP);
    let needed: &[Capability] = match plan.backend {
        Some(BackendKind::Kernel) => &NEEDED_BY_KERNEL,
        _ => &NEEDED,
    };
    let mut kept: Vec<Capability> = needed.iter().copied().chain(xdp).filter(is_held).collect();
    let mut exception = None;
    if is_held(&Capability::CAP_DAC_OVERRIDE) {
        // Access is checked with the effective capabilities. They can be raised again.
        caps::set(None, CapSet::Effective, &set_of(&kept))?;
        exception = later.inaccessible();
        if exception.is_some() {
            kept.push(Capability::CAP_DAC_OVERRIDE);
        }
        caps::set(None, CapSet::Effective, &held)?;
    }
    give_up_all_but(&kept, &held)?;
    Ok(Privileges { kept, exception })
}

/// Returns the capabilities of this thread.
pub(crate) fn held() -> Result<CapsHashSet, LiveError> {
    caps::read(None, CapSet::Permitted).map_err(not_given_up)
}

/// Gives up all capabilities of this thread except `kept`: those that another thread has kept, which started
/// this one before it gave up the others.
pub(crate) fn keep_only(kept: &CapsHashSet) -> Result<(), LiveError> {
    let held = held()?;
    match held == *kept {
        true => Ok(()),
        false => {
            let kept: Vec<Capability> = kept.iter().copied().collect();
            give_up_all_but(&kept, &held).map_err(not_given_up)
        }
    }
}

fn not_given_up(error: CapsError) -> LiveError {
    LiveError::KeptPrivileges(error.to_string())
}

fn give_up_all_but(kept: &[Capability], held: &CapsHashSet) -> Result<(), CapsError> {
    // Without this bound, the user root would regain all capabilities by executing a program. Only a process
    // with this capability may set it.
    if held.contains(&Capability::CAP_SETPCAP) {
        for capability in caps::runtime::thread_all_supported() {
            if !kept.contains(&capability) {
                caps::drop(None, CapSet::Bounding, capability)?;
            }
        }
    }
    if caps::runtime::ambient_set_supported().is_ok() {
        caps::clear(None, CapSet::Ambient)?;
    }
    caps::clear(None, CapSet::Inheritable)?;
    let kept_set = set_of(kept);
    // The effective ones must never exceed the permitted ones.
    caps::set(None, CapSet::Effective, &kept_set)?;
    caps::set(None, CapSet::Permitted, &kept_set)?;
    prctl::set_no_new_privs().map_err(|errno| CapsError::from(errno.desc()))
}

fn set_of(capabilities: &[Capability]) -> CapsHashSet {
    capabilities.iter().copied().collect()
}

impl LaterFiles<'_> {
    /// Returns the first file or folder that this thread can't use as the run will have to.
    fn inaccessible(&self) -> Option<PathBuf> {
        let unread = self.read.iter().find(|file| !may(file, AccessFlags::R_OK));
        let sockets = [Some(self.socket), self.api].into_iter().flatten();
        let mut made = sockets.chain(self.kept.iter().map(PathBuf::as_path));
        unread.cloned().or_else(|| made.find_map(unwritable_folder))
    }
}

/// Returns the folder of a socket, or the last folder above it that exists.
pub(crate) fn existing_folder(socket: &Path) -> Option<PathBuf> {
    let mut folders = socket.ancestors().skip(1).map(|folder| match folder.as_os_str() {
        name if name.is_empty() => Path::new("."),
        _ => folder,
    });
    folders.find(|folder| folder.exists()).map(Path::to_path_buf)
}

/// Returns the folder of a socket if this thread can't create and remove files there. It may not exist yet.
fn unwritable_folder(socket: &Path) -> Option<PathBuf> {
    let folder = existing_folder(socket)?;
    let writes = AccessFlags::W_OK | AccessFlags::X_OK;
    (!may(&folder, writes)).then_some(folder)
}

/// Returns whether the effective user and capabilities of this thread allow access.
fn may(path: &Path, access: AccessFlags) -> bool {
    faccessat(AT_FDCWD, path, access, AtFlags::AT_EACCESS).is_ok()
}
