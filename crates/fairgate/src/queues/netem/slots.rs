//! Slots: packets are held back until the next slot begins, and leave together, as on Wi-Fi, cable and
//! cellular links (Linux: `get_slot_next`).

use alloc::vec::Vec;

use super::random::{Correlated, Varying};
use crate::probability::Probability;
use crate::structures::Random;
use crate::time::Time;

/// The time to the next slot.
#[derive(Debug)]
enum Gap {
    /// Uniform from the first to the second, ns.
    Between(u64, u64),
    Varying(Varying),
}

/// The present slot.
#[derive(Debug)]
pub(super) struct Slots {
    gap: Gap,
    /// The most packets and bytes of a slot.
    most: (u32, u32),
    /// What may still leave in this slot. It can be exceeded by the last packet.
    left: (u32, i64),
    begins: Time,
}

/// The settings of slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotConfig {
    /// The time from one slot to the next.
    pub gap: SlotGap,
    /// The most packets of a slot, at least 1.
    pub packets: u32,
    /// The bytes after which a slot ends, at least 1.
    pub bytes: u32,
}

/// The time from one slot to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotGap {
    /// Uniform between two times.
    Between(core::time::Duration, core::time::Duration),
    /// With this mean, deviation and table ([`Shape::Table`](super::Shape::Table); empty for uniform).
    Drawn {
        /// The mean.
        mean: core::time::Duration,
        /// The deviation.
        deviation: core::time::Duration,
        /// The shape.
        shape: super::Shape,
        /// The numbers, if the shape is a table.
        table: Vec<i32>,
    },
}

impl Slots {
    pub(super) fn new(config: &SlotConfig, random: &mut Random) -> Slots {
        let gap = match &config.gap {
            SlotGap::Between(least, most) => Gap::Between(least.as_nanos() as u64, most.as_nanos() as u64),
            SlotGap::Drawn {
                mean,
                deviation,
                shape,
                table,
            } => Gap::Varying(Varying::new(
                mean.as_nanos() as u64,
                deviation.as_nanos() as u64,
                shape.table(table),
                Correlated::new(Probability::ZERO, random),
            )),
        };
        Slots {
            gap,
            most: (config.packets, config.bytes),
            left: (config.packets, config.bytes.into()),
            begins: Time::ZERO,
        }
    }

    /// Returns when the slot begins in which a packet may leave that has arrived at `time`.
    #[inline]
    pub(super) fn begins(&mut self, time: Time, now: Time, random: &mut Random) -> Time {
        if self.begins < time {
            self.next(now, random);
        }
        self.begins
    }

    /// Counts a packet that leaves.
    #[inline]
    pub(super) fn sent(&mut self, length: u32, now: Time, random: &mut Random) {
        self.left.0 -= 1;
        self.left.1 -= i64::from(length);
        if self.left.0 == 0 || self.left.1 <= 0 {
            self.next(now, random);
        }
    }

    fn next(&mut self, now: Time, random: &mut Random) {
        let gap = match &mut self.gap {
            Gap::Between(least, most) => {
                let width = u128::from(*most - *least);
                *least as i64 + ((u128::from(random.bits32()) * width) >> 32) as i64
            }
            Gap::Varying(varying) => varying.draw(random),
        };
        self.begins = super::after(now, gap);
        self.left = (self.most.0, self.most.1.into());
    }
}
