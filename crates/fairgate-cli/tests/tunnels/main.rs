//! Tunnels through `fairgate run`. Packets that the kernel merged arrive as they were sent, byte for byte.
//! Packets that a local sender left to its hardware arrive complete.
//!
//! The kernel of this machine may not support all kinds of tunnels. Each unsupported kind is named on
//! standard error.

#[path = "../common/mod.rs"]
mod common;
mod kinds;
mod lab;
mod merged;
mod senders;
#[path = "../../../fairgate-live/src/offload/tests/wire.rs"]
mod wire;

use std::io::Write;

/// Reports that a kind of tunnel was not tested. It writes directly, because the test harness captures what
/// `eprintln!` prints.
fn missing(test: &str, what: &str) {
    let _ = writeln!(std::io::stderr(), "NOT TESTED: {test}: this kernel has no {what}");
}
