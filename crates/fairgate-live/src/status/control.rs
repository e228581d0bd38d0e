//! Answers requests that change a run. This is done on threads that forward nothing.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use fairgate_config::{CHANGE, FileError, Problem, Spec};
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
    pub(crate) owner: Owner,
}

/// What the trees are made from, if that is not the file alone: it refuses changes by hand, which the next
/// change of it would undo. Copies are the same owner.
#[derive(Clone)]
pub struct Owner {
    refuses: Arc<Refuses>,
    reloads: Option<Arc<Reloads>>,
}

type Refuses = dyn Fn(usize, &Spec, &Spec) -> Option<Mistake> + Send + Sync;

type Reloads = dyn Fn(&str) -> Answer + Send + Sync;

impl Owner {
    /// Returns an owner that calls this function with a direction, 0 from the left, with its tree and with
    /// the changed one. It returns why the change is refused, or nothing.
    pub fn new(refuses: impl Fn(usize, &Spec, &Spec) -> Option<Mistake> + Send + Sync + 'static) -> Owner {
        Owner {
            refuses: Arc::new(refuses),
            reloads: None,
        }
    }

    /// Adds a function that reads the configuration again, for a client that it is told of, and returns what
    /// became of it. It is called on a thread that forwards nothing, and waits.
    #[must_use]
    pub fn with_reload(self, reloads: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Owner {
        Owner {
            reloads: Some(Arc::new(reloads)),
            ..self
        }
    }
}

/// All changes are accepted.
impl Default for Owner {
    fn default() -> Owner {
        Owner::new(|_, _, _| None)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner").finish_non_exhaustive()
    }
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
             {\"request\": \"change\", \"lines\": [...]}, {\"request\": \"reload\"}, \
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
            name: plan.queue_names[side].clone(),
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

    /// Has the configuration read again, for `who`. That notes it in the audit.
    pub(super) fn reload(&self, who: &str) -> Answer {
        match &self.owner.reloads {
            Some(reloads) => reloads(who),
            None => refused(
                "this run has no configuration that it could read again".to_owned(),
                "start it by `fairgate run`",
            ),
        }
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
        let are_equal = plan.queues[0] == plan.queues[1];
        let mut new = plan.clone();
        for side in changed_sides(names, from, plan.shaped(), are_equal)? {
            let (old, edited) = (&plan.queues[side], &mut new.queues[side]);
            *edited = old.edited(lines, self.reserver.registry())?;
            if let Some(mistake) = (self.owner.refuses)(side, old, &*edited) {
                return Err(mistake.into());
            }
        }
        Ok(new)
    }
}

/// Returns the directions that a change is for: the one from the interface that it names. Without a name it
/// is the only one that has a tree, or both if their trees are equal. `names` are those of the interfaces.
///
/// # Errors
/// If no direction has this name, or if one must be named.
pub fn changed_sides(
    names: [&str; 2],
    from: Option<&str>,
    shaped: [bool; 2],
    are_equal: bool,
) -> Result<Range<usize>, Mistake> {
    let [left, right] = names;
    match (from, shaped) {
        (Some(from), _) => match names.iter().position(|name| *name == from) {
            Some(side) => Ok(side..side + 1),
            None => Err(mistake(
                format!("no direction is from `{from}`"),
                &format!("name {left} or {right}"),
            )),
        },
        (None, [true, false]) => Ok(0..1),
        (None, [false, true]) => Ok(1..2),
        (None, _) if are_equal => Ok(0..2),
        (None, _) => Err(mistake(
            "the two directions have different trees".to_owned(),
            &format!("say which one changes: --from {left} or --from {right}"),
        )),
    }
}

/// Returns the mistakes of a file or of a change, with their places.
pub fn mistakes_of(error: &FileError) -> Vec<Mistake> {
    let place = |problem: &Problem| match (problem.file(), problem.position()) {
        (CHANGE, (1, _)) => format!("word {}", problem.word()),
        (CHANGE, (line, _)) => format!("line {line}, word {}", problem.word()),
        (file, (line, column)) => format!("{file}:{line}:{column}"),
    };
    let mistake = |problem: &Problem| Mistake {
        place: Some(place(problem)),
        message: problem.message.clone(),
        help: problem.help.clone(),
    };
    error.problems().iter().map(mistake).collect()
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
        Refusal(Answer::Refused {
            errors: mistakes_of(&error),
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
