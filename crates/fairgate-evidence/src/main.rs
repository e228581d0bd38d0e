//! The program `fairgate-lab`.

use std::process::ExitCode;

/// As in `fairgate`: what is measured here is what runs there.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    fairgate_evidence::main()
}
