//! Changes of a description in words, one change a line: `class add 30 rate=5mbit / fq_codel`.
//!
//! ```text
//! class  add    PATH SETTINGS [/ TREE | { CLASSES }]
//!        change PATH SETTINGS [/ TREE]
//!        move   PATH parent=CLASS            to another place in a tree of classes
//!        delete PATH
//! filter add    [in=PATH] class=CLASS CONDITIONS
//!        change [in=PATH] NUMBER SETTINGS
//!        move   [in=PATH] NUMBER NUMBER      filters with equal preference are tried in this order
//!        delete [in=PATH] NUMBER
//! queue  change PATH SETTINGS | TREE         the settings of a discipline, or another discipline
//!        add    PATH TREE                    a discipline above the one that is there
//!        move   PATH PATH                    two classes exchange their disciplines
//!        delete PATH                         what a discipline holds takes its place
//! ```
//!
//! A path is the numbers of the classes that lead to a class or to its discipline: `30`, or `1/30` for class
//! 30 of the discipline in class 1. `root` is the discipline at the top. `KEY=` without a value sets a key
//! back to its default. In a filter a key of a table has the table's name before it: `police.rate=2mbit
//! police.burst=20kb`, and `police=` removes the whole table. A filter's number is its place in the list,
//! from 1. Empty lines, and lines that begin with `#`, change nothing.

use std::ops::Range;
use std::sync::Arc;

use miette::NamedSource;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::draft::{Draft, FilterDraft, Written};
use super::given::Given;
use super::inline::{Line, Missing};
use super::{INNER, Spec, check_with};
use crate::error::{FileError, Origin, Problems};
use crate::registry::{PARENT, Registry};

/// The name of the queue while it is changed.
const NAME: &str = "queue";

/// The name of the text with the changes, in the locations of mistakes.
pub const CHANGE: &str = "the change";

impl Spec {
    /// Returns this tree with changes in words, one in each line, as the module's documentation lists them:
    /// `class`, `filter` or `queue`, then `add`, `change`, `move` or `delete`. All changes are made before
    /// the tree is checked.
    ///
    /// ```
    /// use fairgate_config::{Registry, Spec};
    ///
    /// let spec = Spec::inline("drr { 1 / fifo; 2 / fifo }")?;
    /// let lines = "class add 3 quantum=3000 / fq_codel\nqueue change 2 codel";
    /// let changed = spec.edited(lines, &Registry::builtin())?;
    /// let wanted = "drr { 1 / fifo; 2 / codel; 3 quantum=3000 / fq_codel }";
    /// assert_eq!(changed, Spec::inline(wanted)?);
    /// # Ok::<(), fairgate_config::FileError>(())
    /// ```
    ///
    /// # Errors
    /// If a line has a mistake, or if the changed tree is invalid. All mistakes of the tree are reported.
    pub fn edited(&self, lines: &str, registry: &Registry) -> Result<Spec, FileError> {
        let toml = self.to_separate_toml(NAME);
        // One text, so that each mistake has a location: the tree as it is, then the lines.
        let text = format!("{toml}{lines}\n");
        let before = toml.lines().count();
        let source = Arc::new(NamedSource::new("the changed tree", text.clone()));
        let mut problems = Problems::new(source);
        let edited = edit(&text, toml.len(), registry, &mut problems);
        let result = match edited {
            Some(spec) => problems.unless_any(spec),
            None => Err(problems.into_error()),
        };
        let of_line = |line: usize| {
            let line = line.checked_sub(before).filter(|line| *line > 0)?;
            let file = CHANGE.to_owned();
            Some(Origin { file, line })
        };
        result.map_err(|error| error.located(of_line))
    }
}

/// Reads the tree at the beginning of the text, makes the changes in the lines after it, and checks the tree.
fn edit(text: &str, tree: usize, registry: &Registry, problems: &mut Problems) -> Option<Spec> {
    let table = DeTable::parse(&text[..tree]).expect("a description prints TOML");
    let queue = |table: &DeTable<'_>| match table.get("queue")?.get_ref() {
        DeValue::Table(queues) => match queues.get(NAME)?.get_ref() {
            DeValue::Table(queue) => Some(Draft::from_toml(
                0..1,
                queue,
                &mut Problems::new(problems.source().clone()),
            )),
            _ => None,
        },
        _ => None,
    };
    let mut root = queue(table.get_ref()).expect("a description prints its queue");
    let mut start = tree;
    for line in text[tree..].split_inclusive('\n') {
        let location = start..start + line.trim_end().len();
        start += line.len();
        if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
            let mut line = Line::new(text, location, problems);
            if line.edit(&mut root).is_none() {
                line.report_missing(&root);
                return None;
            }
        }
    }
    check_with(&root, registry, problems)
}

const PATHS: &str =
    "write the numbers of the classes that lead there, like 30 or 1/30; `fairgate queue show` lists them";

impl Line<'_> {
    /// Makes the change of this line.
    fn edit(&mut self, root: &mut Draft) -> Option<()> {
        let help = "begin with what changes and how: class add, filter delete, queue change, ...";
        let what = self.needed("what changes", help)?;
        let how = self.needed("how it changes", "write add, change, move or delete")?;
        match (&self.text[what.clone()], &self.text[how.clone()]) {
            ("class", "add") => self.add_class(root)?,
            ("class", "change") => self.change_class(root)?,
            ("class", "move") => self.move_class(root)?,
            ("class", "delete") => self.delete_class(root)?,
            ("filter", "add") => self.add_filter(root)?,
            ("filter", "change") => self.change_filter(root)?,
            ("filter", "move") => self.move_filter(root)?,
            ("filter", "delete") => self.delete_filter(root)?,
            ("queue", "add") => self.add_queue(root)?,
            ("queue", "change") => self.change_queue(root)?,
            ("queue", "move") => self.move_queue(root)?,
            ("queue", "delete") => self.delete_queue(root)?,
            ("class" | "filter" | "queue", other) => {
                let message = format!("`{other}` is not a way to change");
                self.mistake(how, message, "unknown", "write add, change, move or delete");
                return None;
            }
            (other, _) => {
                let message = format!("`{other}` is not something that changes");
                self.mistake(what, message, "unknown", "write class, filter or queue");
                return None;
            }
        }
        if self.next_text().is_some() {
            let here = self.here();
            self.mistake(
                here,
                "the change ended before this",
                "unexpected",
                "write each change in a line of its own",
            );
            return None;
        }
        Some(())
    }

    fn add_class(&mut self, root: &mut Draft) -> Option<()> {
        let (parents, id, number) = self.class_path()?;
        let node = self.node(root, &parents, &id)?;
        if class_of(node, number).is_some() {
            let help = "change it with `class change`, or choose another number";
            self.mistake(
                id,
                format!("there is a class {number} already"),
                "it exists",
                help,
            );
            return None;
        }
        let mut class = Draft {
            header: id.clone(),
            settings: vec![written(self.text, "id", &id)],
            ..Draft::default()
        };
        self.settings(&mut class)?;
        let mut added = Vec::new();
        if self.mark("/").is_some() {
            class.inner = Some(Box::new(self.tree()?));
            added.push(class);
        } else if let Some(brace) = self.mark("{") {
            added.push(class);
            self.classes(brace, Some(&id), &mut added)?;
        } else {
            added.push(class);
        }
        node.classes.append(&mut added);
        node.classes.sort_by_key(Draft::id);
        Some(())
    }

    fn change_class(&mut self, root: &mut Draft) -> Option<()> {
        let (_, class) = self.class(root)?;
        let mut changed = Draft::default();
        self.settings(&mut changed)?;
        set_all(&mut class.settings, changed.settings);
        if self.mark("/").is_some() {
            class.inner = Some(Box::new(self.tree()?));
        }
        Some(())
    }

    fn move_class(&mut self, root: &mut Draft) -> Option<()> {
        let (_, class) = self.class(root)?;
        let help = "write the class above it, like parent=1, or parent= for the top";
        if !self.next_text().is_some_and(|word| word.starts_with("parent=")) {
            let here = self.here();
            self.mistake(here, "the new place is missing", "expected parent=CLASS", help);
            return None;
        }
        let mut changed = Draft::default();
        self.settings(&mut changed)?;
        set_all(&mut class.settings, changed.settings);
        Some(())
    }

    fn delete_class(&mut self, root: &mut Draft) -> Option<()> {
        let (parents, id, number) = self.class_path()?;
        let node = self.node(root, &parents, &id)?;
        let Some(place) = node.classes.iter().position(|class| class.id() == Some(number)) else {
            return self.no_class(id, node, number);
        };
        let below: Vec<String> = node
            .classes
            .iter()
            .filter(|class| parent_of(class) == Some(number))
            .filter_map(Draft::id)
            .map(|below| below.to_string())
            .collect();
        if !below.is_empty() {
            let message = format!("class {number} has classes below it: {}", below.join(", "));
            let help = "delete or move them first, in the same change";
            self.mistake(id, message, "not a leaf", help);
            return None;
        }
        node.classes.remove(place);
        Some(())
    }

    fn add_filter(&mut self, root: &mut Draft) -> Option<()> {
        let node = self.filtered(root)?;
        let header = self.here();
        let mut filter = Draft::default();
        self.settings(&mut filter)?;
        let mut entries = Vec::new();
        set_in_filter(&mut entries, as_in_a_file(filter.settings));
        let unknown =
            unknown_class(node, &entries).map(|(at, number)| (at, number, no_class_in(node, number)));
        node.filters.push(FilterDraft { header, entries });
        if let Some((at, number, message)) = unknown
            && let [path, ..] = &disciplines_with(root, number)[..]
        {
            let help = format!("write in={path}: the discipline there has a class {number}");
            self.mistake(at, message, "no such class", &help);
            return None;
        }
        Some(())
    }

    fn change_filter(&mut self, root: &mut Draft) -> Option<()> {
        let node = self.filtered(root)?;
        let place = self.filter(node)?;
        let mut changed = Draft::default();
        self.settings(&mut changed)?;
        set_in_filter(&mut node.filters[place].entries, as_in_a_file(changed.settings));
        Some(())
    }

    fn move_filter(&mut self, root: &mut Draft) -> Option<()> {
        let node = self.filtered(root)?;
        let (from, to) = (self.filter(node)?, self.filter(node)?);
        let filter = node.filters.remove(from);
        node.filters.insert(to, filter);
        Some(())
    }

    fn delete_filter(&mut self, root: &mut Draft) -> Option<()> {
        let node = self.filtered(root)?;
        let place = self.filter(node)?;
        node.filters.remove(place);
        Some(())
    }

    fn change_queue(&mut self, root: &mut Draft) -> Option<()> {
        let (at, path) = self.path()?;
        let node = self.node(root, &path, &at)?;
        if !self.next_text().is_some_and(|word| word.contains('=')) {
            *node = self.tree()?;
            return Some(());
        }
        let mut changed = Draft::default();
        self.settings(&mut changed)?;
        set_all(&mut node.settings, changed.settings);
        if self.mark("/").is_some() {
            node.inner = Some(Box::new(self.tree()?));
        }
        Some(())
    }

    fn add_queue(&mut self, root: &mut Draft) -> Option<()> {
        let (at, path) = self.path()?;
        let here = self.here();
        let mut above = self.tree()?;
        if above.inner.is_some() || !above.classes.is_empty() {
            let help = "name one discipline that holds another one, like tbf rate=20mbit burst=5kb";
            self.mistake(
                here,
                "the added discipline holds something already",
                "must hold nothing",
                help,
            );
            return None;
        }
        let node = self.node(root, &path, &at)?;
        above.inner = Some(Box::new(std::mem::take(node)));
        *node = above;
        Some(())
    }

    fn move_queue(&mut self, root: &mut Draft) -> Option<()> {
        let (first, one) = self.path()?;
        let (second, other) = self.path()?;
        if one.starts_with(&other) || other.starts_with(&one) {
            let help = "name two classes that are not above one another";
            self.mistake(
                second,
                "a discipline can't change places with one that it holds",
                "the same place",
                help,
            );
            return None;
        }
        let moved = std::mem::take(self.node(root, &one, &first)?);
        let node = self.node(root, &other, &second)?;
        let back = std::mem::replace(node, moved);
        *self.node(root, &one, &first)? = back;
        Some(())
    }

    fn delete_queue(&mut self, root: &mut Draft) -> Option<()> {
        let (at, path) = self.path()?;
        let node = self.node(root, &path, &at)?;
        let Some(inner) = node.inner.take() else {
            let help =
                "delete only a discipline that holds one other; else use `queue change` or `class delete`";
            self.mistake(
                at,
                "it holds no discipline that could take its place",
                "holds none",
                help,
            );
            return None;
        };
        *node = *inner;
        Some(())
    }

    /// Takes a path: the numbers of classes from the root on.
    fn path(&mut self) -> Option<(Range<usize>, Vec<u32>)> {
        let at = self.needed("a path", PATHS)?;
        let text = &self.text[at.clone()];
        self.numbers(at.clone(), text).map(|path| (at, path))
    }

    fn numbers(&mut self, at: Range<usize>, text: &str) -> Option<Vec<u32>> {
        if text == "root" {
            return Some(Vec::new());
        }
        let numbers: Result<Vec<u32>, _> = text.split('/').map(str::parse).collect();
        if numbers.is_err() {
            self.mistake(
                at,
                format!("`{text}` is not a path"),
                "expected class numbers",
                PATHS,
            );
        }
        numbers.ok()
    }

    /// Takes the path of a class: that of the discipline it belongs to, and its number with its location.
    fn class_path(&mut self) -> Option<(Vec<u32>, Range<usize>, u32)> {
        let (at, mut path) = self.path()?;
        let Some(number) = path.pop() else {
            self.mistake(at, "the root is not a class", "not a class", PATHS);
            return None;
        };
        let slash = self.text[at.clone()].rfind('/').map_or(0, |slash| slash + 1);
        Some((path, at.start + slash..at.end, number))
    }

    /// Takes the path of a class that exists.
    fn class<'d>(&mut self, root: &'d mut Draft) -> Option<(Range<usize>, &'d mut Draft)> {
        let (parents, id, number) = self.class_path()?;
        let node = self.node(root, &parents, &id)?;
        match node.classes.iter().position(|class| class.id() == Some(number)) {
            Some(place) => Some((id, &mut node.classes[place])),
            None => self.no_class(id, node, number),
        }
    }

    /// Takes `in=PATH`, if it is there. Returns the discipline whose filters change.
    fn filtered<'d>(&mut self, root: &'d mut Draft) -> Option<&'d mut Draft> {
        let Some(path) = self.next_text().and_then(|word| word.strip_prefix("in=")) else {
            return Some(root);
        };
        let at = self.word()?;
        let path = self.numbers(at.clone(), path)?;
        self.node(root, &path, &at)
    }

    /// Takes the number of a filter, from 1. Returns its place, from 0.
    fn filter(&mut self, node: &Draft) -> Option<usize> {
        let help = "`fairgate queue show` lists the filters in their order, the first is 1";
        let at = self.needed("the number of a filter", help)?;
        let text = &self.text[at.clone()];
        let number: Option<usize> = text.parse().ok();
        let place = number.and_then(|number| number.checked_sub(1));
        let place = place.filter(|place| *place < node.filters.len());
        if place.is_none() {
            let there_are = match node.filters.len() {
                0 => "there are none".to_owned(),
                1 => "there is one".to_owned(),
                count => format!("there are {count}"),
            };
            let message = format!("there is no filter `{text}`: {there_are}");
            self.mistake(at, message, "no such filter", help);
        }
        place
    }

    /// Returns the discipline at the end of a path.
    fn node<'d>(&mut self, root: &'d mut Draft, path: &[u32], at: &Range<usize>) -> Option<&'d mut Draft> {
        let mut node = root;
        for &number in path {
            let is_inner = node.classes.is_empty() && number == INNER;
            if is_inner && node.inner.is_some() {
                node = node.inner.as_deref_mut()?;
                continue;
            }
            let Some(place) = node.classes.iter().position(|class| class.id() == Some(number)) else {
                return self.no_class(at.clone(), node, number);
            };
            if node.classes[place].inner.is_none() {
                let message = format!("class {number} holds no discipline, but classes");
                self.mistake(
                    at.clone(),
                    message,
                    "not a leaf",
                    "name one of the classes below it",
                );
                return None;
            }
            node = node.classes[place].inner.as_deref_mut()?;
        }
        Some(node)
    }

    /// Notes that a discipline has no such class. It is reported when the whole tree can be searched.
    fn no_class<T>(&mut self, at: Range<usize>, node: &Draft, number: u32) -> Option<T> {
        let classes: Vec<String> = node
            .classes
            .iter()
            .filter_map(Draft::id)
            .map(|id| id.to_string())
            .collect();
        self.missing = Some(Missing {
            at,
            message: no_class_in(node, number),
            number,
            help: match classes.is_empty() {
                true => "it has no classes; `fairgate queue show` shows the tree".to_owned(),
                false => format!("it has the classes {}", classes.join(", ")),
            },
        });
        None
    }

    /// Reports the class that was not found, if any, and where else in the tree there is one.
    fn report_missing(&mut self, root: &Draft) {
        let Some(missing) = self.missing.take() else {
            return;
        };
        let Missing {
            at,
            message,
            number,
            help,
        } = missing;
        let help = match &disciplines_with(root, number)[..] {
            [] => help,
            paths => {
                let paths: Vec<String> = paths.iter().map(|path| format!("{path}/{number}")).collect();
                format!(
                    "write {}, the path of the class {number} that there is",
                    paths.join(" or ")
                )
            }
        };
        self.mistake(at, message, "no such class", &help);
    }
}

fn no_class_in(node: &Draft, number: u32) -> String {
    let name = node
        .discipline
        .as_ref()
        .map_or("the discipline", |name| name.get_ref());
    format!("`{name}` has no class {number}")
}

/// Returns the paths of the disciplines below the root that have a class with this number.
fn disciplines_with(root: &Draft, number: u32) -> Vec<String> {
    fn search(node: &Draft, path: &str, number: u32, found: &mut Vec<String>) {
        let of_inner = node.inner.as_deref().map(|inner| (INNER, inner));
        let of_classes = node.classes.iter();
        let of_classes = of_classes.filter_map(|class| Some((class.id()?, class.inner.as_deref()?)));
        for (id, inner) in of_classes.chain(of_inner) {
            let path = match path {
                "" => id.to_string(),
                above => format!("{above}/{id}"),
            };
            if class_of(inner, number).is_some() {
                found.push(path.clone());
            }
            search(inner, &path, number, found);
        }
    }
    let mut found = Vec::new();
    search(root, "", number, &mut found);
    found
}

fn class_of(node: &Draft, number: u32) -> Option<&Draft> {
    node.classes.iter().find(|class| class.id() == Some(number))
}

/// Returns the class that a filter names, with its location, if a discipline can't have it.
fn unknown_class(node: &Draft, filter: &[Written]) -> Option<(Range<usize>, u32)> {
    let (_, class) = filter.iter().find(|(key, _)| key.get_ref() == "class")?;
    let Given::Integer(number) = class.get_ref() else {
        return None;
    };
    let number = u32::try_from(*number).ok()?;
    // A template has no number, and stands for many classes.
    let is_known = |class: &Draft| class.id().is_none_or(|id| id == number);
    (!node.classes.iter().any(is_known)).then(|| (class.span(), number))
}

/// Returns the class that a class names as its parent.
fn parent_of(class: &Draft) -> Option<u32> {
    match class.setting(PARENT)?.1.get_ref() {
        Given::Integer(number) => u32::try_from(*number).ok(),
        Given::Word(word) => word.parse().ok(),
        _ => None,
    }
}

fn written(text: &str, name: &str, value: &Range<usize>) -> Written {
    let word = Given::Word(text[value.clone()].to_owned());
    (
        Spanned::new(value.clone(), name.to_owned()),
        Spanned::new(value.clone(), word),
    )
}

/// Returns words as the values that a file has: numbers, true and false, text.
fn as_in_a_file(words: Vec<Written>) -> Vec<Written> {
    let value = |given: Given| match given {
        Given::Word(word) if word == "true" || word == "false" => Given::Flag(word == "true"),
        Given::Word(word) => word.parse().map_or(Given::Text(word), Given::Integer),
        other => other,
    };
    let read = |(key, given): Written| (key, Spanned::new(given.span(), value(given.into_inner())));
    words.into_iter().map(read).collect()
}

/// Sets keys to new values. A key without a value is removed.
fn set_all(settings: &mut Vec<Written>, changed: Vec<Written>) {
    for (key, value) in changed {
        settings.retain(|(other, _)| other.get_ref() != key.get_ref());
        if !matches!(value.get_ref(), Given::Word(word) | Given::Text(word) if word.is_empty()) {
            settings.push((key, value));
        }
    }
}

/// Does the same for a filter, where `police.rate` is the key `rate` of the table `police`. A table whose
/// last key is removed is removed, too.
fn set_in_filter(entries: &mut Vec<Written>, changed: Vec<Written>) {
    for (key, value) in changed {
        let Some((table, inner)) = key.get_ref().split_once('.') else {
            set_all(entries, vec![(key, value)]);
            continue;
        };
        let (span, dot) = (key.span(), key.span().start + table.len());
        let mut inside = match entries.iter().position(|(other, _)| other.get_ref() == table) {
            Some(place) => match entries.remove(place).1.into_inner() {
                Given::Table(inside) => inside,
                _ => Vec::new(),
            },
            None => Vec::new(),
        };
        let whole = span.start..value.span().end;
        set_all(
            &mut inside,
            vec![(Spanned::new(dot + 1..span.end, inner.to_owned()), value)],
        );
        if !inside.is_empty() {
            let table = Spanned::new(span.start..dot, table.to_owned());
            entries.push((table, Spanned::new(whole, Given::Table(inside))));
        }
    }
}
