//! Applies a changed description to a running tree. The tree is not rebuilt, and packets stay queued.

use std::any::Any;
use std::collections::BTreeMap;

use fairgate::{ConfigError, Discipline, Pool, Time};
use thiserror::Error;

use super::{Spec, derive};
use crate::registry::Children;

/// The reason why a description can't be applied to a running tree. The tree is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The running tree has another shape. Replace the tree, or the class.
    #[error("{node_path} is running `{running}`, but the description says `{wanted}`; replace it instead")]
    Discipline {
        /// The path to the node: `the root`, or class numbers.
        node_path: String,
        /// The discipline that runs.
        running: String,
        /// The discipline of the description.
        wanted: String,
    },
    /// The running discipline has other classes.
    #[error(
        "{node_path} has the classes {running:?}, but the description says {wanted:?}; replace it instead"
    )]
    Classes {
        /// The path to the node.
        node_path: String,
        /// The class numbers that run.
        running: Vec<u16>,
        /// The class numbers of the description.
        wanted: Vec<u16>,
    },
    /// The running discipline refuses the change.
    #[error("{node_path} refuses the change: {source}")]
    Refused {
        /// The path to the node.
        node_path: String,
        /// The discipline's error.
        source: ConfigError,
    },
}

impl Spec {
    /// Sets the parameters of a running tree of the same shape. Packets above a lowered limit are returned
    /// through the pool.
    ///
    /// The shape of a tree of classes (HTB, HFSC, CBQ) may change, too. Classes are added, removed and moved,
    /// and a class's discipline is replaced if it is another one. Packets move with their class if it still
    /// exists.
    ///
    /// # Errors
    /// If the shapes differ, or if a discipline refuses the change. All parameters then have their old
    /// values.
    pub fn apply_to(&self, root: &mut dyn Discipline, now: Time, pool: &mut Pool) -> Result<(), ApplyError> {
        if self.reads_bytes() {
            pool.keep_bytes();
        }
        let mut plan = Plan::default();
        self.plan(root, &mut Vec::new(), &mut plan)?;
        let mut undo = Vec::with_capacity(plan.changes.len());
        for (path, config) in plan.changes.iter().chain(&plan.of_trees) {
            let mut result = Ok(());
            at(root, path, pool, &mut |node, pool| {
                let before = node.config();
                result = node.reconfigure(config.as_ref(), now, pool);
                if result.is_ok() {
                    undo.push((path, before));
                }
            });
            if let Err(source) = result {
                for (path, before) in undo.iter().rev() {
                    at(root, path, pool, &mut |node, pool| {
                        node.reconfigure(before.as_ref(), now, pool)
                            .expect("a discipline accepts its former parameters");
                    });
                }
                return Err(ApplyError::Refused {
                    node_path: path_in_words(path),
                    source,
                });
            }
        }
        for (path, minor, mut child) in plan.replacements {
            at(root, &path, pool, &mut |node, pool| {
                let child = child.take().expect("one node is changed");
                node.replace_class(minor, child, now, pool)
                    .expect("the class is one of the description's");
            });
        }
        Ok(())
    }

    /// Plans the changes for a running node and the nodes below it.
    fn plan(&self, running: &dyn Discipline, path: &mut Vec<u16>, plan: &mut Plan) -> Result<(), ApplyError> {
        if running.name() != self.discipline() {
            return Err(ApplyError::Discipline {
                node_path: path_in_words(path),
                running: running.name().to_owned(),
                wanted: self.discipline().to_owned(),
            });
        }
        let config = self
            .entry
            .config(&self.settings)
            .map_err(|source| ApplyError::Refused {
                node_path: path_in_words(path),
                source,
            })?;
        if self.entry.about().children.are_a_tree() {
            // These changes are applied last: packets of a removed class can't be brought back.
            plan.of_trees.push((path.clone(), config));
            return self.plan_leaves(running, path, plan);
        }
        plan.changes.push((path.clone(), config));
        if self.holds_its_own() {
            return Ok(());
        }
        let wanted: Vec<u16> = self.trees().map(|(minor, _)| minor).collect();
        let mut minors = Vec::new();
        running.visit_classes(&mut |class| minors.push(class.minor));
        if minors != wanted {
            return Err(ApplyError::Classes {
                node_path: path_in_words(path),
                running: minors,
                wanted,
            });
        }
        let mut result = Ok(());
        let mut children = self.trees().map(|(_, tree)| tree);
        running.visit_classes(&mut |class| {
            let child = children.next().expect("the numbers were compared");
            if result.is_ok() {
                path.push(class.minor);
                result = child.plan(class.discipline, path, plan);
                path.pop();
            }
        });
        result
    }

    /// Plans the changes for the leaves of a tree of classes. Leaves with the same discipline are changed,
    /// all others are built anew.
    fn plan_leaves(
        &self,
        running: &dyn Discipline,
        path: &mut Vec<u16>,
        plan: &mut Plan,
    ) -> Result<(), ApplyError> {
        let mut missing: BTreeMap<u16, &Spec> = self.trees().collect();
        running.visit_classes(&mut |class| {
            let Some(&child) = missing.get(&class.minor) else {
                return;
            };
            let mut below = Plan::default();
            path.push(class.minor);
            if child.plan(class.discipline, path, &mut below).is_ok() {
                missing.remove(&class.minor);
                plan.append(below);
            }
            path.pop();
        });
        for (minor, child) in missing {
            let built = child.build(derive(path.len() as u64, minor));
            let built = built.map_err(|error| ApplyError::Refused {
                node_path: path_in_words(path),
                source: error.source,
            })?;
            plan.replacements.push((path.clone(), minor, Some(built)));
        }
        Ok(())
    }

    /// Whether the discipline builds its own inner discipline (a shaper without `inner`). The description
    /// does not contain this one.
    fn holds_its_own(&self) -> bool {
        self.entry.about().children == Children::Inner && self.children.is_empty()
    }
}

/// The path to a node, a class number, and the discipline that this class is to hold.
type Replacement = (Vec<u16>, u16, Option<Box<dyn Discipline>>);

/// The changes to a running tree, in the order in which they are applied.
#[derive(Default)]
struct Plan {
    /// Parameters of disciplines that keep their classes.
    changes: Vec<Step>,
    /// Parameters of disciplines that hold a tree of classes.
    of_trees: Vec<Step>,
    /// Disciplines for classes that are new or change their discipline.
    replacements: Vec<Replacement>,
}

impl Plan {
    fn append(&mut self, mut other: Plan) {
        self.changes.append(&mut other.changes);
        self.of_trees.append(&mut other.of_trees);
        self.replacements.append(&mut other.replacements);
    }
}

/// The path to a node, as class numbers, and its new parameters.
type Step = (Vec<u16>, Box<dyn Any>);

/// Calls `change` with the node at the end of `path`.
fn at(
    node: &mut dyn Discipline,
    path: &[u16],
    pool: &mut Pool,
    change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool),
) {
    match path.split_first() {
        None => change(node, pool),
        Some((minor, rest)) => node
            .change_class(*minor, pool, &mut |child, pool| at(child, rest, pool, change))
            .expect("the shapes were compared"),
    }
}

/// Returns a path in words: `the root`, or `class 2, class 1`.
fn path_in_words(path: &[u16]) -> String {
    if path.is_empty() {
        return "the root".to_owned();
    }
    let classes: Vec<String> = path.iter().map(|minor| format!("class {minor}")).collect();
    classes.join(", ")
}
