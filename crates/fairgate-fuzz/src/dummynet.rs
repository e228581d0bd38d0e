//! Checks dummynet scripts with [`fairgate_scripts::dummynet`].

use fairgate_scripts::dummynet::Script;
use fairgate_scripts::tc::Device;

use crate::configuration::check_error;
use crate::script::check_printed;

/// The bytes are the text of a script.
pub fn dummynet(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let trees = Script::parse("script", text, Device::default()).and_then(|script| script.trees());
    let trees = match trees {
        Ok(trees) => trees,
        Err(error) => return check_error(&error, text),
    };
    assert!(!trees.is_empty(), "a script without a tree must be an error");
    for tree in &trees {
        check_printed(&tree.name(), &tree.spec);
    }
}
