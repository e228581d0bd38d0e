//! What the trees of a run are made from.

use std::fmt;
use std::sync::Arc;

use fairgate_config::Spec;
use fairgate_run_api::{ChangeMade, Mistake, Refused};

/// What the trees are made from, if that is not the file alone: it refuses changes by hand, which the next
/// change of it would undo. Copies are the same owner.
#[derive(Clone)]
pub struct Owner {
    refuses: Arc<Refuses>,
    reloads: Option<Arc<Reloads>>,
}

type Refuses = dyn Fn(usize, &Spec, &Spec) -> Option<Mistake> + Send + Sync;

type Reloads = dyn Fn(&str, Option<String>) -> Result<ChangeMade, Refused> + Send + Sync;

impl Owner {
    /// Returns an owner that calls this function with a direction, 0 from the left, with its tree and with
    /// the changed one. It returns why the change is refused, or nothing.
    pub fn new(refuses: impl Fn(usize, &Spec, &Spec) -> Option<Mistake> + Send + Sync + 'static) -> Owner {
        Owner {
            refuses: Arc::new(refuses),
            reloads: None,
        }
    }

    /// Adds a function that reads the configuration again, for a client that it is told of, with the reason
    /// if there is one, and returns what became of it. It is called on a thread that forwards nothing, and
    /// waits.
    #[must_use]
    pub fn with_reload(
        self,
        reloads: impl Fn(&str, Option<String>) -> Result<ChangeMade, Refused> + Send + Sync + 'static,
    ) -> Owner {
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

impl Owner {
    /// Returns why a change by hand of the tree of a direction is refused, if it is.
    pub(super) fn refuses(&self, side: usize, old: &Spec, new: &Spec) -> Option<Mistake> {
        (self.refuses)(side, old, new)
    }

    /// Has the configuration read again, for `who`, because of what it says. That notes it in the audit.
    pub(super) fn reload(&self, who: &str, because: Option<String>) -> Result<ChangeMade, Refused> {
        match &self.reloads {
            Some(reloads) => reloads(who, because),
            None => {
                let message = "this run has no configuration that it could read again";
                Err(Mistake::new(message, "start it by `fairgate run`").into())
            }
        }
    }
}
