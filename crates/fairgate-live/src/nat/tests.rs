use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::AtomicBool;
use std::thread;

use caps::{CapSet, Capability};
use proptest::collection::vec;
use proptest::prelude::*;

use super::conntrack::Tuple;
use super::*;

const TCP: u8 = 6;

fn hasher() -> FlowHasher {
    FlowHasher::new([1, 2])
}

fn writer() -> Writer {
    Writer::new(Arc::new(Translations::new(hasher())))
}

fn place(address: impl Into<IpAddr>, port: u16) -> Endpoint {
    let address = match address.into() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    Endpoint {
        address: address.octets(),
        port,
    }
}

fn tuple(protocol: u8, source: Endpoint, destination: Endpoint) -> Tuple {
    Tuple {
        protocol,
        source,
        destination,
    }
}

fn key(protocol: u8, source: Endpoint, destination: Endpoint) -> FlowKey {
    FlowKey {
        source: source.address,
        destination: destination.address,
        source_port: source.port,
        destination_port: destination.port,
        protocol,
        ..FlowKey::default()
    }
}

/// A host of the LAN, the router, and a server.
fn parties(port: u16) -> [Endpoint; 3] {
    [
        place([192, 168, 1, 2], port),
        place([203, 0, 113, 1], port ^ 0x4000),
        place([198, 51, 100, 7], 443),
    ]
}

fn masqueraded(port: u16) -> Connection {
    let [lan, router, server] = parties(port);
    Connection {
        original: tuple(TCP, lan, server),
        reply: tuple(TCP, server, router),
    }
}

#[test]
fn both_directions_show_the_host_in_the_lan() {
    let mut writer = writer();
    let [lan, router, server] = parties(5000);
    writer.add(&masqueraded(5000));
    let (mut sent, mut received) = (key(TCP, router, server), key(TCP, server, router));
    writer.table.undo(&mut sent, false);
    writer.table.undo(&mut received, true);
    assert_eq!((sent, received), (key(TCP, lan, server), key(TCP, server, lan)));
    // Another port of the router, another protocol, another server.
    let other = Endpoint { port: 1, ..router };
    for (key, is_received) in [
        (key(TCP, other, server), false),
        (key(17, router, server), false),
        (key(TCP, lan, router), true),
    ] {
        assert_eq!(writer.table.lan_of(&key, is_received), None);
    }
    writer.remove(&masqueraded(5000));
    assert_eq!(writer.table.lan_of(&key(TCP, router, server), false), None);
    assert_eq!(writer.table.known(), 0);
}

/// A request from outside to a port that the router forwards.
#[test]
fn a_forwarded_port_shows_the_host_in_the_lan() {
    let mut writer = writer();
    let (lan, router) = (place([192, 168, 1, 9], 80), place([203, 0, 113, 1], 8080));
    let client = place([198, 51, 100, 7], 5000);
    writer.add(&Connection {
        original: tuple(TCP, client, router),
        reply: tuple(TCP, lan, client),
    });
    let (mut received, mut sent) = (key(TCP, client, router), key(TCP, router, client));
    writer.table.undo(&mut received, true);
    writer.table.undo(&mut sent, false);
    assert_eq!((received, sent), (key(TCP, client, lan), key(TCP, lan, client)));
}

/// ICMP has one identifier, which the router may change. Dissected keys have it as source port.
#[test]
fn pings_show_the_host_in_the_lan() {
    for (protocol, lan, router, server) in [
        (
            ICMP,
            IpAddr::from([10, 0, 0, 2]),
            IpAddr::from([203, 0, 113, 1]),
            IpAddr::from([198, 51, 100, 7]),
        ),
        (
            ICMPV6,
            "fd00::2".parse().unwrap(),
            "2001:db8::1".parse().unwrap(),
            "2001:db8::7".parse().unwrap(),
        ),
    ] {
        let mut writer = writer();
        writer.add(&Connection {
            original: tuple(protocol, place(lan, 7), place(server, 7)),
            reply: tuple(protocol, place(server, 1000), place(router, 1000)),
        });
        let mut sent = key(protocol, place(router, 1000), place(server, 0));
        let mut received = key(protocol, place(server, 1000), place(router, 0));
        writer.table.undo(&mut sent, false);
        writer.table.undo(&mut received, true);
        assert_eq!(sent, key(protocol, place(lan, 7), place(server, 0)));
        assert_eq!(received, key(protocol, place(server, 7), place(lan, 0)));
        assert_eq!(writer.table.known(), 1);
    }
}

#[test]
fn connections_without_translation_are_not_kept() {
    let mut writer = writer();
    let [lan, _, server] = parties(5000);
    writer.add(&Connection {
        original: tuple(TCP, lan, server),
        reply: tuple(TCP, server, lan),
    });
    assert_eq!(writer.table.known(), 0);
}

/// Events were lost: what the new dump does not have is gone.
#[test]
fn a_dump_replaces_what_was_known() {
    let mut writer = writer();
    for _ in 0..600 {
        writer.begin_dump();
        (1..=3).for_each(|port| writer.add(&masqueraded(port)));
        writer.end_dump();
        // An event after the dump.
        writer.add(&masqueraded(4));
        assert_eq!(writer.table.known(), 4);
        writer.begin_dump();
        (3..=4).for_each(|port| writer.add(&masqueraded(port)));
        writer.end_dump();
        let has = |port| {
            let [_, router, server] = parties(port);
            writer.table.lan_of(&key(TCP, router, server), false).is_some()
        };
        assert_eq!([1, 2, 3, 4].map(has), [false, false, true, true]);
        assert_eq!(writer.table.known(), 2);
    }
}

#[test]
fn what_finds_no_room_is_counted() {
    let mut writer = writer();
    let server = |number: u32| place(Ipv4Addr::from_bits(0x0800_0000 + number), 443);
    let connection = |number: u32| {
        let [lan, router, _] = parties(5000);
        Connection {
            original: tuple(TCP, lan, server(number)),
            reply: tuple(TCP, server(number), router),
        }
    };
    let count = 2 * (SETS * WAYS) as u32;
    (0..count).for_each(|number| writer.add(&connection(number)));
    let (known, no_room) = (writer.table.known() as u64, writer.table.no_room());
    assert_eq!(known + no_room, u64::from(count));
    assert!(known > (SETS * WAYS) as u64 * 9 / 10, "{known}");
    // Half of the room suffices for nearly all.
    let mut half = self::writer();
    (0..count / 4).for_each(|number| half.add(&connection(number)));
    assert!(
        half.table.no_room() < u64::from(count) / 100,
        "{}",
        half.table.no_room()
    );
    (0..count).for_each(|number| writer.remove(&connection(number)));
    assert_eq!(writer.table.known(), 0);
}

/// One thread writes while another one reads: what is read was written as a whole.
#[test]
fn a_reader_sees_whole_places() {
    let mut writer = writer();
    let (table, done) = (Arc::clone(&writer.table), AtomicBool::new(false));
    let connection = |round: u16| {
        let [_, router, server] = parties(5000);
        let bytes = round.to_be_bytes();
        let address: [u8; 16] = std::array::from_fn(|index| bytes[index % 2]);
        let lan = place(Ipv6Addr::from_octets(address), round);
        Connection {
            original: tuple(TCP, lan, server),
            reply: tuple(TCP, server, router),
        }
    };
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let [_, router, server] = parties(5000);
            let mut found = 0u64;
            while !done.load(Ordering::Relaxed) || found == 0 {
                if let Some(place) = table.lan_of(&key(TCP, router, server), false) {
                    let bytes = place.port.to_be_bytes();
                    let is_whole = |(index, byte): (usize, &u8)| *byte == bytes[index % 2];
                    assert!(place.address.iter().enumerate().all(is_whole), "{place:?}");
                    found += 1;
                }
            }
        });
        for round in 1..=u16::MAX {
            writer.add(&connection(round));
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The table has what a map has.
    #[test]
    fn the_table_is_a_map(steps in vec((any::<bool>(), 1u16..50), 0..200)) {
        let mut writer = writer();
        let mut map = HashMap::new();
        for (is_new, port) in steps {
            match is_new {
                true => {
                    writer.add(&masqueraded(port));
                    map.insert(port, parties(port)[0]);
                }
                false => {
                    writer.remove(&masqueraded(port));
                    map.remove(&port);
                }
            }
        }
        for port in 1..50 {
            let [_, router, server] = parties(port);
            let found = writer.table.lan_of(&key(TCP, server, router), true);
            prop_assert_eq!(found, map.get(&port).copied());
        }
        prop_assert_eq!(writer.table.known(), map.len());
    }
}

/// A run that can't know its hosts says so, with what would help, instead of sharing by the router's address.
#[test]
fn a_table_that_cannot_be_read_is_an_error() {
    const FILE: &str = "[queue.up]\ndiscipline = \"cake\"\nbandwidth = \"20mbit\"\n\
        [run]\ndevice = \"wan0\"\negress = \"up\"\nnat = \"both\"\n";
    let document = fairgate_config::Document::parse("run.toml", FILE).unwrap();
    let plan = Plan::read(&document).unwrap();
    // Capabilities belong to a thread: other tests keep theirs. The kernel asks for this one.
    let tracked = thread::spawn(move || {
        caps::drop(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap();
        track(&plan, &mut Randomness::new(Some(1))).map(|_| ())
    });
    let error = tracked.join().unwrap().unwrap_err();
    assert!(matches!(error, LiveError::NoConnections { .. }), "{error:?}");
    let help = miette::Diagnostic::help(&error).unwrap().to_string();
    assert!(
        help.contains("cap_net_admin") && help.contains("--dev LAN"),
        "{help}"
    );
}
