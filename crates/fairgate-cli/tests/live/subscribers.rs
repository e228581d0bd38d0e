//! Lists of subscribers that change while packets are forwarded.

mod edits;
mod import;

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fairgate_live::testbed::Network;
use fairgate_run_api::NodeStatus;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{live, output, until};
use crate::http::{Answer, ask};
use crate::run::{Run, transfer_of};
use crate::stream::with_stream;

/// How many subscribers there are, if the variable SUBSCRIBERS does not say it: `SUBSCRIBERS=20000` measures
/// the figures of docs/subscribers.md.
const SUBSCRIBERS: usize = 2_000;

/// The plans have different rates, and each has room for the stream of the test. CoDel would drop packets if
/// the machine is busy with other tests, so its target is far away.
const CONFIGURATION: &str = "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\n\
    leaf = \"fq_codel target=5s interval=10s\"\nSOURCE\n\
    [plans.home]\ndown = \"12mbit\"\nup = \"12mbit\"\n[plans.fast]\ndown = \"20mbit\"\nup = \"15mbit\"\n\
    [run]\nleft = \"left\"\nright = \"right\"\nleft_to_right = \"down\"\nright_to_left = \"up\"\n\
    api = \"unix:api.sock\"\n";

/// The pause between bursts of the stream: 5 Mbit/s, which each plan lets through.
const EVERY: Duration = Duration::from_millis(2);

fn count() -> usize {
    let given = std::env::var("SUBSCRIBERS").ok();
    given.map_or(SUBSCRIBERS, |count| count.parse().expect("a number"))
}

/// Returns a list of so many subscribers of a plan. The first one is the right host.
fn list(count: usize, plan: &str) -> String {
    let mut text = format!("id,prefixes,plan\nhost,{},{plan}\n", Network::RIGHT);
    for number in 1..count {
        let (high, low) = (number >> 8, number & 255);
        text += &format!(
            "{number},100.{}.{}.{low} 2001:db8:{high:x}:{low:x}00::/56,{plan}\n",
            64 + (high >> 8),
            high & 255
        );
    }
    text
}

/// A configuration and a list in a folder.
struct Stage {
    folder: TempDir,
    list: PathBuf,
}

impl Stage {
    /// `source` is a key of `[subscribers]`, and `list` the name of the file with the list.
    fn new(source: &str, list: &str, content: &str) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join(list);
        fs::create_dir_all(list.parent().unwrap()).unwrap();
        fs::write(&list, content).unwrap();
        let configuration = CONFIGURATION.replace("SOURCE", source);
        fs::write(folder.path().join("isp.toml"), configuration).unwrap();
        Stage { folder, list }
    }

    fn start(&self, network: &Network) -> Run {
        Run::of_file(&network.router, &self.folder.path().join("isp.toml")).wait()
    }

    /// Replaces the list as programs should: by another file.
    fn replace(&self, content: &str) {
        let next = self.folder.path().join(".next");
        fs::write(&next, content).unwrap();
        fs::rename(&next, &self.list).unwrap();
    }

    /// Changes members of a subscriber.
    fn patches(&self, id: &str, members: &Value) {
        let answer = self.ask("PATCH", &format!("/v1/subscribers/{id}"), &members.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Returns the rate that the row of a subscriber has for what it gets.
    fn own_rate(&self, id: &str) -> Value {
        let document = self.ask("GET", &format!("/v1/subscribers/{id}"), "").json();
        document["subscriber"]["down"].clone()
    }

    fn ask(&self, method: &str, target: &str, body: &str) -> Answer {
        let socket = UnixStream::connect(self.folder.path().join("api.sock")).unwrap();
        let headers: &[(&str, &str)] = match body {
            "" => &[],
            _ => &[("Content-Type", "application/json")],
        };
        ask(socket, method, target, headers, body)
    }
}

fn taken_over(run: &Run) -> usize {
    run.said().matches("its queues are active").count()
}

/// Waits until a list was taken over once more. Returns how long that took.
fn takes_over(run: &Run, what: &str, change: impl FnOnce()) -> Duration {
    let before = taken_over(run);
    let begin = Instant::now();
    change();
    until(what, || taken_over(run) > before);
    begin.elapsed()
}

/// Returns the resident memory of a run, kilobytes.
fn resident(run: &Run) -> u64 {
    let process = run.program.as_ref().expect("it runs").id();
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The list is replaced again and again: all plans, fewer subscribers, a list with mistakes. A stream
/// to one of the subscribers loses nothing, and is not reordered.
#[test]
fn a_list_changes_while_its_subscribers_are_served() {
    let Some(_watched) = live("a_list_changes_while_its_subscribers_are_served") else {
        return;
    };
    let network = Network::build().unwrap();
    let count = count();
    let place = Stage::new("file = \"list.csv\"", "list.csv", &list(count, "home"));
    let run = place.start(&network);
    let signal = || run.signal(Signal::SIGHUP);
    with_stream(&network, EVERY, || {
        let by_signal = takes_over(&run, "the list is read again", signal);
        let steps = [
            ("all rates", list(count, "fast")),
            ("all rates back", list(count, "home")),
            ("some of them", list(count - count / 20, "home")),
            ("all of them", list(count, "fast")),
        ];
        println!("{count} subscribers, {} kB", resident(&run));
        println!("nothing has changed: {by_signal:?}");
        for (what, content) in steps {
            let took = takes_over(&run, what, || place.replace(&content));
            println!("{what}: {took:?}");
        }
        // The last line is too short, and a prefix is within another one.
        let broken = format!(
            "{}x,{}/24,home,1\ny,100.64.0.0/16,home\n",
            list(count, "home"),
            "10.0.0.0"
        );
        let lines = count + 3;
        place.replace(&broken);
        until("the list is refused", || {
            run.said().contains("the run continues unchanged")
        });
        let said = run.said();
        assert!(said.contains(&format!("list.csv:{}:", lines - 1)), "{said}");
        assert!(said.contains("this line has 4 fields"), "{said}");
        takes_over(&run, "a valid list again", || place.replace(&list(count, "home")));
    });
    let status = run.status();
    assert_eq!(status.changes.dropped, 0, "{:?}", status.changes);
    assert_eq!((status.changes.applied, status.changes.refused), (6, 1));
    println!(
        "longest pause of forwarding: {} us",
        status.changes.longest_pause_us
    );
    // Packets to the host are in its class, and so are those from it.
    for (from, number) in [("left", 16), ("right", 16)] {
        let direction = status.directions.iter().find(|direction| direction.from == from);
        let tree = &direction.expect("both directions").tree;
        let class = tree.class_states.iter().find(|state| state.class == number);
        let sent = class.expect("the subscriber has a class").sent.packets;
        match from {
            "left" => assert!(sent > 1000, "{sent}"),
            // Only answers to ARP, which have no address, go this way.
            _ => assert_eq!(sent, 0),
        }
    }
    assert!(status.check().is_ok());
    // TCP in both directions is in the class, too.
    let to_left = format!("{}:5100", Network::LEFT);
    transfer_of(
        500_000,
        &network.right,
        &network.left,
        &to_left,
        "from a subscriber",
    );
    let status = run.status();
    let up = status
        .directions
        .iter()
        .find(|direction| direction.from == "right");
    let up = up.expect("both directions").tree.class_states.iter();
    let sent: Vec<u64> = up
        .filter(|state| state.class == 16)
        .map(|state| state.sent.bytes)
        .collect();
    assert!(sent[0] > 500_000, "{sent:?}");
    run.stop();
}

/// In a folder each file has a part of the list. Files come, go, and are changed.
#[test]
fn a_folder_is_watched() {
    let Some(_watched) = live("a_folder_is_watched") else {
        return;
    };
    let network = Network::build().unwrap();
    let source = "file = \"lists\"\nmost_removed = 75";
    let place = Stage::new(source, "lists/a.csv", &list(3, "home"));
    let run = place.start(&network);
    let lists = place.folder.path().join("lists");
    let ids = || {
        let answer = place.ask("GET", "/v1/subscribers", "");
        let document = answer.json();
        let all = document["subscribers"].as_array().unwrap().clone();
        let ids: Vec<String> = all
            .iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect();
        ids
    };
    assert_eq!(ids(), ["host", "1", "2"]);
    let json = "[{\"id\": \"9\", \"prefixes\": [\"192.0.2.9\"], \"plan\": \"home\"}]";
    takes_over(&run, "a file is added", || {
        fs::write(lists.join("b.json"), json).unwrap()
    });
    assert_eq!(ids(), ["host", "1", "2", "9"]);
    // What is no list has no effect; the next change is the next one that is taken over.
    fs::write(lists.join(".b.json.swp"), "nothing").unwrap();
    fs::write(lists.join("notes.txt"), "nothing").unwrap();
    takes_over(&run, "a file is removed", || {
        fs::remove_file(lists.join("a.csv")).unwrap()
    });
    assert_eq!(ids(), ["9"]);
    assert_eq!(taken_over(&run), 2);
    run.stop();
}

/// A file that is cut off is a valid list of fewer subscribers. The run says what it would remove, and goes
/// on; once it is confirmed, it does it.
#[test]
fn a_list_that_is_cut_off_removes_nobody() {
    let Some(_watched) = live("a_list_that_is_cut_off_removes_nobody") else {
        return;
    };
    let network = Network::build().unwrap();
    let place = Stage::new("file = \"list.csv\"", "list.csv", &list(100, "home"));
    let run = place.start(&network);
    let count = || {
        let document = place.ask("GET", "/v1/subscribers", "").json();
        document["subscribers"].as_array().unwrap().len()
    };
    let refused = |what: &str, words: &str, content: &str| {
        place.replace(content);
        until(what, || run.said().contains(words));
        assert_eq!(count(), 100, "{what}");
    };
    refused(
        "a header alone is refused",
        "again: refused: 100 of the 100 subscribers",
        "id,prefixes,plan\n",
    );
    refused(
        "half is refused",
        "again: refused: 51 of the 100 subscribers",
        &list(49, "fast"),
    );
    let said = run.said();
    assert!(said.contains("confirmed_removed = 51"), "{said}");
    assert!(
        said.contains("audit: a change of the list's files: read "),
        "{said}"
    );
    let file = place.folder.path().join("isp.toml");
    let configuration = fs::read_to_string(&file).unwrap();
    let confirmed = "file = \"list.csv\"\nconfirmed_removed = 51\n";
    fs::write(&file, configuration.replace("file = \"list.csv\"\n", confirmed)).unwrap();
    takes_over(&run, "it is confirmed", || run.signal(Signal::SIGHUP));
    assert_eq!(count(), 49);
    let counts = serde_json::json!({"added": 0, "removed": 51, "changed": 49, "count": 49});
    assert_eq!(
        place.ask("GET", "/v1/subscribers", "").json()["difference"],
        counts
    );
    let counts = "0 subscribers added, 51 removed, 49 changed; there are 49";
    let said = run.said();
    assert!(
        said.contains(&format!("its queues are active. {counts}.")),
        "{said}"
    );
    assert!(
        said.contains(&format!("again: made, revision 1; {counts}")),
        "{said}"
    );
    run.stop();
}

/// The list decides about the classes of its trees: a change by hand is refused, and names the remedy.
#[test]
fn the_classes_of_a_list_are_not_changed_by_hand() {
    let Some(_watched) = live("the_classes_of_a_list_are_not_changed_by_hand") else {
        return;
    };
    let network = Network::build().unwrap();
    let place = Stage::new("file = \"list.csv\"", "list.csv", &list(20, "home"));
    let run = place.start(&network);
    let order = |line: &str| {
        let body = json!({"from": "left", "lines": [line]}).to_string();
        place.ask("POST", "/v1/changes", &body)
    };
    for (line, words) in [
        ("class change 21 ceil=3mbit", "class 21 is that of subscriber `5`"),
        ("queue change 21 limit=100", "class 21 is that of subscriber `5`"),
        (
            "class change 2 ceil=3mbit",
            "the tree `down` is made from the list of subscribers",
        ),
    ] {
        let refused = order(line);
        assert_eq!(refused.problem(), "refused", "{line}: {refused:?}");
        let document = refused.json().to_string();
        assert!(document.contains(words), "{line}: {document}");
        assert!(
            document.contains("undone by the next one of the list"),
            "{line}: {document}"
        );
    }
    run.until_said("class change 21 ceil=3mbit: refused: class 21 is that of subscriber `5`");
    // The remedy: it stays when another subscriber changes.
    for (id, rate) in [("5", "3mbit"), ("6", "4mbit")] {
        place.patches(id, &json!({"down": rate}));
    }
    assert_eq!(place.own_rate("5"), "3mbit");
    run.stop();
}

/// A class of the list is called by the name of its subscriber: by what prints a run and by its documents,
/// with one worker and with several.
#[test]
fn classes_are_called_by_the_names_of_subscribers() {
    let Some(_watched) = live("classes_are_called_by_the_names_of_subscribers") else {
        return;
    };
    let network = Network::build().unwrap();
    let list = format!(
        "id,name,prefixes,plan\nh-1,Anna Host,{},home\nh-2,,192.0.2.9,home\n",
        Network::RIGHT
    );
    for workers in ["", "\nworkers = 2\nshard_by = \"class\"\n"] {
        let place = Stage::new("file = \"list.csv\"", "list.csv", &list);
        let file = place.folder.path().join("isp.toml");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text + workers).unwrap();
        let run = place.start(&network);
        let printed = |words: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
            command.args(words).arg("--socket").arg(&run.socket);
            let output = output(&mut command);
            assert!(output.status.success(), "{words:?}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        // Flows are known from the first question on.
        let mut flows = String::new();
        with_stream(&network, EVERY, || {
            until("the flow is seen", || {
                flows = printed(&["flows"]);
                flows.contains("h-1 Anna Host")
            });
        });
        assert!(flows.contains("SUBSCRIBER"), "{flows}");
        let document: Value = serde_json::from_str(&printed(&["flows", "--json"])).unwrap();
        let named =
            |flow: &Value| flow["subscriber"] == json!({"id": "h-1", "name": "Anna Host", "plan": "home"});
        assert!(
            document["flows"].as_array().unwrap().iter().any(named),
            "{document}"
        );
        let text = printed(&["status"]);
        assert_eq!(
            text.matches("h-1 Anna Host / fq_codel").count(),
            named_in(&run, 16),
            "{text}"
        );
        assert!(text.contains("h-2 / fq_codel"), "{text}");
        assert!(text.contains("unknown addresses / fq_codel"), "{text}");
        assert!(!text.contains("16: "), "{text}");
        // A name changes alone, and the trees are as before.
        let body = json!({"name": "Berta Host"}).to_string();
        assert_eq!(place.ask("PATCH", "/v1/subscribers/h-1", &body).status, 200);
        assert!(printed(&["status", "--json"]).contains("Berta Host"));
        run.stop();
    }
}

/// Returns how many nodes of both directions are the class of a subscriber.
fn named_in(run: &Run, class: u32) -> usize {
    fn count(node: &NodeStatus, class: u32) -> usize {
        let is_named = node.class == Some(class) && node.subscriber.is_some();
        usize::from(is_named)
            + node
                .classes
                .iter()
                .map(|below| count(below, class))
                .sum::<usize>()
    }
    let directions = run.status().directions;
    let named = directions
        .iter()
        .map(|direction| count(&direction.tree, class))
        .sum();
    assert!(named >= 2, "{named} nodes of class {class} have a subscriber");
    named
}

/// One subscriber is added, changed and removed through the API while the stream of another one goes on.
#[test]
fn the_api_changes_one_subscriber() {
    let Some(_watched) = live("the_api_changes_one_subscriber") else {
        return;
    };
    let network = Network::build().unwrap();
    let place = Stage::new("file = \"list.csv\"", "list.csv", &list(20, "home"));
    let run = place.start(&network);
    with_stream(&network, EVERY, || {
        let entry = json!({"prefixes": ["192.0.2.7"], "plan": "home"}).to_string();
        for round in 0..20 {
            let put = place.ask("PUT", "/v1/subscribers/new", &entry);
            assert_eq!(put.status, 201, "{round}: {put:?}");
            let own = json!({"down": format!("{}mbit", 13 + round)}).to_string();
            let patched = place.ask("PATCH", "/v1/subscribers/host", &own);
            assert_eq!(patched.status, 200, "{round}: {patched:?}");
            let removed = place.ask("DELETE", "/v1/subscribers/new", "");
            assert_eq!(removed.status, 200, "{round}: {removed:?}");
        }
        let wrong = json!({"prefixes": ["100.64.0.0/24"], "plan": "home"}).to_string();
        let refused = place.ask("PUT", "/v1/subscribers/new", &wrong);
        assert_eq!(refused.problem(), "refused");
    });
    let host = place.ask("GET", "/v1/subscribers/host", "").json();
    assert_eq!(
        (&host["subscriber"]["down"], &host["class"]),
        (&"32mbit".into(), &16.into())
    );
    let status = run.status();
    assert_eq!((status.changes.applied, status.changes.refused), (60, 1));
    assert_eq!(status.changes.dropped, 0);
    for entry in [
        "PUT subscriber new: plan none -> \"home\", prefixes none -> [\"192.0.2.7\"]: made, revision",
        "PATCH subscriber host: down \"31mbit\" -> \"32mbit\": made, revision",
        "DELETE subscriber new: plan \"home\" -> none, prefixes [\"192.0.2.7/32\"] -> none: made, revision",
    ] {
        assert!(run.said().contains(entry), "{entry}: {}", run.said());
    }
    run.stop();
}

/// LibreQoS' files shape in both directions.
#[test]
fn files_of_libreqos_run() {
    let Some(_watched) = live("files_of_libreqos_run") else {
        return;
    };
    let network = Network::build().unwrap();
    let devices = format!(
        "Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,Download Min Mbps,\
         Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment,sqm\n\
         1,Host,1,Host,AP,,{},,1,1,30,20,,cake/fq_codel\n",
        Network::RIGHT
    );
    let source = "libreqos = { devices = \"ShapedDevices.csv\", network = \"network.json\" }";
    let place = Stage::new(source, "ShapedDevices.csv", &devices);
    let network_json = "{\"Site\": {\"downloadBandwidthMbps\": 100, \"uploadBandwidthMbps\": 100, \
        \"children\": {\"AP\": {\"downloadBandwidthMbps\": 50.5, \"uploadBandwidthMbps\": 50}}}}";
    fs::write(Path::new(&place.folder.path()).join("network.json"), network_json).unwrap();
    let run = place.start(&network);
    let to_right = format!("{}:5200", Network::RIGHT);
    transfer_of(
        2_000_000,
        &network.left,
        &network.right,
        &to_right,
        "to a subscriber",
    );
    let to_left = format!("{}:5201", Network::LEFT);
    transfer_of(
        2_000_000,
        &network.right,
        &network.left,
        &to_left,
        "from a subscriber",
    );
    let status = run.status();
    for direction in &status.directions {
        let states = &direction.tree.class_states;
        // The nodes are 16 and 17.
        let state = states
            .iter()
            .find(|state| state.class == 18)
            .expect("the subscriber's class");
        assert!(state.sent.bytes > 2_000_000, "{state:?}");
        assert!(state.overlimits > 0, "{state:?}");
    }
    nodes_are_called_by_their_names(&place, &run);
    the_doctor_knows_subscribers(&run);
    place.patches("1", &json!({"down": "30500kbit"}));
    let written = fs::read_to_string(&place.list).unwrap();
    assert_eq!(written, devices.replace(",30,20,", ",30.5,20,"));
    place.patches("1", &json!({"down": "30mbit"}));
    a_reload_is_seen_before_it_is_made(&place, &run, &devices);
    run.stop();
}

/// In what prints a run, in the documents of its API, and in the labels of its metrics.
fn nodes_are_called_by_their_names(place: &Stage, run: &Run) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    let printed = output(command.args(["status", "--socket"]).arg(&run.socket));
    let printed = String::from_utf8(printed.stdout).unwrap();
    for row in [
        "\n  line ",
        "\n    Site ",
        "\n      AP ",
        "\n        1 Host / cake",
        " USED ",
    ] {
        assert!(printed.contains(row), "{row}: {printed}");
    }
    let outline = place.ask("GET", "/v1/outline?from=left", "").json();
    let places = outline["places"].as_array().unwrap();
    let named = |path: &str| &places.iter().find(|place| place["path"] == path).unwrap()["name"];
    assert_eq!(
        [named("16"), named("17"), named("18")],
        ["Site", "AP", "Host"],
        "{outline}"
    );
    let mut nodes = Value::Null;
    until("the nodes are read", || {
        nodes = place.ask("GET", "/v1/classes?from=left", "").json()["nodes"].take();
        nodes.as_array().is_some_and(|nodes| nodes.len() == 3)
    });
    assert_eq!(
        (&nodes[2]["name"], &nodes[2]["limit_bps"]),
        (&json!("AP"), &json!(50_500_000))
    );
    assert!(nodes[2]["sent_bytes"].as_u64().unwrap() > 2_000_000, "{nodes}");
    let metrics = place.ask("GET", "/metrics", "").body;
    let node = "{from=\"left\",class=\"17\",node=\"AP\",above=\"Site\"} ";
    for series in [
        format!("fairgate_node_sent_bytes_total{node}"),
        format!("fairgate_node_limit_bits_per_second{node}50500000"),
        "fairgate_class_limit_bits_per_second{from=\"left\",class=\"18\",depth=\"1\",discipline=\"cake\",\
         id=\"1\",name=\"Host\",node=\"AP\"} 30000000"
            .to_owned(),
    ] {
        assert!(metrics.contains(&series), "{series}: {metrics}");
    }
}

/// By name or address. Nothing passes any more, and no node is full.
fn the_doctor_knows_subscribers(run: &Run) {
    let doctor = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
        command
            .args(["doctor", "--json", "--for", "300ms", "--socket"])
            .arg(&run.socket);
        let output = output(command.args(words));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        (output.status.code(), document)
    };
    for who in ["Host", "1", Network::RIGHT] {
        let (code, document) = doctor(&["--subscriber", who]);
        assert_eq!(code, Some(0), "{who}: {document}");
        let findings = document["findings"].as_array().unwrap();
        let members =
            |finding: &Value| [&finding["check"], &finding["of"], &finding["level"]].map(Value::clone);
        let expected = [json!(["download", "1", "ok"]), json!(["upload", "1", "ok"])];
        let found: Vec<Value> = findings.iter().map(|finding| json!(members(finding))).collect();
        assert_eq!(found, expected, "{who}: {document}");
    }
    assert_eq!(doctor(&["--subscriber", "Guest"]).0, Some(2));
    let (_, document) = doctor(&[]);
    let findings = document["findings"].as_array().unwrap();
    let nodes = findings
        .iter()
        .find(|finding| finding["check"] == "nodes")
        .unwrap();
    assert_eq!(nodes["seen"], "none of 3 nodes is full");
}

/// A subscriber is moved to another node, and gets another rate.
fn a_reload_is_seen_before_it_is_made(place: &Stage, run: &Run, devices: &str) {
    let folder = place.folder.path();
    let diff = |file: &Path, words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
        command.args(["subscribers", "diff", "--socket"]).arg(&run.socket);
        let output = output(command.args(words).arg(file));
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let file = folder.join("isp.toml");
    let same = "The run has the list of the files.\n";
    assert_eq!(diff(&file, &[]), (Some(0), same.to_owned()));
    // The run takes over its own files at once, so the new ones are beside them.
    let moved = devices.replace(",AP,", ",Site,").replace(",30,20,", ",40,20,");
    let beside = folder.join("beside");
    fs::create_dir(&beside).unwrap();
    fs::write(beside.join("ShapedDevices.csv"), &moved).unwrap();
    for name in ["network.json", "isp.toml"] {
        fs::copy(folder.join(name), beside.join(name)).unwrap();
    }
    let (code, text) = diff(&beside.join("isp.toml"), &["--json"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let members = json!([
        {"member": "down", "running": "30mbit", "file": "40mbit"},
        {"member": "node", "running": "AP", "file": "Site"},
    ]);
    assert_eq!(
        (code, &document["differences"][0]["members"]),
        (Some(1), &members),
        "{text}"
    );
    takes_over(run, "another list", || place.replace(&moved));
    assert_eq!(diff(&file, &[]).0, Some(0));
    let subscriber = place.ask("GET", "/v1/subscribers/1", "").json();
    assert_eq!(subscriber["shaped"]["node"], "Site");
}
