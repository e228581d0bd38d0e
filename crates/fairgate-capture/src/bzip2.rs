//! Decompresses bzip2: blocks of up to 900 kB, each with its checksum.
//!
//! A block is decoded as a whole: Huffman codes in groups of 50, moves to the front, the inverse of the
//! Burrows-Wheeler transform, and runs. Streams one after the other, as pbzip2 writes them, are read as one.

use std::io::{self, BufRead, Read};

/// A stream begins with `BZh` and the size of its blocks in 100 kB, `1` to `9`.
const MAGIC: [u8; 3] = *b"BZh";
/// What a block and the end of a stream begin with: the digits of pi, and of its root.
const BLOCK: u64 = 0x3141_5926_5359;
const END: u64 = 0x1772_4538_5090;
/// The number of symbols for which one table of codes is used.
const GROUP: usize = 50;
const LONGEST_CODE: usize = 20;

/// A reader of the decompressed bytes.
pub(crate) struct Bzip2<R> {
    bits: Bits<R>,
    /// The size of a block of the current stream in bytes. `None` between streams.
    size: Option<usize>,
    /// The checksums of the blocks of the stream so far.
    sum: u32,
    /// The decompressed bytes of a block, and how many of them were read.
    block: Vec<u8>,
    read: usize,
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("bzip2: {what}"))
}

impl<R: BufRead> Bzip2<R> {
    pub(crate) fn new(source: R) -> Bzip2<R> {
        let bits = Bits {
            source,
            held: 0,
            count: 0,
        };
        Bzip2 {
            bits,
            size: None,
            sum: 0,
            block: Vec::new(),
            read: 0,
        }
    }

    /// Decompresses the next block. Returns false at the end.
    fn next_block(&mut self) -> io::Result<bool> {
        loop {
            let Some(size) = self.size else {
                if self.bits.is_at_end()? {
                    return Ok(false);
                }
                for byte in MAGIC {
                    if self.bits.take(8)? != u64::from(byte) {
                        return Err(invalid("this is no stream"));
                    }
                }
                let level = self.bits.take(8)?.wrapping_sub(u64::from(b'0'));
                if !(1..=9).contains(&level) {
                    return Err(invalid("its blocks have no valid size"));
                }
                self.size = Some(level as usize * 100_000);
                self.sum = 0;
                continue;
            };
            match self.bits.take(48)? {
                BLOCK => {
                    let sum = self.bits.take(32)? as u32;
                    self.block = self.bits.block(size)?;
                    self.read = 0;
                    if checksum(&self.block) != sum {
                        return Err(invalid("the checksum of a block is wrong"));
                    }
                    self.sum = self.sum.rotate_left(1) ^ sum;
                    return Ok(true);
                }
                END => {
                    if self.bits.take(32)? as u32 != self.sum {
                        return Err(invalid("the checksum of the stream is wrong"));
                    }
                    self.bits.align();
                    self.size = None;
                }
                _ => return Err(invalid("a block begins with other bytes")),
            }
        }
    }
}

impl<R: BufRead> Read for Bzip2<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.block.len() {
            if buffer.is_empty() || !self.next_block()? {
                return Ok(0);
            }
        }
        let count = buffer.len().min(self.block.len() - self.read);
        buffer[..count].copy_from_slice(&self.block[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}

/// Bits, the highest of a byte first.
struct Bits<R> {
    source: R,
    held: u64,
    count: u32,
}

impl<R: BufRead> Bits<R> {
    fn take(&mut self, count: u32) -> io::Result<u64> {
        while self.count < count {
            let mut byte = [0];
            self.source.read_exact(&mut byte)?;
            self.held = self.held << 8 | u64::from(byte[0]);
            self.count += 8;
        }
        self.count -= count;
        Ok(self.held >> self.count & ((1 << count) - 1))
    }

    fn bit(&mut self) -> io::Result<bool> {
        Ok(self.take(1)? == 1)
    }

    /// Skips the rest of a byte.
    fn align(&mut self) {
        self.count -= self.count % 8;
    }

    fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.count == 0 && self.source.fill_buf()?.is_empty())
    }

    /// Decodes a block after its checksum.
    fn block(&mut self, size: usize) -> io::Result<Vec<u8>> {
        if self.bit()? {
            return Err(invalid(
                "a block of bzip2 before 0.9.5, which is randomised, can't be read",
            ));
        }
        let origin = self.take(24)? as usize;
        let used = self.used()?;
        let symbols = used.len() + 2;
        let tables = self.take(3)? as usize;
        let groups = self.take(15)? as usize;
        if !(2..=6).contains(&tables) || groups == 0 {
            return Err(invalid("a block has no codes"));
        }
        let mut order: Vec<u8> = (0..tables as u8).collect();
        let mut selected = Vec::with_capacity(groups);
        for _ in 0..groups {
            let mut at = 0;
            while self.bit()? {
                at += 1;
                if at == tables {
                    return Err(invalid("a group names no table"));
                }
            }
            order[..=at].rotate_right(1);
            selected.push(order[0]);
        }
        let tables: Vec<Codes> = (0..tables)
            .map(|_| self.codes(symbols))
            .collect::<io::Result<_>>()?;
        let end = symbols - 1;
        let mut front = used;
        let mut last: Vec<u8> = Vec::new();
        // A run of the first symbol, in base 2 with the digits 1 and 2.
        let (mut run, mut place) = (0usize, 1usize);
        for group in selected.iter().flat_map(|table| [*table; GROUP]) {
            let symbol = self.symbol(&tables[usize::from(group)])?;
            if symbol < 2 {
                run = run.saturating_add(place.saturating_mul(symbol + 1));
                place = place.saturating_mul(2);
                if last.len().saturating_add(run) > size {
                    return Err(invalid("a block is too long"));
                }
                continue;
            }
            if run > 0 {
                last.resize(last.len() + run, front[0]);
                (run, place) = (0, 1);
            }
            if symbol == end {
                return original(&last, origin);
            }
            if last.len() == size {
                return Err(invalid("a block is too long"));
            }
            // Symbol 2 is the second of the bytes.
            front[..symbol].rotate_right(1);
            last.push(front[0]);
        }
        Err(invalid("a block does not end"))
    }

    /// Returns the bytes that a block has.
    fn used(&mut self) -> io::Result<Vec<u8>> {
        let ranges = self.take(16)?;
        let mut used = Vec::new();
        for range in (0..16u8).filter(|range| ranges >> (15 - range) & 1 == 1) {
            let bytes = self.take(16)?;
            used.extend(
                (0..16u8)
                    .filter(|byte| bytes >> (15 - byte) & 1 == 1)
                    .map(|byte| range * 16 + byte),
            );
        }
        match used.is_empty() {
            true => Err(invalid("a block has no bytes")),
            false => Ok(used),
        }
    }

    fn codes(&mut self, symbols: usize) -> io::Result<Codes> {
        let mut length = self.take(5)? as usize;
        let mut lengths = Vec::with_capacity(symbols);
        for _ in 0..symbols {
            while self.bit()? {
                match self.bit()? {
                    true => length = length.wrapping_sub(1),
                    false => length += 1,
                }
                if !(1..=LONGEST_CODE).contains(&length) {
                    break;
                }
            }
            if !(1..=LONGEST_CODE).contains(&length) {
                return Err(invalid("a code has no valid length"));
            }
            lengths.push(length);
        }
        let mut sorted: Vec<usize> = (0..symbols).collect();
        sorted.sort_by_key(|symbol| lengths[*symbol]);
        let count = |length| lengths.iter().filter(|other| **other == length).count();
        Ok(Codes {
            counts: std::array::from_fn(count),
            sorted,
        })
    }

    fn symbol(&mut self, codes: &Codes) -> io::Result<usize> {
        let (mut code, mut first, mut index) = (0usize, 0usize, 0usize);
        for count in &codes.counts[1..] {
            code = code << 1 | self.take(1)? as usize;
            if code.wrapping_sub(first) < *count {
                return codes
                    .sorted
                    .get(index + code - first)
                    .copied()
                    .ok_or_else(|| invalid("no such code"));
            }
            index += count;
            first = (first + count) << 1;
        }
        Err(invalid("no such code"))
    }
}

/// Canonical codes: how many there are of each length, and their symbols.
struct Codes {
    counts: [usize; LONGEST_CODE + 1],
    sorted: Vec<usize>,
}

/// Inverts the transform, and expands runs: after four equal bytes there is a number of further ones.
fn original(last: &[u8], origin: usize) -> io::Result<Vec<u8>> {
    if origin >= last.len() {
        return Err(invalid("the origin of a block is outside of it"));
    }
    let mut starts = [0usize; 256];
    for byte in last {
        starts[usize::from(*byte)] += 1;
    }
    let mut sum = 0;
    for start in &mut starts {
        (*start, sum) = (sum, sum + *start);
    }
    let mut next = vec![0u32; last.len()];
    for (at, byte) in last.iter().enumerate() {
        let start = &mut starts[usize::from(*byte)];
        next[*start] = at as u32;
        *start += 1;
    }
    let mut bytes = Vec::with_capacity(last.len());
    let mut at = next[origin] as usize;
    let mut equal = 0;
    for _ in 0..last.len() {
        let byte = last[at];
        at = next[at] as usize;
        if equal == 4 {
            let previous = bytes[bytes.len() - 1];
            bytes.resize(bytes.len() + usize::from(byte), previous);
            equal = 0;
            continue;
        }
        equal = if bytes.last() == Some(&byte) && equal > 0 {
            equal + 1
        } else {
            1
        };
        bytes.push(byte);
    }
    Ok(bytes)
}

/// The CRC of bzip2: the polynomial of Ethernet, with the highest bit first.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        let index = (sum >> 24) as u8 ^ byte;
        sum << 8 ^ TABLE[usize::from(index)]
    };
    !bytes.iter().fold(u32::MAX, step)
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut sum = (index as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum >> 31 == 1 {
                sum << 1 ^ 0x04c1_1db7
            } else {
                sum << 1
            };
            bit += 1;
        }
        table[index] = sum;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What `printf 'fairgate fairgate fairgate aaaaaaaaaaaaaaaa' | bzip2` writes.
    const EXAMPLE: &[u8] = &[
        0x42, 0x5a, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0xcd, 0x37, 0xf5, 0x9c, 0x00, 0x00, 0x09,
        0xd1, 0x80, 0x00, 0x04, 0x40, 0x00, 0x23, 0xa0, 0x14, 0x00, 0x20, 0x00, 0x22, 0x3d, 0x46, 0x83, 0x42,
        0x0c, 0x98, 0x8a, 0x44, 0x8a, 0xcc, 0x18, 0xa3, 0x59, 0xa3, 0x24, 0xf1, 0x77, 0x24, 0x53, 0x85, 0x09,
        0x0c, 0xd3, 0x7f, 0x59, 0xc0,
    ];
    /// No bytes.
    const EMPTY: &[u8] = &[
        0x42, 0x5a, 0x68, 0x39, 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, 0x00, 0x00, 0x00, 0x00,
    ];
    const TEXT: &[u8] = b"fairgate fairgate fairgate aaaaaaaaaaaaaaaa";

    fn all(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        Bzip2::new(bytes).read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn streams_are_read_one_after_the_other() {
        assert_eq!(all(EXAMPLE).unwrap(), TEXT);
        assert_eq!(all(&[EXAMPLE, EXAMPLE].concat()).unwrap(), [TEXT, TEXT].concat());
        assert_eq!(all(EMPTY).unwrap(), b"");
    }

    proptest! {
        #[test]
        fn damage_is_an_error(at in 0..EXAMPLE.len(), bit in 0u32..8, cut in 0..EXAMPLE.len()) {
            let mut damaged = EXAMPLE.to_vec();
            damaged[at] ^= 1u8 << bit;
            // Some bits mean nothing, such as those of a table of codes that no group names.
            if let Ok(text) = all(&damaged) {
                prop_assert_eq!(text, TEXT);
            }
            prop_assert!(cut == 0 || all(&EXAMPLE[..cut]).is_err());
        }
    }
}
