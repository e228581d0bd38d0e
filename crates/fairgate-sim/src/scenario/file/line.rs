//! What a link does to packets: `rate`, `loss`, `jitter`.
//!
//! ```toml
//! rate = "20mbit"
//! rate = { schedule = [["0s", "10mbit"], ["5s", "2mbit"]], repeat = "10s" }
//! rate = { trace = "lte.mahi" }
//! loss = 0.01
//! loss = { gilbert_elliott = { p = 0.01, r = 0.2, loss_bad = 1.0, loss_good = 0.0 } }
//! jitter = { exponential = "2ms" }
//! ```

use std::ops::Range;
use std::path::Path;

use fairgate_config::FileError;
use fairgate_config::units::{parse_duration, parse_rate};
use serde::Deserialize;
use toml::Spanned;

use super::Reader;
use super::shorthand::Shorthand;
use crate::scenario::{LineRate, Loss, Schedule};

/// The table of a rate that changes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RateTable {
    schedule: Option<Spanned<Vec<Spanned<Vec<String>>>>>,
    repeat: Option<Spanned<String>>,
    trace: Option<Spanned<String>>,
}

pub(super) type RateValue = Spanned<Shorthand<RateTable>>;

/// The table of losses in bursts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LossTable {
    gilbert_elliott: GilbertElliottTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GilbertElliottTable {
    p: f64,
    r: f64,
    #[serde(default)]
    loss_good: f64,
    #[serde(default = "always")]
    loss_bad: f64,
}

fn always() -> f64 {
    1.0
}

pub(super) type LossValue = Spanned<Shorthand<LossTable>>;

impl Reader<'_> {
    pub(super) fn line_rate(&self, value: &RateValue) -> Result<LineRate, FileError> {
        let table = match value.get_ref() {
            Shorthand::Text(text) => {
                return Ok(self.unit(&value.span(), parse_rate(text))?.into());
            }
            Shorthand::Number(number) => {
                return Err(self.document.error(
                    value.span(),
                    format!("the rate is {number}, but must have a unit"),
                    "write the rate in quotation marks, such as \"20mbit\"",
                ));
            }
            Shorthand::Table(table) => table,
        };
        match table {
            RateTable {
                schedule: Some(schedule),
                repeat,
                trace: None,
            } => self.schedule(schedule, repeat.as_ref()).map(LineRate::Schedule),
            RateTable {
                schedule: None,
                repeat: None,
                trace: Some(file),
            } => self.trace(file),
            _ => Err(self.document.error(
                value.span(),
                "a rate that changes must have a `schedule`, which may `repeat`, or a `trace`, which always \
                 repeats",
                "write { schedule = [[\"0s\", \"10mbit\"], [\"5s\", \"2mbit\"]], repeat = \"10s\" } or { \
                 trace = \"lte.mahi\" }",
            )),
        }
    }

    fn schedule(
        &self,
        schedule: &Spanned<Vec<Spanned<Vec<String>>>>,
        repeat: Option<&Spanned<String>>,
    ) -> Result<Schedule, FileError> {
        let mut phases = Vec::with_capacity(schedule.get_ref().len());
        for phase in schedule.get_ref() {
            let [from, rate] = &phase.get_ref()[..] else {
                return Err(self.document.error(
                    phase.span(),
                    format!(
                        "this part of the schedule has {} values, but must have two: a time and a rate",
                        phase.get_ref().len()
                    ),
                    "write the time from which a rate holds, and the rate: [\"5s\", \"2mbit\"]",
                ));
            };
            phases.push((
                self.unit(&phase.span(), parse_duration(from))?,
                self.unit(&phase.span(), parse_rate(rate))?,
            ));
        }
        let period = repeat.map(|text| self.duration(text)).transpose()?;
        // The rules of the list itself are checked first, so that a mistake is reported where it is.
        Schedule::new(&phases, None).map_err(|what| self.refusal(schedule.span(), &what))?;
        let location = repeat.map_or(schedule.span(), Spanned::span);
        Schedule::new(&phases, period).map_err(|what| self.refusal(location, &what))
    }

    fn trace(&self, file: &Spanned<String>) -> Result<LineRate, FileError> {
        let text = self.file(file)?;
        LineRate::recorded(&text).map_err(|wrong| {
            self.document.error(
                file.span(),
                format!("{}, line {}: {}", file.get_ref(), wrong.line, wrong.what),
                wrong.remedy,
            )
        })
    }

    pub(super) fn loss(&self, value: &LossValue) -> Result<Loss, FileError> {
        let loss = match value.get_ref() {
            Shorthand::Number(probability) => Loss::Random {
                probability: *probability,
            },
            Shorthand::Table(LossTable { gilbert_elliott }) => Loss::GilbertElliott {
                p: gilbert_elliott.p,
                r: gilbert_elliott.r,
                loss_good: gilbert_elliott.loss_good,
                loss_bad: gilbert_elliott.loss_bad,
            },
            Shorthand::Text(text) => {
                return Err(self.document.error(
                    value.span(),
                    format!("the loss is the text \"{text}\", but must be a number from 0 to 1, or a table"),
                    "write 0.01 for 1 %, or { gilbert_elliott = { p = 0.01, r = 0.2 } } for losses in bursts",
                ));
            }
        };
        loss.check().map_err(|what| self.refusal(value.span(), &what))?;
        Ok(loss)
    }

    /// Reads another file. Its path is relative to the folder of the scenario file.
    pub(super) fn file(&self, path: &Spanned<String>) -> Result<String, FileError> {
        let folder = Path::new(self.document.name()).parent().unwrap_or(Path::new(""));
        std::fs::read_to_string(folder.join(path.get_ref())).map_err(|error| {
            self.document.error(
                path.span(),
                format!("can't read the file `{}`: {error}", path.get_ref()),
                "write a path that is relative to the folder of this file",
            )
        })
    }

    /// Returns an error whose text has the remedy after a semicolon.
    fn refusal(&self, location: Range<usize>, what: &str) -> FileError {
        let (what, remedy) = what.rsplit_once("; ").unwrap_or((what, "correct this value"));
        self.document.error(location, what, remedy)
    }
}
