//! Counts the instructions of a pair with callgrind. Unlike times, the counts are exact and the same on a
//! busy machine.
//!
//! A program counts its own instructions. It runs again under valgrind, once with few cycles and once with
//! many. The difference is divided by the number of pairs between. The common part (the start and the first
//! cycle) cancels out.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use thiserror::Error;

/// The reason why instructions could not be counted.
#[derive(Debug, Error)]
pub enum CountError {
    /// Valgrind can't be run.
    #[error(
        "instructions are counted by valgrind, which can't be run ({0}); install it (apt install valgrind)"
    )]
    NoValgrind(std::io::Error),
    /// The path of the program that counts itself is unknown.
    #[error("this program can't find its own file, which it must run again under valgrind: {0}")]
    NoProgram(std::io::Error),
    /// The counted run failed.
    #[error("the run under valgrind failed: {0}")]
    Failed(String),
    /// Valgrind's summary has no count.
    #[error("valgrind's summary has no count of instructions: {0}")]
    NoCount(String),
}

/// Checks whether valgrind can be run.
///
/// # Errors
/// Returns the reason if it can't.
pub fn check() -> Result<(), CountError> {
    match Command::new("valgrind").arg("--version").output() {
        Ok(_) => Ok(()),
        Err(error) => Err(CountError::NoValgrind(error)),
    }
}

/// Returns the instructions of a whole run of `program`.
///
/// # Errors
/// Returns an error if valgrind can't be run or the run fails.
pub fn instructions<A: AsRef<OsStr>>(
    program: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<u64, CountError> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(arguments)
        .output()
        .map_err(CountError::NoValgrind)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let last = said.lines().rev().take(8).collect::<Vec<_>>();
        return Err(CountError::Failed(
            last.into_iter().rev().collect::<Vec<_>>().join("\n"),
        ));
    }
    collected(&said).ok_or_else(|| CountError::NoCount(said.into_owned()))
}

/// Parses callgrind's summary: `==123== Collected : 4567`.
fn collected(summary: &str) -> Option<u64> {
    let count = summary
        .lines()
        .find_map(|line| line.split_once("Collected : "))?
        .1;
    count.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_the_summary() {
        let summary = "==7== Events    : Ir\n==7== Collected : 123456\n==7== \n";
        assert_eq!(collected(summary), Some(123_456));
        assert_eq!(collected("==7== Collected : many\n"), None);
        assert_eq!(collected(""), None);
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let nothing: [&str; 0] = [];
        let error = instructions(Path::new("/no/such/program"), nothing).unwrap_err();
        // The error depends on whether valgrind is installed.
        assert!(
            matches!(error, CountError::Failed(_) | CountError::NoValgrind(_)),
            "{error}"
        );
    }
}
