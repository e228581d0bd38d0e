//! Folders that results go to.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use thiserror::Error;

use crate::exit::Failure;

#[derive(Debug, Error, Diagnostic)]
#[error("can't make the folder {path}")]
#[diagnostic(help("choose another place"))]
struct FolderError {
    path: String,
    source: io::Error,
}

/// A folder that is there as long as the value is. What had to be made for it and is still empty then goes
/// away again.
pub(crate) struct Folder {
    /// From the outermost inwards.
    made: Vec<PathBuf>,
}

impl Folder {
    /// Makes the folder, and those that it is in.
    pub(crate) fn make(path: &Path) -> Result<Folder, Failure> {
        let mut folder = Folder { made: Vec::new() };
        let missing: Vec<&Path> = path
            .ancestors()
            .take_while(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
            .collect();
        for path in missing.into_iter().rev() {
            fs::create_dir(path).map_err(|source| {
                let path = path.display().to_string();
                Failure::environment(FolderError { path, source })
            })?;
            folder.made.push(path.to_owned());
        }
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for path in self.made.iter().rev() {
            // Refused for what is not empty, as it should be.
            let _ = fs::remove_dir(path);
        }
    }
}
