//! A server whose answers are known beforehand: recorded ones, or any bytes.

use std::io::{self, Read, Write};

#[derive(Debug)]
pub(super) struct Answers<'a> {
    /// What it has still to say.
    pub(super) left: &'a [u8],
    /// What it was told.
    pub(super) told: Vec<u8>,
}

impl Answers<'_> {
    pub(super) fn of(bytes: &[u8]) -> Answers<'_> {
        Answers {
            left: bytes,
            told: Vec::new(),
        }
    }
}

impl Read for Answers<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.left.read(buffer)
    }
}

impl Write for Answers<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.told.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
