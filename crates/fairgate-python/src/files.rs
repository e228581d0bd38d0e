//! Files that the package writes, opened by the rules of the program: what another user may have put at a
//! name as a trap is refused.

use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;
use std::path::PathBuf;

use fairgate_config::folder;
use pyo3::prelude::*;

/// Creates a file, or empties the one that is there. Returns its descriptor, which the caller closes.
#[pyfunction]
pub(crate) fn create(path: PathBuf) -> PyResult<i32> {
    descriptor(folder::create(&path))
}

/// Opens a file that processes lock, and leaves its content as it is. Its folder is made if it is missing.
/// Returns its descriptor, which the caller closes.
#[pyfunction]
pub(crate) fn lock_file(path: PathBuf) -> PyResult<i32> {
    descriptor(folder::lock_file(&path))
}

fn descriptor(opened: io::Result<File>) -> PyResult<i32> {
    Ok(opened?.into_raw_fd())
}
