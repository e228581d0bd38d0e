//! Why nothing is imported.

use fairgate::harmless;
use miette::Diagnostic;
use thiserror::Error;

use super::questions::Program;
use crate::client::ClientError;

/// Why nothing is imported.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum ImportError {
    /// The address is none.
    #[error("{why}")]
    #[diagnostic(help("write the address without a path, like `https://uisp.example.com`"))]
    Address {
        /// What is wrong.
        why: String,
    },
    /// The file has no key of Splynx.
    #[error("{path}: it has no key and secret")]
    #[diagnostic(help(
        "write both into it, in one line: `KEY SECRET`, from Administration > API keys in Splynx"
    ))]
    NoSecret {
        /// The file.
        path: String,
    },
    /// A file of this machine can't be used, or the machine has no room.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Own(ClientError),
    /// There is no whole answer.
    #[error("{what}: no answer")]
    #[diagnostic(help("{}", remedy(.source)))]
    NoAnswer {
        /// What was asked.
        what: String,
        /// What went wrong.
        source: ClientError,
    },
    /// The server refuses the question.
    #[error("{what}: status {status}{}", said(.message.as_deref()))]
    #[diagnostic(help("{help}"))]
    Status {
        /// What was asked.
        what: String,
        /// The status of HTTP.
        status: u16,
        /// What the server says.
        message: Option<String>,
        /// What to do.
        help: String,
    },
    /// The answer is not what it should be.
    #[error("{what}: the answer can't be used: {why}")]
    #[diagnostic(help("check the address: is that the server, and not a login page or a proxy before it?"))]
    Answer {
        /// What was asked.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// Rows were removed while the pages were read.
    #[error("{what}: the list changed each time while its pages were read")]
    #[diagnostic(help("try again later; nothing was written"))]
    Changing {
        /// What was asked.
        what: String,
    },
    /// `network.json` as it is.
    #[error("network.json as it is now can't be read: {0}")]
    #[diagnostic(help("correct it, so that nodes that are `fixed` keep their rates, or remove it"))]
    Network(serde_json::Error),
}

impl ImportError {
    /// Returns whether what the user gave is wrong, and not the machine, the way to the server or the server.
    pub fn is_bad_input(&self) -> bool {
        match self {
            ImportError::Address { .. } | ImportError::NoSecret { .. } | ImportError::Network(_) => true,
            ImportError::Own(error) => error.is_bad_input(),
            _ => false,
        }
    }

    /// Makes the error of what went wrong on the way.
    pub(crate) fn of(what: &str, source: ClientError) -> ImportError {
        match source {
            ClientError::Unexpected(why) => ImportError::Answer {
                what: what.to_owned(),
                why,
            },
            source @ (ClientError::Unreachable(_)
            | ClientError::Insecure(_)
            | ClientError::Cut(_)
            | ClientError::NoAuthorities
            | ClientError::Silent) => ImportError::NoAnswer {
                what: what.to_owned(),
                source,
            },
            source => ImportError::Own(source),
        }
    }

    /// Makes the error of a status other than 200.
    pub(crate) fn status(
        program: Program,
        what: &str,
        permission: &str,
        status: u16,
        location: Option<&str>,
        message: Option<String>,
    ) -> ImportError {
        let help = match (status, program) {
            (300..=399, _) => match location {
                Some(there) => format!(
                    "it leads to {}: give that address, if it is the server's; the token is sent nowhere \
                     else",
                    harmless::name(there)
                ),
                None => "give the address that it leads to: the token is sent nowhere else".to_owned(),
            },
            (401, Program::Uisp) => {
                "the token is none of this UISP: make one in Settings > Users > API tokens, and write it \
                 alone into the file; a key of the CRM (X-Auth-App-Key) is another one"
                    .to_owned()
            }
            (401, Program::Splynx) => {
                "the key or its secret is wrong: write both into the file, in one line, as in \
                 Administration > API keys; and is the clock of this machine right?"
                    .to_owned()
            }
            (403, Program::Uisp) => {
                "the user of the token must be allowed to read the whole network".to_owned()
            }
            (403, Program::Splynx) => {
                format!("allow the key to view `{permission}`, in Administration > API keys")
            }
            (404, program) => {
                format!("is this the address of {program}, and is its version one with this API?")
            }
            _ => "try again later; nothing was written".to_owned(),
        };
        ImportError::Status {
            what: what.to_owned(),
            status,
            message: message.map(|message| harmless::name(&message)),
            help,
        }
    }
}

fn said(message: Option<&str>) -> String {
    message.map_or_else(String::new, |message| format!(": {message}"))
}

fn remedy(error: &ClientError) -> &'static str {
    match error {
        ClientError::Unreachable(_) => "check the address and the port, and that this machine reaches it",
        ClientError::Insecure(_) | ClientError::NoAuthorities => {
            "name the certificate of the server, or of its authority, with --ca FILE, and the host by the \
             name in it"
        }
        ClientError::Cut(_) => "it ended before it was whole: try again; nothing was written",
        _ => "try again later; nothing was written",
    }
}
