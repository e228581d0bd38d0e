//! QFQ+ (Valente, "Reducing the Execution Time of Fair-Queueing Schedulers", 2014), as Linux's `sch_qfq` has it: Quick Fair
//! Queueing over *aggregates* of up to eight flows of equal share, at nearly the cost of deficit round robin.
//!
//! What is in the slots of `groups.rs` is an aggregate, with the weights of its flows added up. When its turn comes it
//! leaves them and is *in service* for a whole budget, one longest packet for each of its flows, which send by deficit
//! round robin. So the machinery of QFQ runs once for a budget, not for each packet, and the guarantees are coarser by
//! the same measure.
//!
//! As in Linux: an aggregate is charged and put back when the *next* packet is wanted and its budget is not enough; until
//! then, if it ran empty, packets that come for it go on using the budget without a new time stamp. The first aggregate to
//! become busy after an idle time goes into service at once, and V goes on from where it was. V advances by the inverse of the sum
//! of all weights. Sets of groups follow V when an aggregate is chosen.
//!
//! Deviations: a packet longer than its flow's `max_packet` raises that of the whole aggregate, where Linux moves the
//! flow into another one. A share that is changed counts from when the flow's first packet has been sent.
//!
//! Also as in Linux, groups are not always in QFQ's order. An aggregate that goes into service leaves its slot, and by that
//! unblocks the groups below its own; if it comes back to the same slot, having sent little, they are not blocked again. So
//! they may go before it though they finish later, each once.
//!
//! Invariants, checked after each operation in debug builds: an aggregate with busy flows is in service or in a slot, never both,
//! and only the one in service may have none; the first packet of a busy flow is no longer than its deficit and
//! than its aggregate's `max_packet`, so a full budget is always enough; those of the groups but for their order, whenever they
//! have been brought up to V.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::parameters::{check_max_packet, class_max_packet, class_weight, max_packet, weights};
use crate::discipline::Variable;
use crate::error::ConfigError;
use crate::registry::{About, Children, Family, Parameter};
use crate::scheduler::{Head, Holds, MAX_PACKET, Scheduler, classes, flows};
use crate::time::Time;
use crate::timestamps::groups::{Groups, group_of};
use crate::timestamps::slots::END;
use crate::timestamps::{ONE, Share, WeightSum};

/// Most flows of an aggregate, as in Linux.
const MOST_FLOWS: usize = 8;

/// No aggregate.
const NONE: u32 = u32::MAX;

/// A flow: 16 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Bytes that it may still send in this turn. At least the length of its first packet.
    deficit: u32,
    /// Length of its first packet.
    head: u32,
    aggregate: u32,
    /// Where it goes with a changed share.
    next_aggregate: u32,
}

/// Flows of equal share: a cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Aggregate {
    /// S while busy, F while idle.
    time: u64,
    /// Busy flows: a ring from `first`.
    busy: [u32; MOST_FLOWS],
    /// Bytes sent in this service.
    served: u32,
    /// Virtual time that a byte takes at the weight of all flows.
    per_byte: u32,
    /// What follows it in its slot.
    next: u32,
    /// Of each flow; 0: there is none.
    weight: u32,
    max_packet: u32,
    first: u8,
    len: u8,
    flows: u8,
    /// Of the slot that it is in.
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

    /// What it may send in one service.
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

    /// Its start moves on by what it was served, and it has a whole budget again.
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
    /// V when the sets of groups were last brought up to it.
    seen: u64,
    /// The aggregate in service; `NONE` after an idle time.
    in_service: u32,
    aggregates: Vec<Aggregate>,
    /// Aggregates without flows.
    free: Vec<u32>,
    /// The aggregate that was opened last for a share.
    open: BTreeMap<(u32, u32), u32>,
    weights: WeightSum,
    /// Virtual time that a byte takes at the weights of all flows.
    slope: u64,
}

impl QfqPlus {
    /// The aggregate that one flow more of this share belongs to; it counts from now on.
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
            // So that leaving an aggregate allocates nothing.
            self.free.reserve(self.aggregates.len());
            self.open.insert(key, index);
            index
        });
        let aggregate = &mut self.aggregates[index as usize];
        aggregate.set_flows(aggregate.flows + 1);
        index
    }

    /// An aggregate has one flow less. The last one leaves it free for another share.
    fn part(&mut self, index: u32) {
        let aggregate = &mut self.aggregates[index as usize];
        aggregate.set_flows(aggregate.flows - 1);
        if aggregate.flows == 0 {
            aggregate.weight = 0;
            self.free.push(index);
        }
    }

    /// An idle flow goes where its changed share belongs.
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

    /// The group of an aggregate that is in none.
    #[inline]
    fn place(aggregate: &mut Aggregate) {
        aggregate.group = group_of(u64::from(aggregate.most()) * u64::from(aggregate.per_byte));
    }

    /// An aggregate has its first busy flow and isn't in service.
    #[inline]
    fn start(&mut self, index: u32) {
        let aggregate = &mut self.aggregates[index as usize];
        aggregate.served = 0;
        QfqPlus::place(aggregate);
        aggregate.time = self.groups.start_after(aggregate.group, aggregate.time);
        if self.in_service == NONE {
            self.in_service = index;
            self.groups.set_now(aggregate.time);
            self.seen = aggregate.time;
        } else {
            self.schedule(index);
        }
    }

    /// The aggregate in service has sent what it may; another one follows, if there is any.
    #[inline(never)]
    fn choose(&mut self) {
        let index = self.in_service;
        let aggregate = &mut self.aggregates[index as usize];
        aggregate.charge();
        if aggregate.len > 0 {
            QfqPlus::place(aggregate);
            self.schedule(index);
        } else if self.groups.busy() == 0 {
            self.in_service = NONE;
            return;
        }
        self.groups.catch_up(self.seen);
        #[cfg(debug_assertions)]
        self.groups.check_places();
        self.seen = self.groups.now();
        let chosen = self.groups.first().expect("V has jumped to where one may start");
        self.in_service = chosen;
        let aggregate = &self.aggregates[chosen as usize];
        self.groups.remove_first(aggregate.group, aggregate.next);
    }

    /// What holds of the aggregate of flow `index` after something was done to that flow.
    ///
    /// # Panics
    /// If it does not hold.
    #[cfg(debug_assertions)]
    fn check<F: Holds<State = Flow>>(&self, flows: &[F], index: u32) {
        let at = flows[index as usize].state().aggregate;
        let aggregate = &self.aggregates[at as usize];
        assert!(aggregate.len <= aggregate.flows, "{aggregate:?}");
        assert!(at == self.in_service || aggregate.served == 0, "{aggregate:?}");
        for place in aggregate.first..aggregate.first + aggregate.len {
            let busy = flows[aggregate.busy[usize::from(place) % MOST_FLOWS] as usize].state();
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
            // It never got there.
            self.part(last);
        }
        self.set_slope();
        let current = &self.aggregates[flow.aggregate as usize];
        flow.next_aggregate = if (current.weight, current.max_packet) == (share.weight, share.max_packet) {
            // Back to where it still is, and is counted.
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
        (self.in_service != NONE).then(|| self.aggregates[self.in_service as usize].front())
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

/// The parameters over hashed flows as users set them.
pub const PARAMETERS: &[Parameter<flows::SettingsOf<QfqPlus>>] =
    &[flows::flows(), flows::limit(), weights(), max_packet()];

/// The discipline over hashed flows in the registry.
pub static DESCRIPTION: flows::DescriptionOf<QfqPlus> = flows::describe::<QfqPlus>(
    About {
        name: QfqPlus::NAME,
        family: Family::Timestamps,
        summary: "QFQ+ (Linux's `qfq`): Quick Fair Queueing over aggregates of up to eight flows that take \
            turns",
        when: "For fair shares and bounded delay at nearly the cost of drr; for the tightest delay take qfq.",
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
        when: "To share a line in given proportions as Linux's `qfq` does, packet for packet.",
        children: Children::Classes,
    },
    &[],
    &[class_weight(), class_max_packet()],
)
.with_memory(|_| 8_000);

#[cfg(test)]
mod tests;
