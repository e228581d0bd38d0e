//! The time that a node takes for the packets that it forwards.

use fairgate::{PacketQueue, Time};

use crate::random::{Distribution, Stream};

/// The forwarding part of a node with a processing time. It keeps the order of packets.
#[derive(Debug)]
pub(crate) struct Processor {
    delay: Distribution,
    stream: Stream,
    /// When the last packet is ready.
    latest: Time,
    /// The packets that are not ready yet, the next one first.
    pub(crate) waiting: PacketQueue,
}

impl Processor {
    /// `name` is that of the node.
    pub(crate) fn new(delay: Distribution, seed: u64, name: &str) -> Processor {
        Processor {
            delay,
            stream: Stream::new(seed, "processing", name),
            latest: Time::ZERO,
            waiting: PacketQueue::new(),
        }
    }

    /// Returns when a packet that arrives now is ready.
    pub(crate) fn ready(&mut self, now: Time) -> Time {
        self.latest = self.latest.max(now + self.delay.sample(&mut self.stream));
        self.latest
    }
}
