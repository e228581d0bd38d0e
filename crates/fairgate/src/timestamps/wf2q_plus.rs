//! Worst-case fair weighted fair queueing, WF2Q+ (Bennett and Zhang 1996; section II of the QFQ paper).
//!
//! A packet's start time is the finish time of the packet before it in its flow, or `max(V, F)` if the flow
//! was idle. Its finish time is `F = S + length / weight`. Of the packets that the fluid reference would have
//! begun to send (`S <= V`), the one with the least finish time goes first. So no flow gets ahead of its
//! share by more than the packet that it is sending. No flow falls behind by more than this plus what a
//! packet of the others takes. The worst-case fair index is `L_k + 2 phi_k L` in intervals that end with a
//! packet of the flow, which is Bennett and Zhang's definition. In any interval it is `2 L_k + 2 phi_k L`: a
//! flow that has just sent a packet early waits until its next packet is due.
//!
//! ```text
//!   waiting  busy flows with S > V, by S     --- V reaches S --->   eligible  busy flows with S <= V, by F
//!   idle     flows that became idle with F > V, by F; their weight counts until V reaches F
//! ```
//!
//! V advances by the bytes sent divided by the sum of weights, and is never behind the least start time of
//! the busy flows. The sum includes the flows that are busy, or would be busy in the fluid reference: a flow
//! counts at once when it becomes busy. When it becomes idle, it counts until V has reached its finish time.
//! When all flows are idle, all of this is reset, because the reference is then idle.
//!
//! Each packet passes from heap to heap once: O(log N) per packet on average. (A call in which V passes the
//! start times of many flows moves all of them once.) An entry in `idle` stays there when its flow becomes
//! busy again, and is checked when V reaches it. So each flow has at most one entry, and nothing is searched.
//!
//! Invariants: a busy flow is in `eligible` or in `waiting`. `S <= V` for all flows in `eligible`. `V <= F`
//! for all busy flows while no share is changed.
//!
//! Rounding: virtual time has 40 fraction bits. Finish times are rounded up and V is rounded down. Otherwise
//! V would slowly get ahead of all finish times, and flows that become busy would be put after all others. A
//! start time counts as reached when V is within 2^-20 of a byte (at weight 1), so that rounding has no
//! effect where exact times are equal.
//!
//! Wrap: V wraps at 2^64. All times are within 2^59 of it. The start times of busy flows are at most a packet
//! of 2^17 bytes at weight 1 ahead, and their finish times two packets. Only changes of shares let V get
//! ahead of them, by a packet for each flow, which has a weight of at least 1. The heaps compare 44 bits,
//! 2^-22 to 2^21 bytes.

use super::parameters::{class_weight, weights};
use crate::discipline::Variable;
use crate::error::ConfigError;
use crate::registry::{About, Children, Family, Parameter};
use crate::scheduler::{Head, Holds, Scheduler, classes, flows};
use crate::structures::Narrow;
use crate::time::Time;
use crate::timestamps::inverse::{self, inverse};
use crate::timestamps::run_heap::RunHeap;
use crate::timestamps::{Weight, WeightSum};

/// The number of fraction bits of virtual time.
const FRACTION_BITS: u32 = 40;

/// The number of fraction bits of inverse weights that virtual time does not have.
const FINE_BITS: u32 = inverse::FRACTION_BITS - FRACTION_BITS;

/// If V is this close to a time, the time counts as reached. It is much more than the rounding in a busy
/// period, and much less than a byte.
const CLOSE: u64 = 1 << (FRACTION_BITS - 20);

/// The number of fraction bits of virtual time that the heaps do not compare.
const KEY_BITS: u32 = 18;

/// The state of a flow: 40 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// The start time of its first packet.
    start: u64,
    /// The finish time of its first packet, or of its last packet if it is idle.
    finish: u64,
    /// The virtual time per byte, with 62 fraction bits.
    per_byte: u64,
    /// The busy period in which its weight counts or counted.
    period: u64,
    weight: u32,
    is_busy: bool,
    /// Whether it has an entry in `idle`. Valid only if `period` is the current busy period.
    is_listed: bool,
}

/// The scheduler.
#[derive(Debug)]
pub struct Wf2qPlus {
    /// Virtual time, V.
    now: u64,
    /// Further fraction bits of V.
    fine: u32,
    /// The sum of the weights that count.
    live: u32,
    /// The inverse of `live`: the virtual time per byte sent, with 62 fraction bits.
    per_byte: u64,
    /// Busy flows with `S <= V`, by F.
    eligible: RunHeap,
    /// Busy flows with `S > V`, by S.
    waiting: RunHeap,
    /// The flows that became idle before V reached their finish times, by F at that time.
    idle: RunHeap,
    /// The number of the current busy period, from 1.
    period: u64,
    flows: usize,
    weights: WeightSum,
}

/// Whether `a` is before `b`.
#[inline]
fn is_before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// Returns an entry of the heaps.
#[inline]
fn entry(time: u64, flow: u32) -> Narrow {
    Narrow::new(time >> KEY_BITS, flow)
}

/// Returns the inverse of a weight, rounded up.
fn per_byte(weight: u32) -> u64 {
    (1u64 << inverse::FRACTION_BITS).div_ceil(u64::from(weight))
}

impl Flow {
    /// Returns the finish time of a packet of `length` bytes that starts at `self.start`, rounded up.
    #[inline]
    fn finish_of(&self, length: u32) -> u64 {
        let time = u128::from(length) * u128::from(self.per_byte) + ((1 << FINE_BITS) - 1);
        self.start.wrapping_add((time >> FINE_BITS) as u64)
    }
}

impl Wf2qPlus {
    #[inline]
    fn set_live(&mut self, live: u32) {
        self.live = live;
        if live > 0 {
            self.per_byte = inverse(live);
        }
    }

    /// Whether V has reached the time of an entry.
    #[inline]
    fn has_reached_entry(&self, entry: Narrow) -> bool {
        entry.is_at_most(self.now.wrapping_add(CLOSE) >> KEY_BITS)
    }

    /// Whether V has reached a time. It is compared as an entry, so that both functions always agree.
    #[inline]
    fn has_reached(&self, time: u64) -> bool {
        self.has_reached_entry(entry(time, 0))
    }

    /// Advances V by `sent` bytes.
    #[inline]
    fn serve(&mut self, sent: u32) {
        let advance = u128::from(sent) * u128::from(self.per_byte) + u128::from(self.fine);
        self.now = self.now.wrapping_add((advance >> FINE_BITS) as u64);
        self.fine = advance as u32 & ((1 << FINE_BITS) - 1);
    }

    /// Removes the weights of idle flows whose finish V has reached.
    #[inline]
    fn expire<F: Holds<State = Flow>>(&mut self, flows: &mut [F]) {
        while let Some(first) = self.idle.first() {
            if !self.has_reached_entry(first) {
                break;
            }
            let index = first.flow();
            let flow = flows[index as usize].state_mut();
            if flow.is_busy {
                flow.is_listed = false;
                self.idle.pop();
            } else if !self.has_reached(flow.finish) {
                // The flow was busy again in between.
                self.idle.replace_first(entry(flow.finish, index));
            } else {
                flow.period = 0;
                self.idle.pop();
                self.set_live(self.live - flow.weight);
            }
        }
    }

    /// Advances V to the least start time of the busy flows. The first flow of `eligible` has sent. It is
    /// included with its next start time `start` if it is still busy.
    #[inline]
    fn catch_up<F: Holds<State = Flow>>(&mut self, flows: &[F], start: Option<u64>) {
        if self.eligible.len() > 1 {
            return;
        }
        let first = self.waiting.first();
        let first = first.map(|first| flows[first.flow() as usize].state().start);
        let least = match (first, start) {
            (Some(first), Some(start)) if is_before(start, first) => start,
            (Some(first), _) => first,
            (None, Some(start)) => start,
            (None, None) => return,
        };
        if is_before(self.now, least) {
            self.now = least;
            self.fine = 0;
        }
    }

    /// Returns the next flow of `waiting` if V has reached its start time.
    #[inline]
    fn due(&self) -> Option<u32> {
        let first = self.waiting.first()?;
        self.has_reached_entry(first).then_some(first.flow())
    }

    /// Updates a flow that has become idle and is in no heap.
    #[inline]
    fn rest(&mut self, flow: &mut Flow, index: u32) {
        flow.is_busy = false;
        if self.eligible.is_empty() && self.waiting.is_empty() {
            self.reset();
        } else if !self.has_reached(flow.finish) {
            if !flow.is_listed {
                flow.is_listed = true;
                self.idle.insert(entry(flow.finish, index));
            }
        } else if !flow.is_listed {
            flow.period = 0;
            self.set_live(self.live - flow.weight);
        }
    }

    /// Starts a new busy period, because all flows are idle.
    fn reset(&mut self) {
        self.period += 1;
        self.idle.clear();
        self.set_live(0);
    }
}

impl Scheduler for Wf2qPlus {
    const NAME: &'static str = "wf2q_plus";
    type Share = Weight;
    type Settings = ();
    type Flow = Flow;

    fn new((): &(), origin: u64) -> Result<Wf2qPlus, ConfigError> {
        Ok(Wf2qPlus {
            now: origin,
            fine: 0,
            live: 0,
            per_byte: 0,
            eligible: RunHeap::new(),
            waiting: RunHeap::new(),
            idle: RunHeap::new(),
            period: 1,
            flows: 0,
            weights: WeightSum::default(),
        })
    }

    fn add_flow(&mut self, &Weight(weight): &Weight) -> Result<Flow, ConfigError> {
        self.weights.add(weight)?;
        self.flows += 1;
        for heap in [&mut self.eligible, &mut self.waiting, &mut self.idle] {
            heap.make_room(self.flows);
        }
        Ok(Flow {
            start: self.now,
            finish: self.now,
            per_byte: per_byte(weight),
            period: 0,
            weight,
            is_busy: false,
            is_listed: false,
        })
    }

    fn change_share(&mut self, flow: &mut Flow, &Weight(weight): &Weight) {
        self.weights.change(flow.weight, weight);
        if flow.period == self.period {
            self.set_live(self.live - flow.weight + weight);
        }
        flow.weight = weight;
        flow.per_byte = per_byte(weight);
    }

    #[inline]
    fn activate<F: Holds<State = Flow>>(&mut self, flows: &mut [F], index: u32, head: Head, _now: Time) {
        let flow = flows[index as usize].state_mut();
        flow.start = self.now;
        if flow.period != self.period {
            flow.period = self.period;
            flow.is_listed = false;
            self.set_live(self.live + flow.weight);
        } else if is_before(self.now, flow.finish) {
            flow.start = flow.finish;
        }
        flow.is_busy = true;
        flow.finish = flow.finish_of(head.length);
        if self.has_reached(flow.start) {
            self.eligible.insert(entry(flow.finish, index));
        } else {
            self.waiting.insert(entry(flow.start, index));
        }
    }

    #[inline]
    fn select<F: Holds<State = Flow>>(&mut self, _flows: &mut [F], _now: Time) -> Option<u32> {
        self.eligible.first().map(Narrow::flow)
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
        self.serve(sent);
        let flow = flows[index as usize].state_mut();
        if sent > 0 {
            flow.start = flow.finish;
        } else {
            // The packet was dropped without service. The next packet has its start time.
            flow.finish = flow.start;
        }
        if let Some(head) = next {
            flow.finish = flow.finish_of(head.length);
            let Flow { start, finish, .. } = *flow;
            self.catch_up(flows, Some(start));
            if self.has_reached(start) {
                self.eligible.replace_first(entry(finish, index));
            } else if let Some(other) = self.due() {
                self.waiting.replace_first(entry(start, index));
                let finish = flows[other as usize].state().finish;
                self.eligible.replace_first(entry(finish, other));
            } else {
                self.eligible.pop();
                self.waiting.insert(entry(start, index));
            }
        } else {
            let mut flow = *flow;
            self.catch_up(flows, None);
            self.eligible.pop();
            self.rest(&mut flow, index);
            *flows[index as usize].state_mut() = flow;
        }
        while let Some(other) = self.due() {
            self.waiting.pop();
            let finish = flows[other as usize].state().finish;
            self.eligible.insert(entry(finish, other));
        }
        self.expire(flows);
        debug_assert!(!self.eligible.is_empty() || self.waiting.is_empty());
    }

    fn clear<F: Holds<State = Flow>>(&mut self, flows: &mut [F]) {
        for flow in flows {
            flow.state_mut().is_busy = false;
        }
        self.eligible.clear();
        self.waiting.clear();
        self.reset();
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit(
            "virtual_time",
            Variable::Integer((self.now >> FRACTION_BITS) as i64),
        );
        visit("sum_of_weights", Variable::Integer(self.live.into()));
    }
}

/// The parameters over hashed flows that users can set.
pub const PARAMETERS: &[Parameter<flows::SettingsOf<Wf2qPlus>>] =
    &[flows::flows(), flows::limit(), weights()];

/// The discipline over hashed flows in the registry.
pub static DESCRIPTION: flows::DescriptionOf<Wf2qPlus> = flows::describe::<Wf2qPlus>(
    About {
        name: Wf2qPlus::NAME,
        family: Family::Timestamps,
        summary: "WF2Q+ (Bennett and Zhang 1996): fair shares by weight, the least possible delay, O(log N)",
        when: "For the lowest delay and the smoothest service; for many flows qfq costs less.",
        children: Children::None,
    },
    PARAMETERS,
)
.with_memory(|flat| 130 * u64::from(flat.config.flows) + 4 * u64::from(flat.config.limit));

/// The discipline over classes in the registry.
pub static CLASSFUL: classes::DescriptionOf<Wf2qPlus> = classes::describe::<Wf2qPlus>(
    About {
        name: Wf2qPlus::NAME,
        family: Family::Timestamps,
        summary: "WF2Q+ over classes, each with a weight and any discipline inside",
        when: "To share a link in given proportions with the least delay for each class.",
        children: Children::Classes,
    },
    &[],
    &[class_weight()],
);

crate::scheduler::node!(Wf2qPlus);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::Flows;
    use crate::testing::{Driver, in_class};
    use crate::timestamps::MAX_WEIGHT;
    use crate::timestamps::testing::{of_shares, starting_at};
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    fn wf2q_plus(weights: &[u32], origin: u64) -> Driver<Flows<Wf2qPlus>> {
        starting_at(of_shares::<Wf2qPlus>(weights.iter().copied().map(Weight)), origin)
    }

    #[test]
    fn a_flow_does_not_run_ahead_of_its_share() {
        // Bennett and Zhang's example: one flow with half of the weight has a burst, and eight flows with the
        // other half have a packet each. By finish times alone the burst would go first, except for its last
        // packet.
        let mut weights = vec![8];
        weights.extend([1; 8]);
        let mut driver = wf2q_plus(&weights, 0);
        let mut flows = vec![1; 9];
        flows.extend(2..10);
        for &flow in &flows {
            driver.offer(in_class(flow, 1000), Time::ZERO);
        }
        let order = driver.drain(Time::ZERO);
        let order: Vec<u32> = order.iter().map(|&cookie| flows[cookie as usize]).collect();
        let expected: Vec<u32> = (2..10).flat_map(|flow| [1, flow]).chain([1]).collect();
        // The second-last packet of the burst and the packet of the last flow have the same finish time.
        // Either may go first.
        assert_eq!(order[..14], expected[..14]);
        assert_eq!(order.iter().filter(|&&flow| flow == 1).count(), 9);
    }

    /// The least common multiple of 1 to 24, the largest sum of weights of the models below. All their times
    /// are multiples of its inverse.
    const UNIT: i128 = 5_354_228_880;
    /// The largest rounding error in a few hundred packets: 2^-14 bytes.
    const ROUNDING: i128 = UNIT >> 14;

    /// A flow in exact arithmetic.
    #[derive(Clone, Debug, Default)]
    struct Exact {
        weight: u32,
        queue: VecDeque<u32>,
        start: i128,
        finish: i128,
    }

    impl Exact {
        fn begin(&mut self, start: i128) {
            self.start = start;
            self.finish = start + i128::from(self.queue[0]) * UNIT / i128::from(self.weight);
        }
    }

    /// Operations: a packet of this length for this flow, or a departure.
    fn operations() -> impl Strategy<Value = Vec<Option<(usize, u32)>>> {
        let length = prop_oneof![1u32..1515, Just(64), Just(1500)];
        let arrival = (0usize..4, length).prop_map(Some);
        prop::collection::vec(prop_oneof![arrival, Just(None)], 1..300)
    }

    proptest! {
        /// Compares every choice with start and finish times in exact fractions. Where rounding decides, the
        /// model takes over from the scheduler which weights count. Elsewhere it checks this.
        #[test]
        fn no_ineligible_packet_is_ever_served(
            weights in prop::collection::vec(1u32..=6, 4),
            operations in operations(),
            before_wrap in prop::option::of(0u64..1 << 52),
        ) {
            let origin = before_wrap.map_or(0, |before| 0u64.wrapping_sub(before));
            let mut driver = wf2q_plus(&weights, origin);
            let mut flows: Vec<Exact> = weights
                .iter()
                .map(|&weight| Exact { weight, ..Exact::default() })
                .collect();
            let mut offered = Vec::new();
            let mut now = 0i128;
            for operation in operations {
                if let Some((index, length)) = operation {
                    offered.push(index);
                    driver.offer(in_class(index as u32 + 1, length), Time::ZERO);
                    let flow = &mut flows[index];
                    flow.queue.push_back(length);
                    if flow.queue.len() == 1 {
                        flow.begin(now.max(flow.finish));
                    }
                } else {
                    let counted: Vec<bool> = (0..4).map(|flow| counts(&driver, flow)).collect();
                    let Some(cookie) = driver.next(Time::ZERO) else { continue };
                    let index = offered[cookie as usize];
                    let chosen = &flows[index];
                    prop_assert!(chosen.start <= now + ROUNDING, "ineligible: {chosen:?} at {now}");
                    let least = flows
                        .iter()
                        .filter(|flow| !flow.queue.is_empty() && flow.start <= now - ROUNDING)
                        .map(|flow| flow.finish)
                        .min();
                    let is_least = least.is_none_or(|least| chosen.finish <= least + ROUNDING);
                    prop_assert!(is_least, "not the least finish time");
                    let mut live = 0;
                    for (flow, &counts) in flows.iter().zip(&counted) {
                        live += if counts { flow.weight } else { 0 };
                        if !flow.queue.is_empty() || flow.finish > now + ROUNDING {
                            prop_assert!(counts, "the weight of {flow:?} counts at {now}");
                        } else if flow.finish < now - ROUNDING {
                            prop_assert!(!counts, "the weight of {flow:?} does not count at {now}");
                        }
                    }
                    let flow = &mut flows[index];
                    let sent = flow.queue.pop_front().unwrap();
                    now += i128::from(sent) * UNIT / i128::from(live);
                    if flow.queue.is_empty() {
                        flow.start = flow.finish;
                    } else {
                        flow.begin(flow.finish);
                    }
                    let busy = || flows.iter().filter(|flow| !flow.queue.is_empty());
                    if let Some(least) = busy().map(|flow| flow.start).min() {
                        now = now.max(least);
                    } else {
                        flows.iter_mut().for_each(|flow| flow.finish = now);
                    }
                }
            }
        }

        /// Checks every interval in which a flow is busy: it gets its share of what is sent, minus two of its
        /// own longest packets (one if the interval ends with a packet of the flow) and its share of two of
        /// the longest packets of all flows. There is a heavy flow among light ones, and sizes differ.
        #[test]
        fn the_worst_case_fair_index_is_the_published_one(
            heavy in 1u32..=1000,
            light in prop::collection::vec(1u32..=20, 1..30),
            longest in prop::collection::vec(prop_oneof![Just(64u32), 65u32..1515, Just(1514)], 30),
            operations in prop::collection::vec((0usize..90, 0u32..1000), 300),
        ) {
            let weights: Vec<u32> = core::iter::once(heavy).chain(light).collect();
            let sum: i64 = weights.iter().map(|&weight| i64::from(weight)).sum();
            let longest_of_all = i64::from(*longest[..weights.len()].iter().max().unwrap());
            let mut driver = wf2q_plus(&weights, 0);
            let mut offered = Vec::new();
            let mut queued = vec![0u32; weights.len()];
            // For each flow, times the sum of weights: how far it is behind its share, and the least value
            // since it became busy.
            let mut behind = vec![0i64; weights.len()];
            let mut least = vec![i64::MAX; weights.len()];
            let departures = core::iter::repeat_n((usize::MAX, 0), 900);
            for (which, size) in operations.into_iter().chain(departures) {
                // A third of the operations is for the heavy flow, a third for the light ones, and a third
                // are departures.
                let arriving = match which {
                    0..30 => Some(0),
                    30..60 => Some(which % weights.len()),
                    _ => None,
                };
                if let Some(flow) = arriving {
                    let length = longest[flow].saturating_sub(size * (size % 2)).max(40);
                    offered.push((flow, length));
                    driver.offer(in_class(flow as u32 + 1, length), Time::ZERO);
                    queued[flow] += 1;
                    if queued[flow] == 1 {
                        least[flow] = behind[flow];
                    }
                } else if let Some(cookie) = driver.next(Time::ZERO) {
                    let (sender, length) = offered[cookie as usize];
                    for flow in 0..weights.len() {
                        let weight = i64::from(weights[flow]);
                        behind[flow] += weight * i64::from(length);
                        behind[flow] -= if flow == sender { sum * i64::from(length) } else { 0 };
                        if queued[flow] > 0 {
                            let own = if flow == sender { 1 } else { 2 };
                            let bound = own * sum * i64::from(longest[flow]) + 2 * weight * longest_of_all;
                            let index = behind[flow] - least[flow];
                            prop_assert!(index <= bound, "flow {flow} of {weights:?}: {index} above {bound}");
                            least[flow] = least[flow].min(behind[flow]);
                        }
                    }
                    queued[sender] -= 1;
                }
            }
        }

        /// A wrap of virtual time during the operations changes no choice.
        #[test]
        fn the_wrap_of_virtual_time_changes_no_choice(
            weights in prop::collection::vec(1u32..=MAX_WEIGHT, 4),
            operations in operations(),
            // Whole units of the heaps' keys, so that all times are rounded in the same way.
            before_wrap in 0u64..1 << 32,
        ) {
            let origin = 0u64.wrapping_sub(before_wrap << KEY_BITS);
            let mut drivers = [wf2q_plus(&weights, 0), wf2q_plus(&weights, origin)];
            for operation in operations {
                let [plain, wrapping] = drivers.each_mut().map(|driver| match operation {
                    Some((flow, length)) => {
                        driver.offer(in_class(flow as u32 + 1, length), Time::ZERO);
                        None
                    }
                    None => driver.next(Time::ZERO),
                });
                prop_assert_eq!(plain, wrapping);
            }
        }
    }

    fn counts(driver: &Driver<Flows<Wf2qPlus>>, flow: u32) -> bool {
        let flows = driver.root.algorithm();
        flows.flow(flow).period == flows.scheduler().period
    }
}
