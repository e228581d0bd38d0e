//! The flows in progress: those that sent a packet recently. Admission control always admits their packets.
//!
//! Their number is limited, and they are identified by their full keyed hash. A list keeps them in the order
//! of their last packets. Flows that have sent nothing for the time-out are removed, a few with each packet,
//! so that no call takes long. If there is no room for a new flow, its packet is admitted while new flows are
//! admitted, and its next packet is again the packet of a new flow.

use alloc::boxed::Box;

use crate::flow::FlowHash;
use crate::structures::{FlowTable, Identity};
use crate::time::Time;

/// Marks the end of the list.
const END: u32 = u32::MAX;

/// The state of a flow.
#[derive(Clone, Copy, Debug)]
struct Entry {
    identity: Identity,
    /// The time of its last packet.
    seen: Time,
    /// Its neighbours in the list: the flows with the next newer and the next older packet.
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
    /// The time-out in nanoseconds.
    timeout: u64,
}

impl InProgress {
    /// Returns a table for `flows` flows. Each is in progress for `timeout` ns after its last packet.
    pub(super) fn new(flows: u32, timeout: u64, salt: u64) -> InProgress {
        let none = Entry {
            identity: Identity::NONE,
            seen: Time::ZERO,
            newer: END,
            older: END,
        };
        InProgress {
            table: FlowTable::new(flows, salt),
            entries: vec![none; flows as usize].into(),
            oldest: END,
            newest: END,
            len: 0,
            timeout,
        }
    }

    /// Reports a packet of `flow` and returns whether it is admitted. A packet of a flow in progress always
    /// is. Another packet is admitted if new flows are, and its flow is then in progress.
    #[inline]
    pub(super) fn pass(&mut self, flow: FlowHash, admits_new: bool, now: Time) -> bool {
        for _ in 0..2 {
            self.forget_oldest(now);
        }
        let identity = self.table.identity(flow);
        if let Some(position) = self.table.find(identity) {
            if !self.is_over(position, now) {
                self.unlink(position);
                self.link_newest(position, now);
                return true;
            }
            self.forget(position);
        }
        if admits_new && let Some(position) = self.table.insert(identity) {
            self.entries[position as usize].identity = identity;
            self.len += 1;
            self.link_newest(position, now);
        }
        admits_new
    }

    /// Returns the position of a flow in progress. It is below the number of flows and does not change while
    /// the flow is in progress.
    #[inline]
    pub(super) fn position(&self, flow: FlowHash) -> Option<u32> {
        self.table.find(self.table.identity(flow))
    }

    /// Returns the number of flows in progress, including those that have timed out and are not removed yet.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    fn is_over(&self, position: u32, now: Time) -> bool {
        now.nanos_since(self.entries[position as usize].seen) >= self.timeout
    }

    #[inline]
    fn forget_oldest(&mut self, now: Time) {
        if self.oldest != END && self.is_over(self.oldest, now) {
            self.forget(self.oldest);
        }
    }

    fn forget(&mut self, position: u32) {
        self.unlink(position);
        self.table.remove(self.entries[position as usize].identity);
        self.len -= 1;
    }

    #[inline]
    fn unlink(&mut self, position: u32) {
        let Entry { newer, older, .. } = self.entries[position as usize];
        match older {
            END => self.oldest = newer,
            _ => self.entries[older as usize].newer = newer,
        }
        match newer {
            END => self.newest = older,
            _ => self.entries[newer as usize].older = older,
        }
    }

    /// Appends a flow as the newest. If the clock went backwards, the time of the newest flow is used, so the
    /// list stays in order.
    #[inline]
    fn link_newest(&mut self, position: u32, now: Time) {
        let older = self.newest;
        let mut seen = now;
        match older {
            END => self.oldest = position,
            _ => {
                let before = &mut self.entries[older as usize];
                before.newer = position;
                seen = seen.max(before.seen);
            }
        }
        let entry = &mut self.entries[position as usize];
        (entry.seen, entry.newer, entry.older) = (seen, END, older);
        self.newest = position;
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
    fn without_room_a_flow_is_admitted_only_while_new_flows_are() {
        let mut flows = InProgress::new(1, TIMEOUT, 1);
        assert!(flows.pass(flow(1), true, Time::from_nanos(1)));
        assert!(flows.pass(flow(2), true, Time::from_nanos(2)));
        assert!(!flows.pass(flow(2), false, Time::from_nanos(3)));
        assert!(flows.pass(flow(1), false, Time::from_nanos(4)));
        // 1 has timed out, so there is room.
        assert!(flows.pass(flow(2), true, Time::from_nanos(2000)));
        assert!(flows.pass(flow(2), false, Time::from_nanos(2001)));
        assert!(!flows.pass(flow(1), false, Time::from_nanos(2001)));
    }

    #[test]
    fn a_clock_that_goes_backwards_removes_no_flow() {
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
        /// Compares with a map of the times of last packets, with room for all flows.
        #[test]
        fn a_flow_is_in_progress_until_the_timeout(
            packets in prop::collection::vec((0u64..6, any::<bool>(), 0u64..900), 0..300),
        ) {
            let mut flows = InProgress::new(6, TIMEOUT, 1);
            let mut model: HashMap<u64, u64> = HashMap::new();
            let mut now = 0;
            for (number, admits_new, step) in packets {
                now += step;
                let passes = admits_new || model.get(&number).is_some_and(|seen| now - seen < TIMEOUT);
                prop_assert_eq!(flows.pass(flow(number), admits_new, Time::from_nanos(now)), passes);
                if passes {
                    model.insert(number, now);
                }
                let current = model.values().filter(|seen| now - **seen < TIMEOUT).count();
                prop_assert!(flows.len() as usize >= current);
            }
        }
    }
}
