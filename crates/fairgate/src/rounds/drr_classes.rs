//! Deficit round robin over classes, each with a quantum and an inner discipline (Shreedhar & Varghese 1996;
//! Linux's `drr`). [`drr`](super::drr) is the same over hashed flows.
//!
//! The active list holds the active classes. The first class sends while the length of its next packet does
//! not exceed its deficit. Then it gets its quantum and moves to the end. A class that becomes active starts
//! with one quantum; its old deficit is lost. While two classes with quanta Q and q are backlogged, they
//! share in the ratio Q to q, to within a quantum and a packet. The cost is O(1) if every quantum is at least
//! the longest packet.
//!
//! A throttled class (a shaper inside) is skipped and keeps its deficit.
//!
//! An unclassified packet is dropped ([`DropReason::NoClass`]), as in Linux.
//!
//! Deviations from Linux: a quantum is at least 64 bytes, because a packet may take as many rounds as its
//! length divided by the quantum. Throttled classes are allowed. A class whose packets were removed from
//! outside stays in the active list until its turn comes.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use crate::arrival::Needs;
use crate::classify::{ClassMap, Classifier, Hosts, Templates};
use crate::discipline::{Algorithm, Class, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::registry::{About, Children, Description, Family, Parameter, Placing, Unit, check_class_ranges};
use crate::rounds::class_round_robin::ClassRoundRobin;
use crate::rounds::drr::{QUANTA, Quantum};
use crate::time::Time;

/// Parameters of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassConfig {
    /// The class's number.
    pub minor: u32,
    /// The bytes that the class may send in a round, 64 to 2^30.
    pub quantum: u32,
}

/// Parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The classifier.
    pub classifier: Classifier,
    /// The classes, in ascending order of their numbers.
    pub classes: Vec<ClassConfig>,
    /// The classes that are templates for hosts.
    pub templates: Templates,
}

/// The parameters of a class as users set them.
pub const CLASS_PARAMETERS: &[Parameter<Config>] = &[Parameter::new(
    "quantum",
    Unit::Bytes,
    QUANTA,
    "The bytes that the class may send in a round: its share is its part of the sum.",
    |drr, class| &mut drr.classes[class].quantum,
)];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "drr",
        family: Family::Rounds,
        summary: "Deficit round robin over classes, each with a quantum and any discipline inside",
        when: "To share a link between kinds of traffic, or users, in given proportions.",
        children: Children::Classes,
    },
    &[],
    |minors| Config {
        classes: minors
            .iter()
            .map(|minor| ClassConfig {
                minor: *minor,
                quantum: Quantum::default().0,
            })
            .collect(),
        ..Config::default()
    },
    |config, parts| Ok(Box::new(DrrClasses::node(config, parts.children)?)),
)
.with_class_parameters(CLASS_PARAMETERS)
.with_placing(Placing::Classes(
    |drr| &mut drr.classifier,
    |drr| &mut drr.templates,
));

impl Config {
    /// Checks all parameters and numbers the classes.
    fn check(&self) -> Result<ClassMap, ConfigError> {
        let map = ClassMap::new(self.classes.iter().map(|class| class.minor))?;
        let mut config = self.clone();
        for (index, class) in self.classes.iter().enumerate() {
            check_class_ranges(CLASS_PARAMETERS, &mut config, index, class.minor)?;
        }
        map.check(&self.classifier, DrrClasses::NAME)?;
        self.templates
            .check(&self.classifier, |minor| map.index(minor).is_some())?;
        Ok(map)
    }
}

/// The discipline. Make one with [`DrrClasses::node`].
#[derive(Debug)]
pub struct DrrClasses {
    round_robin: ClassRoundRobin,
    hosts: Hosts,
    map: ClassMap,
    config: Config,
}

impl DrrClasses {
    /// Creates a round robin over `inner`, one discipline for each of `config.classes`, in the same order.
    pub fn node(config: Config, inner: Vec<Box<dyn Discipline>>) -> Result<Node<DrrClasses>, ConfigError> {
        let map = config.check()?;
        map.check_disciplines(inner.len())?;
        let quanta = config.classes.iter().map(|class| class.quantum);
        Ok(Node::new(DrrClasses {
            round_robin: ClassRoundRobin::new(inner.into_iter().zip(quanta)),
            hosts: Hosts::new(&config.templates, |minor| map.checked_index(minor)),
            map,
            config,
        }))
    }
}

impl Algorithm for DrrClasses {
    const NAME: &'static str = "drr";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let Ok(minor) = self.config.classifier.classify(id, now, pool) else {
            return Verdict::Unclassified;
        };
        let Some(index) = minor.and_then(|minor| self.map.index(minor)) else {
            pool.give_back(id, DropReason::NoClass);
            return Verdict::Unclassified;
        };
        let classes = &self.round_robin.classes;
        let index = self
            .hosts
            .place(index, id, pool, &|index| classes[index].inner.as_ref());
        self.round_robin.enqueue(index, id, now, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.round_robin.dequeue(now, pool)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.round_robin.drain(pool, into);
    }

    fn watchdog(&self) -> Option<Time> {
        self.round_robin.watchdog()
    }

    fn needs(&self) -> Needs {
        self.config.classifier.needs()
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// Quanta and filters may change, but not the set of classes.
    fn reconfigure(&mut self, mut config: Config, _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        let minors = |config: &Config| config.classes.iter().map(|class| class.minor).collect::<Vec<_>>();
        if minors(&config) != minors(&self.config) {
            return Err(ConfigError::conflict(
                "classes",
                format!("{:x?}", minors(&config)),
                format!("{:x?}, the existing classes", minors(&self.config)),
                "replace the whole discipline to add or remove a class",
            ));
        }
        for (class, settings) in self.round_robin.classes.iter_mut().zip(&config.classes) {
            class.quantum = settings.quantum;
        }
        self.hosts = self
            .hosts
            .changed(&config.templates, |minor| self.map.checked_index(minor));
        config.classifier.take_over(&self.config.classifier);
        self.config = config;
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        self.visit_classes_at(0..usize::MAX, visit);
    }

    fn visit_classes_at(&self, places: Range<usize>, visit: &mut dyn FnMut(Class<'_>)) {
        let classes = self.config.classes.iter().zip(&self.round_robin.classes);
        for (index, (settings, class)) in classes.enumerate().skip(places.start).take(places.len()) {
            visit(Class {
                holder: self.hosts.holder(index),
                ..Class::new(settings.minor, class.inner.as_ref())
            });
        }
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        let index = self.map.index(minor)?;
        Some(&mut self.round_robin.classes[index].inner)
    }

    fn class_replaced(&mut self, minor: u32, _now: Time, _pool: &mut Pool) {
        let index = self.map.checked_index(minor);
        self.hosts.replaced(index);
        self.round_robin.activate(index);
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit(
            "active_classes",
            Variable::Integer(self.round_robin.active().into()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Reconfigure;
    use crate::queues::tbf::{self, Tbf};
    use crate::queues::token_bucket::Profile;
    use crate::rate::Rate;
    use crate::testing::{Driver, fifo, in_class};
    use proptest::prelude::*;

    fn drr(quanta: &[u32]) -> Driver<DrrClasses> {
        Driver::new(DrrClasses::node(config(quanta), quanta.iter().map(|_| fifo(1000)).collect()).unwrap())
    }

    fn config(quanta: &[u32]) -> Config {
        Config {
            classifier: Classifier {
                handle: 1,
                ..Classifier::default()
            },
            classes: (1..)
                .zip(quanta)
                .map(|(minor, &quantum)| ClassConfig { minor, quantum })
                .collect(),
            ..Config::default()
        }
    }

    #[test]
    fn a_quantum_below_the_packet_accumulates() {
        let mut driver = drr(&[500, 1000]);
        for minor in [1, 1, 2, 2, 2, 2] {
            driver.offer(in_class(minor, 1000), Time::ZERO);
        }
        assert_eq!(driver.drain(Time::ZERO), [2, 0, 3, 4, 1, 5]);
    }

    #[test]
    fn a_packet_without_a_class_is_dropped() {
        let mut driver = drr(&[500]);
        assert_eq!(driver.offer(in_class(2, 100), Time::ZERO), Verdict::Unclassified);
        assert_eq!(driver.returned, [(0, DropReason::NoClass)]);
    }

    #[test]
    fn a_throttled_class_is_skipped() {
        let mut driver = drr(&[1000, 1000]);
        let slow = tbf::Config {
            profile: Profile::new(Rate::mbit(1), 1000),
            ..tbf::Config::of_rate(Rate::mbit(1))
        };
        driver.replace_class(1, Box::new(Tbf::node(slow, None).unwrap()), Time::ZERO);
        for minor in [1, 1, 2, 2] {
            driver.offer(in_class(minor, 1000), Time::ZERO);
        }
        assert_eq!(driver.drain(Time::ZERO), [0, 2, 3]);
        let due = driver.root.watchdog().expect("class 1 holds a packet back");
        assert_eq!(due, Time::from_millis(8));
        assert_eq!(driver.drain(due), [1]);
        assert_eq!(driver.root.watchdog(), None);
    }

    #[test]
    fn if_all_classes_are_throttled_the_watchdog_is_the_earliest() {
        let mut driver = drr(&[1000, 1000]);
        for (minor, mbit) in [(1, 1), (2, 2)] {
            let slow = tbf::Config {
                profile: Profile::new(Rate::mbit(mbit), 1000),
                ..tbf::Config::of_rate(Rate::mbit(mbit))
            };
            driver.replace_class(minor, Box::new(Tbf::node(slow, None).unwrap()), Time::ZERO);
        }
        for minor in [1, 1, 2, 2] {
            driver.offer(in_class(minor, 1000), Time::ZERO);
        }
        assert_eq!(driver.drain(Time::ZERO), [0, 2]);
        assert_eq!(driver.root.watchdog(), Some(Time::from_millis(4)));
        assert_eq!(driver.drain(Time::from_millis(4)), [3]);
        assert_eq!(driver.root.watchdog(), Some(Time::from_millis(8)));
        assert_eq!(driver.drain(Time::from_millis(8)), [1]);
    }

    #[test]
    fn a_replaced_class_stays_in_the_active_list() {
        let mut driver = drr(&[1000, 1000]);
        for minor in [1, 2] {
            driver.offer(in_class(minor, 1000), Time::ZERO);
        }
        driver.replace_class(1, fifo(5), Time::ZERO);
        driver.replace_class(2, fifo(5), Time::ZERO);
        assert_eq!(driver.drain(Time::ZERO), [0, 1]);
    }

    #[test]
    fn the_set_of_classes_is_fixed() {
        let mut driver = drr(&[1000, 1000]);
        let mut pool = Pool::with_capacity(1);
        let fewer = driver.root.reconfigure(&config(&[1000]), Time::ZERO, &mut pool);
        assert_eq!(fewer.unwrap_err().parameter(), Some("classes"));
        let tiny = driver
            .root
            .reconfigure(&config(&[1000, 63]), Time::ZERO, &mut pool);
        assert_eq!(tiny.unwrap_err().parameter(), Some("quantum"));
        driver.reconfigure(config(&[1000, 2000]), Time::ZERO);
    }

    proptest! {
        /// Shreedhar & Varghese, theorem 1: the service of backlogged classes, each in units of its quantum,
        /// differs by at most one quantum and one packet of each.
        #[test]
        fn backlogged_classes_share_by_quantum(
            quanta in prop::collection::vec(64u32..3000, 2..5),
            lengths in prop::collection::vec(64u32..1514, 50),
        ) {
            let mut driver = drr(&quanta);
            let mut lengths = lengths.iter().cycle();
            let mut offered = Vec::new();
            for _ in 0..200 {
                for minor in 1..=quanta.len() as u32 {
                    let length = *lengths.next().unwrap();
                    offered.push((minor as usize - 1, length));
                    driver.offer(in_class(minor, length), Time::ZERO);
                }
            }
            let mut sent = vec![0u32; quanta.len()];
            for _ in 0..100 {
                let cookie = driver.next(Time::ZERO).unwrap();
                let (class, length) = offered[cookie as usize];
                sent[class] += length;
                let rounds = sent
                    .iter()
                    .zip(&quanta)
                    .map(|(&sent, &quantum)| f64::from(sent) / f64::from(quantum));
                let most = rounds.clone().fold(0.0, f64::max);
                let least = rounds.fold(f64::INFINITY, f64::min);
                let bound = 1.0 + 2.0 * 1514.0 / f64::from(*quanta.iter().min().unwrap());
                prop_assert!(most - least <= bound, "{sent:?} at quanta {quanta:?}");
            }
        }
    }
}
