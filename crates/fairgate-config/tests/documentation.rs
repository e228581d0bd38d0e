//! What the documentation shows can be read.

use fairgate_config::Document;

const CONFIGURATION: &str = include_str!("../../../docs/configuration.md");

/// The blocks of TOML in a text, without the blanks that they are indented by.
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
fn the_examples_are_right() {
    let blocks = blocks(CONFIGURATION);
    assert!(blocks.len() >= 5, "{blocks:?}");
    for block in blocks {
        // One that shows a class alone is of a discipline that has no settings of its own.
        let text = match block.lines().any(|line| line.starts_with("[queue.")) {
            true => block,
            false => format!("[queue.office]\ndiscipline = \"drr\"\n{block}"),
        };
        let document = Document::parse("configuration.md", &text);
        assert!(document.is_ok(), "{document:?} of\n{text}");
    }
}
