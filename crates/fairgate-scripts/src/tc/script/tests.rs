use super::*;

fn parse(text: &str) -> Result<Script, FileError> {
    Script::parse("test.tc", text, Device::default())
}

/// Returns the tree as it is printed.
fn tree(text: &str) -> String {
    let script = parse(text).expect("the lines fit together");
    script
        .spec()
        .expect("the options can be carried over")
        .to_string()
}

/// Returns the first mistake: line, column, message.
fn mistake(text: &str) -> (usize, usize, String) {
    let error = match parse(text) {
        Ok(script) => script.spec().expect_err("there is a mistake"),
        Err(error) => error,
    };
    let problem = &error.problems()[0];
    let (line, column) = problem.position();
    (line, column, problem.message.clone())
}

#[test]
fn defaults_depend_on_the_device_as_in_the_kernel() {
    let root = "tc qdisc add dev e root handle 1: ";
    assert!(tree(&format!("{root}pfifo")).contains("limit=1000"));
    assert!(tree(&format!("{root}bfifo")).contains("limit=none limit_bytes=1514000b"));
    assert!(tree(&format!("{root}pfifo_head_drop limit 5")).contains("limit=5"));
    assert!(tree(&format!("{root}sfq")).contains("perturb=none"));
    let jumbo = Device {
        mtu: 9000,
        ..Device::default()
    };
    let script = Script::parse("test.tc", &format!("{root}fq_codel"), jumbo).unwrap();
    assert!(script.spec().unwrap().to_string().contains("quantum=9014b"));
}

/// Linux raises small quanta of these qdiscs without a word. The tree is the kernel's, and a warning says so.
#[test]
fn small_quanta_are_raised_with_a_warning() {
    let translated = |options: &str| {
        let script = parse(&format!("# home\nqdisc add dev e root handle 1: {options}")).unwrap();
        let (spec, notes) = script.translate().expect("it can be carried over");
        let warnings: Vec<String> = notes.iter().map(ToString::to_string).collect();
        (spec.to_string(), warnings)
    };
    let warning = |option: &str, written: &str| {
        format!("line 2: `{option}` is {written}, but Linux uses at least 256 bytes, and so does the tree")
    };
    for kind in ["fq_codel", "fq_pie"] {
        for (written, expected) in [
            ("100", "quantum=256b"),
            ("0", "quantum=256b"),
            ("255b", "quantum=256b"),
        ] {
            let (tree, warnings) = translated(&format!("{kind} quantum {written}"));
            assert!(tree.contains(expected), "{tree}");
            assert_eq!(warnings, [warning("quantum", written)]);
        }
        assert!(translated(&format!("{kind} quantum 256")).1.is_empty());
    }
    let (tree, warnings) = translated("ets bands 3 quanta 100 3000 200");
    assert_eq!(warnings, [warning("quanta", "100"), warning("quanta", "200")]);
    assert_eq!(tree, translated("ets bands 3 quanta 256 3000 256").0);
    let (_, _, message) = mistake("qdisc add dev e root handle 1: ets quanta 0 3000");
    assert!(message.contains("is 0, but must be"), "{message}");
}

#[test]
fn times_have_the_units_of_tc() {
    let text = tree("qdisc add dev e root codel target 5000 interval 80ms ce_threshold 0.2ms ecn # fast");
    assert!(text.contains("target=5ms"), "{text}");
    assert!(text.contains("interval=80ms"), "{text}");
    assert!(text.contains("ce_threshold=200us"), "{text}");
    assert!(tree("qdisc add dev e root sfq perturb 10").contains("perturb=10s"));
}

#[test]
fn probabilities_are_decimals_or_hundredths_as_in_tc() {
    assert!(tree("qdisc add dev e root red probability 0.1 burst 60").contains("probability=0.1"));
    for (percent, ours) in [("5", "0.05"), ("50", "0.5"), ("100", "1")] {
        let text = tree(&format!("qdisc add dev e root fq_pie ecn ecn_prob {percent}"));
        assert!(text.contains(&format!("ecn_prob={ours}")), "{text}");
    }
    let (_, _, message) = mistake("qdisc add dev e root fq_pie ecn_prob 101");
    assert_eq!(message, "`ecn_prob`: `101` is above 1");
}

#[test]
fn dualpi2_has_its_weights_in_256ths() {
    let text =
        tree("qdisc add dev e root dualpi2 alpha 0.16 beta 3.2 classic_protection 20% any_ect overflow");
    for setting in [
        "alpha=40",
        "beta=819",
        "classic_protection=20",
        "any_ect=true",
        "drop_overload=false",
    ] {
        assert!(text.contains(setting), "{setting} in {text}");
    }
    assert!(
        tree("qdisc add dev e root dualpi2 step_thresh 3p split_gso").ends_with("step_packets=3 mtu=1514b")
    );
    assert!(tree("qdisc add dev e root dualpi2 step_thresh 300").contains("step_thresh=300us"));
    let by_round_trips = |options: &str| tree(&format!("qdisc add dev e root dualpi2 {options}"));
    // tc reports these parameters.
    for (options, parameters) in [
        (
            "max_rtt 100ms",
            "target=16666us tupdate=16666us alpha=42 beta=768",
        ),
        ("typical_rtt 15000", "target=15ms tupdate=15ms alpha=47 beta=853"),
        (
            "max_rtt 100ms typical_rtt 50ms",
            "target=50ms tupdate=33333us alpha=85 beta=768",
        ),
    ] {
        assert!(
            by_round_trips(options).contains(parameters),
            "{}",
            by_round_trips(options)
        );
    }
    let refused = |options: &str| mistake(&format!("qdisc add dev e root dualpi2 {options}")).2;
    assert_eq!(
        refused("max_rtt 1ms typical_rtt 2ms"),
        "the typical round-trip time is longer than the longest"
    );
    assert_eq!(
        refused("max_rtt 1ms alpha 1"),
        "`alpha` can't be combined with round-trip times: tc would ignore it"
    );
    assert!(refused("max_rtt 60s").contains("would be 0") && refused("max_rtt 0ms").contains("out of range"));
    let (_, _, message) = mistake("qdisc add dev e root dualpi2 alpha much");
    assert!(message.contains("`alpha`"), "{message}");
    assert!(tree("qdisc add dev e root choke limit 400 bandwidth 10mbit").contains("choke limit=400"));
}

#[test]
fn classes_hold_what_is_attached_or_a_fifo() {
    let drr = "tc qdisc add dev e root handle 10: drr
        tc class add dev e parent 10: classid 10:1 drr quantum 300

        tc class add dev e parent 10: classid 10:a drr
        tc qdisc add dev e parent 10:a fq_codel quantum 700";
    let text = tree(drr);
    assert!(text.contains("quantum=300b"), "{text}");
    assert!(text.contains("quantum=1514b"), "{text}");
    assert!(text.contains("fifo limit=1000"), "{text}");
    assert!(text.contains("quantum=700b"), "{text}");
    let prio = tree("qdisc add dev e root handle 1: prio bands 4\nqdisc add dev e parent 1:4 codel");
    assert_eq!(prio.matches("fifo").count(), 3, "{prio}");
    assert_eq!(prio.matches("codel").count(), 1, "{prio}");
}

#[test]
fn ets_completes_its_bands_quanta_and_priomap() {
    let ets = "tc qdisc add dev e root handle 1: ets ";
    let text = tree(&format!(
        "{ets}bands 4 strict 1 quanta 4500 3000 priomap 0 2\n\
        tc qdisc add dev e parent 1:4 pfifo limit 7"
    ));
    assert!(text.contains("strict=1"), "{text}");
    assert!(
        text.contains("priomap=[0, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]"),
        "{text}"
    );
    let quanta: Vec<_> = ["quantum=4500b", "quantum=3000b", "quantum=1514b"]
        .map(|quantum| text.find(quantum))
        .into();
    assert!(quanta.is_sorted() && quanta[0].is_some(), "{text}");
    assert_eq!(text.matches("fifo limit=1000").count(), 3, "{text}");
    assert_eq!(text.matches("fifo handle=8001: limit=7").count(), 1, "{text}");
    assert_eq!(tree(&format!("{ets}strict 2")).matches("fifo").count(), 2);
    assert_eq!(
        tree(&format!("{ets}quanta 300 300 300")).matches("fifo").count(),
        3
    );
}

#[test]
fn classes_of_htb_are_a_tree() {
    let htb = "qdisc add dev e root handle 1: htb default 12 r2q 5
        class add dev e parent 1: classid 1:1 htb rate 10mbit burst 3000
        class add dev e parent 1:1 classid 1:10 htb rate 6mbit ceil 8mbit prio 2
        class add dev e parent 1:1 classid 1:12 htb rate 2mbit quantum 3000
        qdisc add dev e parent 1:10 codel";
    assert_eq!(
        tree(htb),
        "htb handle=1: default=18 r2q=5 direct_qlen=1000
└─ 1 rate=10mbit burst=3000b cburst=1600b
   ├─ 16 rate=6mbit ceil=8mbit burst=1600b cburst=1600b prio=2: codel
   └─ 18 rate=2mbit burst=1600b cburst=1600b quantum=3000b: fifo limit=1000"
    );
    assert!(!tree(&htb.replace("default 12", "default 0")).contains("default"));
    let (line, _, message) = mistake(&htb.replace("parent 1:10 codel", "parent 1:1 codel"));
    assert_eq!(
        (line, message.as_str()),
        (5, "class 1:1 has classes below it, and holds no qdisc")
    );
}

#[test]
fn classes_of_hfsc_have_curves() {
    let hfsc = "qdisc add dev e root handle 1: hfsc default 11
        class add dev e parent 1: classid 1:1 hfsc ls m2 10mbit ul rate 10mbit
        class add dev e parent 1:1 classid 1:10 hfsc sc m1 4mbit d 10ms m2 1mbit
        class add dev e parent 1:1 classid 1:11 hfsc rt umax 1500b dmax 20ms rate 200kbit
        class add dev e parent 1:1 classid 1:12 hfsc ls d 5000 m2 1mbit";
    assert_eq!(
        tree(hfsc),
        "hfsc handle=1: default=17
└─ 1 ls=10mbit ul=10mbit
   ├─ 16 rt=4mbit:10ms:1mbit ls=4mbit:10ms:1mbit: fifo limit=1000
   ├─ 17 rt=600kbit:20ms:200kbit ls=none: fifo limit=1000
   └─ 18 ls=0bit:5ms:1mbit: fifo limit=1000"
    );
    let (line, _, message) = mistake(&hfsc.replace("sc m1 4mbit d 10ms m2 1mbit", "sc m1 4mbit"));
    assert_eq!((line, message.as_str()), (3, "`sc` has no value, or too few"));
}

#[test]
fn what_is_attached_to_tbf_replaces_its_fifo() {
    let tbf = "qdisc add dev e root handle 1: tbf rate 1mbit burst 5kb limit 9000";
    assert!(tree(tbf).contains("limit=9000b"));
    let text = tree(&format!("{tbf}\nqdisc add dev e parent 1:1 pfifo limit 7"));
    assert!(
        !text.contains("9000b") && text.contains("fifo handle=8001: limit=7"),
        "{text}"
    );
}

/// tc reads class numbers with `strtoul` in hexadecimal, and quantities with `strtod`.
#[test]
fn numbers_are_read_as_tc_reads_them() {
    let spec = |text: &str| {
        let script = Script::parse("test.tc", text, Device::default());
        let spec = script.and_then(|script| script.spec());
        spec.unwrap_or_else(|error| panic!("{text}: {:?}", error.problems()))
    };
    let plain = spec(
        "qdisc add dev e root handle 1: htb default 10
         class add dev e parent 1: classid 1:1 htb rate 1500000bit
         class add dev e parent 1:1 classid 1:10 htb rate 1mbit
         filter add dev e parent 1: handle 6 fw flowid 1:10",
    );
    let other = spec(
        "qdisc add dev e root handle 0x1: htb default 0x10
         class add dev e root classid 0x1:0x1 htb rate 1.5e6bit
         class add dev e parent 1 classid 1:10 htb rate 1e6bit
         filter add dev e parent 1: handle 6 fw flowid 0x1:0x10",
    );
    assert_eq!(plain, other);
    let by_minor = spec(
        "qdisc add dev e root handle 1: htb default 10
         class add dev e parent 1: classid 0x1 htb rate 1500000bit
         class add dev e parent :1 classid :10 htb rate 1mbit
         filter add dev e parent 1: handle 6 fw flowid 1:10",
    );
    assert_eq!(plain, by_minor);

    let tbf = |latency: &str| {
        spec(&format!(
            "qdisc add dev e root tbf rate 1mbit burst 5kb {latency} 50ms"
        ))
    };
    assert_eq!(tbf("lat"), tbf("latency"));
    let netem = |delay: &str| spec(&format!("qdisc add dev e root netem delay {delay}"));
    assert_eq!(netem("5e-2s"), netem("50ms"));
    assert_eq!(netem("5E+7"), netem("50ms"));
    let hfsc = |fast: &str, time: &str, slow: &str| {
        spec(&format!(
            "qdisc add dev e root handle 1: hfsc default 1
             class add dev e parent 1: classid 1:1 hfsc sc m1 {fast} d {time} m2 {slow} ul m2 {fast}"
        ))
    };
    assert_eq!(
        hfsc("1.25e7bit", "1e1ms", "50e-1mbit"),
        hfsc("12500kbit", "10ms", "5mbit")
    );
    let policed = |rate: &str| {
        spec(&format!(
            "qdisc add dev e root handle 1: prio
             filter add dev e parent 1: handle 6 fw police rate {rate} burst 2e4 drop flowid 1:1"
        ))
    };
    assert_eq!(policed("2e6bit"), policed("2mbit"));
    let prio = |class: &str| {
        spec(&format!(
            "qdisc add dev e root handle 1: prio\nfilter add dev e parent 1: handle 6 fw flowid {class}"
        ))
    };
    assert_eq!(prio("2"), prio("1:2"));
    assert_eq!(prio(":2"), prio("1:2"));
    // htb compares the whole number, so the kernel's filter would never choose a class.
    assert_eq!(
        mistake(
            "qdisc add dev e root handle 1: htb
class add dev e parent 1: classid 1:10 htb rate 1mbit
filter add dev e parent 1: handle 6 fw flowid 10"
        )
        .2,
        "class 0:10 is not a class of this qdisc"
    );
}

#[test]
fn mistakes_are_reported_at_their_locations() {
    let at = |line, column, message: &str| (line, column, message.to_owned());
    assert_eq!(
        mistake("tc qdisc add dev e root codel\ntc action add dev e"),
        at(
            2,
            4,
            "an action of its own, which filters name by its index, is not read"
        )
    );
    assert_eq!(
        mistake("tc qdisc add dev e root"),
        at(1, 24, "the line ends where a kind of qdisc is expected")
    );
    assert_eq!(
        mistake("tc qdisc add dev e parent 1:zz pfifo"),
        at(
            1,
            27,
            "expected a class like 1:10, in hexadecimal, but found `1:zz`"
        )
    );
    assert_eq!(
        mistake("tc qdisc add dev e parent 1:1 pfifo"),
        at(1, 27, "no qdisc has the handle 1:")
    );
    assert_eq!(
        mistake("qdisc add dev e root codel\nqdisc add dev e root pfifo"),
        at(2, 22, "there is a root already")
    );
    assert_eq!(
        mistake("qdisc add dev e root handle 1: drr\nqdisc add dev e parent 1:1 pfifo"),
        at(2, 24, "there is no class 1:1")
    );
    assert_eq!(
        mistake("qdisc add dev e root codel\nqdisc add dev f root codel"),
        at(2, 15, "this line is for device `f`")
    );
    assert_eq!(
        mistake("qdisc add dev e root codel limit 1 flows 5"),
        at(1, 36, "the option `flows` can't be carried over")
    );
    assert_eq!(
        mistake("qdisc add dev e root codel target"),
        at(1, 28, "`target` has no value, or too few")
    );
    assert_eq!(
        mistake("qdisc add dev e root handle 1: prio bands 65"),
        at(1, 43, "`bands` must be 2 to 16, as in the kernel")
    );
    assert_eq!(
        mistake("qdisc add dev e root handle 1: prio\nqdisc add dev e parent 1:4 pfifo"),
        at(2, 28, "a `prio` has no class 4 to hold this")
    );
    assert_eq!(
        mistake("qdisc add dev e root handle 1: pfifo\nclass add dev e parent 1: classid 1:1 drr"),
        at(2, 35, "no classes can be added to a `pfifo`")
    );
    let drr = "qdisc add dev e root handle 1: drr\n";
    assert_eq!(
        mistake(&format!("{drr}class add dev e parent 1:1 classid 1:2 drr")),
        at(2, 36, "a `drr` has no classes within classes")
    );
    assert_eq!(
        mistake(&format!("{drr}class add dev e parent 1: classid 1:2 htb")),
        at(2, 39, "`htb` is not a class of a `drr`")
    );
    let htb = "qdisc add dev e root handle 1: htb default 12\nclass add dev e parent 1: classid 1:";
    assert_eq!(
        mistake(&format!("{htb}12 htb rate 2mbit offload")),
        at(2, 55, "the option `offload` can't be carried over")
    );
    let ets = "qdisc add dev e root handle 1: ets";
    assert_eq!(
        mistake(ets),
        at(
            1,
            32,
            "`bands`, or `strict` and `quanta` together, are 0, and not 1 to 16"
        )
    );
    assert_eq!(
        mistake(&format!("{ets} bands 3 strict 2 quanta 300 300")),
        at(1, 32, "4 strict bands and quanta are more than 3 bands")
    );
    assert_eq!(
        mistake(&format!("{ets} strict 65")),
        at(1, 43, "`strict` must be at most 16")
    );
    assert_eq!(
        mistake(&format!("{ets} bands 2 quanta 300 0")),
        at(1, 55, "`quantum` is 0, but must be 256b to 1gb, or none")
    );
    assert_eq!(
        mistake(&format!("{ets} quanta")),
        at(1, 36, "`quanta` has no value, or too few")
    );
    assert_eq!(
        mistake("# nothing\n\n"),
        at(1, 1, "no qdisc is attached to the root")
    );
}

#[test]
fn later_lines_change_replace_and_delete() {
    let root = "qdisc add dev e root handle 1: drr\nclass add dev e parent 1: classid 1:1 drr quantum 300\n";
    let after = |lines: &str| tree(&format!("{root}{lines}"));
    assert!(after("class change dev e classid 1:1 drr quantum 600").contains("quantum=600b"));
    assert!(after("class replace dev e parent 1: classid 1:2 drr quantum 700").contains("2 quantum=700b"));
    let two = "class add dev e parent 1: classid 1:2 drr\nqdisc add dev e parent 1:2 handle 20: codel\n";
    let text = after(&format!("{two}class del dev e classid 1:2"));
    assert!(!text.contains("codel") && !text.contains("├"), "{text}");
    let text = after(&format!(
        "{two}qdisc change dev e parent 1:2 codel limit 7\nqdisc change dev e parent 1:2 codel target 9ms"
    ));
    assert!(text.contains("limit=7 target=9ms"), "{text}");
    let text = after(&format!("{two}qdisc replace dev e parent 1:2 pfifo limit 5"));
    assert!(
        text.contains("2 quantum=1514b: fifo handle=8001: limit=5"),
        "{text}"
    );
    assert_eq!(
        after("qdisc replace dev e root handle 2: pfifo limit 3"),
        "fifo handle=2: limit=3"
    );
    assert_eq!(
        after("qdisc del dev e root 2>/dev/null || true\nqdisc add dev e root pfifo limit 2"),
        "fifo limit=2"
    );
    assert_eq!(
        tree("tc qdisc del dev e root\ntc qdisc add dev e root pfifo limit 2"),
        "fifo limit=2"
    );
    let wrong = |lines: &str| mistake(&format!("{root}{lines}"));
    let at = |column, message: &str| (3, column, message.to_owned());
    assert_eq!(
        wrong("class change dev e classid 1:9 drr"),
        at(28, "there is no class 1:9")
    );
    assert_eq!(
        wrong("class del dev e classid 1:9"),
        at(25, "there is no class 1:9")
    );
    assert_eq!(
        wrong("qdisc change dev e root handle 1: prio"),
        at(35, "there is no `prio` to change")
    );
    assert_eq!(
        wrong("qdisc del dev e parent 1:1"),
        at(24, "class 1:1 holds no qdisc")
    );
    assert_eq!(
        wrong("class add dev e parent 1: classid 1:1 drr"),
        at(35, "class 1:1 exists already")
    );
}

#[test]
fn trees_may_be_deep_but_not_too_deep() {
    let nested = |depth: u32| {
        let shaper = |n: u32| {
            let parent = if n == 1 {
                "root".to_owned()
            } else {
                format!("parent {:x}:1", n - 1)
            };
            format!("qdisc add dev e {parent} handle {n:x}: tbf rate 1mbit burst 5kb limit 9000\n")
        };
        (1..=depth).map(shaper).collect::<String>()
    };
    let spec = parse(&nested(32)).unwrap().spec().unwrap();
    assert_eq!(
        fairgate_config::Document::parse("printed", &spec.to_toml("e"))
            .unwrap()
            .queue("e"),
        Some(&spec)
    );
    assert_eq!(mistake(&nested(33)).2, "more than 32 qdiscs are nested");
}

#[test]
fn each_device_has_a_tree() {
    let text = "qdisc add dev a root pfifo limit 1\nqdisc add dev b root pfifo limit 2\n\
                qdisc add dev c root pfifo\nqdisc del dev c root";
    let trees = Script::translate_all("test.tc", text, Device::default()).unwrap();
    let shown = trees.iter().map(|tree| format!("{} {}", tree.device, tree.spec));
    assert_eq!(shown.collect::<Vec<_>>(), ["a fifo limit=1", "b fifo limit=2"]);
}

#[test]
fn values_are_checked_like_those_of_a_file() {
    let (line, column, message) = mistake("qdisc add dev e root tbf rate 5 Mbit burst 5kb latency 50ms");
    assert_eq!((line, column), (1, 33), "{message}");
    let (line, column, message) = mistake("qdisc add dev e root fq_codel flows 2000000");
    assert_eq!((line, column), (1, 37), "{message}");
    assert!(message.contains("`flows` is 2000000"), "{message}");
}

#[test]
fn an_unsupported_qdisc_is_named() {
    let script = parse("qdisc add dev e root handle 1: teql0").unwrap();
    assert_eq!(
        script.unsupported().as_deref(),
        Some("the qdisc `teql0` is not supported yet")
    );
    assert!(script.spec().is_err());
}

#[test]
fn a_handle_may_be_written_as_a_class() {
    let with = |handle: &str| tree(&format!("qdisc add dev e root handle {handle} pfifo"));
    for handle in ["1:0", "1", "0x1:", "1:5"] {
        assert_eq!(with(handle), with("1:"), "{handle}");
    }
    for handle in ["0:", ":1", "x:", "12345:"] {
        let (_, column, message) = mistake(&format!("qdisc add dev e root handle {handle} pfifo"));
        assert_eq!(column, 29);
        let expected = format!("a handle like 1:, in hexadecimal and above 0, but found `{handle}`");
        assert!(message.contains(&expected), "{message}");
    }
}

/// The parts of a translated value have no locations of their own. The error points at the whole word, and
/// never outside it.
#[test]
fn a_mistake_in_a_value_that_is_translated_points_at_the_value() {
    for (option, value) in [
        ("sfq perturb", "99999999999"),
        ("codel target", "99999999999999999999"),
        ("codel target", "9.9.9"),
        ("codel target", "5parsec"),
        ("sfq limit", "99999999999"),
        ("fq_pie alpha", "77"),
        ("red limit 60000 avpkt 1000 probability", "1.2.3"),
    ] {
        let text = format!("tc qdisc add dev e root {option} {value} \ntc qdisc del dev f root");
        let script = Script::parse("test", &text, Device::default());
        let error = script
            .and_then(|script| script.spec())
            .expect_err("there is a mistake");
        let problem = &error.problems()[0];
        let start = text.find(value).expect("it is there");
        let value = start..start + value.len();
        assert!(
            value.start <= problem.span.start && problem.span.end <= value.end,
            "{problem:?} of {}",
            &text[value]
        );
    }
}

/// Returns the word at each mistake, in the order of the script, and the last line of the report.
fn all_mistakes(text: &str) -> (Vec<&str>, String) {
    let error = Script::translate_all("test.tc", text, Device::default()).expect_err("there are mistakes");
    let words = error.problems().iter().map(|problem| &text[problem.span.clone()]);
    let lines = error.lines().expect("a script has lines");
    (words.collect(), lines.to_string())
}

#[test]
fn all_mistakes_of_a_script_are_reported_at_once_and_none_that_follows() {
    // A root of an unknown kind, with classes, a qdisc, and a filter in it.
    let unknown_root = "qdisc add dev e root handle 1: frob default 30
        class add dev e parent 1: classid 1:1 htb rate 10mbit
        class add dev e parent 1:1 classid 1:30 htb rate 10mbit ciel 5
        qdisc add dev e parent 1:30 handle 30: fq_codel tarjet 5
        filter add dev e parent 1: protocol ip u32 match ip ttx 1 0xff flowid 1:30
        qdisc add dev other root tbf rate 1mbit";
    assert_eq!(
        all_mistakes(unknown_root),
        (
            vec!["frob", "ciel", "tarjet", "ttx", "tbf"],
            "6 lines were read, 5 of them refused".to_owned()
        )
    );
    // A line that can't be parsed, and lines that need what it would have added.
    let line_in_error = "qdisc add dev e root handle x htb
        class add dev e parent 1: classid 1:1 htb rate 10mbit
        class add dev e parent 1:1 classid 1:30 htb rate much
        qdisc add dev e parent 1:30 handle 30: fq_codel
        filter add dev e parent 1: handle 1 fw flowid 1:30
        filter add dev e protocol ip parent 30: handle 1 fw
        qdisc change dev e parent 1:30 handle 30: fq_codel limit 7";
    let (words, _) = all_mistakes(line_in_error);
    assert_eq!(words, ["x", "1:1", "much", "fw"]);
    let class_in_error = "qdisc add dev e root handle 1: htb default 30
        class add dev e parent 1: classid 1:1 htb rat 10mbit
        class add dev e parent 1:1 classid 1:30 ceil 3mbit
        class add dev e parent 1:1 classid 1: 31 htb rate 1mbit
        qdisc add dev e parent 1:30 handle 30: fq_codel
        filter add dev e parent 1: handle 1 fw flowid 1:30";
    let (words, lines) = all_mistakes(class_in_error);
    assert_eq!(words, ["rat", "ceil", "1:"]);
    assert_eq!(lines, "6 lines were read, 3 of them refused");
}

#[test]
fn a_missing_handle_and_a_variable_are_reported_once() {
    let script = "qdisc add dev $IF root handle 1: htb default 1
        class add dev $IF parent 1: classid 1:1 htb rate 10mbit
        class add dev $IF parent 2: classid 2:1 htb rate 10mbit
        class add dev $IF parent 2: classid 2:2 htb rate 10mbit
        qdisc add dev $IF parent 2:1 handle 20: sfq
        filter add dev $IF parent 20: handle 1 fw flowid 20:1
        filter add dev $IF parent 2: handle 1 fw flowid 2:1";
    assert_eq!(
        all_mistakes(script),
        (
            vec!["$IF", "2:1"],
            "7 lines were read, 2 of them refused".to_owned()
        )
    );
}

/// Messages name the words of the script, and not the parameters that they set.
#[test]
fn messages_name_the_word_of_the_script() {
    let message = |line: &str| {
        let text = format!("qdisc add dev e root {line}");
        let error = Script::translate_all("test.tc", &text, Device::default()).expect_err(line);
        error.problems()[0].message.clone()
    };
    assert_eq!(
        message("cake besteffort besteffort"),
        "`besteffort` is given twice"
    );
    assert!(message("cake memlimit 1foo").starts_with("`memlimit`: `foo`"));
    assert!(
        message("red limit 10 min 2 max 3 avpkt 1000 probability 2").starts_with("`probability`: `2`"),
        "the same word in both languages"
    );
}

/// Returns the tree and the warnings.
fn translated(text: &str) -> (String, Vec<String>) {
    let script = parse(text).expect("the lines fit together");
    let (spec, notes) = script.translate().expect("it can be carried over");
    (spec.to_string(), notes.iter().map(ToString::to_string).collect())
}

/// The script for HTB in "Linux Advanced Routing & Traffic Control", and what people write beside it.
#[test]
fn htb_is_taken_as_the_kernel_takes_it() {
    let (tree, warnings) = translated(
        "qdisc add dev e root handle 1: htb default 30
        class add dev e parent 1: classid 1:1 htb rate 6mbit burst 15k
        class add dev e parent 1:1 classid 1:10 htb rate 5mbit burst 15k
        class add dev e parent 1:1 classid 1:20 htb rate 3mbit ceil 6mbit burst 15k
        class add dev e parent 1:1 classid 1:30 htb rate 1kbit ceil 6mbit burst 15k
        qdisc add dev e parent 1:10 handle 10: sfq perturb 10",
    );
    assert!(tree.contains("rate=1kbit ceil=6mbit burst=15kb"), "{tree}");
    assert_eq!(
        warnings,
        [
            "line 5: the quantum of class 1:30 is small: its rate divided by r2q is 12 bytes, but as in \
          Linux it is 1000; set `quantum`, or change `r2q`"
        ]
    );
    let htb = "qdisc add dev e root handle 1: htb default 12\nclass add dev e parent 1: classid 1:12 htb";
    let (tree, warnings) = translated(&format!(
        "{htb} rate 2mbit ceil 1mbit prio 9 quantum 0 mtu 3000\nclass add dev e parent 1: classid 1:a htb \
         rate 1gbit"
    ));
    assert!(
        tree.contains("rate=2mbit ceil=1mbit burst=3000b cburst=3000b prio=7"),
        "{tree}"
    );
    assert_eq!(
        warnings,
        [
            "line 2: `prio` is 9, but Linux uses at most 7, and so does the tree",
            "line 3: the quantum of class 1:a is big: its rate divided by r2q is 12500000 bytes, but as in \
             Linux it is 200000; set `quantum`, or change `r2q`"
        ]
    );
    // tc sends all values of a class, also when it changes it.
    let (tree, _) = translated(&format!(
        "{htb} rate 2mbit ceil 4mbit prio 3\nclass change dev e classid 1:12 htb rate 1mbit"
    ));
    assert!(tree.contains("rate=1mbit burst=1600b cburst=1600b:"), "{tree}");
}

#[test]
fn a_default_that_names_no_leaf_is_no_default_as_in_the_kernel() {
    let classes = |kind: &str, curve: &str| {
        format!(
            "class add dev e parent 1: classid 1:1 {kind} {curve} 1mbit
            class add dev e parent 1:1 classid 1:2 {kind} {curve} 1mbit"
        )
    };
    for (kind, curve, what) in [
        ("htb", "quantum 1500 rate", "sent first and unshaped"),
        ("hfsc", "ls m2", "dropped"),
    ] {
        for (default, why) in [("1", "has classes below it"), ("ff", "does not exist")] {
            let root = format!("qdisc add dev e root handle 1: {kind} default {default}");
            let (tree, warnings) = translated(&format!("{root}\n{}", classes(kind, curve)));
            assert!(!tree.contains("default"), "{tree}");
            assert_eq!(
                warnings,
                [format!(
                    "line 1: the default class 1:{default} {why}: as in Linux, unclassified packets are \
                     {what}"
                )]
            );
        }
        let (tree, warnings) = translated(&format!(
            "qdisc add dev e root handle 1: {kind} default 2\n{}",
            classes(kind, curve)
        ));
        assert!(
            tree.contains("default=2") && warnings.is_empty(),
            "{tree} {warnings:?}"
        );
        // Until there are classes, any class may be named.
        let (tree, warnings) = translated(&format!("qdisc add dev e root handle 1: {kind} default 7"));
        assert!(
            tree.contains("default=7") && warnings.is_empty(),
            "{tree} {warnings:?}"
        );
    }
}

#[test]
fn a_class_that_gets_classes_loses_its_qdisc() {
    let (tree, warnings) = translated(
        "qdisc add dev e root handle 1: htb
        class add dev e parent 1: classid 1:1 htb rate 1mbit quantum 1500
        qdisc add dev e parent 1:1 handle 10: prio
        qdisc add dev e parent 10:2 codel
        class add dev e parent 1:1 classid 1:2 htb rate 1mbit quantum 1500",
    );
    assert!(!tree.contains("prio {") && !tree.contains("codel"), "{tree}");
    assert_eq!(
        warnings,
        ["line 5: class 1:1 gets class 1:2 below it: as in Linux, its `prio` is removed"]
    );
}

#[test]
fn hfsc_is_taken_as_the_kernel_takes_it() {
    let root = "qdisc add dev e root handle 1: hfsc default 11\nclass add dev e parent 1: classid 1:1 hfsc";
    let (tree, warnings) = translated(&format!(
        "{root} sc rate 1000kbit ul rate 1000kbit
        class add dev e parent 1:1 classid 1:10 hfsc sc umax 1500b dmax 53ms rate 400kbit ul rate 1000kbit
        class add dev e parent 1:1 classid 1:11 hfsc sc rate 500kbit ul rate 300kbit"
    ));
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(tree.contains("rt=1mbit ls=1mbit ul=1mbit"), "{tree}");
    let (tree, warnings) = translated(&format!(
        "{root} rt m2 1mbit\nclass add dev e parent 1:1 classid 1:11 hfsc ls m2 1mbit"
    ));
    assert!(tree.contains("rt=1mbit ls=1mbit"), "{tree}");
    assert_eq!(
        warnings,
        ["line 2: class 1:1 has classes below it: as in Linux, `rt` is changed to `sc`"]
    );
    assert!(
        translated("qdisc add dev e root handle 1: hfsc")
            .0
            .contains("hfsc")
    );
}

/// LARTC's and ADSL-optimizer's words for a line with cells.
#[test]
fn rates_count_the_link_layer() {
    let (tree, warnings) = translated(
        "qdisc add dev e root handle 1: htb
        class add dev e parent 1: classid 1:1 htb rate 1mbit overhead 40 mpu 64 linklayer adsl burst 15k/8
        qdisc add dev e parent 1:1 tbf rate 1mbit burst 10k/8 limit 20k overhead 18 linklayer ethernet",
    );
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(
        tree.contains("burst=15kb cburst=1600b overhead=40b mpu=64b cells=atm"),
        "{tree}"
    );
    assert!(
        tree.contains("tbf rate=1mbit burst=10kb limit=20kb overhead=18b"),
        "{tree}"
    );
    let (_, _, message) = mistake("qdisc add dev e root tbf rate 1mbit burst 10k limit 20k linklayer ptm");
    assert_eq!(message, "`linklayer` must be ethernet, atm or adsl");
}

#[test]
fn lines_that_only_print_change_nothing() {
    let spec =
        |text: &str| Script::parse("test.tc", text, Device::default()).and_then(|script| script.spec());
    let line = "tc qdisc add dev e parent root handle 1: pfifo limit 7\n";
    let with =
        format!("{line}tc -s qdisc show dev e\ntc class ls dev e\ntc filter get dev e prio 1 handle 1 u32\n");
    assert_eq!(spec(&with).expect("it is read"), spec(line).expect("it is read"));
}

/// tc matches most of its words by their beginnings.
#[test]
fn words_may_be_abbreviated() {
    let pairs = [
        (
            "q a dev e root tbf rate 1mbit burst 5k lat 50ms",
            "qdisc add dev e root tbf rate 1mbit burst 5k latency 50ms",
        ),
        (
            "qd ad dev e root handle 1: htb def 2\nc a dev e parent 1: classid 1:2 htb rate 1mbit q 2000\n\
             f a dev e parent 1: prior 3 pro ip u32 mat ip dst 192.0.2.0/255.255.255.0 clas 1:2",
            "qdisc add dev e root handle 1: htb default 2\n\
             class add dev e parent 1: classid 1:2 htb rate 1mbit quantum 2000\n\
             filter add dev e parent 1: prio 3 protocol ip u32 match ip dst 192.0.2.0/24 classid 1:2",
        ),
        (
            "-s -force qdisc replace dev e root netem del 10ms lo 1%\n-d qdisc ls dev e",
            "qdisc add dev e root netem delay 10ms loss 1%",
        ),
        (
            "qdisc add dev e root handle 1: prio bands 3 priomap 0 1",
            "qdisc add dev e root handle 1: prio bands 3 priomap 0 1 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
        ),
    ];
    for (short, full) in pairs {
        assert_eq!(tree(short), tree(full), "{short}");
    }
    // tc reads this one whole.
    let (_, _, message) = mistake("qdisc add dev e root tbf rat 1mbit burst 5k latency 50ms");
    assert_eq!(message, "the option `rat` can't be carried over");
}

#[test]
fn a_device_in_a_network_namespace_is_its_own() {
    let script = parse("-n r1 qdisc add dev v root fq_codel\n-netns r1 qdisc change dev v root fq_codel ecn");
    let (_, notes) = script.unwrap().translate().unwrap();
    assert!(
        notes[0].text.contains("`v` is in the network namespace `r1`"),
        "{notes:?}"
    );
    let (line, _, message) = mistake("-n r1 qdisc add dev v root fq_codel\nqdisc add dev v root fq");
    assert!(
        line == 2 && message.contains("these are two devices"),
        "{message}"
    );
    let (_, _, message) = mistake("-batch other.tc");
    assert!(message.contains("another file"), "{message}");
}

/// `htb_change_class`: a parent that does not exist is none.
#[test]
fn a_class_of_htb_without_a_parent_is_at_the_top() {
    let root = "qdisc add dev e root handle 1: htb default 10\n";
    let none = tree(&format!("{root}class add dev e classid 1:10 htb rate 9mbit"));
    let missing = format!("{root}class add dev e parent 1:7 classid 1:10 htb rate 9mbit");
    assert_eq!(none, tree(&missing));
    let (_, notes) = parse(&missing).unwrap().translate().unwrap();
    assert!(
        notes[0]
            .text
            .starts_with("there is no class 1:7 when class 1:10 is added"),
        "{notes:?}"
    );
}

#[test]
fn sizes_with_decimals_are_truncated_as_in_tc() {
    let shaper = tree("qdisc add dev e root tbf rate 80mbit burst .05mbit limit 2.3k");
    assert!(
        shaper.contains("burst=6553b") && shaper.contains("limit=2355b"),
        "{shaper}"
    );
    let sfq = parse("qdisc add dev e root sfq limit 3000 depth 3000").unwrap();
    let (spec, notes) = sfq.translate().unwrap();
    assert!(spec.to_string().contains("depth=127"), "{spec}");
    assert_eq!(notes.len(), 1);
}
