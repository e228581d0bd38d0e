//! Addresses of APIs.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use hyper::Uri;
use hyper::http::uri::Authority;
use miette::Diagnostic;
use thiserror::Error;

/// The port of `https:` without one.
const HTTPS: u16 = 443;

/// Where the API of a run is: `unix:PATH` or `https://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiAddress {
    /// A unix socket of this machine.
    Unix(PathBuf),
    /// A host and a port of TCP, with TLS.
    Https(Authority),
}

/// A text that is not an address of an API.
#[derive(Clone, Debug, PartialEq, Eq, Error, Diagnostic)]
#[error("{0}; write it like `unix:/run/fairgate/api.sock` or `https://router:8443`")]
pub struct AddressError(String);

impl FromStr for ApiAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<ApiAddress, AddressError> {
        let wrong = |why: String| Err(AddressError(why));
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => wrong("the unix socket has no path".to_owned()),
                path => Ok(ApiAddress::Unix(PathBuf::from(path))),
            };
        }
        match https(text) {
            Ok(authority) => Ok(ApiAddress::Https(authority)),
            Err(why) => wrong(why),
        }
    }
}

/// Returns host and port of an address of a host with TLS, or why it is none.
pub(crate) fn https(text: &str) -> Result<Authority, String> {
    let Ok(uri) = text.parse::<Uri>() else {
        return Err(format!("`{text}` is not an address"));
    };
    let parts = uri.into_parts();
    let has_path = parts
        .path_and_query
        .is_some_and(|path| !["", "/"].contains(&path.as_str()));
    match (
        parts.scheme.as_ref().map(|scheme| scheme.as_str()),
        parts.authority,
    ) {
        (Some("http"), _) => Err("a token must not be sent without TLS".to_owned()),
        (Some("https"), Some(_)) if has_path => Err(format!("`{text}` has a path")),
        (Some("https"), Some(authority)) if authority.as_str().contains('@') => {
            Err("a user in the address is not supported: name a file with a token".to_owned())
        }
        (Some("https"), Some(authority))
            if authority.as_str() != authority.host() && authority.port_u16().is_none() =>
        {
            Err(format!("the port of `{text}` is not a number from 0 to 65535"))
        }
        (Some("https"), Some(authority)) if !authority.host().is_empty() => Ok(authority),
        _ => Err(format!("`{text}` is no address of a host with TLS")),
    }
}

impl ApiAddress {
    /// Returns the host without brackets, and the port.
    pub(crate) fn host_and_port(authority: &Authority) -> (&str, u16) {
        let host = authority.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        (bare.unwrap_or(host), authority.port_u16().unwrap_or(HTTPS))
    }
}

impl fmt::Display for ApiAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            ApiAddress::Https(authority) => write!(f, "https://{authority}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for text in [
            "unix:/run/fairgate/api.sock",
            "unix:api.sock",
            "https://router",
            "https://router:8443",
            "https://192.0.2.1:8443",
            "https://[2001:db8::1]:8443",
        ] {
            assert_eq!(text.parse::<ApiAddress>().unwrap().to_string(), text);
        }
        let ends = |text: &str| match text.parse().unwrap() {
            ApiAddress::Https(authority) => {
                let (host, port) = ApiAddress::host_and_port(&authority);
                (host.to_owned(), port)
            }
            ApiAddress::Unix(_) => panic!("{text}"),
        };
        assert_eq!(ends("https://router/"), ("router".to_owned(), 443));
        assert_eq!(ends("https://[::1]:8443"), ("::1".to_owned(), 8443));
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_reason() {
        for (text, why) in [
            ("unix:", "has no path"),
            ("router", "no address of a host"),
            ("router:8443", "no address of a host"),
            ("", "is not an address"),
            ("http://router", "without TLS"),
            ("https://", "is not an address"),
            ("https://router/v1/status", "has a path"),
            ("https://alice@router", "a user"),
            ("ftp://router", "no address of a host"),
            ("https://router:99999", "the port"),
            ("https://router:", "the port"),
        ] {
            let error = text.parse::<ApiAddress>().expect_err(text);
            assert!(error.to_string().contains(why), "{text}: {error}");
        }
    }
}
