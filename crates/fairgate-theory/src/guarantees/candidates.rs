//! The schedulers whose bounds are checked, one entry each.

use std::time::Duration;

use fairgate::aqm::codel;
use fairgate::classify::Classifier;
use fairgate::flow::FlowBy;
use fairgate::implicit::by_backlog;
use fairgate::implicit::hsqf::{self, Hsqf};
use fairgate::implicit::lqf::Lqf;
use fairgate::implicit::pdrr::{self, Pdrr};
use fairgate::implicit::sqf::Sqf;
use fairgate::queues::fifo::{self, Fifo};
use fairgate::rounds::drr_classes::{self, DrrClasses};
use fairgate::rounds::ets::{self, Ets};
use fairgate::rounds::fq_codel::{self, FqCodel};
use fairgate::rounds::fq_nagle::FqNagle;
use fairgate::rounds::sfq::{self, Sfq};
use fairgate::scheduler::{Flows, Scheduler, flows};
use fairgate::timestamps::frr::Frr;
use fairgate::timestamps::gfq::Gfq;
use fairgate::timestamps::pfq::{self, Pfq};
use fairgate::timestamps::qfq::{self, Qfq};
use fairgate::timestamps::qfq_plus::QfqPlus;
use fairgate::timestamps::s_kps::SKps;
use fairgate::timestamps::scfq::Scfq;
use fairgate::timestamps::wf2q_plus::Wf2qPlus;
use fairgate::timestamps::wfq::{self, Wfq};
use fairgate::timestamps::{Share, Weight};
use fairgate::{ConfigError, Discipline};

use super::bounds::{Promises, System, kept, printed};
use super::traffic::RATE;

/// A scheduler and its bounds.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The name of the scheduler.
    pub name: &'static str,
    /// Whether flows have weights. If not, all weights are equal.
    pub weighted: bool,
    /// The name of the scheduler whose bounds it is compared with. By default this is the scheduler itself.
    judged_as: &'static str,
    /// Whether it is compared with the printed bounds, instead of the bounds that our implementation keeps.
    by_printed: bool,
    build: Build,
}

/// The flows that a discipline is built for.
struct Demand<'a> {
    system: &'a System,
    /// The number of packets that it must be able to hold.
    packets: u32,
}

/// All schedulers.
pub static CANDIDATES: &[Candidate] = &[
    equal("fifo", |demand| boxed(Fifo::node(fifo_of(demand))?)),
    equal("fq_nagle", |demand| flat::<FqNagle>(demand, (), |_, _| ())),
    equal("sfq", |demand| {
        boxed(Sfq::node(
            sfq::Config {
                limit: demand.packets,
                depth: demand.packets,
                flows: demand.flows(),
                perturb: None,
                classifier: named(),
                ..sfq::Config::default()
            },
            1,
        )?)
    }),
    equal("fq_codel", |demand| {
        boxed(FqCodel::node(
            fq_codel::Config {
                limit: demand.packets,
                flows: demand.flows(),
                quantum: demand.quantum(),
                classifier: named(),
                // Longer than any sojourn time here, so that CoDel drops nothing.
                codel: codel::Params {
                    target: Duration::from_secs(100),
                    ..codel::Params::default()
                },
                ..fq_codel::Config::default()
            },
            1,
        )?)
    }),
    weighted("drr", |demand| {
        let minors = 1u32..;
        let classes = minors
            .zip(&demand.system.quanta)
            .map(|(minor, &quantum)| drr_classes::ClassConfig { minor, quantum })
            .collect();
        let config = drr_classes::Config {
            classifier: named(),
            classes,
            ..drr_classes::Config::default()
        };
        boxed(DrrClasses::node(config, demand.fifos()?)?)
    }),
    weighted("ets", |demand| {
        let config = ets::Config {
            classifier: named(),
            ..ets::Config::of_bands(0, demand.system.quanta.clone())
        };
        boxed(Ets::node(config, demand.fifos()?)?)
    }),
    weighted("scfq", |demand| {
        flat::<Scfq>(demand, (), |demand, flow| Weight(demand.weight(flow)))
    }),
    weighted("wfq", |demand| {
        flat::<Wfq>(demand, wfq::Settings { rate: RATE }, |demand, flow| {
            Weight(demand.weight(flow))
        })
    }),
    weighted("wf2q_plus", |demand| {
        flat::<Wf2qPlus>(demand, (), |demand, flow| Weight(demand.weight(flow)))
    }),
    weighted("qfq", |demand| {
        flat::<Qfq>(demand, qfq::Settings::default(), |demand, flow| {
            demand.share(flow)
        })
    }),
    weighted("qfq_plus", |demand| {
        flat::<QfqPlus>(demand, (), |demand, flow| demand.share(flow))
    }),
    weighted("s_kps", |demand| {
        flat::<SKps>(demand, (), |demand, flow| demand.share(flow))
    }),
    weighted("gfq", |demand| {
        flat::<Gfq>(demand, (), |demand, flow| demand.share(flow))
    }),
    weighted("frr", |demand| {
        flat::<Frr>(demand, (), |demand, flow| demand.share(flow))
    }),
    weighted("pfq", |demand| {
        let longest = demand.system.max_packets.iter().copied().max();
        let settings = pfq::Settings {
            quantum: longest.unwrap_or(1),
            ..pfq::Settings::default()
        };
        flat::<Pfq>(demand, settings, |demand, flow| Weight(demand.weight(flow)))
    }),
    equal("pdrr", |demand| {
        boxed(Pdrr::node(
            pdrr::Config {
                limit: demand.packets,
                afl: demand.flows(),
                quantum: demand.quantum(),
                ..pdrr::Config::default()
            },
            1,
        )?)
    }),
    // Each user has one flow.
    equal("hsqf", |demand| {
        boxed(Hsqf::node(
            hsqf::Config {
                limit: demand.packets,
                quantum: demand.quantum(),
                users: demand.flows(),
                user: FlowBy::FiveTuple,
                ..hsqf::Config::default()
            },
            1,
        )?)
    }),
    equal("sqf", |demand| boxed(Sqf::node(by_backlog_of(demand), 1)?)),
    equal("lqf", |demand| boxed(Lqf::node(by_backlog_of(demand), 1)?)),
];

/// Disciplines over flows that can't be measured in this way, and the reason.
pub static NOT_MEASURED: &[(&str, &str)] = &[
    (
        "fq_pie",
        "PIE drops at random; without drops, flows are served as by fq_codel",
    ),
    (
        "fq",
        "it throttles flows; the measures are of work-conserving disciplines",
    ),
    (
        "msfc",
        "its classes are unfair on purpose; within a class it serves flows as fq_codel does",
    ),
    (
        "cake",
        "hosts share before flows do, and quanta are rounded at random; \
         without both it serves flows as fq_codel does",
    ),
    (
        "mq",
        "its queues share nothing; each class serves its own packets",
    ),
    (
        "hhf",
        "it serves two buckets of flows, and no flow has a share of its own",
    ),
    ("admission", "it admits or rejects flows; its child serves them"),
];

impl Candidate {
    /// Returns the bounds that the scheduler is compared with.
    pub fn promises(&self) -> &'static Promises {
        let found = match self.by_printed {
            true => printed(self.judged_as),
            false => kept(self.judged_as),
        };
        found.expect("a test checks that the table of bounds lists every candidate")
    }

    /// Returns the same scheduler, compared with the bounds that a publication prints; `None` if none does.
    #[must_use]
    pub fn by_printed_bounds(self) -> Option<Candidate> {
        printed(self.judged_as)?;
        Some(Candidate {
            by_printed: true,
            ..self
        })
    }

    /// Returns the same scheduler, but with the bounds of another one. Tests use it to see that an exceeded
    /// bound is found.
    ///
    /// # Panics
    /// If there is no such scheduler.
    #[must_use]
    pub fn judged_as(self, name: &'static str) -> Candidate {
        assert!(kept(name).is_some(), "the table of bounds does not list `{name}`");
        Candidate {
            judged_as: name,
            ..self
        }
    }

    /// Builds the discipline for the flows of `system`, with room for `packets` packets.
    ///
    /// # Errors
    /// Returns an error if the discipline rejects a weight or the number of flows.
    pub fn build(&self, system: &System, packets: u32) -> Result<Box<dyn Discipline>, ConfigError> {
        (self.build)(&Demand { system, packets })
    }
}

type Build = fn(&Demand<'_>) -> Result<Box<dyn Discipline>, ConfigError>;

const fn equal(name: &'static str, build: Build) -> Candidate {
    Candidate {
        name,
        weighted: false,
        judged_as: name,
        by_printed: false,
        build,
    }
}

const fn weighted(name: &'static str, build: Build) -> Candidate {
    Candidate {
        name,
        weighted: true,
        judged_as: name,
        by_printed: false,
        build,
    }
}

fn boxed(discipline: impl Discipline + 'static) -> Result<Box<dyn Discipline>, ConfigError> {
    Ok(Box::new(discipline))
}

/// Returns a classifier that takes flows and classes by the number in the packet.
fn named() -> Classifier {
    Classifier {
        handle: 1,
        ..Classifier::default()
    }
}

fn fifo_of(demand: &Demand<'_>) -> fifo::Config {
    fifo::Config {
        limit_packets: Some(demand.packets),
        ..fifo::Config::default()
    }
}

/// Returns a configuration in which flows are the hashes in the packets.
fn by_backlog_of(demand: &Demand<'_>) -> by_backlog::Config {
    by_backlog::Config {
        limit: demand.packets,
        ..by_backlog::Config::default()
    }
}

/// Builds a scheduler over flows.
fn flat<S: Scheduler>(
    demand: &Demand<'_>,
    settings: S::Settings,
    share: impl Fn(&Demand<'_>, usize) -> S::Share,
) -> Result<Box<dyn Discipline>, ConfigError>
where
    S::Share: Default,
{
    let config = flows::ConfigOf::<S> {
        flows: demand.flows(),
        limit: demand.packets,
        share: S::Share::default(),
        shares: (0..demand.flows() as usize)
            .map(|flow| share(demand, flow))
            .collect(),
        settings,
        classifier: named(),
    };
    boxed(Flows::<S>::node(config, 1)?)
}

impl Demand<'_> {
    fn flows(&self) -> u32 {
        self.system.weights.each().len() as u32
    }

    fn weight(&self, flow: usize) -> u32 {
        self.system.weights.of(flow as u32)
    }

    /// Returns the quantum of each flow where all are equal.
    fn quantum(&self) -> u32 {
        self.system.quanta.first().copied().unwrap_or(1)
    }

    fn share(&self, flow: usize) -> Share {
        Share {
            weight: self.weight(flow),
            max_packet: self.system.max_packets[flow],
        }
    }

    /// Builds a queue for each class.
    fn fifos(&self) -> Result<Vec<Box<dyn Discipline>>, ConfigError> {
        let one = |_| boxed(Fifo::node(fifo_of(self))?);
        (0..self.flows()).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate_config::{Family, Registry};

    /// A newly registered discipline over flows must be listed in CANDIDATES or, with a reason, in
    /// NOT_MEASURED.
    #[test]
    fn every_discipline_over_flows_is_measured_or_listed_as_not_measured() {
        let over_flows = [Family::Rounds, Family::Timestamps, Family::Implicit];
        for about in Registry::builtin().iter().map(|entry| entry.about()) {
            let is_measured = CANDIDATES.iter().any(|candidate| candidate.name == about.name);
            let is_not = NOT_MEASURED.iter().any(|&(name, _)| name == about.name);
            assert!(!(is_measured && is_not), "`{}` is in both lists", about.name);
            assert!(
                is_measured || is_not || !over_flows.contains(&about.family),
                "`{}` is registered, but neither in CANDIDATES nor in NOT_MEASURED",
                about.name
            );
        }
    }
}
