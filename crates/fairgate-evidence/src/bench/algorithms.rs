//! The schedulers that can be measured, and how to build them. Each has one entry.

use std::time::Duration;

use fairgate::aqm::codel;
use fairgate::discipline::ByFlow;
use fairgate::implicit::lqf::Lqf;
use fairgate::implicit::pdrr::{self, Pdrr};
use fairgate::implicit::sqf::{self, Sqf};
use fairgate::queues::fifo::{self, Fifo};
use fairgate::rounds::drr::{Drr, Quantum};
use fairgate::rounds::fq_codel::{self, FqCodel};
use fairgate::rounds::fq_nagle::FqNagle;
use fairgate::rounds::msfc::{self, Msfc};
use fairgate::scheduler::flows::{self, ConfigOf};
use fairgate::scheduler::{Flows, Scheduler};
use fairgate::timestamps::gfq::Gfq;
use fairgate::timestamps::pfq::{self, Pfq};
use fairgate::timestamps::qfq::Qfq;
use fairgate::timestamps::qfq_plus::QfqPlus;
use fairgate::timestamps::s_kps::SKps;
use fairgate::timestamps::scfq::Scfq;
use fairgate::timestamps::wf2q_plus::Wf2qPlus;
use fairgate::timestamps::wfq::{self, Wfq};
use fairgate::timestamps::{Share, Weight};
use fairgate::{ConfigError, Discipline, Node, PacketId, Pool, Rate, Time, Verdict};

use crate::bench::controller::{Controller, Drive, Workload};
use crate::bench::subject::{Baseline, Dissected, Hashed, Numbered, Source, Subject, WithStatistics};
use crate::bench::workload::Weights;

/// How a scheduler is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The same work as in the paper: the flow is known, and there are no hashes and no statistics.
    Bare,
    /// As drivers call it: a tree of `Box<dyn Discipline>` with statistics, and flows by a hash in the
    /// packet.
    Statistics,
    /// The same, and the headers of a frame are read and hashed for each packet.
    Classified,
}

impl Mode {
    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Bare => "bare",
            Mode::Statistics => "statistics",
            Mode::Classified => "classified",
        }
    }
}

/// The flows and limits that a scheduler is built for.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The number of flows, 1 to 2^20. If flows are found by hash there are four times as many queues, so
    /// that few flows share one.
    pub flows: u32,
    /// The weight of each flow. Empty if all weights are 1.
    pub weights: Vec<u32>,
    /// The longest packet, bytes.
    pub longest: u32,
    /// A limit that is never reached.
    pub limit: u32,
}

impl Setup {
    /// Creates the setup for a workload.
    pub fn new(workload: &Workload, weights: Weights, mode: Mode) -> Setup {
        let flows = match mode {
            Mode::Bare => workload.flows,
            Mode::Statistics | Mode::Classified => (4 * workload.flows)
                .clamp(1024, flows::MAX_FLOWS)
                .max(workload.flows),
        };
        Setup {
            flows,
            weights: match weights {
                Weights::Equal => Vec::new(),
                Weights::Mix => weights.of(workload.flows),
            },
            longest: workload.sizes.longest(),
            // The limit is proportional to the queues. With less for each queue, the search for the longest
            // queue has more to do.
            limit: workload.load.bounds(flows).1.max(2),
        }
    }

    fn of<S: Scheduler>(&self, share: impl Fn(u32) -> S::Share, settings: S::Settings) -> ConfigOf<S> {
        flows::Config {
            flows: self.flows,
            limit: self.limit,
            share: share(1),
            shares: self.weights.iter().map(|&weight| share(weight)).collect(),
            settings,
            classifier: Default::default(),
        }
    }

    fn by_backlog(&self) -> sqf::Config {
        sqf::Config {
            flows: Some(self.flows),
            limit: self.limit,
            ..sqf::Config::default()
        }
    }

    fn by_weight<S: Scheduler<Share = Weight, Settings = ()>>(&self) -> Result<Box<dyn Built>, ConfigError> {
        made(Flows::<S>::node(self.of::<S>(Weight, ()), SEED))
    }

    fn by_share<S>(&self) -> Result<Box<dyn Built>, ConfigError>
    where
        S: Scheduler<Share = Share, Settings: Default>,
    {
        let share = |weight| Share {
            weight,
            max_packet: self.longest,
        };
        made(Flows::<S>::node(
            self.of::<S>(share, S::Settings::default()),
            SEED,
        ))
    }
}

/// A scheduler that can be measured.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// The name on the command line.
    pub name: &'static str,
    /// The name in the paper or in its author's texts.
    pub title: &'static str,
    make: fn(&Setup) -> Result<Box<dyn Built>, ConfigError>,
}

/// The name of the baseline, which is subtracted from all other measurements.
pub const NONE: &str = "none";

/// All schedulers that can be measured, in the order of the tables.
pub const ALGORITHMS: &[Algorithm] = &[
    algorithm("fifo", "FIFO", |setup| {
        let config = fifo::Config {
            limit_packets: Some(setup.limit),
            ..fifo::Config::default()
        };
        made(Fifo::node(config))
    }),
    algorithm("drr", "DRR", |setup| {
        // The flow of the least weight can send the longest packet in one turn.
        let quantum = |weight| Quantum(setup.longest.max(64).saturating_mul(weight).min(1 << 30));
        made(Flows::<Drr>::node(setup.of::<Drr>(quantum, ()), SEED))
    }),
    algorithm("fq_nagle", "Nagle", |setup| {
        made(Flows::<FqNagle>::node(setup.of::<FqNagle>(|_| (), ()), SEED))
    }),
    algorithm("qfq", "QFQ", Setup::by_share::<Qfq>),
    algorithm("qfq_plus", "QFQ+", Setup::by_share::<QfqPlus>),
    algorithm("s_kps", "S-KPS", Setup::by_share::<SKps>),
    algorithm("gfq", "GFQ", Setup::by_share::<Gfq>),
    algorithm("scfq", "SCFQ", Setup::by_weight::<Scfq>),
    algorithm("wf2q_plus", "WF2Q+", Setup::by_weight::<Wf2qPlus>),
    algorithm("wfq", "WFQ", |setup| {
        // The rate of the controller's link: a nanosecond a byte.
        let rate = Rate::mbit(8000);
        made(Flows::<Wfq>::node(
            setup.of::<Wfq>(Weight, wfq::Settings { rate }),
            SEED,
        ))
    }),
    algorithm("pfq", "PFQ", |setup| {
        made(Flows::<Pfq>::node(
            setup.of::<Pfq>(Weight, pfq::Settings::default()),
            SEED,
        ))
    }),
    algorithm("pdrr", "PDRR", |setup| {
        let config = pdrr::Config {
            quantum: setup.longest.max(64),
            afl: setup.flows,
            limit: setup.limit,
            ..pdrr::Config::default()
        };
        made(Pdrr::node(config, SEED))
    }),
    algorithm("sqf", "SQF", |setup| made(Sqf::node(setup.by_backlog(), SEED))),
    algorithm("lqf", "LQF", |setup| made(Lqf::node(setup.by_backlog(), SEED))),
    algorithm("fq_codel", "FQ-CoDel", |setup| {
        let config = fq_codel::Config {
            flows: setup.flows,
            limit: setup.limit,
            memory_limit: u64::MAX,
            codel: PATIENT,
            ..fq_codel::Config::default()
        };
        made(FqCodel::node(config, SEED))
    }),
    algorithm("msfc", "MSFC", |setup| {
        let config = msfc::Config {
            flows: setup.flows.div_ceil(3),
            limit: setup.limit,
            memory_limit: u64::MAX,
            codel: PATIENT,
            ..msfc::Config::default()
        };
        made(Msfc::node(config, SEED))
    }),
];

/// DRR whose quantum is three quarters of the longest packet, so that some packets need two rounds. It is no
/// scheduler of its own, and not in [`ALGORITHMS`].
pub const UNMATCHED: Algorithm = algorithm("drr_unmatched", "DRR, quantum unmatched", |setup| {
    let quantum = |weight| {
        Quantum(
            (setup.longest * 3 / 4)
                .max(64)
                .saturating_mul(weight)
                .min(1 << 30),
        )
    };
    made(Flows::<Drr>::node(setup.of::<Drr>(quantum, ()), SEED))
});

/// CoDel parameters with which nothing is dropped: the target is longer than a minute.
const PATIENT: codel::Params = codel::Params {
    target: Duration::from_secs(100),
    interval: Duration::from_secs(100),
    mtu: 1514,
    ecn: false,
    ce_threshold: None,
    ce_threshold_selector: 0,
    ce_threshold_mask: 0,
};

const SEED: u64 = 1;

const fn algorithm(
    name: &'static str,
    title: &'static str,
    make: fn(&Setup) -> Result<Box<dyn Built>, ConfigError>,
) -> Algorithm {
    Algorithm { name, title, make }
}

impl Algorithm {
    /// Returns the scheduler of this name.
    pub fn by_name(name: &str) -> Option<Algorithm> {
        let mut known = ALGORITHMS.iter().chain([&UNMATCHED]);
        known.find(|algorithm| algorithm.name == name).copied()
    }

    /// Creates a controller that drives this scheduler.
    ///
    /// # Errors
    /// Returns an error if the scheduler can't be built for this number of flows or these weights.
    pub fn drive(
        &self,
        workload: Workload,
        weights: Weights,
        mode: Mode,
        seed: u64,
    ) -> Result<Box<dyn Drive>, ConfigError> {
        let made = (self.make)(&Setup::new(&workload, weights, mode))?;
        Ok(match mode {
            Mode::Bare => boxed(made.without_statistics(), Numbered, workload, seed),
            Mode::Statistics => boxed(WithStatistics(made.with_statistics()), Hashed, workload, seed),
            Mode::Classified => boxed(
                WithStatistics(made.with_statistics()),
                Dissected::default(),
                workload,
                seed,
            ),
        })
    }
}

/// Creates the controller of NONE: it has only a queue, and makes packets as for `mode`. It does not read
/// headers, because reading them is part of what is measured.
pub fn none(workload: Workload, mode: Mode, seed: u64) -> Box<dyn Drive> {
    match mode {
        Mode::Bare | Mode::Classified => boxed(Baseline::default(), Numbered, workload, seed),
        Mode::Statistics => boxed(Baseline::default(), Hashed, workload, seed),
    }
}

fn boxed<S: Subject + 'static, G: Source + 'static>(
    subject: S,
    source: G,
    workload: Workload,
    seed: u64,
) -> Box<dyn Drive> {
    Box::new(Controller::new(subject, source, workload, seed))
}

/// A scheduler that can be driven with or without statistics.
trait Built {
    fn without_statistics(self: Box<Self>) -> Box<dyn Subject>;
    fn with_statistics(self: Box<Self>) -> Box<dyn Discipline>;
}

impl<A: ByFlow> Built for Node<A> {
    fn without_statistics(self: Box<Self>) -> Box<dyn Subject> {
        Box::new(WithoutStatistics(self.into_algorithm()))
    }

    fn with_statistics(self: Box<Self>) -> Box<dyn Discipline> {
        self
    }
}

fn made<A: ByFlow>(node: Result<Node<A>, ConfigError>) -> Result<Box<dyn Built>, ConfigError> {
    Ok(Box::new(node?))
}

/// A scheduler that is called directly, with the flow as an argument.
struct WithoutStatistics<A>(A);

impl<A: ByFlow> Subject for WithoutStatistics<A> {
    #[inline]
    fn enqueue(&mut self, flow: u32, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.0.enqueue_flow(flow, id, now, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.0.dequeue(now, pool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::workload::{Load, Order, Sizes};

    /// Runs every scheduler in every mode under every load. No packet is dropped, withheld or lost.
    #[test]
    fn every_scheduler_does_all_the_work() {
        for algorithm in ALGORITHMS.iter().chain([&UNMATCHED]) {
            for mode in [Mode::Bare, Mode::Statistics, Mode::Classified] {
                for load in Load::ALL {
                    for (order, weights, flows) in [
                        (Order::Shortest, Weights::Equal, 1),
                        (Order::Shortest, Weights::Mix, 50),
                        (Order::Random, Weights::Mix, 37),
                        (Order::RoundRobin, Weights::Equal, 64),
                    ] {
                        let workload = Workload {
                            flows,
                            load,
                            order,
                            sizes: Sizes::Uniform(40, 2000),
                        };
                        let mut drive = algorithm.drive(workload, weights, mode, 1).unwrap();
                        let work = drive.run(5000).and_then(|_| drive.finish());
                        assert_eq!(work, Ok(()), "{} {mode:?} {workload:?}", algorithm.name);
                    }
                }
            }
        }
    }

    #[test]
    fn every_scheduler_can_be_built_for_a_million_flows() {
        let workload = Workload {
            flows: 1 << 20,
            load: Load::Small,
            order: Order::Shortest,
            sizes: Sizes::Constant(1000),
        };
        let setup = Setup::new(&workload, Weights::Mix, Mode::Bare);
        for algorithm in ALGORITHMS {
            assert!((algorithm.make)(&setup).is_ok(), "{}", algorithm.name);
        }
    }

    #[test]
    fn schedulers_are_found_by_name() {
        for algorithm in ALGORITHMS {
            assert_eq!(Algorithm::by_name(algorithm.name).unwrap().title, algorithm.title);
        }
        assert!(Algorithm::by_name("nagle").is_none());
    }
}
