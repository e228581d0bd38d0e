//! Estimates the memory that a tree occupies before the first packet. The packets themselves belong to the
//! driver.

use std::collections::BTreeMap;

use super::Spec;
use crate::error::Problem;
use crate::units;

/// The size of a discipline with its statistics, or of a class, in bytes.
const NODE: u64 = 1000;

impl Spec {
    /// Returns an estimate of the tree's memory in bytes, correct to a factor of three. All of it is
    /// allocated when the tree is built, or later, as disciplines [are used](Spec::build_for_refills).
    pub fn memory(&self) -> u64 {
        self.classes_in_all()
            .fold(self.own_memory(), |sum, (count, tree)| {
                sum.saturating_add(count.saturating_mul(tree.map_or(NODE, Spec::memory)))
            })
    }

    /// Returns a problem at the discipline that occupies the most memory, if the tree needs more than
    /// `available` bytes. A program that knows the machine's memory should reject such a tree.
    pub fn too_large_for(&self, available: u64) -> Option<Problem> {
        self.larger_than(self.memory(), available)
    }

    /// Returns the same for a tree that takes the place of a running one, beside which it is built: equal
    /// parts are not built again.
    pub fn too_large_beside(&self, running: &Spec, available: u64) -> Option<Problem> {
        self.larger_than(self.memory_beside(running), available)
    }

    /// Returns an estimate of the memory of those parts that a change from `running` builds.
    pub fn memory_beside(&self, running: &Spec) -> u64 {
        if self == running {
            return 0;
        }
        if self.discipline() != running.discipline() {
            return self.memory();
        }
        // Whether other settings can be taken in place, only the discipline knows.
        let own = match self.settings.own == running.settings.own {
            true => 0,
            false => self.own_memory(),
        };
        let before: BTreeMap<u32, Option<&Spec>> =
            running.trees().map(|(minor, _, tree)| (minor, tree)).collect();
        self.trees().fold(own, |sum, (minor, count, tree)| {
            let tree = match (tree, before.get(&minor)) {
                (Some(tree), Some(Some(old))) => tree.memory_beside(old),
                (Some(tree), _) => tree.memory(),
                (None, Some(_)) => 0,
                (None, None) => NODE,
            };
            sum.saturating_add(count.saturating_mul(tree))
        })
    }

    fn larger_than(&self, needed: u64, available: u64) -> Option<Problem> {
        (needed > available).then(|| {
            let (culprit, count) = self.largest(1);
            let [needed, available] = [needed, available].map(units::format_memory);
            let times = match count {
                1 => String::new(),
                count => format!(", most of it {count} times this `{}`", culprit.discipline()),
            };
            culprit.origin.problem(
                culprit.origin.discipline(),
                format!("the tree takes about {needed} of memory{times}; {available} is available"),
                format!("more than {available}"),
                "lower `count` of the classes, `flows` or `limit` of what is in them, or leave classes out"
                    .to_owned(),
            )
        })
    }

    /// Returns the discipline in this tree that occupies the most memory together with its equals in a
    /// template, and the number of these. `alike` is the number of trees like this one.
    fn largest(&self, alike: u64) -> (&Spec, u64) {
        let in_all = |(count, tree): (u64, &Spec)| count.saturating_mul(tree.memory());
        let trees = self
            .classes_in_all()
            .filter_map(|(count, tree)| Some((count, tree?)));
        match trees.max_by_key(|tree| in_all(*tree)) {
            Some(tree) if in_all(tree) > self.own_memory() => tree.1.largest(alike.saturating_mul(tree.0)),
            _ => (self, alike),
        }
    }

    /// Returns for each class the number of equal classes and the tree in it; or the inner discipline.
    fn classes_in_all(&self) -> impl Iterator<Item = (u64, Option<&Spec>)> {
        self.trees().map(|(_, count, tree)| (count, tree))
    }

    /// Returns the memory of the root without that of its classes.
    fn own_memory(&self) -> u64 {
        NODE.saturating_add(self.entry.memory(&self.settings))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fairgate::Discipline;

    use super::*;
    use crate::registry::Unit;
    use crate::registry::{Registry, Value};
    use crate::testing::smallest;

    /// Returns the memory that a tree really allocates, in bytes.
    fn taken(spec: &Spec) -> Option<u64> {
        let mut built: Option<Box<dyn Discipline>> = None;
        let info = allocation_counter::measure(|| built = spec.build(1).ok());
        built.map(|_| info.bytes_current.max(0) as u64)
    }

    /// Every discipline is measured with its defaults, and with each of its counts raised.
    #[test]
    fn the_estimate_is_correct_to_a_factor_of_three() {
        let (mut compared, mut wrong) = (0, Vec::new());
        for entry in Registry::builtin().iter() {
            let plain = smallest(entry);
            let counts = entry.parameters().into_iter().enumerate();
            let counts = counts.filter(|(_, info)| matches!(info.unit, Unit::Count(_)));
            let raised = counts.map(|(index, info)| {
                let mut spec = plain.clone();
                let settings = Arc::make_mut(&mut spec.settings);
                settings.own.retain(|(other, _)| *other != index);
                let most = Value::Number((*info.range.end()).min(100_000));
                settings.own.push((index, most));
                spec
            });
            for spec in std::iter::once(plain.clone()).chain(raised) {
                let Some(taken) = taken(&spec) else { continue };
                let estimate = spec.memory();
                // For less than a few pages the error does not matter.
                let [low, high] = [taken / 3, taken.saturating_mul(3).max(50_000)];
                if !(low..=high).contains(&estimate) {
                    wrong.push(format!("{spec} takes {taken}, not {estimate}"));
                }
                compared += 1;
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(
            compared > 2 * Registry::builtin().iter().len(),
            "{compared} compared"
        );
    }

    #[test]
    fn each_class_for_hosts_counts_and_the_largest_discipline_is_reported() {
        let tree = "htb default=1 { 1 rate=1mbit / fifo; \
                    2 rate=1mbit each=destination count=60000 overflow=1 / fq_codel flows=1048576 }";
        let spec = Spec::inline(tree).expect("a tree");
        assert!(spec.memory() > 4_000_000_000_000);
        assert!(spec.too_large_for(1 << 50).is_none());
        let problem = spec.too_large_for(16 << 30).expect("it is too large");
        assert_eq!(&tree[problem.span.clone()], "fq_codel");
        assert!(
            problem.message.contains("most of it 60000 times this `fq_codel`"),
            "{}",
            problem.message
        );
    }

    /// Equal parts of a running tree are not built again.
    #[test]
    fn a_change_needs_what_it_builds() {
        let tree = |text: &str| Spec::inline(text).unwrap();
        let (small, large) = ("1 / fifo", "2 / fq_codel flows=65536");
        let running = tree(&format!("drr {{ {small}; {large} }}"));
        assert_eq!(running.memory_beside(&running), 0);
        let one = tree(&format!("drr {{ 1 quantum=3000 / fifo; {large} }}"));
        assert!(one.memory_beside(&running) < large_memory() / 10);
        let two = tree(&format!("drr {{ {small}; {large}; 3 / fq_codel flows=65536 }}"));
        let needed = two.memory_beside(&running);
        assert!((large_memory()..2 * large_memory()).contains(&needed), "{needed}");
        let other = tree("htb { 1 rate=1mbit / fifo; 2 rate=1mbit / fq_codel flows=65536 }");
        assert_eq!(other.memory_beside(&running), other.memory());
        assert!(two.too_large_beside(&running, needed).is_none());
        assert!(two.too_large_beside(&running, needed - 1).is_some());
    }

    fn large_memory() -> u64 {
        Spec::inline("fq_codel flows=65536").unwrap().memory()
    }
}
