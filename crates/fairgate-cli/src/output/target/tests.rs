use std::io::Write;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::Command;

use super::*;

struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
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
        // Past the test harness, which swallows what `eprintln!` says.
        let _ = writeln!(io::stderr(), "SKIPPED: mknod {arguments:?} needs root");
    }
    made.success()
}

#[test]
fn a_result_replaces_the_one_before_it() {
    let desk = Desk::new();
    let path = desk.at("result.json");
    write(&path, "the first").unwrap();
    write(&path, "second").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"second");
    assert_eq!(desk.names(), ["result.json"]);
}

/// A signal in the middle, even one that nothing can catch, leaves nothing behind.
#[test]
fn a_result_has_no_name_while_it_is_written() {
    let desk = Desk::new();
    let path = desk.with("result.json", "old");
    let target = Targets::beside([]).open(&path).unwrap();
    let fresh = Targets::beside([]).open(&desk.at("fresh.json")).unwrap();
    let look = |file: &mut File| {
        file.write_all(b"half of it")?;
        assert_eq!(desk.names(), ["result.json"]);
        assert_eq!(fs::read(&path)?, b"old");
        Ok(())
    };
    target.write(look).unwrap();
    fresh
        .write(|_| {
            assert_eq!(desk.names(), ["result.json"]);
            Ok(())
        })
        .unwrap();
    assert_eq!(desk.names(), ["fresh.json", "result.json"]);
}

#[test]
fn signals_that_end_the_program_wait_for_a_name() {
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
    let desk = Desk::new();
    let path = desk.with("result.json", "old");
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
    assert_eq!(desk.names(), ["result.json"]);
}

#[test]
fn what_can_not_be_written_is_found_before_the_work() {
    let desk = Desk::new();
    desk.with("file", "");
    let mut targets = Targets::beside([]);
    let missing = complaint(targets.open(&desk.at("none/result.json")));
    assert!(missing.contains("No such file"), "{missing}");
    let folder = complaint(targets.open(desk.0.path()));
    assert!(folder.contains("directory"), "{folder}");
    let below = complaint(targets.open(&desk.at("file/result.json")));
    assert!(below.contains("Not a directory"), "{below}");
}

#[test]
fn mode_owner_and_attributes_stay() {
    let desk = Desk::new();
    let path = desk.with("result.csv", "old");
    fs::set_permissions(&path, Permissions::from_mode(0o604)).unwrap();
    let has_attributes = xattr::set(&path, "user.comment", b"mine").is_ok();
    // Only root can give a file away.
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
    let desk = Desk::new();
    fs::create_dir(desk.at("inner")).unwrap();
    desk.with("inner/result.csv", "old");
    symlink("inner/result.csv", desk.at("link")).unwrap();
    symlink("inner/fresh.csv", desk.at("dangling")).unwrap();
    symlink("dangling", desk.at("twice")).unwrap();
    symlink("round", desk.at("round")).unwrap();
    write(&desk.at("link"), "new").unwrap();
    write(&desk.at("twice"), "fresh").unwrap();
    for link in ["link", "dangling", "twice"] {
        assert!(desk.at(link).is_symlink(), "{link}");
    }
    assert_eq!(fs::read(desk.at("inner/result.csv")).unwrap(), b"new");
    assert_eq!(fs::read(desk.at("inner/fresh.csv")).unwrap(), b"fresh");
    complaint(write(&desk.at("round"), ""));
}

#[test]
fn all_names_of_a_file_get_the_result() {
    let desk = Desk::new();
    let path = desk.with("result.csv", "a longer one");
    fs::hard_link(&path, desk.at("other.csv")).unwrap();
    write(&path, "new").unwrap();
    assert_eq!(fs::read(desk.at("other.csv")).unwrap(), b"new");
    assert_eq!(desk.names(), ["other.csv", "result.csv"]);
}

#[test]
fn a_pipe_and_a_device_are_written_in_place() {
    let desk = Desk::new();
    let pipe = desk.at("pipe");
    assert!(node(&pipe, &["p"]), "anybody can make a pipe");
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    write(&pipe, "through it").unwrap();
    assert_eq!(reader.join().unwrap(), b"through it");
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());

    // As /dev/null and /dev/full, on this desk. A folder that forbids devices refuses to open them.
    let (null, full) = (desk.at("null"), desk.at("full"));
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
fn an_input_is_no_output_whatever_its_name() {
    let desk = Desk::new();
    let input = desk.with("my.pcap", "packets");
    symlink("my.pcap", desk.at("link")).unwrap();
    fs::hard_link(&input, desk.at("hard")).unwrap();
    for name in ["my.pcap", "./my.pcap", "link", "hard"] {
        let mut targets = Targets::beside([input.as_path()]);
        let refusal = complaint(targets.open(&desk.at(name)));
        assert!(refusal.contains("reads"), "{refusal}");
    }
    assert_eq!(fs::read(&input).unwrap(), b"packets");
}

#[test]
fn no_output_is_written_twice() {
    let desk = Desk::new();
    symlink("fresh", desk.at("link")).unwrap();
    let mut targets = Targets::beside([]);
    let _fresh = targets.open(&desk.at("fresh")).unwrap();
    let refusal = complaint(targets.open(&desk.at("link")));
    assert!(refusal.contains("is written too"), "{refusal}");
    let _other = targets.open(&desk.at("other")).unwrap();
}

/// Where a file system gives no name to a file without one.
#[test]
fn a_draft_that_can_get_no_name_is_copied() {
    let desk = Desk::new();
    let mut draft = tempfile::tempfile_in(desk.0.path()).unwrap();
    draft.write_all(b"all of it").unwrap();
    let (_, name) = named(&draft, desk.0.path()).unwrap();
    assert_eq!(fs::read(&name).unwrap(), b"all of it");
    drop(name);
    assert_eq!(desk.names(), Vec::<String>::new());
}
