//! The disciplines that are measured, with parameters under which nothing is dropped or held back.

use std::time::Duration;

use fairgate::aqm::ared::{self, Ared};
use fairgate::aqm::choke::{self, Choke};
use fairgate::aqm::codel::{self, Codel};
use fairgate::aqm::dualpi2::{self, DualPi2};
use fairgate::aqm::gred::{self, Gred};
use fairgate::aqm::pie::{self, Pie};
use fairgate::aqm::red::{self, Red};
use fairgate::aqm::rred::{self, Rred};
use fairgate::aqm::sfb::{self, Sfb};
use fairgate::aqm::wred::{self, Wred};
use fairgate::classify::Classifier;
use fairgate::implicit::admission::{self, Admission};
use fairgate::implicit::hsqf::{self, Hsqf};
use fairgate::implicit::lqf::Lqf;
use fairgate::implicit::pdrr::{self, Pdrr};
use fairgate::implicit::sqf::{self, Sqf};
use fairgate::queues::busy_link::{self, BusyLink};
use fairgate::queues::cbs::{self, Cbs};
use fairgate::queues::etf::{self, Etf};
use fairgate::queues::fifo::{self, Fifo};
use fairgate::queues::leaky_bucket::{self, LeakyBucket};
use fairgate::queues::netem::{self, Netem};
use fairgate::queues::pfifo_fast::{self, PfifoFast};
use fairgate::queues::policer::{self, Policer};
use fairgate::queues::prio::{self, Prio};
use fairgate::queues::tbf::{self, Tbf};
use fairgate::rounds::cake::{self, Cake};
use fairgate::rounds::drr::Drr;
use fairgate::rounds::ets::{self, Ets};
use fairgate::rounds::fq::{self, Fq};
use fairgate::rounds::fq_codel::{self, FqCodel};
use fairgate::rounds::fq_nagle::FqNagle;
use fairgate::rounds::fq_pie::{self, FqPie};
use fairgate::rounds::hhf::{self, Hhf};
use fairgate::rounds::mq::{self, Mq};
use fairgate::rounds::msfc::{self, Msfc};
use fairgate::rounds::sfq::{self, Sfq};
use fairgate::scheduler::{Flows, Scheduler, flows};
use fairgate::sharing::cbq::{self, Cbq};
use fairgate::sharing::hfsc::{self, Hfsc, ServiceCurve};
use fairgate::sharing::htb::{self, Htb};
use fairgate::timestamps::frr::Frr;
use fairgate::timestamps::gfq::Gfq;
use fairgate::timestamps::pfq::Pfq;
use fairgate::timestamps::qfq::Qfq;
use fairgate::timestamps::qfq_plus::QfqPlus;
use fairgate::timestamps::s_kps::SKps;
use fairgate::timestamps::scfq::Scfq;
use fairgate::timestamps::wf2q_plus::Wf2qPlus;
use fairgate::timestamps::wfq::{self, Wfq};
use fairgate::{Discipline, Probability, Rate};

/// The name of a discipline, and the function that creates it for a number of flows.
pub(crate) type Subject = (&'static str, fn(u32) -> Box<dyn Discipline>);

/// All disciplines, in the order of the documentation.
pub(crate) const SUBJECTS: [Subject; 49] = [
    ("fifo", |_| fifo()),
    ("pfifo_fast", |_| {
        let config = pfifo_fast::Config { limit: PLENTY };
        Box::new(PfifoFast::node(config).expect(VALID))
    }),
    ("prio", |_| {
        let bands = vec![fifo(), fifo(), fifo()];
        Box::new(Prio::node(prio::Config::default(), bands).expect(VALID))
    }),
    ("tbf", |_| {
        let config = tbf::Config {
            limit: Some(tbf::Limit::Bytes(u64::from(PLENTY) * 1000)),
            ..tbf::Config::of_rate(faster())
        };
        Box::new(Tbf::node(config, None).expect(VALID))
    }),
    ("leaky_bucket", |_| {
        let config = leaky_bucket::Config {
            bucket: u64::from(PLENTY) * 1000,
            ..leaky_bucket::Config::of_rate(faster())
        };
        Box::new(LeakyBucket::node(config).expect(VALID))
    }),
    ("policer", |_| {
        Box::new(Policer::node(policer::Config::of_rate(faster()), fifo()).expect(VALID))
    }),
    ("cbs", |_| {
        let config = cbs::Config {
            idleslope: faster(),
            sendslope: Rate::mbit(1000),
            ..cbs::Config::default()
        };
        Box::new(Cbs::node(config, Some(fifo())).expect(VALID))
    }),
    ("etf", |_| {
        let config = etf::Config {
            delta: LEAD,
            ..etf::Config::default()
        };
        Box::new(Etf::node(config).expect(VALID))
    }),
    ("netem", |_| {
        let config = netem::Config {
            limit: PLENTY,
            // The oldest packet has waited as long as that.
            delay: Duration::from_nanos(100),
            ..netem::Config::default()
        };
        Box::new(Netem::node(config, SEED, None).expect(VALID))
    }),
    ("busy_link", |_| {
        let config = busy_link::Config {
            burst: u32::MAX,
            ..busy_link::Config::of_rate(faster())
        };
        Box::new(BusyLink::node(config, SEED, fifo()).expect(VALID))
    }),
    ("red", |_| Box::new(Red::node(below_red(), SEED).expect(VALID))),
    ("ared", |_| {
        let config = ared::Config {
            // `min` is half of what the link sends in this time.
            target: Duration::from_millis(10),
            ..ared::Config::of_rate(faster())
        };
        Box::new(Ared::node(config, SEED).expect(VALID))
    }),
    ("wred", |_| {
        let red = below_red();
        let profile = wred::Profile {
            min: 40_000_000,
            max: 60_000_000,
            probability: red.probability,
        };
        let config = wred::Config {
            limit: red.limit,
            avpkt: red.avpkt,
            burst: red.burst,
            profiles: [profile; 3],
            ..wred::Config::default()
        };
        Box::new(Wred::node(config, SEED).expect(VALID))
    }),
    // One virtual queue, and no packet is dropped or marked.
    ("gred", |_| {
        let config = gred::Config {
            limit: u32::MAX,
            queues: 1,
            limits: vec![u32::MAX],
            min: vec![1 << 29],
            max: vec![1 << 30],
            probability: vec![0],
            ..gred::Config::default()
        };
        Box::new(Gred::node(config, SEED).expect(VALID))
    }),
    ("rred", |_| {
        let config = rred::Config {
            red: below_red(),
            ..rred::Config::default()
        };
        Box::new(Rred::node(config, SEED).expect(VALID))
    }),
    ("choke", |_| {
        let config = choke::Config {
            limit: 100_000,
            min: Some(40_000),
            max: Some(60_000),
            burst: Some(50_000),
            ..choke::Config::default()
        };
        Box::new(Choke::node(config, SEED).expect(VALID))
    }),
    // No packet is dropped or marked.
    ("sfb", |_| {
        let config = sfb::Config {
            limit: PLENTY,
            max: Some(65_535),
            increment: Probability::ZERO,
            ..sfb::Config::default()
        };
        Box::new(Sfb::node(config, SEED).expect(VALID))
    }),
    ("codel", |_| {
        let config = codel::Config {
            limit: PLENTY,
            codel: patient(),
            ..codel::Config::default()
        };
        Box::new(Codel::node(config).expect(VALID))
    }),
    ("pie", |_| {
        let config = pie::Config {
            limit: PLENTY,
            pie: calm(),
            ..pie::Config::default()
        };
        Box::new(Pie::node(config, SEED).expect(VALID))
    }),
    // All packets are in the queue of classic senders.
    ("dualpi2", |_| {
        let config = dualpi2::Config {
            limit: PLENTY,
            memory_limit: Some(u64::MAX),
            target: Duration::from_secs(1),
            ..dualpi2::Config::default()
        };
        Box::new(DualPi2::node(config, SEED).expect(VALID))
    }),
    ("fq_nagle", scheduler::<FqNagle>),
    ("drr", scheduler::<Drr>),
    ("ets", |_| {
        let config = ets::Config {
            // Half of the priorities go to the strict band, the others to the bands that share by round
            // robin.
            priomap: [0, 1, 0, 2, 0, 1, 0, 2, 0, 1, 0, 2, 0, 1, 0, 2],
            ..ets::Config::of_bands(1, vec![1514, 1514])
        };
        Box::new(Ets::node(config, vec![fifo(), fifo(), fifo()]).expect(VALID))
    }),
    ("mq", |_| {
        let bands = vec![fifo(), fifo(), fifo()];
        Box::new(Mq::node(mq::Config::of_bands(bands.len()), bands).expect(VALID))
    }),
    ("fq", |flows| {
        let config = fq::Config {
            limit: PLENTY,
            flows: queues(flows),
            ..fq::Config::default()
        };
        Box::new(Fq::node(config, SEED).expect(VALID))
    }),
    ("sfq", |flows| {
        let config = sfq::Config {
            flows: queues(flows).min(65_408),
            divisor: queues(flows),
            // As many packets as slots, like Linux's defaults.
            limit: queues(flows),
            ..sfq::Config::default()
        };
        Box::new(Sfq::node(config, SEED).expect(VALID))
    }),
    ("fq_codel", |flows| {
        let config = fq_codel::Config {
            flows: queues(flows),
            limit: PLENTY,
            memory_limit: u64::MAX,
            codel: patient(),
            ..fq_codel::Config::default()
        };
        Box::new(FqCodel::node(config, SEED).expect(VALID))
    }),
    ("fq_pie", |flows| {
        let config = fq_pie::Config {
            flows: queues(flows),
            limit: PLENTY,
            memory_limit: u64::MAX,
            pie: calm(),
            ..fq_pie::Config::default()
        };
        Box::new(FqPie::node(config, SEED).expect(VALID))
    }),
    ("msfc", |flows| {
        let config = msfc::Config {
            flows: queues(flows),
            class_by: msfc::PRIOMAP3,
            limit: PLENTY,
            memory_limit: u64::MAX,
            codel: patient(),
            ..msfc::Config::default()
        };
        Box::new(Msfc::node(config, SEED).expect(VALID))
    }),
    // A flow has a bucket with all other light ones, and no flow is heavy.
    ("hhf", |_| {
        let config = hhf::Config {
            limit: PLENTY,
            admit_bytes: u32::MAX,
            ..hhf::Config::default()
        };
        Box::new(Hhf::node(config, SEED).expect(VALID))
    }),
    ("cake", |_| cake(None)),
    ("cake_shaped", |_| cake(Some(faster()))),
    ("scfq", scheduler::<Scfq>),
    ("qfq", scheduler::<Qfq>),
    ("qfq_plus", scheduler::<QfqPlus>),
    ("wf2q_plus", scheduler::<Wf2qPlus>),
    ("wfq", |flows| {
        let settings = wfq::Settings { rate: faster() };
        scheduler_with::<Wfq>(flows, settings)
    }),
    ("pfq", scheduler::<Pfq>),
    ("s_kps", scheduler::<SKps>),
    ("frr", scheduler::<Frr>),
    ("gfq", scheduler::<Gfq>),
    ("sqf", |flows| {
        Box::new(Sqf::node(by_backlog(flows), SEED).expect(VALID))
    }),
    ("lqf", |flows| {
        Box::new(Lqf::node(by_backlog(flows), SEED).expect(VALID))
    }),
    ("hsqf", |flows| {
        let config = hsqf::Config {
            limit: PLENTY,
            // Packets have no addresses here, so every flow is a different user.
            users: queues(flows).min(1 << 14),
            ..hsqf::Config::default()
        };
        Box::new(Hsqf::node(config, SEED).expect(VALID))
    }),
    ("pdrr", |flows| {
        let config = pdrr::Config {
            limit: PLENTY,
            afl: queues(flows),
            ..pdrr::Config::default()
        };
        Box::new(Pdrr::node(config, SEED).expect(VALID))
    }),
    // No flow is refused.
    ("admission", |flows| {
        let config = admission::Config {
            flows_in_progress: queues(flows),
            ..admission::Config::of_rate(faster())
        };
        Box::new(Admission::node(config, SEED, fifo()).expect(VALID))
    }),
    ("htb", |flows| {
        let class = |minor, parent, kbit| htb::ClassConfig {
            ceil: Some(kbit_of(LINK_KBIT)),
            ..htb::ClassConfig::of_rate(minor, parent, kbit_of(kbit))
        };
        // Leaves have a guaranteed rate of a fifth of what they send, and borrow the rest from both levels.
        let config = htb::Config {
            classifier: by_name(),
            classes: tree(flows)
                .map(|(minor, parent, share)| class(minor, parent, LINK_KBIT / share))
                .collect(),
            ..htb::Config::default()
        };
        Box::new(Htb::node(config, (0..flows).map(|_| fifo()).collect()).expect(VALID))
    }),
    ("hfsc", |flows| {
        // Leaves get half of what they send by their real-time curves.
        let class = |minor: u32, parent, kbit| hfsc::ClassConfig {
            rt: (minor <= flows).then_some(ServiceCurve::linear(kbit * 2000)),
            ..hfsc::ClassConfig::of_rate(minor, parent, kbit_of(kbit))
        };
        let config = hfsc::Config {
            classifier: by_name(),
            classes: tree(flows)
                .map(|(minor, parent, share)| class(minor, parent, LINK_KBIT / share))
                .collect(),
            ..hfsc::Config::default()
        };
        Box::new(Hfsc::node(config, (0..flows).map(|_| fifo()).collect()).expect(VALID))
    }),
    ("cbq", |flows| {
        let config = cbq::Config {
            classifier: by_name(),
            classes: tree(flows)
                .map(|(minor, parent, share)| {
                    cbq::ClassConfig::of_rate(minor, parent, kbit_of(LINK_KBIT / share))
                })
                .collect(),
            ..cbq::Config::of_bandwidth(kbit_of(LINK_KBIT))
        };
        Box::new(Cbq::node(config, (0..flows).map(|_| fifo()).collect()).expect(VALID))
    }),
];

/// The rate of the link, kbit/s. Packets arrive more slowly.
const LINK_KBIT: u64 = 100_000_000;
/// The number of leaves below each inner class of a tree.
const GROUP: u32 = 32;

fn kbit_of(kbit: u64) -> Rate {
    Rate::from_bits_per_second(kbit.max(1) * 1000).expect("above 0")
}

fn by_name() -> Classifier {
    Classifier {
        handle: 1,
        ..Classifier::default()
    }
}

/// Returns the classes of a tree of three levels by ascending number, each with its number, its parent and
/// its fraction of the link's rate: a leaf for each flow, classes above them in groups, and the root.
fn tree(flows: u32) -> impl Iterator<Item = (u32, Option<u32>, u64)> {
    let groups = flows.div_ceil(GROUP);
    let root = flows + groups + 1;
    let leaf = move |flow: u32| (flow + 1, Some(flows + 1 + flow / GROUP), 5 * u64::from(flows));
    let group = move |group: u32| (flows + 1 + group, Some(root), 2 * u64::from(groups));
    let inner = (0..groups).map(group);
    (0..flows).map(leaf).chain(inner).chain([(root, None, 1)])
}

/// How long before its departure time a packet arrives at etf, which hands it out at once.
pub(crate) const LEAD: Duration = Duration::from_secs(1);
/// A limit that is never reached.
const PLENTY: u32 = 1 << 24;
const SEED: u64 = 1;
const VALID: &str = "the parameters are within their ranges";

fn queues(flows: u32) -> u32 {
    (4 * flows).max(1024)
}

/// Faster than packets arrive.
fn faster() -> Rate {
    kbit_of(LINK_KBIT)
}

/// RED whose average stays below `min`, so that nothing is marked, which is the usual case.
fn below_red() -> red::Config {
    red::Config {
        limit: u32::MAX,
        min: Some(40_000_000),
        max: Some(60_000_000),
        avpkt: 1_000_000,
        burst: Some(60),
        ..red::Config::default()
    }
}

/// PIE whose target is never exceeded.
fn calm() -> pie::Params {
    pie::Params {
        target: Duration::from_secs(1),
        ..pie::Params::default()
    }
}

/// Creates a scheduler over hashed flows.
fn scheduler<S: Scheduler<Share: Default, Settings: Default>>(flows: u32) -> Box<dyn Discipline> {
    scheduler_with::<S>(flows, S::Settings::default())
}

fn scheduler_with<S: Scheduler<Share: Default, Settings: Default>>(
    flows: u32,
    settings: S::Settings,
) -> Box<dyn Discipline> {
    let config = flows::ConfigOf::<S> {
        flows: queues(flows),
        // Ten packets per queue, as in the defaults.
        limit: 10 * queues(flows),
        settings,
        ..flows::Config::default()
    };
    Box::new(Flows::<S>::node(config, SEED).expect(VALID))
}

/// Creates cake with its defaults: three tins, fairness between hosts. Its hash has 1024 buckets, however
/// many flows there are.
fn cake(bandwidth: Option<Rate>) -> Box<dyn Discipline> {
    let config = cake::Config {
        bandwidth,
        memory_limit: Some(u64::MAX),
        rtt: Duration::from_secs(20),
        ..cake::Config::default()
    };
    Box::new(Cake::node(config, SEED).expect(VALID))
}

fn fifo() -> Box<dyn Discipline> {
    let config = fifo::Config {
        limit_packets: None,
        ..fifo::Config::default()
    };
    Box::new(Fifo::node(config).expect(VALID))
}

/// Has room for the packets of all flows, and an entry for each flow.
fn by_backlog(flows: u32) -> sqf::Config {
    sqf::Config {
        limit: PLENTY,
        flows: Some(queues(flows)),
        ..sqf::Config::default()
    }
}

fn patient() -> codel::Params {
    codel::Params {
        target: Duration::from_secs(1),
        ..codel::Params::default()
    }
}
