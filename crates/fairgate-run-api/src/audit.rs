//! Who changed a run, and what. An entry is one line, whatever a client has sent.

use std::fmt;
use std::sync::Arc;

use crate::question::Change;

/// The longest description of a change in an entry, bytes. A change can have thousands of lines.
const LONGEST: usize = 2_000;

/// Where entries go. Copies are the same place.
#[derive(Clone)]
pub struct Audit(Arc<dyn Fn(&AuditEntry) + Send + Sync>);

/// What a client asked for, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Who asked: a user and a process, or the name of a token.
    pub who: String,
    /// What was asked for.
    pub what: String,
    /// What became of it.
    pub outcome: String,
}

impl Audit {
    /// Returns a place that calls this function with each entry. It is called on threads that forward
    /// nothing, before the client has its answer.
    pub fn new(note: impl Fn(&AuditEntry) + Send + Sync + 'static) -> Audit {
        Audit(Arc::new(note))
    }

    /// Notes what was asked for, and what became of it.
    pub fn note(&self, who: &str, what: &str, outcome: String) {
        (self.0)(&AuditEntry::new(who, what, &outcome));
    }
}

impl AuditEntry {
    /// Returns an entry of these texts, of which each becomes a part of one line.
    pub fn new(who: &str, what: &str, outcome: &str) -> AuditEntry {
        AuditEntry {
            who: one_line(who),
            what: one_line(what),
            outcome: one_line(outcome),
        }
    }
}

/// Entries go nowhere.
impl Default for Audit {
    fn default() -> Audit {
        Audit::new(|_| {})
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}

impl fmt::Display for AuditEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "audit: {}: {}: {}", self.who, self.what, self.outcome)
    }
}

/// Escapes what would end the line, control a terminal or not be shown, and cuts what is too long.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for character in text.chars() {
        if line.len() >= LONGEST {
            line.push_str(&format!("... ({} bytes)", text.len()));
            break;
        }
        match fairgate::harmless::is_hidden(character) {
            true => line.extend(character.escape_default()),
            false => line.push(character),
        }
    }
    line
}

/// Describes a change. The reason is before the lines, of which there may be too many.
pub fn change(change: &Change) -> String {
    let direction = change.from.iter().map(|from| format!(" from {from}"));
    let because = change.because.iter().map(|reason| format!(" because {reason}"));
    let head: String = direction.chain(because).collect();
    format!("change{head}: {}", change.lines.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_line_of_bounded_length() {
        let what = change(&Change {
            from: Some("eth0".to_owned()),
            lines: vec![
                "class add 1\n\x1b[2Jaudit: root: forged".to_owned(),
                "\u{e4}".repeat(9000),
            ],
            because: Some("Anna\nasked".to_owned()),
            ..Change::default()
        });
        let entry = AuditEntry {
            who: one_line("me\r"),
            what: one_line(&what),
            outcome: one_line("refused: the trees have revision 7"),
        };
        let text = entry.to_string();
        assert!(!text.contains(char::is_control), "{text}");
        let begin = "audit: me\\r: change from eth0 because Anna\\nasked: class add 1\\n\\u{1b}[2J";
        assert!(text.starts_with(begin), "{text}");
        let end = format!("... ({} bytes): refused: the trees have revision 7", what.len());
        assert!(text.ends_with(&end), "{text}");
        assert!(text.len() < LONGEST + 200);
    }
}
