//! Tests of the translation of tc's filters.

use fairgate::flow::{FlowHasher, HeaderBytes, LinkType, dissect};
use fairgate_config::{Document, FileError, Spec};
use proptest::prelude::*;
use proptest::sample::select;

use crate::tc::{Device, Script};

const QDISC: &str = "qdisc add dev e root handle 1: drr\n\
    class add dev e parent 1: classid 1:1 drr\n\
    class add dev e parent 1: classid 1:2 drr\n\
    class add dev e parent 1: classid 1:10 drr\n";

fn read(filters: &str) -> Result<Spec, FileError> {
    Script::parse("test.tc", &format!("{QDISC}{filters}"), Device::default())?.spec()
}

fn spec(filters: &str) -> Spec {
    read(filters).unwrap_or_else(|error| panic!("{filters}: {:?}", error.problems()))
}

/// Returns the conditions as they are printed, one filter per line.
fn shown(filters: &str) -> Vec<String> {
    let text = spec(filters).to_string();
    let conditions = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("│  "));
    conditions.map(str::to_owned).collect()
}

/// Returns the first mistake: the line number after the qdisc, the marked words, the message.
fn mistake(filters: &str) -> (usize, String, String) {
    let error = read(filters).expect_err("there is a mistake");
    let problem = &error.problems()[0];
    assert!(!problem.help.is_empty());
    let text = format!("{QDISC}{filters}");
    let (line, _) = problem.position();
    (
        line - 4,
        text[problem.span.clone()].to_owned(),
        problem.message.clone(),
    )
}

fn at(line: usize, words: &str, message: &str) -> (usize, String, String) {
    (line, words.to_owned(), message.to_owned())
}

#[test]
fn matches_are_translated_to_named_fields() {
    let filter = |rest: &str| shown(&format!("filter add dev e parent 1: {rest} flowid 1:10"));
    let cases = [
        (
            "protocol ip u32 match ip dport 22 0xffff",
            "destination_port=22, outer_ethertype=ipv4 goes to 16",
        ),
        ("u32 match ip src 192.0.2.7/24", "source=192.0.2.0/24 goes to 16"),
        (
            "u32 match ip tos 0x10 0xff match ip protocol 0x6 0xff",
            "protocol=tcp, traffic_class=16, ethertype=ipv4 goes to 16",
        ),
        (
            "u32 match ip dsfield 0xb8 0xfc",
            "dscp=EF, ethertype=ipv4 goes to 16",
        ),
        (
            "u32 match ip sport 0x1000 0xf000",
            "source_port=4096-8191, ethertype=ipv4 goes to 16",
        ),
        (
            "protocol ipv6 u32 match ip6 dst 2001:db8::1/128 match ip6 sport 53 0xffff",
            "destination=2001:db8::1/128, source_port=53, outer_ethertype=ipv6 goes to 16",
        ),
        (
            "protocol ipv6 u32 match ip6 priority 0xb8 0xfc",
            "dscp=EF, outer_ethertype=ipv6 goes to 16",
        ),
        (
            "protocol ip u32 match u32 0xc0000200 0xffffff00 at 12",
            "source=192.0.2.0/24, outer_ethertype=ipv4 goes to 16",
        ),
        (
            "protocol ip u32 match u16 80 0xffff at 22 match u8 17 0xff at 9",
            "destination_port=80, protocol=udp, outer_ethertype=ipv4 goes to 16",
        ),
        (
            "protocol ipv6 u32 match u32 0x20010db8 0xffffffff at 24",
            "destination=2001:db8::/32, outer_ethertype=ipv6 goes to 16",
        ),
        (
            "protocol ip u32 match tcp dst 443 0xffff",
            "bytes=network+2 u16 0x1bb, outer_ethertype=ipv4 goes to 16",
        ),
        (
            "u32 match udp src 53 0xffff",
            "bytes=network+0 u16 0x35 goes to 16",
        ),
        (
            "protocol ip u32 match ip protocol 6 0xff match u8 0x05 0x0f at 0 match u16 0 0xffc0 at 2 match \
             u8 0x10 0xff at 33",
            "protocol=tcp, bytes=[network+0 u8 0x5/0xf, network+2 u16 0x0/0xffc0, network+33 u8 0x10], \
             outer_ethertype=ipv4 goes to 16",
        ),
        (
            "protocol ip u32 match ip dport 80 0x0fff",
            "bytes=network+22 u16 0x50/0xfff, outer_ethertype=ipv4 goes to 16",
        ),
        (
            "u32 match ether src 02:00:00:00:00:33",
            "source_mac=02:00:00:00:00:33 goes to 16",
        ),
        (
            "protocol ip flower ip_proto tcp tcp_flags 0x2/0x17 dst_mac 02:00:00:00:00:01",
            "destination_mac=02:00:00:00:00:01, tcp_flags=0x02/0x17, protocol=tcp, outer_ethertype=ipv4 \
             goes to 16",
        ),
        (
            "protocol ip flower ip_proto icmp type 8 code 0 ip_ttl 64/0xc0",
            "protocol=icmp, ttl=64-127, icmp_type=8, icmp_code=0, outer_ethertype=ipv4 goes to 16",
        ),
        (
            "protocol ip handle 1 flower ip_proto udp action pass",
            "protocol=udp, outer_ethertype=ipv4 goes to 16",
        ),
        ("u32 match mark 0x10 0xf0", "mark=0x10/0xf0 goes to 16"),
        ("protocol ip u32 match u32 0 0", "outer_ethertype=ipv4 goes to 16"),
        ("handle 6 fw", "mark=6 goes to 16"),
        (
            "protocol ip handle 0x10/0xf0 fw",
            "mark=0x10/0xf0, outer_ethertype=ipv4 goes to 16",
        ),
        (
            "protocol ip flower ip_proto tcp dst_port 80 src_ip 10.1.2.3/8",
            "source=10.0.0.0/8, destination_port=80, protocol=tcp, outer_ethertype=ipv4 goes to 16",
        ),
        (
            "protocol ip flower ip_proto udp src_port 1000-2000 ip_tos 0xb8/0xfc",
            "source_port=1000-2000, protocol=udp, dscp=EF, outer_ethertype=ipv4 goes to 16",
        ),
        (
            "protocol ip flower ip_proto 11 dst_port 0x1f90/0xfff0",
            "destination_port=8080-8095, protocol=udp, outer_ethertype=ipv4 goes to 16",
        ),
        (
            "protocol 802.1q flower vlan_id 7 vlan_ethtype ipv4 dst_ip 192.0.2.1",
            "destination=192.0.2.1/32, vlan=7, outer_ethertype=802.1q goes to 16",
        ),
        ("protocol 0x86dd matchall", "outer_ethertype=ipv6 goes to 16"),
        // The kernel compares the protocol with the EtherType of the tag.
        (
            "protocol 802.1q u32 match u32 0 0",
            "outer_ethertype=802.1q goes to 16",
        ),
        ("protocol 802.1ad matchall", "outer_ethertype=802.1ad goes to 16"),
        (
            "protocol 802.1q flower skip_hw",
            "outer_ethertype=802.1q goes to 16",
        ),
        (
            "protocol 802.1q u32 match ip dport 22 0xffff",
            "destination_port=22, ethertype=ipv4, outer_ethertype=802.1q goes to 16",
        ),
        // Without bits that must match, an address says nothing about the packet.
        (
            "protocol ip u32 match ip src 0.0.0.0/0",
            "outer_ethertype=ipv4 goes to 16",
        ),
        (
            "protocol ipv6 u32 match ip dport 0 0 match mark 7 0xff",
            "mark=0x7/0xff, outer_ethertype=ipv6 goes to 16",
        ),
        (
            "u32 match ip src any match mark 7 0xff",
            "mark=0x7/0xff goes to 16",
        ),
    ];
    for (written, expected) in cases {
        let found = filter(written).join("; ");
        let mut parts: Vec<&str> = found.trim_end_matches(" goes to 16").split(", ").collect();
        let mut wanted: Vec<&str> = expected.trim_end_matches(" goes to 16").split(", ").collect();
        parts.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(parts, wanted, "{written}");
    }
}

#[test]
fn filters_are_tried_in_the_order_of_the_kernel() {
    let filter =
        |head: &str, mark: u32| format!("filter add dev e parent 1: {head} handle {mark} fw flowid 1:1\n");
    let order = |filters: &[String]| -> Vec<String> {
        let marks = shown(&filters.concat()).into_iter();
        marks
            .map(|line| {
                line.trim_start_matches("mark=")
                    .trim_end_matches(" goes to 1")
                    .to_owned()
            })
            .collect()
    };
    assert_eq!(
        order(&[filter("prio 2", 1), filter("prio 1", 2), filter("pref 2", 3)]),
        ["2", "1", "3"]
    );
    // A filter without a priority is tried before the earlier ones.
    assert_eq!(
        order(&[filter("", 1), filter("", 2), filter("prio 7", 3)]),
        ["3", "2", "1"]
    );
    let mut filters = vec![filter("prio 2", 1), filter("prio 1", 2)];
    filters.push("filter del dev e parent 1: prio 1\n".to_owned());
    assert_eq!(order(&filters), ["1"]);
    filters.push("filter del dev e root\n".to_owned());
    assert!(order(&filters).is_empty());
}

#[test]
fn a_filter_is_replaced_and_deleted_as_in_the_kernel() {
    let add = "filter add dev e parent 1: prio 5 protocol ip handle 1 fw flowid 1:1\n";
    let line = |verb: &str, rest: &str| format!("{add}filter {verb} dev e parent 1: {rest}");
    for verb in ["replace", "change"] {
        let replaced = line(verb, "prio 5 protocol ip handle 0x1 fw flowid 1:2");
        assert_eq!(
            shown(&replaced),
            ["mark=1, outer_ethertype=ipv4 goes to 2"],
            "{verb}"
        );
    }
    let another = line("replace", "prio 5 protocol ip handle 2 fw flowid 1:2");
    assert_eq!(shown(&another).len(), 2);
    assert_eq!(
        mistake(&line("add", "prio 5 protocol ip handle 1 fw flowid 1:2")),
        at(2, "1", "priority 5 has a filter with the handle 1 already")
    );
    assert_eq!(
        mistake(&line("change", "prio 5 protocol ip handle 3 fw flowid 1:2")),
        at(
            2,
            "change",
            "there is no filter with this priority and handle to change"
        )
    );

    for all in [
        "",
        "prio 5",
        "prio 5 protocol ip",
        "prio 5 fw",
        "prio 5 handle 1 fw",
    ] {
        assert!(shown(&line("del", all)).is_empty(), "{all}");
    }
    for (some, word) in [("protocol ip", "ip"), ("handle 1 fw", "1"), ("u32", "u32")] {
        let message = format!("a filter is deleted by its priority, and not by `{word}`");
        assert_eq!(mistake(&line("del", some)), at(2, word, &message));
    }
    assert_eq!(
        mistake(&line("del", "prio 5 u32")),
        at(2, "u32", "the filters of this priority are of another kind")
    );
    assert_eq!(
        mistake(&line("del", "prio 5 protocol ipv6")),
        at(2, "ipv6", "the filters of this priority are of another protocol")
    );
    assert_eq!(
        mistake(&line("del", "prio 6")),
        at(2, "del", "there is no such filter")
    );
}

/// The word at fault in lines that the kernel rejects.
#[test]
fn values_that_the_kernel_rejects_are_rejected() {
    let of = |text: &str| {
        let error = Script::parse("test.tc", text, Device::default())
            .and_then(|script| script.spec())
            .expect_err(text);
        text[error.problems()[0].span.clone()].to_owned()
    };
    let root = |rest: &str| of(&format!("qdisc add dev e root handle 1: {rest}"));
    assert_eq!(root("prio bands 1"), "1");
    assert_eq!(root("prio bands 17"), "17");
    assert_eq!(root("ets bands 17"), "17");
    assert_eq!(root("ets strict 17"), "17");
    for (option, value) in [
        ("weight", "9999"),
        ("weight", "0"),
        ("maxpkt", "128"),
        ("maxpkt", "99999"),
    ] {
        let class = format!("qfq\nclass add dev e parent 1: classid 1:1 qfq {option} {value}");
        assert_eq!(root(&class), value);
    }
    assert_eq!(of("qdisc add dev $IF root fifo"), "$IF");
}

#[test]
fn a_filter_that_matches_all_is_the_default() {
    let all = |kind: &str| {
        spec(&format!(
            "filter add dev e parent 1: prio 9 {kind} classid 1:2\n\
             filter add dev e prio 1 handle 1 fw flowid 1:1"
        ))
    };
    for kind in [
        "matchall",
        "protocol all basic",
        "protocol all u32 match u32 0 0",
        "u32 match ip src any match u32 0 0",
    ] {
        let found = all(kind);
        assert_eq!(
            (found.classifier().default, found.classifier().filters.len()),
            (Some(2), 1),
            "{kind}"
        );
    }
    let hidden = "filter add dev e parent 1: prio 1 matchall classid 1:2\n\
                  filter add dev e prio 2 handle 1 fw flowid 1:1";
    assert_eq!(
        (
            spec(hidden).classifier().default,
            spec(hidden).classifier().filters.len()
        ),
        (Some(2), 0)
    );
}

#[test]
fn parts_that_cant_be_translated_are_reported_at_their_location() {
    let filter = |rest: &str| mistake(&format!("filter add dev e parent 1: {rest}"));
    assert_eq!(
        filter("handle 1 fw"),
        at(1, "fw", "`fw` with a mark needs a class or an action")
    );
    assert_eq!(filter("matchall"), at(1, "matchall", "the filter has no class"));
    assert_eq!(
        filter("handle 1 fw flowid 1:7"),
        at(1, "1:7", "`drr` has no class 1:7")
    );
    assert_eq!(
        filter("handle 1 fw flowid 2:1"),
        at(1, "2:1", "class 2:1 is not a class of this qdisc")
    );
    assert_eq!(
        filter("route from 1 flowid 1:1"),
        at(
            1,
            "route",
            "a filter of the kind `route` can't be carried over: it selects by the route, which a bridge \
             does not look up"
        )
    );
    assert_eq!(
        filter("u32 ht 5: match u32 0 0 flowid 1:1"),
        at(1, "u32", "there is no table 5:")
    );
    assert_eq!(
        filter("u32 match ip ttl 1 0xff flowid 1:1"),
        at(1, "ttl", "a match on `ttl` can't be carried over")
    );
    assert_eq!(
        filter("protocol ip u32 match ip dport 70000 0xffff flowid 1:1"),
        at(1, "70000 0xffff", "2 byte(s) hold at most 0xffff")
    );
    assert_eq!(
        filter("protocol ip u32 match ip dport 7 0xffff match ip dport 8 0xffff flowid 1:1"),
        at(1, "8 0xffff", "this contradicts an earlier match")
    );
    assert_eq!(
        filter("protocol 802.1q flower vlan_prio 3 flowid 1:1"),
        at(
            1,
            "vlan_prio",
            "`vlan_prio` can't be carried over: only the identifier of the tag is kept"
        )
    );
    assert_eq!(
        filter("protocol ip flower src_port 9-8 flowid 1:1"),
        at(1, "9-8", "a port like this can't be carried over: `9-8`")
    );
    assert_eq!(
        filter("protocol ip flower ip_proto tpc flowid 1:1"),
        at(1, "tpc", "`tpc` is not a protocol")
    );
    assert_eq!(
        filter("protocol frob matchall flowid 1:1"),
        at(1, "frob", "`frob` is not a known protocol")
    );
    assert_eq!(
        filter("prio 65536 matchall flowid 1:1"),
        at(1, "65536", "expected a number up to 65535, but found `65536`")
    );
    assert_eq!(
        mistake("filter add dev e parent 1:1 matchall flowid 1:2"),
        at(1, "matchall", "class 1:1 has no classes below it to choose from")
    );
    assert_eq!(
        mistake("filter add dev e parent 7: matchall flowid 1:2"),
        at(1, "7:", "no qdisc has the handle 7:")
    );
    assert_eq!(
        mistake(
            "filter add dev e prio 1 protocol ip matchall flowid 1:2\n\
             filter add dev e prio 1 protocol ipv6 matchall flowid 1:1"
        ),
        at(2, "1", "priority 1 is used by another protocol")
    );
}

/// What actions become: policers, drops, changes.
#[test]
fn actions_become_what_happens_to_packets() {
    let filter = |rest: &str| shown(&format!("filter add dev e parent 1: protocol ip prio 1 {rest}"));
    let of = "u32 match ip dport 22 0xffff";
    let cases: [(&str, &[&str]); 12] = [
        ("action drop", &["is dropped"]),
        ("action gact shot", &["is dropped"]),
        ("flowid 1:1 action pass", &["goes to 1"]),
        ("action ok", &["goes to the default"]),
        (
            "police rate 1mbit burst 10k drop flowid 1:1",
            &["goes to 1 (police={ rate=1mbit, burst=10kb })"],
        ),
        (
            "action police rate 1mbit burst 10k mtu 1500 conform-exceed continue/pipe flowid 1:1",
            &["goes to 1 (police={ rate=1mbit, burst=10kb, longest=1500b, exceed=continue })"],
        ),
        (
            "flowid 1:2 action police rate 2mbit burst 20k",
            &["goes to 2 (police={ rate=2mbit, burst=20kb, exceed=reclassify })"],
        ),
        (
            "flowid 1:2 action police pkts_rate 1000 pkts_burst 5 conform-exceed drop",
            &["goes to 2 (police={ packets=1000, burst_packets=5 })"],
        ),
        (
            "flowid 1:1 action skbedit mark 0x10/0xf0 priority 1:2",
            &["goes to 1 (set_priority=1:2, set_mark=0x10/0xf0)"],
        ),
        (
            "action skbedit priority 6 continue",
            &["goes on (set_priority=6)"],
        ),
        (
            "flowid 1:1 action skbedit mark 3 action police rate 1mbit burst 10k drop",
            &[
                "goes on (set_mark=3)",
                "goes to 1 (police={ rate=1mbit, burst=10kb })",
            ],
        ),
        (
            "flowid 1:1 action pedit ex munge ip dsfield set 0xb8 retain 0xfc pipe action csum ip",
            &["goes to 1 (set_dscp=EF)"],
        ),
    ];
    for (written, expected) in cases {
        let found: Vec<String> = filter(&format!("{of} {written}"))
            .into_iter()
            .map(|line| {
                line.trim_start_matches("destination_port=22, outer_ethertype=ipv4 ")
                    .to_owned()
            })
            .collect();
        assert_eq!(found, expected, "{written}");
    }
    assert!(
        filter(&format!("{of} action connmark continue")).is_empty(),
        "it does nothing here"
    );
    assert_eq!(
        filter("matchall action drop"),
        ["outer_ethertype=ipv4 is dropped"]
    );

    let wrong = |rest: &str| mistake(&format!("filter add dev e parent 1: {of} flowid 1:1 {rest}")).1;
    assert_eq!(wrong("action nat egress 10.0.0.1 10.0.0.2"), "nat");
    assert_eq!(wrong("action drop random netrand pass 10"), "random");
    assert_eq!(
        wrong("police avrate 1mbit"),
        "avrate",
        "the kernel refuses it without an estimator"
    );
    let estimated = |police: &str| {
        let of = of.replacen("u32", "estimator 250ms 1s u32", 1);
        filter(&format!("{of} flowid 1:1 {police}"))
    };
    assert_eq!(
        estimated("police avrate 1mbit drop"),
        [
            "destination_port=22, outer_ethertype=ipv4 goes to 1 (police={ average=1mbit, \
             estimator=250ms 870ms })"
        ],
        "the shortest time constant of the same weight"
    );
    assert_eq!(wrong("police index 3"), "police");
    assert_eq!(wrong("police rate 1mbit drop"), "1mbit");
    assert_eq!(wrong("action pass action drop"), "drop");
    assert_eq!(wrong("chain 4"), "chain", "it goes before the kind");
}

/// A table of subscribers as LibreQoS and tc-generator write it: 2^16 addresses in two levels of tables.
#[test]
fn tables_of_thousands_of_entries_become_filters_by_address() {
    let mut script =
        String::from("filter add dev e parent 1: protocol ip prio 1 handle 2: u32 divisor 256\n");
    for number in 0..4096u32 {
        script += &format!(
            "filter add dev e parent 1: protocol ip prio 1 u32 ht 2:{:x}: match ip dst 100.64.{}.{} flowid \
             1:{}\n",
            number & 0xff,
            number >> 8,
            number & 0xff,
            1 + number % 2,
        );
    }
    script += "filter add dev e parent 1: protocol ip prio 1 u32 ht 800:: match ip dst 100.64.0.0/16 hashkey \
        mask 0x000000ff at 16 link 2:\n";
    let filters = shown(&script);
    assert_eq!(filters.len(), 4096);
    assert_eq!(
        filters[0],
        "destination=100.64.0.0/32, outer_ethertype=ipv4 goes to 1"
    );
    let misplaced = "filter add dev e parent 1: protocol ip prio 1 handle 2: u32 divisor 256\n\
        filter add dev e parent 1: protocol ip prio 1 u32 ht 2:7: match ip dst 100.64.0.8 flowid 1:1\n\
        filter add dev e parent 1: protocol ip prio 1 u32 match u32 0 0 hashkey mask 0xff at 16 link 2:";
    assert!(shown(misplaced).is_empty(), "the hash never selects its bucket");
}

/// A handle names one of several filters of a priority.
#[test]
fn handles_of_all_kinds_name_filters() {
    for (kind, first, second) in [
        ("u32 match ip protocol 6 0xff", "800::1", "800::2"),
        ("flower ip_proto tcp", "0x1", "2"),
        ("matchall", "1", "2"),
    ] {
        let add = |handle: &str| {
            format!("filter add dev e parent 1: prio 5 protocol ip handle {handle} {kind} action drop\n")
        };
        let name = kind.split(' ').next().expect("a kind");
        let delete = format!("filter del dev e parent 1: prio 5 handle {second} {name}\n");
        let both = if kind == "matchall" {
            String::new()
        } else {
            add(second)
        };
        let with_delete = if both.is_empty() { String::new() } else { delete };
        assert_eq!(shown(&(add(first) + &both + &with_delete)).len(), 1, "{kind}");
    }
}

/// The bytes of an IPv4 or IPv6 packet with ports. The IP header has no options.
#[derive(Clone, Debug)]
struct Datagram {
    is_v4: bool,
    bytes: Vec<u8>,
}

fn datagram() -> impl Strategy<Value = Datagram> {
    (
        any::<bool>(),
        any::<u8>(),
        select(vec![6u8, 17, 132]),
        any::<[u8; 32]>(),
        any::<[u8; 4]>(),
    )
        .prop_map(|(is_v4, class, protocol, addresses, mut ports)| {
            ports[0] |= 1;
            let mut bytes = match is_v4 {
                true => vec![0x45, class, 0, 28, 0, 0, 0, 0, 64, protocol, 0, 0],
                false => vec![0x60 | class >> 4, class << 4, 0, 0, 0, 8, protocol, 64],
            };
            bytes.extend(&addresses[..if is_v4 { 8 } else { 32 }]);
            bytes.extend(ports);
            bytes.extend([0, 8, 0, 0]);
            Datagram { is_v4, bytes }
        })
}

/// A match: its text, and the bytes that it compares.
#[derive(Clone, Debug)]
struct Matched {
    text: String,
    at: usize,
    value: Vec<u8>,
    mask: Vec<u8>,
}

/// Matches on fields that can be translated, with values near the packet's.
fn matched(packet: &Datagram) -> BoxedStrategy<Matched> {
    let packet = packet.clone();
    let (class, protocol, addresses, ports) = if packet.is_v4 {
        ((1, 1), 9, vec![(12, 4), (16, 4)], [20, 22])
    } else {
        ((0, 4), 6, vec![(8, 16), (24, 16)], [40, 42])
    };
    let field = prop_oneof![
        Just((class.0, class.1)),
        Just((protocol, 1)),
        select(addresses),
        select(vec![(ports[0], 2), (ports[1], 2)]),
    ];
    (field, 0usize..=128, any::<bool>(), any::<(u8, u8)>())
        .prop_map(move |((at, width), length, is_other, (bit, class_mask))| {
            let mut value: Vec<u8> = packet.bytes[at..at + width].to_vec();
            let mut mask = vec![0xff; width];
            let is_class = (at, width) == class;
            if is_class {
                mask = if packet.is_v4 {
                    vec![class_mask]
                } else {
                    vec![class_mask >> 4, class_mask << 4, 0, 0]
                };
            } else if width > 1 {
                let bits = length % (8 * width + 1);
                mask = (0..width)
                    .map(|byte| !(0xffu16 >> bits.saturating_sub(8 * byte).min(8)) as u8)
                    .collect();
            }
            if is_other {
                value[usize::from(bit) % width] ^= 1 << (bit % 8);
            }
            let words = |bytes: &[u8]| {
                bytes
                    .iter()
                    .fold(String::from("0x"), |text, byte| format!("{text}{byte:02x}"))
            };
            let text = match width {
                16 => (0..4)
                    .map(|word| {
                        let part = 4 * word..4 * word + 4;
                        format!(
                            "match u32 {} {} at {}",
                            words(&value[part.clone()]),
                            words(&mask[part]),
                            at + 4 * word
                        )
                    })
                    .collect::<Vec<_>>()
                    .join(" "),
                _ => format!("match u{} {} {} at {at}", 8 * width, words(&value), words(&mask)),
            };
            Matched {
                text,
                at,
                value,
                mask,
            }
        })
        .boxed()
}

proptest! {
    /// A filter matches exactly the packets that the kernel's comparison of bytes matches.
    #[test]
    fn a_selector_matches_like_a_comparison_of_bytes(
        (packet, matched) in datagram().prop_flat_map(|packet| {
            let matched = prop::collection::vec(matched(&packet), 1..4);
            (Just(packet), matched)
        }),
    ) {
        let expected = matched.iter().all(|matched| {
            let bytes = packet.bytes[matched.at..].iter().zip(&matched.value).zip(&matched.mask);
            bytes.into_iter().all(|((byte, value), mask)| byte & mask == value & mask)
        });
        let matches: Vec<&str> = matched.iter().map(|matched| matched.text.as_str()).collect();
        let protocol = if packet.is_v4 { "ip" } else { "ipv6" };
        let line = format!("filter add dev e parent 1: protocol {protocol} u32 {} flowid \
            1:2", matches.join(" "));
        let spec = match read(&line) {
            Ok(spec) => spec,
            Err(error) => {
                prop_assert!(!expected, "{:?}", error.problems());
                return Ok(());
            }
        };
        let found = |frame: &[u8], link: LinkType| {
            let dissection = dissect(frame, link);
            let packet = dissection.packet(100, &FlowHasher::new([1, 2]));
            let bytes = HeaderBytes::of_frame(frame, link);
            spec.classifier().filters.find(&packet.into(), Some(&dissection.key), Some(&bytes))
        };
        prop_assert_eq!(found(&packet.bytes, LinkType::RawIp), expected.then_some(2), "{}", line);
        // `protocol ip` is another one than that of a frame with a tag.
        let ethertype: &[u8] = if packet.is_v4 { &[0x08, 0] } else { &[0x86, 0xdd] };
        let tagged = [&[0x0a; 12], &[0x81, 0, 0, 7][..], ethertype, &packet.bytes].concat();
        prop_assert_eq!(found(&tagged, LinkType::Ethernet), None, "{}", line);
        // The same holds after printing and reading TOML.
        let document = Document::parse("printed", &spec.to_toml("e")).expect("it is read again");
        prop_assert_eq!(document.queue("e"), Some(&spec));
    }
}
