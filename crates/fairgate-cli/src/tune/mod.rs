//! Measures a line against a server of the user's, and judges it.
//!
//! ```text
//!   kind, place   which program is at the other end, and where
//!   wire       the bytes between client and server
//!   server     the other end: answers probes, takes and sends bytes, within limits
//!   session    the client's end of a measurement; path: the longest packet that passes
//!   foreign    the same with a server of iperf3 or netperf, as far as it goes; far: with any
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
pub(crate) mod far;
pub(crate) mod file;
mod flood;
mod foreign;
mod kind;
mod load;
pub(crate) mod measure;
pub(crate) mod measured;
pub(crate) mod page;
mod path;
pub(crate) mod place;
mod probes;
mod record;
pub(crate) mod search;
pub(crate) mod server;
mod session;
pub(crate) mod shown;
pub(crate) mod verdict;
mod wire;

#[cfg(test)]
mod tests;

use crate::tune::kind::Kind;

/// Reads bytes as what a server of iperf3 or netperf answers, for `fairgate-fuzz`: the first two say of which
/// (`i`, `n`), and in which direction (`d`, `u`). Returns whether a whole test was made of them.
pub fn any_answer(bytes: &[u8]) -> bool {
    let Some((&[kind, is_reverse], answers)) = bytes.split_first_chunk() else {
        return false;
    };
    let kind = if kind == b'n' { Kind::Netperf } else { Kind::Iperf3 };
    foreign::converse(kind, is_reverse == b'd', answers)
}
