//! Shows a description as `tc -s -d qdisc show` and `tc class show` do: kinds, handles, parents and options
//! in their words and units, and the statistics of a running discipline. The caller prints the counters of
//! packets that all disciplines have.
//!
//! The reference is tc of iproute2 6.1. The tests compare with it.
//!
//! A qdisc without a handle gets one like in the kernel, from 8001: upward. A discipline that tc does not
//! have keeps its own name, and its parameters are shown in Fairgate's notation. A fifo without a handle in a
//! class of a qdisc with one is what the kernel puts there by itself. tc does not show it.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use fairgate_config::language::{INNER, PARENT};
use fairgate_config::{ClassSpec, ParameterInfo, Spec, Value};

use super::display::{Amount, Detail, Hosts, Id, Row, Running, Seen, Shown, State, value};
use super::kinds::{self, Children, Kind, Show};
use super::script::FIRST_HANDLE;

impl Shown {
    /// Returns the lines of statistics that tc shows below the common ones.
    pub fn statistics(&self, state: &State) -> Vec<Row> {
        let running = Running { shown: self, state };
        kinds::find(self.kind).map_or(Vec::new(), |kind| match self.is_class {
            true => (kind.look.class_statistics)(&running),
            false => (kind.look.statistics)(&running),
        })
    }
}

impl Seen<'_> {
    /// Returns tc's kind. The kinds of fifo differ by their parameters.
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
        // Without classes it is a discipline over flows, unless it has the handle that a script gives.
        let is_of_tc = !self.classes().is_empty() || self.spec.classifier().handle != 0;
        kind.filter(|kind| is_of_tc || !matches!(kind.children, Children::Classes { .. }))
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

/// Returns the qdiscs of a tree, the root first, and their classes.
pub fn show(spec: &Spec) -> (Vec<Shown>, Vec<Shown>) {
    let mut used = BTreeSet::new();
    add_handles(spec, &mut used);
    let mut shown = Showing {
        qdiscs: Vec::new(),
        classes: Vec::new(),
        used,
        next_handle: FIRST_HANDLE,
    };
    shown.qdisc(spec, None, &mut Vec::new(), None, false);
    (shown.qdiscs, shown.classes)
}

/// Returns the qdiscs and classes of a tree of which each of several workers has one. A cake is shown as
/// Linux shows the cakes of transmit queues that share a rate, `cake_mq`. `None` for other trees: they are
/// as [`show`] shows them.
pub(in crate::tc) fn show_of_workers(spec: &Spec, workers: u16) -> Option<(Vec<Shown>, Vec<Shown>)> {
    if spec.discipline() != "cake" {
        return None;
    }
    let (mut qdiscs, mut classes) = show(spec);
    let cake = qdiscs.pop()?;
    let of_queue = |number: u16| Id {
        class: number.into(),
        ..cake.id
    };
    qdiscs.push(Shown {
        kind: "cake_mq",
        ..cake.clone()
    });
    for number in 1..=workers {
        qdiscs.push(Shown {
            id: Id::default(),
            parent: Some(of_queue(number)),
            path: vec![number.into()],
            ..cake.clone()
        });
        classes.push(Shown {
            kind: "cake_mq",
            is_class: true,
            id: of_queue(number),
            options: Vec::new(),
            has_estimator: false,
            path: vec![number.into()],
            ..cake.clone()
        });
    }
    Some((qdiscs, classes))
}

/// Adds the handles that are given in a tree.
fn add_handles(spec: &Spec, used: &mut BTreeSet<u16>) {
    used.insert(spec.classifier().handle);
    for tree in spec.classes().iter().filter_map(|class| class.tree) {
        add_handles(tree, used);
    }
}

/// Whether tc shows the qdisc in a class of `above`. It does not show the fifo that the kernel puts into a
/// class: that has no handle.
fn is_shown(above: &Spec, inner: &Spec) -> bool {
    let is_fifo = inner.discipline() == kinds::DEFAULT.discipline;
    above.classifier().handle == 0 || inner.classifier().handle != 0 || !is_fifo
}

struct Showing {
    qdiscs: Vec<Shown>,
    classes: Vec<Shown>,
    /// The handles that are given.
    used: BTreeSet<u16>,
    next_handle: u16,
}

impl Showing {
    /// Returns the next handle that is not given.
    fn free_handle(&mut self) -> u16 {
        loop {
            let handle = self.next_handle;
            self.next_handle = handle.checked_add(1).unwrap_or(1);
            // There are more handles than qdiscs can have classes.
            if !self.used.contains(&handle) {
                return handle;
            }
        }
    }

    /// Shows a discipline and its children, and returns its handle.
    fn qdisc(
        &mut self,
        spec: &Spec,
        parent: Option<Id>,
        path: &mut Vec<u32>,
        hosts: Option<&Hosts>,
        is_automatic: bool,
    ) -> u16 {
        let handle = match spec.classifier().handle {
            0 if is_automatic => 0,
            0 => self.free_handle(),
            given => given,
        };
        let seen = Seen::new(spec);
        let kind = seen.kind();
        let name = kind.map_or(spec.discipline(), Kind::name);
        self.qdiscs.push(Shown {
            kind: name,
            is_class: false,
            id: Id { handle, class: 0 },
            parent,
            leaf: None,
            options: seen.options(kind),
            has_estimator: spec.estimator().is_some(),
            path: path.clone(),
            hosts: hosts.cloned(),
        });
        let own = Id { handle, class: 0 };
        if kind.is_some_and(|kind| kind.look.is_its_own_class) {
            self.classes.push(Shown {
                kind: name,
                is_class: true,
                id: own,
                parent: None,
                leaf: None,
                options: Vec::new(),
                has_estimator: false,
                path: path.clone(),
                hosts: hosts.cloned(),
            });
        }
        let top = (!kind.is_some_and(|kind| kind.look.has_classes_at_root)).then_some(own);
        for class in spec.classes() {
            let of = |class| Id { handle, class };
            let id = of(class.minor);
            path.push(class.minor);
            let own_hosts = class.template.map(|template| Hosts {
                depth: path.len(),
                classes: template.classes(),
            });
            let hosts = hosts.or(own_hosts.as_ref());
            let index = self.classes.len();
            let tree = class.tree.filter(|tree| is_shown(spec, tree));
            // What the kernel puts into a transmit queue has the handle 0:, which tc does not show as a leaf.
            let default = kind.map(|kind| kind.default_child().discipline);
            let is_automatic = spec.discipline() == "mq" && tree.map(Spec::discipline) == default;
            let leaf = tree.map(|tree| self.qdisc(tree, Some(id), path, hosts, is_automatic));
            let leaf = leaf.filter(|handle| *handle != 0);
            let above = class.parent().map(of).or(top);
            let shown = Shown {
                kind: name,
                is_class: true,
                id,
                parent: above,
                leaf,
                options: seen.class_options(kind, &class),
                has_estimator: class.estimator.is_some(),
                path: path.clone(),
                hosts: hosts.cloned(),
            };
            self.classes.insert(index, shown);
            path.pop();
        }
        // The default fifo inside is not shown as a qdisc.
        let holds_one = kind.is_some_and(|kind| matches!(kind.children, Children::Inner { .. }));
        if holds_one && spec.classes().is_empty() {
            self.classes.push(Shown {
                kind: name,
                is_class: true,
                id: Id { handle, class: INNER },
                parent: Some(own),
                leaf: None,
                options: Vec::new(),
                has_estimator: false,
                path: [path.as_slice(), &[INNER]].concat(),
                hosts: hosts.cloned(),
            });
        }
        handle
    }
}

/// Returns the parameters that are set, in Fairgate's notation, for a discipline that tc does not have.
fn own_details(spec: &Spec, parameters: &[(ParameterInfo, Value)]) -> Vec<Detail> {
    let given = parameters.iter().filter(|(info, _)| spec.is_given(info.name));
    given.filter_map(own_detail).collect()
}

/// Returns a parameter in Fairgate's notation, unless it is `none`.
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
            // tc does not show flags that are off.
            Value::Flag(false) => return None,
            Value::Flag(true) => Amount::Flag(true),
            Value::Word(word) => Amount::Text((*word).to_owned()),
            Value::Text(text) => Amount::Text(text.clone()),
            Value::List(numbers) => Amount::Numbers(numbers.clone()),
            Value::Texts(texts) => Amount::Text(texts.join(" ")),
            Value::None => return None,
        };
        Some(Detail::keyed(show.word, show.key, amount).when(show.when))
    };
    known.into_iter().filter_map(detail).collect()
}
