//! QFQ+ (Valente, "Reducing the Execution Time of Fair-Queueing Schedulers", 2014) as in Linux's `sch_qfq`:
//! Quick Fair Queueing over *aggregates* of up to eight flows with equal shares, at nearly the cost of
//! deficit round robin.
//!
//! The entries in the slots of `groups.rs` are aggregates. The weight of an aggregate is the sum of the
//! weights of its flows. When an aggregate is selected, it leaves the slots and is *in service* for a whole
//! budget: one longest packet for each of its flows. The flows send by deficit round robin. So the QFQ code
//! runs once per budget and not once per packet, and the guarantees are coarser in the same proportion.
//!
//! As in Linux: an aggregate is charged and put back when the *next* packet is needed and its budget is not
//! enough. Until then, if it is empty, packets that arrive for it use the budget without a new time stamp.
//! The first aggregate that becomes busy after an idle time goes into service at once, and V continues from
//! its old value. V advances by the inverse of the sum of all weights. The sets of groups are updated to V
//! when an aggregate is selected.
//!
//! Deviations: a packet longer than its flow's `max_packet` raises `max_packet` of the whole aggregate. Linux
//! moves the flow to another aggregate. A changed share is used after the flow's first packet has been sent.
//!
//! Also as in Linux, groups are not always in QFQ's order. An aggregate that goes into service leaves its
//! slot and so unblocks the groups below its own. If it has sent little and comes back to the same slot, they
//! are not blocked again. So each of them may go before it once, although it finishes later. And a group may
//! be eligible early: if an aggregate came after V had moved since the last selection, the update to V counts
//! that whole step for its group, too.
//!
//! Invariants, checked after each operation in debug builds: an aggregate with busy flows is either in
//! service or in a slot. Only the aggregate in service may have no busy flow. The first packet of a busy flow
//! is at most as long as its deficit and as its aggregate's `max_packet`, so a full budget is always enough.
//! The invariants of the groups, except for their order and for early eligibility, hold whenever the groups
//! have been updated to V.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::parameters::{check_max_packet, class_max_packet, class_weight, max_packet, weights};
use crate::discipline::Variable;
use crate::error::ConfigError;
use crate::registry::{About, Children, Family, Parameter};
use crate::scheduler::{Head, Holds, MAX_PACKET, Scheduler, classes, flows};
use crate::structures::prefetch;
use crate::time::Time;
use crate::timestamps::groups::{Groups, group_of};
use crate::timestamps::slots::END;
use crate::timestamps::{ONE, Share, WeightSum};

/// The largest number of flows of an aggregate, as in Linux.
const MOST_FLOWS: usize = 8;

/// If there are more, their flows may be in no near cache.
const CACHED_AGGREGATES: usize = 64;

/// The index of no aggregate.
const NONE: u32 = u32::MAX;

/// The state of a flow: 16 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// The bytes that it may still send in this turn. At least the length of its first packet.
    deficit: u32,
    /// The length of its first packet.
    head: u32,
    aggregate: u32,
    /// The aggregate for its changed share.
    next_aggregate: u32,
}

/// Flows with equal shares. It fills a cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Aggregate {
    /// S while busy, F while idle.
    time: u64,
    /// The busy flows: a ring that starts at `first`.
    busy: [u32; MOST_FLOWS],
    /// The bytes sent in this service.
    served: u32,
    /// The virtual time per byte at the weight of all its flows.
    per_byte: u32,
    /// The aggregate that follows it in its slot.
    next: u32,
    /// The weight of each flow, or 0 if there is no flow.
    weight: u32,
    max_packet: u32,
    first: u8,
    len: u8,
    flows: u8,
    /// The group of the slot that it is in.
    group: u8,
}

impl Aggregate {
    fn new(share: &Share, time: u64) -> Aggregate {
        Aggregate {
            time,
            busy: [END; MOST_FLOWS],
            served: 0,
            per_byte: ONE as u32,
            next: END,
            weight: share.weight,
            max_packet: share.max_packet,
            first: 0,
            len: 0,
            flows: 0,
            group: 0,
        }
    }

    /// Returns what it may send in one service.
    #[inline]
    fn most(&self) -> u32 {
        u32::from(self.flows) * self.max_packet
    }

    fn set_flows(&mut self, flows: u8) {
        self.flows = flows;
        if flows > 0 {
            self.per_byte = (ONE / (u64::from(self.weight) * u64::from(flows))) as u32;
        }
    }

    /// Advances its start by what it sent, and resets its budget.
    #[inline]
    fn charge(&mut self) {
        let served = self.served.min(self.most());
        self.time = self
            .time
            .wrapping_add(u64::from(served) * u64::from(self.per_byte));
        self.served = 0;
    }

    #[inline]
    fn front(&self) -> u32 {
        self.busy[usize::from(self.first)]
    }

    #[inline]
    fn push_back(&mut self, flow: u32) {
        self.busy[usize::from(self.first + self.len) % MOST_FLOWS] = flow;
        self.len += 1;
    }

    #[inline]
    fn pop_front(&mut self) {
        self.first = (self.first + 1) % MOST_FLOWS as u8;
        self.len -= 1;
    }
}

/// The scheduler.
#[derive(Debug)]
pub struct QfqPlus {
    groups: Groups,
    /// V when the sets of groups were last updated.
    seen: u64,
    /// The aggregate in service, or `NONE` after an idle time.
    in_service: u32,
    /// The aggregate that followed it in its slot, which is probably next.
    following: u32,
    aggregates: Vec<Aggregate>,
    /// The aggregates without flows.
    free: Vec<u32>,
    /// The last aggregate that was created for a share.
    open: BTreeMap<(u32, u32), u32>,
    weights: WeightSum,
    /// The virtual time per byte at the weights of all flows.
    slope: u64,
}

impl QfqPlus {
    /// Returns the aggregate for one more flow of this share, and counts the flow in it.
    fn join(&mut self, share: &Share) -> u32 {
        let key = (share.weight, share.max_packet);
        let open = self.open.get(&key).copied().filter(|&index| {
            let aggregate = &self.aggregates[index as usize];
            (aggregate.weight, aggregate.max_packet) == key && usize::from(aggregate.flows) < MOST_FLOWS
        });
        let index = open.unwrap_or_else(|| {
            let fresh = Aggregate::new(share, self.groups.now());
            let index = self.free.pop().unwrap_or(self.aggregates.len() as u32);
            match self.aggregates.get_mut(index as usize) {
                Some(free) => *free = fresh,
                None => self.aggregates.push(fresh),
            }
            // So leaving an aggregate does not allocate.
            self.free.reserve(self.aggregates.len());
            self.open.insert(key, index);
            index
        });
        let aggregate = &mut self.aggregates[index as usize];
        aggregate.set_flows(aggregate.flows + 1);
        index
    }

    /// Removes one flow from an aggregate. An aggregate without flows can be used for another share.
    fn part(&mut self, index: u32) {
        let aggregate = &mut self.aggregates[index as usize];
        aggregate.set_flows(aggregate.flows - 1);
        if aggregate.flows == 0 {
            aggregate.weight = 0;
            self.free.push(index);
        }
    }

    /// Moves an idle flow to the aggregate of its changed share.
    #[cold]
    fn move_over(&mut self, flow: &mut Flow) {
        self.part(flow.aggregate);
        flow.aggregate = flow.next_aggregate;
        flow.next_aggregate = NONE;
    }

    fn set_slope(&mut self) {
        self.slope = ONE / self.weights.0.max(1);
    }

    /// Puts an aggregate with busy flows into its slot.
    #[inline]
    fn schedule(&mut self, index: u32) {
        let aggregate = &mut self.aggregates[index as usize];
        (aggregate.time, aggregate.next) = self.groups.insert(aggregate.group, index, aggregate.time);
    }

    /// Computes the group of an aggregate that is in no slot.
    #[inline]
    fn set_group(aggregate: &mut Aggregate) {
        aggregate.group = group_of(u64::from(aggregate.most()) * u64::from(aggregate.per_byte));
    }

    /// Starts an aggregate that has its first busy flow and is not in service.
    #[inline]
    fn start(&mut self, index: u32) {
        let aggregate = &mut self.aggregates[index as usize];
        aggregate.served = 0;
        QfqPlus::set_group(aggregate);
        aggregate.time = self.groups.start_after(aggregate.group, aggregate.time);
        if self.in_service == NONE {
            self.in_service = index;
            self.groups.set_now(aggregate.time);
            self.seen = aggregate.time;
        } else {
            self.schedule(index);
        }
    }

    /// Ends the service of the aggregate in service and selects the next one, if there is one.
    #[inline(never)]
    fn choose(&mut self) {
        let index = self.in_service;
        let aggregate = &mut self.aggregates[index as usize];
        aggregate.charge();
        if aggregate.len > 0 {
            QfqPlus::set_group(aggregate);
            self.schedule(index);
        } else if self.groups.busy() == 0 {
            self.in_service = NONE;
            return;
        }
        self.groups.catch_up(self.seen);
        #[cfg(debug_assertions)]
        self.groups.check_sets();
        self.seen = self.groups.now();
        let chosen = self.groups.first().expect("V has jumped to the first start");
        self.in_service = chosen;
        let aggregate = &self.aggregates[chosen as usize];
        self.groups.remove_first(aggregate.group, aggregate.next);
    }

    /// Prefetches the states of the flows of the aggregate that is probably next, and the one after it.
    #[inline(never)]
    fn prefetch_states<F>(&self, flows: &[F]) {
        if let Some(following) = self.aggregates.get(self.following as usize) {
            for flow in following.busy {
                prefetch(flows, flow as usize);
            }
            prefetch(&self.aggregates, following.next as usize);
        }
    }

    /// Checks the aggregate of flow `index` after an operation on this flow.
    ///
    /// # Panics
    /// Panics if an invariant does not hold.
    #[cfg(debug_assertions)]
    fn check<F: Holds<State = Flow>>(&self, flows: &[F], index: u32) {
        let at = flows[index as usize].state().aggregate;
        let aggregate = &self.aggregates[at as usize];
        assert!(aggregate.len <= aggregate.flows, "{aggregate:?}");
        assert!(at == self.in_service || aggregate.served == 0, "{aggregate:?}");
        for position in aggregate.first..aggregate.first + aggregate.len {
            let busy = flows[aggregate.busy[usize::from(position) % MOST_FLOWS] as usize].state();
            assert_eq!(busy.aggregate, at);
            assert!(
                busy.head <= busy.deficit && busy.head <= aggregate.max_packet,
                "{busy:?} of {aggregate:?}"
            );
        }
    }
}

impl Scheduler for QfqPlus {
    const NAME: &'static str = "qfq_plus";
    type Share = Share;
    type Settings = ();
    type Flow = Flow;

    fn new((): &(), origin: u64) -> Result<QfqPlus, ConfigError> {
        Ok(QfqPlus {
            groups: Groups::new(origin),
            seen: origin,
            in_service: NONE,
            following: NONE,
            aggregates: Vec::new(),
            free: Vec::new(),
            open: BTreeMap::new(),
            weights: WeightSum::default(),
            slope: ONE,
        })
    }

    fn add_flow(&mut self, share: &Share) -> Result<Flow, ConfigError> {
        check_max_packet(share.max_packet)?;
        self.weights.add(share.weight)?;
        self.set_slope();
        Ok(Flow {
            deficit: 0,
            head: 0,
            aggregate: self.join(share),
            next_aggregate: NONE,
        })
    }

    fn change_share(&mut self, flow: &mut Flow, share: &Share) {
        let last = if flow.next_aggregate == NONE {
            flow.aggregate
        } else {
            flow.next_aggregate
        };
        let old = &mut self.aggregates[last as usize];
        if (old.weight, old.max_packet) == (share.weight, share.max_packet) {
            return;
        }
        self.weights.change(old.weight, share.weight);
        if last != flow.aggregate {
            // The flow never moved there.
            self.part(last);
        }
        self.set_slope();
        let current = &self.aggregates[flow.aggregate as usize];
        flow.next_aggregate = if (current.weight, current.max_packet) == (share.weight, share.max_packet) {
            // Back to the share of its current aggregate, which still counts it.
            NONE
        } else {
            self.join(share)
        };
    }

    #[inline]
    fn activate<F: Holds<State = Flow>>(&mut self, flows: &mut [F], index: u32, head: Head, _now: Time) {
        let flow = flows[index as usize].state_mut();
        if flow.next_aggregate != NONE {
            self.move_over(flow);
        }
        let aggregate = &mut self.aggregates[flow.aggregate as usize];
        flow.head = head.length.min(MAX_PACKET);
        aggregate.max_packet = aggregate.max_packet.max(flow.head);
        flow.deficit = aggregate.max_packet;
        aggregate.push_back(index);
        if aggregate.len == 1 && flow.aggregate != self.in_service {
            let aggregate = flow.aggregate;
            self.start(aggregate);
        }
        #[cfg(debug_assertions)]
        self.check(flows, index);
    }

    #[inline(always)]
    fn select<F: Holds<State = Flow>>(&mut self, flows: &mut [F], _now: Time) -> Option<u32> {
        if self.in_service == NONE {
            return None;
        }
        let aggregate = &self.aggregates[self.in_service as usize];
        if aggregate.len > 0 {
            let first = aggregate.front();
            if aggregate.served + flows[first as usize].state().head <= aggregate.most() {
                return Some(first);
            }
        }
        self.choose();
        let chosen = self.aggregates.get(self.in_service as usize)?;
        self.following = chosen.next;
        let front = chosen.front();
        if self.aggregates.len() > CACHED_AGGREGATES {
            self.prefetch_states(flows);
        }
        Some(front)
    }

    /// A flow of the aggregate that is probably next: another one for each turn of the one in service.
    #[inline(always)]
    fn upcoming<F: Holds<State = Flow>>(&self, _flows: &[F], _flow: u32) -> u32 {
        let all = &self.aggregates;
        match (
            all.get(self.following as usize),
            all.get(self.in_service as usize),
        ) {
            (Some(following), Some(current)) => following.busy[usize::from(current.first)],
            _ => NONE,
        }
    }

    #[inline(always)]
    fn update<F: Holds<State = Flow>>(
        &mut self,
        flows: &mut [F],
        index: u32,
        sent: u32,
        next: Option<Head>,
        _now: Time,
    ) {
        let sent = sent.min(MAX_PACKET);
        self.groups.pass(u64::from(sent) * self.slope);
        let flow = flows[index as usize].state_mut();
        let aggregate = &mut self.aggregates[flow.aggregate as usize];
        aggregate.served += sent;
        flow.deficit = flow.deficit.saturating_sub(sent);
        let Some(head) = next else {
            aggregate.pop_front();
            #[cfg(debug_assertions)]
            self.check(flows, index);
            return;
        };
        if flow.next_aggregate != NONE && sent > 0 {
            aggregate.pop_front();
            self.activate(flows, index, head, Time::ZERO);
            return;
        }
        flow.head = head.length.min(MAX_PACKET);
        aggregate.max_packet = aggregate.max_packet.max(flow.head);
        if flow.deficit < flow.head {
            flow.deficit += aggregate.max_packet;
            aggregate.pop_front();
            aggregate.push_back(index);
        }
        #[cfg(debug_assertions)]
        self.check(flows, index);
    }

    fn clear<F: Holds<State = Flow>>(&mut self, _flows: &mut [F]) {
        self.groups.clear();
        self.in_service = NONE;
        self.seen = self.groups.now();
        for aggregate in &mut self.aggregates {
            aggregate.len = 0;
            aggregate.time = self.seen;
        }
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let used = self.aggregates.iter().filter(|aggregate| aggregate.flows > 0);
        visit(
            "virtual_time",
            Variable::Integer((self.groups.now() / ONE) as i64),
        );
        visit("weight_sum", Variable::Integer(self.weights.0 as i64));
        visit("aggregates", Variable::Integer(used.count() as i64));
    }
}

/// The parameters over hashed flows that users can set.
pub const PARAMETERS: &[Parameter<flows::SettingsOf<QfqPlus>>] =
    &[flows::flows(), flows::limit(), weights(), max_packet()];

/// The discipline over hashed flows in the registry.
pub static DESCRIPTION: flows::DescriptionOf<QfqPlus> = flows::describe::<QfqPlus>(
    About {
        name: QfqPlus::NAME,
        family: Family::Timestamps,
        summary: "QFQ+ (Linux's `qfq`): Quick Fair Queueing over aggregates of up to eight flows that take \
            turns",
        when: "For fair shares and bounded delay at nearly the cost of drr; for the lowest delay use qfq.",
        children: Children::None,
    },
    PARAMETERS,
)
.with_memory(|flat| 8_000 + 82 * u64::from(flat.config.flows) + 4 * u64::from(flat.config.limit));

/// The discipline over classes in the registry.
pub static CLASSFUL: classes::DescriptionOf<QfqPlus> = classes::describe::<QfqPlus>(
    About {
        name: QfqPlus::NAME,
        family: Family::Timestamps,
        summary: "QFQ+ (Linux's `qfq`) over classes, each with a weight and any discipline inside",
        when: "To share a link in given proportions as Linux's `qfq` does, packet for packet.",
        children: Children::Classes,
    },
    &[],
    &[class_weight(), class_max_packet()],
)
.with_memory(|_| 8_000);

crate::scheduler::node!(QfqPlus);

#[cfg(test)]
#[path = "qfq_plus_tests.rs"]
mod tests;
