//! The classes of a tree of disciplines, by their numbers from the root down.

use std::collections::BTreeMap;
use std::fmt;

use fairgate::classify::Holder;
use fairgate::{Count, Discipline, Statistics, Variable};

/// The way from the root to a class. The empty path is the root itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Path(Vec<u32>);

impl Path {
    /// Reads numbers separated by slashes: `20/1`.
    pub(crate) fn parse(text: &str) -> Option<Path> {
        let number = |digits: &str| {
            // `parse` accepts a sign.
            let has_digits_only = digits.bytes().all(|byte| byte.is_ascii_digit());
            has_digits_only.then(|| digits.parse().ok()).flatten()
        };
        text.split('/')
            .map(number)
            .collect::<Option<Vec<u32>>>()
            .map(Path)
    }

    /// Returns the path to class `minor` of the discipline in this class.
    pub(crate) fn below(&self, minor: u32) -> Path {
        let mut numbers = self.0.clone();
        numbers.push(minor);
        Path(numbers)
    }

    /// Returns the path if this tree is in class `minor`.
    pub(crate) fn above(mut self, minor: u32) -> Path {
        self.0.insert(0, minor);
        self
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&numbers.join("/"))
    }
}

/// Returns the paths of all classes, inner ones included: those of the root, each followed by the classes
/// below it.
pub(crate) fn paths(tree: &dyn Discipline) -> Vec<Path> {
    let mut paths = Vec::new();
    collect(tree, &Path::default(), &mut paths);
    paths
}

fn collect(tree: &dyn Discipline, path: &Path, paths: &mut Vec<Path>) {
    let mut own = Vec::new();
    tree.visit_class_states(&mut |state| own.push((state.minor, Vec::new())));
    tree.visit_classes(&mut |class| {
        let path = path.below(class.minor);
        let mut below = Vec::new();
        collect(class.discipline, &path, &mut below);
        match own.iter_mut().find(|(minor, _)| *minor == class.minor) {
            Some((_, inner)) => *inner = below,
            None => own.push((class.minor, below)),
        }
    });
    own.sort_by_key(|(minor, _)| *minor);
    for (minor, below) in own {
        paths.push(path.below(minor));
        paths.extend(below);
    }
}

/// The counts of a class from the start of the run on.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassCounts {
    /// Packets that left it.
    pub(crate) sent: Count,
    /// How often its own limit stopped it, if the discipline above limits classes.
    pub(crate) overlimits: Option<u64>,
    /// Its discipline, with that one's statistics. An inner class has none.
    pub(crate) leaf: Option<(&'static str, Statistics)>,
    /// The host that has the class now, if it was made from a template.
    pub(crate) host: Option<String>,
}

/// Returns the counts of all classes. Classes for hosts that have had no packet are left out.
pub(crate) fn counts(tree: &dyn Discipline) -> BTreeMap<Path, ClassCounts> {
    let mut all = BTreeMap::new();
    count(tree, &Path::default(), &mut all);
    all
}

fn count(tree: &dyn Discipline, path: &Path, all: &mut BTreeMap<Path, ClassCounts>) {
    tree.visit_classes(&mut |class| {
        let statistics = class.discipline.statistics();
        if statistics.enqueued.packets == 0 && !matches!(class.holder, Holder::Anyone) {
            return;
        }
        let path = path.below(class.minor);
        count(class.discipline, &path, all);
        let counts = ClassCounts {
            sent: statistics.dequeued,
            overlimits: None,
            leaf: Some((class.discipline.name(), statistics)),
            host: match class.holder {
                Holder::Host(tenant) => Some(tenant.to_string()),
                Holder::Anyone | Holder::Free => None,
            },
        };
        all.insert(path, counts);
    });
    let mut inner = Vec::new();
    tree.visit_class_states(&mut |state| {
        let path = path.below(state.minor);
        match all.get_mut(&path) {
            Some(leaf) => leaf.overlimits = Some(state.overlimits),
            None => inner.push((path, state.sent, state.overlimits)),
        }
    });
    // Classes for hosts without packets have a state, too.
    let mut are_leaves = Vec::new();
    tree.visit_classes(&mut |class| are_leaves.push(class.minor));
    for (path, sent, overlimits) in inner {
        if !path.0.last().is_some_and(|minor| are_leaves.contains(minor)) {
            let overlimits = Some(overlimits);
            all.insert(
                path,
                ClassCounts {
                    sent,
                    overlimits,
                    ..ClassCounts::default()
                },
            );
        }
    }
}

/// Returns the names of all variables of a class, or of the root.
pub(crate) fn variables(tree: &dyn Discipline, path: &Path) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    visit_variables(tree, &path.0, &mut |name, _| {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    });
    names
}

/// Returns a variable of a class, or of the root. `None` if it is not shown now.
pub(crate) fn variable(tree: &dyn Discipline, path: &Path, wanted: &str) -> Option<Variable> {
    let mut found = None;
    visit_variables(tree, &path.0, &mut |name, value| {
        if found.is_none() && name == wanted {
            found = Some(value);
        }
    });
    found
}

/// Calls `visit` with the variables of the class itself, then with those of the discipline in it, then with
/// those that every discipline has.
fn visit_variables(tree: &dyn Discipline, path: &[u32], visit: &mut dyn FnMut(&'static str, Variable)) {
    let Some((&minor, rest)) = path.split_first() else {
        tree.visit_variables(visit);
        let backlog = tree.backlog();
        visit("backlog_packets", Variable::Integer(backlog.packets as i64));
        visit("backlog_bytes", Variable::Integer(backlog.bytes as i64));
        return;
    };
    if rest.is_empty() {
        tree.visit_class_states(&mut |state| {
            if state.minor == minor {
                for &(name, value) in state.variables {
                    visit(name, value);
                }
            }
        });
    }
    tree.visit_classes(&mut |class| {
        if class.minor == minor {
            visit_variables(class.discipline, rest, visit);
        }
    });
}
