//! Splits pf.conf into statements of words.
//!
//! A statement ends with its line, unless the line ends in `\\` or a brace or parenthesis is open. Braces,
//! parentheses and commas are words of their own. A macro is replaced where it is used; its words have the
//! location of the use.

use std::collections::HashMap;
use std::ops::Range;

use fairgate_config::language::Problems;
use toml::Spanned;

use crate::script::Word;

/// A word, and whether it was in quotation marks.
struct Token {
    text: String,
    location: Range<usize>,
    is_quoted: bool,
}

/// Returns the statements, each with its end.
pub(super) fn read(text: &str, problems: &mut Problems) -> Vec<(Vec<Word>, usize)> {
    let mut macros: HashMap<String, Vec<String>> = HashMap::new();
    let mut statements = Vec::new();
    for tokens in split(text) {
        if let Some((name, value)) = definition(&tokens) {
            let value = value.iter().flat_map(|token| match token.is_quoted {
                true => split(&token.text)
                    .into_iter()
                    .flatten()
                    .map(|token| token.text)
                    .collect(),
                false => vec![token.text.clone()],
            });
            let value: Vec<String> = value.flat_map(|text| expanded(&text, &macros)).collect();
            macros.insert(name, value);
            continue;
        }
        let end = tokens.last().map_or(0, |token| token.location.end);
        let mut words: Vec<Word> = Vec::new();
        for token in tokens {
            let values = match token.is_quoted {
                true => vec![token.text.clone()],
                false => expanded(&token.text, &macros),
            };
            if let Some(name) = values
                .first()
                .and_then(|text| text.trim_start_matches('!').strip_prefix('$'))
            {
                let message = format!("there is no macro `{name}`");
                let help = format!("define it before: {name} = \"...\"");
                problems.add(token.location.clone(), message, "not defined", help);
            }
            words.extend(
                values
                    .into_iter()
                    .map(|text| Spanned::new(token.location.clone(), text)),
            );
        }
        if !words.is_empty() {
            statements.push((words, end));
        }
    }
    statements
}

/// Returns the name and the value of a macro: `ext_if = "em0"`.
fn definition(tokens: &[Token]) -> Option<(String, &[Token])> {
    let first = tokens.first().filter(|token| !token.is_quoted)?;
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if let Some(name) = first.text.strip_suffix('=').filter(|name| is_name(name)) {
        return Some((name.to_owned(), &tokens[1..]));
    }
    let second = tokens.get(1)?;
    (second.text == "=" && is_name(&first.text)).then(|| (first.text.clone(), &tokens[2..]))
}

/// Returns the words that a word stands for.
fn expanded(text: &str, macros: &HashMap<String, Vec<String>>) -> Vec<String> {
    let (sign, rest) = text.strip_prefix('!').map_or(("", text), |rest| ("!", rest));
    let Some(name) = rest.strip_prefix('$') else {
        return vec![text.to_owned()];
    };
    let (name, modifier) = name
        .split_once(':')
        .map_or((name, ""), |(name, modifier)| (name, modifier));
    match macros.get(name) {
        Some(values) if sign.is_empty() && modifier.is_empty() => values.clone(),
        Some(values) if values.len() == 1 && modifier.is_empty() => vec![format!("{sign}{}", values[0])],
        Some(values) if values.len() == 1 => vec![format!("{sign}{}:{modifier}", values[0])],
        _ => vec![text.to_owned()],
    }
}

fn split(text: &str) -> Vec<Vec<Token>> {
    let mut statements = vec![Vec::new()];
    let (mut at, mut depth) = (0, 0usize);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let mut push = |length: usize, text: &str, is_quoted| {
            let token = Token {
                text: text.to_owned(),
                location: at..at + length,
                is_quoted,
            };
            statements.last_mut().expect("there is one").push(token);
        };
        at += match first {
            '\n' => {
                if depth == 0 {
                    statements.push(Vec::new());
                }
                1
            }
            '\\' if rest[1..].starts_with('\n') => 2,
            '\\' if rest[1..].starts_with("\r\n") => 3,
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '{' | '}' | '(' | ')' | ',' => {
                push(1, &rest[..1], false);
                match first {
                    '{' | '(' => depth += 1,
                    '}' | ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                1
            }
            '"' => {
                let length = rest[1..].find('"').unwrap_or(rest.len() - 1);
                push(rest.len().min(length + 2), &rest[1..1 + length], true);
                rest.len().min(length + 2)
            }
            _ if first.is_whitespace() => first.len_utf8(),
            _ => {
                let ends = |c: char| {
                    c.is_whitespace() || matches!(c, '{' | '}' | '(' | ')' | ',' | '"' | '#' | '\\')
                };
                // A backslash that joins no lines is a part of the word.
                let skipped = first.len_utf8();
                let length = rest[skipped..].find(ends).map_or(rest.len(), |end| skipped + end);
                push(length, &rest[..length], false);
                length
            }
        };
    }
    statements.retain(|statement| !statement.is_empty());
    statements
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn statements(text: &str) -> Vec<String> {
        let source = miette::NamedSource::new("pf.conf", text.to_owned());
        let mut problems = Problems::new(Arc::new(source));
        let statements = read(text, &mut problems);
        assert_eq!(problems.count(), 0);
        let join = |(words, _): (Vec<Word>, usize)| {
            let words: Vec<String> = words.into_iter().map(Spanned::into_inner).collect();
            words.join(" ")
        };
        statements.into_iter().map(join).collect()
    }

    #[test]
    fn macros_are_replaced_and_braces_join_lines() {
        let text = "ext=\"em0\" # the line\nports = \"{ 80, 443 }\"\nqueue a on $ext {\n b,\n c }\n\
            pass on $ext to !$ext port $ports \\\n queue (b,c)";
        assert_eq!(
            statements(text),
            [
                "queue a on em0 { b , c }",
                "pass on em0 to !em0 port { 80 , 443 } queue ( b , c )"
            ]
        );
    }
}
