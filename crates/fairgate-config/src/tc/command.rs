//! One line of tc.

use std::ops::Range;

use fairgate::ClassId;
use toml::Spanned;

use crate::error::Problems;

/// A word and its place in the script.
pub(super) type Word = Spanned<String>;

/// A line that adds something.
pub(super) struct Command {
    pub(super) kind: Word,
    pub(super) options: Vec<Word>,
    pub(super) device: Word,
    pub(super) action: Action,
}

/// What is added, and where.
pub(super) enum Action {
    /// `tc qdisc add`: at the root (`None`) or in a class.
    Qdisc {
        parent: Option<Spanned<ClassId>>,
        handle: Option<u16>,
    },
    /// `tc class add`.
    Class {
        parent: Spanned<ClassId>,
        class: Spanned<ClassId>,
    },
}

impl Command {
    /// Reads the line at `line` of `text`; `None` for an empty line, a comment, or after a problem.
    pub(super) fn read(text: &str, line: Range<usize>, problems: &mut Problems) -> Option<Command> {
        let start = line.start;
        let code = text[line].split('#').next().unwrap_or_default();
        let end = start + code.trim_end().len();
        let words = Words {
            words: words(code, start).into_iter(),
            end,
        };
        if words.words.as_slice().is_empty() {
            return None;
        }
        words.read(problems)
    }
}

fn words(code: &str, start: usize) -> Vec<Word> {
    code.split_whitespace()
        .map(|word| {
            let at = start + (word.as_ptr() as usize - code.as_ptr() as usize);
            Spanned::new(at..at + word.len(), word.to_owned())
        })
        .collect()
}

/// The words of a line that are still to be read.
struct Words {
    words: std::vec::IntoIter<Word>,
    /// Where the line ends: the place of what is missing.
    end: usize,
}

const FORM: &str = "write tc qdisc add dev DEVICE root|parent CLASS [handle MAJOR:] KIND [options], \
                    or tc class add dev DEVICE parent CLASS classid CLASS KIND [options]";

impl Words {
    fn next(&mut self, expected: &str, problems: &mut Problems) -> Option<Word> {
        let word = self.words.next();
        if word.is_none() {
            let message = format!("the line ends where {expected} is expected");
            problems.add(
                self.end..self.end,
                message,
                format!("{expected} is missing"),
                FORM,
            );
        }
        word
    }

    fn read(mut self, problems: &mut Problems) -> Option<Command> {
        let mut object = self.next("`qdisc` or `class`", problems)?;
        if object.get_ref() == "tc" {
            object = self.next("`qdisc` or `class`", problems)?;
        }
        let is_class = match object.get_ref().as_str() {
            "qdisc" => false,
            "class" => true,
            _ => return unexpected(&object, "`qdisc` or `class`", problems),
        };
        let verb = self.next("`add`", problems)?;
        if !matches!(verb.get_ref().as_str(), "add" | "replace") {
            return unexpected(&verb, "`add` or `replace`", problems);
        }
        let (mut device, mut parent, mut handle, mut class, mut root) = (None, None, None, None, None);
        let kind = loop {
            let word = self.next("a kind of qdisc", problems)?;
            match word.get_ref().as_str() {
                "dev" => device = Some(self.next("a device", problems)?),
                "root" => root = Some(word),
                "parent" => parent = Some(self.class_id(problems)?),
                "handle" if !is_class => handle = Some(self.handle(problems)?),
                "classid" if is_class => class = Some(self.class_id(problems)?),
                _ => break word,
            }
        };
        let Some(device) = device else {
            return unexpected(&kind, "`dev` and a device before the kind", problems);
        };
        let action = match (is_class, root, parent, class) {
            (false, Some(_), None, _) => Action::Qdisc { parent: None, handle },
            (false, None, Some(parent), _) => Action::Qdisc {
                parent: Some(parent),
                handle,
            },
            (true, None, Some(parent), Some(class)) => Action::Class { parent, class },
            (false, ..) => return unexpected(&kind, "either `root` or `parent` before the kind", problems),
            (true, ..) => return unexpected(&kind, "`parent` and `classid` before the kind", problems),
        };
        Some(Command {
            kind,
            options: self.words.collect(),
            device,
            action,
        })
    }

    /// `major:minor`, hexadecimal; a minor number left out is 0.
    fn class_id(&mut self, problems: &mut Problems) -> Option<Spanned<ClassId>> {
        let word = self.next("a class like 1:10", problems)?;
        let read = || {
            let (major, minor) = word.get_ref().split_once(':')?;
            let minor = if minor.is_empty() { "0" } else { minor };
            Some(ClassId::new(hexadecimal(major)?, hexadecimal(minor)?))
        };
        match read() {
            Some(class) => Some(Spanned::new(word.span(), class)),
            None => unexpected(&word, "a class like 1:10, in hexadecimal,", problems),
        }
    }

    /// `major:`, hexadecimal.
    fn handle(&mut self, problems: &mut Problems) -> Option<u16> {
        let word = self.next("a handle like 1:", problems)?;
        let major = word.get_ref().strip_suffix(':').and_then(hexadecimal);
        match major.filter(|&major| major != 0) {
            Some(major) => Some(major),
            None => unexpected(&word, "a handle like 1:, in hexadecimal and above 0,", problems),
        }
    }
}

/// A number of up to four digits; unlike the standard library's, without a sign.
pub(super) fn hexadecimal(digits: &str) -> Option<u16> {
    match digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        true => u16::from_str_radix(digits, 16).ok(),
        false => None,
    }
}

fn unexpected<T>(word: &Word, expected: &str, problems: &mut Problems) -> Option<T> {
    let message = format!("`{}` stands where {expected} is expected", word.get_ref());
    problems.add(word.span(), message, "unexpected", FORM);
    None
}
