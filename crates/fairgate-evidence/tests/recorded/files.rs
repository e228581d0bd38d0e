//! Replays of valid and damaged files: differences are found, errors name their location, and nothing panics.

use std::io::Write;
use std::path::{Path, PathBuf};

use fairgate_evidence::replay::{Outcome, find, replay};
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use tempfile::TempDir;

/// A shaper that throttles the second packet. The third packet does not fit into its fifo.
const SHAPER: &str = "tc qdisc add dev q root handle 1: tbf rate 8mbit burst 1000 limit 1000";
const SHAPED: &str = concat!(
    r#"{"op":"origin","ktime_ns":1073741824}"#,
    "\n",
    r#"{"op":"note","text":"begin"}"#,
    "\n",
    r#"{"op":"enq","t":0,"flow":1,"prio":"0:0","size":1000,"seq":0,"ecn":0,"mem":2304,"#,
    r#""rc":0,"qlen":1,"backlog":1000}"#,
    "\n",
    r#"{"op":"deq","t":0,"flow":1,"size":1000,"seq":0,"ecn":0,"qlen":0,"backlog":0}"#,
    "\n",
    r#"{"op":"enq","t":0,"flow":1,"prio":"0:0","size":1000,"seq":1,"ecn":0,"mem":2304,"#,
    r#""rc":0,"qlen":1,"backlog":1000}"#,
    "\n",
    r#"{"op":"none","t":0,"wd":1000000,"qlen":1,"backlog":1000}"#,
    "\n",
    r#"{"op":"enq","t":256,"flow":1,"prio":"0:0","size":1000,"seq":2,"ecn":0,"mem":2304,"#,
    r#""rc":1,"drops":[2],"qlen":1,"backlog":1000}"#,
    "\n",
    r#"{"op":"deq","t":1000192,"flow":1,"size":1000,"seq":1,"ecn":0,"qlen":0,"backlog":0}"#,
    "\n",
    r#"{"op":"none","t":1000192,"wd":-1,"qlen":0,"backlog":0}"#,
    "\n",
);

/// Setups of every kind, which the tests damage.
const SETUPS: [&[&str]; 11] = [
    &[SHAPER],
    &[
        "tc qdisc add dev q root handle 10: prio bands 2 priomap 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1",
        "tc qdisc add dev q parent 10:1 handle 11: bfifo limit 3000",
    ],
    &[
        "tc qdisc add dev q root handle 10: drr",
        "tc class add dev q parent 10: classid 10:1 drr quantum 300",
        "tc qdisc add dev q parent 10:1 handle 21: pfifo_head_drop limit 5",
    ],
    &[
        "tc qdisc add dev q root handle 10: sfq limit 8 flows 16 depth 4 quantum 1514 divisor 64 perturb 1 \
         headdrop",
    ],
    &[
        "tc qdisc add dev q root handle 10: red limit 9000 min 1000 max 3000 avpkt 500 burst 5 probability \
         0.1 bandwidth 10mbit ecn adaptive",
    ],
    &[
        "tc qdisc add dev q root handle 10: pie limit 9 target 5ms tupdate 5ms alpha 2 beta 20 ecn bytemode \
         dq_rate_estimator",
    ],
    &[
        "tc qdisc add dev q root handle 10: fq_pie limit 9 flows 8 target 5ms quantum 300 memory_limit 9000 \
         ecn_prob 5 ecn",
    ],
    &[
        "tc qdisc add dev q root handle 10: choke limit 40 min 5 max 10 avpkt 500 burst 8 probability 0.1 \
         bandwidth 10mbit ecn",
    ],
    &[
        "tc qdisc add dev q root handle 10: dualpi2 limit 9 memlimit 9000 alpha 0.2 beta 3 step_thresh 500 \
         coupling_factor 3 classic_protection 20 overflow",
    ],
    &["tc qdisc add dev q root handle 10: codel limit 9 target 5ms interval 100ms ecn ce_threshold 200"],
    &[
        "tc qdisc add dev q root handle 10: fq_codel limit 9 flows 8 quantum 300 memory_limit 9000 \
         drop_batch 2 noecn",
    ],
];

struct Files {
    folder: TempDir,
}

impl Files {
    fn new(commands: &[&str], lines: &str) -> Files {
        let files = Files {
            folder: TempDir::new().unwrap(),
        };
        files.write_setup(commands);
        files.write_trace(&compressed(lines.as_bytes()));
        files
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("small.jsonl.gz")
    }

    fn write_trace(&self, bytes: &[u8]) {
        std::fs::write(self.trace(), bytes).unwrap();
    }

    fn write_setup(&self, commands: &[&str]) {
        let setup = serde_json::json!({
            "discipline": "tbf",
            "setup": commands,
            "device": {"name": "q", "mtu": 1500, "txqueuelen": 1000, "hard_header_len": 14},
        });
        std::fs::write(self.folder.path().join("small.json"), setup.to_string()).unwrap();
    }

    fn replay(&self) -> Result<Outcome, String> {
        replay(&self.trace(), 1).map_err(|error| error.to_string())
    }
}

fn compressed(lines: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(lines).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn an_equal_trace_counts_its_operations() {
    let files = Files::new(&[SHAPER], SHAPED);
    assert_eq!(files.replay(), Ok(Outcome::Equal { operations: 7 }));
    assert_eq!(find(files.folder.path()).unwrap(), [files.trace()]);
}

#[test]
fn every_result_is_compared() {
    let changes = [
        (r#""rc":1"#, r#""rc":0"#, 7, "rc"),
        (r#""drops":[2],"#, "", 7, "drops"),
        (
            r#""seq":1,"ecn":0,"qlen":0"#,
            r#""seq":7,"ecn":0,"qlen":0"#,
            8,
            "seq",
        ),
        (
            r#""seq":1,"ecn":0,"qlen":0"#,
            r#""seq":1,"ecn":3,"qlen":0"#,
            8,
            "ecn",
        ),
        (r#""wd":1000000"#, r#""wd":1000001"#, 6, "wd"),
        (r#""wd":1000000,"qlen":1"#, r#""wd":1000000,"qlen":2"#, 6, "qlen"),
        (
            r#""wd":-1,"qlen":0,"backlog":0"#,
            r#""wd":-1,"qlen":0,"backlog":9"#,
            9,
            "backlog",
        ),
        (r#""wd":-1"#, r#""wd":-1,"tokens":999999"#, 9, "tokens"),
        (r#""wd":-1"#, r#""wd":-1,"mystery":1"#, 9, "mystery"),
    ];
    for (recorded, changed, line, field) in changes {
        let lines = SHAPED.replacen(recorded, changed, 1);
        assert_ne!(lines, SHAPED, "{recorded} is in the trace");
        let outcome = Files::new(&[SHAPER], &lines).replay();
        let Ok(Outcome::Different(difference)) = &outcome else {
            panic!("{changed}: {outcome:?}");
        };
        assert_eq!(difference.line, line, "{changed}");
        assert_eq!(difference.mismatches[0].field, field, "{changed}");
    }
}

#[test]
fn another_limit_is_a_difference() {
    let larger = SHAPER.replace("limit 1000", "limit 2000");
    let outcome = Files::new(&[&larger], SHAPED).replay().unwrap();
    let Outcome::Different(difference) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((difference.line, difference.operation), (7, "enq"));
    let fields: Vec<&str> = difference
        .mismatches
        .iter()
        .map(|mismatch| &*mismatch.field)
        .collect();
    assert_eq!(fields, ["rc", "drops", "qlen", "backlog"]);
}

#[test]
fn an_unknown_qdisc_is_unsupported_and_not_equal() {
    let outcome = Files::new(&["tc qdisc add dev q root handle 1: skbprio"], SHAPED).replay();
    assert_eq!(
        outcome,
        Ok(Outcome::Unsupported {
            reason: "the qdisc `skbprio` is not supported yet".to_owned()
        })
    );
}

#[test]
fn an_error_names_its_file_and_line() {
    let files = Files::new(&[SHAPER], SHAPED);
    let expect = |part: &str| {
        let error = files.replay().unwrap_err();
        assert!(error.contains(part), "{error}");
    };
    let whole = compressed(SHAPED.as_bytes());
    files.write_trace(&whole[..whole.len() / 2]);
    expect("the compressed data ends early or is damaged");
    files.write_trace(b"not gzip");
    expect("small.jsonl.gz, line 1: the compressed data");
    files.write_trace(&compressed(b""));
    expect("the trace has no operation");
    let with = |recorded: &str, changed: &str| {
        files.write_trace(&compressed(SHAPED.replacen(recorded, changed, 1).as_bytes()));
    };
    with(r#"{"op":"deq","t":0"#, r#"{"op":"deq""#);
    expect("small.jsonl.gz, line 4: missing field `t`");
    with(r#"{"op":"deq""#, r#"{"op":"peek""#);
    expect("line 4: unknown variant `peek`");
    with(r#""prio":"0:0""#, r#""prio":"zero""#);
    expect("line 3: `prio` is `zero`");
    with(r#""t":256"#, r#""t":18446744073709551615"#);
    expect("line 7: `t` is 18446744073709551615");
    with(r#""size":1000"#, r#""size":0"#);
    expect("line 3: `size` is 0, but must be 1 to 1048576");
    with("begin", &"x".repeat(1 << 17));
    expect("line 2: a line has more than 65536 bytes");

    files.write_trace(&whole);
    files.write_setup(&["tc qdisc add dev q root handle 1: tbf rate 8mbit burst 1000 limt 1000"]);
    expect("small.json: the setup's tc commands: command 1: the option `limt` can't be carried over");
    files.write_setup(&["tc qdisc add dev q root handle 1: tbf rate 0 burst 1000 limit 1000"]);
    expect("command 1: `rate`");
    std::fs::write(files.folder.path().join("small.json"), "{").unwrap();
    expect("small.json: EOF while parsing");
    std::fs::remove_file(files.folder.path().join("small.json")).unwrap();
    expect("small.json: can't be read");
}

#[test]
fn paths_that_name_no_trace_are_rejected() {
    let folder = TempDir::new().unwrap();
    let error = |path: &Path| find(path).unwrap_err().to_string();
    assert!(error(folder.path()).contains("there is no trace in this folder"));
    assert!(error(&folder.path().join("missing.jsonl.gz")).contains("can't be read"));
    std::fs::write(folder.path().join("notes.txt"), "").unwrap();
    assert!(error(&folder.path().join("notes.txt")).contains("is not a trace"));
}

/// Bytes that are significant in JSON, and some that are not valid there.
const BYTES: &[u8] = b"0123456789-+.eE\"{}[]:,nabc \n\\\x00\xff";

fn damage(text: &mut Vec<u8>, changes: &[(prop::sample::Index, u8, prop::sample::Index)]) {
    for (position, action, byte) in changes {
        let position = position.index(text.len());
        let byte = *byte.get(BYTES);
        match action {
            0 | 1 => text[position] = byte,
            2 => text.insert(position, byte),
            3 if text.len() > 1 => drop(text.remove(position)),
            _ => text.truncate(position.max(1)),
        }
    }
}

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8, prop::sample::Index)>> {
    prop::collection::vec(
        (any::<prop::sample::Index>(), 0u8..5, any::<prop::sample::Index>()),
        1..6,
    )
}

proptest! {
    /// Any line gives an outcome or an error.
    #[test]
    fn damaged_lines_never_panic(setup in 0..SETUPS.len(), changes in changes()) {
        let mut lines = SHAPED.replace("0:0", "10:1").into_bytes();
        damage(&mut lines, &changes);
        let files = Files::new(SETUPS[setup], "");
        files.write_trace(&compressed(&lines));
        let _ = files.replay();
    }

    /// Any compressed bytes give an outcome or an error.
    #[test]
    fn damaged_compressed_data_never_panics(changes in changes()) {
        let files = Files::new(&[SHAPER], "");
        let mut bytes = compressed(SHAPED.as_bytes());
        damage(&mut bytes, &changes);
        files.write_trace(&bytes);
        let _ = files.replay();
    }

    /// Any tc commands give an outcome or an error.
    #[test]
    fn damaged_commands_never_panic(setup in 0..SETUPS.len(), changes in changes()) {
        let mut text = SETUPS[setup].join("\n").into_bytes();
        damage(&mut text, &changes);
        let text = String::from_utf8_lossy(&text).into_owned();
        let commands: Vec<&str> = text.split('\n').collect();
        let _ = Files::new(&commands, SHAPED).replay();
    }
}
