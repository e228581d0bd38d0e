//! Tests of the import of what tc prints.

use super::*;

fn commands(listings: &[(&str, &str)]) -> Vec<String> {
    let listing = |(parent, text)| Printed {
        device: "eth0",
        parent,
        text,
    };
    let listings: Vec<Printed> = listings
        .iter()
        .map(|(parent, text)| listing((*parent, *text)))
        .collect();
    import(&listings)
        .into_iter()
        .map(|imported| imported.command)
        .collect()
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
