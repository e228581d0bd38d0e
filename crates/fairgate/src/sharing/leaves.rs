//! The disciplines in the leaves of a tree of classes, the hosts that leaves are assigned to, and the parked
//! leaves.
//!
//! A leaf whose discipline holds packets but returned none (a shaper inside) is parked until its watchdog
//! time. The tree regards it as idle. A new packet unparks it, because that packet may be sent at once.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use crate::classify::{Hosts, Templates};
use crate::discipline::{Class, Discipline};
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::queues::fifo::{self, Fifo};
use crate::scheduler::parked::Parked;
use crate::sharing::index::LeafIndex;
use crate::sharing::tree::ClassTree;
use crate::time::Time;

/// The disciplines, by [`LeafIndex`].
#[derive(Debug)]
pub(super) struct Leaves {
    inner: Vec<Box<dyn Discipline>>,
    parked: Parked,
    hosts: Hosts,
}

impl Leaves {
    /// Creates the leaves of `tree` with one discipline for each.
    pub(super) fn new(inner: Vec<Box<dyn Discipline>>, tree: &ClassTree, templates: &Templates) -> Leaves {
        let hosts = Hosts::new(templates, |minor| tree.checked_leaf(minor).index());
        Leaves::with_hosts(inner, hosts)
    }

    /// Creates the leaves of a tree that gets those of another one.
    pub(super) fn none() -> Leaves {
        Leaves::with_hosts(Vec::new(), Hosts::new(&Templates::default(), |_| 0))
    }

    fn with_hosts(inner: Vec<Box<dyn Discipline>>, hosts: Hosts) -> Leaves {
        Leaves {
            parked: Parked::new(inner.len()),
            inner,
            hosts,
        }
    }

    /// Returns the leaves of the tree `new`. A leaf that existed in `old` keeps its discipline, a new leaf
    /// gets a fifo. The packets of removed leaves are moved to `unclassified`.
    pub(super) fn moved(
        &mut self,
        old: &ClassTree,
        new: &ClassTree,
        templates: &Templates,
        unclassified: &mut PacketQueue,
        pool: &mut Pool,
    ) -> Leaves {
        let mut inner: Vec<Option<Box<dyn Discipline>>> = new.leaves().iter().map(|_| None).collect();
        for (mut discipline, &class) in core::mem::take(&mut self.inner).into_iter().zip(old.leaves()) {
            match new.leaf(old.minor(class)) {
                Some(leaf) => inner[leaf.index()] = Some(discipline),
                None => discipline.drain(pool, unclassified),
            }
        }
        let or_fifo = |discipline: Option<Box<dyn Discipline>>| {
            discipline.unwrap_or_else(|| {
                Box::new(Fifo::node(fifo::Config::default()).expect("the defaults are valid"))
            })
        };
        let hosts = self
            .hosts
            .changed(templates, |minor| new.checked_leaf(minor).index());
        Leaves::with_hosts(inner.into_iter().map(or_fifo).collect(), hosts)
    }

    /// Takes over from the leaves of a tree that `tree` replaces. The leaves in `kept`, ascending, keep their
    /// disciplines. The packets of the others are moved to `unclassified`.
    pub(super) fn inherit(
        &mut self,
        old: (&mut Leaves, &ClassTree),
        tree: &ClassTree,
        templates: &Templates,
        kept: &[u32],
        unclassified: &mut PacketQueue,
        pool: &mut Pool,
    ) {
        let (old, old_tree) = old;
        let mut kept = kept.iter().copied().peekable();
        for (discipline, &class) in old.inner.iter_mut().zip(old_tree.leaves()) {
            match kept.next_if_eq(&old_tree.minor(class)) {
                Some(minor) => core::mem::swap(discipline, self.get_mut(tree.checked_leaf(minor))),
                None => discipline.drain(pool, unclassified),
            }
        }
        self.hosts = old
            .hosts
            .changed(templates, |minor| tree.checked_leaf(minor).index());
    }

    /// Returns the leaf for a packet that was classified to `leaf`. If that leaf was made from a template,
    /// returns the leaf of the packet's host.
    #[inline]
    pub(super) fn of_host(&mut self, leaf: LeafIndex, id: PacketId, pool: &Pool) -> LeafIndex {
        let inner = &self.inner;
        let leaf = self
            .hosts
            .place(leaf.index(), id, pool, &|leaf| inner[leaf].as_ref());
        LeafIndex::new(leaf)
    }

    /// Records that a leaf has a new discipline.
    pub(super) fn replaced(&mut self, leaf: LeafIndex) {
        self.hosts.replaced(leaf.index());
    }

    /// Returns a leaf's discipline.
    #[inline]
    pub(super) fn get_mut(&mut self, leaf: LeafIndex) -> &mut Box<dyn Discipline> {
        &mut self.inner[leaf.index()]
    }

    /// Returns a leaf's discipline for changes from outside. They may change when the leaf can send.
    pub(super) fn touch(&mut self, leaf: LeafIndex) -> &mut Box<dyn Discipline> {
        self.parked.doubt();
        &mut self.inner[leaf.index()]
    }

    /// Returns whether a leaf has no packets.
    #[inline]
    pub(super) fn is_empty(&self, leaf: LeafIndex) -> bool {
        self.inner[leaf.index()].is_empty()
    }

    /// Parks a leaf until its watchdog time.
    #[cold]
    pub(super) fn park(&mut self, leaf: LeafIndex) {
        let index = leaf.index();
        self.parked.park(index, self.inner[index].watchdog());
    }

    /// Parks a leaf whose watchdog time may be wrong.
    pub(super) fn park_in_doubt(&mut self, leaf: LeafIndex) {
        self.park(leaf);
        self.parked.doubt();
    }

    /// Returns whether a leaf is parked.
    pub(super) fn is_parked(&self, leaf: LeafIndex) -> bool {
        self.parked.contains(leaf.index())
    }

    /// Makes a leaf not parked. Returns whether it was.
    #[inline]
    pub(super) fn unpark(&mut self, leaf: LeafIndex) -> bool {
        self.parked.unpark(leaf.index())
    }

    /// Returns whether a parked leaf may have a packet to send.
    #[inline]
    pub(super) fn are_due(&self, now: Time) -> bool {
        self.parked.is_due(now)
    }

    /// Unparks the leaves that may have a packet to send. [`next_woken`](Leaves::next_woken) hands them out.
    #[cold]
    pub(super) fn wake_up(&mut self, now: Time) {
        self.parked.wake_up(now);
    }

    /// Returns the next leaf that woke up. It is no longer parked.
    #[inline]
    pub(super) fn next_woken(&mut self) -> Option<LeafIndex> {
        self.parked.next_woken().map(LeafIndex::new)
    }

    /// Returns the time at which the first parked leaf can be asked again.
    pub(super) fn watchdog(&self) -> Option<Time> {
        self.parked.watchdog(|leaf| self.inner[leaf].watchdog())
    }

    /// Moves all packets to `into`.
    pub(super) fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        for discipline in &mut self.inner {
            discipline.drain(pool, into);
        }
        self.parked.clear();
    }

    /// Shows the disciplines of the leaves at these places, and the hosts that they are assigned to.
    pub(super) fn visit(&self, places: Range<usize>, tree: &ClassTree, visit: &mut dyn FnMut(Class<'_>)) {
        let leaves = self.inner.iter().zip(tree.leaves()).enumerate();
        for (leaf, (discipline, &class)) in leaves.skip(places.start).take(places.len()) {
            visit(Class {
                holder: self.hosts.holder(leaf),
                ..Class::new(tree.minor(class), discipline.as_ref())
            });
        }
    }
}
