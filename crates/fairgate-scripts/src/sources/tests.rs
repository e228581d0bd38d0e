use super::{Source, commands, recognise};
use crate::tc::{Device, Script};

/// Returns the commands of a file, and the trees that they give.
fn read(text: &str, source: Source, device: Option<&str>) -> (String, String) {
    assert_eq!(recognise(text), Some(source), "{text}");
    let messages = |error: fairgate_config::FileError| -> String {
        let all: Vec<String> = error
            .problems()
            .iter()
            .map(|problem| problem.message.clone())
            .collect();
        panic!("{all:?}")
    };
    let read = commands("file", text, source, device).unwrap_or_else(|error| panic!("{}", messages(error)));
    let text = read.text();
    let trees = Script::translate_all("commands", &text, Device::default());
    let trees = trees.unwrap_or_else(|error| panic!("{text}\n{}", messages(error)));
    let trees: Vec<String> = trees
        .iter()
        .map(|tree| format!("{}: {}", tree.name, tree.spec))
        .collect();
    (text, trees.join("\n"))
}

fn mistake(text: &str, device: Option<&str>) -> (usize, String) {
    let source = recognise(text).expect("it is known");
    let error = commands("file", text, source, device).expect_err("it has a mistake");
    let first = &error.problems()[0];
    (first.position().0, first.message.clone())
}

#[test]
fn networkd_gives_its_qdiscs_and_classes() {
    let (text, trees) = read(
        "[Match]\nName=lan0\n[HierarchyTokenBucketClass]\nParent=1:1\nClassId=1:10\nRate=10M\nCeilRate=90M\n\
        [FairQueueingControlledDelay]\nParent=1:10\nTargetSec=5ms\nECN=no\nMemoryLimitBytes=4M\n\
        [HierarchyTokenBucketClass]\nParent=root\nClassId=1:1\nRate=100M\n\
        [HierarchyTokenBucket]\nParent=root\nHandle=1\nDefaultClass=10\n",
        Source::Networkd,
        None,
    );
    assert!(
        text.starts_with("tc qdisc replace dev lan0 root handle 1: htb default 10\n"),
        "{text}"
    );
    for part in ["rate=10mbit ceil=90mbit", "memory_limit=4mb", "ecn=false"] {
        assert!(trees.contains(part), "{part}: {trees}");
    }
    let (line, message) = mistake("[Match]\nName=a\n[CAKE]\nBandwith=40M\n", None);
    assert_eq!(
        (line, message.as_str()),
        (4, "`Bandwith` of [CAKE] can't be carried over")
    );
}

#[test]
fn networkmanager_has_the_words_of_tc() {
    let (text, _) = read(
        "[connection]\nid=lan\ninterface-name=eth0\n[tc]\nqdisc.root=handle 1: fq_codel limit 500\n",
        Source::NetworkManager,
        None,
    );
    assert_eq!(
        text,
        "tc qdisc replace dev eth0 root handle 1: fq_codel limit 500\n"
    );
}

#[test]
fn sqm_and_qosify_give_cakes() {
    let (text, trees) = read(
        "config queue 'eth1'\n\toption enabled '1'\n\toption interface 'eth1'\n\toption download '85000'\n\
        \toption upload '10000'\n\toption script 'piece_of_cake.qos'\n\toption linklayer 'ethernet'\n\
        \toption overhead '44'\n",
        Source::Sqm,
        None,
    );
    assert!(
        text.contains("dev eth1 root cake bandwidth 10000kbit overhead 44 mpu 0 besteffort\n"),
        "{text}"
    );
    assert!(trees.contains("bandwidth=85mbit"), "{trees}");
    let (_, trees) = read(
        "config defaults\n\tlist defaults /etc/qosify/*.conf\nconfig interface wan\n\toption name wan\n\
        \toption bandwidth_up 100mbit\n\toption bandwidth_down 200mbit\n\toption overhead_type none\n",
        Source::Qosify,
        None,
    );
    assert!(
        trees.contains("bandwidth=100mbit") && trees.contains("bandwidth=200mbit"),
        "{trees}"
    );
    let simple = "config queue\n\toption enabled 1\n\toption interface pppoe-wan\n\toption upload 9000\n\
        \toption script simple.qos\n";
    let (_, trees) = read(simple, Source::Sqm, None);
    assert!(trees.contains("rate=1500kbit ceil=8984kbit"), "{trees}");
}

#[test]
fn policies_of_vyos_become_htb() {
    let (text, trees) = read(
        "set qos policy shaper OUT bandwidth '100mbit'\nset qos policy shaper OUT class 20 bandwidth '20%'\n\
        set qos policy shaper OUT class 20 match sip ip dscp 'EF'\n\
        set qos policy shaper OUT class 20 queue-type 'fq-codel'\n\
        set qos policy shaper OUT default bandwidth '80%'\nset qos policy shaper OUT default ceiling '100%'\n\
        set qos interface eth1 egress 'OUT'\n",
        Source::Vyos,
        None,
    );
    assert!(text.contains("classid 1:14 htb rate 20000000bit"), "{text}");
    assert!(trees.contains("rate=80mbit ceil=100mbit"), "{trees}");
    let (text, _) = read(
        "qos {\n policy {\n  limiter IN {\n   default {\n    bandwidth 20mbit\n   }\n  }\n  fq-codel FQ {\n\
           flows 512\n  }\n }\n interface eth0 {\n  egress FQ\n }\n}\n",
        Source::Vyos,
        None,
    );
    assert_eq!(text, "tc qdisc replace dev eth0 root fq_codel flows 512\n");
}

#[test]
fn queues_of_routeros_become_htb() {
    let (text, trees) = read(
        "/queue tree\nadd name=up parent=ether1 max-limit=20M\n\
        add name=voice parent=up packet-mark=sip priority=1 limit-at=1M max-limit=20M\n\
        add name=rest parent=up packet-mark=no-mark priority=8 max-limit=20M\n",
        Source::Mikrotik,
        None,
    );
    assert!(text.contains("rate 1000000bit ceil 20000000bit"), "{text}");
    assert!(trees.contains("mark=1 goes to 2"), "{trees}");
    let (text, _) = read(
        "/queue simple\nadd name=a target=192.0.2.7/32 max-limit=5M/20M\n",
        Source::Mikrotik,
        None,
    );
    assert!(
        text.contains(
            "tc filter add dev download parent 1: prio 1 protocol ip flower dst_ip 192.0.2.7/32 classid 1:1"
        ),
        "{text}"
    );
}

#[test]
fn files_are_recognised_by_their_content() {
    let cases = [
        ("tc qdisc add dev eth0 root fq\n", Some(Source::Tc)),
        (
            "#!/bin/sh\nIF=eth0\ntc qdisc add dev $IF root fq\n",
            Some(Source::Shell),
        ),
        (
            "pipe 1 config bw 1Mbit/s\nadd pipe 1 ip from any to any\n",
            Some(Source::Dummynet),
        ),
        ("altq on em0 cbq bandwidth 1Mb queue a\n", Some(Source::Pf)),
        ("queue main on em0 bandwidth 1M default\n", Some(Source::Pf)),
        ("[Unit]\nDescription=x\n", Some(Source::Unit)),
        (
            "config interface lan\n\toption proto static\n",
            Some(Source::OtherUci),
        ),
        ("[queue.wan]\ndiscipline = \"cake\"\n", None),
        ("", None),
    ];
    for (text, source) in cases {
        assert_eq!(recognise(text), source, "{text}");
    }
}
