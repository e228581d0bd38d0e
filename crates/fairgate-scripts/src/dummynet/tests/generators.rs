//! Files as the firewalls OPNsense and pfSense write them.

use super::{mistake, read, tree};
use crate::dummynet::Tree;

/// Lines as OPNsense's templates write them: pipes and queues of dnctl.conf, and the rules of ipfw.conf.
#[test]
fn files_of_opnsense_are_taken() {
    let objects = "\
pipe 10000 config bw 50Mbit/s queue 100 type  fq_codel  target 5  interval 100   noecn \\
    quantum 300  limit 10240  flows 1024
pipe 10001 config bw 10Mbit/s mask src-ip /32  type  wf2q+  codel  target 5  ecn
queue 10000 config pipe 10000 weight 100
queue 10001 config pipe 10001 buckets 64 mask src-ip /32  weight 30 codel  noecn
";
    let rules = "\
flush
add 100 allow pfsync from any to any
add 110 allow carp from any to any
add 120 pass layer2 mac-type arp,rarp
add 130 pass layer2 mac-type 0x888e,0x88c7
add 140 pass layer2 mac-type 0x8863,0x8864
add 150 deny layer2 not mac-type ip,ipv6
add 200 skipto 60000 ipv6 from ::1 to any
add 201 skipto 60000 ipv4 from 127.0.0.0/8 to any
add 202 skipto 60000 ipv6 from any to ::1
add 203 skipto 60000 ipv4 from any to 127.0.0.0/8
add 60000 return via any
add 60001 queue 10000 ip from any to any src-port  any dst-port any in   via em0 // 0a1b wan: Download
add 60002 queue 10001 ip from not 192.0.2.0/24 to table(__rule__0a1b__destination) src-port  any \\
    dst-port any xmit em0 dscp ef,af41 recv em1 // 0a1c lan -> wan: Upload
add 65533 pass ip from any to any
add 65534 deny all from any to any
table __rule__0a1b__destination create type addr
table __rule__0a1b__destination add 203.0.113.0/24
";
    let trees = read(&format!("{objects}{rules}")).expect("the files are taken");
    let names: Vec<String> = trees.iter().map(Tree::name).collect();
    assert_eq!(names, ["em0/in", "em0"]);
    let shown: Vec<String> = trees.iter().map(|tree| tree.spec.to_string()).collect();
    assert!(
        shown[0].contains("fq_codel limit=10240 flows=1024 quantum=300b target=5ms interval=100ms ecn=false"),
        "{}",
        shown[0]
    );
    assert!(
        shown[1].contains("each=source") && shown[1].contains("codel limit=50 ecn=false"),
        "{}",
        shown[1]
    );
    for shown in &shown {
        assert!(
            shown.contains("ethertype=0x806") || shown.contains("ethertype=arp"),
            "{shown}"
        );
        assert!(shown.contains("netem loss=1"), "{shown}");
    }
}

/// Lines as pfSense writes them into its file of limiters.
#[test]
fn limiters_of_pfsense_are_taken() {
    let limiters = "
pipe 1 config  bw 20Mb queue 1000 plr 0.001 buckets 64 delay 10 codel target 5ms interval 100ms noecn
sched 1 config pipe 1 type fq_codel target 5ms interval 100ms quantum 1514 limit 10240 flows 1024 noecn
queue 1 config pipe 1 queue 1000 weight 50 mask dst-ip6 /128 dst-ip 0xffffffff droptail
 
";
    // The options of the pipe's own queue are for packets that rules send to the pipe itself.
    assert_eq!(
        tree(&format!("{limiters}add queue 1 ip from any to any")),
        "out: netem limit=4294967295 delay=10ms\n\
         └─ tbf rate=20mbit burst=10000b\n   \
         └─ fq_codel limit=10240 flows=1024 quantum=1514b target=5ms interval=100ms ecn=false"
    );
    let own = tree(&format!(
        "{limiters}add pipe 1 ip from any to any\nsched 1 delete\nqueue 1 delete"
    ));
    assert_eq!(
        own,
        "out: netem limit=4294967295 delay=10ms loss=0.001\n\
         └─ tbf rate=20mbit burst=10000b\n   \
         └─ codel limit=1000 target=5ms interval=100ms ecn=false"
    );
}

/// Rules as pfSense's rules.debug and OPNsense's firewall have them.
#[test]
fn rules_of_pf_lead_to_pipes() {
    let objects =
        "pipe 1 config bw 20Mb\nqueue 1 config pipe 1\npipe 2 config bw 5Mb\nqueue 2 config pipe 2\n";
    let rules = "\
set limit states 100000
LAN = \"{ em1 }\"
table <voip> { 192.0.2.64/28 }
table <lan> persist { 192.0.2.0/24, 2001:db8::/64 }
scrub on em0 fragment reassemble
block in log inet all label \"Default deny\"
pass in quick on $LAN inet from <voip> to any ridentifier 7 keep state label \"calls\"
pass  in  quick  on $LAN inet proto tcp from <lan> to any port { 80 443 } \\
    flags S/SA keep state dnqueue( 2,1)  label \"web\"
pass in on $LAN from <lan> to any keep state dnqueue (2, 1)
";
    let trees = read(&format!("{objects}{rules}")).unwrap_or_else(|error| panic!("{:?}", error.problems()));
    let names: Vec<String> = trees.iter().map(Tree::name).collect();
    assert_eq!(names, ["em1/in", "em1"]);
    let shown: Vec<String> = trees.iter().map(|tree| tree.spec.to_string()).collect();
    let [arriving, leaving] = &shown[..] else {
        panic!("two trees")
    };
    let order = |shown: &str, parts: &[&str]| {
        let at: Vec<Option<usize>> = parts.iter().map(|part| shown.find(part)).collect();
        assert!(
            at.iter().all(Option::is_some) && at.is_sorted(),
            "{parts:?} in {shown}"
        );
    };
    order(
        arriving,
        &[
            "source=192.0.2.64/28",
            "destination_port=80",
            "destination_port=443",
            "source=2001:db8::/64",
        ],
    );
    assert!(
        arriving.contains("rate=5mbit") && leaving.contains("rate=20mbit"),
        "{arriving} {leaving}"
    );
    // Replies pass the other way.
    order(leaving, &["destination=192.0.2.0/24", "source_port=80"]);

    let one = tree("pipe 1 config bw 1Mb\nmatch out on em0 inet all dnpipe(1)");
    assert!(one.contains("rate=1mbit"), "{one}");
    let (line, column, message, _) = mistake("pipe 1 config\nmatch in on em0 from any to any dnpipe(0)");
    assert_eq!((line, column), (2, 33), "{message}");
}
