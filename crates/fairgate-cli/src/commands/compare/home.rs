//! The built-in scenario: an evening at home, simulated once with each discipline, with senders that react.
//!
//! ```text
//!   call, game, video, web, file, peers           servers, each with its own delay to the provider
//!        \    \    |    /    /
//!             provider  ====================  home
//!                        the access line: the discipline at both ends, `rate` down and a quarter of it up
//! ```
//!
//! All simulations have the same seed, so that the random parts of the applications are the same.

use std::time::Duration;

use fairgate::{Rate, Time};
use fairgate_report::{Comparison, Discipline, Fact, Group, Input, bin_width, jain};
use fairgate_sim::{Application, Batch, Distribution, Flow, Link, NodeId, Results, Scenario, Tcp, Udp, tcp};
use miette::Diagnostic;
use thiserror::Error;

use super::Contestant;
use super::simulated::{Packets, SAMPLES, interval, queue, together};
use crate::failure::Failure;
use crate::output::Format;
use crate::progress;

/// The default duration.
pub(super) const DURATION: Duration = Duration::from_secs(60);

/// Propagation delay of the access line.
const LINE_DELAY: Duration = Duration::from_millis(5);

/// The interface whose queue is shown: the provider's end of the access line, which is the first link.
const DOWNLINK: usize = 0;

/// The applications, in the order of the tables: name and description. The flows of `scenario` have the same
/// names.
const APPLICATIONS: [(&str, &str); 7] = [
    ("voice call", "64 kbit/s each way, marked"),
    (UPWARDS, "the other half of the call"),
    ("game", "64 small packets a second"),
    ("video", "2.5 MB every few seconds"),
    ("web", "two browsers, pages of 600 kB"),
    ("downloads", "two, endless"),
    ("torrent", "ten peers, endless"),
];

/// The application that sends from the home. Its packets do not pass the queue that is shown.
const UPWARDS: &str = "voice call, upwards";

/// Flows that send as much as they can. Jain's index is computed over them.
const GREEDY: [&str; 2] = ["downloads", "torrent"];

#[derive(Debug, Error, Diagnostic)]
#[error("can't simulate the home scenario with `{discipline}`")]
struct HomeError {
    discipline: String,
    source: fairgate_sim::Error,
}

/// The options of the user.
pub(super) struct Options {
    pub(super) rate: Rate,
    pub(super) duration: Duration,
    pub(super) seed: u64,
    /// Whether to show progress.
    pub(super) format: Format,
}

/// Simulates the evening with each discipline.
pub(super) fn run(
    options: &Options,
    contestants: Vec<Contestant>,
    command: String,
) -> Result<Comparison, Failure> {
    let &Options {
        rate,
        duration,
        seed,
        format,
    } = options;
    let bar = progress::simulated(duration.as_millis() as u64 * contestants.len() as u64, format);
    let scenarios: Vec<Scenario> = contestants
        .iter()
        .map(|contestant| scenario(contestant, rate, duration, seed))
        .collect();
    let results = Batch::default().run(&scenarios, |simulated| bar.inc(simulated.as_millis() as u64));
    bar.finish_and_clear();
    let outcomes = contestants
        .into_iter()
        .zip(results)
        .map(|(contestant, results)| {
            let discipline = contestant.name;
            match results {
                Ok(results) => Ok((discipline, results)),
                Err(source) => Err(HomeError { discipline, source }),
            }
        })
        .collect::<Result<Vec<_>, HomeError>>()?;
    let duration_ns = duration.as_nanos() as u64;
    Ok(Comparison {
        version: env!("CARGO_PKG_VERSION"),
        command,
        seed,
        input: Input::Scenario {
            name: "An evening at home".into(),
        },
        rate_bps: Some(rate.bits_per_second()),
        duration_ns,
        bin_ns: bin_width(Time::from_nanos(duration_ns)),
        facts: facts(rate),
        remarks: remarks(),
        groups: APPLICATIONS
            .map(|(name, detail)| Group {
                name: name.into(),
                detail: detail.into(),
                in_total: name != UPWARDS,
            })
            .to_vec(),
        fairness_over: "the throughput of the greedy flows: downloads and torrent".into(),
        disciplines: outcomes
            .into_iter()
            .map(|(name, results)| discipline(name, &results))
            .collect(),
    })
}

fn scenario(contestant: &Contestant, rate: Rate, duration: Duration, seed: u64) -> Scenario {
    let mut scenario = Scenario::new(duration);
    scenario.seed = seed;
    scenario.interval = interval(duration);
    let (provider, home) = (scenario.node("provider"), scenario.node("home"));
    scenario.links.push(Link {
        rate_b: upstream(rate).into(),
        queue_a: contestant.spec.clone().into(),
        queue_b: contestant.spec.clone().into(),
        ..Link::new(provider, home, rate, LINE_DELAY)
    });
    let mut server = |name: &str, millis| -> NodeId {
        let node = scenario.node(name);
        scenario
            .links
            .push(Link::unlimited(node, provider, Duration::from_millis(millis)));
        node
    };
    let [call, game, video, web, file, peers] = [
        ("call", 20),
        ("game", 12),
        ("video", 8),
        ("web", 10),
        ("file", 15),
        ("peers", 40),
    ]
    .map(|(name, millis)| server(name, millis));
    let voice = || Udp::constant(bits(64_000), 160);
    let called = |flow: Flow| Flow {
        dscp: 46,
        priority: 6,
        port: Some(5004),
        ..flow
    };
    let starting = |flow: Flow, start: u64, count: u32, stagger: u64| Flow {
        start: Duration::from_secs(start),
        count,
        stagger: Duration::from_millis(stagger),
        ..flow
    };
    scenario.flows = vec![
        called(Flow::new("voice call", call, home, voice())),
        called(Flow::new(UPWARDS, home, call, voice())),
        Flow::new("game", game, home, Udp::constant(bits(64 * 128 * 8), 128)),
        Flow::new(
            "video",
            video,
            home,
            transfers(Distribution::Constant(2_500_000), Distribution::Constant(SECOND)),
        ),
        starting(
            Flow::new(
                "web",
                web,
                home,
                transfers(
                    Distribution::Pareto {
                        mean: 600_000,
                        shape: 1.5,
                    },
                    Distribution::Exponential { mean: 4 * SECOND },
                ),
            ),
            1,
            2,
            1000,
        ),
        starting(
            Flow::new("downloads", file, home, Tcp::bulk(tcp::Config::default())),
            5,
            2,
            5000,
        ),
        starting(
            Flow::new("torrent", peers, home, Tcp::bulk(tcp::Config::default())),
            15,
            10,
            500,
        ),
    ];
    scenario
}

const SECOND: u64 = 1_000_000_000;

fn transfers(size: Distribution, pause: Distribution) -> Tcp {
    Tcp {
        config: tcp::Config::default(),
        application: Application::Transfers {
            size,
            pause,
            count: None,
        },
    }
}

fn bits(per_second: u64) -> Rate {
    Rate::from_bits_per_second(per_second).expect("the constants above are above 0")
}

/// Returns the rate of the uplink: a quarter.
pub(super) fn upstream(rate: Rate) -> Rate {
    Rate::from_bits_per_second((rate.bits_per_second() / 4).max(1)).expect("at least 1 is above 0")
}

fn discipline(name: String, results: &Results) -> Discipline {
    let greedy = results
        .flows
        .iter()
        .filter(|flow| GREEDY.contains(&flow.group.as_str()));
    let downwards = results.groups.iter().filter(|group| group.name != UPWARDS);
    let downlink = &results.interfaces[DOWNLINK];
    Discipline {
        name,
        total: together(results, downwards.map(Packets::Group)),
        groups: APPLICATIONS
            .map(|(name, _)| {
                let group = results.groups.iter().filter(|group| group.name == name);
                together(results, group.map(Packets::Group))
            })
            .to_vec(),
        utilisation: downlink.utilisation.unwrap_or(0.0),
        fairness: jain(&greedy.map(|flow| flow.goodput_bps as f64).collect::<Vec<_>>()),
        drops: downlink.dropped_by_reason.clone(),
        queue: queue(downlink),
    }
}

fn facts(rate: Rate) -> Vec<Fact> {
    let fact = |label: &str, value: String| Fact {
        label: label.into(),
        value,
    };
    vec![
        fact(
            "Access line",
            format!(
                "{rate} down, {} up, 5 ms; the discipline at both ends",
                upstream(rate)
            ),
        ),
        fact(
            "Voice call",
            "160 B every 20 ms each way, DSCP EF and priority 6 (interactive), server 20 ms from the \
             provider"
                .into(),
        ),
        fact(
            "Game",
            "128 B 64 times a second, server 12 ms from the provider".into(),
        ),
        fact(
            "Video",
            "chunks of 2.5 MB over TCP, one second of pause after each, server 8 ms from the provider".into(),
        ),
        fact(
            "Web",
            "two browsers, pages of 600 kB on average (Pareto, shape 1.5), 4 s to read, 10 ms from the \
             provider"
                .into(),
        ),
        fact(
            "Downloads",
            "two TCP transfers that start at 5 s and 10 s, 15 ms from the provider".into(),
        ),
        fact(
            "Torrent",
            "ten TCP transfers, one every half second from 15 s on, 40 ms from the provider".into(),
        ),
        fact(
            "TCP",
            "CUBIC with SACK as in Linux 6.1, initial window 10, no ECN".into(),
        ),
        fact(
            "Delay of a packet",
            "from its first sending to its arrival, propagation included".into(),
        ),
        fact(
            "Queue",
            format!("towards the home, sampled {SAMPLES} times in each bin of the plots"),
        ),
    ]
}

fn remarks() -> Vec<String> {
    vec![
        "Only the voice call marks its packets. So a discipline that classifies by marks alone, like \
         pfifo_fast, can help only the call."
            .into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate_config::Spec;
    use fairgate_sim::Simulation;

    fn results(seed: u64) -> Results {
        let contestant = Contestant {
            name: "fifo".into(),
            spec: Spec::inline("fifo").unwrap(),
        };
        let scenario = scenario(&contestant, Rate::mbit(20), Duration::from_secs(20), seed);
        Simulation::new(&scenario).unwrap().run().unwrap()
    }

    #[test]
    fn every_flow_belongs_to_an_application_and_each_application_has_flows() {
        let results = results(1);
        for flow in &results.flows {
            assert!(
                APPLICATIONS.iter().any(|(name, _)| *name == flow.group),
                "{}",
                flow.group
            );
        }
        let discipline = discipline("fifo".into(), &results);
        for ((name, _), group) in APPLICATIONS.iter().zip(&discipline.groups) {
            assert!(group.delivered > 0, "no packet of {name} was delivered");
        }
        let packets: u64 = discipline.groups.iter().map(|group| group.delivered).sum();
        assert_eq!(
            packets,
            results.flows.iter().map(|flow| flow.received).sum::<u64>()
        );
    }

    #[test]
    fn the_result_depends_only_on_the_seed() {
        assert_eq!(results(7), results(7));
        assert_ne!(results(7), results(8));
    }
}
