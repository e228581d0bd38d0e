//! Frames that have left the queue but have not been sent yet.
//!
//! With a delay, this is a delay line that emulates the propagation delay of a long link: frames come out in
//! order, each after the same time. Without a delay, it holds frames only while the socket has no room for
//! them. Such frames are kept and never lost.

use std::collections::VecDeque;

use fairgate::Time;

/// A first-in first-out delay line.
#[derive(Debug)]
pub(crate) struct DelayLine {
    delay: u64,
    frames: VecDeque<(Time, u32)>,
}

impl DelayLine {
    /// Creates a delay line with a delay of `delay` nanoseconds and room for `capacity` frames.
    pub(crate) fn new(delay: u64, capacity: usize) -> DelayLine {
        DelayLine {
            delay,
            frames: VecDeque::with_capacity(capacity),
        }
    }

    /// Adds a frame.
    #[inline]
    pub(crate) fn push(&mut self, frame: u32, now: Time) {
        debug_assert!(
            self.frames.len() < self.frames.capacity(),
            "the delay line must not allocate"
        );
        self.frames.push_back((now + self.delay, frame));
    }

    /// Returns the frames that are due at `now`, oldest first.
    #[inline]
    pub(crate) fn due(&self, now: Time) -> impl Iterator<Item = u32> {
        self.frames
            .iter()
            .take_while(move |(due, _)| *due <= now)
            .map(|(_, frame)| *frame)
    }

    /// Removes the oldest frame.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.frames.pop_front().map(|(_, frame)| frame)
    }

    /// Returns the time at which the next frame is due.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.frames.front().map(|(due, _)| *due)
    }

    /// Returns the number of frames in the delay line.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }
}
