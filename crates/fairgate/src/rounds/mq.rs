//! The transmit queues of a device, with a discipline for each. Linux's `mq`, `multiq` and `mqprio`.
//!
//! A device with several transmit queues sends from one after the other. Linux chooses a packet's queue
//! before it reaches a discipline (`netdev_pick_tx`). The packet's priority gives its traffic class, and the
//! flow hash one of the queues of this class (`skb_tx_hash`). So a flow stays in one queue. With one traffic
//! class, as in `mq`, the hash alone decides.
//!
//! A driver of ours has one transmit queue, so this discipline does both parts: it chooses the band, and it
//! takes one packet from each band in turn, as Linux's multiq does (`multiq_dequeue`).
//!
//! A packet's band is the first of these that exists: the class that the packet names, the class of the first
//! filter that matches, the classifier's default, the flow hash among the bands of its traffic class. Bands
//! are numbered from 1. A throttled band (a shaper inside) is skipped, and the watchdog is the earliest of
//! the throttled bands'.
//!
//! Two bands with a shaper each send at twice its rate, as two hardware queues do. To hold a whole device to
//! a rate, put the shaper around this discipline.
//!
//! Deviations from Linux: the queue that a packet was received from and the processor that sends it (XPS) do
//! not count. The hash is mixed first, so that a hashed discipline inside still uses all of its queues. 1 to
//! 64 bands, and their number is fixed at construction.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::arrival::Needs;
use crate::classify::Classifier;
use crate::discipline::{Algorithm, Class, Discipline, Node, Verdict};
use crate::error::ConfigError;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::queues::bands::{self, Bands, MOST_BANDS};
use crate::registry::{
    About, Children, Description, Family, Parameter, Placing, Unit, check_class_ranges, check_ranges,
};
use crate::time::Time;

/// The number of traffic classes: TC_MAX_QUEUE, and of priorities.
const TRAFFIC_CLASSES: usize = 16;
/// Separates the choice of a band from that of a queue inside.
const SALT: u64 = 0x6d71_0000_0000_0001;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The traffic class, 0 to 15, of each priority. It applies to packets that the classifier gives no
    /// class.
    pub priomap: [u8; 16],
    /// The traffic class of each band.
    pub traffic_classes: Vec<u8>,
    /// The classifier. Its class numbers are bands counted from 1.
    pub classifier: Classifier,
}

impl Config {
    /// Bands of one traffic class, among which the flow hash chooses.
    pub fn of_bands(bands: usize) -> Config {
        Config {
            priomap: [0; 16],
            traffic_classes: vec![0; bands],
            classifier: Classifier::default(),
        }
    }

    fn check(&self, bands: usize) -> Result<(), ConfigError> {
        bands::check_number(bands)?;
        if self.traffic_classes.len() != bands {
            return Err(ConfigError::conflict(
                "traffic_class",
                self.traffic_classes.len(),
                format!("one for each of the {bands} bands"),
                "give one for each inner discipline",
            ));
        }
        let mut settings = self.clone();
        check_ranges(PARAMETERS, &mut settings)?;
        for (index, minor) in (1..=bands as u32).enumerate() {
            check_class_ranges(CLASS_PARAMETERS, &mut settings, index, minor)?;
        }
        let lacks_bands = |class: &&u8| !self.traffic_classes.contains(class);
        if let Some(class) = self.priomap.iter().find(lacks_bands) {
            return Err(ConfigError::conflict(
                "priomap",
                class,
                "16 traffic classes that have bands",
                "name only such traffic classes, or give a band this `traffic_class`",
            ));
        }
        bands::check_classifier(&self.classifier, bands, Mq::NAME)
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[Parameter::new(
    "priomap",
    Unit::List(16),
    0..=TRAFFIC_CLASSES as u64 - 1,
    "The traffic class for each packet priority from 0 to 15, where no filter chooses a band.",
    |mq, _| &mut mq.priomap,
)];

/// The parameters of a class as users set them.
pub const CLASS_PARAMETERS: &[Parameter<Config>] = &[Parameter::new(
    "traffic_class",
    Unit::Count("traffic class"),
    0..=TRAFFIC_CLASSES as u64 - 1,
    "The traffic class that this band is for. The flow hash chooses among the bands of a traffic class.",
    |mq, class| &mut mq.traffic_classes[class],
)];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "mq",
        family: Family::Rounds,
        summary: "The transmit queues of a device: flows are hashed to classes, which take turns",
        when: "To take over a tree of Linux that has one discipline for each hardware queue. Its classes \
            share nothing: each has its own rate.",
        children: Children::Bands,
    },
    PARAMETERS,
    |minors| Config::of_bands(minors.len()),
    |config, parts| Ok(Box::new(Mq::node(config, parts.children)?)),
)
.with_class_parameters(CLASS_PARAMETERS)
.with_placing(Placing::Classifier(|mq| &mut mq.classifier, |_| 64));

/// The bands, by traffic class.
#[derive(Debug)]
struct Choice {
    /// The bands, those of a traffic class together.
    order: [u8; MOST_BANDS],
    /// The first position of each priority's traffic class in `order`, and the number of its bands.
    of_priority: [(u8, u8); 16],
}

impl Choice {
    fn of(config: &Config) -> Choice {
        let mut order = [0; MOST_BANDS];
        let mut ranges = [(0, 0); TRAFFIC_CLASSES];
        let mut used = 0;
        for (class, range) in (0u8..).zip(&mut ranges) {
            let first = used;
            let bands = (0u8..).zip(&config.traffic_classes);
            for (band, _) in bands.filter(|(_, of_band)| **of_band == class) {
                order[used] = band;
                used += 1;
            }
            *range = (first as u8, (used - first) as u8);
        }
        Choice {
            order,
            of_priority: config.priomap.map(|class| ranges[usize::from(class)]),
        }
    }

    /// Returns the band of a packet that the classifier gives no class.
    #[inline]
    fn by_hash(&self, id: PacketId, pool: &Pool) -> usize {
        let packet = &pool[id];
        let (first, count) = self.of_priority[usize::from(packet.priority & 15)];
        let chosen = packet.flow.bucket(SALT, count.into()) as usize;
        self.order[usize::from(first) + chosen].into()
    }
}

/// The discipline. Make one with [`Mq::node`].
#[derive(Debug)]
pub struct Mq {
    bands: Bands,
    /// The band that is asked first.
    turn: usize,
    choice: Choice,
    config: Config,
}

impl Mq {
    /// Creates bands over `bands`: 1 to 64.
    ///
    /// # Errors
    /// If the number of bands differs from the number of traffic classes, or something is out of range.
    pub fn node(config: Config, bands: Vec<Box<dyn Discipline>>) -> Result<Node<Mq>, ConfigError> {
        config.check(bands.len())?;
        Ok(Node::new(Mq {
            // Linux counts up before it asks the first band.
            turn: usize::from(bands.len() > 1),
            bands: Bands::new(bands),
            choice: Choice::of(&config),
            config,
        }))
    }

    fn count(&self) -> usize {
        self.bands.bands.len()
    }
}

impl Algorithm for Mq {
    const NAME: &'static str = "mq";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let Ok(minor) = self.config.classifier.classify(id, now, pool) else {
            return Verdict::Unclassified;
        };
        let named = minor.and_then(|minor| bands::index_of(minor, self.count()));
        let band = named.unwrap_or_else(|| self.choice.by_hash(id, pool));
        self.bands.enqueue(band, id, now, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let (band, next) = self.bands.dequeue_from(self.turn, now, pool)?;
        self.turn = if band + 1 == self.count() { 0 } else { band + 1 };
        Some(next)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.bands.drain(pool, into);
    }

    fn watchdog(&self) -> Option<Time> {
        self.bands.watchdog()
    }

    fn needs(&self) -> Needs {
        self.config.classifier.needs()
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// All parameters may change, but not the number of bands. Queued packets stay in their bands.
    fn reconfigure(&mut self, mut config: Config, _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        config.check(self.count())?;
        config.classifier.take_over(&self.config.classifier);
        self.choice = Choice::of(&config);
        self.config = config;
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        bands::visit(self.bands.bands.iter().map(Box::as_ref), visit);
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        let band = bands::index_of(minor, self.count())?;
        Some(&mut self.bands.bands[band])
    }

    fn class_replaced(&mut self, minor: u32, _now: Time, _pool: &mut Pool) {
        let band = bands::index_of(minor, self.count());
        self.bands
            .replaced(band.expect("only an existing class is replaced"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::FlowHash;
    use crate::packet::Packet;
    use crate::queues::tbf::{self, Tbf};
    use crate::queues::token_bucket::Profile;
    use crate::rate::Rate;
    use crate::testing::{Driver, fifo, in_class};
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    fn mq(config: Config) -> Driver<Mq> {
        let bands = config.traffic_classes.iter().map(|_| fifo(1000)).collect();
        Driver::new(Mq::node(config, bands).unwrap())
    }

    fn named(bands: usize) -> Config {
        let mut config = Config::of_bands(bands);
        config.classifier.handle = 1;
        config
    }

    fn packet(flow: u64, priority: u8) -> Packet {
        Packet {
            flow: FlowHash::from_raw(flow),
            priority,
            ..Packet::of_length(100)
        }
    }

    /// The band that holds the only packet.
    fn band_of(driver: &Driver<Mq>) -> u32 {
        let mut found = None;
        driver.root.algorithm().visit_classes(&mut |class| {
            if class.discipline.backlog().packets > 0 {
                found = Some(class.minor);
            }
        });
        found.expect("a band holds the packet")
    }

    #[test]
    fn bands_send_one_packet_in_turn() {
        let mut driver = mq(named(3));
        for minor in [1, 1, 1, 2, 3, 3] {
            driver.offer(in_class(minor, 100), Time::ZERO);
        }
        // Linux's multiq counts up first, so that band 2 is the first one to send.
        assert_eq!(driver.drain(Time::ZERO), [3, 4, 0, 5, 1, 2]);
    }

    #[test]
    fn a_throttled_band_is_skipped() {
        let slow = tbf::Config {
            profile: Profile::new(Rate::mbit(1), 1000),
            ..tbf::Config::of_rate(Rate::mbit(1))
        };
        let mut driver = mq(named(2));
        driver.replace_class(2, Box::new(Tbf::node(slow, None).unwrap()), Time::ZERO);
        for minor in [2, 2, 1, 1] {
            driver.offer(in_class(minor, 1000), Time::ZERO);
        }
        assert_eq!(driver.drain(Time::ZERO), [0, 2, 3]);
        let due = driver.root.watchdog().expect("band 2 holds a packet back");
        assert_eq!(due, Time::from_millis(8));
        assert_eq!(driver.drain(due), [1]);
        assert_eq!(driver.root.watchdog(), None);
    }

    #[test]
    fn values_that_name_no_band_are_rejected() {
        let rejected = |config: Config| {
            let bands = (0..2).map(|_| fifo(1)).collect();
            Mq::node(config, bands).expect_err("it is rejected").parameter()
        };
        assert_eq!(rejected(Config::of_bands(3)), Some("traffic_class"));
        let mut config = Config::of_bands(2);
        config.priomap[7] = 1;
        assert_eq!(rejected(config.clone()), Some("priomap"));
        config.traffic_classes[1] = 16;
        assert_eq!(rejected(config.clone()), Some("traffic_class"));
        config.traffic_classes[1] = 1;
        config.classifier.default = Some(3);
        assert_eq!(
            rejected(config),
            None,
            "the classifier names a band that does not exist"
        );
        let none = Mq::node(Config::of_bands(0), Vec::new()).err().unwrap();
        assert_eq!(none.parameter(), Some("bands"));
    }

    /// mqprio's `num_tc 3 map ... queues 1@0 1@1 2@2`.
    #[test]
    fn the_priority_chooses_the_traffic_class_and_the_hash_a_band_of_it() {
        let mut config = Config::of_bands(4);
        config.traffic_classes = vec![0, 1, 2, 2];
        config.priomap = [2, 2, 1, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2];
        let mut seen = [0; 5];
        for flow in 0..1000u64 {
            let flow = flow.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            for (priority, bands) in [(3, 1..=1), (2, 2..=2), (0, 3..=4), (9, 3..=4)] {
                let mut driver = mq(config.clone());
                driver.offer(packet(flow, priority), Time::ZERO);
                let band = band_of(&driver);
                assert!(bands.contains(&band), "priority {priority} is in band {band}");
                seen[band as usize] += u32::from(priority == 0);
            }
        }
        assert_eq!(seen[..3], [0, 0, 0]);
        // A binomial of 1000 flows has a standard deviation of 16.
        assert!(seen[3].abs_diff(500) < 100, "{seen:?}");
    }

    proptest! {
        /// Against a queue for each band: the next packet is that of the first band, from the one after the
        /// last sender on, that has one.
        #[test]
        fn it_is_a_round_robin_of_packets(
            bands in 1usize..6,
            operations in proptest::collection::vec(proptest::option::of(any::<u64>()), 1..200),
        ) {
            let mut driver = mq(Config::of_bands(bands));
            let mut model: Vec<VecDeque<u64>> = vec![VecDeque::new(); bands];
            let (mut turn, mut next) = (usize::from(bands > 1), 0);
            for operation in operations {
                match operation {
                    Some(flow) => {
                        driver.offer(packet(flow, 0), Time::ZERO);
                        let band = FlowHash::from_raw(flow).bucket(SALT, bands as u32) as usize;
                        model[band].push_back(next);
                        next += 1;
                    }
                    None => {
                        let order = (0..bands).map(|step| (turn + step) % bands);
                        let band = order.into_iter().find(|band| !model[*band].is_empty());
                        let expected = band.and_then(|band| {
                            turn = (band + 1) % bands;
                            model[band].pop_front()
                        });
                        prop_assert_eq!(driver.next(Time::ZERO), expected);
                    }
                }
            }
        }
    }
}
