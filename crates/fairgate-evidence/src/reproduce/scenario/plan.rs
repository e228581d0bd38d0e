//! What an experiment's file says of its cases and measures.

use std::time::Duration;

use fairgate_config::units::parse_duration;
use fairgate_config::{Document, FileError};
use fairgate_sim::Scenario;
use serde::Deserialize;
use toml::{Spanned, Table, Value};

use super::flent::Flent;
use super::quantity::Quantity;
use super::window::During;

/// The name of the case of an experiment that has one only.
pub(super) const ONLY: &str = "the network of the file";
/// The share of the duration that a short run simulates.
const QUICK: u32 = 10;

/// The keys of `[experiment]` that describe cases and measures. The others are the description.
#[derive(Deserialize)]
struct Section {
    #[serde(default, rename = "dimension")]
    dimensions: Vec<Dimension>,
    #[serde(default, rename = "measure")]
    measures: Vec<Measure>,
    #[serde(default, rename = "figure")]
    figures: Vec<Drawing>,
    /// The duration of a short run. The default is a tenth.
    quick: Option<Spanned<String>>,
    /// The number of priorities that are dealt to flows at random.
    priorities: Option<Spanned<u8>>,
    live: Option<LiveSection>,
}

/// What is run with real traffic.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveSection {
    /// The cases that are run, by patterns. The default is all.
    pub(super) cases: Option<Spanned<Patterns>>,
    /// The duration and the measurement window of a live run and of the simulation beside it, in the place of
    /// those of the file.
    pub(super) duration: Option<Spanned<String>>,
    pub(super) measure: Option<Spanned<[String; 2]>>,
    pub(super) slow: Option<SlowSection>,
    /// What is different from the experiment's simulation, and why.
    pub(super) why: Option<String>,
    pub(super) kernel: Option<KernelSection>,
}

/// Cases with links so slow that they take long, and do not disturb one another: they are run side by side.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SlowSection {
    pub(super) cases: Spanned<Patterns>,
    pub(super) duration: Spanned<String>,
    pub(super) measure: Spanned<[String; 2]>,
}

/// The same with a discipline of the kernel's own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KernelSection {
    /// The name of its curves.
    pub(super) name: String,
    /// The sending interface, `a->b`, or several ones.
    pub(super) interface: Spanned<Patterns>,
    /// The cases in which it is run. The default is all live ones.
    pub(super) cases: Option<Spanned<Patterns>>,
    /// The dimension whose position on its axis is a share of the link's rate in per cent.
    pub(super) share: Option<Spanned<String>>,
    /// tc's commands, one a line. `DEV` stands for the interface, `RATE` for the link's rate, `SHARE` for its
    /// share, and `BURST` for the bytes of 2 ms. The kernel counts the Ethernet header of packets.
    pub(super) script: Spanned<String>,
}

/// Cases of which one is chosen, independently of other dimensions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dimension {
    pub(super) name: Spanned<String>,
    pub(super) cases: Vec<CaseSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseSection {
    pub(super) name: String,
    /// The position on a horizontal axis.
    pub(super) x: Option<f64>,
    /// Whether it only stands beside the others: no claim is judged by it.
    #[serde(default)]
    beside: bool,
    /// Values of the file that are replaced, by their path: `queue.NAME`, `simulate.flow.NAME.KEY`.
    #[serde(default)]
    set: toml::map::Map<String, Value>,
}

/// A figure that is measured in each case.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measure {
    pub(super) figure: Quantity,
    /// Names of groups, interfaces or observed variables. The default is all of them.
    #[serde(default)]
    pub(super) of: Vec<Spanned<String>>,
    /// The name of all groups in `of` together, which are then measured as one.
    pub(super) together: Option<Spanned<String>>,
    /// The windows in which it is measured. The default is the measurement window.
    pub(super) during: Option<Spanned<During>>,
    /// What an observed variable reaches or falls to, in its unit.
    pub(super) value: Option<Spanned<f64>>,
    /// The unit of a rate. The default is kbit/s.
    pub(super) unit: Option<Spanned<String>>,
}

/// A picture.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Drawing {
    pub(super) title: Spanned<String>,
    /// The measure of the vertical axis: a curve for each case of the other dimensions.
    pub(super) measure: Option<Spanned<String>>,
    /// The dimension of the horizontal axis.
    pub(super) over: Option<Spanned<String>>,
    /// The label of the horizontal axis.
    pub(super) x: Option<String>,
    /// Whether the vertical axis is logarithmic.
    #[serde(default)]
    pub(super) logarithmic: bool,
    /// The cases that are drawn, by patterns. The default is all.
    pub(super) cases: Option<Spanned<Patterns>>,
    /// Groups whose packet delays are drawn, in a figure for each case.
    pub(super) distribution_of: Option<Vec<Spanned<String>>>,
    /// Groups whose packet delays are drawn as violins, one for each case, in one figure.
    pub(super) violins_of: Option<Vec<Spanned<String>>>,
    /// Groups whose throughput over time is drawn, in a figure for each case.
    pub(super) throughput_of: Option<Vec<Spanned<String>>>,
    /// Interfaces whose queue over time is drawn, in a figure for each case.
    pub(super) backlog_of: Option<Vec<Spanned<String>>>,
    /// Observed variables that are drawn over time, in a figure for each case.
    pub(super) observed: Option<Vec<Spanned<String>>>,
    /// Observed variables whose distribution is drawn, in a figure for each case.
    pub(super) observed_distribution: Option<Vec<Spanned<String>>>,
    /// Whether all cases are drawn in one figure.
    #[serde(default)]
    pub(super) combine: bool,
    /// Whether a distribution shows the share above a value, over a logarithmic axis.
    #[serde(default)]
    pub(super) complementary: bool,
    /// An exponential distribution that is drawn over the measured ones: the times in an M/M/1 system.
    pub(super) formula: Option<Spanned<Formula>>,
    /// What others measured with Flent, drawn over `throughput_of` and `distribution_of`.
    pub(super) flent: Option<Spanned<Flent>>,
}

/// One pattern or several ones, as they are written.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Patterns {
    One(String),
    Several(Vec<String>),
}

impl Patterns {
    /// Returns all of them.
    pub(super) fn list(&self) -> &[String] {
        match self {
            Patterns::One(one) => std::slice::from_ref(one),
            Patterns::Several(list) => list,
        }
    }
}

/// An exponential distribution.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Formula {
    pub(super) name: String,
    /// The mean, as a duration.
    pub(super) mean: String,
}

/// Cases, measures and pictures.
pub(super) struct Plan {
    pub(super) dimensions: Vec<Dimension>,
    pub(super) measures: Vec<Measure>,
    pub(super) figures: Vec<Drawing>,
    /// `None`: the experiment is not run live.
    pub(super) live: Option<LiveSection>,
    /// The number of priorities that are dealt to flows at random.
    pub(super) priorities: Option<Spanned<u8>>,
    quick: Option<Duration>,
}

/// A combination of one case of each dimension.
pub(super) struct Case {
    /// The names of the cases, separated by commas.
    pub(super) name: String,
    /// The file and the case, for messages. Paths in the case begin at the folder of the file.
    pub(super) file: String,
    /// Whether no claim is judged by it.
    pub(super) is_beside: bool,
    /// The index of the case in each dimension.
    pub(super) indices: Vec<usize>,
    /// The experiment's file with the values of this case.
    pub(super) text: String,
}

impl Plan {
    pub(super) fn read(document: &Document) -> Result<Plan, FileError> {
        let section: Option<Section> = document.section("experiment")?;
        let Some(section) = section else {
            return Err(document.error(0..0, "there is no section [experiment]", "add one"));
        };
        let quick = section.quick.as_ref().map(|text| {
            parse_duration(text.get_ref())
                .map_err(|error| document.error(text.span(), error.message, error.remedy))
        });
        for measure in &section.measures {
            measure.check(document)?;
        }
        if let Some(number) = section
            .priorities
            .as_ref()
            .filter(|number| !(1..=16).contains(number.get_ref()))
        {
            return Err(document.error(
                number.span(),
                format!("there are no {} priorities", number.get_ref()),
                "write how many, from 1 to 16",
            ));
        }
        Ok(Plan {
            quick: quick.transpose()?,
            dimensions: section.dimensions,
            measures: section.measures,
            figures: section.figures,
            live: section.live,
            priorities: section.priorities,
        })
    }

    /// Shortens the scenario for a quick run. Returns the factor.
    pub(super) fn shorten(&self, scenario: &mut Scenario) -> f64 {
        let duration = self.quick.unwrap_or(scenario.duration / QUICK);
        let share = duration.as_secs_f64() / scenario.duration.as_secs_f64();
        let scaled = |time: Duration| time.mul_f64(share);
        scenario.measure = scaled(scenario.measure.start)..duration;
        scenario.duration = duration;
        scenario.interval = scenario.interval.min(duration);
        share
    }

    /// Returns all combinations. The last dimension changes first.
    pub(super) fn cases(&self, document: &Document) -> Result<Vec<Case>, FileError> {
        let mut all: Vec<Vec<usize>> = vec![Vec::new()];
        for dimension in &self.dimensions {
            all = all
                .iter()
                .flat_map(|indices| (0..dimension.cases.len()).map(|index| [&indices[..], &[index]].concat()))
                .collect();
        }
        all.into_iter()
            .map(|indices| self.case(document, indices))
            .collect()
    }

    fn case(&self, document: &Document, indices: Vec<usize>) -> Result<Case, FileError> {
        let mut table: Table = toml::from_str(document.text()).expect("the file was parsed before");
        let mut names = Vec::new();
        let mut is_beside = false;
        for (dimension, &index) in self.dimensions.iter().zip(&indices) {
            let case = &dimension.cases[index];
            names.push(case.name.as_str());
            is_beside |= case.beside;
            for (path, value) in &case.set {
                set(&mut table, path, value.clone()).map_err(|what| {
                    document.error(
                        dimension.name.span(),
                        format!("case `{}`: `{path}`: {what}", case.name),
                        "name a value of the file: queue.NAME, simulate.duration, simulate.flow.NAME.count",
                    )
                })?;
            }
        }
        let name = match names.is_empty() {
            true => ONLY.to_owned(),
            false => names.join(", "),
        };
        Ok(Case {
            // Names like `4 Mbit/s` would look like a folder.
            file: format!("{} [{}]", document.name(), name.replace('/', " per ")),
            name,
            is_beside,
            indices,
            text: toml::to_string(&table).expect("a table that was read can be written"),
        })
    }
}

/// Sets a value. Tables of a list are found by their `name`, or by their number from 0.
fn set(table: &mut Table, path: &str, value: Value) -> Result<(), String> {
    let Some((first, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value);
        return Ok(());
    };
    let next = table
        .get_mut(first)
        .ok_or_else(|| format!("there is no `{first}`"))?;
    match next {
        Value::Table(inner) => set(inner, rest, value),
        Value::Array(list) => {
            let (name, rest) = rest
                .split_once('.')
                .ok_or_else(|| format!("`{first}` is a list; name one of it, and a key"))?;
            let is_it = |(index, part): &(usize, &mut Value)| {
                part.get("name").and_then(Value::as_str) == Some(name) || index.to_string() == name
            };
            let found = list.iter_mut().enumerate().find(is_it);
            match found.and_then(|(_, part)| part.as_table_mut()) {
                Some(inner) => set(inner, rest, value),
                None => Err(format!("there is no `{name}` in `{first}`")),
            }
        }
        _ => Err(format!("`{first}` has no keys")),
    }
}
