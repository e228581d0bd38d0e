//! The examples in the documentation are valid, and its tables are what the code has.

use fairgate_config::{Document, Registry};

const CONFIGURATION: &str = include_str!("../../../../docs/configuration.md");

/// Returns the blocks of TOML in a text, without their indentation.
fn blocks(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(indent) = line.find("```toml") else {
            continue;
        };
        let block = lines.by_ref().take_while(|line| line.trim() != "```");
        found.push(
            block
                .map(|line| line.get(indent..).unwrap_or(""))
                .collect::<Vec<_>>()
                .join("\n"),
        );
    }
    found
}

#[test]
fn the_complete_examples_are_valid() {
    // Other blocks show only a part of a tree.
    let is_whole = |block: &String| block.lines().any(|line| line.starts_with("[queue."));
    let whole: Vec<String> = blocks(CONFIGURATION).into_iter().filter(is_whole).collect();
    assert!(whole.len() >= 4, "{whole:?}");
    for block in whole {
        let document = Document::parse("configuration.md", &block);
        assert!(document.is_ok(), "{document:?} of\n{block}");
    }
}

#[test]
fn every_discipline_is_named_once() {
    const DISCIPLINES: &str = include_str!("../../../../docs/disciplines.md");
    let rows = DISCIPLINES
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    // The head of the table has no name in the first column.
    let names = rows.map(|(name, _)| name).filter(|name| !name.starts_with('|'));
    let mut named: Vec<&str> = names.collect();
    named.sort_unstable();
    let mut known: Vec<&str> = Registry::builtin()
        .iter()
        .map(|entry| entry.about().name)
        .collect();
    known.sort_unstable();
    // A discipline with and without classes has two entries.
    known.dedup();
    assert_eq!(named, known);
    const README: &str = include_str!("../../../../README.md");
    for count in ["implements {} of them", "[All {}, "] {
        let count = count.replace("{}", &known.len().to_string());
        assert!(README.contains(&count), "{count}");
    }
}
