//! The frames that an end sends, into a capture.

use std::fs::File;
use std::io::{self, BufWriter};

use fairgate::Time;
use fairgate_capture::{CaptureWriter, LinkType};
use nix::errno::Errno;

use crate::outgoing::{Exit, Outgoing};

/// Takes all frames, and writes them if there is a file.
pub(super) struct Sink {
    writer: Option<CaptureWriter<BufWriter<File>>>,
    /// The time at which frames are sent.
    pub(super) now: Time,
    /// Why the last frame was not written.
    error: Option<io::Error>,
}

impl Sink {
    pub(super) fn new(file: Option<File>) -> io::Result<Sink> {
        let writer = |file| CaptureWriter::new(BufWriter::new(file), LinkType::ETHERNET, u32::MAX);
        Ok(Sink {
            writer: file.map(writer).transpose()?,
            now: Time::ZERO,
            error: None,
        })
    }

    /// Returns why the last frame was not written.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Writes what is buffered.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self.writer.take() {
            Some(writer) => writer.finish().map(drop),
            None => Ok(()),
        }
    }
}

impl Exit for Sink {
    fn send<'a>(&mut self, frames: impl Iterator<Item = Outgoing<'a>>) -> (usize, Result<(), Errno>) {
        let mut sent = 0;
        for frame in frames {
            if let Some(writer) = &mut self.writer
                && let Err(error) = writer.packet(self.now, frame.bytes.len() as u32, frame.bytes)
            {
                self.error = Some(error);
                return (sent, Err(Errno::ENOSPC));
            }
            sent += 1;
        }
        (sent, Ok(()))
    }

    /// No frame is too long for a file.
    fn send_tagged(&mut self, _frame: &[u8]) -> Result<(), Errno> {
        Err(Errno::EMSGSIZE)
    }
}
