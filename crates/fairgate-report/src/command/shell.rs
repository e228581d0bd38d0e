//! Commands as users can paste them into a shell.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use fairgate::harmless::is_hidden;

/// Returns a command with these words.
pub fn words(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| quoted(word.as_ref())).collect();
    quoted.join(" ")
}

/// Quotes a word so that a shell reads back the same bytes.
pub fn quoted(word: &OsStr) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(is_plain) => text.to_owned(),
        Some(text) if !text.contains(is_hidden) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => format!("$'{}'", escaped(word)),
    }
}

/// Returns the content of `$'...'`, which bash, zsh, ksh and POSIX 2024 support. Bytes that are not text are
/// octal numbers with three digits, so that a digit after them does not belong to them.
fn escaped(word: &OsStr) -> String {
    let mut text = String::new();
    for chunk in word.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            text.push_str(&match c {
                '\'' | '\\' => Cow::from(format!("\\{c}")),
                c if is_hidden(c) => {
                    let bytes = c.to_string().into_bytes();
                    bytes.iter().map(octal).collect::<String>().into()
                }
                c => c.to_string().into(),
            });
        }
        text.extend(chunk.invalid().iter().map(octal));
    }
    text
}

fn octal(byte: &u8) -> String {
    format!("\\{byte:03o}")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn words_are_quoted_only_if_the_shell_requires_it() {
        assert_eq!(quoted(OsStr::new("--rate=20mbit")), "--rate=20mbit");
        assert_eq!(quoted(OsStr::new("drr limit=1000")), "'drr limit=1000'");
        assert_eq!(quoted(OsStr::new("it's")), r"'it'\''s'");
        assert_eq!(quoted(OsStr::new("")), "''");
        assert_eq!(quoted(OsStr::from_bytes(b"m\xfcn1\n'")), r"$'m\374n1\012\''");
        assert_eq!(words(["a", "b c"]), "a 'b c'");
    }

    /// Tests every byte except 0, which no file name has, and text beyond ASCII.
    #[test]
    fn bash_reads_back_the_same_bytes() {
        let all: Vec<u8> = (1..=255).chain("é→\u{85}12".bytes()).collect();
        let script = format!("printf %s {}", quoted(OsStr::from_bytes(&all)));
        let output = Command::new("bash")
            .args(["-c", &script])
            .output()
            .expect("bash is installed");
        assert_eq!(output.stdout, all);
    }
}
