//! The settings as files have them: tables of keys, wherever they stand in a file.

use std::ops::Range;

use fairgate::autorate::{Bounds, PARAMETERS, Settings};
use fairgate::registry::UnitError;
use fairgate::registry::units::parse_rate;
use fairgate::{ConfigError, Rate};
use serde::Deserialize;
use toml::Spanned;

use crate::document::Document;
use crate::error::FileError;
use crate::keys::Keys;

/// The rates between which a direction follows its line: `min`, `base` and `max`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundsSection {
    min: Spanned<String>,
    base: Spanned<String>,
    max: Spanned<String>,
}

impl BoundsSection {
    /// Reads and checks the rates.
    ///
    /// # Errors
    /// Reports the first mistake with its location, the rule and a remedy.
    pub fn read(&self, document: &Document) -> Result<Bounds, FileError> {
        let rate = |text: &Spanned<String>| -> Result<Rate, FileError> {
            parse_rate(text.get_ref()).map_err(|error| of_unit(document, &text.span(), error))
        };
        let bounds = Bounds {
            min: rate(&self.min)?,
            base: rate(&self.base)?,
            max: rate(&self.max)?,
        };
        bounds
            .check()
            .map_err(|error| refused(document, self.base.span(), &error))?;
        Ok(bounds)
    }

    /// Returns where `min` is written.
    pub fn min_span(&self) -> Range<usize> {
        self.min.span()
    }
}

/// Other settings than the defaults, by their names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Tuning(Keys);

impl Tuning {
    /// Returns where a setting is written, if it is.
    pub fn span_of(&self, name: &str) -> Option<Range<usize>> {
        self.0.span_of(name)
    }

    /// Reads and checks the settings. Those that are not written have their defaults.
    ///
    /// # Errors
    /// Reports the mistakes with their locations, rules and remedies.
    pub fn read(&self, document: &Document) -> Result<Settings, FileError> {
        let mut settings = Settings::default();
        self.0
            .fill(document, "setting of autorate", &PARAMETERS, &mut settings)?;
        settings.check().map_err(|error| {
            // A rule between two settings is broken by one that is written, because the defaults keep it.
            let of_error = error.parameter().and_then(|name| self.0.span_of(name));
            refused(document, of_error.unwrap_or_else(|| self.0.first_span()), &error)
        })?;
        Ok(settings)
    }
}

fn of_unit(document: &Document, span: &Range<usize>, error: UnitError) -> FileError {
    document.error(span.clone(), error.message, error.remedy)
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

    #[derive(Deserialize)]
    struct Section {
        bounds: Option<BoundsSection>,
        #[serde(default)]
        tuning: Tuning,
    }

    fn read(text: &str) -> Result<(Option<Bounds>, Settings), String> {
        let document = Document::parse("line.toml", &format!("[simulate]\n{text}\n")).unwrap();
        let shown = |error: FileError| {
            let problem = &error.problems()[0];
            format!("{}: {}; {}", problem.position().0, problem.message, problem.help)
        };
        let section: Section = document.section("simulate").map_err(shown)?.unwrap();
        let bounds = section.bounds.map(|bounds| bounds.read(&document)).transpose();
        Ok((
            bounds.map_err(shown)?,
            section.tuning.read(&document).map_err(shown)?,
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
                "2: `treshold` is no setting of autorate; ",
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
