//! How much of the last packets is kept: `packet_log` and `packet_log_memory`.

use std::time::Duration;

use fairgate_config::units::{parse_duration, parse_size};
use fairgate_config::{Document, FileError};

use super::Section;

/// The shortest log, and the longest one.
const DURATIONS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3600)];

/// The smallest memory: a few thousand packets.
const LEAST_MEMORY: u64 = 1 << 20;
/// A pcapng file of this size is still handled by all readers.
const MOST_MEMORY: u64 = 1 << 30;
/// About 400,000 acknowledgements, or 200,000 packets with data.
const DEFAULT_MEMORY: usize = 32 << 20;

/// How much of the last packets is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLog {
    /// For how long.
    pub duration: Duration,
    /// The bytes of memory for it. If they do not suffice, less is kept.
    pub memory: usize,
}

impl Section {
    pub(super) fn packet_log(&self, document: &Document) -> Result<Option<PacketLog>, FileError> {
        let Some(text) = &self.packet_log else {
            return match &self.packet_log_memory {
                None => Ok(None),
                Some(memory) => Err(document.error(
                    memory.span(),
                    "`packet_log_memory` is for `packet_log`, which is missing",
                    "add how long packets are kept, like packet_log = \"30s\", or remove this key",
                )),
            };
        };
        let duration = parse_duration(text.get_ref()).map_err(|error| {
            document.error(
                text.span(),
                error.to_string(),
                "write how long packets are kept, like \"30s\"",
            )
        })?;
        let [shortest, longest] = DURATIONS;
        if !(shortest..=longest).contains(&duration) {
            return Err(document.error(
                text.span(),
                format!("`packet_log` is {duration:?}, but must be from {shortest:?} to {longest:?}"),
                "write how long packets are kept, like \"30s\", or omit it for none",
            ));
        }
        let memory = match &self.packet_log_memory {
            None => DEFAULT_MEMORY,
            Some(text) => {
                let remedy = "write it like \"32mb\", from \"1mb\" to \"1gb\"";
                let size = parse_size(text.get_ref())
                    .map_err(|error| document.error(text.span(), error.to_string(), remedy))?;
                if !(LEAST_MEMORY..=MOST_MEMORY).contains(&size) {
                    let message = format!("`packet_log_memory` can't be {size} bytes");
                    return Err(document.error(text.span(), message, remedy));
                }
                size as usize
            }
        };
        Ok(Some(PacketLog { duration, memory }))
    }
}
