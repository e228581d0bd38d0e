//! What a link does to packets after their transmission: loss, and jitter with or without reordering.
//!
//! Each direction has its own random numbers, separate ones for losses and for jitter. So nothing that
//! happens on another link, and no other setting of this one, changes which packets are lost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fairgate::queues::netem::GilbertElliott;
use fairgate::{PacketId, Time};

use crate::events::Ticket;
use crate::random::{Distribution, Stream};
use crate::scenario::{Direction, Jitter, Loss};

/// A probability in units of 2^-63.
#[derive(Clone, Copy, Debug)]
struct Chance(u64);

impl Chance {
    /// `probability` is from 0 to 1.
    fn new(probability: f64) -> Chance {
        Chance((probability * (1u64 << 63) as f64) as u64)
    }

    fn occurs(self, stream: &mut Stream) -> bool {
        stream.bits() >> 1 < self.0
    }
}

/// The losses of one direction.
#[derive(Debug)]
enum Losses {
    Random(Chance),
    GilbertElliott(GilbertElliott<Chance>),
}

impl Losses {
    fn new(loss: &Loss) -> Losses {
        match *loss {
            Loss::Random { probability } => Losses::Random(Chance::new(probability)),
            Loss::GilbertElliott {
                p,
                r,
                loss_good,
                loss_bad,
            } => Losses::GilbertElliott(GilbertElliott::new(
                [p, r].map(Chance::new),
                [loss_good, loss_bad].map(Chance::new),
            )),
        }
    }

    /// Returns whether the next packet is lost.
    fn next(&mut self, stream: &mut Stream) -> bool {
        match self {
            Losses::Random(chance) => chance.occurs(stream),
            Losses::GilbertElliott(model) => model.next(|chance| chance.occurs(stream)),
        }
    }
}

/// Packets in flight by their times of arrival, and by their places in the order of events.
pub(crate) type Overtaking = BinaryHeap<Reverse<(Time, Ticket, PacketId)>>;

/// The impairments of one direction of a link.
#[derive(Debug)]
pub(crate) struct Impairments {
    losses: Option<(Losses, Stream)>,
    jitter: Option<(Distribution, Stream)>,
    /// The latest arrival so far. Without reordering, no packet arrives before it.
    latest: Time,
    /// The packets in flight if they may overtake.
    overtaking: Option<Overtaking>,
}

impl Impairments {
    /// Returns `None` if the direction has none. `name` is that of the interface.
    pub(crate) fn new(direction: Direction<'_>, seed: u64, name: &str) -> Option<Box<Impairments>> {
        if direction.loss.is_none() && direction.jitter.is_none() {
            return None;
        }
        let stream = |purpose| Stream::new(seed, purpose, name);
        let reorder = direction.jitter.is_some_and(|jitter: &Jitter| jitter.reorder);
        Some(Box::new(Impairments {
            losses: direction
                .loss
                .map(|loss| (Losses::new(loss), stream("link loss"))),
            jitter: direction
                .jitter
                .map(|jitter| (jitter.delay.clone(), stream("link jitter"))),
            latest: Time::ZERO,
            overtaking: reorder.then(BinaryHeap::new),
        }))
    }

    /// Returns when the next packet arrives, which would arrive at `arrival` without impairments. `None`: it
    /// is lost.
    pub(crate) fn arrival(&mut self, arrival: Time) -> Option<Time> {
        if let Some((losses, stream)) = &mut self.losses
            && losses.next(stream)
        {
            return None;
        }
        let Some((delay, stream)) = &mut self.jitter else {
            return Some(arrival);
        };
        let arrival = arrival + delay.sample(stream);
        if self.overtaking.is_some() {
            return Some(arrival);
        }
        self.latest = self.latest.max(arrival);
        Some(self.latest)
    }

    /// The packets in flight, if they may overtake.
    #[inline]
    pub(crate) fn overtaking(&mut self) -> Option<&mut Overtaking> {
        self.overtaking.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(loss: Loss, count: usize) -> Vec<bool> {
        let mut losses = Losses::new(&loss);
        let mut stream = Stream::new(3, "test", "losses");
        (0..count).map(|_| losses.next(&mut stream)).collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64
    }

    #[test]
    fn certain_and_impossible_losses_are_exact() {
        assert!(
            outcomes(Loss::Random { probability: 1.0 }, 10_000)
                .iter()
                .all(|lost| *lost)
        );
        assert!(
            outcomes(Loss::Random { probability: 0.0 }, 10_000)
                .iter()
                .all(|lost| !lost)
        );
    }

    #[test]
    fn random_losses_are_independent() {
        let lost = outcomes(Loss::Random { probability: 0.1 }, 400_000);
        assert!((share(&lost) - 0.1).abs() < 0.002, "{}", share(&lost));
        let after_a_loss: Vec<bool> = lost
            .windows(2)
            .filter(|pair| pair[0])
            .map(|pair| pair[1])
            .collect();
        assert!(
            (share(&after_a_loss) - 0.1).abs() < 0.006,
            "{}",
            share(&after_a_loss)
        );
    }

    #[test]
    fn gilbert_elliott_has_its_stationary_loss_and_its_burst_lengths() {
        // The bad state has a share of p / (p + r) = 1/11, and lasts for 1/r = 5 packets on average.
        let (p, r) = (0.02, 0.2);
        let gilbert = Loss::GilbertElliott {
            p,
            r,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        let lost = outcomes(gilbert, 1_000_000);
        assert!((share(&lost) - 1.0 / 11.0).abs() < 0.002, "{}", share(&lost));
        let bursts: Vec<usize> = lost
            .chunk_by(|one, other| one == other)
            .filter(|run| run[0])
            .map(<[bool]>::len)
            .collect();
        let mean = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
        assert!((mean - 1.0 / r).abs() < 0.1, "{mean}");
        // The lengths are geometric: P(length > 3) = (1 - r)^3.
        let long = bursts.iter().filter(|length| **length > 3).count() as f64 / bursts.len() as f64;
        assert!((long - (1.0 - r).powi(3)).abs() < 0.015, "{long}");

        let elliott = Loss::GilbertElliott {
            p,
            r,
            loss_good: 0.01,
            loss_bad: 0.5,
        };
        let expected = 10.0 / 11.0 * 0.01 + 1.0 / 11.0 * 0.5;
        let measured = share(&outcomes(elliott, 1_000_000));
        assert!((measured - expected).abs() < 0.002, "{measured}");
    }
}
