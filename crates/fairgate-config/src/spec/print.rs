//! Prints a description as TOML, which is read as the same description, and as a tree for people.

use std::fmt::{self, Write};

use fairgate::harmless::is_hidden;
use fairgate::registry::tree::parent_of;

use super::check::RESERVED_KEYS;
use super::{Estimator, Estimators, Spec};
use super::{estimator, filters, templates};
use crate::registry::{ClassSettings, PARENT, ParameterInfo, Setting};
use crate::registry::{Unit, Value};

/// Returns the text of [`Spec::to_toml`] with another name for the tree.
pub fn renamed(toml: &str, from: &str, to: &str) -> String {
    let table = |name: &str| format!("queue.{}", quoted(name));
    let (from, to) = (table(from), table(to));
    // Only these lines begin with a bracket. Text of values has its line ends escaped.
    let line = |line: &str| match line.starts_with('[') {
        true => line.replacen(&from, &to, 1),
        false => line.to_owned(),
    };
    toml.split_inclusive('\n').map(line).collect()
}

impl Spec {
    /// Returns the tree as TOML under `[queue.NAME]`, with only the parameters that were set.
    /// [`Document::parse`](crate::Document::parse) reads the same tree from it.
    pub fn to_toml(&self, name: &str) -> String {
        let mut text = String::new();
        let path = format!("queue.{}", quoted(name));
        let _ = writeln!(text, "[{path}]");
        self.print(&path, &mut text, false);
        text
    }

    /// Returns the same with the discipline of each class in a table of its own, so that the settings of a
    /// class and of its discipline are apart.
    pub(super) fn to_separate_toml(&self, name: &str) -> String {
        let mut text = format!("[queue.{name}]\n");
        self.print(&format!("queue.{name}"), &mut text, true);
        text
    }

    /// Prints the body of a table, and the tables below it.
    fn print(&self, path: &str, text: &mut String, is_separate: bool) {
        let _ = writeln!(text, "discipline = \"{}\"", self.discipline());
        let classifier = &self.settings.classifier;
        if classifier.handle != 0 {
            let _ = writeln!(text, "handle = \"{:x}\"", classifier.handle);
        }
        if let Some(class) = classifier.default {
            let _ = writeln!(text, "default = {class}");
        }
        print_estimator(self.estimators.own, text);
        print_settings(&self.entry.parameters(), &self.settings.own, text);
        for filter in classifier.filters.iter() {
            let _ = writeln!(text, "\n[[{path}.filter]]");
            for line in filters::lines(filter) {
                let _ = writeln!(text, "{line}");
            }
        }
        if !self.entry.about().children.are_classes() {
            if let Some(inner) = self.children.first() {
                inner.print_inner(path, text, is_separate);
            }
            return;
        }
        let class_parameters = self.entry.class_parameters();
        for (class, child) in self.classes_and_trees() {
            let _ = writeln!(text, "\n[[{path}.class]]\nid = {}", class.minor);
            for line in class.template.iter().flat_map(templates::lines) {
                let _ = writeln!(text, "{line}");
            }
            print_estimator(self.estimators.classes.get(&class.minor).copied(), text);
            print_settings(&class_parameters, &class.settings, text);
            let Some(child) = child else { continue };
            let path = format!("{path}.class");
            if is_separate || child.collides_with(&class_parameters) {
                child.print_inner(&path, text, is_separate);
            } else {
                child.print(&path, text, is_separate);
            }
        }
    }

    fn print_inner(&self, path: &str, text: &mut String, is_separate: bool) {
        let path = format!("{path}.inner");
        let _ = writeln!(text, "\n[{path}]");
        self.print(&path, text, is_separate);
    }

    /// Whether a setting of this discipline has the same name as a parameter of the class that holds it. Each
    /// class may have an estimator.
    fn collides_with(&self, class_parameters: &[ParameterInfo]) -> bool {
        let own = self.entry.parameters();
        let is_of_class =
            |(index, _): &Setting| class_parameters.iter().any(|info| info.name == own[*index].name);
        self.estimators.own.is_some() || self.settings.own.iter().any(is_of_class)
    }
}

/// Returns text as a string of TOML in double quotes. What TOML does not take, and what
/// [is hidden](fairgate::harmless::is_hidden), is written by its number: the text can be shown and is read as
/// the same.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        let _ = match character {
            '"' | '\\' => write!(quoted, "\\{character}"),
            '\n' => write!(quoted, "\\n"),
            '\t' => write!(quoted, "\\t"),
            '\r' => write!(quoted, "\\r"),
            _ if !is_hidden(character) => write!(quoted, "{character}"),
            _ if u32::from(character) <= 0xffff => write!(quoted, "\\u{:04X}", u32::from(character)),
            _ => write!(quoted, "\\U{:08X}", u32::from(character)),
        };
    }
    quoted + "\""
}

fn print_estimator(estimator: Option<Estimator>, text: &mut String) {
    if let Some(estimator) = estimator {
        let _ = writeln!(text, "{} = \"{estimator}\"", estimator::KEY);
    }
}

fn print_settings(parameters: &[ParameterInfo], settings: &[Setting], text: &mut String) {
    for (index, value) in settings {
        let info = &parameters[*index];
        debug_assert!(!RESERVED_KEYS.contains(&info.name));
        let shown = match value {
            Value::Texts(texts) => format!("{texts:?}"),
            _ => info.unit.show(value),
        };
        let is_bare = match value {
            Value::List(_) => info.unit != Unit::Curve,
            Value::Flag(_) | Value::Texts(_) => true,
            Value::Number(_) => matches!(info.unit, Unit::Count(_) | Unit::Signed(..)),
            Value::Word(_) | Value::Text(_) | Value::None => false,
        };
        let _ = match is_bare {
            true => writeln!(text, "{} = {shown}", info.name),
            false => writeln!(text, "{} = \"{shown}\"", info.name),
        };
    }
}

/// Writes the tree for people: one line for each discipline, with the parameters that were set; below it its
/// filters and children.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show_line(f)?;
        self.show_below(f, "")
    }
}

impl Spec {
    fn show_line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.discipline())?;
        let classifier = &self.settings.classifier;
        if classifier.handle != 0 {
            write!(f, " handle={:x}:", classifier.handle)?;
        }
        if let Some(class) = classifier.default {
            write!(f, " default={class}")?;
        }
        show_estimator(f, self.estimators.own)?;
        show_settings(f, &self.entry.parameters(), &self.settings.own)
    }

    fn show_below(&self, f: &mut fmt::Formatter<'_>, indent: &str) -> fmt::Result {
        for filter in self.settings.classifier.filters.iter() {
            write!(f, "\n{indent}│  {}", filters::shown(filter))?;
        }
        if !self.entry.about().children.are_classes() {
            return self.children.iter().try_for_each(|inner| {
                write!(f, "\n{indent}└─ ")?;
                inner.show_line(f)?;
                inner.show_below(f, &format!("{indent}   "))
            });
        }
        let parameters = self.entry.class_parameters();
        let parent = parameters.iter().position(|info| info.name == PARENT);
        let classes: Vec<ShownClass<'_>> = self
            .classes_and_trees()
            .map(|(class, tree)| ShownClass {
                settings: class,
                estimators: &self.estimators,
                parent: parent_of(parent, &class.settings),
                tree,
            })
            .collect();
        show_classes(f, &classes, None, &parameters, indent)
    }
}

/// A class, its parent and the tree in it.
struct ShownClass<'a> {
    settings: &'a ClassSettings,
    /// Those of all classes.
    estimators: &'a Estimators,
    parent: Option<u32>,
    tree: Option<&'a Spec>,
}

/// Writes the classes below `parent`, each with the classes below it.
fn show_classes(
    f: &mut fmt::Formatter<'_>,
    classes: &[ShownClass<'_>],
    parent: Option<u32>,
    parameters: &[ParameterInfo],
    indent: &str,
) -> fmt::Result {
    let below: Vec<_> = classes.iter().filter(|class| class.parent == parent).collect();
    for (index, class) in below.iter().enumerate() {
        let is_last = index + 1 == below.len();
        write!(
            f,
            "\n{indent}{}{}",
            if is_last { "└─ " } else { "├─ " },
            class.settings.minor
        )?;
        for line in class.settings.template.iter().flat_map(templates::lines) {
            write!(
                f,
                " {}",
                line.replace(" = ", "=").replace(['"', ' ', '[', ']'], "")
            )?;
        }
        let estimators = &class.estimators.classes;
        show_estimator(f, estimators.get(&class.settings.minor).copied())?;
        // The picture shows the parent.
        let is_shown = |(index, _): &&Setting| parameters[*index].name != PARENT;
        let shown: Vec<Setting> = class.settings.settings.iter().filter(is_shown).cloned().collect();
        show_settings(f, parameters, &shown)?;
        let indent = format!("{indent}{}", if is_last { "   " } else { "│  " });
        match class.tree {
            Some(tree) => {
                f.write_str(": ")?;
                tree.show_line(f)?;
                tree.show_below(f, &indent)?;
            }
            None => show_classes(f, classes, Some(class.settings.minor), parameters, &indent)?,
        }
    }
    Ok(())
}

fn show_estimator(f: &mut fmt::Formatter<'_>, estimator: Option<Estimator>) -> fmt::Result {
    match estimator {
        Some(estimator) => write!(f, " {}={}", estimator::KEY, estimator.word()),
        None => Ok(()),
    }
}

fn show_settings(
    f: &mut fmt::Formatter<'_>,
    parameters: &[ParameterInfo],
    settings: &[Setting],
) -> fmt::Result {
    settings.iter().try_for_each(|(index, value)| {
        let info = &parameters[*index];
        write!(f, " {}={}", info.name, info.unit.show(value))
    })
}
