//! All schedulers beside each other: measured, published, and how it grows.

use serde::Serialize;

use super::adversary::{Effort, Findings, search};
use super::bounds::Promises;
use super::candidates::{CANDIDATES, Candidate};
use super::growth::heavy_among;
use super::trial::{Finding, Kind, TrialError};

/// What was found of all schedulers.
#[derive(Clone, Debug, Serialize)]
pub struct Survey {
    /// The seed of all traffic.
    pub seed: u64,
    /// Of the link that everything was measured on, bit/s.
    pub rate_bps: u64,
    /// Each scheduler.
    pub schedulers: Vec<Surveyed>,
    /// Light flows in the columns of [`Surveyed::heavy_b_wfi`].
    pub light_flows: Vec<u32>,
}

/// One scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct Surveyed {
    /// Its name.
    pub scheduler: &'static str,
    /// Whether its flows had weights; where not, it was measured against equal ones.
    pub weighted: bool,
    /// What to know of bounds that are not there.
    pub remark: &'static str,
    /// By each measure.
    pub measures: Vec<Row>,
    /// B-WFI over any interval of a flow with half of the link beside so many light ones, in packets.
    pub heavy_b_wfi: Vec<Option<f64>>,
}

/// One measure of a scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The measure.
    pub measure: &'static str,
    /// What it is counted in.
    pub unit: &'static str,
    /// The bound for people; `None` if none is published.
    pub formula: Option<&'static str>,
    /// Where it is published.
    pub source: Option<&'static str>,
    /// The worst under random traffic.
    pub random: Option<Finding>,
    /// The worst under traffic made to hurt.
    pub adversarial: Option<Finding>,
    /// Whether nothing was above the bound; `None` if there is none.
    pub within: Option<bool>,
}

/// Numbers of light flows for [`Surveyed::heavy_b_wfi`].
pub const LIGHT_FLOWS: [u32; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];

impl Survey {
    /// Tries `candidates`. `tried` is called after each traffic of the search with the scheduler's name.
    ///
    /// # Errors
    /// If a scheduler loses packets, or lets the link stand still.
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

    /// Tries all schedulers.
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

    /// Whether nothing measured is above its bound.
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
