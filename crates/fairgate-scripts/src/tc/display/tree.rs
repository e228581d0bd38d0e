//! The state of a running tree.

use std::collections::BTreeMap;

use fairgate::{Count, Discipline, Variable};

use super::State;

/// The state of a discipline, its classes, and the disciplines in them.
#[derive(Clone, Debug, Default)]
pub struct TreeState {
    /// The state of the discipline.
    pub state: State,
    /// The host that has the class with this discipline, if classes are assigned to hosts.
    pub host: Option<String>,
    /// The disciplines in its classes, by class number.
    pub children: BTreeMap<u32, TreeState>,
    /// What the discipline itself knows about its classes, by class number.
    pub classes: BTreeMap<u32, ClassState>,
    /// The rate of the discipline, if it has an estimator.
    pub rate: Option<EstimatedRate>,
    /// The rates of the classes that have estimators, by class number.
    pub class_rates: BTreeMap<u32, EstimatedRate>,
}

/// What an estimator says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EstimatedRate {
    /// Bytes per second.
    pub bytes: u64,
    /// Packets per second.
    pub packets: u64,
}

/// What a discipline knows about one of its classes.
#[derive(Clone, Debug, Default)]
pub struct ClassState {
    /// The packets that left the class or a class below it.
    pub sent: Count,
    /// How often the class was throttled by its own limit.
    pub overlimits: u64,
    /// The variables and their names.
    pub variables: Vec<(String, Variable)>,
}

impl TreeState {
    /// Returns the state of a discipline and of all that it holds. Classes for hosts are left out.
    pub fn of(discipline: &dyn Discipline) -> TreeState {
        let mut children = BTreeMap::new();
        discipline.visit_classes(&mut |class| {
            if let fairgate::classify::Holder::Anyone = class.holder {
                children.insert(class.minor, TreeState::of(class.discipline));
            }
        });
        let mut classes = BTreeMap::new();
        discipline.visit_class_states(&mut |class| {
            let variables = class.variables.iter();
            let state = ClassState {
                sent: class.sent,
                overlimits: class.overlimits,
                variables: variables
                    .map(|(name, value)| ((*name).to_owned(), *value))
                    .collect(),
            };
            classes.insert(class.minor, state);
        });
        TreeState {
            state: State::of(discipline),
            host: None,
            children,
            classes,
            rate: None,
            class_rates: BTreeMap::new(),
        }
    }

    /// Returns the rate of the discipline at the end of a path of classes, or of the class there.
    pub(in crate::tc) fn rate(&self, path: &[u32], is_class: bool) -> Option<EstimatedRate> {
        match (is_class, path.split_last()) {
            (true, Some((minor, above))) => self.at(above)?.class_rates.get(minor).copied(),
            (true, None) => None,
            (false, _) => self.at(path)?.rate,
        }
    }

    /// Returns the discipline at the end of a path of classes.
    pub(in crate::tc) fn at(&self, path: &[u32]) -> Option<&TreeState> {
        path.iter().try_fold(self, |node, minor| node.children.get(minor))
    }

    /// Returns the state of the class at the end of a path: what its discipline knows about it, or else the
    /// state of the child that it holds.
    pub(in crate::tc) fn class(&self, path: &[u32]) -> Option<State> {
        let Some((minor, above)) = path.split_last() else {
            return Some(self.state.clone());
        };
        let parent = self.at(above)?;
        let held = parent.children.get(minor).map(|child| child.state.clone());
        match parent.classes.get(minor) {
            Some(own) => {
                let held = held.unwrap_or_default();
                Some(held.of_class(own.sent, own.overlimits, own.variables.clone()))
            }
            None => held,
        }
    }
}
