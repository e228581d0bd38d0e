//! Why a script could not be recorded.

use std::io;
use std::time::Duration;

use miette::Diagnostic;
use thiserror::Error;

/// Why a script could not be recorded.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum RecordError {
    /// There is no such script.
    #[error("there is no file and no program `{name}`")]
    #[diagnostic(help("give the path of a script, or the name of a program in PATH"))]
    NotFound {
        /// As the user gave it.
        name: String,
    },
    /// The script did not end in time. It was ended, and all that it started.
    #[error("`{name}` did not end within {} s", .limit.as_secs_f64())]
    #[diagnostic(help("does it wait for something that never comes here? --time-limit gives it more time"))]
    TooLong {
        /// As the user gave it.
        name: String,
        /// The time that it had.
        limit: Duration,
    },
    /// The stand-ins of tc, ip and others were asked more than is kept, 32 MiB.
    #[error("`{name}` gives too many commands: more than 32 MiB of them")]
    #[diagnostic(help("does it repeat itself for ever? Otherwise record its parts one by one"))]
    TooMuch {
        /// As the user gave it.
        name: String,
    },
    /// The kernel or the system refused something that the sandbox needs.
    #[error("can't isolate the script from this machine: {step}: {reason}")]
    #[diagnostic(help(
        "a script is recorded only where it can change nothing, behind all walls that docs/tc.md \
         lists. User namespaces need a user.max_user_namespaces above 0, and a container or AppArmor that \
         allows them"
    ))]
    Refused {
        /// What was refused.
        step: String,
        /// The system's reason.
        reason: String,
    },
    /// The processes of the recording could not be started or watched.
    #[error("can't start the recording")]
    Unstarted(#[source] io::Error),
    /// A stage ended without a report: somebody ended it.
    #[error("the recording was ended from outside")]
    #[diagnostic(help("start it again"))]
    Ended,
}
