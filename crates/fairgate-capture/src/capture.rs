//! Reads a capture file as a stream of packets in the order of time.

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

/// Counts what was read, and irregularities of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of packets.
    pub packets: u64,
    /// Their original lengths together, bytes.
    pub bytes: u64,
    /// Packets that were captured with fewer bytes than their original length (snap length).
    pub cut: u64,
    /// Packets with an original length of 0.
    pub empty: u64,
    /// Packets whose time is earlier than that of a packet before them. They get the latest time so far.
    pub out_of_order: u64,
    /// The greatest difference between such a packet's time and the time that it got, nanoseconds.
    pub furthest_back: u64,
    /// Packets without a time (pcapng's simple packets). They get the time of the packet before them.
    pub without_time: u64,
    /// The number of interfaces. A packet that was forwarded between two interfaces may be in the file twice.
    pub interfaces: u64,
    /// Blocks of a pcapng file that contain no packet and are not needed to read packets.
    pub skipped_blocks: u64,
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// An open capture.
pub struct Capture {
    stream: Stream,
    format: Format,
    counts: Counts,
    latest: Time,
    /// The length of the record that was returned last. It is consumed when the next one is read.
    lent: usize,
    position: Arc<AtomicU64>,
    size: Option<u64>,
}

/// Prints the name of the type only.
impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").finish_non_exhaustive()
    }
}

impl Capture {
    /// Opens a file or a pipe. Compression and format are recognised by the first bytes, not by the name.
    ///
    /// # Errors
    /// Returns an error if the file can't be opened, is empty, or is not a capture.
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

    /// Reads a capture from any source.
    ///
    /// # Errors
    /// Returns an error if the source is empty or is not a capture.
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

    /// Returns the next packet, or `None` at the end of the file.
    ///
    /// # Errors
    /// Returns an error with the offset if the file is truncated or damaged. Later calls return the same
    /// error.
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

    /// Returns a time that is never earlier than the one before. A replay could not send packets in the past.
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

    /// Returns the counts so far.
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

    /// Returns the number of bytes read from the file so far, before decompression. A progress bar compares
    /// it with [`Capture::size`].
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Returns the size of the file in bytes, or `None` if the source is not a regular file.
    pub fn size(&self) -> Option<u64> {
        self.size
    }
}

/// Recognises the format by the first bytes, and reads the file header.
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

/// Counts the bytes that are read from the file, before decompression.
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
