//! `fairgate plot`: draws the results of a simulation, or a recording of a run.

mod recording;
mod results;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use fairgate_report::chart::Chart;
use fairgate_report::dots::Dots;
use fairgate_report::sheet::{Block, Sheet};
use fairgate_report::violin::Violins;
use fairgate_sim::results::Table;
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, Targets};
use recording::Recording;
use results::Simulated;

/// The maximum number of curves: the number of colours.
const MOST_CURVES: usize = 10;

/// Draw the results of a simulation or a recording: a quantity over time, a distribution, or classes
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate simulate home.toml --out results.json
  fairgate plot results.json                              throughput of each flow over time: throughput.svg
  fairgate plot results.json --of delay                   the distribution of each flow's packet delays
  fairgate plot results.json --of backlog --only router   the queues of the interfaces with this in their name
  fairgate plot results.json --of window --out tcp.svg
  fairgate plot fifo.json sqf.json --of violins           the packet delays of each group, side by side
  fairgate plot results.json --of observed --only rate    the observed variables with this in their name
  fairgate plot results.json --out results.html           all quantities on one page
  fairgate plot evening.csv --of backlog                  a recording of `fairgate record`, CSV or Parquet
  fairgate plot evening.csv --out evening.html            rates, queues, delays and drops on one page

A recording has throughput, backlog, delay (percentiles over time) and drops. If it has more classes than
curves have room, those with the most traffic are drawn.
With the results of several seeds (`simulate --seeds`), the curves are of the first one, or of `--seed`.")]
pub(crate) struct Args {
    /// The results: a JSON file of `fairgate simulate`, for `violins` and `classes` also several. Or a
    /// recording
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// What to draw [default: throughput; on a page everything]
    #[arg(long, value_enum)]
    of: Option<Quantity>,

    /// Draw only what has this text in its name; can be given several times
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,

    /// The seed whose curves are drawn, if the file has several
    #[arg(long)]
    seed: Option<u64>,

    /// A logarithmic axis for the delays of `violins`
    #[arg(long)]
    log: bool,

    /// The file for the figure, SVG. If it ends in `.html`, a page with all quantities [default:
    /// QUANTITY.svg]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Quantity {
    /// Throughput of each flow over time
    Throughput,
    /// Congestion window of each TCP flow over time
    Window,
    /// Smoothed round-trip time of each TCP flow over time
    Rtt,
    /// Packet delays of each flow: the share of packets at or below a delay
    Delay,
    /// Queue of each interface over time, packets
    Backlog,
    /// Mean sojourn time at each interface over time
    Sojourn,
    /// Observed variables over time; those with the unit of the first one
    Observed,
    /// Packet delays of each group: the shape of the distribution, median and quartiles
    Violins,
    /// Rate of each class at each interface
    Classes,
    /// Packets that each class of a recording dropped, over time
    Drops,
}

impl Quantity {
    /// Returns the name in `--of`.
    fn name(self) -> String {
        let value = self.to_possible_value().expect("no quantity is hidden");
        value.get_name().to_owned()
    }

    /// Returns the heading on a page.
    fn title(self) -> &'static str {
        match self {
            Quantity::Throughput => "Throughput of flows",
            Quantity::Window => "Congestion windows",
            Quantity::Rtt => "Round-trip times",
            Quantity::Delay => "Packet delays of flows",
            Quantity::Backlog => "Queues",
            Quantity::Sojourn => "Sojourn times",
            Quantity::Observed => "Observed variables",
            Quantity::Violins => "Packet delays of groups",
            Quantity::Classes => "Rates of classes",
            Quantity::Drops => "Drops",
        }
    }
}

#[derive(Debug, Error, Diagnostic)]
enum PlotError {
    #[error("{path} is not a result of `fairgate simulate`: {what}")]
    #[diagnostic(help(
        "name a file that `fairgate simulate SCENARIO --out FILE` wrote; it would replace this one"
    ))]
    NotResults { path: String, what: String },
    #[error("{path} has no results of seed {seed}")]
    #[diagnostic(help("its seeds are {known}"))]
    NoSeed { path: String, seed: u64, known: String },
    #[error("`--of {quantity}` draws one file, but {count} are given")]
    #[diagnostic(help("name one file, or draw `--of violins` or `--of classes`"))]
    OneFile { quantity: String, count: usize },
    #[error("one recording is drawn at a time, but {0} files are given")]
    #[diagnostic(help("name one file"))]
    OneRecording(usize),
    #[error("`--log` is for the delays of `--of violins`")]
    #[diagnostic(help("omit it, or draw `--of violins`"))]
    NoLogarithm,
    #[error("{path} has no {quantity}: it is a recording")]
    #[diagnostic(help("draw `--of throughput`, `backlog`, `delay` or `drops`"))]
    NotRecorded { path: String, quantity: String },
    #[error("{path} has no drops over time: it has the results of a simulation")]
    #[diagnostic(help("draw a recording of `fairgate record`, or another quantity"))]
    NoDrops { path: String },
    #[error("there is nothing to draw: no {subject} with {names} has a {quantity}")]
    #[diagnostic(help("choose another quantity with `--of`, or other names with `--only`"))]
    Nothing {
        subject: &'static str,
        names: String,
        quantity: String,
    },
}

/// What `--json` prints.
#[derive(Serialize)]
struct Drawing {
    file: String,
    quantity: String,
    curves: Vec<String>,
    left_out: usize,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let quantity = args.of.unwrap_or(Quantity::Throughput);
    let path = args
        .out
        .clone()
        .unwrap_or_else(|| format!("{}.svg", quantity.name()).into());
    let has_violins = quantity == Quantity::Violins || (is_page(&path) && args.of.is_none());
    if args.log && !has_violins {
        return Err(PlotError::NoLogarithm.into());
    }
    if let Some(table) = recording::read(&args.files[0])? {
        return recorded(&args, &table, quantity, &path, format);
    }
    if quantity == Quantity::Drops {
        let path = args.files[0].display().to_string();
        return Err(PlotError::NoDrops { path }.into());
    }
    let simulated = Simulated::read(&args)?;
    if is_page(&path) {
        return deliver_page(&args, simulated.page()?, &path, format);
    }
    let picture = simulated.picture(quantity)?;
    deliver(&args, picture, quantity, &path, format)
}

/// Draws a recording: a quantity as a figure, or all of them on a page.
fn recorded(
    args: &Args,
    table: &Table,
    quantity: Quantity,
    path: &Path,
    format: Format,
) -> Result<Outcome, Failure> {
    let file = &args.files[0];
    if args.files.len() > 1 {
        return Err(PlotError::OneRecording(args.files.len()).into());
    }
    if !recording::QUANTITIES.contains(&quantity) {
        let path = file.display().to_string();
        let quantity = quantity.name();
        return Err(PlotError::NotRecorded { path, quantity }.into());
    }
    let recording = Recording::of(table, file)?;
    let chooses = |name: &str| args.chooses(name);
    if is_page(path) {
        let quantities = match &args.of {
            Some(quantity) => std::slice::from_ref(quantity),
            None => &recording::QUANTITIES,
        };
        let page = recording.page(table, &title_of(file), quantities, &chooses);
        return deliver_page(args, page, path, format);
    }
    match recording.picture(table, quantity, &chooses) {
        Some(picture) => deliver(args, picture, quantity, path, format),
        None => Err(args.nothing("class", &quantity.name())),
    }
}

/// Draws all quantities of a recording on a page.
#[cfg(feature = "live")]
pub(crate) fn draw_page(file: &Path, page: &Path) -> Result<(), Failure> {
    let table = recording::read(file)?.ok_or_else(|| recording::RecordingError::Broken {
        path: file.display().to_string(),
        what: "it does not begin as one".to_owned(),
    })?;
    let target = Targets::beside([file]).open(page)?;
    let recording = Recording::of(&table, file)?;
    let page = recording.page(&table, &title_of(file), &recording::QUANTITIES, &|_| true);
    target.write(|into| into.write_all(page.sheet.render().as_bytes()))
}

/// Returns the title of the page about a file.
fn title_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    name.to_string_lossy().into_owned()
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "html")
}

/// Writes a picture and says what is in it.
fn deliver(
    args: &Args,
    picture: Picture,
    quantity: Quantity,
    path: &Path,
    format: Format,
) -> Result<Outcome, Failure> {
    let things = match quantity {
        Quantity::Violins => "groups",
        Quantity::Classes => "classes",
        _ => "curves",
    };
    let left_out = match picture.left_out {
        0 => String::new(),
        more => format!(" {more} more have no room; choose some with --only."),
    };
    let summary = format!("{} {things}.{left_out}", picture.names.len());
    let drawing = Drawing {
        file: path.display().to_string(),
        quantity: quantity.name(),
        curves: picture.names,
        left_out: picture.left_out,
    };
    write(args, &drawing, &picture.figure.svg(), &summary, format)
}

/// Writes a page and says what is on it.
fn deliver_page(args: &Args, page: Page, path: &Path, format: Format) -> Result<Outcome, Failure> {
    let summary = format!("{} figures.", page.quantities.len());
    let drawing = Drawing {
        file: path.display().to_string(),
        quantity: "page".to_owned(),
        curves: page.quantities.iter().map(|of| of.name()).collect(),
        left_out: 0,
    };
    write(args, &drawing, &page.sheet.render(), &summary, format)
}

fn write(
    args: &Args,
    drawing: &Drawing,
    text: &str,
    summary: &str,
    format: Format,
) -> Result<Outcome, Failure> {
    let path = Path::new(&drawing.file);
    let target = Targets::beside(args.files.iter().map(PathBuf::as_path)).open(path)?;
    output::deliver(
        || target.write(|file| file.write_all(text.as_bytes())),
        |is_written| match (format, is_written) {
            (Format::Json, _) => output::json("plot", drawing),
            (Format::Text, true) => output::text(&format!("{}: {summary}\n", drawing.file)),
            (Format::Text, false) => Ok(()),
        },
    )?;
    Ok(Outcome::Yes)
}

/// A finished figure.
struct Picture {
    figure: Figure,
    /// The names of its curves, groups or classes.
    names: Vec<String>,
    /// The number of those for which there was no room.
    left_out: usize,
}

enum Figure {
    Chart(Chart),
    Dots(Dots),
    Violins(Violins),
}

impl Figure {
    fn svg(&self) -> String {
        match self {
            Figure::Chart(chart) => chart.svg(),
            Figure::Dots(dots) => dots.svg(),
            Figure::Violins(violins) => violins.svg(),
        }
    }
}

impl From<Figure> for Block {
    fn from(figure: Figure) -> Block {
        match figure {
            Figure::Chart(chart) => Block::Chart(chart),
            Figure::Dots(dots) => Block::Dots(dots),
            Figure::Violins(violins) => Block::Violins(violins),
        }
    }
}

/// A page with several quantities.
struct Page {
    sheet: Sheet,
    /// Those that have a figure.
    quantities: Vec<Quantity>,
}

impl Args {
    /// Returns whether `--only` chooses this name.
    fn chooses(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|text| name.contains(text))
    }

    /// Returns the error that nothing was chosen.
    fn nothing(&self, subject: &'static str, quantity: &str) -> Failure {
        PlotError::Nothing {
            subject,
            names: match self.only.is_empty() {
                true => "any name".to_owned(),
                false => format!("`{}` in its name", self.only.join("` or `")),
            },
            quantity: quantity.to_owned(),
        }
        .into()
    }
}

/// An axis must have a length.
fn above(end: f64) -> f64 {
    if end > 0.0 { end } else { 1.0 }
}
