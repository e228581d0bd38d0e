use super::trees;
use crate::tc::Device;

/// Returns the trees of a text, and its warnings.
fn read(text: &str) -> (Vec<String>, Vec<String>) {
    let trees = trees("pf.conf", text, Device::default()).unwrap_or_else(|error| {
        let messages: Vec<String> = error
            .problems()
            .iter()
            .map(|problem| problem.message.clone())
            .collect();
        panic!("{messages:?}")
    });
    let warnings = trees
        .iter()
        .flat_map(|tree| tree.warnings.iter().map(ToString::to_string))
        .collect();
    (trees.iter().map(|tree| tree.spec.to_string()).collect(), warnings)
}

fn mistakes(text: &str) -> Vec<String> {
    let error = trees("pf.conf", text, Device::default()).expect_err("it has mistakes");
    error
        .problems()
        .iter()
        .map(|problem| problem.message.clone())
        .collect()
}

#[test]
fn classes_of_cbq_have_parts_of_the_rate_above() {
    let text = "if = \"em0\"
        altq on $if cbq bandwidth 2Mb queue { std, ssh, ping }
        queue std bandwidth 50% cbq(default borrow red)
        queue ssh bandwidth 20% cbq(borrow) { inter, bulk }
        queue inter priority 7 bandwidth 20%
        queue bulk priority 0 bandwidth 80%
        queue ping bandwidth 2% cbq
        pass out on $if proto tcp to any port ssh keep state queue (bulk, inter)
        block in all";
    let (trees, warnings) = read(text);
    let tree = &trees[0];
    for part in [
        "tbf rate=2mbit",
        " bandwidth=2mbit",
        "link_sharing=top-level",
        "rate=400kbit",
        "rate=80kbit priority=7 borrow=false",
        "rate=320kbit priority=0",
        "rate=40kbit",
        "red ",
    ] {
        assert!(tree.contains(part), "{part}: {tree}");
    }
    assert!(
        warnings.iter().any(|warning| warning.starts_with("line 9: ")),
        "{warnings:?}"
    );
}

#[test]
fn a_higher_priority_of_priq_is_served_first() {
    let (trees, _) = read(
        "altq on fxp0 priq bandwidth 600Kb queue { fast, slow }
        queue slow priority 1 priq(default)
        queue fast priority 7
        pass out on fxp0 proto tcp from fxp0 to any flags S/SA keep state queue (slow, fast)",
    );
    assert!(trees[0].contains("tcp_flags=0x10/0x10"), "{}", trees[0]);
    assert!(trees[0].contains("default=2"), "{}", trees[0]);
}

#[test]
fn curves_of_hfsc_are_carried_over() {
    let (trees, _) = read(
        "altq on em1 hfsc bandwidth 10Mb queue { voice, rest }
        queue voice bandwidth 10% qlimit 100 hfsc(realtime (2Mb 20 500Kb) upperlimit 30%)
        queue rest bandwidth 90% hfsc(default linkshare 8Mb codel)
        pass in on em1 proto udp from any to any port 5060 keep state queue voice",
    );
    for part in [
        "rt=2mbit:20ms:500kbit",
        "ul=3mbit",
        "ls=8mbit",
        "codel ",
        "source_port=5060",
    ] {
        assert!(trees[0].contains(part), "{part}: {}", trees[0]);
    }
}

#[test]
fn queues_of_openbsd_become_hfsc() {
    let (trees, _) = read(
        "queue main on em0 bandwidth 20M, max 20M
        queue ssh parent main bandwidth 2M, min 1M burst 5M for 1000ms
        queue ack parent main bandwidth 2M burst 4M for 200ms
        queue bulk parent main bandwidth 10M flows 256 default
        match out on em0 proto tcp to port 22 set queue ssh
        match out on em0 proto tcp set queue (bulk, ack)",
    );
    for part in [
        "tbf rate=20mbit",
        "ul=20mbit",
        "rt=5mbit:1s:1mbit",
        "ls=4mbit:200ms:2mbit",
        "flows=256",
        "destination_port=22",
    ] {
        assert!(trees[0].contains(part), "{part}: {}", trees[0]);
    }
    let (trees, _) = read("queue fq on em0 flows 512 default");
    assert!(
        trees[0].starts_with("fq_codel") && trees[0].contains("flows=512"),
        "{}",
        trees[0]
    );
}

#[test]
fn what_is_missing_is_an_error() {
    let cases = [
        (
            "altq on em0 cbq bandwidth 1Mb queue { a }",
            "queue `a` is not defined",
        ),
        (
            "altq on em0 cbq queue a\nqueue a cbq(default)",
            "the interface has no bandwidth",
        ),
        (
            "altq on em0 priq bandwidth 1Mb queue a\nqueue a",
            "the interface has 0 default queues, but needs one",
        ),
        (
            "altq on em0 priq bandwidth 1Mb queue a\nqueue a priq(default)\npass out queue b",
            "there is no queue `b`",
        ),
        ("altq on $x cbq bandwidth 1Mb queue a", "there is no macro `x`"),
        (
            "queue a bandwidth 1M",
            "queue `a` names neither an interface nor a queue above it",
        ),
        (
            "altq on em0 fast bandwidth 1Mb queue a",
            "expected a scheduler, `bandwidth`, `tbrsize` or `queue`, but found `fast`",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(mistakes(text)[0], message, "{text}");
    }
}
