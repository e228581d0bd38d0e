//! Why a reservation is refused.

use std::fmt;
use std::time::Duration;

use fairgate_config::{FileError, Problem};
use thiserror::Error;

/// Why a reservation is refused. Nothing has changed then.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The name is in use.
    #[error("there is a reservation `{name}` already")]
    Exists {
        /// The name.
        name: String,
    },
    /// There is no reservation of this name.
    #[error("there is no reservation `{name}`; {}", listed(.known))]
    Unknown {
        /// The name.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// The terms contradict each other or are out of range.
    #[error("{what}")]
    Terms {
        /// What is wrong.
        what: String,
        /// What to do.
        help: &'static str,
    },
    /// The rate of the link is not known.
    #[error("the rate of the link is not known: the root of the tree is `{root}`, not `tbf`")]
    NoLink {
        /// The root's discipline.
        root: &'static str,
    },
    /// The shaper counts other bytes than a token bucket does.
    #[error("the shaper at the root has `{parameter}`, so its rate is not that of the packets")]
    LinkLayer {
        /// The parameter of the shaper.
        parameter: &'static str,
    },
    /// No bound is known for the discipline.
    #[error("no delay bound is known for classes of `{discipline}`")]
    NoBound {
        /// The scheduler.
        discipline: &'static str,
    },
    /// The link has not enough rate.
    #[error("{needed} bit/s are needed, but only {left} bit/s of {link} bit/s can be reserved")]
    Capacity {
        /// What the reservation needs.
        needed: u64,
        /// What is left.
        left: u64,
        /// The rate of the link.
        link: u64,
    },
    /// The rate is there, but the delay can't be promised.
    #[error("{} can't be promised: with what is left, at best {}", Millis(*.wanted), Millis(*.best))]
    Delay {
        /// The delay that was asked for.
        wanted: Duration,
        /// The shortest delay that could be promised now.
        best: Duration,
    },
    /// The link can't send a packet within the delay.
    #[error("{} is too short: another flow's packet takes {}", Millis(*.wanted), Millis(*.shortest))]
    TooShort {
        /// The delay that was asked for.
        wanted: Duration,
        /// The time of the longest packet on the link.
        shortest: Duration,
    },
    /// The rate is there, but other reservations need it for their delays.
    #[error("the link has the rate, but with it the delays of other reservations could not be kept")]
    Others,
    /// All numbers of classes are in use.
    #[error("all numbers of classes from {first} on are in use")]
    Full {
        /// The first number of a reserved class.
        first: u32,
    },
    /// The class of a reservation is missing, or has other settings.
    #[error("class {class} belongs to reservation `{name}`, and the change does not leave it as it is")]
    Disturbed {
        /// The reservation.
        name: String,
        /// Its class.
        class: u32,
    },
    /// An earlier change waits for its confirmation.
    #[error("a change waits for its confirmation, for {} s more", .left.as_secs_f64().ceil())]
    Unconfirmed {
        /// The time until it is undone.
        left: Duration,
    },
    /// The changed tree is not valid.
    #[error("{}", messages(.0))]
    Tree(#[source] FileError),
}

impl Refusal {
    /// Returns what to do.
    pub fn help(&self) -> String {
        match self {
            Refusal::Exists { .. } => "change or refresh it, or choose another name".to_owned(),
            Refusal::Unknown { .. } => "`fairgate reserve list` lists the reservations".to_owned(),
            Refusal::Terms { help, .. } => (*help).to_owned(),
            Refusal::NoLink { .. } => {
                "put a shaper above the tree: `fairgate queue add root tbf rate=20mbit burst=5kb`".to_owned()
            }
            Refusal::LinkLayer { .. } => {
                "leave it out, and lower the shaper's rate by what the link adds".to_owned()
            }
            Refusal::NoBound { .. } => {
                "reserve in hfsc, wf2q_plus, qfq, s_kps, gfq or scfq; `fairgate-lab bounds` lists bounds"
                    .to_owned()
            }
            Refusal::Capacity { .. } => "ask for less, or withdraw another reservation".to_owned(),
            Refusal::Delay { .. } => "ask for this delay, or for a smaller burst".to_owned(),
            Refusal::TooShort { .. } => "ask for a longer delay".to_owned(),
            Refusal::Others => "ask for less, or allow another reservation a longer delay".to_owned(),
            Refusal::Full { .. } => "withdraw a reservation".to_owned(),
            Refusal::Disturbed { .. } => {
                "withdraw the reservation first; other classes and filters can change".to_owned()
            }
            Refusal::Unconfirmed { .. } => {
                "keep it with `fairgate change --confirm`, or wait until it is undone".to_owned()
            }
            Refusal::Tree(error) => {
                let help: Vec<&str> = error
                    .problems()
                    .iter()
                    .map(|problem| problem.help.as_str())
                    .collect();
                help.join("; ")
            }
        }
    }
}

fn listed(names: &[String]) -> String {
    match names.is_empty() {
        true => "there are none".to_owned(),
        false => format!("there are {}", names.join(", ")),
    }
}

fn messages(error: &FileError) -> String {
    let messages: Vec<&str> = error
        .problems()
        .iter()
        .map(|problem: &Problem| problem.message.as_str())
        .collect();
    messages.join("; ")
}

/// A duration in milliseconds.
struct Millis(Duration);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.0.as_secs_f64() * 1e3)
    }
}
