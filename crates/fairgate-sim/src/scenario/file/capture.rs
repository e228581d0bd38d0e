//! Captures: `[[simulate.capture]]`.
//!
//! ```toml
//! [[simulate.capture]]
//! interface = "router->home"        # its name in the results
//! file = "downloads.pcapng"
//! snap = 128                        # bytes of each packet; without it all
//! ```

use fairgate::registry::{Parameter, Section, Shape, Unit};
use fairgate_config::{FileError, Table};

use super::Reader;
use super::names::Network;
use super::repeat::EACH;
use crate::scenario::Capture;

/// The tables `[[simulate.capture]]`.
pub(super) const CAPTURE: Section = Section::new("capture", "packets that are written into a file", || {
    Parameter::infos(&KEYS, Keys::default())
})
.shaped(Shape::List)
.with(&WITHIN);

static WITHIN: [Section; 1] = [EACH];

#[derive(Default)]
struct Keys {
    interface: String,
    file: String,
    snap: Option<u32>,
}

static KEYS: [Parameter<Keys>; 3] = [
    Parameter::required_word(
        "interface",
        Unit::Text("interface"),
        "An interface that sends them, as the results name it: router->home.",
        |keys, _| &mut keys.interface,
    ),
    Parameter::required_word(
        "file",
        Unit::Text("file"),
        "A file that ends in .pcapng; its path begins at the folder of this file.",
        |keys, _| &mut keys.file,
    ),
    Parameter::new(
        "snap",
        Unit::Count("bytes"),
        Capture::LEAST_SNAP as u64..=Capture::WHOLE as u64,
        "At most this number of bytes of each packet are written; 128 hold all headers. Default: all.",
        |keys, _| &mut keys.snap,
    ),
];

impl Reader<'_> {
    /// Adds the capture of table `index`, or one for each copy.
    pub(super) fn add_captures(
        &self,
        network: &mut Network,
        index: usize,
        section: &Table,
    ) -> Result<(), FileError> {
        let place = section.span_of("file").unwrap_or_else(|| section.span());
        for copy in self.copies(section)? {
            let file = self.filled(section, "file", &copy)?;
            if !file.ends_with(".pcapng") {
                return Err(self.document.error(
                    place.clone(),
                    format!("`{file}` does not end in .pcapng, the format that is written"),
                    "write for example \"packets.pcapng\"; the path begins at the folder of this file",
                ));
            }
            let interface = self.filled(section, "interface", &copy)?;
            let mut capture = Capture::new(interface, self.folder().join(&file));
            if let Some(snap) = section.read(&KEYS, Keys::default()).snap {
                capture.snap = snap;
            }
            if network
                .scenario
                .captures
                .iter()
                .any(|other| other.file == capture.file)
            {
                return Err(self.document.error(
                    place.clone(),
                    format!("another capture is written to `{file}`, too"),
                    "give each capture a different file; with `each`, write every variable in it",
                ));
            }
            network.add_capture(capture, index);
        }
        Ok(())
    }
}
