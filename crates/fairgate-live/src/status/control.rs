//! Answers requests that change a run. This is done on threads that forward nothing.

use fairgate_config::{FileError, Problem};
use fairgate_reserve::Refusal as NotKept;
use miette::Diagnostic;

use super::QUEUE;
use super::audit::{self, Audit};
use super::protocol::{Answer, Mistake, Request, TreeStatus, TreesStatus};
use crate::bridge::Changed;
use crate::config::Plan;
use crate::error::ReloadError;
use crate::reserve::{Reserver, check_revision};

/// The longest request, bytes. A change of all classes of a large tree has less.
pub(super) const LONGEST_REQUEST: u64 = 16 << 20;

/// Changes the trees and the reservations for clients.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) reserver: Reserver,
    pub(crate) audit: Audit,
}

/// Reads a request. No bytes at all are a request for the status.
pub(super) fn read(bytes: &[u8]) -> Result<Request, Answer> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Request::Status { only_used: false });
    }
    serde_json::from_slice(bytes).map_err(|error| {
        refused(
            format!("the request is not understood: {error}"),
            "send {\"request\": \"status\"}, {\"request\": \"trees\"}, \
             {\"request\": \"change\", \"lines\": [...]}, \
             {\"request\": \"record\", \"interval_us\": 400000}, {\"request\": \"flows\"}, \
             {\"request\": \"packets\"} or \
             {\"request\": \"reserve\", \"order\": \"list\"}",
        )
    })
}

impl Control {
    /// Returns the trees.
    pub(super) fn trees(&self) -> TreesStatus {
        let plan = self.reserver.changer().plan();
        let tree = |side: usize| TreeStatus {
            from: plan.ends[side].title().to_owned(),
            to: plan.ends[1 - side].title().to_owned(),
            queue: plan.queues[side].to_toml(QUEUE),
            workers: plan.classes_of_workers(side),
        };
        TreesStatus {
            revision: plan.revision,
            directions: vec![tree(0), tree(1)],
        }
    }

    /// Makes the changes in these lines, in the direction from this interface, for `who`. If the trees have
    /// another revision than the expected one, nothing is changed.
    pub(super) fn change(
        &self,
        who: &str,
        from: Option<&str>,
        lines: &[String],
        expected: Option<u64>,
    ) -> Answer {
        let edited = |plan: &Plan| self.edited(plan, from, &lines.join("\n"));
        let answer = answer(self.reserver.edit(expected, edited));
        self.audit
            .note(who, &audit::change(from, lines), answer.outcome());
        answer
    }

    /// Notes in the audit what else was asked for.
    pub(super) fn note(&self, who: &str, what: &str, outcome: &str) {
        self.audit.note(who, what, outcome.to_owned());
    }

    /// Changes to the trees of the plan that `new` makes, for `who`. `what` says what was asked for.
    pub(super) fn replace(
        &self,
        who: &str,
        what: &str,
        expected: Option<u64>,
        new: impl FnOnce(&Plan) -> Result<Plan, FileError>,
    ) -> Answer {
        let changed = self.reserver.reload(|plan| {
            check_revision(plan, expected)?;
            new(plan).map_err(Refusal::from)
        });
        let answer = answer(changed);
        self.audit.note(who, what, answer.outcome());
        answer
    }

    /// Returns the plan with the changes.
    fn edited(&self, plan: &Plan, from: Option<&str>, lines: &str) -> Result<Plan, Refusal> {
        let names = [plan.ends[0].title(), plan.ends[1].title()];
        let mut new = plan.clone();
        let sides = match from {
            None if plan.queues[0] == plan.queues[1] => 0..2,
            None => {
                let message = "the two directions have different trees".to_owned();
                let help = format!(
                    "say which one changes: --from {} or --from {}",
                    names[0], names[1]
                );
                return Err(Refusal(refused(message, &help)));
            }
            Some(from) => match names.iter().position(|name| *name == from) {
                Some(side) => side..side + 1,
                None => {
                    let message = format!("no direction is from `{from}`");
                    let help = format!("name {} or {}", names[0], names[1]);
                    return Err(Refusal(refused(message, &help)));
                }
            },
        };
        for side in sides {
            new.queues[side] = plan.queues[side].edited(lines, self.reserver.registry())?;
        }
        Ok(new)
    }
}

fn answer(changed: Result<Changed, Refusal>) -> Answer {
    match changed {
        Ok(changed) => Answer::Changed {
            pause_us: changed.pause.as_nanos() as f64 / 1e3,
            dropped: changed.dropped,
            revision: changed.revision,
        },
        Err(Refusal(answer)) => answer,
    }
}

/// Why a change is not made.
pub(super) struct Refusal(pub(super) Answer);

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Refusal {
        let mistake = |problem: &Problem| {
            let (line, column) = problem.position();
            Mistake {
                place: Some(format!("{}:{line}:{column}", problem.file())),
                message: problem.message.clone(),
                help: problem.help.clone(),
            }
        };
        Refusal(Answer::Refused {
            errors: error.problems().iter().map(mistake).collect(),
        })
    }
}

impl From<NotKept> for Refusal {
    fn from(refusal: NotKept) -> Refusal {
        match refusal {
            NotKept::Tree(error) => error.into(),
            refusal => Refusal(refused(refusal.to_string(), &refusal.help())),
        }
    }
}

impl From<Mistake> for Refusal {
    fn from(mistake: Mistake) -> Refusal {
        Refusal(Answer::Refused {
            errors: vec![mistake],
        })
    }
}

impl Refusal {
    /// Returns the mistakes.
    pub(super) fn mistakes(self) -> Vec<Mistake> {
        match self.0 {
            Answer::Refused { errors } => errors,
            Answer::Changed { .. } | Answer::Stale { .. } => Vec::new(),
        }
    }
}

impl From<ReloadError> for Refusal {
    fn from(error: ReloadError) -> Refusal {
        match error {
            ReloadError::Unfit(error) => error.into(),
            ReloadError::Stale { revision } => Refusal(Answer::Stale { revision }),
            error => {
                let help = error.help().map(|help| help.to_string()).unwrap_or_default();
                Refusal(refused(error.to_string(), &help))
            }
        }
    }
}

pub(super) fn refused(message: String, help: &str) -> Answer {
    Answer::Refused {
        errors: vec![mistake(message, help)],
    }
}

/// Returns a mistake that has no place in a tree.
pub(super) fn mistake(message: String, help: &str) -> Mistake {
    Mistake {
        place: None,
        message,
        help: help.to_owned(),
    }
}
