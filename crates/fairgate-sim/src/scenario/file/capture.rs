//! Captures: `[[simulate.capture]]`.
//!
//! ```toml
//! [[simulate.capture]]
//! interface = "router->home"        # its name in the results
//! file = "downloads.pcapng"
//! snap = 128                        # bytes of each packet; without it all
//! ```

use std::ops::Range;

use fairgate_config::FileError;
use serde::Deserialize;
use toml::Spanned;

use super::names::Network;
use super::repeat::Each;
use super::{Reader, span};
use crate::scenario::Capture;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaptureSection {
    interface: Spanned<String>,
    file: Spanned<String>,
    snap: Option<Spanned<u32>>,
    each: Option<Spanned<Each>>,
}

impl CaptureSection {
    /// Returns where `field` is written, or the interface.
    pub(super) fn location(&self, field: &str) -> Range<usize> {
        match field {
            "snap" => span(&self.snap),
            _ => None,
        }
        .unwrap_or_else(|| self.interface.span())
    }
}

impl Reader<'_> {
    /// Adds the capture of section `index`, or one for each copy.
    pub(super) fn add_captures(
        &self,
        network: &mut Network,
        index: usize,
        section: &CaptureSection,
    ) -> Result<(), FileError> {
        for copy in self.copies(section.each.as_ref())? {
            let file = self.fill(&section.file, &copy)?;
            if !file.ends_with(".pcapng") {
                return Err(self.document.error(
                    section.file.span(),
                    format!("`{file}` does not end in .pcapng, the format that is written"),
                    "write for example \"packets.pcapng\"; the path begins at the folder of this file",
                ));
            }
            let interface = self.fill(&section.interface, &copy)?;
            let mut capture = Capture::new(interface, self.external_path(&file));
            if let Some(snap) = &section.snap {
                capture.snap = *snap.get_ref();
            }
            if network
                .scenario
                .captures
                .iter()
                .any(|other| other.file == capture.file)
            {
                return Err(self.document.error(
                    section.file.span(),
                    format!("another capture is written to `{file}`, too"),
                    "give each capture a different file; with `each`, write every variable in it",
                ));
            }
            network.add_capture(capture, index);
        }
        Ok(())
    }
}
