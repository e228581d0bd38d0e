//! Tests of the import of what tc prints.

use super::*;

fn read(listings: &[(&str, &str)]) -> Result<Vec<String>, ImportError> {
    let listing = |(parent, text)| Printed {
        device: "eth0",
        parent,
        text,
    };
    let listings: Vec<Printed> = listings
        .iter()
        .map(|(parent, text)| listing((*parent, *text)))
        .collect();
    let commands = import(&listings)?;
    Ok(commands.into_iter().map(|imported| imported.command).collect())
}

fn commands(listings: &[(&str, &str)]) -> Vec<String> {
    read(listings).unwrap_or_else(|error| panic!("{error}"))
}

/// What iproute2 6.1 prints for a tree of htb.
#[test]
fn a_tree_is_made_from_its_listing() {
    let qdiscs = "qdisc htb 1: root refcnt 2 r2q 10 default 0x20 direct_packets_stat 0 ver 3.17 \
        direct_qlen 1000\n \
                  linklayer ethernet overhead 18 mpu 64 mtu 2047 tsize 512 \n\
                  qdisc tbf 20: parent 1:20 rate 100Kbit burst 5Kb/1 mpu 0b lat 50ms linklayer \
                  ethernet \n\
                  qdisc pfifo 10: parent 1:10 limit 77p\n\
                  qdisc ingress ffff: parent ffff:fff1 ---------------- \n";
    let classes = "class htb 1:10 parent 1:1 leaf 10: prio 1 quantum 1500 rate 200Kbit ceil 950Kbit \
        linklayer \
                   ethernet burst 1600b/1 mpu 0b cburst 1599b/1 mpu 0b level 0 \n\
                   class htb 1:1 root prio 0 quantum 100000 rate 8Mbit overhead 10 ceil 8Mbit \
                   linklayer atm burst \
                   1600b/1 mpu 0b cburst 1600b/1 mpu 0b level 0 \nclass tbf 20:1 parent 20: \n";
    assert_eq!(
        commands(&[("", qdiscs), ("", classes)]),
        [
            "qdisc add dev eth0 root handle 1: stab linklayer ethernet overhead 18 mpu 64 mtu 2047 \
            tsize 512 htb \
             r2q 10 default 0x20",
            "qdisc add dev eth0 ingress",
            "qdisc add dev eth0 parent 1:20 handle 20: tbf rate 100Kbit burst 5120b lat 50ms",
            "class add dev eth0 parent 1: classid 1:1 htb prio 0 quantum 100000 rate 8Mbit ceil \
            8Mbit burst \
             1600b cburst 1600b overhead 10 linklayer atm",
            "class add dev eth0 parent 1:1 classid 1:10 htb prio 1 quantum 1500 rate 200Kbit ceil \
            950Kbit burst \
             1600b cburst 1600b",
            "qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 77",
        ]
    );
}

#[test]
fn filters_are_made_from_their_listing() {
    let root = "filter parent 1: protocol ip pref 10 u32 chain 0 \n\
                filter parent 1: protocol ip pref 10 u32 chain 0 fh 800: ht divisor 1 \n\
                filter parent 1: protocol ip pref 10 u32 chain 0 fh 800::800 order 2048 key ht 800 \
                bkt 0 *flowid \
                1:10 not_in_hw \n  match 00100000/00ff0000 at 0\n  match 00000050/0000ffff at \
                nexthdr+0\n\
                filter parent 1: protocol ip pref 11 fw chain 0 \n\
                filter parent 1: protocol ip pref 11 fw chain 0 handle 0x1/0xff classid 1:20 \n\
                filter parent 1: protocol ip pref 12 flower chain 0 handle 0x1 classid 1:20 \n  \
                eth_type ipv4\n  \
                ip_proto tcp\n  dst_port 80\n  not_in_hw\n";
    let arriving = "filter parent ffff: protocol all pref 49152 u32 chain 0 fh 800::800 order 2048 \
        key ht 800 bkt 0 \
                    terminal flowid not_in_hw \n  match 00000000/00000000 at 0\n\taction order 1: \
                    connmark zone 0 \
                    pipe\n\t index 1 ref 1 bind 1\n\taction order 2: mirred (Egress Redirect to \
                    device ifb0) \
                    stolen\n\tindex 1 ref 1 bind 1\n\n";
    assert_eq!(
        commands(&[("", root), ("ingress", arriving)]),
        [
            "filter add dev eth0 parent 1: protocol ip pref 10 u32 flowid 1:10 match u32 0x00100000 \
            0x00ff0000 at 0 \
             match u32 0x00000050 0x0000ffff at nexthdr+0",
            "filter add dev eth0 parent 1: protocol ip pref 11 handle 0x1/0xff fw classid 1:20",
            "filter add dev eth0 parent 1: protocol ip pref 12 flower classid 1:20 ip_proto tcp \
            dst_port 80",
            "filter add dev eth0 parent ffff: protocol all pref 49152 u32 match u32 0x00000000 \
            0x00000000 at 0 \
             action connmark action mirred egress redirect dev ifb0",
        ]
    );
    let drop = "filter parent 1: protocol all pref 1 matchall chain 0 handle 0x1 \n  \
        not_in_hw\n\taction order 1: \
                gact action drop\n\t random type none pass val 0\n\t index 1 ref 1 bind 1\n";
    assert_eq!(
        commands(&[("", drop)]),
        ["filter add dev eth0 parent 1: protocol all pref 1 matchall action drop"]
    );
}

#[test]
fn what_the_kernel_attached_itself_is_left_out() {
    let qdiscs = "qdisc mq 0: root \nqdisc fq_codel 0: parent :1 limit 10240p flows 1024 quantum \
        1514\n";
    assert_eq!(commands(&[("", qdiscs)]), [""; 0]);
}

#[test]
fn chains_and_computed_classes_are_made_from_their_listing() {
    let text = "filter parent 1: protocol ip pref 1 flow chain 0 \n\
                filter parent 1: protocol ip pref 1 flow chain 0 handle 0x1 hash keys src,dst divisor 1024 \
                baseclass 1:1 perturb 10sec \n\
                filter parent 1: protocol all pref 2 matchall chain 0 handle 0x1 \n  \
                not_in_hw\n\taction order 1: gact action goto chain 5\n\t random type none pass val 0\n\t \
                index 1 ref 1 bind 1\n\
                filter parent 1: protocol ip pref 1 u32 chain 5 fh 801::800 order 2048 key ht 801 bkt 0 \
                flowid 1:2 not_in_hw \n  match 00000016/0000ffff at 20\n";
    assert_eq!(
        commands(&[("", text)]),
        [
            "filter add dev eth0 parent 1: protocol ip pref 1 handle 0x1 flow hash keys src,dst divisor 1024 \
             baseclass 1:1 perturb 10",
            "filter add dev eth0 parent 1: protocol all pref 2 matchall action goto chain 5",
            "filter add dev eth0 parent 1: chain 5 protocol ip pref 1 u32 flowid 1:2 match u32 0x00000016 \
             0x0000ffff at 20",
        ]
    );
}

/// What iproute2 6.1 and 7.1 print on Linux 6.18 for one machine, as text and as JSON.
#[test]
fn json_makes_the_same_commands_as_text_but_exact() {
    let qdiscs = r#"[{"kind":"htb","handle":"1:","root":true,"refcnt":3,"options":{"r2q":10,
        "default":"0x20","direct_packets_stat":0,"ver":"3.17","direct_qlen":1000},
        "stab":{"linklayer":"ethernet","overhead":18,"mpu":64,"mtu":2047,"tsize":512}},
        {"kind":"pfifo","handle":"10:","parent":"1:10","options":{"limit":77}},
        {"kind":"bfifo","handle":"20:","parent":"1:20","options":{"limit":5120}},
        {"kind":"ingress","handle":"ffff:","parent":"ffff:fff1","options":{}}]"#;
    let classes = r#"[{"class":"htb","handle":"1:10","parent":"1:1","leaf":"0x10","prio":1,"quantum":15432,
        "rate":154320,"overhead":22,"ceil":1000000,"linklayer":"atm","burst":1599,"burst_cell":1,
        "mpu_rate":0,"cburst":1600,"cburst_cell":1,"mpu_ceil":0,"level":0},
        {"class":"htb","handle":"1:1","root":true,"rate":1000000,"ceil":1000000,"linklayer":"ethernet",
        "burst":15360,"burst_cell":1,"mpu_rate":0,"cburst":1600,"cburst_cell":1,"mpu_ceil":0,"level":7},
        {"class":"htb","handle":"1:20","parent":"1:1","leaf":"0x20","prio":2,"quantum":1500,"rate":62500,
        "ceil":1000000,"linklayer":"ethernet","burst":1600,"burst_cell":1,"mpu_rate":0,"cburst":1600,
        "cburst_cell":1,"mpu_ceil":0,"level":0,"stats":{"bytes":0}}]"#;
    // This tc prints the same classes as text. A listing of each form may stand beside one of the other.
    let as_text = "class htb 1:10 parent 1:1 leaf 10: prio 1 quantum 15432 rate 1234Kbit overhead 22 ceil \
        8Mbit linklayer atm burst 1599b/1 mpu 0b cburst 1600b/1 mpu 0b level 0 \n\
        class htb 1:1 root rate 8Mbit ceil 8Mbit linklayer ethernet burst 15Kb/1 mpu 0b cburst 1600b/1 mpu \
        0b level 7 \n\
        class htb 1:20 parent 1:1 leaf 20: prio 2 quantum 1500 rate 500Kbit ceil 8Mbit linklayer ethernet \
        burst 1600b/1 mpu 0b cburst 1600b/1 mpu 0b level 0 \n";
    let made = |[first, top, second]: [&str; 3]| {
        let qdisc = "qdisc add dev eth0 root handle 1: stab linklayer ethernet overhead 18 mpu 64 mtu 2047 \
            tsize 512 htb r2q 10 default 0x20";
        let class = |place: &str, options: String| format!("class add dev eth0 parent {place} htb {options}");
        [
            qdisc.to_owned(),
            "qdisc add dev eth0 ingress".to_owned(),
            class(
                "1: classid 1:1",
                format!("rate {top} ceil {top} burst 15360b cburst 1600b"),
            ),
            class(
                "1:1 classid 1:10",
                format!(
                    "prio 1 quantum 15432 rate {first} ceil {top} burst 1600b cburst 1600b overhead 22 \
                        linklayer atm"
                ),
            ),
            class(
                "1:1 classid 1:20",
                format!("prio 2 quantum 1500 rate {second} ceil {top} burst 1600b cburst 1600b"),
            ),
            "qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 77".to_owned(),
            "qdisc add dev eth0 parent 1:20 handle 20: bfifo limit 5120".to_owned(),
        ]
    };
    let exact = commands(&[("", qdiscs), ("", classes)]);
    assert_eq!(exact, made(["1234560bit", "8000000bit", "500000bit"]));
    let rounded = commands(&[("", qdiscs), ("", as_text)]);
    assert_eq!(rounded, made(["1234Kbit", "8Mbit", "500Kbit"]));
}

/// An object of a u32 filter has the key `match` for each of its conditions.
#[test]
fn filters_in_json_keep_all_their_conditions() {
    let root = r#"[{"protocol":"ip","pref":10,"kind":"u32","chain":0},
        {"protocol":"ip","pref":10,"kind":"u32","chain":0,"options":{"fh":"800:","ht_divisor":1}},
        {"protocol":"ip","pref":10,"kind":"u32","chain":0,"options":{"fh":"800::800","order":2048,
        "key_ht":"800","bkt":"0","flowid":"1:10","not_in_hw":true,"match":{"value":"a000000",
        "mask":"ff000000","offmask":"","off":12},"match":{"value":"50","mask":"ffff","offmask":"nexthdr+",
        "off":0}}},
        {"protocol":"ip","pref":11,"kind":"fw","chain":0},
        {"protocol":"ip","pref":11,"kind":"fw","chain":0,"options":{"fw":{"mark":"0x1","mask":"0xff"},
        "classid":"1:20"}},
        {"protocol":"ip","pref":12,"kind":"flower","chain":0},
        {"protocol":"ip","pref":12,"kind":"flower","chain":0,"options":{"handle":1,"classid":"1:20",
        "keys":{"eth_type":"ipv4","ip_proto":"tcp","ip_tos":16,"ip_tos_mask":"fc","dst_ip":"10.0.0.0/8",
        "dst_port":{"start":80,"end":90},"ip_flags":{"frag":false}},"not_in_hw":true}},
        {"protocol":"ip","pref":13,"kind":"flow","chain":0,"options":{"handle":"0x1","mode":"hash",
        "keys":["src","dst"],"divisor":1024,"baseclass":"1:1","perturb":10}},
        {"protocol":"all","pref":14,
        "kind":"u32","chain":0,"options":{"fh":"800::801","order":2049,"key_ht":"800","bkt":"0","link":"1:",
        "match":{"value":"0","mask":"0","offmask":"","off":0},"offset_mask":"0f00","offset_shift":6,
        "offset_off":0,"hash_mask":"ff","hash_off":16}}]"#;
    let arriving = r#"[{"protocol":"all","pref":1,"kind":"u32","chain":0,"options":{"fh":"800::800",
        "order":2048,"key_ht":"800","bkt":"0","not_in_hw":true,"match":{"value":"0","mask":"0","offmask":"",
        "off":0},"actions":[{"order":1,"kind":"skbedit","mark":5,"mask":"ff",
        "control_action":{"type":"pipe"},"index":1},
        {"order":2,"kind":"mirred","mirred_action":"redirect","direction":"egress","to_dev":"ifb0",
        "control_action":{"type":"stolen"},"index":1,"ref":1,"bind":1}]}},
        {"protocol":"all","pref":2,"kind":"matchall","chain":0,"options":{"handle":1,"not_in_hw":true,
        "actions":[{"order":1,"kind":"gact","control_action":{"type":"goto","chain":5},
        "prob":{"random_type":"none","control_action":{"type":"pass"},"val":0},"index":1,"ref":1,
        "bind":1}]}}]"#;
    assert_eq!(
        commands(&[("1:", root), ("ingress", arriving)]),
        [
            "filter add dev eth0 parent 1: protocol ip pref 10 u32 flowid 1:10 match u32 0x0a000000 \
                0xff000000 at 12 match u32 0x00000050 0x0000ffff at nexthdr+0",
            "filter add dev eth0 parent 1: protocol ip pref 11 handle 0x1/0xff fw classid 1:20",
            "filter add dev eth0 parent 1: protocol ip pref 12 flower classid 1:20 ip_proto tcp ip_tos \
                16/0xfc dst_ip 10.0.0.0/8 dst_port 80-90 ip_flags nofrag",
            "filter add dev eth0 parent 1: protocol ip pref 13 handle 0x1 flow hash keys src,dst divisor \
                1024 baseclass 1:1 perturb 10",
            "filter add dev eth0 parent 1: protocol all pref 14 u32 link 1: match u32 0x00000000 \
                0x00000000 at 0 offset mask 0x0f00 shift 6 at 0 hashkey mask 0xff at 16",
            "filter add dev eth0 ingress protocol all pref 1 u32 match u32 0x00000000 0x00000000 at 0 \
                action skbedit mark 5/0xff pipe action mirred egress redirect dev ifb0",
            "filter add dev eth0 ingress protocol all pref 2 matchall action goto chain 5",
        ]
    );
}

/// Each of these would be lost without a word.
#[test]
fn what_tc_shows_only_in_part_is_an_error() {
    let u32 =
        "filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 flowid 1:1";
    let chance = format!("{u32}\n\taction order 1: gact action drop\n\t random type determ pass val 10\n");
    let marked = format!("{u32}\n  mark 0x0005 0x00ff (success 0)\n");
    let in_words = format!("{u32}\n  match IP src 10.0.0.0/8\n");
    let second_line_of = |element: &str| {
        format!(
            "[{},\n{element}]",
            r#"{"kind":"pfifo","handle":"1:","root":true}"#
        )
    };
    for (text, line, element, message) in [
        (&*chance, 1, None, "by chance (`random determ`)"),
        (&*marked, 1, None, "`mark` of the u32 filter 800::800"),
        (&*in_words, 1, None, "shown in words"),
        (r#"[{"kind":"htb","handle":"1:","#, 1, Some(1), "not JSON"),
        (
            &*second_line_of(r#"{"kind":"hfsc","handle":"2:","options":{ default 10 }}"#),
            2,
            Some(2),
            "not JSON",
        ),
        (
            &*second_line_of(r#"{"class":"drr","handle":"1:1","root":true}"#),
            2,
            Some(2),
            "the quantum of a class of drr",
        ),
        (
            r#"[{"kind":"tbf","handle":"1:","root":true,"options":{"rate":125000,"burst":1600,
                "minburst":1514}}]"#,
            1,
            Some(1),
            "the peak rate of a tbf",
        ),
        (
            r#"[{"protocol":"ip","pref":1,"kind":"matchall","chain":0,"options":{"handle":1,
                "actions":[{"order":1,"kind":"police","index":1,"control_action":{"type":"drop"}}]}}]"#,
            1,
            Some(1),
            "the options of the action `police`",
        ),
        (
            r#"[{"protocol":"ip","pref":1,"kind":"u32","chain":0,"options":{"fh":"800::800","key_ht":"800",
                "bkt":"0","match":{"src":{"address":"10.0.0.0","prefixlen":8}}}}]"#,
            1,
            Some(1),
            "shown in words",
        ),
        (
            r#"[{"kind":"pfifo","handle":"1: root\nqdisc add dev eth1","options":{"limit":77}}]"#,
            1,
            Some(1),
            "is not one word",
        ),
        (
            r#"[{"kind":"cake","handle":"1:","options":{"tins":{}}}]"#,
            1,
            Some(1),
            "`tins`",
        ),
        (
            r#"[{"ifname":"eth0"}]"#,
            1,
            Some(1),
            "no qdisc, no class and no filter",
        ),
        ("[[1]]", 1, Some(1), "not an object"),
    ] {
        let error = read(&[("", text)]).expect_err(text);
        assert_eq!((error.line, error.element), (line, element), "{error} in {text}");
        assert!(error.message.contains(message), "{error} in {text}");
        assert!(!error.help.is_empty());
    }
}

/// The policer of LARTC's example, as iproute2 6.1 shows it: one written without `action`, and one with.
#[test]
fn policers_are_made_from_their_listing() {
    let text = "filter parent ffff: protocol ip pref 50 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt \
        0 flowid :1 not_in_hw \n  \
        match 00000000/00000000 at 12\n \
        police 0x1 rate 1Mbit burst 10Kb mtu 2Kb action drop overhead 0b linklayer ethernet \n\
        \tref 1 bind 1 \n\
        \n\
        filter parent ffff: protocol ip pref 51 u32 chain 0 fh 801::800 order 2048 key ht 801 bkt 0 \n  \
        match 00000000/00000000 at 12\n\
        \taction order 1:  police 0x2 rate 2Mbit burst 10Kb mtu 2Kb action reclassify overhead 4b \n\
        \tref 1 bind 1 \n";
    assert_eq!(
        commands(&[("ingress", text)]),
        [
            "filter add dev eth0 parent ffff: protocol ip pref 50 u32 flowid :1 match u32 0x00000000 \
                0x00000000 at 12 action police rate 1Mbit burst 10Kb mtu 2Kb drop",
            "filter add dev eth0 parent ffff: protocol ip pref 51 u32 match u32 0x00000000 0x00000000 at \
                12 action police rate 2Mbit burst 10Kb mtu 2Kb overhead 4b reclassify",
        ]
    );
}

#[test]
fn what_newer_kernels_show_of_themselves_is_left_out() {
    let qdiscs = "qdisc fq 1: root refcnt 2 limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 \
        bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 weights 589824 196608 65536 quantum 3028b \
        initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s \
        horizon_drop offload_horizon 0us \n\
        qdisc netem 2: parent 1:1 limit 1000 delay 10ms seed 17219573862398412 \n\
        qdisc mqprio 3: parent 1:2 tc 2 map 0 0 1 1 \n             \
        queues:(0:1) (2:3) \n             \
        mode:dcb\n             \
        shaper:dcb\n";
    let json = r#"[{"kind":"fq","handle":"1:","root":true,"refcnt":2,"options":{"limit":10000,
        "flow_limit":100,"buckets":1024,"orphan_mask":1023,"bands":3,"priomap ":[1,2,2,2,1,2,0,0,1,1,1,1,1,
        1,1,1],"weights ":[589824,196608,65536],"quantum":3028,"initial_quantum":15140,
        "low_rate_threshold":68750,"refill_delay":40000,"timer_slack":10,"horizon":10000000,
        "horizon_drop":null,"offload_horizon":0}},
        {"kind":"netem","handle":"2:","parent":"1:1","options":{"limit":1000,"delay":{"delay":0.01,
        "jitter":0,"correlation":0},"seed":17219573862398412,"ecn":false,"gap":0}},
        {"kind":"mqprio","handle":"3:","parent":"1:2","options":{"tc":2,"map":[0,0,1,1],"queues":[[0,1],[2,
        3]],"mode":"dcb","shaper":"dcb"}}]"#;
    let as_text = commands(&[("", qdiscs)]);
    assert_eq!(
        as_text,
        [
            "qdisc add dev eth0 root handle 1: fq limit 10000 flow_limit 100 buckets 1024 quantum 3028b \
                initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms horizon 10s \
                horizon_drop",
            "qdisc add dev eth0 parent 1:1 handle 2: netem limit 1000 delay 10ms",
            "qdisc add dev eth0 parent 1:2 handle 3: mqprio num_tc 2 map 0 0 1 1 queues 2@0 2@2 hw 0",
        ]
    );
    assert_eq!(
        commands(&[("", json)]),
        [
            "qdisc add dev eth0 root handle 1: fq limit 10000 flow_limit 100 buckets 1024 quantum 3028 \
                initial_quantum 15140 low_rate_threshold 550000bit refill_delay 40000us horizon 10000000us \
                horizon_drop",
            "qdisc add dev eth0 parent 1:1 handle 2: netem limit 1000 delay 10000000ns",
            "qdisc add dev eth0 parent 1:2 handle 3: mqprio num_tc 2 map 0 0 1 1 queues 2@0 2@2 hw 0",
        ]
    );
}

/// As iproute2 prints it: a line for each virtual queue, and in JSON a list under the key of their number.
#[test]
fn a_gred_is_made_from_its_virtual_queues() {
    let text = "qdisc gred 1: root refcnt 2 vqs 2 default 0 limit 60Kb grio ecn \n \
                vq 0 prio 1 limit 60Kb min 15Kb max 25Kb ewma 3 probability 0.02 Scell_log 13 \n \
                vq 1 prio 2 limit 60Kb min 20Kb max 40Kb ewma 4 probability 0.1 Scell_log 14 \n";
    let json = r#"[{"kind":"gred","handle":"1:","root":true,"refcnt":2,"options":{"vqs":2,"default":0,
        "grio":true,"limit":61440,"ecn":true,"harddrop":false,"vqs":[
        {"vq":0,"prio":1,"limit":61440,"min":15360,"max":25600,"ecn":true,"ewma":3,"probability":0.02,
         "Scell_log":13},
        {"vq":1,"prio":2,"limit":61440,"min":20480,"max":40960,"ecn":true,"ewma":4,"probability":0.1,
         "Scell_log":14}]}}]"#;
    for (listing, [limit, of_first, of_second]) in [
        (text, ["60Kb", "min 15Kb max 25Kb", "min 20Kb max 40Kb"]),
        (json, ["61440", "min 15360 max 25600", "min 20480 max 40960"]),
    ] {
        let made = commands(&[("", listing)]);
        let [setup, first, second] = &made[..] else {
            panic!("{made:#?}")
        };
        let words = |command: &str| {
            let mut words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            words.sort();
            words
        };
        let expected =
            format!("qdisc add dev eth0 root handle 1: gred setup vqs 2 default 0 limit {limit} grio ecn");
        assert_eq!(words(setup), words(&expected), "{setup}");
        let change = "qdisc change dev eth0 root handle 1: gred prio";
        assert!(
            first.starts_with(&format!(
                "{change} 1 limit {limit} {of_first} probability 0.02 avpkt "
            )),
            "{first}"
        );
        assert!(
            second.starts_with(&format!(
                "{change} 2 limit {limit} {of_second} probability 0.1 avpkt "
            )),
            "{second}"
        );
        assert!(first.ends_with("DP 0") && second.ends_with("DP 1"), "{made:#?}");
    }
}

#[test]
fn a_red_that_is_not_listed_in_detail_is_an_error_with_the_missing_word() {
    for (listing, word) in [
        (
            "qdisc red 1: root refcnt 2 limit 400Kb min 30Kb max 90Kb\n",
            "`ewma`",
        ),
        (
            "qdisc choke 1: root refcnt 2 limit 1000p min 83p max 250p ewma 6 Scell_log 13\n",
            "`Plog`",
        ),
        (
            "qdisc gred 1: root vqs 1 default 0 limit 60Kb \n vq 0 prio 8 limit 60Kb min 15Kb max 25Kb \
             ewma 3 probability 0.02 \n",
            "`Scell_log`",
        ),
    ] {
        let error = read(&[("", listing)]).expect_err(listing);
        assert!(error.message.contains(word), "{error}");
        assert!(error.help.contains("-d"), "{}", error.help);
        assert_eq!((error.listing, error.line, error.element), (0, 1, None));
    }
    let error = read(&[(
        "",
        "qdisc red 1: root limit 400Kb min 30Kb max 90Kb ewma 0 probability 0.02 Scell_log 3\n",
    )])
    .expect_err("no options give it");
    assert!(error.message.contains("`ewma 0` and `Scell_log 3`"), "{error}");
    let json = r#"[{"kind":"gred","handle":"1:","root":true,"options":{"vqs":2,"default":0}}]"#;
    let error = read(&[("", json)]).expect_err("the queues are missing");
    assert!(error.message.contains("virtual queues"), "{error}");
}
