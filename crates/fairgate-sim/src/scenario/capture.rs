//! Interfaces whose packets are written into files.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::scenario::{Mistake, Scenario, ScenarioError, ScenarioPart};

/// The capture of what an interface sends: a pcapng file of IP packets.
/// [`Simulation::capture`](crate::Simulation::capture) says where it is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The name of the interface in the results: `router->home`.
    pub interface: String,
    /// The file.
    pub file: PathBuf,
    /// At most this number of bytes of each packet are written.
    pub snap: u32,
}

impl Capture {
    /// All bytes of every packet.
    pub(crate) const WHOLE: u32 = 65_535 + 20;
    /// The least number of bytes of a packet that are written: an IPv4 header.
    pub(crate) const LEAST_SNAP: u32 = 20;

    /// Creates a capture of whole packets.
    pub fn new(interface: impl Into<String>, file: impl Into<PathBuf>) -> Capture {
        Capture {
            interface: interface.into(),
            file: file.into(),
            snap: Capture::WHOLE,
        }
    }
}

impl Scenario {
    /// Checks that the interfaces exist, and that each has one capture.
    pub(crate) fn check_captures(&self) -> Result<(), ScenarioError> {
        if self.captures.is_empty() {
            return Ok(());
        }
        let names = self.interface_names();
        let mut taken = BTreeSet::new();
        for (number, capture) in self.captures.iter().enumerate() {
            let name = &capture.interface;
            let mistake = if !names.contains(name) {
                Some(super::observation::no_interface(name, &names))
            } else if !taken.insert(name) {
                let what = format!("{name} has two captures; name each interface once");
                Some(Mistake::new("interface", what))
            } else if !(Capture::LEAST_SNAP..=Capture::WHOLE).contains(&capture.snap) {
                let what = format!(
                    "{} bytes of each packet are written, but must be from {} to {}; 128 hold all headers",
                    capture.snap,
                    Capture::LEAST_SNAP,
                    Capture::WHOLE
                );
                Some(Mistake::new("snap", what))
            } else {
                None
            };
            if let Some(mistake) = mistake {
                return Err(mistake.of(ScenarioPart::Capture(number)));
            }
        }
        Ok(())
    }
}
