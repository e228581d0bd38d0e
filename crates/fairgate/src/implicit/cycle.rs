//! A cycle of flows, some of which have nothing to send: the next one that has is found in constant time.
//!
//! ```text
//!   ring   ... f7  f2  f9  f4  f1  f3 ...    each flow at the turn that it was given
//!   busy   ...  .   .   1   0   0   1 ...    a bit for each turn, and one for each 64 bits
//!                       ^first          ^end
//! ```
//!
//! Turns count up and never wrap. A flow joins at the end and stays until its turn comes; flows whose turn passes while
//! they are idle have left the cycle by that, without being looked at (PDRR, section 3.3). Whether a flow is in the cycle
//! is one comparison: its turn is not before `first`.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Bits of a word.
const WORD: usize = 64;

/// The turn of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn(u64);

impl Turn {
    /// Of a flow that is in no cycle.
    pub(crate) const NONE: Turn = Turn(0);
    /// Of a flow that has been taken out to be served, and counts as in the cycle meanwhile.
    pub(crate) const NOW: Turn = Turn(u64::MAX);
}

/// The cycle. What passed stays readable until `swept`, so that what belongs to flows that left can be given back bit by
/// bit. Flows that are taken out with nothing before them to be swept are not.
#[derive(Debug)]
pub(crate) struct Cycle {
    ring: Box<[u32]>,
    /// A bit for each place of the ring.
    busy: Box<[u64]>,
    /// Level by level: a bit for each word of the level below.
    above: Vec<Box<[u64]>>,
    swept: u64,
    first: u64,
    end: u64,
}

impl Cycle {
    /// For up to `flows` flows at a time.
    pub(crate) fn new(flows: u32) -> Cycle {
        // Room for the flow that joins before the sweep has passed the one that left.
        let places = (flows as usize + 2).next_power_of_two().max(WORD);
        let busy: Box<[u64]> = vec![0; places / WORD].into();
        let mut above = Vec::new();
        let mut bits = busy.len();
        while bits > 1 {
            bits = bits.div_ceil(WORD);
            above.push(vec![0; bits].into());
        }
        Cycle {
            ring: vec![0; places].into(),
            busy,
            above,
            swept: 1,
            first: 1,
            end: 1,
        }
    }

    /// How many flows are in the cycle.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.end - self.first
    }

    /// Whether a flow with this turn is in the cycle.
    #[inline]
    pub(crate) fn contains(&self, turn: Turn) -> bool {
        turn.0 >= self.first
    }

    /// A flow joins at the end. Before it, [`sweep`](Cycle::sweep) was called.
    #[inline]
    pub(crate) fn push(&mut self, flow: u32, is_busy: bool) -> Turn {
        let turn = self.end;
        debug_assert!(
            turn - self.swept < self.ring.len() as u64,
            "there is room for all flows"
        );
        self.end += 1;
        let place = self.place(turn);
        self.ring[place] = flow;
        if is_busy {
            self.set(place);
        }
        Turn(turn)
    }

    /// The flow with this turn, which is in the cycle, has something to send.
    #[inline]
    pub(crate) fn set_busy(&mut self, turn: Turn) {
        self.set(self.place(turn.0));
    }

    /// The flow with this turn, which is in the cycle, has nothing to send any more.
    #[inline]
    pub(crate) fn set_idle(&mut self, turn: Turn) {
        self.clear(self.place(turn.0));
    }

    /// Goes on to the next flow that has something to send and takes it out; the idle ones before it leave. If there is
    /// none, all leave.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u32> {
        let from = self.place(self.first);
        let Some(place) = self.find(from) else {
            self.first = self.end;
            return None;
        };
        let passed = (place.wrapping_sub(from) & (self.ring.len() - 1)) as u64;
        self.swept += u64::from(passed == 0 && !self.has_passed());
        self.first += 1 + passed;
        self.clear(place);
        Some(self.ring[place])
    }

    /// A flow whose turn has passed, and the turn; those that passed idle are shown once each. Called before each
    /// `push`, so that no more of them are kept than there are flows.
    #[inline]
    pub(crate) fn sweep(&mut self) -> Option<(u32, Turn)> {
        self.has_passed().then(|| {
            let turn = self.swept;
            self.swept += 1;
            (self.ring[self.place(turn)], Turn(turn))
        })
    }

    /// Whether [`sweep`](Cycle::sweep) has a flow to show.
    #[inline]
    pub(crate) fn has_passed(&self) -> bool {
        self.swept < self.first
    }

    #[inline]
    fn place(&self, turn: u64) -> usize {
        turn as usize & (self.ring.len() - 1)
    }

    #[inline]
    fn set(&mut self, place: usize) {
        let word = &mut self.busy[place / WORD];
        let known = *word;
        *word |= 1 << (place % WORD);
        if known == 0 {
            self.set_above(place / WORD);
        }
    }

    #[cold]
    #[inline(never)]
    fn set_above(&mut self, mut place: usize) {
        for level in &mut self.above {
            let word = &mut level[place / WORD];
            let known = *word;
            *word |= 1 << (place % WORD);
            if known != 0 {
                return;
            }
            place /= WORD;
        }
    }

    #[inline]
    fn clear(&mut self, place: usize) {
        let word = &mut self.busy[place / WORD];
        *word &= !(1 << (place % WORD));
        if *word == 0 {
            self.clear_above(place / WORD);
        }
    }

    #[cold]
    #[inline(never)]
    fn clear_above(&mut self, mut place: usize) {
        for level in &mut self.above {
            let word = &mut level[place / WORD];
            *word &= !(1 << (place % WORD));
            if *word != 0 {
                return;
            }
            place /= WORD;
        }
    }

    /// The first busy place from `from` on, round the ring.
    #[inline]
    fn find(&self, from: usize) -> Option<usize> {
        let word = self.busy[from / WORD] >> (from % WORD);
        if word != 0 {
            return Some(from + word.trailing_zeros() as usize);
        }
        self.find_farther(from / WORD + 1)
    }

    /// The first busy place from word `from` on, or else from the start of the ring.
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

    /// The first busy place from word `from` on: up until a level has a bit, and down again.
    fn find_above(&self, mut from: usize) -> Option<usize> {
        for (height, level) in self.above.iter().enumerate() {
            if from / WORD >= level.len() {
                return None;
            }
            let word = level[from / WORD] >> (from % WORD);
            if word != 0 {
                let mut place = from + word.trailing_zeros() as usize;
                for below in self.above[..height].iter().rev() {
                    place = place * WORD + below[place].trailing_zeros() as usize;
                }
                return Some(place * WORD + self.busy[place].trailing_zeros() as usize);
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
        /// Against a deque that is searched; flows join, get busy, idle, and are visited; one and several levels of bits.
        #[test]
        fn a_cycle_behaves_like_a_searched_deque(
            flows in prop_oneof![1u32..9, 60u32..70, 5000u32..5010],
            fill in any::<bool>(),
            operations in prop::collection::vec((0u8..5, any::<u32>()), 0..400),
        ) {
            let mut cycle = Cycle::new(flows);
            let mut turns = vec![Turn::NONE; flows as usize];
            let mut model: VecDeque<(u32, bool)> = VecDeque::new();
            // Turns that passed idle and are to be shown, and those shown.
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
                    (2, Some(place)) => {
                        cycle.set_busy(turns[flow as usize]);
                        model[place].1 = true;
                    }
                    (3, Some(place)) => {
                        cycle.set_idle(turns[flow as usize]);
                        model[place].1 = false;
                    }
                    (4, _) => {
                        let expected = model.iter().position(|(_, is_busy)| *is_busy);
                        let leaving = expected.map_or(model.len(), |place| place + 1);
                        let next = expected.map(|place| model[place].0);
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
            prop_assert!(shown.is_sorted_by_key(|(_, turn)| *turn), "no turn is shown twice");
            shown.retain(|passed| idle.contains(passed));
            prop_assert_eq!(shown, idle, "each turn that passed idle is shown once");
        }
    }
}
