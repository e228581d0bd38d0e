//! The token of a client, in a file that nobody else may read.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hyper::header::HeaderValue;

use super::error::ClientError;

/// The longest file, bytes.
const LONGEST: u64 = 64 << 10;

/// Returns the header field with the token in a file.
pub(crate) fn read(path: &Path) -> Result<HeaderValue, ClientError> {
    let (_, token) = words(path)?;
    secret(path, &format!("Bearer {token}"))
}

/// Returns the value of a header field with a secret of this file. It is left out where headers are printed.
pub(crate) fn secret(path: &Path, text: &str) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| ClientError::Token {
        path: path.to_path_buf(),
        why: "its token has characters that no token has",
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns the token in a file, and the name before it. The file has one line: a token, or a name and a token
/// as in the file of a run (`api_token`). Lines that begin with `#` are comments.
pub(crate) fn words(path: &Path) -> Result<(Option<String>, String), ClientError> {
    let unreadable = |source| ClientError::Unreadable {
        path: path.to_path_buf(),
        source,
    };
    let wrong = |why: &'static str| ClientError::Token {
        path: path.to_path_buf(),
        why,
    };
    let file = File::open(path).map_err(unreadable)?;
    // Of the open file, so that nobody exchanges it in between.
    if file.metadata().map_err(unreadable)?.mode() & 0o077 != 0 {
        return Err(ClientError::Exposed {
            path: path.to_path_buf(),
        });
    }
    let mut text = String::new();
    let length = file
        .take(LONGEST + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if length as u64 > LONGEST {
        return Err(unreadable(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {LONGEST} bytes"),
        )));
    }
    let lines = text.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let line = match (lines.next(), lines.next()) {
        (Some(line), None) => line,
        (None, _) => return Err(wrong("it has no token")),
        (Some(_), Some(_)) => return Err(wrong("it has more than one line with a token")),
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [token] => Ok((None, (*token).to_owned())),
        [name, token] => Ok((Some((*name).to_owned()), (*token).to_owned())),
        _ => Err(wrong("its line is neither a token nor a name and a token")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(text: &str, mode: u32) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        match read(&path) {
            Ok(value) => Ok(value.to_str().unwrap().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_token_is_alone_or_has_a_name() {
        for text in ["secret", "secret\n", "# mine\n\nalice  secret \n"] {
            assert_eq!(file(text, 0o600), Ok("Bearer secret".to_owned()), "{text:?}");
        }
        for (text, why) in [
            ("", "no token"),
            ("# alice secret\n", "no token"),
            ("alice a\nbob b\n", "more than one"),
            ("alice b c\n", "neither"),
            ("a\u{1}b\n", "characters"),
        ] {
            let error = file(text, 0o600).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        }
        assert!(
            file(&"#".repeat(70_000), 0o600)
                .unwrap_err()
                .contains("can't be read")
        );
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        for mode in [0o640, 0o604, 0o620] {
            assert!(file("secret", mode).unwrap_err().contains("others"), "{mode:o}");
        }
        assert!(file("secret", 0o400).is_ok());
    }
}
