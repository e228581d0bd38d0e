//! Checks what tc prints of a live machine with [`fairgate_scripts::tc::import`].

use fairgate_scripts::tc::{Device, Printed, Script, import};

use crate::configuration::check_error;
use crate::script::check_printed;

/// The bytes are a listing of tc: text, or JSON.
pub fn listing(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let printed = Printed {
        device: "eth0",
        parent: "",
        text,
    };
    let commands = match import(&[printed]) {
        Ok(commands) => commands,
        Err(error) => {
            assert!(
                error.line >= 1 && error.line <= text.lines().count().max(1),
                "{error}"
            );
            assert!(!error.message.is_empty() && !error.help.is_empty(), "{error}");
            return;
        }
    };
    // One command is one line: no text of a listing can add another one.
    assert!(commands.iter().all(|imported| !imported.command.contains('\n')));
    let script: String = commands
        .into_iter()
        .map(|imported| imported.command + "\n")
        .collect();
    match Script::translate_all("import", &script, Device::default()) {
        Ok(trees) => trees
            .iter()
            .for_each(|tree| check_printed(&tree.name, &tree.spec)),
        Err(error) => check_error(&error, &script),
    }
}
