//! Writes captures: classic pcap and pcapng, little endian, nanoseconds.

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

/// The options and blocks of pcapng that are written (draft-ietf-opsawg-pcapng).
mod pcapng {
    pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
    pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
    pub(super) const ENHANCED_PACKET: u32 = 6;
    pub(super) const BYTE_ORDER: u32 = 0x1a2b_3c4d;
    pub(super) const END_OF_OPTIONS: u16 = 0;
    pub(super) const COMMENT: u16 = 1;
    pub(super) const INTERFACE_NAME: u16 = 2;
    pub(super) const PACKET_FLAGS: u16 = 2;
    pub(super) const TIME_RESOLUTION: u16 = 9;
    /// Units of 10^-9 s.
    pub(super) const NANOSECONDS: u8 = 9;
    /// Of the flags of a packet: the interface has received it.
    pub(super) const INBOUND: u32 = 1;
}

/// Writes packets as pcapng: little endian, nanoseconds, with the names of the interfaces.
///
/// ```
/// use fairgate::Time;
/// use fairgate_capture::{LinkType, PcapngWriter};
///
/// let mut writer = PcapngWriter::new(Vec::new(), LinkType::RAW_IP, 96, "a->b")?;
/// writer.packet(Time::from_millis(5), 1500, &[0x45; 96])?;
/// assert_eq!(writer.finish()?.len(), 28 + 40 + 128);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// With several interfaces, and a comment on each packet:
///
/// ```
/// use fairgate::Time;
/// use fairgate_capture::{LinkType, PcapngWriter};
///
/// let mut writer = PcapngWriter::of(Vec::new(), 96, Some("of a router"))?;
/// let [left, right] = ["eth0", "eth1"].map(|name| writer.interface(LinkType::ETHERNET, name));
/// writer.received(right?, Time::from_millis(5), 1514, &[0; 96], "dropped")?;
/// writer.received(left?, Time::from_millis(6), 60, &[0; 60], "sent")?;
/// # writer.finish()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct PcapngWriter<W: Write> {
    sink: W,
    snap_length: u32,
    interfaces: u32,
}

impl<W: Write> PcapngWriter<W> {
    /// Writes the headers of the file and of the interface. At most `snap_length` bytes of each packet will
    /// be written.
    pub fn new(sink: W, link: LinkType, snap_length: u32, name: &str) -> io::Result<PcapngWriter<W>> {
        let mut writer = PcapngWriter::of(sink, snap_length, None)?;
        writer.interface(link, name)?;
        Ok(writer)
    }

    /// Writes the header of the file, with a comment. Packets need an [`interface`](PcapngWriter::interface).
    pub fn of(mut sink: W, snap_length: u32, comment: Option<&str>) -> io::Result<PcapngWriter<W>> {
        let mut section = Vec::new();
        section.extend(pcapng::BYTE_ORDER.to_le_bytes());
        section.extend([1u16, 0].map(u16::to_le_bytes).concat());
        // The length of the section is not known yet.
        section.extend(u64::MAX.to_le_bytes());
        if let Some(comment) = comment {
            add_option(&mut section, pcapng::COMMENT, comment.as_bytes());
            add_option(&mut section, pcapng::END_OF_OPTIONS, &[]);
        }
        write_block(&mut sink, pcapng::SECTION_HEADER, &[&section])?;
        Ok(PcapngWriter {
            sink,
            snap_length,
            interfaces: 0,
        })
    }

    /// Writes the header of another interface. Returns its number.
    pub fn interface(&mut self, link: LinkType, name: &str) -> io::Result<u32> {
        let mut interface = Vec::new();
        interface.extend([link.number(), 0].map(u16::to_le_bytes).concat());
        interface.extend(self.snap_length.to_le_bytes());
        add_option(&mut interface, pcapng::INTERFACE_NAME, name.as_bytes());
        add_option(&mut interface, pcapng::TIME_RESOLUTION, &[pcapng::NANOSECONDS]);
        add_option(&mut interface, pcapng::END_OF_OPTIONS, &[]);
        write_block(&mut self.sink, pcapng::INTERFACE_DESCRIPTION, &[&interface])?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes a packet of the first interface with an original length of `length` bytes and the known bytes
    /// `data`.
    pub fn packet(&mut self, time: Time, length: u32, data: &[u8]) -> io::Result<()> {
        self.write_packet(0, time, length, data, &[])
    }

    /// Writes a packet that an interface has received, with a comment.
    ///
    /// # Panics
    /// Panics if there is no such interface.
    pub fn received(
        &mut self,
        interface: u32,
        time: Time,
        length: u32,
        data: &[u8],
        comment: &str,
    ) -> io::Result<()> {
        assert!(interface < self.interfaces, "there is no interface {interface}");
        let mut options = Vec::with_capacity(comment.len() + 20);
        add_option(&mut options, pcapng::COMMENT, comment.as_bytes());
        add_option(&mut options, pcapng::PACKET_FLAGS, &pcapng::INBOUND.to_le_bytes());
        add_option(&mut options, pcapng::END_OF_OPTIONS, &[]);
        self.write_packet(interface, time, length, data, &options)
    }

    fn write_packet(
        &mut self,
        interface: u32,
        time: Time,
        length: u32,
        data: &[u8],
        options: &[u8],
    ) -> io::Result<()> {
        let kept = &data[..data.len().min(self.snap_length as usize)];
        let nanos = time.nanos();
        let mut header = [0; 20];
        let fields = [
            interface,
            (nanos >> 32) as u32,
            nanos as u32,
            kept.len() as u32,
            length,
        ];
        for (place, field) in header.chunks_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let padding = &[0; 3][..kept.len().next_multiple_of(4) - kept.len()];
        write_block(
            &mut self.sink,
            pcapng::ENHANCED_PACKET,
            &[&header, kept, padding, options],
        )
    }

    /// Flushes and returns the sink.
    pub fn finish(mut self) -> io::Result<W> {
        self.sink.flush()?;
        Ok(self.sink)
    }
}

/// Adds an option to the content of a block. It has at most 65,535 bytes.
fn add_option(content: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    content.extend([code, value.len() as u16].map(u16::to_le_bytes).concat());
    content.extend(value);
    content.resize(content.len().next_multiple_of(4), 0);
}

/// Writes a block: type, length, content with padding, and the length again.
fn write_block(sink: &mut impl Write, kind: u32, parts: &[&[u8]]) -> io::Result<()> {
    let content: usize = parts.iter().map(|part| part.len()).sum();
    let padding = content.next_multiple_of(4) - content;
    let length = u32::try_from(12 + content + padding)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a block has less than 4 GB"))?;
    sink.write_all(&kind.to_le_bytes())?;
    sink.write_all(&length.to_le_bytes())?;
    for part in parts {
        sink.write_all(part)?;
    }
    sink.write_all(&[0; 3][..padding])?;
    sink.write_all(&length.to_le_bytes())
}
