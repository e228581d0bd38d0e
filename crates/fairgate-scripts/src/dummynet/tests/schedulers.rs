//! Schedulers and their queues, and what is there for each host.

use super::{mistake, tree};

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
fn weights_without_effect_give_a_warning() {
    let text = "pipe 1 config bw 1Mbit/s type fq_codel
        queue 1 config pipe 1 weight 100
        queue 2 config pipe 1
        add queue 1 udp from any to any
        add queue 2 ip from any to any";
    let expected = "line 2: `weight` of queue 1 has no effect, as in dummynet: `fq_codel` has queues of its \
                    own, which share equally";
    assert_eq!(super::warnings(text), [expected]);
}
