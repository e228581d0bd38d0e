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
use crate::reproduce::scenario::plan::Case;

/// The number of values outside of the limits that a verdict lists, those farthest from them.
const LISTED: usize = 4;

/// Adds a verdict for each claim, and for each statement beside one: whether all its conditions hold.
/// `all_cases` are the names of the experiment's cases. A statement about one that was not run is not judged.
/// Each verdict ends with the `note`, if there is one.
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
        let mut holds = true;
        let mut found = Vec::new();
        for condition in conditions {
            let (is_within, text) = condition.judge(document, findings)?;
            holds &= is_within;
            found.push(text);
        }
        found.extend(note.map(str::to_owned));
        findings.judge(id, holds, found.join("; "));
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

impl Condition {
    /// Returns whether the condition holds, and what was found.
    fn judge(&self, document: &Document, findings: &Findings) -> Result<(bool, String), FileError> {
        if self.from.is_none() && self.to.is_none() {
            return Err(document.error(
                self.value.span(),
                "this condition has no limit",
                "add `from`, `to` or both",
            ));
        }
        let known = Known { document, findings };
        let mut values = Vec::new();
        let mut unit = String::new();
        for found in known.matching(&self.value)? {
            let value = match &self.of {
                None => {
                    unit.clone_from(found.unit);
                    found.value.mean
                }
                Some(of) => found.value.mean / known.filled(of, &found.texts)?,
            };
            values.push((value, found.case));
        }
        let is_within =
            |value: f64| self.from.is_none_or(|from| value >= from) && self.to.is_none_or(|to| value <= to);
        let wanted = match (self.from, self.to) {
            (Some(from), Some(to)) => format!("wanted {} to {}", digits(from), digits(to)),
            (Some(from), None) => format!("wanted at least {}", digits(from)),
            (None, Some(to)) => format!("wanted at most {}", digits(to)),
            (None, None) => unreachable!("a limit was found above"),
        };
        let [measure, case] = self.value.get_ref();
        let divisor = match &self.of {
            None => String::new(),
            Some(of) => format!(" / {} ({})", of.get_ref()[0], of.get_ref()[1]),
        };
        let unit = if unit.is_empty() { unit } else { format!(" {unit}") };
        let mut outside: Vec<&(f64, &str)> = values.iter().filter(|(value, _)| !is_within(*value)).collect();
        let distance = |value: f64| {
            let below = self.from.map_or(0.0, |from| from - value);
            below.max(self.to.map_or(0.0, |to| value - to))
        };
        outside.sort_by(|(one, _), (other, _)| distance(*other).total_cmp(&distance(*one)));
        let values_text = match (values.as_slice(), outside.as_slice()) {
            ([(value, _)], _) => format!("{}{unit}", digits(*value)),
            (all, []) => {
                let (least, most) = ends(all.iter().map(|(value, _)| *value));
                format!("{} to {}{unit}", digits(least), digits(most))
            }
            (_, outside) => {
                let farthest = outside.iter().take(LISTED);
                let each = farthest.map(|(value, case)| format!("{}{unit} in {case}", digits(*value)));
                let listed = each.collect::<Vec<_>>().join(", ");
                match outside.len() {
                    0..=LISTED => listed,
                    many => format!("{many} of {} are outside, the farthest {listed}", values.len()),
                }
            }
        };
        Ok((
            outside.is_empty(),
            format!("{measure} ({case}){divisor}: {values_text}, {wanted}"),
        ))
    }
}

/// Returns the least and the greatest value.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
        (least.min(value), most.max(value))
    })
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

    /// Returns the mean in the case whose name is the pattern with these texts.
    fn filled(&self, name: &Spanned<[String; 2]>, texts: &[&str]) -> Result<f64, FileError> {
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
        Ok(found.value.mean)
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
    use super::some_of;

    #[test]
    fn a_long_list_is_cut_short() {
        assert_eq!(some_of(&["a", "b", "c"]), "a; b; c");
        assert_eq!(some_of(&["a", "b", "c", "d", "e"]), "a; b; c; and 2 more");
    }
}
