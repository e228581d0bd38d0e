//! Which classes of a run belong to which subscribers.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairgate_run_api::{NodeStatus, SHARDED, SubscriberName};

/// The subscribers of a tree, by the numbers of their classes at its root. Copies share them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriberNames(Arc<BTreeMap<u16, SubscriberName>>);

impl FromIterator<(u16, SubscriberName)> for SubscriberNames {
    fn from_iter<I: IntoIterator<Item = (u16, SubscriberName)>>(names: I) -> SubscriberNames {
        SubscriberNames(Arc::new(names.into_iter().collect()))
    }
}

impl SubscriberNames {
    /// Returns whose a class is, with all that is in it. `path` has the numbers of the classes from the root
    /// on; with several workers it begins with the number of the worker.
    pub(super) fn of_path(&self, path: &str, has_workers: bool) -> Option<&SubscriberName> {
        let number = path.split('/').nth(usize::from(has_workers))?;
        self.0.get(&number.parse().ok()?)
    }

    /// Adds them to the document of their tree.
    pub(super) fn add_to(&self, root: &mut NodeStatus) {
        if self.0.is_empty() {
            return;
        }
        if root.discipline == SHARDED {
            root.classes.iter_mut().for_each(|tree| self.add_to_tree(tree));
        } else {
            self.add_to_tree(root);
        }
    }

    fn add_to_tree(&self, root: &mut NodeStatus) {
        for node in &mut root.classes {
            node.subscriber = node.class.and_then(|class| self.0.get(&class)).cloned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> SubscriberNames {
        let name = |id: &str, name: Option<&str>| SubscriberName {
            id: id.to_owned(),
            name: name.map(str::to_owned),
        };
        [(16, name("1001", Some("Anna"))), (17, name("1002", None))]
            .into_iter()
            .collect()
    }

    #[test]
    fn a_class_belongs_to_a_subscriber_with_all_that_is_in_it() {
        let names = names();
        let shown = |path, has_workers| names.of_path(path, has_workers).map(ToString::to_string);
        assert_eq!(shown("16", false).as_deref(), Some("1001 Anna"));
        assert_eq!(shown("17/16", false).as_deref(), Some("1002"));
        assert_eq!(shown("16/17/2", true).as_deref(), Some("1002"));
        for (path, has_workers) in [
            ("", false),
            ("18", false),
            ("2/16", false),
            ("16", true),
            ("", true),
        ] {
            assert_eq!(shown(path, has_workers), None, "{path}");
        }
    }

    #[test]
    fn a_long_name_is_cut() {
        let names = names();
        let brief = |most| names.of_path("16", false).map(|name| name.brief(most));
        assert_eq!(brief(9).as_deref(), Some("1001 Anna"));
        assert_eq!(brief(8).as_deref(), Some("1001 An…"));
    }
}
