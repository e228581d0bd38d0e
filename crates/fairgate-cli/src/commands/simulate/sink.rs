//! The files for results.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use fairgate_sim::Scenario;
use fairgate_sim::results::{Measure, Table};

use super::{Runs, SimulateError};
use crate::failure::Failure;
use crate::output::{self, Target, Targets};

/// The files for results, found to be writable before the simulation.
#[derive(Default)]
pub(super) struct Sink(Vec<(Target, Content)>);

#[derive(Clone, Copy)]
enum Content {
    /// All results.
    Json,
    Csv(Measure),
    #[cfg(feature = "parquet")]
    Parquet(Measure),
}

impl Sink {
    /// Opens the file or folder. The extension of the name decides on the format.
    pub(super) fn open(path: &Path, scenario: &Scenario, targets: &mut Targets) -> Result<Sink, Failure> {
        let content = match path.extension().and_then(|ending| ending.to_str()) {
            None => return Sink::folder(path, scenario, targets),
            Some(_) if path.is_dir() => return Sink::folder(path, scenario, targets),
            Some("json") => Content::Json,
            Some("csv") => Content::Csv(Measure::Flows),
            #[cfg(feature = "parquet")]
            Some("parquet") => Content::Parquet(Measure::Flows),
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => return Err(SimulateError::NoParquet.into()),
            Some(_) => {
                let path = path.display().to_string();
                return Err(SimulateError::Format { path }.into());
            }
        };
        Ok(Sink(vec![(targets.open(path)?, content)]))
    }

    /// Opens a folder for all results in all formats.
    fn folder(path: &Path, scenario: &Scenario, targets: &mut Targets) -> Result<Sink, Failure> {
        let mut files = Vec::new();
        let mut add = |name: &str, content| -> Result<(), Failure> {
            files.push((targets.open_in(path, name)?, content));
            Ok(())
        };
        add("results.json", Content::Json)?;
        for &measure in Measure::ALL {
            if measure == Measure::Observations && scenario.observations.is_empty() {
                continue;
            }
            let name = measure.word();
            add(&format!("{name}.csv"), Content::Csv(measure))?;
            #[cfg(feature = "parquet")]
            add(&format!("{name}.parquet"), Content::Parquet(measure))?;
        }
        Ok(Sink(files))
    }

    pub(super) fn write(self, runs: &Runs) -> Result<(), Failure> {
        output::each(self.0, |(target, content)| {
            target.write(|file| content.write(runs, file))
        })
    }
}

impl Content {
    fn write(self, runs: &Runs, file: &mut File) -> io::Result<()> {
        match self {
            Content::Json => file.write_all(runs.json_text().as_bytes()),
            Content::Csv(measure) => table(measure, runs).write_csv(file),
            #[cfg(feature = "parquet")]
            Content::Parquet(measure) => table(measure, runs).write_parquet(file),
        }
    }
}

/// Returns the table. With several seeds, their tables are below one another, with a column for the seed.
fn table(measure: Measure, runs: &Runs) -> Table {
    match runs {
        Runs::One(results) => measure.of(results),
        Runs::Seeds(seeds) => {
            Table::stacked("seed", seeds.runs.iter().map(|run| (run.seed, measure.of(run))))
        }
    }
}
