//! A tree of disciplines in its compact form, and as the kernel builds it.
//!
//! The program sends what it has checked; the kernel checks every number again, because anyone who may set up
//! a network interface may send anything. What holds between parameters is checked by the disciplines
//! themselves, when they are built.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use fairgate::classify::Classifier;
use fairgate::registry::tree::{Described, leaves, size};
use fairgate::registry::{
    BuildError, Children, ClassSettings, Entry, ParameterInfo, Registry, Setting, Settings, Unit, Value,
};

use crate::form::{Form, Reader, Refused, refused, write_text};

/// The deepest tree: each discipline inside another one takes some of the kernel's stack.
pub(crate) const MOST_DEPTH: u8 = 8;

/// The most disciplines of a tree, with each class of a template.
const MOST_DISCIPLINES: u64 = 20_000;

/// The most memory of a tree, bytes, as estimated before it is built.
const MOST_MEMORY: u64 = 256 << 20;

/// The size of a discipline with its statistics, or of a class, bytes.
const NODE: u64 = 1000;

/// A discipline with its settings, and those inside it.
#[derive(Clone)]
pub struct Tree {
    entry: &'static dyn Entry,
    settings: Settings,
    /// One for each class that holds a discipline, in the order of the classes; or the inner discipline.
    children: Vec<Tree>,
}

impl Tree {
    /// Returns a tree, if its parts fit together.
    ///
    /// # Errors
    /// Names the discipline and the rule.
    pub fn new(entry: &'static dyn Entry, settings: Settings, children: Vec<Tree>) -> Result<Tree, Refused> {
        let tree = Tree {
            entry,
            settings,
            children,
        };
        let checked = tree.check();
        checked.map_err(|refused| refused.about(&format!("{}:", tree.name())).behind(0))?;
        Ok(tree)
    }

    /// Returns the tree of `fq_codel` with its defaults.
    pub fn default_tree() -> Tree {
        let registry = Registry::builtin();
        let entry = registry.entries("fq_codel").next();
        Tree {
            entry: entry.expect("fq_codel is built in"),
            settings: Settings::default(),
            children: Vec::new(),
        }
    }

    fn name(&self) -> &'static str {
        self.entry.about().name
    }

    /// Appends its compact form.
    pub fn write(&self, into: &mut Vec<u8>) {
        write_text(self.name(), into);
        self.entry.about().children.are_classes().write(into);
        write_settings(&self.entry.parameters(), &self.settings.own, into);
        (self.settings.classes.len() as u16).write(into);
        let parameters = self.entry.class_parameters();
        for class in &self.settings.classes {
            class.minor.write(into);
            class.template.write(into);
            write_settings(&parameters, &class.settings, into);
        }
        self.settings.classifier.write(into);
        (self.children.len() as u16).write(into);
        self.children.iter().for_each(|child| child.write(into));
    }

    /// Reads a tree of built-in disciplines back.
    ///
    /// # Errors
    /// If the bytes are not a valid tree.
    pub fn read(from: &mut Reader<'_>) -> Result<Tree, Refused> {
        let mut budget = Budget {
            registry: Registry::builtin(),
            disciplines: MOST_DISCIPLINES,
            memory: MOST_MEMORY,
        };
        read(from, &mut budget, 1, MOST_DEPTH).map_err(|refused| refused.behind(0))
    }

    /// Checks what no single value shows.
    fn check(&self) -> Result<(), Refused> {
        let about = self.entry.about();
        let classes = &self.settings.classes;
        if !about.children.are_classes() && !classes.is_empty() {
            return refused("it has no classes");
        }
        let mut next = 1;
        for class in classes {
            if u32::from(class.minor) < next {
                return refused("class numbers must ascend from 1");
            }
            if about.children == Children::Bands && u32::from(class.minor) != next {
                return refused("classes are numbered 1, 2, 3");
            }
            if let Some(template) = &class.template {
                let last = u32::from(template.class) + u32::from(template.count.saturating_sub(1));
                if !self.entry.takes_templates() || template.class != class.minor || last > u16::MAX.into() {
                    return refused("it has no such template");
                }
            }
            next = u32::from(*class.minors().end()) + 1;
        }
        if classes.is_empty() && about.children.are_classes() && about.children != Children::TreeOrNone {
            return refused("it needs classes");
        }
        let expected = match about.children {
            Children::None => 0..=0,
            Children::Inner | Children::InnerOrQueue => 0..=1,
            _ => {
                let leaves = self.alike().count();
                leaves..=leaves
            }
        };
        if !expected.contains(&self.children.len()) {
            return refused(format!(
                "{} disciplines in it are not its number",
                self.children.len()
            ));
        }
        if !self.entry.takes_filters() && has_places(&self.settings.classifier) {
            return refused("it takes no filters");
        }
        Ok(())
    }

    /// Returns how many classes each of its disciplines is held by.
    fn alike(&self) -> impl Iterator<Item = usize> {
        leaves(self.entry, &self.settings.classes).map(|class| class.minors().len())
    }

    /// What its disciplines read of headers. What is not listed here may read everything. A test offers each
    /// of these disciplines packets that differ in what it does not read.
    pub(crate) fn reads(&self) -> Reads {
        let own = match self.name() {
            // Filters, and classes of hosts.
            _ if has_places(&self.settings.classifier) || !self.settings.classes.is_empty() => {
                Reads::Everything
            }
            "fifo" | "pfifo_fast" | "tbf" => Reads::Nothing,
            "ared" | "codel" | "dualpi2" | "pie" | "red" => Reads::TrafficClass,
            "choke" | "drr" | "fq" | "fq_codel" | "fq_nagle" | "fq_pie" | "frr" | "gfq" | "hhf" | "msfc"
            | "pfq" | "qfq" | "qfq_plus" | "s_kps" | "scfq" | "sfb" | "sfq" | "wf2q_plus" | "wfq" => {
                Reads::Flow
            }
            _ => Reads::Everything,
        };
        self.children.iter().map(Tree::reads).fold(own, Reads::max)
    }

    /// Returns the largest number of classes that a discipline has.
    pub(crate) fn widest(&self) -> usize {
        let own = self.settings.classes.iter().map(|class| class.minors().len());
        let inner = self.children.iter().map(Tree::widest);
        inner.fold(own.sum(), usize::max)
    }
}

impl Described for Tree {
    fn entry(&self) -> &'static dyn Entry {
        self.entry
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn children(&self) -> &[Tree] {
        &self.children
    }
}

impl From<BuildError> for Refused {
    fn from(error: BuildError) -> Refused {
        Refused::from(error.source)
            .about(&format!("{}:", error.discipline))
            .behind(error.node)
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.name())
            .field("settings", &self.settings)
            .field("children", &self.children)
            .finish()
    }
}

impl PartialEq for Tree {
    fn eq(&self, other: &Tree) -> bool {
        self.name() == other.name() && self.settings == other.settings && self.children == other.children
    }
}

/// What a tree reads of a packet's headers. Each kind includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reads {
    Nothing,
    /// DSCP and ECN.
    TrafficClass,
    /// Also the hash of the flow.
    Flow,
    Everything,
}

/// Whether it assigns packets to classes. The handle alone does not.
fn has_places(classifier: &Classifier) -> bool {
    classifier.default.is_some() || !classifier.filters.is_empty()
}

/// What a tree may take.
struct Budget {
    registry: Registry,
    disciplines: u64,
    memory: u64,
}

impl Budget {
    /// Takes `alike` disciplines with these settings.
    fn spend(&mut self, entry: &'static dyn Entry, settings: &Settings, alike: u64) -> Result<(), Refused> {
        let memory = entry.memory(settings).saturating_add(NODE).saturating_mul(alike);
        match (
            self.disciplines.checked_sub(alike),
            self.memory.checked_sub(memory),
        ) {
            (Some(disciplines), Some(memory)) => {
                self.disciplines = disciplines;
                self.memory = memory;
                Ok(())
            }
            (None, _) => refused(format!("the tree has more than {MOST_DISCIPLINES} disciplines")),
            (_, None) => refused(format!(
                "{}: the tree needs more than {} MiB",
                entry.about().name,
                MOST_MEMORY >> 20
            )),
        }
    }
}

/// Reads a tree of which there will be `alike`, in `depth` levels at most.
fn read(from: &mut Reader<'_>, budget: &mut Budget, alike: u64, depth: u8) -> Result<Tree, Refused> {
    let Some(below) = depth.checked_sub(1) else {
        return refused(format!("the tree is deeper than {MOST_DEPTH} disciplines"));
    };
    let name = from.text()?;
    let has_classes = bool::read(from)?;
    let mut entries = budget.registry.entries(name);
    let Some(entry) = entries.find(|entry| entry.about().children.are_classes() == has_classes) else {
        return refused("there is no such discipline");
    };
    drop(entries);
    let of_entry = |refused: Refused| refused.about(&format!("{}:", entry.about().name));
    let settings = read_all_settings(entry, from).map_err(of_entry)?;
    // Sizes that depend on the settings are computed from settings that fit the parameters.
    budget.spend(entry, &settings, alike)?;
    let count = u16::read(from)?;
    let mut tree = Tree {
        entry,
        settings,
        children: Vec::new(),
    };
    let of_class: Vec<u64> = match has_classes {
        true => tree.alike().map(|classes| classes as u64).collect(),
        false => Vec::from([1]),
    };
    if usize::from(count) > of_class.len() {
        return refused(format!("{}: more disciplines than classes", entry.about().name));
    }
    for times in of_class.into_iter().take(count.into()) {
        let child = read(from, budget, alike.saturating_mul(times), below);
        let before = size(&tree);
        let inside = |refused: Refused| refused.behind(before);
        let child = child.map_err(inside)?;
        tree.children.push(child);
    }
    tree.check().map_err(of_entry)?;
    Ok(tree)
}

fn read_all_settings(entry: &'static dyn Entry, from: &mut Reader<'_>) -> Result<Settings, Refused> {
    let own = read_settings(&entry.parameters(), from)?;
    let parameters = entry.class_parameters();
    let mut classes = Vec::new();
    for _ in 0..u16::read(from)? {
        classes.push(ClassSettings {
            minor: Form::read(from)?,
            template: Form::read(from)?,
            settings: read_settings(&parameters, from)?,
        });
    }
    Ok(Settings {
        own,
        classes,
        classifier: Form::read(from)?,
    })
}

fn write_settings(parameters: &[ParameterInfo], settings: &[Setting], into: &mut Vec<u8>) {
    (settings.len() as u16).write(into);
    for (index, value) in settings {
        write_text(parameters[*index].name, into);
        write_value(value, into);
    }
}

/// Reads settings of `parameters`: each at most once, all that are required, in the order of the parameters.
fn read_settings(parameters: &[ParameterInfo], from: &mut Reader<'_>) -> Result<Vec<Setting>, Refused> {
    let mut settings: Vec<Setting> = Vec::new();
    for _ in 0..u16::read(from)? {
        let name = from.text()?;
        let Some(index) = parameters.iter().position(|info| info.name == name) else {
            return refused("it has no such parameter");
        };
        if settings.iter().any(|(other, _)| *other == index) {
            return refused(format!("`{}` is given twice", parameters[index].name));
        }
        let info = &parameters[index];
        let value = read_value(info, from).map_err(|refused| refused.about(&format!("`{}`", info.name)))?;
        settings.push((index, value));
    }
    let is_missing = |(index, info): &(usize, &ParameterInfo)| {
        info.default.is_none() && !settings.iter().any(|(given, _)| given == index)
    };
    if let Some((_, info)) = parameters.iter().enumerate().find(is_missing) {
        return refused(format!("`{}` is missing", info.name));
    }
    settings.sort_unstable_by_key(|(index, _)| *index);
    Ok(settings)
}

fn write_value(value: &Value, into: &mut Vec<u8>) {
    match value {
        Value::Number(number) => {
            0u8.write(into);
            number.write(into);
        }
        Value::Flag(flag) => {
            1u8.write(into);
            flag.write(into);
        }
        Value::Word(word) => {
            2u8.write(into);
            write_text(word, into);
        }
        Value::Text(text) => {
            3u8.write(into);
            write_text(text, into);
        }
        Value::List(numbers) => {
            4u8.write(into);
            numbers.write(into);
        }
        Value::None => 5u8.write(into),
        Value::Texts(texts) => {
            6u8.write(into);
            texts.write(into);
        }
    }
}

/// Reads a value that fits the parameter.
fn read_value(info: &ParameterInfo, from: &mut Reader<'_>) -> Result<Value, Refused> {
    let value = match u8::read(from)? {
        0 => Value::Number(Form::read(from)?),
        1 => Value::Flag(Form::read(from)?),
        2 => {
            let given = from.text()?;
            let Unit::Choice(words) = info.unit else {
                return refused("is not a word");
            };
            match words.iter().find(|word| **word == given) {
                Some(word) => Value::Word(word),
                None => return refused("does not have this word"),
            }
        }
        3 => Value::Text(String::read(from)?),
        4 => Value::List(Form::read(from)?),
        5 => Value::None,
        6 => Value::Texts(Form::read(from)?),
        other => return refused(format!("has no kind of value {other}")),
    };
    let allows = |numbers: &[u64]| {
        numbers
            .iter()
            .all(|number| info.unit.allows(*number, &info.range))
    };
    let fits = match (&value, info.unit) {
        (Value::None, _) => info.optional,
        (Value::Flag(_), Unit::Flag)
        | (Value::Word(_), Unit::Choice(_))
        | (Value::Text(_), Unit::Text(_)) => true,
        (Value::List(numbers), Unit::List(length)) => numbers.len() == length && allows(numbers),
        (Value::List(numbers), Unit::Numbers(most) | Unit::SignedNumbers(most)) => {
            numbers.len() <= most && allows(numbers)
        }
        // The discipline checks the three numbers.
        (Value::List(numbers), Unit::Curve) => numbers.len() == 3,
        (
            Value::Number(number),
            Unit::Count(_) | Unit::Signed(..) | Unit::Bytes | Unit::Time | Unit::Rate | Unit::Probability,
        ) => allows(&[*number]),
        _ => false,
    };
    match fits {
        true => Ok(value),
        false => refused(format!("is outside of {}", info.allowed())),
    }
}

/// The version of the compact form.
const VERSION: u8 = 1;

/// The number of slots without a plan.
pub const DEFAULT_SLOTS: u32 = 10_240;

/// The most slots.
pub const MOST_SLOTS: u32 = 1 << 20;

/// What the program sends: a tree, and how the qdisc runs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The number of packets that may be queued, 1 to [`MOST_SLOTS`].
    pub slots: u32,
    /// Whether merged packets (GSO) are cut before they are queued.
    pub cuts: bool,
    /// The tree.
    pub tree: Tree,
}

impl Plan {
    /// Returns the plan of a qdisc to which nothing was sent.
    pub fn default_plan() -> Plan {
        Plan {
            slots: DEFAULT_SLOTS,
            cuts: false,
            tree: Tree::default_tree(),
        }
    }

    /// Returns its compact form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        VERSION.write(&mut bytes);
        self.slots.write(&mut bytes);
        self.cuts.write(&mut bytes);
        self.tree.write(&mut bytes);
        bytes
    }

    /// Reads a plan back, and checks it.
    ///
    /// # Errors
    /// If the bytes are not a valid plan.
    pub fn from_bytes(bytes: &[u8]) -> Result<Plan, Refused> {
        let mut from = Reader::new(bytes);
        let version = u8::read(&mut from)?;
        if version != VERSION {
            return refused(format!(
                "form {version} is not {VERSION}: update program and module together"
            ));
        }
        let plan = Plan {
            slots: Form::read(&mut from)?,
            cuts: Form::read(&mut from)?,
            tree: Tree::read(&mut from)?,
        };
        if !(1..=MOST_SLOTS).contains(&plan.slots) {
            return refused(format!("the number of slots must be 1 to {MOST_SLOTS}"));
        }
        match from.is_at_end() {
            true => Ok(plan),
            false => refused("bytes follow the tree"),
        }
    }
}
