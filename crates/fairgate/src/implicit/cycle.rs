//! A cycle of flows. The next flow that has packets is found in constant time.
//!
//! ```text
//!   ring   ... f7  f2  f9  f4  f1  f3 ...    each flow at its turn
//!   busy   ...  .   .   1   0   0   1 ...    a bit for each turn, and a bit for each 64 bits
//!                       ^first          ^end
//! ```
//!
//! Turns are numbers that increase and never wrap. A flow joins at the end and stays until its turn. If it is
//! idle at its turn, it leaves the cycle and is not read (PDRR, section 3.3). One comparison tells whether a
//! flow is in the cycle: its turn must not be before `first`.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// The number of bits in a word.
const WORD: usize = 64;

/// The turn of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn(u64);

impl Turn {
    /// The turn of a flow that is in no cycle.
    pub(crate) const NONE: Turn = Turn(0);
    /// The turn of a flow that was taken out to be served. It counts as in the cycle.
    pub(crate) const NOW: Turn = Turn(u64::MAX);
}

/// A cycle of flows. Turns that have passed can be read until they are `swept`, so that the resources of
/// flows that left are freed step by step. This does not include flows that were taken out when nothing was
/// to be swept.
#[derive(Debug)]
pub(crate) struct Cycle {
    ring: Box<[u32]>,
    /// A bit for each position in the ring.
    busy: Box<[u64]>,
    /// The levels above `busy`: a bit for each word of the level below.
    above: Vec<Box<[u64]>>,
    swept: u64,
    first: u64,
    end: u64,
}

impl Cycle {
    /// Returns a cycle for up to `flows` flows.
    pub(crate) fn new(flows: u32) -> Cycle {
        // There is room for a flow that joins before the flow that left is swept.
        let positions = (flows as usize + 2).next_power_of_two().max(WORD);
        let busy: Box<[u64]> = vec![0; positions / WORD].into();
        let mut above = Vec::new();
        let mut bits = busy.len();
        while bits > 1 {
            bits = bits.div_ceil(WORD);
            above.push(vec![0; bits].into());
        }
        Cycle {
            ring: vec![0; positions].into(),
            busy,
            above,
            swept: 1,
            first: 1,
            end: 1,
        }
    }

    /// Returns the number of flows in the cycle.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.end - self.first
    }

    /// Whether a flow with this turn is in the cycle.
    #[inline]
    pub(crate) fn contains(&self, turn: Turn) -> bool {
        turn.0 >= self.first
    }

    /// Adds a flow at the end and returns its turn. The caller must call [`sweep`](Cycle::sweep) first.
    #[inline]
    pub(crate) fn push(&mut self, flow: u32, is_busy: bool) -> Turn {
        let turn = self.end;
        debug_assert!(
            turn - self.swept < self.ring.len() as u64,
            "there is room for all flows"
        );
        self.end += 1;
        let position = self.position(turn);
        self.ring[position] = flow;
        if is_busy {
            self.set(position);
        }
        Turn(turn)
    }

    /// Marks the flow with this turn as busy. It must be in the cycle.
    #[inline]
    pub(crate) fn set_busy(&mut self, turn: Turn) {
        self.set(self.position(turn.0));
    }

    /// Marks the flow with this turn as idle. It must be in the cycle.
    #[inline]
    pub(crate) fn set_idle(&mut self, turn: Turn) {
        self.clear(self.position(turn.0));
    }

    /// Advances to the next busy flow and takes it out. The idle flows before it leave the cycle. If no flow
    /// is busy, all flows leave.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u32> {
        let from = self.position(self.first);
        let Some(position) = self.find(from) else {
            self.first = self.end;
            return None;
        };
        let passed = (position.wrapping_sub(from) & (self.ring.len() - 1)) as u64;
        self.swept += u64::from(passed == 0 && !self.has_passed());
        self.first += 1 + passed;
        self.clear(position);
        Some(self.ring[position])
    }

    /// Returns a flow that was idle at its turn, and the turn. Each is returned once. It is called before
    /// each `push`, so that there are never more of them than flows.
    #[inline]
    pub(crate) fn sweep(&mut self) -> Option<(u32, Turn)> {
        self.has_passed().then(|| {
            let turn = self.swept;
            self.swept += 1;
            (self.ring[self.position(turn)], Turn(turn))
        })
    }

    /// Whether [`sweep`](Cycle::sweep) will return a flow.
    #[inline]
    pub(crate) fn has_passed(&self) -> bool {
        self.swept < self.first
    }

    #[inline]
    fn position(&self, turn: u64) -> usize {
        turn as usize & (self.ring.len() - 1)
    }

    #[inline]
    fn set(&mut self, position: usize) {
        let word = &mut self.busy[position / WORD];
        let known = *word;
        *word |= 1 << (position % WORD);
        if known == 0 {
            self.set_above(position / WORD);
        }
    }

    #[cold]
    #[inline(never)]
    fn set_above(&mut self, mut position: usize) {
        for level in &mut self.above {
            let word = &mut level[position / WORD];
            let known = *word;
            *word |= 1 << (position % WORD);
            if known != 0 {
                return;
            }
            position /= WORD;
        }
    }

    #[inline]
    fn clear(&mut self, position: usize) {
        let word = &mut self.busy[position / WORD];
        *word &= !(1 << (position % WORD));
        if *word == 0 {
            self.clear_above(position / WORD);
        }
    }

    #[cold]
    #[inline(never)]
    fn clear_above(&mut self, mut position: usize) {
        for level in &mut self.above {
            let word = &mut level[position / WORD];
            *word &= !(1 << (position % WORD));
            if *word != 0 {
                return;
            }
            position /= WORD;
        }
    }

    /// Returns the first busy position at or after `from`. It wraps at the end of the ring.
    #[inline]
    fn find(&self, from: usize) -> Option<usize> {
        let word = self.busy[from / WORD] >> (from % WORD);
        if word != 0 {
            return Some(from + word.trailing_zeros() as usize);
        }
        self.find_farther(from / WORD + 1)
    }

    /// Returns the first busy position in or after word `from`, or else the first one in the ring.
    #[cold]
    #[inline(never)]
    fn find_farther(&self, from: usize) -> Option<usize> {
        let start = || {
            let word = self.busy[0];
            (word != 0).then(|| word.trailing_zeros() as usize)
        };
        self.find_above(from)
            .or_else(start)
            .or_else(|| self.find_above(1))
    }

    /// Returns the first busy position in or after word `from`. It goes up until a level has a bit, and then
    /// down.
    fn find_above(&self, mut from: usize) -> Option<usize> {
        for (height, level) in self.above.iter().enumerate() {
            if from / WORD >= level.len() {
                return None;
            }
            let word = level[from / WORD] >> (from % WORD);
            if word != 0 {
                let mut position = from + word.trailing_zeros() as usize;
                for below in self.above[..height].iter().rev() {
                    position = position * WORD + below[position].trailing_zeros() as usize;
                }
                return Some(position * WORD + self.busy[position].trailing_zeros() as usize);
            }
            from = from / WORD + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    proptest! {
        /// Compares the cycle with a deque that is searched. Flows join, become busy and idle, and are
        /// served. There are one or more levels of bits.
        #[test]
        fn a_cycle_behaves_like_a_searched_deque(
            flows in prop_oneof![1u32..9, 60u32..70, 5000u32..5010],
            fill in any::<bool>(),
            operations in prop::collection::vec((0u8..5, any::<u32>()), 0..400),
        ) {
            let mut cycle = Cycle::new(flows);
            let mut turns = vec![Turn::NONE; flows as usize];
            let mut model: VecDeque<(u32, bool)> = VecDeque::new();
            // Turns that passed while idle and have to be returned, and those that were returned.
            let mut idle = Vec::new();
            let mut shown = Vec::new();
            let joined = if fill { flows } else { 0 };
            let first = (0..joined).map(|flow| (0u8, flow));
            for (operation, flow) in first.chain(operations) {
                let flow = flow % flows;
                let is_in = model.iter().position(|(other, _)| *other == flow);
                prop_assert_eq!(cycle.contains(turns[flow as usize]), is_in.is_some());
                match (operation, is_in) {
                    (0 | 1, None) => {
                        for _ in 0..2 {
                            shown.extend(cycle.sweep());
                        }
                        turns[flow as usize] = cycle.push(flow, operation == 1);
                        model.push_back((flow, operation == 1));
                    }
                    (2, Some(position)) => {
                        cycle.set_busy(turns[flow as usize]);
                        model[position].1 = true;
                    }
                    (3, Some(position)) => {
                        cycle.set_idle(turns[flow as usize]);
                        model[position].1 = false;
                    }
                    (4, _) => {
                        let expected = model.iter().position(|(_, is_busy)| *is_busy);
                        let leaving = expected.map_or(model.len(), |position| position + 1);
                        let next = expected.map(|position| model[position].0);
                        let passed = model.drain(..leaving).filter(|(_, is_busy)| !is_busy);
                        idle.extend(passed.map(|(flow, _)| (flow, turns[flow as usize])));
                        prop_assert_eq!(cycle.next(), next);
                    }
                    _ => {}
                }
                prop_assert_eq!(cycle.len(), model.len() as u64);
            }
            while let Some(passed) = cycle.sweep() {
                shown.push(passed);
            }
            prop_assert!(shown.is_sorted_by_key(|(_, turn)| *turn), "no turn is returned twice");
            shown.retain(|passed| idle.contains(passed));
            prop_assert_eq!(shown, idle, "each turn that passed while idle is returned once");
        }
    }
}
