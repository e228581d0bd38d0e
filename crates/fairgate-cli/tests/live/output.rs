//! Messages and the status of a run. Forwarding never waits for a reader.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use fairgate_live::testbed::Network;
use nix::sys::signal::Signal;

use crate::common::program::Program;
use crate::common::{live, output, until};
use crate::harness::{code_and_message, ping, refusal};
use crate::run::{PLAIN, Run};

/// At its end a run prints the totals of each direction. All classes are printed only if that is asked for.
#[test]
fn classes_are_printed_at_the_end_if_asked_for() {
    let Some(_watched) = live("classes_are_printed_at_the_end_if_asked_for") else {
        return;
    };
    let network = Network::build().unwrap();
    let tree = "discipline = \"htb\"\ndefault = 20\nclass = [{ id = 1, rate = \"1gbit\" }, \
        { id = 20, parent = 1, rate = \"1gbit\", discipline = \"codel\" }]\n";
    let configuration =
        format!("[queue.line]\n{tree}{PLAIN}left_to_right = \"line\"\nright_to_left = \"line\"\n");
    for (words, are_printed) in [(&["run"][..], false), (&["run", "--tables"], true)] {
        let mut run = Run::spawn(&network.router, &configuration, words, |_| {}).wait();
        run.signal(Signal::SIGINT);
        let output = run.output();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.matches("\nhtb ").count(), 2, "{text}");
        for row in ["  20: codel ", "  1: classes "] {
            assert_eq!(
                text.matches(row).count(),
                if are_printed { 2 } else { 0 },
                "{row}: {text}"
            );
        }
    }
}

/// Returns a stream that is always full.
fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").unwrap().into()
}

/// Output is closed, full, or a pipe that nobody reads. Frames pass, reloads work, and the run ends on
/// request.
#[test]
fn forwarding_depends_on_no_reader() {
    let Some(_watched) = live("forwarding_depends_on_no_reader") else {
        return;
    };
    for kind in ["closed", "full", "unread"] {
        let network = Network::build().unwrap();
        let mut unread = None;
        let prepare = |command: &mut Command| match kind {
            "closed" => {
                let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
                let shell = "exec \"$0\" \"$@\" >&- 2>&-";
                let program = command.get_program().to_owned();
                *command = Command::new("sh");
                command.args(["-c", shell]).arg(program).args(arguments);
            }
            "full" => {
                command.stdout(full()).stderr(full());
            }
            _ => {
                let (reader, writer) = std::io::pipe().unwrap();
                nix::fcntl::fcntl(&writer, nix::fcntl::FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
                command.stdout(writer.try_clone().unwrap()).stderr(writer);
                unread = Some(reader);
            }
        };
        let mut run = Run::spawn(&network.router, PLAIN, &["run"], prepare).wait();
        // An invalid file causes long messages, in total more than a pipe can hold.
        let file = run.folder.path().join("run.toml");
        fs::write(&file, "[run]\nnonsense = 1\n").unwrap();
        for _ in 0..50 {
            run.signal(Signal::SIGHUP);
            run.status();
        }
        assert!(ping(&network, Network::RIGHT), "{kind}");
        run.signal(Signal::SIGTERM);
        until(&format!("{kind}: the run answers no more"), || {
            run.remote().status(false).is_err()
        });
        // A late reader finds the messages for which the pipe had room.
        let mut text = String::new();
        if let Some(mut reader) = unread {
            reader.read_to_string(&mut text).unwrap();
            assert!(text.contains("nonsense"), "{text}");
        }
        let code = run.output().status.code();
        // If the final status cannot be written, the exit code reports an error of the environment.
        let expected = if kind == "full" { Some(3) } else { Some(0) };
        assert_eq!(code, expected, "{kind}");
    }
}

/// Runs `fairgate status --socket PATH` and returns exit code and message.
fn status_of(path: &std::path::Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    let command = command.args(["status", "--json", "--socket"]).arg(path);
    code_and_message(&output(command))
}

#[test]
fn a_stopped_run_is_reported_as_stopped() {
    let Some(_watched) = live("a_stopped_run_is_reported_as_stopped") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, PLAIN);
    let id = run.status().pid;
    run.signal(Signal::SIGSTOP);
    let (code, message) = status_of(&run.socket);
    run.signal(Signal::SIGCONT);
    assert_eq!(code, Some(3));
    assert!(
        message.contains(&format!("process {id} does not answer: it is stopped")),
        "{message}"
    );
    assert!(run.status().uptime_s > 0.0);
    run.stop();
}

/// The answer of another user's process is not accepted as that of a run.
#[test]
fn another_users_answer_is_refused() {
    let Some(_watched) = live("another_users_answer_is_refused") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let socket = folder.path().join("evil.sock");
    // Perl is part of every Debian.
    let script = format!(
        "use Socket; socket(my $s, PF_UNIX, SOCK_STREAM, 0); bind($s, sockaddr_un('{}')); listen($s, 1); \
         accept(my $c, $s); syswrite($c, '{{}}');",
        socket.display()
    );
    let mut perl = Command::new("perl");
    let _other = Program::start(perl.args(["-e", &script]).uid(65534).gid(65534));
    until("the other user listens", || socket.exists());
    let (code, message) = status_of(&socket);
    assert_eq!(code, Some(3));
    assert!(
        message.contains("that answers belongs to user 65534"),
        "{message}"
    );
}

#[test]
fn a_file_at_the_sockets_path_is_kept() {
    let Some(_watched) = live("a_file_at_the_sockets_path_is_kept") else {
        return;
    };
    let network = Network::build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (file, run) = (folder.path().join("precious"), folder.path().join("run.toml"));
    fs::write(&file, "precious").unwrap();
    fs::write(&run, PLAIN).unwrap();
    let mut command = network.router.command(env!("CARGO_BIN_EXE_fairgate"));
    let output = output(command.args(["run", "--socket"]).args([&file, &run]));
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("is not a socket"), "{said}");
    let mut text = String::new();
    File::open(&file).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "precious");
}

/// These trees could not forward anything between these interfaces.
#[test]
fn trees_that_would_drop_every_frame_are_refused() {
    let Some(_watched) = live("trees_that_would_drop_every_frame_are_refused") else {
        return;
    };
    let network = Network::build().unwrap();
    let shaped = |burst: &str| {
        format!(
            "[queue.wan]\ndiscipline = \"tbf\"\nrate = \"20mbit\"\nburst = \"{burst}\"\n\
             inner = {{ discipline = \"fq_codel\" }}\n{PLAIN}left_to_right = \"wan\"\n"
        )
    };
    let (code, message) = refusal(&network.router, &shaped("1000b"));
    assert_eq!(code, Some(2));
    assert!(
        message.contains("`burst`") && message.contains("would be dropped"),
        "{message}"
    );
    Run::start(&network.router, &shaped("5kb")).stop();
    for interface in ["left", "right"] {
        network
            .router
            .ip(&["link", "set", interface, "mtu", "9000"])
            .unwrap();
    }
    let (code, message) = refusal(&network.router, &shaped("5kb"));
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("`burst`"), "{message}");
    Run::start(&network.router, &shaped("20kb")).stop();

    let marked = format!(
        "[queue.wan]\ndiscipline = \"drr\"\n[[queue.wan.class]]\nid = 1\ndiscipline = \"fifo\"\n\
         [[queue.wan.filter]]\nmark = 6\nclass = 1\n{PLAIN}left_to_right = \"wan\"\n"
    );
    let (code, message) = refusal(&network.router, &marked);
    assert_eq!(code, Some(2));
    assert!(message.contains("mark"), "{message}");
}

/// The run says how frames get to it, and why. A flag names the back end, also when the file is read again.
#[test]
fn the_back_ends_are_named_with_the_reason() {
    let Some(_watched) = live("the_back_ends_are_named_with_the_reason") else {
        return;
    };
    let network = Network::build().unwrap();
    let configuration = "[run]\nleft = \"left\"\nright = \"tap:fg0\"\n";
    let words = ["run", "--backend", "packet"];
    let mut run = Run::spawn(&network.router, configuration, &words, |_| {}).wait();
    run.signal(Signal::SIGHUP);
    until("the file is read again", || run.status().changes.applied > 0);
    run.signal(Signal::SIGINT);
    let said = run.output().stderr;
    let said = String::from_utf8_lossy(&said);
    for line in [
        "`left`: packet sockets (AF_PACKET), because the configuration names it",
        "`fg0`: a TAP device, because the configuration names it",
        "its queues are active",
    ] {
        assert!(said.contains(line), "{said}");
    }
    let other = format!("{PLAIN}backend = \"carrier pigeon\"\n");
    let (code, message) = refusal(&network.router, &other);
    assert_eq!(code, Some(2));
    assert!(message.contains("carrier pigeon"), "{message}");
}
