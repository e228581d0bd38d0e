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
use crate::sharing::ClassTree;
use crate::structures::IndexedHeap;
use crate::time::Time;

/// Later than any watchdog time. Keys of the heap wrap, so that their upper half would be the past.
const NEVER: u64 = i64::MAX as u64;

/// Disciplines by the place of their leaf.
pub(super) struct Leaves {
    inner: Vec<Box<dyn Discipline>>,
    is_parked: Vec<bool>,
    parked: IndexedHeap,
    /// A time in `parked` may be wrong: its leaf was touched from outside, or does not say when it can send.
    is_unsure: bool,
    /// Empty between calls, with room for all.
    woken: Vec<u32>,
    hosts: Hosts,
}

impl Leaves {
    pub(super) fn new(inner: Vec<Box<dyn Discipline>>, tree: &ClassTree, templates: &Templates) -> Leaves {
        Leaves::of_hosts(inner, Hosts::new(templates, |minor| tree.checked_leaf(minor)))
    }

    fn of_hosts(inner: Vec<Box<dyn Discipline>>, hosts: Hosts) -> Leaves {
        let mut parked = IndexedHeap::new();
        inner.iter().for_each(|_| parked.add_flow());
        Leaves {
            is_parked: vec![false; inner.len()],
            woken: Vec::with_capacity(inner.len()),
            inner,
            parked,
            is_unsure: false,
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
        self.is_unsure = true;
        &mut self.inner[leaf]
    }

    #[inline]
    pub(super) fn is_empty(&self, leaf: usize) -> bool {
        self.inner[leaf].backlog().packets == 0
    }

    /// Sets a leaf aside that isn't, until its watchdog time.
    #[cold]
    pub(super) fn park(&mut self, leaf: usize) {
        debug_assert!(!self.is_parked[leaf]);
        let watchdog = self.inner[leaf].watchdog();
        self.is_unsure |= watchdog.is_none();
        self.is_parked[leaf] = true;
        self.parked
            .push(watchdog.map_or(0, Time::nanos).min(NEVER), leaf as u32);
    }

    /// Whether a leaf was parked, which it is no longer.
    #[inline]
    pub(super) fn unpark(&mut self, leaf: usize) -> bool {
        let was_parked = self.is_parked[leaf];
        if was_parked {
            self.is_parked[leaf] = false;
            self.parked.remove(leaf as u32);
        }
        was_parked
    }

    /// The same for a leaf of which it isn't known when it can send.
    pub(super) fn park_unsure(&mut self, leaf: usize) {
        self.park(leaf);
        self.is_unsure = true;
    }

    /// Looks for leaves that may have something to send again.
    #[inline]
    pub(super) fn wake_up(&mut self, now: Time) {
        let first = self.parked.first();
        if first.is_some_and(|first| first.key <= now.nanos() || self.is_unsure) {
            self.wake_those_due(now);
        }
    }

    #[cold]
    fn wake_those_due(&mut self, now: Time) {
        while let Some(first) = self.parked.first()
            && (first.key <= now.nanos() || self.is_unsure)
        {
            self.unpark(first.flow as usize);
            self.woken.push(first.flow);
        }
        self.is_unsure = false;
    }

    /// A leaf that was found by [`wake_up`](Leaves::wake_up). It is parked no longer.
    #[inline]
    pub(super) fn next_woken(&mut self) -> Option<usize> {
        self.woken.pop().map(|leaf| leaf as usize)
    }

    /// When the first of those parked can be asked again.
    pub(super) fn watchdog(&self) -> Option<Time> {
        let watchdog = |leaf: u32| self.inner[leaf as usize].watchdog();
        match self.is_unsure {
            true => self.parked.flows().filter_map(watchdog).min(),
            false => watchdog(self.parked.first()?.flow),
        }
    }

    pub(super) fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        for discipline in &mut self.inner {
            discipline.drain(pool, into);
        }
        self.parked.clear();
        self.is_parked.fill(false);
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
