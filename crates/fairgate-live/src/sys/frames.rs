//! Stores frames while their packets are queued: memory in chunks, one for each frame.
//!
//! A packet's cookie is the number of its first frame in this store. Chunks are reused last in, first out,
//! because the last one is still in the cache. The memory of a chunk that was never needed is never touched.
//!
//! AF_XDP sockets may have the same memory. Then a chunk goes round:
//! ```text
//!             store, adopt                        lend
//!   [ free ] --------------> [ holds a frame ] ----------> [ sending ]
//!      ^                            |                           |
//!      +------------- free ---------+-------- take_back --------+
//! ```
//! A received frame is in a chunk of the socket. If the store adopts it, the socket gets a free chunk in
//! exchange. There are more chunks than frames that the store may hold, by as many as sockets may have, so
//! there is always one. The store notes what each chunk is used for. So it knows the chunks of a closed
//! socket.

use nix::errno::Errno;

use crate::offload::Part;
use crate::outgoing::Outgoing;
use crate::sys::chunks::Chunks;
use crate::vlan::Tag;

/// What a chunk is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Free,
    /// It holds a frame of this store.
    Frame,
    /// A socket has it to receive a frame.
    Receiving,
    /// A socket sends the frame in it.
    Sending,
}

/// The use of a chunk, and the position of a frame in it.
#[derive(Clone, Copy, Debug)]
struct FramePosition {
    start: u16,
    used: Use,
    /// Whether `segments` has an entry for it.
    is_segment: bool,
    length: u32,
}

const _: () = assert!(size_of::<FramePosition>() == 8);

/// What only frames have that were cut from a super-packet.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    /// Its place in the super-packet, if it may be joined again.
    part: Option<Part>,
    /// The next frame of the same packet of the tree, if this is not the last.
    next: Option<u32>,
}

/// What became of a frame that a socket has received into a chunk of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Adopted {
    /// The number of the frame in the store.
    pub(crate) number: u32,
    /// The chunk that the socket gets for the next frame.
    pub(crate) exchange: u32,
}

/// Stores frames in chunks of equal size.
#[derive(Debug)]
pub(crate) struct FrameStore {
    chunks: Chunks,
    places: Vec<FramePosition>,
    segments: Vec<Segment>,
    free: Vec<u32>,
    /// The number of frames held.
    held: u32,
    /// The most frames held.
    most: u32,
    /// Whether sockets have the same memory.
    is_shared: bool,
}

impl FrameStore {
    /// Creates a store for `count` frames of up to `longest` bytes, not counting a VLAN tag that is put back.
    ///
    /// # Errors
    /// Fails if there is not enough memory.
    pub(crate) fn new(count: u32, longest: usize) -> Result<FrameStore, Errno> {
        let chunks = Chunks::new(count, FrameStore::chunk_for(longest))?;
        Ok(FrameStore::of(chunks, count, 0, false))
    }

    /// Creates a store for `count` frames, whose chunks AF_XDP sockets may have, too. The socket that
    /// receives has `receiving` of them from the start, and the one that sends has up to all that are left.
    pub(crate) fn shared(chunks: Chunks, count: u32, receiving: u32) -> FrameStore {
        FrameStore::of(chunks, count, receiving, true)
    }

    fn of(chunks: Chunks, most: u32, receiving: u32, is_shared: bool) -> FrameStore {
        let all = chunks.count();
        let unused = |used| FramePosition {
            start: 0,
            used,
            is_segment: false,
            length: 0,
        };
        let own = all - receiving;
        let mut places = vec![unused(Use::Free); own as usize];
        places.resize(all as usize, unused(Use::Receiving));
        FrameStore {
            chunks,
            places,
            segments: vec![Segment::default(); all as usize],
            free: (0..own).rev().collect(),
            held: 0,
            most,
            is_shared,
        }
    }

    /// Returns the bytes of memory per frame, if frames have up to `longest` bytes before a VLAN tag is put
    /// back.
    pub(crate) fn chunk_for(longest: usize) -> usize {
        // A chunk is a whole number of cache lines, so that two chunks never share one.
        (longest + Tag::BYTES).next_multiple_of(64)
    }

    /// Makes room for longer frames. All frames keep their numbers. Allocates, so it must not be called per
    /// packet. Shared memory stays as it is.
    ///
    /// # Errors
    /// Fails if there is not enough memory. All frames are still there.
    pub(crate) fn grow(&mut self, longest: usize) -> Result<(), Errno> {
        if self.is_shared || longest <= self.longest() {
            return Ok(());
        }
        let grown = Chunks::new(self.chunks.count(), FrameStore::chunk_for(longest))?;
        for (number, place) in (0..).zip(&self.places) {
            let (start, length) = (usize::from(place.start), place.length as usize);
            if place.used == Use::Frame {
                // SAFETY: the new chunks are nobody else's.
                let to = unsafe { grown.get_mut(number, start, length) };
                to.copy_from_slice(self.get(number));
            }
        }
        self.chunks = grown;
        Ok(())
    }

    /// Returns the most frames that it holds.
    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// Returns the length of the longest frame that fits.
    pub(crate) fn longest(&self) -> usize {
        self.chunks.length() - Tag::BYTES
    }

    /// Returns the bytes of memory that each frame occupies, whatever its length.
    pub(crate) fn chunk(&self) -> u32 {
        self.chunks.length() as u32
    }

    /// Stores a frame. `write` writes it to the front of [`FrameStore::longest`] bytes and returns its
    /// length. If `tag` is given, the tag is inserted. Returns `None`, and calls nothing, if it holds the
    /// most frames already.
    #[inline]
    pub(crate) fn store(&mut self, tag: Option<Tag>, write: impl FnOnce(&mut [u8]) -> usize) -> Option<u32> {
        let number = self.take_free()?;
        // SAFETY: the chunk was free, so this store alone accesses it, and `self` is borrowed exclusively.
        let chunk = unsafe { self.chunks.get_mut(number, 0, self.chunks.length()) };
        let length = write(&mut chunk[Tag::BYTES..]);
        debug_assert!(length <= chunk.len() - Tag::BYTES);
        let (start, length) = match tag {
            None => (Tag::BYTES, length),
            Some(tag) => {
                tag.insert(chunk);
                (0, length + Tag::BYTES)
            }
        };
        self.hold(number, start, length);
        Some(number)
    }

    /// Returns whether a frame that was received is in this store's memory already.
    #[inline]
    pub(crate) fn has(&self, received: &[u8]) -> bool {
        self.is_shared && self.chunks.address_of(received).is_some()
    }

    /// Stores a received frame for which [`FrameStore::has`] is true, without a copy. Returns `None` if it
    /// holds the most frames already. Otherwise the socket must take the returned chunk instead of the
    /// frame's.
    #[inline]
    pub(crate) fn adopt(&mut self, received: &[u8]) -> Option<Adopted> {
        let address = self.chunks.address_of(received);
        let place = address.and_then(|address| self.chunks.chunk_at(address));
        let (number, start) = place.expect("the frame is in this store's memory");
        assert!(
            self.places[number as usize].used == Use::Receiving,
            "a frame is received into a chunk that the socket had"
        );
        let exchange = self.take_free()?;
        self.places[exchange as usize].used = Use::Receiving;
        self.hold(number, start, received.len());
        Some(Adopted { number, exchange })
    }

    /// Stores a copy of a frame. Returns `None` if it holds the most frames already.
    pub(crate) fn duplicate(&mut self, number: u32) -> Option<u32> {
        let copy = self.take_free()?;
        let FramePosition { start, length, .. } = self.places[number as usize];
        // SAFETY: the chunk was free, so this store alone accesses it. It is not the chunk of `number`, which
        // holds a frame.
        let to = unsafe { self.chunks.get_mut(copy, start.into(), length as usize) };
        to.copy_from_slice(self.get(number));
        self.hold(copy, start.into(), length as usize);
        Some(copy)
    }

    /// Takes a free chunk for one more frame.
    #[inline]
    fn take_free(&mut self) -> Option<u32> {
        if self.held == self.most {
            return None;
        }
        let number = self.free.pop();
        debug_assert!(number.is_some(), "there are more chunks than sockets have");
        number
    }

    /// Notes a frame in a chunk.
    #[inline]
    fn hold(&mut self, number: u32, start: usize, length: usize) {
        self.held += 1;
        self.places[number as usize] = FramePosition {
            start: start as u16,
            used: Use::Frame,
            is_segment: false,
            length: length as u32,
        };
    }

    /// Frees the chunk of a frame.
    #[inline]
    pub(crate) fn free(&mut self, number: u32) {
        self.end_holding(number, Use::Free);
        self.free.push(number);
    }

    /// Gives a frame to a socket that sends it, until [`FrameStore::take_back`].
    #[inline]
    pub(crate) fn lend(&mut self, number: u32) {
        self.end_holding(number, Use::Sending);
    }

    #[inline]
    fn end_holding(&mut self, number: u32, used: Use) {
        let place = &mut self.places[number as usize];
        assert!(place.used == Use::Frame, "chunk {number} holds no frame");
        place.used = used;
        self.held -= 1;
    }

    /// Frees the chunk of a frame that a socket has sent.
    #[inline]
    pub(crate) fn take_back(&mut self, number: u32) {
        let place = &mut self.places[number as usize];
        assert!(place.used == Use::Sending, "chunk {number} was not sent");
        place.used = Use::Free;
        self.free.push(number);
    }

    /// Frees the chunks that a socket has not sent. It was closed.
    #[cold]
    pub(crate) fn take_all_back(&mut self) {
        for number in self.used_for(Use::Sending) {
            self.take_back(number);
        }
    }

    /// Returns the chunks to receive with.
    #[cold]
    pub(crate) fn receiving(&self) -> Vec<u32> {
        self.used_for(Use::Receiving)
    }

    fn used_for(&self, used: Use) -> Vec<u32> {
        let numbers = (0..).zip(&self.places);
        numbers
            .filter(|(_, place)| place.used == used)
            .map(|(number, _)| number)
            .collect()
    }

    /// Returns whether sockets have the same memory.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Returns its memory.
    pub(crate) fn chunks(&self) -> &Chunks {
        &self.chunks
    }

    /// Says which part of a super-packet a frame is, or that it can't be joined.
    #[inline]
    pub(crate) fn set_part(&mut self, number: u32, part: Option<Part>) {
        self.segment_mut(number).part = part;
    }

    /// Returns a frame's place in a super-packet, if it is part of one and may be joined again.
    #[inline]
    pub(crate) fn part(&self, number: u32) -> Option<Part> {
        self.segment(number)?.part
    }

    /// Says that frame `next` follows frame `last` in the same packet of the tree.
    #[inline]
    pub(crate) fn append(&mut self, last: u32, next: u32) {
        self.segment_mut(last).next = Some(next);
    }

    /// Returns the frame that follows in the same packet of the tree, if there is one.
    #[inline]
    pub(crate) fn following(&self, number: u32) -> Option<u32> {
        self.segment(number)?.next
    }

    #[inline]
    fn segment(&self, number: u32) -> Option<&Segment> {
        let is_segment = self.places[number as usize].is_segment;
        is_segment.then(|| &self.segments[number as usize])
    }

    #[inline]
    fn segment_mut(&mut self, number: u32) -> &mut Segment {
        let (place, segment) = (
            &mut self.places[number as usize],
            &mut self.segments[number as usize],
        );
        if !place.is_segment {
            place.is_segment = true;
            *segment = Segment::default();
        }
        segment
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
        let place = &self.places[number as usize];
        assert!(place.used == Use::Frame, "chunk {number} holds no frame");
        // SAFETY: the chunk holds a frame of this store, so no socket writes to it, and the only writer is
        // `get_mut`, which borrows `self` exclusively.
        unsafe { self.chunks.get(number, place.start.into(), place.length as usize) }
    }

    /// Returns the bytes of a frame, to change its ECN field or DSCP, or one of its bits.
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut [u8] {
        let place = &self.places[number as usize];
        assert!(place.used == Use::Frame, "chunk {number} holds no frame");
        // SAFETY: the chunk holds a frame of this store, so no socket accesses it, and `self` is borrowed
        // exclusively. What the receiving socket has shown of it ended when it got another chunk.
        unsafe {
            self.chunks
                .get_mut(number, place.start.into(), place.length as usize)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn frames_keep_their_bytes_when_the_store_grows() {
        let mut store = FrameStore::new(4, 1518).unwrap();
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
        store.grow(9018).unwrap();
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

    /// What a model of two sockets and a tree does to a shared store.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// The socket receives into its oldest chunk, and the frame is adopted, or not if the store is full.
        Receive,
        /// A frame comes from elsewhere, or is a copy of the oldest.
        Store,
        Duplicate,
        /// The tree drops the oldest frame.
        Drop,
        /// The oldest frame leaves, if the sending socket has room.
        Send,
        /// The oldest sent frame is out.
        Complete,
        /// The sending socket is closed.
        Close,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => Just(Step::Receive),
            1 => Just(Step::Store),
            1 => Just(Step::Duplicate),
            1 => Just(Step::Drop),
            4 => Just(Step::Send),
            3 => Just(Step::Complete),
            1 => Just(Step::Close),
        ];
        proptest::collection::vec(step, 0..if cfg!(miri) { 30 } else { 200 })
    }

    const MOST: u32 = 4;
    const RECEIVING: u32 = 3;
    const SENDING: usize = 2;

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            cases: if cfg!(miri) { 8 } else { 256 },
            ..ProptestConfig::default()
        })]

        /// A chunk is with the store or with one socket, each frame keeps its bytes, and neither socket runs
        /// out of chunks while the store is full.
        #[test]
        fn chunks_go_round(steps in steps()) {
            let count = MOST + RECEIVING + SENDING as u32;
            // The store of the other direction begins behind this one.
            let [chunks, other] = Chunks::side_by_side([count, 2], 64).unwrap();
            let mut store = FrameStore::shared(chunks.clone(), MOST, RECEIVING);
            let mut receiving: VecDeque<u32> = store.receiving().into();
            let (mut held, mut sending) = (VecDeque::new(), VecDeque::new());
            for (byte, step) in (1..).map(|count: usize| count as u8).zip(steps) {
                let is_full = held.len() == MOST as usize;
                match step {
                    Step::Receive => {
                        let chunk = receiving.pop_front().expect("the socket has chunks");
                        // SAFETY: the socket has this chunk, and no frame is in it.
                        let received = unsafe { chunks.get_mut(chunk, 8, 40) };
                        received.fill(byte);
                        prop_assert!(store.has(received));
                        let adopted = store.adopt(received);
                        prop_assert_eq!(adopted.is_none(), is_full);
                        receiving.push_back(adopted.map_or(chunk, |adopted| adopted.exchange));
                        held.extend(adopted.map(|adopted| (adopted.number, byte)));
                    }
                    Step::Store => {
                        let number = store.store(None, |to| {
                            to[..40].fill(byte);
                            40
                        });
                        prop_assert_eq!(number.is_none(), is_full);
                        held.extend(number.map(|number| (number, byte)));
                    }
                    Step::Duplicate => if let Some((original, byte)) = held.front().copied() {
                        let number = store.duplicate(original);
                        prop_assert_eq!(number.is_none(), is_full);
                        held.extend(number.map(|number| (number, byte)));
                    },
                    Step::Drop => if let Some((number, _)) = held.pop_front() {
                        store.free(number);
                    },
                    Step::Send => if sending.len() < SENDING && let Some((number, _)) = held.pop_front() {
                        store.lend(number);
                        sending.push_back(number);
                    },
                    Step::Complete => if let Some(number) = sending.pop_front() {
                        store.take_back(number);
                    },
                    Step::Close => {
                        store.take_all_back();
                        sending.clear();
                    }
                }
                for &(number, byte) in &held {
                    prop_assert_eq!(store.get(number), [byte; 40]);
                }
                let users = receiving.iter().chain(&sending).chain(held.iter().map(|(number, _)| number));
                let mut all: Vec<u32> = users.chain(&store.free).copied().collect();
                all.sort_unstable();
                prop_assert_eq!(all, (0..count).collect::<Vec<_>>());
            }
            let mut known = store.receiving();
            known.sort_unstable();
            receiving.make_contiguous().sort_unstable();
            prop_assert_eq!(receiving, known);
            // SAFETY: nobody uses this chunk.
            let foreign = unsafe { other.get(0, 8, 40) };
            prop_assert!(!store.has(foreign));
        }
    }

    #[test]
    #[should_panic(expected = "holds no frame")]
    fn a_frame_is_freed_once() {
        let mut store = FrameStore::new(2, 60).unwrap();
        let number = store.store(None, |_| 60).unwrap();
        store.free(number);
        store.free(number);
    }
}
