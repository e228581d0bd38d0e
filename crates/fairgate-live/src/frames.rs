//! Where frames wait while their descriptors queue: one allocation, cut into chunks at construction.
//!
//! A packet's cookie is the number of its frame here. Chunks are reused last in, first out, while they are still in
//! the cache; a chunk that was never needed never touches memory.

use crate::vlan::Tag;

/// Where in its chunk a frame lies.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    start: u8,
    length: u32,
}

/// Frames in chunks of one size.
#[derive(Debug)]
pub(crate) struct FrameStore {
    bytes: Vec<u8>,
    chunk: usize,
    places: Vec<Place>,
    free: Vec<u32>,
}

impl FrameStore {
    /// Room for `count` frames of up to `longest` bytes before a VLAN tag is put back.
    pub(crate) fn new(count: u32, longest: usize) -> FrameStore {
        // Chunks of whole cache lines share none.
        let chunk = (longest + Tag::BYTES).next_multiple_of(64);
        FrameStore {
            bytes: vec![0; chunk * count as usize],
            chunk,
            places: vec![Place::default(); count as usize],
            free: (0..count).rev().collect(),
        }
    }

    /// The longest frame that fits.
    pub(crate) fn longest(&self) -> usize {
        self.chunk - Tag::BYTES
    }

    /// Bytes of memory that a frame occupies, whatever its length.
    pub(crate) fn chunk(&self) -> u32 {
        self.chunk as u32
    }

    /// Stores the frame that `write` writes to the front of [`FrameStore::longest`] bytes, under its VLAN tag if it
    /// had one; `write` returns the length. `None`, and nothing written, if all chunks are in use.
    #[inline]
    pub(crate) fn store(&mut self, tag: Option<Tag>, write: impl FnOnce(&mut [u8]) -> usize) -> Option<u32> {
        let number = self.free.pop()?;
        let begin = number as usize * self.chunk;
        let chunk = &mut self.bytes[begin..begin + self.chunk];
        let length = write(&mut chunk[Tag::BYTES..]);
        debug_assert!(length <= self.chunk - Tag::BYTES);
        let (start, length) = match tag {
            None => (Tag::BYTES, length),
            Some(tag) => {
                tag.insert(chunk);
                (0, length + Tag::BYTES)
            }
        };
        self.places[number as usize] = Place {
            start: start as u8,
            length: length as u32,
        };
        Some(number)
    }

    /// Frees a frame's chunk.
    #[inline]
    pub(crate) fn free(&mut self, number: u32) {
        debug_assert!(
            self.free.len() < self.places.len(),
            "frame {number} is freed twice"
        );
        self.free.push(number);
    }

    /// The frame's bytes.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        let place = self.places[number as usize];
        let begin = number as usize * self.chunk + usize::from(place.start);
        &self.bytes[begin..begin + place.length as usize]
    }

    /// The frame's bytes, to mark them.
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut [u8] {
        let place = self.places[number as usize];
        let begin = number as usize * self.chunk + usize::from(place.start);
        &mut self.bytes[begin..begin + place.length as usize]
    }
}
