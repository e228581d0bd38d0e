//! Asks a server of another program, over TLS.
//!
//! Its token is sent to the host that the user names, and nowhere else: no redirection is followed.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderName, HeaderValue, LOCATION, USER_AGENT};
use hyper::http::uri::Authority;
use hyper::{Request, StatusCode};
use ring::hmac;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio_rustls::TlsConnector;

use super::answer::{complaint, rows, text};
use super::error::ImportError;
use super::questions::{Program, Question};
use super::{Answers, name};
use crate::client::{ClientError, Destination, https, secret, tls_config, token_words};

/// How long nothing of an answer may arrive. A large UISP takes a minute for its devices with interfaces.
const PATIENCE: Duration = Duration::from_secs(120);

/// The longest answer, bytes: 25,000 devices of UISP with 10 kB each.
const LONGEST: usize = 256 << 20;

/// The longest body of a refusal that is read for what it says.
const LONGEST_COMPLAINT: usize = 64 << 10;

/// The rows of a page.
const PAGE: usize = 10_000;

/// The most rows of an answer.
const MOST_ROWS: usize = 1_000_000;

/// How often the pages of a list that changes meanwhile are read.
const ATTEMPTS: u32 = 3;

/// A server with the customers of a provider.
pub struct Server {
    program: Program,
    authority: Authority,
    destination: Destination,
    secret: Secret,
}

/// What opens it.
enum Secret {
    /// A header with a token.
    Token(HeaderValue),
    /// A key with which each request is signed.
    Signed {
        path: PathBuf,
        key: String,
        secret: hmac::Key,
    },
}

/// Prints where it is. What opens it is a secret.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.authority).finish()
    }
}

impl Server {
    /// Returns the server at an address, like `https://uisp.example.com`. Nothing is asked yet. The file with
    /// the token has UISP's token, or key and secret of Splynx, in one line. The
    /// certificate of the server leads to one of the file `ca`, or else to one that the system trusts.
    ///
    /// # Errors
    /// Fails if the address is none, if a file can't be read, and if others may read the token.
    pub fn at(program: Program, url: &str, token: &Path, ca: Option<&Path>) -> Result<Server, ImportError> {
        let authority = https(without_path(program, url)).map_err(|why| ImportError::Address { why })?;
        let failed = |error| ImportError::of(url, error);
        let words = token_words(token).map_err(failed)?;
        let tls = tls_config(ca).map_err(failed)?;
        let secret = match (program, words) {
            (Program::Uisp, (_, word)) => Secret::Token(secret(token, &word).map_err(failed)?),
            (Program::Splynx, (Some(key), word)) => Secret::Signed {
                path: token.to_owned(),
                key,
                secret: hmac::Key::new(hmac::HMAC_SHA256, word.as_bytes()),
            },
            (Program::Splynx, (None, _)) => {
                let path = token.display().to_string();
                return Err(ImportError::NoSecret { path });
            }
        };
        Ok(Server {
            program,
            destination: Destination::Https(authority.clone(), TlsConnector::from(tls)),
            authority,
            secret,
        })
    }

    /// Asks everything that a list needs.
    ///
    /// # Errors
    /// Fails with the first question that has no whole answer.
    pub fn answers(&self) -> Result<Answers, ImportError> {
        let mut answers = Answers::new();
        let mut nonce = 0;
        for question in self.program.questions() {
            let pages = match question.has_pages {
                true => self.pages(question, &mut nonce)?,
                false => vec![self.whole(question, &mut nonce)?],
            };
            answers.insert(question.name, pages);
        }
        Ok(answers)
    }

    /// Reads a list page by page, in the order of its identifiers.
    ///
    /// A page begins with the last row of the page before. If it does not, a row before it was removed
    /// meanwhile, and one behind it would be missing. The end is where nothing new comes, and not where a
    /// page is short: a server may have shorter pages, or none at all.
    fn pages(&self, question: &Question, nonce: &mut u64) -> Result<Vec<Vec<u8>>, ImportError> {
        'anew: for _ in 0..ATTEMPTS {
            let mut pages = Vec::new();
            let (mut known, mut last): (BTreeSet<String>, Option<String>) = (BTreeSet::new(), None);
            while known.len() <= MOST_ROWS {
                let offset = known.len().saturating_sub(1);
                let and = if question.target.contains('?') { '&' } else { '?' };
                let target = format!(
                    "{}{and}order%5Bid%5D=ASC&limit={PAGE}&offset={offset}",
                    question.target
                );
                let (page, ids) = self.page(question, &target, nonce)?;
                if ids.iter().all(|id| known.contains(id)) {
                    return Ok(pages);
                }
                if last.is_some_and(|last| !ids.contains(&last)) {
                    continue 'anew;
                }
                last = ids.last().cloned();
                known.extend(ids);
                pages.push(page);
            }
            return Err(self.unusable(question, format!("it has more than {MOST_ROWS} rows")));
        }
        Err(ImportError::Changing {
            what: self.what(question),
        })
    }

    /// Returns a page with the identifiers of its rows.
    fn page(
        &self,
        question: &Question,
        target: &str,
        nonce: &mut u64,
    ) -> Result<(Vec<u8>, Vec<String>), ImportError> {
        let page = self.get(question, target, nonce)?;
        let mut ids = Vec::new();
        let read = rows::<Value>(&page, |row| ids.extend(text(row, "/id")));
        read.map_err(|why| self.unusable(question, why))?;
        Ok((page, ids))
    }

    fn whole(&self, question: &Question, nonce: &mut u64) -> Result<Vec<u8>, ImportError> {
        let answer = self.get(question, question.target, nonce)?;
        let read = rows::<IgnoredAny>(&answer, |_| {});
        read.map_err(|why| self.unusable(question, why))?;
        Ok(answer)
    }

    fn unusable(&self, question: &Question, why: String) -> ImportError {
        ImportError::Answer {
            what: self.what(question),
            why,
        }
    }

    fn get(&self, question: &Question, target: &str, nonce: &mut u64) -> Result<Vec<u8>, ImportError> {
        let what = self.what(question);
        let failed = |error: ClientError| ImportError::of(&what, error);
        let (header, value) = self.authorization(nonce).map_err(failed)?;
        let request = Request::get(format!("{}{target}", self.program.path()))
            .header(HOST, self.authority.as_str())
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, concat!("fairgate/", env!("CARGO_PKG_VERSION")))
            .header(header, value)
            .body(Full::<Bytes>::default())
            .map_err(|error| failed(ClientError::Unexpected(error.to_string())))?;
        let response = self
            .destination
            .request(request, false, PATIENCE)
            .map_err(failed)?;
        let status = response.response.status();
        if status == StatusCode::OK {
            return response.up_to(LONGEST).map_err(failed);
        }
        let location = response.response.headers().get(LOCATION);
        let location = location
            .and_then(|location| location.to_str().ok())
            .map(str::to_owned);
        // What it says is of use, if it says something.
        let message = response
            .up_to(LONGEST_COMPLAINT)
            .ok()
            .and_then(|body| complaint(&body));
        Err(ImportError::status(
            self.program,
            &what,
            question.permission,
            status.as_u16(),
            location.as_deref(),
            message,
        ))
    }

    /// Returns the header that opens the server.
    fn authorization(&self, nonce: &mut u64) -> Result<(HeaderName, HeaderValue), ClientError> {
        match &self.secret {
            Secret::Token(token) => Ok((HeaderName::from_static("x-auth-token"), token.clone())),
            Secret::Signed {
                path,
                key,
                secret: by,
            } => {
                // A nonce that was used before is refused. It is the time in hundredths of a second, as in
                // Splynx' document: a key that others use, too, has one order of all requests.
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let now = u64::try_from(now.as_millis() / 10).unwrap_or(u64::MAX);
                *nonce = now.max(nonce.saturating_add(1));
                let value = signed(key, by, *nonce);
                Ok((AUTHORIZATION, secret(path, &value)?))
            }
        }
    }

    /// Returns what messages call a question.
    fn what(&self, question: &Question) -> String {
        let path = question.target.split('?').next().unwrap_or_default();
        name::shown(&format!(
            "https://{}{}{path}",
            self.authority,
            self.program.path()
        ))
    }
}

/// Returns the value of the header of a request that is signed: HMAC with SHA-256 of nonce and key.
fn signed(key: &str, secret: &hmac::Key, nonce: u64) -> String {
    let signature = hmac::sign(secret, format!("{nonce}{key}").as_bytes());
    let hexadecimal: String = signature
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    format!("Splynx-EA (key={key}&nonce={nonce}&signature={hexadecimal})")
}

/// Returns an address without the path of the API, which people copy with it.
fn without_path(program: Program, url: &str) -> &str {
    let url = url.trim().trim_end_matches('/');
    let paths: &[&str] = match program {
        Program::Uisp => &["/nms/api/v2.1", "/nms"],
        Program::Splynx => &["/api/2.0/admin", "/api/2.0"],
    };
    paths
        .iter()
        .find_map(|path| url.strip_suffix(path))
        .unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_signed_as_the_document_says() {
        // Python: hmac.new(b"secret", b"160000000000key", "sha256").hexdigest().upper()
        let secret = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
        assert_eq!(signed("key", &secret, 160_000_000_000), EXPECTED);
    }

    const EXPECTED: &str = "Splynx-EA (key=key&nonce=160000000000&signature=\
        C6D94B998EB7C55FEF334F76BFFE1701671C65DB0BB6E7C568EB26DF649880DF)";

    #[test]
    fn an_address_may_have_the_path_of_the_api() {
        let bare = |url| without_path(Program::Uisp, url);
        assert_eq!(
            bare("https://uisp.example.com/nms/api/v2.1/"),
            "https://uisp.example.com"
        );
        assert_eq!(bare("https://uisp.example.com/nms"), "https://uisp.example.com");
        assert_eq!(
            bare(" https://uisp.example.com:8443 "),
            "https://uisp.example.com:8443"
        );
        let other = "https://splynx.example.com/api/2.0";
        assert_eq!(without_path(Program::Splynx, other), "https://splynx.example.com");
        assert_eq!(without_path(Program::Uisp, other), other);
    }
}
