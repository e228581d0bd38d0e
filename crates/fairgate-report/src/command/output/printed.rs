//! What a command prints, if it runs within another program: see [`embedded`](crate::command::embedded).

use std::cell::RefCell;

thread_local! {
    /// What the command on this thread has printed, if it runs within another program.
    static PRINTED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs a command and keeps what it prints on this thread.
pub(crate) fn kept<T>(command: impl FnOnce() -> T) -> (T, String) {
    PRINTED.set(Some(String::new()));
    let result = command();
    (result, PRINTED.take().unwrap_or_default())
}

/// Whether this thread runs a command within another program. Its own program is then not `fairgate`.
pub fn is_kept() -> bool {
    PRINTED.with_borrow(Option::is_some)
}

/// Takes text that a command prints, if it runs within another program.
pub(super) fn takes(text: &str) -> bool {
    PRINTED.with_borrow_mut(|printed| match printed {
        Some(printed) => {
            printed.push_str(text);
            true
        }
        None => false,
    })
}
