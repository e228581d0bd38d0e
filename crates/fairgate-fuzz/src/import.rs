//! What UISP and Splynx answer to `fairgate subscribers import`.

use fairgate_config::{Document, Registry};
use fairgate_run::import::{Answers, Program, Wishes, read};
use fairgate_run::subscribers::{Settings, Subscribers, Text};

/// What the parts of an input answer, in this order.
const UISP: [&str; 3] = ["sites", "devices", "links"];
const SPLYNX: [&str; 8] = [
    "tariffs",
    "customers",
    "services",
    "sessions",
    "devices",
    "sites",
    "routers",
    "sectors",
];

/// Makes a list of answers. The first byte says of which program, and whether the last part is `network.json`
/// as it was before. Lines of three dashes divide the parts. Returns whether a list was made.
///
/// # Panics
/// Panics if the files that were made are not the same again, or no valid list of as many subscribers.
pub fn import(bytes: &[u8]) -> bool {
    let Some((&kind, rest)) = bytes.split_first() else {
        return false;
    };
    let (program, names) = match kind % 2 {
        0 => (Program::Uisp, &UISP[..]),
        _ => (Program::Splynx, &SPLYNX[..]),
    };
    let mut parts: Vec<Vec<u8>> = vec![Vec::new()];
    for line in rest.split_inclusive(|byte| *byte == b'\n') {
        match line {
            b"---\n" => parts.push(Vec::new()),
            line => parts.last_mut().expect("there is one").extend_from_slice(line),
        }
    }
    let network = (kind / 2 % 2 == 1).then(|| parts.pop()).flatten();
    let network = network.map(|network| String::from_utf8_lossy(&network).into_owned());
    let answers: Answers = names
        .iter()
        .zip(parts)
        .map(|(name, part)| (*name, vec![part]))
        .collect();
    let wishes = Wishes {
        suspended: (kind / 4 % 2 == 1).then_some(256_000),
        ..Wishes::default()
    };
    let Ok(imported) = read(program, &answers, &wishes, network.as_deref()) else {
        return false;
    };
    let again = read(program, &answers, &wishes, Some(&imported.network_text)).expect("it was read before");
    assert_eq!(again.devices_text, imported.devices_text);
    assert_eq!(again.network_text, imported.network_text);
    let registry = Registry::builtin();
    let file =
        "[subscribers]\nlibreqos = { devices = \"d\", network = \"n\" }\ndown = \"1gbit\"\nup = \"1gbit\"\n";
    let document = Document::parse("fuzz.toml", file).expect("valid TOML");
    let settings = Settings::read(&document, &registry).expect("valid sections");
    let text = |name: &str, content: &str| Text {
        name: name.to_owned(),
        content: content.to_owned(),
    };
    let texts = [
        text("d", &imported.devices_text),
        text("n", &imported.network_text),
    ];
    let settings = settings.expect("the section is there");
    let list = Subscribers::read(settings, &texts, None, &registry).expect("a valid list");
    assert_eq!(list.list().subscribers.len(), imported.subscribers);
    // Nodes that are virtual are none of the list.
    assert!(list.list().nodes.len() <= imported.nodes);
    true
}
