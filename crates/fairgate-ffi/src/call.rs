//! The border between C and Rust.
//!
//! A panic is a bug of ours. It must not unwind into C, where that is undefined. [`or`] stops it and returns
//! the value that says so.

use std::ffi::{CStr, CString, c_char};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use fairgate_config::FileError;

/// Runs `work`. If it panics, returns `broken`.
#[inline]
pub(crate) fn or<R>(broken: R, work: impl FnOnce() -> R) -> R {
    // What the panic left half done is not used again: nodes and pools are marked as broken.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(broken)
}

/// Runs `work`, which creates something, and returns it on the heap. On an error it returns NULL and the
/// text.
///
/// # Safety
/// `error` must be NULL, or valid for a write.
pub(crate) unsafe fn create<T>(error: *mut *mut c_char, work: impl FnOnce() -> Result<T, String>) -> *mut T {
    let made = or(Err(BUG.to_owned()), work);
    let (made, text) = match made {
        Ok(made) => (Box::into_raw(Box::new(made)), ptr::null_mut()),
        Err(message) => (ptr::null_mut(), to_c(message)),
    };
    // SAFETY: as the caller promises.
    unsafe { give(error, text) };
    made
}

/// Stores the text of an error, or NULL, in `error`, or frees it if nobody wants it.
///
/// # Safety
/// `error` must be NULL, or valid for a write. `text` must be from `to_c`, or NULL.
pub(crate) unsafe fn give(error: *mut *mut c_char, text: *mut c_char) {
    if error.is_null() {
        // SAFETY: `text` is from `to_c`.
        unsafe { crate::fairgate_string_free(text) };
    } else {
        // SAFETY: the caller promises that it is valid for a write.
        unsafe { error.write(text) };
    }
}

/// The text of a panic.
pub(crate) const BUG: &str = "this is a bug in Fairgate; the message is on standard error";

/// Returns a text for C.
pub(crate) fn to_c(mut text: String) -> *mut c_char {
    // No text of ours has a zero byte, except where it quotes one.
    text.retain(|character| character != '\0');
    CString::new(text).unwrap_or_default().into_raw()
}

/// Reads a text of C. Returns an error if it is NULL, or not UTF-8.
///
/// # Safety
/// `text` must be NULL, or end with a zero byte, and stay unchanged while the result is used.
pub(crate) unsafe fn text<'t>(text: *const c_char, what: &str) -> Result<&'t str, String> {
    if text.is_null() {
        return Err(format!("{what} is NULL; pass a text"));
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { CStr::from_ptr(text) };
    bytes
        .to_str()
        .map_err(|error| format!("{what} is not UTF-8 ({error}); convert it"))
}

/// Returns all mistakes, a line for each: place, rule and remedy.
pub(crate) fn mistakes(error: &FileError) -> String {
    let mut lines = String::new();
    for problem in error.problems() {
        let (line, column) = problem.position();
        let file = problem.file();
        let separator = if lines.is_empty() { "" } else { "\n" };
        // Writing to a string can't fail.
        let _ = write!(
            lines,
            "{separator}{file}:{line}:{column}: {}; {}",
            problem.message, problem.help
        );
    }
    if error.more() > 0 {
        let _ = write!(lines, "\nand {} more", error.more());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_at_the_border() {
        assert_eq!(or(-1, || panic!("expected in this test")), -1);
    }

    #[test]
    fn a_text_with_a_zero_byte_is_kept_without_it() {
        let text = to_c("a\0b".to_owned());
        // SAFETY: the text is from `to_c`, is read before it is freed, and is freed once.
        unsafe {
            assert_eq!(CStr::from_ptr(text).to_bytes(), b"ab");
            crate::fairgate_string_free(text);
        }
    }
}
