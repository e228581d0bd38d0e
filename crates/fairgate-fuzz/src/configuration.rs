//! Checks configuration files and command lines with [`fairgate_config`].

use fairgate_config::units::{
    format_duration, format_rate, format_size, parse_duration, parse_rate, parse_size,
};
use fairgate_config::{Document, FileError, Spec};

/// The bytes are the text of a file. Each line is also the text of a discipline on the command line, and of a
/// quantity.
pub fn configuration(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Document::parse("queues.toml", text) {
        Ok(document) => document.queues().for_each(|(_, spec)| check_spec(spec)),
        Err(error) => check_error(&error, text),
    }
    for line in text.lines() {
        match Spec::inline(line) {
            Ok(spec) => check_spec(&spec),
            Err(error) => check_error(&error, line),
        }
        check_quantities(line);
    }
}

/// Checks that a valid specification can be built.
pub(crate) fn check_spec(spec: &Spec) {
    let tree = spec.build(1).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(tree.backlog().packets, 0);
}

/// Checks that every error says what is wrong and what to do, and that its location is within the text.
pub(crate) fn check_error(error: &FileError, text: &str) {
    assert!(!error.problems().is_empty() && !error.to_string().is_empty());
    for problem in error.problems() {
        let span = problem.span.clone();
        assert!(
            text.get(span.clone()).is_some(),
            "{:?} is located at {span:?} of {text:?}",
            problem.message
        );
        assert!(!problem.message.is_empty() && !problem.help.is_empty());
        let (line, column) = problem.position();
        assert!(line >= 1 && column >= 1);
    }
}

/// Checks that a quantity is the same after it is formatted and parsed again.
fn check_quantities(text: &str) {
    if let Ok(rate) = parse_rate(text) {
        assert_eq!(parse_rate(&format_rate(rate)), Ok(rate));
    }
    if let Ok(size) = parse_size(text) {
        assert_eq!(parse_size(&format_size(size)), Ok(size));
    }
    if let Ok(duration) = parse_duration(text) {
        assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
    }
}
