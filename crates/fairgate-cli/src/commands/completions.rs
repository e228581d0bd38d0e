//! `fairgate completions`: what a shell needs to complete the program's arguments.

use clap::builder::PossibleValuesParser;
use clap_complete::Shell;
use fairgate_config::Registry;
use serde::Serialize;

use super::list::section_names;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};

/// Print the completions of this program for a shell
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate completions bash > /usr/local/share/bash-completion/completions/fairgate
  fairgate completions zsh > ~/.zfunc/_fairgate
  fairgate completions fish > ~/.config/fish/completions/fairgate.fish

`make install` installs them for bash, zsh and fish.")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed {
    shell: String,
    script: String,
}

/// The verbs of the commands that change a run, and whether disciplines can follow.
const CHANGES: [(&str, &[&str], bool); 3] = [
    ("class", &["add", "change", "move", "delete"], true),
    ("filter", &["add", "change", "move", "delete"], false),
    ("queue", &["show", "add", "change", "move", "delete"], true),
];

/// What completes the sockets of runs: root's, those of services, and this user's. The functions that clap
/// generates offer any file.
const BASH: &str = r#"
_fairgate_or_socket() {
    if [[ "${COMP_WORDS[COMP_CWORD-1]}" == --socket ]]; then
        local folder sockets=()
        for folder in /run/fairgate /run/fairgate/service "${XDG_RUNTIME_DIR:-/nowhere}/fairgate"; do
            sockets+=($(compgen -G "$folder/*.sock"))
        done
        COMPREPLY=($(compgen -W "${sockets[*]}" -- "${COMP_WORDS[COMP_CWORD]}"))
        return 0
    fi
    _fairgate "$@"
}
complete -F _fairgate_or_socket -o bashdefault -o default fairgate
"#;

const ZSH: &str = r#"
_fairgate_sockets() {
    local -a sockets
    sockets=(/run/fairgate/*.sock(N) /run/fairgate/service/*.sock(N))
    sockets+=(${XDG_RUNTIME_DIR:-/nowhere}/fairgate/*.sock(N))
    compadd -a sockets || _files
}

"#;

const FISH: &str = "\
complete -c fairgate -l socket -r -a '(set -l sockets /run/fairgate/*.sock /run/fairgate/service/*.sock \
$XDG_RUNTIME_DIR/fairgate/*.sock; string join \\n $sockets)'
";

pub(crate) fn run(
    args: Args,
    program: clap::Command,
    registry: &Registry,
    format: Format,
) -> Result<Outcome, Failure> {
    let script = script(args.shell, program, registry);
    match format {
        Format::Text => output::exact(&script)?,
        Format::Json => {
            let shell = args.shell.to_string();
            output::json("completions", &Printed { shell, script })?;
        }
    }
    Ok(Outcome::Yes)
}

/// Returns the words that an argument of a command may be, as far as they are known.
fn known(registry: &Registry) -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let names: Vec<&str> = registry.names().collect();
    let changes = CHANGES.map(|(command, verbs, has_disciplines)| {
        let disciplines = if has_disciplines { &names[..] } else { &[] };
        (command, "words", [verbs, disciplines].concat())
    });
    // clap keeps names for as long as the program runs, which ends after this command.
    let sections = section_names(registry).into_iter().map(|name| &*name.leak());
    let of_list = names.iter().copied().chain(sections).collect();
    let of_names = [("list", "name", of_list), ("compare", "queues", names)];
    changes.into_iter().chain(of_names).collect()
}

/// Returns what the shell reads. The commands take more words than these: they are for completion only.
fn script(shell: Shell, mut program: clap::Command, registry: &Registry) -> String {
    let known = known(registry);
    for (command, argument, words) in &known {
        let parser = PossibleValuesParser::new(words);
        program = program.mut_subcommand(command, |below| {
            below.mut_arg(argument, |argument| argument.value_parser(parser))
        });
    }
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut program, "fairgate", &mut bytes);
    let mut script = String::from_utf8(bytes).expect("the help is text");
    match shell {
        Shell::Bash => script += BASH,
        Shell::Zsh => {
            let socket = |line: &str| match line.starts_with("'--socket=[") {
                true => line.replace(":PATH:_files'", ":PATH:_fairgate_sockets'"),
                false => line.to_owned(),
            };
            let lines: Vec<String> = script.lines().map(socket).collect();
            // The last lines call the function that is defined before.
            let end = lines
                .iter()
                .rposition(|line| line.starts_with("if [ \"$funcstack"));
            let (before, after) = lines.split_at(end.unwrap_or(lines.len()));
            script = format!("{}\n{ZSH}{}\n", before.join("\n"), after.join("\n"));
        }
        Shell::Fish => {
            for (command, argument, words) in &known {
                if *argument != "queues" {
                    let words = words.join(" ");
                    let of = format!("__fish_fairgate_using_subcommand {command}");
                    script += &format!("complete -c fairgate -n \"{of}\" -f -a \"{words}\"\n");
                }
            }
            script += FISH;
        }
        _ => {}
    }
    script
}
