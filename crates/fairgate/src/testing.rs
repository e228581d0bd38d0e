//! Helpers for the disciplines' own tests: a pool and a root, packets that are identified by their cookies,
//! and a check of conservation after every call.

use crate::count::Count;
use crate::discipline::{Algorithm, Discipline, Heritage, Node, Reconfigure, Verdict};
use crate::packet::{ClassId, DropReason, Packet};
use crate::pool::Pool;
use crate::queues::fifo::{self, Fifo};
use crate::time::Time;

/// A discipline under test, with its pool.
pub(crate) struct Driver<A> {
    pub(crate) pool: Pool,
    pub(crate) root: Node<A>,
    /// The cookies of the packets that the last call gave back, and the reasons.
    pub(crate) returned: Vec<(u64, DropReason)>,
    offered: u64,
}

impl<A: Algorithm> Driver<A> {
    pub(crate) fn new(root: Node<A>) -> Driver<A> {
        Driver {
            pool: Pool::with_capacity(4096),
            root,
            returned: Vec::new(),
            offered: 0,
        }
    }

    /// Enqueues a packet. Its cookie is its number, starting with 0.
    pub(crate) fn offer(&mut self, packet: Packet, now: Time) -> Verdict {
        let cookie = self.offered;
        self.offered += 1;
        let id = self.pool.insert(Packet { cookie, ..packet }).expect("a slot");
        let verdict = self.root.enqueue(id, now, &mut self.pool);
        self.settle();
        verdict
    }

    /// Returns the cookie of the dequeued packet.
    pub(crate) fn next(&mut self, now: Time) -> Option<u64> {
        let id = self.root.dequeue(now, &mut self.pool);
        let cookie = id.map(|id| self.pool.release(id).cookie);
        self.settle();
        cookie
    }

    /// Returns the cookie of the packet that a peek returns.
    pub(crate) fn peek(&mut self, now: Time) -> Option<u64> {
        let id = self.root.peek(now, &mut self.pool);
        let cookie = id.map(|id| self.pool[id].cookie);
        self.settle();
        cookie
    }

    /// Dequeues packets until there are none, and returns their cookies.
    pub(crate) fn drain(&mut self, now: Time) -> Vec<u64> {
        core::iter::from_fn(|| self.next(now)).collect()
    }

    /// Changes parameters.
    pub(crate) fn reconfigure(&mut self, config: A::Config, now: Time) {
        self.root
            .reconfigure(&config, now, &mut self.pool)
            .expect("these parameters are allowed");
        self.settle();
    }

    /// Puts `new` in the place of the root, which keeps its statistics and these classes.
    pub(crate) fn succeed(&mut self, mut new: Node<A>, kept: Vec<u32>, now: Time) {
        let heritage = Heritage {
            statistics: true,
            classes: kept,
        };
        new.take_over(&mut self.root, &heritage, now, &mut self.pool);
        assert_eq!(self.root.backlog(), Count::default(), "all packets have moved");
        self.root = new;
        self.settle();
    }

    /// Replaces the discipline of a class.
    pub(crate) fn replace_class(&mut self, minor: u32, child: Box<dyn Discipline>, now: Time) {
        self.root
            .replace_class(minor, child, now, &mut self.pool)
            .expect("there is such a class");
        self.settle();
    }

    /// Changes the discipline of a class from outside.
    pub(crate) fn change_class(
        &mut self,
        minor: u32,
        change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool),
    ) {
        self.root
            .change_class(minor, &mut self.pool, change)
            .expect("there is such a class");
        self.settle();
    }

    fn settle(&mut self) {
        self.returned.clear();
        while let Some((id, reason)) = self.pool.take_returned() {
            self.returned.push((self.pool.release(id).cookie, reason));
        }
        let backlog = self.root.backlog();
        assert_eq!(backlog.packets, u64::from(self.pool.len()), "conservation");
        assert!(backlog.packets > 0 || backlog.bytes == 0, "conservation of bytes");
    }
}

/// Returns a packet of `length` bytes for class `minor` of the discipline with handle 1.
pub(crate) fn in_class(minor: u32, length: u32) -> Packet {
    Packet {
        class: ClassId::new(1, minor.try_into().expect("a packet can name it")),
        ..Packet::of_length(length)
    }
}

/// Returns a fifo of `limit` packets, as an inner discipline.
pub(crate) fn fifo(limit: u32) -> Box<dyn Discipline> {
    let config = fifo::Config {
        limit_packets: Some(limit),
        ..fifo::Config::default()
    };
    Box::new(Fifo::node(config).expect("a limit above 0"))
}
