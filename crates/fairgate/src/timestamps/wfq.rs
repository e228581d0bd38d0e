//! Weighted fair queueing by the finish times of the fluid reference: bit-by-bit round robin (Demers, Keshav
//! and Shenker 1989), packet-by-packet generalised processor sharing (Parekh and Gallager 1993).
//!
//! Generalised processor sharing (GPS) serves all backlogged flows at once, each in proportion to its weight.
//! The scheduler simulates GPS with the same packets, and sends the packets in the order in which GPS would
//! finish them. No packet finishes later than in GPS by more than the time of the longest packet on the link.
//! It may finish much earlier: for smooth service use `wf2q_plus`.
//!
//! Virtual time V grows by the service that each unit of weight gets. When a packet arrives, V is advanced
//! from one event to the next: a flow's last packet finishes in GPS, the sum of weights decreases, and V
//! becomes faster. So a packet's finish time, `F = max(V, F of the packet before it in its flow) + length /
//! weight`, is known when it arrives, and is stored with it.
//!
//! GPS must know the rate of the link: `rate`. If the real link is slower, GPS is sometimes idle when the
//! link is not, and flows that were idle get less priority than they should. If the real link is faster, they
//! get more.
//!
//! ```text
//!   served = work since V was last set                V' = V + served / (sum of weights)
//!   fluid    flows that are backlogged in GPS, by F of the last packet
//!   queued   busy flows, by F of the first packet
//! ```
//!
//! Exactness: the unit of virtual time is `1 / (5^9 2^28)` of a byte (2^-49). A nanosecond at any whole
//! number of bit/s is a whole number of units. V and F have 128 bits and do not wrap. Work is never rounded:
//! the remainder of a division stays in `served`. F is rounded once from the bytes that the flow has sent
//! since it became busy, not once for each packet. Stamps are F in units of 2^18 of these, which is 2^-31 of
//! a byte, and wrap. Packets whose finish times are closer than this leave by the numbers of their flows. A
//! stamp is at most 2^62 ahead of V. Beyond 2 GiB of backlog in one flow of weight 1, the order of its
//! packets among those of others is no longer the order of GPS.
//!
//! The cost is O(log N) per packet on average. An arrival may find that many flows have finished in GPS, each
//! once for each time that it became idle there. If the clock goes backwards, time stands still.
//!
//! When the limit drops the newest packet of a flow, the part of it that is left in GPS is also removed.
//! There is no classful form: a class's inner discipline may drop, hold or reorder the packets that were
//! given to GPS.

use super::parameters::weights;
use crate::discipline::Variable;
use crate::error::ConfigError;
use crate::rate::Rate;
use crate::registry::{About, Children, Family, Parameter, Unit};
use crate::scheduler::{Head, Holds, Scheduler, flows};
use crate::structures::{Heap, IndexedHeap};
use crate::time::Time;
use crate::timestamps::inverse::{self, inverse};
use crate::timestamps::{Long, Weight, WeightSum};

/// The virtual time of a byte at weight 1, and the work of a byte.
const BYTE: u64 = 1_953_125 << 28;

/// The number of additional fraction bits of `BYTE` divided by a weight: as many as fit.
const INVERSE_BITS: u32 = 15;

/// 1 bit/s for a nanosecond is 1/8,000,000,000 of a byte: 2^16 units.
const BIT_NANO_BITS: u32 = 16;

/// The number of fraction bits of virtual time that stamps do not have.
const STAMP_BITS: u32 = 18;

/// The largest distance of a stamp ahead of V.
const AHEAD: u128 = 1 << (62 + STAMP_BITS);

/// The parameters of the scheduler as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The rate of the link.
    pub rate: Rate,
}

/// 1 Gbit/s is only a start value. Users must give the rate of their link.
impl Default for Settings {
    fn default() -> Settings {
        Settings {
            rate: Rate::mbit(1000),
        }
    }
}

/// The state of a flow: 40 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// The start time of its first packet since it was idle in GPS.
    base: Long,
    /// The bytes since then.
    bytes: u64,
    /// The virtual time per byte, with 15 more fraction bits.
    per_byte: u64,
    weight: u32,
    /// Whether it is backlogged in GPS.
    is_fluid: bool,
}

impl Flow {
    /// Returns the finish time of its last packet.
    #[inline]
    fn finish(&self) -> u128 {
        self.base.get() + ((u128::from(self.bytes) * u128::from(self.per_byte)) >> INVERSE_BITS)
    }
}

/// The scheduler.
#[derive(Debug)]
pub struct Wfq {
    /// Virtual time.
    now: u128,
    /// The work since virtual time was last set.
    served: u128,
    /// The time up to which work was counted.
    clock: Time,
    /// The sum of the weights of the flows that are backlogged in GPS, and its inverse.
    live: u32,
    inverse: u64,
    /// These flows, by the finish times of their last packets or by an earlier time.
    fluid: IndexedHeap,
    /// The busy flows by the stamps of their first packets.
    queued: Heap,
    bits_per_second: u64,
    flows: usize,
    weights: WeightSum,
}

/// Returns the virtual time per byte at a weight.
fn per_byte(weight: u32) -> u64 {
    (BYTE << INVERSE_BITS) / u64::from(weight)
}

impl Wfq {
    /// Converts a time to a stamp.
    #[inline]
    fn stamp_of(&self, time: u128) -> u64 {
        (time.min(self.now + AHEAD) >> STAMP_BITS) as u64
    }

    #[inline]
    fn set_live(&mut self, live: u32) {
        self.live = live;
        if live > 0 {
            self.inverse = inverse(live);
        } else {
            self.served = 0;
        }
    }

    /// Lets GPS work until `now`.
    #[inline]
    fn advance<F: Holds<State = Flow>>(&mut self, flows: &mut [F], now: Time) {
        let elapsed = now.nanos_since(self.clock);
        if elapsed == 0 {
            return;
        }
        self.clock = now;
        if self.live > 0 {
            let bit_nanos = u128::from(elapsed) * u128::from(self.bits_per_second);
            // More than 2^110 empties GPS in any case.
            self.served += bit_nanos.min(1 << 110) << BIT_NANO_BITS;
            self.finish_flows(flows);
        }
    }

    /// Removes the flows from GPS that have finished.
    #[inline]
    fn finish_flows<F: Holds<State = Flow>>(&mut self, flows: &mut [F]) {
        while let Some(first) = self.fluid.first() {
            let flow = flows[first.flow as usize].state_mut();
            let finish = flow.finish();
            let key = self.stamp_of(finish);
            if key != first.key {
                // More packets of this flow have arrived.
                self.fluid.rekey(first.flow, key);
                continue;
            }
            let work = finish.saturating_sub(self.now).saturating_mul(self.live.into());
            if self.served < work {
                break;
            }
            self.served -= work;
            self.now = self.now.max(finish);
            flow.is_fluid = false;
            let weight = flow.weight;
            self.fluid.pop();
            self.set_live(self.live - weight);
        }
    }

    /// Sets virtual time to its current value. It is called before the sum of weights changes, and when a
    /// flow starts.
    #[inline]
    fn set_now(&mut self) {
        // The inverse is rounded down, so the quotient is at most the exact one. The second pass divides the
        // remainder.
        for _ in 0..2 {
            let inverse = u128::from(self.inverse);
            let high = (self.served >> 64) * inverse;
            let low = u128::from(self.served as u64) * inverse;
            let quotient = (high << (64 - inverse::FRACTION_BITS)) + (low >> inverse::FRACTION_BITS);
            self.now += quotient;
            self.served -= quotient * u128::from(self.live);
        }
    }
}

impl Scheduler for Wfq {
    const NAME: &'static str = "wfq";
    const STAMPS: bool = true;
    type Share = Weight;
    type Settings = Settings;
    type Flow = Flow;

    fn new(settings: &Settings, origin: u64) -> Result<Wfq, ConfigError> {
        Ok(Wfq {
            now: u128::from(origin) << STAMP_BITS,
            served: 0,
            clock: Time::ZERO,
            live: 0,
            inverse: 0,
            fluid: IndexedHeap::new(),
            queued: Heap::new(),
            bits_per_second: settings.rate.bits_per_second(),
            flows: 0,
            weights: WeightSum::default(),
        })
    }

    fn add_flow(&mut self, &Weight(weight): &Weight) -> Result<Flow, ConfigError> {
        self.weights.add(weight)?;
        self.flows += 1;
        self.fluid.add_flow();
        self.queued.make_room(self.flows);
        Ok(Flow {
            base: Long::of(self.now),
            bytes: 0,
            per_byte: per_byte(weight),
            weight,
            is_fluid: false,
        })
    }

    fn change_share(&mut self, flow: &mut Flow, &Weight(weight): &Weight) {
        self.weights.change(flow.weight, weight);
        if flow.is_fluid {
            self.set_now();
            flow.base = Long::of(flow.finish());
            flow.bytes = 0;
            self.set_live(self.live - flow.weight + weight);
        }
        flow.weight = weight;
        flow.per_byte = per_byte(weight);
    }

    #[inline]
    fn stamp<F: Holds<State = Flow>>(&mut self, flows: &mut [F], index: u32, length: u32, now: Time) -> u64 {
        self.advance(flows, now);
        let flow = flows[index as usize].state_mut();
        if flow.is_fluid {
            flow.bytes += u64::from(length);
            return self.stamp_of(flow.finish());
        }
        self.set_now();
        flow.is_fluid = true;
        flow.base = Long::of(self.now);
        flow.bytes = length.into();
        let stamp = self.stamp_of(flow.finish());
        self.set_live(self.live + flow.weight);
        self.fluid.push(stamp, index);
        stamp
    }

    #[inline]
    fn stolen<F: Holds<State = Flow>>(&mut self, flows: &mut [F], index: u32, head: Head, now: Time) {
        self.advance(flows, now);
        let flow = flows[index as usize].state_mut();
        if !flow.is_fluid {
            return;
        }
        self.set_now();
        flow.bytes = flow.bytes.saturating_sub(head.length.into());
        let key = self.stamp_of(flow.finish().max(self.now));
        self.fluid.rekey(index, key);
        self.finish_flows(flows);
    }

    #[inline]
    fn activate<F: Holds<State = Flow>>(&mut self, _flows: &mut [F], index: u32, head: Head, _now: Time) {
        self.queued.push(head.stamp, index);
    }

    #[inline]
    fn select<F: Holds<State = Flow>>(&mut self, _flows: &mut [F], _now: Time) -> Option<u32> {
        self.queued.first().map(|first| first.flow)
    }

    #[inline]
    fn update<F: Holds<State = Flow>>(
        &mut self,
        _flows: &mut [F],
        _index: u32,
        _sent: u32,
        next: Option<Head>,
        _now: Time,
    ) {
        match next {
            Some(head) => self.queued.rekey_first(head.stamp),
            None => {
                self.queued.pop();
            }
        }
    }

    fn clear<F: Holds<State = Flow>>(&mut self, flows: &mut [F]) {
        for flow in flows {
            flow.state_mut().is_fluid = false;
        }
        self.fluid.clear();
        self.queued.clear();
        self.set_live(0);
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit(
            "virtual_time",
            Variable::Integer((self.now / u128::from(BYTE)) as i64),
        );
        visit("sum_of_weights", Variable::Integer(self.live.into()));
    }
}

/// The parameters over hashed flows that users can set.
pub const PARAMETERS: &[Parameter<flows::SettingsOf<Wfq>>] = &[
    flows::flows(),
    flows::limit(),
    weights(),
    Parameter::required(
        "rate",
        Unit::Rate,
        1..=u64::MAX,
        "The rate of the link, with which the fluid reference works.",
        |flat, _| &mut flat.config.settings.rate,
    ),
];

/// The discipline over hashed flows in the registry.
pub static DESCRIPTION: flows::DescriptionOf<Wfq> = flows::describe::<Wfq>(
    About {
        name: Wfq::NAME,
        family: Family::Timestamps,
        summary: "Weighted fair queueing, exactly: departures in the order of the fluid reference (GPS)",
        when: "As the reference; wf2q_plus is smoother, costs less and need not know the link's rate.",
        children: Children::None,
    },
    PARAMETERS,
)
.with_memory(|flat| 115 * u64::from(flat.config.flows) + 4 * u64::from(flat.config.limit));

crate::scheduler::node!(Wfq);
