//! Runs the lines of a script, and determines the trees that it describes.

use std::sync::Arc;

use fairgate_config::FileError;
use fairgate_config::language::{Given, Problems};

use miette::NamedSource;
use toml::Spanned;

use super::command::{self, Action, Command, Object};
use super::object::{self, Configured};
use super::pf;
use super::rule::{self, Direction, Rule};
use super::tables::Tables;
use crate::script::notes::Notes;
use crate::script::{Word, lines, setting};
use crate::tc::Device;

/// The objects and rules after the last line of a script.
pub struct Script {
    pub(super) source: Arc<NamedSource<String>>,
    pub(super) device: Device,
    /// Pipes, queues and schedulers, each once.
    pub(super) objects: Vec<Configured>,
    /// The rules in the order in which they are tried.
    pub(super) rules: Vec<Rule>,
    /// What lines do not mean here.
    pub(super) notes: Notes,
}

/// Prints the name of the type only.
impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Script").finish_non_exhaustive()
    }
}

/// The packets that a tree is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'s> {
    pub(super) interface: Option<&'s str>,
    pub(super) direction: Direction,
}

/// A target of rules. Each target has its own bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A pipe with one queue.
    Pipe(u32),
    /// A scheduler over queues, and its pipe.
    Sched(u32),
}

impl Script {
    /// Parses a script. Messages call it `name`. All mistakes are reported at once. Only the longest frame of
    /// the device matters.
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
        let lines = lines(text, &["ipfw", "dnctl"]);
        let mut tables = Tables::default();
        for (words, _) in &lines {
            tables.read(words, &mut problems);
            if let Some((name, addresses)) = pf::table(words) {
                tables.fill(name, addresses);
            }
        }
        let mut rules_of_pf = pf::Rules::default();
        let mut disabled = Vec::new();
        let mut script = Script {
            source,
            device,
            objects: Vec::new(),
            rules: Vec::new(),
            notes: Notes::default(),
        };
        for (words, end) in lines {
            if pf::is_of_altq(&words) {
                let text = "`fairgate pf` makes a tree of this line of ALTQ: here it makes none";
                script.notes.add(words[0].span(), text.to_owned());
                continue;
            }
            if rules_of_pf.read(&words, end, &tables, &mut problems, &mut script.notes) {
                continue;
            }
            match command::read(words, end, &mut problems) {
                Some(Command::Sets(changed)) => {
                    for (set, is_enabled) in changed {
                        disabled.retain(|other| *other != set);
                        disabled.extend((!is_enabled).then_some(set));
                    }
                }
                Some(command) => script.run(command, &tables, &mut problems),
                None => {}
            }
        }
        script.rules.retain(|rule| !disabled.contains(&rule.set));
        script
            .rules
            .extend(rules_of_pf.in_order(&mut problems, &mut script.notes));
        // The sort is stable: rules with the same number are tried in the order of their lines.
        script.rules.sort_by_key(|rule| rule.number);
        script.follow_skips(&mut problems);
        script.put_others_last();
        if script.objects.is_empty() && problems.count() == 0 {
            let help = "begin with a line like pipe 1 config bw 10Mbit/s";
            problems.add(0..text.len(), "no pipe is configured", "nothing here", help);
        }
        problems.unless_any(script)
    }

    /// Replaces rules that skip others by what becomes of their packets in the end. Removes those that skip
    /// none. In a tree a packet can't go on at a later rule.
    fn follow_skips(&mut self, problems: &mut Problems) {
        let is_skip = |rule: &Rule| matches!(rule.action, Action::Skip(_));
        let numbers: Vec<u32> = self
            .rules
            .iter()
            .filter(|rule| !is_skip(rule))
            .map(|rule| rule.number)
            .collect();
        let mut ends: Vec<Option<Action>> = Vec::new();
        for rule in &self.rules {
            let Action::Skip(to) = &rule.action else {
                ends.push(None);
                continue;
            };
            let skipped = rule.number..*to.get_ref();
            let end = match numbers.iter().any(|number| skipped.contains(number)) {
                true => self.end_of_skip(rule, to),
                false => None,
            };
            if end.is_none() && numbers.iter().any(|number| skipped.contains(number)) {
                let message = "a rule that skips others to reach ones with conditions can't be carried over";
                let help = "give the rules between the two their own conditions";
                problems.add(to.span(), message, "skips rules", help);
            }
            ends.push(end);
        }
        for (rule, end) in self.rules.iter_mut().zip(ends) {
            if let Some(end) = end {
                rule.action = end;
            }
        }
        self.rules.retain(|rule| !is_skip(rule));
    }

    /// Returns what becomes of packets that go on at a later rule, if it is the same for all of them.
    fn end_of_skip(&self, skip: &Rule, to: &Spanned<u32>) -> Option<Action> {
        let passes = || Action::Pass(Spanned::new(to.span(), "skipto".to_owned()));
        let later = self.rules.iter().filter(|rule| rule.number >= *to.get_ref());
        let of_skip = (skip.interface.as_ref(), skip.direction.as_ref());
        let mut later = later
            .filter(|rule| !matches!(rule.action, Action::Skip(_)))
            .peekable();
        if let Some(first) = later.peek() {
            let is_same = |own: Option<&String>, other: Option<&String>| own.is_none() || own == other;
            let name = |word: Option<&Word>| word.map(|word| word.get_ref().clone());
            let (own, skipped) = (name(first.interface.as_ref()), name(of_skip.0));
            let of = |direction: Option<&Spanned<Direction>>| direction.map(|direction| *direction.get_ref());
            let is_for_all = first.alternatives.iter().any(Vec::is_empty)
                && is_same(own.as_ref(), skipped.as_ref())
                && (first.direction.is_none() || of(first.direction.as_ref()) == of(of_skip.1));
            if is_for_all {
                return Some(match &first.action {
                    Action::Pass(_) => passes(),
                    other => other.clone(),
                });
            }
        }
        // Packets that none of them matches pass, too.
        let are_any = later.peek().is_some();
        let is_pass = |rule: &Rule| matches!(rule.action, Action::Pass(_));
        (are_any && later.all(is_pass)).then(passes)
    }

    /// Moves a rule for all frames that are not IP to the end. The rules after it are then only for IP.
    fn put_others_last(&mut self) {
        let Some(at) = self.rules.iter().position(|rule| rule.is_for_others) else {
            return;
        };
        let mut others = self.rules.remove(at);
        for rule in &mut self.rules[at..] {
            if rule.alternatives.iter().any(Vec::is_empty) {
                let ip = ["ipv4", "ipv6"]
                    .map(|family| vec![setting(&(0..0), "ethertype", Given::Text(family.to_owned()))]);
                rule.alternatives = ip.into();
            }
        }
        others.is_for_others = false;
        self.rules.retain(|rule| !rule.is_for_others);
        self.rules.push(others);
    }

    fn run(&mut self, command: Command, tables: &Tables, problems: &mut Problems) {
        match command {
            Command::Configure {
                object,
                number,
                options,
            } => {
                let configured = object::read(object, number, options, problems, &mut self.notes);
                // A later line replaces an earlier one.
                self.remove(object, *configured.number.get_ref());
                self.objects.push(configured);
            }
            Command::Delete { object, number } => {
                if !self.remove(object, *number.get_ref()) {
                    let message = format!("there is no {} {}", object.name(), number.get_ref());
                    let help = "remove the line";
                    problems.add(number.span(), message, "not configured", help);
                }
            }
            Command::FlushObjects => self.objects.clear(),
            Command::Add {
                number,
                set,
                action,
                body,
            } => {
                // ipfw numbers rules in steps of 100.
                let last = self.rules.iter().map(|rule| rule.number).max().unwrap_or(0);
                let number = number.unwrap_or((last + 100).min(65_534));
                let rule = rule::read(number, action, body, tables, problems, &mut self.notes);
                self.rules.extend(rule.map(|rule| Rule { set, ..rule }));
            }
            Command::DeleteRules { number } => {
                let before = self.rules.len();
                self.rules.retain(|rule| rule.number != *number.get_ref());
                if self.rules.len() == before {
                    let message = format!("there is no rule {}", number.get_ref());
                    problems.add(number.span(), message, "no such rule", "remove the line");
                }
            }
            Command::FlushRules => self.rules.clear(),
            Command::Sets(_) | Command::Nothing => {}
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

    /// Returns the parts in the order in which rules first name them.
    pub(super) fn parts(&self) -> Vec<Part<'_>> {
        let mut parts: Vec<Part<'_>> = Vec::new();
        for rule in self.sending() {
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

    /// Returns the rules that send packets to a pipe or a queue. Only these rules create trees.
    fn sending(&self) -> impl Iterator<Item = &Rule> {
        self.rules
            .iter()
            .filter(|rule| matches!(rule.action, Action::To(..)))
    }

    /// Returns the interfaces of a rule. A rule that names none is for all named ones.
    fn interfaces<'s>(&'s self, rule: &'s Rule) -> Vec<Option<&'s str>> {
        if let Some(interface) = &rule.interface {
            return vec![Some(interface.get_ref())];
        }
        let mut named: Vec<Option<&str>> = Vec::new();
        for interface in self.sending().filter_map(|rule| rule.interface.as_ref()) {
            if !named.contains(&Some(interface.get_ref())) {
                named.push(Some(interface.get_ref()));
            }
        }
        if named.is_empty() {
            named.push(None);
        }
        named
    }

    /// Returns the directions of a rule. A rule that names none is for all named ones, or for leaving packets
    /// if no rule names one.
    fn directions(&self, rule: &Rule) -> Vec<Direction> {
        if let Some(direction) = &rule.direction {
            return vec![*direction.get_ref()];
        }
        let is_named = |direction: &Direction| {
            let mut named = self.sending().filter_map(|rule| rule.direction.as_ref());
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

    pub(super) fn covers(&self, rule: &Rule, part: Part<'_>) -> bool {
        self.interfaces(rule).contains(&part.interface) && self.directions(rule).contains(&part.direction)
    }

    /// Checks that each named object exists, that one is used, and each in one tree.
    pub(super) fn check_uses(&self, parts: &[Part<'_>], problems: &mut Problems) {
        for rule in &self.rules {
            if let Action::To(object, number) = &rule.action {
                self.must_exist(*object, number, problems);
            }
        }
        for configured in &self.objects {
            if let Some((object, number)) = &configured.link {
                // A pipe implies a scheduler of the same number.
                let is_pipe_of_scheduler =
                    *object == Object::Sched && self.find(Object::Pipe, *number.get_ref()).is_some();
                if !is_pipe_of_scheduler {
                    self.must_exist(*object, number, problems);
                }
            } else if configured.object == Object::Queue {
                let message = format!("queue {} has no pipe", configured.number.get_ref());
                let help = "add pipe and a number, or sched and a number";
                problems.add(configured.number.span(), message, "no pipe", help);
            }
        }
        self.check_passing(parts, problems);
        let mut uses: Vec<(Target, Part<'_>)> = Vec::new();
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
                    let help = "it is one queue for both directions or several interfaces, but here each has \
                        its own tree: configure a pipe for each, and write `in` or `out` in rules";
                    problems.add(number.span(), message, "one queue in two trees", help);
                    return;
                }
                uses.push((target, *part));
            }
        }
        if problems.count() == 0
            && !self.rules.is_empty()
            && let Some(first) = self.objects.first()
            && self.objects.iter().all(|configured| !self.is_used(configured))
        {
            let message = "no rule sends packets to a pipe or a queue";
            let help = "add a rule, like add pipe 1 ip from any to any out";
            problems.add(first.number.span(), message, "never used", help);
        }
    }

    /// Notes the objects that get no packets. dummynet takes them too.
    pub(super) fn note_unused(&self, notes: &mut Notes) {
        let unused = |configured: &&Configured| !self.rules.is_empty() && !self.is_used(configured);
        for configured in self.objects.iter().filter(unused) {
            let (object, number) = (configured.object.name(), &configured.number);
            let text = format!("no rule sends packets to {object} {}", number.get_ref());
            notes.add(number.span(), text);
        }
    }

    /// Reports a rule that passes packets of one interface, if no tree is for a single interface.
    fn check_passing(&self, parts: &[Part<'_>], problems: &mut Problems) {
        if parts.iter().any(|part| part.interface.is_some()) {
            return;
        }
        let passing = self
            .rules
            .iter()
            .filter(|rule| matches!(rule.action, Action::Pass(_) | Action::Drop(_)));
        for interface in passing.filter_map(|rule| rule.interface.as_ref()) {
            // Packets that do not leave the machine are not part of any tree.
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

    fn must_exist(&self, object: Object, number: &Spanned<u32>, problems: &mut Problems) {
        if self.find(object, *number.get_ref()).is_none() {
            let (object, number, location) = (object.name(), number.get_ref(), number.span());
            let message = format!("there is no {object} {number}");
            let help = format!("add a line {object} {number} config with its options");
            problems.add(location, message, "not configured", help);
        }
    }

    /// Whether a rule leads to this object.
    fn is_used(&self, configured: &Configured) -> bool {
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
        match object {
            Object::Queue => self.is_ruled(object, number),
            Object::Sched => of_queues().any(|sched| sched == number),
            Object::Pipe => {
                self.is_ruled(object, number) || of_queues().any(|sched| self.pipe_of(sched) == number)
            }
        }
    }

    /// Whether a rule names this object itself.
    pub(super) fn is_ruled(&self, object: Object, number: u32) -> bool {
        let names_it = |rule: &Rule| match &rule.action {
            Action::To(to, of) => *to == object && *of.get_ref() == number,
            _ => false,
        };
        self.rules.iter().any(names_it)
    }

    /// Returns the scheduler that a queue is connected to. A pipe implies a scheduler of the same number.
    pub(super) fn scheduler_of(&self, queue: &Configured) -> Option<u32> {
        queue.link.as_ref().map(|(_, number)| *number.get_ref())
    }

    /// Returns the pipe of a scheduler: the one that it names, or the one of the same number.
    pub(super) fn pipe_of(&self, sched: u32) -> u32 {
        let link = self
            .find(Object::Sched, sched)
            .and_then(|sched| sched.link.as_ref());
        link.map_or(sched, |(_, number)| *number.get_ref())
    }

    /// Returns the target of a rule.
    pub(super) fn target(&self, object: Object, number: u32) -> Option<Target> {
        match object {
            Object::Pipe => Some(Target::Pipe(number)),
            _ => {
                let queue = self.find(Object::Queue, number)?;
                self.scheduler_of(queue).map(Target::Sched)
            }
        }
    }
}
