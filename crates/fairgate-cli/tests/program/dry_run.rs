//! `fairgate run` from captures to captures.

use std::fs;

use super::{ends, folder, json};

fn example(name: &str) -> String {
    folder("../../examples").join(name).display().to_string()
}

/// The capture offers more than the 19 Mbit/s of the tree. What one run sends, another can read.
#[test]
fn captured_frames_are_shaped_and_written() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out.pcap").display().to_string();
    let (home, recorded) = (example("home.toml"), example("recorded.pcap.gz"));
    let (stdout, stderr) = ends(&["run", &home, "--from-left", &recorded, "--to-right", &out], 0);
    assert!(stdout.contains("in the time of the captures"), "{stdout}");
    assert!(stderr.contains("frames were captured in part"), "{stderr}");
    assert!(stderr.contains("they were cut into packets"), "{stderr}");

    let status = json(
        &["run", "--json", &home, "--from-left", &recorded, "--repeat", "3"],
        0,
    );
    assert_eq!(status["schema"], "fairgate.status/1");
    let bytes = status["directions"][0]["sent"]["bytes"].as_f64().unwrap();
    let rate = bytes * 8.0 / status["uptime_s"].as_f64().unwrap();
    assert!((17e6..19.1e6).contains(&rate), "{rate} bit/s");

    let status = json(&["run", "--json", &home, "--from-right", &out], 0);
    let packets = &status["directions"][1]["tree"]["enqueued"]["packets"];
    assert!(packets.as_u64() > Some(1_000), "{packets}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let place = tempfile::tempdir().unwrap();
    let bytes = |name: &str| {
        let out = place.path().join(name);
        let path = out.display().to_string();
        let (home, recorded) = (example("home.toml"), example("recorded.pcap.gz"));
        let arguments = ["run", &home, "--seed", "7", "--from-left", &recorded];
        ends(&[&arguments[..], &["--to-right", &path]].concat(), 0);
        fs::read(out).unwrap()
    };
    assert!(bytes("one.pcap") == bytes("two.pcap"));
}

#[test]
fn wrong_captures_and_options_of_a_dry_run_are_refused() {
    let (home, recorded) = (example("home.toml"), example("recorded.pcap.gz"));
    let refused = |arguments: &[&str], what: &str| {
        let (stdout, stderr) = ends(&[&["run", &home], arguments].concat(), 2);
        assert_eq!(stdout, "");
        assert!(stderr.contains(what), "{stderr}");
    };
    refused(&["--to-right", "out.pcap"], "no capture is given");
    refused(&["--repeat", "2"], "no capture is given");
    refused(&["--from-left", &home], "not a packet capture");
    refused(&["--from-left", "nowhere.pcap"], "nowhere.pcap");
    refused(&["--from-left", &recorded, "--repeat", "0"], "--repeat");
    refused(
        &["--from-left", &recorded, "--to-left", &recorded],
        "the command reads",
    );
    refused(&["--from-left", &recorded, "--socket", "s.sock"], "--socket");
}
