use std::io::Write;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::Command;

use super::*;

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Scratch {
        Scratch(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn with(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.at(name), text).unwrap();
        self.at(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let target = Targets::beside([]).open(path)?;
    target.write(|file| file.write_all(text.as_bytes()))
}

#[track_caller]
fn complaint(result: Result<impl Sized, Failure>) -> String {
    match result {
        Err(Failure::Input(report) | Failure::Environment(report)) => {
            let causes: Vec<String> = report.chain().map(ToString::to_string).collect();
            causes.join(": ")
        }
        _ => panic!("this can't be written"),
    }
}

#[track_caller]
fn node(path: &Path, arguments: &[&str]) -> bool {
    let made = Command::new("mknod").arg(path).args(arguments).status().unwrap();
    if !made.success() {
        // Written directly, because the test harness captures what `eprintln!` prints.
        let _ = writeln!(io::stderr(), "SKIPPED: mknod {arguments:?} needs root");
    }
    made.success()
}

#[test]
fn a_result_replaces_the_one_before_it() {
    let scratch = Scratch::new();
    let path = scratch.at("result.json");
    write(&path, "the first").unwrap();
    write(&path, "second").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"second");
    assert_eq!(scratch.names(), ["result.json"]);
}

/// A signal during writing, even one that cannot be caught, leaves nothing behind.
#[test]
fn a_result_has_no_name_while_it_is_written() {
    let scratch = Scratch::new();
    let path = scratch.with("result.json", "old");
    let target = Targets::beside([]).open(&path).unwrap();
    let fresh = Targets::beside([]).open(&scratch.at("fresh.json")).unwrap();
    let look = |file: &mut File| {
        file.write_all(b"half of it")?;
        assert_eq!(scratch.names(), ["result.json"]);
        assert_eq!(fs::read(&path)?, b"old");
        Ok(())
    };
    target.write(look).unwrap();
    fresh
        .write(|_| {
            assert_eq!(scratch.names(), ["result.json"]);
            Ok(())
        })
        .unwrap();
    assert_eq!(scratch.names(), ["fresh.json", "result.json"]);
}

#[test]
fn signals_that_end_the_program_are_blocked_in_the_scope() {
    let pending = || SigSet::thread_get_mask().unwrap();
    let before = pending();
    let whole = Uninterrupted::begin().unwrap();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        assert!(pending().contains(signal));
    }
    drop(whole);
    assert_eq!(pending(), before);
}

#[test]
fn on_a_full_disk_the_old_result_stays_and_nothing_else() {
    let scratch = Scratch::new();
    let path = scratch.with("result.json", "old");
    let target = Targets::beside([]).open(&path).unwrap();
    let failure = target.write(|file| {
        file.write_all(b"half of it")?;
        Err(io::ErrorKind::StorageFull.into())
    });
    let Err(Failure::Environment(report)) = failure else {
        panic!("a full disk is the environment's refusal");
    };
    assert!(report.is::<Unwritten>(), "{report}");
    assert!(report.to_string().starts_with("can't write "), "{report}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(scratch.names(), ["result.json"]);
}

#[test]
fn a_file_that_cannot_be_written_is_found_before_the_work() {
    let scratch = Scratch::new();
    scratch.with("file", "");
    let mut targets = Targets::beside([]);
    let missing = complaint(targets.open(&scratch.at("none/result.json")));
    assert!(missing.contains("No such file"), "{missing}");
    let folder = complaint(targets.open(scratch.0.path()));
    assert!(folder.contains("directory"), "{folder}");
    let below = complaint(targets.open(&scratch.at("file/result.json")));
    assert!(below.contains("Not a directory"), "{below}");
}

#[test]
fn mode_owner_and_attributes_stay() {
    let scratch = Scratch::new();
    let path = scratch.with("result.csv", "old");
    fs::set_permissions(&path, Permissions::from_mode(0o604)).unwrap();
    let has_attributes = xattr::set(&path, "user.comment", b"mine").is_ok();
    // Only root can change the owner of a file.
    let has_owner = std::os::unix::fs::chown(&path, Some(1234), Some(4321)).is_ok();
    let before = fs::metadata(&path).unwrap();
    write(&path, "new").unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(after.mode(), before.mode());
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    assert!(!has_owner || after.uid() == 1234);
    if has_attributes {
        assert_eq!(xattr::get(&path, "user.comment").unwrap().unwrap(), b"mine");
    }
}

#[test]
fn links_are_followed_and_stay() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.at("inner")).unwrap();
    scratch.with("inner/result.csv", "old");
    symlink("inner/result.csv", scratch.at("link")).unwrap();
    symlink("inner/fresh.csv", scratch.at("dangling")).unwrap();
    symlink("dangling", scratch.at("twice")).unwrap();
    symlink("round", scratch.at("round")).unwrap();
    write(&scratch.at("link"), "new").unwrap();
    write(&scratch.at("twice"), "fresh").unwrap();
    for link in ["link", "dangling", "twice"] {
        assert!(scratch.at(link).is_symlink(), "{link}");
    }
    assert_eq!(fs::read(scratch.at("inner/result.csv")).unwrap(), b"new");
    assert_eq!(fs::read(scratch.at("inner/fresh.csv")).unwrap(), b"fresh");
    complaint(write(&scratch.at("round"), ""));
}

#[test]
fn the_result_is_written_under_all_names_of_a_file() {
    let scratch = Scratch::new();
    let path = scratch.with("result.csv", "a longer one");
    fs::hard_link(&path, scratch.at("other.csv")).unwrap();
    write(&path, "new").unwrap();
    assert_eq!(fs::read(scratch.at("other.csv")).unwrap(), b"new");
    assert_eq!(scratch.names(), ["other.csv", "result.csv"]);
}

#[test]
fn a_pipe_and_a_device_are_written_in_place() {
    let scratch = Scratch::new();
    let pipe = scratch.at("pipe");
    assert!(node(&pipe, &["p"]), "anybody can make a pipe");
    // A pipe that nobody reads is refused, so its reader comes first.
    let mut reader = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(&pipe)
        .unwrap();
    write(&pipe, "through it").unwrap();
    let mut read = Vec::new();
    io::Read::read_to_end(&mut reader, &mut read).unwrap();
    assert_eq!(read, b"through it");
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());

    // These are like /dev/null and /dev/full. A folder mounted without device support refuses to open them.
    let (null, full) = (scratch.at("null"), scratch.at("full"));
    if !node(&null, &["c", "1", "3"]) || !node(&full, &["c", "1", "7"]) {
        return;
    }
    if OpenOptions::new().write(true).open(&null).is_ok() {
        write(&null, "nothing").unwrap();
        let lost = complaint(write(&full, "nothing"));
        assert!(lost.contains("No space left"), "{lost}");
    }
    for device in [null, full] {
        assert!(fs::metadata(&device).unwrap().file_type().is_char_device());
    }
}

#[test]
fn an_input_is_rejected_as_output_under_any_name() {
    let scratch = Scratch::new();
    let input = scratch.with("my.pcap", "packets");
    symlink("my.pcap", scratch.at("link")).unwrap();
    fs::hard_link(&input, scratch.at("hard")).unwrap();
    for name in ["my.pcap", "./my.pcap", "link", "hard"] {
        let mut targets = Targets::beside([input.as_path()]);
        let refusal = complaint(targets.open(&scratch.at(name)));
        assert!(refusal.contains("reads"), "{refusal}");
    }
    assert_eq!(fs::read(&input).unwrap(), b"packets");
}

#[test]
fn no_output_is_written_twice() {
    let scratch = Scratch::new();
    symlink("fresh", scratch.at("link")).unwrap();
    let mut targets = Targets::beside([]);
    let _fresh = targets.open(&scratch.at("fresh")).unwrap();
    let refusal = complaint(targets.open(&scratch.at("link")));
    assert!(refusal.contains("is written too"), "{refusal}");
    let _other = targets.open(&scratch.at("other")).unwrap();
}

/// This path is taken if the file system cannot name a file that was created without a name.
#[test]
fn a_draft_that_cannot_be_named_is_copied() {
    let scratch = Scratch::new();
    let mut draft = tempfile::tempfile_in(scratch.0.path()).unwrap();
    draft.write_all(b"all of it").unwrap();
    let (_, name) = named(&draft, scratch.0.path()).unwrap();
    assert_eq!(fs::read(&name).unwrap(), b"all of it");
    drop(name);
    assert_eq!(scratch.names(), Vec::<String>::new());
}

/// Lets everyone write to a folder, which another user then has put something into.
#[track_caller]
fn shared(scratch: &Scratch, planted: &Path) -> bool {
    fs::set_permissions(scratch.0.path(), Permissions::from_mode(0o1777)).unwrap();
    let given = std::os::unix::fs::lchown(planted, Some(65_534), Some(65_534));
    if given.is_err() {
        let _ = writeln!(io::stderr(), "SKIPPED: chown needs root");
    }
    given.is_ok()
}

type Writer = fn(&Path, &str) -> Result<(), String>;

/// The ways in which results are written to a path that a user has given.
const WRITERS: [Writer; 2] = [
    |path, text| write(path, text).map_err(|error| complaint(Err::<(), _>(error))),
    |path, text| {
        let written =
            fairgate_config::folder::create(path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| error.to_string())
    },
];

#[test]
fn what_another_user_has_put_there_is_not_written() {
    for way in WRITERS {
        let scratch = Scratch::new();
        let victim = tempfile::NamedTempFile::new().unwrap();
        fs::write(&victim, "precious").unwrap();
        for kind in ["link", "open link", "file", "pipe"] {
            let path = scratch.at("out");
            match kind {
                "link" => symlink(victim.path(), &path).unwrap(),
                "open link" => symlink("/nonexistent-folder/new", &path).unwrap(),
                "file" => fs::write(&path, "old").unwrap(),
                _ => nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
            }
            // The pipe has a reader, so that it could be written.
            let reader = OpenOptions::new()
                .read(true)
                .custom_flags(OFlag::O_NONBLOCK.bits())
                .open(&path);
            if !shared(&scratch, &path) {
                return;
            }
            let error = way(&path, "new").expect_err(kind);
            assert!(error.contains("belongs to user 65534"), "{kind}: {error}");
            assert!(error.contains(&path.display().to_string()), "{kind}: {error}");
            assert_eq!(fs::read(&victim).unwrap(), b"precious");
            if kind == "file" {
                assert_eq!(fs::read(&path).unwrap(), b"old");
            }
            drop(reader);
            fs::remove_file(&path).unwrap();
        }
        // What the same user or the folder's owner has put there is written.
        let own = scratch.with("own", "old");
        symlink(&own, scratch.at("link")).unwrap();
        way(&scratch.at("link"), "new").unwrap();
        assert_eq!(fs::read(&own).unwrap(), b"new");
    }
}

#[test]
fn a_pipe_that_nobody_reads_is_reported() {
    for way in WRITERS {
        let scratch = Scratch::new();
        let path = scratch.at("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = way(&path, "new").unwrap_err();
        assert!(error.contains("nobody reads this pipe"), "{error}");
    }
}

#[test]
fn a_file_of_the_programs_own_replaces_a_link() {
    let scratch = Scratch::new();
    let victim = scratch.with("victim", "precious");
    symlink(&victim, scratch.at("part")).unwrap();
    replace(&scratch.at("part"), |file| file.write_all(b"new")).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(fs::read(scratch.at("part")).unwrap(), b"new");
    assert!(!scratch.at("part").is_symlink());
}
