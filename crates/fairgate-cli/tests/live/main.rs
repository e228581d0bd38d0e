//! `fairgate run` on real interfaces, in network namespaces.

#[path = "../common/mod.rs"]
mod common;

mod forwarding;
mod harness;
mod output;
mod takeover;
