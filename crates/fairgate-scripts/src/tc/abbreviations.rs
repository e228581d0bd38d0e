//! Abbreviations: tc matches most of its words by their beginnings (`matches` in iproute2's utils.c).

/// Returns the first of `words` that `word` is a beginning of; the word itself goes before longer ones.
pub(super) fn full<'w>(word: &str, words: &[&'w str]) -> Option<&'w str> {
    let mut whole = words.iter().filter(|full| **full == word);
    let mut begun = words
        .iter()
        .filter(|full| !word.is_empty() && full.starts_with(word));
    whole.next().or_else(|| begun.next()).copied()
}

#[cfg(test)]
mod tests {
    use super::full;

    #[test]
    fn the_first_word_that_begins_so_is_meant() {
        let words = ["change", "class", "c"];
        assert_eq!(full("c", &words), Some("c"));
        assert_eq!(full("cl", &words), Some("class"));
        assert_eq!(full("ch", &words), Some("change"));
        assert_eq!(full("", &words), None);
        assert_eq!(full("classes", &words), None);
    }
}
