//! The switch of a run's programs: memory that this process shares with them.
//!
//! Attaching a program takes up to tens of milliseconds, because the kernel waits until no processor uses the
//! previous programs. So programs are attached while the switch is off and do nothing. Turning the switch on
//! or off is one store into memory: the kernel's stack loses the frames, or has them back, at once.
//!
//! Detaching takes as long. So a child process turns the switch off as soon as this process dies. If the
//! child was killed as well, the programs end with their descriptors.

use nix::errno::Errno;

use crate::sys::bpf::{Instruction, SharedWords};
use crate::sys::guardian::Guardian;

/// The words that the programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Word {
    /// 1 if the programs do something.
    On,
    /// The index of the interface whose frames are taken, on one interface.
    Interface,
    /// The index of the TAP device.
    HostEnd,
}

const WORDS: usize = 3;

/// Turned off when it is dropped, or when this process dies.
#[derive(Debug)]
pub(crate) struct Switch {
    words: SharedWords<WORDS>,
    /// Dropped after the switch was turned off.
    _guardian: Guardian,
}

impl Switch {
    /// Creates a switch that is off.
    pub(crate) fn new() -> Result<Switch, Errno> {
        let words = SharedWords::new()?;
        Ok(Switch {
            _guardian: words.clear_at_death(Word::On as usize)?,
            words,
        })
    }

    /// Turns it on.
    pub(crate) fn turn_on(&self) {
        self.set(Word::On, 1);
    }

    /// Sets what a program reads.
    pub(crate) fn set(&self, word: Word, value: u32) {
        self.words.set(word as usize, value);
    }

    /// Returns the instructions that load the address of a word into a register.
    pub(crate) fn address(&self, register: u8, word: Word) -> [Instruction; 2] {
        self.words.address(register, word as usize)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.set(Word::On, 0);
    }
}
