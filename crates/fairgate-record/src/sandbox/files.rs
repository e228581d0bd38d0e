//! The files that a script sees.
//!
//! Every folder of this machine lies under an overlay whose upper layer is memory: the script can change all
//! files, and the changes are gone with the namespaces. Where the kernel allows no overlay, the folder is
//! read-only. `/proc` belongs to the new PID namespace, and is read-only except for the settings of the
//! private network. `/sys` and `/dev` are made up. `/run` is empty, so that no service of this machine can be
//! reached by its socket.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::pivot_root;

use super::{Refusal, below, refused};
use crate::machine::{Machine, Stored};
use crate::stand_in;

/// Where the recording keeps its own files. Stand-ins know by it that they are inside.
pub(crate) const ROOT: &str = "/run/fairgate-record";
/// The stand-ins, first in `PATH`.
pub(super) const BIN: &str = "/run/fairgate-record/bin";
/// What bash reads first.
pub(super) const BASH_ENV: &str = "/run/fairgate-record/bash";
/// What stand-ins write down.
pub(crate) const JOURNAL: &str = "/run/fairgate-record/journal";
/// The interfaces, as `ip` knows them.
pub(crate) const MACHINE: &str = "/run/fairgate-record/machine.json";
/// The private `/sys`.
pub(crate) const SYS: &str = "/sys";

const PROGRAM: &str = "/run/fairgate-record/fairgate";
/// The root to be, and the layers of the overlays.
const NEW_ROOT: &str = "/run/fairgate-record/root";
const LAYERS: &str = "/run/fairgate-record/layers";
const NONE: Option<&str> = None;

/// Folders that are not taken from this machine.
const OWN: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];

/// Arranges the files, and makes them the root.
pub(super) fn arrange(machine: &Machine) -> Result<(), Refusal> {
    let mounts = mount_points().map_err(refused("reading the mounts"))?;
    let program = std::env::current_exe().map_err(refused("the path of this program"))?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(NONE, "/", NONE, private, NONE).map_err(refused("separating the mounts"))?;
    memory("/run").map_err(refused("a private /run"))?;
    for folder in [ROOT, BIN, NEW_ROOT, LAYERS] {
        fs::create_dir_all(folder).map_err(refused("a private /run"))?;
    }
    let root = Path::new(NEW_ROOT);
    memory(root).map_err(refused("a private root"))?;
    let mut copies = Copies { mounts, count: 0 };
    copies
        .contents(Path::new("/"), root)
        .map_err(refused("a private copy of the files"))?;
    // Not with what is mounted below, which is the root to be.
    let run = below(root, "/run");
    mount(Some("/run"), &run, NONE, MsFlags::MS_BIND, NONE).map_err(refused("a private /run"))?;
    fs::write(PROGRAM, "").map_err(refused("the stand-ins"))?;
    bind(&program, &below(root, PROGRAM)).map_err(refused("the stand-ins"))?;
    devices(root).map_err(refused("a private /dev"))?;
    memory(below(root, SYS)).map_err(refused("a private /sys"))?;
    // What programs ask about processors and memory.
    let system = Path::new("/sys/devices/system");
    if system.is_dir() {
        let inside = below(root, "/sys/devices/system");
        fs::create_dir_all(&inside).map_err(refused("a private /sys"))?;
        bind(system, &inside)
            .and_then(|()| read_only(&inside))
            .map_err(refused("a private /sys"))?;
    }
    processes(root).map_err(refused("a private /proc"))?;
    enter(root).map_err(refused("a private root"))?;
    let stored = Stored {
        file: Path::new(MACHINE),
        sys: Path::new(SYS),
    };
    stored
        .create(machine)
        .map_err(refused("the interfaces of the script"))?;
    install().map_err(refused("the stand-ins"))
}

/// Returns where file systems are mounted, without those that are not taken from this machine.
fn mount_points() -> io::Result<Vec<String>> {
    let text = fs::read_to_string("/proc/self/mountinfo")?;
    let point = |line: &str| line.split(' ').nth(4).map(unescaped);
    let mut points: Vec<String> = text.lines().filter_map(point).collect();
    points.retain(|point| !OWN.iter().any(|own| Path::new(point).starts_with(own)));
    Ok(points)
}

/// Returns a path of `mountinfo`, in which blanks are octal numbers.
fn unescaped(path: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(path.to_owned(), |path, (escape, letter)| {
            path.replace(escape, letter)
        })
}

/// The copies of this machine's folders.
struct Copies {
    /// Where something is mounted. The kernel makes no overlay of a folder with a mount below, because what
    /// the mount hides would be seen.
    mounts: Vec<String>,
    /// How many overlays there are.
    count: usize,
}

impl Copies {
    /// Makes a private copy of a folder at `place`, which exists.
    fn folder(&mut self, source: &Path, place: &Path) -> io::Result<()> {
        if self.overlay(source, place).is_ok() {
            return Ok(());
        }
        let is_below = |mount: &String| Path::new(mount).starts_with(source) && Path::new(mount) != source;
        if self.mounts.iter().any(is_below) {
            return self.contents(source, place);
        }
        Ok(bind(source, place).and_then(|()| read_only(place))?)
    }

    /// Makes a private copy of everything in a folder.
    fn contents(&mut self, source: &Path, place: &Path) -> io::Result<()> {
        for entry in fs::read_dir(source)? {
            let entry = entry?;
            let (from, to) = (entry.path(), place.join(entry.file_name()));
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                symlink(fs::read_link(&from)?, &to)?;
            } else if kind.is_dir() {
                fs::create_dir(&to)?;
                if !OWN.iter().any(|own| Path::new(own) == from) {
                    like(&from, &to)?;
                    self.folder(&from, &to)?;
                }
            } else if kind.is_file() {
                fs::write(&to, "")?;
                bind(&from, &to).and_then(|()| read_only(&to))?;
            }
        }
        Ok(())
    }

    /// Mounts an overlay of a folder at `place`.
    fn overlay(&mut self, source: &Path, place: &Path) -> io::Result<()> {
        let layer = |name: &str| PathBuf::from(format!("{LAYERS}/{}-{name}", self.count));
        let (upper, work) = (layer("upper"), layer("work"));
        self.count += 1;
        for folder in [&upper, &work] {
            fs::create_dir(folder)?;
        }
        // The folder itself is the upper one.
        like(source, &upper)?;
        let path = |path: &Path| {
            path.display()
                .to_string()
                .replace('\\', "\\\\")
                .replace(',', "\\,")
        };
        let layers = format!(
            "lowerdir={},upperdir={},workdir={}",
            path(source).replace(':', "\\:"),
            path(&upper),
            path(&work)
        );
        // Attributes of the user replace those that only the administrator of the machine may set.
        let mut result = Ok(());
        for options in [format!("{layers},userxattr"), layers] {
            let flags = MsFlags::empty();
            result = mount(
                Some("overlay"),
                place,
                Some("overlay"),
                flags,
                Some(options.as_str()),
            );
            if result.is_ok() {
                break;
            }
        }
        Ok(result?)
    }
}

/// Gives a folder the owner and the permissions of another one. The owner may be nobody inside.
fn like(source: &Path, folder: &Path) -> io::Result<()> {
    let metadata = fs::metadata(source)?;
    let _ = chown(folder, Some(metadata.uid()), Some(metadata.gid()));
    fs::set_permissions(folder, metadata.permissions())
}

fn bind(source: &Path, place: &Path) -> nix::Result<()> {
    // Mounts below can't be left out of a copy, because they may hide something.
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(source), place, NONE, flags, NONE)
}

/// Makes a mount read-only. The kernel insists that restrictions of the original stay, so they are tried too.
fn read_only(place: &Path) -> nix::Result<()> {
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    let stricter = [
        MsFlags::empty(),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC,
    ];
    let mut result = Ok(());
    for more in stricter {
        for time in [MsFlags::empty(), MsFlags::MS_RELATIME, MsFlags::MS_NOATIME] {
            result = mount(NONE, place, NONE, flags | more | time, NONE);
            if result.is_ok() {
                return result;
            }
        }
    }
    result
}

fn memory<P: AsRef<Path>>(place: P) -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(
        Some("tmpfs"),
        place.as_ref(),
        Some("tmpfs"),
        flags,
        Some("mode=755"),
    )
}

/// Makes a `/dev` with the files that can do no harm.
fn devices(root: &Path) -> io::Result<()> {
    let folder = below(root, "/dev");
    memory(&folder)?;
    for name in ["null", "zero", "full", "random", "urandom", "tty"] {
        let (device, place) = (Path::new("/dev").join(name), folder.join(name));
        if device.exists() {
            fs::write(&place, "")?;
            bind(&device, &place)?;
        }
    }
    fs::create_dir_all(folder.join("shm"))?;
    let links = [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ];
    for (name, target) in links {
        symlink(target, folder.join(name))?;
    }
    Ok(())
}

/// Mounts the `/proc` of the new PID namespace. In a container that hides parts of `/proc` the kernel refuses
/// it. Then the old one is seen, and it is read-only too.
fn processes(root: &Path) -> nix::Result<()> {
    let place = below(root, "/proc");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    if mount(Some("proc"), &place, Some("proc"), flags, NONE).is_err() {
        bind(Path::new("/proc"), &place)?;
        return read_only(&place);
    }
    let network = below(root, "/proc/sys/net");
    // Without it the settings of the private network are read-only as well.
    let _ = bind(&network, &network);
    read_only(&place)
}

/// Makes the folder the root, and detaches the old root.
fn enter(root: &Path) -> nix::Result<()> {
    nix::unistd::chdir(root)?;
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    nix::unistd::chdir("/")
}

/// Puts the stand-ins where scripts find them: first in `PATH`, and in place of the programs that are called
/// by their path.
fn install() -> io::Result<()> {
    let folders = [
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/bin",
    ];
    let is_here = |name: &str| folders.iter().any(|folder| Path::new(folder).join(name).exists());
    let wanted = |name: &&&str| !stand_in::OPTIONAL.contains(*name) || is_here(name);
    let names: Vec<&&str> = stand_in::NAMES.iter().filter(wanted).collect();
    for name in &names {
        symlink(PROGRAM, Path::new(BIN).join(name))?;
    }
    for name in &names {
        for folder in folders {
            replace(&Path::new(folder).join(name));
        }
    }
    Ok(())
}

/// Replaces a program by the stand-ins. A link to a program of many names (busybox) is replaced itself; that
/// fails for a user who can't write there, and then only calls by name are recorded.
fn replace(path: &Path) {
    let target = fs::canonicalize(path).ok();
    let name = target.as_ref().and_then(|target| target.file_name()?.to_str());
    match (&target, name) {
        (Some(target), _) if target == Path::new(PROGRAM) => {}
        (Some(target), Some(name)) if stand_in::NAMES.contains(&name) || stand_in::MANY.contains(&name) => {
            let _ = bind(Path::new(PROGRAM), target);
        }
        _ => {
            if path.is_symlink() {
                let _ = fs::remove_file(path);
            }
            if !path.exists() {
                let _ = symlink(PROGRAM, path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_mounts_are_read() {
        assert_eq!(unescaped(r"/media/my\040disk"), "/media/my disk");
        assert!(mount_points().unwrap().contains(&"/".to_owned()));
    }
}
