//! The disciplines in the leaves of a tree of classes, which of them are given to hosts, and which hold their packets back.
//!
//! A leaf that was asked and sent nothing though it holds packets (a shaper inside) is *parked* until its watchdog time,
//! in a heap by that time: its tree takes it for idle and asks it no more. A packet that comes to it wakes it up, for it
//! may be one that can be sent at once.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::classify::{Hosts, Templates};
use crate::discipline::{Class, Discipline};
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::queues::fifo::{self, Fifo};
use crate::scheduler::parked::Parked;
use crate::sharing::ClassTree;
use crate::time::Time;

/// Disciplines by the place of their leaf.
pub(super) struct Leaves {
    inner: Vec<Box<dyn Discipline>>,
    parked: Parked,
    hosts: Hosts,
}

impl Leaves {
    pub(super) fn new(inner: Vec<Box<dyn Discipline>>, tree: &ClassTree, templates: &Templates) -> Leaves {
        Leaves::of_hosts(inner, Hosts::new(templates, |minor| tree.checked_leaf(minor)))
    }

    fn of_hosts(inner: Vec<Box<dyn Discipline>>, hosts: Hosts) -> Leaves {
        Leaves {
            parked: Parked::new(inner.len()),
            inner,
            hosts,
        }
    }

    /// The leaves of `new` with the disciplines that those of `old` had; one that is new gets a fifo. What was in a leaf
    /// that is no more goes to `homeless`.
    pub(super) fn moved(
        &mut self,
        old: &ClassTree,
        new: &ClassTree,
        templates: &Templates,
        homeless: &mut PacketQueue,
        pool: &mut Pool,
    ) -> Leaves {
        let mut inner: Vec<Option<Box<dyn Discipline>>> = new.leaves().iter().map(|_| None).collect();
        for (mut discipline, &place) in core::mem::take(&mut self.inner).into_iter().zip(old.leaves()) {
            match new.leaf(old.minor(place as usize)) {
                Some(leaf) => inner[leaf] = Some(discipline),
                None => discipline.drain(pool, homeless),
            }
        }
        let or_fifo = |discipline: Option<Box<dyn Discipline>>| {
            discipline
                .unwrap_or_else(|| Box::new(Fifo::node(fifo::Config::default()).expect("defaults are right")))
        };
        let hosts = self.hosts.changed(templates, |minor| new.checked_leaf(minor));
        Leaves::of_hosts(inner.into_iter().map(or_fifo).collect(), hosts)
    }

    /// The leaf that a packet goes to which was sent to `leaf`: another one if that is given to hosts.
    #[inline]
    pub(super) fn of_host(&mut self, leaf: usize, id: PacketId, pool: &Pool) -> usize {
        let inner = &self.inner;
        self.hosts.place(leaf, id, pool, &|leaf| inner[leaf].as_ref())
    }

    /// The discipline of a leaf is another one.
    pub(super) fn replaced(&mut self, leaf: usize) {
        self.hosts.replaced(leaf);
    }

    #[inline]
    pub(super) fn get_mut(&mut self, leaf: usize) -> &mut Box<dyn Discipline> {
        &mut self.inner[leaf]
    }

    /// The same, to be changed from outside.
    pub(super) fn touch(&mut self, leaf: usize) -> &mut Box<dyn Discipline> {
        self.parked.doubt();
        &mut self.inner[leaf]
    }

    #[inline]
    pub(super) fn is_empty(&self, leaf: usize) -> bool {
        self.inner[leaf].backlog().packets == 0
    }

    /// Sets a leaf aside that isn't, until its watchdog time.
    #[cold]
    pub(super) fn park(&mut self, leaf: usize) {
        self.parked.park(leaf, self.inner[leaf].watchdog());
    }

    /// Whether a leaf was parked, which it is no longer.
    #[inline]
    pub(super) fn unpark(&mut self, leaf: usize) -> bool {
        self.parked.unpark(leaf)
    }

    /// The same for a leaf of which it isn't known when it can send.
    pub(super) fn park_unsure(&mut self, leaf: usize) {
        self.park(leaf);
        self.parked.doubt();
    }

    /// Looks for leaves that may have something to send again.
    #[inline]
    pub(super) fn wake_up(&mut self, now: Time) {
        if self.parked.is_due(now) {
            self.parked.wake_up(now);
        }
    }

    /// A leaf that was found by [`wake_up`](Leaves::wake_up). It is parked no longer.
    #[inline]
    pub(super) fn next_woken(&mut self) -> Option<usize> {
        self.parked.next_woken()
    }

    /// When the first of those parked can be asked again.
    pub(super) fn watchdog(&self) -> Option<Time> {
        self.parked.watchdog(|leaf| self.inner[leaf].watchdog())
    }

    pub(super) fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        for discipline in &mut self.inner {
            discipline.drain(pool, into);
        }
        self.parked.clear();
    }

    pub(super) fn visit(&self, tree: &ClassTree, visit: &mut dyn FnMut(Class<'_>)) {
        for (leaf, (discipline, &place)) in self.inner.iter().zip(tree.leaves()).enumerate() {
            visit(Class {
                holder: self.hosts.holder(leaf),
                ..Class::new(tree.minor(place as usize), discipline.as_ref())
            });
        }
    }
}
