//! Checks tc scripts with [`fairgate_scripts::tc`].

use fairgate_config::{Document, Spec};
use fairgate_scripts::tc::{Device, Script};

use crate::configuration::{check_error, check_spec};

/// The bytes are the text of a script.
pub fn script(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let scripts = match Script::parse_all("script", text, Device::default()) {
        Ok(scripts) => scripts,
        Err(error) => return check_error(&error, text),
    };
    assert!(!scripts.is_empty(), "a script without a tree must be an error");
    for script in &scripts {
        let spec = match script.spec() {
            Ok(spec) => spec,
            Err(error) => {
                check_error(&error, text);
                continue;
            }
        };
        check_printed(script.device_name(), &spec);
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
