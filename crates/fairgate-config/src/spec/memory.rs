//! About how much memory a tree takes before the first packet comes. Packets themselves are the driver's.

use super::Spec;
use crate::error::Problem;
use crate::units;

/// A discipline with its statistics, or a class, bytes.
const NODE: u64 = 1000;

impl Spec {
    /// About how much memory the tree takes, bytes: within thrice of it. All is taken when it is built.
    pub fn memory(&self) -> u64 {
        self.classes_in_all()
            .fold(self.own_memory(), |sum, (count, tree)| {
                sum.saturating_add(count.saturating_mul(tree.map_or(NODE, Spec::memory)))
            })
    }

    /// The place that takes the most, if the tree takes more than `available` bytes. Whoever knows the machine refuses such a tree.
    pub fn too_large_for(&self, available: u64) -> Option<Problem> {
        let needed = self.memory();
        (needed > available).then(|| {
            let (culprit, count) = self.largest(1);
            let [needed, available] = [needed, available].map(units::format_memory);
            let times = match count {
                1 => String::new(),
                count => format!(", most of it {count} times this `{}`", culprit.discipline()),
            };
            culprit.origin.problem(
                culprit.origin.discipline(),
                format!("the tree takes about {needed} of memory{times}; {available} can be had"),
                format!("more than {available}"),
                "lower `count` of the classes, `flows` or `limit` of what is in them, or leave classes out"
                    .to_owned(),
            )
        })
    }

    /// The discipline, of this one and what is in it, that takes the most with all that are alike, and how many they are.
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

    /// Each class, how many of them are alike, and what is in each; or the inner discipline.
    fn classes_in_all(&self) -> impl Iterator<Item = (u64, Option<&Spec>)> {
        self.classes()
            .into_iter()
            .map(|class| (u64::from(class.count()), class.tree))
    }

    /// Without what it holds.
    fn own_memory(&self) -> u64 {
        NODE.saturating_add(self.entry.memory(&self.settings))
    }
}

#[cfg(test)]
mod tests {
    use fairgate::Discipline;

    use super::*;
    use crate::registry::Unit;
    use crate::registry::{Registry, Value};
    use crate::testing::smallest;

    /// What a tree really takes, bytes.
    fn taken(spec: &Spec) -> Option<u64> {
        let mut built: Option<Box<dyn Discipline>> = None;
        let info = allocation_counter::measure(|| built = spec.build(1).ok());
        built.map(|_| info.bytes_current.max(0) as u64)
    }

    /// Every discipline at its defaults, and with each of its counts raised.
    #[test]
    fn the_estimate_is_within_thrice_of_what_is_taken() {
        let (mut compared, mut wrong) = (0, Vec::new());
        for entry in Registry::builtin().iter() {
            let plain = smallest(entry);
            let counts = entry.parameters().into_iter().enumerate();
            let counts = counts.filter(|(_, info)| matches!(info.unit, Unit::Count(_)));
            let raised = counts.map(|(place, info)| {
                let mut spec = plain.clone();
                spec.settings.own.retain(|(other, _)| *other != place);
                let most = Value::Number((*info.range.end()).min(100_000));
                spec.settings.own.push((place, most));
                spec
            });
            for spec in std::iter::once(plain.clone()).chain(raised) {
                let Some(taken) = taken(&spec) else { continue };
                let estimate = spec.memory();
                // Below some pages it does not matter.
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
    fn classes_for_hosts_count_each_and_the_place_of_most_is_told() {
        let tree = "htb default=1 { 1 rate=1mbit / fifo; 2 rate=1mbit each=destination count=60000 overflow=1 / fq_codel flows=1048576 }";
        let spec = Spec::inline(tree).expect("a tree");
        assert!(spec.memory() > 4_000_000_000_000);
        assert!(spec.too_large_for(1 << 50).is_none());
        let told = spec.too_large_for(16 << 30).expect("it is too large");
        assert_eq!(&tree[told.span.clone()], "fq_codel");
        assert!(
            told.message.contains("most of it 60000 times this `fq_codel`"),
            "{}",
            told.message
        );
    }
}
