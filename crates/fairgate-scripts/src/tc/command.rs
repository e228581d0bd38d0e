//! Parses one line of tc.

use std::ops::Range;

use fairgate::ClassId;
use fairgate_config::language::Problems;
use toml::Spanned;

use super::abbreviations::full;
use super::estimator::{self, Estimated};
use super::hook;
use crate::script::{Line, Word, number, unexpected};

/// A parsed line.
pub(super) struct Command {
    pub(super) verb: Spanned<Verb>,
    pub(super) device: Word,
    pub(super) object: Object,
    /// The kind. It may be missing only if something is deleted.
    pub(super) kind: Option<Word>,
    pub(super) options: Vec<Word>,
    /// How the rate of a qdisc or a class is estimated.
    pub(super) estimator: Option<Estimated>,
}

/// The operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// Adds an object that does not exist yet.
    Add,
    /// Changes or replaces an object, or adds it.
    Replace,
    /// Changes an existing object.
    Change,
    /// Deletes an existing object.
    Delete,
}

impl Verb {
    /// Returns the word for it.
    fn name(self) -> &'static str {
        match self {
            Verb::Add => "add",
            Verb::Replace => "replace",
            Verb::Change => "change",
            Verb::Delete => "del",
        }
    }
}

/// The object of the operation.
pub(super) enum Object {
    /// A qdisc, at the root (`None`) or in a class.
    Qdisc {
        parent: Option<Spanned<ClassId>>,
        handle: Option<u16>,
        /// What `stab` says about the link layer, as options of a rate.
        stab: Vec<Word>,
    },
    /// A class.
    Class {
        parent: Option<Spanned<ClassId>>,
        class: Spanned<ClassId>,
    },
    /// A filter of the named qdisc or hook, or of the root (`None`).
    Filter(FilterHead),
    /// A chain of filters.
    Chain(FilterHead),
}

/// The options before the kind of a filter.
#[derive(Default)]
pub(super) struct FilterHead {
    pub(super) parent: Option<Spanned<ClassId>>,
    pub(super) preference: Option<Spanned<u16>>,
    pub(super) protocol: Option<Word>,
    pub(super) handle: Option<Word>,
    pub(super) chain: Option<Spanned<u32>>,
    /// How the average of a policer with `avrate` is estimated.
    pub(super) estimator: Option<Estimated>,
}

/// A line as far as it can be understood.
pub(super) enum Read {
    Whole(Box<Command>),
    /// It has a mistake, but what it would add is known.
    Partly(Known),
    /// It has a mistake.
    Nothing,
}

/// What a line with a mistake would add.
pub(super) struct Known {
    pub(super) device: Word,
    /// The handle of a qdisc.
    pub(super) handle: Option<u16>,
    /// A class and its parent.
    pub(super) class: Option<(Spanned<ClassId>, Option<ClassId>)>,
}

impl Command {
    /// Parses the words of a line, at least one. The line ends at `end`.
    pub(super) fn read(words: Vec<Word>, end: usize, problems: &mut Problems) -> Read {
        let line = Line::new(words.clone(), end, FORM);
        match (Words {
            line,
            estimator: None,
        }
        .read(problems))
        {
            Some(command) => Read::Whole(Box::new(command)),
            None => Known::of(&words).map_or(Read::Nothing, Read::Partly),
        }
    }
}

impl Command {
    /// Returns what the line would add.
    pub(super) fn known(self) -> Known {
        let (handle, class) = match self.object {
            Object::Qdisc { handle, .. } => (handle, None),
            Object::Class { class, parent } => (None, Some((class, parent.map(Spanned::into_inner)))),
            Object::Filter(_) | Object::Chain(_) => (None, None),
        };
        Known {
            device: self.device,
            handle,
            class,
        }
    }
}

impl Known {
    /// Searches for the names in a line that could not be parsed.
    fn of(words: &[Word]) -> Option<Known> {
        let after = |key: &str| {
            let at = words.iter().position(|word| word.get_ref() == key)?;
            words.get(at + 1)
        };
        let id =
            |key: &str| after(key).and_then(|word| Some(Spanned::new(word.span(), read_class_id(word)?)));
        let object = object_of(words.first()?.get_ref())?;
        let class = id("classid").filter(|_| object == "class");
        let handle = after("handle").filter(|_| object == "qdisc");
        Some(Known {
            device: after("dev")?.clone(),
            handle: handle.and_then(|handle| hexadecimal(handle.get_ref().split(':').next()?)),
            class: class.map(|class| (class, id("parent").map(Spanned::into_inner))),
        })
    }
}

/// A line that is being parsed.
struct Words {
    line: Line,
    /// How the rate is estimated, if the line says it.
    estimator: Option<Estimated>,
}

const FORM: &str = "write tc qdisc add dev DEVICE root|parent CLASS [handle MAJOR:] KIND [options], tc class \
    add dev DEVICE parent CLASS classid CLASS KIND [options], or tc filter add dev DEVICE parent MAJOR: \
    [protocol P] [prio N] KIND [options] flowid CLASS";

impl Words {
    fn next(&mut self, expected: &str, problems: &mut Problems) -> Option<Word> {
        self.line.next(expected, problems)
    }

    fn read(mut self, problems: &mut Problems) -> Option<Command> {
        let object = self.next("`qdisc`, `class`, `filter` or `chain`", problems)?;
        let verb = |words: &mut Words, problems: &mut Problems| {
            let word = words.next("`add`", problems)?;
            let verb = match full(word.get_ref(), &["add", "change", "replace", "link", "delete"]) {
                Some("add") => Verb::Add,
                Some("replace" | "link") => Verb::Replace,
                Some("change") => Verb::Change,
                Some("delete") => Verb::Delete,
                _ => {
                    return words
                        .line
                        .unexpected(&word, "`add`, `change`, `replace` or `del`", problems);
                }
            };
            Some(Spanned::new(word.span(), verb))
        };
        match object_of(object.get_ref()) {
            Some("qdisc") => {
                let verb = verb(&mut self, problems)?;
                self.qdisc(verb, problems)
            }
            Some("class") => {
                let verb = verb(&mut self, problems)?;
                self.class(verb, problems)
            }
            Some("filter") => {
                let verb = verb(&mut self, problems)?;
                self.filter(verb, problems)
            }
            Some("actions") => {
                let message = "an action of its own, which filters name by its index, is not read";
                let help = "write the action in each filter that names it";
                problems.add(object.span(), message, "not here", help);
                None
            }
            Some("chain") => {
                let verb = verb(&mut self, problems)?;
                self.chain_of_filters(verb, problems)
            }
            _ => self
                .line
                .unexpected(&object, "`qdisc`, `class`, `filter` or `chain`", problems),
        }
    }

    fn qdisc(mut self, verb: Spanned<Verb>, problems: &mut Problems) -> Option<Command> {
        let (mut device, mut parent, mut handle, mut root) = (None, None, None, None);
        let mut stab = Vec::new();
        let kind = loop {
            let Some(word) = self.kind_or_key(&verb, "a kind of qdisc", problems)? else {
                break None;
            };
            match word.get_ref().as_str() {
                "stab" => stab = self.size_table(&word, problems)?,
                "dev" => device = Some(self.next("a device", problems)?),
                "root" => root = Some(word),
                "parent" => match self.root() {
                    Some(word) => root = Some(word),
                    None => parent = Some(self.class_id(problems)?),
                },
                "handle" => handle = Some(self.handle(problems)?),
                name if full(name, &["estimator"]).is_some() => self.estimator(word, problems)?,
                _ => break Some(word),
            }
        };
        let at = kind.as_ref().map_or(self.line.end(), Spanned::span);
        let Some(device) = device else {
            return self
                .line
                .misplaced(at, "`dev` and a device are expected before the kind", problems);
        };
        if let Some(kind) = kind.clone().filter(hook::is_hook) {
            let place = root
                .map(|word| word.span())
                .or(parent.map(|parent| parent.span()));
            return self.hook(verb, device, kind, place, problems);
        }
        if root.is_some() == parent.is_some() {
            return self.line.misplaced(
                at,
                "either `root` or `parent` is expected before the kind",
                problems,
            );
        }
        let object = Object::Qdisc { parent, handle, stab };
        Some(self.command(verb, device, object, kind))
    }

    /// Parses the words after `stab`: how lengths on the link differ from those of packets. `mtu` and `tsize`
    /// say how finely tc's table tells lengths apart. There is no table here, and every length is exact.
    fn size_table(&mut self, stab: &Word, problems: &mut Problems) -> Option<Vec<Word>> {
        let mut words = Vec::new();
        while let Some(word) = self.line.peek() {
            let keys = ["mtu", "tsize", "mpu", "overhead", "linklayer"];
            match full(word.get_ref(), &keys).unwrap_or_default() {
                "mtu" | "tsize" => {
                    self.line.take();
                    self.next("a number", problems)?;
                }
                key @ ("overhead" | "mpu" | "linklayer") => {
                    let location = word.span();
                    self.line.take();
                    words.push(Spanned::new(location, key.to_owned()));
                    words.push(self.next("a value", problems)?);
                }
                _ => break,
            }
        }
        if words.is_empty() {
            const SIZES: &str = "`overhead`, `mpu` or `linklayer` after `stab`";
            return match self.line.take() {
                Some(word) => self.line.unexpected(&word, SIZES, problems),
                None => self
                    .line
                    .misplaced(stab.span(), "the line ends after `stab`", problems),
            };
        }
        Some(words)
    }

    /// Parses the rest of a line for `ingress` or `clsact`. They have one place and one handle. As in tc, a
    /// handle may follow `ingress`, and has no effect.
    fn hook(
        mut self,
        verb: Spanned<Verb>,
        device: Word,
        kind: Word,
        place: Option<Range<usize>>,
        problems: &mut Problems,
    ) -> Option<Command> {
        let name = kind.get_ref().clone();
        if let Some(place) = place {
            let message = format!("`{name}` has a place of its own");
            let help = format!(
                "write tc qdisc {} dev {} {name}",
                verb.get_ref().name(),
                device.get_ref()
            );
            problems.add(place, message, "not here", help);
            return None;
        }
        while let Some(word) = self.line.take() {
            match word.get_ref().as_str() {
                "handle" if name == "ingress" => {
                    self.next("a handle", problems)?;
                }
                _ if *verb.get_ref() == Verb::Delete && is_of_shell(&word) => break,
                other => {
                    let message = format!("`{name}` has no option `{other}`");
                    problems.add(word.span(), message, "unknown here", "remove it");
                    return None;
                }
            }
        }
        let parent = Some(Spanned::new(kind.span(), hook::PLACE));
        let handle = Some(hook::HANDLE);
        Some(Command {
            verb,
            device,
            object: Object::Qdisc {
                parent,
                handle,
                stab: Vec::new(),
            },
            kind: Some(kind),
            options: Vec::new(),
            estimator: self.estimator,
        })
    }

    fn class(mut self, verb: Spanned<Verb>, problems: &mut Problems) -> Option<Command> {
        let (mut device, mut parent, mut class) = (None, None, None);
        let kind = loop {
            let Some(word) = self.kind_or_key(&verb, "a kind of qdisc", problems)? else {
                break None;
            };
            match word.get_ref().as_str() {
                "dev" => device = Some(self.next("a device", problems)?),
                "root" => {}
                "parent" if self.root().is_some() => {}
                "parent" => parent = Some(self.class_id(problems)?),
                "classid" => class = Some(self.class_id(problems)?),
                name if full(name, &["estimator"]).is_some() => self.estimator(word, problems)?,
                _ => break Some(word),
            }
        };
        let at = kind.as_ref().map_or(self.line.end(), Spanned::span);
        let Some(device) = device else {
            return self
                .line
                .misplaced(at, "`dev` and a device are expected before the kind", problems);
        };
        let Some(class) = class else {
            return self
                .line
                .misplaced(at, "`classid` and a class are expected before the kind", problems);
        };
        Some(self.command(verb, device, Object::Class { parent, class }, kind))
    }

    fn filter(mut self, verb: Spanned<Verb>, problems: &mut Problems) -> Option<Command> {
        let mut device = None;
        let mut head = FilterHead::default();
        let kind = loop {
            let Some(word) = self.kind_or_key(&verb, "a kind of filter", problems)? else {
                break None;
            };
            match head_word(word.get_ref(), &OF_FILTER) {
                "dev" => device = Some(self.next("a device", problems)?),
                "root" => {}
                "ingress" => head.parent = Some(Spanned::new(word.span(), hook::ARRIVING)),
                "egress" => head.parent = Some(Spanned::new(word.span(), hook::LEAVING)),
                "parent" if self.root().is_some() => {}
                "parent" => head.parent = Some(self.class_id(problems)?),
                "protocol" => head.protocol = Some(self.next("a protocol", problems)?),
                "handle" => head.handle = Some(self.next("a handle", problems)?),
                "chain" => head.chain = Some(self.chain(problems)?),
                "prio" | "pref" | "preference" | "priority" => {
                    head.preference = self.preference(problems)?;
                }
                "estimator" => self.estimator(word, problems)?,
                _ => break Some(word),
            }
        };
        head.estimator = self.estimator.take();
        let Some(device) = device else {
            let at = kind.as_ref().map_or(self.line.end(), Spanned::span);
            return self
                .line
                .misplaced(at, "`dev` and a device are expected before the kind", problems);
        };
        Some(self.command(verb, device, Object::Filter(head), kind))
    }

    /// Parses a line that makes a chain or deletes it. To make one changes nothing: filters make their chain.
    fn chain_of_filters(mut self, verb: Spanned<Verb>, problems: &mut Problems) -> Option<Command> {
        let mut device = None;
        let mut head = FilterHead::default();
        while let Some(word) = self.line.take() {
            match word.get_ref().as_str() {
                "dev" => device = Some(self.next("a device", problems)?),
                "root" => {}
                "ingress" => head.parent = Some(Spanned::new(word.span(), hook::ARRIVING)),
                "egress" => head.parent = Some(Spanned::new(word.span(), hook::LEAVING)),
                "parent" if self.root().is_some() => {}
                "parent" => head.parent = Some(self.class_id(problems)?),
                "chain" => head.chain = Some(self.chain(problems)?),
                _ if is_of_shell(&word) => break,
                _ => {
                    let help = "leave the template out: it only limits which filters the kernel lets in";
                    let message = "a template of a chain can't be carried over";
                    problems.add(word.span(), message, "not here", help);
                    return None;
                }
            }
        }
        let Some(device) = device else {
            let at = self.line.end();
            return self
                .line
                .misplaced(at, "`dev` and a device are expected", problems);
        };
        Some(self.command(verb, device, Object::Chain(head), None))
    }

    /// Takes the next word. Returns `Some(None)` at the end of a line that deletes, which needs no kind.
    fn kind_or_key(
        &mut self,
        verb: &Spanned<Verb>,
        expected: &str,
        problems: &mut Problems,
    ) -> Option<Option<Word>> {
        match self.line.peek() {
            None if *verb.get_ref() == Verb::Delete => Some(None),
            // A redirection for the shell. Scripts add one to lines that delete an object that may not exist.
            Some(word) if *verb.get_ref() == Verb::Delete && is_of_shell(word) => Some(None),
            _ => self.next(expected, problems).map(Some),
        }
    }

    fn command(self, verb: Spanned<Verb>, device: Word, object: Object, kind: Option<Word>) -> Command {
        Command {
            verb,
            device,
            object,
            kind,
            options: self.line.rest(),
            estimator: self.estimator,
        }
    }

    /// Takes the two times after `estimator`.
    fn estimator(&mut self, word: Word, problems: &mut Problems) -> Option<()> {
        let sample = self.time("the time of a sample, like 250ms", problems)?;
        let constant = self.time("the time constant of the average, like 8s", problems)?;
        let times = [&sample, &constant].map(|(word, micros)| (word, *micros));
        self.estimator = Some(Estimated::read(word, times, problems)?);
        Some(())
    }

    /// Takes a time, in microseconds.
    fn time(&mut self, what: &str, problems: &mut Problems) -> Option<(Word, u32)> {
        let word = self.next(what, problems)?;
        match estimator::micros(&word) {
            Some(micros) => Some((word, micros)),
            None => self.line.unexpected(&word, what, problems),
        }
    }

    /// Takes `root`, which tc reads in the place of a parent too.
    fn root(&mut self) -> Option<Word> {
        self.line.peek().filter(|word| word.get_ref() == "root")?;
        self.line.take()
    }

    /// Takes and parses a class, as [`class_id`] does.
    fn class_id(&mut self, problems: &mut Problems) -> Option<Spanned<ClassId>> {
        let word = self.next("a class like 1:10", problems)?;
        class_id(&word, problems)
    }

    /// Parses `major:` in hexadecimal. Like tc's `get_qdisc_handle`, it accepts a number without a colon, and
    /// ignores what follows the colon.
    fn handle(&mut self, problems: &mut Problems) -> Option<u16> {
        let word = self.next("a handle like 1:", problems)?;
        let major = word.get_ref().split(':').next().and_then(hexadecimal);
        match major.filter(|&major| major != 0) {
            Some(major) => Some(major),
            None => self
                .line
                .unexpected(&word, "a handle like 1:, in hexadecimal and above 0", problems),
        }
    }

    fn chain(&mut self, problems: &mut Problems) -> Option<Spanned<u32>> {
        let word = self.next("the number of a chain", problems)?;
        match number(word.get_ref()) {
            Some(number) if number < 1 << 28 => Some(Spanned::new(word.span(), number)),
            _ => self.line.unexpected(&word, "a number below 2^28", problems),
        }
    }

    /// Parses a priority. To the kernel 0 is the same as none.
    fn preference(&mut self, problems: &mut Problems) -> Option<Option<Spanned<u16>>> {
        let word = self.next("a number up to 65535", problems)?;
        match number(word.get_ref()).and_then(|number| u16::try_from(number).ok()) {
            Some(number) => Some((number > 0).then(|| Spanned::new(word.span(), number))),
            None => self.line.unexpected(&word, "a number up to 65535", problems),
        }
    }
}

/// Parses a class, `major:minor` in hexadecimal. A missing number is 0. Without a colon it is the minor
/// number, as in tc's `get_tc_classid`.
pub(super) fn class_id(word: &Word, problems: &mut Problems) -> Option<Spanned<ClassId>> {
    match read_class_id(word) {
        Some(class) => Some(Spanned::new(word.span(), class)),
        None => unexpected(word, "a class like 1:10, in hexadecimal", FORM, problems),
    }
}

/// Parses a class as [`class_id`] does.
pub(super) fn read_class_id(word: &Word) -> Option<ClassId> {
    let text = word.get_ref().as_str();
    let (major, minor) = text.split_once(':').unwrap_or(("", text));
    let or_zero = |digits: &str| match digits {
        "" => Some(0),
        digits => hexadecimal(digits),
    };
    let class = ClassId::new(or_zero(major)?, or_zero(minor)?);
    (text != ":").then_some(class)
}

/// Parses a hexadecimal number of 16 bits, with or without `0x`. Unlike the standard library's function, it
/// accepts no sign.
pub(super) fn hexadecimal(text: &str) -> Option<u16> {
    let digits = text
        .strip_prefix("0x")
        .or(text.strip_prefix("0X"))
        .unwrap_or(text);
    match digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        true => u16::from_str_radix(digits, 16).ok(),
        false => None,
    }
}

/// Returns the object of a command, which may be abbreviated (`do_cmd` in tc.c).
pub(super) fn object_of(word: &str) -> Option<&'static str> {
    full(word, &["qdisc", "class", "filter", "chain", "actions", "monitor"])
}

/// Returns a word before the kind in full, if tc reads a beginning of it.
fn head_word<'w>(word: &'w str, abbreviated: &[&'w str]) -> &'w str {
    full(word, abbreviated).unwrap_or(word)
}

/// The words of a filter before its kind that tc reads by their beginnings, in its order.
const OF_FILTER: [&str; 5] = ["preference", "priority", "protocol", "chain", "estimator"];

/// Whether the word is a redirection, or the start of another shell command.
fn is_of_shell(word: &Word) -> bool {
    let word = word.get_ref();
    ["2>", ">", "&>", "||", ";"]
        .iter()
        .any(|start| word.starts_with(start))
}
