//! The flows in progress: those that had a packet lately. Admission control lets them pass whatever happens.
//!
//! A fixed number of them, known by their full keyed hash. They stand in a list in the order of their last packets; what has
//! been silent for the time-out is forgotten, a few at each packet, so that no call takes long. Packets of a flow that finds
//! no room pass like others as long as new flows are let in, and it is new again at its next packet.

use alloc::boxed::Box;

use crate::flow::FlowHash;
use crate::structures::{FlowTable, Identity};
use crate::time::Time;

/// Marks the end of the list.
const END: u32 = u32::MAX;

/// What is known of a flow.
#[derive(Clone, Copy, Debug)]
struct Entry {
    identity: Identity,
    /// When its last packet came.
    seen: Time,
    /// Its neighbours in the list: whose packet came next after this one's, and before.
    newer: u32,
    older: u32,
}

/// The flows in progress.
#[derive(Debug)]
pub(super) struct InProgress {
    table: FlowTable,
    entries: Box<[Entry]>,
    oldest: u32,
    newest: u32,
    len: u32,
    /// ns.
    timeout: u64,
}

impl InProgress {
    /// Room for `flows` flows, each for `timeout` ns after its last packet.
    pub(super) fn new(flows: u32, timeout: u64, salt: u64) -> InProgress {
        let nobody = Entry {
            identity: Identity::NONE,
            seen: Time::ZERO,
            newer: END,
            older: END,
        };
        InProgress {
            table: FlowTable::new(flows, salt),
            entries: vec![nobody; flows as usize].into(),
            oldest: END,
            newest: END,
            len: 0,
            timeout,
        }
    }

    /// A packet of `flow` came. Whether it may pass: always if the flow is in progress, else if new flows are let in, and
    /// then it is in progress from now on.
    #[inline]
    pub(super) fn pass(&mut self, flow: FlowHash, lets_new_in: bool, now: Time) -> bool {
        for _ in 0..2 {
            self.forget_oldest(now);
        }
        let identity = self.table.identity(flow);
        if let Some(place) = self.table.find(identity) {
            if !self.is_over(place, now) {
                self.unlink(place);
                self.link_newest(place, now);
                return true;
            }
            self.forget(place);
        }
        if lets_new_in && let Some(place) = self.table.insert(identity) {
            self.entries[place as usize].identity = identity;
            self.len += 1;
            self.link_newest(place, now);
        }
        lets_new_in
    }

    /// The place of a flow in progress, 0 to the number of flows less 1: it keeps it until it is forgotten.
    #[inline]
    pub(super) fn place(&self, flow: FlowHash) -> Option<u32> {
        self.table.find(self.table.identity(flow))
    }

    /// How many flows are in progress, those silent for too long that are not yet forgotten included.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    fn is_over(&self, place: u32, now: Time) -> bool {
        now.nanos_since(self.entries[place as usize].seen) >= self.timeout
    }

    #[inline]
    fn forget_oldest(&mut self, now: Time) {
        if self.oldest != END && self.is_over(self.oldest, now) {
            self.forget(self.oldest);
        }
    }

    fn forget(&mut self, place: u32) {
        self.unlink(place);
        self.table.remove(self.entries[place as usize].identity);
        self.len -= 1;
    }

    #[inline]
    fn unlink(&mut self, place: u32) {
        let Entry { newer, older, .. } = self.entries[place as usize];
        match older {
            END => self.oldest = newer,
            _ => self.entries[older as usize].newer = newer,
        }
        match newer {
            END => self.newest = older,
            _ => self.entries[newer as usize].older = older,
        }
    }

    /// If the clock went back, the time of the newest so far counts: the list stays in order.
    #[inline]
    fn link_newest(&mut self, place: u32, now: Time) {
        let older = self.newest;
        let mut seen = now;
        match older {
            END => self.oldest = place,
            _ => {
                let before = &mut self.entries[older as usize];
                before.newer = place;
                seen = seen.max(before.seen);
            }
        }
        let entry = &mut self.entries[place as usize];
        (entry.seen, entry.newer, entry.older) = (seen, END, older);
        self.newest = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const TIMEOUT: u64 = 1000;

    fn flow(number: u64) -> FlowHash {
        FlowHash::from_raw(number)
    }

    #[test]
    fn without_room_a_flow_passes_only_as_long_as_new_ones_do() {
        let mut flows = InProgress::new(1, TIMEOUT, 1);
        assert!(flows.pass(flow(1), true, Time::from_nanos(1)));
        assert!(flows.pass(flow(2), true, Time::from_nanos(2)));
        assert!(!flows.pass(flow(2), false, Time::from_nanos(3)));
        assert!(flows.pass(flow(1), false, Time::from_nanos(4)));
        // 1 has been silent for too long: there is room.
        assert!(flows.pass(flow(2), true, Time::from_nanos(2000)));
        assert!(flows.pass(flow(2), false, Time::from_nanos(2001)));
        assert!(!flows.pass(flow(1), false, Time::from_nanos(2001)));
    }

    #[test]
    fn a_clock_that_goes_back_makes_no_flow_a_stranger() {
        let mut flows = InProgress::new(3, TIMEOUT, 1);
        for (number, nanos) in [(1, 5000), (2, 4000), (1, 100), (3, 0), (2, 0)] {
            let _ = flows.pass(flow(number), true, Time::from_nanos(nanos));
        }
        for number in 1..4 {
            assert!(
                flows.pass(flow(number), false, Time::from_nanos(5999)),
                "{number}"
            );
        }
        assert_eq!(flows.len(), 3);
    }

    proptest! {
        /// Against a map of the times of last packets, with room for all.
        #[test]
        fn a_flow_is_in_progress_until_it_was_silent_for_the_timeout(
            packets in prop::collection::vec((0u64..6, any::<bool>(), 0u64..900), 0..300),
        ) {
            let mut flows = InProgress::new(6, TIMEOUT, 1);
            let mut model: HashMap<u64, u64> = HashMap::new();
            let mut now = 0;
            for (number, lets_new_in, step) in packets {
                now += step;
                let passes = lets_new_in || model.get(&number).is_some_and(|seen| now - seen < TIMEOUT);
                prop_assert_eq!(flows.pass(flow(number), lets_new_in, Time::from_nanos(now)), passes);
                if passes {
                    model.insert(number, now);
                }
                let current = model.values().filter(|seen| now - **seen < TIMEOUT).count();
                prop_assert!(flows.len() as usize >= current);
            }
        }
    }
}
