//! Programs that write to a TCP connection.

use fairgate::Rate;

use crate::random::Distribution;

/// A program that writes to a TCP connection. The program at the other end reads all data at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Application {
    /// Writes as much as the connection takes.
    Bulk,
    /// Writes of `size` bytes at a constant rate, whether or not earlier ones have arrived.
    Limited {
        /// The rate of payload.
        rate: Rate,
        /// The bytes of each write.
        size: u32,
    },
    /// Sends transfers one after another. Each begins a pause after the last byte of the previous one has
    /// arrived.
    Transfers {
        /// The bytes of a transfer.
        size: Distribution,
        /// The length of the pauses, ns.
        pause: Distribution,
        /// The number of transfers. `None` for no limit.
        count: Option<u64>,
    },
}

impl Application {
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Application::Bulk => Ok(()),
            Application::Limited { size: 0, .. } => {
                Err("the `size` of writes is 0, but must be above 0; increase it".into())
            }
            Application::Limited { .. } => Ok(()),
            Application::Transfers { size, pause, count } => {
                size.check()?;
                pause.check()?;
                if size.mean() == 0 || *count == Some(0) {
                    return Err("transfers must have a size and a count above 0".into());
                }
                Ok(())
            }
        }
    }
}
