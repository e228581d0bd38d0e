//! Tunnels through `fairgate run`: what the kernel merged arrives as it was sent, byte for byte, and what a
//! local sender left to its hardware arrives finished.
//!
//! The kernel of this machine may lack kinds of tunnels. Each one that is missing is named on standard error.

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
