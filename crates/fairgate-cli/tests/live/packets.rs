//! The packet log of a run, and its flows.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

use fairgate_capture::Capture;
use fairgate_live::testbed::Network;
use serde_json::{Value, json};

use crate::common::{live, output};
use crate::harness::{code_and_message, ping};
use crate::http::{Answer, ask};
use crate::run::Run;

/// Pings pass a queue of two packets behind a shaper. Everything else has a class without a limit. Behind
/// both is a line with a delay of 5 ms in each direction. The rate at the root is that of the line.
const TREE: &str = "[queue.line]\ndiscipline = \"htb\"\ndefault = 20\n\n\
    [[queue.line.class]]\nid = 1\nrate = \"50mbit\"\n\n\
    [[queue.line.class]]\nid = 10\nparent = 1\nrate = \"100kbit\"\nceil = \"100kbit\"\n\
    inner = { discipline = \"fifo\", limit = 2 }\n\n\
    [[queue.line.class]]\nid = 20\nparent = 1\nrate = \"40mbit\"\nceil = \"50mbit\"\n\
    inner = { discipline = \"fq_codel\" }\n\n\
    [[queue.line.filter]]\nclass = 10\nprotocol = \"icmp\"\n\n\
    [run]\nleft = \"left\"\nright = \"right\"\nleft_to_right = \"line\"\ndelay = \"5ms\"\n\
    api = \"unix:api.sock\"\n";

fn fairgate(run: &Run, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    command.arg("--json").args(words).arg("--socket").arg(&run.socket);
    command.output().unwrap()
}

fn asked(run: &Run, method: &str, target: &str, body: &Value) -> Answer {
    let stream = UnixStream::connect(run.folder.path().join("api.sock")).unwrap();
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    ask(stream, method, target, &[], &body)
}

/// Sends a megabyte from the left host to the right one, and waits until it has come.
fn transfer(network: &Network) {
    let to = format!("{}:5000", Network::RIGHT);
    let listener = network.right.enter(|| TcpListener::bind(&to)).unwrap().unwrap();
    let receiving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap()
    });
    let mut stream = network.left.enter(|| TcpStream::connect(&to)).unwrap().unwrap();
    stream.write_all(&[7; 1 << 20]).unwrap();
    drop(stream);
    assert_eq!(receiving.join().unwrap(), 1 << 20);
}

/// Of 30 long pings at once, most find no room.
fn flood(network: &Network) {
    let words = ["-n", "-q", "-c", "30", "-i", "0.002", "-s", "1000", "-W", "1"];
    output(network.left.command("ping").args(words).arg(Network::RIGHT));
}

fn flows(run: &Run) -> Vec<Value> {
    let shown = fairgate(run, &["flows"]);
    assert!(shown.status.success(), "{shown:?}");
    let document: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert!(document["observed_s"].as_f64().unwrap() >= 1.0);
    document["flows"].as_array().unwrap().clone()
}

fn find<'f>(flows: &'f [Value], from: &str, protocol: &str) -> &'f Value {
    let is_it = |flow: &&Value| flow["from"] == from && flow["protocol"] == protocol;
    flows
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no {protocol} from {from}: {flows:?}"))
}

/// What a queue of the run drops is not counted. Then the left host loses 5 % of what it sends, before the
/// run.
#[test]
fn losses_before_the_run_are_counted() {
    let Some(_watched) = live("losses_before_the_run_are_counted") else {
        return;
    };
    let network = Network::build().unwrap();
    // Returns how many segments came, were lost before, and were dropped.
    let transferred = |tree: &str| {
        let run = Run::start(&network.router, tree);
        flows(&run);
        transfer(&network);
        let seen = flows(&run);
        let data = find(&seen, "left", "tcp");
        let [segments, lost] = ["segments", "lost"].map(|key| data["lost_before"][key].as_u64().unwrap());
        let dropped = data["dropped"].as_u64().unwrap();
        run.stop();
        [segments, lost, dropped]
    };
    let short = TREE.replace("\"fq_codel\" }", "\"fifo\", limit = 10 }");
    let [segments, lost, dropped] = transferred(&short);
    assert!(
        segments > 100 && lost == 0 && dropped > 0,
        "{segments} {lost} {dropped}"
    );

    let lossy = "[queue.up]\ndiscipline = \"netem\"\nloss = 0.05\ndelay = \"5ms\"\n\n\
                 [run]\ndevice = \"eth0\"\negress = \"up\"\n";
    let before = Run::start(&network.left, lossy);
    let [segments, lost, _] = transferred(TREE);
    let status = before.status();
    let gone = status
        .directions
        .iter()
        .map(|direction| direction.tree.dropped.packets);
    let gone: u64 = gone.sum();
    // Some of what is gone were no data, or data that had come before.
    assert!(
        segments > 100 && gone > 10 && lost <= gone && 2 * lost > gone,
        "{lost} of {gone} were seen, {segments} segments"
    );
    before.stop();
}

/// Nobody keeps packets. The flows are observed from the first question on.
#[test]
fn flows_are_observed_on_demand() {
    let Some(_watched) = live("flows_are_observed_on_demand") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, TREE);
    assert!(ping(&network, Network::RIGHT));
    let before = flows(&run);
    let is_ping = |flow: &Value| flow["protocol"] == "icmp";
    assert!(
        !before.iter().any(is_ping),
        "what was before is not known: {before:?}"
    );
    transfer(&network);
    flood(&network);
    let flows = flows(&run);
    let data = find(&flows, "left", "tcp");
    assert_eq!(
        (&data["destination_port"], &data["class"]),
        (&5000.into(), &"20".into())
    );
    assert_eq!(data["discipline"], "fq_codel");
    assert!(data["bytes"].as_u64().unwrap() > 1 << 20, "{data}");
    // The line has 5 ms in each direction, and the queue is before it.
    let round_trip = data["round_trip_ms"]["minimum"].as_f64().unwrap();
    assert!((5.0..200.0).contains(&round_trip), "{data}");
    let pings = find(&flows, "left", "icmp");
    assert_eq!(
        (&pings["class"], &pings["round_trip_ms"]),
        (&"10".into(), &Value::Null)
    );
    assert!(pings["dropped"].as_u64().unwrap() > 0, "{pings}");
    assert!(pings["delay_ms"].as_f64().unwrap() > 5.0, "{pings}");
    let answers = find(&flows, "right", "icmp");
    assert_eq!(
        (&answers["class"], &answers["discipline"]),
        (&"".into(), &"fifo".into())
    );

    let file = run.folder.path().join("none.pcapng");
    let refused = fairgate(&run, &["packets", "--out", file.to_str().unwrap()]);
    let (code, message) = code_and_message(&refused);
    assert_eq!((code, message.as_str()), (Some(2), "the run keeps no packets"));
    assert!(!file.exists());
    let refused = asked(&run, "GET", "/v1/packets", &Value::Null);
    assert_eq!((refused.status, refused.problem()), (404, "not-found".to_owned()));
    let answer = asked(&run, "GET", "/v1/flows?sort=dropped&limit=1", &Value::Null);
    assert_eq!(answer.json()["flows"][0]["protocol"], "icmp");
    let refused = asked(&run, "GET", "/v1/flows?limit=0", &Value::Null);
    assert_eq!(refused.problem(), "malformed");
}

/// The comments of the packets in a capture, from its bytes: an option has its length before it.
fn comments(capture: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(capture);
    let parts = text.split(['\0', '\u{fffd}']);
    let is_comment = |part: &&str| part.contains("sent after ") || part.contains("dropped after ");
    parts.filter(is_comment).map(str::to_owned).collect()
}

fn packets(file: &Path) -> u64 {
    let mut capture = Capture::open(file).unwrap();
    while capture.next_record().unwrap().is_some() {}
    capture.counts().packets
}

#[test]
fn the_last_packets_can_be_saved_and_compared() {
    let Some(_watched) = live("the_last_packets_can_be_saved_and_compared") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, &format!("{TREE}packet_log = \"60s\"\n"));
    transfer(&network);
    flood(&network);
    let file = run.folder.path().join("last.pcapng");
    let out = file.to_str().unwrap();
    let saved = fairgate(&run, &["packets", "--out", out]);
    assert!(saved.status.success(), "{saved:?}");
    let status = run.status();
    let sent: u64 = status
        .directions
        .iter()
        .map(|direction| direction.tree.dequeued.packets + direction.tree.dropped.packets)
        .sum();
    let kept = packets(&file);
    // Hosts say something of their own from time to time.
    assert!(kept <= sent && kept + 20 > sent, "{kept} of {sent} packets");
    let comments = comments(&fs::read(&file).unwrap());
    assert_eq!(comments.len() as u64, kept);
    let count = |parts: &[&str]| {
        let has_all = |comment: &&String| parts.iter().all(|part| comment.contains(part));
        comments.iter().filter(has_all).count() as u64
    };
    let tree = &status.directions[0].tree;
    assert_eq!(count(&["dropped after "]), tree.dropped.packets);
    assert!(tree.drops["queue_limit"] > 5, "{tree:?}");
    assert_eq!(
        count(&["dropped after ", "queue_limit; class 10; fifo"]),
        tree.drops["queue_limit"]
    );
    assert!(count(&["sent after ", "; class 20; fq_codel"]) > 700);

    let saved = fairgate(
        &run,
        &["packets", "--from", "left", "--last", "50s", "--out", out],
    );
    assert!(saved.status.success(), "{saved:?}");
    assert!(packets(&file) < kept);
    let mut compare = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    compare.args(["compare", "--json", "--trace", out, "--rate", "20mbit"]);
    compare.args(["--direction", "all", "--queue", "fifo", "--queue", "codel"]);
    let compared = compare.output().unwrap();
    assert!(compared.status.success(), "{compared:?}");

    let question = json!({ "queues": ["fifo", "fq_codel"] });
    let page = asked(&run, "POST", "/v1/what-if", &question);
    assert_eq!(page.status, 200, "{page:?}");
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    for part in [
        "the present tree",
        "fq_codel",
        "The last packets from left",
        "50 Mbit/s",
    ] {
        assert!(page.body.contains(part), "the page has no {part}");
    }
    for (question, part) in [
        (json!({ "from": "middle" }), "no direction is from `middle`"),
        (json!({ "from": "right" }), "the rate of the link is not known"),
        (json!({ "queues": ["fifo limit=0"] }), "limit"),
        (json!({ "queues": ["fifo", "fifo"] }), "given twice"),
    ] {
        let refused = asked(&run, "POST", "/v1/what-if", &question);
        assert_eq!(refused.problem(), "refused", "{question}");
        assert!(
            refused.json()["errors"][0]["message"]
                .as_str()
                .unwrap()
                .contains(part),
            "{refused:?}"
        );
    }
    let answer = asked(&run, "GET", "/v1/packets?seconds=30&from=right", &Value::Null);
    assert_eq!(answer.header("content-type"), Some("application/x-pcapng"));
    assert!(answer.body.starts_with("\n\r\r\n"));
    let refused = asked(&run, "GET", "/v1/packets?from=middle", &Value::Null);
    assert_eq!((refused.status, refused.problem()), (404, "not-found".to_owned()));
}
