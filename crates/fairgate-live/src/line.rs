//! What has left the queue and not yet the machine: frames on their way down the line.
//!
//! With a delay the line stands in for a long cable: a frame comes out when it has been in for that long, in order.
//! Without one it holds frames only while the socket has no room for them; they are kept, never lost.

use std::collections::VecDeque;

use fairgate::Time;

/// A first-in first-out line of constant delay.
#[derive(Debug)]
pub(crate) struct Line {
    delay: u64,
    frames: VecDeque<(Time, u32)>,
}

impl Line {
    /// A line of `delay` nanoseconds with room for `capacity` frames.
    pub(crate) fn new(delay: u64, capacity: usize) -> Line {
        Line {
            delay,
            frames: VecDeque::with_capacity(capacity),
        }
    }

    /// Puts a frame in at one end.
    #[inline]
    pub(crate) fn push(&mut self, frame: u32, now: Time) {
        debug_assert!(
            self.frames.len() < self.frames.capacity(),
            "the line never allocates"
        );
        self.frames.push_back((now + self.delay, frame));
    }

    /// The frames that have come out at the other end by `now`, oldest first.
    #[inline]
    pub(crate) fn due(&self, now: Time) -> impl Iterator<Item = u32> {
        self.frames
            .iter()
            .take_while(move |(due, _)| *due <= now)
            .map(|(_, frame)| *frame)
    }

    /// Takes out the oldest frame.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.frames.pop_front().map(|(_, frame)| frame)
    }

    /// When the next frame comes out.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.frames.front().map(|(due, _)| *due)
    }

    /// How many frames are in the line.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }
}
