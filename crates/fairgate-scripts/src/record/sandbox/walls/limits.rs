//! What each process of the script may use (getrlimit(2)).

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::record::sandbox::{Refusal, refused};

/// The limits. A script for tc starts a few dozen programs, and holds its text in memory.
const LIMITS: [(Resource, u64, &str); 7] = [
    // Of the script's user in its user namespace, from Linux 5.14 on; before, of all that the caller runs.
    (Resource::RLIMIT_NPROC, 256, "processes"),
    (Resource::RLIMIT_NOFILE, 256, "open files"),
    (Resource::RLIMIT_AS, 2 << 30, "memory"),
    (Resource::RLIMIT_FSIZE, 128 << 20, "the size of a file"),
    // Whoever collects dumps runs as root outside.
    (Resource::RLIMIT_CORE, 0, "dumps"),
    (Resource::RLIMIT_MEMLOCK, 0, "locked memory"),
    (Resource::RLIMIT_MSGQUEUE, 0, "message queues"),
];

/// Sets the limits. Lower ones stay.
pub(in crate::record::sandbox) fn limit_resources() -> Result<(), Refusal> {
    for (resource, limit, name) in LIMITS {
        let refusal = || refused(format!("limiting {name}"));
        let (_, most) = getrlimit(resource).map_err(|error| refusal()(error))?;
        let limit = limit.min(most);
        setrlimit(resource, limit, limit).map_err(|error| refusal()(error))?;
    }
    Ok(())
}
