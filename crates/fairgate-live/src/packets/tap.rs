//! The forwarding thread's end of the packet log.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fairgate::Time;

use super::log::Taken;
use crate::direction::Direction;
use crate::exchange::WorkerEnd;

/// How many bytes of records the buffer of a direction has room for: those of at least 1,638 packets.
pub(super) const ROOM: usize = 256 << 10;

/// The number of buffers of a worker.
pub(super) const BUFFERS: usize = 32;

/// How long records wait in the buffer of a thread that forwards few packets, ns.
const LONGEST_WAIT: u64 = 100_000_000;

/// An empty buffer for each direction.
pub(super) type Empty = [Vec<u8>; 2];

/// What a worker has noted of both directions, up to one moment.
pub(super) type Filled = [Taken; 2];

/// Exchanges the logs of a worker for empty ones.
#[derive(Debug)]
pub(crate) struct PacketTap {
    /// The number of those who want records.
    wanted: Arc<AtomicUsize>,
    end: WorkerEnd<Empty, Filled>,
    next: Time,
}

impl PacketTap {
    pub(super) fn new(wanted: Arc<AtomicUsize>, end: WorkerEnd<Empty, Filled>) -> PacketTap {
        PacketTap {
            wanted,
            end,
            next: Time::ZERO,
        }
    }

    /// Begins and ends the logs, and sends them if one is half full or old. Called in each turn.
    #[inline]
    pub(crate) fn look_at(&mut self, directions: &mut [Direction; 2], now: Time) {
        let is_wanted = self.wanted.load(Ordering::Relaxed) > 0;
        let is_kept = directions[0].log.is_kept();
        if is_wanted || is_kept {
            let bytes = directions[0].log.len().max(directions[1].log.len());
            if is_kept != is_wanted || bytes >= ROOM / 2 || (bytes > 0 && now >= self.next) {
                self.exchange(directions, is_wanted, now);
            }
        }
    }

    /// Sends what the logs have. Returns how many buffers were sent until now.
    pub(crate) fn flush(&mut self, directions: &mut [Direction; 2], now: Time) -> u64 {
        if directions.iter().any(|direction| direction.log.len() > 0) {
            self.exchange(directions, true, now);
        }
        self.end.sent()
    }

    #[cold]
    fn exchange(&mut self, directions: &mut [Direction; 2], is_wanted: bool, now: Time) {
        self.next = now + LONGEST_WAIT;
        let empty = match is_wanted {
            false => Empty::default(),
            true => match self.end.empty() {
                Some(empty) => empty,
                // All buffers wait to be read. The logs fill up meanwhile.
                None => return,
            },
        };
        let mut both = directions.iter_mut().zip(empty);
        let taken = [(); 2].map(|()| {
            let (direction, empty) = both.next().expect("there are two directions");
            if direction.log.is_kept() != is_wanted {
                direction.link.keep_places(is_wanted);
            }
            direction.log.exchange(empty)
        });
        if taken[0].bytes.capacity() > 0 {
            self.end.send(taken);
        }
    }
}
