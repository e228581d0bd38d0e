//! Generalised processor sharing (GPS), the fluid reference, computed exactly (Demers, Keshav & Shenker 1989;
//! Parekh & Gallager 1993).
//!
//! All busy flows are served at the same time, each at a rate in proportion to its weight. *Virtual time* `V`
//! grows by `R / sum of busy weights` while anything is queued. Between any two times at which it is busy, a
//! flow of weight `w` has therefore sent `w (V2 - V1)`. A packet of length `l` starts at `S = max(V, F of its
//! predecessor)` and finishes at `F = S + l / w`. Both are known when it arrives. The real time at which `V`
//! reaches them depends on later arrivals and on when other flows become idle.
//!
//! The simulation processes one event after the other: an arrival, or the next packet to finish. All current
//! numbers (`V`, the current time, each busy flow's next finish) are numerators over one common denominator.
//! If a division by a sum of weights is not exact, the denominator is multiplied by the missing factor. It is
//! reset to 1 in every busy period. So no greatest common divisor of large numbers is ever computed. Virtual
//! time too starts from 0 in every busy period.
//!
//! Invariants: `V` never decreases within a busy period. A busy flow's next finish is not before `V`. The
//! fluid system and any work-conserving packet system are busy at the same times.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use fairgate::{Rate, Time};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{ToPrimitive, Zero};
use thiserror::Error;

use crate::fraction::{Exact, Fraction};
use crate::tick_scale::TickScale;

/// An arrival or a weight that the fluid system can't accept.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GpsError {
    /// A flow has weight 0 and would get no service at all.
    #[error("flow {flow} has weight 0; give it at least 1")]
    WeightZero {
        /// The flow, from 0.
        flow: u32,
    },
    /// The flow does not exist.
    #[error("there is no flow {flow}; there are {flows} flows, numbered from 0")]
    NoSuchFlow {
        /// The flow that was named.
        flow: u32,
        /// The number of flows.
        flows: u32,
    },
    /// A packet has no bytes and would never be served.
    #[error("a packet of flow {flow} has length 0; give it at least 1 byte")]
    LengthZero {
        /// The packet's flow.
        flow: u32,
    },
    /// An arrival is earlier than the one before it.
    #[error("an arrival at {at} comes after one at {previous}; sort arrivals by time")]
    NotInOrder {
        /// The arrival.
        at: Time,
        /// The time of the arrival before it.
        previous: Time,
    },
    /// The time is above 2^62 ticks of the link.
    #[error("{at} is above 2^62 ticks at this rate; use a rounder rate, or times nearer to 0")]
    TooLate {
        /// The time.
        at: Time,
    },
}

/// The fluid system. It accepts arrivals in the order of their times.
#[derive(Debug)]
pub struct Gps {
    tick_scale: TickScale,
    flows: Vec<Flow>,
    now: Now,
    /// The next packet to finish of each busy flow, ordered by finish.
    finishes: BinaryHeap<Reverse<(BigInt, u32)>>,
    latest: Time,
    busy_periods: u32,
    fluid: Fluid,
}

#[derive(Debug)]
struct Flow {
    weight: u32,
    /// The numbers of the packets that are not finished, oldest first.
    queue: VecDeque<u32>,
}

/// The state at the current time. The numbers are numerators over `denominator`.
#[derive(Debug)]
struct Now {
    denominator: Arc<BigInt>,
    /// Ticks since time zero.
    at: BigInt,
    /// Ticks of work per unit of weight since the busy period began.
    virtual_time: BigInt,
    /// Sum of the weights of busy flows.
    weight: u64,
}

/// The result: how the fluid system served each packet.
#[derive(Clone, Debug, Default)]
pub struct Fluid {
    packets: Vec<FluidPacket>,
    /// The numbers of each flow's packets, oldest first.
    by_flow: Vec<Vec<u32>>,
    weights: Vec<u32>,
    /// All times at which virtual time changes its slope, in order.
    bends: Vec<Bend>,
}

/// A packet's service in the fluid system.
#[derive(Clone, Debug)]
pub struct FluidPacket {
    /// Its flow.
    pub flow: u32,
    /// The arrival time, ticks.
    pub arrival: u64,
    /// The time that the whole link needs for it, ticks.
    pub work: u64,
    /// The work of its flow's earlier packets, ticks.
    earlier: u64,
    /// The busy period that it belongs to, from 1. Virtual times of different busy periods can't be compared.
    pub busy_period: u32,
    /// The virtual finish, ticks of work per unit of weight.
    pub virtual_finish: Fraction,
    /// The real finish, ticks.
    pub finish: Fraction,
}

/// A change of slope: from `at` on virtual time grows by one over `weight` a tick.
#[derive(Clone, Debug)]
struct Bend {
    at: Fraction,
    virtual_time: Fraction,
    /// The sum of the weights of the busy flows. 0 means idle.
    weight: u64,
    busy_period: u32,
}

/// Virtual time at one point in real time.
#[derive(Clone, Debug)]
pub struct VirtualTime {
    /// The busy period, from 1. Between two busy periods it is the earlier one; before the first it is 0.
    pub busy_period: u32,
    /// Ticks of work per unit of weight since the busy period began. It does not change while nothing is
    /// queued.
    pub value: Fraction,
}

impl Gps {
    /// Creates an idle system. Flows are numbered from 0.
    ///
    /// # Errors
    /// Returns an error if a weight is 0.
    pub fn new(rate: Rate, weights: &[u32]) -> Result<Gps, GpsError> {
        if let Some(flow) = weights.iter().position(|&weight| weight == 0) {
            return Err(GpsError::WeightZero { flow: flow as u32 });
        }
        let flow = |&weight: &u32| Flow {
            weight,
            queue: VecDeque::new(),
        };
        Ok(Gps {
            tick_scale: TickScale::new(rate),
            flows: weights.iter().map(flow).collect(),
            now: Now {
                denominator: Arc::new(BigInt::from(1)),
                at: BigInt::ZERO,
                virtual_time: BigInt::ZERO,
                weight: 0,
            },
            finishes: BinaryHeap::new(),
            latest: Time::ZERO,
            busy_periods: 0,
            fluid: Fluid {
                by_flow: vec![Vec::new(); weights.len()],
                weights: weights.to_vec(),
                ..Fluid::default()
            },
        })
    }

    /// Adds a packet of `length` bytes that arrives at `at`. Returns its number, from 0.
    ///
    /// # Errors
    /// Returns an error if there is no such flow, the length is 0, or the time is before the last arrival's.
    /// Nothing has changed then.
    pub fn arrive(&mut self, at: Time, flow: u32, length: u32) -> Result<u32, GpsError> {
        if flow as usize >= self.flows.len() {
            let flows = self.flows.len() as u32;
            return Err(GpsError::NoSuchFlow { flow, flows });
        }
        if length == 0 {
            return Err(GpsError::LengthZero { flow });
        }
        if at < self.latest {
            let previous = self.latest;
            return Err(GpsError::NotInOrder { at, previous });
        }
        let too_late = GpsError::TooLate { at };
        let ticks = self.tick_scale.ticks(at).ok_or(too_late.clone())?;
        let work = self.tick_scale.work(length.into()).ok_or(too_late)?;
        self.latest = at;
        self.advance(Some(ticks));

        let number = self.fluid.packets.len() as u32;
        let earlier = self.fluid.by_flow[flow as usize].last().map_or(0, |&last| {
            let last = &self.fluid.packets[last as usize];
            last.earlier + last.work
        });
        self.fluid.by_flow[flow as usize].push(number);
        if self.now.weight == 0 {
            self.begin_busy_period(ticks);
        }
        self.fluid.packets.push(FluidPacket {
            flow,
            arrival: ticks,
            work,
            earlier,
            busy_period: self.busy_periods,
            // Both are set when the packet finishes.
            virtual_finish: Fraction::whole(0),
            finish: Fraction::whole(0),
        });
        let state = &mut self.flows[flow as usize];
        state.queue.push_back(number);
        if state.queue.len() == 1 {
            self.now.weight += u64::from(state.weight);
            self.schedule(flow, work);
            self.bend();
        }
        Ok(number)
    }

    /// Runs the system until it is empty.
    pub fn finish(mut self) -> Fluid {
        self.advance(None);
        self.fluid
    }

    /// Serves until `until`, or until nothing is queued.
    fn advance(&mut self, until: Option<u64>) {
        while let Some(Reverse((finish, _))) = self.finishes.peek() {
            let reached = &self.now.at + (finish - &self.now.virtual_time) * self.now.weight;
            if let Some(until) = until
                && reached > &*self.now.denominator * until
            {
                return self.serve_until(until);
            }
            self.complete(reached);
        }
    }

    /// Serves all flows until `until`. No packet may finish before that.
    fn serve_until(&mut self, until: u64) {
        let elapsed = |now: &Now| &*now.denominator * until - &now.at;
        let factor = lacking(&elapsed(&self.now), self.now.weight);
        self.refine(factor);
        self.now.virtual_time += elapsed(&self.now) / self.now.weight;
        self.now.at = &*self.now.denominator * until;
    }

    /// Finishes the next packet, at `reached`.
    fn complete(&mut self, reached: BigInt) {
        let Reverse((finish, flow)) = self.finishes.pop().expect("the caller saw one");
        self.now.at = reached;
        self.now.virtual_time = finish;
        let state = &mut self.flows[flow as usize];
        let number = state.queue.pop_front().expect("a busy flow has a packet");
        let next = state.queue.front().copied();
        let weight = u64::from(state.weight);
        let packet = &mut self.fluid.packets[number as usize];
        packet.virtual_finish = Fraction::new(self.now.virtual_time.clone(), self.now.denominator.clone());
        packet.finish = Fraction::new(self.now.at.clone(), self.now.denominator.clone());
        match next {
            Some(next) => self.schedule(flow, self.fluid.packets[next as usize].work),
            None => {
                self.now.weight -= weight;
                self.bend();
            }
        }
    }

    /// Sets the finish of a packet of `work` that starts now and is its flow's first.
    fn schedule(&mut self, flow: u32, work: u64) {
        let weight = self.flows[flow as usize].weight;
        let factor = lacking(&(&*self.now.denominator * work), weight.into());
        self.refine(factor);
        let finish = &self.now.virtual_time + &*self.now.denominator * work / weight;
        self.finishes.push(Reverse((finish, flow)));
    }

    fn begin_busy_period(&mut self, ticks: u64) {
        debug_assert!(self.finishes.is_empty());
        self.busy_periods += 1;
        self.now = Now {
            denominator: Arc::new(BigInt::from(1)),
            at: ticks.into(),
            virtual_time: BigInt::ZERO,
            weight: 0,
        };
    }

    /// Multiplies the common denominator, and all numerators over it, by `factor`.
    fn refine(&mut self, factor: u64) {
        if factor == 1 {
            return;
        }
        self.now.denominator = Arc::new(&*self.now.denominator * factor);
        self.now.at *= factor;
        self.now.virtual_time *= factor;
        // The order does not change, so building the heap again moves nothing.
        let mut finishes = std::mem::take(&mut self.finishes).into_vec();
        for Reverse((finish, _)) in &mut finishes {
            *finish *= factor;
        }
        self.finishes = BinaryHeap::from(finishes);
    }

    /// Records that the sum of the busy weights has changed.
    fn bend(&mut self) {
        let now = &self.now;
        self.fluid.bends.push(Bend {
            at: Fraction::new(now.at.clone(), now.denominator.clone()),
            virtual_time: Fraction::new(now.virtual_time.clone(), now.denominator.clone()),
            weight: now.weight,
            busy_period: self.busy_periods,
        });
    }
}

/// Returns the least factor by which `number` must be multiplied to be a multiple of `divisor`.
fn lacking(number: &BigInt, divisor: u64) -> u64 {
    let remainder = number % divisor;
    if remainder.is_zero() {
        return 1;
    }
    let remainder = remainder.to_u64().expect("neither number is negative");
    divisor / remainder.gcd(&divisor)
}

impl Fluid {
    /// Returns all packets in the order of their arrival.
    pub fn packets(&self) -> &[FluidPacket] {
        &self.packets
    }

    /// Returns the virtual time at `ticks`, after all events of that time.
    pub fn virtual_time(&self, ticks: u64) -> VirtualTime {
        let moment = Fraction::whole(ticks);
        let after = self.bends.partition_point(|bend| bend.at <= moment);
        let Some(bend) = after.checked_sub(1).map(|last| &self.bends[last]) else {
            return VirtualTime {
                busy_period: 0,
                value: Fraction::whole(0),
            };
        };
        let value = match bend.weight {
            0 => bend.virtual_time.clone(),
            weight => bend.virtual_time.plus(&moment.minus(&bend.at).over(weight)),
        };
        VirtualTime {
            busy_period: bend.busy_period,
            value,
        }
    }

    /// Returns the service that `flow` has received until `ticks`, in ticks of the link's work.
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn service(&self, flow: u32, ticks: u64) -> Fraction {
        let moment = Fraction::whole(ticks);
        let numbers = &self.by_flow[flow as usize];
        let finished = numbers.partition_point(|&number| self.packets[number as usize].finish <= moment);
        let Some(current) = numbers
            .get(finished)
            .map(|&number| &self.packets[number as usize])
        else {
            let all = numbers.last().map_or(0, |&last| {
                let last = &self.packets[last as usize];
                last.earlier + last.work
            });
            return Fraction::whole(all);
        };
        if current.arrival >= ticks {
            return Fraction::whole(current.earlier);
        }
        // Its whole work, less what is served between now and its finish.
        let now = self.virtual_time(ticks);
        debug_assert_eq!(now.busy_period, current.busy_period, "it is in service");
        let left = now.value.minus(&current.virtual_finish);
        left.times(self.weights[flow as usize].into())
            .plus_whole(current.earlier + current.work)
    }
}

impl FluidPacket {
    /// Returns the real finish in nanoseconds since time zero, in lowest terms.
    pub fn finish_nanos(&self, tick_scale: &TickScale) -> Exact {
        self.finish.over(tick_scale.ticks_per_nano()).reduced()
    }
}

#[cfg(test)]
mod tests;
