use fairgate::{Ecn, FlowHash, Packet, Pool, Time};

use super::*;
use crate::tc::{Device, Script, TreeState};

fn shown(script: &str) -> Vec<String> {
    let script = Script::parse("test.tc", script, Device::default()).unwrap();
    let (qdiscs, classes) = show(&script.spec().unwrap());
    let line = |what: &str, shown: &Shown| {
        let parent = shown
            .parent
            .map_or("root".to_owned(), |parent| format!("parent {parent}"));
        let options: Vec<String> = shown
            .options(&State::default(), false)
            .iter()
            .filter_map(Detail::text)
            .collect();
        format!(
            "{what} {} {} {parent} {}",
            shown.kind,
            shown.id,
            options.join(" ")
        )
        .trim_end()
        .to_owned()
    };
    let qdiscs = qdiscs.iter().map(|shown| line("qdisc", shown));
    qdiscs
        .chain(classes.iter().map(|shown| line("class", shown)))
        .collect()
}

#[test]
fn a_tree_is_shown_in_tcs_words() {
    let drr = "qdisc add dev e root handle 1: drr\n\
        class add dev e parent 1: classid 1:1 drr quantum 300\n\
        class add dev e parent 1: classid 1:a drr\n\
        qdisc add dev e parent 1:a handle 5: fq_codel ecn target 5ms memory_limit 4Mb";
    assert_eq!(
        shown(drr),
        [
            "qdisc drr 1: root",
            "qdisc fq_codel 5: parent 1:a limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms \
             memory_limit 4Mb ecn drop_batch 64",
            "class drr 1:1 root quantum 300b",
            "class drr 1:a root quantum 1514b",
        ]
    );
    assert_eq!(
        shown("qdisc add dev e root tbf rate 2mbit burst 3000 limit 1000000"),
        [
            "qdisc tbf 8001: root rate 2Mbit burst 3000b lat 3.99s",
            "class tbf 8001:1 parent 8001:",
        ]
    );
    assert_eq!(
        shown("qdisc add dev e root handle 1: tbf rate 1mbit burst 5kb limit 9000 peakrate 2mbit mtu 1540"),
        [
            "qdisc tbf 1: root rate 1Mbit burst 5Kb peakrate 2Mbit minburst 1540b lat 31ms",
            "class tbf 1:1 parent 1:",
        ]
    );
    assert_eq!(
        shown("qdisc add dev e root handle 1: ets strict 1 quanta 4500 300")[0],
        "qdisc ets 1: root bands 3 strict 1 quanta 4500 300 priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2"
    );
    let cbq = "qdisc add dev e root handle 1:0 cbq bandwidth 10mbit avpkt 1000\n\
            class add dev e parent 1: classid 1:1 cbq rate 6mbit prio 5 bounded\n\
            filter add dev e parent 1: matchall classid 1:1";
    assert_eq!(
        shown(cbq),
        [
            "qdisc cbq 1: root rate 10Mbit",
            "class cbq 1:1 parent 1: rate 6Mbit (bounded) prio 5",
        ]
    );
    assert_eq!(
        shown("qdisc add dev e root cake bandwidth 20mbit dual-srchost docsis ether-vlan wash"),
        [
            "qdisc cake 8001: root bandwidth 20Mbit diffserv3 dual-srchost nonat wash no-ack-filter \
             split-gso rtt 100ms noatm overhead 22 mpu 64"
        ]
    );
    assert_eq!(
        shown("qdisc add dev e root cake fwmark 0xff metro besteffort memlimit 1mb"),
        [
            "qdisc cake 8001: root bandwidth unlimited besteffort triple-isolate nonat nowash no-ack-filter \
             split-gso rtt 10ms raw overhead 0 memlimit 1Mb fwmark 0xff"
        ]
    );
    assert_eq!(
        shown("qdisc add dev e root bfifo limit 9000"),
        ["qdisc bfifo 8001: root limit 9000b"]
    );
    assert_eq!(
        shown("qdisc add dev e root pfifo_head_drop limit 9"),
        ["qdisc pfifo_head_drop 8001: root limit 9p"]
    );
}

#[test]
fn trees_of_classes_are_shown_with_derived_values() {
    let htb = "qdisc add dev e root handle 1: htb default 11\n\
        class add dev e parent 1: classid 1:1 htb rate 10mbit\n\
        class add dev e parent 1:1 classid 1:10 htb rate 6mbit ceil 10mbit prio 2 burst 15k\n\
        class add dev e parent 1:1 classid 1:11 htb rate 64kbit quantum 3000\n\
        qdisc add dev e parent 1:10 handle 10: red limit 400kb min 30kb max 90kb avpkt 1000 burst 55 \
        bandwidth 10mbit ecn adaptive\n\
        qdisc add dev e parent 1:11 handle 11: pfifo";
    assert_eq!(
        shown(htb),
        [
            "qdisc htb 1: root r2q 10 default 0x11 direct_qlen 1000",
            "qdisc red 10: parent 1:10 limit 400Kb min 30Kb max 90Kb ecn adaptive",
            "qdisc pfifo 11: parent 1:11 limit 1000p",
            "class htb 1:1 root rate 10Mbit ceil 10Mbit burst 1600b cburst 1600b",
            "class htb 1:10 parent 1:1 prio 2 rate 6Mbit ceil 10Mbit burst 15Kb cburst 1600b",
            "class red 10:1 parent 10:",
            "class htb 1:11 parent 1:1 prio 0 rate 64Kbit ceil 64Kbit burst 1600b cburst 1600b",
        ]
    );
    let hfsc = "qdisc add dev e root handle 1: hfsc default 11\n\
        class add dev e parent 1: classid 1:1 hfsc ls m2 10mbit ul m2 10mbit\n\
        class add dev e parent 1:1 classid 1:10 hfsc sc m1 4mbit d 10ms m2 1mbit\n\
        class add dev e parent 1:1 classid 1:11 hfsc rt m2 500kbit ls m2 2500kbit";
    let all = shown(hfsc);
    assert_eq!(all[0], "qdisc hfsc 1: root default 11");
    assert_eq!(
        all[2..],
        [
            "class hfsc 1:1 parent 1: ls m1 0bit d 0us m2 10Mbit ul m1 0bit d 0us m2 10Mbit",
            "class hfsc 1:10 parent 1:1 sc m1 4Mbit d 10ms m2 1Mbit",
            "class hfsc 1:11 parent 1:1 rt m1 0bit d 0us m2 500Kbit ls m1 0bit d 0us m2 2500Kbit",
        ]
    );
}

/// What a script attaches is told from what the kernel puts into a class by itself, and keeps its number.
#[test]
fn only_fifos_that_are_attached_are_shown() {
    let prio = "qdisc add dev e root handle 1: prio\n\
        qdisc add dev e parent 1:1 pfifo limit 5\n\
        qdisc add dev e parent 1:3 codel";
    assert_eq!(
        shown(prio),
        [
            "qdisc prio 1: root bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
            "qdisc pfifo 8001: parent 1:1 limit 5p",
            "qdisc codel 8002: parent 1:3 limit 1000p target 5ms interval 100ms",
            "class prio 1:1 parent 1:",
            "class prio 1:2 parent 1:",
            "class prio 1:3 parent 1:",
        ]
    );
}

/// A bucket that holds more than the queue leaves no latency: tc shows the limit then.
#[test]
fn a_tbf_without_latency_shows_its_limit() {
    assert_eq!(
        shown("qdisc add dev e root handle 1: tbf rate 1mbit burst 5kb limit 3000 mtu 2000")[0],
        "qdisc tbf 1: root rate 1Mbit burst 5Kb limit 3000b"
    );
}

#[test]
fn every_kind_is_shown_with_its_options() {
    let cases = [
        ("pfifo_fast", "bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"),
        (
            "pie ecn",
            "limit 1000p target 15ms tupdate 15ms alpha 2 beta 20 ecn",
        ),
        (
            "fq_pie bytemode ecn_prob 29",
            "limit 10240p flows 1024 target 15ms tupdate 15ms alpha 2 beta 20 quantum 1514b memory_limit \
             32Mb ecn_prob 29 bytemode",
        ),
        (
            "choke limit 400 bandwidth 10mbit ecn",
            "limit 400p min 33p max 100p ecn",
        ),
        (
            "fq maxrate 5mbit horizon_cap",
            "limit 10000p flow_limit 100p buckets 1024 quantum 3028b initial_quantum 15140b maxrate 5Mbit \
             low_rate_threshold 550Kbit refill_delay 40ms horizon 10s horizon_cap",
        ),
        (
            "dualpi2",
            "limit 10000p target 15ms tupdate 16ms alpha 0.156250 beta 3.195312 step_thresh 1ms \
             min_qlen_step 0p coupling_factor 2 drop_on_overload drop_dequeue classic_protection 10% l4s_ect \
             split_gso",
        ),
        (
            "sfq headdrop perturb 10",
            "limit 127p quantum 1514b depth 127 headdrop divisor 1024 perturb 10sec",
        ),
    ];
    for (options, text) in cases {
        let kind = options.split(' ').next().unwrap();
        assert_eq!(
            shown(&format!("qdisc add dev e root handle a: {options}")),
            [format!("qdisc {kind} a: root {text}")]
        );
    }
}

#[test]
fn a_discipline_that_tc_does_not_have_is_shown_in_our_notation() {
    let (qdiscs, _) = show(&Spec::inline("sqf limit=50").unwrap());
    assert_eq!(qdiscs[0].kind, "sqf");
    let limit = Detail::new("limit", Amount::Text("50".to_owned()));
    assert_eq!(qdiscs[0].options, [limit]);
}

/// Returns the statistics after packets of 1000 bytes from so many flows arrived at once, and one packet was
/// sent.
fn statistics(options: &str, flows: u64, packets: u64) -> Vec<String> {
    let script = format!("qdisc add dev e root handle 1: {options}");
    let spec = Script::parse("test.tc", &script, Device::default())
        .and_then(|script| script.spec())
        .unwrap();
    let mut tree = spec.build(1).unwrap();
    let mut pool = Pool::with_capacity(64);
    for number in 0..packets {
        let packet = Packet {
            flow: FlowHash::from_raw(number % flows),
            ecn: Ecn::Ect1,
            ..Packet::of_length(1000)
        };
        let id = pool.insert(packet).unwrap();
        tree.enqueue(id, Time::ZERO, &mut pool);
    }
    let _ = tree.dequeue(Time::from_millis(2), &mut pool);
    let (qdiscs, _) = show(&spec);
    let rows = qdiscs[0].statistics(&State::of(&*tree));
    let words = |row: &Row| {
        let words: Vec<String> = row.details.iter().filter_map(Detail::text).collect();
        words.join(" ")
    };
    rows.iter().map(words).collect()
}

#[test]
fn statistics_show_the_counters() {
    assert_eq!(
        statistics("red limit 5000 min 3000 max 4000 avpkt 1000 burst 20", 1, 7),
        ["marked 0 early 0 pdrop 2 other 0"]
    );
    assert_eq!(
        statistics("choke limit 5 min 3 max 5 burst 20", 1, 7),
        ["marked 0 early 0 pdrop 2 other 0 matched 0"]
    );
    assert_eq!(
        statistics("codel limit 5", 1, 7),
        [
            "count 0 lastcount 0 ldelay 2ms drop_next 0us",
            "maxpacket 1000 ecn_mark 0 drop_overlimit 2"
        ]
    );
    assert_eq!(
        statistics("codel ce_threshold 1ms", 1, 7),
        [
            "count 0 lastcount 0 ldelay 2ms drop_next 0us",
            "maxpacket 1000 ecn_mark 1 drop_overlimit 0"
        ]
    );
    assert_eq!(
        statistics("pie limit 5", 1, 7),
        [
            "prob 0 delay 2ms",
            "pkts_in 5 overlimit 2 dropped 0 maxq 4 ecn_mark 0"
        ]
    );
    assert_eq!(
        statistics("fq_codel limit 5 drop_batch 1", 3, 7),
        [
            "maxpacket 1000 drop_overlimit 2 new_flow_count 3 ecn_mark 0 memory_used 4000",
            "new_flows_len 3 old_flows_len 0"
        ]
    );
    assert_eq!(
        statistics("fq_codel memory_limit 5000 drop_batch 1", 3, 7)[0],
        "maxpacket 1000 drop_overlimit 2 new_flow_count 3 ecn_mark 0 memory_used 4000 drop_overmemory 2"
    );
    assert_eq!(
        statistics("fq_pie limit 5", 3, 7),
        [
            "pkts_in 5 overlimit 2 overmemory 0 dropped 0 ecn_mark 0",
            "new_flow_count 3 new_flows_len 3 old_flows_len 0 memory_used 4000"
        ]
    );
    assert_eq!(
        statistics("fq maxrate 1mbit", 3, 7),
        ["flows 3 (inactive 0 throttled 0)", "throttled 0"]
    );
    assert_eq!(
        statistics("dualpi2", 1, 3),
        ["prob 0.000000", "ecn_mark 1", "credit -121120 (L-queue)"]
    );
}

/// As iproute2's q_fq_codel.c prints it; the kernel says the selector only beside a threshold.
#[test]
fn a_selector_of_a_ce_threshold_is_shown_after_it() {
    let threshold = "qdisc add dev e root handle 1: fq_codel ce_threshold 1ms ce_threshold_selector";
    let line = &shown(&format!("{threshold} 0x1/0x3"))[0];
    assert!(
        line.contains("target 5ms ce_threshold 999us ce_threshold_selector 0x1/0x3 interval 100ms"),
        "{line}"
    );
    for wrong in ["1", "0x1/0x100", "a/3"] {
        let script = format!("{threshold} {wrong}");
        assert!(
            Script::parse("test.tc", &script, Device::default())
                .unwrap()
                .spec()
                .is_err(),
            "{wrong}"
        );
    }
}

/// What tc shows of `cake_mq`: a line with the options for the device, and a cake without a handle for each
/// transmit queue, which is a worker here.
#[test]
fn the_cakes_of_workers_are_cake_mq() {
    let script = "qdisc add dev e root handle 1: cake_mq bandwidth 100mbit besteffort";
    let spec = Script::parse("test.tc", script, Device::default())
        .unwrap()
        .spec()
        .unwrap();
    let cake = |bytes: u64| {
        let mut state = TreeState::default();
        state.state.statistics.dequeued = fairgate::Count { packets: 1, bytes };
        state.state.statistics.enqueued = state.state.statistics.dequeued;
        state
    };
    let mut listing = crate::tc::Listing::default();
    let view = crate::tc::View::default();
    listing.add_of_workers(&spec, cake(300), vec![cake(100), cake(200)], "e", view);
    let mut text = String::new();
    for line in listing.qdiscs.iter().chain(&listing.classes) {
        line.add_to(&mut text, true);
    }
    let heads = text.lines().filter(|line| line.starts_with(['q', 'c']));
    let heads: Vec<&str> = heads
        .map(|line| line.split(" bandwidth").next().unwrap_or_default().trim_end())
        .filter(|line| !line.starts_with("capacity"))
        .collect();
    assert_eq!(
        heads,
        [
            "qdisc cake_mq 1: root refcnt 2",
            "qdisc cake 0: parent 1:1",
            "qdisc cake 0: parent 1:2",
            "class cake_mq 1:1 root",
            "class cake_mq 1:2 root"
        ]
    );
    let sent: Vec<&str> = text.lines().filter(|line| line.starts_with(" Sent")).collect();
    assert_eq!(sent.len(), 5, "{text}");
    for (line, bytes) in sent.iter().zip([300, 100, 200, 100, 200]) {
        assert!(line.starts_with(&format!(" Sent {bytes} bytes 1 pkt")), "{line}");
    }
    assert_eq!(text.matches("bandwidth 100Mbit besteffort").count(), 3, "{text}");
    let htb = Spec::inline("htb { 1 rate=1mbit / fifo }").unwrap();
    assert!(show_of_workers(&htb, 2).is_none());
}
