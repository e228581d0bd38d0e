//! Files of other programs, where a command reads something else.

use fairgate_scripts::sources::{self, Source};
use miette::Diagnostic;
use thiserror::Error;

use crate::failure::Failure;

/// Why a file is not read.
#[derive(Debug, Error, Diagnostic)]
pub(crate) enum NotRead {
    #[error("{name} is {}", kind.what())]
    #[diagnostic(help("{}", remedy(*kind, name)))]
    Another { name: String, kind: Source },
    #[error("{name} is not recognised: its lines are not those of a program that is known here")]
    #[diagnostic(help(
        "known are tc, ipfw, dnctl, pf.conf, systemd-networkd, NetworkManager, OpenWrt's sqm and \
            qosify, VyOS and \
         RouterOS; a configuration of Fairgate is read by check, simulate and run"
    ))]
    Unknown { name: String },
}

/// Returns what to do with a file.
fn remedy(source: Source, name: &str) -> String {
    match source.command() {
        Some(command) => {
            let command = command.replace("FILE", name);
            let why = match source {
                Source::Shell => {
                    ", which runs it where it can change nothing, and reads the commands that it gives"
                }
                _ => "",
            };
            format!("read it with {command}{why}")
        }
        None => "no command reads it: nothing in it is about queues".to_owned(),
    }
}

/// Returns the failure of a text that is something else than one of these, if it is that.
pub(crate) fn another_kind(name: &str, text: &str, expected: &[Source]) -> Option<Failure> {
    let source = sources::recognise(text).filter(|source| !expected.contains(source))?;
    let name = name.to_owned();
    Some(NotRead::Another { name, kind: source }.into())
}
