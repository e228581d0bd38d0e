//! Checks that must hold for any external bytes. There is a function for each kind of input. It reads the
//! whole input and panics if the reader breaks a rule. The reader itself must not panic either.
//!
//! The functions are called from two places. `tests/any_bytes.rs` of this crate calls them with random and
//! damaged bytes in every `cargo test`. The targets in `fuzz/` at the root of the repository call them under
//! libFuzzer, which uses the code coverage to find new inputs:
//!
//! ```text
//! cargo install cargo-fuzz
//! cargo +nightly fuzz run headers fuzz/corpus/headers fuzz/seeds/headers
//! ```

#![forbid(unsafe_code)]

mod api;
mod capture;
mod configuration;
mod dummynet;
mod headers;
mod history;
mod import;
mod link;
mod listing;
mod netlink;
mod script;
mod subscribers;
mod trace;
mod tune;

pub use api::api;
pub use capture::capture;
pub use configuration::configuration;
pub use dummynet::dummynet;
pub use headers::headers;
pub use history::history;
pub use import::import;
pub use link::link;
pub use listing::listing;
pub use netlink::netlink;
pub use script::script;
pub use subscribers::subscribers;
pub use trace::trace;
pub use tune::tune;
