//! The trees of a list.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairgate::flow::FlowKey;
use fairgate::{Link, Next, Packet, Pool, Time};
use fairgate_config::{ParameterInfo, ShardBy, Spec, Value, Workers};
use fairgate_run::subscribers::{DOWN, Settings, Subscribers, UP};
use proptest::prelude::*;

use super::{read_with, settings, text};

/// A subscriber of a random list: its number, its first prefix, whether it has one of IPv6, and its plan.
type Random = (u8, u8, bool, usize);

const PLANS: [&str; 3] = ["home", "business", ""];

/// Returns a list. Each subscriber has prefixes by its number, of which `size` makes one longer or shorter.
fn list_of(subscribers: &BTreeMap<u8, Random>) -> String {
    let mut list = "id,prefixes,down,up,plan\n".to_owned();
    for (number, size, has_six, plan) in subscribers.values() {
        let four = match size % 3 {
            0 => format!("10.0.{number}.0/24"),
            1 => format!("10.0.{number}.128/25"),
            _ => format!("10.0.{number}.7"),
        };
        let six = match has_six {
            true => format!(" 2001:db8:0:{number:x}00::/56"),
            false => String::new(),
        };
        let own = match PLANS[plan % 3] {
            "" => format!("{}mbit,{}mbit", 1 + u32::from(*size), 1 + u32::from(*number)),
            _ => ",".to_owned(),
        };
        list += &format!("{number},{four}{six},{own},{}\n", PLANS[plan % 3]);
    }
    list
}

fn random() -> impl Strategy<Value = BTreeMap<u8, Random>> {
    let subscriber = (any::<u8>(), any::<u8>(), any::<bool>(), 0..3usize);
    proptest::collection::vec(subscriber, 0..40)
        .prop_map(|all| all.into_iter().map(|one| (one.0, one)).collect())
}

fn with_shaper(shaper: usize) -> Settings {
    let shaper = ["htb", "hfsc", "cake"][shaper];
    settings(&format!(
        "file = \"list.csv\"\nmost_removed = 100\nshaper = \"{shaper}\""
    ))
}

fn read(shaper: usize, list: &str, before: Option<&Subscribers>) -> Subscribers {
    read_with(with_shaper(shaper), &[text("list.csv", list)], before).unwrap()
}

/// Returns the class that the filters of a tree choose for a packet.
fn class_of(tree: &Spec, source: IpAddr, destination: IpAddr) -> Option<u32> {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let key = FlowKey {
        source: bits(source),
        destination: bits(destination),
        ethertype: if source.is_ipv4() { 0x0800 } else { 0x86dd },
        ..FlowKey::default()
    };
    let mut pool = Pool::with_capacity(1);
    let id = pool.insert((Packet::of_length(100), key)).unwrap();
    tree.classifier().filters.find(&pool[id], Some(&key), None)
}

/// Returns the settings and the trees of all classes by their numbers.
fn classes(tree: &Spec) -> BTreeMap<u32, String> {
    let shown = |class: fairgate_config::ClassSpec<'_>| {
        let held = class.tree.map(ToString::to_string);
        (class.minor, format!("{:?} {held:?}", class.parameters))
    };
    tree.classes().into_iter().map(shown).collect()
}

fn last(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            IpAddr::V4((address.to_bits() | u32::MAX.checked_shr(length.into()).unwrap_or(0)).into())
        }
        IpAddr::V6(address) => {
            IpAddr::V6((address.to_bits() | u128::MAX.checked_shr(length.into()).unwrap_or(0)).into())
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The first and the last address of every prefix go to the class of its subscriber in both directions,
    /// and nothing else does. The class has the rate of the subscriber.
    #[test]
    fn every_prefix_leads_to_its_subscriber(all in random(), shaper in 0..3usize) {
        let subscribers = read(shaper, &list_of(&all), None);
        let elsewhere: IpAddr = "203.0.113.1".parse().unwrap();
        let elsewhere_six: IpAddr = "2001:db8:ffff::1".parse().unwrap();
        let [down, up] = subscribers.trees();
        for subscriber in &subscribers.list().subscribers {
            let number = subscribers.numbers().of_subscriber(&subscriber.id);
            prop_assert!(number.is_some());
            for prefix in &subscriber.prefixes {
                for address in [prefix.address(), last(prefix.address(), prefix.length())] {
                    let other = if address.is_ipv4() { elsewhere } else { elsewhere_six };
                    prop_assert_eq!(class_of(down, other, address), number);
                    prop_assert_eq!(class_of(up, address, other), number);
                    prop_assert_eq!(class_of(down, address, other), None);
                    prop_assert_eq!(class_of(up, other, address), None);
                }
            }
            for (tree, side) in [(down, DOWN), (up, UP)] {
                let class = tree.classes().into_iter().find(|class| Some(class.minor) == number).unwrap();
                let rate = subscriber.rates[side].most.unwrap();
                let value = |name: &str, parameters: &[(ParameterInfo, Value)]| {
                    let found = parameters.iter().find(|(info, _)| info.name == name);
                    found.map(|(info, value)| info.unit.show(value))
                };
                let shown = fairgate_config::units::format_rate(
                    fairgate::Rate::from_bits_per_second(rate).unwrap(),
                );
                let kept = match shaper {
                    0 => value("ceil", &class.parameters),
                    1 => value("ul", &class.parameters),
                    _ => value("bandwidth", &class.tree.unwrap().parameters()),
                };
                prop_assert_eq!(kept, Some(shown));
            }
        }
        for tree in subscribers.trees() {
            prop_assert!(tree.build(1).is_ok());
        }
    }

    /// The same list gives the same trees, in whatever order its lines are, as soon as it is numbered.
    #[test]
    fn equal_lists_give_equal_trees(all in random(), shaper in 0..3usize) {
        let list = list_of(&all);
        let first = read(shaper, &list, None);
        let again = read(shaper, &list, None);
        prop_assert_eq!(first.trees(), again.trees());
        let mut lines: Vec<&str> = list.lines().collect();
        lines[1..].reverse();
        let reversed = read(shaper, &lines.join("\n"), Some(&first));
        prop_assert_eq!(first.trees(), reversed.trees());
    }

    /// Another rate, a subscriber more or less: no other class changes, and none gets another number.
    #[test]
    fn a_change_leaves_the_classes_of_the_others(
        all in random(),
        changed in random(),
        shaper in 0..3usize,
    ) {
        let first = read(shaper, &list_of(&all), None);
        let after = read(shaper, &list_of(&changed), Some(&first));
        for side in [DOWN, UP] {
            let (before, now) = (classes(&first.trees()[side]), classes(&after.trees()[side]));
            for subscriber in &first.list().subscribers {
                let Some(same) = after.list().find(&subscriber.id) else {
                    continue;
                };
                let number = first.numbers().of_subscriber(&subscriber.id).unwrap();
                prop_assert_eq!(after.numbers().of_subscriber(&subscriber.id), Some(number));
                if same.rates == subscriber.rates {
                    prop_assert_eq!(&before[&number], &now[&number]);
                }
            }
            // The line, and the packets of nobody.
            prop_assert_eq!(&before[&2], &now[&2]);
        }
    }
}

/// A table of flows for each of many subscribers is small, unless it is asked for. What neighbours find each
/// other with has a class of its own, which a flood of unknown addresses can't fill.
#[test]
fn neighbours_find_each_other_in_a_class_of_their_own() {
    const NEIGHBOURS: Option<u32> = Some(3);
    for shaper in 0..3 {
        let subscribers = read(
            shaper,
            "id,prefixes,plan\n1,10.0.0.1 2001:db8:0:100::/56,home\n",
            None,
        );
        let [down, up] = subscribers.trees();
        let address = |text: &str| -> IpAddr { text.parse().unwrap() };
        let of = |tree, from, to| class_of(tree, address(from), address(to));
        assert_eq!(of(down, "2001:db8:ffff::1", "ff02::1:ff00:1"), NEIGHBOURS);
        assert_eq!(of(down, "fe80::1", "fe80::2"), NEIGHBOURS);
        assert_eq!(of(down, "10.9.0.1", "255.255.255.255"), NEIGHBOURS);
        assert_eq!(of(up, "fe80::2", "2001:db8:ffff::1"), NEIGHBOURS);
        assert_eq!(of(up, "0.0.0.0", "255.255.255.255"), NEIGHBOURS);
        assert_eq!(of(up, "::", "ff02::1:ff00:1"), NEIGHBOURS);
        assert_eq!(of(down, "10.9.0.1", "10.0.0.1"), Some(16));
        assert_eq!(of(down, "10.9.0.1", "10.0.0.2"), None, "the default");
        let arp = FlowKey {
            ethertype: fairgate::flow::ethertype::ARP,
            ..FlowKey::default()
        };
        let mut pool = Pool::with_capacity(1);
        let id = pool.insert((Packet::of_length(42), arp)).unwrap();
        for tree in [down, up] {
            let found = tree.classifier().filters.find(&pool[id], Some(&arp), None);
            assert_eq!(found, NEIGHBOURS);
        }
    }
}

/// Several workers can divide the trees of each kind. Worker 0 has the classes of frames without an address.
#[test]
fn workers_can_divide_the_subscribers() {
    let list =
        "id,prefixes,plan\n1,10.0.0.1 2001:db8:0:100::/56,home\n2,10.0.0.2,business\n3,10.0.0.3,home\n";
    for shaper in 0..3 {
        let subscribers = read(shaper, list, None);
        for tree in subscribers.trees() {
            let workers = Workers {
                count: 2,
                by: ShardBy::Class,
            };
            let sharded = tree.sharded(workers).unwrap();
            let classes = [0, 1].map(|worker| -> Vec<u32> {
                let classes = sharded.part(worker).classes();
                classes.iter().map(|class| class.minor).collect()
            });
            assert_eq!(classes[0][..3], [1, 2, 3], "{classes:?}");
            assert_eq!(classes[1][..2], [1, 2], "{classes:?}");
            assert_eq!(
                classes[0].len() + classes[1].len(),
                2 + 1 + 1 + 1 + 3,
                "{classes:?}"
            );
        }
    }
}

/// Linux names 65,535 classes. A list may have more: packets reach the last one, also with several workers.
#[test]
fn more_subscribers_than_linux_has_class_numbers() {
    const COUNT: u32 = 70_000;
    let address = |number: u32| IpAddr::V4((0x0a00_0000 + number).into());
    let rows = (0..COUNT).map(|number| format!("{number},{},home\n", address(number)));
    let list: String = std::iter::once("id,prefixes,plan\n".to_owned())
        .chain(rows)
        .collect();
    let subscribers = read(0, &list, None);
    let [down, _] = subscribers.trees();
    let last = subscribers.numbers().of_subscriber("69999");
    assert!(last > Some(0xffff), "{last:?}");
    assert_eq!(
        class_of(down, "203.0.113.1".parse().unwrap(), address(COUNT - 1)),
        last
    );
    let workers = Workers {
        count: 2,
        by: ShardBy::Class,
    };
    let sharded = down.sharded(workers).unwrap();
    let holds_it = |worker| {
        let part = sharded.part(worker);
        part.classes().iter().any(|class| Some(class.minor) == last)
    };
    assert!(holds_it(0) != holds_it(1), "one worker has it");
    let mut link: Link<u32> = Link::new(down.build(1).unwrap(), 10);
    for number in [0, COUNT - 1] {
        let key = FlowKey::of([203, 0, 113, 1].into(), address(number), 17, 53, 53);
        link.enqueue((Packet::of_length(1000), key), number, Time::ZERO)
            .unwrap();
    }
    let mut sent_by = BTreeMap::new();
    while let Next::Packet(departure) = link.dequeue(Time::from_secs(1)) {
        sent_by.insert(departure.payload, departure.slot.length);
    }
    assert_eq!(sent_by, BTreeMap::from([(0, 1000), (COUNT - 1, 1000)]));
    let mut sent = 0;
    link.root().visit_classes(&mut |class| {
        let is_last = Some(class.minor) == last;
        sent += u64::from(is_last) * class.discipline.statistics().dequeued.packets;
    });
    assert_eq!(sent, 1, "through the class of the last one");
}

#[test]
fn idle_subscribers_cost_kilobytes() {
    let list = "id,prefixes,plan\n1,10.0.0.1,home\n";
    let few = read(0, list, None);
    let flows = |tree: &Spec| {
        let leaf = tree.classes().pop().unwrap().tree.unwrap().parameters();
        let flows = leaf.iter().find(|(info, _)| info.name == "flows").unwrap();
        flows.0.unit.show(&flows.1)
    };
    assert_eq!(flows(&few.trees()[DOWN]), "64");
    let many = settings("file = \"list.csv\"\nleaf = \"fq_codel flows=1024\"");
    let many = read_with(many, &[text("list.csv", list)], None).unwrap();
    assert_eq!(flows(&many.trees()[DOWN]), "1024");
}

/// More than there are numbers for is refused, not cut. What comes after is not read any more: a mistake
/// there is not found.
#[test]
fn more_subscribers_than_classes_are_refused() {
    let most = fairgate_run::subscribers::MOST;
    let address = |number: usize| {
        let [a, b, c, d] = (0x0a00_0000 + number as u32).to_be_bytes();
        format!("{a}.{b}.{c}.{d}")
    };
    let row = |number: usize| format!("{number},{},home\n", address(number));
    let list = |count: usize| "id,prefixes,plan\n".to_owned() + &(0..count).map(row).collect::<String>();
    let refused = |name: &str, list: &str| super::mistakes(super::read(name, list, None));
    let found = refused("list.csv", &(list(most + 1) + "\"not closed"));
    let words = "there are more than 262128 subscribers and nodes, but 262128 classes";
    assert_eq!(found, [format!("list.csv:262130:1: {words}")]);
    let object = |number: usize| {
        let address = address(number);
        format!(r#"{{"id": {number}, "prefixes": ["{address}"], "plan": "home"}}"#)
    };
    let objects: Vec<String> = (0..=most).map(object).collect();
    let found = refused("list.json", &format!("[\n{},\n nonsense", objects.join(",\n")));
    let words = "a list or an object has more than 262128 values";
    assert_eq!(found, [format!("list.json:262130:1: {words}")]);
    // The last ones are in a second file.
    let settings = super::settings("file = \"lists\"");
    let texts = [
        super::text("a.csv", &list(most)),
        super::text("b.csv", &row(most)),
    ];
    let names = super::text("b.csv", &format!("id,prefixes,plan\n{}", texts[1].content));
    let found = super::mistakes(super::read_with(settings, &[texts[0].clone(), names], None));
    assert_eq!(
        found,
        ["b.csv:2:1: there are more than 262128 subscribers and nodes, but 262128 classes"]
    );
}

/// A plan's burst is that of the classes of its subscribers, in its direction, unless a subscriber has more
/// anyway.
#[test]
fn subscribers_have_the_burst_of_their_plan() {
    let text = "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\nfile = \"list.csv\"\n[plans.home]\n\
        down = \"100mbit\"\nup = \"20mbit\"\n\
        down_burst = { rate = \"200mbit\", threshold = \"50mbit\", time = \"16s\" }\n";
    let document = fairgate_config::Document::parse("isp.toml", text).unwrap();
    let settings =
        fairgate_run::subscribers::Settings::read(&document, &fairgate_config::Registry::builtin()).unwrap();
    let list = "id,prefixes,down,plan\n1,192.0.2.1,,home\n2,192.0.2.2,300mbit,home\n";
    let read = super::read_with(settings.unwrap(), &[super::text("list.csv", list)], None).unwrap();
    let lines = |tree: usize| {
        let toml = read.trees()[tree].to_toml("down");
        let lines = toml.lines().filter(|line| line.starts_with("burst_"));
        lines.map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(
        lines(0),
        [
            "burst_rate = \"200mbit\"",
            "burst_threshold = \"50mbit\"",
            "burst_time = \"16s\""
        ]
    );
    assert!(lines(1).is_empty());
}
