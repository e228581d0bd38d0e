//! `fairgate top`: printed, and on a terminal.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use fairgate_cli::top::{Settings, Start, TopError};
use fairgate_config::Registry;
use fairgate_live::testbed::Network;
use nix::sys::signal::Signal;

use crate::common::program::Program;
use crate::common::{live, output, until};
use crate::run::Run;
use crate::terminal::OnTerminal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairgate");

const TREE: &str = "[queue.line]
discipline = \"htb\"
default = 20

[[queue.line.class]]
id = 1
rate = \"10mbit\"

[[queue.line.class]]
id = 10
parent = 1
rate = \"2mbit\"
discipline = \"fifo\"

[[queue.line.class]]
id = 20
parent = 1
rate = \"5mbit\"
ceil = \"10mbit\"
discipline = \"fq_codel\"

[run]
left = \"left\"
right = \"right\"
left_to_right = \"line\"
right_to_left = \"line\"
";

/// Packets of 1 kB in both directions, until it is dropped.
fn traffic(network: &Network) -> Program {
    let words = ["-n", "-q", "-i", "0.01", "-s", "1000", Network::RIGHT];
    Program::start(network.left.command("ping").args(words))
}

#[test]
fn one_screen_is_printed() {
    let Some(_watched) = live("one_screen_is_printed") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, TREE);
    let _traffic = traffic(&network);
    let socket = run.socket.to_str().unwrap();
    until("class 20 has sent", || {
        run.status().directions[1].tree.dequeued.packets > 10
    });
    let words = [
        "top",
        "--once",
        "--interval",
        "300ms",
        "--sort",
        "rate",
        "--socket",
        socket,
    ];
    let printed = output(Command::new(PROGRAM).args(words));
    assert_eq!(printed.status.code(), Some(0), "{printed:?}");
    let text = String::from_utf8(printed.stdout).unwrap();
    assert!(!text.contains('\x1b'), "{text}");
    for side in ["left -> right", "right -> left"] {
        assert!(text.contains(side), "{text}");
    }
    let rate = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let place = words.iter().position(|word| word.contains('.'));
        place.and_then(|place| words[place].parse::<f64>().ok())
    };
    // The class, and its parent, which has the sum: both directions.
    for class in ["20 fq_codel", "- 1 "] {
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(class)).collect();
        assert_eq!(lines.len(), 2, "{class}: {text}");
        for line in lines {
            assert!(rate(line).is_some_and(|rate| rate > 0.1), "{line}");
        }
    }
    let wrong = output(Command::new(PROGRAM).args(["top", "--once", "--from", "middle", "--socket", socket]));
    assert_eq!(wrong.status.code(), Some(2));
    let message = String::from_utf8(wrong.stderr).unwrap();
    assert!(message.contains("name left or right"), "{message}");
    run.stop();
}

/// A rate changes after a yes, in the shown direction. A value that is refused is shown with its remedy.
#[test]
fn a_rate_is_changed_on_the_screen() {
    let Some(_watched) = live("a_rate_is_changed_on_the_screen") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, TREE);
    let _traffic = traffic(&network);
    let socket = run.socket.to_str().unwrap();
    let mut top = OnTerminal::start(PROGRAM, &["top", "--interval", "100ms", "--socket", socket]);
    top.until_shown("20 fq_codel");
    top.until_shown("revision 0");
    assert!(top.has_modes_of_screen());
    top.press("\x1b[B\x1b[B\x1b[Br");
    top.until_shown("rate = 5mbit_");
    top.press("\x7f\x7f\x7f\x7f\x7f7mbit\r");
    top.until_shown("fairgate class --from left change 20 rate=7mbit");
    let trees = || run.remote().trees().unwrap();
    assert_eq!(trees().revision, 0, "nothing changes before a yes");
    top.press("y");
    top.until_shown("Changed. Forwarding paused for");
    let changed = trees();
    assert_eq!(changed.revision, 1);
    assert!(changed.directions[0].queue.contains("rate = \"7mbit\""));
    assert!(!changed.directions[1].queue.contains("7mbit"));
    top.press("x");
    top.until_shown("revision 1");
    top.until_shown("rate 7mbit");

    top.press("r");
    top.until_shown("rate = 7mbit_");
    top.press("\x7f\x7f\x7f\x7f\x7f0mbit\r");
    top.until_shown("make this change?");
    top.press("y");
    top.until_shown("not changed");
    top.until_shown("help:");
    assert_eq!(trees().revision, 1);
    top.press("xq");
    assert_eq!(top.ended().status.code(), Some(0));
    run.stop();
}

#[test]
fn a_run_that_ends_and_returns_is_shown() {
    let Some(_watched) = live("a_run_that_ends_and_returns_is_shown") else {
        return;
    };
    let network = Network::build().unwrap();
    let mut run = Run::start(&network.router, TREE);
    let socket = run.socket.clone();
    let socket = socket.to_str().unwrap();
    let mut top = OnTerminal::start(PROGRAM, &["top", "--interval", "100ms", "--socket", socket]);
    top.until_shown("20 fq_codel");
    let process = |run: &Run| format!("process {}", run.status().pid);
    top.until_shown(&process(&run));
    run.signal(Signal::SIGINT);
    assert_eq!(run.output().status.code(), Some(0));
    top.until_shown("NO ANSWER: the run has ended");
    let file = run.folder.path().join("run.toml");
    let mut again = network.router.command(PROGRAM);
    again.args(["run", "--json", "--socket", socket]).arg(file);
    run.program = Some(Program::start(&mut again));
    let run = run.wait();
    top.until_shown(&process(&run));
    top.until_shown("20 fq_codel");
    until("it is not lost any more", || !top.text().contains("NO ANSWER"));
    top.press("q");
    assert_eq!(top.ended().status.code(), Some(0));
    run.stop();
}

/// Whatever ends the screen, the terminal is as it was before.
#[test]
fn the_terminal_is_restored_however_the_screen_ends() {
    let Some(_watched) = live("the_terminal_is_restored_however_the_screen_ends") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, TREE);
    let socket = run.socket.to_str().unwrap();
    let start = || {
        let top = OnTerminal::start(PROGRAM, &["top", "--interval", "100ms", "--socket", socket]);
        top.until_shown("20 fq_codel");
        assert!(top.has_modes_of_screen());
        top
    };
    let ways: [&dyn Fn(&mut OnTerminal); 5] = [
        &|top| top.press("\x03"),
        &|top| top.signal(Signal::SIGINT),
        &|top| top.signal(Signal::SIGTERM),
        // As when the terminal is closed.
        &|top| top.signal(Signal::SIGHUP),
        &|top| top.press("?q/abc\rq"),
    ];
    for end in ways {
        let mut top = start();
        end(&mut top);
        assert_eq!(top.ended().status.code(), Some(0));
    }
    run.stop();
}

/// Names the run for [`panicking_screen`]. It is set only in the process that panics.
const PANICS_AT: &str = "FAIRGATE_TEST_TOP_PANICS_AT";

/// A thread of the screen panics: the terminal is restored, and the message is on the user's own screen. The
/// test is also the program that panics, because the real one has no such bug that is known.
#[test]
fn the_terminal_is_restored_after_a_panic() {
    if let Some(socket) = std::env::var_os(PANICS_AT) {
        panicking_screen(socket.into());
        return;
    }
    let Some(_watched) = live("the_terminal_is_restored_after_a_panic") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, TREE);
    let at = format!("{PANICS_AT}={}", run.socket.display());
    let own = std::env::current_exe().unwrap();
    let name = "top::the_terminal_is_restored_after_a_panic";
    let words = [&at, own.to_str().unwrap(), "--exact", name, "--nocapture"];
    let mut top = OnTerminal::start("env", &words);
    top.until_shown("20 fq_codel");
    top.until_shown("revision 0");
    assert!(top.has_modes_of_screen());
    top.press("\x1b[B\x1b[B\x1b[Br\r");
    top.until_shown("make this change?");
    top.press("y");
    let ended = top.ended();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(said.contains("a bug in a change"), "{said}");
    run.stop();
}

/// Shows a screen that panics when a change is made.
fn panicking_screen(socket: PathBuf) {
    let settings = Settings {
        run: socket.into(),
        interval: Duration::from_millis(100),
        registry: Registry::builtin(),
        start: Start::default(),
    };
    let ended = fairgate_cli::top::run(&settings, Arc::new(|_| panic!("a bug in a change")));
    assert!(matches!(ended, Err(TopError::Bug)), "{ended:?}");
}
