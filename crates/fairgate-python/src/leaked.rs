//! Texts that stay until the process ends.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Returns a text that is never freed. Equal texts are stored once.
pub(crate) fn leaked(text: &str) -> &'static str {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = texts.get(text) {
        return known;
    }
    let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
    texts.insert(text);
    text
}
