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

use crate::form::{Form, Reader, Refused, read_short, refused, write_short, write_text};

/// The deepest tree: each discipline inside another one takes some of the kernel's stack.
pub(crate) const MOST_DEPTH: u8 = 8;

/// The most disciplines of a tree, with each class of a template.
const MOST_DISCIPLINES: u64 = 20_000;

/// The highest number of a class: `tc` and netlink have 16 bits for it.
const MOST_CLASS: u32 = 0xffff;

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

    /// Appends its compact form. Thousands of classes are alike: one that has the parameters of the class
    /// before it only has their values, and a discipline like the one before it is not repeated.
    pub fn write(&self, into: &mut Vec<u8>) {
        write_text(self.name(), into);
        self.entry.about().children.are_classes().write(into);
        write_names(&self.entry.parameters(), &self.settings.own, into);
        write_values(&self.settings.own, into);
        (self.settings.classes.len() as u16).write(into);
        let parameters = self.entry.class_parameters();
        let mut before: Option<&ClassSettings> = None;
        for class in &self.settings.classes {
            class.minor.write(into);
            class.template.write(into);
            let is_like_it = before.is_some_and(|before| has_same_names(&before.settings, &class.settings));
            is_like_it.write(into);
            if !is_like_it {
                write_names(&parameters, &class.settings, into);
            }
            write_values(&class.settings, into);
            before = Some(class);
        }
        self.settings.classifier.write(into);
        (self.children.len() as u16).write(into);
        let mut before: Option<&Tree> = None;
        for child in &self.children {
            let is_like_it = before == Some(child);
            is_like_it.write(into);
            if !is_like_it {
                child.write(into);
            }
            before = Some(child);
        }
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
        let mut tree = read_alone(from, &mut budget, 1)?;
        read_children(&mut tree, from, &mut budget, 1, MOST_DEPTH)?;
        Ok(tree)
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
            if class.minor < next {
                return refused("class numbers must ascend from 1");
            }
            if about.children == Children::Bands && class.minor != next {
                return refused("classes are numbered 1, 2, 3");
            }
            if let Some(template) = &class.template
                && (!self.entry.takes_templates() || template.class != class.minor)
            {
                return refused("it has no such template");
            }
            let last = *class.minors().end();
            if last > MOST_CLASS {
                return refused("class numbers end at 65535 in the kernel");
            }
            next = last + 1;
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
        leaves(self.entry, &self.settings.classes).map(|class| class.count())
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
        let own = self.settings.classes.iter().map(|class| class.count());
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

/// Reads a discipline of which there will be `alike`, without those inside it.
fn read_alone(from: &mut Reader<'_>, budget: &mut Budget, alike: u64) -> Result<Tree, Refused> {
    let tree = read_itself(from, &budget.registry)?;
    // Sizes that depend on the settings are computed from settings that fit the parameters.
    budget.spend(tree.entry, &tree.settings, alike).map_err(at_root)?;
    Ok(tree)
}

// Not inlined: its variables are large, and are not on the stack while sizes are computed.
#[inline(never)]
fn read_itself(from: &mut Reader<'_>, registry: &Registry) -> Result<Tree, Refused> {
    let name = from.text()?;
    let has_classes = bool::read(from)?;
    let mut entries = registry.entries(name);
    let Some(entry) = entries.find(|entry| entry.about().children.are_classes() == has_classes) else {
        return refused("there is no such discipline");
    };
    let settings = read_all_settings(entry, from).map_err(|refused| of_discipline(refused, entry))?;
    Ok(Tree {
        entry,
        settings,
        children: Vec::new(),
    })
}

/// Reads the disciplines inside one of which there will be `alike`, in `depth` levels with its own at most,
/// and checks it. Its variables are small: the kernel's stack has one of them for each level.
fn read_children(
    tree: &mut Tree,
    from: &mut Reader<'_>,
    budget: &mut Budget,
    alike: u64,
    depth: u8,
) -> Result<(), Refused> {
    let classes = classes_of_children(tree, from)?;
    // A discipline like the one before it is read again from the same bytes, and counts in the budget again.
    let mut repeated = None;
    let mut before = 1;
    for classes in classes {
        let inside = |refused: Refused| refused.behind(before);
        if depth == 1 {
            let refused = Refused::new(format!("the tree is deeper than {MOST_DEPTH} disciplines"));
            return Err(inside(refused));
        }
        let is_like_it = bool::read(from)?;
        let mut again = match (is_like_it, repeated) {
            (false, _) => *from,
            (true, Some(begin)) => begin,
            (true, None) => return refused("the first discipline is like none before it"),
        };
        repeated = Some(again);
        let alike = alike.saturating_mul(classes);
        tree.children
            .push(read_alone(&mut again, budget, alike).map_err(inside)?);
        let child = tree.children.last_mut().expect("it was pushed");
        read_children(child, &mut again, budget, alike, depth - 1).map_err(inside)?;
        before += size(child);
        if !is_like_it {
            *from = again;
        }
    }
    tree.check().map_err(|refused| of_discipline(refused, tree.entry))
}

/// Reads the number of disciplines inside one, and returns how many classes hold each.
#[inline(never)]
fn classes_of_children(tree: &Tree, from: &mut Reader<'_>) -> Result<Vec<u64>, Refused> {
    let count = usize::from(u16::read(from)?);
    let mut of_class: Vec<u64> = match tree.entry.about().children.are_classes() {
        true => tree.alike().map(|classes| classes as u64).collect(),
        false => Vec::from([1]),
    };
    if count > of_class.len() {
        let refused = Refused::new("more disciplines than classes");
        return Err(of_discipline(refused, tree.entry));
    }
    of_class.truncate(count);
    Ok(of_class)
}

/// Says that it is about this discipline.
fn of_discipline(refused: Refused, entry: &'static dyn Entry) -> Refused {
    at_root(refused.about(&format!("{}:", entry.about().name)))
}

/// Counts from this discipline on.
fn at_root(refused: Refused) -> Refused {
    refused.behind(0)
}

fn read_all_settings(entry: &'static dyn Entry, from: &mut Reader<'_>) -> Result<Settings, Refused> {
    let parameters = entry.parameters();
    let names = read_names(&parameters, from)?;
    let own = read_values(&parameters, &names, from)?;
    let parameters = entry.class_parameters();
    let (mut classes, mut names) = (Vec::new(), None);
    for _ in 0..u16::read(from)? {
        let (minor, template) = (Form::read(from)?, Form::read(from)?);
        let is_like_it = bool::read(from)?;
        let names = match &mut names {
            Some(names) if is_like_it => names,
            None if is_like_it => return refused("the first class is like none before it"),
            names => names.insert(read_names(&parameters, from)?),
        };
        classes.push(ClassSettings {
            minor,
            template,
            settings: read_values(&parameters, names, from)?,
        });
    }
    Ok(Settings {
        own,
        classes,
        classifier: Form::read(from)?,
    })
}

fn has_same_names(one: &[Setting], other: &[Setting]) -> bool {
    let names = one.iter().map(|(index, _)| index);
    names.eq(other.iter().map(|(index, _)| index))
}

fn write_names(parameters: &[ParameterInfo], settings: &[Setting], into: &mut Vec<u8>) {
    (settings.len() as u16).write(into);
    for (index, _) in settings {
        write_text(parameters[*index].name, into);
    }
}

fn write_values(settings: &[Setting], into: &mut Vec<u8>) {
    settings.iter().for_each(|(_, value)| write_value(value, into));
}

/// Reads the names of some of `parameters`: each at most once, and all that are required. Returns their
/// places.
fn read_names(parameters: &[ParameterInfo], from: &mut Reader<'_>) -> Result<Vec<usize>, Refused> {
    let mut names: Vec<usize> = Vec::new();
    for _ in 0..u16::read(from)? {
        let name = from.text()?;
        let Some(index) = parameters.iter().position(|info| info.name == name) else {
            return refused("it has no such parameter");
        };
        if names.contains(&index) {
            return refused(format!("`{name}` is given twice"));
        }
        names.push(index);
    }
    let is_missing =
        |(index, info): &(usize, &ParameterInfo)| info.default.is_none() && !names.contains(index);
    if let Some((_, info)) = parameters.iter().enumerate().find(is_missing) {
        return refused(format!("`{}` is missing", info.name));
    }
    Ok(names)
}

/// Reads the values of the parameters at these places. Returns them in the order of the parameters.
fn read_values(
    parameters: &[ParameterInfo],
    names: &[usize],
    from: &mut Reader<'_>,
) -> Result<Vec<Setting>, Refused> {
    let mut settings: Vec<Setting> = Vec::with_capacity(names.len());
    for index in names {
        let info = &parameters[*index];
        let value = read_value(info, from).map_err(|refused| refused.about(&format!("`{}`", info.name)))?;
        settings.push((*index, value));
    }
    settings.sort_unstable_by_key(|(index, _)| *index);
    Ok(settings)
}

fn write_value(value: &Value, into: &mut Vec<u8>) {
    match value {
        Value::Number(number) => {
            0u8.write(into);
            write_short(*number, into);
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
        0 => Value::Number(read_short(from)?),
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
const VERSION: u8 = 3;

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
