use fairgate_config::FileError;

use crate::tc::{Device, Script, Translated, TreeDirection};

fn read(text: &str) -> Result<Vec<Translated>, FileError> {
    Script::translate_all("test.tc", text, Device::default())
}

/// Each tree with its name and way.
fn trees(text: &str) -> Vec<String> {
    let priomap = " priomap=[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]";
    let shown = |tree: Translated| {
        let text = format!(
            "{} {:?} {}: {}",
            tree.device, tree.direction, tree.name, tree.spec
        );
        text.trim_end().replace(priomap, "")
    };
    read(text)
        .expect("the script is valid")
        .into_iter()
        .map(shown)
        .collect()
}

fn warnings(text: &str) -> Vec<String> {
    let trees = read(text).expect("the script is valid");
    let notes = trees.into_iter().flat_map(|tree| tree.warnings);
    notes.map(|note| note.to_string()).collect()
}

/// The line and the message of each mistake.
fn mistakes(text: &str) -> Vec<(usize, String)> {
    let error = read(text).expect_err("the script has a mistake");
    let of = |problem: &fairgate_config::Problem| (problem.position().0, problem.to_string());
    error.problems().iter().map(of).collect()
}

const IFB: &str = "qdisc add dev ifb0 root fq_codel limit 99 target 4ms";

/// The ways in which sqm-scripts, wondershaper, FireQOS and tcconfig write it.
#[test]
fn the_tree_of_an_ifb_is_that_of_the_arriving_packets() {
    let attached = [
        "qdisc add dev wan ingress",
        "qdisc add dev wan handle ffff: ingress",
        "qdisc replace dev wan ingress handle ffff:",
        "qdisc del dev wan ingress 2>/dev/null\nqdisc add dev wan ingress",
    ];
    let filters = [
        "filter add dev wan parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 action mirred \
         egress redirect dev ifb0",
        "filter add dev wan parent ffff: protocol all matchall action mirred egress redirect dev ifb0",
        "filter add dev wan ingress u32 match u32 0 0 action mirred egress redirect dev ifb0",
        "filter add dev wan ingress prio 1 flower action mirred egress redirect index 7 dev ifb0",
        "filter add dev wan parent ffff: basic action mirred egress redirect dev ifb0",
        "filter add dev wan parent ffff:fff2 matchall flowid 1:1 action mirred egress redirect dev ifb0",
    ];
    let expected = "wan In ifb0: fq_codel";
    for hook in attached {
        for filter in filters {
            let found = trees(&format!("{hook}\n{filter}\n{IFB}"));
            assert!(
                found.len() == 1 && found[0].starts_with(expected),
                "{hook}\n{filter}: {found:?}"
            );
        }
    }
    let clsact = format!("qdisc add dev wan clsact\n{}\n{IFB}", filters[2]);
    assert!(trees(&clsact)[0].starts_with(expected), "{clsact}");
}

#[test]
fn both_directions_have_a_tree() {
    let script = format!(
        "qdisc add dev wan root handle 1: htb default 10
        class add dev wan parent 1: classid 1:10 htb rate 5mbit
        {IFB}
        qdisc add dev wan handle ffff: ingress
        filter add dev wan parent ffff: protocol all matchall action mirred egress redirect dev ifb0"
    );
    let found = trees(&script);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("wan Out wan: htb handle=1:"), "{found:?}");
    assert!(found[1].starts_with("wan In ifb0: fq_codel"), "{found:?}");
}

/// In the kernel they pass the hook without waiting.
#[test]
fn packets_that_no_filter_redirects_pass() {
    let script = format!(
        "qdisc add dev wan ingress
        filter add dev wan parent ffff: prio 1 protocol ip u32 match ip dport 22 0xffff action pass
        filter add dev wan parent ffff: prio 2 protocol ip u32 match u32 0 0 \\
            action mirred egress redirect dev ifb0
        filter add dev wan parent ffff: prio 3 protocol ipv6 u32 match u32 0 0 \\
            action mirred egress redirect dev ifb1
        filter add dev wan parent ffff: prio 4 protocol 802.1q matchall action mirred egress redirect dev ifb0
        {IFB}\n{}",
        IFB.replace("ifb0", "ifb1").replace("99", "88")
    );
    let [tree] = &trees(&script)[..] else {
        panic!("one tree")
    };
    assert!(tree.starts_with("wan In wan/in: prio default=1"), "{tree}");
    for part in [
        "destination_port=22, outer_ethertype=ipv4 goes to 1",
        "outer_ethertype=ipv4 goes to 2",
        "outer_ethertype=ipv6 goes to 3",
        "outer_ethertype=802.1q goes to 2",
        "1: fifo limit=1000",
        "2: fq_codel limit=99",
        "3: fq_codel limit=88",
    ] {
        assert!(tree.contains(part), "{part}: {tree}");
    }
}

#[test]
fn a_filter_for_the_rest_is_the_default() {
    let script = format!(
        "qdisc add dev wan ingress
        filter add dev wan parent ffff: prio 1 protocol ip u32 match ip src 192.0.2.0/24 action pass
        filter add dev wan parent ffff: prio 2 protocol all matchall action mirred egress redirect dev ifb0
        {IFB}"
    );
    let [tree] = &trees(&script)[..] else {
        panic!("one tree")
    };
    assert!(tree.starts_with("wan In wan/in: prio default=2"), "{tree}");
}

#[test]
fn filters_of_an_ifb_and_of_other_devices_keep_their_place() {
    let script = "qdisc add dev lan root pfifo limit 3
        qdisc add dev wan ingress
        filter add dev wan ingress matchall action mirred egress redirect dev ifb0
        qdisc add dev ifb0 root handle 1: prio
        filter add dev ifb0 parent 1: protocol ip u32 match ip dport 53 0xffff flowid 1:1";
    let found = trees(script);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0], "lan Out lan: fifo limit=3");
    assert!(found[1].starts_with("wan In ifb0: prio handle=1:"), "{found:?}");
    assert!(found[1].contains("destination_port=53"), "{found:?}");
}

#[test]
fn an_ifb_that_gets_no_packets_has_a_warning() {
    let [tree] = &read(IFB).expect("the script is valid")[..] else {
        panic!("one tree")
    };
    assert_eq!(tree.direction, TreeDirection::Nowhere);
    assert!(
        tree.warnings[0]
            .text
            .starts_with("no filter redirects packets to `ifb0`, so its tree gets none: write"),
        "{:?}",
        tree.warnings
    );
    let without = "qdisc add dev wan root pfifo limit 3
        qdisc add dev wan ingress
        filter add dev wan ingress matchall action mirred egress redirect dev ifb0";
    assert_eq!(
        warnings(without),
        ["line 3: no line attaches a tree to `ifb0`: packets redirected there pass"]
    );
    let mended = format!("{without}\n{IFB}");
    assert_eq!(warnings(&mended), [""; 0]);
}

#[test]
fn what_a_run_has_no_place_for_is_an_error() {
    let cases = [
        (
            "qdisc add dev e root handle 1: prio
            filter add dev e parent 1: matchall action mirred egress redirect dev ifb0",
            2,
            "packets that leave can't be redirected to `ifb0`",
        ),
        (
            "qdisc add dev e clsact
            filter add dev e egress matchall action mirred egress redirect dev ifb0",
            2,
            "filters of `egress` can't be carried over",
        ),
        (
            "qdisc add dev e ingress
            filter add dev e ingress matchall action mirred egress mirror dev ifb0",
            2,
            "`mirror` sends a copy, and can't be carried over",
        ),
        (
            "qdisc add dev e ingress
            filter add dev e ingress matchall action mirred ingress redirect dev ifb0",
            2,
            "packets can't arrive at a device a second time",
        ),
        (
            "qdisc add dev e ingress
            filter add dev e ingress matchall action mirred egress redirect",
            2,
            "`mirred` names no device",
        ),
        (
            "qdisc add dev e ingress
            filter add dev e ingress matchall action mirred redirect egress dev ifb0",
            2,
            "this word of `mirred` is not understood here",
        ),
        (
            "qdisc add dev e ingress
            filter add dev e ingress matchall action mirred egress redirect dev e",
            2,
            "`e` redirects its arriving packets to itself",
        ),
        (
            "qdisc add dev e ingress
            filter add dev e ingress matchall action mirred egress redirect dev ifb0
            qdisc add dev f ingress
            filter add dev f ingress matchall action mirred egress redirect dev ifb0
            qdisc add dev ifb0 root pfifo",
            4,
            "another device redirects its packets to `ifb0`, too",
        ),
        (
            "qdisc add dev e ingress",
            1,
            "no packet waits in a queue: all that arrive pass",
        ),
    ];
    for (script, line, message) in cases {
        assert_eq!(mistakes(script), [(line, message.to_owned())], "{script}");
    }
}

/// Each line is what Linux 6.18 says of it.
#[test]
fn hooks_are_attached_as_in_the_kernel() {
    let with = |line: &str| format!("qdisc add dev e ingress\n{line}\nqdisc add dev e root pfifo");
    for line in [
        "qdisc replace dev e ingress",
        "qdisc del dev e ingress",
        "qdisc del dev e parent ffff:",
        "qdisc del dev e handle ffff: ingress",
        "filter add dev e parent ffff: protocol ip u32 match u32 0 0 flowid :1",
        "filter add dev e parent ffff:fff1 protocol ip u32 match u32 0 0 flowid 1",
    ] {
        assert_eq!(trees(&with(line))[0], "e Out e: fifo limit=1000", "{line}");
    }
    let refused = [
        ("qdisc add dev e ingress", "there is `ingress` already"),
        ("qdisc add dev e clsact", "there is `ingress` already"),
        ("qdisc replace dev e clsact", "there is `ingress` already"),
        ("qdisc add dev e root ingress", "`ingress` has a place of its own"),
        (
            "qdisc add dev e parent ffff:fff1 clsact",
            "`clsact` has a place of its own",
        ),
        (
            "qdisc add dev e ingress limit 3",
            "`ingress` has no option `limit`",
        ),
        ("qdisc add dev e parent ffff:1 pfifo", "`ingress` holds no qdiscs"),
        (
            "class add dev e parent ffff: classid ffff:1 htb rate 1mbit",
            "`ingress` and `clsact` have no classes",
        ),
        (
            "filter add dev e egress matchall",
            "`ingress` has no filters for packets that leave, but `clsact` has",
        ),
    ];
    for (line, message) in refused {
        assert_eq!(mistakes(&with(line)), [(2, message.to_owned())], "{line}");
    }
    let side = "qdisc add dev e clsact\nfilter add dev e parent ffff: matchall";
    let message = "a filter of `clsact` is attached to `ingress` or to `egress`";
    assert_eq!(mistakes(side), [(2, message.to_owned())]);
}

#[test]
fn one_tree_of_two_is_not_returned_alone() {
    let script = format!(
        "{}\nqdisc add dev wan ingress\n\
         filter add dev wan ingress matchall action mirred egress redirect dev ifb0",
        IFB.replace("ifb0", "wan")
    );
    let script = Script::parse("test.tc", &script, Device::default()).expect("the lines fit together");
    let error = script.spec().expect_err("the other tree is left out");
    assert!(error.to_string().contains("packets that arrive"), "{error}");
    let script = Script::parse("test.tc", "qdisc add dev wan ingress", Device::default());
    let error = script
        .expect("the line is valid")
        .spec()
        .expect_err("there is no tree");
    assert!(
        error
            .to_string()
            .contains("nothing is attached to the root of `wan`"),
        "{error}"
    );
}
