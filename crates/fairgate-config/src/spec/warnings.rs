//! Warnings about descriptions that are valid, but probably not intended.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fairgate::Rate;

use crate::registry::Value;
use crate::spec::{ClassSpec, Spec};

/// How many classes a warning names.
const WORST: usize = 3;

/// Buckets need a few frames at any rate, bytes.
const FEW_FRAMES: u64 = 20_000;

impl Spec {
    /// Returns the warnings about this tree and all trees in it.
    pub fn warnings(&self) -> Vec<String> {
        let own = self
            .entry
            .warnings(&self.settings)
            .into_iter()
            .chain(self.oversubscribed())
            .chain(self.long_buckets());
        own.chain(self.children.iter().flat_map(Spec::warnings)).collect()
    }

    /// Reports buckets that hold more than a second of their rate: for so long a burst passes the limit.
    fn long_buckets(&self) -> Option<String> {
        let is_long = |rate: Option<u64>, burst: Option<u64>| {
            rate.zip(burst)
                .is_some_and(|(rate, burst)| burst > (rate / 8).max(FEW_FRAMES))
        };
        let own = |name: &str| match self.parameters().iter().find(|(info, _)| info.name == name)?.1 {
            Value::Number(number) => Some(number),
            _ => None,
        };
        let remedy =
            "a burst goes beyond the limit for as long as that; make it shorter if that is not meant";
        if is_long(own("rate"), own("burst")) {
            return Some(format!(
                "its bucket holds more than a second of its rate: {remedy}"
            ));
        }
        let long = |class: &ClassSpec<'_>| {
            let (rate, ceil) = (
                number(class, "rate"),
                number(class, "ceil").or(number(class, "rate")),
            );
            is_long(rate, number(class, "burst")) || is_long(ceil, number(class, "cburst"))
        };
        let classes = self.classes();
        let mut long = classes
            .iter()
            .filter(|class| long(class))
            .map(|class| class.minor);
        let first = long.next()?;
        let others = match long.count() {
            0 => String::new(),
            more => format!(" (and of {more} more)"),
        };
        Some(format!(
            "the bucket of class {first}{others} holds more than a second of its rate: {remedy}"
        ))
    }

    /// Reports classes whose children have more guaranteed rate together than the class has. The children
    /// keep their guaranteed rates, so together they exceed the class's limit. Many classes give one line.
    /// Templates are left out: their hosts seldom send at the same time, and overselling is the provider's
    /// decision.
    fn oversubscribed(&self) -> Option<String> {
        let classes = self.classes();
        let mut below: BTreeMap<u32, u64> = BTreeMap::new();
        for class in classes.iter().filter(|class| class.template.is_none()) {
            if let (Some(parent), Some(rate)) = (class.parent(), number(class, "rate")) {
                let sum = below.entry(parent).or_default();
                *sum = sum.saturating_add(rate);
            }
        }
        let exceeded = |class: &ClassSpec<'_>| {
            let limit = number(class, "ceil").or_else(|| number(class, "rate"))?;
            let sum = *below.get(&class.minor)?;
            (sum > limit).then_some((class.minor, sum, limit))
        };
        let mut exceeded: Vec<(u32, u64, u64)> = classes.iter().filter_map(exceeded).collect();
        exceeded.sort_by_key(|(_, sum, limit)| Reverse(sum - limit));
        let shown = |bits: u64| {
            Rate::from_bits_per_second(bits).map_or_else(|_| bits.to_string(), |rate| rate.to_string())
        };
        match exceeded[..] {
            [] => None,
            [(class, sum, limit)] => Some(format!(
                "the classes below class {class} have guaranteed rates of {} together, and will exceed its \
                 {} when all of them send",
                shown(sum),
                shown(limit)
            )),
            _ => {
                let worst = exceeded.iter().take(WORST);
                let worst = worst.map(|(class, sum, limit)| {
                    format!("below class {class}, {} in {}", shown(*sum), shown(*limit))
                });
                Some(format!(
                    "the classes below {} classes have guaranteed rates that exceed the limit above them \
                     when all of them send; the most: {}",
                    exceeded.len(),
                    worst.collect::<Vec<_>>().join("; ")
                ))
            }
        }
    }
}

fn number(class: &ClassSpec<'_>, name: &str) -> Option<u64> {
    let found = class.parameters.iter().find(|(info, _)| info.name == name)?;
    match found.1 {
        Value::Number(number) => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(tree: &str) -> Vec<String> {
        Spec::inline(tree).expect("a tree").warnings()
    }

    #[test]
    fn buckets_of_more_than_a_second_are_reported() {
        assert_eq!(warnings("tbf rate=8mbit burst=1000001b limit=9mb").len(), 1);
        assert!(warnings("tbf rate=8mbit burst=1000000b limit=9mb").is_empty());
        let htb = "htb { 1 rate=8mbit burst=1000001b / fifo; 2 rate=8mbit cburst=1000001b / fifo }";
        assert!(warnings(htb)[0].starts_with("the bucket of class 1 (and of 1 more) holds more"));
    }

    #[test]
    fn classes_with_more_guaranteed_rate_than_their_parent_are_reported() {
        let cbq = "cbq bandwidth=10mbit { 1 rate=6mbit { 2 rate=5mbit / fifo; 3 rate=3mbit / fifo } }";
        assert_eq!(
            warnings(cbq),
            [
                "the classes below class 1 have guaranteed rates of 8Mbit together, and will exceed its \
                 6Mbit when all of them send"
            ]
        );
        assert!(warnings(&cbq.replace("3mbit", "1mbit")).is_empty());
        let htb = "htb { 1 rate=6mbit ceil=9mbit { 2 rate=5mbit / fifo; 3 rate=3mbit / fifo } }";
        assert!(warnings(htb).is_empty(), "its limit is the ceil");
        assert_eq!(warnings(&htb.replace("9mbit", "7mbit")).len(), 1);
        let within = format!("drr {{ 1 / {htb} }}").replace("9mbit", "7mbit");
        assert_eq!(warnings(&within).len(), 1, "also for a tree in another one");
    }
}
