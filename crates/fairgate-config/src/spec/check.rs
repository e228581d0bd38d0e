//! Checks a draft and turns it into a description.
//!
//! Every discipline is built once during the check, from the leaves to the root, with fifos in place of its
//! children, or makes the checks of that without building its tables. So the disciplines themselves have
//! accepted every description.

use std::collections::{BTreeSet, VecDeque};
use std::ops::{Range, RangeInclusive};

use fairgate::classify::Template;
use fairgate::queues::fifo::{self, Fifo};
use fairgate::registry::tree::{inner_classes, parent_of};
use fairgate::{ConfigError, Discipline, ParameterPath, Refusal};
use toml::Spanned;

use super::draft::{Draft, SEE_LIST, Written};
use super::given::{self, Given, Mistake};
use super::{Estimator, Estimators, Origin, Spec};
use super::{estimator, filters, templates};
use crate::error::Problems;
use crate::registry::{
    Children, ClassSettings, Entry, PARENT, ParameterInfo, Parts, Registry, Setting, Settings,
};
use crate::suggest;

/// Keys in a discipline's table that are not allowed as names of parameters.
pub(crate) const RESERVED_KEYS: [&str; 13] = [
    "discipline",
    "inner",
    "class",
    "filter",
    "handle",
    "default",
    "id",
    estimator::KEY,
    templates::KEYS[0],
    templates::KEYS[1],
    templates::KEYS[2],
    templates::KEYS[3],
    templates::KEYS[4],
];

/// Checks a draft of built-in disciplines and reports all mistakes. Returns `None` if there was one.
pub fn check(draft: &Draft, problems: &mut Problems) -> Option<Spec> {
    check_with(draft, &Registry::builtin(), problems)
}

/// Checks a draft of the registry's disciplines and reports all mistakes. Returns `None` if there was one.
pub(crate) fn check_with(draft: &Draft, registry: &Registry, problems: &mut Problems) -> Option<Spec> {
    let mut known = Known {
        registry,
        accepted: VecDeque::with_capacity(REMEMBERED),
    };
    whole(draft, &mut known, problems)
}

/// How many accepted disciplines are remembered.
const REMEMBERED: usize = 16;

/// The disciplines that can be named, and those that were built last.
///
/// Large trees have the same few disciplines in many classes, and a table for a million flows takes 15 ms to
/// build.
struct Known<'r> {
    registry: &'r Registry,
    /// Disciplines without children that were built and accepted, the last one first.
    accepted: VecDeque<(&'static str, Settings)>,
}

impl Known<'_> {
    /// Lets a discipline that holds `held` others check its settings.
    fn try_out(
        &mut self,
        entry: &'static dyn Entry,
        settings: &Settings,
        held: usize,
    ) -> Result<(), ConfigError> {
        let name = entry.about().name;
        let is_same = |(known, of_known): &(&str, Settings)| *known == name && of_known == settings;
        if held == 0 && self.accepted.iter().any(is_same) {
            return Ok(());
        }
        // The children were built one by one before. Fifos replace them here, so that the check of a large
        // tree does not need the memory of the whole tree.
        let stand_in = || -> Box<dyn Discipline> {
            Box::new(Fifo::node(fifo::Config::default()).expect("the default is valid"))
        };
        entry.check(settings, Parts::new((0..held).map(|_| stand_in()).collect(), 0))?;
        if held == 0 {
            self.accepted.truncate(REMEMBERED - 1);
            self.accepted.push_front((name, settings.clone()));
        }
        Ok(())
    }
}

/// Checks a discipline whose draft is its own.
fn whole(draft: &Draft, known: &mut Known<'_>, problems: &mut Problems) -> Option<Spec> {
    let keys: Vec<&Written> = draft.settings.iter().collect();
    node(draft, &keys, &[], known, problems)
}

/// Checks a discipline. `keys` are the settings of the draft that belong to the discipline. A class's draft
/// also has settings of the class, which are `beside` them.
fn node(
    draft: &Draft,
    keys: &[&Written],
    beside: &[ParameterInfo],
    known: &mut Known<'_>,
    problems: &mut Problems,
) -> Option<Spec> {
    let entry = find_entry(draft, known.registry, problems);
    let Some(entry) = entry else {
        // The inner discipline is checked all the same.
        let _ = draft.inner.as_deref().map(|inner| whole(inner, known, problems));
        return None;
    };
    let before = problems.count();
    let mut reader = Reader {
        entry,
        draft,
        beside,
        known,
        problems,
    };
    let mut settings = Settings {
        own: reader.settings(keys),
        ..Settings::default()
    };
    let mut estimators = Estimators {
        own: reader.estimator(keys),
        ..Estimators::default()
    };
    let (children, held) = reader.children(&mut settings, &mut estimators);
    reader.classifier(&mut settings, keys);
    if draft.is_broken || problems.count() > before {
        return None;
    }
    match known.try_out(entry, &settings, held) {
        Ok(()) => Some(Spec {
            entry,
            settings: settings.into(),
            children: children.into(),
            estimators: estimators.into(),
            origin: Origin::of(problems.source(), entry, draft, keys).into(),
        }),
        Err(error) => {
            refused(draft, &error, problems);
            None
        }
    }
}

fn find_entry(draft: &Draft, registry: &Registry, problems: &mut Problems) -> Option<&'static dyn Entry> {
    let Some(named) = &draft.discipline else {
        if !draft.is_broken {
            // A change in words has classes without lines.
            let help = format!(
                "add a line like discipline = \"fifo\", or / fifo behind a class in words; {SEE_LIST}"
            );
            problems.add(
                draft.header.clone(),
                "no `discipline` is named",
                "`discipline` is missing here",
                help,
            );
        }
        return None;
    };
    let name = named.get_ref().as_str();
    let kinds: Vec<_> = registry.entries(name).collect();
    let fits = |entry: &&&dyn Entry| entry.about().children.are_classes() != draft.classes.is_empty();
    let entry = kinds.iter().find(fits).or(kinds.first());
    if entry.is_none() {
        let help = suggest::remedy(name, "disciplines", registry.names());
        problems.add(
            named.span(),
            format!("there is no discipline `{name}`"),
            "unknown discipline",
            help,
        );
    }
    entry.copied()
}

/// A class as it was read.
struct ReadClass<'a> {
    minor: u32,
    /// The location of its number.
    location: Range<usize>,
    /// The template, if the class is given to hosts.
    template: Option<Template>,
    own: Vec<Setting>,
    estimator: Option<Estimator>,
    draft: &'a Draft,
    /// The settings of the discipline in the class.
    of_child: Vec<&'a Written>,
}

/// Reads the settings, children and filters of one discipline.
struct Reader<'a, 'r> {
    entry: &'static dyn Entry,
    draft: &'a Draft,
    /// The settings of the class that holds it, if they are written beside its own.
    beside: &'a [ParameterInfo],
    known: &'a mut Known<'r>,
    problems: &'a mut Problems,
}

impl<'a> Reader<'a, '_> {
    fn name(&self) -> &'static str {
        self.entry.about().name
    }

    /// Returns the location of the discipline's name.
    fn location(&self) -> Range<usize> {
        let named = self.draft.discipline.as_ref();
        named.map_or(self.draft.header.clone(), Spanned::span)
    }

    /// Reads the discipline's own parameters.
    fn settings(&mut self, keys: &[&Written]) -> Vec<Setting> {
        let parameters = self.entry.parameters();
        let mut settings = Vec::new();
        for &(key, given) in keys {
            let name = key.get_ref().as_str();
            if matches!(name, "handle" | "default" | estimator::KEY) {
                continue;
            }
            match parameters.iter().position(|info| info.name == name) {
                Some(index) => self.setting(index, &parameters[index], key, given, &mut settings),
                None => self.unknown_key(&parameters, key),
            }
        }
        if !self.draft.is_incomplete {
            let subject = format!("`{}`", self.name());
            self.nothing_is_missing(&subject, self.location(), &parameters, keys);
        }
        settings.sort_by_key(|(index, _)| *index);
        settings
    }

    /// Reports required parameters that are not set.
    fn nothing_is_missing(
        &mut self,
        subject: &str,
        location: Range<usize>,
        parameters: &[ParameterInfo],
        keys: &[&Written],
    ) {
        for info in parameters.iter().filter(|info| info.default.is_none()) {
            if !keys.iter().any(|(key, _)| key.get_ref() == info.name) {
                let message = format!("{subject} needs `{}`", info.name);
                let label = format!("`{}` is missing", info.name);
                self.problems.add(location.clone(), message, label, info.remedy());
            }
        }
    }

    fn setting(
        &mut self,
        index: usize,
        info: &ParameterInfo,
        key: &Spanned<String>,
        given: &Spanned<Given>,
        settings: &mut Vec<Setting>,
    ) {
        if settings.iter().any(|(other, _)| *other == index) {
            self.twice(key);
            return;
        }
        match given::read(info, given) {
            Ok(value) => settings.push((index, value)),
            Err(mistake) => mistake.report(self.problems),
        }
    }

    fn unknown_key(&mut self, parameters: &[ParameterInfo], key: &Spanned<String>) {
        let about = self.entry.about();
        let mut known: Vec<&str> = parameters.iter().map(|info| info.name).collect();
        known.extend(match about.children {
            Children::None => None,
            children if children.are_classes() => Some("class"),
            _ => Some("inner"),
        });
        known.extend(["handle", estimator::KEY]);
        if self.entry.takes_filters() {
            known.extend(["filter", "default"]);
        }
        let with = if about.children.are_classes() {
            " with classes"
        } else {
            ""
        };
        let word = key.get_ref();
        let of_class = suggest::similar(word, self.beside.iter().map(|info| info.name));
        let help = match of_class {
            Some(name) if suggest::similar(word, known.iter().copied()).is_none() => {
                format!(
                    "did you mean `{name}` of the class? The discipline itself has: {}",
                    known.join(", ")
                )
            }
            _ => suggest::remedy(word, "it has", known),
        };
        let message = format!("`{}`{with} has no parameter `{word}`", about.name);
        self.problems.add(key.span(), message, "unknown parameter", help);
    }

    /// Reads the estimator of a discipline or a class.
    fn estimator(&mut self, keys: &[&Written]) -> Option<Estimator> {
        let mut given = keys.iter().filter(|(key, _)| key.get_ref() == estimator::KEY);
        let (_, first) = given.next()?;
        if let Some((key, _)) = given.next() {
            self.twice(key);
        }
        estimator::read(first)
            .map_err(|mistake| mistake.report(self.problems))
            .ok()
    }

    fn twice(&mut self, key: &Spanned<String>) {
        let message = format!("`{}` is given twice", key.get_ref());
        self.problems
            .add(key.span(), message, "given before", "remove one of the two");
    }

    /// Returns the children and their number. Each class of a template counts. Adds the settings of the
    /// classes to `settings`, and their estimators to `estimators`.
    fn children(&mut self, settings: &mut Settings, estimators: &mut Estimators) -> (Vec<Spec>, usize) {
        let kind = self.entry.about().children;
        let (mut specs, mut held) = (Vec::new(), 0);
        match (&self.draft.inner, kind) {
            (None, _) => {}
            (Some(inner), Children::Inner | Children::InnerOrQueue) => {
                specs.extend(whole(inner, self.known, self.problems));
                held = specs.len();
            }
            (Some(inner), _) => {
                let message = format!("`{}` holds no inner discipline", self.name());
                let help = if kind.are_classes() {
                    "put it into a class, [[queue.NAME.class]]"
                } else {
                    "leave `inner` out, or put both into a shaper like `tbf`"
                };
                self.problems.add(inner.header.clone(), message, "not here", help);
            }
        }
        match (self.draft.classes.first(), kind.are_classes()) {
            (Some(_), true) => (specs, held) = self.classes(settings, estimators),
            (Some(class), false) => {
                let message = format!("`{}` holds no classes", self.name());
                let help =
                    "leave the classes out, or use a discipline that holds classes, like `prio` or `drr`";
                self.problems.add(class.header.clone(), message, "not here", help);
            }
            (None, true) if kind == Children::TreeOrNone || self.draft.is_broken => {}
            (None, true) => {
                let message = format!("`{}` needs classes, and has none", self.name());
                let help = "add for each class a line [[queue.NAME.class]], its id and its discipline; \
                            in a script for tc, add `class add`";
                self.problems
                    .add(self.location(), message, "no class is given", help);
            }
            (None, false) => {}
        }
        (specs, held)
    }

    /// Reads the classes, sorted by number. Returns the trees in them, and the number of classes that hold
    /// one.
    fn classes(&mut self, settings: &mut Settings, estimators: &mut Estimators) -> (Vec<Spec>, usize) {
        let mut found = self.read_classes();
        found.sort_by_key(|class| class.minor);
        if self.entry.about().children == Children::Bands {
            self.bands_have_no_gap(&found);
        }
        self.numbers_are_apart(&found);
        self.parents_are_no_templates(&found);
        for class in &mut found {
            let estimator = class.estimator.map(|estimator| (class.minor, estimator));
            estimators.classes.extend(estimator);
            settings.classes.push(ClassSettings {
                minor: class.minor,
                template: class.template.clone(),
                settings: std::mem::take(&mut class.own),
            });
        }
        let inner = inner_classes(self.entry, &settings.classes);
        let (mut specs, mut held) = (Vec::new(), 0);
        for class in found {
            if class.template.is_none() && inner.contains(&class.minor) {
                self.holds_nothing(&class);
                continue;
            }
            specs.extend(class_child(
                class.draft,
                &class.of_child,
                &self.entry.class_parameters(),
                self.known,
                self.problems,
            ));
            held += class.template.map_or(1, |template| template.count as usize);
        }
        (specs, held)
    }

    /// Reports templates whose classes overlap with another class. A template's classes have consecutive
    /// numbers.
    fn numbers_are_apart(&mut self, found: &[ReadClass<'_>]) {
        for pair in found.windows(2) {
            let Some(template) = &pair[0].template else {
                continue;
            };
            let (own, last) = (template.class, *template.classes().end());
            if last >= pair[1].minor {
                let location = pair[0]
                    .draft
                    .setting("count")
                    .map_or(pair[0].location.clone(), |(_, given)| given.span());
                let message = format!(
                    "the classes of template {own} are {own} to {last}, and {} is another class",
                    pair[1].minor
                );
                let help = format!(
                    "lower `count` to at most {}, or give one of the two another number",
                    pair[1].minor - own
                );
                self.problems.add(location, message, "too many", help);
            }
        }
    }

    fn parents_are_no_templates(&mut self, found: &[ReadClass<'_>]) {
        let templates: Vec<&Template> = found.iter().filter_map(|class| class.template.as_ref()).collect();
        let parameters = self.entry.class_parameters();
        let parent = parameters.iter().position(|info| info.name == PARENT);
        for class in found {
            let of_template = |minor: &u32| {
                templates
                    .iter()
                    .any(|template| template.classes().contains(minor))
            };
            if let Some(minor) = parent_of(parent, &class.own).filter(of_template) {
                let setting = class.draft.setting(PARENT);
                let location = setting.map_or(class.location.clone(), |(_, given)| given.span());
                let message = format!("class {minor} is given to hosts, and has no classes below it");
                let help = "name a class without `each`, or leave `parent` out";
                self.problems.add(location, message, "a template", help);
            }
        }
    }

    /// Reads the classes with their own settings. Duplicate numbers are reported.
    fn read_classes(&mut self) -> Vec<ReadClass<'a>> {
        let parameters = self.entry.class_parameters();
        let mut found: Vec<ReadClass<'_>> = Vec::new();
        for draft in &self.draft.classes {
            let is_of_template = |written: &&Written| templates::KEYS.contains(&written.0.get_ref().as_str());
            let is_of_class = |written: &&Written| {
                let name = written.0.get_ref();
                matches!(name.as_str(), "id" | estimator::KEY)
                    || parameters.iter().any(|info| info.name == name)
            };
            let (of_template, settings): (Vec<_>, Vec<_>) = draft.settings.iter().partition(is_of_template);
            let (of_class, of_child): (Vec<_>, Vec<_>) = settings.into_iter().partition(is_of_class);
            let mut own = Vec::new();
            for (key, given) in &of_class {
                if let Some(index) = parameters.iter().position(|info| info.name == key.get_ref()) {
                    self.setting(index, &parameters[index], key, given, &mut own);
                }
            }
            own.sort_by_key(|(index, _)| *index);
            let estimator = self.estimator(&of_class);
            let numbered = self.class_number(draft);
            let location = numbered
                .as_ref()
                .map_or(draft.header.clone(), |(_, location)| location.clone());
            if !draft.is_incomplete {
                self.nothing_is_missing("the class", location, &parameters, &of_class);
            }
            let template = self.template(&of_template, numbered.as_ref());
            let Some((minor, location)) = numbered else {
                let _ = class_child(draft, &of_child, &parameters, self.known, self.problems);
                continue;
            };
            if found.iter().any(|other| other.minor == minor) {
                let message = format!(
                    "`{}` has class {} twice",
                    self.name(),
                    self.draft.class_name(minor)
                );
                let help = "give every class a number of its own";
                self.problems.add(location, message, "given before", help);
                let _ = class_child(draft, &of_child, &parameters, self.known, self.problems);
                continue;
            }
            found.push(ReadClass {
                minor,
                location,
                template,
                own,
                estimator,
                draft,
                of_child,
            });
        }
        found
    }

    /// Returns the template for the class of this number, if `keys` says that it is given to hosts.
    fn template(&mut self, keys: &[&Written], number: Option<&(u32, Range<usize>)>) -> Option<Template> {
        let (key, _) = keys.first()?;
        if !self.entry.takes_templates() {
            let message = format!("`{}` gives no classes to hosts", self.name());
            let help = "use a discipline with classes of any number, like `htb`, `hfsc` or `drr`";
            self.problems.add(key.span(), message, "not here", help);
            return None;
        }
        let (minor, location) = number?;
        templates::read(*minor, location.clone(), keys, self.problems)
    }

    /// Reports a discipline in a class that is the parent of others.
    fn holds_nothing(&mut self, class: &ReadClass<'_>) {
        let ReadClass { minor, draft, .. } = class;
        let held = draft
            .discipline
            .as_ref()
            .map(Spanned::span)
            .or(draft.inner.as_ref().map(|inner| inner.header.clone()));
        if let Some(location) = held {
            let minor = self.draft.class_name(*minor);
            let message = format!("class {minor} has classes below it, and holds no discipline");
            let help = "put it into a class that is not the parent of another one";
            self.problems.add(location, message, "not here", help);
            return;
        }
        for (key, _) in &class.of_child {
            let parameters = self.entry.class_parameters();
            let known = parameters
                .iter()
                .map(|info| info.name)
                .chain(["id", estimator::KEY]);
            let message = format!(
                "a class of `{}` has no parameter `{}`",
                self.name(),
                key.get_ref()
            );
            let help = suggest::remedy(key.get_ref(), "it has", known);
            self.problems.add(key.span(), message, "unknown parameter", help);
        }
    }

    fn class_number(&mut self, class: &Draft) -> Option<(u32, Range<usize>)> {
        let Some((_, given)) = class.setting("id") else {
            let help = "add a line like id = 1";
            self.problems.add(
                class.header.clone(),
                "the class has no `id`",
                "`id` is missing here",
                help,
            );
            return None;
        };
        match given::class_number("id", given) {
            Ok(number) => Some((number, given.span())),
            Err(mistake) => {
                mistake.report(self.problems);
                None
            }
        }
    }

    fn bands_have_no_gap(&mut self, classes: &[ReadClass<'_>]) {
        if let Some((class, expected)) = classes
            .iter()
            .zip(1..)
            .find(|(class, expected)| class.minor != *expected)
        {
            let message = format!(
                "`{}` has class {}, but no class {expected}",
                self.name(),
                class.minor
            );
            let help = "number the classes 1, 2, 3 without a gap; class 1 goes first";
            self.problems.add(
                class.location.clone(),
                message,
                format!("expected {expected}"),
                help,
            );
        }
    }

    /// Reads handle, default class and filters.
    fn classifier(&mut self, settings: &mut Settings, keys: &[&Written]) {
        let given = |name: &str| keys.iter().find(|(key, _)| key.get_ref() == name);
        let (handle, default) = (given("handle"), given("default"));
        if let Some((_, given)) = handle {
            match filters::handle(given) {
                Ok(handle) => settings.classifier.handle = handle,
                Err(mistake) => mistake.report(self.problems),
            }
        }
        if !self.entry.takes_filters() {
            if let Some((key, _)) = default {
                self.no_classes_for(key.span(), "default");
            }
            if let Some(filter) = self.draft.filters.first() {
                self.no_classes_for(filter.header.clone(), "filter");
            }
            return;
        }
        let targets = Targets::of(self.entry, settings, self.draft);
        if let Some((_, given)) = default {
            match targets.default(given) {
                Ok(class) => settings.classifier.default = Some(class),
                Err(mistake) => mistake.report(self.problems),
            }
        }
        if let Targets::Classes(targets) = &targets {
            let default = settings.classifier.default;
            for template in settings
                .classes
                .iter_mut()
                .filter_map(|class| class.template.as_mut())
            {
                match targets.overflow(template, default) {
                    Ok(class) => template.overflow = class,
                    Err(mistake) => mistake.report(self.problems),
                }
            }
        }
        let problems = &mut *self.problems;
        let class = |given: &Spanned<Given>| targets.of_filter(given);
        let read = |filter| filters::read(filter, class, |given| targets.inner(given), problems);
        settings.classifier.filters = self.draft.filters.iter().filter_map(read).collect();
    }

    fn no_classes_for(&mut self, location: Range<usize>, key: &str) {
        let message = format!("`{}` takes no `{key}`: it has no classes", self.name());
        let help = "remove it, or put the discipline into a class of `prio` or `drr`";
        self.problems.add(location, message, "not here", help);
    }
}

/// Checks the discipline of a class. Its settings are written beside the class's settings, or in an `inner`
/// table, if the class itself names no discipline. `inner` separates settings of equal names.
fn class_child(
    class: &Draft,
    keys: &[&Written],
    beside: &[ParameterInfo],
    known: &mut Known<'_>,
    problems: &mut Problems,
) -> Option<Spec> {
    let (None, Some(inner)) = (&class.discipline, &class.inner) else {
        return node(class, keys, beside, known, problems);
    };
    for (key, _) in keys {
        let message = format!("a class has no parameter `{}`", key.get_ref());
        let help = match suggest::similar(key.get_ref(), beside.iter().map(|info| info.name)) {
            Some(name) => format!("did you mean `{name}`?"),
            None => "write it into `inner` if it is for the discipline there".to_owned(),
        };
        problems.add(key.span(), message, "unknown parameter", help);
    }
    whole(inner, known, problems)
}

/// The classes or flows that filters can name.
enum Targets<'a> {
    Classes(ClassTargets<'a>),
    /// The numbers from 1 up to this one.
    UpTo(&'a Draft, &'static str, u32),
}

/// The classes that filters can name.
struct ClassTargets<'a> {
    draft: &'a Draft,
    name: &'static str,
    /// The classes that hold packets.
    leaves: BTreeSet<u32>,
    /// The classes that hold other classes.
    inner: BTreeSet<u32>,
    /// The classes that are given to hosts. The first one of each range is also a leaf.
    templates: Vec<RangeInclusive<u32>>,
    /// Whether the discipline sends packets even if it has no classes.
    may_be_none: bool,
}

impl<'a> Targets<'a> {
    fn of(entry: &'static dyn Entry, settings: &Settings, draft: &'a Draft) -> Targets<'a> {
        let name = entry.about().name;
        if !entry.about().children.are_classes() {
            return Targets::UpTo(draft, name, entry.places(settings));
        }
        let inner = inner_classes(entry, &settings.classes);
        let minors = settings.classes.iter().map(|class| class.minor);
        let templates = settings.classes.iter().filter(|class| class.template.is_some());
        Targets::Classes(ClassTargets {
            draft,
            name,
            leaves: minors.filter(|minor| !inner.contains(minor)).collect(),
            inner,
            templates: templates.map(ClassSettings::minors).collect(),
            may_be_none: entry.about().children == Children::TreeOrNone,
        })
    }

    /// Reads the class for packets that no filter matches. HTB allows this number before any class exists.
    fn default(&self, given: &Spanned<Given>) -> Result<u32, Mistake> {
        match self {
            Targets::Classes(classes) if classes.may_be_none && classes.are_none() => {
                given::class_number("default", given)
            }
            _ => self.number("default", given),
        }
    }

    /// Reads the class of a filter: also an inner class, if filters are tried `at` it.
    fn of_filter(&self, given: &Spanned<Given>) -> Result<u32, Mistake> {
        if let Targets::Classes(classes) = self
            && let Ok(number) = given::class_number("class", given)
            && classes.inner.contains(&number)
            && classes.has_filters(number)
        {
            return Ok(number);
        }
        self.number("class", given)
    }

    /// Reads the inner class at which a filter is tried.
    fn inner(&self, given: &Spanned<Given>) -> Result<u32, Mistake> {
        let number = given::class_number("at", given)?;
        match self {
            Targets::Classes(classes) if classes.inner.contains(&number) => Ok(number),
            Targets::Classes(ClassTargets { draft, .. }) | Targets::UpTo(draft, ..) => Err(Mistake {
                span: given.span(),
                message: format!(
                    "class {} has no classes below it to choose from",
                    draft.class_name(number)
                ),
                label: "not an inner class".to_owned(),
                help: "attach the filter to the discipline itself, or to a class of htb, hfsc or cbq with \
                       classes below it"
                    .to_owned(),
            }),
        }
    }

    fn number(&self, key: &'static str, given: &Spanned<Given>) -> Result<u32, Mistake> {
        let number = given::class_number(key, given)?;
        match self {
            Targets::Classes(classes) => classes.find(key, number, given),
            Targets::UpTo(_, _, most) if number <= *most => Ok(number),
            Targets::UpTo(draft, name, most) => Err(Mistake {
                span: given.span(),
                message: no_class(key, name, &draft.class_name(number)),
                label: "no such class".to_owned(),
                help: match most {
                    0 => "it has no classes with these parameters".to_owned(),
                    most => format!("its classes are 1 to {most}"),
                },
            }),
        }
    }
}

impl ClassTargets<'_> {
    /// Whether filters are tried at this inner class.
    fn has_filters(&self, class: u32) -> bool {
        let names = |(key, given): &Written| {
            key.get_ref() == "at" && *given.get_ref() == Given::Integer(class.into())
        };
        self.draft
            .filters
            .iter()
            .any(|filter| filter.entries.iter().any(names))
    }

    fn are_none(&self) -> bool {
        self.leaves.is_empty() && self.inner.is_empty()
    }

    fn template_of(&self, number: u32) -> Option<&RangeInclusive<u32>> {
        self.templates.iter().find(|template| template.contains(&number))
    }

    /// Returns the class for packets of hosts that get no class of this template: the template's `overflow`,
    /// or the default class.
    fn overflow(&self, template: &Template, default: Option<u32>) -> Result<u32, Mistake> {
        let class = self
            .draft
            .classes
            .iter()
            .find(|class| class.id() == Some(template.class));
        let class = class.expect("a template was read from its draft");
        let Some((_, given)) = class.setting("overflow") else {
            return default
                .filter(|class| self.template_of(*class).is_none())
                .ok_or_else(|| Mistake {
                    span: class.header.clone(),
                    message: format!(
                        "class {} is given to hosts, but has no `overflow`",
                        template.class
                    ),
                    label: "a class for all further hosts is missing".to_owned(),
                    help: "name another class, like overflow = 9, or set `default`".to_owned(),
                });
        };
        let found = self.find("overflow", template.overflow, given)?;
        match self.template_of(found) {
            None => Ok(found),
            Some(_) => Err(Mistake {
                span: given.span(),
                message: format!("class {found} of `{}` is given to hosts", self.name),
                label: "a template".to_owned(),
                help: "name a class without `each`, which takes any host".to_owned(),
            }),
        }
    }

    /// Returns the number that `key` names, if packets can be put into its class.
    fn find(&self, key: &str, number: u32, given: &Spanned<Given>) -> Result<u32, Mistake> {
        let ClassTargets { draft, name, .. } = self;
        let shown = draft.class_name(number);
        let mistake = |message, label: &str, help| Mistake {
            span: given.span(),
            message,
            label: label.to_owned(),
            help,
        };
        if self.leaves.contains(&number) {
            return Ok(number);
        }
        if self.inner.contains(&number) {
            let message = format!("class {shown} of `{name}` has classes below it, and holds no packets");
            let help = "name one of the leaves below it, or add filters that are tried `at` it";
            return Err(mistake(message, "not a leaf", help.to_owned()));
        }
        if let Some(template) = self.template_of(number) {
            let message = format!("class {shown} of `{name}` is one of the classes that are given to hosts");
            let help = format!(
                "name the first of them, {}; the host determines which one is used",
                template.start()
            );
            return Err(mistake(message, "not by itself", help));
        }
        let known: Vec<String> = self.leaves.iter().map(|&minor| draft.class_name(minor)).collect();
        let help = match known[..] {
            [] => "add this class: there is none yet".to_owned(),
            _ => format!("name one of its classes ({}), or add this one", known.join(", ")),
        };
        Err(mistake(no_class(key, name, &shown), "no such class", help))
    }
}

/// Says that a discipline has no class of this number. Who deletes the default class may not know that it is
/// the default.
fn no_class(key: &str, discipline: &str, number: &str) -> String {
    let needed = match key {
        "default" => format!("class {number} is the default, but "),
        "overflow" => format!("class {number} is the `overflow`, but "),
        _ => String::new(),
    };
    format!("{needed}`{discipline}` has no class {number}")
}

/// Returns the location of the value at this path. If the value is a default, returns the location of the
/// class.
fn location_of(draft: &Draft, path: &ParameterPath) -> Option<Range<usize>> {
    let Some(minor) = path.class else {
        return draft.setting(path.key()).map(|(_, given)| given.span());
    };
    let class = draft.classes.iter().find(|draft| draft.id() == Some(minor))?;
    let given = class.setting(path.key());
    Some(given.map_or(class.header.clone(), |(_, given)| given.span()))
}

/// Reports a setting that is within its range, but that the discipline rejects together with the others.
fn refused(draft: &Draft, error: &ConfigError, problems: &mut Problems) {
    let refusal = error.refusal();
    let at = refusal
        .and_then(|refusal| location_of(draft, &refusal.path))
        .or(draft.discipline.as_ref().map(Spanned::span))
        .unwrap_or(draft.header.clone());
    let Some(Refusal {
        path,
        value,
        rule,
        remedy,
        ..
    }) = refusal
    else {
        problems.add(at, error.to_string(), "refused", SEE_LIST);
        return;
    };
    let parameter = path.parameter;
    let message = match path.class {
        Some(class) => {
            let class = draft.class_name(class);
            format!("`{parameter}` of class {class} is {value}, but must be {rule}")
        }
        None => format!("`{parameter}` is {value}, but must be {rule}"),
    };
    problems.add(at, message, format!("must be {rule}"), remedy.clone());
}
