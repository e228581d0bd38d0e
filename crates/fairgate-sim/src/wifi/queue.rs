//! The queue of one member for one receiver and one category. It holds frames that wait, and frames that were
//! sent and are not acknowledged yet.
//!
//! Source: IEEE 802.11-2020, 10.25 (block acknowledgement) and 10.12 (A-MPDU).
//!
//! ```text
//!   front                                             back
//!   | received | on air | on air | to repeat | new | new | new |
//!   |<---------- window: 64 or 256 sequence numbers ---------->|
//! ```
//!
//! Frames are in the order of their sequence numbers. An A-MPDU takes those of the window that were not
//! received, from the front. The receiver delivers in order: a frame that was received stays in this queue
//! until all frames before it were received or given up. That is the receiver's reorder buffer.
//!
//! Invariant: the frame at the front was not received and not given up.

use std::collections::VecDeque;

use fairgate::Time;

/// What an A-MPDU may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AggregateLimits {
    /// The most MPDUs.
    pub(crate) frames: u32,
    /// The most bytes, delimiters and padding included.
    pub(crate) bytes: u32,
    /// The longest duration of the PPDU, ns.
    pub(crate) duration: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    OnAir,
    Received,
    GivenUp,
}

/// A frame in the queue.
#[derive(Clone, Copy, Debug)]
struct Frame<T> {
    id: T,
    /// Bytes in an A-MPDU: MPDU, delimiter and padding.
    bytes: u32,
    /// Transmissions so far.
    attempts: u8,
    state: State,
    since: Time,
}

/// What became of the frames of a transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) received: u32,
    pub(crate) damaged: u32,
}

/// An aggregate that was put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Aggregate {
    pub(crate) frames: u32,
    pub(crate) bytes: u32,
    /// Frames that were transmitted before.
    pub(crate) repeated: u32,
}

/// The queue. `T` identifies a frame for the caller.
#[derive(Clone, Debug)]
pub(crate) struct MacQueue<T> {
    frames: VecDeque<Frame<T>>,
    /// Frames that the receiver has, but can't deliver yet.
    held: u32,
}

impl<T: Copy> MacQueue<T> {
    pub(crate) fn new() -> MacQueue<T> {
        MacQueue {
            frames: VecDeque::new(),
            held: 0,
        }
    }

    pub(crate) fn push(&mut self, id: T, bytes: u32, now: Time) {
        self.frames.push_back(Frame {
            id,
            bytes,
            attempts: 0,
            state: State::Waiting,
            since: now,
        });
    }

    /// Frames that the receiver does not have yet.
    pub(crate) fn unsent(&self) -> u32 {
        self.frames.len() as u32 - self.held
    }

    /// The bytes of the first frame, which was not received yet.
    pub(crate) fn first_bytes(&self) -> Option<u32> {
        self.frames.front().map(|frame| frame.bytes)
    }

    /// Puts an A-MPDU together: at most `most_frames` and `most_bytes`, from the first `window` sequence
    /// numbers. It has at least one frame, even if that is longer.
    pub(crate) fn aggregate(&mut self, window: u32, most_frames: u32, most_bytes: u32) -> Aggregate {
        let mut aggregate = Aggregate::default();
        for frame in self.frames.iter_mut().take(window as usize) {
            if frame.state != State::Waiting {
                continue;
            }
            let is_full = aggregate.frames >= most_frames || aggregate.bytes + frame.bytes > most_bytes;
            if aggregate.frames > 0 && is_full {
                break;
            }
            aggregate.frames += 1;
            aggregate.bytes += frame.bytes;
            aggregate.repeated += u32::from(frame.attempts > 0);
            frame.attempts = frame.attempts.saturating_add(1);
            frame.state = State::OnAir;
        }
        aggregate
    }

    /// Decides what became of the frames on air, and reports the frames that leave the queue, in order.
    ///
    /// `arrives` says for each frame of that many bytes whether it arrived. A frame that did not is given up
    /// after `retries` repetitions. `leave` gets each frame, the time at which it came into the queue, and
    /// whether it was delivered.
    pub(crate) fn resolve(
        &mut self,
        window: u32,
        retries: Option<u8>,
        mut arrives: impl FnMut(u32) -> bool,
        mut leave: impl FnMut(T, Time, bool),
    ) -> Tally {
        let mut tally = Tally::default();
        for frame in self.frames.iter_mut().take(window as usize) {
            if frame.state != State::OnAir {
                continue;
            }
            if arrives(frame.bytes) {
                tally.received += 1;
                frame.state = State::Received;
                self.held += 1;
                continue;
            }
            tally.damaged += 1;
            frame.state = State::Waiting;
            if retries.is_some_and(|retries| frame.attempts > retries) {
                frame.state = State::GivenUp;
                self.held += 1;
            }
        }
        while let Some(frame) = self.frames.front() {
            let is_delivered = match frame.state {
                State::Received => true,
                State::GivenUp => false,
                State::Waiting | State::OnAir => break,
            };
            leave(frame.id, frame.since, is_delivered);
            self.held -= 1;
            self.frames.pop_front();
        }
        tally
    }

    /// Takes out all frames, in order.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.held = 0;
        self.frames.drain(..).map(|frame| frame.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW: u32 = 8;

    fn queue(frames: u32) -> MacQueue<u32> {
        let mut queue = MacQueue::new();
        for id in 0..frames {
            queue.push(id, 100, Time::ZERO);
        }
        queue
    }

    #[test]
    fn an_aggregate_is_limited_by_frames_bytes_and_window() {
        for (frames, bytes, expected) in [(3, 10_000, 3), (20, 450, 4), (20, 10_000, 8), (20, 50, 1)] {
            let aggregate = queue(12).aggregate(WINDOW, frames, bytes);
            assert_eq!((aggregate.frames, aggregate.bytes), (expected, 100 * expected));
        }
    }

    #[test]
    fn a_missing_frame_holds_back_those_behind_it_and_limits_the_window() {
        let mut queue = queue(12);
        assert_eq!(queue.aggregate(WINDOW, 64, 10_000).frames, 8);
        let mut left = Vec::new();
        // The second frame is damaged.
        let mut number = 0;
        let tally = queue.resolve(
            WINDOW,
            Some(7),
            |_| {
                number += 1;
                number != 2
            },
            |id, _, delivered| left.push((id, delivered)),
        );
        assert_eq!((tally.received, tally.damaged), (7, 1));
        assert_eq!(left, [(0, true)]);
        assert_eq!(queue.unsent(), 5);
        // Frame 1 again, and frame 8, the last one of the window from 1 to 8.
        let aggregate = queue.aggregate(WINDOW, 64, 10_000);
        assert_eq!((aggregate.frames, aggregate.repeated), (2, 1));
        queue.resolve(
            WINDOW,
            Some(7),
            |_| true,
            |id, _, delivered| left.push((id, delivered)),
        );
        assert_eq!(left, (0..9).map(|id| (id, true)).collect::<Vec<_>>());
    }

    #[test]
    fn a_frame_is_given_up_after_the_repetitions() {
        let mut queue = queue(1);
        let mut left = Vec::new();
        for _ in 0..3 {
            assert_eq!(left, []);
            queue.aggregate(WINDOW, 64, 10_000);
            queue.resolve(
                WINDOW,
                Some(2),
                |_| false,
                |id, _, delivered| left.push((id, delivered)),
            );
        }
        assert_eq!((left, queue.unsent()), (vec![(0, false)], 0));
    }

    proptest! {
        /// Every frame leaves once and in order, and every attempt is counted, whatever is damaged.
        #[test]
        fn frames_leave_once_and_in_order(
            frames in 1u32..60,
            retries in 0u8..5,
            most in 1u32..20,
            damaged in prop::collection::vec(any::<bool>(), 400),
        ) {
            let mut queue = queue(frames);
            let mut damaged = damaged.into_iter().chain(std::iter::repeat(false));
            let mut left = Vec::new();
            let (mut attempts, mut received) = (0, 0);
            while queue.unsent() > 0 {
                let aggregate = queue.aggregate(WINDOW, most, u32::MAX);
                prop_assert!(aggregate.frames >= 1 && aggregate.frames <= most.min(WINDOW));
                attempts += aggregate.frames;
                let arrives = |_| !damaged.next().expect("the iterator is endless");
                let tally = queue.resolve(WINDOW, Some(retries), arrives, |id, _, delivered| {
                    left.push((id, delivered));
                });
                prop_assert_eq!(tally.received + tally.damaged, aggregate.frames);
                received += tally.received;
                let known = left.len() as u32 + queue.unsent() + queue.held;
                prop_assert_eq!(known, frames);
            }
            let order: Vec<u32> = left.iter().map(|&(id, _)| id).collect();
            prop_assert_eq!(order, (0..frames).collect::<Vec<u32>>());
            let delivered = left.iter().filter(|(_, delivered)| *delivered).count() as u32;
            let given_up = frames - delivered;
            prop_assert_eq!(delivered, received);
            prop_assert!(attempts >= delivered + given_up * (u32::from(retries) + 1));
        }
    }
}
