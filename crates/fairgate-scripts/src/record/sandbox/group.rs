//! A control group for the script, where this process may make one: how many processes it has, and how much
//! memory. The limits of each process (`walls/limits.rs`) hold everywhere.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::unistd::Pid;

/// Processes.
const PROCESSES: u64 = 256;
/// Bytes, with all files that the script writes.
const MEMORY: u64 = 1 << 30;

/// Before the number of the supervisor, in the name of a group.
const PREFIX: &str = "fairgate-record-";

/// The folders of the groups: one, or one of each controller in the older interface.
#[derive(Debug)]
pub(super) struct Group(Vec<PathBuf>);

impl Group {
    /// Makes the groups. There may be none: most users may not make any.
    pub(super) fn new() -> Group {
        let text = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let places = places(&text("/proc/self/cgroup"), &text("/proc/self/mountinfo"));
        let made = |place: &PathBuf| {
            sweep(place);
            let folder = place.join(format!("{PREFIX}{}", Pid::this()));
            fs::create_dir(&folder).ok()?;
            let memory = MEMORY.to_string();
            let limits = [
                ("pids.max", PROCESSES.to_string()),
                ("memory.max", memory.clone()),
                ("memory.swap.max", "0".to_owned()),
                ("memory.limit_in_bytes", memory),
            ];
            for (file, limit) in limits {
                // Each group has some of them.
                let file = folder.join(file);
                if file.exists() {
                    let _ = fs::write(file, limit);
                }
            }
            Some(folder)
        };
        Group(places.iter().filter_map(made).collect())
    }

    /// Moves a process into the groups.
    pub(super) fn add(&self, process: u32) {
        for folder in &self.0 {
            let _ = fs::write(folder.join("cgroup.procs"), process.to_string());
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.0 {
            // The kernel takes a moment to remove ended processes from their group. If that is not enough,
            // the next recording tries it again.
            for _ in 0..200 {
                match fs::remove_dir(folder) {
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                        thread::sleep(Duration::from_millis(5));
                    }
                    _ => break,
                }
            }
        }
    }
}

/// Removes groups of recordings that were killed, whose supervisor is no more.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let supervisor = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if supervisor.is_some_and(|supervisor| !Path::new("/proc").join(supervisor).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Returns where the groups can be: beside this process' own one in the unified hierarchy, because one that
/// has processes may have no groups with limits below it; and below its own ones in the older hierarchies
/// (cgroups(7)).
fn places(own: &str, mounts: &str) -> Vec<PathBuf> {
    let mounted = |kind: &str, controller: Option<&str>| {
        mounts.lines().find_map(|line| {
            let (point, of_system) = line.split_once(" - ")?;
            let point = PathBuf::from(point.split(' ').nth(4)?);
            let mut fields = of_system.split(' ');
            let is_kind = fields.next() == Some(kind);
            let has = controller.is_none_or(|name| {
                fields
                    .nth(1)
                    .is_some_and(|options| options.split(',').any(|option| option == name))
            });
            (is_kind && has).then_some(point)
        })
    };
    let mut places = Vec::new();
    for line in own.lines() {
        let fields: Vec<&str> = line.splitn(3, ':').collect();
        let [_, controllers, path] = fields[..] else {
            continue;
        };
        let path = path.trim_start_matches('/');
        let limiting = controllers
            .split(',')
            .find(|name| matches!(*name, "pids" | "memory"));
        match limiting {
            Some(controller) => {
                places.extend(mounted("cgroup", Some(controller)).map(|point| point.join(path)))
            }
            None if controllers.is_empty() => {
                let above = Path::new(path).parent();
                places.extend(above.and_then(|above| Some(mounted("cgroup2", None)?.join(above))));
            }
            None => {}
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_in_both_hierarchies() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw,nsdelegate\n\
                      31 23 0:27 / /old/pids rw,nosuid - cgroup cgroup rw,pids\n\
                      32 23 0:28 / /old/cpu rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n";
        let own = "5:pids:/a/b\n4:cpu,cpuacct:/\n0::/user.slice/user-0.slice/session-1.scope\n";
        assert_eq!(
            places(own, mounts),
            ["/old/pids/a/b", "/sys/fs/cgroup/user.slice/user-0.slice"].map(PathBuf::from)
        );
        assert_eq!(
            places("0::/\n", mounts),
            Vec::<PathBuf>::new(),
            "the root has nothing beside it"
        );
        assert_eq!(places("", ""), Vec::<PathBuf>::new());
    }
}
