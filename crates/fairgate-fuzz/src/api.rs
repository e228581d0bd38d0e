//! Requests to the API of a run.

use fairgate_run::rehearsal::{Rehearsal, Reply, Stage};

/// The longest answer, bytes. The trees of a rehearsal are small, but a change can add classes.
const LONGEST: usize = 16 << 20;

/// The trees of the rehearsal.
const TREE: &str = "htb default=20 { 1 rate=20mbit { 10 rate=5mbit ceil=20mbit / fifo; \
                    20 rate=15mbit ceil=20mbit / fq_codel } }";

/// A request as a connection would deliver it.
struct Request<'r> {
    method: &'r str,
    target: &'r str,
    headers: Vec<(&'r str, &'r [u8])>,
    body: &'r [u8],
}

/// Sends requests to the API. Blank lines of three dashes divide them; each is a line with method and target,
/// header fields, an empty line, and a body.
///
/// # Panics
/// Panics if an answer is not what the API promises, or if a request changes trees that it must not change.
pub fn api(bytes: &[u8]) {
    let run = Rehearsal::new(TREE).expect("a valid tree");
    let stage = Stage::new(run.clone());
    // More requests find no more bugs, only more time.
    for part in parts(bytes).take(8) {
        let Some(request) = Request::read(part) else {
            continue;
        };
        let before = run.revision();
        let asked = stage.ask(request.method, request.target, &request.headers, request.body);
        // The HTTP library refuses what is no request.
        let Some(reply) = asked else {
            continue;
        };
        check(&request, &reply);
        let has_changed = run.revision() != before;
        let may_change = ["POST", "PUT", "DELETE"].contains(&request.method) && reply.status < 300;
        assert!(!has_changed || may_change, "{} changed something", request.method);
    }
    let health = stage.ask("GET", "/v1/trees", &[], b"").expect("a request");
    assert_eq!(health.status, 200, "it answers no more");
}

fn parts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    const DIVIDER: &[u8] = b"\n---\n";
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let whole = rest?;
        let found = whole.windows(DIVIDER.len()).position(|window| window == DIVIDER);
        rest = found.map(|at| &whole[at + DIVIDER.len()..]);
        Some(&whole[..found.unwrap_or(whole.len())])
    })
}

impl<'r> Request<'r> {
    fn read(bytes: &'r [u8]) -> Option<Request<'r>> {
        let (first, mut rest) = line(bytes);
        let (method, target) = std::str::from_utf8(first).ok()?.split_once(' ')?;
        let mut headers = Vec::new();
        loop {
            let (field, behind) = line(rest);
            rest = behind;
            if field.is_empty() {
                break;
            }
            let colon = field.iter().position(|byte| *byte == b':')?;
            let name = std::str::from_utf8(&field[..colon]).ok()?;
            headers.push((name, field[colon + 1..].trim_ascii()));
        }
        Some(Request {
            method,
            target,
            headers,
            body: rest,
        })
    }
}

/// Splits the first line from the rest.
fn line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[]),
    }
}

fn check(request: &Request<'_>, reply: &Reply) {
    let Request { method, target, .. } = request;
    assert!(reply.body.len() <= LONGEST, "{method} {target}");
    // A file of the web page. It holds nothing of the run.
    if reply.header("cache-control") == Some("no-cache") {
        assert!(["GET", "HEAD"].contains(method), "{method} {target}");
        assert!([200, 304].contains(&reply.status), "{method} {target}");
        assert!(
            reply.header("content-security-policy").is_some(),
            "{method} {target}"
        );
        return;
    }
    assert_eq!(
        reply.header("cache-control"),
        Some("no-store"),
        "{method} {target}"
    );
    let media_type = reply.header("content-type");
    match reply.status {
        200 | 201 if *method == "HEAD" => assert!(reply.body.is_empty()),
        200 | 201 => {
            let media_type = media_type.expect("a media type");
            let is_text = media_type.starts_with("application/openmetrics-text");
            assert!(
                is_text || media_type == "application/json",
                "{method} {target}: {media_type}"
            );
            assert!(is_text || is_json(&reply.body), "{method} {target}");
        }
        304 => assert!(reply.body.is_empty()),
        400 | 403 | 404 | 405 | 412 | 413 | 415 | 421 | 422 => {
            assert_eq!(media_type, Some("application/problem+json"), "{method} {target}");
            assert!(*method == "HEAD" || is_json(&reply.body), "{method} {target}");
        }
        other => panic!("{method} {target}: {other}"),
    }
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(bytes).is_ok()
}
