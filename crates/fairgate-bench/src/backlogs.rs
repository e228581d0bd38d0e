//! Flows in lists by their backlog, so that the one with the shortest is found by one instruction (QFQ paper, Figure 8;
//! dummynet's own harness does the same).
//!
//! ```text
//!   mask    ..1011      a bit for each list that isn't empty; its lowest one is the shortest backlog
//!   lists   [0] f3 f9   [1] f7   [2]   [3] f1 f2 ...      rings; who came to a backlog last stands last
//! ```
//!
//! The last list holds whatever is longer: among such flows the one that came first is taken. With arrivals for the
//! shortest and at most 30 packets a flow queued on average, no flow ever has more than 30: to exceed it, it would
//! have to be the shortest with 30, and the total would be reached.

/// Backlogs that have a list of their own: 0 to 62.
const LISTS: usize = 64;

/// A flow's place in its ring, and its backlog.
#[derive(Clone, Copy, Debug)]
struct Place {
    next: u32,
    previous: u32,
    packets: u32,
}

/// The lists. Flows are numbered from 0.
#[derive(Debug)]
pub struct Backlogs {
    /// The flows, and behind them a head for each ring.
    places: Box<[Place]>,
    flows: u32,
    mask: u64,
}

impl Backlogs {
    /// `flows` flows without packets, in the order of their numbers. 1 to 2^31.
    pub fn new(flows: u32) -> Backlogs {
        let count = flows as usize + LISTS;
        let places = (0..count as u32).map(|index| Place {
            next: index,
            previous: index,
            packets: 0,
        });
        let mut lists = Backlogs {
            places: places.collect(),
            flows,
            mask: 0,
        };
        for flow in 0..flows {
            lists.append(flow, 0);
        }
        lists
    }

    /// The flow with the shortest backlog; of several the one that has had it for longest.
    #[inline]
    pub fn shortest(&self) -> u32 {
        let list = self.mask.trailing_zeros();
        self.places[(self.flows + list) as usize].next
    }

    /// A flow's packets.
    #[inline]
    pub fn packets(&self, flow: u32) -> u32 {
        self.places[flow as usize].packets
    }

    /// One packet more in `flow`.
    #[inline]
    pub fn grew(&mut self, flow: u32) {
        let packets = self.places[flow as usize].packets + 1;
        self.move_to(flow, packets);
    }

    /// One packet less in `flow`, which has one.
    #[inline]
    pub fn shrank(&mut self, flow: u32) {
        let packets = self.places[flow as usize].packets - 1;
        self.move_to(flow, packets);
    }

    #[inline]
    fn move_to(&mut self, flow: u32, packets: u32) {
        let Place { next, previous, .. } = self.places[flow as usize];
        self.places[previous as usize].next = next;
        self.places[next as usize].previous = previous;
        if next == previous {
            // A ring of one flow is a ring of its head now.
            self.mask &= !(1 << (next - self.flows));
        }
        self.append(flow, packets);
    }

    #[inline]
    fn append(&mut self, flow: u32, packets: u32) {
        let list = packets.min(LISTS as u32 - 1);
        let head = self.flows + list;
        let last = std::mem::replace(&mut self.places[head as usize].previous, flow);
        self.places[last as usize].next = flow;
        self.places[flow as usize] = Place {
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
        /// Against a search of all flows, with the time of their last change to settle ties; among those beyond the
        /// lists' reach too.
        #[test]
        fn the_shortest_is_found(
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
