//! The location of the recorded traces.

use std::path::{Path, PathBuf};

/// Returns the folder of the traces recorded from Linux 6.1. It is part of the repository, so no test may
/// pass without it.
pub(crate) fn kernel_traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/kernel-traces")
}
