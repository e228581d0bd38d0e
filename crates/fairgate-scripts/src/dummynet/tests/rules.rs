//! Rules: the trees that they lead to, and their conditions.

use super::{mistake, tree, trees};

#[test]
fn several_pipes_are_siblings_and_other_packets_pass() {
    let pipes = "ipfw pipe 1 config bw 1Mbit/s
        ipfw pipe 2 config bw 2Mbit/s
        ipfw add allow tcp from any to any 22 // by hand
        ipfw add pipe 1 ip from 192.0.2.1,192.0.2.2 to any
        ipfw add pipe 2 ip6 from any to 2001:db8::/32
        ipfw add 65000 allow ip from any to any";
    assert_eq!(
        tree(pipes),
        "out: prio default=1
│  destination_port=22, protocol=tcp goes to 1
│  source=192.0.2.1/32 goes to 2
│  source=192.0.2.2/32 goes to 2
│  destination=2001:db8::/32, ethertype=ipv6 goes to 3
├─ 1: fifo
├─ 2: tbf rate=1mbit burst=4542b
│  └─ fifo limit=50
└─ 3: tbf rate=2mbit burst=4542b
   └─ fifo limit=50"
    );
    let rest = pipes
        .replace("allow tcp", "pipe 1 tcp")
        .replace("65000 allow", "65000 pipe 2");
    assert!(
        tree(&rest).starts_with("out: prio default=2\n"),
        "{}",
        tree(&rest)
    );
    assert!(!tree(&rest).contains("3: "), "{}", tree(&rest));
    // A pipe's own queue and the queues connected to it do not share the bandwidth.
    let both = tree(
        "pipe 1 config bw 1Mbit/s\nqueue 1 config pipe 1\nadd pipe 1 udp from any to any\n\
         add queue 1 ip from any to any",
    );
    assert_eq!(both.matches("rate=1mbit").count(), 2, "{both}");
}

#[test]
fn directions_and_interfaces_have_trees_of_their_own() {
    let ways = "pipe 1 config bw 1Mbit/s
        pipe 2 config bw 2Mbit/s
        add pipe 1 ip from any to any out via em0
        add pipe 2 ip from any to any in via em0";
    assert_eq!(
        trees(ways),
        [
            "em0: tbf rate=1mbit burst=4542b\n└─ fifo limit=50",
            "em0/in: tbf rate=2mbit burst=4542b\n└─ fifo limit=50"
        ]
    );
    assert_eq!(
        trees("pipe 1 config\npipe 2 config\nadd pipe 1 in\nadd pipe 2 out").len(),
        2
    );
    assert!(trees("pipe 1 config\nadd pipe 1 ip from any to any xmit em1")[0].starts_with("em1: fifo"));
    // Rules that pass packets make no tree, and looped-back packets are not part of any.
    let firewall = "add allow ip from any to any via lo0\npipe 1 config\nadd allow ip from any to any in\n\
                    add pipe 1 ip from any to any";
    assert_eq!(trees(firewall), ["out: fifo limit=50"]);
    let (line, column, message, _) = mistake(&firewall.replace("lo0", "em0"));
    assert_eq!(
        (line, column, message.as_str()),
        (1, 34, "the rule is for em0, and no other names an interface")
    );
    let (line, column, message, help) = mistake(&ways.replace("add pipe 2", "add pipe 1"));
    assert_eq!(
        (line, column, message.as_str()),
        (4, 18, "pipe 1 would be in two trees")
    );
    assert!(help.contains("a pipe for each"), "{help}");
}

#[test]
fn scripts_flush_delete_and_number() {
    let script = "#!/bin/sh
        sudo /sbin/ipfw -q flush
        ipfw -f pipe flush 2>/dev/null
        ipfw pipe 1 config bw 1Mbit/s
        ipfw pipe 2 config bw 2Mbit/s
        ipfw add 500 pipe 2 ip from any to any
        ipfw add 400 pipe 1 ip from any to any
        ipfw delete 400
        ipfw pipe 1 delete";
    assert_eq!(tree(script), "out: tbf rate=2mbit burst=4542b\n└─ fifo limit=50");
}

#[test]
fn conditions_become_filters() {
    let rule = |rule: &str| {
        let tree = tree(&format!("pipe 1 config\nadd pipe 1 {rule}"));
        let line = tree.lines().nth(1).expect("a filter").to_owned();
        line.trim_start_matches("│  ")
            .trim_end_matches(" goes to 2")
            .to_owned()
    };
    let cases = [
        ("ip from 10.0.0.0:255.0.0.0 to any", "source=10.0.0.0/8"),
        ("ip4 from any to any", "ethertype=ipv4"),
        ("47 from any to any", "protocol=gre"),
        ("ipv6-icmp from any to any", "protocol=icmpv6"),
        (
            "ip from any to any iptos lowdelay,!mincost",
            "traffic_class=0x10/0x12",
        ),
        ("ip from any to any dscp be", "dscp=CS0"),
        (
            "dst-ip 192.0.2.9 dst-port 80 proto tcp",
            "destination=192.0.2.9/32, destination_port=80, protocol=tcp",
        ),
        ("ip from any to any ipversion 6", "ethertype=ipv6"),
        ("ip from 192.0.2.77/24 to any", "source=192.0.2.0/24"),
    ];
    for (text, conditions) in cases {
        assert_eq!(rule(text), conditions, "{text}");
    }
}

/// The flags and lengths that OPNsense writes for acknowledgements and small packets.
#[test]
fn flags_of_tcp_and_lengths_become_conditions() {
    let of_rule = |conditions: &str| {
        let script = format!("pipe 1 config bw 1Mbit/s\nadd 1 pipe 1 tcp from any to any {conditions}");
        tree(&script)
    };
    let has = |conditions: &str, expected: &[&str]| {
        let printed = of_rule(conditions);
        for part in expected {
            assert!(printed.contains(part), "{conditions}: {part} is not in {printed}");
        }
    };
    has("tcpflags syn,!ack", &["tcp_flags=0x02/0x12"]);
    has("iplen 1-200,1500", &["length=1-200", "length=1500"]);
    // One of the two differs.
    has(
        "not tcpflags syn,!ack",
        &["tcp_flags=0x00/0x02", "tcp_flags=0x10/0x10"],
    );
    let (line, column, message, _) =
        mistake("pipe 1 config bw 1Mbit/s\nadd 1 pipe 1 tcp from any to any tcpflags ece");
    assert_eq!((line, column), (2, 43));
    assert!(message.contains("such flags"), "{message}");
}

#[test]
fn segments_and_alternatives_become_conditions() {
    let filters = |rule: &str| tree(&format!("pipe 1 config\nadd pipe 1 {rule}"));
    assert!(filters("tcp from any to any setup").contains("tcp_flags=0x02/0x12"));
    let later = filters("tcp from any to any established");
    assert!(
        later.contains("tcp_flags=0x10/0x10") && later.contains("tcp_flags=0x04/0x04"),
        "{later}"
    );
    let either = filters("{ tcp or udp } from { 192.0.2.1 or 192.0.2.2 } to any");
    for part in [
        "source=192.0.2.1/32, protocol=tcp",
        "source=192.0.2.2/32, protocol=udp",
    ] {
        assert!(either.contains(part), "{either}");
    }
}

#[test]
fn rules_can_drop_and_exclude() {
    assert_eq!(
        tree(
            "pipe 1 config\nadd deny log udp from any to any 53\nadd pipe 1 ip from any to any\n\
             add 65534 deny all from any to any"
        ),
        "out: prio default=1
│  destination_port=53, protocol=udp goes to 2
├─ 1: fifo limit=50
└─ 2: netem loss=1"
    );
    let others = tree("pipe 1 config\nadd pipe 1 ip from not 0.0.0.0/1 to any src-port any dst-port any");
    assert!(
        others.contains("source=128.0.0.0/1 goes to 2") && others.contains("source=::/0 goes to 2"),
        "{others}"
    );
    // A set that is disabled, and a rule that returns to nothing.
    let set = tree(
        "pipe 1 config\npipe 2 config\nadd 10 set 3 pipe 2 udp from any to any\nadd return via any\n\
         add pipe 1 ip from any to any\nset disable 3 enable 4\npipe 2 delete",
    );
    assert_eq!(set, "out: fifo limit=50");
}

#[test]
fn tables_are_looked_up_after_the_last_line() {
    let script = tree(
        "pipe 1 config\nadd pipe 1 ip from table(lan) to any\ntable lan create type addr\n\
         table lan add 192.0.2.0/24 7\ntable lan add 2001:db8::/32\ntable lan add 198.51.100.1\n\
         table lan delete 198.51.100.1",
    );
    assert!(
        script.contains("source=192.0.2.0/24 goes to 2")
            && script.contains("source=2001:db8::/32 goes to 2")
            && !script.contains("198.51"),
        "{script}"
    );
}

/// A rule that skips others does what becomes of its packets in the end.
#[test]
fn a_skip_to_rules_that_allow_is_an_allow() {
    let skipping = "pipe 1 config bw 5Mbit/s
        add 100 skipto 60000 tcp from any to any dst-port 22 out
        add 200 pipe 1 ip from any to any out
        add 60000 allow ip from any to any";
    assert_eq!(tree(skipping), tree(&skipping.replace("skipto 60000", "allow")));
    let to_all = skipping.replace("60000 allow", "60000 pipe 1");
    assert_eq!(tree(&to_all), tree(&to_all.replace("skipto 60000", "pipe 1")));
    let (line, _, message, _) = mistake(&skipping.replace("60000 allow ip", "60000 deny udp"));
    assert_eq!(line, 2, "{message}");
}

#[test]
fn rules_of_macos_lead_to_pipes() {
    let text = "dnctl pipe 1 config bw 2000Kbit/s queue 20 delay 100
        dummynet out proto tcp from any to any port 6000 pipe 1
        dummynet in quick on en0 proto tcp from any port 6000 to any pipe 1";
    let one = text.lines().take(2).collect::<Vec<_>>().join("\n");
    let tree = tree(&one);
    assert!(
        tree.contains("destination_port=6000, protocol=tcp goes to 2"),
        "{tree}"
    );
    assert!(tree.contains("rate=2mbit"), "{tree}");
    let (_, _, message, _) = mistake(text);
    assert_eq!(message, "pipe 1 would be in two trees");
}
