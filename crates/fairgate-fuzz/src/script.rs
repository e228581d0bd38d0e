//! Checks tc scripts with [`fairgate_scripts::tc`].

use fairgate_config::{Document, Spec};
use fairgate_scripts::tc::{Device, Script};

use crate::configuration::{check_error, check_spec};

/// The bytes are the text of a script.
pub fn script(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let trees = match Script::translate_all("script", text, Device::default()) {
        Ok(trees) => trees,
        Err(error) => return check_error(&error, text),
    };
    assert!(!trees.is_empty(), "a script without a tree must be an error");
    for tree in &trees {
        check_printed(&tree.name, &tree.spec);
    }
    // The tree of one device alone.
    let one = Script::parse("script", text, Device::default()).and_then(|script| script.spec());
    if let Err(error) = one {
        check_error(&error, text);
    }
}

/// Checks that a tree is the same after it is printed and parsed again.
pub(crate) fn check_printed(name: &str, spec: &Spec) {
    check_spec(spec);
    let printed = spec.to_toml(name);
    let document =
        Document::parse("printed", &printed).unwrap_or_else(|error| panic!("{error:?} in\n{printed}"));
    assert_eq!(document.queue(name), Some(spec), "{printed}");
}
