//! Changes a running tree to another description. Packets stay queued, or move in order.
//!
//! A [`Change`] is planned from the two descriptions, on any thread. All that can be refused is refused then:
//! each discipline that is to change in place is built once more, and rehearses the change. All that must be
//! built is built then. What is left for the thread that forwards packets is to set parameters and to move
//! packets.
//!
//! * The same discipline changes in place, if it can.
//! * If it cannot, or has other classes, a new one takes over the packets, and the classes that both have. So
//!   does a tree of classes, with the state of each class: thousands of classes take milliseconds to build.
//! * Another discipline takes over the packets, flow by flow.
//!
//! The statistics of the root go on, whatever discipline it is, and so do the statistics of a class that
//! still exists. They begin at 0 for a class that is new, and below a discipline that another one replaces.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use thiserror::Error;

use crate::arrival::Needs;
use crate::discipline::{Discipline, Heritage};
use crate::error::ConfigError;
use crate::pool::{Pool, TableKind};
use crate::queues::fifo::{self, Fifo};
use crate::registry::tree::{Described, build, seed_of, trees};
use crate::registry::{BuildError, Parts, Tables};
use crate::time::Time;

/// Why a running tree cannot be changed. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{node_path} refuses the change: {source}")]
pub struct ChangeError {
    /// The path to the node: `the root`, or class numbers.
    pub node_path: String,
    /// The discipline's error.
    pub source: ConfigError,
}

/// A planned change of a running tree. It is applied once, and as a whole.
pub struct Change {
    /// What disciplines read of packets that are new or have new parameters.
    needs: Needs,
    /// When new disciplines make their tables.
    tables: Tables,
    /// The tables that they take from the reserve of the pool.
    kinds: Vec<TableKind>,
    /// The parameters of disciplines that change in place.
    parameters: Vec<Step>,
    /// The disciplines that are replaced. Each is preceded by the ones below it.
    replacements: Vec<Replacement>,
}

/// Classes that a discipline keeps: the number, the tree that is in it, and the one that is wanted.
type Kept<'a, D> = Vec<(u32, &'a D, &'a D)>;

/// New parameters of a discipline that changes in place.
struct Step {
    /// The path to the node, as class numbers.
    path: Vec<u32>,
    before: Box<dyn Any + Send>,
    after: Box<dyn Any + Send>,
}

/// A discipline that takes the place of the one at the end of `path`.
struct Replacement {
    path: Vec<u32>,
    heritage: Heritage,
    /// The new discipline, and the old one after the change.
    discipline: Option<Box<dyn Discipline>>,
}

/// What a change has replaced: disciplines, which are empty, and parameters. Dropping it releases their
/// memory, which takes milliseconds for thousands of classes: a program that forwards packets does it on
/// another thread.
#[derive(Default)]
pub struct Replaced {
    replacements: Vec<Replacement>,
    _parameters: Vec<Step>,
}

impl Replaced {
    /// Returns the number of disciplines that were replaced.
    pub fn count(&self) -> usize {
        self.replacements.len()
    }
}

impl fmt::Debug for Replaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Replaced")
            .field(&self.count())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change")
            .field("in_place", &self.parameters.len())
            .field("replaced", &self.replacements.len())
            .finish_non_exhaustive()
    }
}

/// Returns a discipline that has become `wanted`, if a running one of this description accepts the
/// parameters: a discipline with the same parameters and without packets tries it.
fn rehearsed<D: Described>(running: &D, wanted: &D) -> Result<Option<Box<dyn Discipline>>, ConfigError> {
    let mut rehearsing = over(running, 0, Tables::Now, |_, _| Ok(placeholder()))?;
    let config = wanted.entry().config(wanted.settings())?;
    let mut pool = Pool::with_capacity(1);
    let accepts = rehearsing.reconfigure(config.as_ref(), Time::ZERO, &mut pool);
    Ok(accepts.is_ok().then_some(rehearsing))
}

/// Builds this discipline over the disciplines that `child` returns.
fn over<D: Described>(
    tree: &D,
    seed: u64,
    tables: Tables,
    child: impl Fn(u32, &D) -> Result<Box<dyn Discipline>, BuildError>,
) -> Result<Box<dyn Discipline>, ConfigError> {
    let children = trees(tree).map(|(minor, tree)| child(minor, tree));
    let children = children
        .collect::<Result<_, BuildError>>()
        .map_err(|error| error.source)?;
    let parts = Parts::new(children, seed).with_tables(tables);
    tree.entry().build(tree.settings(), parts)
}

/// Returns the tree of each class, or the inner discipline.
fn classes_of<D: Described>(tree: &D) -> BTreeMap<u32, &D> {
    let mut classes = BTreeMap::new();
    // One by one: collecting would sort them first, for which the kernel's stack is too small.
    for (minor, tree) in trees(tree) {
        classes.insert(minor, tree);
    }
    classes
}

/// Returns the tree of each class that is not assigned to hosts, or the inner discipline.
fn own_classes<D: Described>(tree: &D) -> BTreeMap<u32, &D> {
    let mut classes = classes_of(tree);
    for class in &tree.settings().classes {
        if class.template.is_some() {
            classes.retain(|minor, _| !class.minors().contains(minor));
        }
    }
    classes
}

fn has_same_settings<D: Described>(one: &D, other: &D) -> bool {
    // Descriptions share settings: thousands of classes hold the same discipline.
    core::ptr::eq(one.settings(), other.settings()) || one.settings() == other.settings()
}

/// Returns the heritage of a discipline whose root or class exists already.
fn goes_on(classes: Vec<u32>) -> Heritage {
    Heritage {
        statistics: true,
        classes,
    }
}

/// Returns a discipline for a class whose own one is elsewhere, or that is built only to be checked.
pub fn placeholder() -> Box<dyn Discipline> {
    Box::new(Fifo::node(fifo::Config::default()).expect("the defaults are valid"))
}

impl Change {
    /// Plans the change of a running tree from the description `running` to `wanted`. It may be any other
    /// tree. New disciplines get their seeds from `seed`, and make their tables when `tables` says.
    ///
    /// # Errors
    /// Only if a discipline refuses what it accepted when the description was checked.
    pub fn plan<D: Described>(
        running: &D,
        wanted: &D,
        seed: u64,
        tables: Tables,
    ) -> Result<Change, ChangeError> {
        let mut plan = Change::nothing(tables);
        plan.add(running, wanted, &mut Vec::new(), seed)?;
        Ok(plan)
    }

    /// Plans that `wanted` takes the place of a running tree whose description is not known. It takes over
    /// all packets and the statistics of the root.
    ///
    /// # Errors
    /// As [`plan`](Change::plan).
    pub fn to_take_over<D: Described>(wanted: &D, seed: u64) -> Result<Change, ChangeError> {
        let mut plan = Change::nothing(Tables::Now);
        plan.replace(None, wanted, &[], goes_on(Vec::new()), seed)?;
        Ok(plan)
    }

    fn nothing(tables: Tables) -> Change {
        Change {
            needs: Needs::default(),
            tables,
            kinds: Vec::new(),
            parameters: Vec::new(),
            replacements: Vec::new(),
        }
    }

    /// The change of a root's parameters, if there is one.
    pub fn of_parameters<C: Any + Send + Clone + PartialEq>(before: &C, after: &C) -> Change {
        let mut change = Change::nothing(Tables::Now);
        if before != after {
            change.parameters.push(Step {
                path: Vec::new(),
                before: Box::new(before.clone()),
                after: Box::new(after.clone()),
            });
        }
        change
    }

    /// Returns the same change for a tree that is class `minor` of another discipline.
    #[must_use]
    pub fn below(mut self, minor: u32) -> Change {
        let steps = self.parameters.iter_mut().map(|step| &mut step.path);
        let replacements = self
            .replacements
            .iter_mut()
            .map(|replacement| &mut replacement.path);
        steps.chain(replacements).for_each(|path| path.insert(0, minor));
        self
    }

    /// Adds another change of the same tree.
    pub fn include(&mut self, other: Change) {
        self.needs |= other.needs;
        self.kinds.extend(other.kinds);
        self.parameters.extend(other.parameters);
        self.replacements.extend(other.replacements);
    }

    /// Returns what disciplines read of packets that are new or have new parameters, for
    /// [`Link::change_root_in_part`](crate::Link::change_root_in_part).
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty() && self.replacements.is_empty()
    }

    /// Plans the change of a node and the nodes below it. Its variables are small: the kernel's stack has one
    /// of them for each level.
    fn add<D: Described>(
        &mut self,
        running: &D,
        wanted: &D,
        path: &mut Vec<u32>,
        seed: u64,
    ) -> Result<(), ChangeError> {
        if running == wanted {
            return Ok(());
        }
        if running.entry().about().name != wanted.entry().about().name {
            return self.replace(None, wanted, path, goes_on(Vec::new()), seed);
        }
        let (in_place, kept) = self.add_own(running, wanted, path)?;
        for &(minor, running, wanted) in &kept {
            path.push(minor);
            self.add(running, wanted, path, seed_of(seed, minor))?;
            path.pop();
        }
        if in_place {
            return Ok(());
        }
        let minors = kept.iter().map(|(minor, ..)| *minor).collect();
        self.replace(Some(running), wanted, path, goes_on(minors), seed)
    }

    /// Plans the change of a discipline itself, if it can change in place. Returns whether it can, and the
    /// classes that it keeps.
    #[inline(never)]
    fn add_own<'a, D: Described>(
        &mut self,
        running: &'a D,
        wanted: &'a D,
        path: &[u32],
    ) -> Result<(bool, Kept<'a, D>), ChangeError> {
        let refused = |source| ChangeError {
            node_path: path_in_words(path),
            source,
        };
        let is_a_tree = wanted.entry().about().children.are_a_tree();
        let has_changed = !has_same_settings(running, wanted);
        let (mut before, mut after) = (classes_of(running), classes_of(wanted));
        let has_same_classes = before.keys().eq(after.keys());
        let in_place = match has_changed {
            true if has_same_classes && !is_a_tree => {
                let rehearsed = rehearsed(running, wanted).map_err(refused)?;
                if let Some(rehearsed) = &rehearsed {
                    self.needs |= rehearsed.needs();
                }
                rehearsed.is_some()
            }
            true => false,
            false => has_same_classes,
        };
        if in_place && has_changed {
            let config = |tree: &D| tree.entry().config(tree.settings()).map_err(refused);
            self.parameters.push(Step {
                before: config(running)?,
                after: config(wanted)?,
                path: path.to_vec(),
            });
        }
        // A tree keeps the classes that it assigns to hosts, and so does a discipline that stays.
        if !in_place && !is_a_tree {
            (before, after) = (own_classes(running), own_classes(wanted));
        }
        let kept = after.into_iter().filter_map(|(minor, wanted)| {
            let running = before.get(&minor)?;
            Some((minor, *running, wanted))
        });
        Ok((in_place, kept.collect()))
    }

    /// Plans that a new discipline takes the place of the one at `path`: of `running`, if it is the same
    /// discipline.
    fn replace<D: Described>(
        &mut self,
        running: Option<&D>,
        wanted: &D,
        path: &[u32],
        heritage: Heritage,
        seed: u64,
    ) -> Result<(), ChangeError> {
        let (inherited, tables) = (&heritage.classes, self.tables);
        let child = |minor: u32, tree: &D| match inherited.binary_search(&minor) {
            Ok(_) => Ok(placeholder()),
            Err(_) => build(tree, seed_of(seed, minor), tables),
        };
        let refused = |source| ChangeError {
            node_path: path_in_words(path),
            source,
        };
        let mut new = over(wanted, seed, tables, child).map_err(refused)?;
        if let Some(running) = running {
            let old = running.entry().config(running.settings()).map_err(refused)?;
            new.prepare_to_take_over(old.as_ref());
        }
        self.needs |= new.needs();
        if self.tables == Tables::WhenUsed {
            new.visit_tables(&mut |kind| {
                if !self.kinds.contains(&kind) {
                    self.kinds.push(kind);
                }
            });
        }
        self.replacements.push(Replacement {
            path: path.to_vec(),
            heritage,
            discipline: Some(new),
        });
        Ok(())
    }

    /// Applies the change to the tree that it was planned for. Packets that have no room any more are
    /// returned through the pool.
    ///
    /// # Errors
    /// Only if a discipline refuses what it accepted in the rehearsal. All parameters then have their old
    /// values, and nothing was moved.
    ///
    /// # Panics
    /// If the tree has other classes than the description that the change was planned from.
    pub fn apply(
        self,
        root: &mut Box<dyn Discipline>,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Replaced, ChangeError> {
        for kind in &self.kinds {
            pool.provide(*kind);
        }
        let steps = &self.parameters;
        for (number, step) in steps.iter().enumerate() {
            let mut result = Ok(());
            at(root.as_mut(), &step.path, pool, &mut |node, pool| {
                result = node.reconfigure(step.after.as_ref(), now, pool);
            });
            let Err(source) = result else { continue };
            for done in steps[..number].iter().rev() {
                at(root.as_mut(), &done.path, pool, &mut |node, pool| {
                    node.reconfigure(done.before.as_ref(), now, pool)
                        .expect("a discipline accepts its former parameters");
                });
            }
            let node_path = path_in_words(&step.path);
            return Err(ChangeError { node_path, source });
        }
        let mut replacements = self.replacements;
        for replacement in &mut replacements {
            replacement.apply(root, now, pool);
        }
        Ok(Replaced {
            replacements,
            _parameters: self.parameters,
        })
    }
}

impl Replacement {
    /// Replaces the discipline, and has the one that was replaced.
    fn apply(&mut self, root: &mut Box<dyn Discipline>, now: Time, pool: &mut Pool) {
        let Replacement {
            path,
            heritage,
            discipline,
        } = self;
        let mut new = discipline.take().expect("it is applied once");
        let Some((&minor, parent)) = path.split_last() else {
            new.take_over(root.as_mut(), heritage, now, pool);
            *discipline = Some(core::mem::replace(root, new));
            return;
        };
        let mut new = Some(new);
        at(root.as_mut(), parent, pool, &mut |node, pool| {
            let new = new.take().expect("one node is changed");
            let old = node.succeed_class(minor, new, heritage, now, pool);
            *discipline = Some(old.expect("the class is one of the description's"));
        });
    }
}

/// Calls `change` with the node at the end of `path`.
fn at(
    node: &mut dyn Discipline,
    path: &[u32],
    pool: &mut Pool,
    change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool),
) {
    match path.split_first() {
        None => change(node, pool),
        Some((minor, rest)) => node
            .change_class(*minor, pool, &mut |child, pool| at(child, rest, pool, change))
            .expect("the class is one of the description's"),
    }
}

/// Returns a path in words: `the root`, or `class 2, class 1`.
fn path_in_words(path: &[u32]) -> String {
    if path.is_empty() {
        return "the root".to_owned();
    }
    let classes: Vec<String> = path.iter().map(|minor| format!("class {minor}")).collect();
    classes.join(", ")
}
