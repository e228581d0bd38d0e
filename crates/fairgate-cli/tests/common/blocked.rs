//! Commands whose standard streams are full or not read, for the tests of every program.

use std::fs::{File, OpenOptions};
use std::process::{Command, Stdio};

fn full() -> File {
    OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it")
}

/// Returns a pipe that nobody reads.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// Runs each command with streams that take nothing. `families` have a command of each kind, and its exit code
/// with ordinary streams. Printed results are lost: the exit code is 3 if the disk is full, and 0 if the reader
/// closed the pipe.
pub(crate) fn all(program: fn(&[&str]) -> Command, families: &[(&[&str], i32)]) {
    for (arguments, code) in families {
        for stream in [full().into(), unread()] {
            let output = program(arguments).stderr(stream).output().expect("built");
            assert_eq!(output.status.code(), Some(*code), "{arguments:?}");
        }
        for (stream, lost) in [(full().into(), 3), (unread(), 0)] {
            let output = program(arguments).stdout(stream).output().expect("built");
            let expected = if *code == 0 { lost } else { *code };
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(expected), "{arguments:?}: {stderr}");
            assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
        }
        let with_json = [arguments, &["--json"][..]].concat();
        let output = program(&with_json).stdout(full()).output().expect("built");
        let expected = if *code == 0 { 3 } else { *code };
        assert_eq!(output.status.code(), Some(expected), "{with_json:?}");
    }
}
