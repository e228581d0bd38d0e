//! Which packets are lost: independently or with correlation, by a Markov chain of four states, or by the
//! model of Gilbert and Elliott. The names of the parameters are those of tc.

use super::random::{Correlated, occurs};
use crate::error::ConfigError;
use crate::probability::Probability;
use crate::structures::Random;

/// A model of losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// No packet is lost.
    #[default]
    None,
    /// Each packet is lost with this probability.
    Random {
        /// The probability.
        probability: Probability,
        /// How much a random number resembles the one before.
        correlation: Probability,
    },
    /// The chain of four states of Salsano, Ludovici and Ordine ("Definition of a general and intuitive loss
    /// model for packet networks", 2009). Packets are received in state 1, lost in a burst in state 3,
    /// received within such a burst in state 2, and lost one at a time in state 4. `pXY` is the probability
    /// of a change from X to Y. State 4 is always left for state 1.
    FourStates {
        /// From good times into a burst of losses.
        p13: Probability,
        /// From a burst to good times.
        p31: Probability,
        /// From losses to received packets within a burst.
        p32: Probability,
        /// From received packets to losses within a burst.
        p23: Probability,
        /// From good times to a single loss.
        p14: Probability,
    },
    /// Good and bad times (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// From good to bad.
        p: Probability,
        /// From bad to good.
        r: Probability,
        /// The probability of a loss in bad times (tc: `1-h`).
        loss_bad: Probability,
        /// The probability of a loss in good times (tc: `1-k`).
        loss_good: Probability,
    },
}

impl Loss {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Loss::FourStates {
            p13, p31, p32, p14, ..
        } = self
        else {
            return Ok(());
        };
        for (parameter, one, other) in [("p14", p13, p14), ("p32", p31, p32)] {
            if one.parts() + other.parts() > Probability::ONE.parts() {
                return Err(ConfigError::conflict(
                    parameter,
                    other,
                    "at most 1 together with the other probability of leaving the same state",
                    "lower `p13` or `p14` (good times), `p31` or `p32` (losses of a burst)",
                ));
            }
        }
        Ok(())
    }
}

/// The model of Gilbert and Elliott. Losses come in bursts, because the state lasts. `P` is a probability in
/// the caller's form.
///
/// ```
/// use fairgate::queues::netem::GilbertElliott;
/// let mut link = GilbertElliott::new([0.5, 0.25], [0.0, 1.0]);
/// // The first packet goes through, and the state becomes bad. The next packet is lost.
/// assert!(!link.next(|chance: f64| chance > 0.4));
/// assert!(link.next(|chance: f64| chance > 0.4));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct GilbertElliott<P> {
    is_bad: bool,
    change: [P; 2],
    loss: [P; 2],
}

impl<P: Copy> GilbertElliott<P> {
    /// Starts in the good state. The probabilities are those of the good state, then of the bad one: that the
    /// state changes after a packet, and that a packet is lost.
    pub const fn new(change: [P; 2], loss: [P; 2]) -> GilbertElliott<P> {
        GilbertElliott {
            is_bad: false,
            change,
            loss,
        }
    }

    /// Returns whether the next packet is lost. `occurs` draws an event of this probability.
    #[inline]
    pub fn next(&mut self, mut occurs: impl FnMut(P) -> bool) -> bool {
        let state = usize::from(self.is_bad);
        // As in Linux, the state changes after it has decided about the packet.
        let is_lost = occurs(self.loss[state]);
        self.is_bad ^= occurs(self.change[state]);
        is_lost
    }
}

/// The states of [`Loss::FourStates`].
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    Good,
    ReceivedInBurst,
    LostInBurst,
    LostAlone,
}

/// A model of losses in its present state (Linux: `loss_event`).
#[derive(Debug)]
pub(super) enum Losses {
    None,
    Random(Probability, Correlated),
    FourStates(State, [Probability; 5]),
    GilbertElliott(GilbertElliott<Probability>),
}

impl Losses {
    pub(super) fn new(loss: Loss, random: &mut Random) -> Losses {
        match loss {
            Loss::None => Losses::None,
            Loss::Random {
                probability,
                correlation,
            } => Losses::Random(probability, Correlated::new(correlation, random)),
            Loss::FourStates {
                p13,
                p31,
                p32,
                p23,
                p14,
            } => Losses::FourStates(State::Good, [p13, p31, p32, p23, p14]),
            Loss::GilbertElliott {
                p,
                r,
                loss_bad,
                loss_good,
            } => Losses::GilbertElliott(GilbertElliott::new([p, r], [loss_good, loss_bad])),
        }
    }

    /// Returns whether the next packet is lost.
    #[inline]
    pub(super) fn next(&mut self, random: &mut Random) -> bool {
        match self {
            Losses::None => false,
            Losses::Random(probability, correlated) => correlated.occurs(*probability, random),
            Losses::FourStates(state, probabilities) => {
                *state = state.next(probabilities, random.bits32().into());
                matches!(state, State::LostInBurst | State::LostAlone)
            }
            Losses::GilbertElliott(model) => model.next(|chance| occurs(chance, random)),
        }
    }
}

impl State {
    /// Returns the next state (Linux: `loss_4state`). One random number decides between two ways out.
    #[inline]
    fn next(self, [p13, p31, p32, p23, p14]: &[Probability; 5], drawn: u64) -> State {
        match self {
            State::Good if drawn < p14.parts() => State::LostAlone,
            State::Good if drawn < p14.parts() + p13.parts() => State::LostInBurst,
            State::Good | State::LostAlone => State::Good,
            State::ReceivedInBurst if drawn < p23.parts() => State::LostInBurst,
            State::ReceivedInBurst => State::ReceivedInBurst,
            State::LostInBurst if drawn < p32.parts() => State::ReceivedInBurst,
            State::LostInBurst if drawn < p32.parts() + p31.parts() => State::Good,
            State::LostInBurst => State::LostInBurst,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(loss: Loss, count: usize) -> Vec<bool> {
        let mut random = Random::new(5);
        let mut losses = Losses::new(loss, &mut random);
        (0..count).map(|_| losses.next(&mut random)).collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64
    }

    /// The mean number of losses in a row.
    fn burst(lost: &[bool]) -> f64 {
        let runs = lost.chunk_by(|one, other| one == other).filter(|run| run[0]);
        let lengths: Vec<usize> = runs.map(<[bool]>::len).collect();
        lengths.iter().sum::<usize>() as f64 / lengths.len() as f64
    }

    fn near(measured: f64, expected: f64, tolerance: f64) {
        assert!(
            (measured - expected).abs() < tolerance,
            "{measured} for {expected}"
        );
    }

    #[test]
    fn certain_and_impossible_losses_are_exact() {
        let random = |probability, correlation| Loss::Random {
            probability,
            correlation,
        };
        for correlation in [Probability::ZERO, Probability::ratio(1, 2), Probability::ONE] {
            assert_eq!(
                share(&outcomes(random(Probability::ONE, correlation), 10_000)),
                1.0
            );
            assert_eq!(
                share(&outcomes(random(Probability::ZERO, correlation), 10_000)),
                0.0
            );
        }
    }

    #[test]
    fn random_losses_have_their_share_and_no_memory() {
        let lost = outcomes(
            Loss::Random {
                probability: Probability::ratio(1, 10),
                correlation: Probability::ZERO,
            },
            400_000,
        );
        near(share(&lost), 0.1, 0.002);
        // In independent losses a run of length 1/(1 - 0.1) is expected.
        near(burst(&lost), 1.0 / 0.9, 0.01);
    }

    /// With full weight on the last number nothing ever changes.
    #[test]
    fn correlation_makes_bursts() {
        let of = |percent| {
            outcomes(
                Loss::Random {
                    probability: Probability::ratio(30, 100),
                    correlation: Probability::ratio(percent, 100),
                },
                400_000,
            )
        };
        assert!(burst(&of(75)) > burst(&of(25)) && burst(&of(25)) > burst(&of(0)));
    }

    /// The share of losses and the lengths of bursts are those of the stationary chain.
    #[test]
    fn four_states_have_their_stationary_shares() {
        let per_thousand = |thousandths| Probability::ratio(thousandths, 1000);
        let loss = Loss::FourStates {
            p13: per_thousand(10),
            p31: per_thousand(200),
            p32: per_thousand(300),
            p23: per_thousand(400),
            p14: per_thousand(20),
        };
        // Balance of the states: s4 = p14 s1; s2 p23 = s3 p32; s1 (p13 + p14) = s3 p31 + s4.
        let (p13, p31, p32, p23, p14) = (0.01, 0.2, 0.3, 0.4, 0.02);
        let s3 = p13 / p31;
        let (s2, s4) = (s3 * p32 / p23, p14);
        let all = 1.0 + s2 + s3 + s4;
        let lost = outcomes(loss, 2_000_000);
        near(share(&lost), (s3 + s4) / all, 0.002);
        // A run of losses is alone, or lasts for 1 / (p31 + p32) packets; a state 3 is entered from 1 and 2.
        let (from_good, within) = (p13, s2 * p23);
        let runs = (p14 + (from_good + within)) / (p14 + from_good + within);
        let expected = (p14 + (from_good + within) / (p31 + p32)) / (p14 + from_good + within) * runs;
        near(burst(&lost), expected, 0.02);
    }

    #[test]
    fn gilbert_elliott_has_its_share_and_its_bursts() {
        let loss = Loss::GilbertElliott {
            p: Probability::ratio(2, 100),
            r: Probability::ratio(20, 100),
            loss_bad: Probability::ONE,
            loss_good: Probability::ZERO,
        };
        let lost = outcomes(loss, 1_000_000);
        near(share(&lost), 0.02 / 0.22, 0.002);
        near(burst(&lost), 5.0, 0.1);
    }

    #[test]
    fn probabilities_of_leaving_a_state_are_at_most_one() {
        let half = Probability::ratio(1, 2);
        let most = Probability::ratio(2, 3);
        let loss = |p13, p31| Loss::FourStates {
            p13,
            p31,
            p32: half,
            p23: half,
            p14: half,
        };
        assert_eq!(loss(half, half).check(), Ok(()));
        assert_eq!(loss(most, half).check().unwrap_err().parameter(), Some("p14"));
        assert_eq!(loss(half, most).check().unwrap_err().parameter(), Some("p32"));
    }
}
