//! The active children of a class.

use alloc::boxed::Box;

use crate::sharing::hfsc::knockout::Knockout;
use crate::structures::Bounds;

use super::{HfscClass, in_turn, time_of};

/// Children by virtual time, those apart that may not be served yet.
pub(super) struct Siblings {
    /// Those that may, by virtual time and turn.
    fit: Knockout,
    /// Those that may not, by the time from which on they may.
    unfit: Knockout,
    /// No virtual time of an active child is above these.
    latest: Bounds,
    /// The place of each child among all classes.
    places: Box<[u32]>,
    /// The least virtual time that was served: what is passed over does not fall behind it.
    pub(super) least: u64,
    /// The latest at which a child became idle.
    pub(super) offset: u64,
}

impl Siblings {
    /// The `count` children of the class at `parent`, none active.
    pub(super) fn new(classes: &[HfscClass], parent: u32, count: u32) -> Siblings {
        let places: Box<[u32]> = match count {
            0 => Box::new([]),
            _ => (0..classes.len() as u32)
                .filter(|&place| classes[place as usize].parent == parent)
                .collect(),
        };
        let size = places.len();
        Siblings {
            fit: Knockout::new(size),
            unfit: Knockout::new(size),
            latest: Bounds::new(size as u32),
            places,
            least: 0,
            offset: 0,
        }
    }

    /// The latest virtual time of an active child. Asked for when a child becomes active, not with every packet.
    pub(super) fn latest(&mut self, classes: &[HfscClass]) -> Option<u64> {
        let Siblings {
            fit, unfit, places, ..
        } = self;
        if fit.is_empty() && unfit.is_empty() {
            return None;
        }
        let latest = self
            .latest
            .largest(|sibling| match fit.contains(sibling) || unfit.contains(sibling) {
                true => classes[places[sibling as usize] as usize].virtual_time,
                false => 0,
            });
        Some(latest.map_or(0, |(_, latest)| latest))
    }

    /// From when on one may be served; 0 if one may already, or if none is active.
    #[inline]
    pub(super) fn earliest_fit(&self) -> u64 {
        match self.fit.is_empty() {
            true => self.next_fit().unwrap_or(0),
            false => 0,
        }
    }

    /// When the next of those that may not be served will be.
    #[inline]
    pub(super) fn next_fit(&self) -> Option<u64> {
        self.unfit.first().map(|(fit, _)| time_of(fit))
    }

    /// Files an active child by its times.
    #[inline]
    pub(super) fn set(&mut self, class: &HfscClass, now: u64) {
        self.latest.grew(class.sibling, class.virtual_time);
        if class.fit <= now {
            self.unfit.remove(class.sibling);
            self.fit
                .set(class.sibling, in_turn(class.virtual_time, class.turn));
        } else {
            self.fit.remove(class.sibling);
            self.unfit.set(class.sibling, in_turn(class.fit, class.turn));
        }
    }

    /// Takes a child out that is idle.
    #[inline]
    pub(super) fn remove(&mut self, sibling: u32) {
        self.fit.remove(sibling);
        self.unfit.remove(sibling);
    }

    /// The place of the child whose turn it is.
    #[inline]
    pub(super) fn first(&mut self, classes: &[HfscClass], now: u64) -> Option<u32> {
        while let Some((fit, sibling)) = self.unfit.first()
            && time_of(fit) <= now
        {
            self.unfit.remove(sibling);
            let class = &classes[self.places[sibling as usize] as usize];
            self.fit.set(sibling, in_turn(class.virtual_time, class.turn));
        }
        let (_, sibling) = self.fit.first()?;
        Some(self.places[sibling as usize])
    }
}
