//! What became of each packet: the packet log of a run, and its flows.
//!
//! ```text
//!   forwarding thread: Log -> [ exchange of buffers ] -> keeper: the last seconds -> pcapng
//!                      32 bytes and the headers                flows            -> FlowsStatus
//! ```
//!
//! A packet that leaves its tree, or is dropped there, is noted with the times of arrival and departure, the
//! queue that it was in, what became of it, and the first bytes of its frame. Nothing is noted unless
//! somebody wants it: the configuration (`packet_log`), or a client that looks at the flows.

mod flows;
mod keeper;
mod log;
mod losses;
mod pcapng;
mod round_trips;
mod tap;

pub(crate) use flows::QueueName;
pub(crate) use keeper::{PacketKeeper, ends};
pub(crate) use log::{Log, Outcome};
pub(crate) use pcapng::pcapng;
pub(crate) use tap::PacketTap;
