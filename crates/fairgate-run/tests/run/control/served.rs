//! Real sockets: who may come in, TLS, and clients that are slow, silent or too many.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fairgate_live::{Address, Endpoint, Endpoints};
use fairgate_run::client::Remote;
use fairgate_run::rehearsal::Rehearsal;
use fairgate_run::{ControlError, Doors, ServerHandle};
use fairgate_run_api::{Ask, Audit, Change};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use super::http::{Answer, answer, ask};

const ALICE: &str = "0123456789abcdef0123456789abcdef";
const READER: &str = "readsreadsreadsreadsreadsreadsreads";

/// The API of a rehearsal at a unix socket.
struct Socket {
    run: Rehearsal,
    path: PathBuf,
    control: Option<ServerHandle>,
    _folder: TempDir,
}

impl Socket {
    /// Opens the status socket, too. Returns its path.
    fn with_status_socket() -> (Socket, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (path, status) = (folder.path().join("api.sock"), folder.path().join("run.sock"));
        let endpoints = Endpoints {
            api: Some(Endpoint::at(Address::Unix(path.clone()))),
            metrics: None,
        };
        let run = Rehearsal::new("fifo").unwrap();
        let doors = Doors::open(&endpoints).unwrap();
        let doors = doors.with_status_socket(&status).unwrap();
        let socket = Socket {
            control: Some(doors.serve(Arc::new(run.clone()), run.audit(), None).unwrap()),
            run,
            path,
            _folder: folder,
        };
        (socket, status)
    }

    fn open() -> Socket {
        Socket::open_with("fifo")
    }

    fn open_with(tree: &str) -> Socket {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.sock");
        let endpoints = Endpoints {
            api: Some(Endpoint::at(Address::Unix(path.clone()))),
            metrics: None,
        };
        let run = Rehearsal::new(tree).unwrap();
        let doors = Doors::open(&endpoints).unwrap();
        assert_eq!(
            doors.offered().next().unwrap(),
            format!("The API is at unix:{}.", path.display())
        );
        Socket {
            control: Some(doors.serve(Arc::new(run.clone()), run.audit(), None).unwrap()),
            run,
            path,
            _folder: folder,
        }
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.path).unwrap()
    }
}

#[test]
fn at_a_unix_socket_the_kernel_says_who_asks() {
    let mut socket = Socket::open();
    assert_eq!(fs::metadata(&socket.path).unwrap().mode() & 0o777, 0o600);
    let order = "{\"lines\": [\"queue change root fq_codel\"]}";
    let made = ask(socket.connect(), "POST", "/v1/changes", &[], order);
    assert_eq!((made.status, &made.json()["revision"]), (200, &1.into()));
    let own = fs::metadata(&socket.path).unwrap().uid();
    let entry = format!(
        "uid {own}, pid {}: change: queue change root fq_codel: made, revision 1;",
        std::process::id()
    );
    let log = socket.run.log();
    assert!(log.len() == 1 && log[0].starts_with(&entry), "{log:?}");
    socket.control = None;
    assert!(!socket.path.exists(), "the socket is left behind");
}

/// Nobody but root and this user may come to the status socket. It has the routes of the API without the page
/// and what is kept for it, the same tags, and is removed in the end.
#[test]
fn the_status_socket_has_what_commands_ask() {
    let (mut socket, status) = Socket::with_status_socket();
    assert_eq!(fs::metadata(&status).unwrap().mode() & 0o777, 0o600);
    let at_status = |method: &str, target: &str, fields: &[(&str, &str)], body: &str| {
        ask(
            UnixStream::connect(&status).unwrap(),
            method,
            target,
            fields,
            body,
        )
    };
    for target in ["/", "/v1/history?from=left", "/v1/classes?from=left"] {
        let missing = at_status("GET", target, &[], "");
        assert_eq!(missing.problem(), "not-found", "{target}");
        assert!(missing.body.contains("`api` in [run]"), "{missing:?}");
        assert_eq!(
            ask(socket.connect(), "GET", target, &[], "").status,
            200,
            "{target}"
        );
    }
    let trees = ask(socket.connect(), "GET", "/v1/trees", &[], "");
    let tag = trees.header("etag").unwrap();
    let order = "{\"lines\": [\"queue change root fq_codel\"]}";
    let made = at_status("POST", "/v1/changes", &[("If-Match", tag)], order);
    assert_eq!((made.status, &made.json()["revision"]), (200, &1.into()));
    let stale = at_status("POST", "/v1/changes", &[("If-Match", tag)], order);
    assert_eq!(stale.status, 412);
    let entry = format!(
        "pid {}: change: queue change root fq_codel: made, revision 1;",
        std::process::id()
    );
    assert!(socket.run.log()[0].contains(&entry), "{:?}", socket.run.log());
    socket.control = None;
    assert!(
        !status.exists() && !socket.path.exists(),
        "a socket is left behind"
    );
}

/// Whatever the clients of the API hold: answers that nobody reads, recordings, heads and bodies that do not
/// come. Commands of this machine are answered beside it.
#[test]
fn clients_of_the_api_keep_no_command_waiting() {
    let (socket, status) = Socket::with_status_socket();
    let remote = Remote::from(status);
    // Its status is longer than a socket takes without a reader.
    let classes: Vec<String> = (1..=2_000).map(|class| format!("{class} / fifo")).collect();
    let tree = format!("queue change root drr {{ {} }}", classes.join("; "));
    let change = |line| Change {
        lines: vec![line],
        ..Change::default()
    };
    remote.change(change(tree)).unwrap();
    let held: Vec<UnixStream> = (0..300)
        .map(|number| {
            let mut client = socket.connect();
            let request: &[u8] = match number % 4 {
                0 => b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n",
                1 => b"GET /v1/intervals?interval_us=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n",
                2 => b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nX: ",
                _ => {
                    b"POST /v1/changes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                      Content-Length: 99999\r\n\r\n{"
                }
            };
            let _ = client.write_all(request);
            client
        })
        .collect();
    // All turns of the API are taken.
    let busy = ask(socket.connect(), "GET", "/v1/health", &[], "");
    assert_eq!(busy.problem(), "busy");
    for revision in 2..12 {
        assert_eq!(remote.status(false).unwrap().revision, revision - 1);
        let limit = format!("class change 1 quantum={revision}000");
        let made = remote.change(change(limit)).unwrap();
        assert_eq!(made.revision, revision);
        let mut intervals = remote.record(Duration::from_millis(1)).unwrap();
        assert!(intervals.next().unwrap().is_ok());
    }
    drop(held);
}

/// Clients that hold all places lose them: a head that does not come, a body that does not come, and an
/// answer that is not read. Then others are served again.
#[test]
fn slow_clients_lose_their_places() {
    let socket = Socket::open();
    let mut slow: Vec<UnixStream> = Vec::new();
    for number in 0..80 {
        let mut client = socket.connect();
        // A client that finds no place is disconnected, so that it may fail to write.
        let _ = match number % 3 {
            0 => Ok(()),
            1 => client.write_all(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nX: "),
            _ => client.write_all(
                b"POST /v1/changes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                  Content-Length: 9\r\n\r\n{",
            ),
        };
        slow.push(client);
    }
    let (mut cut, mut told) = (0, 0);
    for mut client in slow {
        let mut said = Vec::new();
        match client.read_to_end(&mut said) {
            Ok(0) | Err(_) => cut += 1,
            Ok(_) => {
                told += 1;
                assert!(
                    said.starts_with(b"HTTP/1.1 408"),
                    "{}",
                    String::from_utf8_lossy(&said)
                );
            }
        }
    }
    assert_eq!(cut + told, 80);
    assert!(told > 0, "no body was waited for");
    assert_eq!(ask(socket.connect(), "GET", "/v1/health", &[], "").status, 200);
    assert_eq!(socket.run.log().len(), 0);
}

/// The API of a rehearsal with thousands of classes, each of which has a row in each interval.
fn with_many_rows() -> Socket {
    let classes: Vec<String> = (1..=2_000).map(|class| format!("{class} / fifo")).collect();
    Socket::open_with(&format!("drr {{ {} }}", classes.join("; ")))
}

fn begin(socket: &Socket, interval_us: u32) -> BufReader<UnixStream> {
    let mut client = socket.connect();
    let target = format!("/v1/intervals?interval_us={interval_us}");
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(client);
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1"), "{line}");
    lines
}

/// A client that does not read what it has asked for loses its place, and its answer has no end: it can't be
/// taken for a whole one. Clients that end give their places back, too.
#[test]
fn intervals_end_with_their_clients() {
    let socket = with_many_rows();
    let mut late = begin(&socket, 1_000);
    let others: Vec<_> = (0..3).map(|_| begin(&socket, 3_600_000_000)).collect();
    let busy = ask(socket.connect(), "GET", "/v1/intervals", &[], "");
    assert_eq!((busy.status, busy.problem()), (503, "busy".to_owned()));
    // All four places become free again: that of the late client after some seconds.
    drop(others);
    let mut places = Vec::new();
    while places.len() < 4 {
        let mut client = socket.connect();
        let request = "GET /v1/intervals?interval_us=3600000000 HTTP/1.1\r\nHost: localhost\r\n\r\n";
        client.write_all(request.as_bytes()).unwrap();
        let mut status = [0; 12];
        client.read_exact(&mut status).unwrap();
        match &status {
            b"HTTP/1.1 200" => places.push(client),
            _ => thread::sleep(Duration::from_millis(50)),
        }
    }
    let mut rest = Vec::new();
    let _ = late.read_to_end(&mut rest);
    // The last part of a whole answer has the length 0 (RFC 9112, section 7.1).
    assert!(rest.len() > 100_000 && !rest.ends_with(b"0\r\n\r\n"));
}

/// However long an interval is: when the run ends, or the API does, the answer gets its end.
#[test]
fn intervals_end_with_the_run() {
    for interval_us in [1_000, 3_600_000_000] {
        let mut socket = Socket::open();
        let lines = begin(&socket, interval_us);
        match interval_us {
            1_000 => socket.run.end(),
            _ => socket.control = None,
        }
        has_end(lines);
    }
}

fn has_end(mut lines: BufReader<UnixStream>) {
    let mut rest = Vec::new();
    while !rest.ends_with(b"0\r\n\r\n") {
        let read = lines.read_until(b'\n', &mut rest).unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&rest));
    }
}

#[test]
fn heads_that_are_too_long_are_refused() {
    let socket = Socket::open();
    let long = "x".repeat(40_000);
    let refused = |mut client: UnixStream, text: String| {
        // The server may close before it has read everything.
        let _ = client.write_all(text.as_bytes());
        answer(client)
    };
    let fields = (0..100).map(|number| format!("F{number}: 1\r\n"));
    let many: String = fields.collect();
    let heads = [
        format!("GET /v1/status HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n\r\n"),
        format!("GET /v1/status HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"),
        format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        "rubbish\r\n\r\n".to_owned(),
        "GET /v1/status HTTP/9.9\r\n\r\n".to_owned(),
        "\0\0\0\0\0\0\0\0\r\n\r\n".to_owned(),
    ];
    for head in heads {
        let answer = refused(socket.connect(), head.clone());
        let status = answer.map_or(400, |answer| answer.status);
        assert!((400..500).contains(&status), "{status} {head:.60}");
    }
    assert_eq!(ask(socket.connect(), "GET", "/v1/health", &[], "").status, 200);
}

/// The API of a rehearsal at an address, with TLS.
struct Secure {
    run: Rehearsal,
    address: SocketAddr,
    trusted: RootCertStore,
    _control: ServerHandle,
    _folder: TempDir,
}

/// Writes a certificate for localhost, its key, and tokens. Returns the certificate.
fn write_secrets(folder: &Path) -> rustls::pki_types::CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    write("certificate", made.cert.pem());
    write("key", made.signing_key.serialize_pem());
    write("token", format!("alice {ALICE}\n"));
    write("readers", format!("reader {READER}\n"));
    made.cert.der().clone()
}

fn secure_endpoint(folder: &Path) -> Endpoint {
    Endpoint {
        token: Some(folder.join("token")),
        read_token: Some(folder.join("readers")),
        certificate: Some(folder.join("certificate")),
        key: Some(folder.join("key")),
        ..Endpoint::at(Address::Tcp("127.0.0.1:0".parse().unwrap()))
    }
}

/// Returns the address in a sentence of [`Doors::offered`].
fn address_of(doors: &Doors) -> SocketAddr {
    let sentence = doors.offered().next().unwrap();
    let place = sentence.split("://").nth(1).unwrap();
    let place = place.trim_end_matches("/metrics.").trim_end_matches('.');
    place.parse().unwrap()
}

impl Secure {
    fn open() -> Secure {
        let folder = tempfile::tempdir().unwrap();
        let mut trusted = RootCertStore::empty();
        trusted.add(write_secrets(folder.path())).unwrap();
        let endpoints = Endpoints {
            api: Some(secure_endpoint(folder.path())),
            metrics: None,
        };
        let doors = Doors::open(&endpoints).unwrap();
        let address = address_of(&doors);
        let run = Rehearsal::new("fifo").unwrap();
        Secure {
            _control: doors.serve(Arc::new(run.clone()), run.audit(), None).unwrap(),
            run,
            address,
            trusted,
            _folder: folder,
        }
    }

    fn ask(&self, method: &str, target: &str, fields: &[(&str, &str)], body: &str) -> Answer {
        ask(self.connect(), method, target, fields, body)
    }

    fn connect(&self) -> StreamOwned<ClientConnection, TcpStream> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.trusted.clone())
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let client = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect(self.address).unwrap();
        StreamOwned::new(client, stream)
    }
}

/// A token of the other file reads all there is, and changes nothing. The log has who tried it.
#[test]
fn a_token_may_only_read() {
    let secure = Secure::open();
    let bearer = |token: &str| format!("Bearer {token}");
    let (reads, changes) = (bearer(READER), bearer(ALICE));
    let ask = |method: &str, target: &str, token: &str, body: &str| {
        let fields = [("Authorization", token), ("Content-Type", "application/json")];
        let fields = if body.is_empty() {
            &fields[..1]
        } else {
            &fields[..]
        };
        secure.ask(method, target, fields, body)
    };
    for target in [
        "/v1/status",
        "/v1/trees",
        "/v1/subscribers",
        "/v1/openapi.json",
        "/metrics",
    ] {
        assert_eq!(ask("GET", target, &reads, "").status, 200, "{target}");
    }
    for (token, may_change) in [(&reads, false), (&changes, true)] {
        let health = ask("GET", "/v1/health", token, "").json();
        assert_eq!(health["may_change"], may_change, "{health}");
    }
    let entry = "{\"prefixes\": [\"192.0.2.1\"], \"plan\": \"home\"}";
    let all = [
        (
            "POST",
            "/v1/changes",
            "{\"lines\": [\"queue change root limit=7\"]}",
        ),
        ("POST", "/v1/changes/confirm", "{}"),
        ("POST", "/v1/reload", "{}"),
        ("POST", "/v1/what-if", "{}"),
        ("POST", "/v1/reservations", "{\"terms\": {}}"),
        ("PUT", "/v1/subscribers/1", entry),
        ("PATCH", "/v1/subscribers", "{\"subscribers\": []}"),
        ("DELETE", "/v1/subscribers/1", ""),
        // Also where there is no such method.
        ("PATCH", "/v1/status", "{}"),
    ];
    for (method, target, body) in all {
        let refused = ask(method, target, &reads, body);
        assert_eq!(refused.problem(), "forbidden", "{method} {target}: {refused:?}");
    }
    assert_eq!(secure.run.revision(), 0);
    let log = secure.run.log();
    assert_eq!(
        log[0],
        "token reader: POST /v1/changes: refused: the token may only read"
    );
    assert_eq!(ask("PUT", "/v1/subscribers/1", &changes, entry).status, 201);
}

/// Clients that say nothing, that stop in the middle of a head, and that have the page again and again: they
/// take each other's places, and none of an operator, though all have the same address.
#[test]
fn strangers_do_not_keep_operators_out() {
    let secure = Secure::open();
    let right = format!("Bearer {ALICE}");
    let mut silent = Vec::new();
    for round in 0..5 {
        for _ in 0..80 {
            silent.push(TcpStream::connect(secure.address).unwrap());
        }
        let mut talkers = Vec::new();
        for number in 0..40 {
            let mut talker = secure.connect();
            let request: &[u8] = match number % 2 {
                0 => b"GET / HTTP/1.1\r\nHost: x\r\n",
                _ => b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            };
            // It may have lost its place already.
            let _ = talker.write_all(request);
            talkers.push(talker);
        }
        for _ in 0..4 {
            let answer = secure.ask("GET", "/v1/health", &[("Authorization", &right)], "");
            assert_eq!(answer.status, 200, "in round {round}");
        }
    }
}

/// Whoever has shown a token stays, however many come.
#[test]
fn a_known_client_keeps_its_connection() {
    let secure = Secure::open();
    let mut operator = secure.connect();
    let request = format!("GET /v1/health HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ALICE}\r\n\r\n");
    for _ in 0..3 {
        operator.write_all(request.as_bytes()).unwrap();
        let mut status = [0; 12];
        operator.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
        let mut last = [0; 4];
        while last != *b"\r\n\r\n" {
            last.rotate_left(1);
            operator.read_exact(&mut last[3..]).unwrap();
        }
        // Strangers come until the first one has lost its place. The kernel keeps few that were not accepted.
        let first = TcpStream::connect(secure.address).unwrap();
        first.set_nonblocking(true).unwrap();
        let mut others = Vec::new();
        while matches!((&first).read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock) {
            others.push(TcpStream::connect(secure.address).unwrap());
            thread::sleep(Duration::from_millis(1));
        }
        let mut rest = [0; 1];
        // The document of health is read as far as it is there.
        while rest != *b"}" {
            operator.read_exact(&mut rest).unwrap();
        }
    }
}

#[test]
fn wrong_tokens_are_logged() {
    let secure = Secure::open();
    let wrong = format!("Bearer {}", "x".repeat(32));
    for _ in 0..20 {
        let answer = secure.ask("GET", "/v1/status", &[("Authorization", &wrong)], "");
        assert_eq!(answer.status, 401);
    }
    // A client without any token has made no mistake: a browser does not know yet that it needs one.
    assert_eq!(secure.ask("GET", "/v1/status", &[], "").status, 401);
    let log = secure.run.log();
    let line = "127.0.0.1: GET /v1/status: refused: the token is none of the run's file";
    assert_eq!(log.first().map(String::as_str), Some(line));
    // One line for many, in ten seconds.
    assert!(log.len() < 5, "{log:?}");
}

#[test]
fn over_tcp_a_token_is_needed() {
    let secure = Secure::open();
    let right = format!("Bearer {ALICE}");
    let order = "{\"lines\": [\"queue change root fq_codel\"]}";
    let made = secure.ask("POST", "/v1/changes", &[("Authorization", &right)], order);
    assert_eq!(made.status, 200, "{made:?}");
    let log = secure.run.log();
    let entry = "token alice: change: queue change root fq_codel: made, revision 1;";
    assert!(log.len() == 1 && log[0].starts_with(entry), "{log:?}");
    let (almost, twice) = (
        format!("Bearer {}0", &ALICE[..31]),
        format!("Bearer {ALICE} {ALICE}"),
    );
    let basic = format!("Basic {ALICE}");
    let wrong: [&[(&str, &str)]; 7] = [
        &[],
        &[("Authorization", "Bearer")],
        &[("Authorization", "Bearer ")],
        &[("Authorization", &almost)],
        &[("Authorization", &twice)],
        &[("Authorization", &basic)],
        &[("Authorization", &right), ("Authorization", &right)],
    ];
    for fields in wrong {
        for target in ["/v1/changes", "/v1/nothing", "/v1/openapi.json"] {
            let answer = secure.ask("POST", target, fields, order);
            assert_eq!(
                (answer.status, answer.problem()),
                (401, "unauthorized".to_owned()),
                "{fields:?}"
            );
            assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"));
        }
    }
    // The change, and a line about the wrong tokens.
    assert_eq!(secure.run.log().len(), 2);
    let foreign = [
        ("Authorization", right.as_str()),
        ("Origin", "https://evil.example"),
    ];
    assert_eq!(
        secure.ask("GET", "/v1/status", &foreign, "").problem(),
        "cross-site"
    );
}

#[test]
fn without_tls_nothing_is_answered() {
    let secure = Secure::open();
    let mut plain = TcpStream::connect(secure.address).unwrap();
    let request =
        format!("GET /v1/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ALICE}\r\n\r\n");
    plain.write_all(request.as_bytes()).unwrap();
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said);
    assert!(!said.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn what_is_not_safe_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    write_secrets(folder.path());
    let open = |endpoint: Endpoint| {
        Doors::open(&Endpoints {
            api: Some(endpoint),
            metrics: None,
        })
        .map(|_| ())
        .expect_err("it is refused")
    };
    let fine = secure_endpoint(folder.path());
    let lacking = [
        Endpoint {
            token: None,
            ..fine.clone()
        },
        Endpoint {
            certificate: None,
            ..fine.clone()
        },
        Endpoint {
            key: None,
            ..fine.clone()
        },
        Endpoint::at(Address::Tcp("127.0.0.1:0".parse().unwrap())),
    ];
    for endpoint in lacking {
        let error = open(endpoint);
        assert!(
            matches!(error, ControlError::Endpoint(_)) && error.is_bad_input(),
            "{error}"
        );
    }
    for (file, mode) in [("token", 0o644), ("key", 0o604)] {
        let path = folder.path().join(file);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let error = open(fine.clone());
        assert!(matches!(error, ControlError::Exposed { .. }), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let swapped = Endpoint {
        certificate: fine.key.clone(),
        ..fine.clone()
    };
    assert!(matches!(open(swapped), ControlError::Certificate { .. }));
    let nobody = Endpoint {
        group: Some("no such group".to_owned()),
        ..Endpoint::at(Address::Unix(folder.path().join("sock")))
    };
    assert!(matches!(open(nobody), ControlError::NoGroup(_)));
    assert!(!folder.path().join("sock").exists());
}

#[test]
fn metrics_are_served_on_the_loopback_interface() {
    let endpoints = Endpoints {
        api: None,
        metrics: Some(Endpoint::at(Address::Tcp("127.0.0.1:0".parse().unwrap()))),
    };
    let doors = Doors::open(&endpoints).unwrap();
    let address = address_of(&doors);
    let _control = doors
        .serve(Arc::new(Rehearsal::new("fifo").unwrap()), Audit::default(), None)
        .unwrap();
    let get = |target: &str| {
        let stream = TcpStream::connect(address).unwrap();
        ask(stream, "GET", target, &[], "")
    };
    let metrics = get("/metrics");
    assert!(metrics.body.ends_with("# EOF\n"), "{metrics:?}");
    assert_eq!(get("/v1/status").problem(), "not-found");
    // A name that resolves to this address could belong to another site.
    let mut stream = TcpStream::connect(address).unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    stream.write_all(request).unwrap();
    assert_eq!(answer(stream).unwrap().problem(), "misdirected");
}
