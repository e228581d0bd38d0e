//! A changed description is applied to a running tree without rebuilding it: packets stay queued.

use std::any::Any;
use std::collections::BTreeMap;

use fairgate::{ConfigError, Discipline, Pool, Time};
use thiserror::Error;

use super::{Spec, derive};
use crate::registry::Children;

/// Why a description can't be applied to a running tree. The tree is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ApplyError {
    /// The running tree has another shape; replace it, or the class in question.
    #[error("{place} is running `{running}`, but the description says `{wanted}`; replace it instead")]
    Discipline {
        /// Where in the tree: `the root`, or a path of class numbers.
        place: String,
        /// What is there.
        running: String,
        /// What is described.
        wanted: String,
    },
    /// The running discipline has other classes.
    #[error("{place} has the classes {running:?}, but the description says {wanted:?}; replace it instead")]
    Classes {
        /// Where in the tree.
        place: String,
        /// Their numbers.
        running: Vec<u16>,
        /// The described ones.
        wanted: Vec<u16>,
    },
    /// The running discipline refuses the change.
    #[error("{place} refuses the change: {source}")]
    Refused {
        /// Where in the tree.
        place: String,
        /// What it refuses.
        source: ConfigError,
    },
}

impl Spec {
    /// Changes the parameters of a running tree of the same shape to these. Packets over a lowered limit come back
    /// through the pool.
    ///
    /// Where a discipline holds a tree of classes, that may change too: classes are added, removed, put elsewhere, and a
    /// class's discipline is replaced if it is another one. Packets move along wherever there is a place for them.
    ///
    /// # Errors
    /// If the shapes differ, or if a discipline refuses the change. All parameters are then as they were.
    pub fn apply_to(&self, root: &mut dyn Discipline, now: Time, pool: &mut Pool) -> Result<(), ApplyError> {
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
                            .expect("a discipline takes back the parameters that it had");
                    });
                }
                return Err(ApplyError::Refused {
                    place: place(path),
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

    /// What is to be done at a running node and below it.
    fn plan(&self, running: &dyn Discipline, path: &mut Vec<u16>, plan: &mut Plan) -> Result<(), ApplyError> {
        if running.name() != self.discipline() {
            return Err(ApplyError::Discipline {
                place: place(path),
                running: running.name().to_owned(),
                wanted: self.discipline().to_owned(),
            });
        }
        let config = self
            .entry
            .config(&self.settings)
            .map_err(|source| ApplyError::Refused {
                place: place(path),
                source,
            })?;
        if self.entry.about().children.are_a_tree() {
            // Comes last: what was in a class that is no more can't be brought back.
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
                place: place(path),
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

    /// The same for the leaves of a tree of classes: those that are there and hold the same change, the others are made.
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
                place: place(path),
                source: error.source,
            })?;
            plan.replacements.push((path.clone(), minor, Some(built)));
        }
        Ok(())
    }

    /// Whether the discipline makes what it holds itself (a shaper without an `inner`): that is no part of the
    /// description.
    fn holds_its_own(&self) -> bool {
        self.entry.about().children == Children::Inner && self.children.is_empty()
    }
}

/// A node, a class of it, and what the class is to hold.
type Replacement = (Vec<u16>, u16, Option<Box<dyn Discipline>>);

/// What is to be done to a running tree, in this order.
#[derive(Default)]
struct Plan {
    /// Parameters of disciplines that keep their shape.
    changes: Vec<Step>,
    /// Parameters of those that hold a tree of classes.
    of_trees: Vec<Step>,
    /// What classes of these are to hold that are new or hold another discipline.
    replacements: Vec<Replacement>,
}

impl Plan {
    fn append(&mut self, mut other: Plan) {
        self.changes.append(&mut other.changes);
        self.of_trees.append(&mut other.of_trees);
        self.replacements.append(&mut other.replacements);
    }
}

/// A node, by the classes on the way to it, and its new parameters.
type Step = (Vec<u16>, Box<dyn Any>);

/// Lets `change` at the node at the end of `path`.
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

/// A path in words: `the root`, `class 2, class 1`.
fn place(path: &[u16]) -> String {
    if path.is_empty() {
        return "the root".to_owned();
    }
    let classes: Vec<String> = path.iter().map(|minor| format!("class {minor}")).collect();
    classes.join(", ")
}
