//! Random parameters of each discipline. Limits are small, so that queues fill, and there are few flows, so
//! that they collide. The tests of each discipline check the settings that it must reject.

mod aqm;
mod implicit;
mod netem;
mod sharing;
mod timed;

use std::num::NonZeroU32;
use std::time::Duration;

use fairgate::aqm::codel;
use fairgate::classify::{
    AddressMask, Average, Classifier, Computed, Control, Edit, Field, Filter, HostBy, Masked, Match, Measure,
    Outcome, Police, Prefix, Rule, Template, Templates,
};
use fairgate::flow::FlowBy;
use fairgate::queues::fifo::DropFrom;
use fairgate::queues::policer::{self, Exceed};
use fairgate::queues::token_bucket::{Peak, Profile};
use fairgate::queues::{fifo, leaky_bucket, pfifo_fast, prio, tbf};
use fairgate::rounds::cake::{self, AckFilter, Cells, Framing, Isolation, Tins};
use fairgate::rounds::{drr, drr_classes, ets, fq, fq_codel, mq, msfc, sfq};
use fairgate::scheduler::{MAX_PACKET, Scheduler, classes, flows};
use fairgate::sharding;
use fairgate::timestamps::pfq::{self, Pfq};
use fairgate::timestamps::wfq::{self, Wfq};
use fairgate::timestamps::{MAX_WEIGHT, Share, Weight};
use fairgate::{ClassId, LinkLayer, Rate};
use fairgate_conformance::proptest::array::{uniform16, uniform32};
use fairgate_conformance::proptest::collection::vec;
use fairgate_conformance::proptest::option;
use fairgate_conformance::proptest::prelude::*;
use fairgate_conformance::proptest::sample::{select, subsequence};

pub(crate) use aqm::{ared, choke, dualpi2, fq_pie, gred, hhf, pie, red, red_over, rred, sfb, wred};
pub(crate) use implicit::{admission, hsqf, lqf, pdrr, sqf};
pub(crate) use netem::{busy_link, netem};
pub(crate) use sharing::{cbq, hfsc, hfsc_without_classes, htb, htb_without_classes};
pub(crate) use timed::{cbs, etf};

pub(crate) fn fifo() -> impl Strategy<Value = fifo::Config> {
    (option::of(1u32..40), option::of(1u64..20_000), drop_from()).prop_map(
        |(limit_packets, limit_bytes, drop_from)| fifo::Config {
            limit_packets,
            limit_bytes,
            drop_from,
        },
    )
}

pub(crate) fn pfifo_fast() -> impl Strategy<Value = pfifo_fast::Config> {
    (1u32..30).prop_map(|limit| pfifo_fast::Config { limit })
}

pub(crate) fn prio(bands: usize) -> impl Strategy<Value = prio::Config> {
    (uniform16(0..bands as u8), classifier(bands))
        .prop_map(|(priomap, classifier)| prio::Config { priomap, classifier })
}

/// tbf with its own fifo.
pub(crate) fn tbf() -> impl Strategy<Value = tbf::Config> {
    let limit = prop_oneof![
        (1u64..50_000).prop_map(tbf::Limit::Bytes),
        (1u64..200_000_000).prop_map(tbf::Limit::Latency),
    ];
    (tbf_over(1), limit).prop_map(|(config, limit)| tbf::Config {
        limit: Some(limit),
        ..config
    })
}

/// tbf with another discipline as its child.
pub(crate) fn tbf_over(_classes: usize) -> impl Strategy<Value = tbf::Config> {
    profile().prop_map(|profile| tbf::Config { profile, limit: None })
}

fn profile() -> impl Strategy<Value = Profile> {
    (
        10_000u64..1_000_000_000,
        1_000u32..20_000,
        option::of((1u64..100_000_000, 500u32..5_000)),
    )
        .prop_map(|(bits, burst, peak)| Profile {
            peak: peak.map(|(above, mtu)| Peak {
                rate: rate(bits + above),
                mtu,
            }),
            ..Profile::new(rate(bits), burst)
        })
}

pub(crate) fn leaky_bucket() -> impl Strategy<Value = leaky_bucket::Config> {
    (10_000u64..1_000_000_000, 1u64..50_000).prop_map(|(bits, bucket)| leaky_bucket::Config {
        rate: rate(bits),
        bucket,
    })
}

pub(crate) fn policer(_classes: usize) -> impl Strategy<Value = policer::Config> {
    // The DSCP is odd. No packet arrives with such a DSCP, so remarked packets can be recognised.
    let remark = (0u8..32).prop_map(|half| Exceed::Remark(2 * half + 1));
    let exceed = prop_oneof![Just(Exceed::Drop), remark];
    (profile(), exceed).prop_map(|(profile, exceed)| policer::Config { profile, exceed })
}

pub(crate) fn quantum() -> impl Strategy<Value = drr::Quantum> + Clone {
    (64u32..3000).prop_map(drr::Quantum)
}

pub(crate) fn drr_classes(classes: usize) -> impl Strategy<Value = drr_classes::Config> {
    (vec(64u32..3000, classes), classification(classes)).prop_map(|(quanta, (classifier, templates))| {
        drr_classes::Config {
            classifier,
            classes: (1..)
                .zip(quanta)
                .map(|(minor, quantum)| drr_classes::ClassConfig { minor, quantum })
                .collect(),
            templates,
        }
    })
}

/// Any number of bands may be strict, so that changes move bands between the two kinds.
pub(crate) fn ets(bands: usize) -> impl Strategy<Value = ets::Config> {
    (
        0..=bands,
        vec(256u32..3000, bands),
        uniform16(0..bands as u8),
        classifier(bands),
    )
        .prop_map(move |(strict, quanta, priomap, classifier)| ets::Config {
            strict: strict as u8,
            quanta: quanta[strict..].to_vec(),
            priomap,
            classifier,
        })
}

/// Bands of two traffic classes, if there are two bands.
pub(crate) fn mq(bands: usize) -> impl Strategy<Value = mq::Config> {
    let last = (bands > 1).into();
    (vec(0..=last, bands), uniform16(0..=last), classifier(bands)).prop_map(
        move |(mut traffic_classes, priomap, classifier)| {
            traffic_classes[0] = 0;
            traffic_classes[bands - 1] = last;
            mq::Config {
                priomap,
                traffic_classes,
                classifier,
            }
        },
    )
}

fn flow_red() -> impl Strategy<Value = sfq::FlowRed> {
    (1000u32..6000, any::<bool>(), any::<bool>()).prop_map(|(min, ecn, harddrop)| sfq::FlowRed {
        min: Some(min),
        burst: Some(20),
        avpkt: 300,
        ecn,
        harddrop,
        ..sfq::FlowRed::default()
    })
}

pub(crate) fn sfq() -> impl Strategy<Value = sfq::Config> {
    (
        (2u32..60, 1u32..20, 1u32..20, 0u32..6, 64u32..3000),
        drop_from(),
        (
            option::of((1u64..1_000).prop_map(Duration::from_millis)),
            option::of(flow_red()),
        ),
    )
        .prop_flat_map(|(numbers, drop_from, perturb)| {
            let buckets = 1 << numbers.3;
            (Just((numbers, drop_from, perturb)), classifier(buckets))
        })
        .prop_map(
            |(((limit, depth, flows, log2_divisor, quantum), drop_from, (perturb, red)), classifier)| {
                sfq::Config {
                    red: red.unwrap_or_default(),
                    limit,
                    depth,
                    flows,
                    divisor: 1 << log2_divisor,
                    quantum,
                    drop_from,
                    perturb,
                    classifier,
                }
            },
        )
}

pub(crate) fn codel() -> impl Strategy<Value = codel::Config> {
    (1u32..60, option::of(2000u32..60_000), codel_params()).prop_map(|(limit, limit_bytes, codel)| {
        codel::Config {
            limit,
            limit_bytes,
            codel,
        }
    })
}

pub(crate) fn fq() -> impl Strategy<Value = fq::Config> {
    let millis = |range: std::ops::Range<u64>| range.prop_map(Duration::from_millis);
    (
        (1u32..60, 1u32..20, 1u32..20, 256u32..3000, 0u32..20_000),
        option::of((10_000u64..1_000_000_000).prop_map(rate)),
        option::of((10_000u64..100_000_000).prop_map(rate)),
        (millis(0..100), millis(0..100), option::of(millis(0..100))),
        prop_oneof![Just(fq::BeyondHorizon::Drop), Just(fq::BeyondHorizon::Hold)],
    )
        .prop_flat_map(|numbers| (classifier(numbers.0.2 as usize), Just(numbers)))
        .prop_map(
            |(classifier, (numbers, maxrate, low_rate_threshold, times, beyond_horizon))| {
                let (limit, flow_limit, flows, quantum, initial_quantum) = numbers;
                let (refill_delay, horizon, ce_threshold) = times;
                fq::Config {
                    limit,
                    flow_limit,
                    flows,
                    quantum,
                    initial_quantum,
                    maxrate,
                    low_rate_threshold,
                    refill_delay,
                    horizon,
                    beyond_horizon,
                    ce_threshold,
                    classifier,
                }
            },
        )
}

pub(crate) fn cake() -> impl Strategy<Value = cake::Config> {
    let tins = prop::sample::select(vec![
        Tins::Besteffort,
        Tins::Precedence,
        Tins::Diffserv3,
        Tins::Diffserv4,
        Tins::Diffserv8,
    ]);
    let isolation = prop::sample::select(vec![
        Isolation::Flowblind,
        Isolation::SourceHosts,
        Isolation::DestinationHosts,
        Isolation::Hosts,
        Isolation::Flows,
        Isolation::DualSource,
        Isolation::DualDestination,
        Isolation::Triple,
    ]);
    let ack_filter = prop::sample::select(vec![AckFilter::Off, AckFilter::On, AckFilter::Aggressive]);
    let bandwidth = option::of((10_000u64..1_000_000_000).prop_map(rate));
    let rtt = (1_000u64..200_000_000).prop_map(Duration::from_nanos);
    (
        (bandwidth, framing(), 0u16..40, isolation, rtt),
        (any::<bool>(), any::<bool>(), any::<bool>(), 0u32..4, 64u32..3000),
        (option::of(1_000u64..100_000), tins, ack_filter),
    )
        .prop_flat_map(|choices| (classifier(choices.2.1.count() as usize), Just(choices)))
        .prop_map(
            |(
                classifier,
                ((bandwidth, framing, link_header, isolation, rtt), rest, (memory_limit, tins, ack_filter)),
            )| {
                let (wash, ingress, autorate, fwmark, mtu) = rest;
                cake::Config {
                    bandwidth,
                    framing,
                    link_header,
                    tins,
                    classifier,
                    fwmark,
                    isolation,
                    wash,
                    ingress,
                    autorate,
                    ack_filter,
                    rtt,
                    memory_limit,
                    mtu,
                }
            },
        )
}

fn framing() -> impl Strategy<Value = Framing> {
    let cells = prop::sample::select(vec![Cells::None, Cells::Atm, Cells::Ptm]);
    (option::of(0u16..=256), 0u16..=256, cells).prop_map(|(overhead, mpu, cells)| Framing {
        overhead,
        mpu,
        cells,
    })
}

pub(crate) fn fq_codel() -> impl Strategy<Value = fq_codel::Config> {
    (
        1u32..60,
        1_000u64..100_000,
        1u32..20,
        256u32..3000,
        1u32..70,
        codel_params(),
    )
        .prop_flat_map(|numbers| (classifier(numbers.2 as usize), Just(numbers)))
        .prop_map(
            |(classifier, (limit, memory_limit, flows, quantum, drop_batch, codel))| fq_codel::Config {
                limit,
                memory_limit,
                flows,
                quantum,
                drop_batch,
                classifier,
                codel,
            },
        )
}

pub(crate) fn msfc() -> impl Strategy<Value = msfc::Config> {
    (1u8..5, 1u32..4, fq_codel())
        .prop_flat_map(|(prios, ratio, flows)| {
            let by_dscp = [uniform32(0..prios), uniform32(0..prios)].prop_map(|halves| {
                let map = halves.concat().try_into().expect("twice 32 are 64");
                msfc::ClassBy::Dscp(map)
            });
            let by_priority = uniform16(0..prios).prop_map(msfc::ClassBy::Priority);
            let class_by = prop_oneof![by_dscp, by_priority];
            let auto = (10u64..500, 1u32..4).prop_map(|(millis, drops)| msfc::AutoPriority {
                interval: Duration::from_millis(millis),
                drops,
            });
            (
                Just((prios, ratio, flows)),
                (any::<bool>(), option::of(auto)),
                class_by,
                classifier(prios.into()),
            )
        })
        .prop_map(
            |((prios, ratio, flows), (flow_aware, auto_priority), class_by, classifier)| msfc::Config {
                prios,
                flow_aware,
                auto_priority,
                flows: flows.flows,
                quantum: flows.quantum,
                ratio,
                limit: flows.limit,
                memory_limit: flows.memory_limit,
                drop_batch: flows.drop_batch,
                classifier,
                class_by,
                codel: flows.codel,
            },
        )
}

/// A scheduler over flows. There are few flows, so that they collide. Some have their own share.
pub(crate) fn flows<S: Scheduler<Settings: Default>>(
    share: impl Strategy<Value = S::Share> + Clone,
) -> impl Strategy<Value = flows::ConfigOf<S>> {
    (1u32..20, 1u32..60)
        .prop_flat_map(move |(flows, limit)| {
            let shares = vec(share.clone(), 0..=flows.min(4) as usize);
            (
                Just((flows, limit)),
                share.clone(),
                shares,
                classifier(flows as usize),
            )
        })
        .prop_map(|((flows, limit), share, shares, classifier)| flows::Config {
            flows,
            limit,
            share,
            shares,
            settings: S::Settings::default(),
            classifier,
        })
}

/// Any rate: that of the suite's driver, or far from it.
pub(crate) fn wfq() -> impl Strategy<Value = flows::ConfigOf<Wfq>> {
    (flows::<Wfq>(weight()), 1u64..100_000_000_000).prop_map(|(config, bits)| flows::Config {
        settings: wfq::Settings { rate: rate(bits) },
        ..config
    })
}

pub(crate) fn pfq() -> impl Strategy<Value = flows::ConfigOf<Pfq>> {
    (flows::<Pfq>(weight()), 1u32..10_000, any::<bool>()).prop_map(|(config, quantum, exact)| flows::Config {
        settings: pfq::Settings { quantum, exact },
        ..config
    })
}

/// A scheduler over `classes` classes.
pub(crate) fn classes<S: Scheduler<Settings: Default>>(
    classes: usize,
    share: impl Strategy<Value = S::Share>,
) -> impl Strategy<Value = classes::ConfigOf<S>> {
    (vec(share, classes), classification(classes)).prop_map(|(shares, (classifier, templates))| {
        classes::Config {
            classifier,
            classes: (1..)
                .zip(shares)
                .map(|(minor, share)| classes::ClassConfig { minor, share })
                .collect(),
            templates,
            settings: S::Settings::default(),
        }
    })
}

/// The share of a scheduler with weights only.
pub(crate) fn weight() -> BoxedStrategy<Weight> {
    weights().prop_map(Weight).boxed()
}

/// The share of a scheduler with a longest packet. It is mostly shorter than the longest packet that arrives.
pub(crate) fn share() -> BoxedStrategy<Share> {
    (weights(), prop_oneof![1u32..2000, 1u32..MAX_PACKET])
        .prop_map(|(weight, max_packet)| Share { weight, max_packet })
        .boxed()
}

fn weights() -> impl Strategy<Value = u32> {
    prop_oneof![1u32..10, 1u32..=MAX_WEIGHT]
}

fn codel_params() -> impl Strategy<Value = codel::Params> {
    let below = |most: u64| (2_000u64..most).prop_map(Duration::from_nanos);
    (
        below(20_000_000),
        below(200_000_000),
        any::<bool>(),
        option::weighted(0.2, below(20_000_000)),
        (0u8..4, 0u8..4),
        0u32..3000,
    )
        .prop_map(
            |(target, interval, ecn, ce_threshold, selects, mtu)| codel::Params {
                target,
                interval,
                ecn,
                ce_threshold,
                ce_threshold_selector: selects.0 & selects.1,
                ce_threshold_mask: selects.1,
                mtu,
            },
        )
}

/// Filters for classes 1 to `classes`, on all fields in which the suite's packets differ.
fn classifier(classes: usize) -> impl Strategy<Value = Classifier> {
    let class = 1..=classes as u32;
    let filter =
        (0u16..3, condition(), class.clone(), deed()).prop_map(|(preference, condition, class, deed)| {
            Filter {
                preference,
                condition,
                outcome: match deed.outcome {
                    Outcome::Unclassified => class.into(),
                    other => other,
                },
                ..deed
            }
        });
    (0u16..2, vec(filter, 0..4), option::of(class)).prop_map(|(handle, filters, default)| Classifier {
        handle,
        filters: filters.into(),
        default,
    })
}

/// A classifier as above, and a template that may give some of the classes to hosts, if another class remains
/// for overflow. Filters and default never name another class of the template than its first.
fn classification(classes: usize) -> impl Strategy<Value = (Classifier, Templates)> {
    let all = classes as u32;
    let template =
        (1..=all, 1..=all, 1..=all, any::<[bool; 7]>()).prop_map(move |(class, count, overflow, by)| {
            let count = count.min(all + 1 - class);
            let mask = AddressMask::of_prefixes(30, 128).expect("30 bits");
            let template = Template {
                class,
                count,
                by: HostBy {
                    source: by[0].then_some(mask),
                    destination: by[1].then_some(AddressMask::ALL),
                    source_port: by[2],
                    destination_port: by[3],
                    protocol: by[4],
                    vlan: by[5],
                    mark: if by[6] { 1 } else { 0 },
                },
                overflow,
            };
            let is_valid = template.by != HostBy::default() && !template.classes().contains(&overflow);
            is_valid.then_some(template)
        });
    (classifier(classes), option::of(template), any::<u64>()).prop_map(|(classifier, template, seed)| {
        let list: Vec<Template> = template.flatten().into_iter().collect();
        let first = |class: u32| {
            let template = list.iter().find(|template| template.classes().contains(&class));
            template.map_or(class, |template| template.class) as u16
        };
        let filters = classifier.filters.iter().map(|filter| Filter {
            outcome: filter.outcome.map_class(first),
            ..filter.clone()
        });
        let classifier = Classifier {
            filters: filters.collect(),
            default: classifier.default.map(|class| first(class).into()),
            ..classifier
        };
        (classifier, Templates { list, seed })
    })
}

/// What a filter does besides choosing a class. Its outcome is `Unclassified` if it chooses one. Most do
/// nothing else.
fn deed() -> impl Strategy<Value = Filter> {
    let control = || {
        select(vec![
            Control::Pass,
            Control::Drop,
            Control::Continue,
            Control::Reclassify,
            Control::Default,
        ])
    };
    let measure = prop_oneof![
        (1u64..20_000_000, 60u32..6000)
            .prop_map(|(bits, burst)| Measure::Bytes(Profile::new(rate(bits), burst))),
        (1u64..20_000_000, 60u32..6000)
            .prop_map(|(bits, burst)| Measure::ExactBytes(Profile::new(rate(bits), burst))),
        (1u64..2000, 1u32..5).prop_map(|(rate, burst)| Measure::Packets { rate, burst }),
    ];
    // If conforming and exceeding packets both pass, they go the same way: the suite checks their order.
    let controls = (control(), control()).prop_map(|(conform, exceed)| match (conform, exceed) {
        (Control::Pass, Control::Continue | Control::Default)
        | (Control::Continue | Control::Default, Control::Pass)
        | (Control::Continue, Control::Default)
        | (Control::Default, Control::Continue) => (conform, conform),
        both => both,
    });
    let average = option::of(
        (1000u64..20_000_000, 1u8..4).prop_map(|(bits, weight_log)| Average {
            rate: rate(bits),
            sample_log: 0,
            weight_log,
        }),
    );
    let police = (measure, average, 200u32..3000, controls).prop_map(
        |(measure, average, longest, (conform, exceed))| Police {
            measure,
            average,
            longest,
            conform,
            exceed,
        },
    );
    let edit = (0u8..18, 0u32..3, option::of(0u8..64)).prop_map(|(priority, mark, dscp)| Edit {
        priority: (priority < 16).then_some(priority),
        class: (priority == 16).then_some(ClassId::new(1, 2)),
        mark: Masked::<u32>::new(mark & 2, 2).ok(),
        dscp,
    });
    let outcome = prop_oneof![
        6 => Just(Outcome::Unclassified),
        1 => Just(Outcome::Drop),
        2 => Just(Outcome::Continue),
        1 => (0u32..3).prop_map(Outcome::Chain),
        2 => computed().prop_map(Outcome::Computed),
    ];
    let chain = (0u32..6).prop_map(|chain| chain.saturating_sub(3));
    let deed = (option::of(police), edit, outcome, chain).prop_map(|(police, edit, outcome, chain)| Filter {
        police,
        edit,
        outcome,
        chain,
        ..Filter::default()
    });
    prop_oneof![2 => Just(Filter::default()), 1 => deed]
}

/// A class that is computed. It may be one that does not exist.
fn computed() -> impl Strategy<Value = Computed> {
    let fields = subsequence(Field::ALL.to_vec(), 1..4);
    // The key stays: the suite checks the order of packets of a flow.
    let hash = fields.prop_map(|fields| Rule::Hash {
        fields: fields.into_iter().collect(),
        perturb: None,
    });
    let number =
        (select(Field::ALL.to_vec()), 0u32..8, 0u8..3).prop_map(|(field, and, shift)| Rule::Number {
            field,
            and,
            xor: 1,
            shift,
            add: 1,
        });
    (0u16..3, 0u32..5, prop_oneof![hash, number]).prop_map(|(first, count, rule)| {
        Computed::new(first, NonZeroU32::new(count), rule).expect("it is right")
    })
}

fn condition() -> impl Strategy<Value = Match> {
    let prefix = |last: u8, length: u8| {
        Prefix::new([10, 0, 0, last].into(), length).expect("at most 32 bits of an IPv4 address")
    };
    prop_oneof![
        (0u8..64, 0u8..64).prop_map(|(from, to)| Match {
            dscp: Some(from..=to),
            ..Match::default()
        }),
        (0u8..16, 0u8..16).prop_map(|(from, to)| Match {
            priority: Some(from..=to),
            ..Match::default()
        }),
        (0u32..3).prop_map(|mark| Match {
            mark: Some(Masked::<u32>::exactly(mark)),
            ..Match::default()
        }),
        (0u8..16, 28u8..33).prop_map(move |(last, length)| Match {
            source: Some(prefix(last, length)),
            ..Match::default()
        }),
        prop_oneof![Just(6), Just(17)].prop_map(|protocol| Match {
            protocol: Some(protocol),
            ..Match::default()
        }),
    ]
}

fn drop_from() -> impl Strategy<Value = DropFrom> {
    prop_oneof![Just(DropFrom::Tail), Just(DropFrom::Head)]
}

/// What shards divide is fixed at construction.
pub(crate) fn sharded() -> impl Strategy<Value = sharding::Config> {
    (10_000u64..1_000_000_000, 0u32..100_000).prop_map(|(bits, burst)| sharding::Config {
        limit: sharding::Limit {
            rate: rate(bits),
            burst,
            lengths: sharding::Lengths::LinkLayer(LinkLayer::NONE),
        },
        key: sharding::Key::Flows(FlowBy::FiveTuple),
    })
}

pub(crate) fn rate(bits: u64) -> Rate {
    Rate::from_bits_per_second(bits).expect("above 0")
}
