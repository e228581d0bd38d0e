//! What must hold for any bytes that come from outside: a function for each kind of input, which reads it to the end
//! and panics if the reader broke a promise. That the reader itself must not panic goes without saying.
//!
//! Two run them: `tests/any_bytes.rs` here, with random and damaged bytes in every `cargo test`; and the targets in
//! `fuzz/` at the root of the repository, under libFuzzer, which learns from the code which bytes lead on:
//!
//! ```text
//! cargo install cargo-fuzz
//! cargo +nightly fuzz run headers fuzz/corpus/headers fuzz/seeds/headers
//! ```

#![forbid(unsafe_code)]

mod capture;
mod configuration;
mod dummynet;
mod headers;
mod link;
mod script;
mod trace;

pub use capture::capture;
pub use configuration::configuration;
pub use dummynet::dummynet;
pub use headers::headers;
pub use link::link;
pub use script::script;
pub use trace::trace;
