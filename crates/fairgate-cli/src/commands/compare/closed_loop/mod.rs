//! The closed loop: the connections of a capture, simulated with each discipline.
//!
//! A connection of the capture is repeated by simulated TCP: it starts when it was captured, and its ends
//! transfer what was recorded, in the same turns and after the same pauses of the applications. How long it
//! takes depends on the discipline. Packets other than TCP are sent when they were captured, because nothing
//! in them says what their senders wait for.
//!
//! ```text
//!   remote 12ms, remote 40ms, ...     servers, by the round-trip time that was measured in the capture
//!        \      |
//!        provider  ====================  home     the discipline at both ends
//! ```

mod build;
mod report;
mod traffic;

use std::time::Duration;

use fairgate::Rate;
use fairgate_report::Comparison;
use fairgate_sim::{Batch, Results};
use miette::Diagnostic;
use thiserror::Error;

use super::Contestant;
use super::capture::{self, TraceError};
use crate::failure::Failure;
use crate::input;
use crate::progress;

/// The time that is simulated after the last packet of the capture, so that connections can complete.
const AFTERWARDS: Duration = Duration::from_secs(10);

/// The options of the user.
pub(super) struct Options {
    /// The capture, and the rate towards the local side.
    pub(super) trace: capture::Options,
    /// The rate from the local side.
    pub(super) up: Rate,
}

#[derive(Debug, Error, Diagnostic)]
enum ClosedLoopError {
    #[error("can't simulate the connections with `{discipline}`")]
    #[diagnostic(help("simulate a shorter part of the capture with `--duration`"))]
    Simulation {
        discipline: String,
        source: fairgate_sim::Error,
    },
    #[error("none of the {packets} packets of {file} crosses the link ({view})")]
    #[diagnostic(help("`--local PREFIX` sets the local side"))]
    Nothing {
        file: String,
        packets: u64,
        view: String,
    },
    #[error("{file} contains no packets")]
    #[diagnostic(help("capture at least some seconds of traffic: tcpdump -i IFACE -s 96 -w my.pcap"))]
    NoPackets { file: String },
}

/// Simulates the connections of the capture with each discipline.
pub(super) fn run(
    options: &Options,
    contestants: Vec<Contestant>,
    command: String,
) -> Result<Comparison, Failure> {
    for contestant in &contestants {
        // Otherwise the error would say that a link of the scenario is wrong.
        contestant
            .spec
            .build(options.trace.seed)
            .map_err(TraceError::Build)?;
    }
    let traffic = traffic::read(&options.trace)?;
    if traffic.connections.is_empty() && traffic.datagrams.is_empty() {
        let file = options.trace.source.to_string();
        return Err(match traffic.packets {
            0 => ClosedLoopError::NoPackets { file },
            packets => ClosedLoopError::Nothing {
                file,
                packets,
                view: traffic.view.describe(),
            },
        }
        .into());
    }
    let template = build::scenario(options, &traffic);
    let millis = template.duration.as_millis() as u64 * contestants.len() as u64;
    let bar = progress::simulated(millis, options.trace.format);
    let memory = input::available_memory() / contestants.len().max(1) as u64;
    let wrong = |contestant: &Contestant, source| ClosedLoopError::Simulation {
        discipline: contestant.name.clone(),
        source,
    };
    let mut scenarios = Vec::with_capacity(contestants.len());
    for contestant in &contestants {
        let scenario = build::with_queue(&template, contestant);
        let fits = scenario.check_memory(memory);
        fits.map_err(|error| wrong(contestant, error.into()))?;
        scenarios.push(scenario);
    }
    let results = Batch::default().run(&scenarios, |simulated| bar.inc(simulated.as_millis() as u64));
    bar.finish_and_clear();
    let mut outcomes: Vec<(String, Results)> = Vec::with_capacity(results.len());
    for (contestant, results) in contestants.iter().zip(results) {
        let results = results.map_err(|error| wrong(contestant, error))?;
        outcomes.push((contestant.name.clone(), results));
    }
    Ok(report::assemble(options, &traffic, &template, outcomes, command))
}
