//! Lists of subscribers: our own files and LibreQoS' ones.

use fairgate_config::{Document, Registry};
use fairgate_run::subscribers::{Settings, Subscribers, Text};

/// The sections around a list of our own files, and around LibreQoS' two.
const SECTIONS: [&str; 2] = [
    "file = \"list\"",
    "libreqos = { devices = \"ShapedDevices.csv\", network = \"network.json\" }",
];

/// Reads a list, and then a list of what was read. Returns whether the list is valid.
///
/// The first byte chooses the kind of files and the shaper. Lines of three dashes divide the files. The first
/// line of our own ones is their name.
///
/// # Panics
/// Panics if a mistake has no place and no remedy, or if what was read is not read again as the same list.
pub fn subscribers(bytes: &[u8]) -> bool {
    let Some((&kind, rest)) = bytes.split_first() else {
        return false;
    };
    let Ok(content) = std::str::from_utf8(rest) else {
        return false;
    };
    let is_own = kind % 2 == 0;
    let shaper = ["htb", "hfsc", "cake"][usize::from(kind / 2) % 3];
    let parts: Vec<&str> = content.split("\n---\n").collect();
    let texts: Vec<Text> = match (is_own, parts.as_slice()) {
        (true, parts) => parts.iter().take(4).filter_map(|part| own(part)).collect(),
        (false, [devices, network]) => {
            vec![text("ShapedDevices.csv", devices), text("network.json", network)]
        }
        (false, _) => return false,
    };
    let registry = Registry::builtin();
    let settings = |source: &str| {
        let file = format!(
            "[subscribers]\n{source}\nshaper = \"{shaper}\"\ndown = \"1gbit\"\nup = \"500mbit\"\n\
             [plans.home]\ndown = \"100mbit\"\nup = \"20mbit\"\n"
        );
        let document = Document::parse("fuzz.toml", &file).expect("valid TOML");
        let settings = Settings::read(&document, &registry).expect("valid sections");
        settings.expect("the section is there")
    };
    let read = match Subscribers::read(settings(SECTIONS[usize::from(!is_own)]), &texts, None, &registry) {
        Ok(read) => read,
        Err(error) => {
            assert!(!error.problems().is_empty(), "{error:?}");
            for problem in error.problems() {
                assert!(
                    !problem.message.is_empty() && !problem.help.is_empty(),
                    "{problem:?}"
                );
            }
            return false;
        }
    };
    for tree in read.trees() {
        tree.build(1).expect("the tree of a list was checked");
    }
    if !is_own {
        // A change is read again as it was asked for, or refused.
        if let Some(node) = read.list().nodes.first() {
            let _ = read.with_node(&node.name, [Some(20_000), Some(30_500_000)], &registry);
        }
        if let Some(mut entry) = read.entries().into_iter().next() {
            entry.prefixes.pop();
            entry.prefixes.push("203.0.113.77".to_owned());
            let _ = read.with(vec![(entry.id.clone(), Some(entry))], &registry);
        }
        return true;
    }
    // What the API shows of the list is a list.
    let entries = read.entries();
    let empty = Subscribers::read(settings(""), &[], None, &registry).expect("an empty list");
    let again = empty
        .with_all(entries.clone(), None, &registry)
        .expect("what was read is valid");
    assert_eq!(again.list.entries(), entries);
    true
}

/// Returns a file of our own: its name is in the first line.
fn own(part: &str) -> Option<Text> {
    let (name, content) = part.split_once('\n')?;
    Some(text(name, content))
}

fn text(name: &str, content: &str) -> Text {
    Text {
        name: name.to_owned(),
        content: content.to_owned(),
    }
}
