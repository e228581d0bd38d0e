//! Strict priority over bands; each band has an inner discipline. Linux's `prio`.
//!
//! Band 1 is the class with minor number 1. It is asked first. Band 2 is asked only if band 1 has nothing to
//! send, and so on. A packet's band is the first of these that exists: the class that the packet names, the
//! class of the first filter that matches, the classifier's default, the priomap's entry for the packet's
//! priority. A packet that names a band that does not exist goes to the band of priority 0.
//!
//! A throttled band (a shaper inside) is skipped. The watchdog of the discipline is the earliest watchdog of
//! its throttled bands.
//!
//! Deviations from Linux: 1 to 64 bands instead of 2 to 16; with fewer than three, the default priomap fits.
//! The number of bands is fixed at construction. Non-goal: protection of lower bands from starvation. Use
//! drr, ets, or a shaper in the upper band for that.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::arrival::Needs;
use crate::classify::{Classifier, Filtered};
use crate::discipline::{Algorithm, Class, Discipline, Node, Verdict};
use crate::error::ConfigError;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::queues::bands::{self, Bands, MOST_BANDS};
use crate::registry::{About, Children, Description, Family, Parameter, Placing, Unit, check_ranges};
use crate::time::Time;

/// Linux's map from a packet's priority, 0 to 15, to one of three bands, 0 to 2.
pub const LINUX_PRIOMAP: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The band, counted from 0, for each priority. It applies to packets that the classifier gives no class.
    pub priomap: [u8; 16],
    /// The classifier. Its class numbers are bands counted from 1.
    pub classifier: Classifier,
}

/// Linux's priomap, no filters.
impl Default for Config {
    fn default() -> Config {
        Config {
            priomap: LINUX_PRIOMAP,
            classifier: Classifier::default(),
        }
    }
}

impl Config {
    /// The default for this number of bands. What Linux's priomap gives to a band beyond the last one goes to
    /// the last one. Linux itself refuses its own priomap for fewer than three bands.
    pub fn for_bands(bands: usize) -> Config {
        let last = bands.saturating_sub(1).min(MOST_BANDS - 1) as u8;
        Config {
            priomap: LINUX_PRIOMAP.map(|band| band.min(last)),
            ..Config::default()
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[Parameter::new(
    "priomap",
    Unit::List(16),
    0..=63,
    "The band, counted from 0, for each packet priority from 0 to 15, where no filter chooses a class.",
    |prio, _| &mut prio.priomap,
)];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "prio",
        family: Family::Queues,
        summary: "Strict priority over classes, each with any discipline inside",
        when: "Where one kind of traffic must always go first and is known to be little. It can starve the \
            rest.",
        children: Children::Bands,
    },
    PARAMETERS,
    |classes| Config::for_bands(classes.len()),
    |config, parts| Ok(Box::new(Prio::node(config, parts.children)?)),
)
.with_placing(Placing::Classifier(|prio| &mut prio.classifier, |_| 64));

/// The discipline. Make one with [`Prio::node`].
#[derive(Debug)]
pub struct Prio {
    strict: Bands,
    config: Config,
}

impl Prio {
    /// Creates bands over `bands`, the highest priority first: 1 to 64.
    pub fn node(config: Config, bands: Vec<Box<dyn Discipline>>) -> Result<Node<Prio>, ConfigError> {
        bands::check_number(bands.len())?;
        config.check(bands.len())?;
        Ok(Node::new(Prio {
            strict: Bands::new(bands),
            config,
        }))
    }

    fn count(&self) -> usize {
        self.strict.bands.len()
    }
}

impl Config {
    fn check(&self, bands: usize) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        bands::check_placing(&self.priomap, &self.classifier, bands, Prio::NAME)
    }
}

impl Algorithm for Prio {
    const NAME: &'static str = "prio";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let count = self.count();
        let Config { priomap, classifier } = &mut self.config;
        match bands::choose(priomap, classifier, count, id, now, pool) {
            Ok(band) => self.strict.enqueue(band, id, now, pool),
            Err(Filtered) => Verdict::Unclassified,
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.strict.dequeue(now, pool)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.strict.drain(pool, into);
    }

    fn watchdog(&self) -> Option<Time> {
        self.strict.watchdog()
    }

    fn needs(&self) -> Needs {
        self.config.classifier.needs()
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, mut config: Config, _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        config.check(self.count())?;
        config.classifier.take_over(&self.config.classifier);
        self.config = config;
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        bands::visit(self.strict.bands.iter().map(Box::as_ref), visit);
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        let band = bands::index_of(minor, self.count())?;
        Some(&mut self.strict.bands[band])
    }

    fn class_replaced(&mut self, minor: u32, _now: Time, _pool: &mut Pool) {
        let band = bands::index_of(minor, self.count());
        self.strict
            .replaced(band.expect("only an existing class is replaced"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::queues::tbf::{self, Tbf};
    use crate::queues::token_bucket::Profile;
    use crate::rate::Rate;
    use crate::testing::{Driver, fifo, in_class};

    fn three_bands() -> Driver<Prio> {
        let config = Config {
            classifier: Classifier {
                handle: 1,
                ..Classifier::default()
            },
            ..Config::default()
        };
        Driver::new(Prio::node(config, vec![fifo(10), fifo(10), fifo(10)]).unwrap())
    }

    #[test]
    fn a_higher_band_goes_first() {
        let mut driver = three_bands();
        for minor in [3, 2, 1, 3, 2, 1] {
            driver.offer(in_class(minor, 100), Time::ZERO);
        }
        assert_eq!(driver.drain(Time::ZERO), [2, 5, 1, 4, 0, 3]);
    }

    #[test]
    fn the_priority_chooses_the_band_of_a_packet_without_a_class() {
        let mut driver = three_bands();
        for priority in [1, 0, 6] {
            let packet = Packet {
                priority,
                ..Packet::of_length(100)
            };
            driver.offer(packet, Time::ZERO);
        }
        driver.offer(in_class(9, 100), Time::ZERO);
        assert_eq!(
            driver.drain(Time::ZERO),
            [2, 1, 3, 0],
            "a packet of an unknown band goes to the band of priority 0"
        );
    }

    #[test]
    fn a_throttled_band_is_skipped() {
        let mut driver = three_bands();
        let slow = tbf::Config {
            profile: Profile::new(Rate::mbit(1), 1000),
            ..tbf::Config::of_rate(Rate::mbit(1))
        };
        let shaper = Tbf::node(slow, None).unwrap();
        driver.replace_class(1, Box::new(shaper), Time::ZERO);
        for minor in [1, 1, 2] {
            driver.offer(in_class(minor, 1000), Time::ZERO);
        }
        assert_eq!(
            driver.drain(Time::ZERO),
            [0, 2],
            "band 1 has tokens for one packet"
        );
        let due = driver.root.watchdog().expect("band 1 holds a packet back");
        assert_eq!(due, Time::from_millis(8));
        assert_eq!(driver.drain(due), [1]);
        assert_eq!(driver.next(due), None);
        assert_eq!(driver.root.watchdog(), None, "nothing is queued");
    }

    #[test]
    fn a_replaced_band_keeps_its_packets() {
        let mut driver = three_bands();
        for _ in 0..3 {
            driver.offer(in_class(2, 100), Time::ZERO);
        }
        driver.replace_class(2, fifo(2), Time::ZERO);
        assert_eq!(driver.returned.len(), 1, "the new band holds two");
        assert_eq!(driver.drain(Time::ZERO), [0, 1]);
    }

    #[test]
    fn a_priomap_that_names_a_missing_band_is_rejected() {
        let error = Prio::node(Config::default(), vec![fifo(1)]).err().unwrap();
        assert_eq!(error.parameter(), Some("priomap"));
        let config = Config {
            priomap: [0; 16],
            classifier: Classifier {
                default: Some(2),
                ..Classifier::default()
            },
        };
        assert!(
            Prio::node(config, vec![fifo(1)]).is_err(),
            "the default is not a band"
        );
    }
}
