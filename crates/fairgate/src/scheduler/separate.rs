//! Positions for flows that are told apart by their whole hash, so that two flows never share a queue by
//! chance.
//!
//! ```text
//!   packet -> hash -> position     the flow's own, as long as it is known
//!                  -> free position
//!                  -> the position of a flow without packets, which is forgotten
//!                  -> a position by hash, if all flows have packets
//! ```
//!
//! Memory is bounded by the number of positions. Flows without packets are forgotten in the order in which
//! they emptied. Flows of which the scheduler still remembers something come later: a few of them are passed
//! over for each new flow, so that no call takes long.
//!
//! A flow that shares a position has no entry. Until the queue there empties, all flows without an entry that
//! hash to it share it too. Otherwise a flow could get a position of its own while its earlier packets wait,
//! and its later packets would overtake them.

use alloc::boxed::Box;

use crate::flow::FlowHash;
use crate::structures::{ActiveList, FlowTable, Identity, Linked, ListLink};

/// The most flows that are passed over because the scheduler remembers something of them.
const PASSED_OVER: u32 = 8;

/// What is known of a position.
#[derive(Clone, Copy, Debug)]
struct PositionState {
    /// The flow at the position, or `NONE`.
    identity: Identity,
    /// Its link in the list of flows that emptied.
    link: ListLink,
    /// Whether its queue may have packets of flows without an entry. It has, until it empties.
    is_shared: bool,
}

impl Linked for PositionState {
    #[inline]
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

/// The positions of all flows.
#[derive(Debug)]
pub(super) struct Separate {
    table: FlowTable,
    places: Box<[PositionState]>,
    /// Flows that emptied, the first one first. Some may have packets again.
    emptied: ActiveList,
    /// The positions before this one belong to flows that filters name.
    first: u32,
    salt: u64,
}

/// A position for a packet's flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// The flow's own, which it had before.
    Known(u32),
    /// The flow's own, which is new or was another flow's.
    New(u32),
    /// By hash, and shared with other flows, because all positions have packets.
    Shared(u32),
}

impl Separate {
    /// Returns free positions from `first` to `flows - 1`. There must be one.
    pub(super) fn new(first: u32, flows: u32, salt: u64) -> Separate {
        let place = PositionState {
            identity: Identity::NONE,
            link: ListLink::OUTSIDE,
            is_shared: false,
        };
        Separate {
            table: FlowTable::new(flows - first, salt),
            places: vec![place; (flows - first) as usize].into(),
            emptied: ActiveList::new(),
            first,
            salt,
        }
    }

    /// Returns the bytes that are allocated for `flows` positions.
    pub(super) fn allocated(flows: u64) -> u64 {
        flows * (size_of::<PositionState>() as u64 + 4 + 64)
    }

    /// Returns the position of a flow. `has_packets` and `is_remembered` tell of a position whether its queue
    /// has packets, and whether the scheduler remembers something of its flow.
    #[inline]
    pub(super) fn position(
        &mut self,
        flow: FlowHash,
        has_packets: impl Fn(u32) -> bool,
        is_remembered: impl Fn(u32) -> bool,
    ) -> Position {
        let identity = self.table.identity(flow);
        match self.table.find(identity) {
            Some(position) => Position::Known(self.first + position),
            None => self.assign(flow, identity, &has_packets, &is_remembered),
        }
    }

    #[cold]
    #[inline(never)]
    fn assign(
        &mut self,
        flow: FlowHash,
        identity: Identity,
        has_packets: &dyn Fn(u32) -> bool,
        is_remembered: &dyn Fn(u32) -> bool,
    ) -> Position {
        let by_hash = flow.bucket(self.salt, self.places.len() as u32);
        let shared = &mut self.places[by_hash as usize].is_shared;
        *shared &= has_packets(self.first + by_hash);
        if *shared {
            return Position::Shared(self.first + by_hash);
        }
        let mut position = self.table.insert(identity);
        if position.is_none()
            && let Some(forgotten) = self.forget_one(has_packets, is_remembered)
        {
            let before = core::mem::take(&mut self.places[forgotten as usize].identity);
            self.table.remove(before);
            position = self.table.insert(identity);
        }
        match position {
            Some(position) => {
                self.places[position as usize].identity = identity;
                Position::New(self.first + position)
            }
            None => {
                self.places[by_hash as usize].is_shared = true;
                Position::Shared(self.first + by_hash)
            }
        }
    }

    /// Returns the position of a flow without packets. It leaves the list.
    fn forget_one(
        &mut self,
        has_packets: &dyn Fn(u32) -> bool,
        is_remembered: &dyn Fn(u32) -> bool,
    ) -> Option<u32> {
        let mut passed_over = 0;
        // Flows with packets leave the list, and return to it when they empty. So they cost no more than
        // their emptying did.
        while let Some(position) = self.emptied.pop_front(&mut self.places) {
            if has_packets(self.first + position) {
                continue;
            }
            if passed_over == PASSED_OVER || !is_remembered(self.first + position) {
                return Some(position);
            }
            passed_over += 1;
            self.emptied.push_back(position, &mut self.places);
        }
        None
    }

    /// Handles that the flow at a position has no more packets.
    #[inline]
    pub(super) fn emptied(&mut self, position: u32) {
        let Some(place) = position.checked_sub(self.first) else {
            return;
        };
        self.places[place as usize].is_shared = false;
        if !self.places[place as usize].link.is_in_list() {
            self.emptied.push_back(place, &mut self.places);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet, VecDeque};

    proptest! {
        /// No two flows with packets have the same position while there are as many positions as flows with
        /// packets, and a flow keeps its position while it has packets. A position that was shared stays so
        /// until it empties.
        #[test]
        fn flows_with_packets_do_not_share(
            positions in 1u32..6,
            first in 0u32..3,
            steps in prop::collection::vec((0u64..12, any::<bool>(), any::<bool>()), 1..300),
        ) {
            let mut separate = Separate::new(first, first + positions, 3);
            // The positions of flows with packets.
            let mut held: HashMap<u64, u32> = HashMap::new();
            let mut owner: HashMap<u32, u64> = HashMap::new();
            let mut shared_since: HashSet<u32> = HashSet::new();
            for (flow, enqueues, is_remembered) in steps {
                if !enqueues {
                    if let Some(position) = held.remove(&flow) {
                        separate.emptied(position);
                        shared_since.remove(&position);
                    }
                    continue;
                }
                if held.len() == positions as usize && !held.contains_key(&flow) {
                    let shared = separate.position(FlowHash::from_raw(flow), |_| true, |_| is_remembered);
                    prop_assert!(matches!(shared, Position::Shared(position) if position >= first
                        && position < first + positions), "{shared:?}");
                    if let Position::Shared(position) = shared {
                        shared_since.insert(position);
                    }
                    continue;
                }
                let has_packets = |position: u32| held.values().any(|other| *other == position);
                let found = separate.position(FlowHash::from_raw(flow), has_packets, |_| is_remembered);
                let position = match found {
                    Position::Known(position) => {
                        prop_assert_eq!(owner.get(&position), Some(&flow));
                        position
                    }
                    Position::New(position) => {
                        prop_assert!(!held.contains_key(&flow));
                        position
                    }
                    Position::Shared(position) => {
                        prop_assert!(shared_since.contains(&position), "there is room");
                        continue;
                    }
                };
                prop_assert!((first..first + positions).contains(&position));
                if let Some(before) = held.insert(flow, position) {
                    prop_assert_eq!(before, position);
                }
                owner.insert(position, flow);
                let others = held.iter().filter(|(other, at)| **other != flow && **at == position);
                prop_assert_eq!(others.count(), 0);
            }
        }

        /// All queued packets of a flow are at one position, so they leave in order. Positions are so few
        /// that flows often share one.
        #[test]
        fn a_flow_has_packets_at_one_position(
            positions in 1u32..4,
            steps in prop::collection::vec((0u64..12, 0u32..4, any::<bool>(), any::<bool>()), 1..300),
        ) {
            let mut separate = Separate::new(0, positions, 3);
            let mut queues = vec![VecDeque::new(); positions as usize];
            for (flow, from, enqueues, is_remembered) in steps {
                if enqueues {
                    let has_packets = |position: u32| !queues[position as usize].is_empty();
                    let found = separate.position(FlowHash::from_raw(flow), has_packets, |_| is_remembered);
                    let (Position::Known(at) | Position::New(at) | Position::Shared(at)) = found;
                    queues[at as usize].push_back(flow);
                    let elsewhere = (0..positions).filter(|other| *other != at);
                    let mut of_flow = elsewhere.filter(|other| queues[*other as usize].contains(&flow));
                    prop_assert_eq!(of_flow.next(), None, "flow {} is at {}", flow, at);
                } else if let Some(queue) = queues.get_mut(from as usize) {
                    queue.pop_front();
                    if queue.is_empty() {
                        separate.emptied(from);
                    }
                }
            }
        }
    }
}
