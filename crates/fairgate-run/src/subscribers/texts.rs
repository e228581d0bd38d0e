//! The texts that are read together, and the mistakes in them.

use std::ops::Range;
use std::sync::Arc;

use fairgate_config::FileError;
use fairgate_config::language::Problems;
use miette::NamedSource;

/// A text with the name by which messages call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The name of the file, as it was given.
    pub name: String,
    /// What is in it.
    pub content: String,
}

/// A range of bytes in one of the texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextRange {
    pub(crate) text: usize,
    pub(crate) span: Range<usize>,
}

/// A mistake in a text: what is wrong, the rule in a few words, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) label: &'static str,
    pub(crate) help: String,
}

impl Mistake {
    pub(crate) fn new(
        span: Range<usize>,
        message: impl Into<String>,
        label: &'static str,
        help: impl Into<String>,
    ) -> Mistake {
        Mistake {
            span,
            message: message.into(),
            label,
            help: help.into(),
        }
    }
}

/// Texts that belong together, each with its mistakes.
#[derive(Debug)]
pub(crate) struct Texts {
    problems: Vec<Problems>,
    /// How many mistakes there are in all texts.
    count: usize,
}

impl Texts {
    pub(crate) fn new(texts: &[Text]) -> Texts {
        let problems = texts.iter().map(|text| {
            let source = NamedSource::new(&text.name, text.content.clone());
            Problems::new(Arc::new(source))
        });
        Texts {
            problems: problems.collect(),
            count: 0,
        }
    }

    /// Returns the source of a text, for errors that are found later.
    pub(crate) fn source(&self, text: usize) -> Option<Arc<NamedSource<String>>> {
        Some(Arc::clone(self.problems.get(text)?.source()))
    }

    pub(crate) fn report(&mut self, text: usize, mistake: Mistake) {
        let Mistake {
            span,
            message,
            label,
            help,
        } = mistake;
        self.problems[text].add(span, message, label, help);
        self.count += 1;
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns file and line of a place.
    pub(crate) fn line_of(&self, place: &TextRange) -> String {
        let source = self.problems[place.text].source();
        let text = source.inner();
        let before = &text.as_bytes()[..place.span.start.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{}:{line}", source.name())
    }

    /// Returns `value` if there is no mistake.
    pub(crate) fn unless_any<T>(self, value: T) -> Result<T, FileError> {
        let mut problems = self.problems.into_iter();
        let Some(mut first) = problems.next() else {
            return Ok(value);
        };
        problems.for_each(|others| first.add_all(others));
        first.unless_any(value)
    }
}
