//! What the classes of a run are called.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairgate_run_api::{ClassName, NodeStatus, OutlineEntry, SHARDED, SubscriberName};

/// What a list of subscribers says about the classes of a tree, by their numbers at its root. It is the one
/// place from which all documents of a run have it. Copies share it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassNames(Arc<BTreeMap<u32, ClassName>>);

impl FromIterator<(u32, ClassName)> for ClassNames {
    fn from_iter<I: IntoIterator<Item = (u32, ClassName)>>(names: I) -> ClassNames {
        ClassNames(Arc::new(names.into_iter().collect()))
    }
}

impl ClassNames {
    /// Returns whose a class is, with all that is in it. `path` has the numbers of the classes from the root
    /// on; with several workers it begins with the number of the worker.
    pub(super) fn of_path(&self, path: &str, has_workers: bool) -> Option<&SubscriberName> {
        let number = path.split('/').nth(usize::from(has_workers))?;
        self.0.get(&number.parse().ok()?)?.subscriber.as_ref()
    }

    /// Adds them to the document of their tree.
    pub fn add_to(&self, root: &mut NodeStatus) {
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
            let Some(known) = node.class.and_then(|class| self.0.get(&class)) else {
                continue;
            };
            node.name = Some(known.name.clone());
            node.node = known.node;
            node.limit_bps = Some(known.limit_bps);
            node.subscriber.clone_from(&known.subscriber);
        }
        for state in &mut root.class_states {
            // The class of a subscriber has all of this at its discipline.
            let known = self.0.get(&state.class);
            if let Some(known) = known.filter(|known| known.subscriber.is_none()) {
                state.name = Some(known.name.clone());
                state.node = known.node;
                state.limit_bps = Some(known.limit_bps);
            }
        }
    }

    /// Returns what people call each class.
    pub fn called(&self) -> BTreeMap<u32, String> {
        let called = |known: &ClassName| match &known.subscriber {
            Some(subscriber) => subscriber.to_string(),
            None => known.name.clone(),
        };
        self.0
            .iter()
            .map(|(class, known)| (*class, called(known)))
            .collect()
    }

    /// Adds the names to the outline of their tree.
    pub fn add_to_outline(&self, places: &mut [OutlineEntry]) {
        for place in places {
            let known = place.path.parse().ok().and_then(|class: u32| self.0.get(&class));
            place.name = known.map(|known| known.name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> ClassNames {
        let name = |id: &str, name: Option<&str>| ClassName {
            name: name.unwrap_or(id).to_owned(),
            subscriber: Some(SubscriberName {
                id: id.to_owned(),
                name: name.map(str::to_owned),
                plan: None,
                limited_until_s: None,
            }),
            node: Some(18),
            limit_bps: 1_000_000,
        };
        let tower = ClassName {
            name: "Tower".to_owned(),
            limit_bps: 9_000_000,
            ..ClassName::default()
        };
        [
            (16, name("1001", Some("Anna"))),
            (17, name("1002", None)),
            (18, tower),
        ]
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
