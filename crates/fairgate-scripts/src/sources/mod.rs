//! Files in which operators keep their shaping, and what each becomes.
//!
//! [`recognise`] says by its content what a file is. The files of programs that configure Linux's queueing
//! disciplines are read into the commands of tc that these programs give ([`commands`]), each with the line
//! that it comes from. So there is one translation of tc's language, and it checks them all.
//!
//! ```text
//!   recognise        what a file is
//!   sections         lines of keys and values in sections, as in INI and UCI files
//!   networkd         systemd-networkd: [CAKE], [HierarchyTokenBucket] and others
//!   network_manager  NetworkManager: the section [tc] of a connection
//!   sqm, qosify      OpenWrt: /etc/config/sqm, /etc/config/qosify
//!   vyos             VyOS: set qos policy ...
//!   mikrotik         RouterOS: an export of /queue
//! ```
//!
//! Each line ends in a command, in a note, or in an error with its location.

mod mikrotik;
mod network_manager;
mod networkd;
mod qosify;
mod recognise;
mod sections;
mod sqm;
mod vyos;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use fairgate_config::language::Problems;
use fairgate_config::{FileError, Registry, Spec};
use miette::NamedSource;

use crate::script::notes::{Note, Notes};

pub use recognise::{Source, recognise};

/// Commands of tc that a file of another program means.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    /// Each with the line of the file that it comes from, counted from 1.
    pub lines: Vec<(usize, String)>,
    /// What tc has no words for: changes of a tree, by the name of its interface, as [`Spec::edited`] reads
    /// them.
    pub changes: Vec<(String, String)>,
    /// What is not carried over, and what is not obvious.
    pub notes: Vec<Note>,
}

impl Commands {
    /// Returns the commands as a script.
    pub fn text(&self) -> String {
        self.lines.iter().map(|(_, line)| format!("{line}\n")).collect()
    }

    /// Makes the changes of the tree of an interface.
    ///
    /// # Errors
    /// If the changed tree is invalid.
    pub fn changed(&self, interface: &str, tree: Spec) -> Result<Spec, FileError> {
        let of_tree = self.changes.iter().filter(|(name, _)| name == interface);
        let lines: String = of_tree.map(|(_, line)| format!("{line}\n")).collect();
        match lines.is_empty() {
            true => Ok(tree),
            false => tree.edited(&lines, &Registry::builtin()),
        }
    }
}

/// Returns the commands of tc that a file means. `device` is the interface of a file that names none.
///
/// ```
/// use fairgate_scripts::sources::{Source, commands, recognise};
///
/// let file = "[Match]\nName=wan0\n[CAKE]\nParent=root\nBandwidth=40M\n";
/// assert_eq!(recognise(file), Some(Source::Networkd));
/// let commands = commands("50-wan.network", file, Source::Networkd, None)?;
/// assert_eq!(commands.text(), "tc qdisc replace dev wan0 root cake bandwidth 40000000bit\n");
/// # Ok::<(), fairgate_config::FileError>(())
/// ```
///
/// # Errors
/// If a line can't be understood or carried over, or if the source is not one of the files that give
/// commands.
pub fn commands(name: &str, text: &str, source: Source, device: Option<&str>) -> Result<Commands, FileError> {
    let named = Arc::new(NamedSource::new(name, text.to_owned()));
    let mut writer = Writer {
        text,
        device,
        lines: Vec::new(),
        changes: Vec::new(),
        notes: Notes::default(),
        problems: Problems::new(named),
    };
    match source {
        Source::Networkd => networkd::read(&mut writer),
        Source::NetworkManager => network_manager::read(&mut writer),
        Source::Sqm => sqm::read(&mut writer),
        Source::Qosify => qosify::read(&mut writer),
        Source::Vyos => vyos::read(&mut writer),
        Source::Mikrotik => mikrotik::read(&mut writer),
        other => {
            let message = format!("{} gives no commands of tc", other.what());
            writer.problem(0..text.len(), &message, other.remedy());
        }
    }
    if writer.lines.is_empty() && writer.problems.count() == 0 {
        let message = format!("{} without queues: nothing in it shapes packets", source.what());
        writer.problem(
            0..text.len(),
            &message,
            "look for another file; this one changes nothing",
        );
    }
    let Writer {
        lines,
        changes,
        notes,
        problems,
        ..
    } = writer;
    problems.unless_any(Commands {
        lines,
        changes,
        notes: notes.in_order(text),
    })
}

/// What a reader writes.
struct Writer<'t> {
    text: &'t str,
    /// The interface of a file that names none.
    device: Option<&'t str>,
    lines: Vec<(usize, String)>,
    changes: Vec<(String, String)>,
    notes: Notes,
    problems: Problems,
}

impl Writer<'_> {
    /// Adds a command that is written at this place.
    fn command(&mut self, at: &Range<usize>, command: impl Into<String>) {
        let line = self.text[..at.start].matches('\n').count() + 1;
        self.lines.push((line, command.into()));
    }

    /// Adds a change of the tree of an interface.
    fn change(&mut self, interface: &str, change: String) {
        self.changes.push((interface.to_owned(), change));
    }

    fn problem(&mut self, at: Range<usize>, message: &str, help: impl Into<String>) {
        self.problems.add(at, message, "here", help.into());
    }

    fn note(&mut self, at: &Range<usize>, text: impl Into<String>) {
        self.notes.add(at.clone(), text.into());
    }

    /// Returns the interface of a file that names none, or reports that it needs one.
    fn device(&mut self, at: &Range<usize>) -> Option<String> {
        if self.device.is_none() {
            let help = "name it: --device eth0";
            self.problem(at.clone(), "the file names no interface", help);
        }
        self.device.map(str::to_owned)
    }
}
