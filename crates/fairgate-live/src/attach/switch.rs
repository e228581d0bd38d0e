//! The switch of a run's programs: memory that this process shares with them.
//!
//! Attaching a program takes up to tens of milliseconds, because the kernel waits until no processor uses the
//! previous programs. So programs are attached while the switch is off and do nothing. Turning the switch on
//! or off is one store into memory: the kernel's stack loses the frames, or has them back, at once.
//!
//! Detaching takes as long. So a child process turns the switch off as soon as this process dies. If the
//! child was killed as well, the programs end with their descriptors.
//!
//! On one interface that the host itself uses, the switch is also a dead-man switch: a run that is there and
//! takes nothing must not stop the host's traffic. The first frame that the programs give to the run notes
//! the time. The run clears the note in each turn, after it has taken frames. If a note is older than
//! [`PATIENCE`], the programs count frames and let them pass, as if they were not there, until the run goes
//! on. An idle run has no note, so it need not wake up.

use fairgate::Time;
use nix::errno::Errno;

use crate::sys::bpf::{Instruction, SharedWords};
use crate::sys::guardian::Guardian;

/// How long frames may wait for the run until others pass by it, ns. The kernel's and our own turns take less
/// than a millisecond, and a change of a large tree some milliseconds.
pub(crate) const PATIENCE: u64 = 200_000_000;

/// The words that the programs read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Word {
    /// 1 if the programs do something.
    On,
    /// The index of the interface whose frames are taken, on one interface.
    Interface,
    /// The index of the TAP device. 0 while it can't take frames: then all frames pass by the run.
    HostEnd,
    /// The time at which the programs gave the run the first of the frames that it has not taken, ns of
    /// CLOCK_MONOTONIC. 0 if it has taken all.
    Waiting,
    /// How many received frames went through the kernel while the run hung.
    PassedReceived,
    /// The same of frames that the host sent.
    PassedSent,
}

const WORDS: usize = 6;

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
        self.words.set(word as usize, value.into());
    }

    /// Tells the programs that the run has taken what they gave. Returns since when it has waited, if so.
    #[inline]
    pub(crate) fn take_note(&self) -> Option<Time> {
        let waiting = self.words.get(Word::Waiting as usize);
        if waiting == 0 {
            return None;
        }
        // If another frame was given meanwhile, the run has it, or is woken by it.
        self.words.set(Word::Waiting as usize, 0);
        Some(Time::from_nanos(waiting))
    }

    /// Returns how many frames went through the kernel while the run hung. The first number counts frames
    /// that the interface received, the second one frames that the host sent.
    pub(crate) fn passed(&self) -> [u64; 2] {
        [Word::PassedReceived, Word::PassedSent].map(|word| self.words.get(word as usize))
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
