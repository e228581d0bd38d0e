//! Remedies for words that are not known: "did you mean ...?"

use crate::Registry;

/// The longest word that may be meant to be another one, bytes.
const LONGEST: usize = 100;

/// Returns the name of the discipline that `name` was probably meant to be.
pub fn similar_name(registry: &Registry, name: &str) -> Option<&'static str> {
    similar(name, registry.names())
}

/// The candidate that `word` most probably was meant to be.
pub(crate) fn similar<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No name is as long; the measure takes the product of both lengths.
    if word.len() > LONGEST {
        return None;
    }
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (similarity(&word, &candidate.to_lowercase()), candidate))
        // Below this, suggestions look arbitrary.
        .filter(|(similarity, _)| *similarity > 0.78)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Jaro and Winkler's measure judges short words too hard: one slip, two letters swapped included, always
/// counts as similar (`tpc`, `tcp`).
fn similarity(word: &str, candidate: &str) -> f64 {
    let one_slip = strsim::osa_distance(word, candidate) == 1 && candidate.len() > 2;
    strsim::jaro_winkler(word, candidate).max(if one_slip { 0.9 } else { 0.0 })
}

/// A remedy for an unknown word: the similar candidate, and all of them.
pub fn remedy<'a>(word: &str, what: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let all = candidates.join(", ");
    match similar(word, candidates.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`? {what}: {all}"),
        None if candidates.is_empty() => format!("{what}: none"),
        None => format!("{what}: {all}"),
    }
}
