//! Searches for the traffic under which a scheduler performs worst.
//!
//! The search is hill climbing from many starting points. It changes a [`Recipe`], and later single packets
//! of the traffic that the recipe gave. It keeps a change if the worst flow is served no better. Some
//! starting points are traffics that are known to be bad ([`Traffic::short_after_long`],
//! [`Traffic::many_after_few`]); a search packet by packet almost never finds them. The search maximises the
//! measured value divided by its bound. Without a bound it maximises the measured value in packets. Every
//! traffic that is tried on the way counts.

use super::candidates::Candidate;
use super::kind::Kind;
use super::traffic::{Recipe, Traffic};
use super::trial::{Finding, TrialError, examine};
use crate::measured::Dice;

/// The number of traffics to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// The number of random traffics.
    pub random: u32,
    /// The number of climbs for each measure that has a bound.
    pub climbs: u32,
    /// The number of changes of a recipe in each climb.
    pub coarse: u32,
    /// The number of changes of single packets after that.
    pub fine: u32,
    /// The number of traffics that are known to be bad, for each measure that has a bound.
    pub known: u32,
}

impl Effort {
    /// Takes a second or less for each scheduler.
    pub const QUICK: Effort = Effort {
        random: 10,
        climbs: 3,
        coarse: 12,
        fine: 25,
        known: 4,
    };

    /// The default of `fairgate-lab bounds`.
    pub const USUAL: Effort = Effort {
        random: 100,
        climbs: 20,
        coarse: 40,
        fine: 150,
        known: 10,
    };

    /// Tries of each known traffic: one unchanged, the others with single packets changed. These traffics are
    /// long, and bad without changes.
    const POLISH: u64 = 4;

    /// Returns the effort with `factor` times as many random traffics, climbs and known traffics.
    #[must_use]
    pub fn times(self, factor: u32) -> Effort {
        Effort {
            random: self.random.saturating_mul(factor),
            climbs: self.climbs.saturating_mul(factor),
            known: self.known.saturating_mul(factor),
            ..self
        }
    }

    /// Returns the number of traffics that will be tried with one scheduler.
    pub fn trials(self, candidate: &Candidate) -> u64 {
        let climb = 1 + u64::from(self.coarse) + u64::from(self.fine);
        let each = u64::from(self.climbs) * climb + u64::from(self.known) * Effort::POLISH;
        u64::from(self.random) + targets(candidate).len() as u64 * each
    }
}

/// The results for one scheduler.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The worst finding by each measure under random traffic, in the order of [`Kind::ALL`].
    pub random: Vec<Finding>,
    /// The same under traffic that was searched for.
    pub adversarial: Vec<Finding>,
    /// The measures whose worst value is above its bound, each with its traffic.
    pub broken: Vec<(Finding, Traffic)>,
}

impl Findings {
    /// Whether no measured value was above its bound.
    pub fn all_within(&self) -> bool {
        self.broken.is_empty()
    }
}

/// Returns the measures to climb by: all measures that have a bound, or the B-WFI if none has.
fn targets(candidate: &Candidate) -> Vec<Kind> {
    let promises = candidate.promises();
    let with_bound = [
        (Kind::BWfi, promises.b_wfi.is_some()),
        (Kind::BWfiAnywhere, promises.b_wfi_anywhere.is_some()),
        (Kind::RelativeFairness, promises.relative_fairness.is_some()),
        (Kind::DelayBehindGps, promises.delay_behind_gps.is_some()),
        (Kind::TWfi, promises.t_wfi.is_some()),
    ];
    let targets: Vec<Kind> = with_bound
        .into_iter()
        .filter_map(|(kind, has)| has.then_some(kind))
        .collect();
    if targets.is_empty() {
        vec![Kind::BWfi]
    } else {
        targets
    }
}

/// Searches for the worst traffic of one scheduler. `tried` is called after each traffic.
///
/// # Errors
/// Returns an error if the scheduler loses packets or leaves the link idle while packets are queued.
pub fn search(
    candidate: &Candidate,
    effort: Effort,
    seed: u64,
    tried: &mut dyn FnMut(),
) -> Result<Findings, TrialError> {
    let mut search = Search {
        candidate,
        dice: Dice::new(seed, candidate.name),
        findings: Findings::default(),
        tried,
    };
    for _ in 0..effort.random {
        let traffic = Traffic::random(&mut search.dice, 400);
        search.random(&traffic)?;
    }
    for target in targets(candidate) {
        for _ in 0..effort.climbs {
            search.climb(target, effort)?;
        }
        for _ in 0..effort.known {
            search.known(target)?;
        }
    }
    let worst = std::mem::take(&mut search.findings);
    Ok(worst)
}

struct Search<'a> {
    candidate: &'a Candidate,
    dice: Dice,
    findings: Findings,
    tried: &'a mut dyn FnMut(),
}

impl Search<'_> {
    fn random(&mut self, traffic: &Traffic) -> Result<(), TrialError> {
        let found = self.examine(traffic, &Kind::ALL)?;
        keep_worst(&mut self.findings.random, found);
        Ok(())
    }

    fn climb(&mut self, target: Kind, effort: Effort) -> Result<(), TrialError> {
        let mut recipe = Recipe::adversarial(&mut self.dice);
        let mut best = self.score(&recipe.traffic(), target)?;
        for _ in 0..effort.coarse {
            let changed = recipe.changed(&mut self.dice);
            let score = self.score(&changed.traffic(), target)?;
            if score >= best {
                (recipe, best) = (changed, score);
            }
        }
        self.polish(recipe.traffic(), best, target, effort.fine)
    }

    /// Tries a traffic that is known to be bad, unchanged and with single packets changed.
    fn known(&mut self, target: Kind) -> Result<(), TrialError> {
        let traffic = match self.dice.below(2) {
            0 => Traffic::short_after_long(&mut self.dice),
            _ => Traffic::many_after_few(&mut self.dice),
        };
        let best = self.score(&traffic, target)?;
        self.polish(traffic, best, target, Effort::POLISH as u32 - 1)
    }

    /// Changes single packets `changes` times and keeps each change that is no better for the worst flow.
    fn polish(
        &mut self,
        mut traffic: Traffic,
        mut best: f64,
        target: Kind,
        changes: u32,
    ) -> Result<(), TrialError> {
        for _ in 0..changes {
            let changed = traffic.changed(&mut self.dice);
            let score = self.score(&changed, target)?;
            if score >= best {
                (traffic, best) = (changed, score);
            }
        }
        // Measure the worst traffic by the other measures, too.
        let found = self.examine(&traffic, &Kind::ALL)?;
        keep_worst(&mut self.findings.adversarial, found);
        Ok(())
    }

    /// Returns how badly the worst flow is served, by `target`.
    fn score(&mut self, traffic: &Traffic, target: Kind) -> Result<f64, TrialError> {
        let found = self.examine(traffic, &[target])?;
        let score = found
            .first()
            .map_or(f64::NEG_INFINITY, |finding| finding.severity);
        keep_worst(&mut self.findings.adversarial, found);
        (self.tried)();
        Ok(score)
    }

    /// Measures a traffic. The result is empty if the scheduler rejects its flows.
    fn examine(&mut self, traffic: &Traffic, kinds: &[Kind]) -> Result<Vec<Finding>, TrialError> {
        let found = match examine(self.candidate, traffic, kinds) {
            Err(TrialError::Refused { .. }) => Vec::new(),
            other => other?,
        };
        let broken = found.iter().filter(|finding| finding.is_above);
        let broken: Vec<_> = broken.map(|finding| (finding.clone(), traffic.clone())).collect();
        for (finding, traffic) in broken {
            let known = self
                .findings
                .broken
                .iter_mut()
                .find(|(known, _)| known.kind == finding.kind);
            match known {
                None => self.findings.broken.push((finding, traffic)),
                Some(known) if known.0.severity < finding.severity => *known = (finding, traffic),
                Some(_) => {}
            }
        }
        Ok(found)
    }
}

/// Keeps the worst finding by each measure, in the order of [`Kind::ALL`].
fn keep_worst(worst: &mut Vec<Finding>, found: Vec<Finding>) {
    for finding in found {
        match worst.iter_mut().find(|known| known.kind == finding.kind) {
            Some(known) if known.severity >= finding.severity => {}
            Some(known) => *known = finding,
            None => worst.push(finding),
        }
    }
    let position = |finding: &Finding| Kind::ALL.iter().position(|&kind| kind == finding.kind);
    worst.sort_by_key(position);
}
