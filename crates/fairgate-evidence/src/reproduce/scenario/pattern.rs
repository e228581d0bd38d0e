//! Patterns of names: `*` stands for any text.

/// Returns what each `*` of the pattern stands for in the text, as little as possible each. `None` if the
/// text does not match.
pub(super) fn texts<'a>(pattern: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let Some((first, rest)) = pattern.split_once('*') else {
        return (pattern == text).then(Vec::new);
    };
    let after = text.strip_prefix(first)?;
    let ends = after.char_indices().map(|(at, _)| at).chain([after.len()]);
    ends.into_iter().find_map(|end| {
        let others = texts(rest, &after[end..])?;
        Some([vec![&after[..end]], others].concat())
    })
}

#[cfg(test)]
mod tests {
    use super::texts;

    #[test]
    fn patterns_find_texts() {
        assert_eq!(texts("SQF, n = 5", "SQF, n = 5"), Some(vec![]));
        assert_eq!(texts("SQF, *", "SQF, n = 5"), Some(vec!["n = 5"]));
        assert_eq!(texts("*, n = 5", "SQF, n = 5"), Some(vec!["SQF"]));
        assert_eq!(texts("*, * = 5", "SQF, n = 5"), Some(vec!["SQF", "n"]));
        assert_eq!(texts("*", ""), Some(vec![""]));
        assert_eq!(texts("SQF, *", "SQF"), None);
        assert_eq!(texts("SQF", "SQF, n = 5"), None);
    }
}
