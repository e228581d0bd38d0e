//! `fairgate man`: the manual pages, made from the program's own help.

use std::io::Write;
use std::path::PathBuf;

use clap::builder::Resettable;
use clap_mangen::Man;
use fairgate_config::suggest;
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, Targets};

/// Write the manual pages, for man(1)
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate man                              the page fairgate(1) on standard output
  fairgate man tc | man -l -                read the page fairgate-tc(1)
  fairgate man --out /usr/local/share/man/man1   all pages, a file each; `make install` does this")]
pub(crate) struct Args {
    /// The command of the page [default: fairgate itself]
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    command: Vec<String>,

    /// Write all pages into this folder
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

#[derive(Debug, Error, Diagnostic)]
#[error("there is no command `{name}`")]
#[diagnostic(help("{help}"))]
struct UnknownCommand {
    name: String,
    help: String,
}

/// A page in the format of man(7).
struct Page {
    /// The file's name: `fairgate-tc.1`.
    name: String,
    text: Vec<u8>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed {
    page: Option<String>,
    files: Vec<String>,
}

pub(crate) fn run(args: Args, program: clap::Command, format: Format) -> Result<Outcome, Failure> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let Some(folder) = args.out else {
        let page = render(find(&program, &args.command)?);
        let text = String::from_utf8_lossy(&page.text).into_owned();
        match format {
            Format::Text => output::exact(&text)?,
            Format::Json => output::json(
                "man",
                &Printed {
                    page: Some(text),
                    files: Vec::new(),
                },
            )?,
        }
        return Ok(Outcome::Yes);
    };
    let mut pages = Vec::new();
    render_all(&program, &mut pages);
    let mut targets = Targets::beside([]);
    let mut files = Vec::new();
    for page in pages {
        let target = targets.open_in(&folder, &page.name)?;
        target.write(|out| out.write_all(&page.text))?;
        files.push(folder.join(&page.name).display().to_string());
    }
    match format {
        Format::Text => output::text(&format!("{} pages are in {}\n", files.len(), folder.display()))?,
        Format::Json => output::json("man", &Printed { page: None, files })?,
    }
    Ok(Outcome::Yes)
}

/// Returns the command that these words name, one below the other.
fn find<'c>(program: &'c clap::Command, words: &[String]) -> Result<&'c clap::Command, UnknownCommand> {
    words.iter().try_fold(program, |above, word| {
        above.find_subcommand(word).ok_or_else(|| UnknownCommand {
            name: word.clone(),
            help: suggest::remedy(
                word,
                "commands",
                above.get_subcommands().map(clap::Command::get_name),
            ),
        })
    })
}

/// Renders a command's page and those of all commands below it.
fn render_all(command: &clap::Command, into: &mut Vec<Page>) {
    into.push(render(command));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        render_all(below, into);
    }
}

fn render(command: &clap::Command) -> Page {
    let help = command.get_after_help().map(ToString::to_string);
    let man = Man::new(command.clone().after_help(Resettable::Reset));
    let mut text = Vec::new();
    man.render(&mut text).expect("memory can be written");
    if let Some(help) = help {
        text.extend_from_slice(notes(&help).as_bytes());
    }
    Page {
        name: man.get_filename(),
        text,
    }
}

/// Returns the text below the options as a section whose lines stay as they are. Left to itself, man fills
/// lines, so that the columns of examples are lost.
fn notes(help: &str) -> String {
    let mut section = String::from(".SH NOTES\n.nf\n");
    for line in help.lines() {
        // A full stop or an apostrophe at the start of a line would be a request to troff.
        section.push_str("\\&");
        section.push_str(
            &line
                .replace('\\', "\\e")
                .replace('-', "\\-")
                .replace('\'', "\\(aq"),
        );
        section.push('\n');
    }
    section.push_str(".fi\n");
    section
}
