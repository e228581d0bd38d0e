//! Pipes: their rate, their queue, delays and losses.

use fairgate::{Discipline, Packet, Pool, Time};

use super::{read, tree, warnings};
use crate::dummynet::Script;
use crate::tc::Device;

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
