//! A tree that is made from what is shown of a random tree, as text or as JSON, is shown in the same way.
//!
//! Values have at most three digits, because tc's text shows no more of a time.

use std::collections::BTreeSet;

use fairgate_config::Spec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::ValueTree;

use super::{Printed, import};
use crate::tc::{Device, Line, Listing, Script, TreeState, View};

/// How the value of an option is drawn.
#[derive(Clone, Copy, Debug)]
enum Draw {
    /// The option has no value.
    Flag,
    Rate,
    /// Below 1 Gbit/s, so that a bucket takes more than a microsecond to fill.
    SlowRate,
    Size,
    Time,
    Count(u64, u64),
    One(&'static [&'static str]),
}

use Draw::{Count, Flag, One, Rate, Size, SlowRate, Time};

/// A kind, the options that it needs, and groups of other options. A tree has at most one option of a group.
type Kind = (
    &'static str,
    &'static [(&'static str, Draw)],
    &'static [&'static [(&'static str, Draw)]],
);

const CODEL_TIMES: [&[(&str, Draw)]; 4] = [
    &[("target", Time)],
    &[("interval", Time)],
    &[("ce_threshold", Time)],
    &[("ecn", Flag), ("noecn", Flag)],
];

/// RED of sfq. tc does not show the values of `redflowlimit`, `avpkt` and `burst`.
const SFQ_RED: [&str; 4] = [
    "120000",
    "100000 min 8000 max 60000 probability 0.2 ecn",
    "90000 min 9000 max 80000 burst 10 avpkt 1500 harddrop",
    "20000 max 9000 burst 5 avpkt 200",
];

const PIE: [&[(&str, Draw)]; 8] = [
    &[("limit", Count(1, 9999))],
    &[("target", Time)],
    &[("tupdate", Time)],
    &[("alpha", Count(0, 32))],
    &[("beta", Count(0, 32))],
    &[("ecn", Flag), ("noecn", Flag)],
    &[("bytemode", Flag)],
    &[("dq_rate_estimator", Flag)],
];

/// Kinds without classes.
const LEAVES: &[Kind] = &[
    ("pfifo", &[], &[&[("limit", Count(1, 9999))]]),
    ("bfifo", &[], &[&[("limit", Size)]]),
    ("pfifo_head_drop", &[], &[&[("limit", Count(1, 9999))]]),
    ("pfifo_fast", &[], &[]),
    (
        "sfq",
        &[],
        &[
            &[("limit", Count(2, 127))],
            &[("depth", Count(1, 127))],
            &[("divisor", One(&["64", "1024", "4096"]))],
            &[("quantum", Count(1514, 9999))],
            &[("perturb", Count(0, 99))],
            &[("headdrop", Flag)],
            &[("redflowlimit", One(&SFQ_RED))],
        ],
    ),
    (
        "codel",
        &[],
        &[
            &[("limit", Count(1, 9999))],
            CODEL_TIMES[0],
            CODEL_TIMES[1],
            CODEL_TIMES[2],
            CODEL_TIMES[3],
        ],
    ),
    (
        "fq_codel",
        &[],
        &[
            &[("limit", Count(1, 9999))],
            &[("flows", Count(1, 65_536))],
            &[("quantum", Count(256, 9999))],
            &[("memory_limit", Size)],
            &[("drop_batch", Count(1, 64))],
            CODEL_TIMES[0],
            CODEL_TIMES[1],
            CODEL_TIMES[2],
            CODEL_TIMES[3],
        ],
    ),
    ("pie", &[], &PIE),
    (
        "fq_pie",
        &[],
        &[
            &[("flows", Count(1, 65_535))],
            &[("quantum", Count(256, 9999))],
            &[("memory_limit", Size)],
            &[("ecn_prob", Count(1, 99))],
            PIE[0],
            PIE[1],
            PIE[2],
            PIE[3],
            PIE[4],
            PIE[5],
            PIE[6],
            PIE[7],
        ],
    ),
    (
        "fq",
        &[],
        &[
            &[("limit", Count(1, 9999))],
            &[("flow_limit", Count(1, 999))],
            &[("buckets", One(&["64", "1024", "32768"]))],
            &[("quantum", Size)],
            &[("initial_quantum", Size)],
            &[("maxrate", Rate)],
            &[("low_rate_threshold", Rate)],
            &[("refill_delay", Time)],
            &[("horizon", Time)],
            &[("horizon_drop", Flag), ("horizon_cap", Flag)],
            &[("ce_threshold", Time)],
        ],
    ),
    (
        "cake",
        &[],
        &[
            &[("bandwidth", Rate), ("unlimited", Flag)],
            &[("autorate-ingress", Flag)],
            &[
                ("besteffort", Flag),
                ("precedence", Flag),
                ("diffserv3", Flag),
                ("diffserv4", Flag),
                ("diffserv8", Flag),
            ],
            &[
                ("flowblind", Flag),
                ("srchost", Flag),
                ("dsthost", Flag),
                ("hosts", Flag),
                ("flows", Flag),
                ("dual-srchost", Flag),
                ("dual-dsthost", Flag),
                ("triple-isolate", Flag),
            ],
            &[("rtt", Time), ("metro", Flag), ("lan", Flag)],
            &[("wash", Flag), ("nowash", Flag)],
            &[("ingress", Flag)],
            &[("ack-filter", Flag), ("ack-filter-aggressive", Flag)],
            &[
                ("overhead", Count(0, 200)),
                ("docsis", Flag),
                ("ethernet", Flag),
                ("pppoe-vcmux", Flag),
                ("raw", Flag),
                ("conservative", Flag),
            ],
            &[("mpu", Count(0, 200))],
            &[("atm", Flag), ("ptm", Flag), ("noatm", Flag)],
            &[("memlimit", Size)],
            &[("fwmark", One(&["0xff", "0xf0"]))],
        ],
    ),
    (
        "dualpi2",
        &[],
        &[
            &[("limit", Count(1, 9999))],
            &[("target", Time)],
            &[("tupdate", Time)],
            &[("alpha", One(&["0.5", "0.25", "1.5"]))],
            &[("beta", One(&["3.5", "3.25"]))],
            &[("coupling_factor", Count(1, 9))],
            &[("classic_protection", Count(0, 100))],
            &[("drop_on_overload", Flag), ("overflow", Flag)],
            &[("drop_enqueue", Flag), ("drop_dequeue", Flag)],
            &[("l4s_ect", Flag), ("any_ect", Flag)],
            &[("step_thresh", Time), ("step_thresh", One(&["3p", "7packets"]))],
        ],
    ),
    (
        "netem",
        &[],
        &[
            &[("limit", Count(1, 9999))],
            &[
                ("delay", One(&["10ms", "100ms 10ms", "100ms 20ms 25%"])),
                ("delay", Time),
            ],
            &[
                ("loss", One(&["1%", "2% 25%"])),
                (
                    "loss",
                    One(&["gemodel 1%", "gemodel 1% 10% 70% 0.1%", "state 1% 10%"]),
                ),
            ],
            &[("duplicate", One(&["1%", "2% 50%"]))],
            &[("corrupt", One(&["0.1%"]))],
            &[("rate", Rate)],
            &[("slot", One(&["800us 1ms", "20ms 30ms packets 5"]))],
        ],
    ),
    (
        "cbs",
        &[
            ("idleslope", One(&["20000"])),
            ("sendslope", One(&["-980000"])),
            ("hicredit", Count(30, 99)),
            ("locredit", One(&["-1470"])),
        ],
        &[],
    ),
    (
        "red",
        &[
            ("limit", One(&["400kb", "1mb"])),
            ("avpkt", Count(64, 9000)),
            ("bandwidth", Rate),
        ],
        &[
            &[("min", One(&["30kb", "9999b", "70kb"]))],
            &[("max", One(&["90kb", "250kb"]))],
            &[("burst", Count(20, 999))],
            &[("probability", One(&["0.02", "0.1", "0.5"]))],
            &[("ecn", Flag)],
            &[("adaptive", Flag)],
        ],
    ),
    (
        "choke",
        &[
            ("limit", Count(400, 9999)),
            ("avpkt", Count(64, 9000)),
            ("bandwidth", Rate),
        ],
        &[
            &[("min", Count(5, 30))],
            &[("max", Count(40, 99))],
            &[("burst", Count(31, 999))],
            &[("probability", One(&["0.02", "0.1", "0.5"]))],
            &[("ecn", Flag)],
        ],
    ),
    (
        "etf",
        &[("clockid", One(&["CLOCK_TAI"]))],
        &[&[("delta", Count(1, 999_999))], &[("deadline_mode", Flag)]],
    ),
    (
        "sfb",
        &[],
        &[
            &[("limit", Count(1, 9999))],
            &[("max", Count(1, 99))],
            &[("target", Count(1, 20))],
            &[("rehash", Count(1, 999))],
            &[("db", Count(1, 999))],
            &[("increment", One(&["0.5", "0.25"]))],
            &[("decrement", One(&["0.5", "0.25"]))],
            &[("penalty_rate", Count(1, 99))],
            &[("penalty_burst", Count(1, 99))],
        ],
    ),
    (
        "hhf",
        &[],
        &[
            &[("limit", Count(1, 9999))],
            &[("quantum", Count(1, 9999))],
            &[("hh_limit", Count(1, 9999))],
            &[("reset_timeout", Time)],
            &[("admit_bytes", Count(1, 9999))],
            &[("evict_timeout", Time)],
            &[("non_hh_weight", Count(1, 99))],
        ],
    ),
];

/// Kinds with one queue in class 1.
const SHAPERS: &[Kind] = &[(
    "tbf",
    &[
        ("rate", SlowRate),
        ("burst", Size),
        ("limit", One(&["100kb", "1mb"])),
    ],
    &[
        &[("overhead", Count(1, 99))],
        &[("mpu", Count(1, 99))],
        &[("linklayer", One(&["atm", "ethernet"]))],
    ],
)];

/// Kinds whose classes are lines of their own: what the qdisc needs and may have, and a class.
const CLASSFUL: &[(Kind, Kind)] = &[
    (
        (
            "htb",
            &[],
            &[
                &[("default", One(&["0x10", "11", "99"]))],
                &[("r2q", Count(1, 99))],
                &[("direct_qlen", Count(2, 999))],
            ],
        ),
        (
            "htb",
            &[("rate", Rate)],
            &[
                &[("ceil", Rate)],
                &[("burst", Size)],
                &[("cburst", Size)],
                &[("prio", Count(0, 7))],
                &[("quantum", Count(1000, 9999))],
                &[("overhead", Count(1, 99))],
                &[("mpu", Count(1, 99))],
                &[("linklayer", One(&["atm", "ethernet"]))],
            ],
        ),
    ),
    (
        ("hfsc", &[], &[&[("default", One(&["10", "11"]))]]),
        (
            "hfsc",
            &[("ls m2", Rate)],
            &[
                &[("rt m2", Rate), ("rt m1 5mbit d 10ms m2", Rate)],
                &[("ul m2", Rate), ("ul m1 9mbit d 20ms m2", Rate)],
            ],
        ),
    ),
    (("drr", &[], &[]), ("drr", &[], &[&[("quantum", Count(1, 9999))]])),
    (
        ("qfq", &[], &[]),
        (
            "qfq",
            &[],
            &[&[("weight", Count(1, 1000))], &[("maxpkt", Count(1514, 9000))]],
        ),
    ),
];

/// Kinds with bands.
const BANDED: &[Kind] = &[
    (
        "prio",
        &[],
        &[
            &[("bands", Count(3, 9))],
            &[("priomap", One(&["0 1 2 2 1 2 0 0 1 1 1 1 1 1 1 1"]))],
        ],
    ),
    (
        "ets",
        &[("bands", One(&["3", "4"])), ("strict", Count(0, 2))],
        &[
            &[("quanta", One(&["3000 1514", "4500"]))],
            &[("priomap", One(&["0 1 1 2", "2 1 0"]))],
        ],
    ),
];

fn value(draw: Draw) -> BoxedStrategy<String> {
    let number = || prop_oneof![1u32..10, 10u32..1000];
    let with = |units: &'static [&'static str]| {
        (number(), select(units))
            .prop_map(|(number, unit)| format!("{number}{unit}"))
            .boxed()
    };
    match draw {
        Flag => Just(String::new()).boxed(),
        Rate => with(&["kbit", "mbit", "gbit"]),
        SlowRate => with(&["kbit", "mbit"]),
        Size => prop_oneof![
            (1514u32..9999).prop_map(|bytes| bytes.to_string()),
            (2u32..999).prop_map(|kilobytes| format!("{kilobytes}kb")),
            (1u32..30).prop_map(|megabytes| format!("{megabytes}mb")),
        ]
        .boxed(),
        Time => with(&["us", "ms"]),
        Count(least, most) => (least..=most).prop_map(|number| number.to_string()).boxed(),
        One(texts) => select(texts).prop_map(str::to_owned).boxed(),
    }
}

/// Returns a kind with its options.
fn options((kind, required, optional): Kind) -> impl Strategy<Value = String> {
    let written = |(word, draw): (&'static str, Draw)| {
        value(draw).prop_map(move |value| format!(" {word} {value}").trim_end().to_owned())
    };
    let required: Vec<_> = required.iter().map(|option| written(*option)).collect();
    let groups: Vec<usize> = (0..optional.len()).collect();
    let chosen = subsequence(groups, 0..=optional.len()).prop_flat_map(move |groups| {
        let one = |group: usize| select(optional[group].to_vec()).prop_flat_map(written);
        groups.into_iter().map(one).collect::<Vec<_>>()
    });
    (required, chosen)
        .prop_map(move |(required, chosen)| format!("{kind}{}{}", required.concat(), chosen.concat()))
}

fn leaf() -> impl Strategy<Value = String> {
    select(LEAVES).prop_flat_map(options)
}

/// Returns the script of a tree.
fn tree() -> BoxedStrategy<String> {
    let alone = leaf().prop_map(|leaf| format!("qdisc add dev e root handle 1: {leaf}\n"));
    let shaped = (select(SHAPERS).prop_flat_map(options), leaf()).prop_map(|(shaper, leaf)| {
        format!("qdisc add dev e root handle 1: {shaper}\nqdisc add dev e parent 1:1 handle 10: {leaf}\n")
    });
    let banded = (select(BANDED).prop_flat_map(options), leaf()).prop_map(|(banded, leaf)| {
        format!("qdisc add dev e root handle 1: {banded}\nqdisc add dev e parent 1:2 handle 10: {leaf}\n")
    });
    let classful = select(CLASSFUL).prop_flat_map(|(qdisc, class)| {
        let classes = prop::collection::vec((options(class), prop::option::of(leaf())), 1..4);
        (options(qdisc), classes).prop_map(|(qdisc, classes)| {
            let mut script = format!("qdisc add dev e root handle 1: {qdisc}\n");
            for (number, (class, leaf)) in classes.into_iter().enumerate() {
                let id = 0x10 + number;
                script += &format!("class add dev e parent 1: classid 1:{id:x} {class}\n");
                if let Some(leaf) = leaf {
                    script += &format!("qdisc add dev e parent 1:{id:x} handle {id:x}: {leaf}\n");
                }
            }
            script
        })
    });
    prop_oneof![3 => alone, 1 => shaped, 1 => banded, 3 => classful].boxed()
}

fn parse(script: &str) -> Option<Spec> {
    Script::parse("test.tc", script, Device::default())
        .ok()?
        .spec()
        .ok()
}

/// How tc prints.
#[derive(Clone, Copy, Debug)]
enum Form {
    Text,
    Json,
}

/// Returns what `tc -d qdisc show` and `tc -d class show` print, or the same with `-j`.
fn listings(spec: &Spec, form: Form) -> [String; 2] {
    let mut listing = Listing::default();
    let view = View {
        names_device: false,
        in_detail: true,
    };
    let root = spec.build(1).expect("the tree was checked");
    listing.add(spec, &TreeState::of(root.as_ref()), "e", view);
    match form {
        Form::Text => [&listing.qdiscs, &listing.classes].map(|lines| {
            let mut text = String::new();
            for line in lines {
                line.add_to(&mut text, false);
            }
            text
        }),
        Form::Json => {
            let qdiscs = listing.qdiscs.iter().map(|line| serde_json::json!(line));
            let classes = listing.classes.iter().map(Line::class_json);
            [qdiscs.collect(), classes.collect()].map(|objects: Vec<serde_json::Value>| {
                let set: Vec<_> = objects.into_iter().map(without_statistics).collect();
                serde_json::to_string(&set).expect("it has a form")
            })
        }
    }
}

/// What a tree has counted is not what somebody set.
fn without_statistics(mut object: serde_json::Value) -> serde_json::Value {
    let Some(keys) = object.as_object_mut() else {
        return object;
    };
    let is_qdisc = keys.contains_key("kind");
    let set = ["kind", "handle", "root", "parent", "options"];
    keys.retain(|key, _| key != "stats" && (!is_qdisc || set.contains(&key.as_str())));
    object
}

/// Returns the commands that are made from what is shown.
fn imported(texts: &[String; 2]) -> String {
    let printed = texts.each_ref().map(|text| Printed {
        device: "e",
        parent: "",
        text,
    });
    let commands = import(&printed).unwrap_or_else(|error| panic!("{error}\n{texts:?}"));
    commands
        .into_iter()
        .map(|imported| imported.command + "\n")
        .collect()
}

/// Imports what is shown of a script, and compares what is shown of both trees.
fn check(script: &str, form: Form) -> Result<(), TestCaseError> {
    let Some(spec) = parse(script) else {
        return Err(TestCaseError::reject("the options contradict one another"));
    };
    let texts = listings(&spec, form);
    let commands = imported(&texts);
    let read = Script::parse("import.tc", &commands, Device::default()).and_then(|script| script.spec());
    let again = match read {
        Ok(again) => again,
        Err(error) => {
            let message = format!("{script}\n{texts:?}\n{commands}\n{:?}", error.problems());
            return Err(TestCaseError::fail(message));
        }
    };
    prop_assert_eq!(listings(&again, form), texts, "{}", commands);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        max_global_rejects: 10_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn an_imported_tree_is_the_one_that_is_shown(script in tree()) {
        check(&script, Form::Text)?;
        check(&script, Form::Json)?;
    }
}

/// The property above also holds if no tree is valid. This test excludes that, for each kind.
#[test]
fn trees_of_all_kinds_are_drawn() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let tree = tree();
    let mut kinds = BTreeSet::new();
    for _ in 0..2000 {
        let script = tree.new_tree(&mut runner).expect("a script").current();
        if parse(&script).is_some() {
            let words = script.lines().filter(|line| line.starts_with("qdisc"));
            kinds.extend(words.filter_map(|line| {
                let mut words = line
                    .split_whitespace()
                    .skip_while(|word| *word != "handle")
                    .skip(2);
                words.next().map(str::to_owned)
            }));
        }
    }
    let all = LEAVES
        .iter()
        .chain(SHAPERS)
        .chain(BANDED)
        .map(|(kind, ..)| *kind)
        .chain(CLASSFUL.iter().map(|((kind, ..), _)| *kind));
    let missing: Vec<&str> = all.filter(|kind| !kinds.contains(*kind)).collect();
    assert_eq!(missing, [""; 0]);
}

/// tc shows a bucket that is filled in less than a microsecond as `0b`.
#[test]
fn a_bucket_of_a_fast_class_stays() {
    for rate in ["32gbit", "16gbit", "100mbit"] {
        let script = format!(
            "qdisc add dev e root handle 1: htb\nclass add dev e parent 1: classid 1:10 htb rate {rate}\n"
        );
        let spec = parse(&script).expect("it is right");
        let texts = listings(&spec, Form::Text);
        let commands = imported(&texts);
        let again = parse(&commands).expect("it is right");
        assert_eq!(listings(&again, Form::Text), texts, "{commands}");
    }
}

/// 1048575 bytes are shown as `1024Kb`, and 1048576 as `1Mb`.
#[test]
fn a_bucket_just_below_a_unit_stays() {
    let script = "qdisc add dev e root handle 1: tbf rate 3kbit burst 1mb limit 100kb\n";
    for form in [Form::Text, Form::Json] {
        check(script, form).expect("what is shown again is the same");
    }
}

/// Text shows 1234 Kbit/s and 123 ms.
#[test]
fn json_keeps_values_of_many_digits() {
    for (script, values) in [
        (
            "qdisc add dev e root handle 1: htb\nclass add dev e parent 1: classid 1:10 htb rate 1234568bit",
            &["rate = \"1234568bit\""][..],
        ),
        (
            "qdisc add dev e root handle 1: netem delay 123456us 7891us loss 1.2345%",
            &[
                "delay = \"123456us\"",
                "jitter = \"7891us\"",
                "loss = \"0.012345\"",
            ],
        ),
        (
            "qdisc add dev e root handle 1: cake bandwidth 12345672bit rtt 12345us",
            &["bandwidth = \"12345672bit\"", "rtt = \"12345us\""],
        ),
        (
            "qdisc add dev e root handle 1: tbf rate 1234568bit burst 5001 latency 123456us",
            &["rate = \"1234568bit\"", "latency = \"123456us\""],
        ),
    ] {
        check(script, Form::Json).expect(script);
        let spec = parse(script).expect(script);
        let again = parse(&imported(&listings(&spec, Form::Json))).expect(script);
        for value in values {
            for tree in [&spec, &again] {
                let toml = tree.to_toml("e");
                assert!(toml.contains(value), "{value} in {toml}");
            }
        }
    }
}

/// The list of virtual queues is in tc's JSON too, but not in ours.
#[test]
fn a_gred_stays() {
    let setup = "qdisc add dev e root handle 1: gred setup vqs 3 default 1 limit 100kb";
    let queue = |words: &str| format!("qdisc change dev e root handle 1: gred limit 60kb {words}");
    for flags in ["", " grio", " ecn", " grio ecn harddrop"] {
        let script = [
            format!("{setup}{flags}"),
            queue("min 15kb max 45kb avpkt 1000 burst 20 DP 0 prio 2 probability 0.05 bandwidth 2mbit"),
            queue("min 20kb max 50kb avpkt 500 burst 99 DP 2 prio 3 probability 0.1 bandwidth 100mbit"),
        ];
        check(&script.join("\n"), Form::Text).expect(flags);
    }
}
