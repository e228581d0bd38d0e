//! The figure of all measured values beside the published ones, each as a multiple of it.

use fairgate_report::chart::Scale;
use fairgate_report::dots::{self, Dots};

use crate::reproduce::findings::Figure;
use crate::reproduce::published;
use crate::reproduce::reproduction::Row;

/// The number of series that a dot plot tells apart by their shapes.
const SHAPES: usize = 5;

/// The greatest multiple that a linear axis shows.
const LINEAR: f64 = 4.0;

type Name = fn(&Row) -> String;

/// Returns the figure, if a published number was measured. A limit, such as `<0.05`, and zero have no
/// multiple.
pub(super) fn figure(rows: &[Row]) -> Option<Figure> {
    let multiple = |row: &Row| {
        let published = published::exact(row.published.as_deref()?)?;
        let multiple = row.measured?.mean / published;
        multiple.is_finite().then_some(multiple)
    };
    let known = |row: &&Row| multiple(row).is_some();
    let measures = distinct(rows.iter().filter(known).map(|row| row.measure.clone()));
    let cases = distinct(rows.iter().filter(known).map(|row| row.case.clone()));
    let (measure, case): (Name, Name) = (|row| row.measure.clone(), |row| row.case.clone());
    let both: Name = |row| format!("{}, {}", row.measure, row.case);
    // The marks of a row are told apart by what has few names.
    let [of_row, of_series] = match (measures.len() <= SHAPES, cases.len() <= SHAPES) {
        (true, false) => [case, measure],
        (true, true) if measures.len() <= cases.len() => [case, measure],
        (_, true) => [measure, case],
        (false, false) => [both, |_| "measured".to_owned()],
    };
    let names = distinct(rows.iter().filter(known).map(of_row));
    let series = distinct(rows.iter().filter(known).map(of_series));
    let lines: Vec<dots::Row> = names
        .into_iter()
        .map(|name| {
            let value = |series: &String| {
                let mut all = rows.iter().filter(known);
                all.find(|row| of_row(row) == name && of_series(row) == *series)
                    .and_then(multiple)
            };
            dots::Row {
                values: series.iter().map(value).collect(),
                name,
            }
        })
        .collect();
    let values = || {
        lines
            .iter()
            .flat_map(|line| line.values.iter().flatten().copied())
    };
    let (least, most) = (values().fold(1.0, f64::min), values().fold(1.0, f64::max));
    let label = "measured, as a multiple of what is published";
    (!lines.is_empty()).then(|| {
        Figure::Dots(Dots {
            title: "Measured beside published: at the line both are equal".to_owned(),
            x: match most > LINEAR && least > 0.0 {
                true => Scale::logarithmic(label, least, most),
                false => Scale::linear(label, least.min(0.0), most * 1.05),
            },
            series,
            limit: Some(1.0),
            rows: lines,
        })
    })
}

/// Returns each name once, in the order in which they appear.
fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut all = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fairgate_theory::estimate::Estimate;

    use super::*;

    fn row(measure: &str, case: &str, measured: Option<f64>, published: Option<&str>) -> Row {
        Row {
            measure: measure.to_owned(),
            case: case.to_owned(),
            unit: "ms".to_owned(),
            measured: measured.map(Estimate::exact),
            published: published.map(str::to_owned),
            place: None,
            beside: BTreeMap::new(),
        }
    }

    fn dots(rows: &[Row]) -> Dots {
        match figure(rows) {
            Some(Figure::Dots(dots)) => dots,
            other => panic!("{other:?} is no dot plot"),
        }
    }

    #[test]
    fn each_measured_number_is_a_multiple_of_the_published_one() {
        let rows = [
            row("delay", "FIFO", Some(3.0), Some("~2")),
            row("delay", "DRR", Some(5.0), Some("10")),
            row("loss", "FIFO", Some(1.0), Some("1")),
            row("loss", "DRR", Some(1.0), Some("<2")),
            row("loss", "CBQ", None, Some("2")),
            row("rate", "CBQ", Some(2.0), Some("0")),
            row("rate", "FIFO", Some(2.0), None),
        ];
        let dots = dots(&rows);
        assert_eq!(dots.series, ["delay", "loss"]);
        let found: Vec<_> = dots
            .rows
            .iter()
            .map(|row| (row.name.as_str(), &row.values[..]))
            .collect();
        assert_eq!(
            found,
            [("FIFO", &[Some(1.5), Some(1.0)][..]), ("DRR", &[Some(0.5), None])]
        );
        assert_eq!(dots.limit, Some(1.0));
    }

    #[test]
    fn names_of_many_measures_and_cases_are_joined() {
        let names = || (0..6).map(|number| number.to_string());
        let rows: Vec<Row> = names()
            .map(|name| row(&name, &name, Some(1.0), Some("2")))
            .collect();
        let dots = dots(&rows);
        assert_eq!(dots.series, ["measured"]);
        assert_eq!((dots.rows.len(), dots.rows[3].name.as_str()), (6, "3, 3"));
    }

    #[test]
    fn without_a_published_number_there_is_no_figure() {
        assert!(figure(&[row("delay", "FIFO", Some(3.0), Some(">2"))]).is_none());
        assert!(figure(&[]).is_none());
    }
}
