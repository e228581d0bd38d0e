//! The clock and the kernel of this machine.

use std::fs;
use std::path::Path;
use std::time::Instant;

use nix::errno::Errno;

use crate::sys::bpf::{Hook, query};
use crate::sys::interface::Interface;
use crate::sys::landlock_refusal;

/// Where the kernel says which clock it reads.
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0";

/// How often the clock is read to find out how long that takes. A series takes a few microseconds, so that
/// many of them are between two interruptions.
const CLOCK_READS: u32 = 200;

/// What was read of this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineReading {
    /// The release of the kernel: `6.18.4`.
    pub release: String,
    /// The kernel's clock source: `tsc`. `None` if the kernel does not say.
    pub clock: Option<String>,
    /// All clock sources that it could use.
    pub clocks: Vec<String>,
    /// What reading the clock takes, ns.
    pub clock_ns: f64,
    /// Whether programs can be attached at tc's hooks. `None` if this user may not ask.
    pub has_hooks: Option<bool>,
    /// Why files can't be confined (Landlock), if so.
    pub landlock: Option<String>,
    /// Whether there is `/dev/net/tun`.
    pub has_tun: bool,
}

impl MachineReading {
    /// Reads them.
    pub fn read() -> MachineReading {
        let text = |path: String| fs::read_to_string(path).ok();
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let release = text("/proc/sys/kernel/osrelease".to_owned());
        // The loopback interface is in every network namespace.
        let loopback = Interface::index_of("lo");
        let hooks = loopback.and_then(|index| query(index, Hook::Ingress));
        MachineReading {
            release: release.unwrap_or_default().trim().to_owned(),
            clock: text(format!("{CLOCKS}/current_clocksource")).map(|name| name.trim().to_owned()),
            clocks: text(format!("{CLOCKS}/available_clocksource"))
                .map(words)
                .unwrap_or_default(),
            clock_ns: nanos_of_a_reading(),
            has_hooks: match hooks {
                Ok(()) => Some(true),
                Err(Errno::EPERM) => None,
                Err(_) => Some(false),
            },
            landlock: landlock_refusal().map(|errno| errno.desc().to_owned()),
            has_tun: Path::new("/dev/net/tun").exists(),
        }
    }
}

/// Returns how long it takes to read the clock: the shortest of some series, because other programs may
/// interrupt one.
fn nanos_of_a_reading() -> f64 {
    let series = || {
        let start = Instant::now();
        for _ in 1..CLOCK_READS {
            std::hint::black_box(Instant::now());
        }
        start.elapsed().as_nanos() as f64 / f64::from(CLOCK_READS)
    };
    (0..50).map(|_| series()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_read() {
        let reading = MachineReading::read();
        assert!(reading.release.contains('.'), "{reading:?}");
        assert!(reading.clock_ns > 0.0, "{reading:?}");
    }
}
