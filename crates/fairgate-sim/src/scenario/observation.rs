//! Variables of disciplines that are sampled over time.

use std::collections::{BTreeMap, BTreeSet};

use fairgate::{ClassId, Discipline};
use fairgate_config::{Spec, suggest};

use crate::classes::{self, Path};
use crate::scenario::{Mistake, Scenario, ScenarioError, ScenarioPart};

/// The maximum number of names that an error shows.
const MOST_NAMED: usize = 20;

/// A variable of a discipline that is sampled at the end of each interval.
///
/// ```
/// use std::time::Duration;
/// use fairgate::Rate;
/// use fairgate_config::Spec;
/// use fairgate_sim::{Flow, Link, Observation, Scenario, Simulation, Tcp};
///
/// let mut scenario = Scenario::new(Duration::from_secs(10));
/// let (home, router) = (scenario.node("home"), scenario.node("router"));
/// let link = Link::new(home, router, Rate::mbit(20), Duration::from_millis(5));
/// scenario.links.push(link.with_queue_b(Spec::inline("fq_codel").unwrap().into()));
/// let downloads = Flow::new("downloads", router, home, Tcp::bulk(Default::default()));
/// scenario.flows.push(Flow { count: 4, ..downloads });
/// scenario.observations.push(Observation::new("flows", "router->home", "old_flows_len"));
/// let results = Simulation::new(&scenario)?.run()?;
/// let observed = &results.observations[0];
/// assert_eq!(observed.unit, "flows");
/// assert!(observed.most > 1.0);
/// # Ok::<(), fairgate_sim::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The name in the results. No other observation has it.
    pub name: String,
    /// The name of the interface in the results: `router->home`.
    pub interface: String,
    /// The class: its number, `20`; numbers from the root down, `20/1`; or as in tc the handle of its
    /// discipline and its number, both hexadecimal, `1:14`. `None` stands for the root.
    pub class: Option<String>,
    /// The name of the variable, as the discipline shows it.
    pub variable: String,
}

/// An observation whose names were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observed {
    /// The position of the interface in the order of the results.
    pub(crate) interface: usize,
    /// The class.
    pub(crate) path: Path,
}

impl Observation {
    /// Creates an observation of a variable of the root discipline.
    pub fn new(
        name: impl Into<String>,
        interface: impl Into<String>,
        variable: impl Into<String>,
    ) -> Observation {
        Observation {
            name: name.into(),
            interface: interface.into(),
            class: None,
            variable: variable.into(),
        }
    }

    /// Returns the observation for a class.
    pub fn of_class(mut self, class: impl Into<String>) -> Observation {
        self.class = Some(class.into());
        self
    }
}

impl Scenario {
    /// Finds what is observed. Builds the trees of these interfaces, to see their classes and variables.
    ///
    /// # Errors
    /// Reports the first name that does not exist, or occurs twice.
    pub(crate) fn observed_places(&self) -> Result<Vec<Observed>, ScenarioError> {
        if self.observations.is_empty() {
            return Ok(Vec::new());
        }
        let names = self.interface_names();
        let index: BTreeMap<&str, usize> = (names.iter().map(String::as_str)).zip(0..).collect();
        let mut taken = BTreeSet::new();
        let mut places = Vec::with_capacity(self.observations.len());
        for (number, observation) in self.observations.iter().enumerate() {
            let of_this = |mistake: Mistake| mistake.of(ScenarioPart::Observation(number));
            if !taken.insert(&observation.name) {
                let what = format!(
                    "there are two observations with the name `{}`; give each a different name",
                    observation.name
                );
                return Err(of_this(Mistake::new("name", what)));
            }
            places.push(self.place(observation, &names, &index).map_err(of_this)?);
        }
        Ok(places)
    }

    fn place(
        &self,
        observation: &Observation,
        names: &[String],
        index: &BTreeMap<&str, usize>,
    ) -> Result<Observed, Mistake> {
        let name = observation.interface.as_str();
        let Some(&interface) = index.get(name) else {
            return Err(no_interface(name, names));
        };
        let queue = self.interface_queue(interface);
        let tree = queue
            .build(0)
            .map_err(|error| Mistake::new("interface", format!("{error}; change the queue of `{name}`")))?;
        let path = match &observation.class {
            None => Path::default(),
            Some(text) => find_class(text, name, tree.as_ref(), queue.spec())
                .map_err(|what| Mistake::new("class", what))?,
        };
        let known = classes::variables(tree.as_ref(), &path);
        if !known.contains(&observation.variable) {
            let place = match &observation.class {
                None => format!("`{}` at {name}", tree.name()),
                Some(class) => format!("class {class} at {name}"),
            };
            let what = format!(
                "{place} has no variable `{}`; {}",
                observation.variable,
                remedy(&observation.variable, "its variables", &known)
            );
            return Err(Mistake::new("variable", what));
        }
        Ok(Observed { interface, path })
    }
}

/// Returns the mistake that there is no interface with this name.
pub(super) fn no_interface(name: &str, names: &[String]) -> Mistake {
    let known = remedy(name, "interfaces", names);
    Mistake::new("interface", format!("there is no interface `{name}`; {known}"))
}

/// Returns the path to the class that the text names, or what is wrong.
fn find_class(
    text: &str,
    interface: &str,
    tree: &dyn Discipline,
    spec: Option<&Spec>,
) -> Result<Path, String> {
    let known = classes::paths(tree);
    let path = match text.split_once(':') {
        None => Path::parse(text),
        Some((major, minor)) => match number(major).zip(number(minor)) {
            None => None,
            Some((major, minor)) => {
                let found = with_handle(ClassId::new(major, minor), spec);
                Some(found.ok_or_else(|| {
                    format!(
                        "no discipline at {interface} has the handle {major:x}; write the numbers of \
                         `[[queue.NAME.class]]`: \"20\", or \"20/1\" for class 1 in the tree of class 20"
                    )
                })?)
            }
        },
    };
    let Some(path) = path else {
        return Err(format!(
            "`{text}` is not a class; write its number, such as \"20\" or \"20/1\", or as in tc the handle \
             of its discipline and its number, such as \"1:14\""
        ));
    };
    if !known.contains(&path) {
        let names: Vec<String> = known.iter().map(Path::to_string).collect();
        let remedy = match names.is_empty() {
            true => "it has no classes: remove this key".to_owned(),
            false => remedy(&path.to_string(), "its classes", &names),
        };
        return Err(format!("`{interface}` has no class {path}; {remedy}"));
    }
    Ok(path)
}

/// Reads a hexadecimal number of 16 bits.
fn number(digits: &str) -> Option<u16> {
    // `from_str_radix` accepts a sign.
    let has_digits_only = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    has_digits_only
        .then(|| u16::from_str_radix(digits, 16).ok())
        .flatten()
}

/// Returns the path to a class of the discipline with this handle.
fn with_handle(class: ClassId, spec: Option<&Spec>) -> Option<Path> {
    let spec = spec?;
    if spec.classifier().handle == class.major() {
        return Some(Path::default().below(class.minor().into()));
    }
    spec.classes().iter().find_map(|inner| {
        let below = with_handle(class, inner.tree)?;
        Some(below.above(inner.minor))
    })
}

/// Returns a remedy for an unknown name.
fn remedy(word: &str, what: &str, known: &[String]) -> String {
    let shown = &known[..known.len().min(MOST_NAMED)];
    let remedy = suggest::remedy(word, what, shown.iter().map(String::as_str));
    match known.len() - shown.len() {
        0 => remedy,
        more => format!("{remedy} and {more} more"),
    }
}
