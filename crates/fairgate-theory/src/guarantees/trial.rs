//! Runs one traffic through one scheduler and compares the measured values with the published bounds.

use fairgate::ConfigError;
use num_bigint::BigInt;
use serde::Serialize;
use thiserror::Error;

use super::bounds::System;
use super::candidates::Candidate;
use super::kind::Kind;
use super::measures::{Lag, Measure, Weights, b_wfi, relative_fairness, t_wfi};
use super::schedule::{RecordError, Schedule, record};
use super::traffic::{RATE, Traffic};
use crate::fraction::Fraction;
use crate::gps::{Fluid, Gps, GpsError};

/// The worst flow, or pair of flows, by one measure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The measure.
    #[serde(skip)]
    pub kind: Kind,
    /// The measured value, rounded to a float.
    pub measured: f64,
    /// The bound rounded to a float, if one is published.
    pub bound: Option<f64>,
    /// Whether the measured value is above the bound. This is decided with exact numbers.
    pub is_above: bool,
    /// The flow.
    pub flow: u32,
    /// How bad the value is: as a part of the bound if there is one, otherwise in longest packets of the
    /// flow.
    pub severity: f64,
    /// The number of flows in this traffic.
    pub flows: u32,
    /// The number of packets in this traffic.
    pub packets: u32,
}

/// The reason why a trial failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrialError {
    /// The discipline rejects the weights or the number of flows.
    #[error("`{scheduler}` rejects the flows: {source}")]
    Refused {
        /// The scheduler.
        scheduler: &'static str,
        /// The error of the discipline.
        source: ConfigError,
    },
    /// The schedule could not be recorded.
    #[error("`{scheduler}`: {source}")]
    NotRecorded {
        /// The scheduler.
        scheduler: &'static str,
        /// The reason.
        source: RecordError,
    },
    /// The fluid system rejects the traffic.
    #[error(transparent)]
    Gps(#[from] GpsError),
    /// Packets were dropped, so the schedule is not of this traffic.
    #[error("`{scheduler}` dropped {dropped} packets though it has room for all")]
    Dropped {
        /// The scheduler.
        scheduler: &'static str,
        /// The number of dropped packets.
        dropped: u32,
    },
    /// The link was idle while packets were queued.
    #[error("`{scheduler}` sent nothing although the link was free and packets were queued")]
    NotWorkConserving {
        /// The scheduler.
        scheduler: &'static str,
    },
}

/// Runs a traffic through a scheduler and measures `kinds`. Returns the worst finding of each.
///
/// # Errors
/// Returns an error if the scheduler rejects the flows, drops packets or is not work-conserving.
pub fn examine(candidate: &Candidate, traffic: &Traffic, kinds: &[Kind]) -> Result<Vec<Finding>, TrialError> {
    let system = system(candidate, traffic);
    let schedule = run(candidate, traffic, &system)?;
    let fluid = match kinds.iter().any(|kind| kind.needs_gps()) {
        true => Some(fluid(traffic, &system.weights)?),
        false => None,
    };
    let trial = Trial {
        candidate,
        system,
        schedule,
        fluid,
    };
    Ok(kinds.iter().filter_map(|&kind| trial.worst(kind)).collect())
}

/// Returns the B-WFI of one flow over any interval, bytes.
///
/// # Errors
/// As [`examine`].
pub fn b_wfi_of(candidate: &Candidate, traffic: &Traffic, flow: u32) -> Result<f64, TrialError> {
    let system = system(candidate, traffic);
    let schedule = run(candidate, traffic, &system)?;
    Ok(exact(b_wfi(&schedule, &system.weights, flow).anywhere).to_f64())
}

/// Returns the system that bounds are computed for.
fn system(candidate: &Candidate, traffic: &Traffic) -> System {
    let weights = match candidate.weighted {
        true => Weights::new(traffic.weights.clone()),
        false => Weights::equal(traffic.weights.len() as u32),
    };
    // Quanta are proportional to the weights. They are the smallest that let every flow send its longest
    // packet in each turn.
    let per_weight = weights
        .each()
        .iter()
        .zip(&traffic.max_packets)
        .map(|(&weight, &longest)| longest.max(256).div_ceil(weight))
        .max()
        .unwrap_or(1);
    System {
        quanta: weights.each().iter().map(|&weight| weight * per_weight).collect(),
        max_packets: traffic.max_packets.clone(),
        weights,
        rate: RATE,
    }
}

/// Returns the schedule of a discipline that has room for all packets. It is an error if it drops one.
fn run(candidate: &Candidate, traffic: &Traffic, system: &System) -> Result<Schedule, TrialError> {
    let scheduler = candidate.name;
    let mut discipline = candidate
        .build(system, traffic.arrivals.len() as u32 + 1)
        .map_err(|source| TrialError::Refused { scheduler, source })?;
    let flows = traffic.weights.len() as u32;
    let schedule = record(discipline.as_mut(), RATE, flows, &traffic.arrivals)
        .map_err(|source| TrialError::NotRecorded { scheduler, source })?;
    if schedule.dropped() > 0 {
        let dropped = schedule.dropped();
        return Err(TrialError::Dropped { scheduler, dropped });
    }
    if !schedule.is_work_conserving() {
        return Err(TrialError::NotWorkConserving { scheduler });
    }
    Ok(schedule)
}

fn fluid(traffic: &Traffic, weights: &Weights) -> Result<Fluid, GpsError> {
    let mut gps = Gps::new(RATE, weights.each())?;
    for arrival in &traffic.arrivals {
        gps.arrive(arrival.at, arrival.flow, arrival.length)?;
    }
    Ok(gps.finish())
}

struct Trial<'a> {
    candidate: &'a Candidate,
    system: System,
    schedule: Schedule,
    fluid: Option<Fluid>,
}

impl Trial<'_> {
    /// Returns the worst flow by one measure.
    fn worst(&self, kind: Kind) -> Option<Finding> {
        let flows = 0..self.schedule.flows();
        let worst = |a: Finding, b: Finding| if b.severity > a.severity { b } else { a };
        match kind {
            Kind::RelativeFairness => flows
                .flat_map(|one| (0..one).map(move |other| (one, other)))
                .map(|(one, other)| self.pair(one, other))
                .reduce(worst),
            _ => flows.filter_map(|flow| self.flow(kind, flow)).reduce(worst),
        }
    }

    fn flow(&self, kind: Kind, flow: u32) -> Option<Finding> {
        let promises = self.candidate.promises();
        let (schedule, weights) = (&self.schedule, &self.system.weights);
        let (measured, bound) = match kind {
            Kind::BWfi => (exact(b_wfi(schedule, weights, flow).at_finish), promises.b_wfi),
            Kind::BWfiAnywhere => (
                exact(b_wfi(schedule, weights, flow).anywhere),
                promises.b_wfi_anywhere,
            ),
            Kind::TWfi => (exact(t_wfi(schedule, weights, flow)?), promises.t_wfi),
            Kind::DelayBehindGps => (self.lag(flow)?.delay, promises.delay_behind_gps),
            Kind::LeadOverGps => (self.lag(flow)?.lead, None),
            Kind::RelativeFairness => return None,
        };
        let bound = bound.map(|bound| exact((bound.of)(&self.system, flow as usize)));
        Some(self.finding(kind, flow, &measured, bound.as_ref()))
    }

    fn pair(&self, one: u32, other: u32) -> Finding {
        let measured = relative_fairness(&self.schedule, &self.system.weights, one, other);
        let bound = self.candidate.promises().relative_fairness;
        let bound = bound.map(|bound| exact((bound.of)(&self.system, one as usize, other as usize)));
        self.finding(Kind::RelativeFairness, one, &exact(measured), bound.as_ref())
    }

    fn lag(&self, flow: u32) -> Option<Lag> {
        Lag::of_flow(&self.schedule, self.fluid.as_ref()?, flow)
    }

    fn finding(&self, kind: Kind, flow: u32, measured: &Fraction, bound: Option<&Fraction>) -> Finding {
        let value = measured.to_f64();
        let longest = f64::from(self.system.max_packets[flow as usize]);
        let share = exact(self.system.weights.share(flow)).to_f64();
        // Converts to packets of the flow. Times are converted at the flow's share of the link.
        let packets = match kind {
            Kind::BWfi | Kind::BWfiAnywhere | Kind::LeadOverGps => value / longest,
            Kind::RelativeFairness => value / (longest / share),
            Kind::TWfi | Kind::DelayBehindGps => value / (longest * 8.0 / share),
        };
        Finding {
            kind,
            measured: value,
            bound: bound.map(Fraction::to_f64),
            is_above: bound.is_some_and(|bound| measured > bound),
            flow,
            severity: bound.map_or(packets, |bound| value / bound.to_f64()),
            flows: self.schedule.flows(),
            packets: self.schedule.sent().len() as u32,
        }
    }
}

fn exact(measure: Measure) -> Fraction {
    Fraction::new(
        BigInt::from(*measure.numer()),
        std::sync::Arc::new(BigInt::from(*measure.denom())),
    )
}
