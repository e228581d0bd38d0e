//! How much memory is left for this process.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{SysconfVar, sysconf};

/// Where the kernel says what is left. The files are opened once, because a run that forwards may not open
/// them any more.
#[derive(Debug)]
pub struct Memory {
    machine: Option<File>,
    own: Option<File>,
    groups: Vec<Group>,
}

/// A control group with a limit: the limit, what is used, and what of that is cached files.
#[derive(Debug)]
struct Group {
    limit: File,
    used: File,
    details: Option<File>,
}

impl Memory {
    /// Opens the files.
    pub fn watch() -> Memory {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Memory {
            machine: File::open("/proc/meminfo").ok(),
            own: File::open("/proc/self/statm").ok(),
            groups: groups(&own)
                .iter()
                .filter_map(|folder| Group::open(folder))
                .collect(),
        }
    }

    /// Returns the bytes that are available without swapping: the least of the machine's estimate, of what
    /// the control groups of this process leave, and of its limit of address space. If nothing says so, the
    /// maximum.
    pub fn available(&self) -> u64 {
        let machine = self.machine.as_ref().and_then(text).and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
            let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
            Some(kibibytes << 10)
        });
        let groups = self.groups.iter().filter_map(Group::left);
        let all = groups.chain(machine).chain(self.address_space());
        all.min().unwrap_or(u64::MAX)
    }

    fn address_space(&self) -> Option<u64> {
        let (limit, _) = getrlimit(Resource::RLIMIT_AS).ok()?;
        let text = text(self.own.as_ref()?)?;
        let pages: u64 = text.split(' ').next()?.parse().ok()?;
        let page = u64::try_from(sysconf(SysconfVar::PAGE_SIZE).ok()??).ok()?;
        Some(limit.saturating_sub(pages * page))
    }
}

impl Group {
    /// Opens the files of a group, in the unified hierarchy or in the older one of memory.
    fn open(folder: &Path) -> Option<Group> {
        let open = |name: &str| File::open(folder.join(name)).ok();
        Some(Group {
            limit: open("memory.max").or_else(|| open("memory.limit_in_bytes"))?,
            used: open("memory.current").or_else(|| open("memory.usage_in_bytes"))?,
            details: open("memory.stat"),
        })
    }

    fn left(&self) -> Option<u64> {
        // The word `max` is no limit.
        let limit: u64 = text(&self.limit)?.trim().parse().ok()?;
        let used: u64 = text(&self.used)?.trim().parse().ok()?;
        // The kernel drops these before it refuses memory.
        let cached = self.details.as_ref().and_then(text).and_then(|details| {
            let value = |line: &str| line.strip_prefix("inactive_file ")?.trim().parse().ok();
            details.lines().find_map(value)
        });
        Some(limit.saturating_sub(used.saturating_sub(cached.unwrap_or(0))))
    }
}

/// Returns the folders of the control groups of a process and of those above them (cgroups(7)).
fn groups(own: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in own.lines() {
        let fields: Vec<&str> = line.splitn(3, ':').collect();
        let [_, controllers, path] = fields[..] else {
            continue;
        };
        let root = match controllers {
            "" => "/sys/fs/cgroup",
            "memory" => "/sys/fs/cgroup/memory",
            _ => continue,
        };
        let path = Path::new(root).join(path.trim_start_matches('/'));
        folders.extend(
            path.ancestors()
                .take_while(|above| above.starts_with(root))
                .map(Path::to_path_buf),
        );
    }
    folders
}

/// Reads a file of the kernel from its beginning.
fn text(file: &File) -> Option<String> {
    let mut bytes = vec![0; 1 << 14];
    let mut length = 0;
    loop {
        match file.read_at(&mut bytes[length..], length as u64).ok()? {
            0 => break,
            more => length += more,
        }
        if length == bytes.len() {
            break;
        }
    }
    bytes.truncate(length);
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_both_hierarchies() {
        let own = "4:memory:/a/b\n3:cpu,cpuacct:/x\n0::/user.slice\n";
        assert_eq!(
            groups(own),
            [
                "/sys/fs/cgroup/memory/a/b",
                "/sys/fs/cgroup/memory/a",
                "/sys/fs/cgroup/memory",
                "/sys/fs/cgroup/user.slice",
                "/sys/fs/cgroup",
            ]
            .map(PathBuf::from)
        );
    }

    #[test]
    fn a_group_leaves_what_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("memory.max", "1000\n");
        write("memory.current", "700\n");
        write("memory.stat", "anon 400\ninactive_file 200\nactive_file 100\n");
        let group = Group::open(folder.path()).unwrap();
        assert_eq!(group.left(), Some(500));
        write("memory.max", "max\n");
        assert_eq!(group.left(), None);
        assert!(Group::open(&folder.path().join("none")).is_none());
    }

    #[test]
    fn something_is_available() {
        let available = Memory::watch().available();
        assert!((1 << 20..1 << 50).contains(&available), "{available}");
    }
}
