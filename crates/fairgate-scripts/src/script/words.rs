//! Splits a script into lines and words.

use std::ops::Range;

use toml::Spanned;

/// A word and its location in the script.
pub(crate) type Word = Spanned<String>;

/// Returns the lines of a script as words, each line with its end (the location of a missing word). Comments
/// are left out, lines that end in `\` are joined with the next, and words for the shell (`sudo`, the path of
/// a program) are removed.
pub(crate) fn lines(text: &str, programs: &[&str]) -> Vec<(Vec<Word>, usize)> {
    let mut lines = Vec::new();
    let mut rest = Cursor { text, at: 0 };
    while rest.at < text.len() {
        let (words, end) = rest.line();
        let mut words: Vec<Word> = words;
        let is_program = |word: &Word| {
            let word = word.get_ref();
            programs.contains(&word.rsplit('/').next().unwrap_or(word))
        };
        if words.len() > 1 && words[0].get_ref() == "sudo" && is_program(&words[1]) {
            words.remove(0);
        }
        if words.first().is_some_and(is_program) {
            words.remove(0);
        }
        if !words.is_empty() {
            lines.push((words, end));
        }
    }
    lines
}

struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl Cursor<'_> {
    /// Returns the words up to the end of the line, and the end of the last word.
    fn line(&mut self) -> (Vec<Word>, usize) {
        let mut words: Vec<Word> = Vec::new();
        let mut end = self.at;
        while let Some(first) = self.text[self.at..].chars().next() {
            let rest = &self.text[self.at..];
            let joined = ["\\\n", "\\\r\n"]
                .into_iter()
                .find(|joined| rest.starts_with(joined));
            if first == '\n' {
                self.at += 1;
                break;
            } else if let Some(joined) = joined {
                self.at += joined.len();
            } else if first.is_whitespace() {
                self.at += first.len_utf8();
            } else if first == '#' {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else {
                let (location, word) = self.word(first);
                end = location.end;
                words.push(Spanned::new(location, word));
            }
        }
        (words, end)
    }

    /// Returns a word, or the text between quotation marks.
    fn word(&mut self, first: char) -> (Range<usize>, String) {
        let start = self.at;
        let rest = &self.text[start..];
        if matches!(first, '"' | '\'')
            && let Some(length) = rest[1..].find([first, '\n'])
            && rest[1 + length..].starts_with(first)
        {
            self.at += length + 2;
            return (start..self.at, rest[1..1 + length].to_owned());
        }
        let ends = |(at, next): &(usize, char)| {
            next.is_whitespace() || rest[*at..].starts_with("\\\n") || rest[*at..].starts_with("\\\r\n")
        };
        let length = rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at);
        self.at += length;
        (start..self.at, rest[..length].to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_and_stripped() {
        let text = "#!/bin/sh\n/sbin/tc a \\\n  'b c' d#e # f \\\n\nsudo tc g\\\nh\r\n  tc\ni";
        let words: Vec<Vec<String>> = lines(text, &["tc"])
            .into_iter()
            .map(|(words, _)| words.into_iter().map(Spanned::into_inner).collect())
            .collect();
        assert_eq!(words, [vec!["a", "b c", "d#e"], vec!["g", "h"], vec!["i"]]);
        for (words, end) in lines(text, &["tc"]) {
            assert_eq!(words.last().unwrap().span().end, end);
        }
    }
}
