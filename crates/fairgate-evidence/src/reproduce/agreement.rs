//! The figure of all measured values beside the published ones, each as a multiple of it.

use fairgate_report::chart::Scale;
use fairgate_report::dots::{self, Dots};

use crate::reproduce::findings::Figure;
use crate::reproduce::published;

/// The number of series that a dot plot tells apart by their shapes.
const SHAPES: usize = 5;

/// The greatest multiple that a linear axis shows.
const LINEAR: f64 = 4.0;

/// A measured value and the published one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'a> {
    pub(super) measure: &'a str,
    pub(super) case: &'a str,
    pub(super) measured: f64,
    pub(super) published: &'a str,
}

impl Pair<'_> {
    fn multiple(&self) -> Option<f64> {
        let multiple = self.measured / published::exact(self.published)?;
        multiple.is_finite().then_some(multiple)
    }
}

/// What a mark is called by.
type Name = for<'a> fn(&Pair<'a>) -> String;

/// Returns the figure, if a published number was measured. A limit, such as `<0.05`, and zero have no
/// multiple.
pub(super) fn figure<'a>(pairs: impl Iterator<Item = Pair<'a>>) -> Option<Figure> {
    let known: Vec<(f64, Pair<'_>)> = pairs.filter_map(|pair| Some((pair.multiple()?, pair))).collect();
    let names = |of: Name| distinct(known.iter().map(|(_, pair)| of(pair)));
    let (measure, case): (Name, Name) = (|pair| pair.measure.to_owned(), |pair| pair.case.to_owned());
    let both: Name = |pair| format!("{}, {}", pair.measure, pair.case);
    let (measures, cases) = (names(measure).len(), names(case).len());
    // The marks of a row are told apart by what has few names.
    let [of_row, of_series] = match (measures <= SHAPES, cases <= SHAPES) {
        (true, false) => [case, measure],
        (true, true) if measures <= cases => [case, measure],
        (_, true) => [measure, case],
        (false, false) => [both, |_| "measured".to_owned()],
    };
    let series = names(of_series);
    let line = |name: String| {
        let value = |series: &String| {
            let mut all = known.iter();
            let found = all.find(|(_, pair)| of_row(pair) == name && of_series(pair) == *series);
            found.map(|(multiple, _)| *multiple)
        };
        dots::Row {
            values: series.iter().map(value).collect(),
            name,
        }
    };
    let rows: Vec<dots::Row> = names(of_row).into_iter().map(line).collect();
    let multiples = || known.iter().map(|(multiple, _)| *multiple);
    let (least, most) = (multiples().fold(1.0, f64::min), multiples().fold(1.0, f64::max));
    let label = "measured, as a multiple of what is published";
    (!rows.is_empty()).then(|| {
        Figure::Dots(Dots {
            title: "Measured beside published: at the line both are equal".to_owned(),
            x: match most > LINEAR && least > 0.0 {
                true => Scale::logarithmic(label, least, most),
                false => Scale::linear(label, least.min(0.0), most * 1.05),
            },
            series,
            limit: Some(1.0),
            rows,
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
    use super::*;

    fn pair(
        (measure, case): (&'static str, &'static str),
        measured: f64,
        published: &'static str,
    ) -> Pair<'static> {
        Pair {
            measure,
            case,
            measured,
            published,
        }
    }

    fn dots(pairs: &[Pair<'_>]) -> Dots {
        match figure(pairs.iter().copied()) {
            Some(Figure::Dots(dots)) => dots,
            other => panic!("{other:?} is no dot plot"),
        }
    }

    #[test]
    fn each_measured_number_is_a_multiple_of_the_published_one() {
        let dots = dots(&[
            pair(("delay", "FIFO"), 3.0, "~2"),
            pair(("delay", "DRR"), 5.0, "10"),
            pair(("loss", "FIFO"), 1.0, "1"),
            pair(("loss", "DRR"), 1.0, "<2"),
            pair(("rate", "CBQ"), 2.0, "0"),
        ]);
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
        let names = ["a", "b", "c", "d", "e", "f"];
        let dots = dots(&names.map(|name| pair((name, name), 1.0, "2")));
        assert_eq!(dots.series, ["measured"]);
        assert_eq!((dots.rows.len(), dots.rows[3].name.as_str()), (6, "d, d"));
    }

    #[test]
    fn without_a_published_number_there_is_no_figure() {
        let limit = pair(("delay", "FIFO"), 3.0, ">2");
        assert!(figure([limit].into_iter()).is_none());
        assert!(figure([].into_iter()).is_none());
    }
}
