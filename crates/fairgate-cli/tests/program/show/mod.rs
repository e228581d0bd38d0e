//! `fairgate show`, with a status that the test serves on a socket as a run does.

mod beside_tc;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use fairgate::{FlowKey, Packet, Pool, Time};
use fairgate_config::Spec;
use fairgate_run_api::{
    ChangesStatus, CountStatus, DirectionStatus, Losses, PassedByStatus, ProcessorStatus, QUEUE, RateStatus,
    SHARDED, Sojourn, Status,
};
use fairgate_scripts::tc::{Device, Script};
use serde::Serialize;

use super::{ends, json};

const COMMANDS: &str = "qdisc add dev eth1 root handle 1: drr
    class add dev eth1 parent 1: classid 1:1 drr quantum 300
    class add dev eth1 parent 1: classid 1:a drr
    qdisc add dev eth1 parent 1:a codel limit 2
    filter add dev eth1 parent 1: matchall flowid 1:a";

fn of_commands() -> Spec {
    let script = Script::parse("test.tc", COMMANDS, Device::default()).expect("the script is valid");
    script.spec().expect("everything can be translated")
}

/// Returns the status of a run with one direction. Packets of 1000 bytes to these hosts were enqueued, and
/// one was sent.
pub(crate) fn status(spec: &Spec, device: &str, hosts: &[u8]) -> Status {
    let mut tree = spec.build(1).expect("the description is valid");
    let mut pool = Pool::with_capacity(8);
    for &host in hosts {
        let key = FlowKey::of([10, 0, 0, 1].into(), [192, 0, 2, host].into(), 17, 1, 2);
        let packet = Packet::of_length(1000);
        let id = pool.insert((packet, key)).expect("there is room");
        tree.enqueue(id, Time::ZERO, &mut pool);
    }
    let _ = tree.dequeue(Time::ZERO, &mut pool);
    let sent = tree.statistics().dequeued;
    Status {
        name: "test".to_owned(),
        pid: 1,
        uptime_s: 1.0,
        isolated: true,
        changes: ChangesStatus::default(),
        processor: ProcessorStatus::default(),
        revision: 0,
        fallback: None,
        autorate: None,
        passed_by: PassedByStatus::default(),
        nat: None,
        directions: vec![DirectionStatus {
            from: "eth0".to_owned(),
            to: device.to_owned(),
            sent: CountStatus {
                packets: sent.packets,
                bytes: sent.bytes,
            },
            rate_bps: 0.0,
            in_line: 0,
            lost: Losses::default(),
            socket_full: 0,
            super_packets: 0,
            passed_by: 0,
            sojourn: Sojourn {
                packets: sent.packets,
                ..Sojourn::default()
            },
            tree: fairgate_live::status::status_of_tree(&*tree),
            queue: spec.to_toml(QUEUE),
        }],
    }
}

/// Gives `times` requests this answer. With a `title` it is a problem.
pub(crate) fn serve(socket: &Path, answer: &impl Serialize, times: usize) -> thread::JoinHandle<()> {
    let listener = UnixListener::bind(socket).expect("a socket of our own");
    let answer = serde_json::to_value(answer).expect("an answer is JSON");
    let (status, kind) = match answer.get("title") {
        Some(_) => ("422 Unprocessable Content", "application/problem+json"),
        None => ("200 OK", "application/json"),
    };
    let answer = answer.to_string();
    let length = answer.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n");
    let answer = format!("{head}connection: close\r\n\r\n{answer}");
    thread::spawn(move || {
        for stream in listener.incoming().take(times) {
            let mut stream = stream.expect("a client");
            // If a request is left unread, the client gets a reset in place of the answer.
            read_request(&mut BufReader::new(&stream));
            stream
                .write_all(answer.as_bytes())
                .expect("a client reads the answer");
        }
    })
}

fn read_request(from: &mut impl BufRead) {
    let mut body = 0;
    loop {
        let mut line = String::new();
        from.read_line(&mut line).expect("a client asks");
        let field = line.trim_end().to_ascii_lowercase();
        if let Some(length) = field.strip_prefix("content-length: ") {
            body = length.parse().expect("a number of bytes");
        }
        if field.is_empty() {
            break;
        }
    }
    from.read_exact(&mut vec![0; body]).expect("a body that is whole");
}

#[test]
fn a_run_is_shown_in_the_format_of_tc() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("sock");
    let socket = path.to_str().expect("an ordinary path");
    let server = serve(&path, &status(&of_commands(), "eth1", &[1, 2, 1, 2, 1]), 5);
    let (text, _) = ends(&["show", "--socket", socket], 0);
    let expected = "\
qdisc drr 1: dev eth1 root refcnt 2
 Sent 1000 bytes 1 pkt (dropped 3, overlimits 0 requeues 0)
 backlog 1000b 1p requeues 0
qdisc codel 8001: dev eth1 parent 1:a limit 2p target 5ms interval 100ms
 Sent 1000 bytes 1 pkt (dropped 3, overlimits 0 requeues 0)
 backlog 1000b 1p requeues 0
  count 0 lastcount 0 ldelay 0us drop_next 0us
  maxpacket 1000 ecn_mark 0 drop_overlimit 3
class drr 1:1 dev eth1 root quantum 300b
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0

class drr 1:a dev eth1 root leaf 8001: quantum 1514b
 Sent 1000 bytes 1 pkt (dropped 3, overlimits 0 requeues 0)
 backlog 1000b 1p requeues 0

";
    // tc ends the head of an object and its first line of statistics with a space.
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    assert_eq!(lines.join("\n") + "\n", expected);
    let (classes, _) = ends(&["show", "-j", "class", "--socket", socket], 0);
    let classes: serde_json::Value = serde_json::from_str(&classes).expect("an array");
    assert_eq!(
        classes[1],
        serde_json::json!({
            "class": "drr", "handle": "1:a", "dev": "eth1", "root": true, "leaf": "0x8001", "quantum": 1514,
            "stats": {
                "bytes": 1000, "packets": 1, "drops": 3, "overlimits": 0, "requeues": 0, "backlog": 1000,
                "qlen": 1
            }
        })
    );
    let (array, _) = ends(&["show", "-j", "--socket", socket], 0);
    let array: serde_json::Value = serde_json::from_str(&array).expect("an array");
    assert_eq!(array[1]["options"]["interval"], 99_999, "ticks of 1024 ns");
    assert_eq!(
        (&array[1]["parent"], &array[1]["qlen"]),
        (&"1:a".into(), &1.into())
    );
    let document = json(&["show", "--json", "--socket", socket], 0);
    assert_eq!(document["schema"], "fairgate.show/1");
    assert_eq!(document["classes"][0]["options"]["quantum"], 300);
    assert_eq!(document["qdiscs"], array);
    let (_, stderr) = ends(&["show", "--dev", "eth2", "--socket", socket], 2);
    assert!(
        stderr.contains("leaves by `eth2`") && stderr.contains("interfaces are eth1"),
        "{stderr}"
    );
    server.join().expect("all requests were answered");
    let (_, stderr) = ends(&["show", "--socket", "missing"], 3);
    assert!(stderr.contains("no answer from missing"), "{stderr}");
}

#[test]
fn assigned_classes_are_shown_with_their_hosts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("sock");
    let socket = path.to_str().expect("an ordinary path");
    let line = "drr handle=1 default=16 { 9 / fifo; \
                16 each=destination count=500 overflow=9 quantum=300 / codel limit=2 }";
    let spec = Spec::inline(line).expect("the tree is valid");
    let server = serve(&path, &status(&spec, "eth1", &[1, 2, 1, 2, 1]), 2);
    let (text, _) = ends(&["show", "--socket", socket], 0);
    for host in ["1:10", "1:11"] {
        assert!(
            text.contains(&format!("qdisc codel 0: dev eth1 parent {host} ")),
            "{text}"
        );
    }
    let classes = text.lines().filter(|line| line.starts_with("class"));
    let classes: Vec<&str> = classes.map(str::trim_end).collect();
    assert_eq!(
        classes[1..],
        [
            "class drr 1:10 dev eth1 root quantum 300b host 192.0.2.1",
            "class drr 1:11 dev eth1 root quantum 300b host 192.0.2.2",
        ],
        "classes without a host are left out"
    );
    let document = json(&["show", "--json", "--socket", socket], 0);
    assert_eq!(document["classes"][2]["host"], "192.0.2.2");
    assert_eq!(document["classes"][2]["qlen"], 2);
    server.join().expect("all requests were answered");
}

/// Each worker has a whole tree. What is shown is what they did together.
#[test]
fn workers_are_shown_as_one_tree() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("sock");
    let socket = path.to_str().expect("an ordinary path");
    let line = "tbf rate=1gbit burst=10kb estimator=1s,8s / fq_codel estimator=1s,8s";
    let spec = Spec::inline(line).expect("the tree is valid");
    let mut shown = status(&spec, "eth1", &[1, 1, 1]);
    let other = status(&spec, "eth1", &[1, 1]).directions.remove(0).tree;
    let direction = &mut shown.directions[0];
    let mut workers = [direction.tree.clone(), other];
    for (worker, rate_bps) in workers.iter_mut().zip([8_000_000, 4_000_000]) {
        let rate_pps = rate_bps / 8000;
        worker.estimated = Some(RateStatus { rate_bps, rate_pps });
        worker.classes[0].estimated = worker.estimated;
    }
    // The sums of the root itself are the status's.
    direction.tree.discipline = SHARDED.to_owned();
    direction.tree.classes = workers.to_vec();
    let server = serve(&path, &shown, 1);
    let (text, _) = ends(&["show", "--socket", socket, "qdisc"], 0);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    for (number, head) in [
        (0, "qdisc tbf 8001: dev eth1 root"),
        (3, "qdisc fq_codel 8002: dev eth1"),
    ] {
        assert!(lines[number].starts_with(head), "{text}");
        assert_eq!(
            lines[number + 1..number + 3],
            [
                " Sent 2000 bytes 2 pkt (dropped 0, overlimits 0 requeues 0)",
                " rate 12Mbit 1500pps backlog 3000b 3p requeues 0",
            ],
        );
    }
    assert!(text.contains("maxpacket 1000 "), "{text}");
    server.join().expect("the request was answered");
}
