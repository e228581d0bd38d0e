//! What a service manager is told. Each test has a socket in the role of systemd's.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fairgate_live::testbed::Network;
use fairgate_run::running;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use serde_json::Value;

use crate::common::program::Program;
use crate::common::{live, output, until};
use crate::privileges::{NEEDED, holds};
use crate::run::{PLAIN, Run, TWO_WORKERS, plain, succeeds, transfer};

/// A socket in the role of the service manager's.
struct Listener(UnixDatagram);

/// The assignments of a message.
type Message = BTreeMap<String, String>;

impl Listener {
    fn at(path: &Path) -> Listener {
        Listener(UnixDatagram::bind(path).unwrap())
    }

    /// Returns the next message, if one comes in this time.
    fn within(&self, time: Duration) -> Option<Message> {
        self.0.set_read_timeout(Some(time)).unwrap();
        let mut bytes = [0; 4096];
        let length = match self.0.recv(&mut bytes) {
            Ok(length) => length,
            // A wait with a limit ends if the process is stopped and goes on, whatever handles the signal.
            Err(error) if error.kind() == ErrorKind::Interrupted => return self.within(time),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return None,
            Err(error) => panic!("{error}"),
        };
        let text = std::str::from_utf8(&bytes[..length]).unwrap();
        let assignment = |line: &str| {
            let (name, value) = line.split_once('=').expect("sd_notify(3): assignments");
            (name.to_owned(), value.to_owned())
        };
        Some(text.lines().map(assignment).collect())
    }

    /// Waits for the next message that is not a sign of life.
    fn next(&self) -> Message {
        let mut message = None;
        until("the manager is told something", || {
            message = self
                .within(Duration::from_millis(100))
                .filter(|message| !message.contains_key("WATCHDOG"));
            message.is_some()
        });
        message.unwrap()
    }

    /// Waits for a sign of life.
    fn sign_of_life(&self) {
        until("the manager is told that the run works", || {
            self.within(Duration::from_millis(100))
                .is_some_and(|message| message["WATCHDOG"] == "1")
        });
    }
}

/// Starts a run whose manager listens at `address`.
fn start(network: &Network, configuration: &str, address: &str, prepare: impl FnOnce(&mut Command)) -> Run {
    Run::spawn(&network.router, configuration, &["run", "--json"], |command| {
        command.env("NOTIFY_SOCKET", address);
        prepare(command);
    })
}

/// Returns whether the right host answers one packet within these seconds.
fn answers_once(network: &Network, seconds: u32) -> bool {
    let seconds = seconds.to_string();
    succeeds(
        &network.left,
        "ping",
        &["-n", "-c", "1", "-W", &seconds, Network::RIGHT],
    )
}

fn microseconds_since_boot() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    now.tv_sec() as u64 * 1_000_000 + now.tv_nsec() as u64 / 1000
}

/// When the manager is told that the run is ready, packets pass at once in both directions: the first `ping`
/// is answered. With an abstract address and with a path, and with one worker and two.
#[test]
fn the_manager_is_told_when_packets_pass_what_is_reloaded_and_the_end() {
    let Some(_watched) = live("the_manager_is_told_when_packets_pass_what_is_reloaded_and_the_end") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    for (is_abstract, configuration) in [(false, PLAIN.to_owned()), (true, plain(TWO_WORKERS))] {
        let network = Network::build().unwrap();
        // An abstract name belongs to the network namespace of the process.
        let (listener, address) = if is_abstract {
            let name = b"fairgate-test/notify";
            let bind = || UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap();
            let listener = Listener(network.router.enter(bind).unwrap());
            (listener, "@fairgate-test/notify".to_owned())
        } else {
            (Listener::at(&path), path.display().to_string())
        };
        assert!(!answers_once(&network, 1), "nothing forwards yet");
        let run = start(&network, &configuration, &address, |_| {});
        let ready = listener.next();
        assert_eq!(ready["READY"], "1", "{ready:?}");
        assert_eq!(ready["STATUS"], "Forwarding between left and right.");
        assert!(answers_once(&network, 10), "the first packet passes");
        transfer(&network, &format!("{}:5001", Network::RIGHT), "a ready run");

        // A reload that is made, and one that is refused.
        let file = run.folder.path().join("run.toml");
        let queue = "left_to_right = \"q\"\n[queue.q]\ndiscipline = \"fifo\"\n";
        for (text, became) in [
            (format!("{configuration}{queue}"), "its queues are active."),
            (
                "[run]\nleft = 5\n".to_owned(),
                "was not applied; the run continues unchanged.",
            ),
        ] {
            fs::write(&file, text).unwrap();
            let before = microseconds_since_boot();
            run.signal(Signal::SIGHUP);
            let reloading = listener.next();
            assert_eq!(reloading["RELOADING"], "1", "{reloading:?}");
            let at: u64 = reloading["MONOTONIC_USEC"].parse().unwrap();
            assert!(
                (before..=microseconds_since_boot()).contains(&at),
                "{before} {at}"
            );
            let ready = listener.next();
            assert_eq!(ready["READY"], "1", "{ready:?}");
            assert!(ready["STATUS"].ends_with(became), "{ready:?}");
        }

        run.signal(Signal::SIGTERM);
        let stopping = listener.next();
        assert_eq!(stopping["STOPPING"], "1", "{stopping:?}");
        let mut run = run;
        assert_eq!(run.output().status.code(), Some(0));
        assert_eq!(
            listener.within(Duration::from_millis(200)),
            None,
            "nothing follows the end"
        );
    }
}

/// Runs `fairgate reload` or `stop` for a run. Returns its exit code and what it says.
fn tell(network: &Network, run: &Run, what: &str) -> (Option<i32>, String) {
    let socket = run.socket.to_str().unwrap();
    let mut command = network.router.command(env!("CARGO_BIN_EXE_fairgate"));
    let output = output(command.args([what, "--socket", socket]));
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

/// Who has the file read again by a command hears what became of it, with the places of mistakes.
#[test]
fn a_reload_by_command_says_what_became_of_it() {
    let Some(_watched) = live("a_reload_by_command_says_what_became_of_it") else {
        return;
    };
    let network = Network::build().unwrap();
    let mut run = Run::start(&network.router, PLAIN);
    let file = run.folder.path().join("run.toml");
    let queue = "left_to_right = \"q\"\n[queue.q]\ndiscipline = \"fifo\"\n";
    fs::write(&file, format!("{PLAIN}{queue}")).unwrap();
    let (code, said) = tell(&network, &run, "reload");
    assert!(
        code == Some(0) && said.starts_with("Changed. Forwarding paused for "),
        "{said}"
    );
    assert_eq!(run.status().revision, 1);
    for (text, why) in [
        (
            format!("{PLAIN}{}", queue.replace("fifo", "fivo")),
            "run.toml:6:14: ",
        ),
        (
            PLAIN.replace("right\"", "other\""),
            "`right` in [run] has changed",
        ),
    ] {
        fs::write(&file, text).unwrap();
        let (code, said) = tell(&network, &run, "reload");
        assert!(code == Some(2) && said.contains(why), "{code:?} {said}");
    }
    assert_eq!(run.status().revision, 1);
    let audit = run.said();
    assert!(
        audit.contains("audit: uid 0, pid ") && audit.contains(": made, revision 1"),
        "{audit}"
    );
    let pid = run.status().pid;
    let (code, said) = tell(&network, &run, "stop");
    assert_eq!(
        (code, said.contains(&format!("(process {pid}) has ended"))),
        (Some(0), true),
        "{said}"
    );
    // Its interfaces are free: another one may take them.
    Run::start(&network.router, PLAIN).stop();
    assert!(run.output().status.success());
}

fn rename(network: &Network, from: &str, to: &str) {
    for words in [
        ["link", "set", from, "down"].as_slice(),
        &["link", "set", from, "name", to],
        &["link", "set", to, "up"],
    ] {
        network.router.ip(words).unwrap();
    }
}

/// A service whose interface comes late waits for it. Its manager and its log say for what, the log once, and
/// SIGHUP does not end it.
#[test]
fn a_run_waits_for_its_interface() {
    let Some(_watched) = live("a_run_waits_for_its_interface") else {
        return;
    };
    let network = Network::build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let listener = Listener::at(&path);
    rename(&network, "right", "late");
    let begin = || {
        Run::spawn(&network.router, PLAIN, &["run", "--json", "--wait"], |command| {
            command.env("NOTIFY_SOCKET", &path);
        })
    };
    let waiting = "Waiting: there is no interface `right` in this network namespace.";
    let run = begin();
    for _ in 0..2 {
        let told = listener.next();
        assert_eq!(told["STATUS"], waiting);
        assert!(!told.contains_key("READY"), "{told:?}");
        run.signal(Signal::SIGHUP);
    }
    rename(&network, "late", "right");
    let mut told = listener.next();
    while told["STATUS"] == waiting {
        told = listener.next();
    }
    assert_eq!(
        (told["READY"].as_str(), told["STATUS"].as_str()),
        ("1", "Forwarding between left and right.")
    );
    assert!(answers_once(&network, 10));
    let said = run.said();
    assert_eq!(said.matches("waiting: ").count(), 1, "{said}");
    run.stop();

    rename(&network, "right", "late");
    let mut run = begin();
    while listener.next()["STATUS"] != waiting {}
    run.signal(Signal::SIGTERM);
    assert_eq!(run.output().status.code(), Some(0), "a stop ends the wait");
}

/// After a bad edit and a crash, a run begins with what has forwarded last, and says so wherever somebody
/// looks. When the file is right again, it is taken over.
#[test]
fn a_run_whose_file_is_refused_begins_with_the_last_good_one() {
    let Some(_watched) = live("a_run_whose_file_is_refused_begins_with_the_last_good_one") else {
        return;
    };
    let network = Network::build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (file, list, copy) = (at("run.toml"), at("list.csv"), at("state/copy.json"));
    let path = at("notify");
    let listener = Listener::at(&path);
    let good = "[subscribers]\nfile = \"list.csv\"\nwatch = false\ndown = \"1gbit\"\nup = \"1gbit\"\n\n\
                [run]\nleft = \"left\"\n\
                right = \"right\"\nleft_to_right = \"down\"\nright_to_left = \"up\"\n";
    let good = good.replace("list.csv", list.to_str().unwrap());
    let subscribers = "id,prefixes,down,up\nanna,10.9.0.2,20mbit,5mbit\n";
    let begin = || {
        let socket = at("sock");
        let mut command = network.router.command(env!("CARGO_BIN_EXE_fairgate"));
        command.args(["run", "--json", "--socket"]).arg(&socket);
        command.arg("--last-good").arg(&copy).arg(&file);
        command.env("NOTIFY_SOCKET", &path);
        Run {
            program: Some(Program::start(&mut command)),
            folder: tempfile::tempdir().unwrap(),
            socket,
        }
    };
    let crash = |mut run: Run| {
        run.signal(Signal::SIGKILL);
        run.output();
    };
    // Nothing has forwarded yet.
    fs::write(&file, "[run]\nleft = 5\n").unwrap();
    fs::write(&list, subscribers).unwrap();
    let output = begin().output();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("no configuration has forwarded yet"), "{said}");

    fs::write(&file, &good).unwrap();
    let run = begin().wait();
    until("what forwards is kept", || copy.exists());
    assert_eq!(run.status().fallback, None);
    assert_eq!(listener.next()["STATUS"], "Forwarding between left and right.");
    crash(run);
    // The file, its list, or both are damaged or gone.
    type Spoil<'a> = &'a dyn Fn();
    let spoils: [(Spoil<'_>, &str); 3] = [
        (
            &|| fs::write(&file, "[run]\nleft = 5\n").unwrap(),
            "run.toml:2:8: ",
        ),
        (
            &|| fs::write(&list, "id,prefixes,down,up\nanna,10.9.0.2,fast,5mbit\n").unwrap(),
            "list.csv:",
        ),
        (&|| fs::remove_file(&list).unwrap(), "list.csv"),
    ];
    for (spoil, why) in spoils {
        fs::write(&file, &good).unwrap();
        fs::write(&list, subscribers).unwrap();
        spoil();
        let run = begin().wait();
        let status = listener.next();
        assert!(
            status["STATUS"].contains(", with the last good configuration: "),
            "{status:?}"
        );
        let fallback = run.status().fallback.expect("it says so");
        assert!(
            fallback.contains(why) && fallback.contains(" is used instead"),
            "{fallback}"
        );
        until("the log says so", || run.said().contains("WAS REFUSED. "));
        assert!(answers_once(&network, 10));
        let (code, said) = tell(&network, &run, "reload");
        assert!(
            code == Some(2) && said.contains(why.trim_end_matches(": ")),
            "{said}"
        );
        assert_eq!(listener.next()["RELOADING"], "1");
        listener.next();
        if why == "list.csv" {
            fs::write(&list, subscribers).unwrap();
            assert_eq!(tell(&network, &run, "reload").0, Some(0));
            assert_eq!(run.status().fallback, None, "the file is what runs");
            assert_eq!(listener.next()["RELOADING"], "1");
            listener.next();
        }
        crash(run);
    }
    // A copy that others may have written is none.
    spoils[0].0();
    for spoil in [
        &|| fs::set_permissions(&copy, Permissions::from_mode(0o666)).unwrap(),
        &|| {
            fs::set_permissions(&copy, Permissions::from_mode(0o600)).unwrap();
            fs::write(&copy, "nonsense").unwrap();
        },
    ] as [&dyn Fn(); 2]
    {
        spoil();
        let output = begin().output();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            said.contains("copy.json of the last good configuration can't be used"),
            "{said}"
        );
    }
}

/// Each version that has forwarded has who brought it and why. The way back to one writes the files as they
/// were, and the run has them.
#[test]
fn a_run_returns_to_an_earlier_version() {
    let Some(_watched) = live("a_run_returns_to_an_earlier_version") else {
        return;
    };
    let network = Network::build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (file, list, copy, socket) = (at("run.toml"), at("list.csv"), at("state/copy.json"), at("sock"));
    let first = "[subscribers]\nfile = \"list.csv\"\ndown = \"1gbit\"\nup = \"1gbit\"\n\n[run]\n\
                 left = \"left\"\nright = \"right\"\nleft_to_right = \"down\"\nright_to_left = \"up\"\n";
    let subscribers = "id,prefixes,down,up\r\nanna,10.9.0.2,20mbit,5mbit\r\n";
    fs::write(&file, first).unwrap();
    fs::write(&list, subscribers).unwrap();
    let mut command = network.router.command(env!("CARGO_BIN_EXE_fairgate"));
    command.args(["run", "--json", "--socket"]).arg(&socket);
    command.arg("--last-good").arg(&copy).arg(&file);
    let run = Run {
        program: Some(Program::start(&mut command)),
        folder: tempfile::tempdir().unwrap(),
        socket: socket.clone(),
    };
    let run = run.wait();
    until("what forwards is kept", || copy.exists());
    let fairgate = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
        let output = output(command.args(words).arg("--socket").arg(&socket));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            said,
        )
    };
    let rollback = |words: &[&str]| {
        let begin = [
            "rollback",
            file.to_str().unwrap(),
            "--last-good",
            copy.to_str().unwrap(),
        ];
        fairgate(&[&begin[..], words].concat())
    };
    let whys = || {
        let (code, printed, said) = rollback(&["--json"]);
        assert_eq!(code, Some(0), "{said}");
        let document: Value = serde_json::from_str(&printed).unwrap();
        let versions = document["versions"].as_array().unwrap().clone();
        versions
            .iter()
            .map(|one| one["why"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(whys(), ["its start"]);
    assert_eq!(
        fairgate(&["subscribers", "set", "anna", "down=30mbit", "--yes"]).0,
        Some(0)
    );
    let second = first.replace("down = \"1gbit\"", "down = \"2gbit\"");
    fs::write(&file, &second).unwrap();
    assert_eq!(fairgate(&["reload", "--because", "a new line"]).0, Some(0));
    until("the version is kept", || whys().len() == 3);
    let found = whys();
    assert_eq!(
        (found[0].as_str(), found[2].as_str()),
        ("a new line", "its start")
    );
    assert!(
        found[1].contains("subscriber anna: down \"20mbit\" -> \"30mbit\""),
        "{found:?}"
    );
    let (code, shown, _) = rollback(&["1"]);
    assert_eq!(code, Some(0));
    assert!(
        shown.contains("-    3  down = \"2gbit\"\n+    3  down = \"1gbit\"\n"),
        "{shown}"
    );
    assert!(shown.contains("Nothing is changed yet"), "{shown}");
    assert_eq!(fs::read_to_string(&file).unwrap(), second);
    let limit = || {
        serde_json::to_string(&run.status())
            .unwrap()
            .contains("\"limit_bps\":2000000000")
    };
    assert!(limit());
    assert_eq!(rollback(&["9"]).0, Some(2));
    let (code, shown, said) = rollback(&["2", "--yes"]);
    assert_eq!(code, Some(0), "{shown}{said}");
    let now = || {
        (
            fs::read_to_string(&file).unwrap(),
            fs::read_to_string(&list).unwrap(),
        )
    };
    assert_eq!(now(), (first.to_owned(), subscribers.to_owned()));
    assert!(!limit());
    until("the version is kept", || whys().len() == 4);
    assert!(
        whys()[0].starts_with("rollback to version 2, of 20"),
        "{:?}",
        whys()
    );
    // A file that nobody can read any more, or that is gone.
    for spoil in [&|| fs::write(&file, "[run").unwrap(), &|| {
        fs::remove_file(&file).unwrap()
    }] as [&dyn Fn(); 2]
    {
        spoil();
        let (code, shown, said) = rollback(&["0", "--yes"]);
        assert_eq!(code, Some(0), "{shown}{said}");
        assert_eq!(now().0, first);
    }
    // The copy belongs to the run: it can't have other files written.
    let stolen = at("precious");
    fs::write(&stolen, "precious").unwrap();
    let text = fs::read_to_string(&copy).unwrap();
    let forged = text.replacen(list.to_str().unwrap(), stolen.to_str().unwrap(), 1);
    assert_ne!(text, forged);
    fs::write(&copy, forged).unwrap();
    let (_, shown, _) = rollback(&["0"]);
    assert!(shown.contains("precious stays as it is"), "{shown}");
    rollback(&["0", "--yes"]);
    assert_eq!(fs::read_to_string(&stolen).unwrap(), "precious");
    run.stop();
}

/// A run that can't begin is never ready.
#[test]
fn the_manager_of_a_run_that_can_not_begin_hears_nothing() {
    let Some(_watched) = live("the_manager_of_a_run_that_can_not_begin_hears_nothing") else {
        return;
    };
    let network = Network::build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let listener = Listener::at(&path);
    let configuration = PLAIN.replace("\"right\"", "\"nowhere\"");
    let mut run = start(&network, &configuration, &path.display().to_string(), |_| {});
    assert_eq!(run.output().status.code(), Some(3));
    assert_eq!(listener.within(Duration::from_millis(200)), None);
}

/// Stops one thread of another process, as nothing but a debugger can, until this is dropped.
struct Frozen(Pid);

impl Frozen {
    fn new(thread: i32) -> Frozen {
        let thread = Pid::from_raw(thread);
        ptrace::seize(thread, ptrace::Options::empty()).unwrap();
        ptrace::interrupt(thread).unwrap();
        waitpid(thread, Some(WaitPidFlag::__WALL)).unwrap();
        Frozen(thread)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // It fails only if the process has ended.
        let _ = ptrace::detach(self.0, None);
    }
}

/// Returns the threads of a run that forward: the first one, and those of further workers.
fn forwarding_threads(run: &Run) -> Vec<i32> {
    let process = run.program.as_ref().expect("the run has not ended").id() as i32;
    let mut threads = vec![process];
    for thread in fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let thread = thread.unwrap();
        let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        if name.starts_with("worker ") {
            threads.push(thread.file_name().into_string().unwrap().parse().unwrap());
        }
    }
    threads
}

/// An idle run gives signs of life. If one forwarding thread hangs, whichever it is, they end, though all
/// other threads go on; when it goes on, they come again.
#[test]
fn signs_of_life_end_when_a_forwarding_thread_hangs() {
    let Some(_watched) = live("signs_of_life_end_when_a_forwarding_thread_hangs") else {
        return;
    };
    let network = Network::build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let listener = Listener::at(&path);
    let watchdog = Duration::from_millis(800);
    let run = start(
        &network,
        &plain(TWO_WORKERS),
        &path.display().to_string(),
        |command| {
            command.env("WATCHDOG_USEC", watchdog.as_micros().to_string());
        },
    );
    assert_eq!(listener.next()["READY"], "1");
    listener.sign_of_life();
    listener.sign_of_life();
    let threads = forwarding_threads(&run);
    assert_eq!(threads.len(), 2);
    for thread in threads {
        let frozen = Frozen::new(thread);
        // Signs that were given just before. The next one is due much later than the time waited here.
        while listener.within(Duration::from_millis(50)).is_some() {}
        assert_eq!(listener.within(2 * watchdog), None, "thread {thread} hangs");
        drop(frozen);
        listener.sign_of_life();
    }
    run.stop();
}

/// The watchdog of another process, and one that is off, are none. A manager that can't be reached is named,
/// and the run goes on without it.
#[test]
fn managers_that_want_nothing_or_can_not_be_reached() {
    let Some(_watched) = live("managers_that_want_nothing_or_can_not_be_reached") else {
        return;
    };
    let network = Network::build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let listener = Listener::at(&path);
    let address = path.display().to_string();
    for (micros, process) in [("20000", Some("1")), ("0", None), ("", None)] {
        let run = start(&network, PLAIN, &address, |command| {
            command.env("WATCHDOG_USEC", micros);
            if let Some(process) = process {
                command.env("WATCHDOG_PID", process);
            }
        });
        assert_eq!(listener.next()["READY"], "1");
        assert_eq!(listener.within(Duration::from_millis(200)), None, "{micros}");
        let says = "WATCHDOG_USEC=\"\" is not a number of microseconds";
        assert_eq!(run.said().contains(says), micros.is_empty(), "{}", run.said());
        run.stop();
        assert_eq!(listener.next()["STOPPING"], "1");
    }
    for (address, why) in [
        ("vsock:2:1", "neither a path nor an abstract name"),
        ("/nowhere/at/all", "No such file"),
    ] {
        let run = start(&network, PLAIN, address, |_| {}).wait();
        until("the run says why", || {
            run.said()
                .contains(&format!("NOTIFY_SOCKET={address:?} can't be used: "))
                && run.said().contains(why)
        });
        run.stop();
    }
}

/// The folder of services' sockets, and its owner. It is removed if it was made for this test.
struct Services {
    user: u32,
    is_ours: bool,
}

const SERVICES: &str = "/run/fairgate/service";

impl Services {
    fn find() -> Services {
        if let Ok(found) = fs::metadata(SERVICES) {
            let user = found.uid();
            return Services { user, is_ours: false };
        }
        let user = 65534;
        fs::create_dir_all(SERVICES).unwrap();
        fs::set_permissions("/run/fairgate", Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(SERVICES, Permissions::from_mode(0o755)).unwrap();
        chown(SERVICES, Some(user), Some(user)).unwrap();
        Services { user, is_ours: true }
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = fs::remove_dir(SERVICES);
        }
    }
}

/// As the unit of systemd starts it: by a user of its own, who has three capabilities. The run keeps them and
/// gains none, forwards, and root can ask for its state. Not every machine lets a test give a user the limit
/// for real-time scheduling that the unit has.
#[test]
fn a_user_who_has_three_capabilities_can_run_it() {
    let Some(_watched) = live("a_user_who_has_three_capabilities_can_run_it") else {
        return;
    };
    let network = Network::build().unwrap();
    let services = Services::find();
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    // The user may not enter the folder where it was built.
    let program = folder.path().join("fairgate");
    fs::copy(env!("CARGO_BIN_EXE_fairgate"), &program).unwrap();
    let file = folder.path().join("run.toml");
    let plain = format!("{PLAIN}realtime = false\n");
    fs::write(&file, &plain).unwrap();
    let socket = Path::new(SERVICES).join(format!("live-test-{}.sock", std::process::id()));
    let user = services.user.to_string();
    let mut command = network.router.command("setpriv");
    command
        .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
        .args([
            "--inh-caps=-all,+net_raw,+net_admin,+bpf",
            "--ambient-caps=-all,+net_raw,+net_admin,+bpf",
            "--bounding-set=-all,+net_raw,+net_admin,+bpf",
        ])
        .arg(&program)
        .args(["run", "--json", "--socket"])
        .arg(&socket)
        .arg(&file);
    let run = Run {
        program: Some(Program::start(&mut command)),
        folder,
        socket: socket.clone(),
    }
    .wait();
    holds(&run, NEEDED);
    assert_eq!(run.said(), "", "no warning");
    assert!(running().unwrap().contains(&socket));
    transfer(&network, &format!("{}:5004", Network::RIGHT), "a service");
    let queue = "left_to_right = \"q\"\n[queue.q]\ndiscipline = \"fifo\"\n";
    fs::write(&file, format!("{plain}{queue}")).unwrap();
    run.signal(Signal::SIGHUP);
    until("the file is read again", || {
        run.said().contains("its queues are active")
    });
    run.stop();
}
