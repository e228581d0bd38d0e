//! Runs the lines of a script. The result is the state after the last line. `run` has the effect of each
//! line.

mod run;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use fairgate::ClassId;
use fairgate_config::FileError;
use fairgate_config::language::Problems;
use miette::NamedSource;
use toml::Spanned;

use super::abbreviations::full;
use super::before;
use super::command::{Command, Read, object_of};
use super::device::Device;
use super::kinds;
use super::objects::{Class, Filter, Qdisc};
use super::percent;
use crate::script::notes::Notes;
use crate::script::{Word, lines};

/// The first handle that the kernel gives to a qdisc without one (`qdisc_alloc_handle` in sch_api.c).
pub(super) const FIRST_HANDLE: u16 = 0x8001;

/// The qdiscs, classes and filters of one device after all lines. Every parent precedes its children.
pub struct Script {
    pub(super) source: Arc<NamedSource<String>>,
    pub(super) name: Word,
    pub(super) device: Device,
    pub(super) qdiscs: Vec<Qdisc>,
    pub(super) classes: Vec<Class>,
    pub(super) filters: Vec<Filter>,
    /// Changes of classes that their qdisc makes itself: the bands of ets.
    pub(super) bands: Vec<Class>,
    /// What lines would have added to something that an earlier line failed to add. Only its own mistakes are
    /// reported.
    pub(super) orphans: Orphans,
    /// What the kernel does when it runs these lines, besides what they say.
    pub(super) notes: Notes,
    /// The handles that would exist if no line had a mistake.
    lost: BTreeSet<u16>,
    /// The network namespace that the device is in, if lines name one.
    namespace: Option<Word>,
}

/// Qdiscs, classes and filters without a place.
#[derive(Default)]
pub(super) struct Orphans {
    pub(super) qdiscs: Vec<Qdisc>,
    pub(super) classes: Vec<Class>,
    pub(super) filters: Vec<Filter>,
}

/// The scripts of all devices, and the lines that they were read from.
pub(super) struct Reading {
    /// The devices that commands are for, even if nothing is attached to them.
    pub(super) scripts: Vec<Script>,
    /// The locations of the lines with commands.
    pub(super) lines: Vec<Range<usize>>,
}

/// Prints the name of the type only.
impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Script").finish_non_exhaustive()
    }
}

impl Script {
    /// Parses a script for one device. Messages call it `name`. All mistakes are reported at once.
    ///
    /// ```
    /// use fairgate_scripts::tc::{Device, Script};
    /// let script = Script::parse(
    ///     "home.tc",
    ///     "tc qdisc add dev eth0 root handle 1: tbf rate 20mbit burst 5kb latency 50ms",
    ///     Device::default(),
    /// )?;
    /// assert_eq!(script.spec()?.discipline(), "tbf");
    /// # Ok::<(), fairgate_config::FileError>(())
    /// ```
    ///
    /// # Errors
    /// If a line can't be understood, the lines don't fit together, or they are for several devices.
    pub fn parse(name: &str, text: &str, device: Device) -> Result<Script, FileError> {
        let source = Arc::new(NamedSource::new(name, text.to_owned()));
        let mut problems = Problems::new(Arc::clone(&source));
        let mut scripts = Script::read(text, device, &source, &mut problems).scripts;
        scripts.retain(|script| !script.qdiscs.is_empty());
        let first = (!scripts.is_empty()).then(|| scripts.remove(0));
        if let (Some(first), Some(other)) = (&first, scripts.first()) {
            let message = format!("this line is for device `{}`", other.device_name());
            let help = format!(
                "remove one of the devices; the first is `{}`",
                first.device_name()
            );
            problems.add(other.name.span(), message, "another device", help);
        }
        match first {
            Some(first) => problems.unless_any(first),
            None => Err(problems.into_error()),
        }
    }

    /// Reads all lines. Reports if nothing is attached to any device.
    pub(super) fn read(
        text: &str,
        device: Device,
        source: &Arc<NamedSource<String>>,
        problems: &mut Problems,
    ) -> Reading {
        let mut scripts: Vec<Script> = Vec::new();
        let mut places = Vec::new();
        for (mut words, end) in lines(text, &["tc"]) {
            places.push(words[0].span().start..end);
            let Ok(namespace) = before::take(&mut words, problems) else {
                continue;
            };
            if only_shows(&words) {
                continue;
            }
            let are_rates_known = percent::resolve(&mut words, device.speed, problems);
            let (device_name, command) = match Command::read(words, end, problems) {
                // The rest of the line is right, so that nothing that follows from the rate is reported.
                Read::Whole(command) if !are_rates_known => (command.device.clone(), Err(command.known())),
                Read::Whole(command) => (command.device.clone(), Ok(*command)),
                Read::Partly(known) => (known.device.clone(), Err(known)),
                Read::Nothing => continue,
            };
            let at = scripts
                .iter()
                .position(|script| script.device_name() == device_name.get_ref());
            let place = device_name.span();
            let at = at.unwrap_or_else(|| {
                report_variable(&device_name, problems);
                let mut script = Script::new(device_name, device, source);
                script.is_in(namespace.clone());
                scripts.push(script);
                scripts.len() - 1
            });
            if scripts[at].is_of_another(namespace.as_ref(), place, problems) {
                continue;
            }
            match command {
                Ok(command) => scripts[at].run(command, problems),
                Err(known) => scripts[at].lose(known),
            }
        }
        if scripts.iter().all(|script| script.qdiscs.is_empty()) && problems.count() == 0 {
            let help = "begin with a line like tc qdisc add dev eth0 root handle 1: fq_codel";
            problems.add(
                0..text.len(),
                "no qdisc is attached to the root",
                "nothing here",
                help,
            );
        }
        let lines = places;
        Reading { scripts, lines }
    }

    fn new(name: Word, device: Device, source: &Arc<NamedSource<String>>) -> Script {
        Script {
            source: Arc::clone(source),
            name,
            device,
            qdiscs: Vec::new(),
            classes: Vec::new(),
            filters: Vec::new(),
            bands: Vec::new(),
            orphans: Orphans::default(),
            notes: Notes::default(),
            lost: BTreeSet::new(),
            namespace: None,
        }
    }

    /// Notes that the device is in a network namespace, if it is.
    fn is_in(&mut self, namespace: Option<Word>) {
        if let Some(namespace) = &namespace {
            let (device, name) = (self.device_name(), namespace.get_ref());
            let text = format!(
                "`{device}` is in the network namespace `{name}`: run its tree there (ip netns exec)"
            );
            self.notes.add(namespace.span(), text);
        }
        self.namespace = namespace;
    }

    /// Reports a device of the same name in another network namespace. It would be a device of its own.
    fn is_of_another(&self, namespace: Option<&Word>, at: Range<usize>, problems: &mut Problems) -> bool {
        let name = |namespace: Option<&Word>| namespace.map(|word| word.get_ref().clone());
        let of_names = (name(self.namespace.as_ref()), name(namespace));
        if of_names.0 == of_names.1 {
            return false;
        }
        let place = |name: Option<String>| name.map_or("no namespace".to_owned(), |name| format!("`{name}`"));
        let message = format!(
            "`{}` is in {} here, and in {} before: these are two devices",
            self.device_name(),
            place(of_names.1),
            place(of_names.0)
        );
        let location = namespace.map_or(at, Spanned::span);
        let help = "read the commands of each network namespace by themselves";
        problems.add(location, message, "two devices of one name", help);
        true
    }

    /// Returns the device's name.
    pub fn device_name(&self) -> &str {
        self.name.get_ref()
    }

    /// Returns a sentence about the first qdisc that Fairgate has no discipline for, if there is one.
    pub fn unsupported(&self) -> Option<String> {
        let kinds = self.qdiscs.iter().map(|qdisc| &qdisc.kind);
        let missing = kinds
            .map(Spanned::get_ref)
            .find(|kind| kinds::find(kind).is_none())?;
        Some(format!("the qdisc `{missing}` is not supported yet"))
    }

    /// Returns the qdisc attached to `class`.
    pub(super) fn attached_to(&self, class: ClassId) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|qdisc| qdisc.parent == Some(class))
    }

    /// Returns the qdiscs attached to classes of `qdisc`.
    pub(super) fn attached_below<'s>(&'s self, qdisc: &Qdisc) -> impl Iterator<Item = &'s Qdisc> + use<'s> {
        let handle = qdisc.handle;
        let major = |other: &Qdisc| other.parent.map(ClassId::major);
        let is_below = move |other: &&Qdisc| handle.is_some() && major(other) == handle;
        self.qdiscs.iter().filter(is_below)
    }

    /// Returns the classes added to `qdisc`.
    pub(super) fn classes_of<'s>(&'s self, qdisc: &Qdisc) -> impl Iterator<Item = &'s Class> + use<'s> {
        let handle = qdisc.handle;
        let is_of = move |class: &&Class| Some(class.id.get_ref().major()) == handle;
        self.classes.iter().filter(is_of)
    }

    /// Returns the filters of `qdisc` in the order in which they are tried.
    pub(super) fn filters_of(&self, qdisc: &Qdisc) -> Vec<&Filter> {
        let is_of = |filter: &&Filter| match filter.parent {
            Some(parent) => Some(parent.major()) == qdisc.handle,
            None => qdisc.parent.is_none(),
        };
        let mut filters: Vec<&Filter> = self.filters.iter().filter(is_of).collect();
        filters.sort_by_key(|filter| filter.preference);
        filters
    }

    /// Returns the root.
    pub(super) fn root(&self) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|qdisc| qdisc.parent.is_none())
    }

    /// Returns `ingress` or `clsact`.
    pub(super) fn hook(&self) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|qdisc| qdisc.is_hook())
    }

    /// Returns the handle for a qdisc that is attached to a class without one. Only a fifo needs it here: it
    /// tells the fifo from the one that the kernel puts into a class by itself, which tc does not show.
    fn handle_of(&self, given: Option<u16>, parent: Option<ClassId>, kind: &Word) -> Option<u16> {
        let is_fifo =
            kinds::find(kind.get_ref()).is_some_and(|kind| kind.discipline == kinds::DEFAULT.discipline);
        match (given, parent) {
            (None, Some(_)) if is_fifo => {
                let mut free = (FIRST_HANDLE..=u16::MAX).filter(|handle| self.with_handle(*handle).is_none());
                free.next()
            }
            (given, _) => given,
        }
    }

    fn with_handle(&self, handle: u16) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|qdisc| qdisc.handle == Some(handle))
    }
}

/// Whether a line only prints something, like `tc qdisc show dev eth0`.
fn only_shows(words: &[Word]) -> bool {
    let mut texts = words.iter().map(|word| word.get_ref().as_str());
    let object = texts.next().and_then(object_of);
    let Some(verb) = texts.next() else {
        return object.is_some() || words.is_empty();
    };
    let verbs = [
        "add", "change", "replace", "link", "delete", "show", "list", "lst", "get", "help",
    ];
    match object {
        Some("monitor") => true,
        Some(_) => matches!(full(verb, &verbs), Some("show" | "list" | "lst" | "get" | "help")),
        None => false,
    }
}

/// Reports a device that is a variable of the shell: only the shell knows its value.
fn report_variable(device: &Word, problems: &mut Problems) {
    let name = device.get_ref();
    if name.contains('$') {
        let message = format!("`{name}` is a variable of the shell, and not a device");
        let help = "write the device's name, or let a recording find its value: fairgate tc --record SCRIPT";
        problems.add(device.span(), message, "has no value here", help);
    }
}
