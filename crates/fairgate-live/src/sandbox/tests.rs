//! What a confined thread may still do. Each test confines a thread of its own, and nothing else of the test.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::thread;

use fairgate_config::Document;

use super::*;
use crate::testing::say;

const PLAN: &str = "[run]\nleft = \"a\"\nright = \"b\"\n";

fn plan(text: &str) -> Plan {
    Plan::read(&Document::parse("run.toml", text).unwrap()).unwrap()
}

/// Runs `work` on a confined thread.
fn confined<T: Send>(plan: &Plan, later: &LaterFiles<'_>, work: impl FnOnce(&Confined) -> T + Send) -> T {
    let sandbox = Sandbox::new(plan, later);
    thread::scope(|scope| {
        let thread = scope.spawn(|| work(&sandbox.enter()));
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn is_refused<T>(result: std::io::Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// A file that is replaced, as an editor does it, is read again, and so is one behind a symbolic link. Files
/// elsewhere are not, and nothing is written.
#[test]
fn only_the_files_of_the_run_can_be_used() {
    let (folder, elsewhere, sockets) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let [file, target, other] = [
        folder.path().join("run.toml"),
        elsewhere.path().join("target"),
        sockets.path().join("other"),
    ];
    for file in [&file, &target, &other] {
        fs::write(file, "old").unwrap();
    }
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let socket = sockets.path().join("run.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    let files = [file.clone(), link.clone()];
    let later = LaterFiles {
        read: &files,
        socket: &socket,
        api: None,
        kept: &[],
        written: &[],
    };
    confined(&plan(PLAN), &later, |confined| {
        let Ok(version) = confined.files else {
            say(&format!(
                "SKIPPED: only_the_files_of_the_run_can_be_used: {confined}"
            ));
            return;
        };
        assert!(version >= 1);
        for file in [&file, &link] {
            assert_eq!(fs::read_to_string(file).unwrap(), "old");
        }
        // Another thread is not confined.
        let new = folder.path().join("new");
        assert!(is_refused(fs::write(&new, "new")));
        assert!(is_refused(File::options().append(true).open(&file)));
        for file in [
            Path::new("/etc/passwd"),
            &other,
            &std::env::current_exe().unwrap(),
        ] {
            assert!(is_refused(File::open(file)), "{}", file.display());
        }
        assert!(is_refused(fs::read_dir("/")));

        // The socket is removed in the end, and none is made in its place.
        UnixStream::connect(&socket).unwrap();
        fs::remove_file(&socket).unwrap();
        assert!(is_refused(UnixListener::bind(&socket)));
        assert!(is_refused(fs::create_dir(sockets.path().join("folder"))));
        // Files of the kernel about this thread.
        fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    });
    let new = folder.path().join("new");
    fs::write(&new, "new").unwrap();
    confined(&plan(PLAN), &later, |confined| {
        let whole = confined.files.is_ok();
        thread::scope(|scope| {
            // A thread that a confined one starts is confined, too.
            let inner = scope.spawn(|| is_refused(File::open("/etc/passwd")));
            assert_eq!(inner.join().unwrap(), whole);
        });
    });
    let (replaced, replace) = std::sync::mpsc::channel::<()>();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let sandbox = Sandbox::new(&plan(PLAN), &later);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            sandbox.enter();
            ready.send(()).unwrap();
            let replace = replace;
            replace.recv().unwrap();
            fs::read_to_string(&file).unwrap()
        });
        is_ready.recv().unwrap();
        fs::rename(&new, &file).unwrap();
        replaced.send(()).unwrap();
        assert_eq!(reader.join().unwrap(), "new");
    });
}

/// A file that is kept can be replaced, and nothing else be written.
#[test]
fn the_file_that_is_kept_can_be_replaced() {
    let [kept, other] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let path = kept.path().join("kept");
    let socket = other.path().join("sock");
    let kept_files = [path.clone()];
    for is_kept in [true, false] {
        let later = LaterFiles {
            read: &[],
            socket: &socket,
            api: None,
            kept: if is_kept { &kept_files } else { &[] },
            written: &[],
        };
        confined(&plan(PLAN), &later, |confined| {
            if !confined.is_whole() {
                say(&format!(
                    "SKIPPED: the_file_that_is_kept_can_be_replaced: {confined}"
                ));
                return;
            }
            let replace = || {
                let folder = fairgate_config::folder::Folder::of(&path)?;
                let mut file = folder.create_own("new".as_ref())?;
                std::io::Write::write_all(&mut file, b"new")?;
                file.sync_all()?;
                folder.rename("new".as_ref(), "kept".as_ref())
            };
            match is_kept {
                true => replace().unwrap(),
                false => assert!(is_refused(replace())),
            }
            assert!(is_refused(fs::write(other.path().join("file"), "new")));
        });
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}

/// A file that clients change can be replaced by its folder's name for it, also behind a link, and gets the
/// permissions of the old one. Nothing is written elsewhere, and nothing if no file is to be written.
#[test]
fn a_file_that_clients_change_can_be_replaced() {
    let [lists, links, other] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let list = lists.path().join("list.csv");
    fs::write(&list, "old").unwrap();
    let link = links.path().join("link.csv");
    std::os::unix::fs::symlink(&list, &link).unwrap();
    let socket = other.path().join("sock");
    let read = [link.clone()];
    for is_written in [true, false] {
        let later = LaterFiles {
            read: &read,
            socket: &socket,
            api: None,
            kept: &[],
            written: if is_written { &read } else { &[] },
        };
        confined(&plan(PLAN), &later, |confined| {
            if !confined.is_whole() {
                say(&format!(
                    "SKIPPED: a_file_that_clients_change_can_be_replaced: {confined}"
                ));
                return;
            }
            let replace = || {
                let (folder, name) = fairgate_config::folder::Folder::end_of(&link)?;
                folder.check_writable()?;
                let mut file = folder.create_new(".new".as_ref())?;
                file.set_permissions(fs::metadata(&list)?.permissions())?;
                std::os::unix::fs::fchown(&file, None, Some(nix::unistd::getegid().as_raw()))?;
                std::io::Write::write_all(&mut file, b"new")?;
                file.sync_all()?;
                folder.rename(".new".as_ref(), &name)?;
                folder.sync()
            };
            match is_written {
                true => replace().unwrap(),
                false => assert!(is_refused(replace())),
            }
            for folder in [&links, &other] {
                assert!(is_refused(fs::write(folder.path().join("file"), "new")));
            }
        });
    }
    assert_eq!(fs::read_to_string(&list).unwrap(), "new");
}

/// Programs are not executed, and sockets of the Internet are not opened, with what an API with a group needs
/// and without.
#[test]
fn calls_that_a_run_does_not_need_are_refused() {
    let socket = Path::new("/tmp/run.sock");
    let later = LaterFiles {
        read: &[],
        socket,
        api: None,
        kept: &[],
        written: &[],
    };
    let with_group = format!("{PLAN}api = \"unix:/tmp/api.sock\"\napi_group = \"root\"\n");
    for text in [PLAN, &with_group] {
        confined(&plan(text), &later, |confined| {
            let Ok(count) = confined.calls else {
                say(&format!(
                    "SKIPPED: calls_that_a_run_does_not_need_are_refused: {confined}"
                ));
                return;
            };
            assert!((80..160).contains(&count), "{count}");
            assert!(is_refused(Command::new("true").status()));
            assert!(is_refused(TcpListener::bind("127.0.0.1:0")));
            // Threads start, though the filter can't look at the arguments of `clone3`.
            assert_eq!(thread::scope(|scope| scope.spawn(|| 5).join().unwrap()), 5);
        });
    }
}

/// Runs `act` on a thread to which these calls are forbidden, as a container or a unit may do it.
#[cfg(target_arch = "x86_64")]
fn without(calls: &[libc::c_long], act: impl FnOnce() + Send) {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

    let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let processor = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, processor).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            apply_filter(&program).unwrap();
            act();
        });
    });
}

/// A call that is blocked is not taken for a kernel that lacks it, or for missing capabilities.
#[cfg(target_arch = "x86_64")]
#[test]
fn blocked_calls_are_called_blocked() {
    use crate::attach::Switch;
    use crate::error::LiveError;
    use crate::sys::bpf::may_use_programs;

    let later = LaterFiles {
        read: &[],
        socket: Path::new("/tmp/run.sock"),
        api: None,
        kept: &[],
        written: &[],
    };
    let plan = plan(PLAN);
    without(&[libc::SYS_landlock_create_ruleset], || {
        let why = super::files::Files::new(&plan, &later).and_then(|files| files.enter());
        let why = why.unwrap_err();
        assert!(
            why.starts_with("the calls of Landlock are blocked (EPERM), by a filter"),
            "{why}"
        );
    });
    for call in [libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self] {
        if super::files::Files::new(&plan, &later).is_err() {
            say("SKIPPED: blocked_calls_are_called_blocked: this kernel has no Landlock\n");
            break;
        }
        without(&[call], || {
            let why = super::files::Files::new(&plan, &later).and_then(|files| files.enter());
            let why = why.unwrap_err();
            assert!(why.contains("blocked (EPERM)"), "{why}");
        });
    }
    without(&[libc::SYS_bpf], || {
        let error = LiveError::bpf("taking")(Switch::new().unwrap_err());
        match may_use_programs() {
            true => assert!(matches!(error, LiveError::Blocked { .. }), "{error}"),
            false => assert!(matches!(error, LiveError::Privileges { .. }), "{error}"),
        }
    });
}
