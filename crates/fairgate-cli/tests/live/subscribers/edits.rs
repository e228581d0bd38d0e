//! What clients change in a list: it is in its file, or it is refused.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::process::Command;

use fairgate_live::testbed::Network;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{EVERY, Stage, list, taken_over, takes_over};
use crate::common::{live, output, until};
use crate::stream::with_stream;

/// What a client changes is in the file before the answer comes, and nothing else of the file changes: it
/// stays when the file is read again, and when the run begins anew. The run does not take its own writing
/// for a change by somebody else.
#[test]
fn an_edit_stays() {
    let Some(_watched) = live("an_edit_stays") else {
        return;
    };
    let network = Network::build().unwrap();
    let content = format!("# Ours\r\n{}", list(20, "home").replace('\n', "\r\n"))
        .replace("id,prefixes,plan\r\n", "id,prefixes,plan,down\r\n");
    let content = content.replace(",home\r\n", ",home,\r\n");
    let place = Stage::new("file = \"list.csv\"", "list.csv", &content);
    fs::set_permissions(&place.list, fs::Permissions::from_mode(0o640)).unwrap();
    xattr::set(&place.list, "user.comment", b"ours").unwrap();
    let run = place.start(&network);
    let file = || fs::read_to_string(&place.list).unwrap();
    place.patches("5", &json!({"down": "3mbit"}));
    let row = "5,100.64.0.5 2001:db8:0:500::/56,home,";
    let edited = content.replace(row, &format!("{row}3mbit"));
    assert_eq!(file(), edited);
    assert_eq!(place.list.metadata().unwrap().mode() & 0o7777, 0o640);
    assert_eq!(xattr::get(&place.list, "user.comment").unwrap().unwrap(), b"ours");
    let left: Vec<_> = fs::read_dir(place.folder.path())
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 3, "{left:?}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    command.args(["subscribers", "diff", "--socket"]).arg(&run.socket);
    let diff = output(command.arg(place.folder.path().join("isp.toml")));
    assert_eq!(diff.status.code(), Some(0), "{diff:?}");
    let entry = json!({"prefixes": ["192.0.2.7"], "plan": "home"}).to_string();
    assert_eq!(place.ask("PUT", "/v1/subscribers/new", &entry).status, 201);
    assert_eq!(place.ask("DELETE", "/v1/subscribers/6", "").status, 200);
    let without = |line: &&str| !line.starts_with("6,");
    let rest: String = edited.split_inclusive('\n').filter(without).collect();
    assert_eq!(file(), format!("{rest}new,192.0.2.7,home,\r\n"));
    // The next reading is that of the signal: there was none before.
    takes_over(&run, "the file is read again", || run.signal(Signal::SIGHUP));
    assert_eq!(taken_over(&run), 1);
    run.until_said("0 subscribers added, 0 removed, 0 changed; there are 20");
    assert_eq!(place.own_rate("5"), "3mbit");
    run.stop();
    let run = place.start(&network);
    assert_eq!(place.own_rate("5"), "3mbit");
    // What somebody else writes is taken over as before.
    takes_over(&run, "an editor's change", || place.replace(&content));
    assert_eq!(place.own_rate("5"), Value::Null);
    run.stop();
}

/// An edit that would not stay is refused: over a change that the run has not read, and if the file can't be
/// written as it was. The answer and the page say so.
#[test]
fn an_edit_that_would_not_stay_is_refused() {
    let Some(_watched) = live("an_edit_that_would_not_stay_is_refused") else {
        return;
    };
    let network = Network::build().unwrap();
    let source = "file = \"link.csv\"\nwatch = false";
    let place = Stage::new(source, "lists/list.csv", &list(20, "home"));
    symlink("lists/list.csv", place.folder.path().join("link.csv")).unwrap();
    let run = place.start(&network);
    let refused = |words: &str| {
        let before = (fs::read_to_string(&place.list).unwrap(), run.status().revision);
        let answer = place.ask(
            "PATCH",
            "/v1/subscribers/5",
            &json!({"down": "3mbit"}).to_string(),
        );
        assert_eq!(answer.problem(), "refused", "{words}: {answer:?}");
        let error = &answer.json()["errors"][0];
        let message = error["message"].as_str().unwrap().to_owned();
        assert!(message.contains(words), "{words}: {error}");
        assert!(error["place"].as_str().unwrap().ends_with("link.csv"), "{error}");
        assert!(!error["help"].as_str().unwrap().is_empty());
        assert_eq!(
            (fs::read_to_string(&place.list).unwrap(), run.status().revision),
            before
        );
        assert_eq!(place.own_rate("5"), Value::Null);
        message
    };
    fs::write(&place.list, list(20, "fast")).unwrap();
    refused("has changed since the run has read it");
    takes_over(&run, "the file is read again", || run.signal(Signal::SIGHUP));
    chown(&place.list, Some(65_534), None).unwrap();
    let message = refused("can't be written, so that the change would not stay: it belongs to user 65534");
    let document = place.ask("GET", "/v1/subscribers", "").json();
    assert_eq!(
        (&document["is_changeable"], &document["unchangeable"]["message"]),
        (&json!(false), &json!(message))
    );
    run.until_said("PATCH subscriber 5: down none -> \"3mbit\": refused: ");
    chown(&place.list, Some(0), None).unwrap();
    // What is at the end of the link changes.
    place.patches("5", &json!({"down": "3mbit"}));
    assert!(fs::read_to_string(&place.list).unwrap().contains("3mbit"));
    assert!(place.folder.path().join("link.csv").is_symlink());
    run.stop();
}

/// A limit for a time holds until then, also when the run begins anew, and leaves the list as it is.
#[test]
fn a_limit_ends_by_itself() {
    let Some(_watched) = live("a_limit_ends_by_itself") else {
        return;
    };
    let network = Network::build().unwrap();
    let content = list(20, "home");
    let place = Stage::new("file = \"list.csv\"", "list.csv", &content);
    let run = place.start(&network);
    let patch = |for_s: u64| {
        let both = json!([{"id": "5", "down": "3mbit"}, {"id": "6", "up": "2mbit"}]);
        let body = json!({"subscribers": both, "for_s": for_s});
        let answer = place.ask("PATCH", "/v1/subscribers", &body.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    let shaped = |id: &str| place.ask("GET", &format!("/v1/subscribers/{id}"), "").json()["shaped"].clone();
    patch(3600);
    assert_eq!(
        (&shaped("5")["down_bps"], &shaped("6")["up_bps"]),
        (&json!(3_000_000), &json!(2_000_000))
    );
    assert_eq!(fs::read_to_string(&place.list).unwrap(), content);
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    command.args(["subscribers", "diff", "--socket"]).arg(&run.socket);
    let diff = output(command.arg(place.folder.path().join("isp.toml")));
    assert_eq!(diff.status.code(), Some(0), "{diff:?}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    let status = output(command.args(["status", "--socket"]).arg(&run.socket));
    let status = String::from_utf8(status.stdout).unwrap();
    assert_eq!(status.matches("5 limited until ").count(), 2, "{status}");
    run.stop();
    let run = place.start(&network);
    assert_eq!(shaped("5")["down_bps"], 3_000_000);
    assert_eq!(taken_over(&run), 0);
    patch(2);
    assert_eq!(shaped("5")["down_bps"], 3_000_000);
    until("the limits have ended", || {
        shaped("5").get("limited_until_s").is_none()
    });
    assert_eq!(
        (&shaped("5")["down_bps"], &shaped("6")["up_bps"]),
        (&json!(12_000_000), &json!(12_000_000))
    );
    run.until_said("the run: limits for a time have ended: made");
    patch(3600);
    let end = json!({"subscribers": [{"id": "5"}, {"id": "6"}], "for_s": 0}).to_string();
    assert_eq!(place.ask("PATCH", "/v1/subscribers", &end).status, 200);
    assert_eq!(shaped("5")["down_bps"], 12_000_000);
    run.stop();
}

/// An access point gets other rates under a stream of packets, of which none is lost. Two numbers of
/// network.json change, and no other byte. It is the same for who reads the files, and when the run begins
/// anew.
#[test]
fn rates_of_a_node_stay() {
    let Some(_watched) = live("rates_of_a_node_stay") else {
        return;
    };
    let network = Network::build().unwrap();
    let devices = format!(
        "Circuit ID,Circuit Name,Parent Node,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,Download Max Mbps,\
         Upload Max Mbps,sqm\n1,Host,AP/3,{},,1,1,30,20,fq_codel\n",
        Network::RIGHT
    );
    let source = "libreqos = { devices = \"ShapedDevices.csv\", network = \"network.json\" }";
    let place = Stage::new(source, "ShapedDevices.csv", &devices);
    let nodes = "{\r\n\t\"Site\": {\"downloadBandwidthMbps\": 100, \"uploadBandwidthMbps\":100 , \"lat\": 1,\
        \r\n\t\t\"children\": {\"AP/3\": {\"downloadBandwidthMbps\": 50.50, \
        \"uploadBandwidthMbps\": \"50\"}}}}\r\n";
    let path = place.folder.path().join("network.json");
    fs::write(&path, nodes).unwrap();
    let run = place.start(&network);
    let fairgate = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
        command.arg("subscribers").args(words);
        let output = output(command.arg("--socket").arg(&run.socket));
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        (
            output.status.code(),
            printed,
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let limits = |rates: [u64; 2]| {
        let document = place.ask("GET", "/v1/subscribers", "").json();
        let node = &document["nodes"][1];
        assert_eq!(
            (&node["down_bps"], &node["up_bps"]),
            (&json!(rates[0]), &json!(rates[1])),
            "{node}"
        );
        let status = serde_json::to_string(&run.status()).unwrap();
        for rate in rates {
            assert!(
                status.contains(&format!("\"limit_bps\":{rate}")),
                "{rate}: {status}"
            );
        }
    };
    limits([50_500_000, 50_000_000]);
    let (code, shown, _) = fairgate(&["node", "AP/3", "down=40mbit"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains("Nothing is changed yet") && shown.contains("1 subscriber is"),
        "{shown}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), nodes);
    with_stream(&network, EVERY, || {
        let (code, made, wrong) = fairgate(&["node", "AP/3", "down=40mbit", "up=12500kbit", "--yes"]);
        assert_eq!(code, Some(0), "{made}{wrong}");
    });
    limits([40_000_000, 12_500_000]);
    let edited = nodes.replace("50.50", "40").replace("\"50\"", "\"12.5\"");
    assert_eq!(fs::read_to_string(&path).unwrap(), edited);
    assert_eq!(fs::read_to_string(&place.list).unwrap(), devices);
    let file = place.folder.path().join("isp.toml");
    assert_eq!(fairgate(&["diff", file.to_str().unwrap()]).0, Some(0));
    run.until_said("PATCH node AP/3: down 50500000 -> 40000000, up ");
    // What is refused changes nothing.
    let patch = |target: &str, body: &str| place.ask("PATCH", target, body);
    assert_eq!(patch("/v1/nodes/AP%2F4", "{\"down\": \"5mbit\"}").status, 404);
    for wrong in [
        "{}",
        "{\"down\": \"fast\"}",
        "{\"rate\": \"5mbit\"}",
        "{\"up\": \"1kbit\"}",
    ] {
        assert_eq!(patch("/v1/nodes/AP%2F3", wrong).status, 400, "{wrong}");
    }
    let (code, _, wrong) = fairgate(&["node", "AP", "down=5mbit"]);
    assert_eq!(code, Some(2));
    assert!(wrong.contains("AP/3"), "{wrong}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    let by_hand = output(
        command
            .args([
                "class",
                "change",
                "17",
                "ceil=5mbit",
                "--from",
                "left",
                "--socket",
            ])
            .arg(&run.socket),
    );
    let by_hand = String::from_utf8_lossy(&by_hand.stderr).replace(['\n', '│', ' '], "");
    assert!(by_hand.contains("isnode`AP/3`"), "{by_hand}");
    assert_eq!(fs::read_to_string(&path).unwrap(), edited);
    assert_eq!(taken_over(&run), 0);
    run.stop();
    let run = place.start(&network);
    let document = place.ask("GET", "/v1/subscribers", "").json();
    assert_eq!(document["nodes"][1]["down_bps"], 40_000_000);
    run.stop();
}

/// Subscribers of two files change together: in both files, or in none of them. A change that was interrupted
/// between the two is finished by the next start.
#[test]
fn an_edit_is_in_all_files_or_in_none() {
    let Some(_watched) = live("an_edit_is_in_all_files_or_in_none") else {
        return;
    };
    let network = Network::build().unwrap();
    let first = list(3, "home");
    let place = Stage::new("file = \"lists\"", "lists/a.csv", &first);
    let second_path = place.list.with_file_name("b.csv");
    let second = "id,prefixes,plan,down\nb,192.0.2.7,home,\n".to_owned();
    fs::write(&second_path, &second).unwrap();
    let run = place.start(&network);
    let both = |rate: &str| {
        let each = json!([{"id": "2", "down": rate}, {"id": "b", "down": rate}]);
        place.ask(
            "PATCH",
            "/v1/subscribers",
            &json!({"subscribers": each}).to_string(),
        )
    };
    let files = || [&place.list, &second_path].map(|file| fs::read_to_string(file).unwrap());
    assert_eq!(both("3mbit").status, 200);
    let edited = files();
    assert!(edited[0].contains(",home,3mbit\n"), "{edited:?}");
    assert_eq!(edited[1], second.replace("home,", "home,3mbit"));
    // A file with another name can't be replaced.
    let other = place.folder.path().join("other");
    fs::hard_link(&second_path, &other).unwrap();
    let revision = run.status().revision;
    assert_eq!(both("4mbit").problem(), "refused");
    assert_eq!((files(), run.status().revision), (edited.clone(), revision));
    fs::remove_file(&other).unwrap();
    assert_eq!(both("5mbit").status, 200);
    let left = || fs::read_dir(place.list.parent().unwrap()).unwrap().count();
    assert_eq!((taken_over(&run), left()), (0, 2));
    run.stop();
    // The machine has stopped when one of two had its name.
    let found = second_path.metadata().unwrap();
    fs::write(
        place.list.with_file_name(".b.csv.fairgate"),
        second.replace("home,", "home,7mbit"),
    )
    .unwrap();
    let replaced = json!({
        "path": second_path.canonicalize().unwrap(), "inode": found.ino(), "bytes": found.len(),
        "changed_s": found.mtime(), "changed_ns": found.mtime_nsec(),
    });
    let note = json!({"schema": "fairgate.list-change/1", "files": [replaced]}).to_string();
    fs::write(place.list.with_file_name(".fairgate-change"), note).unwrap();
    let run = place.start(&network);
    assert_eq!((place.own_rate("b"), left()), (json!("7mbit"), 2));
    run.stop();
}
