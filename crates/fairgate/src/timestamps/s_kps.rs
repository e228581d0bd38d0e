//! Simple KPS: WF2Q+ with rounded time stamps in interleaved stratified timer wheels (Karsten, "SI-WF2Q",
//! Infocom 2006; "Approximation of Generalized Processor Sharing with Interleaved Stratified Timer Wheels",
//! IEEE/ACM Transactions on Networking 18(3), 2010).
//!
//! **Idea.** Flows are grouped by the time that their longest packet takes at their rate. Each group has a
//! clock with about one tick in this time. A flow's start is rounded down to a tick of its group, and its
//! finish is rounded up. A flow is *eligible* from its rounded start. Of the eligible flows the one with the
//! least rounded finish goes first, as in WF2Q+. With this rounding, a flow that is not overdue can only be
//! in one of four positions ahead of V:
//!
//! ```text
//!          last tick     V      next tick      the one after      the third
//!   ───────────┼─────────┴──────────┼──────────────────┼──────────────────┼───── virtual time
//!    starts at or before it:     DUE_FIRST        DUE_SECOND                     where its finish lies
//!    starts at the next tick:                  WAITING_SECOND     WAITING_THIRD
//! ```
//!
//! So a group is four lists. When its tick comes, each list moves one position: the first becomes *overdue*,
//! the second becomes the first, and so on. Ticks of different groups never coincide ("interleaved", see
//! `s_kps/ticks.rs`). When V moves, ticks are handled one by one in their order, at most one for each `1/31`
//! of a longest packet's virtual time. The bits of V give the group with the next finish, without a search.
//! Neither cost grows with the number of groups or flows.
//!
//! An overdue flow has its finish at or before V. It is at most one longest packet behind (see the proof), in
//! 64 slots:
//!
//! ```text
//!   overdue    a word, a bit per slot    0000 0010 1100 ... 0000      slot = tick / 2^unit mod 64
//!                                              ^ oldest
//!   groups     words, bit b for the group of bit b of V:
//!              [DUE_FIRST] [DUE_SECOND] [WAITING_SECOND] [WAITING_THIRD]
//! ```
//!
//! The order of selection is: the oldest overdue flow, then the due flow with the least finish. If there is
//! neither, V jumps to the first tick at which a flow waits. The QFQ paper calls the handling of ticks
//! "bookkeeping during transmission": `update` does it after the packet was dequeued, so `select` finds
//! everything in position.
//!
//! **Bound.** Let `w` be the flow's part of the weights' sum `W`, `sigma` the width of the flow's group, and
//! L the longest packet: `T-WFI <= (3 sigma + 2 L) / R`, as in the paper for QFQ. Proof. Let p be a packet
//! with rounded finish d that is unsent at V. Go back to the last time V' at which a packet with a later
//! finish was chosen, or at which V jumped. At V' nothing eligible was due by d. So everything sent since
//! then starts after V' and is due by d: at most `d - V'` over all flows, minus p itself. Hence V <= d + L -
//! l_p. And d is below p's exact finish + sigma, which is at most start + backlog / w. A start is at most 2
//! sigma ahead of V: the flow was eligible one packet (<= sigma) before, by a start rounded down by less than
//! sigma. V moves by L at once, which is the second L.
//!
//! **Deviations.** The articles' texts were not available. This file is built from their abstracts, from what
//! the QFQ paper says about S-KPS (constant work, ticks while a packet is sent, its bound) and from the proof
//! above. QFQ rounds the finish to start + 2 sigma for every packet. Here it is the packet's own finish,
//! rounded up, because with QFQ's rule the proof gives 4 sigma, which is reached by short packets after a
//! long one. Widths are at least 1/31 of the virtual time of the longest packet of all flows. This matters
//! only for flows that have nearly all the weight and packets less than 1/15 as long. It limits the slots,
//! and the ticks per packet to less than 63. The sum of weights includes all flows, busy or idle, as in
//! Linux's QFQ: jumps of V give the rest to the busy flows. A flow whose weight rises may have a start too
//! far ahead for its new group. It waits at most until the tick after the next.
//!
//! **Invariants**, checked after each operation in debug builds: the words tell which lists have flows, and
//! no tick of a group with flows is between the last handled tick and V. A property test compares with exact
//! arithmetic: each flow is in the list for its rounded times, the choice is eligible and has the least
//! finish, and the bound holds.

mod ticks;

use alloc::boxed::Box;

use super::parameters::{class_max_packet, class_weight, max_packet, weights};
use crate::discipline::Variable;
use crate::error::ConfigError;
use crate::registry::{About, Children, Family, Parameter};
use crate::scheduler::{Head, Holds, Scheduler, classes, flows};
use crate::structures::{ActiveList, boxed};
use crate::time::Time;
use crate::timestamps::Share;
use crate::timestamps::virtual_time::{FRACTION, Grain, VirtualTime};

pub use crate::timestamps::virtual_time::Flow;

/// The positions of a group's flows, see the drawing above.
const DUE_FIRST: usize = 0;
const DUE_SECOND: usize = 1;
const WAITING_SECOND: usize = 2;
const WAITING_THIRD: usize = 3;
const POSITIONS: usize = 4;

/// The number of slots for overdue flows: the bits of a word.
const SLOTS: usize = 64;

/// The group of the finest grain. One byte at the largest weight takes 2^24, which is its width.
const FINEST: u32 = FRACTION - 16 - 1;
/// The group of the coarsest grain. The longest packet at weight 1 takes 2^57, which is its width.
const COARSEST: u32 = FRACTION + 17 - 1;
const GROUPS: usize = (COARSEST - FINEST + 1) as usize;

/// In half widths: the longest packet takes at most two less than there are slots for overdue flows.
const GRAIN: Grain = Grain {
    finest: FINEST,
    reach: SLOTS as u64 - 2,
};

/// Further ahead than any tick.
const FAR: u64 = 1 << 62;

/// The scheduler: 2.5 KB in addition to the flows.
#[derive(Debug)]
pub struct SKps {
    time: VirtualTime,
    /// The next tick to handle. No tick of a group with flows comes before it. It is always after V.
    next_tick: u64,
    /// A bit for each group that has flows, for each position.
    groups: [u64; POSITIONS],
    /// A bit for each slot of overdue flows.
    overdue: u64,
    /// The number of the oldest overdue tick, in ticks of `2^unit`.
    oldest: u64,
    /// The grain of the overdue slots: the finest in use when there were no overdue flows.
    unit: u32,
    /// The list whose first flow was selected.
    selected: usize,
    /// The slots of overdue flows, then the positions of each group.
    lists: Box<[ActiveList; SLOTS + GROUPS * POSITIONS]>,
}

#[inline]
const fn list_of(bit: u32, position: usize) -> usize {
    SLOTS + (bit - FINEST) as usize * POSITIONS + position
}

impl SKps {
    /// Puts a flow into its list. Its first packet has `length` bytes.
    #[inline]
    fn insert<F: Holds<State = Flow>>(&mut self, flows: &mut [F], index: u32, length: u32) {
        let flow = flows[index as usize].state_mut();
        self.time.see(&mut flow.time, length);
        let v = self.time.low();
        let bit = (flow.time.sigma() - 1).max(self.time.grain());
        let width = ticks::width(bit);
        let last = ticks::last(v, bit);
        let mut start = ticks::last(flow.time.start, bit);
        if start.wrapping_sub(last) as i64 > width as i64 {
            // Its group was coarser before its weight changed. (Or its packet's time was rounded.)
            start = last.wrapping_add(width);
            flow.time.start = start.wrapping_add(width - 1);
        }
        let finish = ticks::first(flow.time.start.wrapping_add(flow.time.cost(length.max(1))), bit);
        let waits = usize::from(start.wrapping_sub(last) == width);
        // The finish is this many ticks after the last one.
        let due = (finish.wrapping_sub(last) as i64 >> (bit + 1)).min(2 + waits as i64);
        debug_assert!(waits == 0 || due >= 2);
        let list = if due > 0 {
            let position = due as usize - 1 + waits;
            self.groups[position] |= 1 << bit;
            let next = last.wrapping_add(width);
            if (next.wrapping_sub(self.next_tick) as i64) < 0 {
                self.next_tick = next;
            }
            list_of(bit, position)
        } else {
            self.slot(finish)
        };
        self.lists[list].push_back(index, flows);
    }

    /// Returns the slot for a flow that should have finished at `tick`. For a while after weights have
    /// changed, it may be beyond the last slot. Then only the order is lost.
    #[inline]
    fn slot(&mut self, tick: u64) -> usize {
        if self.overdue == 0 {
            self.unit = self.time.grain();
            self.oldest = tick >> self.unit;
        }
        let mask = u64::MAX >> self.unit;
        let age = (tick >> self.unit).wrapping_sub(self.oldest) & mask;
        let age = match age {
            0..64 => age,
            _ if age > mask / 2 => 0,
            _ => 63,
        };
        let slot = (self.oldest.wrapping_add(age) % SLOTS as u64) as usize;
        self.overdue |= 1 << slot;
        slot
    }

    /// Returns the list with the least finish, of the groups with a first or a second list.
    #[inline(never)]
    fn soonest_due(&self, first: u64, second: u64) -> usize {
        let v = self.time.low();
        let first = ticks::soonest(first, v, 0);
        let second = ticks::soonest(second, v, 1);
        if first.distance <= second.distance {
            list_of(first.bit, DUE_FIRST)
        } else {
            list_of(second.bit, DUE_SECOND)
        }
    }

    /// Handles the ticks up to V.
    #[inline]
    fn tick<F: Holds<State = Flow>>(&mut self, flows: &mut [F]) {
        if self.time.low().wrapping_sub(self.next_tick) as i64 >= 0 {
            self.handle_ticks(flows);
        }
    }

    /// Not inlined, because most packets end between two ticks.
    #[inline(never)]
    fn handle_ticks<F: Holds<State = Flow>>(&mut self, flows: &mut [F]) {
        let v = self.time.low();
        while v.wrapping_sub(self.next_tick) as i64 >= 0 {
            let tick = self.next_tick;
            self.turn(tick, flows);
            let groups = self.groups.iter().fold(0, |all, groups| all | groups);
            self.next_tick = if groups == 0 {
                v.wrapping_add(FAR)
            } else {
                tick.wrapping_add(ticks::soonest(groups, tick, 0).distance)
            };
        }
    }

    /// Turns the wheel of the group that ticks at `tick`: its flows move one position. The group may be
    /// empty.
    fn turn<F: Holds<State = Flow>>(&mut self, tick: u64, flows: &mut [F]) {
        let group = tick & tick.wrapping_neg();
        let [due_first, due_second, second, third] = self.groups.map(|groups| groups & group);
        if due_first | due_second | second | third == 0 {
            return;
        }
        for groups in self.groups.iter_mut() {
            *groups &= !group;
        }
        self.groups[DUE_FIRST] |= due_second | second;
        self.groups[DUE_SECOND] |= third;
        let base = list_of(tick.trailing_zeros(), 0);
        if due_first != 0 {
            let slot = self.slot(tick);
            let mut overdue = core::mem::replace(&mut self.lists[base + DUE_FIRST], ActiveList::new());
            self.lists[slot].append(&mut overdue, flows);
        }
        let mut first = core::mem::replace(&mut self.lists[base + DUE_SECOND], ActiveList::new());
        let mut started = core::mem::replace(&mut self.lists[base + WAITING_SECOND], ActiveList::new());
        first.append(&mut started, flows);
        self.lists[base + DUE_FIRST] = first;
        self.lists[base + DUE_SECOND] =
            core::mem::replace(&mut self.lists[base + WAITING_THIRD], ActiveList::new());
    }

    /// Whether the words tell which lists have flows, and no tick was skipped.
    fn is_consistent(&self) -> bool {
        let has = |list: usize| self.lists[list].len() > 0;
        let groups = self.groups.iter().fold(0, |all, groups| all | groups);
        let v = self.time.low();
        let ahead = self.next_tick.wrapping_sub(v);
        (0..SLOTS).all(|slot| has(slot) == (self.overdue >> slot & 1 == 1))
            && (FINEST..=COARSEST).all(|bit| {
                (0..POSITIONS)
                    .all(|position| has(list_of(bit, position)) == (self.groups[position] >> bit & 1 == 1))
            })
            && (1..=FAR).contains(&ahead)
            && ahead <= ticks::soonest(groups, v, 0).distance
    }
}

impl Scheduler for SKps {
    const NAME: &'static str = "s_kps";
    type Share = Share;
    type Settings = ();
    type Flow = Flow;

    fn new((): &(), origin: u64) -> Result<SKps, ConfigError> {
        Ok(SKps {
            time: VirtualTime::new(origin, GRAIN),
            next_tick: origin.wrapping_add(FAR),
            groups: [0; POSITIONS],
            overdue: 0,
            oldest: 0,
            unit: FINEST,
            selected: 0,
            lists: boxed((0..SLOTS + GROUPS * POSITIONS).map(|_| ActiveList::new())),
        })
    }

    fn add_flow(&mut self, share: &Share) -> Result<Flow, ConfigError> {
        self.time.add_flow(share)
    }

    fn change_share(&mut self, flow: &mut Flow, share: &Share) {
        self.time.change_share(&mut flow.time, share);
    }

    #[inline]
    fn activate<F: Holds<State = Flow>>(&mut self, flows: &mut [F], index: u32, head: Head, _now: Time) {
        flows[index as usize].state_mut().time.wake(&self.time);
        self.insert(flows, index, head.length);
        debug_assert!(self.is_consistent());
    }

    #[inline]
    fn select<F: Holds<State = Flow>>(&mut self, flows: &mut [F], _now: Time) -> Option<u32> {
        if self.overdue == 0 {
            if self.groups[DUE_FIRST] | self.groups[DUE_SECOND] == 0 {
                let waiting = self.groups[WAITING_SECOND] | self.groups[WAITING_THIRD];
                if waiting == 0 {
                    return None;
                }
                self.time
                    .jump(ticks::soonest(waiting, self.time.low(), 0).distance);
                self.tick(flows);
            }
            let (first, second) = (self.groups[DUE_FIRST], self.groups[DUE_SECOND]);
            let due = first | second;
            self.selected = if due & (due - 1) == 0 {
                // There is only one group. Its first list is due before its second, and there is nothing else
                // to compare.
                list_of(due.trailing_zeros(), usize::from(first == 0))
            } else {
                self.soonest_due(first, second)
            };
        } else {
            let turned = self.overdue.rotate_right((self.oldest % SLOTS as u64) as u32);
            self.oldest = self.oldest.wrapping_add(turned.trailing_zeros().into());
            self.selected = (self.oldest % SLOTS as u64) as usize;
        }
        debug_assert!(self.is_consistent());
        self.lists[self.selected].front()
    }

    #[inline]
    fn update<F: Holds<State = Flow>>(
        &mut self,
        flows: &mut [F],
        index: u32,
        sent: u32,
        next: Option<Head>,
        _now: Time,
    ) {
        let list = &mut self.lists[self.selected];
        let first = list.pop_front(flows);
        debug_assert_eq!(first, Some(index), "only the flow selected is updated");
        if list.len() == 0 {
            if let Some(position) = self.selected.checked_sub(SLOTS) {
                self.groups[position % POSITIONS] &= !(1 << (position / POSITIONS + FINEST as usize));
            } else {
                self.overdue &= !(1 << self.selected);
            }
        }
        let time = &mut flows[index as usize].state_mut().time;
        time.start = time.start.wrapping_add(time.cost(sent));
        match next {
            Some(head) => self.insert(flows, index, head.length),
            None => time.rest(&self.time),
        }
        self.time.serve(sent);
        self.tick(flows);
        debug_assert!(self.is_consistent());
    }

    fn clear<F: Holds<State = Flow>>(&mut self, flows: &mut [F]) {
        for list in self.lists.iter_mut() {
            while list.pop_front(flows).is_some() {}
        }
        for flow in flows {
            flow.state_mut().time.restart(&self.time);
        }
        self.groups = [0; POSITIONS];
        self.overdue = 0;
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("virtual_time", Variable::Integer(self.time.bytes()));
    }
}

/// The parameters over hashed flows that users can set.
pub const PARAMETERS: &[Parameter<flows::SettingsOf<SKps>>] =
    &[flows::flows(), flows::limit(), weights(), max_packet()];

/// The discipline over hashed flows in the registry.
pub static DESCRIPTION: flows::DescriptionOf<SKps> = flows::describe::<SKps>(
    About {
        name: SKps::NAME,
        family: Family::Timestamps,
        summary: "Simple KPS (Karsten 2006, 2010): WF2Q+ with rounded time stamps in interleaved timer \
            wheels, constant work",
        when: "To compare with qfq, which is faster; built from what the QFQ paper says, not from the \
            articles. Flows are hashed into the queues.",
        children: Children::None,
    },
    PARAMETERS,
)
.with_memory(|flat| 72 * u64::from(flat.config.flows) + 4 * u64::from(flat.config.limit));

/// The discipline over classes in the registry.
pub static CLASSFUL: classes::DescriptionOf<SKps> = classes::describe::<SKps>(
    About {
        name: SKps::NAME,
        family: Family::Timestamps,
        summary: "Simple KPS over classes, each with a weight and any discipline inside",
        when: "To share a link in given proportions with tight delay guarantees.",
        children: Children::Classes,
    },
    &[],
    &[class_weight(), class_max_packet()],
);

crate::scheduler::node!(SKps);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamps::testing::*;
    use proptest::prelude::*;

    /// Returns the greatest odd multiple of `width / 2` that is at most `time`.
    fn floor(time: i128, width: i128) -> i128 {
        (time - width / 2).div_euclid(width) * width + width / 2
    }

    fn ceiling(time: i128, width: i128) -> i128 {
        -floor(-time, width)
    }

    /// Returns the width of a flow's group, by doubling.
    fn width(model: &Model, flow: usize) -> i128 {
        let share = model.flows[flow].share;
        let mut width = 2 << FINEST;
        while width * i128::from(share.weight) < i128::from(share.max_packet) * ONE
            || 31 * width < model.of_longest()
        {
            width *= 2;
        }
        width
    }

    fn rule(model: &Model, flow: usize, length: u32) -> Stamp {
        let width = width(model, flow);
        let latest = floor(model.now, width) + width;
        let mut exact = model.flows[flow].start;
        if floor(exact, width) > latest {
            exact = latest + width - 1;
        }
        let rounded_start = floor(exact, width);
        let rounded_finish = ceiling(exact + model.cost(flow, length), width);
        Stamp {
            exact,
            rounded_start,
            rounded_finish: rounded_finish.min(rounded_start + 2 * width),
        }
    }

    /// Checks that each flow is in the list for its rounded times, and that V is the model's V.
    fn compare(scheduler: &SKps, flows: &[Flow], model: &Model) -> Result<(), TestCaseError> {
        prop_assert!(scheduler.is_consistent());
        prop_assert_eq!(scheduler.time.low(), model.now as u64);
        let mut links = flows.to_vec();
        let mut lists = scheduler.lists.clone();
        let mut found = vec![None; flows.len()];
        for (position, list) in lists.iter_mut().enumerate() {
            while let Some(flow) = list.pop_front(&mut links) {
                prop_assert_eq!(found[flow as usize].replace(position), None, "in two lists");
            }
        }
        for (index, flow) in model.flows.iter().enumerate() {
            let Some(stamp) = flow.stamp else {
                prop_assert_eq!(found[index], None);
                continue;
            };
            prop_assert_eq!(flows[index].time.start, flow.start as u64);
            if stamp.rounded_finish <= model.now {
                prop_assert!(
                    found[index].is_some_and(|list| list < SLOTS),
                    "flow {index} is overdue"
                );
                continue;
            }
            // The lowest bit of a tick tells its group.
            let bit = stamp.rounded_finish.trailing_zeros();
            let width = 2 << bit;
            let next = floor(model.now, width) + width;
            let waits = usize::from(stamp.rounded_start > model.now);
            let position = ((stamp.rounded_finish - next) / width) as usize + waits;
            prop_assert_eq!(found[index], Some(list_of(bit, position)), "flow {}", index);
        }
        Ok(())
    }

    proptest! {
        /// Compares choice, lists and V with exact arithmetic, while weights change and packets are longer
        /// than configured.
        #[test]
        fn it_is_wf2q_plus_with_rounded_stamps(
            (shares, operations) in operations(),
            origin in origin(),
            steady in any::<bool>(),
        ) {
            // After a change, and also after a packet longer than configured, overdue flows may be further
            // apart than the slots reach. Then any of them may go first.
            let is_longer = |operation: &Operation| match *operation {
                Operation::Arrive(flow, length) => {
                    length > shares[flow].max_packet
                }
                _ => false,
            };
            let changes = !steady || operations.iter().any(is_longer);
            let is_right = |choice: &Choice| {
                let finish = choice.stamp.rounded_finish;
                let is_overdue = finish <= choice.now && changes;
                choice.stamp.rounded_start <= choice.now && (finish == choice.least || is_overdue)
            };
            against_the_model::<SKps>((&shares, &operations), origin, steady, rule, is_right, compare)?;
        }

        /// Checks the published bound for every packet.
        #[test]
        fn no_packet_is_later_than_the_bound((shares, events) in traffic(1514), origin in origin()) {
            let sigmas = |model: &Model, flow| 3 * width(model, flow);
            check_t_wfi::<SKps>((&shares, &events), origin, sigmas, rule)?;
        }
    }
}
