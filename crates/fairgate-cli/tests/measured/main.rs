//! Measurements of the program on live traffic: rates, shares and delays.

#[path = "../../../fairgate-live/src/testing/attempts.rs"]
mod attempts;
mod both_worlds;
#[path = "../common/mod.rs"]
mod common;
mod testbed;

use std::process::Command;

use serde_json::Value;

use common::deadline::{alone, say, watch_live};

/// Runs `fairgate ARGUMENTS --json`, which must succeed, and returns its document.
fn fairgate(arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    let output = common::output(command.args(arguments).arg("--json"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Returns the number at a JSON pointer.
fn number(value: &Value, pointer: &str) -> f64 {
    value
        .pointer(pointer)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no {pointer} in {value}"))
}
