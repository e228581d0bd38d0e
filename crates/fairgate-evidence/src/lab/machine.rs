//! How busy the machine was during a run: what a figure of a live run is worth depends on it.

use std::fs;

/// How busy the machine was in the measurement window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Machine {
    /// The share of the processors' time in which they were idle, 0 to 1.
    pub idle: f64,
    /// How often a bridge woke up more than 1 ms late.
    pub late_wake_ups: u64,
    /// How often a bridge made no progress for more than 5 ms although it had work.
    pub stalls: u64,
    /// How often a datagram left more than 1 ms late.
    pub late_datagrams: u64,
}

impl Machine {
    /// Does some work, and returns how busy the machine was meanwhile.
    pub fn during<T>(work: impl FnOnce() -> T) -> (T, Machine) {
        let before = Ticks::now();
        let done = work();
        let idle = before.idle_until(Ticks::now());
        (
            done,
            Machine {
                idle,
                ..Machine::default()
            },
        )
    }
}

/// Times of all processors together, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    idle: u64,
    all: u64,
}

impl Ticks {
    /// Reads the times since the machine's start. They are 0 if the kernel does not tell.
    pub(crate) fn now() -> Ticks {
        fs::read_to_string("/proc/stat")
            .ok()
            .and_then(|text| Ticks::parse(&text))
            .unwrap_or_default()
    }

    /// Parses proc(5), "/proc/stat": user, nice, system, idle, iowait, irq, softirq, steal. Guests' time is
    /// in that of users.
    fn parse(text: &str) -> Option<Ticks> {
        let line = text.lines().find(|line| line.starts_with("cpu "))?;
        let fields: Option<Vec<u64>> = line
            .split_whitespace()
            .skip(1)
            .take(8)
            .map(|field| field.parse().ok())
            .collect();
        let fields = fields?;
        Some(Ticks {
            idle: fields.get(3)? + fields.get(4)?,
            all: fields.iter().sum(),
        })
    }

    /// Returns the share of idle time from this moment to a later one.
    pub(crate) fn idle_until(self, later: Ticks) -> f64 {
        match later.all.saturating_sub(self.all) {
            0 => 0.0,
            all => later.idle.saturating_sub(self.idle) as f64 / all as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_the_share_between_two_moments() {
        let at = |text: &str| Ticks::parse(text).unwrap();
        let before = at("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2\n");
        let after = at("cpu  150 0 150 750 150 0 0 0 9 9\n");
        assert_eq!(before.idle_until(after), 0.5);
        assert_eq!(before.idle_until(before), 0.0);
        assert_eq!(Ticks::parse("intr 1"), None);
    }
}
