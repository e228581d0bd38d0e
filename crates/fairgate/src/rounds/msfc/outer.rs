//! The outer round of msfc: priority classes by turns, in the ratio of their quanta.
//!
//! Class `p` gets `quantum * ratio^p` bytes in a turn. If the ratio is *flow-aware* it gets that for each of its `n` active
//! flows, so that flows share 1 : r : r^2 : ... by their classes, and a class with many flows is no worse off for it
//! (section 3.3 of the thesis, where it is). A turn of `n` flows' worth would have the others wait, so turns are
//! scaled: all are divided by the largest power of two that leaves the class with the least, of those that have a backlog
//! when the turn begins, one quantum. That a shift does, over at most 16 classes.

use crate::rounds::codel_flows::Flow;
use crate::structures::ActiveList;

use super::config::{Config, MAX_PRIOS};

/// A priority class.
#[derive(Clone, Copy, Debug)]
struct Class {
    /// Bytes that it may still send in this turn.
    deficit: i64,
    /// Bytes that each turn gives it, or each flow of it.
    quantum: i64,
    /// `ratio^p`.
    factor: u64,
    /// Its inner round.
    round: ActiveList,
}

/// All classes, and whose turn it is.
#[derive(Debug)]
pub(super) struct Classes {
    all: [Class; MAX_PRIOS as usize],
    /// A bit for each class with flows in its round.
    backlogged: u16,
    /// The class whose turn it is.
    serving: u8,
    flow_aware: bool,
}

impl Classes {
    /// Idle, with quanta that grow by the ratio.
    pub(super) fn new(config: &Config) -> Classes {
        let idle = Class {
            deficit: 0,
            quantum: 0,
            factor: 1,
            round: ActiveList::new(),
        };
        let mut classes = Classes {
            all: [idle; MAX_PRIOS as usize],
            backlogged: 0,
            serving: 0,
            flow_aware: false,
        };
        classes.change(config);
        classes
    }

    /// Takes over quanta and ratio, in operation.
    pub(super) fn change(&mut self, config: &Config) {
        let mut factor = 1;
        for class in &mut self.all[..usize::from(config.prios)] {
            class.factor = factor;
            class.quantum = (u64::from(config.quantum) * factor) as i64;
            factor = factor.saturating_mul(config.ratio.into());
        }
        self.flow_aware = config.flow_aware;
    }

    /// Appends an idle flow to the round of its class.
    #[inline]
    pub(super) fn activate(&mut self, class: u8, flow: u32, flows: &mut [Flow]) {
        self.all[usize::from(class)].round.push_back(flow, flows);
        self.backlogged |= 1 << class;
    }

    /// Goes on to a class that may send. False: all are empty.
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

    /// The next class's turn, by number.
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

    /// Bytes that the class being served gets for all of its flows. The greatest quantum and number of flows give 2^46.
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

    /// The inner round of the class being served.
    #[inline]
    pub(super) fn round(&mut self) -> &mut ActiveList {
        &mut self.serving().round
    }

    /// The class being served sent so many bytes.
    #[inline]
    pub(super) fn sent(&mut self, bytes: u32) {
        self.serving().deficit -= i64::from(bytes);
    }

    /// The class being served was found empty.
    #[inline]
    pub(super) fn emptied(&mut self) {
        self.serving().deficit = 0;
        self.backlogged &= !(1 << self.serving);
    }

    /// Moves the first flow of the class being served to another class.
    pub(super) fn move_first(&mut self, to: u8, flows: &mut [Flow]) {
        if let Some(flow) = self.round().pop_front(flows) {
            self.activate(to, flow, flows);
        }
    }

    /// How many classes may have flows.
    pub(super) fn backlogged(&self) -> u32 {
        self.backlogged.count_ones()
    }

    /// The number of the class whose turn it is.
    pub(super) fn number(&self) -> u8 {
        self.serving
    }

    /// How many flows are in the rounds of all classes.
    pub(super) fn active_flows(&self) -> u32 {
        self.all.iter().map(|class| class.round.len()).sum()
    }
}
