//! `fairgate-lab validate`: compares the simulator with recordings of a real kernel.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::ValueEnum;
use fairgate_report::command::failure::{Failure, Outcome};
use fairgate_report::command::output::{self, Format};
use fairgate_report::command::progress;
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::validation::{Comparison, DataError, Recording, Validation};

/// The folder of recordings in a checkout of Fairgate, relative to its root. They are not part of the
/// program.
const CHECKOUT: &str = "tests/data/kernel-tcp";

/// Repeat recorded experiments in the simulator and compare the results
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate-lab validate kernel-tcp                          all recordings of a checkout of Fairgate
  fairgate-lab validate kernel-tcp recordings/codel-*.json  some of them
  fairgate-lab validate kernel-tcp --runs 1 --seed 7        one run of each cell, not the mean of several

kernel-tcp: TCP through queueing disciplines of Linux 6.1. The tolerances are 1 % of goodput, 20 % of mean
sojourn time, and 0.05 of Jain's index. Known reasons of differences are printed below the table.
Exit codes: 0 all agree or are explained; 1 a cell differs without explanation; 2 a file cannot be read.")]
pub(crate) struct Args {
    /// The kind of recordings
    #[arg(value_enum)]
    experiment: Experiment,

    /// Recordings, and folders of recordings [default: tests/data/kernel-tcp of a checkout]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Seed of the first run
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Number of runs of each cell, whose mean is compared
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Experiment {
    /// TCP through Linux's disciplines
    KernelTcp,
}

/// An error in a recording.
#[derive(Debug, Error, Diagnostic)]
enum RecordingError {
    #[error("can't read {path}")]
    #[diagnostic(help("give the path of a recording or of a folder of recordings"))]
    Unreadable { path: String, source: io::Error },
    #[error("there are no recordings in {CHECKOUT}")]
    #[diagnostic(help(
        "run the command in the root of a checkout of Fairgate, or give the path of a recording or a folder"
    ))]
    NoCheckout { source: io::Error },
    #[error("{path} is not a recording")]
    #[diagnostic(help(
        "a recording is one JSON document with `cell`, `total_goodput_bps`, `jain_tcp`, `sojourn`"
    ))]
    Malformed { path: String, source: serde_json::Error },
    #[error("there is no recording in {path}")]
    #[diagnostic(help("the name of a recording ends in .json"))]
    None { path: String },
    #[error(transparent)]
    Experiment(DataError),
}

/// `fairgate.validate/1`.
#[derive(Serialize)]
struct Report {
    experiment: &'static str,
    seed: u64,
    runs: u64,
    summary: Summary,
    cells: Vec<Comparison>,
}

#[derive(Default, Serialize)]
struct Summary {
    agree: u64,
    explained: u64,
    differ: u64,
    /// Recordings of qdiscs that have no discipline here.
    unsupported: u64,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let Experiment::KernelTcp = args.experiment;
    let validation = Validation::new().map_err(RecordingError::Experiment)?;
    let mut report = Report {
        experiment: "kernel-tcp",
        seed: args.seed,
        runs: args.runs,
        summary: Summary::default(),
        cells: Vec::new(),
    };
    let mut recordings = recordings(&args.paths)?;
    let found = recordings.len();
    recordings.retain(|recording| validation.knows(&recording.cell));
    report.summary.unsupported = (found - recordings.len()) as u64;

    let progress = progress::steps(recordings.len() as u64, format);
    for recording in &recordings {
        progress.set_message(output::name(&recording.cell.name));
        let comparison = validation
            .compare(recording, args.seed, args.runs)
            .map_err(RecordingError::Experiment)?;
        report.add(comparison);
        progress.inc(1);
    }
    progress.finish_and_clear();
    match format {
        Format::Json => output::json("validate", &report)?,
        Format::Text => output::text(&report.text())?,
    }
    match report.summary.differ {
        0 => Ok(Outcome::Yes),
        _ => Ok(Outcome::No),
    }
}

/// Reads all recordings at and below the paths, sorted by name.
fn recordings(paths: &[PathBuf]) -> Result<Vec<Recording>, RecordingError> {
    let default = [PathBuf::from(CHECKOUT)];
    let paths = if paths.is_empty() {
        fs::metadata(CHECKOUT).map_err(|source| RecordingError::NoCheckout { source })?;
        &default
    } else {
        paths
    };
    let mut recordings = Vec::new();
    for path in paths {
        let files = files(path).map_err(|source| RecordingError::Unreadable {
            path: path.display().to_string(),
            source,
        })?;
        if files.is_empty() {
            let path = path.display().to_string();
            return Err(RecordingError::None { path });
        }
        for file in files {
            recordings.push(read(&file)?);
        }
    }
    Ok(recordings)
}

fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "json") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> Result<Recording, RecordingError> {
    let path = file.display().to_string();
    let bytes = fs::read(file).map_err(|source| RecordingError::Unreadable {
        path: path.clone(),
        source,
    })?;
    serde_json::from_slice(&bytes).map_err(|source| RecordingError::Malformed { path, source })
}

impl Report {
    fn add(&mut self, comparison: Comparison) {
        let count = match (comparison.agrees, comparison.is_settled()) {
            (true, _) => &mut self.summary.agree,
            (false, true) => &mut self.summary.explained,
            (false, false) => &mut self.summary.differ,
        };
        *count += 1;
        self.cells.push(comparison);
    }

    fn text(&self) -> String {
        let mut table = output::table([
            "CELL",
            "Mbit/s",
            "SIMULATED",
            "%",
            "SOJOURN ms",
            "SIMULATED",
            "%",
            "JAIN",
            "SIMULATED",
            "VERDICT",
        ]);
        for cell in &self.cells {
            let (recorded, simulated, difference) = (&cell.recorded, &cell.simulated, &cell.difference);
            table.add_row([
                cell.cell.clone(),
                format!("{:.3}", recorded.goodput_bps / 1e6),
                format!("{:.3}", simulated.goodput_bps / 1e6),
                format!("{:+.2}", difference.goodput_percent),
                format!("{:.2}", recorded.sojourn_ms),
                format!("{:.2}", simulated.sojourn_ms),
                format!("{:+.1}", difference.sojourn_percent),
                format!("{:.4}", recorded.jain),
                format!("{:.4}", simulated.jain),
                verdict(cell).to_owned(),
            ]);
        }
        for column in 1..9 {
            if let Some(column) = table.columns().nth(column) {
                column.set_cell_alignment(comfy_table::CellAlignment::Right);
            }
        }
        let mut text = output::table_text(&table);
        for cell in self.cells.iter().filter(|cell| !cell.agrees) {
            let why = cell.explanation.as_deref().unwrap_or("no explanation");
            let _ = write!(text, "\n{}: {}\n", cell.cell, output::wrap(why, 100));
        }
        let Summary {
            agree,
            explained,
            differ,
            unsupported,
        } = self.summary;
        let _ = writeln!(
            text,
            "\n{agree} cells agree, {explained} differ for a known reason, {differ} differ; {unsupported} \
             have a discipline that does not exist here."
        );
        text
    }
}

fn verdict(cell: &Comparison) -> &'static str {
    match (cell.agrees, cell.is_settled()) {
        (true, _) => "agrees",
        (false, true) => "explained",
        (false, false) => "DIFFERS",
    }
}
