//! Frames that have left the queue but have not been sent yet.
//!
//! With a delay, this is a delay line that emulates the propagation delay of a long link: frames come out in
//! order, each after the same time. Without a delay, it holds frames only while the socket has no room for
//! them. Such frames are kept and never lost.

use std::collections::VecDeque;

use arrayvec::ArrayVec;
use fairgate::Time;

use crate::gather::Gatherer;
use crate::sys::batch::BATCH;

/// A first-in first-out delay line.
#[derive(Debug)]
pub(crate) struct DelayLine {
    delay: u64,
    frames: VecDeque<(Time, u32)>,
    gatherer: Gatherer,
    /// The last frames in their new order.
    moved: ArrayVec<(Time, u32), BATCH>,
}

impl DelayLine {
    /// Creates a delay line with a delay of `delay` nanoseconds and room for `capacity` frames.
    pub(crate) fn new(delay: u64, capacity: usize) -> DelayLine {
        DelayLine {
            delay,
            frames: VecDeque::with_capacity(capacity),
            gatherer: Gatherer::new(),
            moved: ArrayVec::new(),
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

    /// Moves frames with equal keys among the last `count`, at most [`BATCH`], next to the first of them. All
    /// of these frames are due at the same time. A frame without a key stays in its place, and nothing moves
    /// past it.
    #[inline]
    pub(crate) fn gather(&mut self, count: usize, key: impl Fn(u32) -> Option<u32>) {
        let begin = self.frames.len() - count;
        let keys = self.frames.range(begin..).map(|(_, frame)| key(*frame));
        let Some(order) = self.gatherer.order(keys) else {
            return;
        };
        self.moved.clear();
        self.moved.extend(
            order
                .iter()
                .map(|position| self.frames[begin + usize::from(*position)]),
        );
        for (place, frame) in self.frames.range_mut(begin..).zip(&self.moved) {
            *place = *frame;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Frames before the last ones are not touched, and these are in the gatherer's order.
        #[test]
        fn the_last_frames_are_gathered(
            keys in proptest::collection::vec(prop_oneof![Just(None), (0u32..4).prop_map(Some)], 0..70),
            before in 0usize..5,
        ) {
            let mut line = DelayLine::new(0, 100);
            let all: Vec<u32> = (0..(before + keys.len()) as u32).collect();
            all.iter().for_each(|number| line.push(*number, Time::ZERO));
            line.gather(keys.len(), |number| keys[number as usize - before]);
            let mut gatherer = Gatherer::new();
            let mut expected = all.clone();
            if let Some(order) = gatherer.order(keys.iter().copied()) {
                let moved = order.iter().map(|position| all[before + usize::from(*position)]);
                expected.splice(before.., moved);
            }
            let order: Vec<u32> = line.due(Time::ZERO).collect();
            prop_assert_eq!(order, expected);
        }
    }
}
