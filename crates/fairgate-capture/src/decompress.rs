//! Decompresses captures: gzip, zstd, xz, lz4 and bzip2, recognised by their first bytes.
//!
//! All are read as streams, with bounded memory. A zstd window or an xz dictionary above
//! [`LARGEST_WINDOW`] is rejected. lz4 blocks have 8 MB at most. Parallel compressors and log rotation write
//! several compressed streams one after the other; they are read as one stream. A stream that ends early is
//! an error, not the end of the file.

use std::io::{self, BufRead, BufReader, Read};

use crate::bzip2::Bzip2;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The most bytes of history that a stream may refer to. `zstd -19` and `xz -9` need up to 8 and 64 MB.
const LARGEST_WINDOW: u32 = 128 << 20;

const CHUNK: usize = 64 * 1024;

/// The source of the compressed bytes.
pub(crate) type Source = Box<dyn Read + Send>;

/// The compression formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
    Xz,
    Lz4,
    Bzip2,
}

impl Compression {
    /// Recognises the compression by the first four bytes.
    pub(crate) fn of(first: &[u8]) -> Option<Compression> {
        match *first {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            // Skippable frames: zstd's tools start with one if they compress in parallel.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
            [0xfd, b'7', b'z', b'X', ..] => Some(Compression::Xz),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Compression::Lz4),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Compression::Bzip2),
            _ => None,
        }
    }

    /// Returns a reader of the decompressed bytes of `source`.
    pub(crate) fn decompress(self, source: impl Read + Send + 'static) -> Source {
        let source = BufReader::with_capacity(CHUNK, source);
        match self {
            Compression::Gzip => Box::new(MultiGzDecoder::new(source)),
            Compression::Zstd => Box::new(Zstd::new(source)),
            Compression::Xz => Box::new(XzReader::new_mem_limit(source, true, LARGEST_WINDOW / 1024)),
            Compression::Lz4 => Box::new(Lz4::new(source)),
            Compression::Bzip2 => Box::new(Bzip2::new(source)),
        }
    }
}

/// Reads several zstd frames one after the other; the crate reads only one. It also compares the checksums.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Zstd<R> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(LARGEST_WINDOW.into());
        Zstd {
            source,
            decoder,
            in_frame: false,
        }
    }

    /// Starts the next frame with content. Returns false if there is none.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => skip(&mut self.source, length.into())?,
                Err(FrameDecoderError::WindowSizeTooBig { requested, .. }) => {
                    return Err(io::Error::other(format!(
                        "a zstd frame needs {requested} bytes of memory, but at most {LARGEST_WINDOW} are \
                         allowed; compress it without `--long`"
                    )));
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    fn check_sum(&self) -> io::Result<()> {
        match self.decoder.get_checksum_from_data() {
            Some(sum) if Some(sum) != self.decoder.get_calculated_checksum() => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the checksum of a zstd frame is wrong",
            )),
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame && !self.next_frame()? {
                return Ok(0);
            }
            self.in_frame = true;
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(io::Error::other)?;
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.check_sum()?;
            self.in_frame = false;
        }
    }
}

/// Skips `count` bytes.
fn skip(source: &mut impl Read, count: u64) -> io::Result<()> {
    let skipped = io::copy(&mut source.take(count), &mut io::sink())?;
    match skipped == count {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Reads several lz4 frames one after the other. The crate treats an end between two blocks as the end of the
/// frame. This reader accepts it only if the crate never tried to read beyond the end of the source.
struct Lz4<R: Read>(lz4_flex::frame::FrameDecoder<Watched<R>>);

impl<R: BufRead> Lz4<R> {
    fn new(source: R) -> Lz4<R> {
        Lz4(lz4_flex::frame::FrameDecoder::new(Watched {
            source,
            has_ended: false,
        }))
    }
}

impl<R: BufRead> Read for Lz4<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.0.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            if self.0.get_ref().has_ended {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if self.0.get_mut().source.fill_buf()?.is_empty() {
                return Ok(0);
            }
        }
    }
}

/// A reader that records whether its source has ever returned its end.
struct Watched<R> {
    source: R,
    has_ended: bool,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.has_ended |= count == 0 && !buffer.is_empty();
        Ok(count)
    }
}
