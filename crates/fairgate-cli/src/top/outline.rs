//! What the trees of a run are made of: their disciplines and classes, with what was set, from their
//! description.

use std::ops::RangeInclusive;

use fairgate_config::registry::PARENT;
use fairgate_config::{ClassSpec, Document, ParameterInfo, Registry, Spec, Unit, Value};
use fairgate_run_api::{Part, QUEUE, TreeStatus, TreesStatus, parts};

/// The trees of a run.
#[derive(Clone, Debug, Default)]
pub struct Trees {
    /// Their revision.
    pub revision: u64,
    /// The outline of each direction. It is `None` if this program does not know a discipline of it.
    pub directions: Vec<Option<Outline>>,
}

/// The tree of a direction.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// The root is the first.
    pub(crate) places: Vec<OutlineRow>,
    /// The classes that each of several workers has, if these divide the classes. Otherwise each has all.
    parts: Vec<Vec<u32>>,
}

/// A discipline, a class or both.
#[derive(Clone, Debug)]
pub(crate) struct OutlineRow {
    /// The path of classes, as in recordings: `1/30`. Classes for hosts have the range of their numbers
    /// instead: `1/100-199`.
    pub(crate) key: String,
    /// The place above.
    pub(crate) parent: Option<usize>,
    /// The number by which it is sorted: that of its class.
    pub(crate) number: u32,
    /// What a list of subscribers calls its class.
    pub(crate) name: Option<String>,
    pub(crate) kind: Kind,
    /// The discipline, if there is one.
    pub(crate) discipline: Option<&'static str>,
    /// What was set, as users write it: `rate 5mbit`.
    pub(crate) settings: Vec<String>,
    /// The rates that can be changed. Those that were set come first.
    pub(crate) rates: Vec<RateSetting>,
}

/// What a place is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It has a discipline.
    Discipline,
    /// A class above other classes. It has no discipline, and no figures of its own.
    Inner,
    /// Classes that are given to hosts: their numbers.
    Hosts(RangeInclusive<u32>),
}

/// A rate that can be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RateSetting {
    /// Whose it is: `class 30`, `tbf`.
    pub(crate) owner: String,
    /// Its name.
    pub(crate) name: &'static str,
    /// Its value, as users write it.
    pub(crate) value: String,
    /// The words of the change, up to the name: `class change 1/30`.
    pub(crate) words: String,
    /// Whether it was set. If not, it has its default.
    pub(crate) is_given: bool,
}

impl Trees {
    /// Reads the descriptions of the trees.
    pub fn read(trees: &TreesStatus, registry: &Registry) -> Trees {
        let outline = |tree: &TreeStatus| {
            let document = Document::parse_with("trees", &tree.queue, registry).ok()?;
            let mut outline = Outline {
                parts: tree.workers.clone().unwrap_or_default(),
                ..Outline::of(document.queue(QUEUE)?)
            };
            for place in &mut outline.places {
                let number = place.key.parse().ok();
                place.name = number.and_then(|number: u32| tree.names.get(&number).cloned());
            }
            Some(outline)
        };
        Trees {
            revision: trees.revision,
            directions: trees.directions.iter().map(outline).collect(),
        }
    }
}

impl Outline {
    /// Whether the place with this index is one of it.
    pub(crate) fn has(&self, index: usize) -> bool {
        index < self.places.len()
    }

    /// Returns the outline of a tree.
    pub fn of(spec: &Spec) -> Outline {
        Outline {
            places: parts(spec).iter().map(OutlineRow::of).collect(),
            parts: Vec::new(),
        }
    }

    /// Returns this tree as each of so many workers has it, or its part of it, below one place. Changes are
    /// those of the one tree.
    pub(crate) fn of_workers(&self, workers: usize, discipline: &'static str) -> Outline {
        let mut places = vec![OutlineRow {
            key: String::new(),
            parent: None,
            number: 0,
            name: None,
            kind: Kind::Discipline,
            discipline: Some(discipline),
            settings: Vec::new(),
            rates: self
                .places
                .first()
                .map(|root| root.rates.clone())
                .unwrap_or_default(),
        }];
        for worker in 1..=workers {
            // The index of each place of the tree in the result. One above another one comes first.
            let mut indices = vec![0; self.places.len()];
            for (index, place) in self.places.iter().enumerate() {
                if !self.has_part(worker - 1, &place.key) {
                    continue;
                }
                indices[index] = places.len();
                places.push(OutlineRow {
                    key: match place.key.is_empty() {
                        true => worker.to_string(),
                        false => format!("{worker}/{}", place.key),
                    },
                    parent: Some(place.parent.map_or(0, |parent| indices[parent])),
                    number: match place.parent {
                        None => worker as u32,
                        Some(_) => place.number,
                    },
                    ..place.clone()
                });
            }
        }
        Outline {
            places,
            parts: Vec::new(),
        }
    }

    /// Whether a worker, from 0 on, has the place with this key: the root, or what is in one of its classes.
    fn has_part(&self, worker: usize, key: &str) -> bool {
        let Some(classes) = self.parts.get(worker) else {
            return true;
        };
        let class = key.split('/').next().and_then(|class| class.parse().ok());
        class.is_none_or(|class: u32| classes.binary_search(&class).is_ok())
    }
}

impl OutlineRow {
    fn of(part: &Part<'_>) -> OutlineRow {
        let template = part.class.as_ref().and_then(|class| class.template);
        let mut place = OutlineRow {
            key: match template {
                Some(template) => hosts_key(&part.path, &template.classes()),
                None => part.path.clone(),
            },
            parent: part.above,
            number: part.class.as_ref().map_or(0, |class| class.minor),
            name: None,
            kind: match (template, part.tree) {
                (Some(template), _) => Kind::Hosts(template.classes()),
                (None, Some(_)) => Kind::Discipline,
                (None, None) => Kind::Inner,
            },
            discipline: part.tree.map(Spec::discipline),
            settings: part.tree.map(settings_of).unwrap_or_default(),
            rates: part
                .tree
                .map(|tree| rates_of(tree, &part.path))
                .unwrap_or_default(),
        };
        if let Some(class) = &part.class {
            place.add_class(class, &part.path);
        }
        place
    }

    /// Adds what was set of the class itself.
    fn add_class(&mut self, class: &ClassSpec<'_>, path: &str) {
        let of_class = class.parameters.iter().filter(|(info, _)| info.name != PARENT);
        let given = |(info, value): &&(ParameterInfo, Value)| info.default.as_ref() != Some(value);
        let shown = of_class
            .clone()
            .filter(given)
            .map(|(info, value)| setting(info, value));
        self.settings = shown.chain(std::mem::take(&mut self.settings)).collect();
        let owner = match &class.template {
            None => format!("class {}", class.minor),
            Some(template) => format!("each of {} classes for hosts", template.count),
        };
        let rates = of_class
            .filter(|(info, _)| is_rate(info.unit))
            .map(|(info, value)| RateSetting {
                owner: owner.clone(),
                name: info.name,
                value: info.unit.show(value),
                words: format!("class change {path}"),
                is_given: info.default.as_ref() != Some(value),
            });
        self.rates = rates.chain(std::mem::take(&mut self.rates)).collect();
        self.rates.sort_by_key(|rate| !rate.is_given);
    }
}

impl RateSetting {
    /// Returns the line that changes it. Without a value it gets its default.
    pub(crate) fn line(&self, value: &str) -> String {
        format!("{} {}={value}", self.words, self.name)
    }
}

/// Returns the path to classes for hosts: that of the first, with the range of their numbers.
fn hosts_key(path: &str, numbers: &RangeInclusive<u32>) -> String {
    let above = path
        .rsplit_once('/')
        .map_or(String::new(), |(above, _)| format!("{above}/"));
    format!("{above}{}-{}", numbers.start(), numbers.end())
}

fn is_rate(unit: Unit) -> bool {
    matches!(unit, Unit::Rate | Unit::Curve)
}

/// Returns what was set of a parameter. Rates are in Mbit, as the measured ones beside them, to 1 kbit. What
/// is edited has its exact value.
fn setting(info: &ParameterInfo, value: &Value) -> String {
    let value = info.unit.show(value);
    let shown = match is_rate(info.unit) {
        // A service curve has two, with a time between them.
        true => value.split(':').map(in_megabits).collect::<Vec<_>>().join(":"),
        false => value,
    };
    format!("{} {shown}", info.name)
}

/// Returns a rate as configuration files have it in Mbit, and any other word as it is.
fn in_megabits(word: &str) -> String {
    let number = word.strip_suffix("bit").map(|rate| match rate.as_bytes().last() {
        Some(b'k') => (&rate[..rate.len() - 1], 1e-3),
        Some(b'm') => (&rate[..rate.len() - 1], 1.0),
        Some(b'g') => (&rate[..rate.len() - 1], 1e3),
        Some(b't') => (&rate[..rate.len() - 1], 1e6),
        _ => (rate, 1e-6),
    });
    let megabits = number.and_then(|(number, factor)| Some(number.parse::<f64>().ok()? * factor));
    match megabits {
        None => word.to_owned(),
        Some(megabits) => {
            let decimals = if megabits < 0.001 { 6 } else { 3 };
            let text = format!("{megabits:.decimals$}");
            format!("{}mbit", text.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

fn settings_of(spec: &Spec) -> Vec<String> {
    let parameters = spec.parameters().into_iter();
    parameters
        .filter(|(info, _)| spec.is_given(info.name))
        .map(|(info, value)| setting(&info, &value))
        .collect()
}

fn rates_of(spec: &Spec, words: &str) -> Vec<RateSetting> {
    let path = if words.is_empty() { "root" } else { words };
    let rates = spec
        .parameters()
        .into_iter()
        .filter(|(info, _)| is_rate(info.unit));
    let mut rates: Vec<RateSetting> = rates
        .map(|(info, value)| RateSetting {
            owner: spec.discipline().to_owned(),
            name: info.name,
            value: info.unit.show(&value),
            words: format!("queue change {path}"),
            is_given: spec.is_given(info.name),
        })
        .collect();
    rates.sort_by_key(|rate| !rate.is_given);
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(outline: &Outline) -> Vec<(&str, Option<&str>)> {
        let above = |place: &OutlineRow| place.parent.map(|parent| &*outline.places[parent].key);
        let all = outline.places.iter();
        all.map(|place| (&*place.key, above(place))).collect()
    }

    const TREE: &str = "htb default=9 { 1 rate=1gbit { 9 rate=10mbit ceil=1gbit / drr { 1 / fifo }; \
        100 each=destination count=20 overflow=9 rate=2mbit / fq_codel flows=64 } }";

    #[test]
    fn rates_that_were_set_are_in_megabits() {
        let shown = |word: &str| in_megabits(word);
        assert_eq!(shown("18432731bit"), "18.433mbit");
        assert_eq!(shown("12500kbit"), "12.5mbit");
        assert_eq!([shown("2mbit"), shown("1gbit")], ["2mbit", "1000mbit"]);
        assert_eq!([shown("10kbit"), shown("8bit")], ["0.01mbit", "0.000008mbit"]);
        assert_eq!([shown("5ms"), shown("bit")], ["5ms", "bit"]);
        let spec =
            Spec::inline("hfsc default=1 { 1 ls=12500kbit rt=1gbit:5ms:64kbit / fifo limit=7 }").unwrap();
        let outline = Outline::of(&spec);
        assert_eq!(
            outline.places[1].settings,
            ["rt 1000mbit:5ms:0.064mbit", "ls 12.5mbit", "limit 7"]
        );
        // What is edited is exact.
        assert!(
            outline.places[1]
                .rates
                .iter()
                .any(|rate| rate.value == "12500kbit")
        );
    }

    #[test]
    fn classes_are_below_their_parents_and_hosts_together() {
        let outline = Outline::of(&Spec::inline(TREE).unwrap());
        assert_eq!(
            keys(&outline),
            [
                ("", None),
                ("1", Some("")),
                ("9", Some("1")),
                ("9/1", Some("9")),
                ("100-119", Some("1")),
            ]
        );
        let hosts = &outline.places[4];
        assert_eq!(hosts.kind, Kind::Hosts(100..=119));
        assert_eq!(hosts.settings, ["rate 2mbit", "flows 64"]);
        assert_eq!(hosts.rates[0].line("3mbit"), "class change 100 rate=3mbit");
        assert_eq!(outline.places[1].kind, Kind::Inner);
        let names: Vec<&str> = outline.places[2].rates.iter().map(|rate| rate.name).collect();
        assert_eq!(names, ["rate", "ceil", "burst_rate", "burst_threshold"]);
    }

    /// The lines that the screen sends are those of `fairgate class` and `fairgate queue`.
    #[test]
    fn every_rate_can_be_changed_by_its_line() {
        let text = "tbf rate=20mbit burst=5kb / htb default=2 { 1 rate=5mbit / cake bandwidth=4mbit; \
                    2 rate=6mbit / tbf rate=3mbit burst=4kb / fq_codel }";
        let spec = Spec::inline(text).unwrap();
        let outline = Outline::of(&spec);
        let mut changed = 0;
        for place in &outline.places {
            for rate in place.rates.iter().filter(|rate| rate.is_given) {
                let edited = spec.edited(&rate.line("2500kbit"), &Registry::builtin());
                let text = edited.unwrap().to_toml("tree");
                assert!(text.contains("2500kbit"), "{rate:?}: {text}");
                changed += 1;
            }
        }
        assert_eq!(changed, 5);
    }

    #[test]
    fn each_worker_has_the_tree() {
        let spec = Spec::inline("drr { 1 / fifo; 2 / codel }").unwrap();
        let outline = Outline::of(&spec).of_workers(2, "sharded");
        let all = keys(&outline);
        assert_eq!(all.len(), 7);
        assert_eq!(
            all[4..],
            [("2", Some("")), ("2/1", Some("2")), ("2/2", Some("2"))]
        );
    }

    #[test]
    fn workers_that_divide_classes_have_parts_of_the_tree() {
        let spec = Spec::inline("drr { 1 / fifo; 2 / tbf rate=1mbit burst=2kb / codel; 3 / fifo }").unwrap();
        let outline = Outline {
            parts: vec![vec![1], vec![2, 3]],
            ..Outline::of(&spec)
        };
        let outline = outline.of_workers(2, "sharded");
        let parents = [
            ("", None),
            ("1", Some("")),
            ("1/1", Some("1")),
            ("2", Some("")),
            ("2/2", Some("2")),
            ("2/2/1", Some("2/2")),
            ("2/3", Some("2")),
        ];
        assert_eq!(keys(&outline), parents);
    }
}
