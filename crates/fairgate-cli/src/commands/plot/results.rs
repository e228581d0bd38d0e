//! Draws what `fairgate simulate` wrote: quantities over time, distributions, rates of classes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fairgate_report::chart::{Chart, Curve, Scale};
use fairgate_report::dots::{Dots, Row};
use fairgate_report::sheet::{Block, Sheet};
use fairgate_report::violin::{Group, Quantiles, Violins};
use fairgate_sim::Results;
use fairgate_sim::results::{ClassResults, Durations, ObservationResults};
use fairgate_sim::results::{FlowResults, InterfaceResults};
use serde::Deserialize;

use super::{Args, Figure, MOST_CURVES, Page, Picture, PlotError, Quantity, above, title_of};
use crate::failure::Failure;
use crate::input;

/// The quantities of a simulation, in the order of the page.
const QUANTITIES: [Quantity; 9] = [
    Quantity::Throughput,
    Quantity::Violins,
    Quantity::Delay,
    Quantity::Backlog,
    Quantity::Sojourn,
    Quantity::Window,
    Quantity::Rtt,
    Quantity::Classes,
    Quantity::Observed,
];
/// The quantities that are drawn of several files, side by side.
const OF_SEVERAL: [Quantity; 2] = [Quantity::Violins, Quantity::Classes];
/// The maximum number of rows of classes.
const MOST_ROWS: usize = 40;

/// The points of a curve.
type Points = Vec<(f64, f64)>;

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

/// The results in one or more files, and which of them are drawn.
pub(super) struct Simulated<'a> {
    args: &'a Args,
    /// One run of each file.
    runs: Vec<Results>,
}

impl<'a> Simulated<'a> {
    /// Reads the files that `args` names.
    pub(super) fn read(args: &'a Args) -> Result<Simulated<'a>, Failure> {
        let runs = args.files.iter().map(|file| read(file, args.seed));
        Ok(Simulated {
            args,
            runs: runs.collect::<Result<_, Failure>>()?,
        })
    }

    /// Draws a quantity.
    ///
    /// # Errors
    /// Fails if nothing that `--only` chooses has this quantity, or if several files don't have a common
    /// figure of it.
    pub(super) fn picture(&self, quantity: Quantity) -> Result<Picture, Failure> {
        let count = self.runs.len();
        if count > 1 && !OF_SEVERAL.contains(&quantity) {
            let quantity = quantity.name();
            return Err(PlotError::OneFile { quantity, count }.into());
        }
        self.drawn(quantity).ok_or_else(|| {
            let (subject, noun) = match quantity {
                Quantity::Backlog | Quantity::Sojourn => ("interface", quantity.name()),
                Quantity::Classes => ("interface", "class with packets".to_owned()),
                Quantity::Observed => ("observation", "value".to_owned()),
                Quantity::Violins => ("group", "delay".to_owned()),
                _ => ("flow", quantity.name()),
            };
            self.args.nothing(subject, &noun)
        })
    }

    /// Draws all quantities that there are, or the one that `--of` names, on a page.
    pub(super) fn page(&self) -> Result<Page, Failure> {
        let mut blocks = Vec::new();
        let mut quantities = Vec::new();
        let mut add = |quantity: Quantity, picture: Picture| {
            blocks.push(Block::Heading(quantity.title().to_owned()));
            blocks.push(picture.figure.into());
            if picture.left_out > 0 {
                let left_out = picture.left_out;
                blocks.push(Block::Text(format!(
                    "{left_out} more have no room; --only chooses some."
                )));
            }
            quantities.push(quantity);
        };
        match self.args.of {
            Some(quantity) => add(quantity, self.picture(quantity)?),
            None => {
                let is_alone = self.runs.len() == 1;
                for quantity in QUANTITIES {
                    if is_alone || OF_SEVERAL.contains(&quantity) {
                        self.drawn(quantity)
                            .into_iter()
                            .for_each(|picture| add(quantity, picture));
                    }
                }
            }
        }
        if quantities.is_empty() {
            return Err(self.args.nothing("flow", "figure"));
        }
        let titles: Vec<String> = self.args.files.iter().map(|file| title_of(file)).collect();
        let [from, to] = self.runs[0].measured_ns.map(|nanos| nanos as f64 / 1e9);
        let sheet = Sheet {
            title: titles.join(", "),
            lead: format!(
                "Results of a simulation with seed {}. Distributions and rates of classes are those from \
                 {from} s to {to} s.",
                self.runs[0].seed
            ),
            blocks,
        };
        Ok(Page { sheet, quantities })
    }

    /// Draws a quantity, if anything that `--only` chooses has it.
    fn drawn(&self, quantity: Quantity) -> Option<Picture> {
        match quantity {
            Quantity::Violins => self.violins(),
            Quantity::Classes => self.classes(),
            Quantity::Drops => None,
            _ => self.chart(quantity),
        }
    }

    /// Returns a name for each file: its name without ending, or the whole path if two have the same one.
    fn file_names(&self) -> Vec<String> {
        let files = &self.args.files;
        let stem = |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let stems: Vec<String> = files.iter().filter_map(stem).collect();
        let distinct: BTreeSet<&String> = stems.iter().collect();
        match distinct.len() == files.len() {
            true => stems,
            false => files.iter().map(|path| path.display().to_string()).collect(),
        }
    }

    /// Draws the delays of each group in all results, side by side.
    fn violins(&self) -> Option<Picture> {
        let (args, runs) = (self.args, &self.runs);
        let mut names: Vec<&str> = Vec::new();
        for group in runs.iter().flat_map(|run| &run.groups) {
            if group.delay.count > 0 && args.chooses(&group.name) && !names.contains(&group.name.as_str()) {
                names.push(&group.name);
            }
        }
        if names.is_empty() {
            return None;
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
            series: self.file_names(),
            groups,
        };
        Some(Picture {
            figure: Figure::Violins(figure),
            names: names.into_iter().map(str::to_owned).collect(),
            left_out,
        })
    }

    /// Draws the rate of each class in all results.
    fn classes(&self) -> Option<Picture> {
        let (args, runs) = (self.args, &self.runs);
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
            return None;
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
            series: self.file_names(),
            rows,
            limit: None,
        };
        let names = names.into_iter().cloned().collect();
        Some(Picture {
            figure: Figure::Dots(figure),
            names,
            left_out,
        })
    }

    /// Draws curves: a quantity over time, or the distribution of delays.
    fn chart(&self, quantity: Quantity) -> Option<Picture> {
        let results = &self.runs[0];
        let Curves {
            label,
            unit,
            mut named,
        } = self.curves(quantity, results);
        if named.is_empty() {
            return None;
        }
        let left_out = named.len().saturating_sub(MOST_CURVES);
        named.truncate(MOST_CURVES);
        let names = named.iter().map(|(name, _)| name.clone()).collect();
        let curves: Vec<Curve> = named
            .into_iter()
            .enumerate()
            .map(|(index, (name, points))| Curve::line(name, index, points))
            .collect();
        let greatest = |of: fn(&(f64, f64)) -> f64| {
            let points = curves.iter().flat_map(|curve| &curve.points);
            points.map(|point| of(&(point.x, point.y))).fold(0.0, f64::max)
        };
        // Most quantities are never below 0. Tokens may be.
        let values = curves.iter().flat_map(|curve| &curve.points);
        let least = values.map(|point| point.y * 1.05).fold(0.0, f64::min);
        let with_unit = match &*unit {
            "" => label.to_owned(),
            unit => format!("{label}, {unit}"),
        };
        let (x, y) = match quantity {
            Quantity::Delay => (
                Scale::linear(with_unit, 0.0, above(greatest(|point| point.0))),
                Scale::linear("share of packets at or below", 0.0, 1.0),
            ),
            _ => (
                Scale::linear("time, s", 0.0, above(greatest(|point| point.0))),
                Scale::linear(with_unit, least, above(greatest(|point| point.1) * 1.05)),
            ),
        };
        let title = format!("{label}, seed {}", results.seed);
        Some(Picture {
            figure: Figure::Chart(Chart { title, x, y, curves }),
            names,
            left_out,
        })
    }

    /// Returns what the curves of a quantity show.
    fn curves(&self, quantity: Quantity, results: &Results) -> Curves {
        let interval = results.interval_ns as f64 * 1e-9;
        let flows = || {
            let flows = results.flows.iter();
            flows.filter(|flow| self.args.chooses(&flow.name))
        };
        let of_flows = |points: &dyn Fn(&FlowResults) -> Option<Points>| -> Vec<_> {
            flows()
                .filter_map(|flow| Some((flow.name.clone(), points(flow)?)))
                .collect()
        };
        let of_interfaces = |points: &dyn Fn(&InterfaceResults) -> Points| -> Vec<_> {
            results
                .interfaces
                .iter()
                .filter(|at| at.enqueued > 0 && self.args.chooses(&at.name))
                .map(|at| (at.name.clone(), points(at)))
                .collect()
        };
        let curves = |label, unit: &str, named| Curves {
            label,
            unit: unit.to_owned(),
            named,
        };
        match quantity {
            Quantity::Window => curves(
                "Congestion window",
                "segments",
                of_flows(&|flow| {
                    let windows = &flow.connection.as_ref()?.window_series_segments;
                    Some(over_time(interval, windows.iter().map(|&window| window as f64)))
                }),
            ),
            Quantity::Rtt => curves(
                "Smoothed round-trip time",
                "ms",
                of_flows(&|flow| {
                    let times = &flow.connection.as_ref()?.rtt_series_ns;
                    Some(over_time(
                        interval,
                        times.iter().map(|&nanos| nanos as f64 * 1e-6),
                    ))
                }),
            ),
            Quantity::Delay => curves(
                "Packet delay",
                "ms",
                of_flows(&|flow| (flow.delay.count > 0).then(|| distribution(&flow.delay))),
            ),
            Quantity::Backlog => curves(
                "Queue",
                "packets",
                of_interfaces(&|at| {
                    let packets = &at.backlog_series_packets;
                    over_time(interval, packets.iter().map(|&packets| packets as f64))
                }),
            ),
            Quantity::Sojourn => curves(
                "Mean sojourn time",
                "ms",
                of_interfaces(&|at| {
                    let times = &at.sojourn_series_ns;
                    over_time(interval, times.iter().map(|&nanos| nanos as f64 * 1e-6))
                }),
            ),
            Quantity::Observed => self.observed(results),
            _ => curves(
                "Throughput",
                "Mbit/s",
                of_flows(&|flow| {
                    let rates = &flow.throughput_series_bps;
                    Some(over_time(interval, rates.iter().map(|&rate| rate as f64 * 1e-6)))
                }),
            ),
        }
    }

    /// Returns the observed variables that have the unit of the first chosen one: they share an axis.
    fn observed(&self, results: &Results) -> Curves {
        let observations = results.observations.iter();
        let mut chosen: Vec<&ObservationResults> = observations
            .filter(|observed| self.args.chooses(&observed.name))
            .collect();
        let unit = chosen.first().map_or("", |first| &first.unit);
        chosen.retain(|observed| observed.unit == unit);
        let (unit, factor) = match unit {
            "bit/s" => ("Mbit/s".to_owned(), 1e-6),
            "ns" => ("ms".to_owned(), 1e-6),
            other => (other.to_owned(), 1.0),
        };
        let interval = results.interval_ns as f64 * 1e-9;
        let points = |observed: &ObservationResults| {
            let values = observed.series.iter().enumerate();
            values
                .filter_map(|(number, value)| Some(((number + 1) as f64 * interval, (*value)? * factor)))
                .collect()
        };
        let named = chosen
            .iter()
            .map(|observed| (observed.name.clone(), points(observed)));
        Curves {
            label: "Observed",
            unit,
            named: named.collect(),
        }
    }
}

/// What the curves of a figure show.
struct Curves {
    label: &'static str,
    unit: String,
    /// The name and the points of each curve.
    named: Vec<(String, Points)>,
}

/// Returns the points of a series that has a value for each interval.
fn over_time(interval: f64, values: impl Iterator<Item = f64>) -> Points {
    values
        .enumerate()
        .map(|(index, value)| ((index + 1) as f64 * interval, value))
        .collect()
}

/// Returns the distribution: pairs of a delay in ms and the share of packets at or below it.
fn distribution(delay: &Durations) -> Points {
    let last = delay.percentiles_ns.len() - 1;
    let point = |(percent, &nanos): (usize, &u64)| (nanos as f64 * 1e-6, percent as f64 / last as f64);
    delay.percentiles_ns.iter().enumerate().map(point).collect()
}

/// Reads the results in a file: those of `seed`, or of the first seed.
fn read(file: &Path, seed: Option<u64>) -> Result<Results, Failure> {
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
    let found = match seed {
        None => runs.into_iter().next(),
        Some(seed) => runs.into_iter().find(|run| run.seed == seed),
    };
    Ok(found.ok_or_else(|| match seed {
        Some(seed) => PlotError::NoSeed {
            path: path.clone(),
            seed,
            known: seeds.join(", "),
        },
        None => not_results("it has no runs".to_owned()),
    })?)
}
