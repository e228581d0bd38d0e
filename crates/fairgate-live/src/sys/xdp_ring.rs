//! The rings of an AF_XDP socket: one side produces entries, the other one consumes them (Linux
//! Documentation/networking/af_xdp.rst).
//!
//! ```text
//!   fill        we give chunks of memory to the kernel        we produce
//!   receive     the kernel gives frames in them to us         we consume
//!   transmit    we give frames to the kernel                  we produce
//!   completion  the kernel gives their chunks back to us      we consume
//! ```
//!
//! A ring is an array of entries and two counters that only grow, modulo 2^32. An entry's place is its count
//! modulo the number of entries, a power of two. The producer writes entries and then publishes them by its
//! counter, with release ordering. The consumer reads that counter with acquire ordering, so it sees the
//! entries; it reads them, and then returns their places by its own counter, with release ordering. The
//! producer reads that one with acquire ordering before it writes to a place again. Each counter has one
//! writer, so the writer keeps a copy and never reads it. Neither locks nor system calls are needed.
//!
//! The other side's counter is on a cache line that the other side's processor writes. It is read only if the
//! last value read says that nothing is left.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys::mapping::Mapping;

/// The entries of a ring that we produce, for each chunk that goes round in it.
///
/// The kernel hands a chunk on (a frame in it, or its completion) before it returns the place of the entry by
/// which it got the chunk. It returns places at the latest when it has used all entries that it has seen,
/// which are no more than there are chunks. So a chunk may be given to the kernel again while as many old
/// entries as there are chunks still take their places.
pub(crate) const ENTRIES_PER_CHUNK: u32 = 2;

/// Where the parts of a ring are in its memory: offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offsets {
    pub(crate) producer: usize,
    pub(crate) consumer: usize,
    pub(crate) flags: usize,
    pub(crate) entries: usize,
}

impl Offsets {
    /// Returns the bytes of a ring with `count` entries of type `T`.
    pub(crate) fn bytes<T>(&self, count: u32) -> usize {
        self.entries + count as usize * size_of::<T>()
    }
}

/// The memory of a ring, for our side of it.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    base: NonNull<u8>,
    offsets: Offsets,
    /// The number of entries minus one.
    mask: u32,
    _entries: PhantomData<T>,
}

// SAFETY: on our side only this value uses the ring's memory; a raw pointer is not tied to a thread.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Returns the ring in `memory`, which must be kept as long as the result.
    ///
    /// # Safety
    /// The conditions of `Ring::at` hold for this memory, but for its size.
    pub(crate) unsafe fn new(memory: &Mapping, offsets: Offsets, count: u32) -> Ring<T> {
        assert!(offsets.bytes::<T>(count) <= memory.length());
        // SAFETY: as promised, and the memory is large enough.
        unsafe { Ring::at(memory.base(), offsets, count) }
    }

    /// # Safety
    /// `base` points to `offsets.bytes::<T>(count)` initialised bytes, aligned to a page, readable and
    /// writable as long as the ring is used. `offsets` are aligned to 8 and inside of it. Both sides keep to
    /// the protocol that the head of this file describes, and access counters and flags atomically. On our
    /// side nothing else accesses the memory. Any bytes that the other side writes to an entry are a valid
    /// `T`.
    unsafe fn at(base: NonNull<u8>, offsets: Offsets, count: u32) -> Ring<T> {
        assert!(
            count.is_power_of_two(),
            "the number of entries must be a power of two"
        );
        Ring {
            base,
            offsets,
            mask: count - 1,
            _entries: PhantomData,
        }
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: `at` promises that the word is inside the memory, aligned, and accessed atomically by both
        // sides. The reference does not outlive `self`, which the memory outlives.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    fn producer(&self) -> &AtomicU32 {
        self.word(self.offsets.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.word(self.offsets.consumer)
    }

    /// Returns the place of entry number `count`.
    fn place(&self, count: u32) -> *mut T {
        let index = (count & self.mask) as usize;
        // SAFETY: the index is below the number of entries, all of which are inside the memory.
        unsafe {
            self.base
                .as_ptr()
                .add(self.offsets.entries)
                .cast::<T>()
                .add(index)
        }
    }

    fn needs_wakeup(&self) -> bool {
        self.word(self.offsets.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// Our side of a ring that we write to: fill or transmit.
#[derive(Debug)]
pub(crate) struct Producer<T> {
    ring: Ring<T>,
    /// The number of entries written.
    written: u32,
    /// The other side's counter when it was last read.
    consumed: u32,
}

impl<T: Copy> Producer<T> {
    /// Begins to produce into an empty ring.
    pub(crate) fn new(ring: Ring<T>) -> Producer<T> {
        Producer {
            ring,
            written: 0,
            consumed: 0,
        }
    }

    /// Writes an entry. The other side sees it after [`Producer::publish`]. Returns false, and does nothing,
    /// if the ring is full.
    #[inline]
    pub(crate) fn push(&mut self, entry: T) -> bool {
        if self.written.wrapping_sub(self.consumed) > self.ring.mask {
            self.consumed = self.ring.consumer().load(Ordering::Acquire);
            if self.written.wrapping_sub(self.consumed) > self.ring.mask {
                return false;
            }
        }
        // SAFETY: the other side has returned this place (the acquire load above, now or earlier) or has not
        // used it yet, and does not read it before the release store in `publish`.
        unsafe { self.ring.place(self.written).write(entry) };
        self.written = self.written.wrapping_add(1);
        true
    }

    /// Shows all written entries to the other side.
    #[inline]
    pub(crate) fn publish(&mut self) {
        self.ring.producer().store(self.written, Ordering::Release);
    }

    /// Returns how many entries the other side has not consumed yet.
    pub(crate) fn pending(&mut self) -> u32 {
        self.consumed = self.ring.consumer().load(Ordering::Acquire);
        self.written.wrapping_sub(self.consumed)
    }

    /// Returns whether the kernel looks at the ring only after a system call.
    #[inline]
    pub(crate) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// Our side of a ring that we read from: receive or completion.
#[derive(Debug)]
pub(crate) struct Consumer<T> {
    ring: Ring<T>,
    /// The number of entries read.
    read: u32,
    /// The other side's counter when it was last read.
    produced: u32,
}

impl<T: Copy> Consumer<T> {
    /// Begins to consume from a ring of which nothing was consumed.
    pub(crate) fn new(ring: Ring<T>) -> Consumer<T> {
        Consumer {
            ring,
            read: 0,
            produced: 0,
        }
    }

    /// Returns the oldest entry that was not taken, or `None` if there is none.
    #[inline]
    pub(crate) fn front(&mut self) -> Option<T> {
        if self.read == self.produced {
            self.produced = self.ring.producer().load(Ordering::Acquire);
            if self.read == self.produced {
                return None;
            }
        }
        // SAFETY: the other side wrote this entry before the release store that the acquire load above saw,
        // and does not write to its place again before `publish`.
        Some(unsafe { self.ring.place(self.read).read() })
    }

    /// Takes the entry that [`Consumer::front`] returned. The other side may use its place after
    /// [`Consumer::publish`].
    #[inline]
    pub(crate) fn take(&mut self) {
        debug_assert!(
            self.read != self.produced,
            "only an entry that was seen can be taken"
        );
        self.read = self.read.wrapping_add(1);
    }

    /// Returns the places of all taken entries to the other side.
    #[inline]
    pub(crate) fn publish(&mut self) {
        self.ring.consumer().store(self.read, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const OFFSETS: Offsets = Offsets {
        producer: 0,
        consumer: 64,
        flags: 128,
        entries: 192,
    };

    /// The memory of a ring with entries of 8 bytes.
    struct Memory(Vec<u64>);

    impl Memory {
        fn new(count: u32) -> Memory {
            Memory(vec![0; OFFSETS.bytes::<u64>(count) / 8])
        }

        /// The two sides of a ring whose counters begin at `start`.
        fn sides(&mut self, count: u32, start: u32) -> (Producer<u64>, Consumer<u64>) {
            let base = NonNull::new(self.0.as_mut_ptr().cast()).unwrap();
            // SAFETY: the memory is large enough and outlives both sides. It is aligned to 8, as the words
            // and entries are. The two sides keep to the protocol. Entries are integers.
            let side = || unsafe { Ring::at(base, OFFSETS, count) };
            let (mut producer, mut consumer) = (Producer::new(side()), Consumer::new(side()));
            (producer.written, producer.consumed) = (start, start);
            (consumer.read, consumer.produced) = (start, start);
            producer.publish();
            consumer.publish();
            (producer, consumer)
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push,
        ShowWritten,
        Take,
        ReturnTaken,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => Just(Step::Push),
            1 => Just(Step::ShowWritten),
            3 => Just(Step::Take),
            1 => Just(Step::ReturnTaken),
        ];
        let most = if cfg!(miri) { 60 } else { 400 };
        proptest::collection::vec(step, 0..most)
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            cases: if cfg!(miri) { 4 } else { 256 },
            ..ProptestConfig::default()
        })]

        /// Entries arrive once and in order, only what was published is seen, and no place is written to
        /// before it was returned. The counters may wrap.
        #[test]
        fn a_ring_is_a_bounded_queue(
            order in 0u32..5,
            start in prop_oneof![Just(0), Just(u32::MAX - 3), any::<u32>()],
            steps in steps(),
        ) {
            let count = 1 << order;
            let mut memory = Memory::new(count);
            let (mut producer, mut consumer) = memory.sides(count, start);
            let (mut hidden, mut shown): (VecDeque<u64>, VecDeque<u64>) = Default::default();
            let (mut next, mut taken) = (0u64, 0usize);
            for step in steps {
                match step {
                    Step::Push => {
                        let is_full = hidden.len() + shown.len() + taken == count as usize;
                        prop_assert_eq!(producer.push(next), !is_full);
                        if !is_full {
                            hidden.push_back(next);
                            next += 1;
                        }
                    }
                    Step::ShowWritten => {
                        producer.publish();
                        shown.append(&mut hidden);
                    }
                    Step::Take => {
                        prop_assert_eq!(consumer.front(), shown.front().copied());
                        if shown.pop_front().is_some() {
                            consumer.take();
                            taken += 1;
                        }
                    }
                    Step::ReturnTaken => {
                        consumer.publish();
                        taken = 0;
                    }
                }
                prop_assert_eq!(producer.pending() as usize, hidden.len() + shown.len() + taken);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            cases: if cfg!(miri) { 4 } else { 256 },
            ..ProptestConfig::default()
        })]

        /// Chunks go round: we give them to the kernel, which hands them on before it returns their places.
        /// It returns places as late as it may.
        #[test]
        fn there_is_always_a_place_for_a_chunk(order in 0u32..5, start: u32, steps in steps()) {
            let chunks = 1u32 << order;
            let count = ENTRIES_PER_CHUNK * chunks;
            let mut memory = Memory::new(count);
            let (mut producer, mut kernel) = memory.sides(count, start);
            let mut ours: VecDeque<u64> = (0..chunks.into()).collect();
            for step in steps {
                match step {
                    Step::Push => {
                        if let Some(chunk) = ours.pop_front() {
                            prop_assert!(producer.push(chunk));
                        }
                    }
                    Step::ShowWritten => producer.publish(),
                    Step::Take => {
                        if kernel.read == kernel.produced {
                            kernel.publish();
                        }
                        if let Some(chunk) = kernel.front() {
                            kernel.take();
                            ours.push_back(chunk);
                        }
                    }
                    Step::ReturnTaken => {}
                }
            }
        }
    }

    /// The two sides on two threads, as this process and the kernel are.
    #[test]
    fn two_threads_pass_entries_without_a_lock() {
        let (count, last) = if cfg!(miri) { (4, 200) } else { (64, 200_000) };
        let mut memory = Memory::new(count);
        let (mut producer, mut consumer) = memory.sides(count, u32::MAX - 10);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut next = 0;
                while next < last {
                    if producer.push(next) {
                        next += 1;
                    } else {
                        std::thread::yield_now();
                    }
                    producer.publish();
                }
            });
            let mut expected = 0;
            while expected < last {
                match consumer.front() {
                    Some(entry) => {
                        assert_eq!(entry, expected);
                        expected += 1;
                        consumer.take();
                        consumer.publish();
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
    }

    #[test]
    fn the_flag_asks_for_a_system_call() {
        let mut memory = Memory::new(1);
        let (producer, _consumer) = memory.sides(1, 0);
        assert!(!producer.needs_wakeup());
        producer
            .ring
            .word(OFFSETS.flags)
            .store(libc::XDP_RING_NEED_WAKEUP, Ordering::Relaxed);
        assert!(producer.needs_wakeup());
    }
}
