//! The program `fairgate` with the disciplines of the library.

use std::process::ExitCode;

/// The state of thousands of flows fits in no cache. jemalloc keeps it close together and in large pages.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The settings that jemalloc reads when it starts: ask Linux for large pages. The environment variable
/// `_RJEM_MALLOC_CONF` overrides them.
// SAFETY: jemalloc declares this symbol as a pointer to a C string. The first word of a slice is a pointer to
// its bytes, which end with a zero and live as long as the program.
#[cfg(feature = "jemalloc")]
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static MALLOC_CONF: &[u8] = b"thp:always,metadata_thp:always\0";

fn main() -> ExitCode {
    fairgate_cli::main_with(&fairgate_config::Registry::builtin())
}
