//! How the crates that run and simulate read a document's sections.

use fairgate_config::Document;
use serde::Deserialize;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    queue: Spanned<String>,
    #[serde(default)]
    seed: u64,
}

const TEXT: &str = "\
[queue.wan]
discipline = \"fifo\"

[run]
queue = \"wam\"
";

#[test]
fn a_section_keeps_its_locations() {
    let document = Document::parse("home.toml", TEXT).unwrap();
    assert_eq!(document.sections().collect::<Vec<_>>(), ["run"]);
    assert!(document.section::<Run>("simulate").unwrap().is_none());
    let run = document.section::<Run>("run").unwrap().unwrap();
    assert_eq!(&TEXT[run.queue.span()], "\"wam\"");
    assert_eq!(run.seed, 0);
}

/// A program that has no sections of its own leaves them to others, but no tree gets lost.
#[test]
fn sections_of_others_are_left_to_them() {
    assert!(Document::parse("home.toml", "[anything]\nelse = 1\n").is_ok());
    assert!(Document::parse("home.toml", "[queeu.wan]\ndiscipline = \"fifo\"\n").is_err());
    assert!(Document::parse("home.toml", "anything = 1\n").is_err());
}

#[test]
fn a_reference_to_a_missing_queue_is_reported_at_its_location() {
    let document = Document::parse("home.toml", TEXT).unwrap();
    let run = document.section::<Run>("run").unwrap().unwrap();
    let error = document.resolve(&run.queue).unwrap_err();
    assert_eq!(error.to_string(), "there is no queue `wam`");
    let problem = &error.problems()[0];
    assert_eq!(
        (problem.position(), &TEXT[problem.span.clone()]),
        ((5, 9), "\"wam\"")
    );
    assert!(
        problem.help.starts_with("did you mean `wan`?"),
        "{}",
        problem.help
    );
}

#[test]
fn a_mistake_in_a_section_is_reported_at_its_location() {
    let text = "[run]\nqueue = \"wan\"\nsede = 5\n";
    let document = Document::parse("home.toml", text).unwrap();
    let error = document.section::<Run>("run").unwrap_err();
    let problem = &error.problems()[0];
    assert_eq!(&text[problem.span.clone()], "sede");
    assert!(
        problem.help.starts_with("did you mean `seed`?"),
        "{}",
        problem.help
    );

    let text = "[run]\nqueue = \"wan\"\nseed = \"five\"\n";
    let document = Document::parse("home.toml", text).unwrap();
    let error = document.section::<Run>("run").unwrap_err();
    assert_eq!(&text[error.problems()[0].span.clone()], "\"five\"");
}

#[test]
fn an_error_of_the_caller_points_into_the_file() {
    let document = Document::parse("home.toml", TEXT).unwrap();
    let error = document.error(0..11, "this line is too long", "make it shorter");
    assert_eq!(error.file(), "home.toml");
    assert_eq!(error.problems()[0].position(), (1, 1));
}

/// The message names the key, its value and the rule, like the messages about parameters.
#[test]
fn a_wrong_value_is_reported_with_its_key_and_the_rule() {
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Simulate {
        count: Option<u32>,
        seed: Option<u64>,
        name: Option<String>,
        list: Option<Vec<u32>>,
        inner: Option<Inner>,
        on: Option<bool>,
    }
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Inner {
        dscp: u8,
    }
    for (line, location, message) in [
        (
            "count = 99999999999",
            "99999999999",
            "`count` is 99999999999, but must be a whole number from 0 to 4294967295",
        ),
        (
            "count = -1",
            "-1",
            "`count` is -1, but must be a whole number from 0 to 4294967295",
        ),
        (
            "count = 1e3",
            "1e3",
            "`count` is 1000.0, but must be a whole number from 0 to 4294967295",
        ),
        (
            "count = '5'",
            "'5'",
            "`count` is \"5\", but must be a whole number from 0 to 4294967295",
        ),
        (
            "seed = 18446744073709551616",
            "18446744073709551616",
            "`seed` is 18446744073709551616, but must be a whole number from 0 to 18446744073709551615",
        ),
        ("name = 5", "5", "`name` is 5, but must be text"),
        ("name = [5]", "[5]", "`name` is a list, but must be text"),
        ("list = 5", "5", "`list` is 5, but must be a list"),
        (
            "inner = { dscp = 300 }",
            "300",
            "`dscp` is 300, but must be a whole number from 0 to 255",
        ),
        ("inner = 300", "300", "`inner` is 300, but must be a table"),
        ("inner = {}", "{}", "`dscp` is missing"),
        (
            "on = 'true'",
            "'true'",
            "`on` is \"true\", but must be true or false",
        ),
    ] {
        let text = format!("[simulate]\n{line}\n");
        let document = Document::parse("home.toml", &text).unwrap();
        let error = document.section::<Simulate>("simulate").unwrap_err();
        let problem = &error.problems()[0];
        assert_eq!(
            (problem.message.as_str(), &text[problem.span.clone()]),
            (message, location)
        );
        assert!(!problem.help.contains("correct this value"), "{}", problem.help);
    }
}
