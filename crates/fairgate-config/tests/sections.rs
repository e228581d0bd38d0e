//! What the crates that run and simulate do with a document.

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
fn a_section_keeps_its_places() {
    let document = Document::parse("home.toml", TEXT).unwrap();
    assert_eq!(document.sections().collect::<Vec<_>>(), ["run"]);
    assert!(document.section::<Run>("simulate").unwrap().is_none());
    let run = document.section::<Run>("run").unwrap().unwrap();
    assert_eq!(&TEXT[run.queue.span()], "\"wam\"");
    assert_eq!(run.seed, 0);
}

#[test]
fn a_dangling_queue_is_reported_at_its_place() {
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
fn a_mistake_in_a_section_is_reported_at_its_place() {
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
fn errors_of_ones_own_point_into_the_file() {
    let document = Document::parse("home.toml", TEXT).unwrap();
    let error = document.error(0..11, "this line is too long", "make it shorter");
    assert_eq!(error.file(), "home.toml");
    assert_eq!(error.problems()[0].position(), (1, 1));
}
