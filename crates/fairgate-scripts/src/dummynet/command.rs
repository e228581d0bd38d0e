//! Parses one line.

use std::ops::Range;

use fairgate_config::language::Problems;
use toml::Spanned;

use crate::script::{Line, Word, number};

/// A parsed line.
pub(super) enum Command {
    /// Configures an object: `pipe 1 config ...`
    Configure {
        object: Object,
        number: Spanned<u32>,
        options: Line,
    },
    /// Deletes an object: `pipe 1 delete`
    Delete { object: Object, number: Spanned<u32> },
    /// Deletes all pipes, queues and schedulers: `pipe flush`
    FlushObjects,
    /// Adds a rule: `add 100 pipe 1 ip from any to any`
    Add {
        number: Option<u32>,
        set: u32,
        action: Action,
        body: Line,
    },
    /// Deletes rules: `delete 100`
    DeleteRules { number: Spanned<u32> },
    /// Deletes all rules: `flush`
    FlushRules,
    /// Disables or enables sets of rules: `set disable 3`
    Sets(Vec<(u32, bool)>),
    /// A line without effect on a tree.
    Nothing,
}

/// The kind of object that a line configures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Object {
    Pipe,
    Queue,
    Sched,
}

impl Object {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Object::Pipe => "pipe",
            Object::Queue => "queue",
            Object::Sched => "sched",
        }
    }

    pub(super) fn named(word: &str) -> Option<Object> {
        [Object::Pipe, Object::Queue, Object::Sched]
            .into_iter()
            .find(|object| object.name() == word)
    }
}

/// What a rule does with matching packets.
#[derive(Clone)]
pub(crate) enum Action {
    /// Sends them to a pipe or a queue.
    To(Object, Spanned<u32>),
    /// Passes them. The word is that of the action.
    Pass(Word),
    /// Drops them.
    Drop(Word),
    /// Goes on with the rule of this number, or the next one after it.
    Skip(Spanned<u32>),
    /// Assigns them to a queue of ALTQ or of OpenBSD, and urgent ones to another.
    Assign(Word, Option<Word>),
}

impl Action {
    /// Returns the location of its target, or of its word.
    pub(crate) fn location(&self) -> Range<usize> {
        match self {
            Action::To(_, number) | Action::Skip(number) => number.span(),
            Action::Pass(word) | Action::Drop(word) | Action::Assign(word, _) => word.span(),
        }
    }
}

pub(super) const FORM: &str = "write pipe N config bw 10Mbit/s, queue N config pipe N weight W, sched N \
    config pipe N type T, or add pipe|queue N ip from any to any out";

/// The highest number of a rule. No rule with this number can be added.
const LAST_RULE: u32 = 65_535;

/// Parses the words of a line, at least one. The line ends at `end`. Returns `None` after a problem.
pub(super) fn read(words: Vec<Word>, end: usize, problems: &mut Problems) -> Option<Command> {
    let mut line = Line::new(words, end, FORM);
    // "Quiet" and "do not ask" do not change the effect.
    while line
        .peek()
        .is_some_and(|word| matches!(word.get_ref().as_str(), "-q" | "-f" | "-qf" | "-fq"))
    {
        line.take();
    }
    let word = line.next("`pipe`, `queue`, `sched` or `add`", problems)?;
    if let Some(object) = Object::named(word.get_ref()) {
        return of_object(object, line, problems);
    }
    match word.get_ref().as_str() {
        "add" => add(line, problems),
        "delete" => {
            let number = object_number(&mut line, problems)?;
            nothing_follows(line, Command::DeleteRules { number }, problems)
        }
        "flush" => nothing_follows(line, Command::FlushRules, problems),
        "set" => sets(line, problems),
        // Tables are read before all other lines. Counters and messages are no part of a tree.
        "table" | "zero" | "resetlog" => Some(Command::Nothing),
        _ => line.unexpected(
            &word,
            "`pipe`, `queue`, `sched`, `add`, `delete`, `flush`, `set` or `table`",
            problems,
        ),
    }
}

/// Parses a line about an object. The number may be before or after the verb.
fn of_object(object: Object, mut line: Line, problems: &mut Problems) -> Option<Command> {
    let is_number = |word: &Word| word.get_ref().starts_with(|first: char| first.is_ascii_digit());
    let mut number = None;
    if line.peek().is_some_and(is_number) {
        number = Some(object_number(&mut line, problems)?);
    }
    let verb = line.next("`config` or `delete`", problems)?;
    if verb.get_ref() == "flush" && number.is_none() {
        return nothing_follows(line, Command::FlushObjects, problems);
    }
    if !matches!(verb.get_ref().as_str(), "config" | "delete") {
        return line.unexpected(&verb, "`config` or `delete`", problems);
    }
    let number = match number {
        Some(number) => number,
        None => object_number(&mut line, problems)?,
    };
    match verb.get_ref().as_str() {
        "config" => Some(Command::Configure {
            object,
            number,
            options: line,
        }),
        _ => nothing_follows(line, Command::Delete { object, number }, problems),
    }
}

fn object_number(line: &mut Line, problems: &mut Problems) -> Option<Spanned<u32>> {
    let word = line.next("a number", problems)?;
    match number(word.get_ref()).filter(|number| (1..=LAST_RULE).contains(number)) {
        Some(number) => Some(Spanned::new(word.span(), number)),
        None => line.unexpected(&word, "a number from 1 to 65535", problems),
    }
}

fn nothing_follows(mut line: Line, command: Command, problems: &mut Problems) -> Option<Command> {
    match line.take() {
        // A redirection for the shell. Scripts add one to lines that delete an object that may not exist.
        Some(word) if !is_of_shell(&word) => line.unexpected(&word, "the end of the line", problems),
        _ => Some(command),
    }
}

/// Whether the word is a redirection, or the start of another shell command.
fn is_of_shell(word: &Word) -> bool {
    ["2>", ">", "&>", "||", ";"]
        .iter()
        .any(|start| word.get_ref().starts_with(start))
}

fn add(mut line: Line, problems: &mut Problems) -> Option<Command> {
    let mut rule = None;
    if let Some(word) = line.peek()
        && let Some(found) = number(word.get_ref())
    {
        if !(1..LAST_RULE).contains(&found) {
            let word = word.clone();
            return line.unexpected(&word, "a rule's number from 1 to 65534", problems);
        }
        rule = Some(found);
        line.take();
    }
    let set = match line.peek().is_some_and(|word| word.get_ref() == "set") {
        true => {
            line.take();
            set_number(&mut line, problems)?
        }
        false => 0,
    };
    let word = line.next("an action", problems)?;
    let action = match word.get_ref().as_str() {
        "pipe" => Action::To(Object::Pipe, object_number(&mut line, problems)?),
        "queue" => Action::To(Object::Queue, object_number(&mut line, problems)?),
        "allow" | "accept" | "pass" | "permit" => Action::Pass(word),
        "deny" | "drop" => Action::Drop(word),
        // A sender that is refused is also told so; the packet is dropped.
        "reject" | "reset" | "reset6" | "unreach" | "unreach6" => {
            if word.get_ref().starts_with("unreach") {
                line.next("a code", problems)?;
            }
            Action::Drop(word)
        }
        // Without a rule that calls, nothing returns.
        "count" | "return" => return Some(Command::Nothing),
        "skipto" => Action::Skip(object_number(&mut line, problems)?),
        other => {
            let message = format!("a rule that does `{other}` can't be carried over");
            let help = "a tree only classifies and drops packets: send them to a pipe or a queue, pass them \
                with `allow`, or drop them with `deny`";
            problems.add(word.span(), message, "not here", help);
            return None;
        }
    };
    if line.peek().is_some_and(|word| word.get_ref() == "log") {
        line.take();
        if line.peek().is_some_and(|word| word.get_ref() == "logamount") {
            line.take();
            line.next("a number", problems)?;
        }
    }
    Some(Command::Add {
        number: rule,
        set,
        action,
        body: line,
    })
}

/// The highest number of a set of rules.
const LAST_SET: u32 = 31;

fn set_number(line: &mut Line, problems: &mut Problems) -> Option<u32> {
    let word = line.next("the number of a set", problems)?;
    match number(word.get_ref()).filter(|set| *set <= LAST_SET) {
        Some(set) => Some(set),
        None => line.unexpected(&word, "the number of a set, 0 to 31", problems),
    }
}

/// Parses `set disable 1 2 enable 3`.
fn sets(mut line: Line, problems: &mut Problems) -> Option<Command> {
    let mut changed = Vec::new();
    let mut is_enabled = None;
    while let Some(word) = line.take() {
        match (word.get_ref().as_str(), is_enabled) {
            ("disable", _) => is_enabled = Some(false),
            ("enable", _) => is_enabled = Some(true),
            (text, Some(enabled)) if number(text).is_some_and(|set| set <= LAST_SET) => {
                changed.extend(number(text).map(|set| (set, enabled)));
            }
            _ => return line.unexpected(&word, "`disable` or `enable` and numbers of sets", problems),
        }
    }
    Some(Command::Sets(changed))
}
