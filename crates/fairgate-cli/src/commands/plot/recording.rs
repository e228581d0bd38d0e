//! Draws what `fairgate record` wrote: rates, queues, delays and drops of classes over time.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use fairgate_report::chart::{Chart, Curve, Scale};
use fairgate_report::sheet::{Block, Sheet};
use fairgate_sim::results::{Column, Table};
use miette::Diagnostic;
use thiserror::Error;

use crate::output;

use super::{Figure, MOST_CURVES, Page, Picture, Quantity, above};

/// The quantities of a recording, in the order of the page.
pub(super) const QUANTITIES: [Quantity; 4] = [
    Quantity::Throughput,
    Quantity::Backlog,
    Quantity::Delay,
    Quantity::Drops,
];
/// The classes for which delays are drawn: each has a curve for three percentiles.
const MOST_DELAYS: usize = 4;
const PERCENTILES: [(&str, &str); 3] = [
    ("delay_p50_ms", "median"),
    ("delay_p95_ms", "95 %"),
    ("delay_p99_ms", "99 %"),
];

#[derive(Debug, Error, Diagnostic)]
pub(super) enum RecordingError {
    #[error("{path} is not a recording: {what}")]
    #[diagnostic(help("name a file that `fairgate record -o FILE` wrote; it would replace this one"))]
    Broken { path: String, what: String },
    #[cfg(feature = "parquet")]
    #[error("{path} is a recording that was not finished: {what}")]
    #[diagnostic(help(
        "a Parquet file can be read when its recording has ended; one in CSV always, up to its last whole row"
    ))]
    Unfinished { path: String, what: String },
    #[cfg(not(feature = "parquet"))]
    #[error("this program was built without Parquet")]
    #[diagnostic(help("record CSV, or build it with `--features parquet`"))]
    NoParquet,
}

/// A recording: the intervals of each class.
pub(super) struct Recording {
    series: Vec<Series>,
}

/// What a class did.
struct Series {
    name: String,
    bytes: f64,
    dropped: f64,
    /// The end of each interval of its direction. A class has a row only if it did something.
    points: Vec<Point>,
}

struct Point {
    time_s: f64,
    /// The number of the row, if there is one.
    row: Option<usize>,
}

/// Returns the table of a recording, or `None` if the file is none.
pub(super) fn read(path: &Path) -> Result<Option<Table>, RecordingError> {
    let broken = |error: io::Error| RecordingError::Broken {
        path: path.display().to_string(),
        what: error.to_string(),
    };
    // Who reads a file as results reports why it can't be opened.
    let Ok(mut file) = File::open(path) else {
        return Ok(None);
    };
    let mut begin = [0; 7];
    let is_parquet = match file.read_exact(&mut begin) {
        Ok(()) if begin.starts_with(b"PAR1") => true,
        Ok(()) if begin == *b"time_s," => false,
        _ => return Ok(None),
    };
    let table = match is_parquet {
        true => parquet(path)?,
        false => {
            let (table, is_torn) = File::open(path).and_then(Table::read_csv).map_err(broken)?;
            if is_torn {
                output::say(format_args!(
                    "warning: the last row of {} is torn. It is left out.",
                    path.display()
                ));
            }
            table
        }
    };
    Ok(Some(table))
}

#[cfg(feature = "parquet")]
fn parquet(path: &Path) -> Result<Table, RecordingError> {
    File::open(path)
        .and_then(Table::read_parquet)
        .map_err(|error| RecordingError::Unfinished {
            path: path.display().to_string(),
            what: error.to_string(),
        })
}

#[cfg(not(feature = "parquet"))]
fn parquet(_path: &Path) -> Result<Table, RecordingError> {
    Err(RecordingError::NoParquet)
}

/// Returns a column that every recording has.
fn column<'t>(table: &'t Table, path: &Path, name: &str) -> Result<&'t Column, RecordingError> {
    table.column(name).ok_or_else(|| RecordingError::Broken {
        path: path.display().to_string(),
        what: format!("it has no column `{name}`"),
    })
}

fn text(column: &Column, row: usize) -> &str {
    match column {
        Column::Text(values) => &values[row],
        _ => "",
    }
}

impl Recording {
    /// Sorts the rows of a table by class. The classes that sent most are first.
    pub(super) fn of(table: &Table, path: &Path) -> Result<Recording, RecordingError> {
        let [from, class, discipline] = ["from", "class", "discipline"].map(|name| column(table, path, name));
        let (from, class, discipline) = (from?, class?, discipline?);
        let [time, bytes, dropped] = ["time_s", "bytes", "dropped"].map(|name| column(table, path, name));
        let (time, bytes, dropped) = (time?, bytes?, dropped?);
        let mut series: Vec<Series> = Vec::new();
        let mut known: HashMap<(&str, &str), usize> = HashMap::new();
        // The ends of the intervals of each direction.
        let mut ends: HashMap<&str, Vec<f64>> = HashMap::new();
        for row in 0..table.rows() {
            let (from, class) = (text(from, row), text(class, row));
            let ends = ends.entry(from).or_default();
            if class.is_empty() {
                ends.extend(time.number(row));
            }
            // The root precedes its classes in each interval.
            let interval = ends.len();
            let place = *known.entry((from, class)).or_insert_with(|| {
                series.push(Series {
                    name: match class {
                        "" => format!("{from} {}", text(discipline, row)),
                        class => format!("{from} {class} {}", text(discipline, row)),
                    },
                    bytes: 0.0,
                    dropped: 0.0,
                    points: Vec::new(),
                });
                series.len() - 1
            });
            let of_class = &mut series[place];
            of_class.bytes += bytes.number(row).unwrap_or(0.0);
            of_class.dropped += dropped.number(row).unwrap_or(0.0);
            let idle = ends.get(of_class.points.len()..interval.saturating_sub(1));
            let idle = idle.unwrap_or_default().iter();
            of_class
                .points
                .extend(idle.map(|&time_s| Point { time_s, row: None }));
            let time_s = time.number(row).unwrap_or(0.0);
            of_class.points.push(Point {
                time_s,
                row: Some(row),
            });
        }
        for ((from, _), place) in known {
            let ends = ends.get(from).map_or(&[][..], Vec::as_slice);
            let points = &mut series[place].points;
            let idle = ends.get(points.len()..).unwrap_or_default().iter();
            points.extend(idle.map(|&time_s| Point { time_s, row: None }));
        }
        series.sort_by(|one, other| other.bytes.total_cmp(&one.bytes));
        Ok(Recording { series })
    }

    /// Draws a quantity of the classes that `chooses` accepts.
    pub(super) fn picture(
        &self,
        table: &Table,
        quantity: Quantity,
        chooses: &dyn Fn(&str) -> bool,
    ) -> Option<Picture> {
        let all = self.series.iter().filter(|series| chooses(&series.name));
        // A class has the same colour in all pictures.
        let mut chosen: Vec<(usize, &Series)> = all.enumerate().collect();
        let most = match quantity {
            Quantity::Delay => MOST_DELAYS,
            _ => MOST_CURVES,
        };
        if quantity == Quantity::Drops {
            chosen.retain(|(_, series)| series.dropped > 0.0);
            chosen.sort_by(|(_, one), (_, other)| other.dropped.total_cmp(&one.dropped));
        }
        let left_out = chosen.len().saturating_sub(most);
        chosen.truncate(most);
        apart(&mut chosen);
        let curves: Vec<Curve> = chosen
            .iter()
            .flat_map(|(colour, series)| series.curves(table, quantity, *colour))
            .filter(|curve| curve.points.iter().any(|point| point.y.is_finite()))
            .collect();
        if curves.is_empty() {
            return None;
        }
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let first = points().map(|point| point.x).fold(f64::INFINITY, f64::min);
        let last = points().map(|point| point.x).fold(first, f64::max);
        let greatest = points().map(|point| point.y).fold(0.0, f64::max);
        let (title, label) = match quantity {
            Quantity::Backlog => ("Queues", "queue, packets"),
            Quantity::Delay => ("Packet delays", "delay, ms"),
            Quantity::Drops => ("Drops", "packets dropped in the interval"),
            _ => ("Rates", "rate, Mbit/s"),
        };
        let chart = Chart {
            title: title.to_owned(),
            x: Scale::linear(
                "time since the start of the run, s",
                first,
                last.max(first + 1e-3),
            ),
            y: Scale::linear(label, 0.0, above(greatest * 1.05)),
            curves,
        };
        Some(Picture {
            names: chart.curves.iter().map(|curve| curve.name.clone()).collect(),
            figure: Figure::Chart(chart),
            left_out,
        })
    }

    /// Draws quantities on a page.
    pub(super) fn page(
        &self,
        table: &Table,
        title: &str,
        quantities: &[Quantity],
        chooses: &dyn Fn(&str) -> bool,
    ) -> Page {
        let mut blocks = Vec::new();
        for &quantity in quantities {
            match self.picture(table, quantity, chooses) {
                Some(picture) => {
                    blocks.push(picture.figure.into());
                    if picture.left_out > 0 {
                        let left_out = picture.left_out;
                        blocks.push(Block::Text(format!(
                            "{left_out} more classes are not drawn: those with the least traffic."
                        )));
                    }
                }
                None => blocks.push(Block::Text(
                    match quantity {
                        Quantity::Drops => "No packet was dropped.",
                        _ => "No packet was sent.",
                    }
                    .to_owned(),
                )),
            }
        }
        let sheet = Sheet {
            title: title.to_owned(),
            lead:
                "Each curve is a class: the interface that the direction receives from, the class, and its \
                   discipline."
                    .to_owned(),
            blocks,
        };
        Page {
            sheet,
            quantities: quantities.to_vec(),
        }
    }
}

/// Gives classes that have no colour in the other pictures, because others sent more, those that are left
/// over in this one.
fn apart(chosen: &mut [(usize, &Series)]) {
    let taken: Vec<usize> = chosen.iter().map(|(colour, _)| *colour).collect();
    let mut free = (0..MOST_CURVES).filter(|colour| !taken.contains(colour));
    for (colour, _) in chosen.iter_mut().filter(|(colour, _)| *colour >= MOST_CURVES) {
        *colour = free.next().expect("there are as many colours as curves");
    }
}

impl Series {
    fn curves(&self, table: &Table, quantity: Quantity, colour: usize) -> Vec<Curve> {
        let value = |name: &str, row: usize| table.column(name).and_then(|column| column.number(row));
        let or_zero = |name: &'static str, factor: f64| {
            let point = move |point: &Point| {
                let value = point.row.and_then(|row| value(name, row)).unwrap_or(0.0);
                (point.time_s, value * factor)
            };
            vec![Curve::line(
                self.name.clone(),
                colour,
                self.points.iter().map(point),
            )]
        };
        match quantity {
            Quantity::Backlog => or_zero("backlog_packets", 1.0),
            Quantity::Drops => or_zero("dropped", 1.0),
            Quantity::Delay => PERCENTILES
                .iter()
                .enumerate()
                .map(|(dash, (name, shown))| {
                    // No packet left: there is no delay, and the curve has a gap.
                    let delay = |point: &Point| value(name, point.row?);
                    let points = self
                        .points
                        .iter()
                        .map(|point| (point.time_s, delay(point).unwrap_or(f64::NAN)));
                    Curve::line(format!("{}, {shown}", self.name), colour, points).dashed(dash)
                })
                .collect(),
            _ => or_zero("rate_bps", 1e-6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those that sent most have the colours in order. Those that dropped most are others.
    #[test]
    fn a_class_has_one_colour_in_all_pictures() {
        let mut text = "time_s,from,class,discipline,rate_bps,bytes,dropped,backlog_packets\n".to_owned();
        let count = MOST_CURVES + 5;
        for class in 0..count {
            text.push_str(&format!(
                "1,left,{},fifo,8,{},{class},0\n",
                class + 1,
                1000 - class
            ));
        }
        let table = Table::read_csv(text.as_bytes()).unwrap().0;
        let recording = Recording::of(&table, Path::new("r.csv")).unwrap();
        let colours = |quantity| {
            let picture = recording.picture(&table, quantity, &|_| true).unwrap();
            let Figure::Chart(chart) = picture.figure else {
                panic!("a recording has charts only");
            };
            let of_curve = |curve: Curve| (curve.name, curve.colour);
            chart.curves.into_iter().map(of_curve).collect::<HashMap<_, _>>()
        };
        let (rates, drops) = (colours(Quantity::Throughput), colours(Quantity::Drops));
        let both: Vec<&String> = rates.keys().filter(|name| drops.contains_key(*name)).collect();
        assert_eq!(
            (rates.len(), drops.len(), both.len()),
            (MOST_CURVES, MOST_CURVES, 5)
        );
        for name in both {
            assert_eq!(rates[name], drops[name], "{name}");
        }
        for of_picture in [rates, drops] {
            let distinct: std::collections::BTreeSet<usize> = of_picture.into_values().collect();
            assert_eq!(distinct, (0..MOST_CURVES).collect());
        }
    }

    /// Class 1 did something in the second and fourth of five intervals.
    #[test]
    fn intervals_without_a_row_are_zero() {
        let mut text =
            "time_s,from,class,discipline,rate_bps,bytes,dropped,backlog_packets,delay_p50_ms\n".to_owned();
        for interval in 1..=5 {
            text.push_str(&format!("{interval},left,,drr,8000000,1000000,0,0,1\n"));
            if interval % 2 == 0 {
                text.push_str(&format!(
                    "{interval},left,1,fifo,4000000,500000,{interval},3,2.5\n"
                ));
            }
        }
        let (table, _) = Table::read_csv(text.as_bytes()).unwrap();
        let recording = Recording::of(&table, Path::new("r.csv")).unwrap();
        let of_class = |quantity| {
            let picture = recording
                .picture(&table, quantity, &|name| name == "left 1 fifo")
                .unwrap();
            let Figure::Chart(chart) = picture.figure else {
                panic!("a recording has charts only");
            };
            let points = chart.curves[0].points.iter();
            points.map(|point| (point.x, point.y)).collect::<Vec<_>>()
        };
        let zeros = |two: f64, four: f64| vec![(1.0, 0.0), (2.0, two), (3.0, 0.0), (4.0, four), (5.0, 0.0)];
        assert_eq!(of_class(Quantity::Throughput), zeros(4.0, 4.0));
        assert_eq!(of_class(Quantity::Backlog), zeros(3.0, 3.0));
        assert_eq!(of_class(Quantity::Drops), zeros(2.0, 4.0));
        // A delay of nobody is no delay of 0.
        let delays: Vec<Option<f64>> = of_class(Quantity::Delay)
            .into_iter()
            .map(|(_, delay)| delay.is_finite().then_some(delay))
            .collect();
        assert_eq!(delays, [None, Some(2.5), None, Some(2.5), None]);
        let picture = recording
            .picture(&table, Quantity::Throughput, &|_| true)
            .unwrap();
        assert_eq!(
            picture.names,
            ["left drr", "left 1 fifo"],
            "most traffic is first"
        );
        assert_eq!(picture.left_out, 0);
        assert!(
            recording
                .picture(&table, Quantity::Drops, &|name| name == "left drr")
                .is_none()
        );
    }
}
