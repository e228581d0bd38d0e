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

    /// Moves frames with equal keys among the last `count` next to the first of them. All of these frames are
    /// due at the same time. A frame without a key stays in its place, and nothing moves past it.
    #[inline]
    pub(crate) fn gather(&mut self, count: usize, key: impl Fn(u32) -> Option<u32>) {
        let len = self.frames.len();
        let mut at = len - count;
        while at < len {
            let wanted = key(self.frames[at].1);
            let mut end = at + 1;
            if wanted.is_some() {
                for other in at + 1..len {
                    let found = key(self.frames[other].1);
                    if found.is_none() {
                        break;
                    }
                    if found == wanted {
                        for place in (end..other).rev() {
                            self.frames.swap(place, place + 1);
                        }
                        end += 1;
                    }
                }
            }
            at = end;
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

        /// Frames keep their order within a key, frames without a key keep their place, and frames before the
        /// last ones are not touched. Between two frames without a key, equal keys are neighbours.
        #[test]
        fn gathered_frames_keep_their_order(
            keys in proptest::collection::vec(prop_oneof![Just(None), (0u32..4).prop_map(Some)], 0..70),
            before in 0usize..5,
        ) {
            let mut line = DelayLine::new(0, 100);
            let all: Vec<u32> = (0..(before + keys.len()) as u32).collect();
            all.iter().for_each(|number| line.push(*number, Time::ZERO));
            let key = |number: u32| keys[number as usize - before];
            line.gather(keys.len(), key);
            let order: Vec<u32> = line.due(Time::ZERO).collect();
            prop_assert_eq!(&order[..before], &all[..before]);
            let after = &order[before..];
            for (place, number) in after.iter().enumerate() {
                if key(*number).is_none() {
                    prop_assert_eq!(*number as usize, before + place);
                }
            }
            for wanted in 0..4 {
                let of_key = after.iter().filter(|number| key(**number) == Some(wanted));
                prop_assert!(of_key.is_sorted());
            }
            for stretch in after.split(|number| key(*number).is_none()) {
                let found: Vec<_> = stretch.iter().map(|number| key(*number)).collect();
                let mut kinds = found.clone();
                kinds.dedup();
                let distinct: std::collections::BTreeSet<_> = found.iter().collect();
                prop_assert_eq!(kinds.len(), distinct.len());
            }
        }
    }
}
