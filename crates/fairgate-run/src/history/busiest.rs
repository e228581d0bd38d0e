//! Which classes have a history: those that send most.
//!
//! What a class has sent is its weight, and fades with the time constant [`FADE_S`]. A class that is heavier
//! than one with a history takes its place, and loses nothing by it that it had: it had no history. But the
//! other one loses 24 hours. So places are given slowly:
//!
//! - a class must be [`CLEARLY`] times as heavy as the lightest one with a history,
//! - and each class keeps its place for [`LEAST_STAY_S`], because right after the start, or after a removal,
//!   weights are made of a few packets.
//!
//! Classes that send alike never take each other's places, and no place changes its class more than once a
//! minute.

use std::collections::{HashMap, HashSet};

/// The time constant with which weights fade, seconds. The rings reach back ten minutes, two hours and a day.
/// With ten minutes, a download of a minute would cost another class its day. With a day, a class of four
/// times the rate would come in after 17 hours. With an hour it does after 42 minutes, one of a hundred
/// times the rate after 74 s, and a class that is idle for 42 minutes has half of its weight left.
const FADE_S: f64 = 3600.0;

/// How many times as heavy a class must be as the one whose place it takes.
const CLEARLY: f64 = 2.0;

/// For how long a class keeps its place, seconds.
const LEAST_STAY_S: f64 = 60.0;

/// Returns what a weight has become after so many seconds, in which so many bytes were sent.
pub(super) fn faded(weight: f64, seconds: f64, bytes: u64) -> f64 {
    weight * (-seconds / FADE_S).exp() + bytes as f64
}

/// The classes of a direction that have a history.
#[derive(Debug, Default)]
pub(super) struct Busiest {
    /// When each one got its place, seconds since the start of the run.
    since: HashMap<String, f64>,
}

impl Busiest {
    /// Returns whether a class has a place.
    pub(super) fn has(&self, path: &str) -> bool {
        self.since.contains_key(path)
    }

    /// Gives a class a place, as one that had it before the run.
    pub(super) fn give(&mut self, path: &str, now_s: f64) {
        self.since.insert(path.to_owned(), now_s);
    }

    /// Calls a class by another path.
    pub(super) fn rename(&mut self, before: &str, path: &str) {
        if let Some(since) = self.since.remove(before) {
            self.since.insert(path.to_owned(), since);
        }
    }

    /// Gives the places, at most `most`, to classes of these weights. Those that are not among them are gone.
    pub(super) fn choose(&mut self, now_s: f64, most: usize, weights: &[(&str, f64)]) {
        let present: HashSet<&str> = weights.iter().map(|(path, _)| *path).collect();
        self.since.retain(|path, _| present.contains(path.as_str()));
        // With places, the lightest first; without, the heaviest first. Equal ones stay in the order of the
        // tree.
        let (mut inside, mut outside): (Vec<_>, Vec<_>) =
            weights.iter().copied().partition(|(path, _)| self.has(path));
        let free = most.saturating_sub(inside.len());
        if outside.is_empty() {
            return;
        }
        inside.retain(|(path, _)| now_s - self.since[*path] >= LEAST_STAY_S);
        inside.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        // Most have far too little: they need no order.
        let least = inside
            .first()
            .map_or(f64::INFINITY, |(_, weight)| CLEARLY * weight);
        outside.retain(|(_, weight)| free > 0 || *weight > least);
        outside.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let mut outside = outside.into_iter();
        for (path, _) in outside.by_ref().take(free) {
            self.since.insert(path.to_owned(), now_s);
        }
        for ((light, low), (heavy, high)) in inside.into_iter().zip(outside) {
            if high <= CLEARLY * low {
                return;
            }
            self.since.remove(light);
            self.since.insert(heavy.to_owned(), now_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// A direction whose classes send what the test says.
    #[derive(Default)]
    struct Played {
        now_s: f64,
        most: usize,
        weights: Vec<(String, f64)>,
        busiest: Busiest,
    }

    impl Played {
        fn new(most: usize, classes: usize) -> Played {
            Played {
                most,
                weights: (0..classes).map(|class| (class.to_string(), 0.0)).collect(),
                ..Played::default()
            }
        }

        /// Lets time pass in which each class sends so many bytes. Returns who has a place then.
        fn go_on(&mut self, seconds: f64, bytes: &[u64]) -> BTreeSet<usize> {
            self.now_s += seconds;
            for ((_, weight), bytes) in self.weights.iter_mut().zip(bytes) {
                *weight = faded(*weight, seconds, *bytes);
            }
            let weights: Vec<_> = self
                .weights
                .iter()
                .map(|(path, weight)| (&**path, *weight))
                .collect();
            self.busiest.choose(self.now_s, self.most, &weights);
            self.inside()
        }

        fn inside(&self) -> BTreeSet<usize> {
            self.busiest
                .since
                .keys()
                .map(|path| path.parse().unwrap())
                .collect()
        }
    }

    /// The figures of the documentation.
    #[test]
    fn a_newcomer_waits_as_long_as_it_is_said() {
        let until_inside = |times: u64| {
            let mut played = Played::new(1, 2);
            // The first one has sent for a day.
            for _ in 0..24 * 60 {
                played.go_on(60.0, &[60_000, 0]);
            }
            (1..)
                .find(|_| played.go_on(1.0, &[1000, 1000 * times]).contains(&1))
                .unwrap()
        };
        assert_eq!([4, 10, 100].map(until_inside), [2511, 810, 74]);
        // It sent nothing for the whole day.
        let mut idle = Played::new(1, 2);
        for _ in 0..24 * 60 {
            idle.go_on(60.0, &[0, 0]);
        }
        assert_eq!(idle.inside(), BTreeSet::from([0]));
        assert_eq!(idle.go_on(1.0, &[0, 1]), BTreeSet::from([1]));
    }

    #[test]
    fn a_class_that_is_gone_leaves_its_place() {
        let mut busiest = Busiest::default();
        busiest.choose(1.0, 2, &[("1", 5.0), ("2", 0.0), ("3", 0.0), ("4", 9.0)]);
        let has = |busiest: &Busiest| ["1", "2", "3", "4"].map(|path| busiest.has(path));
        assert_eq!(has(&busiest), [true, false, false, true]);
        // Among equals, the first one.
        busiest.choose(2.0, 2, &[("1", 5.0), ("2", 0.0), ("3", 0.0)]);
        assert_eq!(has(&busiest), [true, true, false, false]);
        busiest.choose(3.0, 2, &[]);
        assert_eq!(has(&busiest), [false; 4]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever is sent, and whoever comes and goes: there are never too many, none is there that is
        /// gone, no place is free as long as somebody wants it, and no class loses its place within a minute.
        #[test]
        fn the_number_of_classes_is_bounded(
            steps in prop::collection::vec(
                (0.5_f64..100.0, prop::collection::btree_map(0_u32..30, 0_u64..1 << 40, 0..30)), 1..40)
        ) {
            let mut busiest = Busiest::default();
            let mut weights: HashMap<String, f64> = HashMap::new();
            let mut now_s = 0.0;
            for (seconds, sent) in steps {
                now_s += seconds;
                weights.retain(|path, _| sent.contains_key(&path.parse().unwrap()));
                for (class, bytes) in &sent {
                    let weight = weights.entry(class.to_string()).or_default();
                    *weight = faded(*weight, seconds, *bytes);
                }
                let before = busiest.since.clone();
                let listed: Vec<_> = weights.iter().map(|(path, weight)| (&**path, *weight)).collect();
                busiest.choose(now_s, 8, &listed);
                prop_assert_eq!(busiest.since.len(), sent.len().min(8));
                prop_assert!(busiest.since.keys().all(|path| weights.contains_key(path)));
                for (path, since) in before {
                    let stays = !weights.contains_key(&path) || busiest.has(&path);
                    prop_assert!(stays || now_s - since >= LEAST_STAY_S);
                }
            }
        }

        /// The classes that send most have a place after enough time, whatever happened before.
        #[test]
        fn the_heaviest_come_in(
            past in prop::collection::vec(0_u64..1_000_000, 20),
            heavy in prop::sample::subsequence((0..20_usize).collect::<Vec<_>>(), 5),
            rates in prop::collection::vec(1000_u64..1900, 20),
        ) {
            let mut played = Played::new(8, 20);
            for _ in 0..60 {
                played.go_on(60.0, &past);
            }
            let mut rates = rates;
            for class in &heavy {
                rates[*class] += 3000;
            }
            // The past weighs e^-12 of what it did.
            for _ in 0..12 * 60 {
                played.go_on(60.0, &rates);
            }
            let inside = played.inside();
            prop_assert_eq!(inside.len(), 8);
            prop_assert!(heavy.iter().all(|class| inside.contains(class)), "{inside:?} {heavy:?}");
            // None of the others sends twice as much as another one: nothing moves any more.
            for _ in 0..60 {
                prop_assert_eq!(&played.go_on(60.0, &rates), &inside);
            }
        }

        /// Classes that send about as much as each other keep their places from the start on, even if each
        /// second is another one.
        #[test]
        fn equal_classes_do_not_flap(
            seconds in prop::collection::vec(prop::collection::vec(700_u64..1300, 12), 1..300)
        ) {
            let mut played = Played::new(4, 12);
            let first = played.go_on(1.0, &seconds[0]);
            for bytes in &seconds {
                prop_assert_eq!(&played.go_on(1.0, bytes), &first);
            }
        }
    }
}
