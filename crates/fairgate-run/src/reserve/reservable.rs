//! Where in a tree reservations are: the shaper that sets the link's rate, and the scheduler below it.

use std::collections::BTreeSet;

use fairgate::Rate;
use fairgate::hfsc::{self, ServiceCurve};
use fairgate_config::{ClassSpec, Spec, Value};
use fairgate_theory::guarantees::bounds::{Promises, kept};

use super::refusal::Refusal;

/// The path of the scheduler, as changes in words name it.
pub(crate) const SCHEDULER: &str = "1";

/// Parameters of the shaper that make its rate another one than that of the packets.
const OTHER_RATES: [&str; 5] = ["peakrate", "stripped", "overhead", "mpu", "cells"];

/// The schedulers with weights whose bounds hold with all their settings.
const BY_WEIGHT: [&str; 5] = ["wf2q_plus", "qfq", "s_kps", "gfq", "scfq"];

/// A tree in which reservations can be made.
pub(crate) struct ReservableTree<'t> {
    pub(crate) link: Rate,
    pub(crate) scheduler: &'t Spec,
    pub(crate) kind: Kind,
}

/// How a scheduler guarantees something to a class.
pub(crate) enum Kind {
    /// By real-time curves.
    Curves,
    /// By weights. Whether a class has the parameter `max_packet`.
    Weights {
        promises: &'static Promises,
        has_max_packet: bool,
    },
}

impl<'t> ReservableTree<'t> {
    /// Finds shaper and scheduler.
    pub(crate) fn find(tree: &'t Spec) -> Result<ReservableTree<'t>, Refusal> {
        if tree.discipline() != "tbf" {
            return Err(Refusal::NoLink {
                root: tree.discipline(),
            });
        }
        if let Some(parameter) = OTHER_RATES.into_iter().find(|name| tree.is_given(name)) {
            return Err(Refusal::LinkLayer { parameter });
        }
        let parameters = tree.parameters();
        let rate = parameters.iter().find(|(info, _)| info.name == "rate");
        let link = match rate {
            Some((_, Value::Number(bits))) => Rate::from_bits_per_second(*bits).ok(),
            _ => None,
        };
        let inner = tree.classes().first().and_then(|class| class.tree);
        let (Some(link), Some(scheduler)) = (link, inner) else {
            return Err(Refusal::NoBound { discipline: "tbf" });
        };
        let discipline = scheduler.discipline();
        let no_bound = Refusal::NoBound { discipline };
        if !scheduler.entry().about().children.are_classes() {
            return Err(no_bound);
        }
        let class_parameters = scheduler.entry().class_parameters();
        let has = |name: &str| class_parameters.iter().any(|info| info.name == name);
        let kind = match kept(discipline) {
            _ if discipline == "hfsc" => Kind::Curves,
            Some(promises) if BY_WEIGHT.contains(&discipline) => Kind::Weights {
                promises,
                has_max_packet: has("max_packet"),
            },
            _ => return Err(no_bound),
        };
        Ok(ReservableTree {
            link,
            scheduler,
            kind,
        })
    }

    /// Returns the numbers of the scheduler's classes.
    pub(crate) fn classes(&self) -> BTreeSet<u32> {
        let of_class = |class: ClassSpec<'_>| class.minor..=class.minor + (class.count() - 1);
        self.scheduler.classes().into_iter().flat_map(of_class).collect()
    }

    /// Returns the weights of all classes but `reserved`.
    pub(crate) fn other_weights(&self, reserved: &BTreeSet<u32>) -> Vec<u32> {
        let others = self.scheduler.classes().into_iter();
        let others = others.filter(|class| !reserved.contains(&class.minor));
        others
            .flat_map(|class| {
                let weight = class.parameters.iter().find(|(info, _)| info.name == "weight");
                let weight = match weight {
                    Some((_, Value::Number(weight))) => u32::try_from(*weight).unwrap_or(u32::MAX),
                    _ => 1,
                };
                std::iter::repeat_n(weight, class.count() as usize)
            })
            .collect()
    }

    /// Returns the real-time curves of all leaves but `reserved`.
    pub(crate) fn other_curves(&self, reserved: &BTreeSet<u32>) -> Vec<ServiceCurve> {
        let leaves = self
            .scheduler
            .classes()
            .into_iter()
            .filter(|class| class.tree.is_some());
        let counts: Vec<(u32, u32)> = leaves.map(|class| (class.minor, class.count())).collect();
        let config = self.scheduler.config();
        let Some(config) = config
            .ok()
            .and_then(|config| config.downcast::<hfsc::Config>().ok())
        else {
            return Vec::new();
        };
        let curve = |&(minor, count): &(u32, u32)| {
            let class = config.classes.iter().find(|class| class.minor == minor)?;
            let curve = class.rt.filter(|_| !reserved.contains(&minor))?;
            Some(std::iter::repeat_n(curve, count as usize))
        };
        counts.iter().filter_map(curve).flatten().collect()
    }

    /// Returns the places, from 1, of the filters that lead to one of these classes.
    pub(crate) fn filters_to(&self, classes: &BTreeSet<u32>) -> Vec<usize> {
        let filters = self.scheduler.classifier().filters.iter();
        let leads = filters.map(|filter| {
            filter
                .outcome
                .class()
                .is_some_and(|class| classes.contains(&class))
        });
        let numbered = (1..).zip(leads);
        numbered
            .filter_map(|(number, leads)| leads.then_some(number))
            .collect()
    }

    /// Returns whether a class has exactly these settings and a filter leads to it.
    pub(crate) fn has(&self, class: u32, other: &ReservableTree<'_>) -> bool {
        let of = |tree: &ReservableTree<'_>| {
            let found = tree
                .scheduler
                .classes()
                .into_iter()
                .find(|found| found.minor == class)?;
            let values: Vec<Value> = found.parameters.into_iter().map(|(_, value)| value).collect();
            Some((values, found.tree.cloned()))
        };
        let filters = |tree: &ReservableTree<'_>| {
            let filters = tree.scheduler.classifier().filters.iter();
            let own = filters.filter(|filter| filter.outcome.class() == Some(class));
            own.cloned().collect::<Vec<_>>()
        };
        of(self) == of(other) && filters(self) == filters(other)
    }
}
