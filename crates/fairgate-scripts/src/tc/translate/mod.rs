//! Translates qdiscs and their options into the description that a configuration file would give.

mod arriving;
mod classes;
mod devices;
mod options;
mod queues;
mod split;
mod stab;
mod virtual_queues;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use fairgate_config::language::{Draft, Given, Problems, check};
use fairgate_config::{FileError, Spec, suggest};

use self::arriving::Arriving;
use self::devices::Redirected;
pub use self::devices::TreeDirection;
use self::options::Named;
use super::display::Id;
use super::filters;
use super::flow_red;
use super::kinds::{self, Children, Kind, OfClass};
use super::objects::{Class, Qdisc};
use super::round_trips;
use super::script::{Orphans, Script};
use super::sharing::Sharing;
use crate::script::notes::{Note, Notes};
use crate::script::{Word, drafts, setting};

/// The tree of a device.
#[derive(Debug)]
pub struct Translated {
    /// A name for the tree: that of the device it is attached to. If arriving packets have several trees, or
    /// some of them pass, it is the device's with `/in`.
    pub name: String,
    /// The device that the packets arrive at or leave by.
    pub device: String,
    /// The packets that the tree is for.
    pub direction: TreeDirection,
    /// The description of the tree.
    pub spec: Spec,
    /// Whether the script asks for hosts behind translated addresses: cake's `nat`.
    pub nat: bool,
    /// What the kernel changes silently, and the tree too.
    pub warnings: Vec<Note>,
    /// The files that the script names: netem's distributions.
    pub files: Vec<PathBuf>,
}

impl Script {
    /// Returns the description of the tree.
    ///
    /// # Errors
    /// If an option or its value can't be carried over.
    pub fn spec(&self) -> Result<Spec, FileError> {
        self.translate().map(|(spec, _)| spec)
    }

    /// Returns the description of the tree, and warnings: what the kernel changes silently, and the
    /// tree too.
    ///
    /// # Errors
    /// If an option or its value can't be carried over.
    pub fn translate(&self) -> Result<(Spec, Vec<Note>), FileError> {
        let mut problems = Problems::new(Arc::clone(&self.source));
        if let Some(hook) = self.hook()
            && let Some(filter) = self.filters_of(hook).first()
        {
            let message =
                "this filter is for packets that arrive, and here is only the tree of those that leave";
            let help = "translate all trees of the script";
            problems.add(filter.kind.span(), message, "the other direction", help);
        }
        if self.root().is_none() {
            let message = format!("nothing is attached to the root of `{}`", self.device_name());
            let help = "add a line like tc qdisc add dev eth0 root handle 1: fq_codel";
            problems.add(self.name.span(), message, "no tree", help);
        }
        match self.translate_root(&mut problems) {
            Some(Translated { spec, warnings, .. }) => problems.unless_any((spec, warnings)),
            None => Err(problems.into_error()),
        }
    }

    /// Returns the tree of leaving packets, if there is one without mistakes.
    fn translate_root(&self, problems: &mut Problems) -> Option<Translated> {
        let mut notes = self.notes.clone();
        let mut translation = Translation::new(self, problems, &mut notes);
        let tree = self.root().and_then(|root| translation.qdisc(root));
        translation.orphans();
        let spec = translation.checked(tree, &[self]);
        Some(Translated {
            name: self.device_name().to_owned(),
            device: self.device_name().to_owned(),
            direction: TreeDirection::Out,
            spec: spec?,
            files: notes.files(),
            nat: notes.has_nat(),
            warnings: notes.in_order(self.source.inner()),
        })
    }

    /// Returns the tree of arriving packets, if there is one without mistakes. The notes are about filters.
    fn translate_hook(
        &self,
        scripts: &[Script],
        redirected: &mut Redirected,
        notes: &mut Notes,
        problems: &mut Problems,
    ) -> Option<Translated> {
        let hook = self.hook()?;
        let mut translation = Translation::new(self, problems, notes);
        let Arriving { draft, of, targets } = translation.arriving(hook, scripts, redirected)?;
        let spec = translation.checked(Some(draft), &targets);
        let device = self.device_name().to_owned();
        Some(Translated {
            name: of.map_or_else(|| format!("{device}/in"), str::to_owned),
            device,
            direction: TreeDirection::In,
            spec: spec?,
            nat: notes.has_nat(),
            warnings: Vec::new(),
            files: notes.files(),
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
    /// What `stab` of the current qdisc, or of one around it, says about the link layer.
    stab: &'a [Word],
    /// Disciplines without a place in the tree. Only their own mistakes are reported.
    loose: Vec<Draft>,
    /// The parameters that options set.
    named: Vec<Named>,
    /// The depth of the current qdisc.
    depth: u32,
    /// The kind of the options that are read.
    kind: String,
}

impl<'a> Translation<'a> {
    fn new(script: &'a Script, problems: &'a mut Problems, notes: &'a mut Notes) -> Translation<'a> {
        Translation {
            script,
            problems,
            notes,
            common: Vec::new(),
            stab: &[],
            loose: Vec::new(),
            named: Vec::new(),
            depth: 0,
            kind: String::new(),
        }
    }

    /// Checks the tree, whose classes are of these scripts, and what has no place in it.
    fn checked(self, tree: Option<Draft>, scripts: &[&Script]) -> Option<Spec> {
        let Translation {
            loose,
            named,
            problems,
            notes,
            ..
        } = self;
        let first = problems.count();
        let spec = tree.and_then(|tree| check(&tree, problems));
        for (class, text) in spec.iter().flat_map(kinds::remarks) {
            let mut classes = scripts.iter().flat_map(|script| &script.classes);
            if let Some(class) = classes.find(|other| Id::from(*other.id.get_ref()) == class) {
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
        spec
    }

    fn qdisc(&mut self, qdisc: &'a Qdisc) -> Option<Draft> {
        if self.depth == DEEPEST {
            let message = format!("more than {DEEPEST} qdiscs are nested");
            let help = "remove some of them";
            self.problems.add(qdisc.kind.span(), message, "too deep", help);
            return None;
        }
        self.depth += 1;
        let around = std::mem::take(&mut self.common);
        let stab = self.stab;
        self.begin_stab(qdisc);
        let before = self.problems.count();
        let mut draft = self.qdisc_within(qdisc);
        if let Some(draft) = &mut draft {
            let has_gaps = draft.classes.iter().any(|class| class.is_broken);
            draft.is_broken |= has_gaps || self.problems.count() > before;
        }
        self.common = around;
        self.stab = stab;
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
        class.kind.get_ref().clone_into(&mut self.kind);
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

    /// Returns what a cbs holds that delays nothing.
    fn within_cbs(&mut self, qdisc: &'a Qdisc) -> Option<Draft> {
        let location = qdisc.kind.span();
        let text = "a `cbs` without a negative send slope and `locredit` delays nothing, as in Linux: the \
                    tree has only what is in it";
        self.notes.add(location.clone(), text.to_owned());
        self.only_attached_to(qdisc, |minor| minor <= 1);
        if let Some(inner) = self.script.attached_below(qdisc).next() {
            return self.qdisc(inner);
        }
        let kind = kinds::find("pfifo").expect("it is known");
        let mut fifo = named(kind, &location);
        fifo.qdisc = Some(qdisc.handle.unwrap_or(0));
        fifo.settings = self.settings(&[], &[], kind.defaults, &location);
        let handle = qdisc.handle.map(|handle| Given::Word(format!("{handle:x}")));
        fifo.settings
            .extend(handle.map(|handle| setting(&location, "handle", handle)));
        Some(fifo)
    }

    fn qdisc_within(&mut self, qdisc: &'a Qdisc) -> Option<Draft> {
        let name = qdisc.kind.get_ref();
        let Some(kind) = kinds::find(name) else {
            let (message, help) = match kinds::reason(name) {
                Some((reason, remedy)) => {
                    let message = format!("there is no discipline for the qdisc `{name}`: {reason}");
                    (message, remedy.to_owned())
                }
                None => (
                    format!("there is no discipline for the qdisc `{name}`"),
                    suggest::remedy(name, "known are", kinds::names()),
                ),
            };
            self.problems
                .add(qdisc.kind.span(), message, "unknown here", help);
            self.within_unknown(qdisc);
            return None;
        };
        let location = qdisc.kind.span();
        if name == "cbs" && kinds::timed::cbs_delays_nothing(&qdisc.options) {
            return self.within_cbs(qdisc);
        }
        let mut draft = named(kind, &location);
        draft.qdisc = Some(qdisc.handle.unwrap_or(0));
        if let Some(handle) = qdisc.handle {
            draft
                .settings
                .push(setting(&location, "handle", Given::Word(format!("{handle:x}"))));
        }
        let before = self.problems.count();
        draft.settings.extend(qdisc.estimated(self.problems));
        if name == "cake_mq" {
            let text = "`cake_mq` is one cake here: several `workers` of a run share its rate as the cakes \
                        of transmit queues do, if it has the words besteffort and flows";
            self.notes.add(location.clone(), text.to_owned());
        }
        name.clone_into(&mut self.kind);
        let mut settings = match kind.discipline {
            "gred" => self.virtual_queues(qdisc),
            _ => self.settings(&qdisc.options, kind.options, kind.defaults, &location),
        };
        if matches!(kind.discipline, "tbf" | "hfsc") {
            self.add_stab(&mut settings);
        }
        for file in kinds::files(name, &qdisc.options) {
            self.notes.add_file(file);
        }
        let are_whole = self.problems.count() == before;
        draft.is_incomplete = !are_whole;
        if let Err(wrong) = round_trips::settle(&mut settings) {
            let help = "give max_rtt and perhaps typical_rtt, or target, tupdate, alpha and beta";
            self.problems
                .add(wrong.location, wrong.message, "these don't fit", help);
        }
        if kind.discipline == "sfq"
            && let Err(wrong) = flow_red::settle(&mut settings)
        {
            let help = "write redflowlimit, and perhaps min and max below it, in bytes";
            self.problems
                .add(wrong.location, wrong.message, "these don't fit", help);
        }
        self.without_peak(kind, &mut settings);
        self.keeps_flows(qdisc);
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
            Children::InnerOrNone => {
                self.only_attached_to(qdisc, |minor| minor <= 1);
                let inner = self.script.attached_below(qdisc).next();
                draft.inner = inner.and_then(|inner| self.qdisc(inner)).map(Box::new);
            }
            Children::Bands { option } => {
                let bands = self.bands(option, &mut settings);
                draft.classes = self.classes_of_bands(qdisc, bands, &location);
            }
            // The options have a mistake that is reported already.
            Children::SharingBands if !are_whole => {}
            Children::SharingBands => match Sharing::of(&mut settings, &self.script.device, &location) {
                Ok(mut sharing) => {
                    self.change_bands(qdisc, &mut sharing);
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
            // The options have a mistake that is reported already.
            Children::TransmitQueues { .. } if !are_whole => {}
            Children::TransmitQueues {
                has_traffic_classes, ..
            } => {
                draft.classes = self.transmit_queues(qdisc, *has_traffic_classes, &mut settings)?;
                self.no_filters(qdisc);
                draft.settings.append(&mut settings);
                return Some(draft);
            }
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
        filters::translate(self.script, qdisc, &mut draft, self.problems, self.notes);
        if kind.discipline == "cbq" {
            self.add_default_maps(qdisc, &mut draft);
        }
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
    drafts::named(kind.discipline, location)
}
