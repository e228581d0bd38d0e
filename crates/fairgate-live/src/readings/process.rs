//! What the process of a run has: its network namespace, the programs that it holds, and the memory that its
//! control group may use.

use std::fs;
use std::path::{Path, PathBuf};

/// What was read of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessReading {
    /// Whether it is in the network namespace of this thread. `None` if that can't be seen.
    pub is_here: Option<bool>,
    /// The numbers of the BPF programs that it holds or has attached. `None` if they can't be seen.
    pub programs: Option<Vec<u32>>,
    /// The memory of the innermost control group that has a limit.
    pub memory: Option<GroupMemory>,
}

/// The memory of a control group (version 2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupMemory {
    /// The group, as a path from the root of all groups on.
    pub group: String,
    /// What it may use, bytes: the lower one of `memory.max` and `memory.high`.
    pub limit: u64,
    /// What it uses, bytes.
    pub used: u64,
    /// How often it was held up or refused memory because of the limit.
    pub held_up: u64,
    /// How many of its processes were killed for want of memory.
    pub killed: u64,
}

impl ProcessReading {
    /// Reads what this user may see of a process.
    pub fn of(process: u32) -> ProcessReading {
        let folder = PathBuf::from(format!("/proc/{process}"));
        let namespace = |folder: &Path| fs::read_link(folder.join("ns/net")).ok();
        let own = namespace(Path::new("/proc/thread-self"));
        let groups = fs::read_to_string(folder.join("cgroup")).unwrap_or_default();
        ProcessReading {
            is_here: namespace(&folder).zip(own).map(|(its, own)| its == own),
            programs: programs_in(&folder.join("fdinfo")),
            memory: memory_of(&groups, Path::new("/sys/fs/cgroup")),
        }
    }
}

/// Returns the programs of all descriptors of a process, of programs and of links alike.
fn programs_in(descriptors: &Path) -> Option<Vec<u32>> {
    let entries = fs::read_dir(descriptors).ok()?;
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    let number = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("prog_id:"))?;
        line.trim().parse().ok()
    };
    Some(texts.filter_map(number).collect())
}

/// Reads the innermost group with a limit. `groups` is what `/proc/PID/cgroup` says.
fn memory_of(groups: &str, mounted: &Path) -> Option<GroupMemory> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut group = Path::new(group.trim_end());
    loop {
        let folder = mounted.join(group.strip_prefix("/").unwrap_or(group));
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        // A group without a limit says `max`.
        let limits = ["memory.max", "memory.high"].map(|name| read(name).trim().parse::<u64>());
        if let Some(limit) = limits.into_iter().filter_map(Result::ok).min() {
            let events = read("memory.events");
            let event = |name: &str| -> u64 {
                let mut lines = events.lines().filter_map(|line| line.split_once(' '));
                let found = lines.find(|(event, _)| *event == name);
                found.and_then(|(_, count)| count.parse().ok()).unwrap_or(0)
            };
            return Some(GroupMemory {
                group: group.display().to_string(),
                limit,
                used: read("memory.current").trim().parse().unwrap_or(0),
                held_up: event("high") + event("max"),
                killed: event("oom_kill"),
            });
        }
        group = group.parent()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_limit_counts() {
        let folder = tempfile::tempdir().unwrap();
        let service = folder.path().join("system.slice/home.service");
        fs::create_dir_all(&service).unwrap();
        let write = |name: &str, text: &str| fs::write(service.join(name), text).unwrap();
        fs::write(folder.path().join("system.slice/memory.max"), "900000\n").unwrap();
        fs::write(folder.path().join("system.slice/memory.current"), "500\n").unwrap();
        write("memory.max", "max\n");
        let groups = "1:name=x:/else\n0::/system.slice/home.service\n";
        let found = memory_of(groups, folder.path()).unwrap();
        assert_eq!(
            (found.group.as_str(), found.limit, found.used),
            ("/system.slice", 900_000, 500)
        );
        write("memory.max", "4096\n");
        write("memory.high", "2048\n");
        write("memory.current", "1024\n");
        write("memory.events", "low 0\nhigh 3\nmax 4\noom 1\noom_kill 2\n");
        let expected = GroupMemory {
            group: "/system.slice/home.service".to_owned(),
            limit: 2048,
            used: 1024,
            held_up: 7,
            killed: 2,
        };
        assert_eq!(memory_of(groups, folder.path()), Some(expected));
        assert_eq!(memory_of("0::/\n", folder.path()), None);
        assert_eq!(memory_of("", folder.path()), None);
    }

    #[test]
    fn this_process_is_here() {
        let reading = ProcessReading::of(std::process::id());
        assert_eq!(reading.is_here, Some(true));
        assert!(reading.programs.is_some());
    }
}
