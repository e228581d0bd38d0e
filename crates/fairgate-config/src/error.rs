//! Errors that point into a file.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, MietteError, NamedSource, SourceCode, SourceSpan, SpanContents};

use crate::excerpt::{self, shortened};

/// A mistake at a location: what is wrong, which rule it breaks, what to do.
#[derive(Clone, Debug)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// The range of bytes of the text that the mistake is in.
    pub span: Range<usize>,
    /// The rule in a few words. It is written below the location.
    pub label: String,
    /// The remedy.
    pub help: String,
    source: Arc<NamedSource<String>>,
    /// The line that the text's line was made from, if it was made from another file.
    origin: Option<Origin>,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file's name, as it was given.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
}

impl Problem {
    pub(crate) fn new(
        source: &Arc<NamedSource<String>>,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) -> Problem {
        Problem {
            message: shortened(message.into()),
            span,
            label: shortened(label.into()),
            help: shortened(help.into()),
            source: Arc::clone(source),
            origin: None,
        }
    }

    /// Says where the lines of the text come from: for a line, counted from 1, `origin` returns the line that
    /// it was made from, if it is known. The location is then that line, with the text as it was read.
    #[must_use]
    pub fn located(mut self, origin: impl Fn(usize) -> Option<Origin>) -> Problem {
        self.origin = origin(self.position_in_text().0);
        self
    }

    /// Returns the name of the text that has the mistake.
    pub fn file(&self) -> &str {
        match &self.origin {
            Some(origin) => &origin.file,
            None => self.source.name(),
        }
    }

    /// Returns line and column of the location, both counted from 1; the column in characters.
    pub fn position(&self) -> (usize, usize) {
        let (line, column) = self.position_in_text();
        (self.origin.as_ref().map_or(line, |origin| origin.line), column)
    }

    /// Returns the number of the word in its line, counted from 1. Blanks are between words.
    pub fn word(&self) -> usize {
        let (_, line) = self.before();
        let words = line.split_whitespace().count();
        // The location is within a word, or begins one.
        let is_within = line.chars().next_back().is_some_and(|last| !last.is_whitespace());
        words + usize::from(!is_within)
    }

    fn position_in_text(&self) -> (usize, usize) {
        let (lines, line) = self.before();
        (lines + 1, line.chars().count() + 1)
    }

    /// Returns the number of lines before the location, and the part of its line before it.
    fn before(&self) -> (usize, &str) {
        let text = self.source.inner();
        let before = &text[..self.span.start.min(text.len())];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let lines = before.bytes().filter(|byte| *byte == b'\n').count();
        (lines, &before[line_start..])
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// The excerpt of the text around the location. Its length is limited.
impl SourceCode for Problem {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        match &self.origin {
            Some(origin) => Ok(excerpt::line(&self.source, span, &origin.file, origin.line)),
            None => excerpt::read(&self.source, span, before, after),
        }
    }
}

impl Diagnostic for Problem {
    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        Some(Box::new(&self.help))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let location = excerpt::underlined(self.source.inner(), &self.span);
        let label = LabeledSpan::new_with_span(Some(self.label.clone()), location);
        Some(Box::new(std::iter::once(label)))
    }
}

/// One or more mistakes in one file (or in one argument of the command line).
///
/// As a [`Diagnostic`] a single mistake is shown directly, several as a list.
#[derive(Clone, Debug)]
pub struct FileError {
    /// Not empty, sorted by location.
    problems: Vec<Problem>,
    /// The number of mistakes that were left out.
    more: usize,
    lines: Option<Lines>,
}

/// The lines of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// How many were read.
    pub read: usize,
    /// How many of these have a mistake.
    pub refused: usize,
}

/// Written like `12 lines were read, 3 of them refused`.
impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (noun, verb) = if self.read == 1 {
            ("line", "was")
        } else {
            ("lines", "were")
        };
        write!(
            f,
            "{} {noun} {verb} read, {} of them refused",
            self.read, self.refused
        )
    }
}

impl From<Problem> for FileError {
    fn from(problem: Problem) -> FileError {
        FileError {
            problems: vec![problem],
            more: 0,
            lines: None,
        }
    }
}

/// The largest number of mistakes that are reported for one file. To show a location, the text is scanned
/// from its beginning, so each one has a cost.
const MOST_PROBLEMS: usize = 50;

impl FileError {
    /// Returns an error if there are problems, all of one text. A problem that was found twice, because a
    /// tree is used twice, is reported once.
    ///
    /// # Errors
    /// If there are problems.
    pub fn unless_empty(mut problems: Vec<Problem>) -> Result<(), FileError> {
        problems.sort_by_key(|problem| problem.span.start);
        problems.dedup_by(|one, other| one.span == other.span && one.message == other.message);
        match problems.is_empty() {
            true => Ok(()),
            false => {
                let more = problems.len().saturating_sub(MOST_PROBLEMS);
                problems.truncate(MOST_PROBLEMS);
                Err(FileError {
                    problems,
                    more,
                    lines: None,
                })
            }
        }
    }

    /// Adds the mistakes of another text at the end.
    fn and(mut self, others: FileError) -> FileError {
        self.problems.extend(others.problems);
        let beyond = self.problems.len().saturating_sub(MOST_PROBLEMS);
        self.problems.truncate(MOST_PROBLEMS);
        self.more += others.more + beyond;
        self
    }

    /// Says where the lines of the text come from: [`Problem::located`] for each mistake.
    #[must_use]
    pub fn located(mut self, origin: impl Fn(usize) -> Option<Origin>) -> FileError {
        let located = |problem: Problem| problem.located(&origin);
        self.problems = self.problems.into_iter().map(located).collect();
        self
    }

    /// Returns the mistakes, sorted by location, those of other files last: at least one, at most 50. See
    /// [`more`](FileError::more).
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns the number of mistakes beyond the first 50.
    pub fn more(&self) -> usize {
        self.more
    }

    /// Returns how many lines of a script were read, and how many of them have mistakes. `None` for a text
    /// that is not read by lines.
    pub fn lines(&self) -> Option<Lines> {
        self.lines
    }

    /// The file's name, as it was given.
    pub fn file(&self) -> &str {
        self.problems[0].source.name()
    }

    fn single(&self) -> Option<&Problem> {
        match self.problems.as_slice() {
            [problem] => Some(problem),
            _ => None,
        }
    }
}

/// Writes the only mistake, or the number of mistakes if there are several. [`FileError::problems`] returns
/// each.
impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.single() {
            Some(problem) => fmt::Display::fmt(problem, f),
            None => {
                let (shown, file) = (self.problems.len(), self.file());
                write!(f, "{file} has {} errors", shown + self.more)?;
                match self.more {
                    0 => Ok(()),
                    _ => write!(f, "; the first {shown} are shown"),
                }
            }
        }
    }
}

impl std::error::Error for FileError {}

impl Diagnostic for FileError {
    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        self.single().and_then(Problem::help)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.single().and_then(Problem::source_code)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.single().and_then(Problem::labels)
    }

    fn related(&self) -> Option<Box<dyn Iterator<Item = &dyn Diagnostic> + '_>> {
        match self.single() {
            Some(_) => None,
            None => Some(Box::new(
                self.problems.iter().map(|problem| problem as &dyn Diagnostic),
            )),
        }
    }
}

/// Collects the mistakes of one text, so that all are reported at once.
#[derive(Debug)]
pub struct Problems {
    source: Arc<NamedSource<String>>,
    found: Vec<Problem>,
    /// Those of other texts, which this one names.
    of_others: Vec<Problem>,
}

impl Problems {
    /// Creates an empty collection for this text. Messages name the text by the name of its source.
    pub fn new(source: Arc<NamedSource<String>>) -> Problems {
        Problems {
            source,
            found: Vec::new(),
            of_others: Vec::new(),
        }
    }

    /// Adds a problem: its range of bytes, what is wrong, the rule in a few words, and the remedy.
    pub fn add(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        let problem = Problem::new(&self.source, span, message, label, help);
        self.found.push(problem);
    }

    /// Adds the problems of another text, which this text names. They keep their locations in it.
    pub fn add_all(&mut self, other: Problems) {
        self.of_others.extend(other.found);
        self.of_others.extend(other.of_others);
    }

    /// Takes the value of a result, or the problems of its error.
    pub fn of<T>(&mut self, result: Result<T, FileError>) -> Option<T> {
        let error = match result {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let is_own = |problem: &Problem| Arc::ptr_eq(&problem.source, &self.source);
        let (own, others): (Vec<Problem>, Vec<Problem>) = error.problems.into_iter().partition(is_own);
        self.found.extend(own);
        self.of_others.extend(others);
        None
    }

    /// Returns the text that the problems are in.
    pub fn source(&self) -> &Arc<NamedSource<String>> {
        &self.source
    }

    /// Returns the number of problems found so far.
    pub fn count(&self) -> usize {
        self.found.len() + self.of_others.len()
    }

    /// Calls parameters by the words of the author's language in the problems from number `first` on. For
    /// the location of a problem and a name, `word` returns the word.
    pub fn reworded<'w>(&mut self, first: usize, word: impl Fn(&Range<usize>, &str) -> Option<&'w str>) {
        for problem in &mut self.found[first..] {
            for text in [&mut problem.message, &mut problem.label, &mut problem.help] {
                *text = reworded(text, |name| word(&problem.span, name));
            }
        }
    }

    /// Returns `value` if no problem was found. An error also says how many of these lines, given by their
    /// locations, have mistakes.
    ///
    /// # Errors
    /// If a problem was found.
    pub fn unless_any_in<T>(self, lines: &[Range<usize>], value: T) -> Result<T, FileError> {
        let mut places: Vec<usize> = self.found.iter().map(|problem| problem.span.start).collect();
        places.sort_unstable();
        let has_mistake = |line: &&Range<usize>| {
            let first = places.partition_point(|place| *place < line.start);
            places.get(first).is_some_and(|place| *place <= line.end)
        };
        let lines = Lines {
            read: lines.len(),
            refused: lines.iter().filter(has_mistake).count(),
        };
        self.unless_any(value).map_err(|error| FileError {
            lines: Some(lines),
            ..error
        })
    }

    /// Returns `value` if no problem was found.
    ///
    /// # Errors
    /// If a problem was found.
    pub fn unless_any<T>(self, value: T) -> Result<T, FileError> {
        match (
            FileError::unless_empty(self.found),
            FileError::unless_empty(self.of_others),
        ) {
            (Ok(()), Ok(())) => Ok(value),
            (Err(own), Ok(())) => Err(own),
            (Ok(()), Err(others)) => Err(others),
            (Err(own), Err(others)) => Err(own.and(others)),
        }
    }

    /// Returns the problems as an error.
    ///
    /// # Panics
    /// If no problem was found.
    pub fn into_error(self) -> FileError {
        self.unless_any(()).expect_err("a problem was added")
    }
}

/// Returns the text with other words between grave accents, where there is one.
fn reworded<'w>(text: &str, word: impl Fn(&str) -> Option<&'w str>) -> String {
    let parts: Vec<&str> = text
        .split('`')
        .enumerate()
        .map(|(index, part)| match index % 2 {
            1 => word(part).unwrap_or(part),
            _ => part,
        })
        .collect();
    parts.join("`")
}
