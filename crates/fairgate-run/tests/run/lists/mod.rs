//! Lists of subscribers: what is read and refused, and the trees that they give.

mod edits;
mod import;
mod libreqos;
mod own;
mod trees;
mod unchanged;

use fairgate_config::{Document, FileError, Registry};
use fairgate_run::subscribers::{Settings, Subscribers, Text};

/// A configuration with two plans. `more` are further lines of `[subscribers]`.
fn settings(more: &str) -> Settings {
    let text = format!(
        "[subscribers]\ndown = \"1gbit\"\nup = \"500mbit\"\n{more}\n\
         [plans.home]\ndown = \"100mbit\"\nup = \"20mbit\"\n\
         [plans.business]\ndown = \"200mbit\"\nup = \"200mbit\"\ndown_min = \"50mbit\"\nup_min = \"50mbit\"\n"
    );
    let document = Document::parse("isp.toml", &text).unwrap();
    let settings = Settings::read(&document, &Registry::builtin()).unwrap();
    settings.expect("the section is there")
}

fn text(name: &str, content: &str) -> Text {
    Text {
        name: name.to_owned(),
        content: content.to_owned(),
    }
}

/// Reads one file of our own format.
fn read(name: &str, content: &str, before: Option<&Subscribers>) -> Result<Subscribers, FileError> {
    read_with(
        settings(&format!("file = \"{name}\"")),
        &[text(name, content)],
        before,
    )
}

fn read_with(
    settings: Settings,
    texts: &[Text],
    before: Option<&Subscribers>,
) -> Result<Subscribers, FileError> {
    Subscribers::read(settings, texts, before, &Registry::builtin())
}

/// Returns the mistakes of a refused list: file, line, column, message.
fn mistakes(result: Result<Subscribers, FileError>) -> Vec<String> {
    let error = result.expect_err("the list has mistakes");
    let shown = error.problems().iter().map(|problem| {
        let (line, column) = problem.position();
        assert!(!problem.help.is_empty() && !problem.label.is_empty(), "{problem}");
        format!("{}:{line}:{column}: {}", problem.file(), problem.message)
    });
    shown.collect()
}
