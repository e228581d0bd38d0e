//! Against a model that is written as the algorithm is told, with ordered sets; and what it guarantees.

use alloc::collections::{BTreeSet, VecDeque};

use super::*;
use crate::classify::{Classifier, Filter};
use crate::discipline::Discipline;
use crate::rate::Rate;
use crate::sharing::borrowing::{LEVELS, PRIORITIES, SharedClass};
use crate::sharing::tree::NO_PARENT;
use crate::testing::{Driver, fifo, in_class};
use proptest::collection::vec;
use proptest::prelude::*;

fn class(minor: u16, parent: Option<u16>, rate: u64, ceil: u64) -> ClassConfig {
    ClassConfig {
        ceil: Some(kbit(ceil)),
        burst: Some(3000),
        cburst: Some(3000),
        quantum: Some(1500),
        ..ClassConfig::of_rate(minor, parent, kbit(rate))
    }
}

fn kbit(kbit: u64) -> Rate {
    Rate::from_bits_per_second(kbit * 1000).unwrap()
}

fn config(classes: Vec<ClassConfig>) -> Config {
    Config {
        classifier: Classifier {
            handle: 1,
            ..Classifier::default()
        },
        classes,
        ..Config::default()
    }
}

fn driver(config: Config) -> Driver<Htb> {
    let leaves = config.check().unwrap().leaves().len();
    Driver::new(Htb::node(config, (0..leaves).map(|_| fifo(4000)).collect()).unwrap())
}

#[test]
fn a_class_is_one_cache_line() {
    assert_eq!(core::mem::size_of::<SharedClass<Buckets>>(), 64);
}

proptest! {
    /// Against tokens that are counted, over pauses and debts of minutes.
    #[test]
    fn buckets_are_as_tokens_are_counted(
        rate in 8u64..200_000, above in 0u64..200_000, depth in 0u32..=((LONGEST >> TICK) as u32), ceil_depth in 0u32..1 << 20,
        sent in vec((0u64..100_000_000, 0u32..12, 1u32..9000, any::<bool>()), 1..50),
    ) {
        let bits = |bits: u64| Rate::from_bits_per_second(bits).unwrap().meter();
        let (rate, ceil) = (bits(rate), bits(rate + above));
        let full = |depth: u32| i64::from(depth) << TICK;
        let mut buckets = Buckets {
            empty_at: 0u64.wrapping_sub(full(depth) as u64),
            ceil_empty_at: 0u64.wrapping_sub(full(ceil_depth) as u64),
            charged_at: 0,
            rate, ceil, depth, ceil_depth,
        };
        let (mut of_rate, mut of_ceil, mut now) = (full(depth), full(ceil_depth), 0);
        for (pause, magnitude, length, borrows) in sent {
            now += pause << magnitude;
            buckets.charge(Sent { now, length, completion: now }, borrows);
            let elapsed = ((pause << magnitude) as i64).min(LONGEST);
            let paid = |tokens: i64, depth: u32, meter: RateMeter| {
                ((tokens + elapsed).min(full(depth)) - meter.nanos(length.into()) as i64).max(1 - LONGEST)
            };
            of_rate = if borrows { of_rate + elapsed } else { paid(of_rate, depth, rate) };
            of_ceil = paid(of_ceil, ceil_depth, ceil);
            let expected = match (of_ceil, of_rate) {
                (..0, _) => (Mode::CantSend, -of_ceil as u64),
                (_, ..0) => (Mode::MayBorrow, -of_rate as u64),
                _ => (Mode::CanSend, 0),
            };
            prop_assert_eq!(buckets.mode(now), expected, "at {}", now);
        }
    }
}

/// Round robins by pointers that hold on to a class, or remember where it was.
#[derive(Default)]
struct ModelRound {
    members: BTreeSet<usize>,
    pointer: Option<usize>,
    remembered: Option<usize>,
}

impl ModelRound {
    fn next(&mut self) {
        self.pointer = self
            .pointer
            .and_then(|at| self.members.range(at + 1..).next().copied());
    }
}

struct ModelClass {
    parent: Option<usize>,
    level: usize,
    mode: Mode,
    tokens: i64,
    ceil_tokens: i64,
    charged_at: u64,
    event: Option<(u64, u64, usize)>,
    active: BTreeSet<u8>,
    feeds: Vec<ModelRound>,
    queue: VecDeque<u32>,
    deficits: [i64; LEVELS],
}

/// The algorithm in its plainest form, over fifos without limits.
struct Model {
    config: Config,
    classes: Vec<ModelClass>,
    rows: Vec<Vec<ModelRound>>,
    events: Vec<BTreeSet<(u64, u64, usize)>>,
    /// When each level's events were to be looked at, as far as was known.
    looked_for: Vec<u64>,
    inserted: u64,
    now: u64,
}

fn rounds() -> Vec<ModelRound> {
    (0..PRIORITIES).map(|_| ModelRound::default()).collect()
}

impl Model {
    fn new(config: &Config) -> Model {
        let tree = config.check().unwrap();
        let class = |(place, settings): (usize, &ClassConfig)| ModelClass {
            parent: Some(tree.parent(place) as usize).filter(|&parent| parent != NO_PARENT as usize),
            level: match tree.children(place) {
                [] => 0,
                _ => LEVELS - 1 - usize::from(tree.depth(place)),
            },
            mode: Mode::CanSend,
            tokens: i64::from(settings.depths().0) * 64,
            ceil_tokens: i64::from(settings.depths().1) * 64,
            charged_at: 0,
            event: None,
            active: BTreeSet::new(),
            feeds: rounds(),
            queue: VecDeque::new(),
            deficits: [0; LEVELS],
        };
        Model {
            classes: config.classes.iter().enumerate().map(class).collect(),
            config: config.clone(),
            rows: (0..LEVELS).map(|_| rounds()).collect(),
            events: vec![BTreeSet::new(); LEVELS],
            looked_for: vec![u64::MAX; LEVELS],
            inserted: 0,
            now: 0,
        }
    }

    fn enqueue(&mut self, place: usize, length: u32) {
        self.classes[place].queue.push_back(length);
        if self.classes[place].active.is_empty() {
            let prio = self.config.classes[place].prio;
            self.classes[place].active.insert(prio);
            self.connect(place, prio);
        }
    }

    fn connect(&mut self, place: usize, prio: u8) {
        let class = &self.classes[place];
        match (class.mode, class.parent) {
            (Mode::CanSend, _) => {
                self.rows[class.level][usize::from(prio)].members.insert(place);
            }
            (Mode::MayBorrow, Some(parent)) => {
                let feed = &mut self.classes[parent].feeds[usize::from(prio)].members;
                let was_empty = feed.is_empty();
                feed.insert(place);
                if was_empty {
                    self.classes[parent].active.insert(prio);
                    self.connect(parent, prio);
                }
            }
            _ => {}
        }
    }

    fn disconnect(&mut self, place: usize, prio: u8) {
        let class = &self.classes[place];
        match (class.mode, class.parent) {
            (Mode::CanSend, _) => {
                let row = &mut self.rows[class.level][usize::from(prio)];
                if row.pointer == Some(place) {
                    row.next();
                }
                row.members.remove(&place);
            }
            (Mode::MayBorrow, Some(parent)) => {
                let feed = &mut self.classes[parent].feeds[usize::from(prio)];
                if feed.pointer == Some(place) {
                    (feed.pointer, feed.remembered) = (None, Some(place));
                }
                feed.members.remove(&place);
                if feed.members.is_empty() {
                    self.classes[parent].active.remove(&prio);
                    self.disconnect(parent, prio);
                }
            }
            _ => {}
        }
    }

    fn mode_of(&self, place: usize, elapsed: i64) -> (Mode, u64) {
        let class = &self.classes[place];
        match (class.ceil_tokens + elapsed, class.tokens + elapsed) {
            (ceil, _) if ceil < 0 => (Mode::CantSend, -ceil as u64),
            (_, tokens) if tokens < 0 => (Mode::MayBorrow, -tokens as u64),
            _ => (Mode::CanSend, 0),
        }
    }

    fn set_mode(&mut self, place: usize, mode: Mode) {
        let prios = self.classes[place].active.clone();
        prios.iter().for_each(|&prio| self.disconnect(place, prio));
        self.classes[place].mode = mode;
        prios.iter().for_each(|&prio| self.connect(place, prio));
    }

    fn wait(&mut self, place: usize, nanos: u64) {
        let level = self.classes[place].level;
        let event = (self.now + nanos, self.inserted, place);
        self.inserted += 1;
        self.events[level].insert(event);
        self.looked_for[level] = self.looked_for[level].min(event.0);
        self.classes[place].event = Some(event);
    }

    fn elapsed(&self, place: usize) -> i64 {
        (self.now - self.classes[place].charged_at).min(60_000_000_000) as i64
    }

    fn do_events(&mut self, level: usize) {
        if self.now < self.looked_for[level] {
            return;
        }
        while let Some(&(time, _, place)) = self.events[level].first()
            && time <= self.now
        {
            self.events[level].pop_first();
            self.classes[place].event = None;
            let (mode, wait) = self.mode_of(place, self.elapsed(place));
            if mode != self.classes[place].mode {
                self.set_mode(place, mode);
            }
            if mode != Mode::CanSend {
                self.wait(place, wait);
            }
        }
        self.looked_for[level] = self.events[level].first().map_or(u64::MAX, |event| event.0);
    }

    fn charge(&mut self, leaf: usize, level: usize, length: u32) {
        let mut next = Some(leaf);
        while let Some(place) = next {
            let (elapsed, settings) = (self.elapsed(place), &self.config.classes[place]);
            let (depth, ceil_depth) = settings.depths();
            let paid = |tokens: i64, depth: u32, rate: Rate| {
                let filled = (tokens + elapsed).min(i64::from(depth) * 64);
                (filled - rate.meter().nanos(length.into()) as i64).max(1 - 60_000_000_000)
            };
            let class = &mut self.classes[place];
            class.tokens = match class.level < level {
                true => class.tokens + elapsed,
                false => paid(class.tokens, depth, settings.rate),
            };
            class.ceil_tokens = paid(class.ceil_tokens, ceil_depth, settings.ceil());
            class.charged_at = self.now;
            next = class.parent;
            let (own_level, before) = (class.level, class.mode);
            let (mode, wait) = self.mode_of(place, 0);
            if mode != before {
                self.set_mode(place, mode);
                if let Some(event) = self.classes[place].event.take() {
                    self.events[own_level].remove(&event);
                }
                if mode != Mode::CanSend {
                    self.wait(place, wait);
                }
            }
        }
    }

    fn look_up(&mut self, level: usize, prio: usize) -> usize {
        let mut way: Vec<usize> = Vec::new();
        loop {
            let round = match way.last() {
                None => &mut self.rows[level][prio],
                Some(&above) => &mut self.classes[above].feeds[prio],
            };
            if let (None, Some(remembered)) = (round.pointer, round.remembered.take()) {
                round.pointer = round.members.range(remembered..).next().copied();
            }
            let turn = round.pointer;
            match turn {
                None => {
                    round.pointer = round.members.first().copied();
                    if way.pop().is_some() {
                        match way.last() {
                            None => self.rows[level][prio].next(),
                            Some(&above) => self.classes[above].feeds[prio].next(),
                        }
                    }
                }
                Some(place) if self.classes[place].level == 0 => return place,
                Some(place) => way.push(place),
            }
        }
    }

    /// The class and length of the packet sent, or when to ask again.
    fn dequeue(&mut self, now: u64) -> Result<(usize, u32), u64> {
        if self.classes.iter().all(|class| class.queue.is_empty()) {
            return Err(u64::MAX);
        }
        self.now = now;
        for level in 0..LEVELS {
            self.do_events(level);
            let Some(prio) = (0..PRIORITIES).find(|&prio| !self.rows[level][prio].members.is_empty()) else {
                continue;
            };
            let place = self.look_up(level, prio);
            let length = self.classes[place]
                .queue
                .pop_front()
                .expect("an active class has packets");
            let class = &mut self.classes[place];
            class.deficits[level] -= i64::from(length);
            if class.deficits[level] < 0 {
                class.deficits[level] += i64::from(self.config.classes[place].quantum.unwrap());
                match (level, class.parent) {
                    (0, _) => self.rows[0][prio].next(),
                    (_, parent) => self.classes[parent.expect("it borrows")].feeds[prio].next(),
                }
            }
            if self.classes[place].queue.is_empty() {
                self.disconnect(place, prio as u8);
                self.classes[place].active.clear();
            }
            self.charge(place, level, length);
            return Ok((place, length));
        }
        Err(self.looked_for.iter().copied().min().unwrap_or(u64::MAX))
    }
}

/// A tree of up to 12 classes, children slower than their parents; ceils and all else at random.
fn trees() -> impl Strategy<Value = Config> {
    let class = (
        0usize..12,
        20u64..100,
        0u64..4,
        0u8..3,
        1500u32..6000,
        1500u32..6000,
        200u32..4000,
    );
    vec(class, 2..12).prop_map(|drawn| {
        let mut classes: Vec<ClassConfig> = Vec::new();
        let mut depths = Vec::new();
        for (place, (parent, percent, above, prio, burst, cburst, quantum)) in drawn.into_iter().enumerate() {
            let parent = Some(parent).filter(|&parent| parent < place && depths[parent] < LEVELS - 1);
            depths.push(parent.map_or(0, |parent: usize| depths[parent] + 1));
            let most = parent.map_or(20_000, |parent| classes[parent].rate.bits_per_second() / 1000);
            let rate = (most * percent / 100).max(8);
            classes.push(ClassConfig {
                prio,
                burst: Some(burst),
                cburst: Some(cburst),
                quantum: Some(quantum),
                ..class_with(place, parent, rate, rate + rate * above / 2)
            });
        }
        config(classes)
    })
}

fn class_with(place: usize, parent: Option<usize>, rate: u64, ceil: u64) -> ClassConfig {
    class(
        place as u16 + 1,
        parent.map(|parent| parent as u16 + 1),
        rate,
        ceil,
    )
}

proptest! {
    /// Packet by packet and watchdog by watchdog.
    #[test]
    fn it_is_the_model(
        config in trees(),
        steps in vec((0u8..8, any::<prop::sample::Index>(), 40u32..1515, 0u64..3_000_000), 1..500),
    ) {
        let (mut htb, mut model) = (driver(config.clone()), Model::new(&config));
        let leaves = config.check().unwrap().leaves().to_vec();
        let mut offered = Vec::new();
        let mut now = 0;
        for (step, leaf, length, pause) in steps {
            match step {
                0..=3 => {
                    let place = *leaf.get(&leaves) as usize;
                    let packet = in_class(config.classes[place].minor, length);
                    htb.offer(packet, Time::from_nanos(now));
                    model.enqueue(place, length);
                    offered.push((place, length));
                }
                4 => now += pause,
                _ => loop {
                    let sent = htb.next(Time::from_nanos(now)).map(|cookie| offered[cookie as usize]);
                    let expected = model.dequeue(now);
                    prop_assert_eq!(sent, expected.ok(), "at {}", now);
                    if let Err(due) = expected {
                        let watchdog = htb.root.watchdog().map_or(u64::MAX, Time::nanos);
                        prop_assert_eq!(watchdog, due, "at {}", now);
                        if step == 7 && due != u64::MAX {
                            now = due;
                        }
                        break;
                    }
                },
            }
        }
    }
}

/// The length of the packet with this cookie.
fn length_of(cookie: u64) -> u32 {
    [1500, 64, 700, 1200][cookie as usize % 4]
}

const LONGEST_PACKET: f64 = 1500.0;

/// Keeps leaves backlogged on a line that is never busy, and records when each sent how many bytes.
fn backlogged(config: &Config, leaves: &[u16], until: Time) -> Vec<Vec<(u64, u32)>> {
    let mut htb = driver(config.clone());
    let mut sent: Vec<Vec<(u64, u32)>> = vec![Vec::new(); leaves.len()];
    let mut leaf_of: Vec<usize> = Vec::new();
    let mut now = Time::ZERO;
    let mut waiting: Vec<usize> = (0..leaves.len()).flat_map(|leaf| [leaf; 3]).collect();
    while now < until {
        for leaf in waiting.drain(..) {
            let packet = in_class(leaves[leaf], length_of(leaf_of.len() as u64));
            leaf_of.push(leaf);
            htb.offer(packet, now);
        }
        match htb.next(now) {
            Some(cookie) => {
                let leaf = leaf_of[cookie as usize];
                sent[leaf].push((now.nanos(), length_of(cookie)));
                waiting.push(leaf);
            }
            None => now = htb.root.watchdog().expect("packets are queued"),
        }
    }
    sent
}

fn bytes_in(rate: Rate, nanos: u64) -> f64 {
    rate.bits_per_second() as f64 / 8e9 * nanos as f64
}

/// Over every interval: no more than `rate` and `above`, and no less than `least` less `below`.
fn check_rates(sent: &[(u64, u32)], (rate, above): (Rate, f64), (least, below): (Rate, f64)) {
    for (first, &(from, _)) in sent.iter().enumerate() {
        let mut bytes = 0.0;
        for (place, &(to, length)) in sent.iter().enumerate().skip(first) {
            bytes += f64::from(length);
            // The cost of each packet is rounded down to whole ns.
            let most = bytes_in(rate, to - from + (place + 1 - first) as u64) * 1.000_001 + above;
            assert!(
                bytes <= most,
                "{bytes} bytes in {} ns, more than {most}",
                to - from
            );
            // Up to the next departure nothing more comes.
            let end = sent.get(place + 1).map_or(to, |next| next.0);
            let due = bytes_in(least, end - from) * 0.999_999 - below;
            assert!(
                bytes >= due,
                "{bytes} bytes in {} ns, less than {due}",
                end - from
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the siblings do: a class with a backlog gets its rate over every interval, but for a packet or two, and no
    /// class gets more than its ceil, but for its burst and the packet that went over it. (A class above others is given no
    /// less than what these are sure of, so their bursts count too.)
    #[test]
    fn rates_are_kept_and_ceils_not_exceeded(
        shares in vec((1u64..40, 0u64..3, 0u8..3), 2..7),
        groups in 1usize..3,
        busy in any::<u8>(),
    ) {
        let total: u64 = shares.iter().map(|share| share.0).sum();
        let rate_of = |share: u64| 8_000 * share / total;
        let group_of = |leaf: usize| leaf % groups;
        let mut classes = vec![class(1, None, 8_000, 8_000)];
        for group in 0..groups {
            let rate = (0..shares.len()).filter(|&leaf| group_of(leaf) == group).map(|leaf| rate_of(shares[leaf].0)).sum();
            classes.push(class(2 + group as u16, Some(1), rate, (rate * 3 / 2).min(8_000)));
        }
        for (leaf, &(share, above, prio)) in shares.iter().enumerate() {
            let rate = rate_of(share);
            let minor = 10 + leaf as u16;
            classes.push(ClassConfig { prio, ..class(minor, Some(2 + group_of(leaf) as u16), rate, rate * (1 + above)) });
        }
        let config = config(classes.clone());
        let leaves: Vec<u16> = (0..shares.len()).filter(|leaf| busy >> leaf & 1 == 1).map(|leaf| 10 + leaf as u16).collect();
        prop_assume!(!leaves.is_empty());
        let sent = backlogged(&config, &leaves, Time::from_millis(400));
        let settings = |minor: u16| classes.iter().find(|class| class.minor == minor).unwrap();
        for (sent, &minor) in sent.iter().zip(&leaves) {
            let leaf = settings(minor);
            let burst = 3000.0 + LONGEST_PACKET;
            check_rates(sent, (leaf.ceil(), burst), (leaf.rate, 2.0 * LONGEST_PACKET));
        }
        for minor in 1..2 + groups as u16 {
            let below = |leaf: &u16| minor == 1 || settings(*leaf).parent == Some(minor);
            let mut together: Vec<(u64, u32)> = sent.iter().zip(&leaves).filter(|(_, leaf)| below(leaf))
                .flat_map(|(sent, _)| sent.clone()).collect();
            together.sort_unstable();
            let bursts = (leaves.len() + 1) as f64 * (3000.0 + LONGEST_PACKET);
            check_rates(&together, (settings(minor).ceil(), bursts), (Rate::from_bits_per_second(1).unwrap(), f64::MAX));
        }
    }
}

/// Bytes that each leaf sent.
fn sums(sent: &[Vec<(u64, u32)>]) -> Vec<f64> {
    let sum = |sent: &Vec<(u64, u32)>| sent.iter().map(|&(_, length)| f64::from(length)).sum();
    sent.iter().map(sum).collect()
}

#[test]
fn what_is_left_is_shared_by_quantum_and_the_higher_priority_first() {
    let leaf = |minor, prio, quantum| ClassConfig {
        prio,
        quantum: Some(quantum),
        ..class(minor, Some(1), 800, 8_000)
    };
    let root = class(1, None, 8_000, 8_000);
    // 1 byte a microsecond in all; 0.1 for each leaf, 0.8 left.
    let equals = config(vec![root.clone(), leaf(2, 0, 1500), leaf(3, 0, 4500)]);
    let sent = sums(&backlogged(&equals, &[2, 3], Time::from_secs(4)));
    assert!(
        (sent[0] - 1.2e6).abs() < 3e4 && (sent[1] - 2.8e6).abs() < 3e4,
        "{sent:?}"
    );
    let ranked = config(vec![root, leaf(2, 1, 1500), leaf(3, 0, 1500)]);
    let sent = sums(&backlogged(&ranked, &[2, 3], Time::from_secs(4)));
    assert!(
        (sent[0] - 0.4e6).abs() < 3e4 && (sent[1] - 3.6e6).abs() < 3e4,
        "{sent:?}"
    );
}

#[test]
fn what_no_class_is_for_goes_first_and_unshaped() {
    let mut slow = config(vec![class(1, None, 100, 100), class(2, Some(1), 80, 100)]);
    slow.direct_qlen = 2;
    let mut htb = driver(slow);
    for minor in [2, 2, 2, 7, 1, 0] {
        htb.offer(in_class(minor, 1500), Time::ZERO);
    }
    assert_eq!(
        htb.returned,
        [(5, DropReason::NoClass)],
        "the direct queue is full"
    );
    assert_eq!(htb.drain(Time::ZERO), [3, 4, 0, 1, 2]);
    htb.offer(in_class(2, 1500), Time::ZERO);
    assert_eq!(htb.next(Time::ZERO), None, "two bursts and a packet are gone");
}

/// As `tc qdisc add dev eth0 root handle 1: htb default 12` leaves it, until classes are added.
#[test]
fn without_classes_all_goes_straight_through() {
    let mut none = config(Vec::new());
    none.classifier.default = Some(12);
    let mut htb = driver(none.clone());
    for minor in [12, 0] {
        htb.offer(in_class(minor, 1500), Time::ZERO);
    }
    assert_eq!(htb.next(Time::ZERO), Some(0));

    let mut some = config(vec![class(12, None, 8, 8)]);
    some.classifier.default = Some(12);
    htb.reconfigure(some.clone(), Time::ZERO);
    htb.offer(in_class(12, 1500), Time::ZERO);
    htb.reconfigure(none.clone(), Time::ZERO);
    assert_eq!(htb.drain(Time::ZERO), [1, 2], "also what was in a class");

    let nowhere = Filter {
        class: 12,
        ..Filter::default()
    };
    none.classifier.filters = vec![nowhere].into();
    assert!(none.check().is_err(), "a filter that leads nowhere");
    some.classifier.default = Some(13);
    assert!(
        some.check().is_err(),
        "beside classes a default must be one of them"
    );
}

#[test]
fn a_leaf_that_holds_packets_back_is_left_alone_until_it_has_one() {
    use crate::queues::tbf::{self, Tbf};
    use crate::queues::token_bucket::Profile;
    let mut htb = driver(config(vec![
        class(1, None, 8_000, 8_000),
        class(2, Some(1), 800, 8_000),
        class(3, Some(1), 800, 8_000),
    ]));
    let slow = tbf::Config {
        profile: Profile::new(kbit(8), 1500),
        limit: None,
    };
    htb.replace_class(2, Box::new(Tbf::node(slow, Some(fifo(10))).unwrap()), Time::ZERO);
    for minor in [2, 2, 3] {
        htb.offer(in_class(minor, 1500), Time::ZERO);
    }
    assert_eq!(htb.drain(Time::ZERO), [0, 2]);
    assert_eq!(htb.root.watchdog(), Some(Time::from_millis(1500)));
    htb.offer(in_class(3, 1500), Time::from_millis(9));
    assert_eq!(htb.drain(Time::from_millis(9)), [3]);
    assert_eq!(htb.drain(Time::from_millis(1500)), [1]);
}

#[test]
fn classes_come_and_go_while_packets_are_queued() {
    let leaf = |minor| class(minor, Some(1), 800, 8_000);
    let with = |minors: &[u16]| {
        let mut config = config(
            [class(1, None, 8_000, 8_000)]
                .into_iter()
                .chain(minors.iter().map(|&minor| leaf(minor)))
                .collect(),
        );
        config.classifier.default = Some(3);
        config
    };
    let mut htb = driver(with(&[2, 3]));
    for minor in [2, 2, 3] {
        htb.offer(in_class(minor, 100), Time::ZERO);
    }
    htb.reconfigure(with(&[3, 4]), Time::ZERO);
    htb.offer(in_class(4, 100), Time::ZERO);
    assert_eq!(
        htb.root.backlog().packets,
        4,
        "those of class 2 are in the default class"
    );
    htb.reconfigure(with(&[3, 4, 5]), Time::ZERO);
    assert_eq!(htb.drain(Time::ZERO), [2, 3, 0, 1]);

    // A leaf that classes are put below: what it held is placed again.
    htb.offer(in_class(4, 100), Time::ZERO);
    let mut deeper = with(&[3, 4, 5]);
    deeper.classes[3].parent = Some(4);
    htb.reconfigure(deeper, Time::ZERO);
    assert_eq!(htb.drain(Time::ZERO), [4]);
    let gone = htb
        .root
        .reconfigure(&with(&[2, 4]), Time::ZERO, &mut Pool::with_capacity(1));
    assert!(gone.is_err(), "the default would be a class that is not there");
}

/// The turn that was the last class's goes on from the first one.
#[test]
fn the_class_whose_turn_it_is_may_go_and_others_after_it() {
    let with = |leaves: &[u16]| {
        let leaf = |&minor: &u16| class(minor, Some(1), 8_000, 8_000);
        config(
            core::iter::once(class(1, None, 80_000, 80_000))
                .chain(leaves.iter().map(leaf))
                .collect(),
        )
    };
    let mut htb = driver(with(&[2, 3, 4]));
    for minor in [4, 4, 4, 2, 3] {
        htb.offer(in_class(minor, 100), Time::ZERO);
    }
    let _ = htb.next(Time::ZERO);
    for leaves in [&[2, 3][..], &[2], &[2, 3, 4]] {
        htb.reconfigure(with(leaves), Time::ZERO);
    }
    assert_eq!(
        htb.drain(Time::from_secs(1)).len() as u64 + htb.root.backlog().packets,
        4
    );
}

/// Else whoever changes parameters often enough lifts the limit.
#[test]
fn a_change_brings_no_new_tokens() {
    let of = |ceil| config(vec![class(1, None, 800, ceil), class(2, Some(1), 800, ceil)]);
    let mut htb = driver(of(800));
    let mut sent = 0;
    for step in 0..100u64 {
        let now = Time::from_millis(step);
        for _ in 0..2 {
            htb.offer(in_class(2, 1500), now);
        }
        sent += htb.drain(now).len();
        htb.reconfigure(of(800 + step % 3 * 800), now);
    }
    // 100 bytes a millisecond, at most thrice that, bursts of 3000 and the packet over them.
    assert!(sent * 1500 <= 100 * 300 + 4500, "{sent}");
}

#[test]
fn what_cannot_be_kept_is_refused_by_name() {
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = config(vec![class(1, None, 8_000, 8_000), class(2, Some(1), 800, 8_000)]);
        change(&mut config);
        let error = config.check().err().expect("it is wrong");
        (error.parameter().unwrap_or("none").to_owned(), error.to_string())
    };
    assert_eq!(refused(&|config| config.classes[1].rate = kbit(9_000)).0, "ceil");
    assert_eq!(
        refused(&|config| (config.classes[1].rate, config.classes[1].ceil) = (kbit(9_000), None)).1,
        "`rate` of class 2 is 9Mbit, but must be at most 8Mbit, the rate of its parent; lower it, or raise the parent's: \
         what a class is sure of comes out of its parent's rate"
    );
    assert_eq!(refused(&|config| config.classes[1].prio = 8).0, "prio");
    assert_eq!(
        refused(&|config| config.classes[1].quantum = Some(0)).0,
        "quantum"
    );
    assert_eq!(
        refused(&|config| config.classes[1].burst = Some(u32::MAX)).0,
        "burst"
    );
    assert_eq!(refused(&|config| config.classes[1].cburst = Some(0)).0, "cburst");
    assert_eq!(refused(&|config| config.r2q = 0).0, "r2q");
    assert_eq!(
        refused(&|config| config.classifier.default = Some(1)).0,
        "default"
    );
}
