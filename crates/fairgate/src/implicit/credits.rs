//! Credit for flows that send less than their fair share, so that [`sqf`](super::sqf) does not mistake a
//! burst for bulk traffic.
//!
//! * A flow without packets earns the fair share: what it would get from fair queueing if it always had
//!   packets ([`FairShare`]).
//! * A flow with packets earns half of that. So also a flow that is longer than all others is served at half
//!   of its fair share at least, and the other half of the link goes to the shortest flow, as in the paper.
//! * A flow pays for each byte that it sends. Its credit is never below 0 and, when its queue fills or
//!   empties, at most the configured credit. A new flow has all of it.
//!
//! A flow's backlog counts only as far as it exceeds its credit. So a burst up to the credit leaves a flow's
//! priority as it is, while its mean rate is below its fair share. A stream above its fair share has no
//! credit; it is served as in the paper, by its backlog.
//!
//! The credit of a flow with packets is stored as a *mark*: the reading of a common clock, which all flows
//! with packets earn by, at which its credit was 0. While nothing is sent marks do not change, so neither
//! does the order of the flows by `backlog + mark`.
//!
//! Flows without packets are remembered by their identity, in sets of four. If a set is full, the flow with
//! the most credit is forgotten, which then has all of it. So memory is bounded, and what a forgotten flow
//! gains is as little as possible.

use alloc::boxed::Box;

use crate::structures::{FRACTION_BITS, FairShare, Identity, Reading};

/// The largest credit, bytes.
pub(super) const MOST_CREDIT: u32 = 1 << 30;
/// The first reading of the common clock, so that no mark is below 0.
const ORIGIN: u64 = MOST_CREDIT as u64;
/// From this reading on, marks are moved back: ranks have 48 bits.
const FAR: u64 = if cfg!(test) { ORIGIN + 20_000 } else { 1 << 45 };

/// The number of flows of a set.
const WAYS: usize = 4;
/// The most sets.
const MOST_SETS: u32 = 1 << 14;

/// A flow without packets.
#[derive(Clone, Copy, Debug)]
struct Idle {
    identity: Identity,
    credit: u32,
    /// The reading of the clock of idle flows up to which the credit is counted.
    since: Reading,
}

const NOBODY: Idle = Idle {
    identity: Identity::NONE,
    credit: 0,
    since: Reading::START,
};

/// The credits of all flows.
#[derive(Debug)]
pub(super) struct Credits {
    most: u64,
    share: FairShare,
    /// The common clock of flows with packets: half of the fair share, in units of 2^-16 byte.
    clock: u64,
    /// The marks of flows with packets, bytes, by position.
    marks: Box<[u64]>,
    /// Flows without packets that have a number: by position.
    numbered: Box<[Idle]>,
    /// Flows without packets that have an identity.
    sets: Box<[[Idle; WAYS]]>,
}

impl Credits {
    /// Returns the credits of flows at `positions` positions, at most `most` bytes each.
    pub(super) fn new(most: u32, positions: u32) -> Credits {
        let full = Idle {
            credit: most,
            ..NOBODY
        };
        Credits {
            most: most.into(),
            share: FairShare::new(),
            clock: ORIGIN << FRACTION_BITS,
            marks: vec![ORIGIN; positions as usize].into(),
            numbered: vec![full; positions as usize].into(),
            sets: vec![[NOBODY; WAYS]; sets(positions)].into(),
        }
    }

    /// Returns the bytes that the credits of `positions` flows allocate.
    pub(super) fn allocated(positions: u32) -> u64 {
        let idle = size_of::<Idle>() as u64;
        u64::from(positions) * (8 + idle) + sets(positions) as u64 * WAYS as u64 * idle
    }

    /// Handles that the flow at `position` has packets again.
    pub(super) fn begin(&mut self, position: u32, identity: Identity) {
        let idle = match identity {
            Identity::NONE => Some(self.numbered[position as usize]),
            _ => self.take(identity),
        };
        let credit = idle.map_or(self.most, |idle| self.earned(&idle));
        self.marks[position as usize] = self.now() - credit;
    }

    /// Handles that the flow at `position` has no more packets.
    pub(super) fn end(&mut self, position: u32, identity: Identity) {
        let credit = (self.now() - self.marks[position as usize]).min(self.most);
        let idle = Idle {
            identity,
            credit: credit as u32,
            since: self.share.read(false),
        };
        match identity {
            Identity::NONE => self.numbered[position as usize] = idle,
            _ => self.remember(idle),
        }
    }

    /// Notes that the flow at `position` sent `length` bytes while `flows` flows had packets, this one
    /// included.
    #[inline]
    pub(super) fn sent(&mut self, position: u32, length: u32, flows: u32) {
        let before = self.share.read(true);
        self.share.sent(length, flows);
        self.clock += self.share.read(true).fraction_since(before) / 2;
        let now = self.now();
        let mark = &mut self.marks[position as usize];
        *mark = now.min(*mark + u64::from(length));
    }

    /// Returns the flow's mark: `backlog + mark` orders flows by their backlog less their credit.
    #[inline]
    pub(super) fn debt(&self, position: u32) -> u64 {
        self.marks[position as usize]
    }

    /// Whether marks must be moved back.
    #[inline]
    pub(super) fn is_far(&self) -> bool {
        self.now() >= FAR
    }

    /// Moves the clock and all marks back, as far as to the first reading. The order of the flows stays the
    /// same, except among those that have waited for longer than the largest credit.
    pub(super) fn come_back(&mut self) {
        let by = self.now() - ORIGIN;
        self.clock -= by << FRACTION_BITS;
        self.marks
            .iter_mut()
            .for_each(|mark| *mark = mark.saturating_sub(by));
    }

    #[inline]
    fn now(&self) -> u64 {
        self.clock >> FRACTION_BITS
    }

    /// Returns the credit of a flow without packets.
    fn earned(&self, idle: &Idle) -> u64 {
        let earned = self.share.read(false).since(idle.since);
        self.most.min(u64::from(idle.credit) + earned)
    }

    fn set(&self, identity: Identity) -> usize {
        identity.low_bits() as usize & (self.sets.len() - 1)
    }

    /// Removes a flow and returns it. `None` if it is not known.
    fn take(&mut self, identity: Identity) -> Option<Idle> {
        let set = &mut self.sets[self.set(identity)];
        let known = set.iter_mut().find(|idle| idle.identity == identity)?;
        Some(core::mem::replace(known, NOBODY))
    }

    fn remember(&mut self, idle: Idle) {
        let set = self.set(idle.identity);
        let credit = |known: &Idle| match known.identity {
            Identity::NONE => u64::MAX,
            _ => self.earned(known),
        };
        let most = (0..WAYS).max_by_key(|&way| credit(&self.sets[set][way]));
        self.sets[set][most.expect("a set isn't empty")] = idle;
    }
}

fn sets(positions: u32) -> usize {
    positions.next_power_of_two().min(MOST_SETS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::FlowHash;
    use crate::structures::FlowTable;
    use proptest::prelude::*;

    fn identity(flow: u64) -> Identity {
        FlowTable::new(1, 5).identity(FlowHash::from_raw(flow))
    }

    /// The credit of a flow with packets.
    fn credit(credits: &Credits, position: u32) -> u64 {
        credits.now() - credits.debt(position)
    }

    #[test]
    fn an_idle_flow_earns_its_share_and_a_backlogged_flow_half_of_it() {
        let mut credits = Credits::new(10_000, 4);
        let flow = identity(1);
        credits.begin(0, flow);
        assert_eq!(credit(&credits, 0), 10_000, "a new flow has all");
        (0..20).for_each(|_| credits.sent(0, 1000, 2));
        // Half of the share of two flows, a quarter of what was sent, comes back in the meantime; but never
        // above what it had when it was paid.
        assert!(credit(&credits, 0) < 300, "{}", credit(&credits, 0));
        credits.begin(1, identity(2));
        let before = credit(&credits, 0);
        (0..8).for_each(|_| credits.sent(1, 1000, 2));
        assert_eq!(credit(&credits, 0), before + 2000);
        credits.end(0, flow);
        // One other flow has packets: with this one they would be two.
        (0..8).for_each(|_| credits.sent(1, 1000, 1));
        credits.begin(2, flow);
        assert_eq!(credit(&credits, 2), before + 2000 + 4000);
    }

    #[test]
    fn the_flow_with_the_most_credit_is_forgotten_first() {
        let mut credits = Credits::new(10_000, 1);
        assert_eq!(credits.sets.len(), 1);
        for flow in 1..=5 {
            credits.begin(0, identity(flow));
            credits.sent(0, 1000 * flow as u32, 1000);
            credits.end(0, identity(flow));
        }
        // The first one, with 9000 bytes, has made room for the fifth.
        for (flow, expected) in [(1, 10_000), (2, 8000), (5, 5000)] {
            credits.begin(0, identity(flow));
            let now = credit(&credits, 0);
            assert!(now.abs_diff(expected) < 20, "{flow}: {now}, not {expected}");
        }
    }

    proptest! {
        /// However the clock is moved back, flows keep their order and their credits.
        #[test]
        fn moving_back_changes_no_credit(
            packets in prop::collection::vec((0u32..4, 1u32..1500), 1..300),
        ) {
            let mut credits = Credits::new(50_000, 4);
            (0..4).for_each(|position| credits.begin(position, identity(position.into())));
            for (position, length) in packets {
                credits.sent(position, length, 4);
                let before: Vec<u64> = (0..4).map(|position| credit(&credits, position)).collect();
                if credits.is_far() {
                    credits.come_back();
                    let after: Vec<u64> = (0..4).map(|position| credit(&credits, position)).collect();
                    prop_assert_eq!(&before, &after);
                }
                // No flow owes anything.
                prop_assert!(credits.marks.iter().all(|mark| *mark <= credits.now()));
            }
        }
    }
}
