//! Translates qdiscs and their options into the description that a configuration file would give.

use std::ops::Range;
use std::slice;
use std::sync::Arc;

use fairgate::ClassId;
use fairgate_config::language::{Draft, Given, PARENT, Problems, Written, check};
use fairgate_config::{FileError, Spec, suggest};
use miette::NamedSource;
use toml::Spanned;

use super::Script;
use super::command::hexadecimal;
use super::filters;
use super::kinds::{self, Children, Defaults, Kind, OfClass, Opt, Reads};
use super::notes::Notes;
use super::round_trips;
use super::script::{Class, Device, Orphans, Qdisc, Reading};
use super::sharing::Sharing;
use crate::script::{Word, no_value, number, setting};

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

/// A parameter, and the word of tc that sets it.
struct Named {
    parameter: &'static str,
    word: &'static str,
    /// The location of the word, and that of the value.
    locations: [Range<usize>; 2],
}

impl Named {
    /// Whether a part of the word or the value is there.
    fn is_at(&self, location: &Range<usize>) -> bool {
        let has = |own: &Range<usize>| own.start <= location.start && location.end <= own.end;
        self.locations.iter().any(has)
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

    /// Removes a default that names no leaf. As in the kernel, unclassified packets then have no class.
    fn without_missing_default(&mut self, qdisc: &Qdisc, settings: &mut Vec<Written>) {
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
    fn add_class_for_unclassified(
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

    fn classes_of_bands(&mut self, qdisc: &Qdisc, bands: u16, location: &Range<usize>) -> Vec<Draft> {
        self.only_attached_to(qdisc, |minor| (1..=bands).contains(&minor));
        (1..=bands)
            .map(|minor| self.class(qdisc, minor, location.clone()))
            .collect()
    }

    /// Returns class `minor` of `qdisc` with the qdisc attached to it, or with the kernel's default.
    fn class(&mut self, qdisc: &Qdisc, minor: u16, location: Range<usize>) -> Draft {
        let id = qdisc.handle.map(|handle| ClassId::new(handle, minor));
        let inner = match id.and_then(|id| self.script.attached_to(id)) {
            Some(attached) => self.qdisc(attached),
            None => {
                let mut fifo = named(kinds::DEFAULT, &location);
                fifo.settings = self.settings(&[], &[], kinds::DEFAULT.defaults, &location);
                Some(fifo)
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
    fn bands(&mut self, option: &str, settings: &mut Vec<Written>) -> u16 {
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
    fn class_of_tree(
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
    fn set_class(&mut self, draft: &mut Draft, class: &'a Class, options: &[&[Opt]], defaults: Defaults) {
        let before = self.problems.count();
        let is_of_kind = kinds::find(class.kind.get_ref()).is_some_and(|kind| kind.declares_classes());
        // The words after another one are not its options.
        if is_of_kind {
            // tc always sends all values of a class of htb, with the defaults of those that are not named.
            let first = match class.kind.get_ref().as_str() {
                "htb" => class.options.len().saturating_sub(1),
                _ => 0,
            };
            let settings = self.settings(&class.options[first..], options, defaults, &class.kind.span());
            draft.settings.extend(settings);
        }
        draft.is_incomplete = class.is_broken || !is_of_kind || self.problems.count() > before;
        draft.is_broken |= draft.is_incomplete;
    }

    fn check_class(&mut self, class: &Class, qdisc: &Qdisc, may_be_below: bool) {
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
    fn only_attached_to(&mut self, qdisc: &Qdisc, is_class: impl Fn(u16) -> bool) {
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

    fn no_filters(&mut self, qdisc: &Qdisc) {
        let kind = qdisc.kind.get_ref();
        for filter in self.script.filters_of(qdisc) {
            let message =
                format!("filters of a `{kind}` choose a flow and a host in the kernel, and a tin here");
            let help = "let marks choose tins (fwmark), or write the filter in a configuration file, with a \
                tin as its class";
            self.problems
                .add(filter.kind.span(), message, "can't be carried over", help);
        }
    }

    /// Returns the settings for the words of each line, with tc's defaults. A later line overrides an earlier
    /// one.
    fn settings(
        &mut self,
        lines: &'a [Vec<Word>],
        options: &[&[Opt]],
        defaults: Defaults,
        location: &Range<usize>,
    ) -> Vec<Written> {
        let mut settings: Vec<Written> = Vec::new();
        for words in lines {
            let read = self.line(words, options);
            let is_new = |name: &str| read.iter().any(|(key, _)| key.get_ref() == name);
            settings.retain(|(key, _)| !is_new(key.get_ref()));
            settings.extend(read);
        }
        for (parameter, value) in defaults(&self.script.device) {
            if !settings.iter().any(|(key, _)| key.get_ref() == parameter) {
                settings.push(setting(location, parameter, Given::Word(value)));
            }
        }
        settings
    }

    fn line(&mut self, words: &'a [Word], options: &[&[Opt]]) -> Vec<Written> {
        let mut settings = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let name = word.get_ref();
            let mut of_name = options
                .iter()
                .copied()
                .flatten()
                .filter(|option| option.word == name);
            let Some(option) = of_name.next() else {
                let message = format!("the option `{name}` can't be carried over");
                let is_known = |option: &&Opt| !matches!(option.reads, Reads::Refused(_));
                let known = options.iter().copied().flatten().filter(is_known);
                let known = known.map(|option| option.word);
                let help = suggest::remedy(name, "understood are", known);
                self.problems.add(word.span(), message, "unknown here", help);
                break;
            };
            if let Reads::Refused(why) = option.reads {
                let message = format!("the option `{name}` is not supported");
                self.problems.add(word.span(), message, "not here", why);
                continue;
            }
            if let Reads::Noted(what) = option.reads {
                self.notes.add(word.span(), format!("`{name}`: {what}"));
                continue;
            }
            let Some(mut value) = option.reads.value(&mut words, word) else {
                no_value(word, self.problems);
                break;
            };
            self.raise(option, &mut value);
            if let Err(message) = self.check(option, value.get_ref()) {
                let help = "give it such a value, or leave it out";
                self.problems.add(value.span(), message, "not here", help);
                continue;
            }
            // 0 means no class, or the default.
            let is_zero = match value.get_ref() {
                Given::Integer(number) => matches!(option.reads, Reads::Minor) && *number == 0,
                Given::Word(word) => matches!(option.reads, Reads::OrDefault) && number(word) == Some(0),
                _ => false,
            };
            if is_zero {
                continue;
            }
            for parameter in option.parameters(&value) {
                if parameter != option.word {
                    self.named.push(Named {
                        parameter,
                        word: option.word,
                        locations: [word.span(), value.span()],
                    });
                }
                // Of different words for the same parameter the last counts, as in tc.
                let source = self.script.source.inner();
                let is_same_word = |of: &Written| source.get(of.0.span()) == source.get(word.span());
                settings
                    .retain(|setting: &Written| setting.0.get_ref() != parameter || is_same_word(setting));
                settings.push((Spanned::new(word.span(), parameter.to_owned()), value.clone()));
            }
        }
        settings
    }
}

impl Translation<'_> {
    /// Raises values as the kernel does.
    fn raise(&mut self, option: &Opt, value: &mut Spanned<Given>) {
        let (Reads::AtLeast(least) | Reads::ListAtLeast(least)) = option.reads else {
            return self.lower(option, value);
        };
        let zero_is_raised = matches!(option.reads, Reads::AtLeast(_));
        let location = value.span();
        let mut raise_one = |given: &mut Given, location: Range<usize>| {
            let Given::Word(written) = given else { return };
            let bytes: Option<u64> = written.strip_suffix('b').unwrap_or(written).parse().ok();
            if bytes.is_some_and(|bytes| bytes < u64::from(least) && (bytes > 0 || zero_is_raised)) {
                let text = format!(
                    "`{}` is {written}, but Linux uses at least {least} bytes, and so does the tree",
                    option.word
                );
                self.notes.add(location, text);
                *given = Given::Integer(least.into());
            }
        };
        match value.get_mut() {
            Given::List(numbers) => numbers.iter_mut().for_each(|number| {
                let location = number.span();
                raise_one(number.get_mut(), location);
            }),
            one => raise_one(one, location),
        }
    }

    /// Lowers values as the kernel does.
    fn lower(&mut self, option: &Opt, value: &mut Spanned<Given>) {
        if let (Reads::AtMost(most), Given::Word(written)) = (&option.reads, value.get_ref())
            && number(written).is_some_and(|number| number > *most)
        {
            let text = format!(
                "`{}` is {written}, but Linux uses at most {most}, and so does the tree",
                option.word
            );
            self.notes.add(value.span(), text);
            *value.get_mut() = Given::Integer((*most).into());
        }
    }

    /// Checks a value of which only one, or only some, are supported.
    fn check(&mut self, option: &Opt, value: &Given) -> Result<(), String> {
        let Given::Word(word) = value else {
            return Ok(());
        };
        let name = option.word;
        match option.reads {
            Reads::Only(only, why) if word != only => Err(format!("`{name}` must be {only}: {why}")),
            Reads::Within(least, most) => match number(word) {
                Some(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(format!("`{name}` must be {least} to {most}, as in the kernel")),
            },
            // Known ones were converted.
            Reads::LinkLayer => Err(format!("`{name}` must be ethernet, atm or adsl")),
            // A value within the range was converted to a number.
            Reads::CountedDown(from) => Err(format!("`{name}` must be 1 to {from}")),
            Reads::Unneeded if number(word).is_none() => Err(format!("`{name}` must be a number")),
            Reads::Common(quantity) => match self.common.iter().find(|(other, _)| *other == quantity) {
                Some((_, Given::Word(first))) if !first.eq_ignore_ascii_case(word) => Err(format!(
                    "`{name}` must be {first}, as before; the qdisc and its classes share this value"
                )),
                Some(_) => Ok(()),
                None => {
                    self.common.push((quantity, value.clone()));
                    Ok(())
                }
            },
            _ => Ok(()),
        }
    }
}

impl Opt {
    /// Returns the parameters that this value sets.
    fn parameters(&self, value: &Spanned<Given>) -> impl Iterator<Item = &'static str> {
        let only = match self.reads {
            Reads::TimeOrPackets => Some(usize::from(matches!(value.get_ref(), Given::Integer(_)))),
            _ => None,
        };
        let parameters = self.parameter.split_whitespace().enumerate();
        let meant = parameters.filter(move |(index, _)| only.is_none_or(|only| *index == only));
        meant.map(|(_, parameter)| parameter)
    }
}

impl Reads {
    /// Reads the value after `option`. Returns `None` if words are missing.
    fn value(&self, words: &mut slice::Iter<'_, Word>, option: &Word) -> Option<Spanned<Given>> {
        let word = |word: &Word| {
            let written = without_exponent(word.get_ref()).unwrap_or_else(|| word.get_ref().clone());
            Spanned::new(word.span(), Given::Word(written))
        };
        match self {
            Reads::Same
            | Reads::Common(_)
            | Reads::Only(..)
            | Reads::Unneeded
            | Reads::Within(..)
            | Reads::AtMost(_)
            | Reads::OrDefault
            | Reads::AtLeast(_) => words.next().map(word),
            Reads::CountedDown(from) => words.next().map(|rank| {
                let in_range = number(rank.get_ref()).filter(|rank| (1..=u32::from(*from)).contains(rank));
                let counted = in_range.map(|rank| Given::Integer((u32::from(*from) - rank).into()));
                counted.map_or_else(|| word(rank), |counted| Spanned::new(rank.span(), counted))
            }),
            Reads::Time(unit) => words.next().map(|word| time(word, unit)),
            Reads::TimeOrPackets => words.next().map(|word| match packets(word.get_ref()) {
                Some(number) => Spanned::new(word.span(), Given::Integer(number.into())),
                None => time(word, "us"),
            }),
            Reads::Percent => words.next().map(|percent| {
                // The parameter rejects a value that is not a number of at most two digits or 100.
                let decimal = match percent.get_ref().as_str() {
                    "100" => "1".to_owned(),
                    digits if digits.len() <= 2 => format!("0.{digits:0>2}"),
                    other => other.to_owned(),
                };
                Spanned::new(percent.span(), Given::Meant(decimal))
            }),
            Reads::In256ths => words.next().map(|decimal| {
                let in_256ths = in_256ths(decimal.get_ref()).unwrap_or_else(|| decimal.get_ref().clone());
                Spanned::new(decimal.span(), Given::Meant(in_256ths))
            }),
            Reads::MaybePercent => words.next().map(|percent| {
                let number = percent.get_ref().trim_end_matches('%').to_owned();
                Spanned::new(percent.span(), Given::Meant(number))
            }),
            Reads::Means(value) => Some(Spanned::new(option.span(), Given::Meant((*value).to_owned()))),
            Reads::Mask => words.next().map(|mask| match number(mask.get_ref()) {
                Some(mask_of) => Spanned::new(mask.span(), Given::Integer(mask_of.into())),
                None => word(mask),
            }),
            Reads::LinkLayer => words.next().map(|name| {
                let cells = match name.get_ref().as_str() {
                    "ethernet" => Given::Meant("uncut".to_owned()),
                    "atm" | "adsl" => Given::Meant("atm".to_owned()),
                    other => Given::Word(other.to_owned()),
                };
                Spanned::new(name.span(), cells)
            }),
            Reads::SizeAndCell => words.next().map(|size| {
                let is_cell = |cell: &str| cell.parse().is_ok_and(u32::is_power_of_two);
                match size.get_ref().split_once('/') {
                    Some((bytes, cell)) if is_cell(cell) => {
                        word(&Spanned::new(size.span(), bytes.to_owned()))
                    }
                    _ => word(size),
                }
            }),
            Reads::Noted(_) | Reads::Refused(_) => None,
            Reads::Minor => words.next().map(|minor| match hexadecimal(minor.get_ref()) {
                Some(number) => Spanned::new(minor.span(), Given::Integer(number.into())),
                None => word(minor),
            }),
            Reads::Curve => curve(words),
            Reads::Numbers(count) => {
                let numbers: Vec<_> = words.by_ref().take(*count).map(word).collect();
                list(numbers)
                    .filter(|list| matches!(list.get_ref(), Given::List(numbers) if numbers.len() == *count))
            }
            Reads::List | Reads::ListAtLeast(_) => {
                let is_number =
                    |word: &&Word| word.get_ref().starts_with(|first: char| first.is_ascii_digit());
                let count = words.as_slice().iter().take_while(is_number).count();
                list(words.by_ref().take(count).map(word).collect())
            }
        }
    }
}

/// Writes a quantity with an exponent, as tc reads it with `strtod`, without one: `1.5e6bit` is `1500000bit`.
/// Returns `None` for other texts.
fn without_exponent(text: &str) -> Option<String> {
    let (mantissa, rest) = text.split_once(['e', 'E'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let end = rest
        .find(|digit: char| !digit.is_ascii_digit())
        .unwrap_or(rest.len());
    let (exponent, unit) = rest.split_at(end);
    // Larger ones exceed every quantity.
    let exponent: usize = exponent.parse().ok().filter(|exponent| *exponent <= 20)?;
    let zeros = "0".repeat(exponent.saturating_sub(fraction.len()));
    let (shifted, left) = fraction.split_at(exponent.min(fraction.len()));
    let point = if left.is_empty() { "" } else { "." };
    Some(format!("{whole}{shifted}{zeros}{point}{left}{unit}"))
}

/// Reads a time. A plain number is in this unit.
fn time(word: &Word, unit: &str) -> Spanned<Given> {
    let text = word.get_ref();
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = match is_plain {
        true => Given::Meant(format!("{text}{unit}")),
        false => Given::Word(text.clone()),
    };
    Spanned::new(word.span(), value)
}

/// Reads a number of packets: `3p`, `3packets`.
fn packets(text: &str) -> Option<u32> {
    let end = text.find(|digit: char| !digit.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    match unit {
        "p" | "pkt" | "pkts" | "packet" | "packets" => number.parse().ok(),
        _ => None,
    }
}

/// Reads a service curve, and returns it in Fairgate's notation.
fn curve(words: &mut slice::Iter<'_, Word>) -> Option<Spanned<Given>> {
    let mut parts = [None; 3];
    let mut is_of_packet = false;
    while let Some(name) = words.as_slice().first() {
        let part = match name.get_ref().as_str() {
            "m1" | "umax" => 0,
            "d" | "dmax" => 1,
            "m2" | "rate" => 2,
            _ => break,
        };
        is_of_packet |= matches!(name.get_ref().as_str(), "umax" | "dmax" | "rate");
        words.next();
        parts[part] = Some(words.next()?);
    }
    let [first, time, last] = parts;
    let last = last?;
    let with_unit = |word: &Word, unit: &str| match word.get_ref().bytes().all(|byte| byte.is_ascii_digit()) {
        true => format!("{}{unit}", word.get_ref()),
        false => word.get_ref().clone(),
    };
    let written = match (first, time) {
        (None, None) => last.get_ref().clone(),
        _ => {
            let none = if is_of_packet { "0b" } else { "0bit" };
            let first = first.map_or(none.to_owned(), |first| with_unit(first, &none[1..]));
            let time = time.map_or("0us".to_owned(), |time| with_unit(time, "us"));
            format!("{first}:{time}:{}", last.get_ref())
        }
    };
    Some(Spanned::new(last.span(), Given::Meant(written)))
}

/// Converts a decimal such as `0.16` to 256ths, rounded down like tc. Returns `None` if it is not a decimal
/// number.
fn in_256ths(decimal: &str) -> Option<String> {
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    let fraction = fraction.get(..fraction.len().min(9))?;
    let digits: u64 = format!("{whole}{fraction}").parse().ok()?;
    let parts = u128::from(digits) * 256 / 10u128.pow(fraction.len() as u32);
    Some(parts.to_string())
}

/// Returns numbers as one value, if there are any.
fn list(numbers: Vec<Spanned<Given>>) -> Option<Spanned<Given>> {
    let whole = numbers.first()?.span().start..numbers.last()?.span().end;
    Some(Spanned::new(whole, Given::List(numbers)))
}

/// Returns a discipline without settings.
fn named(kind: &Kind, location: &Range<usize>) -> Draft {
    Draft {
        header: location.clone(),
        discipline: Some(Spanned::new(location.clone(), kind.discipline.to_owned())),
        ..Draft::default()
    }
}
