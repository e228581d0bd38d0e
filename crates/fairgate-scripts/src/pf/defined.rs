//! The queues that the lines of a pf.conf define.

use fairgate_config::language::Problems;

use super::altq::{self, Altq};
use super::openbsd;
use super::queue::{Interface, Queue};
use crate::script::notes::Notes;
use crate::script::{Line, Word};
use crate::tc::Device;

/// The lines about queues so far.
#[derive(Default)]
pub(super) struct Defined {
    /// ALTQ's interfaces.
    altq: Vec<Altq>,
    queues: Vec<Queue>,
}

impl Defined {
    /// Reads a line that begins with `altq` or `queue`.
    pub(super) fn read(&mut self, words: Vec<Word>, end: usize, problems: &mut Problems, notes: &mut Notes) {
        let mut line = Line::new(words, end, altq::FORM);
        let Some(first) = line.take() else { return };
        match first.get_ref().as_str() {
            "altq" => {
                let read = Altq::read(line, problems, notes);
                self.altq.extend(read);
            }
            _ => {
                let read = altq::queue(line, problems, notes);
                self.queues.extend(read);
            }
        }
    }

    /// Returns the interfaces.
    pub(super) fn interfaces(self, device: Device, problems: &mut Problems) -> Vec<Interface> {
        if self.altq.is_empty() {
            return openbsd::interfaces(self.queues, problems);
        }
        altq::interfaces(&self.altq, &self.queues, device, problems)
    }
}
