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
//! The path of a record: `decompress` makes plain bytes of the file, a `Stream` slides over them, `pcap` or
//! `pcapng` finds in it where the next packet's bytes lie and checks what its header says, [`Capture`] puts
//! its time in order, counts it and lends it out as a [`Record`]. [`Record::headers`] reads on: `link` the
//! header of the link layer, [`fairgate::flow`] what is above it. Memory is bounded by the longest record
//! allowed and the largest window of a compressed stream, however long the file; work by the bytes in it, not
//! by the lengths that it claims.
//!
//! What a capture can have wrong is either an error with the byte where it is ([`CaptureError`]) or defined
//! and counted ([`Counts`]); nothing is silently skipped. Non-goals: reassembly, decryption, and link types
//! that lead to no IP.

#![forbid(unsafe_code)]

mod capture;
mod decompress;
mod error;
mod link;
mod pcap;
mod pcapng;
mod record;
mod stream;
mod write;

pub use capture::{Capture, Counts};
pub use error::CaptureError;
pub use link::LinkType;
pub use record::{Headers, IpPacket, Record};
pub use write::CaptureWriter;
