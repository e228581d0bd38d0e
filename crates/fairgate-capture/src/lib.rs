//! Reads packet captures (pcap, pcapng, compressed or not) as streams of packets, and writes them.
//!
//! ```no_run
//! let mut capture = fairgate_capture::Capture::open("home.pcap".as_ref())?;
//! while let Some(record) = capture.next_record()? {
//!     println!("{} {} bytes", record.time, record.length);
//! }
//! println!("{} packets", capture.counts().packets);
//! # Ok::<(), fairgate_capture::CaptureError>(())
//! ```
//!
//! A record is read in these steps:
//!
//! * `decompress` decompresses the file, and a `Stream` buffers a part of it.
//! * `pcap` or `pcapng` checks the header of the next record and finds the packet's bytes.
//! * [`Capture`] puts the packet's time in order, counts the packet and returns it as a [`Record`].
//! * [`Record::headers`] reads the headers: `link` the header of the link layer, [`fairgate::flow`] the
//!   headers above it.
//!
//! Memory is bounded by the longest allowed record and the largest window of a compressed stream, for files
//! of any length. The work is bounded by the number of bytes in the file, not by the lengths that its headers
//! claim.
//!
//! [`Conversations`] reconstructs the TCP connections of a capture from the headers that [`TcpSegment`]
//! reads.
//!
//! An irregularity of a capture is either an error with an offset ([`CaptureError`]), or it is defined and
//! counted ([`Counts`]). Nothing is skipped silently. Non-goals are the content of streams, decryption, and
//! link types that carry no IP.

#![forbid(unsafe_code)]

mod bzip2;
mod capture;
mod conversation;
mod decompress;
mod error;
mod link;
mod pcap;
mod pcapng;
mod record;
mod segment;
mod stream;
mod write;

pub use capture::{Capture, Counts};
pub use conversation::{Conversation, Conversations, Turn};
pub use error::CaptureError;
pub use link::LinkType;
pub use record::{Headers, IpPacket, Record};
pub use segment::TcpSegment;
pub use write::{CaptureWriter, PcapngWriter};
