//! Reads a tree from one line, for the command line: `tbf rate=20mbit burst=5kb / fq_codel target=5ms`.
//!
//! Classes follow their discipline in braces, separated by semicolons. A class is its number, its settings,
//! and then either `/` and the discipline in it or, in a tree of classes, further braces with the classes
//! below it: `htb { 1 rate=9mbit { 10 rate=6mbit / fifo; 20 rate=3mbit / fq_codel } }`.

use std::iter::Peekable;
use std::ops::Range;
use std::vec;

use toml::Spanned;

use super::draft::{Draft, SEE_LIST};
use super::given::Given;
use crate::error::Problems;
use crate::registry::PARENT;

/// The largest depth, the same as the TOML parser's. It bounds the recursion of code that visits a tree.
const DEEPEST: usize = 80;

/// Reads a line: a discipline and its settings, and after each `/` the discipline that it holds.
pub(crate) fn parse(text: &str, problems: &mut Problems) -> Option<Draft> {
    let mut line = Line::new(text, 0..text.len(), problems);
    let tree = line.tree()?;
    if let Some(rest) = line.tokens.next() {
        let help = "close only braces that were opened";
        line.mistake(rest, "the tree ended before this", "unexpected", help);
        return None;
    }
    Some(tree)
}

/// A class that a change of a tree names and that is not there.
pub(super) struct Missing {
    pub(super) at: Range<usize>,
    pub(super) message: String,
    pub(super) number: u32,
    /// What to do if there is none anywhere.
    pub(super) help: String,
}

/// The rest of a line.
pub(super) struct Line<'a> {
    pub(super) text: &'a str,
    /// The location of the line.
    whole: Range<usize>,
    tokens: Peekable<vec::IntoIter<Range<usize>>>,
    depth: usize,
    problems: &'a mut Problems,
    /// It is reported when the whole tree can be searched.
    pub(super) missing: Option<Missing>,
}

impl<'a> Line<'a> {
    /// Begins to read the line at this location of the text.
    pub(super) fn new(text: &'a str, whole: Range<usize>, problems: &'a mut Problems) -> Line<'a> {
        let words = tokens(&text[whole.clone()]).into_iter();
        let words: Vec<Range<usize>> = words
            .map(|word| word.start + whole.start..word.end + whole.start)
            .collect();
        Line {
            text,
            whole,
            tokens: words.into_iter().peekable(),
            depth: 0,
            problems,
            missing: None,
        }
    }

    /// Returns the location of the next word, or of the whole line at its end.
    pub(super) fn here(&mut self) -> Range<usize> {
        self.tokens.peek().cloned().unwrap_or(self.whole.clone())
    }

    /// Returns the next word without taking it.
    pub(super) fn next_text(&mut self) -> Option<&'a str> {
        self.tokens.peek().map(|word| &self.text[word.clone()])
    }

    /// Takes the next word, or reports that it is missing.
    pub(super) fn needed(&mut self, what: &str, help: &str) -> Option<Range<usize>> {
        let word = self.word();
        if word.is_none() {
            let here = self.here();
            self.mistake(here, format!("{what} is missing"), "missing here", help);
        }
        word
    }

    pub(super) fn mistake(
        &mut self,
        location: Range<usize>,
        message: impl Into<String>,
        label: &str,
        help: &str,
    ) {
        self.problems.add(location, message, label, help);
    }

    /// Takes the next word if it is not a slash, brace or semicolon.
    pub(super) fn word(&mut self) -> Option<Range<usize>> {
        let text = self.text;
        self.tokens
            .next_if(|token| !matches!(&text[token.clone()], "/" | "{" | "}" | ";"))
    }

    /// Takes the next word if it is `mark`.
    pub(super) fn mark(&mut self, mark: &str) -> Option<Range<usize>> {
        let text = self.text;
        self.tokens.next_if(|token| &text[token.clone()] == mark)
    }

    /// Reads a discipline, its settings and the disciplines that it holds.
    pub(super) fn tree(&mut self) -> Option<Draft> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let message = format!("the tree is more than {DEEPEST} disciplines deep");
            let help = format!("nest at most {DEEPEST} disciplines");
            self.mistake(self.whole.clone(), message, "too deep", &help);
            return None;
        }
        let Some(name) = self.word() else {
            let help = format!("write a discipline and its settings, like fq_codel target=5ms; {SEE_LIST}");
            let whole = self.whole.clone();
            self.mistake(whole, "no discipline is named", "a discipline is missing", &help);
            return None;
        };
        let mut draft = Draft {
            header: name.clone(),
            discipline: Some(Spanned::new(name.clone(), self.text[name].to_owned())),
            ..Draft::default()
        };
        self.settings(&mut draft)?;
        if let Some(brace) = self.mark("{") {
            self.classes(brace, None, &mut draft.classes)?;
        } else if self.mark("/").is_some() {
            draft.inner = Some(Box::new(self.tree()?));
        }
        self.depth -= 1;
        Some(draft)
    }

    pub(super) fn settings(&mut self, draft: &mut Draft) -> Option<()> {
        while let Some(word) = self.word() {
            let Some((key, value)) = self.text[word.clone()].split_once('=') else {
                let message = format!("`{}` is not a setting", &self.text[word.clone()]);
                let help = "write settings as name=value, without spaces around the sign";
                self.mistake(word, message, "expected name=value", help);
                return None;
            };
            let key_end = word.start + key.len();
            draft.settings.push((
                Spanned::new(word.start..key_end, key.to_owned()),
                Spanned::new(key_end + 1..word.end, Given::Word(value.to_owned())),
            ));
        }
        Some(())
    }

    /// Reads classes up to the closing brace. Each class gets the setting `parent` if `parent` is given.
    pub(super) fn classes(
        &mut self,
        opened: Range<usize>,
        parent: Option<&Range<usize>>,
        found: &mut Vec<Draft>,
    ) -> Option<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let help = format!("nest at most {DEEPEST} classes and disciplines");
            self.mistake(opened, "the classes are nested too deep", "too deep", &help);
            return None;
        }
        loop {
            let Some(id) = self.word() else {
                let location = self.tokens.peek().cloned().unwrap_or(opened);
                let help = "write a class as its number, its settings, a slash and the discipline in it: \
                            { 1 / fifo; 2 / codel }";
                self.mistake(
                    location,
                    "a class is missing here",
                    "a class's number is missing",
                    help,
                );
                return None;
            };
            let written = |name: &str, value: &Range<usize>| {
                let word = Given::Word(self.text[value.clone()].to_owned());
                (
                    Spanned::new(value.clone(), name.to_owned()),
                    Spanned::new(value.clone(), word),
                )
            };
            let mut class = Draft {
                header: id.clone(),
                settings: vec![written("id", &id)],
                ..Draft::default()
            };
            class
                .settings
                .extend(parent.map(|parent| written(PARENT, parent)));
            self.settings(&mut class)?;
            if self.mark("/").is_some() {
                class.inner = Some(Box::new(self.tree()?));
                found.push(class);
            } else if let Some(brace) = self.mark("{") {
                found.push(class);
                self.classes(brace, Some(&id), found)?;
            } else {
                found.push(class);
            }
            if self.mark("}").is_some() {
                self.depth -= 1;
                return Some(());
            }
            if self.mark(";").is_none() {
                let location = self.tokens.peek().cloned().unwrap_or(opened);
                let help = "put a semicolon between classes, and a closing brace after the last one";
                self.mistake(
                    location,
                    "these classes are not closed",
                    "expected `;` or `}`",
                    help,
                );
                return None;
            }
        }
    }
}

/// Returns the locations of the words in the text. A brace or a semicolon is a word even without spaces
/// around it.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, character) in text.char_indices() {
        let is_mark = matches!(character, '{' | '}' | ';');
        if is_mark || character.is_whitespace() {
            found.extend(start.take().map(|start| start..at));
            found.extend(is_mark.then_some(at..at + 1));
        } else {
            start.get_or_insert(at);
        }
    }
    found.extend(start.map(|start| start..text.len()));
    found
}
