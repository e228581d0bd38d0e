//! Where a run can be controlled and observed over HTTP, besides its status socket. This only says
//! which addresses and files are named, and whether they go together. `fairgate-run` listens there.
//!
//! Whoever reaches the API can change the run. So it is at a unix socket, where the kernel says who asks, or
//! at an address with TLS and a token. Metrics can be read without both on the loopback interface.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use fairgate_config::run::Keys;
use fairgate_config::{Document, FileError};
use miette::Diagnostic;
use thiserror::Error;
use toml::Spanned;

/// What is offered over HTTP, and where. Nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// Control and status.
    pub api: Option<Endpoint>,
    /// Counters for Prometheus, and nothing else.
    pub metrics: Option<Endpoint>,
}

/// What an endpoint offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Control and status.
    Api,
    /// Counters.
    Metrics,
}

/// Where something is offered, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address.
    pub address: Address,
    /// The group whose members may use a unix socket, besides root and the run's own user.
    pub group: Option<String>,
    /// The file with the tokens.
    pub token: Option<PathBuf>,
    /// The file with the tokens of those who may only read.
    pub read_token: Option<PathBuf>,
    /// The file with the certificate, and those that lead to its authority.
    pub certificate: Option<PathBuf>,
    /// The file with the private key of the certificate.
    pub key: Option<PathBuf>,
}

/// An address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A unix socket.
    Unix(PathBuf),
    /// An IP address and a port of TCP.
    Tcp(SocketAddr),
}

/// An address or a combination of files that is not possible.
#[derive(Clone, Debug, PartialEq, Eq, Error, Diagnostic)]
#[error("{message}")]
#[diagnostic(help("{help}"))]
pub struct EndpointError {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

fn wrong<T>(message: impl Into<String>, help: impl Into<String>) -> Result<T, EndpointError> {
    Err(EndpointError {
        message: message.into(),
        help: help.into(),
    })
}

impl FromStr for Address {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Address, EndpointError> {
        let examples = "write it like \"unix:/run/fairgate/api.sock\", \"127.0.0.1:8443\" or \"[::1]:8443\"";
        match text.strip_prefix("unix:") {
            Some("") => wrong("the unix socket has no path", examples),
            Some(path) => Ok(Address::Unix(PathBuf::from(path))),
            None => match text.parse() {
                Ok(address) => Ok(Address::Tcp(address)),
                Err(_) => wrong(
                    format!("`{text}` is neither a unix socket nor an IP address with a port"),
                    examples,
                ),
            },
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(address) => address.fmt(f),
        }
    }
}

impl Offer {
    /// Returns its key in `[run]`.
    pub fn key(self) -> &'static str {
        match self {
            Offer::Api => "api",
            Offer::Metrics => "metrics",
        }
    }
}

impl Endpoint {
    /// Returns an endpoint at `address` without files: for root and the run's own user at a unix socket, and
    /// for everybody at a TCP address.
    pub fn at(address: Address) -> Endpoint {
        Endpoint {
            address,
            group: None,
            token: None,
            read_token: None,
            certificate: None,
            key: None,
        }
    }

    /// Returns whether clients speak TLS to it.
    pub fn has_tls(&self) -> bool {
        self.certificate.is_some()
    }

    /// Checks that the address has what it needs and nothing that it can't use.
    ///
    /// # Errors
    /// Reports the first thing that is missing or too much.
    pub fn check(&self, offer: Offer) -> Result<(), EndpointError> {
        let key = offer.key();
        let files = [
            ("token", &self.token),
            ("certificate", &self.certificate),
            ("key", &self.key),
        ];
        let address = match (&self.address, offer) {
            (Address::Unix(_), Offer::Metrics) => {
                return wrong(
                    "Prometheus can't use a unix socket",
                    "name an address like \"127.0.0.1:9095\"; the socket of `api` has /metrics, too",
                );
            }
            (Address::Unix(_), Offer::Api) => {
                let all = [("read_token", &self.read_token)];
                return match files.iter().chain(&all).find(|(_, file)| file.is_some()) {
                    None => Ok(()),
                    Some((name, _)) => wrong(
                        format!("`{key}_{name}` is for an address of TCP, but `{key}` is a unix socket"),
                        format!("remove `{key}_{name}`: the kernel says who asks at a unix socket"),
                    ),
                };
            }
            (Address::Tcp(address), _) => address,
        };
        if self.group.is_some() {
            return wrong(
                format!("`{key}_group` is for a unix socket, but `{key}` is an address of TCP"),
                format!("remove `{key}_group`, or write `{key} = \"unix:/run/fairgate/api.sock\"`"),
            );
        }
        let is_local = offer == Offer::Metrics && address.ip().is_loopback();
        match files.iter().find(|(_, file)| file.is_none()) {
            Some((name, _)) if !is_local => wrong(
                format!("`{key}` is an address of TCP, but `{key}_{name}` is missing"),
                format!(
                    "name the files `{key}_token`, `{key}_certificate` and `{key}_key`, or use {}",
                    match offer {
                        Offer::Api => "a unix socket",
                        Offer::Metrics => "an address of the loopback interface",
                    }
                ),
            ),
            _ if self.certificate.is_some() != self.key.is_some() => wrong(
                format!("`{key}_certificate` and `{key}_key` need each other"),
                "name both files, or none",
            ),
            _ => Ok(()),
        }
    }
}

impl Endpoints {
    /// Reads the endpoints. Paths of files begin at the folder of the configuration file.
    pub(super) fn read(document: &Document, keys: &Keys) -> Result<Endpoints, FileError> {
        let api = OfEndpoint {
            offer: Offer::Api,
            address: keys.text("api"),
            group: keys.text("api_group"),
            files: ["api_token", "api_certificate", "api_key"].map(|key| keys.path(key)),
            read_token: keys.path("api_read_token"),
        };
        let metrics = OfEndpoint {
            offer: Offer::Metrics,
            address: keys.text("metrics"),
            group: None,
            files: ["metrics_token", "metrics_certificate", "metrics_key"].map(|key| keys.path(key)),
            read_token: None,
        };
        let mut problems = document.problems();
        let endpoints = Endpoints {
            api: problems.of(api.read(document)).flatten(),
            metrics: problems.of(metrics.read(document)).flatten(),
        };
        problems.unless_any(endpoints)
    }
}

/// The keys of an endpoint.
struct OfEndpoint {
    offer: Offer,
    address: Option<Spanned<String>>,
    group: Option<Spanned<String>>,
    /// Token, certificate and key.
    files: [Option<Spanned<PathBuf>>; 3],
    read_token: Option<Spanned<PathBuf>>,
}

impl OfEndpoint {
    fn read(&self, document: &Document) -> Result<Option<Endpoint>, FileError> {
        let key = self.offer.key();
        let Some(address) = &self.address else {
            let names = ["token", "certificate", "key"];
            let files = names.into_iter().zip(&self.files);
            let spans = files.filter_map(|(name, file)| Some((name, file.as_ref()?.span())));
            let group = self.group.as_ref().map(|group| ("group", group.span()));
            let read_token = self.read_token.as_ref().map(|file| ("read_token", file.span()));
            return match spans.chain(group).chain(read_token).next() {
                None => Ok(None),
                Some((name, span)) => Err(document.error(
                    span,
                    format!("`{key}_{name}` needs `{key}`, the address"),
                    format!("add `{key}`, or remove this key"),
                )),
            };
        };
        let folder = Path::new(document.name()).parent().unwrap_or(Path::new(""));
        let [token, certificate, private] = self
            .files
            .each_ref()
            .map(|file| file.as_ref().map(|path| folder.join(path.get_ref())));
        let read_token = self.read_token.as_ref().map(|path| folder.join(path.get_ref()));
        let read = address.get_ref().parse().and_then(|parsed| {
            let endpoint = Endpoint {
                address: match parsed {
                    Address::Unix(path) => Address::Unix(folder.join(path)),
                    tcp => tcp,
                },
                group: self.group.as_ref().map(|group| group.get_ref().clone()),
                token,
                read_token,
                certificate,
                key: private,
            };
            endpoint.check(self.offer).map(|()| endpoint)
        });
        read.map(Some)
            .map_err(|error| document.error(address.span(), error.message, error.help))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Plan;

    fn read(keys: &str) -> Result<Endpoints, String> {
        let text = format!("[run]\nleft = \"a\"\nright = \"b\"\n{keys}");
        let document = Document::parse("/etc/fairgate/home.toml", &text).expect("no queues");
        Plan::read(&document)
            .map(|plan| plan.endpoints)
            .map_err(|error| error.problems()[0].message.clone())
    }

    #[test]
    fn nothing_is_offered_by_default() {
        assert_eq!(read(""), Ok(Endpoints::default()));
    }

    #[test]
    fn paths_begin_at_the_folder_of_the_file() {
        let endpoints = read(
            "api = \"[::1]:8443\"\napi_token = \"token\"\napi_certificate = \"/c.pem\"\n\
             api_key = \"k.pem\"\napi_read_token = \"readers\"\n",
        );
        let api = endpoints.unwrap().api.unwrap();
        assert_eq!(api.address.to_string(), "[::1]:8443");
        assert_eq!(api.token, Some("/etc/fairgate/token".into()));
        assert_eq!(api.read_token, Some("/etc/fairgate/readers".into()));
        assert_eq!(api.certificate, Some("/c.pem".into()));
        assert_eq!(api.key, Some("/etc/fairgate/k.pem".into()));
        assert!(api.has_tls());
    }

    #[test]
    fn what_does_not_go_together_is_rejected() {
        let cases = [
            ("api = \"0.0.0.0:1\"", "`api_token` is missing"),
            (
                "api = \"127.0.0.1:1\"\napi_token = \"t\"",
                "`api_certificate` is missing",
            ),
            (
                "api = \"127.0.0.1:1\"\napi_token = \"t\"\napi_certificate = \"c\"",
                "`api_key` is missing",
            ),
            (
                "api = \"127.0.0.1:1\"\napi_certificate = \"c\"\napi_key = \"k\"",
                "`api_token` is missing",
            ),
            (
                "api = \"unix:a\"\napi_token = \"t\"",
                "`api_token` is for an address",
            ),
            ("api = \"unix:\"", "has no path"),
            ("api = \"localhost:1\"", "neither a unix socket nor an IP address"),
            ("api = \"127.0.0.1\"", "neither a unix socket nor an IP address"),
            ("api_token = \"t\"", "`api_token` needs `api`"),
            ("api_read_token = \"t\"", "`api_read_token` needs `api`"),
            (
                "api = \"unix:a\"\napi_read_token = \"t\"",
                "`api_read_token` is for an address",
            ),
            (
                "api = \"127.0.0.1:1\"\napi_read_token = \"t\"",
                "`api_token` is missing",
            ),
            ("api_group = \"adm\"", "`api_group` needs `api`"),
            (
                "api = \"[::1]:1\"\napi_group = \"adm\"",
                "`api_group` is for a unix socket",
            ),
            ("metrics = \"unix:m\"", "Prometheus can't use a unix socket"),
            ("metrics = \"10.0.0.1:1\"", "`metrics_token` is missing"),
            (
                "metrics = \"127.0.0.1:1\"\nmetrics_key = \"k\"",
                "need each other",
            ),
        ];
        for (keys, complaint) in cases {
            let message = read(keys).expect_err(keys);
            assert!(message.contains(complaint), "{keys}: {message}");
        }
        for fine in [
            "api = \"unix:api.sock\"\napi_group = \"adm\"",
            "metrics = \"127.0.0.1:9095\"",
            "metrics = \"[::1]:9095\"\nmetrics_token = \"t\"",
            "metrics = \"10.0.0.1:1\"\nmetrics_token = \"t\"\nmetrics_certificate = \"c\"\n\
             metrics_key = \"k\"",
        ] {
            assert!(read(fine).is_ok(), "{fine}");
        }
    }
}
