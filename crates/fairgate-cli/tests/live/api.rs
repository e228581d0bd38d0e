//! The API and the metrics of a run, beside its packets.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fairgate_live::testbed::Network;
use fairgate_run::client::ClientError;
use fairgate_run_api::Change;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use serde_json::json;

use crate::changes::change;
use crate::common::{live, output, until};
use crate::harness::{code_and_message, ping};
use crate::http::{Answer, answer, ask};
use crate::run::{Run, call};

/// The port of the metrics is one that only root may open.
const CONFIGURATION: &str = "[queue.line]\ndiscipline = \"fifo\"\n\n[run]\nleft = \"left\"\n\
    right = \"right\"\nleft_to_right = \"line\"\nright_to_left = \"line\"\napi = \"unix:api.sock\"\n\
    metrics = \"127.0.0.1:95\"\n";

fn start(network: &Network, configuration: &str) -> Run {
    call(&network.router, "ip", &["link", "set", "lo", "up"]);
    Run::start(&network.router, configuration)
}

fn socket(run: &Run) -> PathBuf {
    run.folder.path().join("api.sock")
}

fn connect(run: &Run) -> UnixStream {
    UnixStream::connect(socket(run)).unwrap()
}

fn get(run: &Run, target: &str) -> Answer {
    ask(connect(run), "GET", target, &[], "")
}

fn post(run: &Run, tag: Option<&str>, line: &str) -> Answer {
    let body = json!({ "lines": [line] }).to_string();
    let tag: Vec<(&str, &str)> = tag.map(|tag| ("If-Match", tag)).into_iter().collect();
    ask(connect(run), "POST", "/v1/changes", &tag, &body)
}

fn metrics(network: &Network) -> Answer {
    let connect = || TcpStream::connect("127.0.0.1:95");
    let stream = network.router.enter(connect).unwrap().unwrap();
    ask(stream, "GET", "/metrics", &[], "")
}

/// All commands for a run go through its API if they are given the address. What they change is in the audit.
#[test]
fn the_commands_use_the_api() {
    let Some(_watched) = live("the_commands_use_the_api") else {
        return;
    };
    let network = Network::build().unwrap();
    let keeps_packets = CONFIGURATION.replace("[run]\n", "[run]\npacket_log = \"10s\"\n");
    let run = start(&network, &keeps_packets);
    let address = format!("unix:{}", socket(&run).display());
    let said = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
        let done = output(command.args(words).args(["--api", &address]));
        let text = String::from_utf8(done.stdout.clone()).unwrap();
        assert_eq!(done.status.code(), Some(0), "{words:?}: {done:?}");
        text
    };
    let json = |words: &[&str]| -> serde_json::Value {
        let text = said(&[&["--json"], words].concat());
        serde_json::from_str(&text).unwrap()
    };
    json(&["queue", "change", "root", "drr default=1 { 1 / fifo; 2 / fifo }"]);
    json(&["class", "change", "2", "quantum=3000"]);
    json(&["filter", "add", "class=2", "protocol=icmp"]);
    let trees = said(&["queue", "show"]);
    assert!(
        trees.contains("quantum = \"3000b\"") && trees.contains("icmp"),
        "{trees}"
    );
    assert!(ping(&network, Network::RIGHT));
    let status = json(&["status"]);
    assert_eq!(status["revision"], 3);
    assert!(
        status["directions"][0]["tree"]["dequeued"]["packets"]
            .as_u64()
            .unwrap()
            > 0
    );
    assert!(said(&["show"]).contains("qdisc drr"));
    let flows = json(&["flows"]);
    assert_eq!(flows["flows"][0]["protocol"], "icmp", "{flows}");
    let capture = run.folder.path().join("last.pcapng");
    json(&["packets", "--last", "10s", "--out", capture.to_str().unwrap()]);
    assert!(fs::metadata(&capture).unwrap().len() > 1_000);
    let table = run.folder.path().join("table.csv");
    said(&[
        "record",
        "--for",
        "1s",
        "--interval",
        "100ms",
        "-o",
        table.to_str().unwrap(),
    ]);
    let rows = fs::read_to_string(&table).unwrap();
    // A root has a row in each interval and each direction.
    assert!(rows.lines().count() > 2 * 8, "{rows}");
    let screen = said(&["top", "--once"]);
    assert!(
        screen.contains("2 fifo") && screen.contains("revision 3"),
        "{screen}"
    );
    let none = json(&["reserve", "list"]);
    assert_eq!(none["reservations"], json!([]));

    let mut wrong = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    let refused = output(wrong.args(["--json", "class", "delete", "9", "--api", &address]));
    let (code, message) = code_and_message(&refused);
    assert_eq!(code, Some(2), "{refused:?}");
    assert!(message.contains("`drr` has no class 9"), "{message}");
    let said = run.said();
    for entry in [
        "change: queue change root drr",
        "change: class change 2 quantum=3000: made, revision 2",
        "change: class delete 9: refused",
    ] {
        assert!(said.contains(entry), "{entry}: {said}");
    }
    run.stop();
}

/// Changes through the API, through the status socket and by SIGHUP: each has a revision, and the first two
/// are in the log with who made them.
#[test]
fn changes_have_a_revision_and_an_audit() {
    let Some(_watched) = live("changes_have_a_revision_and_an_audit") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = start(&network, CONFIGURATION);
    let first = get(&run, "/v1/trees").header("etag").unwrap().to_owned();
    let made = post(&run, Some(&first), "queue change root fq_codel flows=64");
    assert_eq!(
        (made.status, &made.json()["revision"]),
        (200, &1.into()),
        "{made:?}"
    );
    let status = run.status();
    assert_eq!((status.revision, status.changes.applied), (1, 1));
    assert_eq!(status.directions[1].tree.discipline, "fq_codel");
    let stale = post(&run, Some(&first), "queue change root flows=32");
    assert_eq!((stale.status, stale.problem()), (412, "stale".to_owned()));
    let refused = post(&run, None, "class delete 7");
    assert_eq!(refused.problem(), "refused");

    change(&run, "queue change root codel");
    let second = made.header("etag").unwrap().to_owned();
    assert_eq!(post(&run, Some(&second), "queue change root pie").status, 412);
    let trees = run.remote().trees().unwrap();
    assert_eq!((trees.revision, &*trees.directions[1].from), (2, "right"));
    let late = run.remote().change(Change {
        lines: vec!["queue change root pie".to_owned()],
        if_revision: Some(1),
        ..Change::default()
    });
    assert!(
        matches!(late, Err(ClientError::Stale { revision: 2 })),
        "{late:?}"
    );
    run.signal(Signal::SIGHUP);
    until("the file is read again", || run.status().revision == 3);
    let last = get(&run, "/v1/trees");
    assert_eq!(last.json()["revision"], 3);
    assert_eq!(
        last.json()["directions"][0]["queue"],
        run.status().directions[0].queue
    );
    assert_eq!(run.status().directions[0].tree.discipline, "fifo");

    let made = run.remote().change(Change {
        from: Some("left".to_owned()),
        lines: vec!["queue change root codel".to_owned()],
        because: Some("ticket 17".to_owned()),
        ..Change::default()
    });
    assert_eq!(made.unwrap().revision, 4);

    let own = format!("audit: uid 0, pid {}: change", std::process::id());
    let entries = [
        ": queue change root fq_codel flows=64: made, revision 1; forwarding paused for",
        ": queue change root flows=32: refused: the trees have revision 1",
        ": class delete 7: refused: `fq_codel` has no class",
        ": queue change root codel: made, revision 2;",
        " from left because ticket 17: queue change root codel: made, revision 4;",
    ];
    for entry in entries {
        until(entry, || run.said().contains(&format!("{own}{entry}")));
    }
    assert_eq!(metrics(&network).status, 200);
    run.stop();
}

/// Root gives up the right to open ports below 1024 after it has opened one, and the socket is removed.
#[test]
fn endpoints_are_opened_before_privileges_are_given_up() {
    let Some(_watched) = live("endpoints_are_opened_before_privileges_are_given_up") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = start(&network, CONFIGURATION);
    crate::privileges::holds(&run, crate::privileges::NEEDED);
    let metrics = metrics(&network);
    assert!(
        metrics
            .body
            .contains("fairgate_sent_packets_total{from=\"left\",to=\"right\"} "),
        "{metrics:?}"
    );
    let socket = socket(&run);
    assert!(socket.exists());
    let program = run.program.as_ref().unwrap().id();
    let names = fs::read_dir(format!("/proc/{program}/task")).unwrap();
    let answers = |thread: &fs::DirEntry| {
        let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        ["api", "status"].contains(&name.trim())
    };
    let threads: Vec<fs::DirEntry> = names.map(Result::unwrap).filter(answers).collect();
    assert!(threads.len() >= 2);
    for thread in threads {
        let text = fs::read_to_string(thread.path().join("sched")).unwrap_or_default();
        let policy = text.lines().find(|line| line.starts_with("policy"));
        // SCHED_OTHER: it never has the processor before a forwarding thread.
        assert!(policy.is_none_or(|line| line.ends_with(" 0")), "{policy:?}");
    }
    run.signal(Signal::SIGINT);
    let mut run = run;
    run.output();
    assert!(!socket.exists(), "the socket of the API is left behind");
}

/// Connects as user 65534, with this group, and sends a request. Returns what it reads.
fn as_stranger(run: &Run, group: u32) -> String {
    // SO_PEERCRED are the credentials of the process that connects.
    let script = "use Socket; socket(my $s, PF_UNIX, SOCK_STREAM, 0); \
                  connect($s, sockaddr_un($ARGV[0])) or exit 3; \
                  syswrite($s, \"GET /v1/health HTTP/1.0\\r\\n\\r\\n\"); \
                  print $b while sysread($s, $b, 4096);";
    let mut perl = Command::new("perl");
    std::os::unix::process::CommandExt::uid(&mut perl, 65534);
    std::os::unix::process::CommandExt::gid(&mut perl, group);
    let done = output(perl.current_dir("/").args(["-e", script]).arg(socket(run)));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[test]
fn only_root_and_the_group_may_use_the_socket() {
    let Some(_watched) = live("only_root_and_the_group_may_use_the_socket") else {
        return;
    };
    let network = Network::build().unwrap();
    let open_folder = |run: &Run| {
        fs::set_permissions(run.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    };
    let alone = start(&network, CONFIGURATION);
    open_folder(&alone);
    assert_eq!(as_stranger(&alone, 65534), "", "the kernel lets it connect");
    // Even if somebody opens the socket to everyone.
    fs::set_permissions(socket(&alone), fs::Permissions::from_mode(0o666)).unwrap();
    let said = as_stranger(&alone, 65534);
    assert!(
        said.starts_with("HTTP/1.0 403") && said.contains("urn:fairgate:problem:forbidden"),
        "{said}"
    );
    alone.stop();

    let shared = format!("{CONFIGURATION}api_group = \"daemon\"\n");
    let shared = start(&network, &shared);
    open_folder(&shared);
    let daemon = nix::unistd::Group::from_name("daemon")
        .unwrap()
        .expect("every system has it");
    assert!(as_stranger(&shared, daemon.gid.as_raw()).starts_with("HTTP/1.0 200"));
    assert_eq!(as_stranger(&shared, 65534), "");
    shared.stop();
}

/// 1,000 connections, slow clients, rubbish, changes, statuses and scrapes, while a host sends a packet each
/// millisecond: all of them arrive, in their order.
#[test]
fn clients_disturb_no_packet() {
    let Some(_watched) = live("clients_disturb_no_packet") else {
        return;
    };
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most.min(8192), most).unwrap();
    let network = Network::build().unwrap();
    let run = start(&network, CONFIGURATION);
    let to = format!("{}:5000", Network::RIGHT);
    let receiver = network.right.enter(|| UdpSocket::bind(&to)).unwrap().unwrap();
    let bind = || UdpSocket::bind("0.0.0.0:0");
    let sender = network.left.enter(bind).unwrap().unwrap();
    sender.connect(&to).unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let (is_over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    // Only then it is known how many were sent.
    let has_sent_all = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                let number = sent.fetch_add(1, Ordering::AcqRel);
                sender.send(&[number.to_be_bytes(); 16].concat()).unwrap();
                thread::sleep(Duration::from_millis(1));
            }
            has_sent_all.store(true, Ordering::Release);
        });
        let counting = scope.spawn(|| {
            let mut bytes = [0; 2000];
            let mut next = 0;
            while !has_sent_all.load(Ordering::Acquire) || next < sent.load(Ordering::Acquire) {
                if receiver.recv(&mut bytes).is_ok() {
                    let number = u64::from_be_bytes(bytes[..8].try_into().unwrap());
                    assert_eq!(number, next, "it is lost or overtaken");
                    next += 1;
                }
            }
        });
        let begin = sent.load(Ordering::Acquire);
        // Twice at least, and beside a thousand packets at least.
        for round in 0.. {
            if round >= 2 && sent.load(Ordering::Acquire) >= begin + 1000 {
                break;
            }
            disturb(&network, &run);
        }
        is_over.store(true, Ordering::Release);
        assert!(counting.join().is_ok(), "packets were lost or overtaken");
    });
    run.status().check().unwrap();
    run.stop();
}

fn disturb(network: &Network, run: &Run) {
    let mut clients: Vec<UnixStream> = Vec::new();
    let doors = [&socket(run), &run.socket];
    for number in 0..1000 {
        let Ok(mut client) = UnixStream::connect(doors[number / 4 % 2]) else {
            continue;
        };
        // Those that find no place are disconnected, so that they may fail to write.
        let _ = match number % 4 {
            0 => Ok(()),
            1 => client.write_all(b"GET /v1/status HTTP/1.1\r\nX: "),
            2 => client.write_all(b"\x16\x03\x01\x00rubbish\r\n\r\n"),
            // An answer that nobody reads.
            _ => client.write_all(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        };
        clients.push(client);
    }
    assert!(clients.len() > 900, "{}", clients.len());
    // The metrics have a door of their own, and a command is let in before those that say nothing.
    for _ in 0..20 {
        assert_eq!(metrics(network).status, 200);
        assert_eq!(run.status().changes.refused, 0);
    }
    for mut client in clients {
        let _ = client.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
    }
    until("the API has places again", || {
        let mut client = connect(run);
        let _ = client.write_all(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        answer(client).is_some_and(|answer| answer.status == 200)
    });
    for round in 1..=50 {
        let tree = if round % 2 == 0 {
            "fifo"
        } else {
            "fq_codel target=100ms"
        };
        let made = post(run, None, &format!("queue change root {tree}"));
        assert_eq!(
            (made.status, &made.json()["dropped"]),
            (200, &0.into()),
            "{made:?}"
        );
        assert_eq!(get(run, "/v1/status?used=true").status, 200);
        assert_eq!(metrics(network).status, 200);
    }
}

/// What a run has noted of the past is there in the next one, after an ordinary end and after a crash, with a
/// gap in between. A file that is damaged or not its own is told in the log.
#[test]
fn the_history_outlives_the_run() {
    let Some(_watched) = live("the_history_outlives_the_run") else {
        return;
    };
    let network = Network::build().unwrap();
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("run.history");
    let begin = || {
        call(&network.router, "ip", &["link", "set", "lo", "up"]);
        let run = Run::spawn(&network.router, CONFIGURATION, &["run", "--json"], |command| {
            // As systemd has it with two folders.
            command.env("STATE_DIRECTORY", format!("{}:/nowhere", state.path().display()));
        });
        run.wait()
    };
    // Returns the rates of the runs before, and the number of gaps between runs.
    let past = |run: &Run| {
        let mut past = (Vec::new(), 0);
        until("the run was read", || {
            let document = get(run, "/v1/history?from=left&seconds=600").json();
            let times = document["at_s"].as_array().unwrap().iter();
            let rates = document["series"][0]["rate_bps"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let of_runs = times.zip(&rates).filter(|(at, _)| at.as_f64().unwrap() < 0.0);
            past.0 = of_runs
                .filter_map(|(_, rate)| rate.as_f64())
                .collect::<Vec<f64>>();
            past.1 = rates.iter().filter(|rate| rate.is_null()).count();
            rates.len() > 1
        });
        past
    };
    let written = || fs::metadata(&file).and_then(|found| found.modified()).ok();
    let ping = || assert!(ping(&network, Network::RIGHT));

    let run = begin();
    assert_eq!(past(&run), (vec![], 0));
    ping();
    until("the history is kept", || written().is_some());
    ping();
    run.stop();
    let run = begin();
    let (rates, gaps) = past(&run);
    // Steps of ten seconds, and the last one, which has no whole step.
    assert!((2..=3).contains(&rates.len()) && gaps == 1, "{rates:?}");
    assert!(rates[0] > 100.0, "{rates:?}");
    let before = written();
    ping();
    until("the history is kept", || written() != before);
    let mut run = run;
    run.signal(Signal::SIGKILL);
    run.output();
    let run = begin();
    let (rates, gaps) = past(&run);
    assert!(rates.len() >= 3 && rates[0] > 100.0 && gaps == 2, "{rates:?}");
    assert!(!run.said().contains("history"), "{}", run.said());
    run.stop();

    // A run that ends soon has left the file as it was.
    let kept = fs::read(&file).unwrap();
    let begins = |content: &[u8], why: &str| {
        fs::write(&file, content).unwrap();
        let run = begin();
        until(why, || run.said().contains(why));
        let past = past(&run);
        run.stop();
        past
    };
    assert_eq!(
        begins(&[&kept, &b"torn"[..]].concat(), &format!("byte {}: ", kept.len())),
        (rates, gaps)
    );
    assert_eq!(
        begins(
            &kept[..kept.len() - 9],
            "can't be used, and begins anew: byte 19: "
        ),
        (vec![], 0)
    );
    assert_eq!(
        begins(
            b"root:x:0:0\n",
            "is no history of a run of Fairgate, and stays as it is"
        ),
        (vec![], 0)
    );
    assert_eq!(fs::read(&file).unwrap(), b"root:x:0:0\n");
}
