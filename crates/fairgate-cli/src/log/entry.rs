//! An entry of the log: a message for people, and fields for programs.

use std::fmt::{self, Display};

use fairgate_live::Notice;
use fairgate_run_api::AuditEntry;

/// How important an entry is: the priorities of syslog(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// What was asked for was not done.
    Error = 3,
    /// Something is probably not as intended.
    Warning = 4,
    /// Something that does not happen every day.
    Notice = 5,
    Info = 6,
}

/// An entry. As text it is its message.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(super) level: Level,
    pub(super) message: String,
    /// Names in capital letters, without the prefix of this program, and values.
    pub(super) fields: Vec<(String, String)>,
}

impl Entry {
    /// `event` is the kind of the entry, one word.
    pub(crate) fn new(level: Level, event: &str, message: impl Display) -> Entry {
        Entry {
            level,
            message: message.to_string(),
            fields: Vec::new(),
        }
        .with("event", event)
    }

    /// Returns an entry about the run itself.
    pub(crate) fn info(message: impl Display) -> Entry {
        Entry::new(Level::Info, "start", message)
    }

    pub(crate) fn warning(message: impl Display) -> Entry {
        Entry::new(Level::Warning, "warning", message)
    }

    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// Adds a field.
    pub(crate) fn with(mut self, name: &str, value: impl Display) -> Entry {
        self.fields.push((name.to_ascii_uppercase(), value.to_string()));
        self
    }
}

/// The line on standard error.
impl Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.level == Level::Warning {
            f.write_str("warning: ")?;
        }
        f.write_str(&self.message)
    }
}

impl From<&AuditEntry> for Entry {
    fn from(audit: &AuditEntry) -> Entry {
        Entry::new(Level::Notice, "audit", audit)
            .with("who", &audit.who)
            .with("what", &audit.what)
            .with("outcome", &audit.outcome)
    }
}

impl From<Notice> for Entry {
    fn from(notice: Notice) -> Entry {
        let level = match notice {
            Notice::TooSmall(_)
            | Notice::NotRestored { .. }
            | Notice::OtherShaper { .. }
            | Notice::PassingBy { .. }
            | Notice::PassedBy { .. }
            | Notice::ProbesUnanswered
            | Notice::RateFileWrong { .. }
            | Notice::RateRefused { .. } => Level::Warning,
            _ => Level::Notice,
        };
        let event = match notice {
            Notice::ProbesUnanswered
            | Notice::ProbesAnswered
            | Notice::RateFileWrong { .. }
            | Notice::RateFileRight
            | Notice::RateRefused { .. }
            | Notice::RateAccepted { .. } => "autorate",
            _ => "interface",
        };
        let entry = Entry::new(level, event, &notice);
        match notice.interface() {
            Some(interface) => entry.with("interface", interface),
            None => entry,
        }
    }
}
