//! "Did you mean ...?"

/// The candidate that `word` most probably was meant to be.
pub(crate) fn similar<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&lower, &candidate.to_lowercase()), candidate))
        // Below this, suggestions look arbitrary: `rate` for `rata` has 0.88, `limit` for `list` 0.79.
        .filter(|(similarity, _)| *similarity > 0.78)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// A remedy for an unknown word: the similar candidate, and all of them.
pub(crate) fn remedy<'a>(word: &str, what: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let all = candidates.join(", ");
    match similar(word, candidates.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`? {what}: {all}"),
        None if candidates.is_empty() => format!("{what}: none"),
        None => format!("{what}: {all}"),
    }
}
