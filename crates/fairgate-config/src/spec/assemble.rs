//! Trees that a program makes, without a text that describes them: thousands of classes at once.
//!
//! The discipline itself checks the tree, as it checks one that was read. What is in the classes was checked
//! before, so equal disciplines are checked once, however many classes hold them.

use std::sync::Arc;

use fairgate::ConfigError;
use fairgate::change::placeholder;
use fairgate::classify::{Classifier, Filter};
use fairgate::registry::tree::inner_classes;
use miette::NamedSource;

use super::{Estimators, Origin, Spec};
use crate::registry::{ClassSettings, PARENT, ParameterInfo, Parts, Registry, Settings, Value};

/// A class of a tree that a program makes.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The number of the class.
    pub minor: u32,
    /// The number of the class above it.
    pub parent: Option<u32>,
    /// Its parameters by their names. The others have their defaults.
    pub settings: Vec<(&'static str, Value)>,
    /// What it holds, if no class is below it.
    pub tree: Option<Spec>,
}

/// A tree of classes that a program makes.
#[derive(Clone, Debug)]
pub struct Assembly {
    /// The discipline that holds the classes, like `htb`.
    pub discipline: &'static str,
    /// The classes, in any order.
    pub classes: Vec<Branch>,
    /// The filters, in the order in which they are tried.
    pub filters: Vec<Filter>,
    /// The class of packets that no filter matches.
    pub default: Option<u32>,
    /// The text that errors name which are found later.
    pub source: Arc<NamedSource<String>>,
}

impl Assembly {
    /// Checks the tree.
    ///
    /// # Errors
    /// If the registry has no such discipline, if a parameter is unknown, or if the discipline refuses the
    /// tree.
    pub fn build(mut self, registry: &Registry) -> Result<Spec, ConfigError> {
        let holds_classes =
            |entry: &&'static dyn crate::registry::Entry| entry.about().children.are_classes();
        let entry = registry.entries(self.discipline).find(holds_classes);
        let entry = entry.ok_or_else(|| {
            ConfigError::conflict(
                "discipline",
                self.discipline,
                "one that holds classes",
                "use htb or hfsc",
            )
        })?;
        let parameters = entry.class_parameters();
        self.classes.sort_by_key(|class| class.minor);
        let (mut classes, mut children) = (Vec::with_capacity(self.classes.len()), Vec::new());
        for branch in self.classes {
            let parent = branch.parent.map(|parent| (PARENT, Value::Number(parent.into())));
            let given = parent.into_iter().chain(branch.settings);
            let settings = given.map(|(name, value)| Ok((index_of(&parameters, name)?, value)));
            let mut settings = settings.collect::<Result<Vec<_>, ConfigError>>()?;
            settings.sort_by_key(|(index, _)| *index);
            classes.push(ClassSettings {
                minor: branch.minor,
                template: None,
                settings,
            });
            children.push((branch.minor, branch.tree));
        }
        let inner = inner_classes(entry, &classes);
        let children = children
            .into_iter()
            .filter(|(minor, _)| !inner.contains(minor))
            .map(|(minor, tree)| {
                tree.ok_or_else(|| {
                    ConfigError::conflict("class", minor, "a leaf that holds a discipline", "give it one")
                })
            });
        let children = children.collect::<Result<Vec<Spec>, ConfigError>>()?;
        let settings = Settings {
            own: Vec::new(),
            classes,
            classifier: Classifier {
                filters: self.filters.into(),
                default: self.default,
                ..Classifier::default()
            },
        };
        let stand_ins = children.iter().map(|_| placeholder()).collect();
        entry.check(&settings, Parts::new(stand_ins, 0))?;
        Ok(Spec {
            entry,
            settings: settings.into(),
            children: children.into(),
            estimators: Estimators::default().into(),
            origin: Origin::whole(self.source).into(),
        })
    }
}

fn index_of(parameters: &[ParameterInfo], name: &'static str) -> Result<usize, ConfigError> {
    let index = parameters.iter().position(|info| info.name == name);
    index.ok_or_else(|| {
        ConfigError::conflict(
            "parameter",
            name,
            "a parameter of a class",
            "see `fairgate list` for its names",
        )
    })
}

#[cfg(test)]
mod tests {
    use fairgate::classify::{Match, Prefix};

    use super::*;

    fn source() -> Arc<NamedSource<String>> {
        Arc::new(NamedSource::new("list", String::new()))
    }

    fn assembly() -> Assembly {
        let rate = |bits| vec![("rate", Value::Number(bits))];
        let fifo = Spec::inline("fifo").unwrap();
        Assembly {
            discipline: "htb",
            classes: vec![
                Branch {
                    minor: 20,
                    parent: Some(1),
                    settings: rate(5_000_000),
                    tree: Some(fifo.clone()),
                },
                Branch {
                    minor: 1,
                    parent: None,
                    settings: rate(20_000_000),
                    tree: None,
                },
                Branch {
                    minor: 10,
                    parent: Some(1),
                    settings: rate(15_000_000),
                    tree: Some(fifo),
                },
            ],
            filters: vec![Filter {
                condition: Match {
                    source: Some(Prefix::new("192.0.2.1".parse().unwrap(), 32).unwrap()),
                    ..Match::default()
                },
                outcome: 10.into(),
                ..Filter::default()
            }],
            default: Some(20),
            source: source(),
        }
    }

    /// It is the tree that the same classes in a file give.
    #[test]
    fn an_assembled_tree_is_the_one_that_is_read() {
        let made = assembly().build(&Registry::builtin()).unwrap();
        let read =
            Spec::inline("htb default=20 { 1 rate=20mbit { 10 rate=15mbit / fifo; 20 rate=5mbit / fifo } }");
        let read = read
            .unwrap()
            .edited("filter add class=10 source=192.0.2.1/32", &Registry::builtin());
        assert_eq!(made, read.unwrap());
        assert!(made.build(1).is_ok());
    }

    #[test]
    fn what_the_discipline_refuses_is_refused() {
        let registry = Registry::builtin();
        let mut orphan = assembly();
        orphan.classes[0].parent = Some(7);
        assert!(orphan.build(&registry).is_err());
        let mut nowhere = assembly();
        nowhere.default = Some(99);
        assert!(nowhere.build(&registry).is_err());
        let mut unknown = assembly();
        unknown.classes[0].settings.push(("colour", Value::Number(1)));
        assert!(unknown.build(&registry).is_err());
        let mut empty = assembly();
        empty.classes[0].tree = None;
        assert!(empty.build(&registry).is_err());
        let mut classless = assembly();
        classless.discipline = "fifo";
        assert!(classless.build(&registry).is_err());
    }
}
