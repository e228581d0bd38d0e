//! How disciplines under test are made: configurations, constructors, and trees of them.

use std::any::{Any, type_name};
use std::fmt;
use std::ops::RangeInclusive;
use std::rc::Rc;

use fairgate::queues::fifo::{self, Fifo};
use fairgate::{ConfigError, Discipline};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Union;

use crate::probe::{Probe, Withheld};

/// Levels of a random tree, its leaves included.
const DEPTH: u32 = 5;

/// A discipline's constructor with random configurations.
#[derive(Clone)]
pub struct Recipe {
    /// Subjects with so many classes.
    subjects: Rc<dyn Fn(usize) -> BoxedStrategy<Subject>>,
    classes: RangeInclusive<usize>,
}

/// One discipline to be made: with the first of its configurations; the others are for changes in place.
#[derive(Clone)]
pub(crate) struct Subject {
    /// Of its type, to be printed.
    name: &'static str,
    shapes: bool,
    configs: Vec<Rc<dyn Any>>,
    show: Show,
    make: Rc<Make>,
}

/// The text of a configuration, to compare and to print.
pub(crate) type Show = fn(&dyn Any) -> String;

type Make = dyn Fn(&dyn Any, u64, Vec<Box<dyn Discipline>>) -> Box<dyn Discipline>;

/// A discipline with its inner disciplines, to be built as often as needed.
#[derive(Clone)]
pub struct Tree {
    pub(crate) subject: Subject,
    children: Vec<Tree>,
}

impl Recipe {
    /// A discipline without classes: the strategy of its configurations, and its constructor, which takes a
    /// configuration and a seed.
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

    /// A discipline with classes: how many; the strategy of configurations for so many; its constructor, which takes a
    /// configuration, a seed, and the inner discipline of each class.
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
                .expect("the configuration of a subject is of its type")
        }
        let make: Rc<Make> = Rc::new(move |config, seed, children| {
            let discipline = make(typed::<C>(config).clone(), seed, children);
            Box::new(discipline.unwrap_or_else(|error| panic!("a configuration of the strategy: {error}")))
        });
        let subjects = move |count| {
            let make = make.clone();
            vec(configs(count), 1..4)
                .prop_map(move |configs| Subject {
                    shapes: false,
                    configs: configs
                        .into_iter()
                        .map(|config| Rc::new(config) as Rc<dyn Any>)
                        .collect(),
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

    /// The same for a discipline that may hold packets back, and then tells by its watchdog when to ask again.
    pub fn shaping(self) -> Recipe {
        let subjects = self.subjects;
        Recipe {
            subjects: Rc::new(move |count| {
                let shaping = |subject| Subject {
                    shapes: true,
                    ..subject
                };
                subjects(count).prop_map(shaping).boxed()
            }),
            ..self
        }
    }

    /// Trees with this discipline at the root and `inner` in its classes, if it has any.
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

    /// The same with short fifos in the classes.
    pub fn trees_of_fifos(&self) -> BoxedStrategy<Tree> {
        let configs = || {
            (1u32..20).prop_map(|limit| fifo::Config {
                limit_packets: Some(limit),
                ..fifo::Config::default()
            })
        };
        self.trees(|| Recipe::leaf(configs, |config, _| Fifo::node(config)).leaves())
    }

    /// Trees of this discipline alone, which must not have classes.
    fn leaves(&self) -> BoxedStrategy<Tree> {
        self.trees(|| unreachable!("a discipline that needs classes is no leaf"))
    }
}

/// Trees up to five levels deep, composed of all `recipes`.
pub fn random_trees(recipes: &[Recipe]) -> BoxedStrategy<Tree> {
    let (leaves, inner): (Vec<_>, Vec<_>) = recipes
        .iter()
        .cloned()
        .partition(|recipe| *recipe.classes.end() == 0);
    let leaves = Union::new(leaves.iter().map(Recipe::leaves)).boxed();
    if inner.is_empty() {
        return leaves;
    }
    // Level by level: a tree is a leaf or, twice as likely, a discipline over trees of fewer levels. Two in five then
    // have all five levels. Shrinking goes towards leaves.
    (1..DEPTH).fold(leaves.clone(), |lower, _| {
        let over = Union::new(inner.iter().map(|recipe| recipe.trees(|| lower.clone())));
        prop_oneof![1 => leaves.clone(), 2 => over].boxed()
    })
}

impl Subject {
    /// All configurations, the first one included.
    pub(crate) fn configs(&self) -> &[Rc<dyn Any>] {
        &self.configs
    }
}

impl Tree {
    /// Builds the disciplines, each under a seed of its own derived from `seed`; under probes if there is a counter
    /// for them.
    pub(crate) fn build(&self, seed: u64, probes: Option<&Withheld>) -> Box<dyn Discipline> {
        let children = (1..)
            .zip(&self.children)
            .map(|(number, child)| child.build(seed.wrapping_mul(31).wrapping_add(number), probes))
            .collect();
        let subject = &self.subject;
        let discipline = (subject.make)(subject.configs[0].as_ref(), seed, children);
        match probes {
            None => discipline,
            Some(withheld) => Box::new(Probe::new(
                discipline,
                subject.shapes,
                subject.show,
                withheld.clone(),
            )),
        }
    }

    /// This and all below.
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

    /// A suite of shallow trees would pass as well, and prove little.
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
