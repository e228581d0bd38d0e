//! Processors that do not sleep.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// The longest time that processors may take to wake up, as an `s32` (Linux
/// Documentation/power/pm_qos_interface.rst).
const LATENCY: &str = "/dev/cpu_dma_latency";

/// Keeps the processors awake while it lives: one that sleeps wakes up late, in virtual machines by more than
/// a millisecond, and then a queue is longer than its discipline makes it. They still count as idle.
#[derive(Debug)]
pub struct Awake {
    /// The kernel takes the request back when the file is closed.
    _file: File,
}

impl Awake {
    /// A driver that can't wait awake still lets its processors sleep.
    ///
    /// # Errors
    /// Fails without root, and on a kernel without power management.
    pub fn keep() -> io::Result<Awake> {
        let mut file = OpenOptions::new().write(true).open(LATENCY)?;
        // Microseconds.
        file.write_all(&0_i32.to_ne_bytes())?;
        Ok(Awake { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn processors_are_kept_awake() {
        let awake = match Awake::keep() {
            Ok(awake) => awake,
            Err(error) => return eprintln!("SKIPPED: {LATENCY}: {error}"),
        };
        let mut longest = [1; 4];
        let mut file = File::open(LATENCY).unwrap();
        file.read_exact(&mut longest).unwrap();
        assert_eq!(i32::from_ne_bytes(longest), 0);
        drop(awake);
    }
}
