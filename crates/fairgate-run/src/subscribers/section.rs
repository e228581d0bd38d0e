//! The sections `[subscribers]` and `[plans.NAME]` of a configuration file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairgate_config::units::{parse_duration, parse_rate};
use fairgate_config::{Document, FileError, Registry, Spec};
use serde::Deserialize;
use toml::Spanned;

use super::fields::LEAST;
use super::list::Rates;

/// What the sections say.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where the list is.
    pub source: Source,
    /// What shapes the subscribers.
    pub shaper: Shaper,
    /// The rate of the whole line down and up, bit/s.
    pub line: [u64; 2],
    /// The most that packets of no subscriber get, down and up, bit/s.
    pub others: [u64; 2],
    /// Whether a change of the files is taken over by itself.
    pub watch: bool,
    /// The share of the subscribers that a new list may remove, percent.
    pub most_removed: u64,
    /// The number of subscribers that a reading may remove whatever their share is: an operator has confirmed
    /// it.
    pub confirmed_removed: Option<u64>,
    /// What is in the class of a subscriber.
    pub(crate) leaf: Spec,
    pub(crate) leaves: Leaves,
    pub(crate) plans: BTreeMap<String, Plan>,
}

/// Where a list is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nowhere: the API has it.
    Api,
    /// In a file, or in all files of a folder whose names end in `.csv` or `.json`.
    File(PathBuf),
    /// In LibreQoS' files.
    LibreQos {
        /// `ShapedDevices.csv`.
        devices: PathBuf,
        /// `network.json`.
        network: PathBuf,
    },
}

/// What shapes the subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shaper {
    /// A class of htb for each.
    #[default]
    Htb,
    /// A class of hfsc for each.
    Hfsc,
    /// A cake for each, with its rate.
    Cake,
}

/// What subscribers of a plan have, if their lines say nothing else.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) rates: [Rates; 2],
    /// Down and up.
    pub(crate) bursts: [Option<Burst>; 2],
    pub(crate) leaf: Option<Spec>,
}

/// A burst for a time: `rate` takes the place of the most that a subscriber gets, while the average of the
/// last `time` is below `threshold`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Burst {
    pub(crate) rate: u64,
    pub(crate) threshold: u64,
    /// Nanoseconds.
    pub(crate) time: u64,
}

/// The disciplines that LibreQoS' files name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaves {
    pub(crate) cake: Spec,
    pub(crate) fq_codel: Spec,
    pub(crate) fifo: Spec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    file: Option<Spanned<PathBuf>>,
    libreqos: Option<Spanned<LibreQos>>,
    #[serde(default)]
    shaper: Shaper,
    leaf: Option<Spanned<String>>,
    down: Spanned<String>,
    up: Spanned<String>,
    others: Option<Pair>,
    watch: Option<Spanned<bool>>,
    most_removed: Option<Spanned<u64>>,
    confirmed_removed: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LibreQos {
    devices: PathBuf,
    network: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    down: Spanned<String>,
    up: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanSection {
    down: Option<Spanned<String>>,
    up: Option<Spanned<String>>,
    down_min: Option<Spanned<String>>,
    up_min: Option<Spanned<String>>,
    down_burst: Option<Spanned<BurstSection>>,
    up_burst: Option<Spanned<BurstSection>>,
    leaf: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BurstSection {
    rate: Spanned<String>,
    threshold: Spanned<String>,
    time: Spanned<String>,
}

/// How many flows a subscriber's discipline tells apart if nothing is said. A table for 1024, the default of
/// fq_codel, would take 65 kB for each subscriber and direction.
const FLOWS: u64 = 64;

/// The share of the subscribers that a reading may remove if nothing is said, percent: a provider loses fewer
/// at once, and a file that was cut off loses more.
const MOST_REMOVED: u64 = 10;

impl Settings {
    /// Reads the sections. Paths begin at the folder of the file. Returns `None` if there is no
    /// `[subscribers]`.
    ///
    /// # Errors
    /// Reports the first mistake.
    pub fn read(document: &Document, registry: &Registry) -> Result<Option<Settings>, FileError> {
        let plans = document.section::<BTreeMap<String, PlanSection>>("plans")?;
        let Some(section) = document.section::<Section>("subscribers")? else {
            return match plans {
                None => Ok(None),
                Some(_) => Err(document.error(
                    0..0,
                    "there are plans, but no subscribers",
                    "add [subscribers], or remove [plans]",
                )),
            };
        };
        for name in ["down", "up"] {
            if document.queue(name).is_some() {
                return Err(document.error(
                    0..0,
                    format!("`{name}` is the tree of the subscribers, but there is a [queue.{name}]"),
                    "give that tree another name",
                ));
            }
        }
        let line = [rate(document, &section.down)?, rate(document, &section.up)?];
        let others = match &section.others {
            None => line,
            Some(others) => [rate(document, &others.down)?, rate(document, &others.up)?],
        };
        let leaf = match (&section.leaf, section.shaper) {
            (Some(leaf), _) => read_leaf(document, leaf, registry)?,
            (None, Shaper::Cake) => built_in("cake")?,
            (None, _) => built_in("fq_codel")?,
        };
        if section.shaper == Shaper::Cake && leaf.discipline() != "cake" {
            let at = section.leaf.as_ref().map_or(0..0, Spanned::span);
            return Err(document.error(
                at,
                format!(
                    "with shaper = \"cake\" each subscriber has a cake, not `{}`",
                    leaf.discipline()
                ),
                "write leaf = \"cake\" with its settings, or use htb or hfsc",
            ));
        }
        let mut read = BTreeMap::new();
        for (name, plan) in plans.into_iter().flatten() {
            read.insert(name, plan.read(document, section.shaper, registry)?);
        }
        let source = source(document, &section)?;
        let of_files = [
            ("watch", section.watch.as_ref().map(Spanned::span)),
            (
                "confirmed_removed",
                section.confirmed_removed.as_ref().map(Spanned::span),
            ),
        ];
        for (key, place) in of_files {
            if let (Source::Api, Some(place)) = (&source, place) {
                return Err(document.error(
                    place,
                    format!("`{key}` is for files, but the list has none"),
                    format!("add `file`, or remove `{key}`"),
                ));
            }
        }
        if let Some(most) = &section.most_removed
            && *most.get_ref() > 100
        {
            return Err(document.error(
                most.span(),
                format!("{} percent of the subscribers are more than all", most.get_ref()),
                "write a number from 0 to 100: the percentage that a new list may remove",
            ));
        }
        Ok(Some(Settings {
            source,
            shaper: section.shaper,
            line,
            others,
            watch: section.watch.is_none_or(|watch| *watch.get_ref()),
            most_removed: section.most_removed.map_or(MOST_REMOVED, Spanned::into_inner),
            confirmed_removed: section.confirmed_removed.map(Spanned::into_inner),
            leaf,
            leaves: Leaves {
                cake: built_in("cake")?,
                fq_codel: built_in("fq_codel")?,
                fifo: built_in("fifo")?,
            },
            plans: read,
        }))
    }
}

impl PlanSection {
    fn read(&self, document: &Document, shaper: Shaper, registry: &Registry) -> Result<Plan, FileError> {
        let of = |text: &Option<Spanned<String>>| text.as_ref().map(|text| rate(document, text)).transpose();
        let mut rates = [Rates::default(); 2];
        let keys = [(&self.down_min, &self.down), (&self.up_min, &self.up)];
        for (rates, (least, most)) in rates.iter_mut().zip(keys) {
            *rates = Rates {
                least: of(least)?,
                most: of(most)?,
            };
            if let (Some(low), Some(high), Some(at)) = (rates.least, rates.most, least)
                && low > high
            {
                return Err(document.error(
                    at.span(),
                    format!("{low} bit/s are guaranteed, but the plan allows {high}"),
                    "guarantee at most the rate of the plan",
                ));
            }
        }
        let leaf = self.leaf.as_ref().map(|leaf| read_leaf(document, leaf, registry));
        let mut bursts = [None; 2];
        let given = [(&self.down_burst, &self.down), (&self.up_burst, &self.up)];
        for (burst, (section, most)) in bursts.iter_mut().zip(given) {
            let Some(section) = section else { continue };
            if shaper != Shaper::Htb {
                return Err(document.error(
                    section.span(),
                    "only classes of htb have bursts for a time",
                    "write shaper = \"htb\", or remove the burst",
                ));
            }
            let read = section.get_ref().read(document)?;
            if of(most)?.is_some_and(|most| read.rate <= most) {
                return Err(document.error(
                    section.get_ref().rate.span(),
                    "the rate of the burst is not above that of the plan",
                    "raise it, or remove the burst",
                ));
            }
            *burst = Some(read);
        }
        Ok(Plan {
            rates,
            bursts,
            leaf: leaf.transpose()?,
        })
    }
}

impl BurstSection {
    fn read(&self, document: &Document) -> Result<Burst, FileError> {
        let burst = Burst {
            rate: rate(document, &self.rate)?,
            threshold: rate(document, &self.threshold)?,
            time: time(document, &self.time)?,
        };
        match burst.threshold < burst.rate {
            true => Ok(burst),
            false => Err(document.error(
                self.threshold.span(),
                "the threshold is not below the rate of the burst, which would never end",
                "lower it, or raise the rate of the plan",
            )),
        }
    }
}

/// Reads the time of the average of a burst, with the range that htb gives it.
fn time(document: &Document, text: &Spanned<String>) -> Result<u64, FileError> {
    let time = parse_duration(text.get_ref())
        .map_err(|error| document.error(text.span(), error.message, error.remedy))?;
    match (Duration::from_millis(16)..=Duration::from_secs(3600)).contains(&time) {
        true => Ok(time.as_nanos() as u64),
        false => Err(document.error(
            text.span(),
            format!("`{}` is not 16ms to 1h", text.get_ref()),
            "write the time of the average, like 8s",
        )),
    }
}

fn rate(document: &Document, text: &Spanned<String>) -> Result<u64, FileError> {
    let rate = parse_rate(text.get_ref())
        .map_err(|error| document.error(text.span(), error.message, error.remedy))?;
    let bits = rate.bits_per_second();
    match bits >= LEAST {
        true => Ok(bits),
        false => Err(document.error(
            text.span(),
            format!("{bits} bit/s are less than {LEAST}"),
            match text
                .get_ref()
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
            {
                true => format!("a number alone is bit/s; for Mbit/s write {}mbit", text.get_ref()),
                false => "write the rate like 100mbit".to_owned(),
            },
        )),
    }
}

fn source(document: &Document, section: &Section) -> Result<Source, FileError> {
    let folder = Path::new(document.name()).parent().unwrap_or(Path::new(""));
    match (&section.file, &section.libreqos) {
        (None, None) => Ok(Source::Api),
        (Some(file), None) => Ok(Source::File(folder.join(file.get_ref()))),
        (None, Some(files)) => {
            let LibreQos { devices, network } = files.get_ref();
            Ok(Source::LibreQos {
                devices: folder.join(devices),
                network: folder.join(network),
            })
        }
        (Some(_), Some(files)) => Err(document.error(
            files.span(),
            "both `file` and `libreqos` say where the list is",
            "remove one of them",
        )),
    }
}

/// Reads the discipline of a class from one line.
fn read_leaf(document: &Document, text: &Spanned<String>, registry: &Registry) -> Result<Spec, FileError> {
    let leaf = with_few_flows(text.get_ref(), registry).map_err(|error| {
        let first = &error.problems()[0];
        let message = format!("`{}`: {}", text.get_ref(), first.message);
        document.error(text.span(), message, first.help.clone())
    })?;
    if leaf.is_given("bandwidth") {
        return Err(document.error(
            text.span(),
            format!(
                "`bandwidth` of {} is each subscriber's own rate",
                leaf.discipline()
            ),
            "remove it",
        ));
    }
    Ok(leaf)
}

fn built_in(text: &str) -> Result<Spec, FileError> {
    with_few_flows(text, &Registry::builtin())
}

/// Reads a discipline from one line. If it has a table of flows whose size is not given, this is small.
fn with_few_flows(text: &str, registry: &Registry) -> Result<Spec, FileError> {
    let leaf = Spec::inline_with(text, registry)?;
    let has_flows = leaf.parameters().iter().any(|(info, _)| info.name == "flows");
    match has_flows && !leaf.is_given("flows") && leaf.classes().is_empty() {
        true => Spec::inline_with(&format!("{text} flows={FLOWS}"), registry),
        false => Ok(leaf),
    }
}
