//! `fairgate doctor` on real interfaces, with what it looks for; and `fairgate` without words.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fairgate_live::testbed::{Namespace, Network};
use fairgate_run::default_socket;
use nix::sys::socket::{setsockopt, sockopt};
use serde_json::Value;

use crate::common::program::Program;
use crate::common::{live, until};
use crate::run::{Run, call, plain, succeeds};
use crate::terminal::OnTerminal;

/// A shaper for what the left host sends. Round trips are only seen where both directions are.
const SHAPED: &str = "\
[queue.up]
discipline = \"tbf\"
rate = \"20mbit\"
burst = \"20kb\"
inner = { discipline = \"fq_codel\" }

[queue.down]
discipline = \"fq_codel\"

[run]
device = \"eth0\"
ingress = \"down\"
egress = \"up\"
";

/// Joins the two hosts by a bridge of the kernel in the router. The run is on the left host.
fn joined() -> Network {
    let network = Network::build().unwrap();
    let router = &network.router;
    for command in [
        "link add br0 type bridge",
        "link set left master br0",
        "link set right master br0",
        "link set br0 up",
    ] {
        router.ip(&command.split(' ').collect::<Vec<_>>()).unwrap();
    }
    until("the hosts reach each other", || {
        let ping = ["-n", "-c", "1", "-W", "1", Network::RIGHT];
        succeeds(&network.left, "ping", &ping)
    });
    network
}

/// Starts the doctor with `--json` in a namespace.
fn doctor(namespace: &Namespace, words: &[&str]) -> Program {
    let mut command = namespace.command(env!("CARGO_BIN_EXE_fairgate"));
    Program::start(command.args(["doctor", "--json"]).args(words))
}

/// Returns its exit code and what it has found.
fn found(doctor: Program) -> (Option<i32>, Vec<Value>) {
    read(&doctor.output())
}

fn read(output: &Output) -> (Option<i32>, Vec<Value>) {
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        panic!("{error}: {said}")
    });
    assert_eq!(document["schema"], "fairgate.doctor/1", "{document}");
    let findings = document["findings"].as_array().unwrap().clone();
    (output.status.code(), findings)
}

/// Examines a run shortly.
fn of_run(namespace: &Namespace, run: &Run) -> (Option<i32>, Vec<Value>) {
    let socket = run.socket.to_str().unwrap();
    found(doctor(namespace, &["--socket", socket, "--for", "300ms"]))
}

/// The levels of a check.
fn levels<'f>(findings: &'f [Value], check: &str) -> Vec<&'f str> {
    let of_check = findings.iter().filter(|finding| finding["check"] == check);
    of_check
        .map(|finding| finding["level"].as_str().unwrap())
        .collect()
}

/// Nothing is wrong. The clock is that of the machine which runs the test; a virtual one is slow at times.
fn assert_fine(code: Option<i32>, findings: &[Value], when: &str) {
    let wrong = |finding: &&Value| finding["level"] != "ok" && finding["level"] != "note";
    let (clock, others): (Vec<&Value>, Vec<&Value>) = findings
        .iter()
        .filter(wrong)
        .partition(|finding| finding["check"] == "clock");
    assert!(others.is_empty(), "{when}: {findings:#?}");
    assert_eq!(code, Some(i32::from(!clock.is_empty())), "{when}: {findings:#?}");
}

/// Examines a run on the left host while it sends TCP to the right one.
fn loaded(network: &Network, run: &Run) -> (Option<i32>, Vec<Value>) {
    let address = format!("{}:4000", Network::RIGHT);
    let listener = network
        .right
        .enter(|| TcpListener::bind(&address))
        .unwrap()
        .unwrap();
    let doctor = doctor(
        &network.left,
        &["--socket", run.socket.to_str().unwrap(), "--for", "8s"],
    );
    // It observes flows from its start on, so it sees the first round trips of the connection.
    until("flows are observed", || {
        run.remote().flows(fairgate_run_api::FlowOrder::Rate, 1).is_ok()
    });
    let is_over = AtomicBool::new(false);
    let output = thread::scope(|scope| {
        let connect = || TcpStream::connect(&address);
        let mut sender = network.left.enter(connect).unwrap().unwrap();
        // CUBIC leaves slow start at the first delay, and fills a queue only after a while.
        setsockopt(&sender, sockopt::TcpCongestion, &"reno".into()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        for end in [&sender, &receiver] {
            end.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            end.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
        }
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _ = sender.write(&[0; 16_384]);
            }
            // What was not sent yet is discarded, so that the next flow finds an idle line.
            let linger = nix::libc::linger {
                l_onoff: 1,
                l_linger: 0,
            };
            setsockopt(&sender, sockopt::Linger, &linger).unwrap();
            drop(sender);
        });
        let is_over = &is_over;
        scope.spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            while !is_over.load(Ordering::Relaxed) {
                let _ = receiver.read(&mut bytes);
            }
        });
        let output = doctor.output();
        is_over.store(true, Ordering::Relaxed);
        output
    });
    read(&output)
}

#[test]
fn a_clean_run_is_fine_and_a_slower_line_behind_it_is_found() {
    let Some(_watched) = live("a_clean_run_is_fine_and_a_slower_line_behind_it_is_found") else {
        return;
    };
    let network = joined();
    let run = Run::start(&network.left, SHAPED);
    let (code, findings) = loaded(&network, &run);
    assert_fine(code, &findings, "on a clean line");
    assert_eq!(levels(&findings, "rate"), ["ok"], "{findings:#?}");
    // The next hop is slower than the run, and has a long queue.
    let slower = "qdisc add dev right root tbf rate 8mbit burst 10kb limit 300kb";
    call(&network.router, "tc", &slower.split(' ').collect::<Vec<_>>());
    let (code, findings) = loaded(&network, &run);
    assert_eq!(code, Some(1), "{findings:#?}");
    assert_eq!(levels(&findings, "rate"), ["problem"], "{findings:#?}");
    let rate = findings
        .iter()
        .find(|finding| finding["check"] == "rate")
        .unwrap();
    let is_idle = || {
        let shown = call(&network.router, "tc", &["-s", "qdisc", "show", "dev", "right"]);
        shown.contains("backlog 0b 0p")
    };
    until("the line is idle", is_idle);
    // The command that is proposed is one, and helps.
    let remedy = rate["remedy"].as_str().unwrap();
    let words: Vec<&str> = remedy.split(' ').skip(1).collect();
    call(&network.left, env!("CARGO_BIN_EXE_fairgate"), &words);
    let (code, findings) = loaded(&network, &run);
    assert_fine(code, &findings, &format!("after `{remedy}`"));
    run.stop();
}

#[test]
fn what_is_wrong_with_an_interface_is_found() {
    let Some(_watched) = live("what_is_wrong_with_an_interface_is_found") else {
        return;
    };
    let network = joined();
    let left = &network.left;
    let run = Run::start(left, SHAPED);
    let (_, findings) = of_run(left, &run);
    for check in ["shapers", "offloads", "burst"] {
        assert_eq!(levels(&findings, check), ["ok"], "{findings:#?}");
    }
    let shaper = "qdisc add dev eth0 root tbf rate 10mbit burst 10kb limit 100kb";
    call(left, "tc", &shaper.split(' ').collect::<Vec<_>>());
    call(left, "ethtool", &["-K", "eth0", "rx-gro-list", "on"]);
    let (code, findings) = of_run(left, &run);
    assert_eq!(code, Some(1));
    assert_eq!(levels(&findings, "shapers"), ["warning"], "{findings:#?}");
    assert_eq!(levels(&findings, "offloads"), ["warning"], "{findings:#?}");
    // What is proposed ends it.
    for check in ["shapers", "offloads"] {
        let finding = findings.iter().find(|finding| finding["check"] == check).unwrap();
        let words: Vec<&str> = finding["remedy"].as_str().unwrap().split(' ').collect();
        call(left, words[0], &words[1..]);
    }
    let (code, findings) = of_run(left, &run);
    assert_fine(code, &findings, "after what is proposed");
    run.stop();
}

#[test]
fn a_bucket_below_a_frame_is_found_in_a_file() {
    let Some(_watched) = live("a_bucket_below_a_frame_is_found_in_a_file") else {
        return;
    };
    let network = joined();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("home.toml");
    for (burst, code, level) in [
        ("20kb", 0, "ok"),
        ("1516b", 1, "warning"),
        ("1000b", 1, "problem"),
    ] {
        std::fs::write(&file, SHAPED.replace("20kb", burst)).unwrap();
        let (ended, findings) = found(doctor(&network.left, &[file.to_str().unwrap()]));
        assert_eq!(ended, Some(code), "{burst}: {findings:#?}");
        assert_eq!(levels(&findings, "burst"), [level], "{burst}: {findings:#?}");
    }
    // The port of a bridge can't be an end of a run between two interfaces.
    std::fs::write(&file, crate::run::PLAIN).unwrap();
    let (code, findings) = found(doctor(&network.router, &[file.to_str().unwrap()]));
    assert_eq!(code, Some(1));
    assert_eq!(levels(&findings, "interface"), ["problem"; 2], "{findings:#?}");
    let (code, findings) = found(doctor(&network.left, &["--dev", "eth7"]));
    assert_eq!(code, Some(1));
    assert_eq!(levels(&findings, "interface"), ["problem"], "{findings:#?}");
}

/// A run with AF_XDP has a program at its interfaces: it is another one to everybody but this run.
#[test]
fn a_program_of_somebody_else_is_found() {
    let Some(_watched) = live("a_program_of_somebody_else_is_found") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, &plain("xdp"));
    let (_, findings) = found(doctor(&network.router, &["--dev", "left"]));
    assert_eq!(levels(&findings, "bypass"), ["warning"], "{findings:#?}");
    let (_, findings) = of_run(&network.router, &run);
    // Of both interfaces, and of the run.
    assert_eq!(levels(&findings, "bypass"), ["ok"; 3], "{findings:#?}");
    run.stop();
}

#[test]
fn without_words_a_terminal_shows_commands_and_runs() {
    let Some(_watched) = live("without_words_a_terminal_shows_commands_and_runs") else {
        return;
    };
    let network = Network::build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let name = format!("welcome-{}", std::process::id());
    let file = folder.path().join(format!("{name}.toml"));
    std::fs::write(&file, crate::run::PLAIN).unwrap();
    let mut command = network.router.command(env!("CARGO_BIN_EXE_fairgate"));
    let run = Run {
        program: Some(Program::start(command.args(["run", "--json"]).arg(&file))),
        folder,
        socket: default_socket(&name),
    }
    .wait();
    let screen = OnTerminal::start(env!("CARGO_BIN_EXE_fairgate"), &[]);
    screen.until_shown("fairgate doctor");
    screen.until_shown(&name);
    screen.until_shown("left -> right / right -> left");
    run.stop();
}
