//! Compares all schedulers: measured values, bounds, and growth with the number of flows.

use serde::Serialize;

use super::adversary::{Effort, Findings, search};
use super::bounds::Promises;
use super::candidates::{CANDIDATES, Candidate};
use super::growth::heavy_among;
use super::kind::Kind;
use super::trial::{Finding, TrialError};

/// The results for all schedulers.
#[derive(Clone, Debug, Serialize)]
pub struct Survey {
    /// The seed of all traffic.
    pub seed: u64,
    /// The rate of the link of all measurements, bit/s.
    pub rate_bps: u64,
    /// The result of each scheduler.
    pub schedulers: Vec<Surveyed>,
    /// The numbers of light flows of the columns of [`Surveyed::heavy_b_wfi`].
    pub light_flows: Vec<u32>,
}

/// The result of one scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct Surveyed {
    /// The name of the scheduler.
    pub scheduler: &'static str,
    /// Whether the flows had weights. If not, it is measured with equal weights.
    pub weighted: bool,
    /// An explanation of the bounds that are missing.
    pub remark: &'static str,
    /// One row for each measure.
    pub measures: Vec<Row>,
    /// The B-WFI over any interval of a flow with half of the link beside [`Survey::light_flows`] light
    /// flows, in packets.
    pub heavy_b_wfi: Vec<Option<f64>>,
}

/// One measure of a scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The name of the measure.
    pub measure: &'static str,
    /// The unit of the measure.
    pub unit: &'static str,
    /// The formula of the bound as text; `None` if there is no bound.
    pub formula: Option<&'static str>,
    /// The source of the bound.
    pub source: Option<&'static str>,
    /// The worst finding under random traffic.
    pub random: Option<Finding>,
    /// The worst finding under traffic that was searched for.
    pub adversarial: Option<Finding>,
    /// Whether no value was above the bound; `None` if there is no bound.
    pub within: Option<bool>,
}

/// The numbers of light flows for [`Surveyed::heavy_b_wfi`].
pub const LIGHT_FLOWS: [u32; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];

impl Survey {
    /// Surveys `candidates`. `tried` is called with the scheduler's name after each traffic of the search.
    ///
    /// # Errors
    /// Returns an error if a scheduler loses packets or leaves the link idle while packets are queued.
    pub fn of(
        candidates: &[Candidate],
        effort: Effort,
        seed: u64,
        tried: &mut dyn FnMut(&'static str),
    ) -> Result<Survey, TrialError> {
        let mut survey = Survey {
            seed,
            rate_bps: super::traffic::RATE.bits_per_second(),
            schedulers: Vec::new(),
            light_flows: LIGHT_FLOWS.to_vec(),
        };
        for candidate in candidates {
            let findings = search(candidate, effort, seed, &mut || tried(candidate.name))?;
            let heavy = LIGHT_FLOWS.map(|light| heavy_among(candidate, light));
            survey.schedulers.push(Surveyed {
                scheduler: candidate.name,
                weighted: candidate.weighted,
                remark: candidate.promises().remark,
                measures: rows(candidate.promises(), &findings),
                heavy_b_wfi: heavy.into_iter().collect::<Result<_, _>>()?,
            });
        }
        Ok(survey)
    }

    /// Surveys all schedulers.
    ///
    /// # Errors
    /// As [`of`](Survey::of).
    pub fn of_all(
        effort: Effort,
        seed: u64,
        tried: &mut dyn FnMut(&'static str),
    ) -> Result<Survey, TrialError> {
        Survey::of(CANDIDATES, effort, seed, tried)
    }

    /// Surveys all schedulers for which a publication prints a bound, against the printed bounds.
    ///
    /// # Errors
    /// As [`of`](Survey::of).
    pub fn of_printed(
        effort: Effort,
        seed: u64,
        tried: &mut dyn FnMut(&'static str),
    ) -> Result<Survey, TrialError> {
        Survey::of(&Survey::printed_candidates(), effort, seed, tried)
    }

    /// Returns the candidates of [`of_printed`](Survey::of_printed).
    pub fn printed_candidates() -> Vec<Candidate> {
        let all = CANDIDATES.iter().copied();
        all.filter_map(Candidate::by_printed_bounds).collect()
    }

    /// Whether no measured value is above its bound.
    pub fn all_within(&self) -> bool {
        let rows = self.schedulers.iter().flat_map(|surveyed| &surveyed.measures);
        rows.into_iter().all(|row| row.within != Some(false))
    }
}

fn rows(promises: &Promises, findings: &Findings) -> Vec<Row> {
    Kind::ALL
        .into_iter()
        .map(|kind| {
            let of = |all: &[Finding]| all.iter().find(|finding| finding.kind == kind).cloned();
            let words = promises.words(kind);
            let is_broken = findings.broken.iter().any(|(finding, _)| finding.kind == kind);
            Row {
                measure: kind.name(),
                unit: kind.unit(),
                formula: words.map(|(formula, _)| formula),
                source: words.map(|(_, source)| source),
                random: of(&findings.random),
                adversarial: of(&findings.adversarial),
                within: words.map(|_| !is_broken),
            }
        })
        .collect()
}
