//! The classes of a qdisc, and what is attached to them.

use std::ops::Range;

use fairgate::ClassId;
use fairgate_config::language::{Draft, Given, PARENT, Written};
use toml::Spanned;

use super::{Translation, named};
use crate::script::setting;
use crate::tc::estimator::Estimated;
use crate::tc::kinds::{self, BAND_OPTIONS, Defaults, Kind, Opt};
use crate::tc::objects::{Class, Qdisc};
use crate::tc::sharing::Sharing;

impl<'a> Translation<'a> {
    /// Removes a default that names no leaf. As in the kernel, unclassified packets then have no class.
    pub(super) fn without_missing_default(&mut self, qdisc: &Qdisc, settings: &mut Vec<Written>) {
        let named = settings.iter().position(|(key, _)| key.get_ref() == "default");
        let Some((at, Given::Integer(minor))) = named.map(|at| (at, settings[at].1.get_ref().clone())) else {
            return;
        };
        let mut classes = self.script.classes_of(qdisc).peekable();
        let is_parent = |class: &Class| i128::from(class.parent.minor()) == minor;
        let is_inner = self.script.classes_of(qdisc).any(is_parent);
        // Until there are classes, any number may be named.
        if classes.peek().is_none()
            || classes.any(|class| i128::from(class.id.get_ref().minor()) == minor) && !is_inner
        {
            return;
        }
        let why = if is_inner {
            "has classes below it"
        } else {
            "does not exist"
        };
        let what = match qdisc.kind.get_ref().as_str() {
            "htb" => "sent first and unshaped",
            _ => "dropped",
        };
        let class = ClassId::new(qdisc.handle.unwrap_or(0), minor as u16);
        let (_, given) = settings.remove(at);
        self.notes.add(
            given.span(),
            format!("the default class {class} {why}: as in Linux, unclassified packets are {what}"),
        );
    }

    /// Adds a class for unclassified packets, unless there is a default class.
    pub(super) fn add_class_for_unclassified(
        &mut self,
        qdisc: &'a Qdisc,
        draft: &mut Draft,
        from: &[(&str, &str)],
        defaults: Defaults,
    ) {
        let value_of = |key: &str| draft.settings.iter().find(|(name, _)| name.get_ref() == key);
        if value_of("default").is_some() {
            return;
        }
        let settings: Option<Vec<Written>> = from
            .iter()
            .map(|(ours, of_qdisc)| {
                let (key, value) = value_of(of_qdisc)?;
                Some((Spanned::new(key.span(), (*ours).to_owned()), value.clone()))
            })
            .collect();
        let used: Vec<u16> = self
            .script
            .classes_of(qdisc)
            .map(|class| class.id.get_ref().minor())
            .collect();
        let free = (1..=u16::MAX).rev().find(|minor| !used.contains(minor));
        // If these settings are missing, the qdisc itself is reported.
        let (Some(minor), Some(settings)) = (free, settings) else {
            return;
        };
        let location = qdisc.kind.span();
        let mut rest = self.class(qdisc, minor, location.clone());
        rest.settings.extend(settings);
        rest.settings.extend(self.settings(&[], &[], defaults, &location));
        draft.classes.push(rest);
        draft
            .settings
            .push(setting(&location, "default", Given::Integer(minor.into())));
    }

    /// Changes the quanta of bands as `tc class change` does.
    pub(super) fn change_bands(&mut self, qdisc: &Qdisc, sharing: &mut Sharing) {
        let script = self.script;
        let is_of = |band: &&Class| Some(band.id.get_ref().major()) == qdisc.handle;
        for band in script.bands.iter().filter(is_of) {
            self.check_class(band, qdisc, false);
            let location = band.id.span();
            let settings = self.settings(&band.options, &[BAND_OPTIONS], |_| Vec::new(), &location);
            let minor = usize::from(band.id.get_ref().minor());
            let quantum = settings.into_iter().next();
            let wrong = match (&quantum, minor) {
                (_, minor) if !(1..=usize::from(sharing.bands)).contains(&minor) => "there is no such band",
                (Some(_), minor) if minor <= sharing.strict => "the band is strict, and has no quantum",
                _ => {
                    if let Some(quantum) = quantum {
                        sharing.quanta[minor - 1 - sharing.strict] = quantum;
                    }
                    continue;
                }
            };
            let message = format!("class {} can't be changed: {wrong}", band.id.get_ref());
            let help = "change the quantum of a band that shares";
            self.problems.add(location, message, "can't be changed", help);
        }
    }

    pub(super) fn classes_of_bands(
        &mut self,
        qdisc: &Qdisc,
        bands: u16,
        location: &Range<usize>,
    ) -> Vec<Draft> {
        self.only_attached_to(qdisc, |minor| (1..=bands).contains(&minor));
        (1..=bands)
            .map(|minor| self.class(qdisc, minor, location.clone()))
            .collect()
    }

    /// Returns class `minor` of `qdisc` with the qdisc attached to it, or with the kernel's default.
    pub(super) fn class(&mut self, qdisc: &Qdisc, minor: u16, location: Range<usize>) -> Draft {
        let id = qdisc.handle.map(|handle| ClassId::new(handle, minor));
        let inner = match id.and_then(|id| self.script.attached_to(id)) {
            Some(attached) => self.qdisc(attached),
            None => {
                let kind = kinds::find(qdisc.kind.get_ref()).map_or(kinds::DEFAULT, Kind::default_child);
                let mut default = named(kind, &location);
                default.settings = self.settings(&[], &[], kind.defaults, &location);
                Some(default)
            }
        };
        Draft {
            settings: vec![setting(&location, "id", Given::Integer(minor.into()))],
            header: location,
            is_broken: inner.is_none(),
            inner: inner.map(Box::new),
            ..Draft::default()
        }
    }

    /// Takes the number of bands out of the settings.
    pub(super) fn bands(&mut self, option: &str, settings: &mut Vec<Written>) -> u16 {
        let at = settings
            .iter()
            .position(|(key, _)| key.get_ref() == option)
            .expect("the number of bands has a default");
        let (_, given) = settings.remove(at);
        let number = match given.get_ref() {
            Given::Word(word) => word.parse().ok().filter(|bands| (1..=64).contains(bands)),
            _ => None,
        };
        number.unwrap_or_else(|| {
            let message = format!("`{option}` must be 1 to 64");
            self.problems.add(
                given.span(),
                message,
                "must be 1 to 64",
                "give a number of bands, like 3",
            );
            0
        })
    }

    /// Returns a class of a tree, below its parent. It holds the attached qdisc, unless other classes are
    /// below it.
    pub(super) fn class_of_tree(
        &mut self,
        qdisc: &'a Qdisc,
        class: &'a Class,
        options: &[&[Opt]],
        defaults: Defaults,
    ) -> Draft {
        let (id, location) = (*class.id.get_ref(), class.id.span());
        let mut draft = match self.script.classes_of(qdisc).any(|other| other.parent == id) {
            false => self.class(qdisc, id.minor(), location.clone()),
            true => {
                if let Some(attached) = self.script.attached_to(id) {
                    let message = format!("class {id} has classes below it, and holds no qdisc");
                    let help = "attach it to a class without classes below it";
                    self.problems
                        .add(attached.kind.span(), message, "can't be attached", help);
                }
                Draft {
                    settings: vec![setting(&location, "id", Given::Integer(id.minor().into()))],
                    header: location.clone(),
                    ..Draft::default()
                }
            }
        };
        if class.parent.minor() != 0 {
            let parent = Given::Integer(class.parent.minor().into());
            draft.settings.push(setting(&location, PARENT, parent));
        }
        self.set_class(&mut draft, class, options, defaults);
        draft
    }

    /// Adds the settings of a class.
    pub(super) fn set_class(
        &mut self,
        draft: &mut Draft,
        class: &'a Class,
        options: &[&[Opt]],
        defaults: Defaults,
    ) {
        let before = self.problems.count();
        class.kind.get_ref().clone_into(&mut self.kind);
        let is_of_kind = kinds::find(class.kind.get_ref()).is_some_and(|kind| kind.declares_classes());
        // The words after another one are not its options.
        if is_of_kind {
            // tc always sends all values of a class of htb, with the defaults of those that are not named.
            let first = match class.kind.get_ref().as_str() {
                "htb" => class.options.len().saturating_sub(1),
                _ => 0,
            };
            let mut settings = self.settings(&class.options[first..], options, defaults, &class.kind.span());
            if class.kind.get_ref() == "htb" {
                self.add_stab(&mut settings);
            }
            draft.settings.extend(settings);
        }
        draft
            .settings
            .extend(class.estimator.as_ref().map(Estimated::setting));
        draft.is_incomplete = class.is_broken || !is_of_kind || self.problems.count() > before;
        draft.is_broken |= draft.is_incomplete;
    }

    pub(super) fn check_class(&mut self, class: &Class, qdisc: &Qdisc, may_be_below: bool) {
        let kind = qdisc.kind.get_ref();
        if class.kind.get_ref() != kind {
            let message = format!("`{}` is not a class of a `{kind}`", class.kind.get_ref());
            let help = format!("write tc class add ... classid {} {kind}", class.id.get_ref());
            self.problems
                .add(class.kind.span(), message, "another kind", help);
        }
        if class.parent.minor() != 0 && !may_be_below {
            let message = format!("a `{kind}` has no classes within classes");
            let help = format!("add the class with parent {:x}:", class.parent.major());
            self.problems
                .add(class.id.span(), message, "not below a class", help);
        }
    }

    /// Reports qdiscs attached to classes that don't exist, and classes that were added.
    pub(super) fn only_attached_to(&mut self, qdisc: &Qdisc, is_class: impl Fn(u16) -> bool) {
        let kind = qdisc.kind.get_ref();
        let minor = |other: &Qdisc| other.parent.map_or(0, ClassId::minor);
        let is_outside = |other: &&Qdisc| !is_class(minor(other));
        for other in self.script.attached_below(qdisc).filter(is_outside) {
            let message = format!("a `{kind}` has no class {:x} to hold this", minor(other));
            let help = "attach it to an existing class, or leave it out";
            self.problems
                .add(other.kind.span(), message, "can't be attached", help);
        }
        for class in self.script.classes_of(qdisc) {
            let message = format!("no classes can be added to a `{kind}`");
            let help = "remove the line";
            self.problems.add(class.id.span(), message, "not here", help);
        }
    }

    pub(super) fn no_filters(&mut self, qdisc: &Qdisc) {
        let kind = qdisc.kind.get_ref();
        for filter in self.script.filters_of(qdisc) {
            let (message, help) = match kind.as_str() {
                "cake" => (
                    "filters of a `cake` choose a flow and a host in the kernel, and a tin here".to_owned(),
                    "let marks choose tins (fwmark), or write the filter in a configuration file, with a \
                     tin as its class",
                ),
                "noqueue" => (
                    "a `noqueue` has no filters".to_owned(),
                    "attach a qdisc with classes, like prio, instead",
                ),
                _ => (
                    format!("filters of a `{kind}` don't choose a queue: the hash and the priority do"),
                    "attach them to the qdisc of a queue; as in Linux, a flow stays in one queue",
                ),
            };
            self.problems
                .add(filter.kind.span(), message, "can't be carried over", help);
        }
    }
}
