//! The program `fairgate-lab`.

use std::process::ExitCode;

/// As in `fairgate`: what is measured here is what runs there.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    fairgate_evidence::main()
}
