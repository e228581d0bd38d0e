//! Scripts that try to get out. Each one runs as root's and as an ordinary user's, and says `THROUGH` where
//! it found a way. Before and after it, what a script could change on this machine is listed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::unistd::geteuid;

use super::deadline::say;
use super::{alone, runs, text};

/// A user and a group that no system gives to anybody.
const NOBODY: u32 = 61_183;

/// What every script that comes to its end gives.
const GIVEN: &str = "queue e\n  fifo limit=3\n";

/// Before the number of the supervisor, in the name of a control group.
const GROUP: &str = "fairgate-record-";

/// Who records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// Whoever runs the tests.
    Same,
    /// An unprivileged user, if root runs the tests.
    Nobody,
}

/// Returns all that can be tried here.
fn callers() -> Vec<Caller> {
    if geteuid().is_root() {
        return vec![Caller::Same, Caller::Nobody];
    }
    say("SKIPPED: hostile scripts that root records: these tests do not run as root");
    vec![Caller::Same]
}

/// A folder with the program, a script and files to be protected.
struct Stage {
    folder: tempfile::TempDir,
    caller: Caller,
    script: PathBuf,
}

impl Stage {
    fn new(caller: Caller, script: &str) -> Stage {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        // A copy, because a wall that does not hold would change the program of all tests.
        fs::copy(env!("CARGO_BIN_EXE_fairgate"), path.join("fairgate")).expect("the program was built");
        let hostile = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/record/hostile");
        let name = path.join(script);
        fs::copy(hostile.join(script), &name).expect("the script is in the repository");
        fs::write(path.join("victim.txt"), "original\n").expect("the folder is writable");
        fs::create_dir(path.join("mounted")).expect("the folder is writable");
        for (file, mode) in [
            ("", 0o755),
            ("fairgate", 0o755),
            (script, 0o755),
            ("victim.txt", 0o644),
        ] {
            let file = path.join(file);
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("the file is ours");
            if caller == Caller::Nobody {
                // The worst case: the script's user owns the files outside.
                chown(&file, Some(NOBODY), Some(NOBODY)).expect("root may");
            }
        }
        Stage {
            script: name,
            folder,
            caller,
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The program as this caller, in the folder.
    fn command(&self) -> Command {
        let program = self.path().join("fairgate");
        let mut command = match self.caller {
            Caller::Same => Command::new(program),
            Caller::Nobody => {
                let mut command = Command::new("setpriv");
                let user = NOBODY.to_string();
                command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
                command.arg(program);
                command
            }
        };
        command.current_dir(self.path());
        command
    }

    fn record(&self, options: &[&str], arguments: &[&str]) -> Command {
        let mut command = self.command();
        command.args(["tc", "--tree"]).args(options);
        command.arg("--record").arg(&self.script).args(arguments);
        command
    }

    /// Runs the script. Nothing that it could change has changed, and it found no way out.
    fn run(&self, options: &[&str], arguments: &[&str]) -> (i32, String, String) {
        self.run_as(&mut self.record(options, arguments))
    }

    fn run_as(&self, command: &mut Command) -> (i32, String, String) {
        let _alone = alone();
        let before = listing(self);
        let mut neighbour = Neighbour::start();
        let output = command.output().expect("the program was built");
        let name = format!("{} of {:?}", self.script.display(), self.caller);
        let Output {
            status,
            stdout,
            stderr,
        } = output;
        let (stdout, stderr) = (text(&stdout).to_owned(), text(&stderr).to_owned());
        assert!(!stderr.contains("THROUGH"), "{name}: {stderr}");
        neighbour.is_as_before(&name);
        let after = listing(self);
        let changed = differences(&before, &after);
        assert!(changed.is_empty(), "{name}: {changed:#?} {stderr}");
        let code = status.code().unwrap_or_else(|| panic!("{name}: {status}"));
        (code, stdout, stderr)
    }
}

/// A process of the same user in the program's process group, as a shell's pipeline has.
struct Neighbour(Child);

impl Neighbour {
    fn start() -> Neighbour {
        let child = Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn();
        Neighbour(child.expect("coreutils"))
    }

    fn is_as_before(&mut self, name: &str) {
        let state = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap_or_default();
        let state = state.rsplit(") ").next().and_then(|rest| rest.chars().next());
        assert!(
            matches!(state, Some('S' | 'R' | 'D')),
            "{name}: a neighbour is now in state {state:?}"
        );
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a script could change on this machine: a line of text for each thing.
type Listing = BTreeMap<String, String>;

fn listing(place: &Stage) -> Listing {
    let mut listing = Listing::new();
    let devices = ["null", "zero", "full", "random", "urandom"].map(|name| Path::new("/dev").join(name));
    let system = ["/etc", "/etc/passwd", "/usr/bin", "/usr/sbin", "/"].map(PathBuf::from);
    let mut waiting: Vec<PathBuf> = devices.into_iter().chain(system.clone()).collect();
    waiting.push(place.path().to_owned());
    while let Some(path) = waiting.pop() {
        let Ok(about) = fs::symlink_metadata(&path) else {
            continue;
        };
        // A change of the attributes changes the last time, whatever they are afterwards.
        let (mode, owner, group) = (about.mode(), about.uid(), about.gid());
        let times = [
            about.mtime(),
            about.mtime_nsec(),
            about.ctime(),
            about.ctime_nsec(),
        ];
        let mut line = format!("{mode:o} {owner}:{group} {} bytes {times:?}", about.len());
        if about.is_dir() && !system.contains(&path) {
            let entries = fs::read_dir(&path).expect("the tests may read it");
            waiting.extend(entries.map(|entry| entry.expect("it can be read").path()));
        } else if about.is_file() && about.len() < 1 << 16 {
            line += &String::from_utf8_lossy(&fs::read(&path).expect("the tests may read it"));
        }
        listing.insert(path.display().to_string(), line);
    }
    for path in settings() {
        if let Ok(value) = fs::read_to_string(&path) {
            listing.insert(path.display().to_string(), value);
        }
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("Linux");
    // Tests beside this one make networks of their own.
    let others = |mount: &&str| !mount.contains(" /run/netns/fg-");
    for mount in mounts.lines().filter(others) {
        listing.insert(format!("mount {mount}"), String::new());
    }
    for group in groups_left() {
        listing.insert(format!("group {}", group.display()), String::new());
    }
    listing
}

/// Returns what is not in both listings, or not equal.
fn differences(before: &Listing, after: &Listing) -> Vec<String> {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    let line = |key: &String| format!("{key}: {:?}, then {:?}", before.get(key), after.get(key));
    changed.map(line).collect()
}

/// Returns the settings of the kernel that do not change by themselves.
fn settings() -> Vec<PathBuf> {
    let folders = [
        "/proc/sys/kernel",
        "/proc/sys/vm",
        "/proc/sys/fs",
        "/proc/sys/net/ipv4",
    ];
    let by_itself = [
        "ns_last_pid",
        "dentry-state",
        "dentry-negative",
        "inode-nr",
        "inode-state",
        "file-nr",
        "aio-nr",
        "stat_refresh",
    ];
    let mut paths: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("Linux"))
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.is_file() && !by_itself.iter().any(|name| path.ends_with(name)))
        .collect();
    paths.push("/proc/irq/default_smp_affinity".into());
    paths.push("/sys/devices/system/cpu/online".into());
    paths
}

/// Returns the control groups of recordings.
pub(super) fn groups() -> BTreeSet<PathBuf> {
    let mut groups = BTreeSet::new();
    let mut waiting = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = waiting.pop() {
        // Other tests make groups and remove them meanwhile.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(GROUP) {
                groups.insert(entry.path());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
        }
    }
    groups
}

/// Returns those whose supervisor is no more.
fn groups_left() -> BTreeSet<PathBuf> {
    let is_over = |group: &PathBuf| {
        let name = group.file_name().unwrap_or_default().to_string_lossy();
        let supervisor = name.trim_start_matches(GROUP);
        !Path::new("/proc").join(supervisor).exists() && group.exists()
    };
    groups().into_iter().filter(is_over).collect()
}

/// Scripts that try something and then give a command, by which is seen that they came to their end.
#[test]
fn no_script_gets_out() {
    let mut scripts = vec![
        "binary.sh",
        "settings.sh",
        "devices.sh",
        "resources.pl",
        "signals.pl",
        "group-kill.pl",
        "report.pl",
        "journal.pl",
        "terminal.pl",
        "namespaces.sh",
        "privileges.pl",
        "links.sh",
    ];
    if cfg!(target_arch = "x86_64") {
        scripts.push("calls.pl");
    } else {
        say("SKIPPED: calls.pl has the numbers of system calls of x86-64");
    }
    for caller in callers() {
        for script in &scripts {
            let place = Stage::new(caller, script);
            let (code, stdout, stderr) = place.run(&[], &[]);
            assert_eq!(
                (code, stdout.as_str()),
                (0, GIVEN),
                "{script} of {caller:?}: {stderr}"
            );
        }
    }
}

#[test]
fn a_stopped_script_is_ended_in_time() {
    for caller in callers() {
        let place = Stage::new(caller, "group-stop.pl");
        let (code, _, stderr) = place.run(&["--time-limit", "1s"], &[]);
        assert_eq!(code, 2, "{caller:?}: {stderr}");
        assert!(stderr.contains("did not end within 1 s"), "{caller:?}: {stderr}");
    }
}

#[test]
fn commands_and_output_have_a_limit() {
    for caller in callers() {
        let (code, _, stderr) = Stage::new(caller, "flood.pl").run(&[], &[]);
        assert_eq!(code, 2, "{caller:?}: {stderr}");
        assert!(stderr.contains("gives too many commands"), "{caller:?}: {stderr}");

        let (code, stdout, stderr) = Stage::new(caller, "output.pl").run(&[], &[]);
        assert_eq!((code, stdout.as_str()), (0, GIVEN), "{caller:?}");
        assert!(stderr.len() < 1 << 21, "{caller:?}: {} bytes", stderr.len());
        assert!(stderr.contains("the rest is not shown"), "{caller:?}");
        let obeyed =
            |letter: char| (letter.is_control() && !matches!(letter, '\n' | '\t')) || letter == '\u{202e}';
        assert!(!stderr.contains(obeyed), "{caller:?}: {:?}", &stderr[..200]);
    }
}

#[test]
fn nothing_remains_of_a_script() {
    let seconds = (200_000 + std::process::id()).to_string();
    for caller in callers() {
        let (code, stdout, stderr) = Stage::new(caller, "remaining.pl").run(&[], &[&seconds]);
        assert_eq!((code, stdout.as_str()), (0, GIVEN), "{caller:?}: {stderr}");
        assert!(!runs(&format!("sleep {seconds}")), "{caller:?}");
    }
}

#[test]
fn no_socket_of_the_host_is_reached() {
    for caller in callers() {
        let place = Stage::new(caller, "sockets.pl");
        let path = place.path().join("socket");
        let name = format!("fairgate-walls-{}", std::process::id());
        let _path = UnixListener::bind(&path).expect("a socket");
        let _abstract = SocketAddr::from_abstract_name(&name).and_then(|name| UnixListener::bind_addr(&name));
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = tcp.local_addr().expect("it is bound").port().to_string();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("it is ours");
        let (code, stdout, stderr) = place.run(&[], &[&path.display().to_string(), &name, &port]);
        assert_eq!((code, stdout.as_str()), (0, GIVEN), "{caller:?}: {stderr}");
    }
}

#[test]
fn no_descriptor_is_inherited() {
    for caller in callers() {
        let place = Stage::new(caller, "inherited.sh");
        let folder = File::open(place.path()).expect("it is there");
        fcntl(folder.as_fd(), FcntlArg::F_SETFD(FdFlag::empty())).expect("it is ours");
        let (code, stdout, stderr) = place.run(&[], &[]);
        assert_eq!((code, stdout.as_str()), (0, GIVEN), "{caller:?}: {stderr}");
    }
}

/// Below a folder with a mount the copies are made file by file, and some files are bound as they are.
#[test]
fn mounts_of_the_host_stay_as_they_are() {
    if !geteuid().is_root() {
        say("SKIPPED: scripts beside a mount: only root can mount one");
        return;
    }
    for caller in callers() {
        let place = Stage::new(caller, "mounted.sh");
        let folder = place.path().display().to_string();
        // In a mount namespace of its own, which the program and the script see.
        let script = format!(
            "mount -t tmpfs none {folder}/mounted && echo original > {folder}/mounted/victim.txt && \
             chmod 666 {folder}/mounted/victim.txt && \"$@\"; code=$?; \
             [ \"$(cat {folder}/mounted/victim.txt)\" = original ] || echo THROUGH: mounted >&2; \
             findmnt -n -o OPTIONS {folder}/mounted >&2; exit $code"
        );
        let inner = place.record(&[], &[&folder]);
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &script, "sh"]);
        command.arg(inner.get_program()).args(inner.get_args());
        command.current_dir(place.path());
        let (code, stdout, stderr) = place.run_as(&mut command);
        assert_eq!((code, stdout.as_str()), (0, GIVEN), "{caller:?}: {stderr}");
        assert!(stderr.contains("rw,"), "{caller:?}: {stderr}");
    }
}

/// Where a wall can't be had, nothing runs.
#[test]
fn a_missing_wall_is_named() {
    for caller in callers() {
        let place = Stage::new(caller, "binary.sh");
        let inner = place.record(&[], &[]);
        let mut command = match caller {
            Caller::Same => Command::new("unshare"),
            Caller::Nobody => {
                let mut command = Command::new("setpriv");
                let user = NOBODY.to_string();
                command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "unshare"]);
                command
            }
        };
        // Everything of the caller is in a user namespace that has no more of them.
        let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
        command.args(["-Ur", "sh", "-c", script, "sh"]);
        command.arg(place.path().join("fairgate"));
        let words: Vec<_> = inner.get_args().collect();
        let own = words.iter().position(|word| *word == "tc").expect("the command");
        command.args(&words[own..]).current_dir(place.path());
        let (code, stdout, stderr) = place.run_as(&mut command);
        assert_eq!((code, stdout.as_str()), (3, ""), "{caller:?}: {stderr}");
        let names = match caller {
            // In that namespace there is nobody but root, and root is root.
            Caller::Same if geteuid().is_root() => "an unprivileged user for the script",
            _ => "creating the script's user namespace",
        };
        // The text is broken into lines.
        let words: Vec<&str> = stderr.split_whitespace().filter(|word| *word != "│").collect();
        assert!(words.join(" ").contains(names), "{caller:?}: {stderr}");
    }
}
