//! The pictures of an experiment.

use fairgate_config::units::parse_duration;
use fairgate_config::{Document, FileError};
use fairgate_report::chart::{Chart, Curve, Drawn, Point, Scale};
use fairgate_report::violin::{Group, Quantiles, Violins};
use toml::Spanned;

use super::measures::{Curves, Points, Sample};
use super::pattern::texts;
use super::plan::{Case, Drawing, Formula, Patterns, Plan};
use crate::reproduce::published::Published;
use crate::reproduce::{Figure, Measurement};

/// What a figure of curves shows: one curve for each name.
struct Kind<'a> {
    names: &'a [Spanned<String>],
    of: fn(&Sample) -> &Curves,
    /// The labels of the axes.
    x: &'static str,
    y: &'static str,
    is_distribution: bool,
}

/// What was measured in one way. Pictures show all layers over one another.
pub(super) struct Layer<'a> {
    /// What the names of its curves get. Empty if it is the only one.
    name: &'a str,
    /// The number of the dash pattern of its curves.
    dash: usize,
    measurements: &'a [Measurement],
    /// The samples by the cases that were run. `None` for a case that was not run in this way.
    samples: Vec<Option<&'a Sample>>,
}

impl<'a> Layer<'a> {
    /// The only layer.
    pub(super) fn only(measurements: &'a [Measurement], samples: &'a [Vec<Sample>]) -> Layer<'a> {
        Layer::named("", 0, measurements, samples.iter().map(|samples| samples.first()))
    }

    /// One of several layers. `samples` are of the first seed.
    pub(super) fn named(
        name: &'a str,
        dash: usize,
        measurements: &'a [Measurement],
        samples: impl IntoIterator<Item = Option<&'a Sample>>,
    ) -> Layer<'a> {
        Layer {
            name,
            dash,
            measurements,
            samples: samples.into_iter().collect(),
        }
    }

    /// Returns the name of a curve of this layer.
    fn curve(&self, name: &str) -> String {
        match (name, self.name) {
            (name, "") => name.to_owned(),
            ("", own) => own.to_owned(),
            (name, own) => format!("{name}, {own}"),
        }
    }
}

/// Draws the pictures of the cases that were run. `all` are the cases of the experiment.
pub(super) fn draw(
    document: &Document,
    plan: &Plan,
    all: &[Case],
    run: &[&Case],
    layers: &[Layer<'_>],
    published: &[Published],
) -> Result<Vec<Figure>, FileError> {
    let mut figures = Vec::new();
    for drawing in &plan.figures {
        let names = drawing.chosen(document, all)?;
        let chosen: Vec<usize> = (0..run.len())
            .filter(|&number| names.contains(&run[number].name.as_str()))
            .collect();
        if chosen.is_empty() {
            continue;
        }
        if let Some(flent) = &drawing.flent
            && drawing.throughput_of.is_none()
            && drawing.distribution_of.is_none()
        {
            let what = "a file of Flent has throughput and delays, which this figure does not show";
            let help = "add it to a figure with `throughput_of` or `distribution_of`";
            return Err(document.error(flent.span(), what, help));
        }
        if let (Some(measure), Some(over)) = (&drawing.measure, &drawing.over) {
            let cases: Vec<&Case> = chosen.iter().map(|&number| run[number]).collect();
            let axes = (measure, over);
            let chart = over_dimension(document, plan, &cases, drawing, axes, layers, published)?;
            figures.push(Figure::Chart(chart));
            continue;
        }
        if let Some(groups) = &drawing.violins_of {
            // Distributions side by side are those of the first layer.
            let samples = &layers[0].samples;
            let sampled: Vec<(&Case, &Sample)> = chosen
                .iter()
                .filter_map(|&number| Some((run[number], samples[number]?)))
                .collect();
            let violins = violins(document, drawing, groups, &sampled)?;
            figures.push(Figure::Violins(violins));
            continue;
        }
        let Some(kind) = drawing.kind() else {
            return Err(document.error(
                drawing.title.span(),
                "this figure shows nothing",
                "add `measure` and `over`, or one of `distribution_of`, `violins_of`, `throughput_of`, \
                 `backlog_of`, `observed` and `observed_distribution`",
            ));
        };
        let pictures: Vec<&[usize]> = match drawing.combine {
            true => vec![&chosen],
            false => chosen.chunks(1).collect(),
        };
        for picture in pictures {
            let cases: Vec<&Case> = picture.iter().map(|&number| run[number]).collect();
            let chart = curves(document, drawing, &kind, (&cases, picture), layers, published)?;
            figures.push(Figure::Chart(chart));
        }
    }
    Ok(figures)
}

impl Drawing {
    /// Returns the names of the cases that are drawn.
    fn chosen<'a>(&self, document: &Document, cases: &'a [Case]) -> Result<Vec<&'a str>, FileError> {
        match &self.cases {
            None => Ok(cases.iter().map(|case| case.name.as_str()).collect()),
            Some(patterns) => chosen(document, patterns, cases),
        }
    }

    fn kind(&self) -> Option<Kind<'_>> {
        let share = match self.complementary {
            true => "share above",
            false => "share at or below",
        };
        type Of = fn(&Sample) -> &Curves;
        let kinds: [(_, Of, _, _, _); 5] = [
            (
                &self.distribution_of,
                |sample| &sample.delays,
                "packet delay, ms",
                share,
                true,
            ),
            (
                &self.throughput_of,
                |sample| &sample.throughput,
                "time, s",
                "Mbit/s",
                false,
            ),
            (
                &self.backlog_of,
                |sample| &sample.backlogs,
                "time, s",
                "queue, packets",
                false,
            ),
            (&self.observed, |sample| &sample.observed, "time, s", "", false),
            (
                &self.observed_distribution,
                |sample| &sample.observed_distributions,
                "",
                share,
                true,
            ),
        ];
        kinds.into_iter().find_map(|(names, of, x, y, is_distribution)| {
            let names = names.as_ref()?;
            Some(Kind {
                names,
                of,
                x,
                y,
                is_distribution,
            })
        })
    }

    /// Returns the label of an axis that shows observed variables, if the kind has none.
    fn label<'a>(&'a self, given: &'a str, names: &'a [Spanned<String>]) -> &'a str {
        match (given, names) {
            ("", [only]) => only.get_ref(),
            ("", _) => "value",
            (given, _) => given,
        }
    }
}

/// Returns the names of the cases that one of the patterns matches.
pub(super) fn chosen<'a>(
    document: &Document,
    patterns: &Spanned<Patterns>,
    cases: &'a [Case],
) -> Result<Vec<&'a str>, FileError> {
    let list = patterns.get_ref().list();
    for pattern in list {
        if !cases.iter().any(|case| texts(pattern, &case.name).is_some()) {
            let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
            return Err(document.error(
                patterns.span(),
                format!("no case is called `{pattern}`"),
                format!("the cases are {}; `*` stands for any text", names.join("; ")),
            ));
        }
    }
    let names = cases.iter().map(|case| case.name.as_str());
    let is_chosen = |name: &&str| list.iter().any(|pattern| texts(pattern, name).is_some());
    Ok(names.filter(is_chosen).collect())
}

/// A measure over the cases of one dimension, with a curve for each combination of the others and each layer.
/// What is published is drawn as marks.
fn over_dimension(
    document: &Document,
    plan: &Plan,
    cases: &[&Case],
    drawing: &Drawing,
    (measure, over): (&Spanned<String>, &Spanned<String>),
    layers: &[Layer<'_>],
    published: &[Published],
) -> Result<Chart, FileError> {
    let wrong = |at: &Spanned<String>, what: String, help: &str| document.error(at.span(), what, help);
    let dimension = plan
        .dimensions
        .iter()
        .position(|dimension| dimension.name.get_ref() == over.get_ref())
        .ok_or_else(|| {
            wrong(
                over,
                format!("there is no dimension `{}`", over.get_ref()),
                "name one",
            )
        })?;
    // The position and the name of the curve of each case. Cases with the same name have the same colour.
    let mut places: Vec<(&Case, f64, String)> = Vec::new();
    for &case in cases {
        let chosen = &plan.dimensions[dimension].cases[case.indices[dimension]];
        let x = chosen.x.ok_or_else(|| {
            let what = format!("case `{}` has no position on the axis", chosen.name);
            wrong(over, what, "give each case of this dimension an `x`")
        })?;
        let others = plan.dimensions.iter().zip(&case.indices).enumerate();
        let others = others.filter(|(number, _)| *number != dimension);
        let names: Vec<&str> = others
            .map(|(_, (other, &index))| other.cases[index].name.as_str())
            .collect();
        places.push((case, x, names.join(", ")));
    }
    let mut names: Vec<&str> = Vec::new();
    for (_, _, name) in &places {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut curves: Vec<Curve> = Vec::new();
    let mut unit = "";
    for layer in layers {
        let is_first = curves.is_empty();
        for (colour, name) in names.iter().enumerate() {
            let mut points = Vec::new();
            for (case, x, _) in places.iter().filter(|place| place.2 == *name) {
                let mut found = layer.measurements.iter();
                let found =
                    found.find(|found| found.measure == *measure.get_ref() && found.case == case.name);
                match found {
                    Some(found) => {
                        unit = &found.unit;
                        points.push(Point {
                            x: *x,
                            y: found.value.mean,
                            interval: Some((found.value.low, found.value.high)),
                        });
                    }
                    None if is_first => {
                        let what = format!("there is no measure `{}`", measure.get_ref());
                        return Err(wrong(measure, what, "add it to the measures"));
                    }
                    None => {}
                }
            }
            if !points.is_empty() {
                let drawn = match layer.dash {
                    0 => Drawn::LineAndMarks,
                    _ => Drawn::Line,
                };
                let curve = Curve::marks(layer.curve(name), colour, points).dashed(layer.dash);
                curves.push(Curve { drawn, ..curve });
            }
        }
    }
    for (colour, name) in names.iter().enumerate() {
        let points = places
            .iter()
            .filter(|place| place.2 == *name)
            .filter_map(|(case, x, _)| {
                let mut all = published.iter();
                let value =
                    all.find(|value| value.measure == *measure.get_ref() && value.case == case.name)?;
                let y = value.number();
                Some(Point {
                    x: *x,
                    y,
                    interval: None,
                })
            });
        let points: Vec<Point> = points.collect();
        if !points.is_empty() {
            let name = match *name {
                "" => "published".to_owned(),
                name => format!("{name}, published"),
            };
            curves.push(Curve::marks(name, colour, points));
        }
    }
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let least = points().map(|point| point.x).fold(f64::INFINITY, f64::min);
    let most = points().map(|point| point.x).fold(0.0, f64::max);
    let label = match unit {
        "" => measure.get_ref().clone(),
        unit => format!("{}, {unit}", measure.get_ref()),
    };
    let upper = |point: &Point| point.interval.map_or(point.y, |(_, high)| high);
    let top = points().map(upper).fold(0.0, f64::max);
    let y = match drawing.logarithmic {
        true => {
            let positive = points().map(|point| point.y).filter(|y| *y > 0.0);
            let bottom = positive.fold(f64::INFINITY, f64::min).min(top);
            Scale::logarithmic(
                label,
                if bottom.is_finite() { bottom } else { 1.0 },
                top.max(1e-9),
            )
        }
        false => Scale::linear(label, 0.0, positive(top * 1.05)),
    };
    Ok(Chart {
        title: drawing.title.get_ref().clone(),
        x: Scale::linear(
            drawing.x.as_deref().unwrap_or(over.get_ref()),
            least.min(0.0),
            positive(most),
        ),
        y,
        curves,
    })
}

/// The least share that a logarithmic axis shows. Percentiles have steps of a hundredth.
const LEAST_SHARE: f64 = 0.01;

/// Curves of groups, interfaces or variables in some cases, of the first seed. `numbers` are the cases'
/// places in the layers.
fn curves(
    document: &Document,
    drawing: &Drawing,
    kind: &Kind<'_>,
    (cases, numbers): (&[&Case], &[usize]),
    layers: &[Layer<'_>],
    published: &[Published],
) -> Result<Chart, FileError> {
    let mut curves: Vec<Curve> = Vec::new();
    for layer in layers {
        let mut colour = 0;
        for (case, &number) in cases.iter().zip(numbers) {
            let Some(sample) = layer.samples[number] else {
                colour += kind.names.len();
                continue;
            };
            let known = (kind.of)(sample);
            for name in kind.names {
                let points = find(document, known, name)?;
                let label = match (cases, kind.names) {
                    ([_], _) => name.get_ref().clone(),
                    (_, [_]) => case.name.clone(),
                    _ => format!("{}: {}", case.name, name.get_ref()),
                };
                let points = points.iter().map(|&(x, y)| match drawing.complementary {
                    true => (x, 1.0 - y),
                    false => (x, y),
                });
                let visible = points.filter(|&(_, y)| !drawing.complementary || y >= LEAST_SHARE);
                curves.push(Curve::line(layer.curve(&label), colour, visible).dashed(layer.dash));
                colour += 1;
            }
        }
    }
    if let ([case], true) = (cases, drawing.throughput_of.is_some()) {
        curves.extend(published_throughput(kind, case, published));
    }
    if let Some(flent) = &drawing.flent {
        let (is_distribution, is_above) = (kind.is_distribution, drawing.complementary);
        curves.extend(flent.get_ref().curves(document, is_distribution, is_above)?);
    }
    let end = |curves: &[Curve], of: fn(&Point) -> f64| {
        let points = curves.iter().flat_map(|curve| &curve.points);
        positive(points.map(of).fold(0.0, f64::max))
    };
    let right = end(&curves, |point| point.x);
    if let Some(formula) = &drawing.formula {
        curves.push(exponential(
            document,
            formula,
            right,
            drawing.complementary,
            curves.len(),
        )?);
    }
    let (x, y) = (
        drawing.label(kind.x, kind.names),
        drawing.label(kind.y, kind.names),
    );
    let x = drawing.x.as_deref().unwrap_or(x);
    let title = drawing.title.get_ref();
    Ok(Chart {
        title: match cases {
            [case] => format!("{title}: {}", case.name),
            _ => title.clone(),
        },
        x: Scale::linear(x, 0.0, right),
        y: match (
            kind.is_distribution && drawing.complementary,
            kind.is_distribution,
        ) {
            (true, _) => Scale::logarithmic(y, LEAST_SHARE, 1.0),
            (false, true) => Scale::linear(y, 0.0, 1.0),
            (false, false) => Scale::linear(y, 0.0, end(&curves, |point| point.y)),
        },
        curves,
    })
}

/// The dash pattern of published values over time.
const PUBLISHED_DASH: usize = 3;

/// Returns the published throughput of groups, Mbit/s, as lines over the windows that their measures name:
/// `throughput of class 0, 3.2s to 21.6s`.
fn published_throughput(kind: &Kind<'_>, case: &Case, published: &[Published]) -> Vec<Curve> {
    let lines = kind.names.iter().enumerate().filter_map(|(colour, name)| {
        let name = name.get_ref();
        let of_group = format!("throughput of {name}, ");
        let found = published
            .iter()
            .filter(|value| value.case == case.name && value.unit == "Mbit/s")
            .find_map(|value| Some((value, value.measure.strip_prefix(&of_group)?)))?;
        let (value, window) = found;
        let (from, to) = window.split_once(" to ")?;
        let [from, to] = [from, to].map(|time| parse_duration(time).ok());
        let ends = [from?, to?].map(|time| (time.as_secs_f64(), value.number()));
        Some(Curve::line(format!("{name}, published"), colour, ends).dashed(PUBLISHED_DASH))
    });
    lines.collect()
}

/// Returns the points with this name.
fn find<'a>(document: &Document, known: &'a Curves, name: &Spanned<String>) -> Result<&'a Points, FileError> {
    let found = known.iter().find(|(known, _)| known == name.get_ref());
    found.map(|(_, points)| points).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
        document.error(
            name.span(),
            format!("the run has no `{}`", name.get_ref()),
            format!("it has {}", names.join(", ")),
        )
    })
}

/// Packet delays of groups: for each group a violin of each case, of the first seed.
fn violins(
    document: &Document,
    drawing: &Drawing,
    groups: &[Spanned<String>],
    cases: &[(&Case, &Sample)],
) -> Result<Violins, FileError> {
    let each = groups.iter().map(|name| {
        let of_cases = cases.iter().map(|(_, sample)| {
            let points = find(document, &sample.delays, name)?;
            Ok(Quantiles::new(points.iter().map(|&(value, _)| value)))
        });
        Ok(Group {
            name: name.get_ref().clone(),
            violins: of_cases.collect::<Result<_, FileError>>()?,
        })
    });
    let groups = each.collect::<Result<Vec<Group>, FileError>>()?;
    let all = groups.iter().flat_map(|group| group.violins.iter().flatten());
    let values: Vec<f64> = all
        .flat_map(|violin| violin.shares().map(|(_, value)| value))
        .collect();
    let most = positive(values.iter().copied().fold(0.0, f64::max));
    let least = values
        .iter()
        .copied()
        .filter(|value| *value > 0.0)
        .fold(most, f64::min);
    let label = "packet delay, ms";
    Ok(Violins {
        title: drawing.title.get_ref().clone(),
        y: match drawing.logarithmic {
            true => Scale::logarithmic(label, least, most),
            false => Scale::linear(label, 0.0, most),
        },
        series: cases.iter().map(|(case, _)| case.name.clone()).collect(),
        groups,
    })
}

/// The distribution function of exponential times up to `right` ms, or the share above them.
fn exponential(
    document: &Document,
    formula: &Spanned<Formula>,
    right: f64,
    complementary: bool,
    colour: usize,
) -> Result<Curve, FileError> {
    let Formula { name, mean } = formula.get_ref();
    let mean = parse_duration(mean)
        .map_err(|error| document.error(formula.span(), error.message, error.remedy))?
        .as_secs_f64()
        * 1e3;
    if mean <= 0.0 {
        return Err(document.error(
            formula.span(),
            "the mean of a formula must be above 0",
            "write for example mean = \"1ms\"",
        ));
    }
    let steps = 200;
    let points = (0..=steps).map(|step| {
        let x = right * f64::from(step) / f64::from(steps);
        let above = (-x / mean).exp();
        (x, if complementary { above } else { 1.0 - above })
    });
    let visible = points.filter(|&(_, y)| !complementary || y >= LEAST_SHARE);
    Ok(Curve::line(name, colour, visible).dashed(1))
}

/// An axis must have a length.
fn positive(end: f64) -> f64 {
    if end > 0.0 { end } else { 1.0 }
}
