//! The outer round robin of msfc: priority classes take turns, in the ratio of their quanta.
//!
//! Class `p` gets `quantum * ratio^p` bytes in a turn. If the ratio is *flow-aware*, the class gets that for
//! each of its `n` active flows. So flows share 1 : r : r^2 : ... by their classes, and a class with many
//! flows has no disadvantage (it has one in section 3.3 of the thesis). A turn for `n` flows would delay the
//! other classes, so turns are scaled. All are divided by the largest power of two that leaves one quantum to
//! the class with the smallest turn of all classes that are backlogged when the turn begins. This is a shift,
//! over at most 16 classes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::rounds::codel_flows::Flow;
use crate::structures::{ActiveList, boxed};

use super::config::{Config, MAX_PRIOS};

/// A priority class.
#[derive(Clone, Copy, Debug)]
struct Class {
    /// The bytes that it may still send in this turn.
    deficit: i64,
    /// The bytes that it gets in each turn, or per flow.
    quantum: i64,
    /// `ratio^p`.
    factor: u64,
    /// The active list of its flows.
    round: ActiveList,
}

/// All classes, and the class that has the turn.
#[derive(Debug)]
pub(super) struct Classes {
    all: Box<[Class; MAX_PRIOS as usize]>,
    /// One bit for each class with flows in its list.
    backlogged: u16,
    /// The class that has the turn.
    serving: u8,
    flow_aware: bool,
    /// The flows in the lists of all classes.
    active: u32,
}

impl Classes {
    /// Idle classes, whose quanta grow by the ratio.
    pub(super) fn new(config: &Config) -> Classes {
        let idle = Class {
            deficit: 0,
            quantum: 0,
            factor: 1,
            round: ActiveList::new(),
        };
        let mut classes = Classes {
            all: boxed(core::iter::repeat_n(idle, MAX_PRIOS as usize)),
            backlogged: 0,
            serving: 0,
            flow_aware: false,
            active: 0,
        };
        classes.change(config);
        classes
    }

    /// Changes quanta and ratio in operation.
    pub(super) fn change(&mut self, config: &Config) {
        let mut factor = 1;
        for class in &mut self.all[..usize::from(config.prios)] {
            class.factor = factor;
            class.quantum = (u64::from(config.quantum) * factor) as i64;
            factor = factor.saturating_mul(config.ratio.into());
        }
        self.flow_aware = config.is_flow_aware();
    }

    /// Appends an idle flow to the list of its class.
    #[inline]
    pub(super) fn activate(&mut self, class: u8, flow: u32, flows: &mut [Flow]) {
        self.all[usize::from(class)].round.push_back(flow, flows);
        self.active += 1;
        self.backlogged |= 1 << class;
    }

    /// Removes all flows from the lists of all classes, and returns them by ascending index.
    pub(super) fn take_all(&mut self, flows: &mut [Flow]) -> Vec<u32> {
        let of_class = |class: &mut Class| core::iter::from_fn(|| class.round.pop_front(flows)).collect();
        let mut all: Vec<u32> = self.all.iter_mut().flat_map::<Vec<u32>, _>(of_class).collect();
        all.sort_unstable();
        all
    }

    /// Advances to a class that may send. Returns false if all are empty.
    #[inline]
    pub(super) fn find_turn(&mut self) -> bool {
        while self.backlogged != 0 {
            if self.serving().deficit > 0 {
                return true;
            }
            self.next_turn();
        }
        false
    }

    /// Gives the turn to the next class, by number.
    #[inline]
    fn next_turn(&mut self) {
        let higher = self.backlogged & (u16::MAX << self.serving << 1);
        let candidates = if higher != 0 { higher } else { self.backlogged };
        self.serving = candidates.trailing_zeros() as u8;
        let bytes = if self.flow_aware {
            self.flow_aware_turn()
        } else {
            self.serving().quantum
        };
        self.serving().deficit += bytes;
    }

    /// The bytes that the class with the turn gets for all of its flows. The largest quantum and number of
    /// flows give 2^46.
    fn flow_aware_turn(&mut self) -> i64 {
        let mut least = u64::MAX;
        let mut rest = self.backlogged;
        while rest != 0 {
            let class = &self.all[rest.trailing_zeros() as usize];
            least = least.min(class.factor * u64::from(class.round.len().max(1)));
            rest &= rest - 1;
        }
        let class = self.serving();
        (class.quantum * i64::from(class.round.len().max(1))) >> least.ilog2()
    }

    #[inline]
    fn serving(&mut self) -> &mut Class {
        &mut self.all[usize::from(self.serving)]
    }

    /// The active list of the class that has the turn.
    #[inline]
    pub(super) fn round(&mut self) -> &mut ActiveList {
        &mut self.serving().round
    }

    /// Notes that the class with the turn sent `bytes` bytes.
    #[inline]
    pub(super) fn sent(&mut self, bytes: u32) {
        self.serving().deficit -= i64::from(bytes);
    }

    /// Notes that the class with the turn is empty.
    #[inline]
    pub(super) fn emptied(&mut self) {
        self.serving().deficit = 0;
        self.backlogged &= !(1 << self.serving);
    }

    /// Removes the first flow of the class with the turn from its list.
    #[inline]
    pub(super) fn retire_first(&mut self, flows: &mut [Flow]) -> Option<u32> {
        let flow = self.round().pop_front(flows)?;
        self.active -= 1;
        Some(flow)
    }

    /// Moves the first flow of the class with the turn to another class.
    pub(super) fn move_first(&mut self, to: u8, flows: &mut [Flow]) {
        if let Some(flow) = self.retire_first(flows) {
            self.activate(to, flow, flows);
        }
    }

    /// The number of classes with flows in their lists.
    pub(super) fn backlogged(&self) -> u32 {
        self.backlogged.count_ones()
    }

    /// The number of the class that has the turn.
    pub(super) fn number(&self) -> u8 {
        self.serving
    }

    /// The number of flows in the lists of all classes.
    #[inline]
    pub(super) fn active_flows(&self) -> u32 {
        self.active
    }
}
