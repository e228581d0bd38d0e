//! Weighted fair queueing by the finish times of the fluid reference: bit-by-bit round robin (Demers, Keshav and Shenker
//! 1989), packet-by-packet generalised processor sharing (Parekh and Gallager 1993).
//!
//! Generalised processor sharing (GPS) serves all flows that have something at once, each in proportion to its weight.
//! Beside the packets that are really queued, the scheduler keeps that system, fed with the same packets, and sends them
//! in the order in which they would finish in it. No packet finishes later than in GPS by more than the longest packet
//! takes on the line. It may finish much earlier: for smoothness take `wf2q_plus`.
//!
//! Virtual time V grows by the service that each unit of weight gets. It is advanced when a packet arrives, from one event
//! to the next: a flow's last packet finishes in GPS, the sum of weights shrinks, V gets steeper. So a packet's finish time,
//! `F = max(V, F of the packet before it in its flow) + length / weight`, is known when it arrives, and is kept with it.
//!
//! GPS must know how fast the line is: `rate`. If the real line is slower, GPS is idle when it is not, and flows that
//! were quiet get less of an advantage than they should; if it is faster, they get more.
//!
//! ```text
//!   served = work since V was last set                V' = V + served / (sum of weights)
//!   fluid    by F of its last packet: flows with something left in GPS       queued   by F of its first packet: busy flows
//! ```
//!
//! Exactness: time is counted in units of `1 / (5^9 2^28)` of a byte (2^-49), of which a nanosecond at any whole number of bits
//! a second is a whole number. V and F have 128 bits and do not wrap. Work is never rounded: what a division leaves over
//! stays in `served`. F is rounded once from the bytes that the flow has sent since it began, not once for each packet. Stamps
//! are F in units of 2^18 of these, 2^-31 of a byte, wrapping; packets whose finish times are closer than that leave
//! by the numbers of their flows. A stamp is at most 2^62 ahead of V: beyond 2 GiB of backlog in one flow of weight 1 the
//! order of its packets among those of others is no longer that of GPS.
//!
//! O(log N) a packet on average: an arrival may find that many flows have finished in GPS, each once for each time that it
//! was idle there. A clock that goes backwards stands still.
//!
//! When the newest packet of a flow is taken away by the limit, what GPS has left of it is taken away too. There is no
//! classful form: a class's inner discipline may drop, hold or reorder the packets that GPS was promised.

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

/// Virtual time of a byte at weight 1, and the work that a byte is.
const BYTE: u64 = 1_953_125 << 28;

/// `BYTE` over a weight has so many more binary places: as many as fit.
const INVERSE_PLACES: u32 = 15;

/// A bit a second for a nanosecond is the 8,000,000,000th part of a byte: 2^16 units.
const BIT_NANO_PLACES: u32 = 16;

/// Binary places of virtual time that stamps have not.
const STAMP_PLACES: u32 = 18;

/// How far ahead of V a stamp may be.
const AHEAD: u128 = 1 << (62 + STAMP_PLACES);

/// Parameters of the scheduler as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The rate of the line.
    pub rate: Rate,
}

/// 1 Gbit/s: something to start from, not to rely on. Users must say how fast their line is.
impl Default for Settings {
    fn default() -> Settings {
        Settings {
            rate: Rate::mbit(1000),
        }
    }
}

/// A flow: 40 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Start time of its first packet since it was idle in GPS.
    base: Long,
    /// Bytes since then.
    bytes: u64,
    /// Virtual time that a byte takes, with 15 further binary places.
    per_byte: u64,
    weight: u32,
    /// Whether something of it is left in GPS.
    is_fluid: bool,
}

impl Flow {
    /// Finish time of its last packet.
    #[inline]
    fn finish(&self) -> u128 {
        self.base.get() + ((u128::from(self.bytes) * u128::from(self.per_byte)) >> INVERSE_PLACES)
    }
}

/// The scheduler.
#[derive(Debug)]
pub struct Wfq {
    /// Virtual time.
    now: u128,
    /// Work since virtual time was last set.
    served: u128,
    /// Up to when work was counted.
    clock: Time,
    /// The sum of the weights of flows with something left in GPS, and its inverse.
    live: u32,
    inverse: u64,
    /// These flows, by the finish times of their last packets or an earlier time.
    fluid: IndexedHeap,
    /// Busy flows by the stamps of their first packets.
    queued: Heap,
    bits_per_second: u64,
    flows: usize,
    weights: WeightSum,
}

/// Virtual time that a byte takes at a weight.
fn per_byte(weight: u32) -> u64 {
    (BYTE << INVERSE_PLACES) / u64::from(weight)
}

impl Wfq {
    /// A time as a stamp.
    #[inline]
    fn stamp_of(&self, time: u128) -> u64 {
        (time.min(self.now + AHEAD) >> STAMP_PLACES) as u64
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

    /// GPS works until `now`.
    #[inline]
    fn advance<F: Holds<State = Flow>>(&mut self, flows: &mut [F], now: Time) {
        let elapsed = now.nanos_since(self.clock);
        if elapsed == 0 {
            return;
        }
        self.clock = now;
        if self.live > 0 {
            let bit_nanos = u128::from(elapsed) * u128::from(self.bits_per_second);
            // More than 2^110 empties GPS whatever is in it.
            self.served += bit_nanos.min(1 << 110) << BIT_NANO_PLACES;
            self.finish_flows(flows);
        }
    }

    /// Takes the flows out of GPS that have finished.
    #[inline]
    fn finish_flows<F: Holds<State = Flow>>(&mut self, flows: &mut [F]) {
        while let Some(first) = self.fluid.first() {
            let flow = flows[first.flow as usize].state_mut();
            let finish = flow.finish();
            let key = self.stamp_of(finish);
            if key != first.key {
                // More packets have come for it.
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

    /// Sets virtual time to what it is now. Before the sum of weights changes, and where a flow starts.
    #[inline]
    fn set_now(&mut self) {
        // The inverse is rounded down, so the quotient is at most the exact one. The second pass gets what the first left.
        for _ in 0..2 {
            let inverse = u128::from(self.inverse);
            let high = (self.served >> 64) * inverse;
            let low = u128::from(self.served as u64) * inverse;
            let quotient = (high << (64 - inverse::PLACES)) + (low >> inverse::PLACES);
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
            now: u128::from(origin) << STAMP_PLACES,
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

/// The parameters over hashed flows as users set them.
pub const PARAMETERS: &[Parameter<flows::SettingsOf<Wfq>>] = &[
    flows::flows(),
    flows::limit(),
    weights(),
    Parameter::required(
        "rate",
        Unit::Rate,
        1..=u64::MAX,
        "The rate of the line, by which the fluid reference works.",
        |flat, _| &mut flat.config.settings.rate,
    ),
];

/// The discipline over hashed flows in the registry.
pub static DESCRIPTION: flows::DescriptionOf<Wfq> = flows::describe::<Wfq>(
    About {
        name: Wfq::NAME,
        family: Family::Timestamps,
        summary: "Weighted fair queueing, exactly: departures in the order of the fluid reference (GPS)",
        when: "As the reference; wf2q_plus is smoother, costs less and need not know the line's rate.",
        children: Children::None,
    },
    PARAMETERS,
)
.with_memory(|flat| 115 * u64::from(flat.config.flows) + 4 * u64::from(flat.config.limit));
