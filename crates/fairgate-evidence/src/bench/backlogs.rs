//! Flows in lists by their backlog, so that one instruction finds the list with the shortest backlog (QFQ
//! paper, Figure 8; dummynet's test harness does the same).
//!
//! ```text
//!   mask    ..1011      one bit for each list that isn't empty; the lowest one is the shortest backlog
//!   lists   [0] f3 f9   [1] f7   [2]   [3] f1 f2 ...      circular lists; a flow is appended at the end
//! ```
//!
//! The last list has all longer backlogs. Among these flows the first one in the list is taken. No flow ever
//! has more than 30 packets if each arrival is for the shortest flow, and at most 30 packets a flow are
//! queued on average. To exceed 30, a flow would have to be the shortest one with 30, but then the limit on
//! the total is reached.

/// The number of lists: backlogs of 0 to 62 have their own list.
const LISTS: usize = 64;

/// The neighbours of a flow in its list, and its backlog.
#[derive(Clone, Copy, Debug)]
struct Entry {
    next: u32,
    previous: u32,
    packets: u32,
}

/// The lists of flows. Flows are numbered from 0.
#[derive(Debug)]
pub struct Backlogs {
    /// The flows, and after them a head for each list.
    entries: Box<[Entry]>,
    flows: u32,
    mask: u64,
}

impl Backlogs {
    /// Creates lists of `flows` flows without packets, ordered by number. `flows` is 1 to 2^31.
    pub fn new(flows: u32) -> Backlogs {
        let count = flows as usize + LISTS;
        let entries = (0..count as u32).map(|index| Entry {
            next: index,
            previous: index,
            packets: 0,
        });
        let mut lists = Backlogs {
            entries: entries.collect(),
            flows,
            mask: 0,
        };
        for flow in 0..flows {
            lists.append(flow, 0);
        }
        lists
    }

    /// Returns the flow with the shortest backlog. Of several, it is the one that has had this backlog for
    /// longest.
    #[inline]
    pub fn shortest(&self) -> u32 {
        let list = self.mask.trailing_zeros();
        self.entries[(self.flows + list) as usize].next
    }

    /// Returns the number of packets of a flow.
    #[inline]
    pub fn packets(&self, flow: u32) -> u32 {
        self.entries[flow as usize].packets
    }

    /// Adds one packet to `flow`.
    #[inline]
    pub fn grew(&mut self, flow: u32) {
        let packets = self.entries[flow as usize].packets + 1;
        self.move_to(flow, packets);
    }

    /// Removes one packet from `flow`, which must have one.
    #[inline]
    pub fn shrank(&mut self, flow: u32) {
        let packets = self.entries[flow as usize].packets - 1;
        self.move_to(flow, packets);
    }

    #[inline]
    fn move_to(&mut self, flow: u32, packets: u32) {
        let Entry { next, previous, .. } = self.entries[flow as usize];
        self.entries[previous as usize].next = next;
        self.entries[next as usize].previous = previous;
        if next == previous {
            // The flow was alone in its list, which is empty now.
            self.mask &= !(1 << (next - self.flows));
        }
        self.append(flow, packets);
    }

    #[inline]
    fn append(&mut self, flow: u32, packets: u32) {
        let list = packets.min(LISTS as u32 - 1);
        let head = self.flows + list;
        let last = std::mem::replace(&mut self.entries[head as usize].previous, flow);
        self.entries[last as usize].next = flow;
        self.entries[flow as usize] = Entry {
            next: head,
            previous: last,
            packets,
        };
        self.mask |= 1 << list;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a search over all flows. Ties are decided by the time of the last change, also among
        /// backlogs without their own list.
        #[test]
        fn the_shortest_backlog_is_found(
            start in 0u32..70,
            operations in prop::collection::vec((any::<bool>(), 0u32..5), 0..400),
        ) {
            let mut lists = Backlogs::new(5);
            let mut model: Vec<(u32, usize)> = (0..5).map(|flow| (0, flow)).collect();
            let warm_up = (0..5).flat_map(|flow| (0..start).map(move |_| (true, flow)));
            for (step, (grow, flow)) in warm_up.chain(operations).enumerate() {
                let (packets, changed) = &mut model[flow as usize];
                if grow {
                    *packets += 1;
                    lists.grew(flow);
                } else if *packets > 0 {
                    *packets -= 1;
                    lists.shrank(flow);
                } else {
                    continue;
                }
                *changed = 5 + step;
                let expected = (0..5u32).min_by_key(|&flow| {
                    let (packets, changed) = model[flow as usize];
                    (packets.min(LISTS as u32 - 1), changed)
                });
                prop_assert_eq!(Some(lists.shortest()), expected);
                for flow in 0..5 {
                    prop_assert_eq!(lists.packets(flow), model[flow as usize].0);
                }
            }
        }
    }
}
