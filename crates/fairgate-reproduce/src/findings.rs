//! What an experiment's function hands back.

use fairgate_report::chart::Chart;
use fairgate_theory::estimate::Estimate;
use serde::Serialize;

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The figures, in the order of the table.
    pub measurements: Vec<Measurement>,
    /// One for each claim of the experiment's file.
    pub verdicts: Vec<Verdict>,
    /// The figure, or several.
    pub charts: Vec<Chart>,
    /// What to know before believing it.
    pub remarks: Vec<String>,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// What was measured.
    pub measure: String,
    /// Under which circumstances.
    pub case: String,
    /// Its unit; empty for a number without one.
    pub unit: String,
    /// The value.
    pub value: Estimate,
}

/// Whether a claim holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The claim's name.
    pub claim: String,
    /// Whether it holds.
    pub holds: bool,
    /// The figures it was judged by.
    pub found: String,
}

impl Findings {
    /// Adds a figure.
    pub fn measure(
        &mut self,
        measure: impl Into<String>,
        case: impl Into<String>,
        unit: impl Into<String>,
        value: Estimate,
    ) {
        self.measurements.push(Measurement {
            measure: measure.into(),
            case: case.into(),
            unit: unit.into(),
            value,
        });
    }

    /// Adds a verdict.
    pub fn judge(&mut self, claim: &str, holds: bool, found: impl Into<String>) {
        self.verdicts.push(Verdict {
            claim: claim.to_owned(),
            holds,
            found: found.into(),
        });
    }

    /// Adds a remark.
    pub fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }
}
