//! Measures how the worst-case fair index grows with the number of flows. One heavy flow has half of the
//! link, and N light flows share the other half.
//!
//! A scheduler that sends in rounds, or far ahead of GPS, lets the heavy flow wait for a packet of each light
//! flow. Three traffics are tried, and the worst result counts. In the first all flows are backlogged from
//! the beginning. The second is the same with one packet for each light flow (Bennett & Zhang's example of
//! 1996). In the third the heavy flow becomes active again and again while all light flows are backlogged.

use fairgate::Time;

use super::candidates::Candidate;
use super::schedule::Arrival;
use super::traffic::{NANOS_PER_BYTE, Traffic};
use super::trial::{TrialError, b_wfi_of};

/// The length of all packets, bytes.
pub const LENGTH: u32 = 1000;

/// The number of the heavy flow.
const HEAVY: u32 = 0;

/// Returns the heavy flow's B-WFI, in packets, beside `light` light flows. Returns `None` if the scheduler
/// has no weights, or rejects the number of flows.
///
/// # Errors
/// Returns an error if the scheduler loses packets or leaves the link idle while packets are queued.
pub fn heavy_among(candidate: &Candidate, light: u32) -> Result<Option<f64>, TrialError> {
    if !candidate.weighted {
        return Ok(None);
    }
    let mut worst = 0.0f64;
    for traffic in [full(light, 3), full(light, 1), waking_up(light)] {
        match b_wfi_of(candidate, &traffic, HEAVY) {
            Err(TrialError::Refused { .. }) => return Ok(None),
            bytes => worst = worst.max(bytes? / f64::from(LENGTH)),
        }
    }
    Ok(Some(worst))
}

fn arrival(bytes: u64, flow: u32) -> Arrival {
    Arrival {
        at: Time::from_nanos(bytes * NANOS_PER_BYTE),
        flow,
        length: LENGTH,
    }
}

fn of(light: u32, arrivals: Vec<Arrival>) -> Traffic {
    let mut weights = vec![light];
    weights.resize(light as usize + 1, 1);
    Traffic {
        max_packets: vec![LENGTH; weights.len()],
        weights,
        arrivals,
    }
}

/// All packets arrive at time 0: 2 N packets of the heavy flow, and `each` packets of every light flow.
fn full(light: u32, each: u32) -> Traffic {
    let heavy = (0..2 * light).map(|_| arrival(0, HEAVY));
    let others = (0..each).flat_map(|_| 1..=light).map(|flow| arrival(0, flow));
    of(light, heavy.chain(others).collect())
}

/// Light flows are backlogged all the time. A packet of the heavy flow arrives in the middle of every N light
/// packets.
fn waking_up(light: u32) -> Traffic {
    let round = u64::from(light) * u64::from(LENGTH);
    let others = (0..4).flat_map(|_| 1..=light).map(|flow| arrival(0, flow));
    let heavy = (0..8).map(|turn| arrival(round / 2 * turn + round / 4, HEAVY));
    let mut all: Vec<Arrival> = others.chain(heavy).collect();
    all.sort_by_key(|arrival| arrival.at);
    of(light, all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guarantees::candidates::CANDIDATES;

    fn packets(name: &str, light: u32) -> f64 {
        let candidate = CANDIDATES
            .iter()
            .find(|candidate| candidate.name == name)
            .expect("listed");
        heavy_among(candidate, light)
            .expect("the trial succeeds")
            .expect("the scheduler has weights")
    }

    #[test]
    fn round_robin_grows_with_the_number_of_flows_and_wf2q_plus_does_not() {
        for light in [8, 64] {
            let half = f64::from(light) / 2.0;
            assert!((half * 0.9..half * 1.2).contains(&packets("drr", light)));
            assert!(packets("scfq", light) > half / 4.0);
            assert!(packets("wf2q_plus", light) <= 2.5);
        }
    }
}
