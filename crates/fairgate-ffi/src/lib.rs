//! A C ABI for trees of disciplines.
//!
//! ```text
//!   tree        a checked description: from one line, TOML, or a script of tc
//!   pool        the packets of all nodes that share it
//!   node        a running tree: enqueue, dequeue, peek, watchdog, flush, change
//!   packet      what is passed by value: packets, departures, dropped packets
//!   copies      packets that a discipline duplicates
//!   frame       writes into frames what a tree decided: CE marks, DSCP
//!   statistics  counters of every node of a tree, and state variables
//!   call        what all functions do at the border: panics stop here, and errors become texts
//! ```
//!
//! `include/fairgate.h` is made from these files by cbindgen; `include/fairgate.hpp` is a wrapper for C++.
//! `docs/c.md` explains how to use both.
//!
//! This crate needs `unsafe`, because it reads and writes through pointers of its callers. Every function
//! states what it needs of them. Nothing else is unsafe here: all work is done by the safe library.

mod call;
mod copies;
mod frame;
mod node;
mod packet;
mod pool;
mod statistics;
mod tree;

pub use copies::*;
pub use frame::*;
pub use node::*;
pub use packet::*;
pub use pool::*;
pub use statistics::*;
pub use tree::*;

use std::ffi::{CString, c_char};

/// The version of this interface. It changes when a program must be compiled again. A program can compare it
/// with `fairgate_abi_version()` of the library that it found.
pub const FAIRGATE_ABI_VERSION: u32 = 1;

/// "Never", as the result of `fairgate_node_watchdog` and as `wait_until`.
pub const FAIRGATE_NEVER: u64 = u64::MAX;

/// Returns the version of the interface of this library.
#[unsafe(no_mangle)]
pub extern "C" fn fairgate_abi_version() -> u32 {
    FAIRGATE_ABI_VERSION
}

/// Returns the version of Fairgate, like "0.1.0". It is valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn fairgate_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Frees a text that a function returned. NULL is allowed.
///
/// # Safety
/// `text` must be from a function of this library, and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_string_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the caller promises that the text is from `CString::into_raw` of this library.
        drop(unsafe { CString::from_raw(text) });
    }
}
