//! `fairgate sweep`: runs a scenario with many values and seeds.

mod columns;
mod folder;

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use fairgate_config::Registry;
use fairgate_sim::results::Table;
use fairgate_sim::sweep::Sweep;
use fairgate_sim::{Batch, Simulation};
use indicatif::ProgressBar;
use miette::Diagnostic;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;
use thiserror::Error;

use crate::document;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::{self, Format};
use crate::progress;
use columns::Columns;
use folder::Folder;

/// Simulate a scenario with many values and seeds, into one Parquet data set
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate sweep examples/sweep.toml              all combinations on all processors, into sweep.runs/
  fairgate sweep mine.toml --out data --jobs 2    into another folder, two runs at a time
  fairgate sweep mine.toml --json                 what was done, for a script

The file has a scenario, as for `fairgate simulate`, and what varies:
  [sweep]
  seeds = 5                                       # from the scenario's seed on; or a list: [1, 2, 7]
  measure = \"groups\"                              # the table kept of each run: flows, groups, interfaces,
                                                  # series, observations
  [sweep.grid]                                    # each path with its values; all combinations are run
  queue.wan.target = [\"1ms\", \"5ms\", \"20ms\"]
  queue.wan.discipline = [\"codel\", \"fq_codel\"]
  simulate.flow.downloads.count = [1, 4, 16]      # the entry of a list by its name, or by its number from 0

The folder is one data set: pandas.read_parquet(\"sweep.runs\"), polars, DuckDB. A row has the varied values,
the seed and the figures. After an interruption the same command goes on: what is finished is not run again.
Values and seeds can be added later. Python does the same: fairgate.sweep(fairgate.Scenario.read(FILE)).")]
pub(crate) struct Args {
    /// The scenario file, with a section [sweep]
    file: PathBuf,

    /// The folder of the data set [default: the file's name with the ending .runs, in this folder]
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// The number of simulations at a time [default: the number of processors]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

#[derive(Debug, Error, Diagnostic)]
enum SweepError {
    #[error("the run with {run} has no results: {source}")]
    #[diagnostic(help("correct the scenario; what is finished is kept, and the same command goes on"))]
    Simulation {
        run: String,
        source: fairgate_sim::Error,
    },
    #[error("signals can't be handled")]
    #[diagnostic(help("the system refused it; try again"))]
    Signals(#[source] io::Error),
}

/// `fairgate.sweep/1`.
#[derive(Serialize)]
struct Report {
    folder: String,
    grid: Vec<String>,
    measure: &'static str,
    runs: usize,
    done: usize,
    skipped: usize,
}

pub(crate) fn run(args: Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let document = document::read(&args.file, registry)?;
    let sweep = Sweep::read(&document, registry, input::available_memory())?;
    let path = args.out.unwrap_or_else(|| {
        let stem = args.file.file_stem().unwrap_or_default();
        PathBuf::from(stem).with_added_extension("runs")
    });
    let folder = Folder::open(path, &sweep)?;
    let batch = args.jobs.map_or_else(Batch::default, Batch::with_jobs);
    let all: Vec<usize> = (0..sweep.runs()).collect();
    let is_left = batch.map(&all, |&number| !folder.has(&sweep.run(number).id));
    let left: Vec<usize> = all.into_iter().filter(|&number| is_left[number]).collect();
    let report = Report {
        folder: folder.path().display().to_string(),
        grid: sweep.axes().iter().map(|axis| axis.path.clone()).collect(),
        measure: sweep.measure().word(),
        runs: sweep.runs(),
        done: left.len(),
        skipped: sweep.runs() - left.len(),
    };
    do_runs(&sweep, &left, folder, batch, format)?;
    match format {
        Format::Json => output::json("sweep", &report)?,
        Format::Text => output::text(&report.text())?,
    }
    Ok(Outcome::Yes)
}

impl Report {
    fn text(&self) -> String {
        let folder = &self.folder;
        format!(
            "{} runs: {} were done now, {} were there before.\nThe table `{}` of each run is in {folder}: \
             pandas.read_parquet(\"{folder}\")\n",
            self.runs, self.done, self.skipped, self.measure
        )
    }
}

/// Does the runs side by side, and writes their tables as they are finished.
fn do_runs(
    sweep: &Sweep<'_>,
    left: &[usize],
    folder: Folder,
    batch: Batch,
    format: Format,
) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let interrupted = Arc::new(AtomicBool::new(false));
    let mut handlers = Vec::new();
    for signal in [SIGINT, SIGTERM] {
        // The second signal ends the program at once.
        let first = flag::register_conditional_default(signal, Arc::clone(&interrupted));
        let second = flag::register(signal, Arc::clone(&interrupted));
        handlers.extend(
            [first, second]
                .into_iter()
                .collect::<Result<Vec<_>, _>>()
                .map_err(SweepError::Signals)?,
        );
    }
    let bar = progress::simulated(0, format);
    let columns = Columns::of(sweep.axes());
    let mut writer = folder.writer();
    let goes_on = || !stop.load(Ordering::Relaxed) && !interrupted.load(Ordering::Relaxed);
    let result = thread::scope(|scope| {
        let (send, finished) = mpsc::channel();
        let bar = &bar;
        let columns = &columns;
        let goes_on = &goes_on;
        scope.spawn(move || {
            // The batch divides the runs among its threads. Each takes the next one, so that they are
            // finished nearly in their order.
            let next = AtomicUsize::new(0);
            batch.map(left, |_| {
                if goes_on() {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let done = one(sweep, left[place], left.len(), columns, bar, goes_on);
                    // The receiver has gone only if it stopped the work.
                    let _ = send.send(done.map(|done| done.map(|(id, table)| (place, id, table))));
                }
            });
        });
        let mut result = Ok(());
        for done in finished {
            let added = match done {
                Ok(Some((place, id, table))) => writer.add(place, id, table),
                Ok(None) => Ok(()),
                Err(error) => Err(error.into()),
            };
            if result.is_ok()
                && let Err(error) = added
            {
                stop.store(true, Ordering::Relaxed);
                result = Err(error);
            }
        }
        result
    });
    let written = writer.finish();
    bar.finish_and_clear();
    for handler in handlers {
        signal_hook::low_level::unregister(handler);
    }
    result.and(written)?;
    if interrupted.load(Ordering::Relaxed) {
        output::say(format_args!(
            "interrupted: {} of {} runs are done; the same command goes on",
            sweep.runs() - left.len() + writer.done(),
            sweep.runs()
        ));
        // The shell shall see that a signal ended the program.
        let _ = emulate_default_handler(SIGINT);
    }
    Ok(())
}

/// Does one run. Returns none if it was stopped.
fn one(
    sweep: &Sweep<'_>,
    number: usize,
    runs: usize,
    columns: &Columns,
    bar: &ProgressBar,
    goes_on: &dyn Fn() -> bool,
) -> Result<Option<(String, Table)>, SweepError> {
    let run = sweep.run(number);
    // Durations may differ. The bar begins with the length of the first run for each of them.
    let duration = run.scenario.duration.as_millis() as u64;
    if bar.length() == Some(0) {
        bar.set_length(duration * runs as u64);
    }
    let mut reported = 0;
    let simulated = Simulation::new(&run.scenario)
        .map_err(fairgate_sim::Error::from)
        .and_then(|simulation| {
            simulation.run_while(|now| {
                let millis = now.nanos() / 1_000_000;
                bar.inc(millis - reported);
                reported = millis;
                goes_on()
            })
        });
    let values = sweep.values_of(&run);
    match simulated {
        Ok(results) => {
            bar.inc(duration.saturating_sub(reported));
            let table = sweep.measure().of(&results);
            let first = columns.of_run(&values, run.scenario.seed, table.rows());
            Ok(Some((run.id, table.with_first(first))))
        }
        Err(fairgate_sim::Error::Stopped { .. }) => Ok(None),
        Err(source) => {
            let shown = sweep.axes().iter().zip(&values);
            let shown = shown.map(|(axis, value)| format!("{} = {value}", axis.path));
            let shown: Vec<String> = shown.chain([format!("seed {}", run.scenario.seed)]).collect();
            Err(SweepError::Simulation {
                run: shown.join(", "),
                source,
            })
        }
    }
}
