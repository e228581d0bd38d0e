//! Results as other programs read them.

use std::process::Command;

use serde_json::Value;

/// Runs `fairgate ARGUMENTS --json`, which must work, and returns its document.
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

/// The number at a JSON pointer.
pub(crate) fn number(value: &Value, pointer: &str) -> f64 {
    value
        .pointer(pointer)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no {pointer} in {value}"))
}
