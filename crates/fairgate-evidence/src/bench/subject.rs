//! What the controller drives: a scheduler without statistics, a discipline with statistics, or only a queue.

use fairgate::flow::{FlowHasher, LinkType, dissect};
use fairgate::{Discipline, FlowHash, Packet, PacketId, PacketQueue, Pool, Time, Verdict};

/// A scheduler that the controller drives.
pub trait Subject {
    /// Enqueues a packet of `flow`.
    fn enqueue(&mut self, flow: u32, id: PacketId, now: Time, pool: &mut Pool) -> Verdict;

    /// Dequeues the next packet.
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

/// NONE: a queue of the controller, without an indirect call. Its cost is subtracted from all others.
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

/// A discipline as drivers call it, with statistics. It finds the flow of each packet itself.
#[derive(Debug)]
pub struct WithStatistics(pub Box<dyn Discipline>);

impl Subject for WithStatistics {
    #[inline]
    fn enqueue(&mut self, _flow: u32, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.0.enqueue(id, now, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.0.dequeue(now, pool)
    }
}

/// Makes packets. This is the controller's part of a pair.
pub trait Source {
    /// Returns the next packet of `flow`. Its cookie is the flow's number.
    fn packet(&mut self, flow: u32, length: u32) -> Packet;
}

/// Makes packets with the flow only in the cookie, for the controller.
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

/// Makes packets with the hash of their flow, as if the network interface had computed it.
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

/// Makes packets whose headers are read and hashed: Ethernet, IPv4, TCP. The headers are in the first-level
/// cache. Those of a packet that has just been received may not be.
#[derive(Debug)]
pub struct Dissected {
    frame: [u8; 54],
    hasher: FlowHasher,
}

impl Default for Dissected {
    fn default() -> Dissected {
        let mut frame = [0; 54];
        // EtherType IPv4; version 4 and five header words; 40 bytes in total; TTL 64; TCP.
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14..24].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6]);
        frame[26..34].copy_from_slice(&[10, 0, 0, 0, 192, 0, 2, 1]);
        // Ports 50000 and 443; five header words.
        frame[34..38].copy_from_slice(&[0xc3, 0x50, 0x01, 0xbb]);
        frame[46] = 0x50;
        Dissected {
            frame,
            hasher: FlowHasher::new([1, 2]),
        }
    }
}

impl Source for Dissected {
    /// Returns a packet. The flow is in the three low bytes of the source address.
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
    fn headers_are_read_down_to_the_ports_and_flows_differ() {
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
