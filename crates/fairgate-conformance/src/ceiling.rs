//! A law of disciplines that shape: in no interval more leaves than a rate and a burst permit.
//!
//! [`check_ceilings`] sends random traffic through a discipline over a line of unlimited speed and compares
//! every interval between two departures with each [`Ceiling`]. All arithmetic is exact.

use fairgate::{Discipline, Packet, Pool, Rate, Time};
use proptest::collection::vec;
use proptest::prelude::*;

/// The longest packet of the traffic, bytes.
pub const LONGEST: u32 = 9000;

/// The most packets of a burst.
const BURST: usize = 12;

/// What a discipline may send: in any interval of t ns the packets that `rate` sends in `t + nanos`, and
/// `bytes` beside them.
///
/// Disciplines count the time of a packet in whole nanoseconds by [`RateMeter`](fairgate::RateMeter), as
/// Linux does. So each packet counts with the least time that this can give: up to a nanosecond and a 2^30th
/// less than the exact time.
#[derive(Clone, Copy, Debug)]
pub struct Ceiling {
    /// The rate.
    pub rate: Rate,
    /// What may leave beside the rate, bytes: the burst, and the longest packet if a packet is paid for when
    /// it leaves.
    pub bytes: u64,
    /// The time by which departures may be early or late, ns.
    pub nanos: u64,
}

/// Random traffic for a rate, and how late the discipline is asked.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Pauses before bursts, and the lengths of the packets of each burst.
    bursts: Vec<(Pause, Vec<u32>)>,
    /// By how much each call after a watchdog is late, in 256ths of [`Traffic::latest`].
    late: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Pause {
    /// Sixteenths of the time that the longest packet takes at the rate.
    Relative(u64),
    /// Nanoseconds.
    Absolute(u64),
}

/// Returns traffic that exceeds any rate at times and pauses at others. Pauses are as long as packets take at
/// the rate, or a second or some: disciplines have constants that long.
pub fn traffic() -> impl Strategy<Value = Traffic> {
    let pause = prop_oneof![
        4 => (0u64..40).prop_map(Pause::Relative),
        1 => (0u64..1000).prop_map(Pause::Relative),
        2 => (0u64..5_000_000_000).prop_map(Pause::Absolute),
    ];
    // Whole runs of one length, and of one pause, find what mixtures hide.
    let length = prop_oneof![64..=LONGEST, Just(64), Just(1514), Just(LONGEST)];
    let burst = prop_oneof![
        2 => vec(64..=LONGEST, 1..=BURST),
        2 => (length.clone(), 1..=BURST).prop_map(|(length, count)| vec![length; count]),
        1 => length.prop_map(|length| vec![length]),
    ];
    let mixed = vec((pause.clone(), burst.clone()), 1..40);
    let regular = (pause, burst, 2usize..40).prop_map(|(pause, burst, times)| vec![(pause, burst); times]);
    (prop_oneof![mixed, regular], vec(any::<u8>(), 1..8)).prop_map(|(bursts, late)| Traffic { bursts, late })
}

impl Traffic {
    /// Returns how late the discipline is asked at most, ns: the time of the longest packet at the rate.
    pub fn latest(rate: Rate) -> u64 {
        rate.transmission_nanos(LONGEST.into())
    }
}

/// Checks that of this traffic, whose packets are like `packet`, at most what every ceiling permits leaves.
/// `rate` is the time scale of the traffic.
///
/// # Panics
/// If more leaves, or if the discipline has packets and never sends them.
pub fn check_ceilings(
    discipline: Box<dyn Discipline>,
    packet: Packet,
    rate: Rate,
    traffic: &Traffic,
    ceilings: &[Ceiling],
) {
    let sent = departures(discipline, packet, rate, traffic);
    for ceiling in ceilings {
        if let Err(excess) = check(&sent, ceiling) {
            panic!("{ceiling:?}: {excess} bytes too much; sent (ns, bytes): {sent:?}");
        }
    }
}

/// Sends the traffic. Returns when each packet left, ns, and its length.
fn departures(
    mut root: Box<dyn Discipline>,
    packet: Packet,
    rate: Rate,
    traffic: &Traffic,
) -> Vec<(u64, u32)> {
    let sixteenth = |count: u64| Traffic::latest(rate).saturating_mul(count) / 16;
    let mut pool = Pool::with_capacity((40 * BURST) as u32);
    let mut at = 0;
    let mut bursts = traffic.bursts.iter().map(|(pause, lengths)| {
        at += match *pause {
            Pause::Relative(count) => sixteenth(count),
            Pause::Absolute(nanos) => nanos,
        };
        (Time::from_nanos(at), lengths)
    });
    let mut late = traffic.late.iter().cycle();
    let mut late = || {
        let part = u128::from(*late.next().expect("there is one"));
        (u128::from(Traffic::latest(rate)) * part / 256) as u64
    };
    let mut sent = Vec::new();
    let (mut next, mut ask): (_, Option<Time>) = (bursts.next(), None);
    loop {
        let arrives = next.map(|(at, _)| at);
        let Some(now) = arrives.into_iter().chain(ask).min() else {
            return sent;
        };
        if arrives == Some(now) {
            for &length in next.expect("it arrives").1 {
                let id = pool
                    .insert(Packet { length, ..packet })
                    .expect("a slot for each packet");
                root.enqueue(id, now, &mut pool);
            }
            next = bursts.next();
        }
        while let Some(id) = root.dequeue(now, &mut pool) {
            sent.push((now.nanos(), pool.release(id).length));
        }
        while let Some((id, _)) = pool.take_returned() {
            pool.release(id);
        }
        ask = match root.backlog().packets {
            0 => None,
            _ => Some(root.watchdog().expect("packets are queued").max(now + 1) + late()),
        };
    }
}

/// Finds an interval in which more was sent than the ceiling permits.
///
/// # Errors
/// Returns by how many bytes. A bucket that the rate drains holds the most that any interval up to now has
/// sent beyond the rate.
fn check(sent: &[(u64, u32)], ceiling: &Ceiling) -> Result<(), u64> {
    /// What a byte weighs: the rate drains one unit for each bit per second and nanosecond.
    const BYTE: u128 = 8_000_000_000;
    let rate = u128::from(ceiling.rate.bits_per_second());
    let most = u128::from(ceiling.bytes) * BYTE + u128::from(ceiling.nanos) * rate;
    let (mut level, mut before) = (0u128, 0);
    for &(at, length) in sent {
        level = level.saturating_sub(u128::from(at - before) * rate);
        before = at;
        let exact = u128::from(length) * BYTE;
        level += exact.saturating_sub(rate + (exact >> 30));
        if level > most {
            return Err(((level - most) / BYTE) as u64);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 bytes each millisecond are 8 Mbit/s. A single one that is early, or longer, is found.
    #[test]
    fn one_packet_too_much_is_found() {
        let ceiling = Ceiling {
            rate: Rate::mbit(8),
            bytes: 2000,
            nanos: 0,
        };
        let mut sent: Vec<(u64, u32)> = (0..100).map(|number| (number * 1_000_000, 1000)).collect();
        sent.insert(50, (49_000_000, 1000));
        assert_eq!(check(&sent, &ceiling), Ok(()));
        sent.insert(80, (78_000_000, 1000));
        assert_eq!(check(&sent, &ceiling), Err(999));
    }
}
