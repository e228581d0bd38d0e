//! Printing and reading a description, and applying a changed one to a running tree.

mod filters;

use std::sync::Arc;
use std::time::Duration;

use fairgate::classify::{Classifier, Filter, Holder, Match, Outcome};
use fairgate::{Discipline, FlowKey, Packet, Pool, Time};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;

use filters::{condition, deed};

use super::{Estimator, Estimators, Origin, Spec};
use crate::Document;
use crate::registry::{Children, ClassSettings, Entry, ParameterInfo, Registry, Setting, Settings};
use crate::registry::{Unit, Value};

/// A value of a parameter. It may contradict the other parameters.
fn value(info: &ParameterInfo) -> BoxedStrategy<Value> {
    let (least, most) = (*info.range.start(), *info.range.end());
    // Small numbers, so that no tree occupies gigabytes. Other tests cover the ends of the ranges.
    let number = least..=most.min(least.saturating_add(5000));
    let some = match info.unit {
        Unit::Flag => any::<bool>().prop_map(Value::Flag).boxed(),
        Unit::Choice(words) => select(words).prop_map(Value::Word).boxed(),
        Unit::Text(_) => "[a-z]{0,9}".prop_map(Value::Text).boxed(),
        // Bands that always exist.
        Unit::List(length) => Just(Value::List(vec![0; length])).boxed(),
        Unit::Numbers(_) | Unit::SignedNumbers(_) => {
            Just(Value::List(vec![*info.range.end(), *info.range.start()])).boxed()
        }
        Unit::Curve => (0u64..4, 0u64..3, 0u64..4)
            .prop_map(|(m1, d, m2)| match d {
                0 => Value::List(vec![0, 0, m2 * 8_000]),
                _ => Value::List(vec![m1 * 8_000, d * 1_500_000, m2 * 8_000]),
            })
            .boxed(),
        _ => number.prop_map(Value::Number).boxed(),
    };
    match info.optional {
        true => prop_oneof![3 => some, 1 => Just(Value::None)].boxed(),
        false => some,
    }
}

/// Sets all required parameters and some of the others.
pub(super) fn settings(parameters: Vec<ParameterInfo>) -> BoxedStrategy<Vec<Setting>> {
    let each: Vec<_> = parameters
        .iter()
        .map(|info| match info.default {
            None => value(info).prop_map(Some).boxed(),
            Some(_) => prop::option::weighted(0.2, value(info)).boxed(),
        })
        .collect();
    each.prop_map(|values| {
        let set = values.into_iter().enumerate();
        set.filter_map(|(index, value)| Some((index, value?))).collect()
    })
    .boxed()
}

fn classifier(entry: &'static dyn Entry, minors: Vec<u32>) -> BoxedStrategy<Classifier> {
    if !entry.takes_filters() {
        return Just(Classifier::default()).boxed();
    }
    let filter = (0u16..3, condition(), select(minors.clone()), deed()).prop_map(
        |(preference, condition, class, deed)| Filter {
            preference,
            condition,
            outcome: if deed.outcome == Outcome::Unclassified {
                class.into()
            } else {
                deed.outcome
            },
            ..deed
        },
    );
    (
        any::<u16>(),
        prop::collection::vec(filter, 0..3),
        prop::option::of(select(minors)),
    )
        .prop_map(|(handle, filters, default)| Classifier {
            handle,
            filters: filters.into(),
            default,
        })
        .boxed()
}

/// Removes all filters if one of them names a class that does not exist. The number of classes may depend on
/// the parameters.
fn fit_classifier(entry: &'static dyn Entry, settings: &mut Settings) {
    let places = entry.places(settings);
    let Classifier { filters, default, .. } = &settings.classifier;
    let of_filters = filters.iter().filter_map(|filter| filter.outcome.class());
    let mut named = of_filters.chain(*default);
    if named.any(|class| class > places) {
        settings.classifier = Classifier::default();
    }
}

fn leaf() -> impl Strategy<Value = Spec> {
    let leaves: Vec<_> = Registry::builtin()
        .iter()
        .filter(|entry| entry.about().children == Children::None)
        .collect();
    select(leaves).prop_flat_map(|entry| {
        let parts = (
            settings(entry.parameters()),
            classifier(entry, vec![1]),
            estimator(),
        );
        parts.prop_map(move |(own, classifier, estimator)| {
            let mut settings = Settings {
                own,
                classes: Vec::new(),
                classifier,
            };
            fit_classifier(entry, &mut settings);
            Spec {
                entry,
                settings: settings.into(),
                children: Arc::default(),
                estimators: Arc::new(Estimators {
                    own: estimator,
                    ..Estimators::default()
                }),
                origin: Origin::nowhere().into(),
            }
        })
    })
}

fn estimator() -> impl Strategy<Value = Option<Estimator>> {
    let estimator = (1..=8_000u64, 1..=30u8)
        .prop_map(|(sample, log)| Estimator::with_log(Duration::from_millis(sample), log));
    prop_oneof![3 => Just(None), 1 => estimator]
}

fn tree() -> impl Strategy<Value = Spec> {
    leaf().prop_recursive(3, 12, 4, |child| {
        let nodes: Vec<_> = Registry::builtin()
            .iter()
            .filter(|entry| entry.about().children != Children::None)
            .collect();
        (select(nodes), prop::collection::vec(child, 1..4), 1u32..20).prop_flat_map(
            |(entry, children, step)| {
                let (step, children) = match entry.about().children {
                    Children::Bands => (1, children),
                    Children::Classes | Children::Tree | Children::TreeOrNone => (step, children),
                    Children::Inner | Children::InnerOrQueue | Children::None => (0, children[..1].to_vec()),
                };
                let minors: Vec<u32> = (1..=children.len() as u32)
                    .map(|index| index * step)
                    .filter(|id| *id > 0)
                    .collect();
                let classes: Vec<_> = minors
                    .iter()
                    .map(|minor| {
                        let minor = *minor;
                        settings(entry.class_parameters()).prop_map(move |settings| ClassSettings {
                            minor,
                            template: None,
                            settings,
                        })
                    })
                    .collect();
                let of_class = minors.clone();
                let estimators = (estimator(), prop::collection::vec(estimator(), minors.len())).prop_map(
                    move |(own, classes)| {
                        let classes = of_class.iter().zip(classes);
                        Estimators {
                            own,
                            classes: classes
                                .filter_map(|(minor, estimator)| Some((*minor, estimator?)))
                                .collect(),
                        }
                    },
                );
                (
                    settings(entry.parameters()),
                    classifier(entry, minors),
                    classes,
                    Just(children),
                    estimators,
                )
                    .prop_map(move |(own, classifier, classes, children, estimators)| {
                        let mut settings = Settings {
                            own,
                            classes,
                            classifier,
                        };
                        fit_classifier(entry, &mut settings);
                        Spec {
                            entry,
                            settings: settings.into(),
                            children: children.into(),
                            estimators: estimators.into(),
                            origin: Origin::nowhere().into(),
                        }
                    })
            },
        )
    })
}

/// Pieces of configuration files in any order, and other characters.
const PIECES_OF_FILES: &str = "(\\[\\[?queue\\.a(\\.class|\\.filter)?\\]\\]?\
    |(discipline|inner|class|limit|id) = (\"prio\"|\"drr\"|[0-9]|\\{\\}|\\[\\]|\"[a-zü]*\")\
    |\\PC{0,9}|\n){0,12}";

proptest! {
    #[test]
    fn a_printed_description_is_read_as_the_same(spec in tree(), name in "[a-z]{1,4}|(?s).{1,8}") {
        let text = spec.to_toml(&name);
        // Parameters drawn one by one may contradict one another. Then both reading and building fail.
        match (Document::parse("printed", &text), spec.build(1)) {
            (Ok(document), Ok(_)) => prop_assert_eq!(document.queue(&name), Some(&spec)),
            (Err(error), Ok(_)) => prop_assert!(false, "{error:?} in\n{text}"),
            (Ok(_), Err(error)) => prop_assert!(false, "{error} was read from\n{text}"),
            (Err(_), Err(_)) => {}
        }
    }

    #[test]
    fn any_text_is_read_or_rejected(text in PIECES_OF_FILES) {
        if let Err(error) = Document::parse("any", &text) {
            for problem in error.problems() {
                prop_assert!(text.get(problem.span.clone()).is_some(), "{:?}", problem);
                prop_assert!(problem.position().0 >= 1);
            }
        }
        if let Err(error) = Spec::inline(&text) {
            prop_assert!(!error.problems().is_empty());
        }
    }
}

/// The property above also holds if no drawn tree can be built. This test excludes that.
#[test]
fn most_trees_that_are_drawn_can_be_built() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let good = (0..100)
        .filter(|_| tree().new_tree(&mut runner).unwrap().current().build(1).is_ok())
        .count();
    assert!(good > 30, "{good} of 100");
}

fn parse(text: &str) -> Spec {
    let document = Document::parse("test.toml", text).unwrap_or_else(|error| panic!("{error:?}"));
    document.queue("wan").expect("the text describes `wan`").clone()
}

#[test]
fn every_dscp_is_printed_as_it_is_read() {
    let drr = Registry::builtin()
        .entries("drr")
        .next()
        .expect("drr is a discipline");
    for dscp in 0..=63 {
        let condition = Match {
            dscp: Some(dscp..=dscp),
            ..Match::default()
        };
        let mut spec = crate::testing::smallest(drr);
        Arc::make_mut(&mut spec.settings).classifier.filters = vec![Filter {
            condition,
            outcome: Outcome::Class(1),
            ..Filter::default()
        }]
        .into();
        assert_eq!(parse(&spec.to_toml("wan")), spec);
    }
}

#[test]
fn a_tree_is_shown_with_its_filters_and_classes() {
    let spec = parse(
        "[queue.wan]
        discipline = 'tbf'
        rate = '20mbit'
        burst = 5000
        [queue.wan.inner]
        discipline = 'drr'
        handle = '1f'
        default = 2
        filter = [{ class = 1, dscp = 'EF', protocol = 'udp' }]
        estimator = '1s 8s'
        class = [
            { id = 1, estimator = '250ms 8s', quantum = 3000, discipline = 'fifo', limit = 10 },
            { id = 2, inner = { discipline = 'fq_codel', quantum = 300 } },
        ]",
    );
    assert_eq!(
        spec.to_string(),
        "\
tbf rate=20mbit burst=5000b
└─ drr handle=1f: default=2 estimator=1s,8s
   │  protocol=udp, dscp=EF goes to 1
   ├─ 1 estimator=250ms,8s quantum=3000b: fifo limit=10
   └─ 2: fq_codel quantum=300b"
    );
}

const RUNNING: &str = "
    [queue.wan]
    discipline = 'tbf'
    rate = '20mbit'
    burst = 5000
    [queue.wan.inner]
    discipline = 'prio'
    priomap = [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]
    class = [{ id = 1, discipline = 'fifo' }, { id = 2, discipline = 'codel' }]";

/// Returns the parameters of every node, from the root down.
fn configs(node: &dyn Discipline) -> Vec<String> {
    let mut found = vec![node.name().to_owned()];
    if let Some(config) = node.config().downcast_ref::<fairgate::queues::tbf::Config>() {
        found.push(format!("{config:?}"));
    }
    if let Some(config) = node.config().downcast_ref::<fairgate::queues::fifo::Config>() {
        found.push(format!("{config:?}"));
    }
    if let Some(config) = node.config().downcast_ref::<fairgate::aqm::codel::Config>() {
        found.push(format!("{config:?}"));
    }
    node.visit_classes(&mut |class| found.extend(configs(class.discipline)));
    found
}

/// Changes a running tree.
fn change(root: &mut Box<dyn Discipline>, running: &Spec, wanted: &Spec, pool: &mut Pool) {
    let change = running.change_to(wanted, 1).unwrap();
    change.apply(root, Time::ZERO, pool).unwrap();
}

#[test]
fn a_change_is_applied_all_the_way_down_and_keeps_packets() {
    let mut pool = Pool::with_capacity(64);
    let mut root = parse(RUNNING).build(1).unwrap();
    for _ in 0..10 {
        let id = pool.insert(Packet::of_length(100)).unwrap();
        root.enqueue(id, Time::ZERO, &mut pool);
    }
    let changed = parse(
        &RUNNING
            .replace("20mbit", "30mbit")
            .replace("'fifo'", "'fifo', limit = 4")
            .replace("'codel'", "'codel', target = '7ms'"),
    );
    change(&mut root, &parse(RUNNING), &changed, &mut pool);
    assert_eq!(
        configs(root.as_ref()),
        configs(changed.build(1).unwrap().as_ref())
    );
    let mut returned = 0;
    while let Some((id, _)) = pool.take_returned() {
        pool.release(id);
        returned += 1;
    }
    assert_eq!((returned, root.backlog().packets), (6, 4));
}

/// Replaces every part of [`RUNNING`] that differs, and nothing else.
#[test]
fn a_tree_of_another_shape_takes_over_what_both_have() {
    let wanted = [
        (RUNNING.replace("'codel'", "'fq_codel'"), 3),
        (RUNNING.replace(", { id = 2, discipline = 'codel' }", ""), 3),
        ("[queue.wan]\ndiscipline = 'codel'".to_owned(), 3),
    ];
    for (text, packets) in wanted {
        let mut pool = Pool::with_capacity(64);
        let mut root = parse(RUNNING).build(1).unwrap();
        for _ in 0..packets {
            let id = pool.insert(Packet::of_length(100)).unwrap();
            root.enqueue(id, Time::ZERO, &mut pool);
        }
        let changed = parse(&text);
        change(&mut root, &parse(RUNNING), &changed, &mut pool);
        assert_eq!(
            configs(root.as_ref()),
            configs(changed.build(1).unwrap().as_ref())
        );
        let statistics = root.statistics();
        assert_eq!(
            (statistics.enqueued.packets, statistics.backlog().packets),
            (packets, packets)
        );
    }
}

/// RED's own queue is not a class of it. A discipline inside RED is one. The packets move from one to the
/// other.
#[test]
fn an_own_queue_and_an_inner_discipline_are_distinguished() {
    let mut pool = Pool::with_capacity(4);
    let own = Spec::inline("red limit=90000").unwrap();
    let over = Spec::inline("red limit=90000 / fq_codel").unwrap();
    for (running, wanted) in [(&own, &over), (&over, &own)] {
        let mut root = running.build(1).unwrap();
        let id = pool.insert(Packet::of_length(100)).unwrap();
        root.enqueue(id, Time::ZERO, &mut pool);
        change(&mut root, running, wanted, &mut pool);
        assert_eq!(configs(root.as_ref()), configs(wanted.build(1).unwrap().as_ref()));
        assert_eq!(root.dequeue(Time::ZERO, &mut pool), Some(id));
        pool.release(id);
    }
    let mut root = over.build(1).unwrap();
    let changed = Spec::inline("red limit=60000 ecn=true / fq_codel target=7ms").unwrap();
    change(&mut root, &over, &changed, &mut pool);
    assert_eq!(
        configs(root.as_ref()),
        configs(changed.build(1).unwrap().as_ref())
    );
}

/// The shaper's own fifo and an inner one look the same from outside. The shaper itself rejects the change in
/// place. So a new one is built.
#[test]
fn what_a_discipline_refuses_in_place_is_built_anew() {
    let shaper = |rate: &str, rest: &str| {
        let fifo = |limit: u32| format!("{{ id = {limit}, discipline = 'fifo', limit = {limit} }}");
        format!(
            "[queue.wan]\ndiscipline = 'drr'\nclass = [{}, \
             {{ id = 9, discipline = 'tbf', rate = '{rate}', burst = 5000, {rest} }}]",
            fifo(3)
        )
    };
    let mut pool = Pool::with_capacity(64);
    let running = parse(&shaper("1mbit", "limit = 9000"));
    let mut root = running.build(1).unwrap();
    let changed =
        parse(&shaper("2mbit", "inner = { discipline = 'fifo' }").replace("limit = 3", "limit = 4"));
    change(&mut root, &running, &changed, &mut pool);
    assert_eq!(
        configs(root.as_ref()),
        configs(changed.build(1).unwrap().as_ref())
    );
}

const TREE: &str = "htb handle=1 default=20 { 1 rate=10mbit { 10 rate=6mbit ceil=10mbit / tbf rate=1mbit \
    burst=5kb / codel; 15 rate=2mbit{16 rate=1mbit prio=3 / fifo}; 20 rate=2mbit / fq_codel } }";

#[test]
fn a_tree_of_classes_is_read_from_a_line_and_shown_as_one() {
    let spec = Spec::inline(TREE).unwrap();
    let picture = "htb handle=1: default=20
└─ 1 rate=10mbit
   ├─ 10 rate=6mbit ceil=10mbit: tbf rate=1mbit burst=5kb
   │  └─ codel
   ├─ 15 rate=2mbit
   │  └─ 16 rate=1mbit prio=3: fifo
   └─ 20 rate=2mbit: fq_codel";
    assert_eq!(spec.to_string(), picture);
    let minors: Vec<(u32, bool)> = spec
        .classes()
        .iter()
        .map(|class| (class.minor, class.tree.is_some()))
        .collect();
    assert_eq!(
        minors,
        [(1, false), (10, true), (15, false), (16, true), (20, true)]
    );
    let document = Document::parse("printed", &spec.to_toml("wan")).unwrap();
    assert_eq!(document.queue("wan"), Some(&spec));
    let bands = Spec::inline("drr { 1 quantum=3000 / fifo limit=3; 2 / codel }").unwrap();
    assert_eq!(
        bands.to_string(),
        "drr\n├─ 1 quantum=3000b: fifo limit=3\n└─ 2: codel"
    );
}

/// Classes and their disciplines are added and removed. Packets stay queued if their class still exists.
#[test]
fn a_tree_of_classes_is_changed_in_place() {
    let mut pool = Pool::with_capacity(64);
    let running = Spec::inline(TREE).unwrap();
    let mut root = running.build(1).unwrap();
    for minor in [10, 16, 16, 20] {
        let packet = Packet {
            class: fairgate::ClassId::new(1, minor),
            ..Packet::of_length(100)
        };
        let id = pool.insert(packet).unwrap();
        root.enqueue(id, Time::ZERO, &mut pool);
    }
    let changed = TREE
        .replace(
            "15 rate=2mbit{16 rate=1mbit prio=3 / fifo}",
            "17 rate=1mbit / sfq",
        )
        .replace("burst=5kb / codel", "burst=9kb / fifo")
        .replace("20 rate=2mbit", "20 rate=3mbit");
    let changed = Spec::inline(&changed).unwrap();
    change(&mut root, &running, &changed, &mut pool);
    assert_eq!(
        configs(root.as_ref()),
        configs(changed.build(1).unwrap().as_ref())
    );
    assert!(pool.take_returned().is_none(), "nothing is lost");
    let mut backlogs = Vec::new();
    root.visit_classes(&mut |class| backlogs.push((class.minor, class.discipline.backlog().packets)));
    assert_eq!(backlogs, [(10, 1), (17, 0), (20, 3)]);
}

#[test]
fn a_curve_is_read_in_all_its_forms() {
    let text = "hfsc { 1 ul=8mbit { 2 rt=4mbit:10ms:1mbit / fifo; 3 rt=1500b:10ms:400kbit ls=none / fifo; \
                4 ls=0bit:1ms:2mbit / fifo } }";
    let spec = Spec::inline(text).unwrap();
    let shown = spec.to_string();
    for curve in [
        "ul=8mbit",
        "rt=4mbit:10ms:1mbit",
        "rt=1200kbit:10ms:400kbit ls=none",
        "ls=0bit:1ms:2mbit",
    ] {
        assert!(shown.contains(curve), "{curve} in {shown}");
    }
    let document = Document::parse("printed", &spec.to_toml("wan")).unwrap();
    assert_eq!(document.queue("wan"), Some(&spec));
}

const HOSTS: &str = "htb handle=1 default=100 { 1 rate=1gbit { 9 rate=1mbit / fifo; 100 each=destination \
    ipv6=56 count=4 overflow=9 rate=2mbit ceil=50mbit / fq_codel flows=16 } }";

#[test]
fn classes_for_hosts_are_read_from_a_line_and_shown_as_one() {
    let spec = Spec::inline(HOSTS).unwrap();
    let picture = "htb handle=1: default=100
└─ 1 rate=1gbit
   ├─ 9 rate=1mbit: fifo
   └─ 100 each=destination ipv6=56 count=4 overflow=9 rate=2mbit ceil=50mbit: fq_codel flows=16";
    assert_eq!(spec.to_string(), picture);
    assert_eq!(parse(&spec.to_toml("wan")), spec);
    let template = spec.classes()[2].template.cloned().unwrap();
    assert_eq!((template.classes(), template.overflow), (100..=103, 9));
    let mut minors = Vec::new();
    spec.build(1)
        .unwrap()
        .visit_classes(&mut |class| minors.push(class.minor));
    assert_eq!(minors, [9, 100, 101, 102, 103]);
}

/// All values of `each`, in a file and on the command line.
#[test]
fn every_field_that_distinguishes_hosts_is_printed_as_it_is_read() {
    let cases = [
        "each=source",
        "each=source,destination ipv4=24 ipv6=64",
        "each=source ipv4=0",
        "each=destination ipv4=0.0.0.255 ipv6=::ffff",
        "each=source_port,destination_port,protocol,vlan,mark",
        "each=mark/0xff00",
    ];
    for case in cases {
        let line = format!("drr {{ 1 / fifo; 10 {case} count=3 overflow=1 / fifo }}");
        let spec = Spec::inline(&line).unwrap_or_else(|error| panic!("{case}: {error:?}"));
        assert!(spec.to_string().contains(case), "{case}: {spec}");
        assert_eq!(parse(&spec.to_toml("wan")), spec, "{case}");
    }
    let short = Spec::inline("drr default=1 { 1 / fifo; 10 each=vlan count=3 / fifo }").unwrap();
    assert_eq!(short.classes()[1].template.unwrap().overflow, 1, "the default");
}

/// A subscriber keeps its class while the rate of all is changed, a class is added, and the number of classes
/// is lowered.
#[test]
fn classes_for_hosts_are_changed_while_packets_are_queued() {
    let mut pool = Pool::with_capacity(64);
    let running = Spec::inline(HOSTS).unwrap();
    let mut root = running.build(1).unwrap();
    let send = |root: &mut Box<dyn Discipline>, pool: &mut Pool, host: u8| {
        let key = FlowKey::of([10, 0, 0, 1].into(), [192, 0, 2, host].into(), 17, 1, 2);
        let id = pool.insert((Packet::of_length(100), key)).unwrap();
        root.enqueue(id, Time::ZERO, pool);
    };
    for host in [1, 2, 3, 1] {
        send(&mut root, &mut pool, host);
    }
    let changed = HOSTS
        .replace("rate=2mbit ceil=50mbit", "rate=3mbit ceil=60mbit")
        .replace("9 rate=1mbit", "8 rate=5mbit / fifo; 9 rate=1mbit")
        .replace("count=4", "count=2");
    let changed = Spec::inline(&changed).unwrap();
    change(&mut root, &running, &changed, &mut pool);
    assert_eq!(
        configs(root.as_ref()),
        configs(changed.build(1).unwrap().as_ref())
    );
    send(&mut root, &mut pool, 2);
    assert!(pool.take_returned().is_none(), "nothing is lost");
    let mut held = Vec::new();
    root.visit_classes(&mut |class| {
        let host = match class.holder {
            Holder::Host(tenant) => tenant.to_string(),
            Holder::Free => "free".to_owned(),
            Holder::Anyone => "all".to_owned(),
        };
        held.push((class.minor, host, class.discipline.backlog().packets));
    });
    let expected = [
        (8, "all", 0),
        (9, "all", 1),
        (100, "192.0.2.1", 2),
        (101, "192.0.2.2", 2),
    ];
    let held: Vec<_> = held
        .iter()
        .map(|(minor, host, count)| (*minor, host.as_str(), *count))
        .collect();
    assert_eq!(held, expected, "the third host lost its class");
}

/// An example that sets a flag to its default would suggest that the default is different.
#[test]
fn no_flag_in_the_documentation_is_set_to_its_default() {
    const CONFIGURATION: &str = include_str!("../../../../docs/configuration.md");
    fn walk(spec: &Spec, seen: &mut usize) {
        let own = spec
            .settings
            .own
            .iter()
            .map(|setting| (spec.entry.parameters(), setting));
        let classes = spec.settings.classes.iter().flat_map(|class| &class.settings);
        let of_classes = classes.map(|setting| (spec.entry.class_parameters(), setting));
        for (parameters, (index, value)) in own.chain(of_classes) {
            let info = &parameters[*index];
            if info.unit == Unit::Flag {
                assert_ne!(
                    Some(value),
                    info.default.as_ref(),
                    "`{}` of `{}`",
                    info.name,
                    spec.discipline()
                );
                *seen += 1;
            }
        }
        spec.children.iter().for_each(|child| walk(child, seen));
    }
    let mut seen = 0;
    for block in CONFIGURATION.split("```toml").skip(1) {
        let block = block.split("```").next().unwrap_or("");
        // Other blocks show a part of a tree, or another section.
        if let Ok(document) = Document::parse("configuration.md", block) {
            document.queues().for_each(|(_, spec)| walk(spec, &mut seen));
        }
    }
    assert!(seen > 0);
}

/// Equal disciplines are built once during a check, however many classes have them.
#[test]
fn a_check_builds_what_is_equal_once() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use fairgate::fifo::{self, Fifo};
    use fairgate::registry::{About, Description};

    static BUILT: AtomicUsize = AtomicUsize::new(0);
    static LARGE: Description<fifo::Config> = Description::new(
        About::new("large", "A queue", "In this test."),
        fifo::PARAMETERS,
        |_| fifo::Config::default(),
        |config, _| {
            BUILT.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(Fifo::node(config)?))
        },
    );
    let mut registry = Registry::builtin();
    registry.add(&LARGE).unwrap();
    let class = |number: usize| format!("{number} / large limit={}", 10 + number % 3);
    let classes: Vec<String> = (1..=200).map(class).collect();
    let tree = format!("drr {{ {} }}", classes.join("; "));
    Spec::inline_with(&tree, &registry).unwrap();
    assert_eq!(BUILT.load(Ordering::Relaxed), 3);
}
