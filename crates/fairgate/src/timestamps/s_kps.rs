//! Simple KPS: WF2Q+ with rounded time stamps, kept in interleaved stratified timer wheels (Karsten, "SI-WF2Q", Infocom
//! 2006; "Approximation of Generalized Processor Sharing with Interleaved Stratified Timer Wheels", IEEE/ACM Transactions
//! on Networking 18(3), 2010).
//!
//! **Idea.** Flows are grouped by how long their longest packet takes at their rate: a group has a clock that ticks once
//! in about that time. A flow's start is rounded down to a tick of its group, its finish up to one. A flow is *eligible* from
//! its rounded start on, and among the eligible the least rounded finish goes first: that is WF2Q+. Rounded like this, a
//! flow of a group can only ever be in one of four places ahead of V, whatever their number:
//!
//! ```text
//!          last tick     V      next tick      the one after      the third
//!   ───────────┼─────────┴──────────┼──────────────────┼──────────────────┼───── virtual time
//!    starts at or before it:     DUE_FIRST        DUE_SECOND                     where its finish lies
//!    starts at the next tick:                  WAITING_SECOND     WAITING_THIRD
//! ```
//!
//! so a group is four lists, and when its tick comes each moves a place on: first to *overdue*, the second becomes the first
//! and so on. Ticks of different groups never coincide ("interleaved", see `s_kps/ticks.rs`). So when V moves, ticks are handled one
//! by one in their order, at most one for each `1/31` of a longest packet's virtual time; and which group's finish is
//! next follows from the bits of V, with no search. Neither grows with the number of groups or flows.
//!
//! What is overdue, finish at or before V, lies at most one longest packet behind (see the proof), in 64 slots:
//!
//! ```text
//!   overdue    word, a bit a slot     0000 0010 1100 ... 0000      slot = tick / 2^unit mod 64
//!                                            ^ oldest
//!   groups     words, bit b for the group of bit b of V:  [DUE_FIRST] [DUE_SECOND] [WAITING_SECOND] [WAITING_THIRD]
//! ```
//!
//! To select: the oldest of the overdue; else the soonest of the due; else V jumps to the first tick at which something
//! waits. The handling of ticks is the "bookkeeping during transmission" of the QFQ paper: `update` does it after the
//! packet was handed out, and `select` finds all in place.
//!
//! **Bound.** With `w` of the weights' sum `W`, `sigma` the width of the flow's group, L the longest packet:
//! `T-WFI <= (3 sigma + 2 L) / R`, as the paper has it for QFQ. Proof. Let p be a packet unsent at V with rounded finish d. Go back to the last
//! time V' at which a packet with a later finish was chosen, or V jumped: nothing eligible was due by d, so all that is sent
//! from then on starts after V' and is due by d: at most `d - V'` over all flows, less p itself. Hence V <= d + L - l_p. And d is
//! below p's exact finish + sigma, which is at most start + backlog / w, and a start is at most 2 sigma ahead of V: it was
//! eligible one packet (<= sigma) before, by a start rounded down by less than sigma. V moves by L at once: that is the second L.
//!
//! **Deviations.** The articles' text could not be had; this is built from their abstracts, the QFQ paper's account of S-KPS
//! (constant work, ticks while a packet is sent, its bound) and the proof above. QFQ rounds the finish to start + 2 sigma,
//! whatever the packet; here it is the packet's own finish, rounded up, for with QFQ's the proof gives 4 sigma: short packets
//! after a long one find it. Widths are at least 1/31 of the virtual time of the longest packet of all flows, which matters only
//! for flows that have nearly all weight and packets less than 1/15 as long; it keeps slots few and ticks per packet below 63.
//! The sum of weights is that of all flows, busy or not, as in Linux's QFQ: V's jumps give the rest to the busy.
//! A flow whose weight rises may have a start too far ahead for its new group; it waits for the next tick but one at most.
//!
//! **Invariants**, checked after each operation in debug builds: the words tell which lists have flows; no tick of a
//! group with flows lies between the last one handled and V. Checked by a property test against exact arithmetic: each flow is in
//! the list of its rounded times, the choice is eligible and has the least finish, the bound holds.

mod ticks;

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

/// Places of a group's flows, see the picture.
const DUE_FIRST: usize = 0;
const DUE_SECOND: usize = 1;
const WAITING_SECOND: usize = 2;
const WAITING_THIRD: usize = 3;
const PLACES: usize = 4;

/// Slots for the overdue: bits of a word.
const SLOTS: usize = 64;

/// The group of the finest grain: one byte at the largest weight takes 2^24, its width.
const FINEST: u32 = FRACTION - 16 - 1;
/// The group of the coarsest grain: the longest packet at weight 1 takes 2^57, its width.
const COARSEST: u32 = FRACTION + 17 - 1;
const GROUPS: usize = (COARSEST - FINEST + 1) as usize;

/// In half widths: the longest packet takes two less than there are slots for the overdue, at most.
const GRAIN: Grain = Grain {
    finest: FINEST,
    reach: SLOTS as u64 - 2,
};

/// Farther ahead than any tick.
const FAR: u64 = 1 << 62;

/// The scheduler: 2.5 KB beside the flows.
#[derive(Debug)]
pub struct SKps {
    time: VirtualTime,
    /// No tick of a group with flows comes before this one. Always after V.
    next_tick: u64,
    /// Which groups have flows at each place.
    groups: [u64; PLACES],
    /// Which slots of the overdue have flows.
    overdue: u64,
    /// Where among ticks of `2^unit` the oldest of the overdue lies.
    oldest: u64,
    /// The grain of the overdue; the finest in use when they last were none.
    unit: u32,
    /// The list that the flow selected heads.
    selected: usize,
    /// Slots of the overdue, then places of each group.
    lists: [ActiveList; SLOTS + GROUPS * PLACES],
}

#[inline]
const fn list_of(bit: u32, place: usize) -> usize {
    SLOTS + (bit - FINEST) as usize * PLACES + place
}

impl SKps {
    /// Puts a flow in its list; its first packet has `length` bytes.
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
            // Its group was coarser, before its weight changed. (Or the rounding of what its packet took.)
            start = last.wrapping_add(width);
            flow.time.start = start.wrapping_add(width - 1);
        }
        let finish = ticks::first(flow.time.start.wrapping_add(flow.time.cost(length.max(1))), bit);
        let waits = usize::from(start.wrapping_sub(last) == width);
        // The finish is so many ticks after the last.
        let due = (finish.wrapping_sub(last) as i64 >> (bit + 1)).min(2 + waits as i64);
        debug_assert!(waits == 0 || due >= 2);
        let list = if due > 0 {
            let place = due as usize - 1 + waits;
            self.groups[place] |= 1 << bit;
            let next = last.wrapping_add(width);
            if (next.wrapping_sub(self.next_tick) as i64) < 0 {
                self.next_tick = next;
            }
            list_of(bit, place)
        } else {
            self.slot(finish)
        };
        self.lists[list].push_back(index, flows);
    }

    /// The slot for what was to finish at `tick`. Beyond the last slot, as may be for a while after weights have
    /// changed, the order is lost, not more.
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

    /// The list due first, of groups that have one, or a second.
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

    /// Out of line: most packets end between two ticks.
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

    /// The wheel of the group that ticks at `tick` turns: its flows move one place on. It may have none any more.
    fn turn<F: Holds<State = Flow>>(&mut self, tick: u64, flows: &mut [F]) {
        let group = tick & tick.wrapping_neg();
        let [due_first, due_second, second, third] = self.groups.map(|groups| groups & group);
        if due_first | due_second | second | third == 0 {
            return;
        }
        for groups in &mut self.groups {
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

    /// The words tell which lists have flows, and no tick was left out.
    fn is_consistent(&self) -> bool {
        let has = |list: usize| self.lists[list].len() > 0;
        let groups = self.groups.iter().fold(0, |all, groups| all | groups);
        let v = self.time.low();
        let ahead = self.next_tick.wrapping_sub(v);
        (0..SLOTS).all(|slot| has(slot) == (self.overdue >> slot & 1 == 1))
            && (FINEST..=COARSEST).all(|bit| {
                (0..PLACES).all(|place| has(list_of(bit, place)) == (self.groups[place] >> bit & 1 == 1))
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
            groups: [0; PLACES],
            overdue: 0,
            oldest: 0,
            unit: FINEST,
            selected: 0,
            lists: [ActiveList::new(); SLOTS + GROUPS * PLACES],
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
                // Only one group: its first is due before its second, and there is nothing else to compare.
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
            if let Some(place) = self.selected.checked_sub(SLOTS) {
                self.groups[place % PLACES] &= !(1 << (place / PLACES + FINEST as usize));
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
        for list in &mut self.lists {
            while list.pop_front(flows).is_some() {}
        }
        for flow in flows {
            flow.state_mut().time.restart(&self.time);
        }
        self.groups = [0; PLACES];
        self.overdue = 0;
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("virtual_time", Variable::Integer(self.time.bytes()));
    }
}

/// The parameters over hashed flows as users set them.
pub const PARAMETERS: &[Parameter<flows::SettingsOf<SKps>>] =
    &[flows::flows(), flows::limit(), weights(), max_packet()];

/// The discipline over hashed flows in the registry.
pub static DESCRIPTION: flows::DescriptionOf<SKps> = flows::describe::<SKps>(
    About {
        name: SKps::NAME,
        family: Family::Timestamps,
        summary: "Simple KPS (Karsten 2006, 2010): WF2Q+ with rounded time stamps in interleaved timer \
            wheels, constant work",
        when: "For tight guarantees of rate and delay to very many flows; qfq is faster, this one's bound \
            holds for short packets too.",
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
        when: "To share a line in given proportions with tight guarantees of delay.",
        children: Children::Classes,
    },
    &[],
    &[class_weight(), class_max_packet()],
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamps::testing::*;
    use proptest::prelude::*;

    /// The greatest odd multiple of `width / 2` that is at most `time`.
    fn floor(time: i128, width: i128) -> i128 {
        (time - width / 2).div_euclid(width) * width + width / 2
    }

    fn ceiling(time: i128, width: i128) -> i128 {
        -floor(-time, width)
    }

    /// The width of a flow's group, by doubling.
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

    /// Each flow is in the list that its rounded times tell, and V is V.
    fn compare(scheduler: &SKps, flows: &[Flow], model: &Model) -> Result<(), TestCaseError> {
        prop_assert!(scheduler.is_consistent());
        prop_assert_eq!(scheduler.time.low(), model.now as u64);
        let mut links = flows.to_vec();
        let mut lists = scheduler.lists;
        let mut found = vec![None; flows.len()];
        for (place, list) in lists.iter_mut().enumerate() {
            while let Some(flow) = list.pop_front(&mut links) {
                prop_assert_eq!(found[flow as usize].replace(place), None, "in two lists");
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
            // A tick's lowest bit tells the group.
            let bit = stamp.rounded_finish.trailing_zeros();
            let width = 2 << bit;
            let next = floor(model.now, width) + width;
            let waits = usize::from(stamp.rounded_start > model.now);
            let place = ((stamp.rounded_finish - next) / width) as usize + waits;
            prop_assert_eq!(found[index], Some(list_of(bit, place)), "flow {}", index);
        }
        Ok(())
    }

    proptest! {
        /// Choice, lists and V against exact arithmetic, while weights change and packets are longer than told.
        #[test]
        fn it_is_wf2q_plus_with_rounded_stamps(
            (shares, operations) in operations(),
            origin in origin(),
            steady in any::<bool>(),
        ) {
            // After a change, and a packet longer than told is one, the overdue may lie farther apart than slots reach: then
            // any of them may go.
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

        /// The published bound, for every packet.
        #[test]
        fn no_packet_is_later_than_the_bound((shares, events) in traffic(1514), origin in origin()) {
            let sigmas = |model: &Model, flow| 3 * width(model, flow);
            check_t_wfi::<SKps>((&shares, &events), origin, sigmas, rule)?;
        }
    }
}
