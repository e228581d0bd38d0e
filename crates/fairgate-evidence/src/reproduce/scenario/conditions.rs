//! Judges claims by conditions on measured means.
//!
//! A condition names a measure and a case. A case with `*` is a pattern: the condition must hold in every
//! case that matches. `*` stands for any text. A pattern in `of` is filled with the texts that the pattern of
//! `value` has found, in their order.

use fairgate_config::{Document, FileError};
use fairgate_theory::estimate::Estimate;
use toml::Spanned;

use crate::reproduce::Findings;
use crate::reproduce::description::{Condition, Description};
use crate::reproduce::digits::digits;
use crate::reproduce::scenario::pattern::texts;
use crate::reproduce::scenario::plan::{Case, ONLY};

/// The number of values that a verdict lists: those farthest outside of their limits, or closest to them.
const LISTED: usize = 6;
/// The least number of runs whose spread says what chance does.
const LEAST_RUNS: u64 = 3;

/// Adds a verdict for each claim, and for each statement beside one: whether all its conditions hold.
/// `all_cases` are the names of the experiment's cases. A statement about one that was not run is not judged.
/// What was found is the worst value first, and ends with the `note`, if there is one.
pub(super) fn judge(
    document: &Document,
    all_cases: &[Case],
    note: Option<&str>,
    findings: &mut Findings,
) -> Result<(), FileError> {
    let description = Description::read(document)?;
    let claims = description.claims.iter().map(|claim| (&claim.id, &claim.holds));
    let instead = description.instead.iter().map(|ours| (&ours.id, &ours.holds));
    for (id, conditions) in claims.chain(instead) {
        if conditions.is_empty() {
            return Err(document.error(
                0..0,
                format!("claim `{id}` has no condition"),
                "write holds = [{ value = [\"MEASURE\", \"CASE\"], from = 1, to = 2 }]",
            ));
        }
        let missing = missing_cases(conditions, all_cases, findings);
        if !missing.is_empty() {
            findings.leave_open(id, format!("not run live: {}", some_of(&missing)));
            continue;
        }
        let mut values = Vec::new();
        for condition in conditions {
            values.extend(condition.values(document, findings)?);
        }
        values.sort_by(|one, other| other.badness().total_cmp(&one.badness()));
        let mut found: Vec<String> = values.iter().take(LISTED).map(ToString::to_string).collect();
        if let Some(more @ 1..) = values.len().checked_sub(LISTED) {
            let outside = values[LISTED..].iter().filter(|value| !value.is_within()).count();
            found.push(match outside {
                0 => format!("{more} more are within their limits"),
                outside => format!("{outside} of {more} more are outside"),
            });
        }
        found.extend(note.map(str::to_owned));
        let found = found.join("; ");
        let outside = || values.iter().filter(|value| !value.is_within());
        let distances: Option<Vec<f64>> = outside().map(Value::chance).collect();
        match distances {
            Some(distances) if distances.is_empty() => findings.judge(id, true, found),
            Some(distances) => {
                findings.judge_by_chance(id, distances.into_iter().fold(0.0, f64::max), found);
            }
            None => findings.judge(id, false, found),
        }
    }
    Ok(())
}

/// Returns the first names of a list, and how many more there are: a claim can be about a hundred cases.
fn some_of(names: &[&str]) -> String {
    const SHOWN: usize = 3;
    let mut text = names[..names.len().min(SHOWN)].join("; ");
    if let Some(more @ 1..) = names.len().checked_sub(SHOWN) {
        text += &format!("; and {more} more");
    }
    text
}

/// Returns the patterns of conditions that match cases of the experiment that were not run.
fn missing_cases<'a>(conditions: &'a [Condition], all_cases: &[Case], findings: &Findings) -> Vec<&'a str> {
    let was_run = |name: &str| findings.measurements.iter().any(|found| found.case == name);
    let not_run: Vec<&str> = all_cases
        .iter()
        .map(|case| case.name.as_str())
        .filter(|name| !was_run(name))
        .collect();
    let mut missing: Vec<&str> = conditions
        .iter()
        .flat_map(|condition| [Some(&condition.value), condition.of.as_ref()])
        .flatten()
        .map(|name| name.get_ref()[1].as_str())
        .filter(|pattern| not_run.iter().any(|name| texts(pattern, name).is_some()))
        .collect();
    missing.dedup();
    missing
}

/// A measured value, or a ratio of two, and the limits of a condition.
#[derive(Debug)]
struct Value {
    /// The measure and the case, and those of the divisor.
    name: String,
    unit: String,
    estimate: Estimate,
    from: Option<f64>,
    to: Option<f64>,
}

impl Value {
    fn is_within(&self) -> bool {
        let mean = self.estimate.mean;
        self.from.is_none_or(|from| mean >= from) && self.to.is_none_or(|to| mean <= to)
    }

    /// Returns how far the mean is outside of the limits, above 0, or how close it is to the nearest one,
    /// below 0, as a part of that limit.
    fn badness(&self) -> f64 {
        let mean = self.estimate.mean;
        let part = |distance: f64, limit: f64| match limit == 0.0 {
            true => distance,
            false => distance / limit.abs(),
        };
        let below = self.from.map(|from| part(from - mean, from));
        let above = self.to.map(|to| part(mean - to, to));
        below.into_iter().chain(above).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns the distance of the mean from what is published, in standard deviations of a single run, if
    /// one more run of ours reaches it with a probability of 95 %. Limits on both sides stand around a
    /// published value, so that it is their middle. A limit on one side is itself what is published.
    fn chance(&self) -> Option<f64> {
        let published = match (self.from, self.to) {
            (Some(from), Some(to)) => f64::midpoint(from, to),
            (from, to) => from.or(to)?,
        };
        let distance = (self.estimate.mean - published).abs();
        let is_reached = self.estimate.runs >= LEAST_RUNS && distance <= self.estimate.reach();
        is_reached.then(|| distance / self.estimate.deviation())
    }
}

/// The value, and the limits if it is outside of them or close to one.
impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unit = if self.unit.is_empty() { "" } else { " " };
        write!(
            f,
            "{}: {}{unit}{}",
            self.name,
            digits(self.estimate.mean),
            self.unit
        )?;
        match (self.from, self.to) {
            (Some(from), Some(to)) => write!(f, ", wanted {} to {}", digits(from), digits(to)),
            (Some(from), None) => write!(f, ", wanted at least {}", digits(from)),
            (None, Some(to)) => write!(f, ", wanted at most {}", digits(to)),
            (None, None) => Ok(()),
        }
    }
}

impl Condition {
    /// Returns what the condition is about: a value for each case that matches.
    fn values(&self, document: &Document, findings: &Findings) -> Result<Vec<Value>, FileError> {
        if self.from.is_none() && self.to.is_none() {
            return Err(document.error(
                self.value.span(),
                "this condition has no limit",
                "add `from`, `to` or both",
            ));
        }
        let known = Known { document, findings };
        let measure = &self.value.get_ref()[0];
        let values = known.matching(&self.value)?.into_iter().map(|found| {
            let name = match found.case {
                ONLY => measure.clone(),
                case => format!("{measure} ({case})"),
            };
            let (name, unit, estimate) = match &self.of {
                None => (name, found.unit.clone(), *found.value),
                Some(of) => {
                    let (divisor, case) = known.filled(of, &found.texts)?;
                    let over = match (of.get_ref()[0] == *measure, case == found.case) {
                        (true, _) => format!("{name} / ({case})"),
                        (false, true) if case == ONLY => format!("{measure} / {}", of.get_ref()[0]),
                        (false, true) => format!("{measure} / {} ({case})", of.get_ref()[0]),
                        (false, false) => format!("{name} / {} ({case})", of.get_ref()[0]),
                    };
                    (over, String::new(), found.value.over(divisor))
                }
            };
            Ok(Value {
                name,
                unit,
                estimate,
                from: self.from,
                to: self.to,
            })
        });
        values.collect()
    }
}

/// What was measured, and the file that names it.
struct Known<'a> {
    document: &'a Document,
    findings: &'a Findings,
}

/// A measurement that a pattern has found.
struct Matching<'a> {
    value: &'a Estimate,
    unit: &'a String,
    case: &'a str,
    /// What each `*` of the pattern stands for.
    texts: Vec<&'a str>,
}

impl<'a> Known<'a> {
    /// Returns the measurements of this measure in the cases that match: at least one.
    fn matching(&self, name: &Spanned<[String; 2]>) -> Result<Vec<Matching<'a>>, FileError> {
        let [measure, pattern] = name.get_ref();
        let all = self.findings.measurements.iter();
        let found: Vec<Matching<'a>> = all
            .filter(|found| found.measure == *measure)
            .filter_map(|found| {
                Some(Matching {
                    value: &found.value,
                    unit: &found.unit,
                    case: &found.case,
                    texts: texts(pattern, &found.case)?,
                })
            })
            .collect();
        match found.is_empty() {
            true => Err(self.missing(name, pattern)),
            false => Ok(found),
        }
    }

    /// Returns the value in the case whose name is the pattern with these texts, and that name.
    fn filled(
        &self,
        name: &Spanned<[String; 2]>,
        texts: &[&str],
    ) -> Result<(&'a Estimate, String), FileError> {
        let [measure, pattern] = name.get_ref();
        let mut texts = texts.iter();
        let mut case = String::new();
        for (number, part) in pattern.split('*').enumerate() {
            if number > 0 {
                case.push_str(texts.next().copied().unwrap_or("*"));
            }
            case.push_str(part);
        }
        let mut all = self.findings.measurements.iter();
        let found = all.find(|found| found.measure == *measure && found.case == case);
        let found = found.ok_or_else(|| self.missing(name, &case))?;
        Ok((&found.value, case))
    }

    fn missing(&self, name: &Spanned<[String; 2]>, case: &str) -> FileError {
        let all = &self.findings.measurements;
        let mut measures: Vec<&str> = all.iter().map(|found| found.measure.as_str()).collect();
        measures.dedup();
        self.document.error(
            name.span(),
            format!("there is no `{}` in the case `{case}`", name.get_ref()[0]),
            format!(
                "the measures are {}; a case has the names of all its dimensions, such as `{}`; `*` \
                 stands for any text",
                measures.join(", "),
                all.first().map_or("", |found| found.case.as_str()),
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, some_of};
    use fairgate_theory::estimate::Estimate;

    fn value(runs: &[f64], from: Option<f64>, to: Option<f64>) -> Value {
        Value {
            name: "loss (fifo)".into(),
            unit: "%".into(),
            estimate: Estimate::of(runs).unwrap(),
            from,
            to,
        }
    }

    /// Five runs with a mean of 3 and a deviation of 1.58: 95 % of single runs are within 4.81 of the mean.
    #[test]
    fn chance_reaches_as_far_as_a_single_run() {
        let runs = [1.0, 2.0, 3.0, 4.0, 5.0];
        let distance = value(&runs, None, Some(1.0)).chance().unwrap();
        assert!((distance - 2.0 / 2.5f64.sqrt()).abs() < 1e-9, "{distance}");
        assert_eq!(value(&runs, Some(8.0), None).chance(), None);
        // The middle counts, not the nearer limit.
        assert!(value(&runs, Some(6.0), Some(9.0)).chance().is_some());
        assert_eq!(value(&runs, Some(7.0), Some(10.0)).chance(), None);
        // One or two runs, or runs without a spread, show no chance.
        assert_eq!(value(&[3.0], Some(3.1), None).chance(), None);
        assert_eq!(value(&[3.0, 4.0], Some(3.6), None).chance(), None);
        assert_eq!(value(&[3.0; 5], Some(3.1), None).chance(), None);
    }

    #[test]
    fn the_worst_value_is_the_farthest_from_its_limit_by_its_limit() {
        let worst = value(&[3.0], None, Some(2.0));
        let close = value(&[10.0], None, Some(10.5));
        let far = value(&[10.0], Some(1.0), None);
        assert!(worst.badness() > 0.0 && close.badness() < 0.0 && far.badness() < close.badness());
        assert_eq!(worst.to_string(), "loss (fifo): 3.000 %, wanted at most 2.000");
    }

    #[test]
    fn a_long_list_is_cut_short() {
        assert_eq!(some_of(&["a", "b", "c"]), "a; b; c");
        assert_eq!(some_of(&["a", "b", "c", "d", "e"]), "a; b; c; and 2 more");
    }
}
