//! The program's commands within another program: arguments in, one JSON document out.
//!
//! Python's `compare`, `theory`, `bounds` and `reproduce` are the commands of these names. So there is one
//! implementation, and its documents are those of `docs/json.md`.

use std::cell::RefCell;

use clap::Parser;
use fairgate_config::Registry;

use crate::Cli;
use crate::exit;
use crate::output::Format;

/// The answer of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The exit code that the program would have: 0 yes, 1 no, 2 invalid input, 3 the system refused, 4 a
    /// bug.
    pub code: u8,
    /// The JSON document: the result, or with the codes 2 to 4 the error.
    pub document: String,
    /// The error as people see it, without colours. Empty if there is none.
    pub message: String,
}

thread_local! {
    /// What the command on this thread has printed, if it runs within another program.
    static PRINTED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs a command with `--json`. `arguments` are those behind the program's name. Nothing is printed. The
/// command's own files are written.
pub fn answer_with<S: AsRef<str>>(registry: &Registry, arguments: &[S]) -> Answer {
    let words = ["fairgate", "--json"].into_iter();
    let words = words.chain(arguments.iter().map(AsRef::as_ref));
    PRINTED.set(Some(String::new()));
    let result = match Cli::try_parse_from(words) {
        Ok(cli) => cli.command.run(registry, Format::Json),
        Err(error) => Err(exit::usage_failure(&error)),
    };
    let (code, error) = exit::judged(result);
    let printed = PRINTED.take().unwrap_or_default();
    match error {
        None => Answer {
            code,
            document: printed,
            message: String::new(),
        },
        Some(report) => Answer {
            code,
            document: exit::error_document(&report),
            message: exit::shown(&report, false),
        },
    }
}

/// Whether this thread runs a command within another program. Its own program is then not `fairgate`.
#[cfg(any(feature = "experiments", test))]
pub(crate) fn is_active() -> bool {
    PRINTED.with_borrow(Option::is_some)
}

/// Takes text that a command prints, if it runs within another program.
pub(crate) fn takes(text: &str) -> bool {
    PRINTED.with_borrow_mut(|printed| match printed {
        Some(printed) => {
            printed.push_str(text);
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(arguments: &[&str]) -> Answer {
        answer_with(&Registry::builtin(), arguments)
    }

    #[test]
    fn a_command_returns_its_document() {
        let answer = answer(&["list", "fifo"]);
        assert_eq!((answer.code, answer.message.as_str()), (0, ""));
        let document: serde_json::Value = serde_json::from_str(&answer.document).unwrap();
        assert_eq!(document["schema"], "fairgate.list/1");
        assert_eq!(document["disciplines"][0]["name"], "fifo");
        assert!(!is_active());
    }

    #[test]
    fn an_error_is_a_document_and_a_message() {
        for arguments in [&["list", "fifoo"][..], &["lits"], &["check", "no such file"]] {
            let answer = answer(arguments);
            assert_eq!(answer.code, 2, "{arguments:?}");
            let document: serde_json::Value = serde_json::from_str(&answer.document).unwrap();
            assert_eq!(document["schema"], "fairgate.error/1");
            let message = document["errors"][0]["message"].as_str().unwrap();
            let first = message.split([':', '\n']).next().unwrap();
            assert!(answer.message.contains(first), "{answer:?}");
        }
    }
}
