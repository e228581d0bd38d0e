//! Changes of the trees of a run, by those who ask for them.

use std::ops::Range;
use std::time::Duration;

use fairgate_config::{CHANGE, FileError, Problem};
use fairgate_live::{Changed, Plan, ReloadError};
use fairgate_run_api::{Change, ChangeMade, LONGEST_CONFIRMATION_S, Mistake, Refused, described_change};
use miette::Diagnostic;

use super::Run;
use crate::reserve::Refusal as NotKept;

impl Run {
    /// Makes the changes, for `who`.
    pub(super) fn change(&self, who: &str, change: &Change) -> Result<ChangeMade, Refused> {
        let lines = change.lines.join("\n");
        let edited = |plan: &Plan| self.edited(plan, change.from.as_deref(), &lines);
        let what = described_change(change);
        let made = confirmation(change.confirm_within_s).and_then(|within| {
            let within = within.map(|within| (within, what.clone()));
            made(self.reserver().edit(change.if_revision, within, edited))
        });
        self.0.audit.note(who, &what, outcome(&made));
        made
    }

    /// Keeps the change that waits for its confirmation, for `who`. Returns the revision of the trees.
    pub(super) fn confirm(&self, who: &str) -> Result<u64, Refused> {
        let confirmed = self.reserver().confirm();
        let (outcome, answer) = match confirmed {
            true => ("kept", Ok(self.plan().revision)),
            false => {
                let mistake = Mistake::new(
                    "no change waits for its confirmation",
                    "it was confirmed or undone before: see the log of the run",
                );
                ("refused: no change waits", Err(mistake.into()))
            }
        };
        self.0.audit.note(who, "confirm", outcome.to_owned());
        answer
    }

    /// Returns the plan with the changes.
    fn edited(&self, plan: &Plan, from: Option<&str>, lines: &str) -> Result<Plan, Refusal> {
        let names = [plan.ends[0].title(), plan.ends[1].title()];
        let are_equal = plan.queues[0] == plan.queues[1];
        let mut new = plan.clone();
        for side in changed_sides(names, from, plan.shaped(), are_equal)? {
            let (old, edited) = (&plan.queues[side], &mut new.queues[side]);
            *edited = old.edited(lines, self.reserver().registry())?;
            if let Some(mistake) = self.0.owner.refuses(side, old, edited) {
                return Err(mistake.into());
            }
        }
        Ok(new)
    }
}

/// Returns the time within which a change must be confirmed.
fn confirmation(seconds: Option<u64>) -> Result<Option<Duration>, Refused> {
    match seconds {
        Some(given) if !(1..=LONGEST_CONFIRMATION_S).contains(&given) => Err(Mistake::new(
            format!("a change can't wait {given} s for its confirmation"),
            format!("give 1 to {LONGEST_CONFIRMATION_S} s"),
        )
        .into()),
        given => Ok(given.map(Duration::from_secs)),
    }
}

/// Returns the directions that a change is for: the one from the interface that it names. Without a name it
/// is the only one that has a tree, or both if their trees are equal. `names` are those of the interfaces.
fn changed_sides(
    names: [&str; 2],
    from: Option<&str>,
    shaped: [bool; 2],
    are_equal: bool,
) -> Result<Range<usize>, Mistake> {
    let [left, right] = names;
    match (from, shaped) {
        (Some(from), _) => match names.iter().position(|name| *name == from) {
            Some(side) => Ok(side..side + 1),
            None => Err(Mistake::new(
                format!("no direction is from `{from}`"),
                format!("name {left} or {right}"),
            )),
        },
        (None, [true, false]) => Ok(0..1),
        (None, [false, true]) => Ok(1..2),
        (None, _) if are_equal => Ok(0..2),
        (None, _) => Err(Mistake::new(
            "the two directions have different trees",
            format!("say which one changes: --from {left} or --from {right}"),
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

/// Returns the document of a change that was made.
pub(super) fn made(changed: Result<Changed, Refusal>) -> Result<ChangeMade, Refused> {
    changed.map(ChangeMade::from).map_err(|Refusal(refused)| refused)
}

/// Says what became of a change, for the audit.
pub(super) fn outcome(made: &Result<ChangeMade, Refused>) -> String {
    match made {
        Ok(made) => format!(
            "made, revision {}; forwarding paused for {:.3} ms, {} packets dropped",
            made.revision,
            made.pause_us / 1e3,
            made.dropped
        ),
        Err(refused) => refused.to_string(),
    }
}

/// Why a change is not made.
pub(super) struct Refusal(pub(super) Refused);

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Refusal {
        Refusal(Refused::Mistakes(mistakes_of(&error)))
    }
}

impl From<NotKept> for Refusal {
    fn from(refusal: NotKept) -> Refusal {
        match refusal {
            NotKept::Tree(error) => error.into(),
            refusal => Mistake::new(refusal.to_string(), refusal.help()).into(),
        }
    }
}

impl From<Mistake> for Refusal {
    fn from(mistake: Mistake) -> Refusal {
        Refusal(mistake.into())
    }
}

impl From<ReloadError> for Refusal {
    fn from(error: ReloadError) -> Refusal {
        match error {
            ReloadError::Unfit(error) => error.into(),
            ReloadError::Stale { revision } => Refusal(Refused::Stale { revision }),
            error => {
                let help = error.help().map(|help| help.to_string()).unwrap_or_default();
                Mistake::new(error.to_string(), help).into()
            }
        }
    }
}
