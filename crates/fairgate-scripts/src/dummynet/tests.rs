//! Tests of the translation of scripts.

use fairgate::{Discipline, Packet, Pool, Time};
use fairgate_config::{Document, FileError};

use super::Script;
use crate::tc::Device;

fn read(text: &str) -> Result<Vec<super::Tree>, FileError> {
    Script::parse("test.ipfw", text, Device::default())?.trees()
}

/// Returns the trees as they are printed, each after its name.
fn trees(text: &str) -> Vec<String> {
    let trees = read(text).unwrap_or_else(|error| panic!("{text}: {:?}", error.problems()));
    let shown = trees.iter().map(|tree| {
        let printed = tree.spec.to_toml(&tree.name());
        let document =
            Document::parse("printed", &printed).unwrap_or_else(|error| panic!("{error:?} in\n{printed}"));
        assert_eq!(document.queue(&tree.name()), Some(&tree.spec), "{printed}");
        let priomap = " priomap=[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]";
        format!("{}: {}", tree.name(), tree.spec).replace(priomap, "")
    });
    shown.collect()
}

fn tree(text: &str) -> String {
    let [tree] = &trees(text)[..] else {
        panic!("one tree")
    };
    tree.clone()
}

/// Returns the first mistake: line, column, message, remedy.
fn mistake(text: &str) -> (usize, usize, String, String) {
    let error = read(text).map(|_| ()).expect_err("there is a mistake");
    let problem = &error.problems()[0];
    assert!(
        !problem.help.is_empty() && !problem.label.is_empty(),
        "{problem:?}"
    );
    let (line, column) = problem.position();
    (line, column, problem.message.clone(), problem.help.clone())
}

/// Returns the warnings of a script that is taken.
fn warnings(text: &str) -> Vec<String> {
    let trees = read(text).unwrap_or_else(|error| panic!("{text}: {:?}", error.problems()));
    let warnings = trees.iter().flat_map(|tree| &tree.warnings);
    warnings.map(ToString::to_string).collect()
}

/// ipfw(8) takes any weight, and its own example has 0.002.
#[test]
fn the_weight_of_red_becomes_the_nearest_power_of_two_with_a_warning() {
    let red = |weight: &str| format!("pipe 1 config bw 10Mbit/s queue 60 red {weight}/10/30/0.1");
    assert_eq!(tree(&red("0.002")), tree(&red("0.001953125")));
    assert_eq!(tree(&red("0.3")), tree(&red("0.25")));
    assert_eq!(
        warnings(&red("0.002")),
        ["line 1: the weight 0.002 of the average becomes 0.001953125, the nearest one over a power of two"]
    );
    assert_eq!(warnings(&red("0.001953125")), [""; 0]);
}

#[test]
fn queues_in_bytes_have_an_aqm() {
    for aqm in ["codel", "pie"] {
        let shown = tree(&format!("pipe 1 config bw 10Mbit/s queue 50KB {aqm}"));
        for setting in [&*format!("{aqm} limit=4294967295"), "limit_bytes=50kb"] {
            assert!(shown.contains(setting), "{setting} in {shown}");
        }
    }
}

/// Returns the throughput of one second, in percent of the bandwidth. The pipe always has packets, and each
/// wake-up is up to half a millisecond after the watchdog time.
fn percent_when_late(script: &str, bandwidth: u64) -> f64 {
    let mut root = read(script).unwrap()[0].spec.build(1).unwrap();
    let mut pool = Pool::with_capacity(64);
    let start = Time::from_nanos(1 << 40);
    let (mut now, mut late, mut sent) = (start, 0, 0);
    let refill = |root: &mut dyn Discipline, now, pool: &mut Pool| {
        while root.backlog().packets < 20 {
            let id = pool.insert(Packet::of_length(1514)).expect("there are slots");
            root.enqueue(id, now, pool);
        }
    };
    while now < start + 1_000_000_000 {
        refill(root.as_mut(), now, &mut pool);
        while let Some(id) = root.dequeue(now, &mut pool) {
            sent += u64::from(pool.release(id).length);
            refill(root.as_mut(), now, &mut pool);
        }
        // A linear congruential generator, so that the test is reproducible.
        late = (late * 1_103_515_245 + 12_345) % (1 << 31);
        now = root.watchdog().expect("a shaper has a watchdog time") + late % 500_000;
    }
    sent as f64 * 8.0 * 100.0 / bandwidth as f64
}

#[test]
fn a_pipe_reaches_its_rate_with_late_wake_ups() {
    for mbit in [1, 5, 20, 50, 100, 1000] {
        let script = format!("ipfw pipe 1 config bw {mbit}Mbit/s");
        let percent = percent_when_late(&script, mbit * 1_000_000);
        // The burst is sent once in addition: three frames are 4 % of a second at 1 Mb/s.
        assert!((99.9..104.0).contains(&percent), "{percent:.1} % of {mbit} Mb/s");
    }
}

#[test]
fn the_burst_of_a_pipe_is_added_to_some_frames_with_tags() {
    let spec = |line: &str| read(line).unwrap().remove(0).spec;
    for bandwidth in ["8kbit/s", "100Mbit/s"] {
        let tree = spec(&format!("pipe 1 config bw {bandwidth}"));
        assert!(
            tree.too_small_for(fairgate_config::Frame::TAGGED).is_empty(),
            "{tree}"
        );
    }
    assert_eq!(
        spec("pipe 1 config bw 1Mbit/s burst 1000").to_string(),
        "tbf rate=1mbit burst=5542b\n└─ fifo limit=50"
    );
    assert_eq!(
        spec("pipe 1 config bw 100Mbit/s burst 1000").to_string(),
        "tbf rate=100mbit burst=51000b\n└─ fifo limit=50"
    );
}

#[test]
fn a_pipe_is_a_shaper_over_its_queue() {
    assert_eq!(
        tree("ipfw pipe 1 config bw 10Mbit/s\nipfw add pipe 1 ip from any to any"),
        "out: tbf rate=10mbit burst=5000b\n└─ fifo limit=50"
    );
    // pf's rules are not part of the script: one pipe is for all packets.
    assert_eq!(
        tree("dnctl pipe 1 config bw 64KByte/s burst 15K queue 100KBytes buckets 64 noerror"),
        "out: tbf rate=512kbit burst=19902b\n└─ fifo limit=none limit_bytes=100kb"
    );
    assert_eq!(
        tree("pipe 7 config queue 30 codel target 10 interval 120ms ecn"),
        "out: codel limit=30 target=10ms interval=120ms ecn=true"
    );
    assert_eq!(
        tree(
            "pipe config 1 bw 1Mbit/s pie target 20ms alpha 0.25 beta 1.5 max_ecnth 0.2 ts noecn max_burst \
             150"
        ),
        "out: tbf rate=1mbit burst=4542b\n\
         └─ pie limit=50 target=20ms alpha=4 beta=24 ecn=false ecn_prob=0.2 dq_rate_estimator=false \
         max_burst=150ms"
    );
    assert!(tree("pipe 1 config pie").contains("dq_rate_estimator=true"));
    // A later line replaces an earlier one. Options with neutral values are accepted.
    assert_eq!(
        tree("pipe 1 config bw 1Mbit/s red 0.5/1/2/1\npipe 1 config bw 0 delay 0 plr 0 droptail"),
        "out: fifo limit=50"
    );
}

#[test]
fn red_counts_in_the_unit_of_its_queue() {
    let slots = tree("pipe 1 config bw 10Mbit/s queue 60 gred 0.0625/10/30/0.1 ecn");
    for setting in [
        "limit=3840kb",
        "limit_packets=60",
        "min=5kb",
        "max=15kb",
        "avpkt=512b",
        "probability=0.1",
        "bandwidth=10mbit",
        "ecn=true",
        "gentle=true",
        "measure=packets",
    ] {
        assert!(slots.contains(setting), "{setting} in {slots}");
    }
    let bytes = tree("pipe 1 config bw 10Mbit/s queue 100KBytes red 0.001953125/20K/60K/0.02");
    for setting in [
        "limit=100kb",
        "min=20kb",
        "max=60kb",
        "avpkt=1500b",
        "by_length=true",
    ] {
        assert!(bytes.contains(setting), "{setting} in {bytes}");
    }
    // tc would choose the same weight for this burst.
    for log in [2u32, 4, 9] {
        let weight = 1.0 / f64::from(1 << log);
        let script = format!("pipe 1 config queue 60 red {weight}/10/30/0.1");
        let trees = read(&script).unwrap();
        let parameters = trees[0].spec.parameters();
        let number = |name: &str| {
            let value = parameters.iter().find(|(info, _)| info.name == name);
            match value.expect("red has it").1 {
                fairgate_config::Value::Number(number) => number as u32,
                _ => panic!("{name} is a number"),
            }
        };
        let config = fairgate::aqm::red::Config {
            min: Some(number("min")),
            max: Some(number("max")),
            avpkt: number("avpkt"),
            burst: Some(number("burst")),
            ..fairgate::aqm::red::Config::default()
        };
        assert_eq!(config.w_log().unwrap(), log);
    }
}

#[test]
fn queues_share_their_pipe_by_weights() {
    let queues = "pipe 1 config bw 10Mbit/s
        queue 1 config pipe 1 weight 50
        queue 2 config pipe 1 weight 10 queue 20 codel
        add 200 queue 2 ip from any to any
        add 100 queue 1 udp from 192.0.2.0/24 5000-5100,6000 to any dscp ef,af41";
    assert_eq!(
        tree(queues),
        "out: tbf rate=10mbit burst=5000b
└─ wf2q_plus default=2
   │  source=192.0.2.0/24, source_port=5000-5100, protocol=udp, dscp=EF goes to 1
   │  source=192.0.2.0/24, source_port=5000-5100, protocol=udp, dscp=AF41 goes to 1
   │  source=192.0.2.0/24, source_port=6000, protocol=udp, dscp=EF goes to 1
   │  source=192.0.2.0/24, source_port=6000, protocol=udp, dscp=AF41 goes to 1
   ├─ 1 weight=50: fifo limit=50
   └─ 2 weight=10: codel limit=20"
    );
    let with = |kind: &str, queue: &str| {
        tree(&format!(
            "pipe 1 config bw 10Mbit/s\nsched 1 config pipe 1 type {kind}\nqueue 3 config sched 1 {queue}\n\
             add queue 3 ip from any to any"
        ))
    };
    assert_eq!(
        with("rr", "weight 3 lmax 1000"),
        "out: tbf rate=10mbit burst=5000b\n└─ drr default=3\n   └─ 3 quantum=3000b: fifo limit=50"
    );
    assert_eq!(
        with("QFQ", "weight 4"),
        "out: tbf rate=10mbit burst=5000b\n└─ qfq default=3\n   └─ 3 weight=4 max_packet=1514b: fifo limit=50"
    );
    assert_eq!(
        with("fifo", ""),
        "out: tbf rate=10mbit burst=5000b\n└─ fifo limit=50"
    );
    assert_eq!(
        with("fq_codel target 7ms quantum 300 noecn", ""),
        "out: tbf rate=10mbit burst=5000b\n└─ fq_codel quantum=300b target=7ms ecn=false"
    );
    assert!(with("fq_codel", "").ends_with("fq_codel ecn=true"));
    assert!(with("fq_pie limit 500", "").ends_with("fq_pie limit=500 ecn=true"));
}

#[test]
fn an_object_with_a_mask_is_one_for_each_host() {
    assert_eq!(
        tree("pipe 1 config bw 2Mbit/s mask dst-ip 0xffffffff"),
        "out: htb default=2\n\
         ├─ 1 rate=2mbit burst=4542b cburst=4542b: fifo limit=50\n\
         └─ 2 each=destination ipv6=0 count=1024 overflow=1 rate=2mbit burst=4542b cburst=4542b: \
         fifo limit=50"
    );
    let networks = "mask src-ip 0xffffff00 src-ip6 /56 src-port 0";
    let of_networks = tree(&format!("pipe 1 config bw 2Mbit/s {networks} buckets 16"));
    assert!(
        of_networks.contains("each=source ipv4=24 ipv6=56 count=256"),
        "{of_networks}"
    );
    assert!(tree("pipe 1 config bw 2Mbit/s mask all").contains("each=source,destination,source_port,"));
    assert!(tree("pipe 1 config bw 2Mbit/s mask dst-ip 0").starts_with("out: tbf"));
    // Queues keep their numbers. The numbers for hosts follow.
    assert_eq!(
        tree(
            "pipe 1 config bw 10Mbit/s\n\
             queue 1 config pipe 1 weight 50 mask dst-ip 0xffffffff buckets 16\n\
             queue 2 config pipe 1 weight 10\n\
             add queue 1 tcp from any to any\n\
             add queue 2 ip from any to any"
        ),
        "out: tbf rate=10mbit burst=5000b\n\
         └─ wf2q_plus default=2\n   \
            │  protocol=tcp goes to 3\n   \
            ├─ 1 weight=50: fifo limit=50\n   \
            ├─ 2 weight=10: fifo limit=50\n   \
            └─ 3 each=destination ipv6=0 count=256 overflow=1 weight=50: fifo limit=50"
    );
}

#[test]
fn weights_of_prio_are_priorities() {
    let prio = "pipe 1 config bw 1Mbit/s
        sched 1 config pipe 1 type prio
        queue 5 config sched 1 weight 9
        queue 6 config sched 1
        add queue 6 tcp from any to any 22
        add queue 5 ip from any to any";
    assert_eq!(
        tree(prio),
        "out: tbf rate=1mbit burst=4542b
└─ prio default=2
   │  destination_port=22, protocol=tcp goes to 1
   ├─ 1: fifo limit=50
   └─ 2: fifo limit=50"
    );
    let (line, _, message, _) =
        mistake(&prio.replace("sched 1\n        add", "sched 1 weight 9\n        add"));
    assert_eq!(
        (line, message.as_str()),
        (4, "queues 5 and 6 have the same priority")
    );
}

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
fn mistakes_are_reported_with_location_and_remedy() {
    let at = |text: &str, line, column, message: &str, remedy: &str| {
        let (found_line, found_column, found, help) = mistake(text);
        assert_eq!(
            (found_line, found_column, found.as_str()),
            (line, column, message),
            "{text}"
        );
        assert!(help.contains(remedy), "{text}: {help}");
    };
    let with = |options: &str| format!("pipe 1 config bw 1Mbit/s {options}");
    let rule = |rule: &str| format!("pipe 1 config\nadd {rule}");
    at(&with("plr 1.5"), 1, 30, "`plr` is above 1", "0.01");
    at(
        &with("mask dst-ip /24"),
        1,
        38,
        "`dst-ip`: ipfw applies `/24` to the low bits",
        "0xffffff00",
    );
    at(
        &with("mask dst-ip 0xffffff00 src-ip 0xffffffff"),
        1,
        26,
        "this mask can't be carried over",
        "the same mask",
    );
    at(
        &with("mask dst-port 0xff00"),
        1,
        40,
        "`dst-port`: `0xff00` covers only a part of the field",
        "0xffff",
    );
    at(
        &with("mask dst-ip 0xffffffff buckets 4096"),
        1,
        57,
        "class numbers end at 65535, but 65536 hosts need the numbers from 2 on",
        "buckets 4095",
    );
    at(
        "pipe 1 config bw 1Mbit/s\nsched 1 config type prio\nqueue 1 config sched 1 mask proto 0xff",
        3,
        24,
        "`mask` can't be carried over with a scheduler `prio`",
        "wf2q+",
    );
    at(
        &with("profile"),
        1,
        26,
        "`profile` has no value, or too few",
        "after `profile`",
    );
    at(
        &with("profile tests"),
        1,
        34,
        "the profile tests can't be read: it is not a file",
        "begins at the folder of the script",
    );
    at(
        &with("bandwith 5"),
        1,
        26,
        "the option `bandwith` of a pipe can't be carried over",
        "bw",
    );
    at(
        &with("weight 5"),
        1,
        26,
        "the option `weight` of a pipe can't be carried over",
        "understood are",
    );
    at(
        "pipe 1 config bw 2.5Mbit/s",
        1,
        18,
        "`bw`: `2.5Mbit/s` has decimals, which ipfw does not read",
        "2500Kbit/s",
    );
    at(
        "pipe 1 config bw 10Mbots/s",
        1,
        20,
        "`bw`: `Mbots/s` is not a unit of a bandwidth",
        "10Mbit/s",
    );
    at(
        "pipe 1 config bw em0",
        1,
        18,
        "`bw`: `em0` as a clock can't be carried over",
        "10Mbit/s",
    );
    at(
        "pipe 1 config bw",
        1,
        15,
        "`bw` has no value, or too few",
        "after `bw`",
    );
    at(
        &with("queue 0"),
        1,
        32,
        "`queue`: a queue of `0` can't hold any packet, or is too large",
        "100KBytes",
    );
    at(
        &with("red 1.5/10/30/0.1"),
        1,
        30,
        "the weight 1.5 is not above 0 and at most 1",
        "0.002",
    );
    at(
        &with("red 0/10/30/0.1"),
        1,
        30,
        "the weight 0 is not above 0 and at most 1",
        "0.002",
    );
    at(
        &with("red 0.5/10"),
        1,
        30,
        "`0.5/10` has 2 parts, not 4",
        "w_q/min_th/max_th/max_p",
    );
    at(
        &with("ecn"),
        1,
        26,
        "`ecn` here can't be carried over",
        "after red",
    );
    at(
        &with("codel limit 5"),
        1,
        32,
        "the option `limit` can't be carried over",
        "target",
    );
    at(
        &with("pie nodre"),
        1,
        30,
        "the option `nodre` can't be carried over",
        "dre",
    );
    at(
        &with("pie alpha 0.1"),
        1,
        36,
        "`alpha` can't be carried over",
        "sixteenths",
    );
    at(
        "pip 1 config",
        1,
        1,
        "expected `pipe`, `queue`, `sched`, `add`, `delete`, `flush`, `set` or `table`, but found `pip`",
        "config bw",
    );
    at(
        "pipe 0 config",
        1,
        6,
        "expected a number from 1 to 65535, but found `0`",
        "",
    );
    at(
        "pipe 1",
        1,
        7,
        "the line ends where `config` or `delete` is expected",
        "",
    );
    at("# nothing", 1, 1, "no pipe is configured", "pipe 1 config");
    at("queue 1 config weight 3", 1, 7, "queue 1 has no pipe", "add pipe");
    at(
        "queue 1 config pipe 4",
        1,
        21,
        "there is no pipe 4",
        "pipe 4 config",
    );
    at(
        "pipe 1 config\npipe 2 config",
        1,
        6,
        "no rule says which packets a pipe is for",
        "add rules",
    );
    at(
        &rule("pipe 2 ip from any to any"),
        2,
        10,
        "there is no pipe 2",
        "pipe 2 config",
    );
    at(
        &rule("divert 8668 ip from any to any"),
        2,
        5,
        "a rule that does `divert` can't be carried over",
        "deny",
    );
    at(
        "pipe 1 config\nadd 10 skipto 300 udp from any to any\nadd 20 pipe 1 ip from any to any",
        2,
        15,
        "a rule that skips others can't be carried over",
        "conditions",
    );
    at(
        &rule("pipe 1 ip from table(9) to any"),
        2,
        20,
        "a table that has no lines can't be carried over: `table(9)`",
        "table 1 add",
    );
    at(
        "pipe 1 config\ntable 1 add localhost\nadd pipe 1 ip from any to any",
        2,
        13,
        "`localhost` is not an address",
        "192.0.2.0/24",
    );
    at(
        &rule("pipe 1 ip from any 99999 to any"),
        2,
        24,
        "a list like this can't be carried over: `99999`",
        "5000-5100",
    );
    at(
        &rule("pipe 1 ip from any to any keep-state"),
        2,
        31,
        "`keep-state` of a rule can't be carried over",
        "via",
    );
    at(
        &rule("pipe 1 ip from any to any in out"),
        2,
        34,
        "a second direction can't be carried over: `out`",
        "one direction",
    );
    at(
        &rule("pipe 1 ip to any"),
        2,
        15,
        "expected `from`, but found `to`",
        "",
    );
    at(
        &rule("pipe 1 ospfx from any to any"),
        2,
        12,
        "`ospfx` is not a protocol",
        "",
    );
    at(
        "pipe 1 config\nsched 1 config type fqcodel",
        2,
        21,
        "the scheduler `fqcodel` is not supported",
        "fq_codel",
    );
    at(
        "pipe 1 config\nadd allow ip from any to any",
        1,
        6,
        "no rule sends packets to a pipe or a queue",
        "add a rule",
    );
}

#[test]
fn what_has_no_effect_in_dummynet_has_none_here_with_a_warning() {
    let says = |text: &str, expected: &str| assert_eq!(warnings(text), [expected], "{text}");
    says(
        "pipe 1 config\npipe 2 config\nadd pipe 1 in",
        "line 2: no rule sends packets to pipe 2",
    );
    says(
        "pipe 1 config mask dst-ip 0xffffffff",
        "line 1: `mask` has no effect: packets never wait in a pipe without bandwidth",
    );
    says(
        "pipe 1 config burst 9000",
        "line 1: `burst` has no effect: a pipe without bandwidth shapes nothing",
    );
    says(
        "pipe 1 config\nadd pipe 1 ip from any to any\nadd pipe 1 tcp from any to any",
        "line 3: this rule is never tried: one before it matches every packet",
    );
    let queue = |options: &str| format!("pipe 1 config\nqueue 1 config pipe 1 {options}\nadd queue 1 in");
    says(
        &queue("weight 101"),
        "line 2: `weight` 101 is out of range: 100 is used, as by dummynet",
    );
    assert!(tree(&queue("weight 101")).contains("1 weight=100"));
    says(
        &queue("lmax 1000"),
        "line 2: `lmax` has no effect: WF2Q+ needs no longest packet",
    );
    says(
        &format!("sched 1 config queue 9 type fq_codel\n{}", queue("")),
        "line 1: this has no effect: a scheduler `fq_codel` has queues of its own",
    );
    says(
        "pipe 1 config type fq_pie onoff\nqueue 1 config pipe 1\nadd queue 1 in",
        "line 1: `onoff` has no effect: in fq_pie, PIE begins with the first packet of a flow",
    );
    // The firewall's own packets do not pass a bridge. The rule must not become one for all packets.
    let own = "pipe 1 config\npipe 2 config\nadd pipe 2 ip from any to me\nadd pipe 1 ip from not me to any";
    assert_eq!(tree(own), "out: fifo limit=50");
    assert_eq!(
        warnings(own),
        [
            "line 2: no rule sends packets to pipe 2",
            "line 3: this rule matches nothing: a bridge has no address; write the firewall's if its packets \
             pass here",
        ]
    );
}

/// Of dn_aqm_pie.c; pfSense has a field for each.
#[test]
fn all_options_of_pie_are_taken() {
    assert_eq!(
        tree("pipe 1 config pie target 20 max_burst 30ms nocapdrop noderand onoff ts"),
        "out: pie limit=50 on_off=true target=20ms dq_rate_estimator=false max_burst=30ms cap_drop=false \
         derandomize=false"
    );
    let flows = tree(
        "pipe 1 config type fq_pie nocapdrop nodrand max_burst 1s\nqueue 1 config pipe 1\nadd queue 1 in",
    );
    assert!(
        flows.contains("max_burst=1s")
            && flows.contains("cap_drop=false")
            && flows.contains("derandomize=false"),
        "{flows}"
    );
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
fn a_profile_becomes_a_link_that_is_busy_longer() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/test.ipfw");
    let read = |text: &str| {
        let script = Script::parse(script, text, Device::default()).and_then(|script| script.trees());
        let [tree] = &script.unwrap_or_else(|error| panic!("{:?}", error.problems()))[..] else {
            panic!("one tree")
        };
        let warnings: Vec<String> = tree.warnings.iter().map(|note| note.text.clone()).collect();
        (tree.spec.to_string(), warnings)
    };
    let link = "extra=[2000, 2000, 2000, 2000, 2000, 2000, 2000, 2000, 15000, 30000] lost_from=9";
    let (tree, warnings) = read("pipe 1 config bw 1Mbit/s profile radio.profile delay 5 queue 20");
    assert_eq!(
        tree,
        format!(
            "netem limit=4294967295 delay=5ms\n\
             └─ busy_link rate=11mbit {link}\n   └─ fifo limit=20"
        )
    );
    assert!(warnings.is_empty(), "{warnings:?}");
    // A bandwidth after the profile replaces that of the file.
    let (tree, _) = read("pipe 1 config profile radio.profile bw 1Mbit/s burst 3000");
    assert_eq!(
        tree,
        format!("busy_link rate=1mbit {link} burst=3000b\n└─ fifo limit=50")
    );
    let (tree, _) = read("pipe 1 config profile radio.profile\nqueue 1 config pipe 1 weight 3");
    assert!(
        tree.starts_with(&format!("busy_link rate=11mbit {link}\n└─ wf2q_plus")),
        "{tree}"
    );
    // Without a bandwidth only the losses remain.
    let (tree, warnings) = read("pipe 1 config profile radio.profile bw 0");
    assert_eq!(tree, "netem limit=4294967295 loss=0.1\n└─ fifo limit=50");
    assert!(warnings[0].contains("`profile` delays nothing"), "{warnings:?}");
    // Each host has a link of its own.
    let (tree, _) = read("pipe 1 config profile radio.profile mask dst-ip 0xffffffff");
    assert_eq!(tree.matches(link).count(), 2, "{tree}");
    assert!(tree.starts_with("htb default=2"), "{tree}");
}

/// A mistake in a profile is shown in the profile, and in a list after those of the script.
#[test]
fn mistakes_of_a_profile_are_located_in_it() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/test.ipfw");
    let error = Script::parse(script, "pipe 1 config profile fireqos-line.tc", Device::default())
        .map(|_| ())
        .expect_err("it is no profile");
    let problem = &error.problems()[0];
    assert!(problem.file().ends_with("fireqos-line.tc"), "{problem:?}");
    let text = "pipe 1 config profile fireqos-line.tc wieght 1";
    let error = Script::parse(script, text, Device::default())
        .map(|_| ())
        .expect_err("there are mistakes");
    let files: Vec<bool> = error
        .problems()
        .iter()
        .map(|problem| problem.file() == script)
        .collect();
    assert!(
        error.file() == script && files[0] && !files[1..].contains(&true),
        "{files:?}"
    );
}

#[test]
fn a_pipe_can_delay_and_lose_packets() {
    assert_eq!(
        tree("pipe 1 config bw 10Mbit/s delay 20ms plr 0.01"),
        "out: netem limit=4294967295 delay=20ms loss=0.01\n\
         └─ tbf rate=10mbit burst=5000b\n   └─ fifo limit=50"
    );
    assert_eq!(
        tree("pipe 1 config delay 500\nqueue 1 config pipe 1 plr 0.125\nadd queue 1 ip from any to any"),
        "out: netem limit=4294967295 delay=500ms\n\
         └─ wf2q_plus default=1\n   \
         └─ 1 weight=1: netem limit=4294967295 loss=0.125\n      └─ fifo limit=50"
    );
}

/// In dummynet a rule that names the pipe itself passes by the scheduler.
#[test]
fn the_type_of_a_pipe_is_that_of_its_queues() {
    let script = |to: &str| {
        tree(&format!(
            "pipe 1 config bw 10Mbit/s type fq_codel target 5 noecn\nqueue 1 config pipe 1 weight 100\n\
             add {to} ip from any to any"
        ))
    };
    assert!(script("queue 1").ends_with("└─ fq_codel target=5ms ecn=false"));
    let own = tree("pipe 1 config bw 10Mbit/s type fq_codel\nadd pipe 1 ip from any to any");
    assert!(own.ends_with("└─ fifo limit=50"), "{own}");
}

#[test]
fn a_mask_of_a_scheduler_is_a_scheduler_for_each_host() {
    let expected = |tree: String| {
        assert!(
            tree.contains("htb default=2")
                && tree.contains("2 each=destination")
                && tree.contains("count=1024 overflow=1")
                && tree.matches("fq_codel target=5ms").count() == 2,
            "{tree}"
        );
    };
    expected(tree(
        "pipe 1 config bw 10Mb droptail\n\
         sched 1 config pipe 1 mask dst-ip6 /128 dst-ip 0xffffffff type fq_codel target 5ms noecn\n\
         queue 1 config pipe 1 mask dst-ip6 /128 dst-ip 0xffffffff droptail\n\
         add queue 1 ip from any to any",
    ));
    expected(tree(
        "pipe 1 config bw 10Mbit/s mask dst-ip /32 type fq_codel target 5 noecn\n\
         queue 1 config pipe 1\nadd queue 1 ip from any to any",
    ));
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

/// Lines as OPNsense's templates write them: pipes and queues of dnctl.conf, and the rules of ipfw.conf.
#[test]
fn files_of_opnsense_are_taken() {
    let objects = "\
pipe 10000 config bw 50Mbit/s queue 100 type  fq_codel  target 5  interval 100   noecn \\
    quantum 300  limit 10240  flows 1024
pipe 10001 config bw 10Mbit/s mask src-ip /32  type  wf2q+  codel  target 5  ecn
queue 10000 config pipe 10000 weight 100
queue 10001 config pipe 10001 buckets 64 mask src-ip /32  weight 30 codel  noecn
";
    let rules = "\
flush
add 100 allow pfsync from any to any
add 110 allow carp from any to any
add 120 pass layer2 mac-type arp,rarp
add 130 pass layer2 mac-type 0x888e,0x88c7
add 140 pass layer2 mac-type 0x8863,0x8864
add 150 deny layer2 not mac-type ip,ipv6
add 200 skipto 60000 ipv6 from ::1 to any
add 201 skipto 60000 ipv4 from 127.0.0.0/8 to any
add 202 skipto 60000 ipv6 from any to ::1
add 203 skipto 60000 ipv4 from any to 127.0.0.0/8
add 60000 return via any
add 60001 queue 10000 ip from any to any src-port  any dst-port any in   via em0 // 0a1b wan: Download
add 60002 queue 10001 ip from not 192.0.2.0/24 to table(__rule__0a1b__destination) src-port  any \\
    dst-port any xmit em0 dscp ef,af41 recv em1 // 0a1c lan -> wan: Upload
add 65533 pass ip from any to any
add 65534 deny all from any to any
table __rule__0a1b__destination create type addr
table __rule__0a1b__destination add 203.0.113.0/24
";
    let trees = read(&format!("{objects}{rules}")).expect("the files are taken");
    let names: Vec<String> = trees.iter().map(super::Tree::name).collect();
    assert_eq!(names, ["em0/in", "em0"]);
    let shown: Vec<String> = trees.iter().map(|tree| tree.spec.to_string()).collect();
    assert!(
        shown[0].contains("fq_codel limit=10240 flows=1024 quantum=300b target=5ms interval=100ms ecn=false"),
        "{}",
        shown[0]
    );
    assert!(
        shown[1].contains("each=source") && shown[1].contains("codel limit=50 ecn=false"),
        "{}",
        shown[1]
    );
    for shown in &shown {
        assert!(
            shown.contains("ethertype=0x806") || shown.contains("ethertype=arp"),
            "{shown}"
        );
        assert!(shown.contains("netem loss=1"), "{shown}");
    }
}

/// Lines as pfSense writes them into its file of limiters.
#[test]
fn limiters_of_pfsense_are_taken() {
    let limiters = "
pipe 1 config  bw 20Mb queue 1000 plr 0.001 buckets 64 delay 10 codel target 5ms interval 100ms noecn
sched 1 config pipe 1 type fq_codel target 5ms interval 100ms quantum 1514 limit 10240 flows 1024 noecn
queue 1 config pipe 1 queue 1000 weight 50 mask dst-ip6 /128 dst-ip 0xffffffff droptail
 
";
    // The options of the pipe's own queue are for packets that rules send to the pipe itself.
    assert_eq!(
        tree(&format!("{limiters}add queue 1 ip from any to any")),
        "out: netem limit=4294967295 delay=10ms\n\
         └─ tbf rate=20mbit burst=10000b\n   \
         └─ fq_codel limit=10240 flows=1024 quantum=1514b target=5ms interval=100ms ecn=false"
    );
    let own = tree(&format!(
        "{limiters}add pipe 1 ip from any to any\nsched 1 delete\nqueue 1 delete"
    ));
    assert_eq!(
        own,
        "out: netem limit=4294967295 delay=10ms loss=0.001\n\
         └─ tbf rate=20mbit burst=10000b\n   \
         └─ codel limit=1000 target=5ms interval=100ms ecn=false"
    );
}

/// Rules as pfSense's rules.debug and OPNsense's firewall have them.
#[test]
fn rules_of_pf_lead_to_pipes() {
    let objects =
        "pipe 1 config bw 20Mb\nqueue 1 config pipe 1\npipe 2 config bw 5Mb\nqueue 2 config pipe 2\n";
    let rules = "\
set limit states 100000
LAN = \"{ em1 }\"
table <voip> { 192.0.2.64/28 }
table <lan> persist { 192.0.2.0/24, 2001:db8::/64 }
scrub on em0 fragment reassemble
block in log inet all label \"Default deny\"
pass in quick on $LAN inet from <voip> to any ridentifier 7 keep state label \"calls\"
pass  in  quick  on $LAN inet proto tcp from <lan> to any port { 80 443 } \\
    flags S/SA keep state dnqueue( 2,1)  label \"web\"
pass in on $LAN from <lan> to any keep state dnqueue (2, 1)
";
    let trees = read(&format!("{objects}{rules}")).unwrap_or_else(|error| panic!("{:?}", error.problems()));
    let names: Vec<String> = trees.iter().map(super::Tree::name).collect();
    assert_eq!(names, ["em1/in", "em1"]);
    let shown: Vec<String> = trees.iter().map(|tree| tree.spec.to_string()).collect();
    let [arriving, leaving] = &shown[..] else {
        panic!("two trees")
    };
    let order = |shown: &str, parts: &[&str]| {
        let at: Vec<Option<usize>> = parts.iter().map(|part| shown.find(part)).collect();
        assert!(
            at.iter().all(Option::is_some) && at.is_sorted(),
            "{parts:?} in {shown}"
        );
    };
    order(
        arriving,
        &[
            "source=192.0.2.64/28",
            "destination_port=80",
            "destination_port=443",
            "source=2001:db8::/64",
        ],
    );
    assert!(
        arriving.contains("rate=5mbit") && leaving.contains("rate=20mbit"),
        "{arriving} {leaving}"
    );
    // Replies pass the other way.
    order(leaving, &["destination=192.0.2.0/24", "source_port=80"]);

    let one = tree("pipe 1 config bw 1Mb\nmatch out on em0 inet all dnpipe(1)");
    assert!(one.contains("rate=1mbit"), "{one}");
    let (line, column, message, _) = mistake("pipe 1 config\nmatch in on em0 from any to any dnpipe(0)");
    assert_eq!((line, column), (2, 33), "{message}");
}
