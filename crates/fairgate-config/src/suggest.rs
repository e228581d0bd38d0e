//! Suggestions for unknown words: "did you mean ...?"

use crate::Registry;

/// The longest word for which a suggestion is searched, in bytes.
const LONGEST: usize = 100;

/// Returns the name of the discipline that `name` was probably meant to be.
pub fn similar_name(registry: &Registry, name: &str) -> Option<&'static str> {
    similar(name, registry.names())
}

/// Returns the candidate that `word` was probably meant to be.
pub(crate) fn similar<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No name is that long, and the cost of the comparison is the product of both lengths.
    if word.len() > LONGEST {
        return None;
    }
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (similarity(&word, &candidate.to_lowercase()), candidate))
        // Suggestions with a lower similarity look arbitrary.
        .filter(|(similarity, _)| *similarity > 0.78)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Returns the Jaro-Winkler similarity, but at least 0.9 for a single typing error. Without this exception,
/// short words with one error (`tpc`, `tcp`) would count as different. Two swapped letters are one error.
fn similarity(word: &str, candidate: &str) -> f64 {
    let one_error = strsim::osa_distance(word, candidate) == 1 && candidate.len() > 2;
    strsim::jaro_winkler(word, candidate).max(if one_error { 0.9 } else { 0.0 })
}

/// Returns a remedy for an unknown word: the similar candidate, and the list of all candidates.
pub fn remedy<'a>(word: &str, what: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let all = candidates.join(", ");
    match similar(word, candidates.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`? {what}: {all}"),
        None if candidates.is_empty() => format!("{what}: none"),
        None => format!("{what}: {all}"),
    }
}
