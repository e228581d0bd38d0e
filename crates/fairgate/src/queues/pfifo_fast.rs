//! Three bands in strict priority, chosen by the packet's priority. Linux's `pfifo_fast`, its default qdisc
//! for an interface.
//!
//! It works like `prio` with three fifos and Linux's priomap, in one flat discipline without virtual calls.
//!
//! Each band has its own limit of `limit` packets, as in Linux since 4.16: there each band is a ring of the
//! device's `txqueuelen`. Before, the three bands shared one limit. Deviation: Linux's ring frees its slots
//! in batches. So a band that has just been full may reject a packet or two there that fit here.

use alloc::boxed::Box;

use crate::discipline::{Algorithm, Node, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::queues::prio::LINUX_PRIOMAP;
use crate::registry::{About, Children, Description, Family, Parameter, Unit, check_ranges};
use crate::time::Time;

/// Bands, the highest priority first.
const BANDS: usize = 3;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest backlog of each band, packets; Linux: the device's `txqueuelen`.
    pub limit: u32,
}

/// 1000 packets, the `txqueuelen` of an Ethernet device.
impl Default for Config {
    fn default() -> Config {
        Config { limit: 1000 }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[Parameter::new(
    "limit",
    Unit::Count("packets"),
    1..=u32::MAX as u64,
    "The largest backlog of each of the three bands.",
    |pfifo_fast, _| &mut pfifo_fast.limit,
)];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "pfifo_fast",
        family: Family::Queues,
        summary: "Three fifos in strict priority, chosen by the packet's priority; Linux's former default",
        when: "To compare with the queue of Linux machines before fq_codel.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, _| Ok(Box::new(PfifoFast::node(config)?)),
);

impl Config {
    fn check(&self) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())
    }
}

/// The discipline. Make one with [`PfifoFast::node`].
#[derive(Debug)]
pub struct PfifoFast {
    bands: [PacketQueue; BANDS],
    config: Config,
}

impl PfifoFast {
    /// Creates three empty bands.
    pub fn node(config: Config) -> Result<Node<PfifoFast>, ConfigError> {
        config.check()?;
        Ok(Node::new(PfifoFast {
            bands: [PacketQueue::new(); BANDS],
            config,
        }))
    }
}

impl Algorithm for PfifoFast {
    const NAME: &'static str = "pfifo_fast";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        let band = &mut self.bands[usize::from(LINUX_PRIOMAP[usize::from(pool[id].priority & 15)])];
        if band.len() >= self.config.limit {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        band.push_back(id, pool);
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.bands.iter_mut().find_map(|band| band.pop_front(pool))
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        for band in &mut self.bands {
            band.append_to(into, pool);
        }
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        for band in &mut self.bands {
            while band.len() > config.limit {
                let newest = band.pop_back(pool).expect("a band over its limit is not empty");
                pool.give_back(newest, DropReason::Reconfigured);
            }
        }
        self.config = config;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::testing::Driver;

    fn offer(driver: &mut Driver<PfifoFast>, priority: u8) -> Verdict {
        let packet = Packet {
            priority,
            ..Packet::of_length(100)
        };
        driver.offer(packet, Time::ZERO)
    }

    #[test]
    fn bands_follow_the_priomap() {
        let mut driver = Driver::new(PfifoFast::node(Config::default()).unwrap());
        for priority in [1, 0, 7, 8, 6, 2] {
            assert_eq!(offer(&mut driver, priority), Verdict::Queued);
        }
        assert_eq!(driver.drain(Time::ZERO), [2, 4, 1, 3, 0, 5]);
    }

    #[test]
    fn each_band_has_its_own_limit() {
        let mut driver = Driver::new(PfifoFast::node(Config { limit: 2 }).unwrap());
        let verdicts: Vec<Verdict> = [0, 0, 0, 6].map(|priority| offer(&mut driver, priority)).into();
        assert_eq!(
            verdicts,
            [
                Verdict::Queued,
                Verdict::Queued,
                Verdict::Dropped,
                Verdict::Queued
            ]
        );
        driver.reconfigure(Config { limit: 1 }, Time::ZERO);
        assert_eq!(driver.returned, [(1, DropReason::Reconfigured)]);
        assert_eq!(driver.drain(Time::ZERO), [3, 0]);
    }
}
