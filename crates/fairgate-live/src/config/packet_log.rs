//! How much of the last packets is kept: `packet_log` and `packet_log_memory`.

use std::time::Duration;

use fairgate_config::run::Keys;
use fairgate_config::{Document, FileError};

/// How much of the last packets is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLog {
    /// For how long.
    pub duration: Duration,
    /// The bytes of memory for it. If they do not suffice, less is kept.
    pub memory: usize,
}

impl PacketLog {
    pub(super) fn read(document: &Document, keys: &Keys) -> Result<Option<PacketLog>, FileError> {
        let memory = keys.values.packet_log_memory as usize;
        match (keys.values.packet_log, keys.span_of("packet_log_memory")) {
            (Some(duration), _) => Ok(Some(PacketLog { duration, memory })),
            (None, None) => Ok(None),
            (None, Some(span)) => Err(document.error(
                span,
                "`packet_log_memory` is for `packet_log`, which is missing",
                "add how long packets are kept, like packet_log = \"30s\", or remove this key",
            )),
        }
    }
}
