//! The active children of a class, by the time and the order in which they are served.

use alloc::boxed::Box;

use crate::sharing::hfsc::knockout::Knockout;
use crate::sharing::index::ClassIndex;
use crate::structures::Bounds;

use super::class::HfscClass;
use super::{in_turn, time_of};

/// The active children of a class. Those that cannot be served yet are separate.
#[derive(Debug)]
pub(super) struct Siblings {
    /// The children that can be served, by virtual time and turn.
    fit: Knockout,
    /// The children that cannot, by the time from which they can.
    unfit: Knockout,
    /// Whether `unfit` may have members. It never has in a tree without limits, which so does not ask it.
    has_unfit: bool,
    /// Upper bounds of the virtual times of the active children.
    latest: Bounds,
    /// The class of each child.
    children: Box<[ClassIndex]>,
    /// The largest virtual time of a child when it was served. Children that were skipped do not fall behind
    /// it.
    pub(super) least: u64,
    /// The largest virtual time at which a child became idle.
    pub(super) offset: u64,
}

impl Siblings {
    /// Creates the set for the `count` children of `parent`. None is active.
    pub(super) fn new(classes: &[HfscClass], parent: ClassIndex, count: u32) -> Siblings {
        let children: Box<[ClassIndex]> = match count {
            0 => Box::new([]),
            _ => (0..classes.len())
                .filter(|&class| classes[class].parent == parent)
                .map(ClassIndex::new)
                .collect(),
        };
        let size = children.len();
        Siblings {
            fit: Knockout::new(size),
            unfit: Knockout::new(size),
            has_unfit: false,
            latest: Bounds::new(size as u32),
            children,
            least: 0,
            offset: 0,
        }
    }

    /// Returns the largest virtual time of an active child, or `None` if there is none. It is called when a
    /// child becomes active, not for every packet.
    pub(super) fn latest(&mut self, classes: &[HfscClass]) -> Option<u64> {
        let Siblings {
            fit, unfit, children, ..
        } = self;
        if fit.is_empty() && unfit.is_empty() {
            return None;
        }
        let latest = self
            .latest
            .largest(|sibling| match fit.contains(sibling) || unfit.contains(sibling) {
                true => classes[children[sibling as usize].index()].virtual_time,
                false => 0,
            });
        Some(latest.map_or(0, |(_, latest)| latest))
    }

    /// Returns the time from which a child can be served. 0 if one can be served now, or if none is active.
    #[inline]
    pub(super) fn earliest_fit(&self) -> u64 {
        match self.has_unfit && self.fit.is_empty() {
            true => self.next_fit().unwrap_or(0),
            false => 0,
        }
    }

    /// Returns the time from which the next child that cannot be served yet can be.
    #[inline]
    pub(super) fn next_fit(&self) -> Option<u64> {
        self.unfit.first().map(|(fit, _)| time_of(fit))
    }

    /// Files an active child by its virtual time, or by the time from which it can be served.
    #[inline]
    pub(super) fn set(&mut self, class: &HfscClass, now: u64) {
        self.latest.grew(class.sibling, class.virtual_time);
        if class.fit <= now {
            if self.has_unfit {
                self.unfit.remove(class.sibling);
            }
            self.fit
                .set(class.sibling, in_turn(class.virtual_time, class.turn));
        } else {
            self.fit.remove(class.sibling);
            self.unfit.set(class.sibling, in_turn(class.fit, class.turn));
            self.has_unfit = true;
        }
    }

    /// Removes a child that became idle.
    #[inline]
    pub(super) fn remove(&mut self, sibling: u32) {
        self.fit.remove(sibling);
        self.unfit.remove(sibling);
    }

    /// Returns the child to serve next.
    #[inline]
    pub(super) fn first(&mut self, classes: &[HfscClass], now: u64) -> Option<ClassIndex> {
        if self.has_unfit {
            self.become_fit(classes, now);
        }
        let (_, sibling) = self.fit.first()?;
        Some(self.children[sibling as usize])
    }

    /// Moves the children whose time has come to those that can be served.
    #[inline(never)]
    fn become_fit(&mut self, classes: &[HfscClass], now: u64) {
        while let Some((fit, sibling)) = self.unfit.first()
            && time_of(fit) <= now
        {
            self.unfit.remove(sibling);
            let class = &classes[self.children[sibling as usize].index()];
            self.fit.set(sibling, in_turn(class.virtual_time, class.turn));
        }
        self.has_unfit = !self.unfit.is_empty();
    }
}
