//! Translates qdiscs and their options into the description that a configuration file would give.

mod classes;
mod options;

use std::ops::Range;
use std::sync::Arc;

use fairgate_config::language::{Draft, Given, Problems, check};
use fairgate_config::{FileError, Spec, suggest};
use miette::NamedSource;
use toml::Spanned;

use self::options::Named;
use super::filters;
use super::kinds::{self, Children, Kind, OfClass};
use super::notes::Notes;
use super::round_trips;
use super::script::{Class, Device, Orphans, Qdisc, Reading, Script};
use super::sharing::Sharing;
use crate::script::setting;

/// The tree of a device.
#[derive(Debug)]
pub struct Translated {
    /// The device.
    pub device: String,
    /// The description of the tree.
    pub spec: Spec,
    /// Sentences about what the kernel changes silently, and the tree too.
    pub warnings: Vec<String>,
}

impl Script {
    /// Returns the description of the tree.
    ///
    /// # Errors
    /// If an option or its value can't be carried over.
    pub fn spec(&self) -> Result<Spec, FileError> {
        self.translate().map(|(spec, _)| spec)
    }

    /// Returns the description of the tree, and warnings: sentences about what the kernel changes silently,
    /// and the tree too.
    ///
    /// # Errors
    /// If an option or its value can't be carried over.
    pub fn translate(&self) -> Result<(Spec, Vec<String>), FileError> {
        let mut problems = Problems::new(Arc::clone(&self.source));
        match self.translate_into(&mut problems) {
            Some(Translated { spec, warnings, .. }) => problems.unless_any((spec, warnings)),
            None => Err(problems.into_error()),
        }
    }

    /// Translates a script for any number of devices, in the order in which they first occur. All mistakes
    /// of all lines are reported at once, except for those that follow from an earlier one.
    ///
    /// # Errors
    /// If a line can't be understood, the lines don't fit together, or something can't be carried over.
    pub fn translate_all(name: &str, text: &str, device: Device) -> Result<Vec<Translated>, FileError> {
        let source = Arc::new(NamedSource::new(name, text.to_owned()));
        let mut problems = Problems::new(Arc::clone(&source));
        let Reading { scripts, lines } = Script::read(text, device, &source, &mut problems);
        let translated = scripts
            .iter()
            .filter_map(|script| script.translate_into(&mut problems));
        let translated = translated.collect();
        problems.unless_any_in(&lines, translated)
    }

    /// Returns the tree, if there is one without mistakes.
    fn translate_into(&self, problems: &mut Problems) -> Option<Translated> {
        let mut notes = self.notes.clone();
        let mut translation = Translation {
            script: self,
            problems,
            notes: &mut notes,
            common: Vec::new(),
            loose: Vec::new(),
            named: Vec::new(),
            depth: 0,
        };
        let root = self.qdiscs.iter().find(|qdisc| qdisc.parent.is_none());
        let tree = root.and_then(|root| translation.qdisc(root));
        translation.orphans();
        let Translation { loose, named, .. } = translation;
        let first = problems.count();
        let spec = tree.and_then(|tree| check(&tree, problems));
        for (class, text) in spec.iter().flat_map(kinds::remarks) {
            let of_id = |other: &&Class| *other.id.get_ref() == class;
            if let Some(class) = self.classes.iter().find(of_id) {
                notes.add(class.id.span(), text);
            }
        }
        for draft in &loose {
            let _ = check(draft, problems);
        }
        let word = |location: &Range<usize>, parameter: &str| {
            let mut meant = named.iter().filter(|named| named.is_at(location));
            meant
                .find(|named| named.parameter == parameter)
                .map(|named| named.word)
        };
        problems.reworded(first, word);
        Some(Translated {
            device: self.device_name().to_owned(),
            spec: spec?,
            warnings: notes.in_order(self.source.inner()),
        })
    }
}

/// The largest depth. A printed tree must not be too deep for a configuration file, where a class and the
/// `inner` in it are two levels.
const DEEPEST: u32 = 32;

struct Translation<'a> {
    script: &'a Script,
    problems: &'a mut Problems,
    notes: &'a mut Notes,
    /// Options that must have the same value in the current qdisc and its classes, with their first value.
    common: Vec<(&'static str, Given)>,
    /// Disciplines without a place in the tree. Only their own mistakes are reported.
    loose: Vec<Draft>,
    /// The parameters that options set.
    named: Vec<Named>,
    /// The depth of the current qdisc.
    depth: u32,
}

impl<'a> Translation<'a> {
    fn qdisc(&mut self, qdisc: &'a Qdisc) -> Option<Draft> {
        if self.depth == DEEPEST {
            let message = format!("more than {DEEPEST} qdiscs are nested");
            let help = "remove some of them";
            self.problems.add(qdisc.kind.span(), message, "too deep", help);
            return None;
        }
        self.depth += 1;
        let around = std::mem::take(&mut self.common);
        let before = self.problems.count();
        let mut draft = self.qdisc_within(qdisc);
        if let Some(draft) = &mut draft {
            let has_gaps = draft.classes.iter().any(|class| class.is_broken);
            draft.is_broken |= has_gaps || self.problems.count() > before;
        }
        self.common = around;
        self.depth -= 1;
        draft
    }

    /// Translates what has no place in the tree, to report its own mistakes.
    fn orphans(&mut self) {
        let Orphans {
            qdiscs,
            classes,
            filters,
        } = &self.script.orphans;
        for qdisc in qdiscs {
            self.alone(qdisc);
        }
        for class in classes {
            self.class_alone(class);
        }
        for filter in filters {
            filters::check(filter, self.problems);
        }
    }

    /// Translates a qdisc without its place in the tree.
    fn alone(&mut self, qdisc: &'a Qdisc) {
        if let Some(mut draft) = self.qdisc(qdisc) {
            draft.is_broken = true;
            self.loose.push(draft);
        }
    }

    /// Translates the options of a class without its qdisc.
    fn class_alone(&mut self, class: &'a Class) {
        let Some(kind) = kinds::find(class.kind.get_ref()) else {
            return;
        };
        let Some(options) = kind.class_options() else {
            return;
        };
        let location = class.id.span();
        let mut settings = self.settings(&class.options, &options, |_| Vec::new(), &location);
        kind.settle(&mut OfClass {
            class: &class.id,
            is_leaf: true,
            settings: &mut settings,
            notes: self.notes,
        });
        let id = Given::Integer(class.id.get_ref().minor().into());
        let classed = Draft {
            settings: [vec![setting(&location, "id", id)], settings].concat(),
            header: location.clone(),
            is_broken: true,
            is_incomplete: true,
            ..Draft::default()
        };
        self.loose.push(Draft {
            classes: vec![classed],
            is_broken: true,
            is_incomplete: true,
            ..named(kind, &location)
        });
    }

    /// Translates what is in a qdisc of an unknown kind.
    fn within_unknown(&mut self, qdisc: &'a Qdisc) {
        for attached in self.script.attached_below(qdisc) {
            self.alone(attached);
        }
        for class in self.script.classes_of(qdisc) {
            self.class_alone(class);
        }
        for filter in self.script.filters_of(qdisc) {
            filters::check(filter, self.problems);
        }
    }

    fn qdisc_within(&mut self, qdisc: &'a Qdisc) -> Option<Draft> {
        let name = qdisc.kind.get_ref();
        let Some(kind) = kinds::find(name) else {
            let message = format!("there is no discipline for the qdisc `{name}`");
            let help = suggest::remedy(name, "known are", kinds::names());
            self.problems
                .add(qdisc.kind.span(), message, "unknown here", help);
            self.within_unknown(qdisc);
            return None;
        };
        let location = qdisc.kind.span();
        let mut draft = named(kind, &location);
        draft.qdisc = Some(qdisc.handle.unwrap_or(0));
        if let Some(handle) = qdisc.handle {
            draft
                .settings
                .push(setting(&location, "handle", Given::Word(format!("{handle:x}"))));
        }
        let before = self.problems.count();
        let mut settings = self.settings(&qdisc.options, kind.options, kind.defaults, &location);
        let are_whole = self.problems.count() == before;
        draft.is_incomplete = !are_whole;
        if let Err(wrong) = round_trips::settle(&mut settings) {
            let help = "give max_rtt and perhaps typical_rtt, or target, tupdate, alpha and beta";
            self.problems
                .add(wrong.location, wrong.message, "these don't fit", help);
        }
        match &kind.children {
            Children::None => self.only_attached_to(qdisc, |_| false),
            Children::NoneNorFilters => {
                self.only_attached_to(qdisc, |_| false);
                self.no_filters(qdisc);
                draft.settings.append(&mut settings);
                return Some(draft);
            }
            Children::Inner { of_default } => {
                self.only_attached_to(qdisc, |minor| minor <= 1);
                if let Some(inner) = self.script.attached_below(qdisc).next() {
                    draft.inner = self.qdisc(inner).map(Box::new);
                    // These settings belong to the default fifo, which the inner qdisc replaces.
                    settings.retain(|(key, _)| !of_default.contains(&key.get_ref().as_str()));
                }
            }
            Children::Bands { option } => {
                let bands = self.bands(option, &mut settings);
                draft.classes = self.classes_of_bands(qdisc, bands, &location);
            }
            // The options have a mistake that is reported already.
            Children::SharingBands if !are_whole => {}
            Children::SharingBands => match Sharing::of(&mut settings, &self.script.device, &location) {
                Ok(sharing) => {
                    draft.classes = self.classes_of_bands(qdisc, sharing.bands, &location);
                    let classes = draft.classes[sharing.strict..].iter_mut();
                    for (class, quantum) in classes.zip(sharing.quanta) {
                        class.settings.push(quantum);
                    }
                }
                Err(wrong) => {
                    let help = "give bands 1 to 64, as many as there are strict ones and quanta, or more";
                    self.problems
                        .add(wrong.location, wrong.message, "these bands don't fit", help);
                }
            },
            Children::Classes { options, defaults } => {
                for class in self.script.classes_of(qdisc) {
                    self.check_class(class, qdisc, false);
                    let mut translated = self.class(qdisc, class.id.get_ref().minor(), class.id.span());
                    self.set_class(&mut translated, class, &[*options], *defaults);
                    draft.classes.push(translated);
                }
            }
            Children::Tree {
                options, defaults, ..
            } => {
                self.without_missing_default(qdisc, &mut settings);
                for class in self.script.classes_of(qdisc) {
                    self.check_class(class, qdisc, true);
                    let mut translated = self.class_of_tree(qdisc, class, options, *defaults);
                    kind.settle(&mut OfClass {
                        class: &class.id,
                        is_leaf: translated.inner.is_some(),
                        settings: &mut translated.settings,
                        notes: self.notes,
                    });
                    draft.classes.push(translated);
                }
            }
        }
        draft.settings.append(&mut settings);
        filters::translate(self.script, qdisc, &mut draft, self.problems);
        if let Children::Tree {
            unclassified: Some(from),
            defaults,
            ..
        } = kind.children
        {
            self.add_class_for_unclassified(qdisc, &mut draft, from, defaults);
        }
        Some(draft)
    }
}

/// Returns a discipline without settings.
fn named(kind: &Kind, location: &Range<usize>) -> Draft {
    Draft {
        header: location.clone(),
        discipline: Some(Spanned::new(location.clone(), kind.discipline.to_owned())),
        ..Draft::default()
    }
}
