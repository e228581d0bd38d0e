//! Compares the module with a simple model, and tests its guarantees.

use crate::discipline::{Inspect, Reconfigure};
use std::collections::{HashMap, VecDeque};

use proptest::collection::vec;
use proptest::prelude::*;

use super::table::LOOKS;
use super::*;
use crate::classify::{Classifier, Filter, Match};
use crate::discipline::{Discipline, Node, Verdict};
use crate::error::ConfigError;
use crate::flow::{FlowKey, Sip};
use crate::packet::{ClassId, Packet};
use crate::rounds::drr_classes::{ClassConfig, Config, DrrClasses};
use crate::slot::Slot;
use crate::stats::Statistics;
use crate::testing::fifo;
use crate::time::Time;

const SEED: u64 = 7;
/// The number of the template. Its classes are 10, 11, ...
const FIRST: u32 = 10;
const OVERFLOW: u32 = 1;

fn template(count: u32) -> Template {
    Template {
        class: FIRST,
        count,
        by: HostBy::source(),
        overflow: OVERFLOW,
    }
}

/// A round robin of the overflow class and `count` classes for hosts. All packets are sent to the template.
fn config(count: u32) -> Config {
    let class = |minor| ClassConfig { minor, quantum: 300 };
    Config {
        classifier: Classifier {
            handle: 1,
            default: Some(FIRST),
            ..Classifier::default()
        },
        classes: [OVERFLOW]
            .into_iter()
            .chain(FIRST..FIRST + count)
            .map(class)
            .collect(),
        templates: Templates {
            list: vec![template(count)],
            seed: SEED,
        },
    }
}

/// The fifos are short, so that packets are dropped.
fn round_robin(count: u32) -> Node<DrrClasses> {
    let inner = (0..=count).map(|_| fifo(3)).collect();
    DrrClasses::node(config(count), inner).expect("the configuration is valid")
}

fn headers(host: u8) -> FlowKey {
    FlowKey::of([10, 0, 0, host].into(), [192, 0, 2, 1].into(), 17, 1, 2)
}

/// A root discipline under test. Packets are identified by their cookies.
struct Driver {
    root: Node<DrrClasses>,
    pool: Pool,
    offered: u64,
}

impl Driver {
    fn new(count: u32) -> Driver {
        Driver {
            root: round_robin(count),
            pool: Pool::with_capacity(256),
            offered: 0,
        }
    }

    /// Enqueues a packet. Returns the number of the class in which it is queued.
    fn offer_packet(&mut self, packet: Packet, headers: Option<FlowKey>) -> Option<u32> {
        let before = self.backlogs();
        let packet = Packet {
            cookie: self.offered,
            ..packet
        };
        self.offered += 1;
        let id = match headers {
            Some(key) => self.pool.insert((packet, key)),
            None => self.pool.insert(packet),
        };
        let verdict = self.root.enqueue(id.expect("a slot"), Time::ZERO, &mut self.pool);
        self.release_returned();
        let after = self.backlogs();
        let grown = before.iter().zip(&after).find(|(before, after)| before != after);
        assert_eq!(grown.is_some(), verdict == Verdict::Queued);
        grown.map(|((minor, _), _)| *minor)
    }

    fn offer(&mut self, host: u8) -> Option<u32> {
        self.offer_packet(Packet::of_length(200), Some(headers(host)))
    }

    fn next(&mut self) -> Option<u64> {
        let id = self.root.dequeue(Time::ZERO, &mut self.pool)?;
        Some(self.pool.release(id).cookie)
    }

    fn release_returned(&mut self) {
        while let Some((id, _)) = self.pool.take_returned() {
            self.pool.release(id);
        }
    }

    fn backlogs(&self) -> Vec<(u32, u64)> {
        let mut backlogs = Vec::new();
        self.root
            .visit_classes(&mut |class| backlogs.push((class.minor, class.discipline.backlog().packets)));
        backlogs
    }

    /// Returns the hosts that have classes, and the number of packets that each class enqueued for them.
    fn tenants(&self) -> Vec<(u32, String, u64)> {
        let mut tenants = Vec::new();
        self.root.visit_classes(&mut |class| {
            if let Holder::Host(tenant) = class.holder {
                let own = tenant.statistics(&class.discipline.statistics());
                tenants.push((class.minor, tenant.to_string(), own.enqueued.packets));
            }
        });
        tenants
    }
}

/// The model: a list of classes from the least to the most recently used, searched from its start.
struct Model {
    ages: VecDeque<u32>,
    owners: HashMap<u8, u32>,
    queued: HashMap<u32, VecDeque<u64>>,
    period: u64,
    overflowed: HashMap<u64, u64>,
    /// The buckets of the hosts' hashes.
    buckets: Vec<u64>,
}

impl Model {
    fn new(count: u32) -> Model {
        let by = HostBy::source();
        let table = HostTable::new(&template(count), SEED, |class| class as usize);
        let host = |number: u8| by.host(&Packet::of_length(1).into(), Some(&headers(number)));
        let bucket = |number: u8| table.bucket_of(&host(number).expect("it has headers")) as u64;
        Model {
            ages: (FIRST..FIRST + count).collect(),
            owners: HashMap::new(),
            queued: HashMap::new(),
            period: 1,
            overflowed: HashMap::new(),
            buckets: (0..HOSTS).map(bucket).collect(),
        }
    }

    fn is_empty(&self, class: u32) -> bool {
        self.queued.get(&class).is_none_or(VecDeque::is_empty)
    }

    fn renew(&mut self, class: u32) {
        self.ages.retain(|other| *other != class);
        self.ages.push_back(class);
    }

    fn class_of(&mut self, host: u8) -> u32 {
        if let Some(&class) = self.owners.get(&host) {
            self.renew(class);
            return class;
        }
        if self.is_empty(OVERFLOW) {
            self.period += 1;
        }
        let bucket = self.buckets[usize::from(host)];
        if self.overflowed.get(&bucket) != Some(&self.period) {
            let seen: Vec<u32> = self.ages.iter().copied().take(LOOKS as usize).collect();
            let idle = seen.iter().position(|class| self.is_empty(*class));
            let busy = &seen[..idle.unwrap_or(seen.len())];
            busy.iter().for_each(|class| self.renew(*class));
            if let Some(class) = idle.map(|place| seen[place]) {
                self.renew(class);
                self.owners.retain(|_, owned| *owned != class);
                self.owners.insert(host, class);
                return class;
            }
        }
        self.overflowed.insert(bucket, self.period);
        OVERFLOW
    }
}

const HOSTS: u8 = 30;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Offer(u8),
    Send,
    /// A change of the parameters of the same classes.
    Change(u32),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        8 => (0..HOSTS).prop_map(Operation::Offer),
        6 => Just(Operation::Send),
        1 => (100u32..900).prop_map(Operation::Change),
    ];
    vec(operation, 0..200)
}

proptest! {
    #[test]
    fn the_table_equals_the_model(count in 1u32..25, operations in operations()) {
        let mut driver = Driver::new(count);
        let mut model = Model::new(count);
        let mut owners: HashMap<u64, u8> = HashMap::new();
        let mut sent: HashMap<u8, u64> = HashMap::new();
        for operation in operations {
            match operation {
                Operation::Offer(host) => {
                    let expected = model.class_of(host);
                    let queue = model.queued.entry(expected).or_default();
                    let cookie = driver.offered;
                    let is_full = queue.len() == 3;
                    prop_assert_eq!(driver.offer(host), (!is_full).then_some(expected));
                    if !is_full {
                        queue.push_back(cookie);
                        owners.insert(cookie, host);
                    }
                    let is_shared = queue.iter().any(|other| owners[other] != host);
                    prop_assert!(expected == OVERFLOW || !is_shared, "two hosts in class {}", expected);
                }
                Operation::Send => {
                    let Some(cookie) = driver.next() else {
                        prop_assert!(model.queued.values().all(VecDeque::is_empty));
                        continue;
                    };
                    let queue = model.queued.values_mut().find(|queue| queue.front() == Some(&cookie));
                    queue.expect("the packet is the first of its class").pop_front();
                    let before = sent.insert(owners[&cookie], cookie);
                    let is_in_order = before.is_none_or(|before| before < cookie);
                    prop_assert!(is_in_order, "a host's packets were reordered");
                }
                Operation::Change(quantum) => {
                    let mut changed = config(count);
                    changed.classes.iter_mut().for_each(|class| class.quantum = quantum);
                    changed.templates.seed = quantum.into();
                    driver.root.reconfigure(&changed, Time::ZERO, &mut driver.pool).unwrap();
                }
            }
            prop_assert_eq!(driver.tenants().len(), model.owners.len());
        }
    }

    #[test]
    fn hosts_are_identified_by_the_selected_fields_only(
        flips in any::<[bool; 8]>(), counts in any::<[bool; 7]>(), marks in any::<[u32; 3]>(),
    ) {
        let packet = |mark| Slot::from(Packet { mark, ..Packet::of_length(100) });
        let key = FlowKey { vlan: 7, ..headers(1) };
        let mut other = key;
        let flip = |place: usize, number: &mut u16| *number ^= u16::from(flips[place]);
        other.source[15] ^= u8::from(flips[0]);
        other.destination[12] ^= u8::from(flips[1]) << 3;
        flip(2, &mut other.source_port);
        flip(3, &mut other.destination_port);
        flip(4, &mut other.vlan);
        other.protocol ^= u8::from(flips[5]);
        other.traffic_class ^= u8::from(flips[6]);
        other.interface ^= u16::from(flips[7]);
        let by = HostBy {
            source: counts[0].then_some(AddressMask::ALL),
            destination: counts[1].then(|| AddressMask::of_prefixes(5, 0).expect("5 bits")),
            source_port: counts[2],
            destination_port: counts[3],
            vlan: counts[4],
            protocol: counts[5],
            mark: if counts[6] { marks[0] } else { 0 },
        };
        let has_other_mark = (marks[1] ^ marks[2]) & by.mark != 0;
        let is_other = (0..6).any(|field| flips[field] && counts[field]) || has_other_mark;
        let hosts = (by.host(&packet(marks[1]), Some(&key)), by.host(&packet(marks[2]), Some(&other)));
        prop_assert_eq!(hosts.0 != hosts.1, is_other);
        let hasher = Sip::new([1, 2]);
        let hash = |host: Option<Host>| by.hash(&host.unwrap(), hasher);
        prop_assert_eq!(hash(hosts.0) != hash(hosts.1), is_other);
    }

    /// Compares bit by bit.
    #[test]
    fn a_prefix_selects_its_leading_bits(ipv4 in 0u8..40, ipv6 in 0u8..=140) {
        match AddressMask::of_prefixes(ipv4, ipv6) {
            Ok(mask) => {
                let bits = |length: u8, all: u32| (0..all).map(move |bit| u32::from(length) > bit);
                prop_assert!((0..32).map(|bit| mask.ipv4() << bit >> 31 == 1).eq(bits(ipv4, 32)));
                prop_assert!((0..128).map(|bit| mask.ipv6() << bit >> 127 == 1).eq(bits(ipv6, 128)));
            }
            Err(error) => {
                prop_assert!(ipv4 > 32 || ipv6 > 128);
                prop_assert_eq!(error.parameter(), Some(if ipv4 > 32 { "ipv4" } else { "ipv6" }));
            }
        }
    }
}

#[test]
fn families_differ_and_packets_without_address_have_no_host() {
    let by = HostBy::source();
    let packet = Packet::of_length(100);
    let slot = Slot::from(packet);
    let ipv4 = headers(1);
    let mapped = FlowKey {
        ethertype: crate::flow::ethertype::IPV6,
        ..ipv4
    };
    let arp = FlowKey {
        ethertype: 0x0806,
        ..FlowKey::default()
    };
    assert_ne!(by.host(&slot, Some(&ipv4)), by.host(&slot, Some(&mapped)));
    assert_eq!(by.host(&slot, Some(&arp)), None);
    assert_eq!(by.host(&slot, None), None);
    let marked = HostBy {
        mark: 1,
        ..HostBy::default()
    };
    assert!(marked.host(&slot, None).is_some());

    let mut driver = Driver::new(2);
    assert_eq!(driver.offer_packet(packet, Some(arp)), Some(OVERFLOW));
    assert_eq!(driver.offer_packet(packet, None), Some(OVERFLOW));
    assert!(driver.tenants().is_empty());
}

/// A packet that names a class of a template must not get into another host's class.
#[test]
fn the_host_decides_whichever_class_of_the_template_is_named() {
    let mut driver = Driver::new(3);
    let named = |minor: u32| Packet {
        class: ClassId::new(1, minor as u16),
        ..Packet::of_length(100)
    };
    for minor in [FIRST + 2, FIRST, FIRST + 1] {
        assert_eq!(driver.offer_packet(named(minor), Some(headers(5))), Some(FIRST));
    }
    assert_eq!(
        driver.offer_packet(named(OVERFLOW), Some(headers(5))),
        Some(OVERFLOW)
    );
}

#[test]
fn a_host_has_its_own_statistics() {
    let mut driver = Driver::new(1);
    assert_eq!((driver.offer(1), driver.offer(1)), (Some(FIRST), Some(FIRST)));
    assert_eq!(driver.tenants(), [(FIRST, "10.0.0.1".to_owned(), 2)]);
    while driver.next().is_some() {}
    assert_eq!(driver.offer(2), Some(FIRST));
    assert_eq!(driver.tenants(), [(FIRST, "10.0.0.2".to_owned(), 1)]);

    driver
        .root
        .replace_class(FIRST, fifo(9), Time::ZERO, &mut driver.pool)
        .unwrap();
    assert_eq!(driver.offer(2), Some(FIRST));
    assert_eq!(
        driver.tenants(),
        [(FIRST, "10.0.0.2".to_owned(), 2)],
        "the moved packet and the new one"
    );
}

/// Keeping packets in order has a cost: a host has to wait until the overflow class was empty.
#[test]
fn a_host_stays_in_the_overflow_class_until_it_was_empty() {
    let mut driver = Driver::new(1);
    assert_eq!(driver.offer(1), Some(FIRST));
    assert_eq!(
        (driver.offer(2), driver.offer(2)),
        (Some(OVERFLOW), Some(OVERFLOW))
    );
    while driver.backlogs()[1].1 > 0 {
        driver.next();
    }
    assert!(driver.backlogs()[0].1 > 0);
    assert_eq!(
        driver.offer(2),
        Some(OVERFLOW),
        "a class of its own would be faster"
    );
    while driver.next().is_some() {}
    assert_eq!(driver.offer(2), Some(FIRST));
}

#[test]
fn hosts_are_displayed_in_the_usual_notation() {
    let shown = |by: HostBy| {
        let key = FlowKey {
            vlan: 9,
            ..headers(77)
        };
        let packet = Packet {
            mark: 0x1f,
            ..Packet::of_length(1)
        };
        let host = by.host(&packet.into(), Some(&key)).unwrap();
        let tenant = Tenant {
            by: &by,
            host: &host,
            before: &Statistics::default(),
        };
        tenant.to_string()
    };
    assert_eq!(shown(HostBy::source()), "10.0.0.77");
    let pair = HostBy {
        source: Some(AddressMask::of_prefixes(24, 64).unwrap()),
        destination: Some(AddressMask::of_bits(0xff, 0)),
        ..HostBy::default()
    };
    assert_eq!(shown(pair), "10.0.0.0/24 > 0.0.0.1/0.0.0.255");
    let rest = HostBy {
        protocol: true,
        destination_port: true,
        vlan: true,
        mark: 0xf0,
        ..HostBy::default()
    };
    assert_eq!(shown(rest), "protocol 17 destination port 2 vlan 9 mark 0x10");
}

#[test]
fn invalid_parameters_are_rejected_by_name() {
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = config(3);
        change(&mut config);
        let inner = config.classes.iter().map(|_| fifo(3)).collect();
        let error: ConfigError = DrrClasses::node(config, inner).expect_err("the configuration is invalid");
        error.parameter()
    };
    let of_template =
        |change: &dyn Fn(&mut Template)| refused(&|config| change(&mut config.templates.list[0]));
    assert_eq!(of_template(&|template| template.count = 0), Some("count"));
    assert_eq!(of_template(&|template| template.count = 4), Some("count"));
    assert_eq!(of_template(&|template| template.count = u32::MAX), Some("count"));
    assert_eq!(
        of_template(&|template| template.by = HostBy::default()),
        Some("each")
    );
    assert_eq!(of_template(&|template| template.overflow = 99), Some("overflow"));
    assert_eq!(
        of_template(&|template| template.overflow = FIRST + 1),
        Some("overflow")
    );
    let twice = |config: &mut Config| {
        let mut other = template(1);
        other.class += 2;
        config.templates.list.push(other);
    };
    assert_eq!(refused(&twice), Some("count"));
    assert_eq!(
        refused(&|config| config.classifier.default = Some(FIRST + 1)),
        Some("default")
    );
    let filter = Filter {
        condition: Match::default(),
        outcome: (FIRST + 2).into(),
        ..Filter::default()
    };
    assert_eq!(
        refused(&|config| config.classifier.filters = vec![filter.clone()].into()),
        Some("class")
    );
}
