//! The frames that an end receives, from a capture.

use std::path::{Path, PathBuf};

use fairgate::Time;
use fairgate_capture::{Capture, LinkType};

use super::merged::merged;
use super::{Adapted, DryRunError};
use crate::ethernet::longest_frame;
use crate::offload::VnetHeader;
use crate::received::Received;

/// A capture, and the oldest frame of it that has not been taken.
pub(super) struct Source {
    path: PathBuf,
    capture: Capture,
    mtu: usize,
    /// What is added to the times of the capture, ns.
    later: u64,
    /// The bytes of the oldest frame.
    bytes: Vec<u8>,
    /// What an offload left undone in it.
    offload: VnetHeader,
    arrival: Option<Time>,
    pub(super) adapted: Adapted,
}

/// A packet of a capture, to name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedPacket {
    /// The capture.
    pub path: String,
    /// The number of the packet, from 1.
    pub packet: u64,
}

impl std::fmt::Display for CapturedPacket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "packet {} of {}", self.packet, self.path)
    }
}

impl Source {
    pub(super) fn open(path: PathBuf, mtu: usize) -> Result<Source, DryRunError> {
        let mut source = Source {
            capture: open(&path)?,
            path,
            mtu,
            later: 0,
            bytes: Vec::new(),
            offload: VnetHeader::default(),
            arrival: None,
            adapted: Adapted::default(),
        };
        source.release()?;
        match source.arrival {
            Some(_) => Ok(source),
            None => Err(DryRunError::NoPackets {
                path: source.path.display().to_string(),
            }),
        }
    }

    /// Reads the capture from its beginning. Its frames arrive `later` ns after their times in it.
    pub(super) fn begin_again(&mut self, later: u64) -> Result<(), DryRunError> {
        self.capture = open(&self.path)?;
        self.later = later;
        self.release()
    }

    /// Returns when the oldest frame arrives. `None` is the end.
    #[inline]
    pub(super) fn next_arrival(&self) -> Option<Time> {
        self.arrival
    }

    /// Returns the number of the oldest frame in the capture, from 1.
    pub(super) fn number(&self) -> u64 {
        self.capture.counts().packets
    }

    pub(super) fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns where the oldest frame is in the capture.
    fn place(&self) -> CapturedPacket {
        CapturedPacket {
            path: self.path(),
            packet: self.number(),
        }
    }

    /// Returns the oldest frame.
    #[inline]
    pub(super) fn front(&self) -> Received<'_> {
        Received {
            bytes: &self.bytes,
            length: self.bytes.len(),
            tag: None,
            offload: self.offload,
        }
    }

    /// Goes on to the next frame.
    pub(super) fn release(&mut self) -> Result<(), DryRunError> {
        let record = self.capture.next_record();
        let record = record.map_err(|source| DryRunError::Capture {
            path: self.path.display().to_string(),
            source,
        })?;
        let Some(record) = record else {
            self.arrival = None;
            return Ok(());
        };
        let arrival = record.time.nanos().checked_add(self.later).map(Time::from_nanos);
        let Some(arrival) = arrival.filter(|&arrival| arrival <= Time::LAST) else {
            let (time, later) = (record.time, self.later);
            let packet = self.place();
            return Err(DryRunError::TooLate { packet, time, later });
        };
        if record.link != LinkType::ETHERNET {
            let link = record.link.to_string();
            let packet = self.place();
            return Err(DryRunError::NotEthernet { packet, link });
        }
        // A frame check sequence was on the link, but is not part of the frame that an interface hands over.
        let length = record.length as usize - usize::from(record.check_sequence).min(record.length as usize);
        self.bytes.clear();
        self.bytes.extend(&record.data[..record.data.len().min(length)]);
        self.adapted.completed += u64::from(self.bytes.len() < length);
        self.bytes.resize(length, 0);
        self.arrival = Some(arrival);
        let offload = match length > longest_frame(self.mtu) {
            true => merged(&mut self.bytes, self.mtu),
            false => None,
        };
        self.adapted.cut += u64::from(offload.is_some());
        let counts = self.capture.counts();
        self.adapted.out_of_order = self.adapted.out_of_order.max(counts.out_of_order);
        self.adapted.furthest_back = self.adapted.furthest_back.max(counts.furthest_back);
        self.offload = offload.unwrap_or_default();
        Ok(())
    }

    /// Returns the number of bytes read from the file, and its size if it is a regular file.
    pub(super) fn position(&self) -> u64 {
        self.capture.position()
    }

    pub(super) fn size(&self) -> Option<u64> {
        self.capture.size()
    }
}

fn open(path: &Path) -> Result<Capture, DryRunError> {
    Capture::open(path).map_err(|source| DryRunError::Capture {
        path: path.display().to_string(),
        source,
    })
}
