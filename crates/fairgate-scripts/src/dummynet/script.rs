//! The lines of a script together: what there is after the last one, and the trees that it makes.

use std::sync::Arc;

use fairgate_config::language::{Problems, check};
use fairgate_config::{FileError, Spec};

use miette::NamedSource;
use toml::Spanned;

use super::command::{self, Action, Command, Object};
use super::object::{self, Configured};
use super::rule::{self, Rule};
use super::translate;
use crate::script::lines;
use crate::tc::Device;

pub use super::rule::Direction;

/// What a script leaves.
pub struct Script {
    source: Arc<NamedSource<String>>,
    pub(super) device: Device,
    /// Pipes, queues and schedulers, each once.
    pub(super) objects: Vec<Configured>,
    /// In the order in which they are tried.
    rules: Vec<Rule>,
}

/// A tree that a script describes.
#[derive(Debug)]
pub struct Tree {
    /// The interface that rules name, if they name one.
    pub interface: Option<String>,
    /// Which way the packets go.
    pub direction: Direction,
    /// The tree.
    pub spec: Spec,
}

impl Tree {
    /// A name: of the interface, and what comes in told from what leaves.
    pub fn name(&self) -> String {
        match (&self.interface, self.direction) {
            (Some(interface), Direction::Out) => interface.clone(),
            (Some(interface), Direction::In) => format!("{interface}/in"),
            (None, Direction::Out) => "out".to_owned(),
            (None, Direction::In) => "in".to_owned(),
        }
    }
}

/// Which packets a tree is for.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part<'s> {
    interface: Option<&'s str>,
    direction: Direction,
}

impl Script {
    /// Reads a script; `name` stands in messages. All mistakes are reported at once. Of the device the longest frame counts.
    ///
    /// ```
    /// use fairgate_scripts::dummynet::Script;
    /// use fairgate_scripts::tc::Device;
    ///
    /// let lines = "ipfw pipe 1 config bw 10Mbit/s queue 50\nipfw add pipe 1 ip from any to any out via em0";
    /// let trees = Script::parse("home.ipfw", lines, Device::default())?.trees()?;
    /// assert_eq!((trees[0].name().as_str(), trees[0].spec.discipline()), ("em0", "tbf"));
    /// # Ok::<(), fairgate_config::FileError>(())
    /// ```
    ///
    /// # Errors
    /// If a line can't be understood, or something in it can't be carried over.
    pub fn parse(name: &str, text: &str, device: Device) -> Result<Script, FileError> {
        let source = Arc::new(NamedSource::new(name, text.to_owned()));
        let mut problems = Problems::new(Arc::clone(&source));
        let mut script = Script {
            source,
            device,
            objects: Vec::new(),
            rules: Vec::new(),
        };
        for (words, end) in lines(text, &["ipfw", "dnctl"]) {
            if let Some(command) = command::read(words, end, &mut problems) {
                script.run(command, &mut problems);
            }
        }
        // Stable: rules of one number are tried in the order in which they came.
        script.rules.sort_by_key(|rule| rule.number);
        if script.objects.is_empty() && problems.count() == 0 {
            let help = "begin with a line like pipe 1 config bw 10Mbit/s";
            problems.add(0..text.len(), "no pipe is configured", "nothing here", help);
        }
        problems.unless_any(script)
    }

    fn run(&mut self, command: Command, problems: &mut Problems) {
        match command {
            Command::Configure {
                object,
                number,
                options,
            } => {
                let configured = object::read(object, number, options, problems);
                // A later line takes the place of an earlier one.
                self.remove(object, *configured.number.get_ref());
                self.objects.push(configured);
            }
            Command::Delete { object, number } => {
                if !self.remove(object, *number.get_ref()) {
                    let message = format!("there is no {} {}", object.name(), number.get_ref());
                    let help = "leave the line out";
                    problems.add(number.span(), message, "not configured", help);
                }
            }
            Command::FlushObjects => self.objects.clear(),
            Command::Add { number, action, body } => {
                // ipfw's steps.
                let last = self.rules.iter().map(|rule| rule.number).max().unwrap_or(0);
                let number = number.unwrap_or((last + 100).min(65_534));
                self.rules.extend(rule::read(number, action, body, problems));
            }
            Command::DeleteRules { number } => {
                let before = self.rules.len();
                self.rules.retain(|rule| rule.number != *number.get_ref());
                if self.rules.len() == before {
                    let message = format!("there is no rule {}", number.get_ref());
                    problems.add(number.span(), message, "no such rule", "leave the line out");
                }
            }
            Command::FlushRules => self.rules.clear(),
        }
    }

    fn remove(&mut self, object: Object, number: u32) -> bool {
        let before = self.objects.len();
        let is_it = |other: &Configured| other.object == object && *other.number.get_ref() == number;
        self.objects.retain(|other| !is_it(other));
        self.objects.len() < before
    }

    pub(super) fn find(&self, object: Object, number: u32) -> Option<&Configured> {
        let is_it = |other: &&Configured| other.object == object && *other.number.get_ref() == number;
        self.objects.iter().find(is_it)
    }

    /// The trees: one for each direction and interface that rules tell apart.
    ///
    /// # Errors
    /// If something does not fit together or can't be carried over.
    pub fn trees(&self) -> Result<Vec<Tree>, FileError> {
        let mut problems = Problems::new(Arc::clone(&self.source));
        let parts = self.parts();
        self.check_uses(&parts, &mut problems);
        let mut trees = Vec::new();
        for part in parts.iter().filter(|_| problems.count() == 0).collect::<Vec<_>>() {
            let rules: Vec<&Rule> = self
                .rules
                .iter()
                .filter(|rule| self.covers(rule, *part))
                .collect();
            let draft = translate::tree(self, &rules, &mut problems);
            // What was left out would only be reported once more as missing.
            let draft = draft.filter(|_| problems.count() == 0);
            if let Some(spec) = draft.and_then(|draft| check(&draft, &mut problems)) {
                trees.push(Tree {
                    interface: part.interface.map(str::to_owned),
                    direction: part.direction,
                    spec,
                });
            }
        }
        problems.unless_any(trees)
    }

    /// In the order in which rules name them first.
    fn parts(&self) -> Vec<Part<'_>> {
        let mut parts: Vec<Part<'_>> = Vec::new();
        for rule in self.leading() {
            for interface in self.interfaces(rule) {
                for direction in self.directions(rule) {
                    let part = Part { interface, direction };
                    if !parts.contains(&part) {
                        parts.push(part);
                    }
                }
            }
        }
        if parts.is_empty() {
            parts.push(Part {
                interface: None,
                direction: Direction::Out,
            });
        }
        parts
    }

    /// The rules that lead to something: what they name makes the trees. Where only packets pass nothing is scheduled.
    fn leading(&self) -> impl Iterator<Item = &Rule> {
        self.rules
            .iter()
            .filter(|rule| matches!(rule.action, Action::To(..)))
    }

    /// A rule that names no interface is for all that are named.
    fn interfaces<'s>(&'s self, rule: &'s Rule) -> Vec<Option<&'s str>> {
        if let Some(interface) = &rule.interface {
            return vec![Some(interface.get_ref())];
        }
        let mut named: Vec<Option<&str>> = Vec::new();
        for interface in self.leading().filter_map(|rule| rule.interface.as_ref()) {
            if !named.contains(&Some(interface.get_ref())) {
                named.push(Some(interface.get_ref()));
            }
        }
        if named.is_empty() {
            named.push(None);
        }
        named
    }

    /// One that names no direction is for all that are named; where none is, for what leaves.
    fn directions(&self, rule: &Rule) -> Vec<Direction> {
        if let Some(direction) = &rule.direction {
            return vec![*direction.get_ref()];
        }
        let is_named = |direction: &Direction| {
            let mut named = self.leading().filter_map(|rule| rule.direction.as_ref());
            named.any(|named| named.get_ref() == direction)
        };
        let mut named: Vec<Direction> = [Direction::Out, Direction::In]
            .into_iter()
            .filter(is_named)
            .collect();
        if named.is_empty() {
            named.push(Direction::Out);
        }
        named
    }

    fn covers(&self, rule: &Rule, part: Part<'_>) -> bool {
        self.interfaces(rule).contains(&part.interface) && self.directions(rule).contains(&part.direction)
    }

    /// Each object must be there where it is named, of use, and in one tree.
    fn check_uses(&self, parts: &[Part<'_>], problems: &mut Problems) {
        for rule in &self.rules {
            if let Action::To(object, number) = &rule.action {
                self.must_be_there(*object, number, problems);
            }
        }
        for configured in &self.objects {
            if let Some((object, number)) = &configured.link {
                // A scheduler is there with its pipe.
                let is_pipe_of_scheduler =
                    *object == Object::Sched && self.find(Object::Pipe, *number.get_ref()).is_some();
                if !is_pipe_of_scheduler {
                    self.must_be_there(*object, number, problems);
                }
            } else if configured.object == Object::Queue {
                let message = format!("queue {} is connected to nothing", configured.number.get_ref());
                let help = "add pipe and a number, or sched and a number";
                problems.add(configured.number.span(), message, "no pipe", help);
            }
        }
        self.check_passing(parts, problems);
        let mut uses: Vec<(translate::Target, Part<'_>)> = Vec::new();
        for rule in &self.rules {
            let Action::To(object, number) = &rule.action else {
                continue;
            };
            let Some(target) = self.target(*object, *number.get_ref()) else {
                continue;
            };
            for part in parts.iter().filter(|part| self.covers(rule, **part)) {
                if uses.iter().any(|(other, of)| *other == target && of != part) {
                    let message = format!("{} {} would be in two trees", object.name(), number.get_ref());
                    let help = "it is one queue for both directions or several interfaces; here each has a tree of its own: configure \
                                a pipe for each, and say `in` or `out` in rules";
                    problems.add(number.span(), message, "one queue for two ways", help);
                    return;
                }
                uses.push((target, *part));
            }
        }
        if problems.count() == 0 && !self.rules.is_empty() {
            for configured in &self.objects {
                self.must_be_of_use(configured, problems);
            }
        }
    }

    /// Whether packets of an interface pass can't be told from others where no tree is of an interface.
    fn check_passing(&self, parts: &[Part<'_>], problems: &mut Problems) {
        if parts.iter().any(|part| part.interface.is_some()) {
            return;
        }
        let passing = self
            .rules
            .iter()
            .filter(|rule| matches!(rule.action, Action::Pass(_)));
        for interface in passing.filter_map(|rule| rule.interface.as_ref()) {
            // What does not leave the machine comes to no tree.
            if !interface.get_ref().starts_with("lo") {
                let message = format!(
                    "the rule is for {}, and no other names an interface",
                    interface.get_ref()
                );
                let help = "name the interface in rules that lead to pipes and queues too";
                problems.add(interface.span(), message, "which tree?", help);
            }
        }
    }

    fn must_be_there(&self, object: Object, number: &Spanned<u32>, problems: &mut Problems) {
        if self.find(object, *number.get_ref()).is_none() {
            let (object, number, place) = (object.name(), number.get_ref(), number.span());
            let message = format!("there is no {object} {number}");
            let help = format!("add a line {object} {number} config with its options");
            problems.add(place, message, "not configured", help);
        }
    }

    fn must_be_of_use(&self, configured: &Configured, problems: &mut Problems) {
        let (object, number) = (configured.object, *configured.number.get_ref());
        let leads_on = |queue: &&Configured| {
            queue.object == Object::Queue && self.is_ruled(Object::Queue, *queue.number.get_ref())
        };
        let of_queues = || {
            self.objects
                .iter()
                .filter(leads_on)
                .filter_map(|queue| self.scheduler_of(queue))
        };
        let is_used = match object {
            Object::Queue => self.is_ruled(object, number),
            Object::Sched => of_queues().any(|sched| sched == number),
            Object::Pipe => {
                self.is_ruled(object, number) || of_queues().any(|sched| self.pipe_of(sched) == number)
            }
        };
        if !is_used {
            let message = format!("no rule leads to {} {number}", object.name());
            let help = "add a rule, or leave the line out";
            problems.add(configured.number.span(), message, "never used", help);
        }
    }

    /// Whether a rule leads to this one itself.
    pub(super) fn is_ruled(&self, object: Object, number: u32) -> bool {
        let to = |rule: &Rule| matches!(&rule.action, Action::To(to, of) if *to == object && *of.get_ref() == number);
        self.rules.iter().any(to)
    }

    /// The scheduler that a queue is connected to: a pipe's has the pipe's number.
    pub(super) fn scheduler_of(&self, queue: &Configured) -> Option<u32> {
        queue.link.as_ref().map(|(_, number)| *number.get_ref())
    }

    /// The pipe that a scheduler serves: the one that it names, or that of its number.
    pub(super) fn pipe_of(&self, sched: u32) -> u32 {
        let link = self
            .find(Object::Sched, sched)
            .and_then(|sched| sched.link.as_ref());
        link.map_or(sched, |(_, number)| *number.get_ref())
    }

    /// What a rule leads to.
    pub(super) fn target(&self, object: Object, number: u32) -> Option<translate::Target> {
        match object {
            Object::Pipe => Some(translate::Target::Pipe(number)),
            _ => {
                let queue = self.find(Object::Queue, number)?;
                self.scheduler_of(queue).map(translate::Target::Sched)
            }
        }
    }
}
