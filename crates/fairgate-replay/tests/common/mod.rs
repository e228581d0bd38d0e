//! Where the recorded traces are.

use std::path::{Path, PathBuf};

/// The traces recorded from Linux 6.1. They are part of the repository, so no test may pass without them.
pub(crate) fn kernel_traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/kernel-traces")
}
