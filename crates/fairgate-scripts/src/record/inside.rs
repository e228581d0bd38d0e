//! The files of a recording, as the script and the stand-ins see them.

/// Where the recording keeps its own files. Stand-ins know by it that they are inside.
pub(crate) const ROOT: &str = "/run/fairgate-record";
/// The stand-ins, first in `PATH`.
pub(crate) const BIN: &str = "/run/fairgate-record/bin";
/// What bash reads first.
pub(crate) const BASH_ENV: &str = "/run/fairgate-record/bash";
/// What stand-ins write down.
pub(crate) const JOURNAL: &str = "/run/fairgate-record/journal";
/// The interfaces, as `ip` knows them.
pub(crate) const MACHINE: &str = "/run/fairgate-record/machine.json";
/// The private `/sys`.
pub(crate) const SYS: &str = "/sys";
