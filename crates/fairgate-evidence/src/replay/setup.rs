//! The setup of a trace: the commands that built the recorded discipline.

use std::path::Path;

use fairgate_config::FileError;
use fairgate_scripts::tc;
use serde::Deserialize;

use crate::replay::error::{Error, Mistake};

/// The content of `TRACE.json` that a replay needs.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Setup {
    /// The tc commands, in the order of their execution.
    #[serde(rename = "setup")]
    pub(crate) commands: Vec<String>,
    /// The device. tc and the kernel derive defaults from it.
    pub(crate) device: Device,
}

/// The device that the discipline was attached to.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Device {
    /// The longest IP packet, bytes.
    pub(crate) mtu: u32,
    /// The default limit of fifos, packets.
    pub(crate) txqueuelen: u32,
    /// The length of the link-layer header, bytes.
    pub(crate) hard_header_len: u32,
}

impl Setup {
    /// Reads the file.
    ///
    /// # Errors
    /// Returns an error if the file can't be read or is not a setup.
    pub(crate) fn read(path: &Path) -> Result<Setup, Error> {
        let text = std::fs::read(path).map_err(|error| Mistake::Unreadable(error).in_file(path))?;
        serde_json::from_slice(&text).map_err(|error| Mistake::Json(error.to_string()).in_file(path))
    }

    /// Parses the commands.
    pub(crate) fn script(&self, path: &Path) -> Result<tc::Script, Error> {
        let device = tc::Device {
            mtu: self.device.mtu,
            txqueuelen: self.device.txqueuelen,
            hard_header_len: self.device.hard_header_len,
            ..tc::Device::default()
        };
        tc::Script::parse(&path.display().to_string(), &self.commands.join("\n"), device)
            .map_err(|error| refused(&error, path))
    }
}

/// Returns the errors in the commands, each with the number of its command.
pub(crate) fn refused(error: &FileError, path: &Path) -> Error {
    let problems = error.problems().iter().map(|problem| {
        let (command, _) = problem.position();
        format!("command {command}: {}; {}", problem.message, problem.help)
    });
    Mistake::Commands(problems.collect::<Vec<_>>().join("; ")).in_file(path)
}
