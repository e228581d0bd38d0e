//! `fairgate reproduce`: runs the papers' experiments and prints measured beside published values.

use std::io::Write;
use std::path::{Path, PathBuf};

use comfy_table::CellAlignment;
use fairgate_reproduce::{Conditions, EXPERIMENTS, Experiment, Grid, ReproduceError, Reproduction};
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::commands::bench;
use crate::exit::{Failure, Outcome};
use crate::output::{self, Format, Target, Targets};
use crate::progress;

/// The number of steps of the progress bar for each experiment.
const STEPS: f64 = 1000.0;
/// The width to which text is wrapped, in columns.
const WIDTH: usize = 110;

/// Repeat the papers' experiments: measured beside published values
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate reproduce                         list the experiments
  fairgate reproduce sqf-fig3                one experiment
  fairgate reproduce sqf-fig3 sqf-fig4       two
  fairgate reproduce all --out results       all; qfq-fig9 and qfq-table3 take 12 minutes on an idle machine
  fairgate reproduce sqf-fig4 --seeds 20     narrower intervals
  fairgate reproduce sqf-fig4 --quick        a short run, to see that it works
  fairgate reproduce sqf-fig3 --json         for a script

Each experiment writes into its own folder below --out: result.json, measured.csv, curves.csv, figure-N.svg,
page.html. Intervals contain the true mean with a probability of 95 %.
Exit codes: 0 all claims hold; 1 a claim does not hold; 2 unknown experiment; 3 a file cannot be written.")]
pub(crate) struct Args {
    /// The experiments to run, or `all`; without any, they are listed
    #[arg(value_name = "ID")]
    ids: Vec<String>,

    /// Number of runs of a random experiment, with seeds 1 to N
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(1..=1000)
    )]
    seeds: u64,

    /// Folder for the results, with a folder for each experiment
    #[arg(long, value_name = "FOLDER", default_value = "fairgate-reproduce")]
    out: PathBuf,

    /// Measure only enough to see that it works; claims may fail because there is too little data
    #[arg(long)]
    quick: bool,
}

#[derive(Debug, Error, Diagnostic)]
enum CommandError {
    #[error("there is no experiment `{id}`")]
    #[diagnostic(help("the experiments are {known}; `fairgate reproduce` describes each in a line"))]
    Unknown { id: String, known: String },
    #[error("{id} has no result")]
    #[diagnostic(help("this is a bug in the program's own files: please report it"))]
    Failed {
        id: &'static str,
        source: Box<ReproduceError>,
    },
    #[error("{id} has no result")]
    #[diagnostic(help(
        "valgrind counts instructions in a second process: check that there is memory for it"
    ))]
    Job {
        id: &'static str,
        source: Box<ReproduceError>,
    },
}

/// `fairgate.reproduce/1`.
#[derive(Serialize)]
struct Document<'a> {
    experiments: &'a [Reproduction],
}

/// `fairgate.experiments/1`.
#[derive(Serialize)]
struct List {
    experiments: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    id: &'static str,
    paper: String,
    place: String,
    title: String,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    if args.ids.is_empty() {
        return list(format);
    }
    let experiments = chosen(&args.ids)?;
    let seeds: Vec<u64> = (1..=args.seeds).collect();
    let count = match experiments.iter().any(|experiment| experiment.counts) {
        true => bench::counter(),
        false => None,
    };
    let bar = progress::share(format);
    bar.set_length(experiments.len() as u64 * STEPS as u64);
    let mut targets = Targets::beside([]);
    let sinks = experiments
        .iter()
        .map(|experiment| Sink::open(args.out.join(experiment.id), &mut targets))
        .collect::<Result<Vec<_>, Failure>>()?;
    let mut results = Vec::with_capacity(experiments.len());
    let mut written = Ok(());
    for (index, (experiment, sink)) in experiments.iter().zip(sinks).enumerate() {
        let report = |share: f64, what: &str| {
            bar.set_position(((index as f64 + share.clamp(0.0, 1.0)) * STEPS) as u64);
            bar.set_message(format!("{}: {what}", experiment.id));
        };
        report(0.0, "");
        let conditions = Conditions {
            seeds: &seeds,
            quick: args.quick,
            progress: &report,
            count,
        };
        let result = experiment
            .reproduce(conditions)
            .map_err(|source| failure(experiment.id, source))?;
        let folder = sink.path.clone();
        let is_written = sink.write(&result, &command(&result, &args), &mut targets);
        if format == Format::Text {
            let folder = is_written.is_ok().then_some(folder.as_path());
            bar.suspend(|| output::text(&text(&result, folder)))?;
        }
        written = written.and(is_written);
        results.push(result);
    }
    bar.finish_and_clear();
    let print = |_| match format {
        Format::Json => output::json(
            "reproduce",
            &Document {
                experiments: &results,
            },
        ),
        Format::Text => Ok(()),
    };
    output::deliver(|| written, print)?;
    match results.iter().all(|result| result.holds) {
        true => Ok(Outcome::Yes),
        false => Ok(Outcome::No),
    }
}

/// A measurement that this machine cannot do is a failure of the environment. Any other failure is a bug.
fn failure(id: &'static str, source: ReproduceError) -> Failure {
    let source = Box::new(source);
    match *source {
        ReproduceError::Job { .. } => Failure::environment(CommandError::Job { id, source }),
        _ => CommandError::Failed { id, source }.into(),
    }
}

/// Returns the experiments with these names, each once.
fn chosen(ids: &[String]) -> Result<Vec<&'static Experiment>, CommandError> {
    let mut chosen: Vec<&'static Experiment> = Vec::new();
    for id in ids {
        let more: Vec<&'static Experiment> = match fairgate_reproduce::find(id) {
            Some(experiment) => vec![experiment],
            None if id == "all" => EXPERIMENTS.iter().collect(),
            None => {
                let known: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.id).collect();
                return Err(CommandError::Unknown {
                    id: id.clone(),
                    known: known.join(", "),
                });
            }
        };
        for experiment in more {
            if !chosen.iter().any(|other| other.id == experiment.id) {
                chosen.push(experiment);
            }
        }
    }
    Ok(chosen)
}

fn list(format: Format) -> Result<Outcome, Failure> {
    let experiments = EXPERIMENTS
        .iter()
        .map(|experiment| {
            let description = experiment.description()?;
            Ok(Entry {
                id: experiment.id,
                paper: description.paper,
                place: description.place,
                title: description.title,
            })
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    match format {
        Format::Json => output::json("experiments", &List { experiments })?,
        Format::Text => {
            let mut table = output::table(["ID", "PAPER", "WHERE", "WHAT"]);
            for entry in experiments {
                table.add_row([entry.id.to_owned(), entry.paper, entry.place, entry.title]);
            }
            output::text(&output::table_text(&table))?;
        }
    }
    Ok(Outcome::Yes)
}

/// Returns the command that gives the same result again.
fn command(result: &Reproduction, args: &Args) -> String {
    let quick = if args.quick { " --quick" } else { "" };
    format!("fairgate reproduce {} --seeds {}{quick}", result.id, args.seeds)
}

/// The files for an experiment's results, found to be writable before it runs.
struct Sink {
    path: PathBuf,
    files: Vec<(Target, Content)>,
}

type Content = fn(&Reproduction, &str) -> String;

const FILES: [(&str, Content); 4] = [
    ("result.json", |result, _| {
        let experiments = std::slice::from_ref(result);
        output::json_text("reproduce", &Document { experiments })
    }),
    ("measured.csv", |result, _| result.rows_csv()),
    ("curves.csv", |result, _| result.curves_csv()),
    ("page.html", |result, command| result.page(command)),
];

impl Sink {
    fn open(path: PathBuf, targets: &mut Targets) -> Result<Sink, Failure> {
        let open = |(name, content): (&str, Content)| Ok((targets.open_in(&path, name)?, content));
        let files = FILES.into_iter().map(open).collect::<Result<_, Failure>>()?;
        Ok(Sink { path, files })
    }

    fn write(self, result: &Reproduction, command: &str, targets: &mut Targets) -> Result<(), Failure> {
        let fill = |target: Target, text: String| target.write(|file| file.write_all(text.as_bytes()));
        let files = output::each(self.files, |(target, content)| {
            fill(target, content(result, command))
        });
        let figures = (1..).zip(&result.figures).collect();
        let figures = output::each(figures, |(number, figure)| {
            let target = targets.open_in(&self.path, &format!("figure-{number}.svg"))?;
            fill(target, figure.svg())
        });
        files.and(figures)
    }
}

fn text(result: &Reproduction, folder: Option<&Path>) -> String {
    let mut text = format!(
        "{}: {} ({}, {})\n\n",
        result.id, result.title, result.paper, result.place
    );
    if result.grids.is_empty() {
        text.push_str(&rows(result));
    }
    for grid in &result.grids {
        text.push_str(&grid_text(grid));
    }
    text.push('\n');
    for claim in &result.claims {
        let verdict = if claim.holds { "holds" } else { "FAILS" };
        let lines = output::wrap(&format!("{}. {}", claim.text, claim.found), WIDTH - 7);
        text.push_str(&format!("{verdict}  {}\n", lines.replace('\n', "\n       ")));
    }
    for remark in &result.remarks {
        text.push_str(&format!("\n{}\n", output::wrap(remark, WIDTH)));
    }
    if let Some(folder) = folder {
        text.push_str(&format!("\nWritten to {}\n", folder.display()));
    }
    text.push('\n');
    text
}

/// Returns a table of measured beside published values.
fn rows(result: &Reproduction) -> String {
    let mut table = output::table(["MEASURE", "CASE", "MEASURED", "95 %", "PUBLISHED", "UNIT"]);
    for row in &result.rows {
        table.add_row([
            row.measure.clone(),
            row.case.clone(),
            row.measured_text(),
            row.interval_text(),
            row.published.clone().unwrap_or_else(|| "–".into()),
            row.unit.clone(),
        ]);
    }
    for column in table.column_iter_mut().skip(2).take(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    output::table_text(&table)
}

/// Returns means side by side. Their intervals are in the files.
fn grid_text(grid: &Grid) -> String {
    let head = grid.head.iter().map(String::as_str);
    let mut table = output::table(std::iter::once("").chain(head));
    for (name, values) in &grid.rows {
        let values = values.iter().map(|&value| Grid::text(value));
        table.add_row(std::iter::once(name.clone()).chain(values));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{}\n{}\n", grid.title, output::table_text(&table))
}
