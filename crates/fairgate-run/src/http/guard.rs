//! Who asks, and whether a browser was made to ask by another site.
//!
//! A web page can make a browser on this machine send requests to the loopback interface. It can't set
//! `Authorization` or `Content-Type: application/json` without a preflight request, which nothing here
//! answers. What browsers say about the page (`Origin`, `Sec-Fetch-Site`) is checked all the same. A page
//! whose name resolves to the loopback address (DNS rebinding) is of the same origin, and a port of this
//! machine may lead to a unix socket (`ssh -L`). So an endpoint without tokens accepts only requests that
//! name an address or `localhost`. At a unix socket they may also name no host, as no browser does.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderValue, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::http::places::{Place, Refusals};
use crate::http::problem::{Kind, Problem};
use crate::http::shared::Shared;
use crate::http::tokens::{Owner, Tokens};

/// The other end of a connection. It is an extension of each request.
#[derive(Clone, Debug)]
pub(crate) enum Client {
    /// A process of this machine.
    Process {
        user: u32,
        process: i32,
        /// Whether this user may control the run.
        is_allowed: bool,
    },
    /// Anyone.
    Remote(IpAddr),
}

/// Who asks, for the audit. It is an extension of each request that has passed the guard.
#[derive(Clone, Debug)]
pub(crate) struct Who(pub(crate) Arc<str>);

/// Whether whoever asks may change the run. It is an extension of each request that has passed the guard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MayChange(pub(crate) bool);

/// The rules of an endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// The tokens that clients of other machines need. Without any, all clients are served.
    pub(crate) tokens: Option<Arc<Tokens>>,
    pub(crate) refusals: Arc<Refusals>,
}

/// Names a client by its user and process.
fn who_is(user: u32, process: i32) -> String {
    format!("uid {user}, pid {process}")
}

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Lets a request through, or answers it. Whoever shows that he may come in has one of the places for those
/// who are known.
pub(crate) async fn guard(
    State((rules, shared)): State<(Rules, Shared)>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut response = match rules.admit(&request) {
        Ok(who) => {
            if let (Some(place), Some(known)) = (
                request.extensions().get::<Arc<Place>>(),
                rules.known(&request, &who),
            ) {
                place.know(&known);
            }
            let may_change = MayChange(!rules.only_reads(&request));
            request.extensions_mut().insert(may_change);
            request.extensions_mut().insert(who);
            next.run(request).await
        }
        Err(problem) => {
            if let Some((who, why)) = rules.suspicious(&request)
                && let Some(unsaid) = rules.refusals.count(Instant::now())
            {
                let what = format!("{} {}", request.method(), request.uri().path());
                let before = match unsaid {
                    0 => String::new(),
                    unsaid => format!("; {unsaid} more requests were refused since the last such line"),
                };
                // The log may wait for its reader.
                let outcome = format!("refused: {why}{before}");
                let _ = shared.wait(move |shared| shared.note(&who, &what, outcome)).await;
            }
            problem.into_response()
        }
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let nothing = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.insert(CONTENT_SECURITY_POLICY, nothing);
    let no_guess = HeaderName::from_static("x-content-type-options");
    headers.insert(no_guess, HeaderValue::from_static("nosniff"));
    response
}

impl Rules {
    fn admit(&self, request: &Request) -> Result<Who, Problem> {
        let headers = request.headers();
        check_site(headers, request.uri())?;
        let who = match (request.extensions().get::<Client>(), &self.tokens) {
            (
                Some(&Client::Process {
                    user,
                    process,
                    is_allowed,
                }),
                _,
            ) => match is_allowed {
                true => {
                    if headers.contains_key(HOST) || request.uri().authority().is_some() {
                        check_host(headers, request.uri())?;
                    }
                    who_is(user, process)
                }
                false => {
                    let detail = format!("user {user} is neither root nor the run's user, nor in its group");
                    return Err(Problem::new(Kind::Forbidden, detail));
                }
            },
            (_, Some(tokens)) => {
                let owner = bearer(headers).and_then(|token| tokens.owner(token));
                let owner = owner.ok_or_else(|| {
                    let detail = "send `Authorization: Bearer TOKEN` with a token of the run's file";
                    Problem::new(Kind::Unauthorized, detail)
                })?;
                if !owner.may_change && !is_reading(request.method()) {
                    let detail =
                        "this token may only read (GET): use one of `api_token`, not of `api_read_token`";
                    return Err(Problem::new(Kind::Forbidden, detail));
                }
                format!("token {}", owner.name)
            }
            (_, None) => {
                check_host(headers, request.uri())?;
                "anyone".to_owned()
            }
        };
        Ok(Who(who.into()))
    }
}

impl Rules {
    /// Returns the owner of the token of a client of another machine.
    fn owner(&self, request: &Request) -> Option<&Owner> {
        let tokens = match request.extensions().get::<Client>()? {
            Client::Remote(_) => self.tokens.as_ref()?,
            Client::Process { .. } => return None,
        };
        tokens.owner(bearer(request.headers())?)
    }

    /// Returns whether a client may only read.
    fn only_reads(&self, request: &Request) -> bool {
        self.owner(request).is_some_and(|owner| !owner.may_change)
    }

    /// Returns by what an admitted client is known: a user, or a token. Without tokens, nobody is.
    fn known(&self, request: &Request, who: &Who) -> Option<Arc<str>> {
        match (request.extensions().get::<Client>()?, &self.tokens) {
            // Each of its processes is the same user.
            (Client::Process { user, .. }, _) => Some(format!("uid {user}").into()),
            (Client::Remote(_), Some(_)) => Some(Arc::clone(&who.0)),
            (Client::Remote(_), None) => None,
        }
    }

    /// Returns who has tried a token that is none, may only read, or is a user who may not come in, for the
    /// log.
    fn suspicious(&self, request: &Request) -> Option<(String, &'static str)> {
        if let Some(owner) = self.owner(request).filter(|owner| !owner.may_change) {
            let may_not = !is_reading(request.method());
            return may_not.then(|| (format!("token {}", owner.name), "the token may only read"));
        }
        match request.extensions().get::<Client>()? {
            &Client::Process {
                user,
                process,
                is_allowed: false,
            } => Some((who_is(user, process), "the user may not control this run")),
            Client::Remote(address) if self.tokens.is_some() => {
                let is_wrong = request.headers().contains_key(AUTHORIZATION) && self.owner(request).is_none();
                is_wrong.then(|| (address.to_string(), "the token is none of the run's file"))
            }
            _ => None,
        }
    }
}

/// Returns whether a method changes nothing.
fn is_reading(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Returns the token of a request (RFC 6750, section 2.1).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let is_only = values.next().is_none();
    (is_only && scheme.eq_ignore_ascii_case("bearer")).then_some(token.trim())
}

/// Refuses what a browser sends for a page of another site.
fn check_site(headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
    let refused = |detail: &str| Err(Problem::new(Kind::CrossSite, detail));
    for site in headers.get_all(FETCH_SITE) {
        if !matches!(site.as_bytes(), b"same-origin" | b"none") {
            return refused("a browser sends this request for another site (`Sec-Fetch-Site`)");
        }
    }
    for origin in headers.get_all(ORIGIN) {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        if origin.is_none_or(|(_, authority)| Some(authority) != host(headers, uri)) {
            return refused("a browser sends this request for another site (`Origin`)");
        }
    }
    Ok(())
}

/// Refuses names of hosts other than this one.
fn check_host(headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
    let name = host(headers, uri).map(without_port);
    let is_address = |name: &str| {
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        bare.unwrap_or(name).parse::<IpAddr>().is_ok()
    };
    match name {
        Some(name) if name.eq_ignore_ascii_case("localhost") || is_address(name) => Ok(()),
        _ => Err(Problem::new(
            Kind::Misdirected,
            "name an address or localhost: other names could be those of another site",
        )),
    }
}

/// Returns the host and the port that a request is for.
fn host<'r>(headers: &'r HeaderMap, uri: &'r Uri) -> Option<&'r str> {
    let mut values = headers.get_all(HOST).iter();
    match (values.next(), values.next()) {
        (Some(only), None) => only.to_str().ok(),
        (Some(_), Some(_)) => None,
        (None, _) => uri.authority().map(|authority| authority.as_str()),
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn admitted(rules: &Rules, client: Client, headers: &[(&str, &str)]) -> Result<String, String> {
        let mut request = Request::builder().uri("/v1/status");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Body::empty()).unwrap();
        request.extensions_mut().insert(client);
        let problem = |problem: Problem| {
            let document = serde_json::to_value(&problem).unwrap();
            let kind = document["type"].as_str().unwrap();
            kind.rsplit(':').next().unwrap().to_owned()
        };
        rules
            .admit(&request)
            .map(|Who(who)| who.to_string())
            .map_err(problem)
    }

    #[test]
    fn requests_of_other_sites_are_refused() {
        let rules = Rules::default();
        let process = || Client::Process {
            user: 1000,
            process: 7,
            is_allowed: true,
        };
        let who = Ok("uid 1000, pid 7".to_owned());
        let host = ("host", "localhost:8443");
        let fine: [&[(&str, &str)]; 5] = [
            &[],
            &[host],
            &[("sec-fetch-site", "none")],
            &[host, ("sec-fetch-site", "same-origin")],
            &[host, ("origin", "https://localhost:8443")],
        ];
        for headers in fine {
            assert_eq!(admitted(&rules, process(), headers), who, "{headers:?}");
        }
        let foreign: [&[(&str, &str)]; 8] = [
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")],
            &[host, ("origin", "https://evil.example")],
            &[host, ("origin", "https://localhost:8444")],
            &[host, ("origin", "null")],
            &[("origin", "https://localhost:8443")],
            &[
                host,
                ("origin", "https://localhost:8443"),
                ("origin", "https://evil.example"),
            ],
        ];
        for headers in foreign {
            assert_eq!(
                admitted(&rules, process(), headers),
                Err("cross-site".to_owned()),
                "{headers:?}"
            );
        }
        // A page of this name, which resolves to the loopback address, and a port there that leads to the
        // socket: nothing that its requests say is wrong, except for the name.
        for name in ["evil.example", "evil.example:8443", "127.0.0.1.evil.example", ""] {
            let origin = format!("http://{name}");
            let headers = [
                ("host", name),
                ("origin", &*origin),
                ("sec-fetch-site", "same-origin"),
            ];
            for headers in [&headers[..1], &headers[..2], &headers[..]] {
                assert_eq!(
                    admitted(&rules, process(), headers),
                    Err("misdirected".to_owned()),
                    "{headers:?}"
                );
            }
        }
    }

    #[test]
    fn strangers_are_refused() {
        let stranger = Client::Process {
            user: 1000,
            process: 7,
            is_allowed: false,
        };
        let rules = Rules::default();
        assert_eq!(admitted(&rules, stranger, &[]), Err("forbidden".to_owned()));
    }

    #[test]
    fn without_tokens_only_addresses_are_served() {
        let rules = Rules::default();
        for host in [
            "127.0.0.1:9095",
            "127.0.0.1",
            "localhost:9095",
            "[::1]:9095",
            "LOCALHOST",
        ] {
            assert_eq!(
                admitted(&rules, Client::Remote(HERE), &[("host", host)]),
                Ok("anyone".to_owned()),
                "{host}"
            );
        }
        for host in [
            "evil.example:9095",
            "evil.example",
            "",
            "127.0.0.1.evil.example",
            ":9095",
        ] {
            assert_eq!(
                admitted(&rules, Client::Remote(HERE), &[("host", host)]),
                Err("misdirected".to_owned()),
                "{host}"
            );
        }
        assert_eq!(
            admitted(&rules, Client::Remote(HERE), &[]),
            Err("misdirected".to_owned())
        );
    }
}
