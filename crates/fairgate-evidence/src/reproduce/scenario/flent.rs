//! Measurements of others in Flent's files (`.flent`, `.flent.gz`), drawn beside ours.
//!
//! A file is JSON: `x_values` are seconds, and `results` has a list of values for each series, of which some
//! may be null. Flent counts throughput in Mbit/s and times in ms, as our figures do.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use fairgate_config::{Document, FileError};
use fairgate_report::chart::Curve;
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use toml::Spanned;

/// The largest file after decompression, bytes. A test of an hour has a few.
const MOST_BYTES: u64 = 1 << 28;

/// The dash pattern of what others measured.
const DASH: usize = 3;

/// Series of a file, in the order of the names of a figure.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Flent {
    /// The path, relative to the folder of the experiment's file.
    file: Spanned<String>,
    series: Vec<Spanned<String>>,
}

/// What is read of a file.
#[derive(Deserialize)]
struct Data {
    x_values: Vec<f64>,
    results: BTreeMap<String, Vec<Option<f64>>>,
}

impl Flent {
    /// Returns a curve for each series: its values over time, or their distribution.
    pub(super) fn curves(
        &self,
        document: &Document,
        is_distribution: bool,
        complementary: bool,
    ) -> Result<Vec<Curve>, FileError> {
        let folder = Path::new(document.name()).parent().unwrap_or(Path::new(""));
        let path = folder.join(self.file.get_ref());
        let data = read(&path).map_err(|what| {
            document.error(
                self.file.span(),
                format!("can't read `{}`: {what}", self.file.get_ref()),
                "name a data file of Flent, .flent or .flent.gz",
            )
        })?;
        let curves = self.series.iter().enumerate().map(|(colour, name)| {
            let values = data.results.get(name.get_ref()).ok_or_else(|| {
                let known: Vec<&str> = data.results.keys().map(String::as_str).collect();
                let what = format!("`{}` has no series `{}`", self.file.get_ref(), name.get_ref());
                document.error(name.span(), what, format!("it has {}", known.join(", ")))
            })?;
            let points: Vec<(f64, f64)> = match is_distribution {
                true => distribution(values, complementary),
                false => {
                    let points = data.x_values.iter().zip(values);
                    points.filter_map(|(x, y)| Some((*x, (*y)?))).collect()
                }
            };
            let curve = Curve::line(format!("{}, Flent", name.get_ref()), colour, points);
            Ok(curve.dashed(DASH))
        });
        curves.collect()
    }
}

fn read(path: &Path) -> Result<Data, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut reader = BufReader::new(file);
    let is_compressed = reader
        .fill_buf()
        .map_err(|error| error.to_string())?
        .starts_with(&[0x1f, 0x8b]);
    let mut text = String::new();
    let reader: Box<dyn Read> = match is_compressed {
        true => Box::new(MultiGzDecoder::new(reader)),
        false => Box::new(reader),
    };
    let length = reader
        .take(MOST_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    if length as u64 > MOST_BYTES {
        return Err(format!("it has more than {MOST_BYTES} bytes"));
    }
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Returns the share of the values at or below each of them, or above it.
fn distribution(values: &[Option<f64>], complementary: bool) -> Vec<(f64, f64)> {
    let mut values: Vec<f64> = values.iter().flatten().copied().collect();
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let shares = values.into_iter().zip(1u32..).map(|(value, number)| {
        let share = f64::from(number) / count;
        (value, if complementary { 1.0 - share } else { share })
    });
    // A logarithmic axis has no 0.
    shares
        .filter(|(_, share)| !complementary || *share > 0.0)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const DATA: &str = r#"{"metadata": {"NAME": "rrul"}, "version": 4, "x_values": [0.0, 0.2, 0.4, 0.6],
        "results": {"Ping (ms) ICMP": [20.0, null, 40.0, 30.0], "TCP download BE": [1, 2, 3, null]}}"#;

    fn drawn(flent: &str, is_distribution: bool) -> Result<Vec<Vec<(f64, f64)>>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("plain.flent"), DATA).expect("a file");
        let file = File::create(folder.path().join("a.flent.gz")).expect("a file");
        let mut packed = GzEncoder::new(file, Compression::fast());
        packed.write_all(DATA.as_bytes()).expect("it is written");
        packed.finish().expect("it is written");
        std::fs::write(folder.path().join("wrong.flent"), "{}").expect("a file");
        let text = format!("[simulate]\nflent = {flent}\n");
        let name = folder.path().join("mine.toml");
        let document = Document::parse(name.to_str().expect("a text"), &text).expect("TOML");
        #[derive(Deserialize)]
        struct Figure {
            flent: Flent,
        }
        let figure: Figure = document
            .section("simulate")
            .expect("it is read")
            .expect("it is there");
        let curves = figure.flent.curves(&document, is_distribution, false);
        let curves = curves.map_err(|error| error.problems()[0].message.clone())?;
        let points = |curve: &Curve| curve.points.iter().map(|point| (point.x, point.y)).collect();
        Ok(curves.iter().map(points).collect())
    }

    #[test]
    fn series_are_drawn_over_time_and_as_distributions() {
        for file in ["plain.flent", "a.flent.gz"] {
            let flent = format!(r#"{{ file = "{file}", series = ["TCP download BE", "Ping (ms) ICMP"] }}"#);
            let over_time = drawn(&flent, false).expect("it is drawn");
            assert_eq!(over_time[0], [(0.0, 1.0), (0.2, 2.0), (0.4, 3.0)]);
            assert_eq!(over_time[1], [(0.0, 20.0), (0.4, 40.0), (0.6, 30.0)]);
            let shares = &drawn(&flent, true).expect("it is drawn")[1];
            assert_eq!(*shares, [(20.0, 1.0 / 3.0), (30.0, 2.0 / 3.0), (40.0, 1.0)]);
        }
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        for (flent, complaint) in [
            (
                r#"{ file = "none.flent", series = [] }"#,
                "can't read `none.flent`",
            ),
            (
                r#"{ file = "wrong.flent", series = [] }"#,
                "missing field `x_values`",
            ),
            (
                r#"{ file = "plain.flent", series = ["UDP"] }"#,
                "`plain.flent` has no series `UDP`",
            ),
        ] {
            let message = drawn(flent, false).expect_err(flent);
            assert!(message.contains(complaint), "{message}");
        }
    }
}
