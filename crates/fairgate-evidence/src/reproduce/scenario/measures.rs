//! Figures of a run.

use std::ops::Range;

use fairgate_config::{Document, FileError};
use fairgate_sim::Results;
use fairgate_sim::results::{GroupResults, InterfaceResults, ObservationResults};
use toml::Spanned;

use super::plan::{Measure, Plan};
use super::quantity::{self, Quantity, Subject};
use super::window::Window;

/// A measured value.
pub(super) struct Measured {
    /// `loss of audio`.
    pub(super) measure: String,
    pub(super) unit: String,
    pub(super) value: f64,
}

/// Points of a curve: position and value.
pub(super) type Points = Vec<(f64, f64)>;

/// A curve for each group, interface or observed variable.
pub(super) type Curves = Vec<(String, Points)>;

/// What one run gave.
pub(super) struct Sample {
    pub(super) values: Vec<Measured>,
    /// Throughput by group, Mbit/s: points at the end of each interval.
    pub(super) throughput: Curves,
    /// Packet delays by group: ms, and the share of packets at or below.
    pub(super) delays: Curves,
    /// The queue by interface, packets.
    pub(super) backlogs: Curves,
    /// Observed variables, in their own units.
    pub(super) observed: Curves,
    /// Their distributions in the measurement window: the value, and the share of points at or below.
    pub(super) observed_distributions: Curves,
}

/// All flows together, as a group.
const ALL: &str = "all";

/// Something that can be named in a run.
enum Found<'a> {
    Groups(Vec<&'a GroupResults>),
    Interface(&'a InterfaceResults),
    Observed(&'a ObservationResults),
}

/// Measures a run. Its duration is that of the file times `factor`.
pub(super) fn sample(
    document: &Document,
    plan: &Plan,
    results: &Results,
    factor: f64,
) -> Result<Sample, FileError> {
    let mut values = Vec::new();
    for measure in &plan.measures {
        let of = names(measure, results);
        let subjects: Vec<(&str, Found<'_>)> = match &measure.together {
            None => {
                let each = of.iter().map(|(name, at)| {
                    let found = find(document, measure.figure, results, name, at.clone())?;
                    Ok((name.as_str(), found))
                });
                each.collect::<Result<_, FileError>>()?
            }
            Some(together) => {
                let mut all = Vec::new();
                for (name, at) in &of {
                    match find(document, measure.figure, results, name, at.clone())? {
                        Found::Groups(groups) => all.extend(groups),
                        _ => unreachable!("`check` allows `together` for groups alone"),
                    }
                }
                vec![(together.get_ref().as_str(), Found::Groups(all))]
            }
        };
        let measured = quantity::measured(results).time;
        let windows = Window::read(document, measure.during.as_ref(), measured)?;
        for window in &windows {
            let label = &window.label;
            let window = window.scaled(factor);
            let given = measure.during.is_some().then_some(&window);
            for (name, found) in &subjects {
                let (value, unit) = match found {
                    Found::Groups(groups) => {
                        let value = measure.figure.of_groups(results, groups, given);
                        measure.in_unit(document, value, "bit/s")?
                    }
                    Found::Interface(interface) => {
                        let value = measure.figure.of_interface(results, interface, given);
                        (value, measure.figure.unit().to_owned())
                    }
                    Found::Observed(observed) => {
                        let (value, unit) = measure.of_observed(results, observed, given);
                        measure.in_unit(document, value, unit)?
                    }
                };
                values.push(Measured {
                    measure: format!("{} of {name}{label}", measure.figure.name()),
                    unit,
                    value,
                });
            }
        }
    }
    let interval = quantity::seconds(results);
    let over_time = |series: &[u64], factor: f64| -> Points {
        let points = series.iter().enumerate();
        points
            .map(|(point, &value)| ((point + 1) as f64 * interval, value as f64 * factor))
            .collect()
    };
    let groups = &results.groups;
    let of_groups = |points: &dyn Fn(&GroupResults) -> Points| -> Curves {
        groups
            .iter()
            .map(|group| (group.name.clone(), points(group)))
            .collect()
    };
    let interfaces = results.interfaces.iter();
    let observed = &results.observations;
    let of_observed = |points: &dyn Fn(&ObservationResults) -> Points| -> Curves {
        observed
            .iter()
            .map(|each| (each.name.clone(), points(each)))
            .collect()
    };
    Ok(Sample {
        values,
        throughput: of_groups(&|group| over_time(&group.throughput_series_bps, 1e-6)),
        delays: of_groups(&|group| {
            let nanos = group
                .delay
                .percentiles_ns
                .iter()
                .map(|&nanos| nanos as f64 * 1e-6);
            distribution(group.delay.count, nanos.collect())
        }),
        backlogs: interfaces
            .map(|interface| {
                let points = over_time(&interface.backlog_series_packets, 1.0);
                (interface.name.clone(), points)
            })
            .collect(),
        observed: of_observed(&|each| {
            let points = each.series.iter().enumerate();
            points
                .filter_map(|(point, &value)| Some(((point + 1) as f64 * interval, value?)))
                .collect()
        }),
        observed_distributions: of_observed(&|each| distribution(each.count, each.percentiles.clone())),
    })
}

/// Returns pairs of a value and the share at or below it, from the percentiles 0 to 100.
fn distribution(count: u64, percentiles: Vec<f64>) -> Points {
    if count == 0 {
        return Vec::new();
    }
    let last = (percentiles.len() - 1) as f64;
    let point = |(percent, value): (usize, f64)| (value, percent as f64 / last);
    percentiles.into_iter().enumerate().map(point).collect()
}

/// Returns the names of a measure, and where they are written. Without any, these are all that there are.
fn names(measure: &Measure, results: &Results) -> Vec<(String, Range<usize>)> {
    if !measure.of.is_empty() {
        let given = measure.of.iter();
        return given.map(|name| (name.get_ref().clone(), name.span())).collect();
    }
    known(measure.figure, results)
        .into_iter()
        .map(|name| (name.to_owned(), 0..0))
        .collect()
}

/// Returns the names that a quantity can be measured of.
fn known(quantity: Quantity, results: &Results) -> Vec<&str> {
    match quantity.subject() {
        Subject::Group => results.groups.iter().map(|group| group.name.as_str()).collect(),
        Subject::Interface => {
            let interfaces = results.interfaces.iter();
            interfaces.map(|interface| interface.name.as_str()).collect()
        }
        Subject::Observed => {
            let observed = results.observations.iter();
            observed.map(|each| each.name.as_str()).collect()
        }
    }
}

fn find<'a>(
    document: &Document,
    quantity: Quantity,
    results: &'a Results,
    name: &str,
    at: Range<usize>,
) -> Result<Found<'a>, FileError> {
    let found = match quantity.subject() {
        Subject::Group => {
            let groups = results.groups.iter();
            let meant: Vec<&GroupResults> =
                groups.filter(|group| name == ALL || group.name == name).collect();
            (!meant.is_empty()).then_some(Found::Groups(meant))
        }
        Subject::Interface => {
            let mut interfaces = results.interfaces.iter();
            interfaces
                .find(|interface| interface.name == name)
                .map(Found::Interface)
        }
        Subject::Observed => {
            let mut observed = results.observations.iter();
            observed.find(|each| each.name == name).map(Found::Observed)
        }
    };
    found.ok_or_else(|| {
        let has = known(quantity, results).join(", ");
        let help = match quantity.subject() {
            Subject::Group => format!("its groups are {has}, and `{ALL}` is all flows"),
            Subject::Interface => format!("its interfaces are {has}"),
            Subject::Observed if has.is_empty() => "observe a variable: [[simulate.observe]]".to_owned(),
            Subject::Observed => format!("[[simulate.observe]] has {has}"),
        };
        document.error(at, format!("the run has no `{name}`"), help)
    })
}

/// Returns what a rate in bit/s is multiplied by to be in `unit`, if rates may have this unit.
fn rate_unit(unit: &str) -> Option<f64> {
    match unit {
        "kbit/s" => Some(1e-3),
        "Mbit/s" => Some(1e-6),
        _ => None,
    }
}

/// The remedy for a unit of a figure that is no rate.
const ONLY_RATES: &str = "leave it out: only rates have a choice";

impl Measure {
    /// Checks that the keys suit the figure, before anything is simulated.
    pub(super) fn check(&self, document: &Document) -> Result<(), FileError> {
        let quantity = self.figure;
        self.check_unit(document)?;
        if let Some(together) = &self.together
            && quantity.subject() != Subject::Group
        {
            return Err(document.error(
                together.span(),
                format!("`{}` is not measured of groups of flows", quantity.name()),
                "leave out `together`",
            ));
        }
        if let Some(during) = &self.during
            && !quantity.is_of_series()
        {
            return Err(document.error(
                during.span(),
                format!(
                    "`{}` is measured in the whole measurement window only",
                    quantity.name()
                ),
                "leave out `during`, or measure throughput, backlog or an observed variable",
            ));
        }
        match (&self.value, quantity.needs_value()) {
            (None, true) => Err(document.error(
                self.of.first().map_or(0..0, Spanned::span),
                format!("`{}` needs a value", quantity.name()),
                "add value = 500, in the unit of the variable",
            )),
            (Some(value), false) => Err(document.error(
                value.span(),
                format!("`{}` has no value to reach", quantity.name()),
                "leave out `value`",
            )),
            _ => Window::read(document, self.during.as_ref(), 0.0..0.0).map(|_| ()),
        }
    }

    /// Checks that the unit exists. Whether an observed variable is a rate is known after the run only.
    fn check_unit(&self, document: &Document) -> Result<(), FileError> {
        let Some(unit) = &self.unit else { return Ok(()) };
        if !self.figure.is_rate() && self.figure.subject() != Subject::Observed {
            return Err(Self::wrong_unit(document, unit, ONLY_RATES));
        }
        match rate_unit(unit.get_ref()) {
            Some(_) => Ok(()),
            None => Err(Self::wrong_unit(
                document,
                unit,
                "rates are in \"kbit/s\" or \"Mbit/s\"",
            )),
        }
    }

    fn wrong_unit(document: &Document, unit: &Spanned<String>, help: &str) -> FileError {
        let what = format!("`{}` is not a unit of this figure", unit.get_ref());
        document.error(unit.span(), what, help)
    }

    /// Returns a value in the unit that was asked for, and this unit. `own` is the unit of the value if it is
    /// a rate or observed.
    fn in_unit(&self, document: &Document, value: f64, own: &str) -> Result<(f64, String), FileError> {
        let is_observed = self.figure.subject() == Subject::Observed;
        let is_rate = own == "bit/s" && (is_observed || self.figure.is_rate());
        if is_rate {
            let unit = self.unit.as_ref().map_or("kbit/s", |unit| unit.get_ref());
            let factor = rate_unit(unit).expect("`check_unit` allows no other unit");
            return Ok((value * factor, unit.to_owned()));
        }
        match &self.unit {
            Some(unit) => Err(Self::wrong_unit(document, unit, ONLY_RATES)),
            None if is_observed && own == "ns" => Ok((value * 1e-6, "ms".to_owned())),
            None if is_observed => Ok((value, own.to_owned())),
            None => Ok((value, self.figure.unit().to_owned())),
        }
    }

    /// Returns the value of this figure of an observed variable, and its unit.
    fn of_observed<'a>(
        &self,
        results: &Results,
        observed: &'a ObservationResults,
        window: Option<&Window>,
    ) -> (f64, &'a str) {
        let interval = quantity::seconds(results);
        let series = &observed.series;
        let first = |reaches: &dyn Fn(f64) -> bool| {
            let found = series.iter().position(|value| value.is_some_and(reaches));
            let end = results.duration_ns as f64 * 1e-9;
            (found.map_or(end, |point| (point + 1) as f64 * interval), "s")
        };
        let limit = self.value.as_ref().map_or(0.0, |value| *value.get_ref());
        match self.figure {
            Quantity::ObservedReaches => return first(&|value| value >= limit),
            Quantity::ObservedFallsTo => return first(&|value| value <= limit),
            _ => {}
        }
        let measured = quantity::measured(results);
        let points = window.unwrap_or(&measured).points(interval, series.len());
        let mut values: Vec<f64> = series[points].iter().flatten().copied().collect();
        values.sort_by(f64::total_cmp);
        // The nearest rank.
        let percentile = |percent: usize| {
            let rank = (values.len() * percent).div_ceil(100).max(1);
            values.get(rank - 1).copied().unwrap_or(0.0)
        };
        let value = match self.figure {
            Quantity::Observed => quantity::mean(&values),
            Quantity::ObservedP95 => percentile(95),
            Quantity::ObservedP99 => percentile(99),
            Quantity::ObservedLeast => quantity::least(&values),
            Quantity::ObservedMost => quantity::most(&values),
            _ => unreachable!("the others are not observed"),
        };
        (value, &observed.unit)
    }
}
