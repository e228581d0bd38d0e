//! What can go wrong in a testbed.

use miette::Diagnostic;
use thiserror::Error;

use crate::error::LiveError;

/// An error of the testbed. All of them are the environment's.
#[derive(Clone, Debug, Error, Diagnostic)]
pub enum TestbedError {
    /// A program is not installed.
    #[error("the program `{program}` is missing")]
    #[diagnostic(help("on Debian: `apt-get install {package}`"))]
    MissingProgram {
        /// Its name.
        program: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// Not root.
    #[error("building network namespaces needs privileges that this process does not have")]
    #[diagnostic(help("run it as root; nothing outside of the new namespaces is touched"))]
    Privileges,
    /// A program failed.
    #[error("`{command}` failed: {output}")]
    #[diagnostic(help("the testbed has been taken down"))]
    Program {
        /// What was called.
        command: String,
        /// The last lines that it wrote.
        output: String,
    },
    /// A program said something that could not be understood.
    #[error("the output of `{program}` lacks {what}")]
    #[diagnostic(help("the testbed was made for iperf3 3.12, ping from iputils and ip from iproute2"))]
    Output {
        /// Its name.
        program: &'static str,
        /// What was looked for.
        what: String,
    },
    /// SIGINT or SIGTERM.
    #[error("interrupted; the testbed has been taken down")]
    #[diagnostic(help("no result was produced"))]
    Interrupted,
    /// A file or a thread could not be made.
    #[error("{action} failed: {reason}")]
    #[diagnostic(help("the testbed has been taken down"))]
    System {
        /// What was tried.
        action: String,
        /// Why it failed.
        reason: String,
    },
    /// The bridge itself failed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Live(#[from] LiveError),
}

impl TestbedError {
    /// An I/O error while doing `action`.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> TestbedError {
        let action = action.into();
        move |error| TestbedError::System {
            action,
            reason: error.to_string(),
        }
    }
}
