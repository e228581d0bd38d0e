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
#[path = "../common/run.rs"]
mod run;
mod senders;
#[path = "../../../fairgate-live/src/offload/tests/wire.rs"]
mod wire;

/// Says that a kind of tunnel could not be tested.
fn missing(test: &str, what: &str) {
    common::say(&format!("NOT TESTED: {test}: this kernel has no {what}"));
}
