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
use std::time::Duration;

use fairgate::Rate;
use fairgate::registry::{Parameter, Section, Unit};
use fairgate_config::{FileError, Table};
use toml::Spanned;

use super::{Reader, TIMES};
use crate::scenario::{LineRate, Loss, Schedule};

/// What a rate that changes can have.
#[derive(Default)]
struct Changes {
    schedule: Vec<u64>,
    repeat: Option<Duration>,
    trace: String,
}

static CHANGES: [Parameter<Changes>; 3] = [
    Parameter::word(
        "schedule",
        Unit::Schedule,
        "The rates, each from its time on; the first time is 0.",
        |keys, _| &mut keys.schedule,
    ),
    Parameter::new(
        "repeat",
        Unit::Time,
        TIMES,
        "The time after which the schedule begins again.",
        |keys, _| &mut keys.repeat,
    ),
    Parameter::word(
        "trace",
        Unit::Text("file"),
        "Instead: a recorded line in Mahimahi's format; it repeats.",
        |keys, _| &mut keys.trace,
    ),
];

/// A probability, or a share.
pub(super) const SHARE: Unit = Unit::Decimal("share", 0, 1);

static BURSTS: [Parameter<[f64; 4]>; 4] = [
    Parameter::required_word(
        "p",
        SHARE,
        "The probability of a change from the good to the bad state, after each packet.",
        |bursts, _| &mut bursts[0],
    ),
    Parameter::required_word(
        "r",
        SHARE,
        "The probability of a change from the bad to the good state.",
        |bursts, _| &mut bursts[1],
    ),
    Parameter::word(
        "loss_good",
        SHARE,
        "The probability of a loss in the good state.",
        |bursts, _| &mut bursts[2],
    ),
    Parameter::word(
        "loss_bad",
        SHARE,
        "The probability of a loss in the bad state.",
        |bursts, _| &mut bursts[3],
    ),
];

/// `p`, `r`, `loss_good` and `loss_bad` of a model whose bad state loses all.
const ALL_LOST: [f64; 4] = [0.0, 0.0, 0.0, 1.0];

static MODELS: [Section; 1] = [Section::new(
    "gilbert_elliott",
    "losses in bursts: the model of Gilbert and Elliott",
    || Parameter::infos(&BURSTS, ALL_LOST),
)
.required()];

/// Describes the rate of a line.
pub(super) const fn rate_section(name: &'static str, default: &'static str, about: &'static str) -> Section {
    Section::new(name, about, || Parameter::infos(&CHANGES, Changes::default())).or(Unit::Rate, default)
}

/// Describes the share of packets that are lost.
pub(super) const fn loss_section(name: &'static str, default: &'static str, about: &'static str) -> Section {
    Section::new(name, about, Vec::new)
        .or(SHARE, default)
        .with(&MODELS)
}

impl Reader<'_> {
    /// Reads the rate of a line, which is written.
    pub(super) fn line_rate(&self, link: &Table, key: &str) -> Result<LineRate, FileError> {
        let Some(table) = link.table(key) else {
            let rate: Option<Rate> = link.plain(key, Unit::Rate);
            return Ok(rate.map_or(LineRate::Unlimited, LineRate::from));
        };
        let keys = table.read(&CHANGES, Changes::default());
        match (table.span_of("schedule"), keys.repeat, table.text("trace")) {
            (Some(schedule), _, None) => {
                let repeat = table.span_of("repeat");
                self.schedule(&keys, schedule, repeat).map(LineRate::Schedule)
            }
            (None, None, Some(file)) => self.trace(&file),
            _ => Err(self.document.error(
                table.span(),
                "a rate that changes must have a `schedule`, which may `repeat`, or a `trace`, which always \
                 repeats",
                "write { schedule = [[\"0s\", \"10mbit\"], [\"5s\", \"2mbit\"]], repeat = \"10s\" } or { \
                 trace = \"lte.mahi\" }",
            )),
        }
    }

    fn schedule(
        &self,
        keys: &Changes,
        written: Range<usize>,
        repeat: Option<Range<usize>>,
    ) -> Result<Schedule, FileError> {
        let phases = keys.schedule.chunks_exact(2).map(|phase| {
            let rate = Rate::from_bits_per_second(phase[1]).expect("the rate was checked");
            (Duration::from_nanos(phase[0]), rate)
        });
        let phases: Vec<(Duration, Rate)> = phases.collect();
        // The rules of the list itself are checked first, so that a mistake is reported where it is.
        Schedule::new(&phases, None).map_err(|what| self.refusal(written.clone(), &what))?;
        Schedule::new(&phases, keys.repeat).map_err(|what| self.refusal(repeat.unwrap_or(written), &what))
    }

    fn trace(&self, file: &Spanned<String>) -> Result<LineRate, FileError> {
        let text = self.text_of(file)?;
        LineRate::recorded(&text).map_err(|wrong| {
            self.document.error(
                file.span(),
                format!("{}, line {}: {}", file.get_ref(), wrong.line, wrong.what),
                wrong.remedy,
            )
        })
    }

    /// Reads the losses of a line, which are written.
    pub(super) fn loss(&self, link: &Table, key: &str) -> Result<Loss, FileError> {
        let table = link.table(key);
        let loss = match table.as_ref().and_then(|table| table.table("gilbert_elliott")) {
            None => Loss::Random {
                probability: link.plain(key, SHARE).unwrap_or_default(),
            },
            Some(model) => {
                let [p, r, loss_good, loss_bad] = model.read(&BURSTS, ALL_LOST);
                Loss::GilbertElliott {
                    p,
                    r,
                    loss_good,
                    loss_bad,
                }
            }
        };
        let span = || link.span_of(key).unwrap_or_default();
        loss.check().map_err(|what| self.refusal(span(), &what))?;
        Ok(loss)
    }

    /// Returns an error whose text has the remedy after a semicolon.
    pub(super) fn refusal(&self, location: Range<usize>, what: &str) -> FileError {
        let (what, remedy) = what.rsplit_once("; ").unwrap_or((what, "correct this value"));
        self.document.error(location, what, remedy)
    }
}
