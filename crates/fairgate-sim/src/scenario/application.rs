//! Programs that write to a TCP connection.

use fairgate::Rate;

use crate::random::Distribution;

/// A program that writes to a TCP connection. The one at the other end reads at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Application {
    /// As much as the connection takes.
    Bulk,
    /// Writes of `size` bytes at a constant rate, whether or not earlier ones have arrived.
    Limited {
        /// Rate of payload.
        rate: Rate,
        /// Bytes of a write.
        size: u32,
    },
    /// Transfers one after another; the next begins a pause after the last byte of the one before has arrived.
    Transfers {
        /// Bytes of a transfer.
        size: Distribution,
        /// Length of pauses, ns.
        pause: Distribution,
        /// How many; `None` for no end.
        count: Option<u64>,
    },
}

impl Application {
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Application::Bulk => Ok(()),
            Application::Limited { size: 0, .. } => Err("writes have no bytes; give a `size` above 0".into()),
            Application::Limited { .. } => Ok(()),
            Application::Transfers { size, pause, count } => {
                size.check()?;
                pause.check()?;
                if size.mean() == 0 || *count == Some(0) {
                    return Err("transfers need a size and a count above 0".into());
                }
                Ok(())
            }
        }
    }
}
