//! Checks recorded operations and their setup with [`fairgate_evidence::replay::replay()`].

use std::fs;
use std::io::Write;

use fairgate_evidence::replay::{Outcome, replay};
use flate2::Compression;
use flate2::write::GzEncoder;

/// The bytes before the first zero byte are `TRACE.json`. The bytes after it are the lines of
/// `TRACE.jsonl.gz`.
pub fn trace(bytes: &[u8]) {
    let end_of_setup = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (setup, lines) = bytes.split_at(end_of_setup);
    let lines = lines.get(1..).unwrap_or_default();

    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trace.jsonl.gz");
    let mut packed = GzEncoder::new(Vec::new(), Compression::none());
    packed.write_all(lines).expect("memory accepts every byte");
    fs::write(folder.path().join("trace.json"), setup).expect("a writable folder");
    fs::write(&path, packed.finish().expect("memory accepts every byte")).expect("a writable folder");

    let first = replay(&path, 1);
    match &first {
        Ok(Outcome::Different(difference)) => {
            assert!(
                !difference.mismatches.is_empty(),
                "a difference must name its results"
            );
            let count = lines.split(|byte| *byte == b'\n').count() as u64;
            assert!(
                (1..=count).contains(&difference.line),
                "line {} of {count}",
                difference.line
            );
        }
        Ok(Outcome::Unsupported { reason }) => assert!(!reason.is_empty()),
        Ok(Outcome::Equal { .. }) => {}
        Err(error) => assert!(
            error.path.starts_with(folder.path()),
            "an error must name one of the files"
        ),
    }
    let text = |outcome: &Result<Outcome, fairgate_evidence::replay::Error>| format!("{outcome:?}");
    assert_eq!(
        text(&replay(&path, 1)),
        text(&first),
        "the same trace must have the same outcome"
    );
}
