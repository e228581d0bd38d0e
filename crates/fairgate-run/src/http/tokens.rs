//! The tokens of clients over TCP. A file has a name and a token in each line. The audit shows the names.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::geteuid;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use crate::http::error::ControlError;

/// The shortest token, bytes: 128 bits in hexadecimal digits.
const SHORTEST: usize = 32;

/// The longest token, bytes.
const LONGEST: usize = 1024;

/// The most tokens. All are compared with each request.
const MOST: usize = 256;

/// The longest file of secrets, bytes.
const LONGEST_FILE: u64 = 1 << 20;

/// Who may come in, and by which token.
#[derive(Clone)]
pub(crate) struct Tokens(Vec<Token>);

#[derive(Clone)]
struct Token {
    owner: Owner,
    secret: String,
}

/// Whose a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) name: String,
    /// Whether the owner may change the run, and not only read it.
    pub(crate) may_change: bool,
}

/// Never prints the tokens.
impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|token| &token.owner.name))
            .finish()
    }
}

impl Tokens {
    /// Reads the tokens of those who may change the run, and of those who may only read it.
    pub(crate) fn read(changing: &Path, reading: Option<&Path>) -> Result<Tokens, ControlError> {
        let mut tokens = Vec::new();
        for (path, may_change) in [(Some(changing), true), (reading, false)] {
            let Some(path) = path else { continue };
            let wrong = |line: usize, message: String| ControlError::Tokens {
                path: path.to_path_buf(),
                line,
                message,
            };
            let bytes = secret(path, 0o077)?;
            let text = String::from_utf8(bytes).map_err(|_| wrong(1, "the file is not text".to_owned()))?;
            let all = Tokens::parse(&text, may_change, tokens);
            tokens = all.map_err(|(line, message)| wrong(line, message))?;
        }
        Ok(Tokens(tokens))
    }

    /// Reads the tokens of a file, behind those `before`.
    fn parse(text: &str, may_change: bool, before: Vec<Token>) -> Result<Vec<Token>, (usize, String)> {
        let known = before.len();
        let mut tokens = before;
        for (line, text) in (1..).zip(text.lines()) {
            let mut words = text.split_ascii_whitespace();
            let (Some(name), token) = (words.next().filter(|name| !name.starts_with('#')), words.next())
            else {
                continue;
            };
            let Some(token) = token.filter(|_| words.next().is_none()) else {
                return Err((line, "this is not a name and a token".to_owned()));
            };
            let is_name = |character: char| character.is_ascii_alphanumeric() || "-_.@".contains(character);
            if name.len() > 64 || !name.chars().all(is_name) {
                let message = "a name has at most 64 letters, digits, `-`, `_`, `.` and `@`";
                return Err((line, message.to_owned()));
            }
            if !(SHORTEST..=LONGEST).contains(&token.len())
                || !token.bytes().all(|byte| byte.is_ascii_graphic())
            {
                let message = format!("a token has {SHORTEST} to {LONGEST} letters, digits and signs");
                return Err((line, message));
            }
            if tokens
                .iter()
                .any(|known| known.owner.name == name || known.secret == token)
            {
                let message = "the name or the token is in a line before, of this file or of the other one";
                return Err((line, message.to_owned()));
            }
            tokens.push(Token {
                owner: Owner {
                    name: name.to_owned(),
                    may_change,
                },
                secret: token.to_owned(),
            });
        }
        match tokens.len() {
            count if count == known => Err((1, "there is no token".to_owned())),
            ..=MOST => Ok(tokens),
            count => Err((
                1,
                format!("there are {count} tokens, but at most {MOST} are possible"),
            )),
        }
    }

    /// Returns whose token this is. The time that it takes says nothing about the tokens but their lengths.
    pub(crate) fn owner(&self, token: &str) -> Option<&Owner> {
        let mut found = Choice::from(0);
        let mut place = 0_u32;
        for (number, known) in (0_u32..).zip(&self.0) {
            let is_same = known.secret.as_bytes().ct_eq(token.as_bytes());
            place.conditional_assign(&number, is_same);
            found |= is_same;
        }
        bool::from(found).then_some(&self.0[place as usize].owner)
    }
}

/// Reads a file that belongs to root or this user, and that others may not use as `mask` says.
pub(crate) fn secret(path: &Path, mask: u32) -> Result<Vec<u8>, ControlError> {
    let unreadable = |source| ControlError::Unreadable {
        path: path.to_path_buf(),
        source,
    };
    let exposed = |why| {
        Err(ControlError::Exposed {
            path: path.to_path_buf(),
            why,
        })
    };
    let file = File::open(path).map_err(unreadable)?;
    // Of the open file, so that nobody exchanges it in between.
    let found = file.metadata().map_err(unreadable)?;
    if found.mode() & mask != 0 {
        return exposed("other users may use it");
    }
    if found.uid() != 0 && found.uid() != geteuid().as_raw() {
        return exposed("it belongs to another user");
    }
    let mut bytes = Vec::new();
    file.take(LONGEST_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > LONGEST_FILE {
        let message = format!("it has more than {LONGEST_FILE} bytes");
        return Err(unreadable(io::Error::new(io::ErrorKind::FileTooLarge, message)));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const ALICE: &str = "0123456789abcdef0123456789abcdef";
    const BOB: &str = "fedcba9876543210fedcba9876543210";

    #[test]
    fn each_token_has_its_owner() {
        let text = format!("# operators\n\nalice {ALICE}\n  bob\t{BOB}\n");
        let tokens = Tokens(Tokens::parse(&text, true, Vec::new()).unwrap());
        let owner = |token| tokens.owner(token).map(|owner| owner.name.as_str());
        assert_eq!(owner(ALICE), Some("alice"));
        assert_eq!(owner(BOB), Some("bob"));
        for wrong in [
            "",
            "alice",
            &ALICE[..31],
            &format!("{ALICE}0"),
            &ALICE.to_uppercase(),
        ] {
            assert_eq!(owner(wrong), None, "{wrong}");
        }
        assert_eq!(format!("{tokens:?}"), "[\"alice\", \"bob\"]");
    }

    #[test]
    fn mistakes_have_a_line() {
        let cases = [
            (String::new(), 1, "no token"),
            (format!("{ALICE}\n"), 1, "not a name and a token"),
            (format!("a {ALICE}\nb {BOB} c\n"), 2, "not a name and a token"),
            ("\na 12345\n".to_owned(), 2, "32 to 1024"),
            (format!("a {ALICE}\nb {ALICE}\n"), 2, "a line before"),
            (format!("a {ALICE}\na {BOB}\n"), 2, "a line before"),
            (format!("a/b {ALICE}\n"), 1, "a name has"),
        ];
        for (text, line, complaint) in cases {
            let (found, message) = Tokens::parse(&text, true, Vec::new()).err().expect(complaint);
            assert_eq!(found, line, "{text}");
            assert!(message.contains(complaint), "{message}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        fs::write(&path, format!("alice {ALICE}\n")).unwrap();
        for (mode, is_fine) in [
            (0o600, true),
            (0o400, true),
            (0o640, false),
            (0o604, false),
            (0o620, false),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Tokens::read(&path, None).is_ok(), is_fine, "{mode:o}");
        }
        let error = Tokens::read(&folder.path().join("none"), None).unwrap_err();
        assert!(matches!(error, ControlError::Unreadable { .. }));
    }

    /// Nobody is in both files: what he may do would be unclear.
    #[test]
    fn who_may_only_read_is_in_a_file_of_his_own() {
        let folder = tempfile::tempdir().unwrap();
        let [changing, reading] = ["tokens", "readers"].map(|name| folder.path().join(name));
        let write = |path: &Path, text: String| {
            fs::write(path, text).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        };
        write(&changing, format!("alice {ALICE}\n"));
        write(&reading, format!("bob {BOB}\n"));
        let tokens = Tokens::read(&changing, Some(&reading)).unwrap();
        let may_change = |token| tokens.owner(token).map(|owner| owner.may_change);
        assert_eq!([may_change(ALICE), may_change(BOB)], [Some(true), Some(false)]);
        for wrong in [
            format!("alice {BOB}\n"),
            format!("bob {ALICE}\n"),
            "# nobody\n".to_owned(),
        ] {
            write(&reading, wrong);
            let error = Tokens::read(&changing, Some(&reading)).unwrap_err();
            assert!(error.to_string().contains("readers:1: "), "{error}");
        }
    }

    /// The token at the end would be cut off.
    #[test]
    fn a_file_that_is_too_long_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        for (longer, is_fine) in [(0, true), (1, false)] {
            let comment = LONGEST_FILE as usize + longer - format!("#\nalice {ALICE}\n").len();
            fs::write(&path, format!("#{}\nalice {ALICE}\n", "x".repeat(comment))).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert_eq!(Tokens::read(&path, None).is_ok(), is_fine, "{longer}");
        }
    }
}
