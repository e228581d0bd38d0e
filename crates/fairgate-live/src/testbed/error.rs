//! Errors of the testbed.

use miette::Diagnostic;
use thiserror::Error;

use crate::error::LiveError;

/// An error of the testbed. All of them are caused by the environment.
#[derive(Clone, Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum TestbedError {
    /// A program is not installed.
    #[error("the program `{program}` is not installed")]
    #[diagnostic(help("on Debian: `apt-get install {package}`"))]
    MissingProgram {
        /// The name of the program.
        program: String,
        /// The Debian package that contains it.
        package: &'static str,
    },
    /// Privileges are missing.
    #[error("building network namespaces needs privileges that this process does not have")]
    #[diagnostic(help("run it as root; it changes nothing outside of its own namespaces"))]
    Privileges,
    /// A program failed.
    #[error("`{command}` failed: {output}")]
    #[diagnostic(help("the testbed has been taken down"))]
    Program {
        /// The command.
        command: String,
        /// The last lines of its output.
        output: String,
    },
    /// The output of a program could not be parsed.
    #[error("the output of `{program}` lacks {what}")]
    #[diagnostic(help("the testbed was made for iperf3 3.12, ping from iputils and ip from iproute2"))]
    Output {
        /// The name of the program.
        program: &'static str,
        /// What is missing in the output.
        what: String,
    },
    /// The process received SIGINT or SIGTERM.
    #[error("interrupted; the testbed has been taken down")]
    #[diagnostic(help("no result was produced"))]
    Interrupted,
    /// A file, thread or other resource could not be created.
    #[error("{action} failed: {reason}")]
    #[diagnostic(help("the testbed has been taken down"))]
    System {
        /// The action that was tried.
        action: String,
        /// The reason.
        reason: String,
    },
    /// The bridge failed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Live(#[from] LiveError),
}

impl TestbedError {
    /// Converts an I/O error that occurred during `action`.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> TestbedError {
        let action = action.into();
        move |error| TestbedError::System {
            action,
            reason: error.to_string(),
        }
    }
}
