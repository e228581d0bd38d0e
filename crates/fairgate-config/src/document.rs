//! A configuration file: named trees under `[queue.NAME]`, and sections that other crates read.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::NamedSource;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{FileError, Problems};
use crate::registry::{Registry, Section};
use crate::section;
use crate::spec::{Draft, Given, Spec, check_with, in_order, spanned_from_toml};
use crate::suggest;
use crate::table::{self, Table};

/// The longest name of a queue, in characters.
const LONGEST_NAME: usize = 200;

/// A configuration file. Its queues are checked, and of the sections of the registry each key and its value.
/// Whoever reads a section checks what must go together.
#[derive(Clone)]
pub struct Document {
    source: Arc<NamedSource<String>>,
    queues: BTreeMap<String, Spec>,
    /// The sections besides the queues, in the order of the file.
    sections: Vec<(String, Spanned<Given>)>,
}

impl Document {
    /// Reads the text of a file, with the built-in disciplines. Messages call the file `name`. All mistakes
    /// are reported at once. Sections besides the queues are left to those who read them, unless the name is
    /// almost `queue`.
    ///
    /// # Errors
    /// If the text has mistakes.
    pub fn parse(name: &str, text: &str) -> Result<Document, FileError> {
        Document::parse_with(name, text, &Registry::builtin())
    }

    /// Reads the text of a file, with the disciplines of this registry. If the registry has sections, these
    /// are checked too, and the file may have no others.
    ///
    /// # Errors
    /// If the text has mistakes.
    pub fn parse_with(name: &str, text: &str, registry: &Registry) -> Result<Document, FileError> {
        let source = Arc::new(NamedSource::new(name, text.to_owned()));
        let mut problems = Problems::new(Arc::clone(&source));
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let span = error.span().unwrap_or(0..text.len());
            let (message, help) = match error.message() {
                // toml limits the recursion. Its message doesn't say what to do.
                message if message.contains("recurs") => {
                    ("tables and lists are nested too deep", "nest at most 80 of them")
                }
                message => (message, "write text in quotation marks: rate = \"20mbit\""),
            };
            problems.add(span, message, "not TOML", help);
        }
        if !errors.is_empty() {
            return Err(problems.into_error());
        }
        let mut document = Document {
            source,
            queues: BTreeMap::new(),
            sections: Vec::new(),
        };
        for (key, value) in in_order(table.get_ref()) {
            let name = key.get_ref().as_ref();
            let section = registry.sections().find(|section| section.name() == name);
            let is_left = registry.sections().len() == 0 && suggest::similar(name, ["queue"]).is_none();
            let is_known = section.is_some() || is_left;
            match value.get_ref() {
                DeValue::Table(queues) if name == "queue" => {
                    document.read_queues(queues, registry, &mut problems)
                }
                other if name == "queue" || (is_known && !matches!(other, DeValue::Table(_))) => {
                    let message = format!("`{name}` is {}, but must be a table", other.type_str());
                    let help = format!("begin it with a line [{name}]");
                    problems.add(value.span(), message, "expected a table", help);
                }
                _ if is_known => {
                    let given = spanned_from_toml(value);
                    if let Some(section) = section {
                        table::check(&given, section, "", &mut problems);
                    }
                    document.sections.push((name.to_owned(), given));
                }
                _ => {
                    let known = registry.sections().map(Section::name);
                    let help = suggest::remedy(name, "sections", ["queue"].into_iter().chain(known));
                    problems.add(
                        key.span(),
                        format!("there is no section `{name}`"),
                        "unknown section",
                        help,
                    );
                }
            }
        }
        problems.unless_any(document)
    }

    fn read_queues(&mut self, queues: &DeTable<'_>, registry: &Registry, problems: &mut Problems) {
        for (key, value) in in_order(queues) {
            let DeValue::Table(table) = value.get_ref() else {
                let message = format!(
                    "`{}` under `queue` is {}",
                    key.get_ref(),
                    value.get_ref().type_str()
                );
                let help = "begin a tree with a line like [queue.wan], its discipline and settings below";
                problems.add(key.span(), message, "expected a named tree", help);
                continue;
            };
            let length = key.get_ref().chars().count();
            if length > LONGEST_NAME {
                problems.add(
                    key.span(),
                    format!(
                        "the name of this queue has {length} characters, but may have at most {LONGEST_NAME}"
                    ),
                    format!("must be at most {LONGEST_NAME}"),
                    "give it a short name; sections refer to the queue by this name",
                );
                continue;
            }
            let draft = Draft::from_toml(key.span(), table, problems);
            if let Some(spec) = check_with(&draft, registry, problems) {
                self.queues.insert(key.get_ref().to_string(), spec);
            }
        }
    }

    /// Adds trees from another source. Sections can refer to them like to the document's own trees. If two
    /// have the same name, the added one replaces the document's own.
    pub fn with_queues(mut self, queues: impl IntoIterator<Item = (String, Spec)>) -> Document {
        self.queues.extend(queues);
        self
    }

    /// Returns the file's name, as it was given.
    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// Returns the tree `[queue.NAME]`.
    pub fn queue(&self, name: &str) -> Option<&Spec> {
        self.queues.get(name)
    }

    /// Returns all trees, sorted by name.
    pub fn queues(&self) -> impl Iterator<Item = (&str, &Spec)> {
        self.queues.iter().map(|(name, spec)| (name.as_str(), spec))
    }

    /// Returns the tree that a section refers to, or an error at the location of the reference.
    ///
    /// # Errors
    /// If there is no such tree.
    pub fn resolve(&self, reference: &Spanned<String>) -> Result<&Spec, FileError> {
        let name = reference.get_ref();
        self.queue(name).ok_or_else(|| {
            let names = self.queues.keys().map(String::as_str);
            self.error_with_label(
                reference.span(),
                format!("there is no queue `{name}`"),
                format!("no [queue.{name}] in this file"),
                suggest::remedy(name, "queues", names),
            )
        })
    }

    /// Returns the text of the file.
    pub fn text(&self) -> &str {
        self.source.inner()
    }

    /// Returns the names of the sections besides the queues.
    pub fn sections(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the table of a section, whose keys are as it describes them. Returns `None` if the file has no
    /// such section.
    ///
    /// # Errors
    /// Reports all keys that are not known or missing, and all values that are not allowed, each with its
    /// location, the rule and a remedy.
    pub fn table(&self, section: &Section) -> Result<Option<Table>, FileError> {
        let Some((_, value)) = self.sections.iter().find(|(name, _)| name == section.name()) else {
            return Ok(None);
        };
        let mut problems = self.problems();
        table::check(value, section, "", &mut problems);
        problems.unless_any(Table::of(value))
    }

    /// Reads a section, or a table within it (`simulate.link`), into a type of another crate. Returns `None`
    /// if the file has no such section. `T` should have `#[serde(deny_unknown_fields)]`, and [`Spanned`]
    /// fields if later errors must point at a value. [`Document::table`] reads one whose keys are described.
    ///
    /// # Errors
    /// If the section has a mistake. The error points at the first one.
    pub fn section<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, FileError> {
        // The deserializer consumes the table, whose texts are parts of that of the file.
        let parsed = || DeTable::parse(self.source.inner()).expect("the text was parsed before");
        let mut path = name.split('.');
        let outer = path.next().and_then(|name| parsed().get_mut().remove(name));
        let found = path.fold(outer, |outer, name| match outer?.into_inner() {
            DeValue::Table(mut table) => table.remove(name),
            _ => None,
        });
        let Some(section) = found else {
            return Ok(None);
        };
        let location = section.span();
        let deserializer = toml::de::ValueDeserializer::from(section);
        T::deserialize(deserializer).map(Some).map_err(|error| {
            let span = error.span().unwrap_or(location);
            let key = section::key_at(parsed().get_ref(), &span);
            let (message, help) = section::explain(error.message(), key.as_deref());
            self.error(span, message, help)
        })
    }

    /// Returns an error at a location in this file.
    pub fn error(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> FileError {
        self.error_with_label(span, message, "here", help)
    }

    /// Returns a collection for mistakes in this file, without any.
    pub fn problems(&self) -> Problems {
        Problems::new(Arc::clone(&self.source))
    }

    fn error_with_label(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) -> FileError {
        let mut problems = self.problems();
        problems.add(span, message, label, help);
        problems.into_error()
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("name", &self.name())
            .field("queues", &self.queues)
            .field("sections", &self.sections().collect::<Vec<_>>())
            .finish()
    }
}
