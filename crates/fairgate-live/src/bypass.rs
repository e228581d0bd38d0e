//! Frames that pass by a run on one interface, because the run takes none: it hangs, or the TAP device behind
//! which the host's stack is can't be used. The programs of the kernel decide that and count
//! (`attach/switch.rs`); here is what the run says about it afterwards.

use fairgate::Time;

use crate::notice::Notice;

/// What has passed by a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bypass {
    /// How often the run was passed by.
    times: u64,
    /// For how long, ns.
    nanos: u64,
    /// The frames that have passed by: received ones, and those that the host sent.
    pub(crate) passed: [u64; 2],
    /// How many of them were told of.
    told: [u64; 2],
    /// Since when the TAP device can't be used, if so.
    pub(crate) since: Option<Time>,
}

impl Bypass {
    /// Returns how often the run was passed by, and for how long until `now`, ns.
    pub(crate) fn times(&self, now: Time) -> (u64, u64) {
        match self.since {
            Some(since) => (self.times + 1, self.nanos + now.nanos_since(since)),
            None => (self.times, self.nanos),
        }
    }

    /// Returns how many frames have passed by: received ones, and those that the host sent.
    pub(crate) fn passed(&self) -> [u64; 2] {
        self.passed
    }

    /// Ends a time of `nanos` in which the run was passed by, if it was.
    pub(crate) fn end(&mut self, interface: &str, nanos: u64) -> Option<Notice> {
        let [received, sent] = [0, 1].map(|side: usize| self.passed[side] - self.told[side]);
        if received + sent == 0 {
            return None;
        }
        self.told = self.passed;
        self.times += 1;
        self.nanos += nanos;
        Some(Notice::PassedBy {
            interface: interface.to_owned(),
            received,
            sent,
            millis: nanos / 1_000_000,
        })
    }
}
