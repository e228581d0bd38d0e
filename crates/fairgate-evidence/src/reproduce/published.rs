//! Published values: `measure,case,value,unit,place`, one on each line.
//!
//! A value is a number, optionally with a relation that the paper states: `~480`, `<0.05`, `>180`. The files
//! have only values that the text of a paper states. A curve that is only a picture is left out.

use serde::Serialize;

use crate::reproduce::ReproduceError;

/// A published value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Published {
    /// What was measured.
    pub measure: String,
    /// The case in which it was measured.
    pub case: String,
    /// The value with its relation.
    pub value: String,
    /// The unit; empty for a number without one.
    pub unit: String,
    /// The section or figure of the paper.
    pub place: String,
}

impl Published {
    /// Returns the number without its relation.
    pub(crate) fn number(&self) -> f64 {
        let number = self.value.trim_start_matches(RELATIONS);
        number.parse().unwrap_or(f64::NAN)
    }
}

/// Returns the number that a value states, exactly or about. A limit states none.
pub(super) fn exact(value: &str) -> Option<f64> {
    value.trim_start_matches('~').parse().ok()
}

/// What may stand before a number.
const RELATIONS: [char; 3] = ['~', '<', '>'];

/// A file without values.
pub(crate) const NONE: &str = "measure,case,value,unit,place\n";

const COLUMNS: [&str; 5] = ["measure", "case", "value", "unit", "place"];

/// Parses the file.
pub(crate) fn read(text: &str) -> Result<Vec<Published>, ReproduceError> {
    let wrong = |line: usize, what: String| ReproduceError::Published { line, what };
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let head = reader.headers().map_err(|error| wrong(1, error.to_string()))?;
    if head != COLUMNS.as_slice() {
        return Err(wrong(1, format!("the columns must be {}", COLUMNS.join(","))));
    }
    let mut values: Vec<Published> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(0, |position| position.line() as usize);
            wrong(line, error.to_string())
        })?;
        let line = record.position().map_or(0, |position| position.line() as usize);
        let field = |index: usize| record[index].trim().to_owned();
        let published = Published {
            measure: field(0),
            case: field(1),
            value: field(2),
            unit: field(3),
            place: field(4),
        };
        if published.number().is_nan() {
            return Err(wrong(
                line,
                format!(
                    "`{}` is not a number; write 0.5, ~0.5, <0.5 or >0.5",
                    published.value
                ),
            ));
        }
        if values
            .iter()
            .any(|other| other.measure == published.measure && other.case == published.case)
        {
            return Err(wrong(
                line,
                format!("`{}`, `{}` is listed twice", published.measure, published.case),
            ));
        }
        values.push(published);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "measure,case,value,unit,place\n";

    #[test]
    fn values_with_and_without_a_relation() {
        let text =
            format!("# read from the text\n{HEAD}delay,QFQ,12.5,ms,Table II\nrate,n = 20,~480,kbit/s,IV-A\n");
        let values = read(&text).unwrap();
        assert_eq!(values.len(), 2);
        assert_eq!(
            (values[1].case.as_str(), values[1].value.as_str()),
            ("n = 20", "~480")
        );
    }

    #[test]
    fn errors_name_their_line() {
        for (text, says) in [
            (
                format!("{HEAD}delay,QFQ,twelve,ms,II\n"),
                "line 2 of the published values: `twelve`",
            ),
            (
                format!("{HEAD}a,b,1,s,I\na,b,2,s,I\n"),
                "line 3 of the published values: `a`, `b` is listed twice",
            ),
            (
                "a,b\n".to_owned(),
                "line 1 of the published values: the columns must be",
            ),
            (format!("{HEAD}a,b,1\n"), "line 2"),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
