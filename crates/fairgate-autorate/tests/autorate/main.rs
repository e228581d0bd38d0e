//! The documentation has the settings as the code has them.

use std::fs;
use std::path::Path;

use fairgate_autorate::{PARAMETERS, Settings};

#[test]
fn the_documentation_lists_the_settings() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/autorate.md");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut defaults = Settings::default();
    let expected: Vec<String> = PARAMETERS
        .iter()
        .map(|parameter| {
            let info = parameter.info(&mut defaults);
            let default = info.shown_default().expect("each setting has one");
            format!(
                "| `{}` | {default} | {} | {} |",
                info.name,
                info.allowed(),
                info.doc
            )
        })
        .collect();
    let begin = text
        .find("| setting | default | range | meaning |")
        .expect("it has the table");
    let rows: Vec<&str> = text[begin..]
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert_eq!(rows, expected, "write these rows:\n{}", expected.join("\n"));
}
