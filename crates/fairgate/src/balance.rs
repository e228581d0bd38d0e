//! Checks that counts add up before they are shown.
//!
//! Every command that shows counts of packets checks them here. The offered packets must be equal to the
//! delivered, dropped and queued ones, and a total must be the sum of its parts. Counts that do not add up
//! are a bug in the program, whatever its input was. They are not shown.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::count::Count;

/// Counts that do not add up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imbalance {
    subject: String,
    whole: String,
    parts: String,
}

impl fmt::Display for Imbalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Imbalance {
            subject,
            whole,
            parts,
        } = self;
        write!(f, "the figures of {subject} do not add up: {whole}, but {parts}")
    }
}

impl core::error::Error for Imbalance {}

/// Checks that `whole` is the sum of `parts`, all counted in `unit`.
///
/// ```
/// use fairgate::balance;
/// assert!(balance::of("fifo", "packets", ("offered", 5), &[("sent", 3), ("dropped", 2)]).is_ok());
/// let error = balance::of("fifo", "packets", ("offered", 5), &[("sent", 3), ("dropped", 1)]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the figures of fifo do not add up: offered = 5 packets, but sent 3 + dropped 1 = 4 packets"
/// );
/// ```
///
/// # Errors
/// Returns an error if it is not.
pub fn of(
    subject: impl fmt::Display,
    unit: &str,
    whole: (&str, u64),
    parts: &[(&str, u64)],
) -> Result<(), Imbalance> {
    let sum: u128 = parts.iter().map(|part| u128::from(part.1)).sum();
    if u128::from(whole.1) == sum {
        return Ok(());
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    Err(Imbalance {
        subject: subject.to_string(),
        whole: format!("{} = {} {unit}", whole.0, whole.1),
        parts: format!("{} = {sum} {unit}", parts.join(" + ")),
    })
}

/// Checks the sum in packets and in bytes.
///
/// # Errors
/// Returns an error if either does not add up.
pub fn of_counts(
    subject: impl fmt::Display,
    whole: (&str, Count),
    parts: &[(&str, Count)],
) -> Result<(), Imbalance> {
    type Unit = (&'static str, fn(Count) -> u64);
    let units: [Unit; 2] = [("packets", |count| count.packets), ("bytes", |count| count.bytes)];
    units.into_iter().try_for_each(|(unit, number)| {
        let parts: Vec<(&str, u64)> = parts.iter().map(|&(name, count)| (name, number(count))).collect();
        of(&subject, unit, (whole.0, number(whole.1)), &parts)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_must_add_up_too() {
        let count = |packets, bytes| Count { packets, bytes };
        let check = |dropped| {
            of_counts(
                "a",
                ("in", count(3, 300)),
                &[("out", count(2, 200)), ("dropped", dropped)],
            )
        };
        assert_eq!(check(count(1, 100)), Ok(()));
        assert!(check(count(1, 99)).is_err_and(|error| error.to_string().contains("in = 300 bytes")));
        assert!(check(count(0, 100)).is_err_and(|error| error.to_string().contains("in = 3 packets")));
    }

    /// A counter that fell below 0 has a huge value. It must not wrap to a correct sum.
    #[test]
    fn sums_do_not_wrap() {
        assert!(of("a", "packets", ("in", 1), &[("out", 2), ("left", u64::MAX)]).is_err());
    }
}
