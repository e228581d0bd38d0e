//! `fairgate replay`.

use std::io::Write;
use std::path::Path;

use flate2::{Compression, write::GzEncoder};

use super::{ends, json};

const LINES: &str = r#"{"op":"enq","t":0,"flow":1,"prio":"0:0","size":100,"seq":0,"ecn":0,"mem":768,"rc":0,"qlen":1,"backlog":100}
{"op":"enq","t":0,"flow":1,"prio":"0:0","size":100,"seq":1,"ecn":0,"mem":768,"rc":1,"drops":[1],"qlen":1,"backlog":100}
{"op":"deq","t":256,"flow":1,"size":100,"seq":0,"ecn":0,"qlen":0,"backlog":0}
"#;

fn compressed(lines: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(lines.as_bytes()).expect("memory is writable");
    encoder.finish().expect("memory is writable")
}

/// Writes `NAME.jsonl.gz`, and its setup with this qdisc at the root.
fn write(folder: &Path, name: &str, qdisc: &str, trace: &[u8]) -> String {
    let setup = serde_json::json!({
        "setup": [format!("tc qdisc add dev q root handle 10: {qdisc}")],
        "device": {"mtu": 1500, "txqueuelen": 1000, "hard_header_len": 14},
    });
    std::fs::write(folder.join(format!("{name}.json")), setup.to_string()).expect("the place is writable");
    let path = folder.join(format!("{name}.jsonl.gz"));
    std::fs::write(&path, trace).expect("the place is writable");
    path.to_str().expect("an ordinary path").to_owned()
}

#[test]
fn each_trace_is_equal_different_or_unsupported() {
    let folder = tempfile::tempdir().expect("a place for files");
    let trace = compressed(LINES);
    let equal = write(folder.path(), "equal", "pfifo limit 1", &trace);
    let different = write(folder.path(), "different", "pfifo limit 2", &trace);
    let unsupported = write(folder.path(), "unsupported", "netem delay 10ms", &trace);

    let (stdout, _) = ends(&["replay", &equal, &unsupported], 0);
    assert!(stdout.contains("equal        3 operations"), "{stdout}");
    assert!(stdout.contains("there is no `netem` here yet"), "{stdout}");
    assert!(
        stdout.ends_with("1 equal, 0 different, 1 unsupported\n"),
        "{stdout}"
    );

    let (stdout, _) = ends(&["replay", &different], 1);
    assert!(stdout.contains("line 2: enq at 0 ns"), "{stdout}");
    assert!(stdout.contains("rc: expected 1, got 0"), "{stdout}");
    assert!(stdout.contains("drops: expected 1, got none"), "{stdout}");

    let all = folder.path().to_str().expect("an ordinary path");
    let report = json(&["replay", "--json", all], 1);
    assert_eq!(report["schema"], "fairgate.replay/1");
    let summary = &report["summary"];
    assert_eq!(
        (&summary["equal"], &summary["different"], &summary["unsupported"]),
        (&1.into(), &1.into(), &1.into())
    );
    let first = &report["traces"][0];
    assert_eq!(
        (&first["result"], &first["line"]),
        (&"different".into(), &2.into())
    );
    assert_eq!(first["mismatches"][0]["field"], "rc");
    assert_eq!(report["traces"][1]["operations"], 3);
}

#[test]
fn files_that_are_no_traces_are_bad_input() {
    let folder = tempfile::tempdir().expect("a place for files");
    let expect = |name: &str, trace: &[u8], part: &str| {
        let path = write(folder.path(), name, "pfifo limit 1", trace);
        let (stdout, stderr) = ends(&["replay", &path], 2);
        assert_eq!(stdout, "");
        // The report wraps long lines.
        let message = stderr
            .split_whitespace()
            .filter(|word| *word != "│")
            .collect::<Vec<_>>()
            .join(" ");
        assert!(message.contains(part), "{message}");
        let errors = json(&["replay", "--json", &path], 2);
        let message = errors["errors"][0]["message"].as_str().expect("text");
        assert!(message.contains(part), "{message}");
    };
    let whole = compressed(LINES);
    expect(
        "truncated",
        &whole[..whole.len() - 12],
        "the compressed data ends early or is damaged",
    );
    let unknown = LINES.replace(r#""op":"deq""#, r#""op":"peek""#);
    expect("unknown", &compressed(&unknown), "line 3: unknown variant `peek`");
    let broken = LINES.replacen(r#""seq":1"#, r#""seq":"#, 1);
    expect("broken", &compressed(&broken), "line 2: expected value");
    let (_, stderr) = ends(&["replay", "missing"], 2);
    assert!(stderr.contains("missing: can't be read"), "{stderr}");
}
