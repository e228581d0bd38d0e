//! A capture file as a stream of packets in the order of time.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fairgate::Time;

use crate::decompress::{Compression, Source};
use crate::error::CaptureError;
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;
use crate::record::Record;
use crate::stream::Stream;

/// What was read, and what was odd about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Packets of which fewer bytes were captured than were on the wire (snap length).
    pub cut: u64,
    /// Packets of length 0 on the wire.
    pub empty: u64,
    /// Packets whose time was earlier than that of a packet before them. They take the latest time so far.
    pub out_of_order: u64,
    /// By how many nanoseconds the most belated of these was moved.
    pub furthest_back: u64,
    /// Packets without a time (pcapng's simple packets). They take the time of the packet before them.
    pub without_time: u64,
    /// Interfaces that the packets were captured on. A packet that was forwarded from one to another is there twice.
    pub interfaces: u64,
    /// Blocks of a pcapng file that hold neither packets nor what is needed to read them.
    pub skipped_blocks: u64,
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// A capture being read.
pub struct Capture {
    stream: Stream,
    format: Format,
    counts: Counts,
    latest: Time,
    /// The record lent out last, consumed when the next one is asked for.
    lent: usize,
    position: Arc<AtomicU64>,
    size: Option<u64>,
}

impl Capture {
    /// Opens a file or a pipe; compression and format are told by the first bytes, not by the name.
    ///
    /// # Errors
    /// If it can't be opened, is empty, or starts like no capture.
    pub fn open(path: &Path) -> Result<Capture, CaptureError> {
        let open = |source| CaptureError::Open {
            path: path.display().to_string(),
            source,
        };
        let file = File::open(path).map_err(open)?;
        let metadata = file.metadata().map_err(open)?;
        let mut capture = Capture::from_reader(Box::new(file))?;
        capture.size = metadata.is_file().then_some(metadata.len());
        Ok(capture)
    }

    /// Reads from anything.
    ///
    /// # Errors
    /// If it is empty or starts like no capture.
    pub fn from_reader(source: Source) -> Result<Capture, CaptureError> {
        let position = Arc::new(AtomicU64::new(0));
        let mut stream = Stream::new(Box::new(Counted {
            source,
            position: Arc::clone(&position),
        }));
        if stream.fill(4)? == 0 {
            return Err(CaptureError::Empty);
        }
        if let Some(compression) = Compression::of(stream.data()) {
            stream = Stream::new(compression.decompress(stream.into_reader()));
            if stream.fill(4)? == 0 {
                return Err(CaptureError::Empty);
            }
        }
        Ok(Capture {
            format: recognise(&mut stream)?,
            stream,
            counts: Counts::default(),
            latest: Time::ZERO,
            lent: 0,
            position,
            size: None,
        })
    }

    /// The next packet, or `None` at the file's end.
    ///
    /// # Errors
    /// Where the file is cut or damaged, with the byte. Asked again it fails again.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        if self.lent > 0 {
            self.stream.consume_packet(std::mem::take(&mut self.lent));
        }
        let found = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.stream)?,
            Format::Pcapng(pcapng) => pcapng.next(&mut self.stream)?,
        };
        let Some(extent) = found else {
            return Ok(None);
        };
        self.lent = extent.record;
        let time = self.in_order(extent.nanos);
        self.counts.packets += 1;
        self.counts.bytes += u64::from(extent.length);
        self.counts.cut += u64::from(extent.data.len() < extent.length as usize);
        self.counts.empty += u64::from(extent.length == 0);
        Ok(Some(Record {
            time,
            link: extent.link,
            length: extent.length,
            data: &self.stream.data()[extent.data],
            check_sequence: extent.check_sequence,
        }))
    }

    /// Time never goes back: who replays a capture could not send into the past.
    fn in_order(&mut self, nanos: Option<u64>) -> Time {
        match nanos {
            None => self.counts.without_time += 1,
            Some(nanos) => {
                let time = Time::from_nanos(nanos);
                if time < self.latest {
                    self.counts.out_of_order += 1;
                    self.counts.furthest_back = self.counts.furthest_back.max(self.latest - time);
                } else {
                    self.latest = time;
                }
            }
        }
        self.latest
    }

    /// What has been read so far.
    pub fn counts(&self) -> Counts {
        let (interfaces, skipped_blocks) = match &self.format {
            Format::Pcap(_) => (1, 0),
            Format::Pcapng(pcapng) => (pcapng.interfaces_total, pcapng.skipped_blocks),
        };
        Counts {
            interfaces,
            skipped_blocks,
            ..self.counts
        }
    }

    /// Bytes of the file read so far, as they lie on disk: for a progress bar against [`Capture::size`].
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Bytes of the file, if it is one.
    pub fn size(&self) -> Option<u64> {
        self.size
    }
}

/// Tells the format by the first bytes and reads the file header.
fn recognise(stream: &mut Stream) -> Result<Format, CaptureError> {
    if stream.data().len() >= 4 {
        if let Some(pcapng) = Pcapng::start(stream) {
            return Ok(Format::Pcapng(pcapng));
        }
        if let Some(pcap) = Pcap::start(stream)? {
            return Ok(Format::Pcap(pcap));
        }
    }
    let first = &stream.data()[..stream.data().len().min(4)];
    Err(CaptureError::NotACapture {
        found: first.iter().map(|byte| format!("{byte:02x}")).collect(),
    })
}

/// Counts what is read of the file, below any decompression.
struct Counted {
    source: Source,
    position: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.position.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
