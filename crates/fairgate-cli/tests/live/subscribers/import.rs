//! A list that is imported again and again while its subscribers are served.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fairgate_live::testbed::Network;
use serde_json::json;

use super::{EVERY, Stage, takes_over};
use crate::common::{live, output};
use crate::recorded::{Server, cut, rows};
use crate::stream::with_stream;

/// An import changes a rate, and moves a subscriber to another access point: the run has both, and loses no
/// packet. An answer that is cut off and one that is too short change nothing.
#[test]
fn a_run_follows_what_is_imported() {
    let Some(_watched) = live("a_run_follows_what_is_imported") else {
        return;
    };
    let step = Arc::new(AtomicUsize::new(0));
    let at = Arc::clone(&step);
    let server = Server::start(move |asked, _| {
        let mut all = asked.rows();
        let step = at.load(Ordering::SeqCst);
        for row in &mut all {
            let is_of = |row: &serde_json::Value, pointer: &str, name: &str| {
                row.pointer(pointer).and_then(serde_json::Value::as_str) == Some(name)
            };
            // The right host is behind Anna's device.
            if is_of(row, "/identification/name", "Anna CPE") {
                row["ipAddress"] = json!(format!("{}/24", Network::RIGHT));
                if step > 0 {
                    row["attributes"]["apDevice"] = json!(null);
                }
            }
            if step > 0 && is_of(row, "/identification/name", "Anna Berg") {
                row["qos"]["downloadSpeed"] = json!(150_000_000);
            }
        }
        match step {
            2 if asked.target.contains("devices") => cut("[{\"identification\": {", true),
            3 if asked.target.contains("devices") => rows(&all[..4]),
            _ => rows(&all),
        }
    });
    let network = Network::build().unwrap();
    let source = "libreqos = { devices = \"ShapedDevices.csv\", network = \"network.json\" }";
    let place = Stage::new(source, "ShapedDevices.csv", "");
    fs::remove_file(&place.list).unwrap();
    let token = place.folder.path().join("token");
    fs::write(&token, "secret\n").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let imports = || -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
        command.args(["subscribers", "import", "uisp", &server.address]);
        command.arg(place.folder.path().join("isp.toml"));
        command
            .arg("--token-file")
            .arg(&token)
            .arg("--ca")
            .arg(&server.ca);
        output(&mut command)
    };
    let first = imports();
    assert_eq!(first.status.code(), Some(0), "{first:?}");
    let run = place.start(&network);
    let anna = || {
        let answer = place
            .ask("GET", "/v1/subscribers/1f3a0000-0000-4000-8000-000000000003", "")
            .json();
        (
            answer["shaped"]["down_bps"].clone(),
            answer["shaped"]["node"].clone(),
        )
    };
    assert_eq!(anna(), (json!(100_000_000), json!("Tower North")));
    with_stream(&network, EVERY, || {
        takes_over(&run, "the second import", || {
            step.store(1, Ordering::SeqCst);
            let second = imports();
            assert_eq!(second.status.code(), Some(0), "{second:?}");
        });
        assert_eq!(anna(), (json!(150_000_000), json!("Water Tower")));
        for (broken, code) in [(2, 3), (3, 2)] {
            step.store(broken, Ordering::SeqCst);
            let refused = imports();
            assert_eq!(refused.status.code(), Some(code), "{refused:?}");
        }
    });
    assert_eq!(anna(), (json!(150_000_000), json!("Water Tower")));
    let changes = run.status().changes;
    assert_eq!((changes.applied, changes.refused, changes.dropped), (1, 0, 0));
    run.stop();
}
