//! The files that a script sees.
//!
//! Every folder of this machine lies under an overlay whose upper layer is memory: the script can change the
//! files that its user may change, and the changes are gone with the namespaces. A folder with another file
//! system below is made again, with what it holds. Where the kernel allows no overlay, the folder is
//! read-only. `/proc` belongs to the new PID namespace, and is read-only except for the settings of the
//! private network. `/sys` and `/dev` are made up. `/run` is empty, so that no service of this machine can be
//! reached by its socket.
//!
//! The script stage enters a second user namespace, in which none of these mounts can be changed or taken
//! away (user_namespaces(7), mount_namespaces(7): "locked").

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::pivot_root;

use super::identity::Identity;
use super::{JOURNAL_LIMIT, Refusal, refused};
use crate::record::inside::{BIN, ROOT, SYS};
use crate::record::stand_in;

const PROGRAM: &str = "/run/fairgate-record/fairgate";
/// The root to be, and the layers of the overlays. The script does not see this `/run`.
const NEW_ROOT: &str = "/run/root";
const LAYERS: &str = "/run/layers";
const NONE: Option<&str> = None;

/// Folders that are not taken from this machine.
const OWN: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];

/// The folders of the private `/sys` in which the stand-ins write.
const OF_SYS: [&str; 2] = ["class", "module"];

/// How much memory file systems may take, in bytes: all that the script writes into copies, `/run` with the
/// journal, and each of the small ones.
const COPIES_SIZE: u64 = 256 << 20;
const RUN_SIZE: u64 = 2 * JOURNAL_LIMIT;
const SMALL_SIZE: u64 = 32 << 20;

/// Arranges the files for a script with this identity, and makes them the root. Returns the folders in which
/// the script may write.
pub(super) fn arrange(identity: Identity, script: &OsStr, current: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let program = std::env::current_exe().map_err(refused("the path of this program"))?;
    unshare(CloneFlags::CLONE_NEWNS).map_err(refused("mounts of its own"))?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(NONE, "/", NONE, private, NONE).map_err(refused("separating the mounts"))?;
    // From now on nothing is mounted that we did not mount.
    let mounts = mount_points().map_err(refused("reading the mounts"))?;
    let copy = "a private copy of the files";
    // Its path is hidden by what follows.
    let script = fs::canonicalize(script).ok();
    let mut copies = Copies::new(mounts, identity).map_err(refused(copy))?;
    copies
        .contents(Path::new("/"), &copies.root.clone())
        .map_err(refused(copy))?;
    copies.give(script.as_deref(), current);
    let Copies {
        root, mut writable, ..
    } = copies;
    let memory = |path: &str, size| memory(&below(&root, path), size, identity);
    memory("/run", RUN_SIZE)
        .and_then(|()| fs::create_dir_all(below(&root, BIN)))
        .and_then(|()| chown(below(&root, ROOT), Some(identity.user), Some(identity.group)))
        .map_err(refused("a private /run"))?;
    fs::write(below(&root, PROGRAM), "")
        .and_then(|()| bind_read_only(&program, &below(&root, PROGRAM), MsFlags::MS_NODEV))
        .map_err(refused("the stand-ins"))?;
    memory("/dev", SMALL_SIZE)
        .and_then(|()| devices(&root))
        .map_err(refused("a private /dev"))?;
    memory(SYS, SMALL_SIZE)
        .and_then(|()| system(&root, identity))
        .map_err(refused("a private /sys"))?;
    processes(&root).map_err(refused("a private /proc"))?;
    enter(&root).map_err(refused("a private root"))?;
    install().map_err(refused("the stand-ins"))?;
    writable.extend(["/run", "/dev/shm", "/proc/sys/net"].map(PathBuf::from));
    writable.extend(OF_SYS.map(|folder| Path::new(SYS).join(folder)));
    Ok(writable)
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
    /// The root to be.
    root: PathBuf,
    identity: Identity,
    /// Where something is mounted. An overlay of a folder with a mount below would show what the mount hides.
    mounts: Vec<String>,
    /// How many overlays there are.
    count: usize,
    /// The folders that are in memory, as the script sees them.
    writable: Vec<PathBuf>,
}

impl Copies {
    fn new(mounts: Vec<String>, identity: Identity) -> io::Result<Copies> {
        let root = PathBuf::from(NEW_ROOT);
        memory(Path::new("/run"), COPIES_SIZE, identity)?;
        for folder in [NEW_ROOT, LAYERS] {
            fs::create_dir(folder)?;
        }
        memory(&root, SMALL_SIZE, identity)?;
        Ok(Copies {
            root,
            identity,
            mounts,
            count: 0,
            writable: Vec::new(),
        })
    }

    /// Makes a private copy of a folder at `place`, which exists.
    fn folder(&mut self, source: &Path, place: &Path) -> io::Result<()> {
        let is_below = |mount: &String| Path::new(mount).starts_with(source) && Path::new(mount) != source;
        if self.mounts.iter().any(is_below) {
            self.writable.push(source.to_path_buf());
            return self.contents(source, place);
        }
        if self.overlay(source, place).is_ok() {
            self.writable.push(source.to_path_buf());
            return Ok(());
        }
        bind_read_only(source, place, MsFlags::MS_NODEV)
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
                // A folder that this process may not look into stays empty.
                if !OWN.iter().any(|own| Path::new(own) == from) && like(&from, &to).is_ok() {
                    self.folder(&from, &to)?;
                }
            } else if kind.is_file() {
                fs::write(&to, "")?;
                bind_read_only(&from, &to, MsFlags::MS_NODEV)?;
            }
        }
        Ok(())
    }

    /// Gives the script its own copies of itself, of its folder and of the current one, and the way to them.
    /// If root records a script, its user owns nothing else. What can't be given stays as it is.
    fn give(&self, script: Option<&Path>, current: &Path) {
        let own = |path: &Path| {
            let _ = chown(path, Some(self.identity.user), Some(self.identity.group));
        };
        let folder = script.and_then(Path::parent);
        for folder in [folder, Some(current)].into_iter().flatten() {
            for above in folder.ancestors() {
                let copy = below(&self.root, above);
                let is_open = fs::metadata(&copy).is_ok_and(|metadata| metadata.mode() & 0o001 != 0);
                if above == folder || !is_open {
                    own(&copy);
                }
            }
        }
        if let Some(script) = script {
            own(&below(&self.root, script));
        }
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
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
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

/// Shows a file or folder of this machine at `place`, read-only. Not even the mode of a device can be changed
/// there. `more` are restrictions beside that of programs that run as somebody else.
fn bind_read_only(source: &Path, place: &Path, more: MsFlags) -> io::Result<()> {
    mount(Some(source), place, NONE, MsFlags::MS_BIND, NONE)?;
    let result = read_only(place, more | MsFlags::MS_NOSUID);
    if result.is_err() {
        // It could be written to.
        umount2(place, MntFlags::MNT_DETACH)?;
    }
    result
}

/// Makes a mount read-only. The kernel insists that restrictions of the original stay.
fn read_only(place: &Path, more: MsFlags) -> io::Result<()> {
    let is = statvfs(place)?.flags();
    let restrictions = [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
    ];
    let kept = restrictions.into_iter().filter(|(has, _)| is.contains(*has));
    let kept: MsFlags = kept.map(|(_, flag)| flag).collect();
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    Ok(mount(NONE, place, NONE, flags | kept | more, NONE)?)
}

/// Mounts an empty file system in memory that belongs to the script's user.
fn memory(place: &Path, size: u64, identity: Identity) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let Identity { user, group } = identity;
    // As many files as there are pages of 4 kB.
    let files = size >> 12;
    let options = format!("mode=755,size={size},nr_inodes={files},uid={user},gid={group}");
    Ok(mount(
        Some("tmpfs"),
        place,
        Some("tmpfs"),
        flags,
        Some(options.as_str()),
    )?)
}

/// Makes a `/dev` with the files that can do no harm.
fn devices(root: &Path) -> io::Result<()> {
    let folder = below(root, "/dev");
    for name in super::walls::DEVICES {
        let place = folder.join(name);
        fs::write(&place, "")?;
        bind_read_only(&Path::new("/dev").join(name), &place, MsFlags::MS_NOEXEC)?;
    }
    let shared = folder.join("shm");
    fs::create_dir(&shared)?;
    fs::set_permissions(&shared, std::os::unix::fs::PermissionsExt::from_mode(0o1777))?;
    let links = [
        ("random", "urandom"),
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

/// Makes a `/sys` with what programs ask about processors and memory. The stand-ins add the interfaces.
fn system(root: &Path, identity: Identity) -> io::Result<()> {
    let place = below(root, SYS);
    for folder in OF_SYS {
        let folder = place.join(folder);
        fs::create_dir(&folder)?;
        chown(&folder, Some(identity.user), Some(identity.group))?;
    }
    let source = Path::new("/sys/devices/system");
    if !source.is_dir() {
        return Ok(());
    }
    let inside = below(root, source);
    fs::create_dir_all(&inside)?;
    bind_read_only(source, &inside, MsFlags::MS_NODEV | MsFlags::MS_NOEXEC)
}

/// Restrictions of `/proc`.
const OF_PROCESSES: MsFlags = MsFlags::MS_NOSUID
    .union(MsFlags::MS_NODEV)
    .union(MsFlags::MS_NOEXEC);

/// Mounts the `/proc` of the new PID namespace. In a container that hides parts of `/proc` the kernel refuses
/// it. It can be written to until [`close_processes`].
fn processes(root: &Path) -> io::Result<()> {
    let place = below(root, "/proc");
    mount(Some("proc"), &place, Some("proc"), OF_PROCESSES, NONE)?;
    let network = below(root, "/proc/sys/net");
    // Without it the settings of the private network are read-only as well.
    let _ = mount(Some(&network), &network, NONE, MsFlags::MS_BIND, NONE);
    Ok(())
}

/// Makes `/proc` read-only, once the script's identity has been written there and before the script stage
/// copies the mounts.
pub(super) fn close_processes() -> io::Result<()> {
    read_only(Path::new("/proc"), OF_PROCESSES)
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
            let _ = bind_read_only(Path::new(PROGRAM), target, MsFlags::MS_NODEV);
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

/// Returns a path inside of a folder that will become the root.
fn below(root: &Path, path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    root.join(path.strip_prefix("/").unwrap_or(path))
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
