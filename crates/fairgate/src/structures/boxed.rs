//! Arrays on the heap that are never on the stack: a kernel's stack has 16 KiB.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Builds an array of the first `N` items.
///
/// # Panics
/// If there are fewer.
pub(crate) fn boxed<T, const N: usize>(items: impl IntoIterator<Item = T>) -> Box<[T; N]> {
    let items: Vec<T> = items.into_iter().take(N).collect();
    match items.into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => panic!("an array of {N} needs as many items"),
    }
}
