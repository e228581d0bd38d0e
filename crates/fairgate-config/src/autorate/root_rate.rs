//! The rate at the root of a tree: which trees have one, and how it is changed.
//!
//! The tree is changed by the words of `fairgate queue` and `fairgate class`, so a new rate is what a user
//! could have ordered, and is checked as that is.

use fairgate::Rate;
use fairgate::registry::{Registry, Value};

use crate::error::FileError;
use crate::spec::{ClassSpec, Spec};

/// Where a tree has its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootRate(RateOwner);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RateOwner {
    /// The parameter of the root discipline with this name.
    Own(&'static str),
    /// The class of htb above all others.
    Htb(u32),
    /// The class of hfsc above all others, which has an upper limit.
    Hfsc(u32),
}

impl RootRate {
    /// Finds the rate of a tree.
    ///
    /// ```
    /// use fairgate::Rate;
    /// use fairgate::registry::Registry;
    /// use fairgate_config::Spec;
    /// use fairgate_config::autorate::RootRate;
    ///
    /// let tree = Spec::inline("tbf rate=20mbit burst=5kb / fq_codel")?;
    /// let rate = RootRate::of(&tree).unwrap();
    /// let changed = rate.set(&tree, Rate::mbit(7), &Registry::builtin())?;
    /// assert_eq!(changed, Spec::inline("tbf rate=7mbit burst=5kb / fq_codel")?);
    /// # Ok::<(), fairgate_config::FileError>(())
    /// ```
    ///
    /// # Errors
    /// Says why a tree has no rate that can be changed, and what to do.
    pub fn of(tree: &Spec) -> Result<RootRate, [String; 2]> {
        let unfit = |message: String, remedy: &str| Err([message, remedy.to_owned()]);
        match tree.discipline() {
            "tbf" if tree.is_given("peakrate") => unfit(
                "the `peakrate` of this tbf would stay while its rate changes".to_owned(),
                "remove `peakrate` and `mtu`",
            ),
            "tbf" => Ok(RootRate(RateOwner::Own("rate"))),
            "cake" if !tree.is_given("bandwidth") => unfit(
                "this cake has no `bandwidth` that could change".to_owned(),
                "give it the base rate as its `bandwidth`",
            ),
            "cake" => Ok(RootRate(RateOwner::Own("bandwidth"))),
            name @ ("htb" | "hfsc") => {
                let classes = tree.classes();
                let mut top = classes.iter().filter(|class| class.parent().is_none());
                let (Some(root), None) = (top.next(), top.next()) else {
                    return unfit(
                        format!("this {name} has not one class above all others, whose rate could change"),
                        "put all classes below one: give them a `parent`",
                    );
                };
                match name {
                    "htb" => Ok(RootRate(RateOwner::Htb(root.minor))),
                    _ if value(root, "ul").is_none() => unfit(
                        format!(
                            "class {} above all others has no upper limit that could change",
                            root.minor
                        ),
                        "give it the base rate as its `ul`",
                    ),
                    _ => Ok(RootRate(RateOwner::Hfsc(root.minor))),
                }
            }
            name => unfit(
                format!("`{name}` has no rate at the root of the tree"),
                "use a shaper there: tbf, cake with a `bandwidth`, or htb or hfsc with one class above all",
            ),
        }
    }

    /// Returns the sum of the rates that classes of the tree get whatever the rate at the root is, bit/s. A
    /// rate below it would not be kept.
    pub fn guaranteed(self, tree: &Spec) -> u64 {
        let name = match self.0 {
            RateOwner::Own(_) => return 0,
            RateOwner::Htb(_) => "rate",
            RateOwner::Hfsc(_) => "rt",
        };
        let leaves = tree.classes().into_iter().filter(|class| class.tree.is_some());
        let rates = leaves.map(|class| {
            let rate = match value(&class, name) {
                Some(Value::Number(rate)) => *rate,
                // The rate that a curve has in the long run.
                Some(Value::List(curve)) => curve.last().copied().unwrap_or(0),
                _ => 0,
            };
            rate.saturating_mul(class.count().into())
        });
        rates.fold(0, u64::saturating_add)
    }

    /// Returns the rate of a tree. For a curve of hfsc it is the one in the long run.
    pub fn get(self, tree: &Spec) -> Option<Rate> {
        let number = |value: &Value| match value {
            Value::Number(number) => Rate::from_bits_per_second(*number).ok(),
            Value::List(curve) => Rate::from_bits_per_second(*curve.last()?).ok(),
            _ => None,
        };
        let of_class = |minor: u32, name: &str| {
            let classes = tree.classes();
            let class = classes.iter().find(|class| class.minor == minor)?;
            value(class, name).and_then(number)
        };
        match self.0 {
            RateOwner::Own(name) => {
                let parameters = tree.parameters();
                let (_, value) = parameters.iter().find(|(info, _)| info.name == name)?;
                number(value)
            }
            RateOwner::Htb(class) => of_class(class, "ceil").or_else(|| of_class(class, "rate")),
            RateOwner::Hfsc(class) => of_class(class, "ul"),
        }
    }

    /// Returns the change in words.
    pub fn words(self, rate: Rate) -> String {
        let bits = rate.bits_per_second();
        match self.0 {
            RateOwner::Own(name) => format!("queue change root {name}={bits}bit"),
            RateOwner::Htb(class) => format!("class change {class} rate={bits}bit ceil={bits}bit"),
            RateOwner::Hfsc(class) => format!("class change {class} ul={bits}bit"),
        }
    }

    /// Returns the tree with another rate.
    ///
    /// # Errors
    /// If the tree is invalid with this rate.
    pub fn set(self, tree: &Spec, rate: Rate, registry: &Registry) -> Result<Spec, FileError> {
        tree.edited(&self.words(rate), registry)
    }
}

/// Returns the value of a parameter of a class, if it has one.
fn value<'c>(class: &'c ClassSpec<'_>, name: &str) -> Option<&'c Value> {
    let found = class.parameters.iter().find(|(info, _)| info.name == name);
    found
        .map(|(_, value)| value)
        .filter(|value| **value != Value::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Spec {
        Spec::inline(text).unwrap()
    }

    #[test]
    fn each_shaper_gets_the_rate() {
        let registry = Registry::builtin();
        let cases = [
            (
                "tbf rate=20mbit burst=5kb / fq_codel",
                "tbf rate=7mbit burst=5kb / fq_codel",
            ),
            (
                "cake bandwidth=20mbit line=docsis",
                "cake bandwidth=7mbit line=docsis",
            ),
            (
                "htb default=2 { 1 rate=20mbit { 2 rate=1mbit ceil=20mbit / fifo; 3 rate=1mbit / fifo } }",
                "htb default=2 { 1 rate=7mbit ceil=7mbit { 2 rate=1mbit ceil=20mbit / fifo; \
                 3 rate=1mbit / fifo } }",
            ),
            (
                "hfsc default=2 { 1 ls=20mbit ul=20mbit { 2 rt=1mbit ls=1mbit / fifo; 3 ls=9mbit / fifo } }",
                "hfsc default=2 { 1 ls=20mbit ul=7mbit { 2 rt=1mbit ls=1mbit / fifo; 3 ls=9mbit / fifo } }",
            ),
        ];
        for (before, after) in cases {
            let before = tree(before);
            let rate = RootRate::of(&before).unwrap();
            assert_eq!(rate.get(&before), Some(Rate::mbit(20)));
            let changed = rate.set(&before, Rate::mbit(7), &registry).unwrap();
            assert_eq!(rate.get(&changed), Some(Rate::mbit(7)));
            assert_eq!(changed, tree(after));
        }
    }

    #[test]
    fn what_has_no_rate_is_refused_with_a_remedy() {
        let cases = [
            ("fq_codel", "`fq_codel` has no rate"),
            ("cake", "no `bandwidth`"),
            (
                "tbf rate=20mbit burst=5kb peakrate=30mbit mtu=1514 / fifo",
                "`peakrate`",
            ),
            (
                "htb default=1 { 1 rate=2mbit / fifo; 2 rate=2mbit / fifo }",
                "not one class above all",
            ),
            (
                "hfsc default=2 { 1 ls=2mbit { 2 ls=2mbit / fifo } }",
                "no upper limit",
            ),
        ];
        for (text, message) in cases {
            let [what, remedy] = RootRate::of(&tree(text)).unwrap_err();
            assert!(what.contains(message) && !remedy.is_empty(), "{text}: {what}");
        }
    }

    #[test]
    fn guarantees_add_up() {
        let guaranteed = |text: &str| {
            let tree = tree(text);
            RootRate::of(&tree).unwrap().guaranteed(&tree)
        };
        assert_eq!(guaranteed("tbf rate=20mbit burst=5kb / fifo"), 0);
        assert_eq!(
            guaranteed("htb default=20 { 1 rate=20mbit { 10 rate=1mbit / fifo; 20 rate=3mbit / fifo } }"),
            4_000_000
        );
        assert_eq!(
            guaranteed(
                "hfsc default=2 { 1 ls=20mbit ul=20mbit { 2 rt=4mbit:10ms:1mbit ls=1mbit / fifo; \
                 3 ls=1mbit / fifo } }"
            ),
            1_000_000
        );
    }
}
