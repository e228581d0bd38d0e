//! The classes in the order of their last use.

use alloc::boxed::Box;

/// A circular list of the classes, with one additional link as its end. A link has eight bytes, so that those
/// of thousands of classes stay in the cache.
#[derive(Debug)]
pub(super) struct Ages {
    links: Box<[Link]>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
}

impl Ages {
    /// Creates the list of classes that were never used, in ascending order.
    pub(super) fn new(count: u32) -> Ages {
        let before = |place: u32| if place == 0 { count } else { place - 1 };
        let after = |place: u32| if place == count { 0 } else { place + 1 };
        let link = |place| Link {
            newer: after(place),
            older: before(place),
        };
        Ages {
            links: (0..=count).map(link).collect(),
        }
    }

    /// Returns the additional link. The oldest class follows it, and the newest precedes it.
    fn end(&self) -> u32 {
        self.links.len() as u32 - 1
    }

    /// Returns the least recently used class.
    pub(super) fn oldest(&self) -> u32 {
        self.links[self.end() as usize].newer
    }

    /// Returns all classes, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        let newer = |place: &u32| Some(self.links[*place as usize].newer);
        core::iter::successors(Some(self.oldest()), newer).take(self.links.len() - 1)
    }

    /// Records that a class is used now.
    #[inline]
    pub(super) fn renew(&mut self, class: u32) {
        let end = self.end();
        let newest = self.links[end as usize].older;
        if newest == class {
            return;
        }
        let Link { newer, older } = self.links[class as usize];
        self.links[newer as usize].older = older;
        self.links[older as usize].newer = newer;
        self.links[class as usize] = Link {
            newer: end,
            older: newest,
        };
        self.links[newest as usize].newer = class;
        self.links[end as usize].older = class;
    }
}
