//! Measures a line against a server of the user's, and judges it.
//!
//! ```text
//!   wire       the bytes between client and server
//!   server     the other end: answers probes, takes and sends bytes, within limits
//!   session    the client's end of a measurement; path: the longest packet that passes
//!   probes     datagrams with timestamps while something else loads the line
//!   load       TCP connections that fill a direction; flood: one of them; record: what their kernel says
//!   estimate   capacity from bytes over time, framing from delays by length: pure functions
//!   measure    the stages of a measurement, in their order; measured: its results
//!   verdict    what is wrong, and what to do; shown, page: the figures for the terminal, and in a page
//!   search     the highest rates that keep the queue here, by running our own shaper
//!   file       the configuration for a run on this line
//! ```

pub(crate) mod error;
mod estimate;
pub(crate) mod file;
mod flood;
mod load;
pub(crate) mod measure;
pub(crate) mod measured;
pub(crate) mod page;
mod path;
mod probes;
mod record;
pub(crate) mod search;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod shown;
pub(crate) mod verdict;
mod wire;

#[cfg(test)]
mod tests;
