//! Which node a packet left last on its way, for drivers that tell users what became of each packet.
//!
//! A packet that is sent leaves the innermost node first, and then each node above it. A packet that is
//! dropped is counted in the same order. So the first node that notes its number is the innermost one: the
//! queue in which the packet was.

use alloc::vec::Vec;

use super::delays::NodeNumber;
use super::{PacketId, Pool};

/// The innermost node of each slot, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) is_kept: bool,
    nodes: Vec<NodeNumber>,
}

impl Pool {
    /// Notes from now on which node each packet left or was dropped by, or does not any more. The first call
    /// allocates 4 bytes per slot. The driver reads it with [`take_place`](Pool::take_place).
    pub fn keep_places(&mut self, is_kept: bool) {
        self.places.is_kept = is_kept;
        if is_kept {
            self.places.nodes.clear();
            self.places.nodes.resize(self.slots.len(), NodeNumber::NONE);
        }
        self.look_at_observers();
    }

    /// Returns whether places are noted.
    #[inline]
    pub fn keeps_places(&self) -> bool {
        self.places.is_kept
    }

    /// Returns the innermost node that has sent or dropped a packet. The driver calls it before it releases
    /// the slot. It returns [`NodeNumber::NONE`] if places are not noted, or for a packet that was flushed.
    #[inline]
    pub fn take_place(&mut self, id: PacketId) -> NodeNumber {
        match self.places.is_kept {
            true => core::mem::take(&mut self.places.nodes[id.index()]),
            false => NodeNumber::NONE,
        }
    }

    /// Makes room for slots that were added.
    pub(super) fn grow_places(&mut self) {
        if !self.places.nodes.is_empty() {
            self.places.nodes.resize(self.slots.len(), NodeNumber::NONE);
        }
    }

    /// Notes that a packet has left `node`, unless it left another one before. A node without a number gets
    /// one.
    pub(super) fn note_place(&mut self, node: &mut NodeNumber, id: PacketId) {
        if self.places.is_kept && self.places.nodes[id.index()] == NodeNumber::NONE {
            self.places.nodes[id.index()] = self.number(node);
        }
    }

    /// Notes that `node` has given back the last `count` packets that the driver has not taken yet.
    pub(crate) fn note_returned(&mut self, node: &mut NodeNumber, count: u32) {
        let mut index = self.returned.tail;
        for _ in 0..count {
            let id = PacketId(index);
            index = self[id].previous;
            self.note_place(node, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec;

    use super::*;
    use crate::discipline::Discipline;
    use crate::link::Link;
    use crate::packet::{DropReason, Packet};
    use crate::queues::fifo::{self, Fifo};
    use crate::queues::prio::{self, Prio};
    use crate::time::Time;

    fn fifo(limit: u32) -> Box<dyn Discipline> {
        let config = fifo::Config {
            limit_packets: Some(limit),
            ..fifo::Config::default()
        };
        Box::new(Fifo::node(config).unwrap())
    }

    /// Returns the numbers of the root and of the bands.
    fn numbers(link: &Link<()>) -> (NodeNumber, Vec<NodeNumber>) {
        let mut bands = Vec::new();
        link.root()
            .visit_classes(&mut |class| bands.push(class.discipline.number()));
        (link.root().number(), bands)
    }

    /// The innermost node is named for packets that are sent and for those that are dropped.
    #[test]
    fn a_packet_was_in_the_innermost_node() {
        let bands = vec![fifo(1), fifo(1), fifo(1)];
        let prio = Prio::node(prio::Config::default(), bands).unwrap();
        let mut link: Link<()> = Link::new(prio, 8);
        let of_priority = |priority| Packet {
            priority,
            ..Packet::of_length(100)
        };
        link.enqueue(of_priority(0), (), Time::ZERO).unwrap();
        let sent = link.dequeue(Time::ZERO).packet().unwrap();
        assert_eq!(sent.node, NodeNumber::NONE, "nothing is noted yet");

        link.keep_places(true);
        // Priority 6 is that of band 0, priority 0 that of band 1 (tc-prio(8), `priomap`).
        for priority in [6, 6, 0] {
            link.enqueue(of_priority(priority), (), Time::ZERO).unwrap();
        }
        let dropped = link.take_dropped().unwrap();
        assert_eq!(dropped.reason, DropReason::QueueLimit);
        let sent = [(); 2].map(|()| link.dequeue(Time::ZERO).packet().unwrap().node);
        let (root, bands) = numbers(&link);
        assert_eq!(dropped.node, bands[0]);
        assert_eq!(sent, [bands[0], bands[1]]);
        assert_eq!(bands[2], NodeNumber::NONE, "no packet has left it");
        assert_eq!(root, NodeNumber::NONE, "each packet was in a band");

        // A slot that is used again has no place from before.
        link.enqueue(of_priority(6), (), Time::ZERO).unwrap();
        link.keep_places(false);
        assert_eq!(link.dequeue(Time::ZERO).packet().unwrap().node, NodeNumber::NONE);
    }

    #[test]
    fn slots_that_are_added_have_places() {
        let mut link: Link<()> = Link::new(fifo(100), 1);
        link.keep_places(true);
        link.grow(3);
        for _ in 0..3 {
            link.enqueue(Packet::of_length(60), (), Time::ZERO).unwrap();
        }
        let number = |link: &mut Link<()>| link.dequeue(Time::ZERO).packet().unwrap().node;
        let numbers: Vec<NodeNumber> = (0..3).map(|_| number(&mut link)).collect();
        assert_eq!(numbers, [link.root().number(); 3]);
    }
}
