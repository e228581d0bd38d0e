//! Writes captures: classic pcap, little endian, nanoseconds.

use std::io::{self, Write};

use fairgate::Time;

use crate::link::LinkType;

/// Writes packets into a capture that any program can read.
///
/// ```
/// use fairgate::Time;
/// use fairgate_capture::{CaptureWriter, LinkType};
///
/// let mut writer = CaptureWriter::new(Vec::new(), LinkType::ETHERNET, 96)?;
/// writer.packet(Time::from_millis(5), 1514, &[0; 1514])?;
/// assert_eq!(writer.finish()?.len(), 24 + 16 + 96);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct CaptureWriter<W: Write> {
    sink: W,
    snap_length: u32,
}

impl<W: Write> CaptureWriter<W> {
    /// Writes the file header. At most `snap_length` bytes of each packet will be written.
    pub fn new(mut sink: W, link: LinkType, snap_length: u32) -> io::Result<CaptureWriter<W>> {
        sink.write_all(&0xa1b2_3c4d_u32.to_le_bytes())?;
        sink.write_all(&2u16.to_le_bytes())?;
        sink.write_all(&4u16.to_le_bytes())?;
        sink.write_all(&[0; 8])?;
        sink.write_all(&snap_length.to_le_bytes())?;
        sink.write_all(&u32::from(link.number()).to_le_bytes())?;
        Ok(CaptureWriter { sink, snap_length })
    }

    /// Writes a packet with an original length of `length` bytes and the known bytes `data`. Times after 2106
    /// are an error.
    pub fn packet(&mut self, time: Time, length: u32, data: &[u8]) -> io::Result<()> {
        let seconds = u32::try_from(time.nanos() / 1_000_000_000)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "pcap can't store times after 2106"))?;
        let fraction = (time.nanos() % 1_000_000_000) as u32;
        let kept = &data[..data.len().min(self.snap_length as usize)];
        for field in [seconds, fraction, kept.len() as u32, length] {
            self.sink.write_all(&field.to_le_bytes())?;
        }
        self.sink.write_all(kept)
    }

    /// Flushes and returns the sink.
    pub fn finish(mut self) -> io::Result<W> {
        self.sink.flush()?;
        Ok(self.sink)
    }
}
