//! What a link does to packets after their transmission: jitter and loss.

use crate::random::Distribution;

/// A random delay of each packet, in addition to the propagation delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Jitter {
    /// The additional delay, ns.
    pub delay: Distribution,
    /// Whether a packet may arrive before packets that were transmitted earlier. Otherwise it waits for them.
    pub reorder: bool,
}

/// Which packets a link loses. They are transmitted, but do not arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Loss {
    /// Each packet is lost with the same probability, whatever happens to the others.
    Random {
        /// The probability, from 0 to 1.
        probability: f64,
    },
    /// Losses in bursts: the link is in a good or in a bad state, and may change it after each packet
    /// (Gilbert 1960, Elliott 1963). The names are those of Linux's netem. At the start the state is good.
    GilbertElliott {
        /// The probability of a change from the good to the bad state. The mean length of a good time is
        /// 1/p packets.
        p: f64,
        /// The probability of a change from the bad to the good state. The mean length of a bad time is 1/r
        /// packets.
        r: f64,
        /// The probability that a packet is lost in the good state (netem: 1-k).
        loss_good: f64,
        /// The probability that a packet is lost in the bad state (netem: 1-h).
        loss_bad: f64,
    },
}

impl Loss {
    /// Checks the parameters. The error says what is wrong, and the remedy after a semicolon.
    pub(crate) fn check(&self) -> Result<(), String> {
        let probabilities = match *self {
            Loss::Random { probability } => vec![("the loss", probability)],
            Loss::GilbertElliott {
                p,
                r,
                loss_good,
                loss_bad,
            } => vec![
                ("`p`", p),
                ("`r`", r),
                ("`loss_good`", loss_good),
                ("`loss_bad`", loss_bad),
            ],
        };
        for (name, probability) in probabilities {
            if !(0.0..=1.0).contains(&probability) {
                return Err(format!(
                    "{name} is {probability}, but must be a probability from 0 to 1; write 0.01 for 1 %"
                ));
            }
        }
        match *self {
            Loss::GilbertElliott { p, r, .. } if p == 0.0 || r == 0.0 => Err(format!(
                "`p` is {p} and `r` is {r}, but both must be above 0, because otherwise the link never \
                 leaves a state; write a number for random losses, such as 0.01"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_probabilities_are_accepted() {
        let bursts = |p, r, loss_bad| Loss::GilbertElliott {
            p,
            r,
            loss_good: 0.0,
            loss_bad,
        };
        for (loss, expected) in [
            (Loss::Random { probability: 1.5 }, "the loss is 1.5"),
            (Loss::Random { probability: -0.1 }, "the loss is -0.1"),
            (
                Loss::Random {
                    probability: f64::NAN,
                },
                "the loss is NaN",
            ),
            (bursts(0.1, 2.0, 1.0), "`r` is 2"),
            (bursts(0.1, 0.2, -1.0), "`loss_bad` is -1"),
            (bursts(0.0, 0.2, 1.0), "both must be above 0"),
        ] {
            let error = loss.check().unwrap_err();
            assert!(error.contains(expected) && error.contains("; "), "{error}");
        }
        assert_eq!(bursts(0.1, 1.0, 0.5).check(), Ok(()));
    }
}
