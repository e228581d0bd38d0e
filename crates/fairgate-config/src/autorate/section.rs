//! The settings as files have them: tables of keys, wherever they stand in a file.

use std::ops::Range;

use fairgate::autorate::{Bounds, PARAMETERS, Settings};
use fairgate::registry::{Parameter, Section, Unit};
use fairgate::{ConfigError, Rate};

use crate::document::Document;
use crate::error::FileError;
use crate::table::Table;

/// The rates between which a direction follows its line.
static BOUNDS: [Parameter<Bounds>; 3] = [
    Parameter::required(
        "min",
        Unit::Rate,
        1..=u64::MAX,
        "The lowest rate.",
        |bounds, _| &mut bounds.min,
    ),
    Parameter::required(
        "base",
        Unit::Rate,
        1..=u64::MAX,
        "The rate at the start, and that of a line without load.",
        |bounds, _| &mut bounds.base,
    ),
    Parameter::required(
        "max",
        Unit::Rate,
        1..=u64::MAX,
        "The highest rate.",
        |bounds, _| &mut bounds.max,
    ),
];

/// Describes the table of [`read_bounds`], with this name.
pub const fn bounds_section(name: &'static str, about: &'static str) -> Section {
    Section::new(name, about, || Parameter::infos(&BOUNDS, NO_BOUNDS))
}

/// What is in the place of bounds until they are read.
const NO_BOUNDS: Bounds = Bounds {
    min: Rate::mbit(1),
    base: Rate::mbit(1),
    max: Rate::mbit(1),
};

/// Describes the table of [`read_tuning`].
pub const TUNING: Section = Section::new("tuning", "how rates follow the line", || {
    Parameter::infos(&PARAMETERS, Settings::default())
});

/// Reads the rates between which a direction follows its line, of a table that was checked.
///
/// # Errors
/// Reports the mistakes with their locations, rules and remedies.
pub fn read_bounds(document: &Document, table: &Table) -> Result<Bounds, FileError> {
    let bounds = table.read(&BOUNDS, NO_BOUNDS);
    let base = table.span_of("base").unwrap_or_else(|| table.span());
    bounds.check().map_err(|error| refused(document, base, &error))?;
    Ok(bounds)
}

/// Reads the settings other than the defaults, of a table that was checked. Those that are not written have
/// these.
///
/// # Errors
/// Reports the mistakes with their locations, rules and remedies.
pub fn read_tuning(document: &Document, table: &Table) -> Result<Settings, FileError> {
    let settings = table.read(&PARAMETERS, Settings::default());
    settings.check().map_err(|error| {
        // A rule between two settings is broken by one that is written, because the defaults keep it.
        let of_error = error.parameter().and_then(|name| table.span_of(name));
        refused(document, of_error.unwrap_or_else(|| table.first_span()), &error)
    })?;
    Ok(settings)
}

fn refused(document: &Document, span: Range<usize>, error: &ConfigError) -> FileError {
    match error.refusal() {
        Some(refusal) => document.error(
            span,
            format!(
                "{} is {}, but must be {}",
                refusal.path, refusal.value, refusal.rule
            ),
            refusal.remedy.clone(),
        ),
        None => document.error(span, error.to_string(), "correct this value"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fairgate::Probability;

    use super::*;

    static LINE: Section = Section::new("simulate", "a line", Vec::new).with(&WITHIN);
    static WITHIN: [Section; 2] = [bounds_section("bounds", "its rates"), TUNING];

    fn read(text: &str) -> Result<(Option<Bounds>, Settings), String> {
        let document = Document::parse("line.toml", &format!("[simulate]\n{text}\n")).unwrap();
        let shown = |error: FileError| {
            let problem = &error.problems()[0];
            format!("{}: {}; {}", problem.position().0, problem.message, problem.help)
        };
        let line = document.table(&LINE).map_err(shown)?.unwrap();
        let bounds = line
            .table("bounds")
            .map(|bounds| read_bounds(&document, &bounds))
            .transpose();
        let tuning = line.table("tuning").unwrap_or_default();
        Ok((
            bounds.map_err(shown)?,
            read_tuning(&document, &tuning).map_err(shown)?,
        ))
    }

    #[test]
    fn what_is_not_written_has_its_default() {
        assert_eq!(read("").unwrap(), (None, Settings::default()));
        let (_, settings) =
            read("tuning = { threshold = \"20ms\", rise = 0.05, window = 8, keep = 1 }").unwrap();
        let expected = Settings {
            threshold: Duration::from_millis(20),
            rise: Probability::ratio(1, 20),
            window: 8,
            keep: Probability::ONE,
            ..Settings::default()
        };
        assert_eq!(settings, expected);
    }

    #[test]
    fn bounds_are_read() {
        let (bounds, _) = read("bounds = { min = \"2mbit\", base = \"20mbit\", max = \"50mbit\" }").unwrap();
        let [min, base, max] = [2, 20, 50].map(Rate::mbit);
        assert_eq!(bounds, Some(Bounds { min, base, max }));
    }

    #[test]
    fn mistakes_name_place_rule_and_remedy() {
        let cases = [
            (
                "tuning = { treshold = \"20ms\" }",
                "2: `treshold` is no key of [simulate.tuning]; ",
                "`threshold`",
            ),
            ("tuning = { threshold = 20 }", "2: `threshold`: ", "5ms"),
            (
                "tuning = { threshold = \"0ms\" }",
                "2: `threshold` is \"0ms\", but must be 1ms to 5s; ",
                "baseline",
            ),
            (
                "tuning = { window = 5000000000 }",
                "2: `window` is 5000000000, but must be 1 to 100; ",
                "newest samples",
            ),
            (
                "tuning = { window = -1 }",
                "2: `window` is -1, but must be 1 to 100; ",
                "write a plain number",
            ),
            ("tuning = { rise = 1.5 }", "2: ", ""),
            ("tuning = { rise = -0.1 }", "2: ", ""),
            (
                "tuning = { severe = \"20ms\" }",
                "2: `severe` is 20ms, but must be above `threshold`, 30ms; ",
                "raise",
            ),
            (
                "tuning = { threshold = \"60ms\" }",
                "2: `severe` is 60ms, but must be above `threshold`",
                "raise",
            ),
            (
                "bounds = { min = \"2mbit\", base = \"1mbit\", max = \"9mbit\" }",
                "2: `base` is 1mbit, but must be at least `min`, 2mbit; ",
                "raise it",
            ),
            (
                "bounds = { min = \"2\", base = \"1mbit\", max = \"9 foo\" }",
                "2: ",
                "",
            ),
            ("bounds = { min = \"2mbit\", base = \"1mbit\" }", "2: ", "max"),
        ];
        for (text, message, help) in cases {
            let error = read(text).expect_err(text);
            assert!(
                error.starts_with(message) && error.contains(help),
                "{text}: {error}"
            );
        }
    }
}
