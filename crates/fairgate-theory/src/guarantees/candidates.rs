//! The schedulers that are held to their bounds, a line each.

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

use super::bounds::{Promises, System, published};
use super::traffic::RATE;

/// A scheduler with what is published of it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its name.
    pub name: &'static str,
    /// Whether flows have weights. Where not, all are equal.
    pub weighted: bool,
    /// By whose promises it is judged: its own.
    judged_as: &'static str,
    build: Build,
}

/// What a discipline is built for.
struct Demand<'a> {
    system: &'a System,
    /// Room for all packets.
    packets: u32,
}

/// All of them.
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
                // Longer than anything waits here: rounds alone, no packet dropped.
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
        let minors = 1u16..;
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
    // Users of one flow each.
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

/// Disciplines over flows that can't be measured like this, and why.
pub static NOT_MEASURED: &[(&str, &str)] = &[
    (
        "fq_pie",
        "PIE drops at random; as far as it doesn't, flows are served as by fq_codel",
    ),
    (
        "fq",
        "it holds flows back; the measures are of work-conserving disciplines",
    ),
    (
        "msfc",
        "its classes are unfair on purpose; within one it serves flows as fq_codel does",
    ),
    (
        "cake",
        "hosts share before flows do, and a random part of a byte goes into quanta; without both it serves as fq_codel does",
    ),
    (
        "admission",
        "it lets flows in or not; what it holds inside serves them",
    ),
];

impl Candidate {
    /// What is published of it.
    pub fn promises(&self) -> &'static Promises {
        published(self.judged_as).expect("the table of bounds lists every candidate, as a test sees to")
    }

    /// The same scheduler, held to what is published of another: to see that a promise broken is noticed.
    ///
    /// # Panics
    /// If there is no such scheduler.
    #[must_use]
    pub fn judged_as(self, name: &'static str) -> Candidate {
        assert!(published(name).is_some(), "nothing is known of `{name}`");
        Candidate {
            judged_as: name,
            ..self
        }
    }

    /// A discipline of this kind for flows of a system, with room for so many packets.
    ///
    /// # Errors
    /// If it refuses a weight, or so many flows.
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
        build,
    }
}

const fn weighted(name: &'static str, build: Build) -> Candidate {
    Candidate {
        name,
        weighted: true,
        judged_as: name,
        build,
    }
}

fn boxed(discipline: impl Discipline + 'static) -> Result<Box<dyn Discipline>, ConfigError> {
    Ok(Box::new(discipline))
}

/// Flows and classes by the number that a packet names.
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

/// Flows by the hash that a packet comes with.
fn by_backlog_of(demand: &Demand<'_>) -> by_backlog::Config {
    by_backlog::Config {
        limit: demand.packets,
        ..by_backlog::Config::default()
    }
}

/// A scheduler over flows.
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

    /// Of each flow, where all are equal.
    fn quantum(&self) -> u32 {
        self.system.quanta.first().copied().unwrap_or(1)
    }

    fn share(&self, flow: usize) -> Share {
        Share {
            weight: self.weight(flow),
            max_packet: self.system.max_packets[flow],
        }
    }

    /// A queue for each class.
    fn fifos(&self) -> Result<Vec<Box<dyn Discipline>>, ConfigError> {
        let one = |_| boxed(Fifo::node(fifo_of(self))?);
        (0..self.flows()).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate_config::{Family, Registry};

    /// Whoever registers a discipline over flows puts it here too, or says why it can't be.
    #[test]
    fn every_discipline_over_flows_is_measured_or_said_not_to_be() {
        let over_flows = [Family::Rounds, Family::Timestamps, Family::Implicit];
        for about in Registry::builtin().iter().map(|entry| entry.about()) {
            let is_measured = CANDIDATES.iter().any(|candidate| candidate.name == about.name);
            let is_not = NOT_MEASURED.iter().any(|&(name, _)| name == about.name);
            assert!(!(is_measured && is_not), "`{}`: one or the other", about.name);
            assert!(
                is_measured || is_not || !over_flows.contains(&about.family),
                "`{}` is registered, and neither in CANDIDATES nor in NOT_MEASURED",
                about.name
            );
        }
    }
}
