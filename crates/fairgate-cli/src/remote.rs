//! The run that a command is about, and the way to it.

use std::path::PathBuf;

use fairgate_live::folders::FolderError;
use fairgate_run::client::{Access, ApiAddress, ClientError, Remote};
use fairgate_run::running;
use fairgate_run_api::Mistake;
use miette::Diagnostic;
use thiserror::Error;

use crate::failure::Failure;
use crate::output;

/// Which run, and the way to it.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RunArgs {
    /// The socket of the run; optional if there is only one
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// The API of the run instead, also on another machine: unix:PATH or https://HOST:PORT
    #[arg(long, value_name = "ADDRESS", conflicts_with = "socket")]
    api: Option<ApiAddress>,

    /// The file with your token for the API, mode 0600
    #[arg(long, value_name = "FILE", requires = "api")]
    token_file: Option<PathBuf>,

    /// The certificate of the API, or of its authority (PEM) [default: those that the system trusts]
    #[arg(long, value_name = "FILE", requires = "api")]
    ca: Option<PathBuf>,
}

#[derive(Debug, Error, Diagnostic)]
pub(crate) enum NoRun {
    #[error("no run was found")]
    #[diagnostic(help(
        "start one with `fairgate run FILE`, give its --socket, or the --api of a run on another machine"
    ))]
    None,
    #[error("there are several runs: {sockets}")]
    #[diagnostic(help("choose one with --socket PATH"))]
    Several { sockets: String },
    #[error("cannot search for runs")]
    #[diagnostic(help("give the socket with --socket PATH"))]
    Untrusted(#[source] FolderError),
}

#[derive(Debug, Error, Diagnostic)]
#[error("no answer from {run}")]
#[diagnostic(help("{help}"))]
struct NoAnswer {
    run: String,
    help: String,
    source: ClientError,
}

/// Why a run refuses an order.
#[derive(Debug, Error, Diagnostic)]
#[error("{}{message}", if *.is_change { "nothing was changed: " } else { "" })]
#[diagnostic(help("{help}"))]
struct Refused {
    message: String,
    help: String,
    /// Whether it was to change something.
    is_change: bool,
}

impl RunArgs {
    /// Returns the run that is named, or the only one of this machine.
    pub(crate) fn find(&self) -> Result<Remote, Failure> {
        match (&self.api, &self.socket) {
            (Some(address), _) => {
                let access = Access {
                    token: self.token_file.clone(),
                    ca: self.ca.clone(),
                };
                match Remote::at(address.clone(), &access) {
                    Ok(run) => Ok(run),
                    Err(error) if error.is_bad_input() => Err(error.into()),
                    Err(error) => Err(Failure::environment(error)),
                }
            }
            (None, Some(socket)) => Ok(socket.clone().into()),
            (None, None) => only_socket().map(Remote::from).map_err(Failure::environment),
        }
    }

    /// Returns the options that name the run, for a command that is shown to the user.
    pub(crate) fn words(&self) -> String {
        let mut words = String::new();
        let mut add = |option: &str, value: Option<String>| {
            if let Some(value) = value {
                words.push_str(&format!(" --{option} {value}"));
            }
        };
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        add("socket", path(&self.socket));
        add("api", self.api.as_ref().map(ToString::to_string));
        add("token-file", path(&self.token_file));
        add("ca", path(&self.ca));
        words
    }
}

/// Returns the socket of the only run of this machine.
pub(crate) fn only_socket() -> Result<PathBuf, NoRun> {
    let mut sockets = running().map_err(NoRun::Untrusted)?;
    match sockets.len() {
        0 => Err(NoRun::None),
        1 => Ok(sockets.remove(0)),
        _ => Err(NoRun::Several {
            sockets: sockets
                .iter()
                .map(|socket| socket.display().to_string())
                .collect::<Vec<_>>()
                .join(", "),
        }),
    }
}

/// Returns a function that makes a failure from the error of a run that was asked something.
pub(crate) fn failed(run: &Remote) -> impl Fn(ClientError) -> Failure + '_ {
    |error| failure(run, error, false)
}

/// Does the same for a run that was to change something.
pub(crate) fn unchanged(run: &Remote) -> impl Fn(ClientError) -> Failure + '_ {
    |error| failure(run, error, true)
}

fn failure(run: &Remote, error: ClientError, is_change: bool) -> Failure {
    match error {
        ClientError::Refused(mistakes) => refusal(&mistakes, is_change).into(),
        ClientError::Stale { revision } => stale(revision).into(),
        source => {
            let is_bad_input = source.is_bad_input();
            let no_answer = NoAnswer {
                run: run.to_string(),
                help: source.help().map(|help| help.to_string()).unwrap_or_default(),
                source,
            };
            match is_bad_input {
                true => no_answer.into(),
                false => Failure::environment(no_answer),
            }
        }
    }
}

/// Makes one error of all mistakes.
fn refusal(mistakes: &[Mistake], is_change: bool) -> Refused {
    let one = |mistake: &Mistake| match &mistake.place {
        Some(place) => format!("{place}: {}", mistake.message),
        None => mistake.message.clone(),
    };
    let messages: Vec<String> = mistakes.iter().map(one).collect();
    let help: Vec<&str> = mistakes.iter().map(|mistake| mistake.help.as_str()).collect();
    Refused {
        message: output::harmless(&messages.join("\n")),
        help: output::harmless(&help.join("\n")),
        is_change,
    }
}

/// Returns the error of a change of another revision.
fn stale(revision: u64) -> Refused {
    Refused {
        message: format!("the trees have revision {revision} by now"),
        help: "look at them again, and repeat the change if it still makes sense".to_owned(),
        is_change: true,
    }
}
