use std::sync::Arc;

use fairgate::{DropReason, Packet, Pool, Time};
use proptest::prelude::*;
use proptest::sample::select;

use super::Frame;
use crate::registry::{Children, Registry};
use crate::spec::Spec;
use crate::spec::tests::settings;
use crate::testing::smallest;
use crate::{Document, FileError};

/// Returns whether an idle tree sends a frame, or the reason of its drop. `None` if the tree can't be built.
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
    // A frame waits long at 1 bit/s. In a year 4 MB are sent.
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

/// A discipline with random parameters, with fifos below it or with nothing.
fn one_discipline() -> impl Strategy<Value = Spec> {
    (
        select(Registry::builtin().iter().collect::<Vec<_>>()),
        any::<bool>(),
    )
        .prop_flat_map(|(entry, has_inner)| {
            settings(entry.parameters()).prop_map(move |own| {
                let mut spec = smallest(entry);
                let settings = Arc::make_mut(&mut spec.settings);
                settings.own = own;
                if entry.takes_filters() {
                    settings.classifier.default = Some(1);
                }
                if matches!(entry.about().children, Children::Inner | Children::InnerOrQueue) && !has_inner {
                    spec.children = Arc::default();
                }
                spec
            })
        })
}

/// Whether the reason of a drop is independent of the frame's size.
fn is_independent_of_size(reason: DropReason) -> bool {
    matches!(
        reason,
        DropReason::NoClass | DropReason::NoFreeFlow | DropReason::Late | DropReason::Lost
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    /// For every discipline: frames that it never sends when idle are reported, and frames that it always
    /// sends are not.
    #[test]
    fn exactly_the_frames_that_never_pass_are_reported(
        spec in one_discipline(),
        length in prop_oneof![60u32..=6000, Just(1514u32), Just(9018), Just(65_550)],
        spare in prop_oneof![Just(0u32), 0u32..3000],
    ) {
        let frame = Frame { length, memory: length + spare };
        let tries: Vec<_> = (0..6).filter_map(|seed| passes(&spec, frame, seed)).collect();
        prop_assume!(!tries.is_empty());
        let found = spec.too_small_for(frame);
        if tries.iter().all(Result::is_ok) {
            prop_assert!(found.is_empty(), "{frame:?} passes: {found:?}");
        }
        if tries.iter().all(|tried| tried.is_err_and(|reason| !is_independent_of_size(reason))) {
            prop_assert!(!found.is_empty(), "{frame:?} never passes: {tries:?}");
        }
    }
}

/// The property above also holds if all drawn disciplines send all frames. This test excludes that.
#[test]
fn disciplines_that_drop_by_size_are_drawn() {
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
fn a_bucket_that_is_too_small_is_reported_with_location_and_remedy() {
    let document = document(
        "[queue.wan]\ndiscipline = 'htb'\ndefault = 2\n\n[[queue.wan.class]]\nid = 2\nrate = '9mbit'\n\
         inner = { discipline = 'tbf', rate = '5mbit', burst = '5kb', limit = '1mb' }\n",
    );
    let wan = document.queue("wan").unwrap();
    assert!(wan.too_small_for(Frame::TAGGED).is_empty());
    let found = wan.too_small_for(Frame::of_length(9018));
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].message,
        "`burst` of `tbf` in class 2 is 5kb, but a full frame is 9018b: each one would be dropped"
    );
    assert_eq!(found[0].position(), (8, 55));
    assert!(
        found[0].help.starts_with("raise `burst` to 9018b or more"),
        "{}",
        found[0].help
    );
    // A tree that is used in both directions is reported once.
    let twice: Vec<_> = found.iter().chain(&found).cloned().collect();
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
fn a_discipline_for_departure_times_is_reported() {
    let tree = crate::Spec::inline("tbf rate=1mbit burst=5kb / etf delta=1ms").unwrap();
    let [problem] = &tree.asks_for_departure_times()[..] else {
        panic!("one problem")
    };
    assert!(
        problem.message.contains("`etf`") && problem.help.contains("maxrate"),
        "{problem:?}"
    );
    assert!(
        crate::Spec::inline("fq")
            .unwrap()
            .asks_for_departure_times()
            .is_empty()
    );
}

#[test]
fn each_use_of_a_mark_is_reported_with_its_location() {
    let document = document(
        "[queue.wan]\ndiscipline = 'drr'\ndefault = 1\n\n\
         [[queue.wan.class]]\nid = 1\ndiscipline = 'cake'\nfwmark = 15\n\n\
         [[queue.wan.class]]\nid = 2\ncount = 3\neach = ['mark']\noverflow = 1\ndiscipline = 'fifo'\n\n\
         [[queue.wan.filter]]\nclass = 1\ndscp = 'EF'\n\n[[queue.wan.filter]]\nclass = 1\nmark = 7\n",
    );
    let found = document.queue("wan").unwrap().asks_for_marks();
    let found: Vec<_> = found
        .iter()
        .map(|found| (found.position(), found.message.as_str()))
        .collect();
    let expected = [
        (
            (23, 8),
            "filter 2 of `drr` asks for a mark, but a frame from an interface has none",
        ),
        (
            (13, 8),
            "class 2 of `drr` is given to hosts by their mark, but a frame from an interface has none",
        ),
        (
            (8, 10),
            "`fwmark` of `cake` in class 1 asks for a mark, but a frame from an interface has none",
        ),
    ];
    assert_eq!(found, expected);
}

#[test]
fn without_an_interface_an_mtu_of_1500_is_assumed() {
    let found = |tree: &str| -> Vec<String> {
        let found = Spec::inline(tree).unwrap().live_warnings();
        found.into_iter().map(|found| found.message).collect()
    };
    assert_eq!(
        found("tbf rate=1mbit burst=1000 / fifo limit_bytes=1514"),
        [
            "`burst` of `tbf` is 1000b, but a full frame at an MTU of 1500 is 1514b: each one would be \
             dropped",
            "`limit_bytes` of `fifo` in class 1 is 1514b, but a full frame with a VLAN tag at an MTU of 1500 \
             is 1518b: each one would be dropped"
        ]
    );
    assert!(found("tbf rate=19mbit burst=5kb / fq_codel").is_empty());
}

#[test]
fn a_bucket_that_fills_too_fast_is_reported_with_a_sufficient_depth() {
    let found = |tree: &str| -> Vec<String> {
        let found = Spec::inline(tree).unwrap().live_warnings();
        found
            .iter()
            .map(|found| format!("{}; {}", found.message, found.help))
            .collect()
    };
    assert_eq!(
        found("tbf rate=1gbit burst=4014 / fifo"),
        [
            "`burst` of `tbf` is 4014b. It is full again 20us after a frame can leave; a run that wakes up \
             later than that does not reach the rate; raise `burst` to 26514b or more"
        ]
    );
    assert!(found("tbf rate=1gbit burst=26514 / fifo").is_empty());
    assert!(
        found("policer rate=1gbit burst=4014 / fifo").is_empty(),
        "a policer holds nothing back"
    );
    let htb = "htb { 1 rate=80mbit ceil=800mbit burst=2000 cburst=2000 / fifo }";
    assert_eq!(
        found(htb),
        [
            "`cburst` of class 1 of `htb` is 2000b. It is full again 20us after a frame can leave; a run \
             that wakes up later than that does not reach the rate; raise `cburst` to 20000b or more"
        ]
    );
    assert!(
        found(&htb.replace(" cburst=2000", "")).is_empty(),
        "1 ms by default"
    );
}
