//! Why a run does not answer.

use thiserror::Error;

use crate::entry::Entry;
use crate::trees::Mistake;

/// Why a question is not answered. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Refused {
    /// The trees have another revision.
    #[error("refused: the trees have revision {revision}")]
    Stale {
        /// Their revision.
        revision: u64,
    },
    /// The subscriber has another version. It is as given here by now, or is not there.
    #[error("refused: the subscriber has changed")]
    Outdated(Option<Box<Entry>>),
    /// What is asked for is wrong, or can't be done: why, at least one.
    #[error("refused: {}", messages(.0))]
    Mistakes(Vec<Mistake>),
    /// What the question names is not there.
    #[error("refused: {}", .0.message)]
    Missing(Mistake),
    /// The question contradicts itself.
    #[error("refused: {0}")]
    Malformed(String),
    /// The run could not be read this time: what failed, and what to do. It goes on.
    #[error("{}; {}", .0.message, .0.help)]
    Unread(Mistake),
    /// The run has ended.
    #[error("the run has ended")]
    Ended,
}

fn messages(mistakes: &[Mistake]) -> String {
    let messages: Vec<&str> = mistakes.iter().map(|mistake| mistake.message.as_str()).collect();
    messages.join("; ")
}

impl Refused {
    /// Returns the refusal of a direction that is not there. `ends` are the interfaces that there are.
    pub fn no_direction(from: &str, ends: [&str; 2]) -> Refused {
        Refused::missing(
            format!("no direction is from `{from}`"),
            format!("name {} or {}", ends[0], ends[1]),
        )
    }

    /// Returns the refusal of a run that does not keep the last packets.
    pub fn no_packets() -> Refused {
        let help = "start the run again, with packet_log = \"30s\" in [run], or with `--packet-log 30s` \
            beside --dev";
        Refused::missing("the run keeps no packets", help)
    }

    /// Returns the refusal of something that is not there.
    pub fn missing(message: impl Into<String>, help: impl Into<String>) -> Refused {
        Refused::Missing(Mistake::new(message, help))
    }
}

impl From<Mistake> for Refused {
    fn from(mistake: Mistake) -> Refused {
        Refused::Mistakes(vec![mistake])
    }
}
