//! What the controller drives: a scheduler without books, a discipline with them, or nothing but a queue.

use fairgate::flow::{FlowHasher, LinkType, dissect};
use fairgate::{Discipline, FlowHash, Packet, PacketId, PacketQueue, Pool, Time, Verdict};

/// Whatever takes packets in and gives them out again.
pub trait Subject {
    /// Takes one packet of `flow`.
    fn enqueue(&mut self, flow: u32, id: PacketId, now: Time, pool: &mut Pool) -> Verdict;

    /// Gives the next one out.
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId>;
}

impl<S: Subject + ?Sized> Subject for Box<S> {
    #[inline]
    fn enqueue(&mut self, flow: u32, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        (**self).enqueue(flow, id, now, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        (**self).dequeue(now, pool)
    }
}

/// NONE: the controller's own queue, in line. What everything else costs is net of this.
#[derive(Debug, Default)]
pub struct Baseline(PacketQueue);

impl Subject for Baseline {
    #[inline]
    fn enqueue(&mut self, _flow: u32, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        self.0.push_back(id, pool);
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.0.pop_front(pool)
    }
}

/// A discipline as drivers call it, with its books; it finds the flow by itself.
pub struct WithBooks(pub Box<dyn Discipline>);

impl Subject for WithBooks {
    #[inline]
    fn enqueue(&mut self, _flow: u32, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.0.enqueue(id, now, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.0.dequeue(now, pool)
    }
}

/// How packets come to be: the controller's part of a pair.
pub trait Source {
    /// The next packet of `flow`. Its cookie is the flow's number.
    fn packet(&mut self, flow: u32, length: u32) -> Packet;
}

/// Packets that say nothing of their flow but to the controller.
#[derive(Debug)]
pub struct Numbered;

impl Source for Numbered {
    #[inline]
    fn packet(&mut self, flow: u32, length: u32) -> Packet {
        Packet {
            cookie: flow.into(),
            ..Packet::of_length(length)
        }
    }
}

/// Packets that carry the hash of their flow, as if the driver had got it from the interface.
#[derive(Debug)]
pub struct Hashed;

impl Source for Hashed {
    #[inline]
    fn packet(&mut self, flow: u32, length: u32) -> Packet {
        Packet {
            flow: FlowHash::from_raw((u64::from(flow) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            cookie: flow.into(),
            ..Packet::of_length(length)
        }
    }
}

/// Packets whose headers are read and hashed: Ethernet, IPv4, TCP. The headers lie in the first-level cache, which
/// those of a packet fresh from the wire may not.
#[derive(Debug)]
pub struct Dissected {
    frame: [u8; 54],
    hasher: FlowHasher,
}

impl Default for Dissected {
    fn default() -> Dissected {
        let mut frame = [0; 54];
        // EtherType IPv4; version 4, five words of header; 40 bytes in all; 64 hops left, TCP.
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14..24].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6]);
        frame[26..34].copy_from_slice(&[10, 0, 0, 0, 192, 0, 2, 1]);
        // Ports 50000 to 443; five words of header.
        frame[34..38].copy_from_slice(&[0xc3, 0x50, 0x01, 0xbb]);
        frame[46] = 0x50;
        Dissected {
            frame,
            hasher: FlowHasher::new([1, 2]),
        }
    }
}

impl Source for Dissected {
    /// Flows differ by the three low bytes of their source address.
    #[inline]
    fn packet(&mut self, flow: u32, length: u32) -> Packet {
        self.frame[27..30].copy_from_slice(&flow.to_be_bytes()[1..]);
        Packet {
            cookie: flow.into(),
            ..dissect(&self.frame, LinkType::Ethernet).packet(length, &self.hasher)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_down_to_the_ports_and_flows_told_apart() {
        let mut source = Dissected::default();
        let hashes = [0, 1, 1 << 19].map(|flow| source.packet(flow, 1000).flow);
        assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2]);
        let dissection = dissect(&source.frame, LinkType::Ethernet);
        assert_eq!(
            (dissection.key.source_port, dissection.key.destination_port),
            (50_000, 443)
        );
        assert_eq!(source.packet(7, 900).cookie, 7);
    }
}
