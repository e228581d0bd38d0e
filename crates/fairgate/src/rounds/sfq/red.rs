//! RED on each flow of sfq, as Linux has it (`redflowlimit` and the options beside it; `sfq_enqueue` in
//! sch_sfq.c): an average of the bytes queued in the slot, which an arriving packet moves. There is no idle
//! time: a slot that is free begins anew.

use alloc::vec;
use alloc::vec::Vec;

use crate::aqm::red::{Action, Curve, Response, Shape, Spacing, w_log_for_burst};
use crate::error::ConfigError;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::probability::Probability;
use crate::queues::fifo::DropFrom;
use crate::structures::Random;

/// Parameters of RED on each flow. Without `min` there is no RED, and nothing else may be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRed {
    /// The average backlog, bytes, from which packets are marked or dropped.
    pub min: Option<u32>,
    /// The average backlog, bytes, from which all are. `None` means three times `min`.
    pub max: Option<u32>,
    /// The packets that pass before the average reaches `min`. `None` means (2 min + max) / 3 avpkt.
    pub burst: Option<u32>,
    /// The mean length of packets, bytes.
    pub avpkt: u32,
    /// The probability of a mark or drop at `max`.
    pub probability: Probability,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// With `ecn`: whether all packets above `max` are dropped.
    pub harddrop: bool,
}

/// No RED. The other values are those of tc.
impl Default for FlowRed {
    fn default() -> FlowRed {
        FlowRed {
            min: None,
            max: None,
            burst: None,
            avpkt: 1000,
            probability: Probability::ratio(1, 50),
            ecn: false,
            harddrop: false,
        }
    }
}

impl FlowRed {
    /// The base-2 logarithm of the inverse weight of a packet in the average, as tc derives it. `None`
    /// without RED.
    pub fn w_log(&self) -> Option<u32> {
        let red = Red::of(self, DropFrom::Tail, 0, 0).ok()??;
        Some(red.w_log)
    }

    /// The average backlog from which all packets are marked or dropped, bytes.
    pub fn max_of(&self, min: u32) -> u32 {
        self.max.unwrap_or(min.saturating_mul(3))
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        Red::of(self, DropFrom::Tail, 0, 0).map(drop)
    }
}

/// What a slot remembers.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// In units of 2^-w_log bytes.
    average: u64,
    spacing: Spacing,
}

impl Memory {
    const NEW: Memory = Memory {
        average: 0,
        spacing: Spacing::NEW,
    };
}

/// RED on each slot.
#[derive(Debug)]
pub(super) struct Red {
    curve: Curve,
    /// The base-2 logarithm of the inverse weight of a packet in the average.
    w_log: u32,
    response: Response,
    drop_from: DropFrom,
    random: Random,
    slots: Vec<Memory>,
}

impl Red {
    /// Returns `None` without `min`.
    pub(super) fn of(
        config: &FlowRed,
        drop_from: DropFrom,
        slots: u32,
        seed: u64,
    ) -> Result<Option<Red>, ConfigError> {
        let Some(min) = config.min else {
            let usual = FlowRed::default();
            let given = [
                ("max", config.max.is_some()),
                ("burst", config.burst.is_some()),
                ("avpkt", config.avpkt != usual.avpkt),
                ("probability", config.probability != usual.probability),
                ("ecn", config.ecn),
                ("harddrop", config.harddrop),
            ];
            return match given.into_iter().find(|(_, is_given)| *is_given) {
                None => Ok(None),
                Some((name, _)) => Err(ConfigError::conflict(
                    name,
                    "given alone",
                    "given together with `min`, because it is RED's",
                    "add `min`, the average backlog of a flow from which its packets are marked or dropped",
                )),
            };
        };
        let max = config.max_of(min);
        // As in tc.
        let derived = || ((2 * u64::from(min) + u64::from(max)) / (3 * u64::from(config.avpkt))) as u32;
        let w_log = w_log_for_burst(min, config.burst.unwrap_or_else(derived), config.avpkt)?;
        let shape = Shape {
            min,
            max,
            probability: config.probability,
            gentle: false,
            by_length: None,
            is_exclusive: false,
        };
        Ok(Some(Red {
            curve: Curve::new(shape, w_log)?,
            w_log,
            response: Response {
                ecn: config.ecn,
                harddrop: config.harddrop,
                nodrop: false,
            },
            drop_from,
            random: Random::new(seed),
            slots: vec![Memory::NEW; slots as usize],
        }))
    }

    /// Forgets the flow that a slot had.
    pub(super) fn begin(&mut self, slot: u32) {
        self.slots[slot as usize] = Memory::NEW;
    }

    /// Moves the average of a slot towards its backlog, in bytes.
    pub(super) fn average(&mut self, slot: u32, backlog: u64) {
        let average = &mut self.slots[slot as usize].average;
        *average = *average - (*average >> self.w_log) + backlog;
    }

    /// Whether a packet may be queued in a slot that holds `queue`, perhaps with a mark: of its oldest packet
    /// if packets are dropped there, or else of itself.
    pub(super) fn admits(&mut self, slot: u32, queue: &PacketQueue, id: PacketId, pool: &mut Pool) -> bool {
        self.average(slot, queue.count().bytes);
        let memory = &mut self.slots[slot as usize];
        let length = pool[id].length;
        let action = self
            .curve
            .judge(&mut memory.spacing, memory.average, length, &mut self.random);
        if action == Action::Pass {
            return true;
        }
        let oldest = queue.front().filter(|_| self.drop_from == DropFrom::Head);
        let marks_oldest = oldest.is_some_and(|oldest| self.response.spares(oldest, action, pool));
        marks_oldest || self.response.spares(id, action, pool)
    }
}
