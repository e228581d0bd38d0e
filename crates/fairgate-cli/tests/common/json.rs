//! Runs commands with `--json` and reads their results.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;

use serde_json::Value;

/// Runs `fairgate ARGUMENTS --json`, which must succeed, and returns its document.
pub(crate) fn fairgate(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_fairgate"))
        .args(arguments)
        .arg("--json")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The number of attempts for a measurement on live traffic.
const ATTEMPTS: u32 = 3;

/// Measures, and repeats the measurement if an assertion fails. Other programs can take the processor for
/// longer than a shaper's bucket compensates. A bug of ours fails every attempt.
pub(crate) fn measured(measurement: impl Fn()) {
    for attempt in 1..=ATTEMPTS {
        match catch_unwind(AssertUnwindSafe(&measurement)) {
            Ok(()) => return,
            Err(failure) if attempt == ATTEMPTS => resume_unwind(failure),
            Err(_) => eprintln!("attempt {attempt} of {ATTEMPTS} failed; measuring again"),
        }
    }
}

/// Returns the number at a JSON pointer.
pub(crate) fn number(value: &Value, pointer: &str) -> f64 {
    value
        .pointer(pointer)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no {pointer} in {value}"))
}
