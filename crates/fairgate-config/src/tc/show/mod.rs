//! A description as `tc -s -d qdisc show` and `tc class show` would name it: kinds, handles, parents and options in their words and
//! units, and what a running discipline knows in the words of its statistics. The numbers of packets that all of them have are the
//! caller's.
//!
//! tc is that of iproute2 6.1, which the tests hold it against.
//!
//! A qdisc without a handle of its own gets one as from the kernel, from 8001: on. A discipline that tc has no name for keeps its own,
//! and its parameters are shown as they are written here.

mod detail;
mod state;
#[cfg(test)]
mod tests;

use fairgate::ClassId;

pub use super::amount::Amount;
pub use detail::{Detail, When};
pub(super) use detail::{bytes, in_cells, link_layer, packets, plain, rate, size, ticks};
pub use state::{Row, State};
pub(super) use state::{Running, row};

use super::kinds::{self, Children, Kind, Show};
use crate::registry::Value;
use crate::registry::{PARENT, ParameterInfo, Setting};
use crate::spec::{ClassSpec, INNER, Spec};

/// A qdisc, or a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// tc's kind.
    pub kind: &'static str,
    /// Whether it is a class.
    pub is_class: bool,
    /// The handle of a qdisc, with minor number 0, or the class.
    pub id: ClassId,
    /// `None` for the root, and for classes that the kernel calls its children.
    pub parent: Option<ClassId>,
    /// Of a class, the handle of what it holds, if it has no classes below it.
    pub leaf: Option<u16>,
    /// Options in tc's order, those of `-d` among them.
    pub options: Vec<Detail>,
    /// The numbers of the classes on the way from the root.
    pub path: Vec<u16>,
}

impl Shown {
    /// Its options with the numbers that it knows while it runs, as tc shows them with `-d` or without.
    pub fn options(&self, state: &State, in_detail: bool) -> Vec<Detail> {
        let shown = self.options.iter().filter(|option| option.when.is_now(in_detail));
        shown.filter_map(|option| option.resolved(state)).collect()
    }

    /// The lines that tc shows of its statistics below those that all have.
    pub fn statistics(&self, state: &State) -> Vec<Row> {
        let running = Running { shown: self, state };
        kinds::find(self.kind).map_or(Vec::new(), |kind| match self.is_class {
            true => (kind.look.class_statistics)(&running),
            false => (kind.look.statistics)(&running),
        })
    }
}

/// A discipline that is shown.
pub(super) struct Seen<'s> {
    spec: &'s Spec,
    parameters: Vec<(ParameterInfo, Value)>,
}

impl<'s> Seen<'s> {
    fn new(spec: &'s Spec) -> Seen<'s> {
        let parameters = spec.parameters();
        Seen { spec, parameters }
    }

    /// The parameter `name`, if it is a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        match value(&self.parameters, name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The parameter `name`, if it is a word.
    pub(super) fn word(&self, name: &str) -> Option<&'static str> {
        match value(&self.parameters, name)? {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Whether the parameter `name` was given.
    pub(super) fn is_given(&self, name: &str) -> bool {
        let place = self.parameters.iter().position(|(info, _)| info.name == name);
        place.is_some_and(|place| self.spec.settings.own.iter().any(|(other, _)| *other == place))
    }

    /// Whether the parameter `name` is this word.
    pub(super) fn is_word(&self, name: &str, word: &str) -> bool {
        self.word(name) == Some(word)
    }

    fn is_none(&self, name: &str) -> bool {
        value(&self.parameters, name) == Some(&Value::None)
    }

    pub(super) fn classes(&self) -> Vec<ClassSpec<'s>> {
        self.spec.classes()
    }

    pub(super) fn number_of_classes(&self, word: &'static str) -> Detail {
        Detail::new(word, plain(self.classes().len() as u64))
    }

    pub(super) fn default_class(&self) -> Option<u16> {
        self.spec.classifier().default
    }

    /// The discipline's own parameters, with the rules for those that are left out.
    pub(super) fn config<C: 'static>(&self) -> C {
        let config = self.spec.entry.config(&self.spec.settings);
        let config = config.expect("the description was checked");
        *config.downcast().expect("a kind knows its discipline")
    }

    /// tc's kind: the fifos differ by their parameters.
    fn kind(&self) -> Option<&'static Kind> {
        let kind = match self.spec.discipline() {
            "fifo" => {
                let (is_by_packets, is_by_bytes) = (!self.is_none("limit"), !self.is_none("limit_bytes"));
                match (is_by_packets, is_by_bytes, self.is_word("drop", "tail")) {
                    (true, false, true) => kinds::find("pfifo"),
                    (false, true, true) => kinds::find("bfifo"),
                    (true, false, false) => kinds::find("pfifo_head_drop"),
                    _ => None,
                }
            }
            name => kinds::of_discipline(name),
        };
        let has_classes = !self.classes().is_empty();
        kind.filter(|kind| has_classes || !matches!(kind.children, Children::Classes { .. }))
    }

    fn options(&self, kind: Option<&Kind>) -> Vec<Detail> {
        let Some(kind) = kind else {
            return own_details(self.spec, &self.parameters);
        };
        let mut details = details(kind.look.options.iter().copied().flatten(), &self.parameters);
        (kind.look.complete)(self, &mut details);
        details
    }

    fn class_options(&self, kind: Option<&Kind>, class: &ClassSpec<'_>) -> Vec<Detail> {
        let Some(kind) = kind else {
            return class.parameters.iter().filter_map(own_detail).collect();
        };
        let mut details = details(kind.look.class_options, &class.parameters);
        (kind.look.complete_class)(self, class, &mut details);
        details
    }
}

fn value<'p>(parameters: &'p [(ParameterInfo, Value)], name: &str) -> Option<&'p Value> {
    let parameter = parameters.iter().find(|(info, _)| info.name == name);
    parameter.map(|(_, value)| value)
}

/// The qdiscs of a tree, the root first, and their classes.
pub fn show(spec: &Spec) -> (Vec<Shown>, Vec<Shown>) {
    let mut shown = Showing {
        qdiscs: Vec::new(),
        classes: Vec::new(),
        next_handle: 0x8001,
    };
    shown.qdisc(spec, None, &mut Vec::new());
    (shown.qdiscs, shown.classes)
}

struct Showing {
    qdiscs: Vec<Shown>,
    classes: Vec<Shown>,
    next_handle: u16,
}

impl Showing {
    /// Shows a discipline with all that it holds, and tells its handle.
    fn qdisc(&mut self, spec: &Spec, parent: Option<ClassId>, path: &mut Vec<u16>) -> u16 {
        let handle = match spec.classifier().handle {
            0 => {
                self.next_handle = self.next_handle.wrapping_add(1);
                self.next_handle.wrapping_sub(1)
            }
            given => given,
        };
        let seen = Seen::new(spec);
        let kind = seen.kind();
        let name = kind.map_or(spec.discipline(), Kind::name);
        self.qdiscs.push(Shown {
            kind: name,
            is_class: false,
            id: ClassId::new(handle, 0),
            parent,
            leaf: None,
            options: seen.options(kind),
            path: path.clone(),
        });
        let own = ClassId::new(handle, 0);
        if kind.is_some_and(|kind| kind.look.is_its_own_class) {
            self.classes.push(Shown {
                kind: name,
                is_class: true,
                id: own,
                parent: None,
                leaf: None,
                options: Vec::new(),
                path: path.clone(),
            });
        }
        let top = (!kind.is_some_and(|kind| kind.look.has_classes_at_root)).then_some(own);
        for class in spec.classes() {
            let id = ClassId::new(handle, class.minor);
            path.push(class.minor);
            let place = self.classes.len();
            let leaf = class.tree.map(|tree| self.qdisc(tree, Some(id), path));
            let above = match value(&class.parameters, PARENT) {
                Some(Value::Number(minor)) => Some(ClassId::new(handle, *minor as u16)),
                _ => top,
            };
            let shown = Shown {
                kind: name,
                is_class: true,
                id,
                parent: above,
                leaf,
                options: seen.class_options(kind, &class),
                path: path.clone(),
            };
            self.classes.insert(place, shown);
            path.pop();
        }
        // The fifo inside, until something is attached, has no name.
        let holds_one = kind.is_some_and(|kind| matches!(kind.children, Children::Inner { .. }));
        if holds_one && spec.classes().is_empty() {
            self.classes.push(Shown {
                kind: name,
                is_class: true,
                id: ClassId::new(handle, INNER),
                parent: Some(own),
                leaf: None,
                options: Vec::new(),
                path: [path.as_slice(), &[INNER]].concat(),
            });
        }
        handle
    }
}

/// What tc has no words for: what is not at its default, as it is written here.
fn own_details(spec: &Spec, parameters: &[(ParameterInfo, Value)]) -> Vec<Detail> {
    let is_set = |place: usize| {
        spec.settings
            .own
            .iter()
            .any(|(other, _): &Setting| *other == place)
    };
    let set = parameters.iter().enumerate().filter(|(place, _)| is_set(*place));
    set.filter_map(|(_, parameter)| own_detail(parameter)).collect()
}

/// A parameter as it is written here, unless it is none.
fn own_detail((info, value): &(ParameterInfo, Value)) -> Option<Detail> {
    let is_shown = *value != Value::None && info.name != PARENT;
    is_shown.then(|| Detail::new(info.name, Amount::Text(info.unit.show(value))))
}

fn details<'k>(
    known: impl IntoIterator<Item = &'k Show>,
    parameters: &[(ParameterInfo, Value)],
) -> Vec<Detail> {
    let detail = |show: &Show| {
        let amount = match value(parameters, show.parameter)? {
            Value::Number(number) => (show.form)(*number),
            // tc leaves out what is off.
            Value::Flag(false) => return None,
            Value::Flag(true) => Amount::Flag(true),
            Value::Word(word) => Amount::Text((*word).to_owned()),
            Value::List(numbers) => Amount::Numbers(numbers.clone()),
            Value::None => return None,
        };
        Some(Detail::keyed(show.word, show.key, amount).when(show.when))
    };
    known.into_iter().filter_map(detail).collect()
}
