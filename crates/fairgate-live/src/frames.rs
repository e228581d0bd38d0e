//! Stores frames while their packets are queued: one allocation, cut into chunks at construction.
//!
//! A packet's cookie is the number of its frame in this store. Chunks are reused last in, first out, because
//! the last one is still in the cache. The memory of a chunk that was never needed is never touched.

use crate::offload::Part;
use crate::outgoing::Outgoing;
use crate::vlan::Tag;

/// The position of a frame inside its chunk.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    start: u8,
    /// Whether `parts` has an entry for it.
    is_part: bool,
    length: u32,
}

/// Stores frames in chunks of equal size.
#[derive(Debug)]
pub(crate) struct FrameStore {
    bytes: Vec<u8>,
    chunk: usize,
    places: Vec<Place>,
    /// The places of segments in their super-packets.
    parts: Vec<Option<Part>>,
    free: Vec<u32>,
}

impl FrameStore {
    /// Creates a store for `count` frames of up to `longest` bytes, not counting a VLAN tag that is put back.
    pub(crate) fn new(count: u32, longest: usize) -> FrameStore {
        let chunk = FrameStore::chunk_for(longest);
        FrameStore {
            bytes: vec![0; chunk * count as usize],
            chunk,
            places: vec![Place::default(); count as usize],
            parts: vec![None; count as usize],
            free: (0..count).rev().collect(),
        }
    }

    /// Returns the bytes of memory per frame, if frames have up to `longest` bytes before a VLAN tag is put
    /// back.
    pub(crate) fn chunk_for(longest: usize) -> usize {
        // A chunk is a whole number of cache lines, so that two chunks never share one.
        (longest + Tag::BYTES).next_multiple_of(64)
    }

    /// Makes room for longer frames. All frames keep their numbers. Allocates, so it must not be called per
    /// packet.
    pub(crate) fn grow(&mut self, longest: usize) {
        let mut grown = FrameStore::new(self.places.len() as u32, longest);
        if grown.chunk <= self.chunk {
            return;
        }
        let chunks = self.bytes.chunks_exact(self.chunk);
        for ((to, from), place) in grown
            .bytes
            .chunks_exact_mut(grown.chunk)
            .zip(chunks)
            .zip(&self.places)
        {
            let end = usize::from(place.start) + place.length as usize;
            to[..end].copy_from_slice(&from[..end]);
        }
        grown.places = std::mem::take(&mut self.places);
        grown.parts = std::mem::take(&mut self.parts);
        grown.free = std::mem::take(&mut self.free);
        *self = grown;
    }

    /// Returns the length of the longest frame that fits.
    pub(crate) fn longest(&self) -> usize {
        self.chunk - Tag::BYTES
    }

    /// Returns the bytes of memory that each frame occupies, whatever its length.
    pub(crate) fn chunk(&self) -> u32 {
        self.chunk as u32
    }

    /// Stores a frame. `write` writes it to the front of [`FrameStore::longest`] bytes and returns its
    /// length. If `tag` is given, the tag is inserted. Returns `None`, and calls nothing, if all chunks are
    /// in use.
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
            is_part: false,
            length: length as u32,
        };
        Some(number)
    }

    /// Stores a copy of a frame. Returns `None` if all chunks are in use.
    pub(crate) fn duplicate(&mut self, number: u32) -> Option<u32> {
        let copy = self.free.pop()?;
        let place = self.places[number as usize];
        let begin = number as usize * self.chunk + usize::from(place.start);
        let to = copy as usize * self.chunk + usize::from(place.start);
        self.bytes.copy_within(begin..begin + place.length as usize, to);
        self.places[copy as usize] = Place {
            is_part: false,
            ..place
        };
        Some(copy)
    }

    /// Frees the chunk of a frame.
    #[inline]
    pub(crate) fn free(&mut self, number: u32) {
        debug_assert!(
            self.free.len() < self.places.len(),
            "more frames were freed than stored; the last one is {number}"
        );
        self.free.push(number);
    }

    /// Says that a frame is a part of a super-packet, or that it is none.
    #[inline]
    pub(crate) fn set_part(&mut self, number: u32, part: Option<Part>) {
        self.places[number as usize].is_part = part.is_some();
        if part.is_some() {
            self.parts[number as usize] = part;
        }
    }

    /// Returns a frame's place in a super-packet, if it is part of one.
    #[inline]
    pub(crate) fn part(&self, number: u32) -> Option<Part> {
        match self.places[number as usize].is_part {
            true => self.parts[number as usize],
            false => None,
        }
    }

    /// Returns a frame for a back end.
    #[inline]
    pub(crate) fn outgoing(&self, number: u32) -> Outgoing<'_> {
        Outgoing {
            bytes: self.get(number),
            part: self.part(number),
        }
    }

    /// Returns the bytes of a frame.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        let place = self.places[number as usize];
        let begin = number as usize * self.chunk + usize::from(place.start);
        &self.bytes[begin..begin + place.length as usize]
    }

    /// Returns the bytes of a frame, to change its ECN field or DSCP, or one of its bits.
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut [u8] {
        let place = self.places[number as usize];
        let begin = number as usize * self.chunk + usize::from(place.start);
        &mut self.bytes[begin..begin + place.length as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_keep_their_bytes_when_the_store_grows() {
        let mut store = FrameStore::new(4, 1518);
        let write = |byte: u8, length: usize| {
            move |out: &mut [u8]| {
                out[..length].fill(byte);
                length
            }
        };
        let tag = Tag {
            tpid: Tag::SERVICE,
            tci: 9,
        };
        let plain = store.store(None, write(1, 1518)).unwrap();
        let freed = store.store(None, write(2, 60)).unwrap();
        let tagged = store.store(Some(tag), write(3, 1518)).unwrap();
        let before = store.get(tagged).to_vec();
        store.free(freed);
        store.grow(9018);
        assert_eq!(store.longest().next_multiple_of(64), 9024);
        assert_eq!(store.get(plain), [1; 1518]);
        assert_eq!(
            (store.get(tagged), Tag::of(store.get(tagged))),
            (&before[..], Some(tag))
        );
        let long = store.store(Some(tag), write(4, 9018)).unwrap();
        assert_eq!(store.get(long).len(), 9022);
        assert!(store.store(None, write(5, 60)).is_some());
        assert!(
            store.store(None, write(6, 60)).is_none(),
            "the store has four frames and all are in use"
        );
        assert_eq!(store.get(plain), [1; 1518]);
    }
}
