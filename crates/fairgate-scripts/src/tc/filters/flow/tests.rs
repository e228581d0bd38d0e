//! Tests of classes that are computed.

use fairgate::{ClassId, Packet, Pool, Time};
use fairgate_config::{Document, FileError, Spec};
use proptest::prelude::*;

use crate::tc::{Device, Script, Translated};

const QDISC: &str = "qdisc add dev e root handle 1: drr\n\
    class add dev e parent 1: classid 1:1 drr\n\
    class add dev e parent 1: classid 1:2 drr\n";

fn script(filter: &str) -> String {
    format!("{QDISC}filter add dev e parent 1: {filter}\n")
}

fn read(text: &str) -> Result<Spec, FileError> {
    Script::parse("test.tc", text, Device::default())?.spec()
}

fn spec(text: &str) -> Spec {
    read(text).unwrap_or_else(|error| panic!("{text}: {:?}", error.problems()))
}

/// Returns the lines of the filters in TOML that say what becomes of packets.
fn classes(filter: &str) -> Vec<String> {
    let text = spec(&script(filter)).to_toml("e");
    let (_, filters) = text.split_once(".filter]]").expect("there is a filter");
    let is_class = |line: &&str| line.starts_with("class =");
    filters.lines().filter(is_class).map(str::to_owned).collect()
}

/// Returns the first mistake: the marked words, the message.
fn mistake(filter: &str) -> (String, String) {
    let text = script(filter);
    let error = read(&text).expect_err("there is a mistake");
    let problem = &error.problems()[0];
    assert!(!problem.help.is_empty());
    (text[problem.span.clone()].to_owned(), problem.message.clone())
}

/// Returns the tree of a run, in which frames have no marks, and its warnings.
fn of_run(text: &str) -> (Spec, Vec<String>) {
    let device = Device {
        has_marks: false,
        ..Device::default()
    };
    let trees = Script::translate_all("test.tc", text, device);
    let mut trees = trees.unwrap_or_else(|error| panic!("{:?}", error.problems()));
    let Translated { spec, warnings, .. } = trees.remove(0);
    (spec, warnings.iter().map(ToString::to_string).collect())
}

#[test]
fn hashes_and_numbers_are_translated() {
    let cases = [
        (
            "protocol ip handle 1 flow hash keys src,dst,proto,proto-src,proto-dst divisor 1024",
            "class = { hash = [\"source\", \"destination\", \"protocol\", \"source_port\", \
             \"destination_port\"], first = 1, count = 1024 }",
        ),
        (
            "handle 1 flow hash keys rxhash divisor 8 baseclass 1:2 perturb 10",
            "class = { hash = [\"flow\"], perturb = \"10s\", first = 2, count = 8 }",
        ),
        (
            "handle 1 flow map key dst and 0xff",
            "class = { number = \"destination\", and = 0xff, first = 1 }",
        ),
        (
            "handle 1 flow map key dst or 0xff",
            "class = { number = \"destination\", and = 0xffffff00, xor = 0xff, first = 1 }",
        ),
        (
            "handle 1 flow map key vlan-tag rshift 4 addend 0x10 divisor 16",
            "class = { number = \"vlan\", shift = 4, add = 16, first = 1, count = 16 }",
        ),
        (
            "handle 1 flow map key src addend -10.0.0.1",
            "class = { number = \"source\", add = 4127195135, first = 1 }",
        ),
        (
            "handle 1 flow map key nfct-src and 0xff",
            "class = { number = \"source\", and = 0xff, first = 1 }",
        ),
        // A frame that is forwarded has no socket: its number is 0.
        ("protocol ip handle 1 flow map key sk-uid addend 1", "class = 2"),
    ];
    for (filter, expected) in cases {
        assert_eq!(classes(filter), [expected], "{filter}");
    }
}

#[test]
fn what_the_kernel_or_a_bridge_can_not_do_is_refused() {
    let refused = |filter: &str, words: &str, message: &str| {
        let found = mistake(filter);
        assert_eq!(found.0, words, "{filter}: {found:?}");
        assert!(found.1.contains(message), "{filter}: {found:?}");
    };
    refused("flow hash keys src", "flow", "needs a handle");
    refused("handle 1 flow hash divisor 8", "flow", "has no keys");
    refused("handle 1 flow map keys src,dst", "src,dst", "one key");
    refused("handle 1 flow map key srk", "srk", "is no key");
    refused("handle 1 flow map key src rshift 32", "rshift", "31 bits");
    refused("handle 1 flow map key src perturb 10", "flow", "`map` has none");
    refused("handle 1 flow map key iif", "iif", "not known here");
    refused(
        "handle 1 flow hash keys sk-uid,sk-gid",
        "sk-uid,sk-gid",
        "same hash",
    );
    refused("handle 1 flow hash keys src baseclass 1:0", "1:0", "above 0");
    refused(
        "handle 1 flow hash keys src baseclass 2:1",
        "2:1",
        "not a class of this qdisc",
    );
    refused("fw flowid 1:2", "fw", "takes the class from the mark");
}

#[test]
fn a_flow_filter_over_a_hashed_qdisc_takes_all_packets() {
    let text = "qdisc add dev e root handle 1: sfq perturb 10 divisor 1024
        filter add dev e parent 1: protocol all prio 1 handle 1 flow hash keys src divisor 1024";
    assert_eq!(of_run(text).1, [""; 0], "no packet is left that would be dropped");
    let toml = spec(text).to_toml("e");
    assert!(toml.contains("hash = [\"source\"]"), "{toml}");
    assert!(!toml.contains("drop"), "{toml}");
}

#[test]
fn frames_of_a_run_have_no_mark() {
    let (spec, warnings) = of_run(&script("protocol ip handle 1 flow map key mark and 0xf addend 1"));
    assert!(warnings[0].contains("`mark` is 0"), "{warnings:?}");
    assert!(spec.to_toml("e").contains("class = 2"));
    let (_, warnings) = of_run(&script("protocol ip fw"));
    assert!(warnings[0].contains("matches nothing"), "{warnings:?}");
    let marked = "protocol ip prio 1 u32 match ip dport 22 0xffff action skbedit mark 2 continue\n\
        filter add dev e parent 1: protocol ip prio 2 fw";
    let toml = of_run(&script(marked)).0.to_toml("e");
    assert!(toml.contains("number = \"mark\""), "{toml}");
}

proptest! {
    /// What `fw_classify` does without filters of its own: the class is the mark, if its upper half is 0 or
    /// the handle.
    #[test]
    fn the_class_is_the_mark(
        major in prop_oneof![Just(0u16), Just(1), Just(2), any::<u16>()],
        minor in prop_oneof![0u16..4, any::<u16>()],
    ) {
        let mark = u32::from(major) << 16 | u32::from(minor);
        let text = script("fw\nclass add dev e parent 1: classid 1:9 drr\n\
            filter add dev e parent 1: prio 65000 matchall flowid 1:9");
        let spec = spec(&text);
        let document = Document::parse("printed", &spec.to_toml("e")).expect("it is read again");
        prop_assert_eq!(document.queue("e"), Some(&spec));
        let mut root = spec.build(1).expect("the tree can be built");
        let mut pool = Pool::with_capacity(1);
        let packet = Packet { mark, class: ClassId::NONE, ..Packet::of_length(100) };
        let id = pool.insert(packet).expect("a free slot");
        root.enqueue(id, Time::ZERO, &mut pool);
        let mut found = None;
        root.visit_classes(&mut |class| {
            if class.discipline.backlog().packets > 0 {
                found = Some(class.minor);
            }
        });
        let expected = match (major, minor) {
            (0 | 1, 0) => Some(9),
            // The kernel's drr drops a packet whose class does not exist.
            (0 | 1, minor) => Some(minor).filter(|minor| [1, 2, 9].contains(minor)),
            _ => Some(9),
        };
        prop_assert_eq!(found, expected.map(u32::from));
    }
}
