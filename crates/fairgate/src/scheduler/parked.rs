//! Members that hold packets but have none to send now, such as a class with a shaper inside.
//!
//! A parked member is not asked for a packet before its watchdog time. Parked members are in a heap by that
//! time, so waking one up costs O(log n), and finding that none is due costs one comparison.
//!
//! A watchdog time can be wrong: the member's discipline was changed from outside, or it reports none.
//! [`Parked::doubt`] records this. Then all parked members wake up at the next [`Parked::wake_up`].

use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::structures::IndexedHeap;
use crate::time::Time;

/// Later than any watchdog time. Keys of the heap wrap, so the upper half of their range would be in the
/// past.
const NEVER: u64 = i64::MAX as u64;

/// The parked members among those with the indices 0 to n - 1. Room for all is allocated at construction.
#[derive(Debug)]
pub(crate) struct Parked {
    times: IndexedHeap,
    is_parked: Vec<bool>,
    /// Whether a time in `times` may be wrong.
    is_unsure: bool,
    /// The members that woke up. The last one is handed out first.
    woken: Vec<u32>,
}

impl Parked {
    /// Creates the set for `members` members, none of them parked.
    pub(crate) fn new(members: usize) -> Parked {
        let mut times = IndexedHeap::new();
        (0..members).for_each(|_| times.add_flow());
        Parked {
            times,
            is_parked: vec![false; members],
            is_unsure: false,
            woken: Vec::with_capacity(members),
        }
    }

    /// Parks a member until `watchdog`. If it is already parked, updates its time.
    pub(crate) fn park(&mut self, index: usize, watchdog: Option<Time>) {
        self.is_unsure |= watchdog.is_none();
        let time = watchdog.map_or(0, Time::nanos).min(NEVER);
        if core::mem::replace(&mut self.is_parked[index], true) {
            self.times.rekey(index as u32, time);
        } else {
            self.times.push(time, index as u32);
        }
    }

    /// Makes a member not parked. Returns whether it was.
    #[inline]
    pub(crate) fn unpark(&mut self, index: usize) -> bool {
        let was_parked = self.is_parked[index];
        if was_parked {
            self.is_parked[index] = false;
            self.times.remove(index as u32);
        }
        was_parked
    }

    /// Returns whether a member is parked.
    pub(crate) fn contains(&self, index: usize) -> bool {
        self.is_parked[index]
    }

    /// Records that a watchdog time may be wrong.
    #[inline]
    pub(crate) fn doubt(&mut self) {
        self.is_unsure = true;
    }

    /// Returns whether a parked member may have a packet to send.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.times
            .first()
            .is_some_and(|first| first.key <= now.nanos() || self.is_unsure)
    }

    /// Unparks the members that are due, or all if times may be wrong. [`next_woken`](Parked::next_woken)
    /// hands them out, the one with the latest time first.
    #[cold]
    pub(crate) fn wake_up(&mut self, now: Time) {
        while self.is_due(now)
            && let Some(first) = self.times.pop()
        {
            self.is_parked[first.flow as usize] = false;
            self.woken.push(first.flow);
        }
        self.is_unsure = false;
    }

    /// Like [`wake_up`](Parked::wake_up), but the members are handed out by ascending index.
    #[cold]
    pub(crate) fn wake_up_by_index(&mut self, now: Time) {
        self.wake_up(now);
        self.woken.sort_unstable_by_key(|&index| Reverse(index));
    }

    /// Returns the next member that woke up. It is no longer parked.
    #[inline]
    pub(crate) fn next_woken(&mut self) -> Option<usize> {
        self.woken.pop().map(|index| index as usize)
    }

    /// Returns the time at which the first parked member can be asked again. `watchdog_of` returns the
    /// watchdog time of a member.
    pub(crate) fn watchdog(&self, watchdog_of: impl Fn(usize) -> Option<Time>) -> Option<Time> {
        match self.is_unsure {
            true => self
                .times
                .flows()
                .filter_map(|index| watchdog_of(index as usize))
                .min(),
            false => watchdog_of(self.times.first()?.flow as usize),
        }
    }

    /// Returns the number of parked members.
    pub(crate) fn len(&self) -> usize {
        self.times.flows().count()
    }

    /// Unparks all members.
    pub(crate) fn clear(&mut self) {
        self.times.clear();
        self.is_parked.fill(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn woken(parked: &mut Parked) -> Vec<usize> {
        core::iter::from_fn(|| parked.next_woken()).collect()
    }

    #[test]
    fn members_wake_up_at_their_times_in_the_requested_order() {
        let mut parked = Parked::new(4);
        let park_all = |parked: &mut Parked| {
            for (index, millis) in [5, 1, 5, 9].into_iter().enumerate() {
                parked.park(index, Some(Time::from_millis(millis)));
            }
        };
        park_all(&mut parked);
        assert!(!parked.is_due(Time::ZERO));
        parked.wake_up(Time::from_millis(5));
        assert_eq!(woken(&mut parked), [2, 0, 1], "the latest time first");
        assert_eq!(parked.len(), 1);
        park_all(&mut parked);
        parked.wake_up_by_index(Time::from_millis(5));
        assert_eq!(woken(&mut parked), [0, 1, 2]);
        assert!(parked.unpark(3) && !parked.unpark(3) && !parked.unpark(0));
    }

    #[test]
    fn all_wake_up_if_a_time_may_be_wrong() {
        let mut parked = Parked::new(3);
        parked.doubt();
        assert!(!parked.is_due(Time::ZERO), "no member is parked");
        parked.park(1, Some(Time::from_secs(1)));
        parked.park(2, None);
        let watchdogs = [None, Some(Time::from_secs(2)), None];
        assert_eq!(parked.watchdog(|index| watchdogs[index]), watchdogs[1]);
        assert!(parked.is_due(Time::ZERO));
        parked.wake_up(Time::ZERO);
        assert_eq!(woken(&mut parked), [1, 2]);
        parked.park(1, Some(Time::from_secs(2)));
        assert!(!parked.is_due(Time::from_secs(1)), "the doubt is over");
    }

    proptest! {
        /// Compares with a search of all members. Times reach up to the largest one.
        #[test]
        fn members_are_due_when_their_time_has_come(
            operations in prop::collection::vec((0u8..5, 0usize..10, any::<u64>(), 0u32..64), 0..200),
        ) {
            let mut parked = Parked::new(10);
            let mut model = [None; 10];
            let mut now = 0u64;
            for (operation, index, random, magnitude) in operations {
                match operation {
                    0..=2 => {
                        let time = now.saturating_add(random >> magnitude);
                        parked.park(index, Some(Time::from_nanos(time)));
                        model[index] = Some(time.min(NEVER));
                    }
                    3 => prop_assert_eq!(parked.unpark(index), model[index].take().is_some()),
                    _ => now = now.saturating_add(random >> magnitude.max(8)).min(NEVER - 1),
                }
                let due: Vec<usize> =
                    (0..10).filter(|&index| model[index].is_some_and(|time| time <= now)).collect();
                let next = parked.watchdog(|index| model[index].map(Time::from_nanos));
                prop_assert_eq!(next.map(Time::nanos), model.iter().flatten().min().copied());
                prop_assert_eq!(parked.is_due(Time::from_nanos(now)), !due.is_empty());
                parked.wake_up_by_index(Time::from_nanos(now));
                due.iter().for_each(|&index| model[index] = None);
                prop_assert_eq!(woken(&mut parked), due);
                prop_assert_eq!(parked.len(), model.iter().flatten().count());
            }
        }
    }
}
