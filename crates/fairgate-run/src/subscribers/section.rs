//! The sections `[subscribers]` and `[plans.NAME]` of a configuration file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

use fairgate::registry::Parameter;
use fairgate::words;
use fairgate_config::{Document, FileError, ParameterInfo, Registry, Section, Shape, Spec, Table, Unit};

use fairgate_run_api::Difference;

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
    /// Whether what clients change is written into the files.
    pub write: bool,
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

impl Source {
    /// Returns the file with the limits for a time: beside the list, or in its folder if `is_folder` says
    /// that it is one. Its name begins with a dot, so it is no list of the folder.
    pub fn limits(&self, is_folder: bool) -> Option<PathBuf> {
        let (file, name) = match self {
            Source::Api => return None,
            Source::File(folder) if is_folder => return Some(folder.join(".limits")),
            Source::File(file) | Source::LibreQos { devices: file, .. } => (file, file.file_name()?),
        };
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(".limits");
        Some(file.with_file_name(hidden))
    }
}

/// What shapes the subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shaper {
    /// A class of htb for each.
    #[default]
    Htb,
    /// A class of hfsc for each.
    Hfsc,
    /// A cake for each, with its rate.
    Cake,
}

words!(Shaper { "htb" => Shaper::Htb, "hfsc" => Shaper::Hfsc, "cake" => Shaper::Cake });

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// What `[subscribers]` says. A text is empty if it is not written.
struct Keys {
    file: String,
    shaper: Shaper,
    leaf: String,
    rates: Pair,
    watch: bool,
    write: bool,
    most_removed: u64,
    confirmed_removed: Option<u64>,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys {
            file: String::new(),
            shaper: Shaper::Htb,
            leaf: String::new(),
            rates: Pair::default(),
            watch: true,
            write: true,
            // A provider loses fewer at once, and a file that was cut off loses more.
            most_removed: 10,
            confirmed_removed: None,
        }
    }
}

/// Rates down and up, bit/s.
#[derive(Default)]
struct Pair {
    down: u64,
    up: u64,
}

impl Pair {
    fn both(self) -> [u64; 2] {
        [self.down, self.up]
    }
}

/// The rates that a line, a plan or a subscriber may have.
const RATES: RangeInclusive<u64> = LEAST..=u64::MAX;

static KEYS: [Parameter<Keys>; 9] = [
    Parameter::required(
        "down",
        Unit::Rate,
        RATES,
        "The rate of the whole line to the subscribers.",
        |keys, _| &mut keys.rates.down,
    ),
    Parameter::required(
        "up",
        Unit::Rate,
        RATES,
        "The rate of the whole line from them.",
        |keys, _| &mut keys.rates.up,
    ),
    Parameter::word(
        "file",
        Unit::Text("file"),
        "The list, .csv or .json, or a folder of such files; without it and `libreqos` the list is empty.",
        |keys, _| &mut keys.file,
    ),
    Parameter::word(
        "shaper",
        Unit::Choice(Shaper::WORDS),
        "What shapes a subscriber.",
        |keys, _| &mut keys.shaper,
    ),
    Parameter::word(
        "leaf",
        Unit::Text("discipline"),
        "What is in a subscriber's class, on one line; default: fq_codel, with the shaper cake: cake.",
        |keys, _| &mut keys.leaf,
    ),
    Parameter::word(
        "watch",
        Unit::Flag,
        "Whether a change of the files is taken over by itself.",
        |keys, _| &mut keys.watch,
    ),
    Parameter::word(
        "write",
        Unit::Flag,
        "Whether what clients change is written into the files; if not, it is refused.",
        |keys, _| &mut keys.write,
    ),
    Parameter::new(
        "most_removed",
        Unit::Count("percent"),
        0..=100,
        "The share of the subscribers that a new list may remove.",
        |keys, _| &mut keys.most_removed,
    ),
    Parameter::new(
        "confirmed_removed",
        Unit::Count("subscribers"),
        0..=u64::MAX,
        "A number of subscribers that a reading may remove whatever their share is.",
        |keys, _| &mut keys.confirmed_removed,
    ),
];

#[derive(Default)]
struct LibreQos {
    devices: String,
    network: String,
}

static LIBREQOS: [Parameter<LibreQos>; 2] = [
    Parameter::required_word(
        "devices",
        Unit::Text("file"),
        "ShapedDevices.csv, which has the subscribers.",
        |keys, _| &mut keys.devices,
    ),
    Parameter::required_word(
        "network",
        Unit::Text("file"),
        "network.json, which has the nodes above them.",
        |keys, _| &mut keys.network,
    ),
];

static OTHERS: [Parameter<Pair>; 2] = [
    Parameter::required("down", Unit::Rate, RATES, "To them.", |keys, _| &mut keys.down),
    Parameter::required("up", Unit::Rate, RATES, "From them.", |keys, _| &mut keys.up),
];

/// What `[plans.NAME]` says.
#[derive(Default)]
struct PlanKeys {
    down: Option<u64>,
    up: Option<u64>,
    down_min: Option<u64>,
    up_min: Option<u64>,
    leaf: String,
}

static PLAN: [Parameter<PlanKeys>; 5] = [
    Parameter::new(
        "down",
        Unit::Rate,
        RATES,
        "The most that a subscriber gets.",
        |keys, _| &mut keys.down,
    ),
    Parameter::new("up", Unit::Rate, RATES, "The most that it sends.", |keys, _| {
        &mut keys.up
    }),
    Parameter::new(
        "down_min",
        Unit::Rate,
        RATES,
        "What it is guaranteed to get.",
        |keys, _| &mut keys.down_min,
    ),
    Parameter::new(
        "up_min",
        Unit::Rate,
        RATES,
        "What it is guaranteed to send.",
        |keys, _| &mut keys.up_min,
    ),
    Parameter::word(
        "leaf",
        Unit::Text("discipline"),
        "What is in its class; default: that of [subscribers].",
        |keys, _| &mut keys.leaf,
    ),
];

static BURST: [Parameter<Burst>; 3] = [
    Parameter::required(
        "rate",
        Unit::Rate,
        RATES,
        "Takes the place of the most during a burst.",
        |keys, _| &mut keys.rate,
    ),
    Parameter::required(
        "threshold",
        Unit::Rate,
        RATES,
        "A burst lasts while the average is below this.",
        |keys, _| &mut keys.threshold,
    ),
    // The range that htb gives it.
    Parameter::required(
        "time",
        Unit::Time,
        16_000_000..=3600 * 1_000_000_000,
        "The time of the average.",
        |keys, _| &mut keys.time,
    ),
];

/// The section `[subscribers]`.
pub static SUBSCRIBERS: Section = Section::new(
    "subscribers",
    "a list of subscribers, which gives the trees `down` and `up`",
    || Parameter::infos(&KEYS, Keys::default()),
)
.with(&WITHIN_SUBSCRIBERS);

static WITHIN_SUBSCRIBERS: [Section; 2] = [
    Section::new("libreqos", "instead of `file`: the files of LibreQoS", || {
        Parameter::infos(&LIBREQOS, LibreQos::default())
    }),
    Section::new(
        "others",
        "the most that packets of no subscriber get; default: the line",
        || Parameter::infos(&OTHERS, Pair::default()),
    ),
];

/// The sections `[plans.NAME]`.
pub static PLANS: Section = Section::new(
    "plans",
    "what subscribers of a plan have, if their lines say nothing else",
    || Parameter::infos(&PLAN, PlanKeys::default()),
)
.shaped(Shape::Named)
.with(&WITHIN_PLANS);

static WITHIN_PLANS: [Section; 2] = [
    Section::new("down_burst", "a burst for a time, with htb", burst_keys),
    Section::new("up_burst", "the same for what the subscriber sends", burst_keys),
];

fn burst_keys() -> Vec<ParameterInfo> {
    Parameter::infos(&BURST, Burst::default())
}

/// How many flows a subscriber's discipline tells apart if nothing is said. A table for 1024, the default of
/// fq_codel, would take 65 kB for each subscriber and direction.
const FLOWS: u64 = 64;

impl Settings {
    /// Returns whether a list may differ so much from the one before it without being confirmed.
    pub fn may_remove(&self, difference: &Difference) -> bool {
        let Difference {
            added,
            removed,
            count,
            ..
        } = *difference;
        let had = (count + removed - added) as u64;
        // Rounded up, so that one of a few may leave. All of them may not.
        let most = (had * self.most_removed).div_ceil(100);
        removed == 0 || (removed as u64 <= most && (count > 0 || self.most_removed == 100))
    }

    /// Reads the sections. Paths begin at the folder of the file. Returns `None` if there is no
    /// `[subscribers]`.
    ///
    /// # Errors
    /// Reports all mistakes.
    pub fn read(document: &Document, registry: &Registry) -> Result<Option<Settings>, FileError> {
        let mut problems = document.problems();
        let plans = problems.of(document.table(&PLANS)).flatten();
        let Some(table) = problems.of(document.table(&SUBSCRIBERS)).flatten() else {
            if plans.is_some() && problems.count() == 0 {
                problems.add(
                    0..0,
                    "there are plans, but no subscribers",
                    "here",
                    "add [subscribers], or remove [plans]",
                );
            }
            return problems.unless_any(None);
        };
        let keys = table.read(&KEYS, Keys::default());
        for name in ["down", "up"] {
            if document.queue(name).is_some() {
                problems.add(
                    0..0,
                    format!("`{name}` is the tree of the subscribers, but there is a [queue.{name}]"),
                    "here",
                    "give that tree another name",
                );
            }
        }
        let leaf = problems.of(leaf(document, &table, &keys, registry));
        let mut read = BTreeMap::new();
        for (name, plan) in plans.iter().flat_map(Table::tables) {
            if let Some(plan) = problems.of(Plan::read(document, &plan, keys.shaper, registry)) {
                read.insert(name.to_owned(), plan);
            }
        }
        let source = problems.of(source(document, &table, &keys));
        for key in ["watch", "write", "confirmed_removed"] {
            if let (Some(Source::Api), Some(place)) = (&source, table.span_of(key)) {
                problems.add(
                    place,
                    format!("`{key}` is for files, but the list has none"),
                    "here",
                    format!("add `file`, or remove `{key}`"),
                );
            }
        }
        let (Some(leaf), Some(source)) = (leaf, source) else {
            return Err(problems.into_error());
        };
        let line = keys.rates.both();
        let others = table.table("others");
        let others = others.map_or(line, |others| others.read(&OTHERS, Pair::default()).both());
        problems.unless_any(Some(Settings {
            source,
            shaper: keys.shaper,
            line,
            others,
            watch: keys.watch,
            write: keys.write,
            most_removed: keys.most_removed,
            confirmed_removed: keys.confirmed_removed,
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

impl Plan {
    fn read(
        document: &Document,
        table: &Table,
        shaper: Shaper,
        registry: &Registry,
    ) -> Result<Plan, FileError> {
        let mut problems = document.problems();
        let keys = table.read(&PLAN, PlanKeys::default());
        let rates =
            [(keys.down_min, keys.down), (keys.up_min, keys.up)].map(|(least, most)| Rates { least, most });
        for (key, rates) in ["down_min", "up_min"].into_iter().zip(&rates) {
            if let (Some(low), Some(high), Some(at)) = (rates.least, rates.most, table.span_of(key))
                && low > high
            {
                problems.add(
                    at,
                    format!("{low} bit/s are guaranteed, but the plan allows {high}"),
                    "here",
                    "guarantee at most the rate of the plan",
                );
            }
        }
        let mut bursts = [None; 2];
        for (side, key) in ["down_burst", "up_burst"].into_iter().enumerate() {
            if let Some(burst) = table.table(key) {
                let read = Burst::read(document, &burst, shaper, rates[side].most);
                bursts[side] = problems.of(read);
            }
        }
        let leaf = table.span_of("leaf");
        let leaf = leaf.and_then(|at| problems.of(read_leaf(document, &keys.leaf, at, registry)));
        problems.unless_any(Plan { rates, bursts, leaf })
    }
}

impl Burst {
    /// Reads the burst of a plan that gives at most `most`, bit/s.
    fn read(
        document: &Document,
        table: &Table,
        shaper: Shaper,
        most: Option<u64>,
    ) -> Result<Burst, FileError> {
        let at = |key: &str| table.span_of(key).unwrap_or_else(|| table.span());
        if shaper != Shaper::Htb {
            return Err(document.error(
                table.span(),
                "only classes of htb have bursts for a time",
                "write shaper = \"htb\", or remove the burst",
            ));
        }
        let burst = table.read(&BURST, Burst::default());
        if burst.threshold >= burst.rate {
            return Err(document.error(
                at("threshold"),
                "the threshold is not below the rate of the burst, which would never end",
                "lower it, or raise the rate of the plan",
            ));
        }
        if most.is_some_and(|most| burst.rate <= most) {
            return Err(document.error(
                at("rate"),
                "the rate of the burst is not above that of the plan",
                "raise it, or remove the burst",
            ));
        }
        Ok(burst)
    }
}

/// Reads where the list is.
fn source(document: &Document, table: &Table, keys: &Keys) -> Result<Source, FileError> {
    let folder = Path::new(document.name()).parent().unwrap_or(Path::new(""));
    match (table.span_of("file"), table.table("libreqos")) {
        (None, None) => Ok(Source::Api),
        (Some(_), None) => Ok(Source::File(folder.join(&keys.file))),
        (None, Some(files)) => {
            let LibreQos { devices, network } = files.read(&LIBREQOS, LibreQos::default());
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

/// Reads what is in the class of a subscriber.
fn leaf(document: &Document, table: &Table, keys: &Keys, registry: &Registry) -> Result<Spec, FileError> {
    let Some(at) = table.span_of("leaf") else {
        return match keys.shaper {
            Shaper::Cake => built_in("cake"),
            Shaper::Htb | Shaper::Hfsc => built_in("fq_codel"),
        };
    };
    let leaf = read_leaf(document, &keys.leaf, at.clone(), registry)?;
    if keys.shaper == Shaper::Cake && leaf.discipline() != "cake" {
        return Err(document.error(
            at,
            format!(
                "with shaper = \"cake\" each subscriber has a cake, not `{}`",
                leaf.discipline()
            ),
            "write leaf = \"cake\" with its settings, or use htb or hfsc",
        ));
    }
    Ok(leaf)
}

/// Reads the discipline of a class from one line, which is at this place.
fn read_leaf(
    document: &Document,
    text: &str,
    at: Range<usize>,
    registry: &Registry,
) -> Result<Spec, FileError> {
    let leaf = with_few_flows(text, registry).map_err(|error| {
        let first = &error.problems()[0];
        let message = format!("`{text}`: {}", first.message);
        document.error(at.clone(), message, first.help.clone())
    })?;
    if leaf.is_given("bandwidth") {
        return Err(document.error(
            at,
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
