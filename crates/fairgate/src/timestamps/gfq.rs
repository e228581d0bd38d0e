//! Grouped fair queueing: WF2Q+ between groups of flows, calendar queues within a group (Stephens, Bennett,
//! Zhang, "Implementing Scheduling Algorithms in High-Speed Networks", IEEE Journal on Selected Areas in
//! Communications 17(6), 1999).
//!
//! **Idea.** Flows whose longest packets take a similar time at their rates form a group. Within a group,
//! flows are sorted into a calendar by their start time rounded down to a slot. The rounded finish time is
//! the rounded start time plus a length that is equal for all flows of the group. So the first flow of a
//! group has both the least start and the least finish time, and only the first flows have to be compared: of
//! the groups whose first flow is eligible, the one with the least finish time goes first. The work grows
//! with the number of groups that have flows and not with the number of flows. There are 34 groups at most,
//! and few in practice.
//!
//! ```text
//!   occupied   a bit for each group     0000 0100 0010 ... 0000
//!   a group    the rounded start of its first flow contains the slot:
//!              start >> shift           ........ ........ ..sss sss      slot = 6 bits of 64
//!   slots      a bit for each slot,     0000 0000 0010 ... 1011
//!              rotated: the first is 0                        ^ first flow   (a list in each slot)
//! ```
//!
//! **Slots.** Let sigma be the group's length: the least power of two that is at least the time of a longest
//! packet. A slot is `s = sigma / 8`, but at least 1/32 of the time that the longest packet of all flows
//! takes from V (L below). So the starts of a group are spread over `2 sigma + 2 s + L` at most, which is 50
//! of the 64 slots, or 52 with rounding. The rounded finish is the rounded start + sigma + s. It is never
//! before the exact finish.
//!
//! **Bound.** `T-WFI <= (2 sigma + 2 s + 2 L) / R`. As for [`s_kps`](super::s_kps), if a packet p with
//! rounded finish d is unsent, then `V <= d + L - l_p`. d is at most p's exact finish + sigma + s minus the
//! time of p itself. A start is at most sigma + s ahead of V. V moves by L at once. The QFQ paper credits GFQ
//! with sigma less than QFQ, that is `2 sigma + 2 L`. Smaller slots come closer to this bound and cost
//! memory.
//!
//! **Deviations.** The article's text was not available. The QFQ paper describes it as "variable time-stamp
//! rounding, flows split into groups, a calendar queue to sort flows within a group", linear in the number of
//! groups. The number of slots per sigma, the finish and the size of the calendar follow from the proof
//! above. The sum of weights includes all flows, busy or idle. A flow whose weight rises may have a start too
//! far ahead for its new group. It is then set to the latest start that the group allows.
//!
//! **Invariants**, checked after each operation in debug builds: the bit words tell which lists have flows,
//! and a group's start is the start of its first slot. A property test compares V, the choice and the bound
//! with exact arithmetic.

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

/// The number of slots of a calendar: the bits of a word.
const SLOTS: usize = 64;

/// Binary logarithm of the number of slots per sigma.
const SLOTS_PER_SIGMA: u32 = 3;

/// Binary logarithm of the least sigma: one byte at the largest weight.
const LEAST: u32 = FRACTION - 16;
/// Binary logarithm of the largest sigma: the longest packet at weight 1.
const LARGEST: u32 = FRACTION + 17;
const GROUPS: usize = (LARGEST - LEAST + 1) as usize;

/// The longest packet takes at most half of the slots of a calendar.
const GRAIN: Grain = Grain {
    finest: LEAST - SLOTS_PER_SIGMA,
    reach: SLOTS as u64 / 2,
};

/// The state of a group that is read for each choice.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// The rounded start of its first flow.
    start: u64,
    /// The rounded finish minus the rounded start.
    length: u64,
    /// A bit for each slot that has flows.
    slots: u64,
    /// Binary logarithm of a slot. It changes only while the group is empty.
    shift: u32,
}

impl Group {
    /// Returns the slots with flows, rotated so that the first slot is bit 0.
    #[inline]
    fn turned(&self) -> u64 {
        self.slots
            .rotate_right((self.start >> self.shift) as u32 % SLOTS as u32)
    }

    /// Returns the slot that starts at `start`.
    #[inline]
    fn slot(&self, start: u64) -> usize {
        (start >> self.shift) as usize % SLOTS
    }
}

/// The scheduler: 27 KB in addition to the flows. The used slots are in the cache.
#[derive(Debug)]
pub struct Gfq {
    time: VirtualTime,
    /// A bit for each group that has flows.
    occupied: u64,
    groups: Box<[Group; GROUPS]>,
    /// The group whose first flow was selected.
    selected: usize,
    /// The lists of each group's slots.
    lists: Box<[[ActiveList; SLOTS]; GROUPS]>,
}

impl Gfq {
    /// Puts a flow into its slot. Its first packet has `length` bytes.
    #[inline]
    fn insert<F: Holds<State = Flow>>(&mut self, flows: &mut [F], index: u32, length: u32) {
        let flow = flows[index as usize].state_mut();
        self.time.see(&mut flow.time, length);
        let sigma = flow.time.sigma();
        let position = (sigma - LEAST) as usize;
        let group = &mut self.groups[position];
        if group.slots == 0 {
            group.shift = self.time.grain().max(sigma - SLOTS_PER_SIGMA);
            group.length = (1 << sigma) + (1 << group.shift);
        }
        let latest = self.time.low().wrapping_add(group.length);
        if flow.time.start.wrapping_sub(latest) as i64 > 0 {
            // Before its weight changed, the flow was in another group.
            flow.time.start = latest;
        }
        let mut start = flow.time.start >> group.shift << group.shift;
        if group.slots == 0 {
            self.occupied |= 1 << position;
            group.start = start;
        } else {
            let ahead = start.wrapping_sub(group.start) as i64 >> group.shift;
            if ahead < 0 {
                // The slot may already be the slot of the last flows. Then only the order within the first
                // slots is lost.
                let room = group.turned().leading_zeros();
                let back = ahead.unsigned_abs().min(room.into());
                start = group.start.wrapping_sub(back << group.shift);
                group.start = start;
            } else if ahead >= SLOTS as i64 {
                start = group.start.wrapping_add((SLOTS as u64 - 1) << group.shift);
            }
        }
        let slot = group.slot(start);
        group.slots |= 1 << slot;
        self.lists[position][slot].push_back(index, flows);
    }

    /// Whether the words match the lists, and the groups' starts are those of their first slots.
    fn is_consistent(&self) -> bool {
        self.groups
            .iter()
            .zip(self.lists.iter())
            .enumerate()
            .all(|(position, (group, lists))| {
                let is_occupied = self.occupied >> position & 1 == 1;
                is_occupied == (group.slots != 0)
                    && (!is_occupied || group.turned() & 1 == 1)
                    && lists
                        .iter()
                        .enumerate()
                        .all(|(slot, list)| (list.len() > 0) == (group.slots >> slot & 1 == 1))
            })
    }
}

impl Scheduler for Gfq {
    const NAME: &'static str = "gfq";
    type Share = Share;
    type Settings = ();
    type Flow = Flow;

    fn new((): &(), origin: u64) -> Result<Gfq, ConfigError> {
        let empty = Group {
            start: 0,
            length: 0,
            slots: 0,
            shift: 0,
        };
        Ok(Gfq {
            time: VirtualTime::new(origin, GRAIN),
            occupied: 0,
            groups: boxed((0..GROUPS).map(|_| empty)),
            selected: 0,
            lists: boxed((0..GROUPS).map(|_| [ActiveList::new(); SLOTS])),
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
    fn select<F: Holds<State = Flow>>(&mut self, _flows: &mut [F], _now: Time) -> Option<u32> {
        let v = self.time.low();
        let mut groups = self.occupied;
        // Relative to V: the finish of the first eligible flow, and start and finish of the flow that will be
        // eligible first.
        let mut least_finish = i64::MAX;
        let mut soonest = (i64::MAX, i64::MAX, 0);
        while groups != 0 {
            let position = groups.trailing_zeros() as usize;
            groups &= groups - 1;
            let group = &self.groups[position];
            let start = group.start.wrapping_sub(v) as i64;
            let finish = start + group.length as i64;
            if start <= 0 && finish < least_finish {
                least_finish = finish;
                self.selected = position;
            }
            // If several start at the same time, the one that finishes first. It is not always in the finest
            // group, because its slots may have been set with a coarser grain.
            if (start, finish) < (soonest.0, soonest.1) {
                soonest = (start, finish, position);
            }
        }
        if least_finish == i64::MAX {
            if self.occupied == 0 {
                return None;
            }
            self.time.jump(soonest.0 as u64);
            self.selected = soonest.2;
        }
        debug_assert!(self.is_consistent());
        let group = &self.groups[self.selected];
        self.lists[self.selected][group.slot(group.start)].front()
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
        let group = &mut self.groups[self.selected];
        let slot = group.slot(group.start);
        let list = &mut self.lists[self.selected][slot];
        let first = list.pop_front(flows);
        debug_assert_eq!(first, Some(index), "only the flow selected is updated");
        if list.len() == 0 {
            group.slots &= !(1 << slot);
            if group.slots == 0 {
                self.occupied &= !(1 << self.selected);
            } else {
                let turned = group.turned().trailing_zeros();
                group.start = group.start.wrapping_add(u64::from(turned) << group.shift);
            }
        }
        let time = &mut flows[index as usize].state_mut().time;
        time.start = time.start.wrapping_add(time.cost(sent));
        match next {
            Some(head) => self.insert(flows, index, head.length),
            None => time.rest(&self.time),
        }
        self.time.serve(sent);
        debug_assert!(self.is_consistent());
    }

    fn clear<F: Holds<State = Flow>>(&mut self, flows: &mut [F]) {
        for list in self.lists.as_flattened_mut() {
            while list.pop_front(flows).is_some() {}
        }
        for flow in flows {
            flow.state_mut().time.restart(&self.time);
        }
        for group in self.groups.iter_mut() {
            group.slots = 0;
        }
        self.occupied = 0;
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("virtual_time", Variable::Integer(self.time.bytes()));
        visit("groups", Variable::Integer(self.occupied.count_ones().into()));
    }
}

/// The parameters over hashed flows that users can set.
pub const PARAMETERS: &[Parameter<flows::SettingsOf<Gfq>>] =
    &[flows::flows(), flows::limit(), weights(), max_packet()];

/// The discipline over hashed flows in the registry.
pub static DESCRIPTION: flows::DescriptionOf<Gfq> = flows::describe::<Gfq>(
    About {
        name: Gfq::NAME,
        family: Family::Timestamps,
        summary: "Grouped fair queueing (Stephens, Bennett, Zhang 1999): WF2Q+ between groups of flows, \
            calendars within",
        when: "To compare with qfq: less delay, and cost by groups; built from what the QFQ paper says, not \
            from the article. Flows are hashed into the queues.",
        children: Children::None,
    },
    PARAMETERS,
)
.with_memory(|flat| 28_000 + 72 * u64::from(flat.config.flows) + 4 * u64::from(flat.config.limit));

/// The discipline over classes in the registry.
pub static CLASSFUL: classes::DescriptionOf<Gfq> = classes::describe::<Gfq>(
    About {
        name: Gfq::NAME,
        family: Family::Timestamps,
        summary: "Grouped fair queueing over classes, each with a weight and any discipline inside",
        when: "To share a link in given proportions among many classes with few different shares.",
        children: Children::Classes,
    },
    &[],
    &[class_weight(), class_max_packet()],
)
.with_memory(|_| 28_000);

crate::scheduler::node!(Gfq);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamps::testing::*;
    use proptest::prelude::*;

    /// Returns the slot of a flow's group, and the length from rounded start to rounded finish.
    fn slot_and_length(model: &Model, flow: usize) -> (i128, i128) {
        let share = model.flows[flow].share;
        let mut sigma = 1 << LEAST;
        while sigma * i128::from(share.weight) < i128::from(share.max_packet) * ONE {
            sigma *= 2;
        }
        let mut slot = sigma / 8;
        while 32 * slot < model.of_longest() {
            slot *= 2;
        }
        (slot, sigma + slot)
    }

    fn rule(model: &Model, flow: usize, _length: u32) -> Stamp {
        let (slot, length) = slot_and_length(model, flow);
        let exact = model.flows[flow].start.min(model.now + length);
        let rounded_start = exact.div_euclid(slot) * slot;
        Stamp {
            exact,
            rounded_start,
            rounded_finish: rounded_start + length,
        }
    }

    proptest! {
        /// Compares the choice and V with exact arithmetic.
        #[test]
        fn it_is_wf2q_plus_with_rounded_stamps((shares, operations) in operations(), origin in origin()) {
            let is_right = |choice: &Choice| {
                let stamp = choice.stamp;
                stamp.rounded_start <= choice.now && stamp.rounded_finish == choice.least
            };
            let check = |scheduler: &Gfq, flows: &[Flow], model: &Model| {
                prop_assert!(scheduler.is_consistent());
                prop_assert_eq!(scheduler.time.low(), model.now as u64);
                for (flow, exact) in flows.iter().zip(&model.flows) {
                    prop_assert_eq!(flow.link.is_in_list(), exact.stamp.is_some());
                    if exact.stamp.is_some() {
                        prop_assert_eq!(flow.time.start, exact.start as u64);
                    }
                }
                Ok(())
            };
            against_the_model((&shares, &operations), origin, true, rule, is_right, check)?;
        }

        /// Weights change and packets are longer than configured. Words and lists agree, a flow is queued if
        /// and only if it has packets, and a flow is selected while there are packets.
        #[test]
        fn invariants_hold_after_changes((shares, operations) in operations(), origin in origin()) {
            let check = |scheduler: &Gfq, flows: &[Flow], model: &Model| {
                prop_assert!(scheduler.is_consistent());
                for (flow, exact) in flows.iter().zip(&model.flows) {
                    prop_assert_eq!(flow.link.is_in_list(), exact.stamp.is_some());
                }
                Ok(())
            };
            against_the_model((&shares, &operations), origin, false, rule, |_| true, check)?;
        }

        /// Checks the bound for every packet.
        #[test]
        fn no_packet_is_later_than_the_bound((shares, events) in traffic(1514), origin in origin()) {
            // 2 sigma + 2 s.
            let sigmas = |model: &Model, flow| 2 * slot_and_length(model, flow).1;
            check_t_wfi::<Gfq>((&shares, &events), origin, sigmas, rule)?;
        }
    }
}
