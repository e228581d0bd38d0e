//! Excerpts for error messages. Texts of any length are cut to a readable length.

use std::ops::Range;

use miette::{MietteError, MietteSpanContents, NamedSource, SourceCode, SourceSpan, SpanContents};

/// The longest message, in characters.
const LONGEST_TEXT: usize = 1000;
/// The longest location that is underlined, and the longest excerpt around it, in bytes.
const LONGEST_LOCATION: usize = 400;
const LONGEST_LINES: usize = 8000;
/// The number of bytes shown before a location in a line that is too long.
const BEFORE: usize = 60;

/// Returns the text, or its beginning and its end if it is too long.
pub(crate) fn shortened(text: String) -> String {
    // Counting characters is slow. A text of few bytes has few characters.
    let count = match text.len() > LONGEST_TEXT {
        true => text.chars().count(),
        false => return text,
    };
    if count <= LONGEST_TEXT {
        return text;
    }
    let half = LONGEST_TEXT / 2;
    let at = |number: usize| text.char_indices().nth(number).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (&text[..at(half)], &text[at(count - half)..]);
    format!("{head}[... {} characters ...]{tail}", count - 2 * half)
}

/// Returns the part of a location that is underlined.
pub(crate) fn underlined(source: &str, location: &Range<usize>) -> Range<usize> {
    let end = location.end.min(source.len());
    let start = location.start.min(end);
    start..boundary(source, end.min(start + LONGEST_LOCATION))
}

/// Reads the lines around a location. If they are too long, only the text next to the location is read.
pub(crate) fn read<'a>(
    source: &'a NamedSource<String>,
    span: &SourceSpan,
    before: usize,
    after: usize,
) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
    let contents = source.read_span(span, before, after)?;
    if contents.data().len() <= LONGEST_LINES {
        return Ok(contents);
    }
    let text = source.inner();
    let line_start = text[..span.offset()].rfind('\n').map_or(0, |newline| newline + 1);
    let start = match before {
        0 => span.offset(),
        _ => boundary(text, span.offset().saturating_sub(BEFORE).max(line_start)),
    };
    let rest = &text[span.offset()..];
    let end_of_line = rest.find('\n').unwrap_or(rest.len());
    let end = boundary(text, span.offset() + end_of_line.min(span.len() + BEFORE));
    let line = text.as_bytes()[..start]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count();
    Ok(Box::new(MietteSpanContents::new_named(
        source.name().to_owned(),
        &text.as_bytes()[start..end],
        (start, end - start).into(),
        line,
        start - line_start,
        1,
    )))
}

/// Reads only the line of a location, as if it were this line of another file.
pub(crate) fn line<'a>(
    source: &'a NamedSource<String>,
    span: &SourceSpan,
    file: &str,
    number: usize,
) -> Box<dyn SpanContents<'a> + 'a> {
    let text = source.inner();
    let at = boundary(text, span.offset());
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    let (start, end) = match end - start <= LONGEST_LINES {
        true => (start, end),
        false => (
            boundary(text, at.saturating_sub(BEFORE).max(start)),
            boundary(text, end.min(at + span.len() + BEFORE)),
        ),
    };
    Box::new(MietteSpanContents::new_named(
        file.to_owned(),
        &text.as_bytes()[start..end],
        (start, end - start).into(),
        number.saturating_sub(1),
        0,
        1,
    ))
}

/// Returns the last character boundary at or before `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_ends() {
        assert_eq!(shortened("ü".repeat(1000)), "ü".repeat(1000));
        let text = shortened(format!("`{}` is none", "ü".repeat(5000)));
        assert!(text.starts_with("`üü") && text.ends_with("ü` is none"), "{text}");
        assert!(text.contains("[... 4010 characters ...]"), "{text}");
    }
}
