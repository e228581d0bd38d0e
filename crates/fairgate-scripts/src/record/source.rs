//! Finds the line of a script that gave a command.
//!
//! Under bash a trap tells every stand-in the files and lines of all functions that are running
//! ([`BASH_TRAP`]). Other shells tell nothing. There the command is compared with the lines of the files that
//! the callers were started with or have open: words must be the same, and what the shell expands matches
//! anything. The location is known only if exactly one line fits best.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::record::journal::SourceLine;

/// The variable in which bash passes the location to what it starts: the line, the lines of the callers, and
/// the files, each on a line.
pub(crate) const VARIABLE: &str = "FAIRGATE_RECORD_AT";

/// What bash reads before every script (`BASH_ENV`). The trap runs before each command, also in functions and
/// subshells. It is one line, because its own lines would count. `$_` is kept, because a script may use it.
pub(crate) const BASH_TRAP: &str = r#"
set -T
__fairgate_at='FAIRGATE_RECORD_AT "%s\n" "$LINENO" "${BASH_LINENO[@]}" "${BASH_SOURCE[@]}"'
trap "__fairgate_last=\$_; printf -v $__fairgate_at; export FAIRGATE_RECORD_AT; : \"\$__fairgate_last\"" DEBUG
unset __fairgate_at
"#;

/// The largest file that is searched. Scripts are smaller, and programs larger.
const LONGEST: u64 = 1 << 20;

/// Returns the line that gave this command.
pub(crate) fn place(program: &str, words: &[String]) -> Option<SourceLine> {
    match std::env::var(VARIABLE).ok().and_then(|told| frames(&told)) {
        Some(frames) => among_frames(&frames, program, words),
        None => among_files(&open_scripts(), program, words),
    }
}

/// Returns the locations that bash told, the innermost first.
fn frames(told: &str) -> Option<Vec<SourceLine>> {
    let told: Vec<&str> = told.lines().collect();
    // One line, and n lines of callers, and n files: the callers of the main script's lines are outside.
    let count = (told.len().checked_sub(1)?) / 2;
    let files = told.get(1 + count..)?;
    let frame = |(file, line): (&&str, &&str)| {
        let (file, line) = ((*file).to_owned(), line.parse().ok()?);
        (line > 0).then_some(SourceLine { file, line })
    };
    let frames: Option<Vec<SourceLine>> = files.iter().zip(&told).map(frame).collect();
    frames.filter(|frames| !frames.is_empty())
}

/// A function that only passes its words on (`tc "$@"`) says nothing. So the frame counts whose line has most
/// words of the command.
fn among_frames(frames: &[SourceLine], program: &str, words: &[String]) -> Option<SourceLine> {
    let fit = |frame: &SourceLine| {
        let text = read(Path::new(&frame.file))?;
        let lines = logical_lines(&text);
        // A command that spans lines is located by its first or its last line.
        let (_, command) = lines.iter().rfind(|(number, _)| *number <= frame.line)?;
        fits(command, program, words)
    };
    let fits: Vec<usize> = frames.iter().map(|frame| fit(frame).unwrap_or(0)).collect();
    let best = fits.iter().copied().max()?;
    let at = fits.iter().position(|fit| *fit == best)?;
    Some(frames[at].clone())
}

fn among_files(files: &BTreeSet<PathBuf>, program: &str, words: &[String]) -> Option<SourceLine> {
    let current = std::env::current_dir().unwrap_or_default();
    let mut best: Option<(usize, Option<SourceLine>)> = None;
    for file in files {
        let Some(text) = read(file) else { continue };
        for (line, command) in logical_lines(&text) {
            let Some(fit) = fits(&command, program, words).filter(|fit| *fit >= ENOUGH) else {
                continue;
            };
            let place = SourceLine {
                file: file.strip_prefix(&current).unwrap_or(file).display().to_string(),
                line,
            };
            match &mut best {
                Some((most, _)) if fit < *most => {}
                Some((most, found)) if fit == *most => *found = None,
                _ => best = Some((fit, Some(place))),
            }
        }
    }
    best?.1
}

/// Returns the files that the callers of this process were started with or have open.
fn open_scripts() -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    let mut process = std::os::unix::process::parent_id();
    // Process 1 is ours.
    while process > 1 {
        let folder = PathBuf::from(format!("/proc/{process}"));
        let open = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
        let open = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        let current = fs::read_link(folder.join("cwd")).unwrap_or_default();
        let started = fs::read(folder.join("cmdline")).unwrap_or_default();
        let started = String::from_utf8_lossy(&started);
        let named = started.split('\0').skip(1).filter(|word| !word.is_empty());
        let named = named.map(|word| current.join(word));
        files.extend(open.chain(named).filter(|path| is_script(path)));
        match parent(&folder) {
            Some(next) => process = next,
            None => break,
        }
    }
    files
}

fn is_script(path: &Path) -> bool {
    let hidden = ["/proc", "/dev", "/sys", "/run/fairgate-record"];
    let is_small = |path: &Path| fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= LONGEST);
    !hidden.iter().any(|folder| path.starts_with(folder)) && is_small(path)
}

fn parent(folder: &Path) -> Option<u32> {
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

/// Returns the text of a script, not of a program.
fn read(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    String::from_utf8(bytes).ok()
}

/// Returns the lines with the number of each. Lines that end in `\` are joined with the next.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        let (line, goes_on) = match line.strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        match lines.last_mut() {
            Some((_, open)) if is_open => {
                open.push(' ');
                open.push_str(line);
            }
            _ => lines.push((index + 1, line.to_owned())),
        }
        is_open = goes_on;
    }
    lines
}

/// A word of a line as the shell reads it.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    /// Only an expansion: any number of words.
    Any,
    /// Parts of a word, with an expansion between each two: `1:$id` is `["1:", ""]`.
    Word(Vec<String>),
    /// The end of a command: `;`, `|`, `&&`, a redirection.
    End,
}

/// Returns how many words of a command are written in this line as they are, doubled, and one more if the
/// line names the program. `None` if the line can't have given the command. A line that only calls the
/// program has no word of the command.
fn fits(line: &str, program: &str, words: &[String]) -> Option<usize> {
    let pieces = pieces(line);
    // The program may be called by its path, by a variable, or by a function of any name.
    (0..pieces.len())
        .filter(|at| pieces[*at] != Piece::End)
        .filter_map(|at| {
            let equal = matched(&pieces[at + 1..], words)?;
            Some(2 * equal + usize::from(could_be(&pieces[at], program)))
        })
        .max()
}

/// A word of a script is the name of a program that is called, or expands to it.
fn could_be(piece: &Piece, program: &str) -> bool {
    match piece {
        Piece::Any => true,
        Piece::Word(parts) => parts.len() > 1 || parts[0].rsplit('/').next() == Some(program),
        Piece::End => false,
    }
}

/// The smallest fit that is no accident.
const ENOUGH: usize = 4;

/// Returns the largest number of equal words, if these pieces can be expanded to `words`.
fn matched(pieces: &[Piece], words: &[String]) -> Option<usize> {
    // best[j]: the best match of the pieces so far with the first j words.
    let mut best: Vec<Option<usize>> = vec![None; words.len() + 1];
    best[0] = Some(0);
    for piece in pieces {
        match piece {
            Piece::End => break,
            Piece::Any => {
                let mut most = None;
                for here in &mut best {
                    most = most.max(*here);
                    *here = most;
                }
            }
            Piece::Word(parts) => {
                for at in (0..words.len()).rev() {
                    best[at + 1] = best[at]
                        .filter(|_| expands(parts, &words[at]))
                        .map(|so_far| so_far + usize::from(parts.iter().any(|part| !part.is_empty())));
                }
                best[0] = None;
            }
        }
    }
    best[words.len()]
}

/// Whether a word can come from these parts, with anything between them.
fn expands(parts: &[String], word: &str) -> bool {
    let [first, between @ .., last] = parts else {
        return parts.len() == 1 && parts[0] == word;
    };
    let Some(mut rest) = word.strip_prefix(first.as_str()) else {
        return false;
    };
    for part in between {
        let Some(at) = rest.find(part.as_str()) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last.as_str())
}

/// Splits a line at blanks and at the operators of the shell.
fn pieces(line: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut parts: Vec<String> = Vec::new();
    let mut rest = line;
    let end_word = |parts: &mut Vec<String>, pieces: &mut Vec<Piece>| {
        if !parts.is_empty() {
            let only_expansion = parts.len() > 1 && parts.iter().all(String::is_empty);
            let parts = std::mem::take(parts);
            pieces.push(if only_expansion {
                Piece::Any
            } else {
                Piece::Word(parts)
            });
        }
    };
    let push = |parts: &mut Vec<String>, letter: &str| match parts.last_mut() {
        Some(part) => part.push_str(letter),
        None => parts.push(letter.to_owned()),
    };
    let mut quote: Option<char> = None;
    while let Some(letter) = rest.chars().next() {
        let length = letter.len_utf8();
        match letter {
            '$' | '`' if quote != Some('\'') => {
                if parts.is_empty() {
                    parts.push(String::new());
                }
                parts.push(String::new());
                rest = after_expansion(rest);
                continue;
            }
            '\'' | '"' if quote.is_none() => {
                quote = Some(letter);
                push(&mut parts, "");
            }
            _ if quote == Some(letter) => quote = None,
            '\\' if quote != Some('\'') => {
                let escaped = rest[1..].chars().next();
                if let Some(escaped) = escaped {
                    push(&mut parts, &escaped.to_string());
                }
                rest = &rest[1 + escaped.map_or(0, char::len_utf8)..];
                continue;
            }
            _ if quote.is_some() => push(&mut parts, &rest[..length]),
            ' ' | '\t' => end_word(&mut parts, &mut pieces),
            '#' if parts.is_empty() => break,
            ';' | '|' | '&' | '<' | '>' | '(' | ')' => {
                // `2>` is a redirection, and its number no word.
                let is_number = matches!(&parts[..], [number] if number.parse::<u8>().is_ok());
                if matches!(letter, '<' | '>') && is_number {
                    parts.clear();
                }
                end_word(&mut parts, &mut pieces);
                pieces.push(Piece::End);
            }
            _ => push(&mut parts, &rest[..length]),
        }
        rest = &rest[length..];
    }
    end_word(&mut parts, &mut pieces);
    pieces
}

/// Returns the rest after `$name`, `${...}`, `$(...)`, `$((...))` or a command between grave accents.
fn after_expansion(text: &str) -> &str {
    let mut letters = text.char_indices();
    let first = letters.next().map(|(_, letter)| letter);
    let (open, close) = match (first, letters.next().map(|(_, letter)| letter)) {
        (Some('`'), _) => {
            let end = text[1..].find('`').map_or(text.len(), |at| at + 2);
            return &text[end..];
        }
        (_, Some('{')) => ('{', '}'),
        (_, Some('(')) => ('(', ')'),
        (_, Some(letter)) if letter.is_ascii_alphabetic() || letter == '_' => {
            let name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let end = text[1..]
                .find(|letter| !name(letter))
                .map_or(text.len(), |at| at + 1);
            return &text[end..];
        }
        // $1, $@, $?
        (_, Some(letter)) => return &text[1 + letter.len_utf8()..],
        (_, None) => return "",
    };
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        depth += i32::from(letter == open) - i32::from(letter == close);
        if depth == 0 && at > 0 {
            return &text[at + letter.len_utf8()..];
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_line_fits_the_commands_that_it_can_give() {
        let command = words("class add dev eth0 parent 1: classid 1:10 htb rate 200kbit");
        let cases = [
            (
                "tc class add dev eth0 parent 1: classid 1:10 htb rate 200kbit",
                Some(23),
            ),
            (
                "/sbin/tc class add dev $DEV parent 1: classid 1:$N htb rate $((20*${UP}/100))kbit",
                Some(21),
            ),
            (
                "  $TC class add dev \"$DEV\" parent 1: classid 1:10 htb $(rate 5) || exit 1",
                Some(17),
            ),
            (
                "tc class add dev eth1 parent 1: classid 1:10 htb rate 200kbit",
                None,
            ),
            (
                "tc class add dev eth0 parent 1: classid 1:10 htb rate 200kbit 2>/dev/null",
                Some(23),
            ),
            ("tc class add dev eth0 parent 1: classid 1:10", None),
            ("tc \"$@\"", Some(1)),
            ("ip link set eth0 up; tc class add dev eth0 $REST", Some(9)),
            ("echo class add # tc class add", None),
            (
                "run class add dev eth0 parent 1: classid 1:10 htb rate $1",
                Some(20),
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(fits(line, "tc", &command), expected, "{line}");
        }
    }

    #[test]
    fn the_only_line_that_fits_best_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shape.sh");
        let text = "#!/bin/sh\ntc qdisc add dev $1 root \\\n  handle 1: htb\nfor c in 1 2; do\n  \
                    tc class add dev $1 parent 1: classid 1:$c htb rate ${c}mbit\ndone\n\
                    run tc qdisc add dev $1 root fifo\n";
        fs::write(&file, text).unwrap();
        let files = BTreeSet::from([file]);
        let line = |command: &str| among_files(&files, "tc", &words(command)).map(|place| place.line);
        assert_eq!(line("qdisc add dev eth0 root handle 1: htb"), Some(2));
        assert_eq!(
            line("class add dev eth0 parent 1: classid 1:2 htb rate 2mbit"),
            Some(5)
        );
        assert_eq!(line("qdisc add dev eth0 root fifo"), Some(7));
        assert_eq!(line("qdisc add dev eth0 root sfq"), None);
        fs::write(
            files.first().unwrap(),
            "tc qdisc add dev $1 root sfq\ntc qdisc add dev $2 root sfq\n",
        )
        .unwrap();
        assert_eq!(line("qdisc add dev eth0 root sfq"), None, "two lines fit");
    }

    /// The trap is given to bash itself.
    #[test]
    fn bash_tells_the_line_and_the_callers() {
        let folder = tempfile::tempdir().unwrap();
        let (trap, script) = (folder.path().join("trap"), folder.path().join("script"));
        fs::write(&trap, BASH_TRAP).unwrap();
        let text = "true last\necho \"$_\"\nf() {\n  printenv FAIRGATE_RECORD_AT\n}\n\nx=$(f)\necho \"$x\"\n";
        fs::write(&script, text).unwrap();
        let output = std::process::Command::new("bash")
            .arg(&script)
            .env("BASH_ENV", &trap)
            .output();
        let Ok(output) = output else {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "SKIPPED: this machine has no bash");
            return;
        };
        let text = String::from_utf8(output.stdout).unwrap();
        let (last, told) = text.split_once('\n').unwrap();
        assert_eq!(last, "last", "the trap keeps $_");
        let lines: Vec<usize> = frames(told).unwrap().iter().map(|frame| frame.line).collect();
        assert_eq!(lines, [4, 7]);
    }

    #[test]
    fn frames_of_bash_are_read() {
        let frames = frames("7\n20\n0\nlib.sh\nmain.sh\n").unwrap();
        let expected = [("lib.sh", 7), ("main.sh", 20)];
        let expected = expected.map(|(file, line)| SourceLine {
            file: file.to_owned(),
            line,
        });
        assert_eq!(frames, expected);
        assert_eq!(super::frames(""), None);
    }
}
