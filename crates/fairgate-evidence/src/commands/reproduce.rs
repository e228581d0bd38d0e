//! `fairgate-lab reproduce`: runs the papers' experiments and prints measured beside published values.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};

use comfy_table::CellAlignment;
use fairgate_live::testbed::{Interrupt, check_privileges};
use fairgate_report::command::failure::{Failure, Imbalanced, Outcome};
use fairgate_report::command::input;
use fairgate_report::command::output::{self, Format, Target, Targets};
use fairgate_report::command::progress;
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::commands::bench;
use crate::lab::LabError;
use crate::reproduce::{
    Conditions, EXPERIMENTS, Experiment, Grid, JudgedClaim, NotVerdicts, ReproduceError, Reproduction,
    Verdicts,
};

/// The number of steps of the progress bar for each experiment.
const STEPS: f64 = 1000.0;
/// The width to which text is wrapped, in columns.
const WIDTH: usize = 110;

/// Repeat the papers' experiments: measured beside published values
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate-lab reproduce                         list the experiments
  fairgate-lab reproduce sqf-fig3                one experiment
  fairgate-lab reproduce sqf-fig3 sqf-fig4       two
  fairgate-lab reproduce all --out results       all; qfq-fig9 and qfq-table3 take 12 minutes if idle
  fairgate-lab reproduce sqf-fig4 --seeds 20     narrower intervals
  fairgate-lab reproduce sqf-fig4 --quick        a short run, to see that it works
  fairgate-lab reproduce sqf-fig3 --json         for a script
  fairgate-lab reproduce altq-guarantee --live   with real traffic between network namespaces; needs root
  fairgate-lab reproduce sqf-fig6 --also cake,dualpi2
                                             and other disciplines beside those of the paper
  fairgate-lab reproduce mine.toml               an experiment of your own; see docs/reproduce.md
  fairgate-lab reproduce sqf-fig3 --verdicts verdicts.csv --commit 1a2b3c4
                                             and keep the verdicts in a table of several experiments

A claim is `reproduced` if it was measured to hold as the paper states it, by the paper's own formula. It is
`reproduced if` a parameter that the paper does not give is as we chose it, and `within chance` if our mean
misses it, but the interval of a single run of ours contains it. Else it is `not reproduced`. A line `instead`
below a claim is a statement of ours, for example by another formula. It does not change the verdict.

Each experiment writes into its own folder below --out: result.json, measured.csv, curves.csv, figure-N.svg,
page.html. With several experiments, index.html in --out leads to each page. Intervals contain the true mean
with a probability of 95 %.
With --live, each experiment runs with real traffic through live bridges, and simulated beside that. Its
claims are judged by the live runs. It needs root and ip (iproute2), changes nothing outside its own
namespaces, and removes them when it ends, also after Ctrl-C.
Exit codes: 0 all claims are reproduced; 1 a claim is not; 2 unknown experiment; 3 a file cannot be written,
or the system refused a live run.")]
pub(crate) struct Args {
    /// The experiments to run, or `all`, or files of your own; without any, they are listed
    #[arg(value_name = "ID|FILE")]
    ids: Vec<String>,

    /// Number of runs of a random experiment, with seeds 1 to N [default: 5, with --live 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,

    /// Folder for the results, with a folder for each experiment
    #[arg(short, long, value_name = "FOLDER", default_value = "fairgate-reproduce")]
    out: PathBuf,

    /// Measure only enough to see that it works; claims may fail because there is too little data
    #[arg(long)]
    quick: bool,

    /// Run with real traffic between network namespaces of this machine, beside the simulation
    #[arg(long)]
    live: bool,

    /// Run an experiment that compares disciplines with these of the library, too; no claim is judged by them
    #[arg(long, value_name = "DISCIPLINE", value_delimiter = ',', conflicts_with_all = ["live", "verdicts"])]
    also: Vec<String>,

    /// Also write the verdicts into this CSV table, in the place of those of an earlier run
    #[arg(long, value_name = "FILE")]
    verdicts: Option<PathBuf>,

    /// The commit that the verdicts are of, to be written beside them
    #[arg(long, value_name = "COMMIT", requires = "verdicts")]
    commit: Option<String>,
}

#[derive(Debug, Error, Diagnostic)]
enum CommandError {
    #[error("there is no experiment `{id}`")]
    #[diagnostic(help(
        "the experiments are {known}; `fairgate-lab reproduce` describes each in a line; the path of an \
         experiment of your own ends with .toml"
    ))]
    Unknown { id: String, known: String },
    #[error("{id} has no result")]
    #[diagnostic(help("this is a bug in the program's own files: please report it"))]
    Failed { id: String, source: Box<ReproduceError> },
    #[error("{path} is not a table of published values")]
    #[diagnostic(help("its columns are measure,case,value,unit,place, and a value is a number"))]
    Published {
        path: String,
        source: Box<ReproduceError>,
    },
    #[error("{path} cannot be read")]
    #[diagnostic(help("--verdicts keeps what the table has of other experiments"))]
    UnreadableVerdicts { path: String, source: std::io::Error },
    #[error("the verdicts cannot be written into {path}")]
    #[diagnostic(help("name a table that --verdicts wrote, or a file that does not exist"))]
    NotVerdicts { path: String, source: NotVerdicts },
    #[error("`{id}` cannot be run live")]
    #[diagnostic(help(
        "with --live run {known}; an experiment of your own needs a section [experiment.live], see \
         docs/reproduce.md"
    ))]
    NotLive { id: String, known: String },
    #[error("{id} has no live result")]
    #[diagnostic(help("the network has been taken down; write a scenario as docs/reproduce.md says"))]
    Live { id: String, source: Box<ReproduceError> },
    #[error("{id} has no result")]
    #[diagnostic(help(
        "valgrind counts instructions in a second process: check that there is memory for it"
    ))]
    Job { id: String, source: Box<ReproduceError> },
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
    id: String,
    paper: String,
    place: String,
    title: String,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    if args.ids.is_empty() {
        return list(format);
    }
    let mut experiments = chosen(&args.ids)?;
    let interrupt = match args.live {
        true => Some(prepare_live(&args.ids, &mut experiments)?),
        false => None,
    };
    if !args.also.is_empty() {
        for experiment in &mut experiments {
            *experiment = Cow::Owned(experiment.also(&args.also)?);
        }
    }
    let seeds: Vec<u64> = (1..=args.seeds()).collect();
    let count = match experiments.iter().any(|experiment| experiment.counts) {
        // It runs this program again.
        true if !output::printed::is_kept() => bench::counter(),
        _ => None,
    };
    let bar = progress::share(format);
    bar.set_length(experiments.len() as u64 * STEPS as u64);
    let mut targets = Targets::beside([]);
    let sinks = experiments
        .iter()
        .map(|experiment| Sink::open(args.out.join(args.folder(experiment)), &mut targets))
        .collect::<Result<Vec<_>, Failure>>()?;
    let index = match experiments.len() {
        0 | 1 => None,
        _ => Some(targets.open_in(&args.out, "index.html")?),
    };
    let verdicts = (args.verdicts.as_deref())
        .map(|path| VerdictFile::open(path, &mut targets))
        .transpose()?;
    let mut results = Vec::with_capacity(experiments.len());
    let mut written = Ok(());
    for (index, (experiment, sink)) in experiments.iter().zip(sinks).enumerate() {
        let report = |share: f64, what: &str| {
            bar.set_position(((index as f64 + share.clamp(0.0, 1.0)) * STEPS) as u64);
            bar.set_message(output::name(&format!("{}: {what}", experiment.id)));
        };
        report(0.0, "");
        let conditions = Conditions {
            seeds: &seeds,
            quick: args.quick,
            progress: &report,
            count,
            live: interrupt.as_ref(),
        };
        let result = experiment
            .reproduce(conditions)
            .map_err(|source| failure(&experiment.id, source))?;
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
    if let Some(index) = index {
        let page = Reproduction::index(&results);
        written = written.and(index.write(|file| file.write_all(page.as_bytes())));
    }
    if let Some(verdicts) = verdicts {
        written = written.and(verdicts.write(&results, &args));
    }
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
fn failure(id: &str, source: ReproduceError) -> Failure {
    let (id, source) = (id.to_owned(), Box::new(source));
    match *source {
        ReproduceError::File(error) => error.into(),
        ReproduceError::Job { .. } => Failure::environment(CommandError::Job { id, source }),
        ReproduceError::Live(LabError::Testbed(error)) => Failure::environment(error),
        ReproduceError::Live(LabError::Imbalance(error)) => Imbalanced::from(error).into(),
        ReproduceError::Live(LabError::Queue(error)) => error.into(),
        ReproduceError::Live(LabError::Flow { .. }) => {
            Failure::environment(CommandError::Live { id, source })
        }
        ReproduceError::Live(_) => CommandError::Live { id, source }.into(),
        _ => CommandError::Failed { id, source }.into(),
    }
}

/// Returns the experiments with these names, and those of these files, each once.
fn chosen(ids: &[String]) -> Result<Vec<Cow<'static, Experiment>>, Failure> {
    let mut chosen: Vec<Cow<'static, Experiment>> = Vec::new();
    for id in ids {
        let more: Vec<Cow<'static, Experiment>> = match crate::reproduce::find(id) {
            Some(experiment) => vec![Cow::Borrowed(experiment)],
            None if id == "all" => EXPERIMENTS.iter().map(Cow::Borrowed).collect(),
            None if id.ends_with(".toml") => vec![Cow::Owned(own(Path::new(id))?)],
            None => {
                let known: Vec<&str> = EXPERIMENTS.iter().map(|experiment| &*experiment.id).collect();
                return Err(CommandError::Unknown {
                    id: id.clone(),
                    known: known.join(", "),
                }
                .into());
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

/// Checks that these experiments can be run live, before any of them is. Of `all` those that can't are left
/// out. Returns what ends the runs.
fn prepare_live(
    ids: &[String],
    experiments: &mut Vec<Cow<'static, Experiment>>,
) -> Result<Interrupt, Failure> {
    let is_asked_for =
        |experiment: &Experiment| ids.iter().any(|id| *id != "all" && experiment.is_called(id));
    let mut able = Vec::new();
    for experiment in std::mem::take(experiments) {
        match experiment.can_run_live()? {
            true => able.push(experiment),
            false if is_asked_for(&experiment) => {
                let mut known = Vec::new();
                for other in EXPERIMENTS {
                    if other.can_run_live()? {
                        known.push(&*other.id);
                    }
                }
                let (id, known) = (experiment.id.to_string(), known.join(", "));
                return Err(CommandError::NotLive { id, known }.into());
            }
            false => {}
        }
    }
    *experiments = able;
    check_privileges().map_err(Failure::environment)?;
    Interrupt::catch_while_busy().map_err(Failure::environment)
}

/// Reads an experiment of the user: `NAME.toml`, and `NAME.published.csv` beside it if there is one.
fn own(path: &Path) -> Result<Experiment, Failure> {
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    let values = path.with_extension("published.csv");
    let published = match values.exists() {
        true => Some(input::text(&values)?),
        false => None,
    };
    let shown = path.display().to_string();
    Experiment::from_text(&id, &shown, input::text(path)?, published).map_err(|error| match error {
        ReproduceError::Published { .. } => CommandError::Published {
            path: values.display().to_string(),
            source: Box::new(error),
        }
        .into(),
        other => failure(&id, other),
    })
}

fn list(format: Format) -> Result<Outcome, Failure> {
    let experiments = EXPERIMENTS
        .iter()
        .map(|experiment| {
            let description = experiment.description()?;
            Ok(Entry {
                id: experiment.id.to_string(),
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

/// A table into which verdicts are written, found to be readable and writable before the first experiment
/// runs.
struct VerdictFile {
    verdicts: Verdicts,
    target: Target,
}

impl VerdictFile {
    fn open(path: &Path, targets: &mut Targets) -> Result<VerdictFile, Failure> {
        let shown = || path.display().to_string();
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|source| CommandError::UnreadableVerdicts {
                path: shown(),
                source,
            })?,
        };
        let verdicts = Verdicts::parse(&text).map_err(|source| CommandError::NotVerdicts {
            path: shown(),
            source,
        })?;
        Ok(VerdictFile {
            verdicts,
            target: targets.open(path)?,
        })
    }

    fn write(mut self, results: &[Reproduction], args: &Args) -> Result<(), Failure> {
        for result in results {
            let mut run = command(result, args);
            if let Some(commit) = &args.commit {
                run.push_str(&format!(" at commit {commit}"));
            }
            self.verdicts.insert(result, &run);
        }
        (self.target).write(|file| file.write_all(self.verdicts.to_csv().as_bytes()))
    }
}

/// Returns the command that gives the same result again.
fn command(result: &Reproduction, args: &Args) -> String {
    let quick = if args.quick { " --quick" } else { "" };
    let live = if args.live { " --live" } else { "" };
    let also = match args.also.as_slice() {
        [] => String::new(),
        names => format!(" --also {}", names.join(",")),
    };
    format!(
        "fairgate-lab reproduce {} --seeds {}{live}{quick}{also}",
        result.id,
        args.seeds()
    )
}

impl Args {
    /// Returns the number of runs. A live run takes as long as what it measures, so one is the default.
    fn seeds(&self) -> u64 {
        self.seeds.unwrap_or(if self.live { 1 } else { 5 })
    }

    /// Returns the name of the folder of an experiment's files.
    fn folder(&self, experiment: &Experiment) -> String {
        let live = if self.live { "-live" } else { "" };
        format!("{}{live}", experiment.id)
    }
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
        result.key(),
        result.title,
        result.paper,
        result.place
    );
    if result.grids.is_empty() {
        text.push_str(&rows(result));
    }
    for grid in &result.grids {
        text.push_str(&grid_text(grid));
    }
    text.push('\n');
    result
        .claims
        .iter()
        .for_each(|claim| text.push_str(&claim_text(claim)));
    for remark in &result.remarks {
        text.push_str(&format!("\n{}\n", output::wrap(remark, WIDTH)));
    }
    if let Some(folder) = folder {
        text.push_str(&format!("\nWritten to {}\n", folder.display()));
    }
    text.push('\n');
    text
}

/// Returns a claim with its verdict, and our statements beside it, each on lines of its own.
fn claim_text(claim: &JudgedClaim) -> String {
    const COLUMN: usize = 15;
    let mut text = String::new();
    let mut add = |verdict: &str, statement: &str, found: &str| {
        let lines = output::wrap(&format!("{statement}. {found}"), WIDTH - COLUMN);
        let lines = lines.replace('\n', &format!("\n{:COLUMN$}", ""));
        text.push_str(&format!("{verdict:COLUMN$}{lines}\n"));
    };
    add(claim.verdict.word(), &claim.text, &claim.why());
    if let Some(tried) = claim.tried.as_ref().filter(|_| !claim.holds) {
        add("  tried", tried.trim_end_matches('.'), "");
    }
    for ours in &claim.instead {
        let (verdict, statement) = (format!("  {}", ours.verdict()), format!("Instead: {}", ours.text));
        add(&verdict, &statement, &ours.found);
    }
    text
}

/// Returns a table of measured beside published values.
fn rows(result: &Reproduction) -> String {
    let ways = result.ways();
    let titles: Vec<String> = ways.iter().map(|way| way.to_uppercase()).collect();
    let first = ["MEASURE", "CASE", "MEASURED", "95 %"];
    let head = (first.into_iter())
        .chain(titles.iter().map(String::as_str))
        .chain(["PUBLISHED", "UNIT"]);
    let mut table = output::table(head);
    for row in &result.rows {
        let first = [
            row.measure.clone(),
            row.case.clone(),
            row.measured_text(),
            row.interval_text(),
        ];
        let last = [
            row.published.clone().unwrap_or_else(|| "–".into()),
            row.unit.clone(),
        ];
        let others = ways.iter().map(|way| row.beside_text(way));
        table.add_row(first.into_iter().chain(others).chain(last));
    }
    for column in table.columns().skip(2).take(3 + ways.len()) {
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
    for column in table.columns().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{}\n{}\n", grid.title, output::table_text(&table))
}
