//! Grouped fair queueing: WF2Q+ between groups of flows, calendar queues within (Stephens, Bennett, Zhang, "Implementing
//! Scheduling Algorithms in High-Speed Networks", IEEE Journal on Selected Areas in Communications 17(6), 1999).
//!
//! **Idea.** Flows whose longest packets take about as long at their rates form a group. Within a group, a flow's start time
//! rounded down to a slot sorts it into a calendar, and the rounded finish is the rounded start plus a length that is the same
//! for all: so the first flow of a group has both the least start and the least finish. Only these firsts have to be
//! compared: among groups whose first is eligible the least finish goes. Work grows with the number of groups that
//! have flows, not with that of flows; there are 34 groups at most, and few in practice.
//!
//! ```text
//!   occupied   a bit a group            0000 0100 0010 ... 0000
//!   a group    rounded start of its first flow, of which the slot is:
//!              start >> shift           ........ ........ ..sss sss      slot = 6 bits of 64
//!   slots      a bit a slot, turned     0000 0000 0010 ... 1011
//!              so that the first is 0                         ^ first flow   (a list each)
//! ```
//!
//! **Slots.** With sigma the group's length, the power of two that is at least what a longest packet takes, a slot is
//! `s = sigma / 8`, but at least 1/32 of what the longest packet of all flows takes from V (L below): so that the spread of
//! a group's starts, `2 sigma + 2 s + L`, never exceeds 50 slots, two more when rounded, of 64.
//! Rounded finish = rounded start + sigma + s, never before the exact finish.
//!
//! **Bound.** `T-WFI <= (2 sigma + 2 s + 2 L) / R`. As for [`s_kps`](super::s_kps): p unsent with rounded finish d means
//! `V <= d + L - l_p`; d is at most p's exact finish + sigma + s less what p itself takes; a start is at most sigma + s ahead of V; V
//! moves by L at once. The QFQ paper credits GFQ with sigma less than QFQ, so `2 sigma + 2 L`: that is reached as slots get
//! smaller, and costs memory.
//!
//! **Deviations.** The article's text could not be had; the QFQ paper tells of it "variable time-stamp rounding, flows split into
//! groups, a calendar queue to sort flows within a group", linear in the number of groups. Slots per sigma, the finish
//! and the calendar's size follow from the proof above. The sum of weights is that of all flows, busy or not. A
//! flow whose weight rises may have a start too far ahead for its new group; it is set to the latest that the group knows.
//!
//! **Invariants**, checked after each operation in debug builds: words tell which lists have flows, a group's start is
//! that of its first slot. Checked by a property test against exact arithmetic: V, the choice, the bound.

use super::parameters::{class_max_packet, class_weight, max_packet, weights};
use crate::discipline::Variable;
use crate::error::ConfigError;
use crate::registry::{About, Children, Family, Parameter};
use crate::scheduler::{Head, Holds, Scheduler, classes, flows};
use crate::structures::ActiveList;
use crate::time::Time;
use crate::timestamps::Share;
use crate::timestamps::virtual_time::{FRACTION, Grain, VirtualTime};

pub use crate::timestamps::virtual_time::Flow;

/// Slots of a calendar: bits of a word.
const SLOTS: usize = 64;

/// Slots to a group's sigma: 2^3.
const SLOTS_PER_SIGMA: u32 = 3;

/// Binary logarithm of the least sigma: one byte at the largest weight.
const LEAST: u32 = FRACTION - 16;
/// And of the largest: the longest packet at weight 1.
const LARGEST: u32 = FRACTION + 17;
const GROUPS: usize = (LARGEST - LEAST + 1) as usize;

/// The longest packet takes half of the slots of a calendar, at most.
const GRAIN: Grain = Grain {
    finest: LEAST - SLOTS_PER_SIGMA,
    reach: SLOTS as u64 / 2,
};

/// What is looked at of each group to choose.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Rounded start of its first flow.
    start: u64,
    /// From a rounded start to the rounded finish.
    length: u64,
    /// Which slots have flows.
    slots: u64,
    /// Binary logarithm of a slot; changes only while the group is empty.
    shift: u32,
}

impl Group {
    /// Slots with flows, the first as bit 0.
    #[inline]
    fn turned(&self) -> u64 {
        self.slots
            .rotate_right((self.start >> self.shift) as u32 % SLOTS as u32)
    }

    /// The slot that starts at `start`.
    #[inline]
    fn slot(&self, start: u64) -> usize {
        (start >> self.shift) as usize % SLOTS
    }
}

/// The scheduler: 27 KB beside the flows, of which a cache holds the slots in use.
#[derive(Debug)]
pub struct Gfq {
    time: VirtualTime,
    /// Which groups have flows.
    occupied: u64,
    groups: [Group; GROUPS],
    /// The group whose first flow was selected.
    selected: usize,
    /// Of each group its slots.
    lists: [[ActiveList; SLOTS]; GROUPS],
}

impl Gfq {
    /// Puts a flow in its slot; its first packet has `length` bytes.
    #[inline]
    fn insert<F: Holds<State = Flow>>(&mut self, flows: &mut [F], index: u32, length: u32) {
        let flow = flows[index as usize].state_mut();
        self.time.see(&mut flow.time, length);
        let sigma = flow.time.sigma();
        let place = (sigma - LEAST) as usize;
        let group = &mut self.groups[place];
        if group.slots == 0 {
            group.shift = self.time.grain().max(sigma - SLOTS_PER_SIGMA);
            group.length = (1 << sigma) + (1 << group.shift);
        }
        let latest = self.time.low().wrapping_add(group.length);
        if flow.time.start.wrapping_sub(latest) as i64 > 0 {
            // Its group was another, before its weight changed.
            flow.time.start = latest;
        }
        let mut start = flow.time.start >> group.shift << group.shift;
        if group.slots == 0 {
            self.occupied |= 1 << place;
            group.start = start;
        } else {
            let ahead = start.wrapping_sub(group.start) as i64 >> group.shift;
            if ahead < 0 {
                // Its slot may not be that of the last: then the order within the first slots is lost, not more.
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
        self.lists[place][slot].push_back(index, flows);
    }

    /// Words tell which lists have flows, and starts are those of first slots.
    fn is_consistent(&self) -> bool {
        self.groups
            .iter()
            .zip(&self.lists)
            .enumerate()
            .all(|(place, (group, lists))| {
                let is_occupied = self.occupied >> place & 1 == 1;
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
            groups: [empty; GROUPS],
            selected: 0,
            lists: [[ActiveList::new(); SLOTS]; GROUPS],
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
        // Relative to V: the finish of the first flow that is eligible; start and finish of the one that will be so first.
        let mut least_finish = i64::MAX;
        let mut soonest = (i64::MAX, i64::MAX, 0);
        while groups != 0 {
            let place = groups.trailing_zeros() as usize;
            groups &= groups - 1;
            let group = &self.groups[place];
            let start = group.start.wrapping_sub(v) as i64;
            let finish = start + group.length as i64;
            if start <= 0 && finish < least_finish {
                least_finish = finish;
                self.selected = place;
            }
            // Of several that start then the first to finish: not always the finest, whose slots may be of a coarser time.
            if (start, finish) < (soonest.0, soonest.1) {
                soonest = (start, finish, place);
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
        for group in &mut self.groups {
            group.slots = 0;
        }
        self.occupied = 0;
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("virtual_time", Variable::Integer(self.time.bytes()));
        visit("groups", Variable::Integer(self.occupied.count_ones().into()));
    }
}

/// The parameters over hashed flows as users set them.
pub const PARAMETERS: &[Parameter<flows::SettingsOf<Gfq>>] =
    &[flows::flows(), flows::limit(), weights(), max_packet()];

/// The discipline over hashed flows in the registry.
pub static DESCRIPTION: flows::DescriptionOf<Gfq> = flows::describe::<Gfq>(
    About {
        name: Gfq::NAME,
        family: Family::Timestamps,
        summary: "Grouped fair queueing (Stephens, Bennett, Zhang 1999): WF2Q+ between groups of flows, \
            calendars within",
        when: "For delay between that of wf2q_plus and of s_kps, to very many flows with few kinds of \
            shares.",
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
        when: "To share a line in given proportions among many classes with few kinds of shares.",
        children: Children::Classes,
    },
    &[],
    &[class_weight(), class_max_packet()],
)
.with_memory(|_| 28_000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamps::testing::*;
    use proptest::prelude::*;

    /// A slot, and from rounded start to rounded finish, of a flow's group.
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
        /// Choice and V against exact arithmetic.
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

        /// While weights change and packets are longer than told: words and lists agree, a flow is queued if and only if it has
        /// packets, and one is found to send as long as there is any.
        #[test]
        fn changes_leave_it_in_order((shares, operations) in operations(), origin in origin()) {
            let check = |scheduler: &Gfq, flows: &[Flow], model: &Model| {
                prop_assert!(scheduler.is_consistent());
                for (flow, exact) in flows.iter().zip(&model.flows) {
                    prop_assert_eq!(flow.link.is_in_list(), exact.stamp.is_some());
                }
                Ok(())
            };
            against_the_model((&shares, &operations), origin, false, rule, |_| true, check)?;
        }

        /// The bound, for every packet.
        #[test]
        fn no_packet_is_later_than_the_bound((shares, events) in traffic(1514), origin in origin()) {
            // 2 sigma + 2 s.
            let sigmas = |model: &Model, flow| 2 * slot_and_length(model, flow).1;
            check_t_wfi::<Gfq>((&shares, &events), origin, sigmas, rule)?;
        }
    }
}
