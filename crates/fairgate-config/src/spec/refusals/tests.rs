use fairgate::{DropReason, Packet, Pool, Time};
use proptest::prelude::*;
use proptest::sample::select;

use super::Frame;
use crate::registry::{Children, Registry};
use crate::spec::Spec;
use crate::spec::tests::settings;
use crate::testing::smallest;
use crate::{Document, FileError};

/// Whether an idle tree lets a frame pass; why it was dropped if not. `None` if the tree can't be built.
fn passes(spec: &Spec, frame: Frame, seed: u64) -> Option<Result<(), DropReason>> {
    let mut pool = Pool::with_capacity(4);
    let mut root = spec.build(seed).ok()?;
    let packet = Packet {
        memory: frame.memory,
        ..Packet::of_length(frame.length)
    };
    let mut now = Time::from_nanos(1 << 40);
    let id = pool.insert(packet).expect("there are four slots");
    root.enqueue(id, now, &mut pool);
    // A rate of 1 bit/s makes one wait: a year is enough for 4 MB.
    for _ in 0..1000 {
        if let Some((_, reason)) = pool.take_returned() {
            return Some(Err(reason));
        }
        if root.dequeue(now, &mut pool).is_some() {
            return Some(Ok(()));
        }
        now = root
            .watchdog()
            .filter(|due| *due > now)
            .unwrap_or(now + 1_000_000_000);
    }
    panic!("a frame of {frame:?} neither left nor was dropped: {spec:?}");
}

/// A discipline with random parameters, over fifos or over nothing.
fn one_discipline() -> impl Strategy<Value = Spec> {
    (
        select(Registry::builtin().iter().collect::<Vec<_>>()),
        any::<bool>(),
    )
        .prop_flat_map(|(entry, has_inner)| {
            settings(entry.parameters()).prop_map(move |own| {
                let mut spec = smallest(entry);
                spec.settings.own = own;
                if entry.takes_filters() {
                    spec.settings.classifier.default = Some(1);
                }
                if matches!(entry.about().children, Children::Inner | Children::InnerOrQueue) && !has_inner {
                    spec.children.clear();
                }
                spec
            })
        })
}

/// What a frame is lost for that has nothing to do with its size.
fn is_of_no_size(reason: DropReason) -> bool {
    matches!(reason, DropReason::NoClass | DropReason::NoFreeFlow)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    /// Every discipline of the registry: what an idle one never lets pass is told, and what it always lets pass is not.
    #[test]
    fn what_never_passes_is_told_and_nothing_else(
        spec in one_discipline(),
        length in prop_oneof![60u32..=6000, Just(1514u32), Just(9018), Just(65_550)],
        spare in prop_oneof![Just(0u32), 0u32..3000],
    ) {
        let frame = Frame { length, memory: length + spare };
        let tries: Vec<_> = (0..6).filter_map(|seed| passes(&spec, frame, seed)).collect();
        prop_assume!(!tries.is_empty());
        let told = spec.too_small_for(frame);
        if tries.iter().all(Result::is_ok) {
            prop_assert!(told.is_empty(), "{frame:?} passes: {told:?}");
        }
        if tries.iter().all(|tried| tried.is_err_and(|reason| !is_of_no_size(reason))) {
            prop_assert!(!told.is_empty(), "{frame:?} never passes: {tries:?}");
        }
    }
}

/// The property above would also hold if all that is drawn let all pass.
#[test]
fn disciplines_that_refuse_by_size_are_drawn_and_told() {
    let bounding: Vec<&str> = Registry::builtin()
        .iter()
        .filter(|entry| !entry.longest(&smallest(*entry).settings, false).is_empty())
        .map(|entry| entry.about().name)
        .collect();
    for name in [
        "tbf",
        "policer",
        "leaky_bucket",
        "red",
        "ared",
        "wred",
        "dualpi2",
        "cake",
        "fq_codel",
        "fq_pie",
    ] {
        assert!(bounding.contains(&name), "{name} is missing from {bounding:?}");
    }
}

fn document(text: &str) -> Document {
    Document::parse("home.toml", text).unwrap_or_else(|error| panic!("{error:?}"))
}

#[test]
fn a_bucket_that_is_too_small_is_told_with_its_place_and_the_remedy() {
    let document = document(
        "[queue.wan]\ndiscipline = 'htb'\ndefault = 2\n\n[[queue.wan.class]]\nid = 2\nrate = '9mbit'\n\
         inner = { discipline = 'tbf', rate = '5mbit', burst = '5kb', limit = '1mb' }\n",
    );
    let wan = document.queue("wan").unwrap();
    assert!(wan.too_small_for(Frame::TAGGED).is_empty());
    let told = wan.too_small_for(Frame::of_length(9018));
    assert_eq!(told.len(), 1);
    assert_eq!(
        told[0].message,
        "`burst` of `tbf` in class 2 is 5kb, but a full frame is 9018b: each one would be dropped"
    );
    assert_eq!(told[0].position(), (8, 55));
    assert!(
        told[0].help.starts_with("raise `burst` to 9018b or more"),
        "{}",
        told[0].help
    );
    // Used in both directions, it is said once.
    let twice: Vec<_> = told.iter().chain(&told).cloned().collect();
    let error: FileError = FileError::unless_empty(twice).unwrap_err();
    assert_eq!(error.problems().len(), 1);
}

#[test]
fn a_policer_that_marks_drops_nothing() {
    let tree = |text| Spec::inline(text).unwrap().too_small_for(Frame::ETHERNET).len();
    assert_eq!(tree("policer rate=1mbit burst=1000"), 1);
    assert_eq!(tree("policer rate=1mbit burst=1000 remark=0"), 0);
    assert_eq!(
        tree("tbf rate=1mbit burst=3000 peakrate=2mbit mtu=1000 limit=500"),
        2
    );
}

#[test]
fn whatever_asks_for_a_mark_is_told_with_its_place() {
    let document = document(
        "[queue.wan]\ndiscipline = 'drr'\ndefault = 1\n\n\
         [[queue.wan.class]]\nid = 1\ndiscipline = 'cake'\nfwmark = 15\n\n\
         [[queue.wan.class]]\nid = 2\ncount = 3\neach = ['mark']\noverflow = 1\ndiscipline = 'fifo'\n\n\
         [[queue.wan.filter]]\nclass = 1\ndscp = 'EF'\n\n[[queue.wan.filter]]\nclass = 1\nmark = 7\n",
    );
    let told = document.queue("wan").unwrap().asks_for_marks();
    let told: Vec<_> = told
        .iter()
        .map(|told| (told.position(), told.message.as_str()))
        .collect();
    let expected = [
        (
            (23, 8),
            "filter 2 of `drr` asks for a mark, and a frame from a wire carries none",
        ),
        (
            (13, 8),
            "class 2 of `drr` is given to hosts by their mark, and a frame from a wire carries none",
        ),
        (
            (8, 10),
            "`fwmark` of `cake` in class 1 asks for a mark, and a frame from a wire carries none",
        ),
    ];
    assert_eq!(told, expected);
}

#[test]
fn without_an_interface_usual_frames_are_assumed() {
    let told = |tree: &str| -> Vec<String> {
        let told = Spec::inline(tree).unwrap().live_warnings();
        told.into_iter().map(|told| told.message).collect()
    };
    assert_eq!(
        told("tbf rate=1mbit burst=1000 / fifo limit_bytes=1514"),
        [
            "`burst` of `tbf` is 1000b, but a full frame at an MTU of 1500 is 1514b: each one would be dropped",
            "`limit_bytes` of `fifo` in class 1 is 1514b, but a full frame with a VLAN tag at an MTU of 1500 is 1518b: \
             each one would be dropped"
        ]
    );
    assert!(told("tbf rate=19mbit burst=5kb / fq_codel").is_empty());
}

#[test]
fn a_bucket_that_is_soon_full_again_is_told_with_the_depth_that_is_enough() {
    let told = |tree: &str| -> Vec<String> {
        let told = Spec::inline(tree).unwrap().live_warnings();
        told.iter()
            .map(|told| format!("{}; {}", told.message, told.help))
            .collect()
    };
    assert_eq!(
        told("tbf rate=1gbit burst=4014 / fifo"),
        [
            "`burst` of `tbf` is 4014b, full again 20us after a frame may leave: a run that wakes up later than that does not \
             reach the rate; raise `burst` to 26514b or more"
        ]
    );
    assert!(told("tbf rate=1gbit burst=26514 / fifo").is_empty());
    assert!(
        told("policer rate=1gbit burst=4014 / fifo").is_empty(),
        "it holds nothing back"
    );
    let htb = "htb { 1 rate=80mbit ceil=800mbit burst=2000 cburst=2000 / fifo }";
    assert_eq!(
        told(htb),
        [
            "`cburst` of class 1 of `htb` is 2000b, full again 20us after a frame may leave: a run that wakes up later than \
             that does not reach the rate; raise `cburst` to 20000b or more"
        ]
    );
    assert!(
        told(&htb.replace(" cburst=2000", "")).is_empty(),
        "1 ms by default"
    );
}
