//! `fairgate run` on real interfaces, in network namespaces.

mod api;
mod autorate;
mod changes;
#[path = "../common/mod.rs"]
mod common;
mod delays;
mod device;
mod doctor;
mod estimators;
mod fail_open;
mod forwarding;
mod harness;
#[path = "../../../fairgate-run/tests/run/control/http.rs"]
mod http;
mod journal;
mod links;
mod nat;
mod output;
mod packets;
mod privileges;
mod raw_ip;
// Other tests use more of it.
#[allow(dead_code)]
#[path = "../common/recorded.rs"]
mod recorded;
mod recording;
mod reservations;
#[path = "../common/run.rs"]
mod run;
mod sandbox;
mod scripts;
mod service;
mod stream;
mod subscribers;
mod takeover;
mod terminal;
mod top;
mod tune;
mod workers;
mod xdp;
