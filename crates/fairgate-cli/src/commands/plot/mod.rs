//! `fairgate plot`: draws the results of a simulation, or a recording of a run.

mod recording;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use fairgate_report::chart::{Chart, Curve, Scale};
use fairgate_report::dots::{Dots, Row};
use fairgate_report::violin::{Group, Quantiles, Violins};
use fairgate_sim::Results;
use fairgate_sim::results::{ClassResults, Durations, ObservationResults, Table};
use miette::Diagnostic;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::{self, Format, Targets};
use recording::{Recording, RecordingError};

/// The maximum number of curves: the number of colours.
const MOST_CURVES: usize = 10;
/// The maximum number of rows of classes.
const MOST_ROWS: usize = 40;

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
  fairgate plot evening.csv --of backlog          a recording of `fairgate record`, CSV or Parquet
  fairgate plot evening.csv --out evening.html    rates, queues, delays and drops of a recording on one page

A recording has throughput, backlog, delay (percentiles over time) and drops. If it has more classes than
curves have room, those with the most traffic are drawn.
With the results of several seeds (`simulate --seeds`), the curves are of the first one, or of `--seed`.")]
pub(crate) struct Args {
    /// The results: a JSON file of `fairgate simulate`, for `violins` and `classes` also several. Or a
    /// recording
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// What to draw
    #[arg(long, value_enum, default_value = "throughput")]
    of: Quantity,

    /// Draw only what has this text in its name; can be given several times
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,

    /// The seed whose curves are drawn, if the file has several
    #[arg(long)]
    seed: Option<u64>,

    /// A logarithmic axis for the delays of `violins`
    #[arg(long)]
    log: bool,

    /// The file for the figure, SVG; for a recording also HTML [default: QUANTITY.svg]
    #[arg(long, value_name = "FILE")]
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

#[derive(Debug, Error, Diagnostic)]
enum PlotError {
    #[error("{path} is not a result of `fairgate simulate`: {what}")]
    #[diagnostic(help("write one with `fairgate simulate SCENARIO --out {path}`"))]
    NotResults { path: String, what: String },
    #[error("{path} has no results of seed {seed}")]
    #[diagnostic(help("its seeds are {known}"))]
    NoSeed { path: String, seed: u64, known: String },
    #[error("`--of {quantity}` draws one file, but {count} are given")]
    #[diagnostic(help("name one file, or draw `--of violins` or `--of classes`"))]
    OneFile { quantity: String, count: usize },
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

/// A document of `fairgate simulate`.
#[derive(Deserialize)]
struct Document {
    schema: String,
    #[serde(flatten)]
    content: Content,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Seeds { runs: Vec<Results> },
    One(Box<Results>),
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
    let quantity = name_of(args.of);
    let path = args
        .out
        .clone()
        .unwrap_or_else(|| format!("{quantity}.svg").into());
    let draws_several = matches!(args.of, Quantity::Violins | Quantity::Classes);
    if args.files.len() > 1 && !draws_several {
        let count = args.files.len();
        return Err(PlotError::OneFile { quantity, count }.into());
    }
    if args.log && args.of != Quantity::Violins {
        return Err(PlotError::NoLogarithm.into());
    }
    if let Some(table) = recording::read(&args.files[0])? {
        return recorded(&args, &table, &quantity, &path, format);
    }
    if args.of == Quantity::Drops {
        let path = args.files[0].display().to_string();
        return Err(PlotError::NoDrops { path }.into());
    }
    let runs: Vec<Results> = args
        .files
        .iter()
        .map(|file| read(&args, file))
        .collect::<Result<_, Failure>>()?;
    let picture = match args.of {
        Quantity::Violins => violins(&args, &runs)?,
        Quantity::Classes => classes(&args, &runs)?,
        _ => chart(&args, &runs[0], &quantity)?,
    };
    deliver(&args, picture, quantity, &path, format)
}

/// Draws a recording: a quantity as a figure, or all of them on a page.
fn recorded(
    args: &Args,
    table: &Table,
    quantity: &str,
    path: &Path,
    format: Format,
) -> Result<Outcome, Failure> {
    let file = &args.files[0];
    let recording = Recording::of(table, file)?;
    let chooses = |name: &str| args.chooses(name);
    if is_page(path) {
        let title = file.display().to_string();
        let sheet = recording.page(table, &title, &chooses);
        let picture = Picture {
            svg: sheet.render(),
            names: recording::QUANTITIES.iter().map(|&of| name_of(of)).collect(),
            left_out: 0,
        };
        return deliver(args, picture, "page".to_owned(), path, format);
    }
    if !recording::QUANTITIES.contains(&args.of) {
        let path = file.display().to_string();
        let quantity = quantity.to_owned();
        return Err(PlotError::NotRecorded { path, quantity }.into());
    }
    match recording.picture(table, args.of, &chooses) {
        Some((_, picture)) => deliver(args, picture, quantity.to_owned(), path, format),
        None => Err(args.nothing("class", quantity)),
    }
}

/// Draws all quantities of a recording on a page.
pub(crate) fn draw_page(file: &Path, page: &Path) -> Result<(), Failure> {
    let table = recording::read(file)?.ok_or_else(|| RecordingError::Broken {
        path: file.display().to_string(),
        what: "it does not begin as one".to_owned(),
    })?;
    let target = Targets::beside([file]).open(page)?;
    let recording = Recording::of(&table, file)?;
    let sheet = recording.page(&table, &file.display().to_string(), &|_| true);
    target.write(|into| into.write_all(sheet.render().as_bytes()))
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "html")
}

fn name_of(quantity: Quantity) -> String {
    let value = quantity.to_possible_value().expect("no quantity is hidden");
    value.get_name().to_owned()
}

/// Writes a picture and says what is in it.
fn deliver(
    args: &Args,
    picture: Picture,
    quantity: String,
    path: &Path,
    format: Format,
) -> Result<Outcome, Failure> {
    let target = Targets::beside(args.files.iter().map(PathBuf::as_path)).open(path)?;
    let left_out = picture.left_out;
    let drawing = Drawing {
        file: path.display().to_string(),
        quantity,
        curves: picture.names,
        left_out,
    };
    output::deliver(
        || target.write(|file| file.write_all(picture.svg.as_bytes())),
        |is_written| match (format, is_written) {
            (Format::Json, _) => output::json("plot", &drawing),
            (Format::Text, true) => {
                let left_out = match left_out {
                    0 => String::new(),
                    more => format!(" {more} more have no room; choose some with --only."),
                };
                let parts = match (args.of, drawing.curves.len()) {
                    (Quantity::Violins, groups) => format!("{groups} groups"),
                    (Quantity::Classes, classes) => format!("{classes} classes"),
                    (_, figures) if is_page(path) => format!("{figures} figures"),
                    (_, curves) => format!("{curves} curves"),
                };
                output::text(&format!("{}: {parts}.{left_out}\n", drawing.file))
            }
            (Format::Text, false) => Ok(()),
        },
    )?;
    Ok(Outcome::Yes)
}

/// A finished figure.
struct Picture {
    svg: String,
    /// The names of its curves, groups or classes.
    names: Vec<String>,
    /// The number of those for which there was no room.
    left_out: usize,
}

fn read(args: &Args, file: &Path) -> Result<Results, Failure> {
    let path = file.display().to_string();
    let text = input::text(file)?;
    let not_results = |what: String| PlotError::NotResults {
        path: path.clone(),
        what,
    };
    let document: Document = serde_json::from_str(&text).map_err(|error| not_results(error.to_string()))?;
    if !document.schema.starts_with("fairgate.simulate") {
        return Err(not_results(format!("its schema is {}", document.schema)).into());
    }
    let runs = match document.content {
        Content::One(results) => vec![*results],
        Content::Seeds { runs } => runs,
    };
    let seeds: Vec<String> = runs.iter().map(|run| run.seed.to_string()).collect();
    let found = match args.seed {
        None => runs.into_iter().next(),
        Some(seed) => runs.into_iter().find(|run| run.seed == seed),
    };
    Ok(found.ok_or_else(|| match args.seed {
        Some(seed) => PlotError::NoSeed {
            path: path.clone(),
            seed,
            known: seeds.join(", "),
        },
        None => not_results("it has no runs".to_owned()),
    })?)
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

    /// Returns a name for each file: its name without ending, or the whole path if two have the same one.
    fn file_names(&self) -> Vec<String> {
        let stem = |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let stems: Vec<String> = self.files.iter().filter_map(stem).collect();
        let distinct: BTreeSet<&String> = stems.iter().collect();
        match distinct.len() == self.files.len() {
            true => stems,
            false => self.files.iter().map(|path| path.display().to_string()).collect(),
        }
    }
}

/// Draws the delays of each group in all results, side by side.
fn violins(args: &Args, runs: &[Results]) -> Result<Picture, Failure> {
    let mut names: Vec<&str> = Vec::new();
    for group in runs.iter().flat_map(|run| &run.groups) {
        if group.delay.count > 0 && args.chooses(&group.name) && !names.contains(&group.name.as_str()) {
            names.push(&group.name);
        }
    }
    if names.is_empty() {
        return Err(args.nothing("group", "delay"));
    }
    let left_out = names.len().saturating_sub(MOST_CURVES);
    names.truncate(MOST_CURVES);
    let delays = |name: &str, run: &'_ Results| -> Option<Quantiles> {
        let group = run.groups.iter().find(|group| group.name == name)?;
        let delay = Some(&group.delay).filter(|delay| delay.count > 0)?;
        Quantiles::new(delay.percentiles_ns.iter().map(|&nanos| nanos as f64 * 1e-6))
    };
    let groups: Vec<Group> = names
        .iter()
        .map(|&name| Group {
            name: name.to_owned(),
            violins: runs.iter().map(|run| delays(name, run)).collect(),
        })
        .collect();
    let drawn = runs
        .iter()
        .flat_map(|run| &run.groups)
        .filter(|group| names.contains(&group.name.as_str()));
    let delays = drawn.map(|group| &group.delay).filter(|delay| delay.count > 0);
    let (least, most) = delays.fold((f64::INFINITY, 0.0_f64), |(least, most), delay| {
        let [min, max] = [delay.min_ns, delay.max_ns].map(|nanos| nanos as f64 * 1e-6);
        (least.min(min), most.max(max))
    });
    let label = "Packet delay, ms";
    let figure = Violins {
        title: format!("Packet delay, seed {}", runs[0].seed),
        y: match args.log {
            true => Scale::logarithmic(label, least.max(1e-6), most.max(1e-6)),
            false => Scale::linear(label, 0.0, above(most * 1.02)),
        },
        series: args.file_names(),
        groups,
    };
    Ok(Picture {
        svg: figure.svg(),
        names: names.into_iter().map(str::to_owned).collect(),
        left_out,
    })
}

/// Draws the rate of each class in all results.
fn classes(args: &Args, runs: &[Results]) -> Result<Picture, Failure> {
    let classes = |run: &Results| -> Vec<(String, f64)> {
        let seconds = (run.measured_ns[1] - run.measured_ns[0]) as f64 * 1e-9;
        let rate = |class: &ClassResults| class.sent_bytes as f64 * 8e-6 / seconds;
        let at = run.interfaces.iter();
        at.flat_map(|at| {
            let passed = at.classes.iter().filter(|class| class.sent > 0);
            passed.map(|class| (format!("{} class {}", at.name, class.class), rate(class)))
        })
        .collect()
    };
    let rates: Vec<Vec<(String, f64)>> = runs.iter().map(classes).collect();
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in rates.iter().flatten() {
        if args.chooses(name) && !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Err(args.nothing("interface", "class with packets"));
    }
    let left_out = names.len().saturating_sub(MOST_ROWS);
    names.truncate(MOST_ROWS);
    let rate = |name: &String, rates: &[(String, f64)]| {
        let found = rates.iter().find(|(known, _)| known == name);
        found.map(|(_, rate)| *rate)
    };
    let rows: Vec<Row> = names
        .iter()
        .map(|&name| Row {
            name: name.clone(),
            values: rates.iter().map(|rates| rate(name, rates)).collect(),
        })
        .collect();
    let greatest = rows.iter().flat_map(|row| row.values.iter().flatten());
    let greatest = greatest.fold(0.0_f64, |most, &rate| most.max(rate));
    let figure = Dots {
        title: format!("Rate of each class, seed {}", runs[0].seed),
        x: Scale::linear("Rate, Mbit/s", 0.0, above(greatest * 1.05)),
        series: args.file_names(),
        rows,
        limit: None,
    };
    Ok(Picture {
        svg: figure.svg(),
        names: names.into_iter().cloned().collect(),
        left_out,
    })
}

/// Returns the observed variables that have the unit of the first chosen one: they share an axis.
fn with_one_unit<'r>(args: &Args, results: &'r Results) -> Vec<&'r ObservationResults> {
    let chosen = results
        .observations
        .iter()
        .filter(|observed| args.chooses(&observed.name));
    let mut chosen: Vec<&ObservationResults> = chosen.collect();
    if let Some(first) = chosen.first().copied() {
        chosen.retain(|observed| observed.unit == first.unit);
    }
    chosen
}

/// Returns the unit that is shown for a unit, and the factor to it.
fn shown_unit(unit: &str) -> (&str, f64) {
    match unit {
        "bit/s" => ("Mbit/s", 1e-6),
        "ns" => ("ms", 1e-6),
        other => (other, 1.0),
    }
}

/// Draws curves: a quantity over time, or the distribution of delays.
fn chart(args: &Args, results: &Results, quantity: &str) -> Result<Picture, Failure> {
    let is_chosen = |name: &str| args.chooses(name);
    let observed = match args.of {
        Quantity::Observed => with_one_unit(args, results),
        _ => Vec::new(),
    };
    let (label, unit, factor) = match args.of {
        Quantity::Observed => {
            let (unit, factor) = shown_unit(observed.first().map_or("", |first| &first.unit));
            ("Observed", unit, factor)
        }
        Quantity::Violins | Quantity::Classes | Quantity::Drops => unreachable!("these are no curves"),
        Quantity::Throughput => ("Throughput", "Mbit/s", 1e-6),
        Quantity::Window => ("Congestion window", "segments", 1.0),
        Quantity::Rtt => ("Smoothed round-trip time", "ms", 1e-6),
        Quantity::Delay => ("Packet delay", "ms", 1e-6),
        Quantity::Backlog => ("Queue", "packets", 1.0),
        Quantity::Sojourn => ("Mean sojourn time", "ms", 1e-6),
    };
    let over_time = |values: &mut dyn Iterator<Item = u64>| -> Vec<(f64, f64)> {
        let interval = results.interval_ns as f64 * 1e-9;
        let point = |(index, value): (usize, u64)| ((index + 1) as f64 * interval, value as f64 * factor);
        values.enumerate().map(point).collect()
    };
    let flows = || results.flows.iter().filter(|flow| is_chosen(&flow.name));
    let interfaces = || {
        let passed = results
            .interfaces
            .iter()
            .filter(|interface| interface.enqueued > 0);
        passed.filter(|interface| is_chosen(&interface.name))
    };
    let connections = || flows().filter_map(|flow| Some((&flow.name, flow.connection.as_ref()?)));
    let named: Vec<(&String, Vec<(f64, f64)>)> = match args.of {
        Quantity::Violins | Quantity::Classes | Quantity::Drops => unreachable!("these are no curves"),
        Quantity::Observed => observed
            .iter()
            .map(|observed| {
                let interval = results.interval_ns as f64 * 1e-9;
                let point = |(number, value): (usize, &Option<f64>)| {
                    Some(((number + 1) as f64 * interval, (*value)? * factor))
                };
                (
                    &observed.name,
                    observed.series.iter().enumerate().filter_map(point).collect(),
                )
            })
            .collect(),
        Quantity::Throughput => flows()
            .map(|flow| {
                (
                    &flow.name,
                    over_time(&mut flow.throughput_series_bps.iter().copied()),
                )
            })
            .collect(),
        Quantity::Window => connections()
            .map(|(name, tcp)| {
                let mut windows = tcp.window_series_segments.iter().map(|&window| window.into());
                (name, over_time(&mut windows))
            })
            .collect(),
        Quantity::Rtt => connections()
            .map(|(name, tcp)| (name, over_time(&mut tcp.rtt_series_ns.iter().copied())))
            .collect(),
        Quantity::Delay => flows()
            .filter(|flow| flow.delay.count > 0)
            .map(|flow| (&flow.name, distribution(&flow.delay)))
            .collect(),
        Quantity::Backlog => interfaces()
            .map(|interface| {
                let mut packets = interface.backlog_series_packets.iter().copied();
                (&interface.name, over_time(&mut packets))
            })
            .collect(),
        Quantity::Sojourn => interfaces()
            .map(|interface| {
                (
                    &interface.name,
                    over_time(&mut interface.sojourn_series_ns.iter().copied()),
                )
            })
            .collect(),
    };
    if named.is_empty() {
        let subject = match args.of {
            Quantity::Backlog | Quantity::Sojourn => "interface",
            Quantity::Observed => "observation",
            _ => "flow",
        };
        let quantity = if args.of == Quantity::Observed {
            "value"
        } else {
            quantity
        };
        return Err(args.nothing(subject, quantity));
    }
    let left_out = named.len().saturating_sub(MOST_CURVES);
    let curves: Vec<Curve> = named
        .into_iter()
        .take(MOST_CURVES)
        .enumerate()
        .map(|(index, (name, points))| Curve::line(name.clone(), index, points))
        .collect();
    let greatest = |of: fn(&(f64, f64)) -> f64| {
        let points = curves.iter().flat_map(|curve| &curve.points);
        points.map(|point| of(&(point.x, point.y))).fold(0.0, f64::max)
    };
    // Most quantities are never below 0. Tokens may be.
    let values = curves.iter().flat_map(|curve| &curve.points);
    let least = values.map(|point| point.y * 1.05).fold(0.0, f64::min);
    let title = format!("{label}, seed {}", results.seed);
    let (x, y) = match args.of {
        Quantity::Delay => (
            Scale::linear(format!("{label}, {unit}"), 0.0, above(greatest(|point| point.0))),
            Scale::linear("share of packets at or below", 0.0, 1.0),
        ),
        _ => (
            Scale::linear("time, s", 0.0, above(greatest(|point| point.0))),
            Scale::linear(
                match unit {
                    "" => label.to_owned(),
                    unit => format!("{label}, {unit}"),
                },
                least,
                above(greatest(|point| point.1) * 1.05),
            ),
        ),
    };
    let names = curves.iter().map(|curve| curve.name.clone()).collect();
    let svg = Chart { title, x, y, curves }.svg();
    Ok(Picture { svg, names, left_out })
}

/// An axis must have a length.
fn above(end: f64) -> f64 {
    if end > 0.0 { end } else { 1.0 }
}

/// Returns the distribution: pairs of a delay in ms and the share of packets at or below it.
fn distribution(delay: &Durations) -> Vec<(f64, f64)> {
    let last = delay.percentiles_ns.len() - 1;
    let point = |(percent, &nanos): (usize, &u64)| (nanos as f64 * 1e-6, percent as f64 / last as f64);
    delay.percentiles_ns.iter().enumerate().map(point).collect()
}
