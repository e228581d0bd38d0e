//! Copies of packets, for disciplines that duplicate them.
//!
//! A discipline can't hand a copy to its parent: the parent expects as many packets as it has enqueued. So a
//! copy is a new packet that the driver enqueues at the root, as in Linux, where `netem` enqueues a clone at
//! the root of the tree. Every node on the way counts it as enqueued, and conservation holds as it is.
//!
//! Only the driver can copy the bytes. A driver that does so calls [`Pool::allow_copies`] once. After each
//! call that may enqueue, dequeue or peek it takes the copies, before it releases the returned packets, gives
//! each one its bytes, and enqueues it.

use super::{PacketId, Pool};
use crate::slot::Flags;
use crate::time::Time;

/// A copy of a packet that the driver should enqueue at the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The new packet.
    pub copy: PacketId,
    /// The packet whose bytes it has. It is still in the pool.
    pub original: PacketId,
}

impl Pool {
    /// Tells disciplines that the driver takes copies. Until then [`copy`](Pool::copy) makes none.
    pub fn allow_copies(&mut self) {
        self.copies.get_or_insert_default();
    }

    /// Copies a packet into a free slot, for the driver to enqueue at the root. Returns false if there is no
    /// free slot, or the driver takes no copies. A copy is not copied again.
    pub fn copy(&mut self, id: PacketId) -> bool {
        let mut copied = self[id];
        if copied.flags.has(Flags::COPY) {
            return false;
        }
        let (Some(mut queue), Some(free)) = (self.copies, self.slots.get_mut(self.free_head as usize)) else {
            return false;
        };
        let slot = &mut free.0;
        let copy = PacketId(self.free_head);
        self.free_head = slot.next;
        self.in_use += 1;
        copied.flags.set(Flags::COPY);
        copied.flags.unset(Flags::DELAYED);
        // The field is not needed until the copy is enqueued.
        copied.enqueued_at = Time::from_nanos(id.0.into());
        *slot = copied;
        if let Some(headers) = self.headers.get(id.index()).copied() {
            self.headers[copy.index()] = headers;
        }
        if let Some(acknowledgement) = self.acknowledgements.get(id.index()).copied() {
            self.acknowledgements[copy.index()] = acknowledgement;
        }
        if let Some(bytes) = self.bytes.get(id.index()).copied() {
            self.bytes[copy.index()] = bytes;
        }
        queue.push_back(copy, self);
        self.copies = Some(queue);
        true
    }

    /// Whether there are copies for the driver to take.
    #[inline]
    pub fn has_copies(&self) -> bool {
        self.copies.is_some_and(|copies| !copies.is_empty())
    }

    /// Returns the oldest copy that was not taken yet. The driver enqueues it at the root, or releases it.
    pub fn take_copy(&mut self) -> Option<Copied> {
        let mut queue = self.copies?;
        let copy = queue.pop_front(self)?;
        self.copies = Some(queue);
        let original = PacketId(self[copy].enqueued_at.nanos() as u32);
        Some(Copied { copy, original })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::FlowKey;
    use crate::packet::Packet;

    #[test]
    fn a_copy_is_a_packet_of_its_own_with_the_same_fields() {
        let mut pool = Pool::with_capacity(3);
        let headers = FlowKey {
            source_port: 7,
            ..FlowKey::default()
        };
        let packet = Packet {
            cookie: 9,
            stamp: 5,
            ..Packet::of_length(100)
        };
        let id = pool.insert((packet, headers)).unwrap();
        assert!(!pool.copy(id), "the driver has not said that it takes copies");
        pool.allow_copies();
        assert!(pool.copy(id) && pool.has_copies());
        let Copied { copy, original } = pool.take_copy().expect("one was made");
        assert_eq!((original, pool.take_copy()), (id, None));
        assert!(!pool.has_copies() && pool[copy].is_copy() && !pool[id].is_copy());
        let slot = &pool[copy];
        assert_eq!((slot.length, slot.cookie, slot.stamp), (100, 9, 5));
        assert_eq!(pool.headers(copy), Some(&headers));
        assert!(!pool.copy(copy), "a copy is not copied again");
        assert!(pool.copy(id));
        assert!(!pool.copy(id), "no slot is free");
        let second = pool.take_copy().expect("one was made").copy;
        for id in [id, copy, second] {
            pool.release(id);
        }
        assert!(pool.is_empty());
    }
}
