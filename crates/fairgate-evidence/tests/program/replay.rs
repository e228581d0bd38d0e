//! `fairgate-lab replay`.

use std::io::Write;
use std::path::Path;

use flate2::{Compression, write::GzEncoder};

use super::{ends, json};

const LINES: &str = concat!(
    r#"{"op":"enq","t":0,"flow":1,"prio":"0:0","size":100,"seq":0,"ecn":0,"mem":768,"#,
    r#""rc":0,"qlen":1,"backlog":100}"#,
    "\n",
    r#"{"op":"enq","t":0,"flow":1,"prio":"0:0","size":100,"seq":1,"ecn":0,"mem":768,"#,
    r#""rc":1,"drops":[1],"qlen":1,"backlog":100}"#,
    "\n",
    r#"{"op":"deq","t":256,"flow":1,"size":100,"seq":0,"ecn":0,"qlen":0,"backlog":0}"#,
    "\n",
);

fn compressed(lines: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(lines.as_bytes()).expect("memory is writable");
    encoder.finish().expect("memory is writable")
}

/// Writes `NAME.jsonl.gz`, and its setup file with this qdisc at the root.
fn write(folder: &Path, name: &str, qdisc: &str, trace: &[u8]) -> String {
    let setup = serde_json::json!({
        "setup": [format!("tc qdisc add dev q root handle 10: {qdisc}")],
        "device": {"mtu": 1500, "txqueuelen": 1000, "hard_header_len": 14},
    });
    std::fs::write(folder.join(format!("{name}.json")), setup.to_string()).expect("the folder is writable");
    let path = folder.join(format!("{name}.jsonl.gz"));
    std::fs::write(&path, trace).expect("the folder is writable");
    path.to_str().expect("an ordinary path").to_owned()
}

#[test]
fn each_trace_is_equal_different_or_unsupported() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = compressed(LINES);
    let equal = write(folder.path(), "equal", "pfifo limit 1", &trace);
    let different = write(folder.path(), "different", "pfifo limit 2", &trace);
    let unsupported = write(folder.path(), "unsupported", "skbprio", &trace);

    let (stdout, _) = ends(&["replay", &equal, &unsupported], 0);
    assert!(stdout.contains("equal        3 operations"), "{stdout}");
    assert!(
        stdout.contains("the qdisc `skbprio` is not supported yet"),
        "{stdout}"
    );
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

/// Unreadable traces are reported, and the others are still compared.
#[test]
fn unreadable_traces_are_reported_and_the_others_are_compared() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = compressed(LINES);
    write(folder.path(), "a-equal", "pfifo limit 1", &whole);
    write(folder.path(), "z-different", "pfifo limit 2", &whole);
    let unknown = LINES.replace(r#""op":"deq""#, r#""op":"peek""#);
    let broken = LINES.replacen(r#""seq":1"#, r#""seq":"#, 1);
    let cases = [
        ("broken", compressed(&broken), "line 2: expected value"),
        ("setup", whole.clone(), "setup.json: expected"),
        (
            "truncated",
            whole[..whole.len() - 12].to_vec(),
            "the compressed data ends early or is damaged",
        ),
        ("unknown", compressed(&unknown), "line 3: unknown variant `peek`"),
    ];
    for (name, trace, _) in &cases {
        write(folder.path(), name, "pfifo limit 1", trace);
    }
    std::fs::write(folder.path().join("setup.json"), "no JSON").expect("the folder is writable");

    let all = folder.path().to_str().expect("an ordinary path");
    let (stdout, stderr) = ends(&["replay", "missing", all], 2);
    assert_eq!(stderr, "");
    assert!(
        stdout.ends_with("1 equal, 1 different, 0 unsupported, 5 unreadable\n"),
        "{stdout}"
    );
    let report = json(&["replay", "--json", "missing", all], 2);
    let summary = &report["summary"];
    assert_eq!(
        (&summary["equal"], &summary["different"], &summary["unreadable"]),
        (&1.into(), &1.into(), &5.into())
    );
    let traces = report["traces"].as_array().expect("a list");
    let missing = ("missing", "can't be read: No such file");
    for (name, part) in cases
        .iter()
        .map(|(name, _, part)| (*name, *part))
        .chain([missing])
    {
        let is_it =
            |trace: &&serde_json::Value| trace["path"].as_str().is_some_and(|path| path.contains(name));
        let trace = traces.iter().find(is_it).expect(name);
        assert_eq!(trace["result"], "unreadable");
        let reason = trace["reason"].as_str().expect("text");
        assert!(reason.contains(part), "{reason}");
        assert!(trace["help"].is_string(), "{name}");
        assert!(stdout.contains(reason), "{stdout}");
    }
}

/// The name is not UTF-8. The setup file beside the trace is found.
#[test]
fn a_trace_may_have_any_name() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plain = write(folder.path(), "plain", "pfifo limit 1", &compressed(LINES));
    let odd = folder.path().join(OsStr::from_bytes(b"m\xfcnchen.jsonl.gz"));
    std::fs::rename(plain, &odd).expect("a name is free");
    std::fs::rename(
        folder.path().join("plain.json"),
        folder.path().join(OsStr::from_bytes(b"m\xfcnchen.json")),
    )
    .expect("a name is free");
    let (stdout, _) = ends(&["replay", folder.path().to_str().expect("an ordinary path")], 0);
    assert!(stdout.contains("1 equal"), "{stdout}");
}

#[test]
fn the_recorded_traces_are_found_and_equal() {
    let report = json(&["replay", "--json", "../../../../tests/data/kernel-traces"], 0);
    assert_eq!(report["summary"]["equal"], 75);
    assert_eq!(report["summary"]["unsupported"], 0);
}
