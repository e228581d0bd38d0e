//! Where a run keeps the history that its API shows, so that the next one goes on with it.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fairgate_live::Plan;
use miette::Diagnostic;
use thiserror::Error;

use super::NoPlace;
use crate::failure::Failure;
use crate::last_good::make_folder;

/// The folders for the state of a service, divided by colons (systemd.exec(5)).
const STATE: &str = "STATE_DIRECTORY";

/// Where the history is kept.
#[derive(Clone, Debug, Default)]
pub(crate) enum HistoryPlace {
    #[default]
    Nowhere,
    /// In this file.
    File(PathBuf),
    /// In a file of this folder, with the name of the run.
    Folder(PathBuf),
}

#[derive(Debug, Error, Diagnostic)]
#[error("--history keeps what the API shows of the past, and [run] has no `api`")]
#[diagnostic(help("add `api` to [run], for example api = \"unix:/run/fairgate/api.sock\", or leave it out"))]
struct NoApi;

impl HistoryPlace {
    /// Returns the place that was given, or that of services.
    pub(super) fn of(given: Option<&Path>) -> HistoryPlace {
        let state = || {
            let folders = env::var_os(STATE)?;
            let first = folders.as_bytes().split(|byte| *byte == b':').next()?;
            (!first.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(first)))
        };
        match given {
            Some(file) => HistoryPlace::File(file.to_owned()),
            None => state().map_or(HistoryPlace::Nowhere, HistoryPlace::Folder),
        }
    }

    /// Returns the file of a run, whose folder is made if it is missing. Without an API there is no history.
    pub(super) fn file(&self, plan: &Plan) -> Result<Option<PathBuf>, Failure> {
        let has_api = plan.endpoints.api.is_some();
        match self {
            HistoryPlace::File(_) if !has_api => Err(NoApi.into()),
            HistoryPlace::File(file) => match make_folder(file) {
                Ok(()) => Ok(Some(file.clone())),
                Err(source) => Err(Failure::environment(NoPlace::new(file, "--history", source))),
            },
            HistoryPlace::Folder(folder) if has_api => {
                let file = folder.join(format!("{}.history", plan.name));
                // The log says later why it can't be written.
                let _ = make_folder(&file);
                Ok(Some(file))
            }
            HistoryPlace::Folder(_) | HistoryPlace::Nowhere => Ok(None),
        }
    }
}
