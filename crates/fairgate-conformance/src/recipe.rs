//! Builds disciplines under test: configurations, constructors, and trees of them.

use std::any::{Any, type_name};
use std::fmt;
use std::ops::RangeInclusive;
use std::rc::Rc;

use fairgate::queues::fifo::{self, Fifo};
use fairgate::{ConfigError, Discipline};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Union;

use crate::probe::{Allowed, Probe, Shared, Show};

/// The most levels of a random tree, including its leaves.
const DEPTH: u32 = 5;

/// The constructor of a discipline, with random configurations.
#[derive(Clone)]
pub struct Recipe {
    /// Returns subjects with this number of classes.
    subjects: Rc<dyn Fn(usize) -> BoxedStrategy<Subject>>,
    classes: RangeInclusive<usize>,
}

/// Prints the name of the type only.
impl std::fmt::Debug for Recipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recipe").finish_non_exhaustive()
    }
}

/// A discipline to build with the first of its configurations. The others are for changes in place.
#[derive(Clone)]
pub(crate) struct Subject {
    /// The name of the type, for messages.
    name: &'static str,
    allowed: Allowed,
    configs: Vec<Rc<dyn Any>>,
    show: Show,
    make: Rc<Make>,
}

type Make = dyn Fn(&dyn Any, u64, Vec<Box<dyn Discipline>>) -> Box<dyn Discipline>;

/// A discipline with its children. It can be built several times.
#[derive(Clone)]
pub struct Tree {
    pub(crate) subject: Subject,
    children: Vec<Tree>,
}

impl Recipe {
    /// Creates the recipe of a discipline without classes, from the strategy of its configurations and its
    /// constructor. The constructor takes a configuration and a seed.
    pub fn leaf<C, D, S>(
        configs: impl Fn() -> S + 'static,
        make: impl Fn(C, u64) -> Result<D, ConfigError> + 'static,
    ) -> Recipe
    where
        C: Clone + fmt::Debug + 'static,
        D: Discipline + 'static,
        S: Strategy<Value = C> + 'static,
    {
        Recipe::classful(
            0..=0,
            move |_| configs(),
            move |config, seed, _| make(config, seed),
        )
    }

    /// Creates the recipe of a discipline with classes. `classes` is the range of their number. `configs`
    /// returns the strategy of configurations for a number of classes. The constructor takes a configuration,
    /// a seed, and the discipline of each class.
    ///
    /// Packets that name a class name it under handle 1, with minor numbers from 1.
    pub fn classful<C, D, S>(
        classes: RangeInclusive<usize>,
        configs: impl Fn(usize) -> S + 'static,
        make: impl Fn(C, u64, Vec<Box<dyn Discipline>>) -> Result<D, ConfigError> + 'static,
    ) -> Recipe
    where
        C: Clone + fmt::Debug + 'static,
        D: Discipline + 'static,
        S: Strategy<Value = C> + 'static,
    {
        fn typed<C: 'static>(config: &dyn Any) -> &C {
            config
                .downcast_ref()
                .expect("the configuration has the subject's type")
        }
        let make: Rc<Make> = Rc::new(move |config, seed, children| {
            let discipline = make(typed::<C>(config).clone(), seed, children);
            Box::new(
                discipline
                    .unwrap_or_else(|error| panic!("the strategy made an invalid configuration: {error}")),
            )
        });
        let subjects = move |count| {
            let make = make.clone();
            // Their type is erased before they are collected: the rest is compiled once for all disciplines.
            let configs = configs(count).prop_map(|config| Rc::new(config) as Rc<dyn Any>);
            vec(configs.boxed(), 1..4)
                .prop_map(move |configs| Subject {
                    allowed: Allowed::default(),
                    configs,
                    show: |config| format!("{:?}", typed::<C>(config)),
                    make: make.clone(),
                    name: type_name::<D>(),
                })
                .boxed()
        };
        Recipe {
            subjects: Rc::new(subjects),
            classes,
        }
    }

    /// Returns the recipe of a shaper: it may throttle, and then its watchdog says when to ask again.
    pub fn shaping(self) -> Recipe {
        self.allowing(|allowed| allowed.shaping = true)
    }

    /// Returns the recipe of a discipline that may reorder the packets of a flow.
    pub fn reordering(self) -> Recipe {
        self.allowing(|allowed| allowed.reordering = true)
    }

    /// Returns the recipe of a discipline that asks to be called more often than it sends. It may be asked at
    /// up to `watchdogs` watchdogs in a row before it sends a packet.
    pub fn polling(self, watchdogs: usize) -> Recipe {
        self.allowing(move |allowed| allowed.watchdogs = watchdogs)
    }

    fn allowing(self, allow: impl Fn(&mut Allowed) + Clone + 'static) -> Recipe {
        let subjects = self.subjects;
        Recipe {
            subjects: Rc::new(move |count| {
                let allow = allow.clone();
                let allowing = move |mut subject: Subject| {
                    allow(&mut subject.allowed);
                    subject
                };
                subjects(count).prop_map(allowing).boxed()
            }),
            ..self
        }
    }

    /// Returns trees with this discipline at the root and trees of `inner` in its classes, if it has any.
    pub fn trees(&self, inner: impl FnOnce() -> BoxedStrategy<Tree>) -> BoxedStrategy<Tree> {
        let subjects = self.subjects.clone();
        let children = match *self.classes.end() {
            0 => Just(Vec::new()).boxed(),
            _ => vec(inner(), self.classes.clone()).boxed(),
        };
        children
            .prop_flat_map(move |children| (subjects(children.len()), Just(children)))
            .prop_map(|(subject, children)| Tree { subject, children })
            .boxed()
    }

    /// Returns trees with short fifos in the classes.
    pub fn trees_of_fifos(&self) -> BoxedStrategy<Tree> {
        let configs = || {
            (1u32..20).prop_map(|limit| fifo::Config {
                limit_packets: Some(limit),
                ..fifo::Config::default()
            })
        };
        self.trees(|| Recipe::leaf(configs, |config, _| Fifo::node(config)).leaves())
    }

    /// Returns trees of this discipline alone. It must not need classes.
    fn leaves(&self) -> BoxedStrategy<Tree> {
        self.trees(|| unreachable!("a discipline that needs classes is not a leaf"))
    }
}

/// Returns trees of all `recipes`, up to five levels deep.
pub fn random_trees(recipes: &[Recipe]) -> BoxedStrategy<Tree> {
    let (leaves, inner): (Vec<_>, Vec<_>) = recipes
        .iter()
        .cloned()
        .partition(|recipe| *recipe.classes.end() == 0);
    let leaves = Union::new(leaves.iter().map(Recipe::leaves)).boxed();
    if inner.is_empty() {
        return leaves;
    }
    // Trees are composed level by level. A tree is a leaf or, twice as likely, a discipline over trees of
    // fewer levels. Two in five trees then have all five levels. Shrinking prefers leaves.
    (1..DEPTH).fold(leaves.clone(), |lower, _| {
        let over = Union::new(inner.iter().map(|recipe| recipe.trees(|| lower.clone())));
        prop_oneof![1 => leaves.clone(), 2 => over].boxed()
    })
}

impl Subject {
    pub(crate) fn reorders(&self) -> bool {
        self.allowed.reordering
    }

    /// How many watchdogs may pass before it sends a packet, beyond the usual number.
    pub(crate) fn watchdogs(&self) -> usize {
        self.allowed.watchdogs
    }

    /// Returns all configurations, including the first one.
    pub(crate) fn configs(&self) -> &[Rc<dyn Any>] {
        &self.configs
    }
}

impl Tree {
    /// Builds the disciplines. Each has its own seed, which is derived from `seed`. With a counter for
    /// probes, each is wrapped in a probe.
    pub(crate) fn build(&self, seed: u64, probes: Option<&Shared>) -> Box<dyn Discipline> {
        let children = (1..)
            .zip(&self.children)
            .map(|(number, child)| child.build(seed.wrapping_mul(31).wrapping_add(number), probes))
            .collect();
        let subject = &self.subject;
        let discipline = (subject.make)(subject.configs[0].as_ref(), seed, children);
        match probes {
            None => discipline,
            Some(shared) => Box::new(Probe::new(
                discipline,
                subject.allowed,
                subject.show,
                shared.clone(),
            )),
        }
    }

    /// Visits this tree and all trees below.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(&Tree)) {
        visit(self);
        for child in &self.children {
            child.visit(visit);
        }
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let configs: Vec<_> = self
            .configs
            .iter()
            .map(|config| (self.show)(config.as_ref()))
            .collect();
        write!(f, "{} {}", self.name, configs.join(", or "))
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.subject)?;
        if !self.children.is_empty() {
            write!(f, " over {:?}", self.children)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate::queues::prio::{self, Prio};
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    fn depth(tree: &Tree) -> u32 {
        1 + tree.children.iter().map(depth).max().unwrap_or(0)
    }

    /// A suite with only shallow trees would also pass, but would test little.
    #[test]
    fn random_trees_reach_five_levels_and_no_more() {
        let recipes = [
            Recipe::leaf(|| Just(fifo::Config::default()), |config, _| Fifo::node(config)),
            Recipe::classful(
                1..=3,
                |_| {
                    Just(prio::Config {
                        priomap: [0; 16],
                        ..prio::Config::default()
                    })
                },
                |config, _, bands| Prio::node(config, bands),
            ),
        ];
        let strategy = random_trees(&recipes);
        let mut runner = TestRunner::deterministic();
        let mut of_depth = [0; DEPTH as usize + 1];
        for _ in 0..400 {
            let tree = strategy.new_tree(&mut runner).expect("nothing is rejected");
            of_depth[depth(&tree.current()) as usize] += 1;
        }
        assert!(
            of_depth[1..].iter().all(|count| *count >= 10),
            "trees of each depth: {of_depth:?}"
        );
    }
}
