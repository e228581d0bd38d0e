//! Enhanced transmission selection (IEEE 802.1Qaz; Linux's `ets`): bands in strict priority, and below them
//! bands that share the rest by deficit round robin.
//!
//! The first `strict` bands work as in [`prio`](crate::queues::prio): the band with the lowest number that
//! has a packet to send sends. If none of them has, the other bands take turns like the classes of
//! [`drr`](super::drr_classes), each with its quantum. A packet's band is chosen as in prio: by the class
//! that it names, a filter, the default, the priomap.
//!
//! Throttled bands (a shaper inside) are allowed. A strict one is skipped, so that the bands below it may
//! send in the meantime. A sharing one is skipped and keeps its deficit. The watchdog is the earliest of the
//! throttled bands'. A packet that arrives in a strict band during the turn of a sharing band goes first;
//! then the turn continues.
//!
//! Deviations from Linux: 1 to 64 bands instead of 1 to 16, and their number is fixed at construction. A
//! quantum below 256 bytes is rejected; Linux takes 256 instead, and so does our reader of tc's language.
//! Throttled bands are allowed. Non-goal, as in
//! prio: a limit on what the strict bands send. Use shapers inside them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::arrival::Needs;
use crate::classify::Classifier;
use crate::discipline::{Algorithm, Class, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::queues::bands::{self, Bands};
use crate::registry::{
    About, Children, Description, Family, Parameter, Placing, Unit, check_class_ranges, check_ranges,
};
use crate::rounds::class_round_robin::ClassRoundRobin;
use crate::time::Time;

/// The quantum if none is set: one full Ethernet frame.
pub const QUANTUM: u32 = 1514;

/// Parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The number of bands in strict priority, counted from the first: 0 to 64.
    pub strict: u8,
    /// The bytes that each further band may send in a round, 256 to 2^30. The cost per packet is constant if
    /// they are at least the longest packet.
    pub quanta: Vec<u32>,
    /// The band, counted from 0, for each priority. It applies to packets that the classifier gives no class.
    pub priomap: [u8; 16],
    /// The classifier. Its class numbers are bands counted from 1.
    pub classifier: Classifier,
}

impl Config {
    /// The parameters for these bands. Packets that the classifier gives no class go to the last band, as in
    /// Linux.
    ///
    /// ```
    /// use fairgate::rounds::ets::Config;
    /// let config = Config::of_bands(2, vec![4500, 3000, 1500]);
    /// assert_eq!(config.priomap, [4; 16]);
    /// ```
    pub fn of_bands(strict: u8, quanta: Vec<u32>) -> Config {
        let bands = usize::from(strict) + quanta.len();
        Config {
            strict,
            quanta,
            priomap: [bands.saturating_sub(1).min(usize::from(u8::MAX)) as u8; 16],
            classifier: Classifier::default(),
        }
    }

    fn bands(&self) -> usize {
        usize::from(self.strict) + self.quanta.len()
    }

    fn check(&self, inner: usize) -> Result<(), ConfigError> {
        if self.bands() != inner {
            return Err(ConfigError::conflict(
                "bands",
                format!("{} strict and {} quanta", self.strict, self.quanta.len()),
                format!("{inner} in all, the number of inner disciplines"),
                "give a quantum for each band that is not strict",
            ));
        }
        bands::check_number(inner)?;
        let mut settings = Settings::of(self);
        check_ranges(PARAMETERS, &mut settings)?;
        for (index, minor) in (1..=inner as u32).enumerate() {
            check_class_ranges(CLASS_PARAMETERS, &mut settings, index, minor)?;
        }
        bands::check_placing(&self.priomap, &self.classifier, inner, Ets::NAME)
    }
}

/// The settings of ets as users write them: a quantum in each band that is not strict, or none for the
/// default.
#[derive(Clone, Debug)]
pub struct Settings {
    strict: u8,
    quanta: Vec<Option<u32>>,
    priomap: Option<[u8; 16]>,
    classifier: Classifier,
}

impl Settings {
    fn of(config: &Config) -> Settings {
        let strict = core::iter::repeat_n(None, config.strict.into());
        Settings {
            strict: config.strict,
            quanta: strict.chain(config.quanta.iter().copied().map(Some)).collect(),
            priomap: Some(config.priomap),
            classifier: Classifier::default(),
        }
    }

    fn config(self) -> Result<Config, ConfigError> {
        let bands = self.quanta.len();
        let Some((strict, sharing)) = self.quanta.split_at_checked(self.strict.into()) else {
            return Err(ConfigError::conflict(
                "strict",
                self.strict,
                format!("at most {bands}, the number of bands"),
                "add bands, or make fewer bands strict",
            ));
        };
        let given = (1..)
            .zip(strict)
            .find_map(|(minor, quantum)| Some((minor, (*quantum)?)));
        if let Some((minor, quantum)) = given {
            return Err(ConfigError::class_conflict(
                minor,
                "quantum",
                quantum,
                format!("left out in the first {}, the strict bands", self.strict),
                "leave it out, or make fewer bands strict",
            ));
        }
        let quanta = sharing.iter().map(|quantum| quantum.unwrap_or(QUANTUM));
        let linux = Config::of_bands(self.strict, quanta.collect());
        Ok(Config {
            priomap: self.priomap.unwrap_or(linux.priomap),
            classifier: self.classifier,
            ..linux
        })
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Settings>] = &[
    Parameter::new(
        "strict",
        Unit::Count("bands"),
        0..=64,
        "The number of bands in strict priority, counted from the first.",
        |ets, _| &mut ets.strict,
    ),
    Parameter::new(
        "priomap",
        Unit::List(16),
        0..=63,
        "The band, counted from 0, for each packet priority if no filter chooses a class; none is the \
         last band.",
        |ets, _| &mut ets.priomap,
    ),
];

/// The parameters of a class as users set them.
pub const CLASS_PARAMETERS: &[Parameter<Settings>] = &[Parameter::new(
    "quantum",
    Unit::Bytes,
    256..=1 << 30,
    "The bytes that the band may send in a round, 1514 by default; not in a strict band.",
    |ets, class| &mut ets.quanta[class],
)];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Settings, Config> = Description::of_settings(
    About {
        name: "ets",
        family: Family::Rounds,
        summary: "Enhanced transmission selection: strict bands first, the others share by deficit round \
            robin",
        when: "Where a little traffic must always go first and the rest is shared in given proportions.",
        children: Children::Bands,
    },
    PARAMETERS,
    |minors| Settings {
        strict: 0,
        quanta: vec![None; minors.len()],
        priomap: None,
        classifier: Classifier::default(),
    },
    Settings::config,
    |config, parts| Ok(Box::new(Ets::node(config, parts.children)?)),
)
.with_class_parameters(CLASS_PARAMETERS)
.with_placing(Placing::Classifier(|ets| &mut ets.classifier, |_| 64));

/// The discipline. Make one with [`Ets::node`].
#[derive(Debug)]
pub struct Ets {
    strict: Bands,
    sharing: ClassRoundRobin,
    config: Config,
}

impl Ets {
    /// Creates bands over `bands`, the highest priority first: one for each strict band and each quantum.
    ///
    /// # Errors
    /// If the number of bands differs, a quantum is out of range, or a band is named that does not exist.
    pub fn node(config: Config, bands: Vec<Box<dyn Discipline>>) -> Result<Node<Ets>, ConfigError> {
        config.check(bands.len())?;
        Ok(Node::new(Ets::of_bands(config, bands)))
    }

    fn of_bands(config: Config, mut bands: Vec<Box<dyn Discipline>>) -> Ets {
        let sharing = bands.split_off(config.strict.into());
        Ets {
            strict: Bands::new(bands),
            sharing: ClassRoundRobin::new(sharing.into_iter().zip(config.quanta.iter().copied())),
            config,
        }
    }

    fn take_bands(&mut self) -> Vec<Box<dyn Discipline>> {
        let strict = self.strict.bands.drain(..);
        let sharing = self.sharing.classes.drain(..).map(|class| class.inner);
        strict.chain(sharing).collect()
    }

    /// Notes that band `band` was replaced or moved and may hold packets.
    fn wake(&mut self, band: usize) {
        match band.checked_sub(self.config.strict.into()) {
            None => self.strict.replaced(band),
            Some(index) => self.sharing.activate(index),
        }
    }
}

impl Algorithm for Ets {
    const NAME: &'static str = "ets";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let count = self.config.bands();
        let Config {
            priomap, classifier, ..
        } = &mut self.config;
        let Ok(band) = bands::choose(priomap, classifier, count, id, now, pool) else {
            return Verdict::Unclassified;
        };
        match band.checked_sub(self.config.strict.into()) {
            None => self.strict.enqueue(band, id, now, pool),
            Some(index) => self.sharing.enqueue(index, id, now, pool),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.strict
            .dequeue(now, pool)
            .or_else(|| self.sharing.dequeue(now, pool))
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.strict.drain(pool, into);
        self.sharing.drain(pool, into);
    }

    fn watchdog(&self) -> Option<Time> {
        [self.strict.watchdog(), self.sharing.watchdog()]
            .into_iter()
            .flatten()
            .min()
    }

    fn needs(&self) -> Needs {
        self.config.classifier.needs()
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// All parameters may change, but not the number of bands. If the number of strict bands stays the same,
    /// the round robin continues with the new quanta; otherwise it starts again.
    fn reconfigure(&mut self, mut config: Config, _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        let bands = self.config.bands();
        config.check(bands)?;
        config.classifier.take_over(&self.config.classifier);
        if config.strict == self.config.strict {
            for (class, &quantum) in self.sharing.classes.iter_mut().zip(&config.quanta) {
                class.quantum = quantum;
            }
            self.config = config;
        } else {
            *self = Ets::of_bands(config, self.take_bands());
            (0..bands).for_each(|band| self.wake(band));
        }
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        let strict = self.strict.bands.iter().map(Box::as_ref);
        let sharing = self.sharing.classes.iter().map(|class| class.inner.as_ref());
        bands::visit(strict.chain(sharing), visit);
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        let band = bands::index_of(minor, self.config.bands())?;
        Some(match band.checked_sub(self.config.strict.into()) {
            None => &mut self.strict.bands[band],
            Some(index) => &mut self.sharing.classes[index].inner,
        })
    }

    fn class_replaced(&mut self, minor: u32, _now: Time, _pool: &mut Pool) {
        let band = bands::index_of(minor, self.config.bands());
        self.wake(band.expect("only an existing class is replaced"));
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("active_bands", Variable::Integer(self.sharing.active().into()));
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
    use proptest::prelude::*;

    fn config(strict: u8, quanta: &[u32]) -> Config {
        let mut config = Config::of_bands(strict, quanta.to_vec());
        config.classifier.handle = 1;
        config
    }

    fn ets(strict: u8, quanta: &[u32]) -> Driver<Ets> {
        let config = config(strict, quanta);
        let bands = (0..config.bands()).map(|_| fifo(1000)).collect();
        Driver::new(Ets::node(config, bands).unwrap())
    }

    /// A shaper with tokens for one packet of 1000 bytes, and then for one per 8 ms at 1 Mbit/s.
    fn slow(mbit: u64) -> Box<dyn Discipline> {
        let config = tbf::Config {
            profile: Profile::new(Rate::mbit(mbit), 1000),
            ..tbf::Config::of_rate(Rate::mbit(mbit))
        };
        Box::new(Tbf::node(config, None).unwrap())
    }

    fn rejected(change: impl FnOnce(&mut Config)) -> Option<&'static str> {
        let mut config = config(1, &[1500, 3000]);
        change(&mut config);
        let bands = (0..3).map(|_| fifo(1)).collect();
        Ets::node(config, bands).expect_err("it is rejected").parameter()
    }

    #[test]
    fn values_out_of_range_are_rejected_by_name() {
        assert_eq!(rejected(|config| config.strict = 2), Some("bands"));
        assert_eq!(rejected(|config| config.quanta = vec![1500]), Some("bands"));
        assert_eq!(rejected(|config| config.quanta[0] = 255), Some("quantum"));
        assert_eq!(rejected(|config| config.priomap[3] = 3), Some("priomap"));
        assert_eq!(rejected(|config| config.classifier.default = Some(4)), None);
        let none = Ets::node(Config::default(), Vec::new()).err().unwrap();
        assert_eq!(none.parameter(), Some("bands"));
    }

    #[test]
    fn strict_bands_go_first_and_the_others_share_by_quantum() {
        let mut driver = ets(2, &[2000, 1000]);
        for minor in [4, 4, 3, 3, 3, 3, 2, 1] {
            driver.offer(in_class(minor, 1000), Time::ZERO);
        }
        // Band 4 was active first. Its quantum is one packet, and that of band 3 is two.
        assert_eq!(driver.drain(Time::ZERO), [7, 6, 0, 2, 3, 1, 4, 5]);
    }

    #[test]
    fn a_turn_interrupted_by_a_strict_band_continues() {
        let mut driver = ets(1, &[2000, 2000]);
        for minor in [2, 2, 3, 3] {
            driver.offer(in_class(minor, 1000), Time::ZERO);
        }
        assert_eq!(driver.next(Time::ZERO), Some(0));
        driver.offer(in_class(1, 1000), Time::ZERO);
        assert_eq!(driver.drain(Time::ZERO), [4, 1, 2, 3]);
    }

    #[test]
    fn the_priority_chooses_the_band_without_a_class_and_unknown_bands_become_priority_0() {
        let mut driver = ets(1, &[2000]);
        let urgent = Packet {
            priority: 6,
            ..Packet::of_length(100)
        };
        let mut config = driver.root.algorithm().config();
        config.priomap[6] = 0;
        driver.reconfigure(config, Time::ZERO);
        for packet in [Packet::of_length(100), in_class(9, 100), urgent] {
            driver.offer(packet, Time::ZERO);
        }
        assert_eq!(driver.drain(Time::ZERO), [2, 0, 1]);
    }

    #[test]
    fn a_throttled_strict_band_lets_the_others_send() {
        let mut driver = ets(1, &[1000, 1000]);
        driver.replace_class(1, slow(1), Time::ZERO);
        for minor in [1, 1, 2, 3] {
            driver.offer(in_class(minor, 1000), Time::ZERO);
        }
        assert_eq!(driver.drain(Time::ZERO), [0, 2, 3]);
        let due = driver.root.watchdog().expect("band 1 holds a packet back");
        assert_eq!(due, Time::from_millis(8));
        driver.offer(in_class(2, 1000), due);
        assert_eq!(driver.drain(due), [1, 4], "strict again when it may send");
        assert_eq!(driver.root.watchdog(), None);
    }

    #[test]
    fn if_all_bands_are_throttled_the_watchdog_is_the_earliest() {
        let mut driver = ets(1, &[1000, 1000]);
        for (minor, mbit) in [(1, 1), (2, 2), (3, 4)] {
            driver.replace_class(minor, slow(mbit), Time::ZERO);
            for _ in 0..2 {
                driver.offer(in_class(minor, 1000), Time::ZERO);
            }
        }
        assert_eq!(driver.drain(Time::ZERO), [0, 2, 4]);
        assert_eq!(driver.root.watchdog(), Some(Time::from_millis(2)));
        assert_eq!(driver.drain(Time::from_millis(2)), [5]);
        assert_eq!(driver.root.watchdog(), Some(Time::from_millis(4)));
        assert_eq!(driver.drain(Time::from_millis(8)), [1, 3]);
    }

    #[test]
    fn bands_become_strict_or_sharing_and_keep_their_packets() {
        let mut driver = ets(1, &[1000, 1000]);
        for minor in [3, 3, 2, 2, 1] {
            driver.offer(in_class(minor, 1000), Time::ZERO);
        }
        driver.reconfigure(config(2, &[1000]), Time::ZERO);
        assert_eq!(driver.next(Time::ZERO), Some(4));
        assert_eq!(driver.next(Time::ZERO), Some(2), "band 2 is strict now");
        driver.reconfigure(config(0, &[1000, 1000, 2000]), Time::ZERO);
        assert_eq!(driver.drain(Time::ZERO), [3, 0, 1]);
    }

    #[test]
    fn the_longest_packet_is_sent() {
        let mut driver = ets(0, &[1 << 30]);
        driver.offer(in_class(1, u32::MAX), Time::ZERO);
        assert_eq!(driver.drain(Time::ZERO), [0]);
    }

    proptest! {
        /// Compares with a simple model: strict bands in order, then a deque of the active bands.
        #[test]
        fn equals_an_exact_model(
            strict in 0u8..3,
            quanta in prop::collection::vec(256u32..3000, 1..4),
            operations in prop::collection::vec((any::<bool>(), 0usize..6, 40u32..2000), 1..300),
        ) {
            use alloc::collections::VecDeque;
            let mut driver = ets(strict, &quanta);
            let strict = usize::from(strict);
            let bands = strict + quanta.len();
            let mut queues: Vec<VecDeque<(u64, u32)>> = vec![VecDeque::new(); bands];
            let mut round: VecDeque<(usize, u32)> = VecDeque::new();
            let mut offered = 0;
            for (arrives, number, length) in operations {
                if arrives {
                    let band = number % bands;
                    driver.offer(in_class(band as u32 + 1, length), Time::ZERO);
                    if band >= strict && queues[band].is_empty() {
                        round.push_back((band, quanta[band - strict]));
                    }
                    queues[band].push_back((offered, length));
                    offered += 1;
                    continue;
                }
                let urgent = queues[..strict].iter_mut().find_map(VecDeque::pop_front);
                let expected = urgent.or_else(|| loop {
                    let (band, deficit) = round.pop_front()?;
                    let (_, length) = queues[band][0];
                    if length <= deficit {
                        let sent = queues[band].pop_front();
                        if !queues[band].is_empty() {
                            round.push_front((band, deficit - length));
                        }
                        break sent;
                    }
                    round.push_back((band, deficit + quanta[band - strict]));
                });
                prop_assert_eq!(driver.next(Time::ZERO), expected.map(|(cookie, _)| cookie));
            }
        }
    }
}
