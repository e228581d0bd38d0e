//! Reads CSV (RFC 4180): fields between commas, quoted ones with doubled quotation marks inside. Lines that
//! begin with `#`, and empty ones, are comments.

use std::borrow::Cow;
use std::ops::Range;

use super::texts::Mistake;

/// A field, without quotation marks and without white space around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field<'t> {
    pub(crate) value: Cow<'t, str>,
    /// Where it is in the text, without the quotation marks.
    pub(crate) span: Range<usize>,
    /// Where it begins: behind the comma before it.
    start: usize,
}

/// A line of the table, or several if a quoted field has line breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record<'t> {
    pub(crate) fields: Vec<Field<'t>>,
    pub(crate) span: Range<usize>,
}

/// Returns the records of a text one after the other, up to the first mistake. The text may be much longer
/// than what a caller takes from it.
pub(crate) fn records(text: &str) -> impl Iterator<Item = Result<Record<'_>, Mistake>> {
    // Spreadsheets begin a file in UTF-8 with this mark.
    let start = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut reader = Reader { text, at: start };
    std::iter::from_fn(move || {
        while reader.at < text.len() {
            let line = reader.line();
            if !line.trim().is_empty() && !line.starts_with('#') {
                let record = reader.record();
                if record.is_err() {
                    reader.at = text.len();
                }
                return Some(record);
            }
            reader.at += line.len() + 1;
        }
        None
    })
}

impl Field<'_> {
    /// Returns the place in `text` that another value takes, and how it is written there.
    pub(crate) fn with(&self, text: &str, value: &str) -> (Range<usize>, String) {
        if text[self.start..].starts_with('"') {
            return (self.span.clone(), doubled(value));
        }
        // The span of an empty field may be behind the white space that ends a line.
        let end = match self.value.is_empty() {
            true => self.start,
            false => self.span.end,
        };
        // A quotation mark counts only where a field begins.
        match needs_quotes(value) {
            true => (self.start..end, quoted(value)),
            false => (self.span.start.min(end)..end, value.to_owned()),
        }
    }
}

impl Record<'_> {
    /// Returns the place of the whole line in `text`, with its end.
    pub(crate) fn line(&self, text: &str) -> Range<usize> {
        let rest = &text[self.span.end..];
        let end = rest.find('\n').map_or(text.len(), |end| self.span.end + end + 1);
        self.span.start..end
    }
}

/// Returns a line of these values, without its end.
pub(crate) fn line<'v>(values: impl Iterator<Item = &'v str>) -> String {
    let field = |value: &str| match needs_quotes(value) {
        true => quoted(value),
        false => value.to_owned(),
    };
    let fields: Vec<String> = values.map(field).collect();
    fields.join(",")
}

/// Returns how the lines of a text end.
pub(crate) fn line_end(text: &str) -> &'static str {
    match text.find('\n').is_some_and(|end| text[..end].ends_with('\r')) {
        true => "\r\n",
        false => "\n",
    }
}

fn needs_quotes(value: &str) -> bool {
    value.starts_with('#') || value.contains([',', '"', '\n', '\r'])
}

fn quoted(value: &str) -> String {
    format!("\"{}\"", doubled(value))
}

fn doubled(value: &str) -> String {
    value.replace('"', "\"\"")
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    /// Returns the rest of the line.
    fn line(&self) -> &'t str {
        let rest = &self.text[self.at..];
        &rest[..rest.find('\n').unwrap_or(rest.len())]
    }

    fn record(&mut self) -> Result<Record<'t>, Mistake> {
        let start = self.at;
        let mut fields = Vec::new();
        loop {
            fields.push(match self.text[self.at..].starts_with('"') {
                true => self.quoted()?,
                false => self.plain(),
            });
            match self.text.as_bytes().get(self.at) {
                Some(b',') => self.at += 1,
                other => {
                    let end = self.at;
                    self.at += usize::from(other.is_some());
                    let text = self.text[start..end].trim_end();
                    return Ok(Record {
                        fields,
                        span: start..start + text.len(),
                    });
                }
            }
        }
    }

    fn plain(&mut self) -> Field<'t> {
        let line = self.line();
        let whole = &line[..line.find(',').unwrap_or(line.len())];
        let value = whole.trim();
        let opening = self.at;
        let start = self.at + (whole.len() - whole.trim_start().len());
        self.at += whole.len();
        Field {
            value: Cow::Borrowed(value),
            span: start..start + value.len(),
            start: opening,
        }
    }

    fn quoted(&mut self) -> Result<Field<'t>, Mistake> {
        let opening = self.at;
        let start = opening + 1;
        let mut end = start;
        let mut has_doubled = false;
        loop {
            let Some(mark) = self.text[end..].find('"') else {
                return Err(Mistake::new(
                    opening..opening + 1,
                    "a quotation mark is not closed",
                    "opened here",
                    "close the field with a quotation mark, and double those inside it",
                ));
            };
            end += mark;
            match self.text[end + 1..].starts_with('"') {
                true => {
                    has_doubled = true;
                    end += 2;
                }
                false => break,
            }
        }
        self.at = end + 1;
        let rest = self.line();
        let after = &rest[..rest.find(',').unwrap_or(rest.len())];
        if !after.trim().is_empty() {
            return Err(Mistake::new(
                self.at..self.at + after.trim_end().len(),
                "there is text after a quoted field",
                "expected a comma",
                "put the whole field into quotation marks, and double those inside it",
            ));
        }
        self.at += after.len();
        let inside = &self.text[start..end];
        let value = inside.trim();
        let start = start + (inside.len() - inside.trim_start().len());
        Ok(Field {
            value: match has_doubled {
                true => Cow::Owned(value.replace("\"\"", "\"")),
                false => Cow::Borrowed(value),
            },
            span: start..start + value.len(),
            start: opening,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(text: &str) -> Vec<Vec<String>> {
        let mut values = Vec::new();
        for record in records(text) {
            values.push(
                record
                    .unwrap()
                    .fields
                    .into_iter()
                    .map(|field| field.value.into_owned())
                    .collect(),
            );
        }
        values
    }

    #[test]
    fn fields_are_between_commas() {
        let text = "\u{feff}# a comment\nid,name\r\n\n1, Ann \n2,\"Bob, \"\"the\n builder\"\"\"\n3,";
        let expected = [
            vec!["id", "name"],
            vec!["1", "Ann"],
            vec!["2", "Bob, \"the\n builder\""],
            vec!["3", ""],
        ];
        assert_eq!(values(text), expected);
    }

    #[test]
    fn a_span_is_where_the_field_is() {
        let text = "a, bc ,\"d e\"\n";
        let record = records(text).next().unwrap().unwrap();
        let spans: Vec<&str> = record
            .fields
            .iter()
            .map(|field| &text[field.span.clone()])
            .collect();
        assert_eq!(spans, ["a", "bc", "d e"]);
        assert_eq!(&text[record.span.clone()], "a, bc ,\"d e\"");
    }

    #[test]
    fn mistakes_have_a_place() {
        let mistake = |text: &str| records(text).find_map(Result::err).unwrap().span;
        assert_eq!(mistake("1,\"open\n2,3\n"), 2..3);
        assert_eq!(mistake("0,1\n1,\"a\" b,3\n"), 9..11);
        assert_eq!(records("1,\"a\" b\n2,3\n").count(), 1);
    }

    proptest! {
        /// What is written by the rules is read as it was; and no text makes the reader fail.
        #[test]
        fn quoted_fields_are_read_back(fields in proptest::collection::vec("[ -~\n\u{e9}]{0,12}", 1..6)) {
            let quote = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let quoted: Vec<String> = fields.iter().map(quote).collect();
            let trimmed: Vec<String> = fields.iter().map(|field| field.trim().to_owned()).collect();
            prop_assert_eq!(values(&format!("{}\n", quoted.join(","))), [trimmed]);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[a\",\n\r #\u{e9}\u{feff}]{0,40}") {
            if let Some(mistake) = records(&text).find_map(Result::err) {
                prop_assert!(text.get(mistake.span).is_some());
            }
        }
    }
}
