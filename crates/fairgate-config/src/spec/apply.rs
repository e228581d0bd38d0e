//! A changed description is applied to a running tree without rebuilding it: packets stay queued.

use std::any::Any;

use fairgate::{ConfigError, Discipline, Pool, Time};
use thiserror::Error;

use super::Spec;
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
    /// # Errors
    /// If the shapes differ, or if a discipline refuses the change. All parameters are then as they were.
    pub fn apply_to(&self, root: &mut dyn Discipline, now: Time, pool: &mut Pool) -> Result<(), ApplyError> {
        self.compare_shape(root, &mut Vec::new())?;
        let mut steps = Vec::new();
        self.steps(&mut Vec::new(), &mut steps)?;
        let mut undo = Vec::with_capacity(steps.len());
        for (path, config) in &steps {
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
        Ok(())
    }

    fn compare_shape(&self, running: &dyn Discipline, path: &mut Vec<u16>) -> Result<(), ApplyError> {
        if running.name() != self.discipline() {
            return Err(ApplyError::Discipline {
                place: place(path),
                running: running.name().to_owned(),
                wanted: self.discipline().to_owned(),
            });
        }
        if self.holds_its_own() {
            return Ok(());
        }
        let wanted = self.child_minors();
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
        let mut children = self.children.iter();
        running.visit_classes(&mut |class| {
            let child = children.next().expect("the numbers were compared");
            if result.is_ok() {
                path.push(class.minor);
                result = child.compare_shape(class.discipline, path);
                path.pop();
            }
        });
        result
    }

    /// Whether the discipline makes what it holds itself (a shaper without an `inner`): that is no part of the
    /// description.
    fn holds_its_own(&self) -> bool {
        self.entry.about().children == Children::Inner && self.children.is_empty()
    }

    /// The new parameters of each node, with its path from the root.
    fn steps(&self, path: &mut Vec<u16>, steps: &mut Vec<Step>) -> Result<(), ApplyError> {
        let config = self
            .entry
            .config(&self.settings)
            .map_err(|source| ApplyError::Refused {
                place: place(path),
                source,
            })?;
        steps.push((path.clone(), config));
        for (minor, child) in self.child_minors().into_iter().zip(&self.children) {
            path.push(minor);
            child.steps(path, steps)?;
            path.pop();
        }
        Ok(())
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
