//! Reads packet captures (pcap, pcapng, either one gzipped) as streams of packets, and writes them.
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
//! The path of a record: a `Window` slides over the file, `pcap` or `pcapng` finds in it where the next packet's bytes
//! lie and checks what its header says, [`Capture`] puts its time in order, counts it and lends it out as a
//! [`Record`] for [`fairgate::flow::dissect()`] to read. Memory is bounded by the longest record allowed, however long
//! the file.
//!
//! What a capture can have wrong is either an error with the byte where it is ([`CaptureError`]) or defined and counted
//! ([`Counts`]); nothing is silently skipped. Non-goals: reassembly, and link types that an access line doesn't have.

#![forbid(unsafe_code)]

mod capture;
mod error;
mod pcap;
mod pcapng;
mod stream;
mod write;

pub use capture::{Capture, Counts, Record};
pub use error::CaptureError;
pub use write::CaptureWriter;
