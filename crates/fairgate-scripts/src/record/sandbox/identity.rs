//! As whom a script runs, seen from outside: never as root, and never as a user who owns something if that
//! can be had.

use std::fs;
use std::io;
use std::path::Path;

use nix::unistd::{getegid, geteuid};
use serde::{Deserialize, Serialize};

use super::{Refusal, refused};

/// The user and the group that the script's root is outside of its user namespace, by their numbers in the
/// namespace of process 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) user: u32,
    pub(super) group: u32,
}

impl Identity {
    /// Chooses it for this process, in the user namespace in which process 1 will be.
    ///
    /// Root gives a script numbers that nobody has: a file of the kernel's settings belongs to user 0,
    /// whoever opens it. Everybody else has only their own.
    pub(super) fn choose() -> Result<Identity, Refusal> {
        if !geteuid().is_root() {
            // In the namespace of process 1 the caller is root.
            return Ok(Identity { user: 0, group: 0 });
        }
        let number = |file: &str| {
            let step = "an unprivileged user for the script";
            let map = fs::read_to_string(format!("/proc/self/{file}")).map_err(refused(step))?;
            nobody(&map).ok_or_else(|| {
                refused(step)(format!(
                    "/proc/self/{file} has none but root; start fairgate as an ordinary user"
                ))
            })
        };
        Ok(Identity {
            user: number("uid_map")?,
            group: number("gid_map")?,
        })
    }

    /// Gives the process, which is in a new user namespace, this identity as its root.
    pub(super) fn give(self, process: u32) -> io::Result<()> {
        let folder = Path::new("/proc").join(process.to_string());
        fs::write(folder.join("uid_map"), format!("0 {} 1\n", self.user))?;
        fs::write(folder.join("gid_map"), format!("0 {} 1\n", self.group))
    }
}

/// Makes the caller root of this process' new user namespace.
pub(super) fn become_root(user: nix::unistd::Uid, group: nix::unistd::Gid) -> io::Result<()> {
    // Without it the kernel refuses the map: a group may be there to deny something.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1\n"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1\n"))
}

/// The identifiers of this process, for [`become_root`].
pub(super) fn own() -> (nix::unistd::Uid, nix::unistd::Gid) {
    (geteuid(), getegid())
}

/// Returns the last number but one of a map of identifiers (user_namespaces(7)); systems give the last one a
/// meaning. If root is the only one inside, and somebody else outside, it is root.
fn nobody(map: &str) -> Option<u32> {
    let lines = map.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().map(str::parse::<u32>);
        let mut field = || fields.next()?.ok();
        Some((field()?, field()?, field()?))
    });
    let (inside, outside, count) = lines.max_by_key(|(inside, ..)| *inside)?;
    match count {
        0 => None,
        1 => (inside == 0 && outside != 0).then_some(0),
        _ => inside.checked_add(count - 2).filter(|number| *number > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_nobody() {
        assert_eq!(nobody("         0          0 4294967295\n"), Some(4_294_967_293));
        assert_eq!(nobody("0 100000 65536\n"), Some(65534));
        assert_eq!(nobody("0 1000 1\n1 100000 65536\n"), Some(65535));
        assert_eq!(nobody(""), None);
    }

    #[test]
    fn a_script_is_never_root_of_the_machine() {
        assert_eq!(nobody("0 0 1\n"), None, "root alone");
        assert_eq!(nobody("0 0 2\n"), None, "number 0 is the last but one");
        assert_eq!(nobody("0 1000 1\n"), Some(0), "a user who is root here");
        assert_eq!(nobody("7 7 1\n"), None);
    }
}
