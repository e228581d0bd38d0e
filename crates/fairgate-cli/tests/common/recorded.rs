//! A server of others, with TLS, that answers as it is told to. It is asked one question per connection.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use tempfile::TempDir;

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) target: String,
    /// The lines of the head, after the first one.
    pub(crate) head: Vec<String>,
}

impl Asked {
    /// Returns the value of a header field.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// Returns a number behind the question mark.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        let (_, query) = self.target.split_once('?')?;
        query
            .split('&')
            .find_map(|part| part.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    }

    /// Returns the name of the recording that answers this, and the folder.
    fn recording(&self) -> Option<(&'static str, &'static str)> {
        let path = self.target.split('?').next()?;
        Some(match path.strip_prefix("/nms/api/v2.1/") {
            Some("sites") => ("uisp", "sites"),
            Some("devices") => ("uisp", "devices"),
            Some("data-links") => ("uisp", "links"),
            Some(_) => return None,
            None => match path.strip_prefix("/api/2.0/admin/")? {
                "tariffs/internet" => ("splynx", "tariffs"),
                "customers/customer" => ("splynx", "customers"),
                "customers/customer/0/internet-services" => ("splynx", "services"),
                "customers/customers-online" => ("splynx", "sessions"),
                "networking/monitoring" => ("splynx", "devices"),
                "networking/network-sites" => ("splynx", "sites"),
                "networking/routers" => ("splynx", "routers"),
                "networking/routers-sectors" => ("splynx", "sectors"),
                _ => return None,
            },
        })
    }

    /// Returns the rows that were recorded for this.
    pub(crate) fn rows(&self) -> Vec<Value> {
        let (folder, name) = self.recording().unwrap_or_else(|| panic!("{self:?}"));
        let path = format!("../fairgate-run/tests/recorded/{folder}/{name}.json");
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
        let text = std::fs::read_to_string(&path).expect("a recording");
        serde_json::from_str(&text).expect("a list")
    }
}

/// What is written to the connection, and whether it ends as it should.
pub(crate) struct Sent {
    bytes: Vec<u8>,
    is_whole: bool,
}

/// Answers with these rows.
pub(crate) fn rows(rows: &[Value]) -> Sent {
    let body = serde_json::to_string(rows).expect("rows");
    whole("200 OK", "Content-Type: application/json\r\n", &body)
}

/// Answers with this status, these lines of the head and this body.
pub(crate) fn whole(status: &str, head: &str, body: &str) -> Sent {
    let length = body.len();
    Sent {
        bytes: format!("HTTP/1.1 {status}\r\n{head}Content-Length: {length}\r\n\r\n{body}").into_bytes(),
        is_whole: true,
    }
}

/// Ends the connection in the middle of an answer, with or without saying how long it is.
pub(crate) fn cut(body: &str, says_length: bool) -> Sent {
    let length = match says_length {
        true => format!("Content-Length: {}\r\n", body.len() + 100),
        false => String::new(),
    };
    Sent {
        bytes: format!("HTTP/1.1 200 OK\r\n{length}\r\n{body}").into_bytes(),
        is_whole: !says_length,
    }
}

/// The server. It ends with this value.
pub(crate) struct Server {
    pub(crate) address: String,
    port: u16,
    /// The certificate.
    pub(crate) ca: PathBuf,
    asked: Arc<Mutex<Vec<Asked>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _folder: TempDir,
}

impl Server {
    /// Starts it on this machine. `answer` answers each question, by the number of questions before.
    pub(crate) fn start(answer: impl Fn(&Asked, usize) -> Sent + Send + 'static) -> Server {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let ca = folder.path().join("ca.pem");
        std::fs::write(&ca, made.cert.pem()).expect("the folder is writable");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a certificate with its key");
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (asked, is_over) = (
            Arc::<Mutex<Vec<Asked>>>::default(),
            Arc::new(AtomicBool::new(false)),
        );
        let (log, over) = (Arc::clone(&asked), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                // A client that trusts nobody ends the connection.
                let _ = serve(stream, &config, &log, &answer);
            }
        });
        Server {
            address: format!("https://localhost:{port}"),
            port,
            ca,
            asked,
            is_over,
            thread: Some(thread),
            _folder: folder,
        }
    }

    /// Starts one that answers with the recordings.
    pub(crate) fn recorded() -> Server {
        Server::start(|asked, _| rows(&asked.rows()))
    }

    /// Returns what was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("nobody panics with it").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server does not panic");
        }
    }
}

fn serve(
    stream: TcpStream,
    config: &Arc<ServerConfig>,
    log: &Mutex<Vec<Asked>>,
    answer: &impl Fn(&Asked, usize) -> Sent,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let connection = ServerConnection::new(Arc::clone(config)).expect("a valid configuration");
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let Some(first) = lines.first() else {
        return Ok(());
    };
    let target = first
        .strip_prefix("GET ")
        .and_then(|rest| rest.strip_suffix(" HTTP/1.1"));
    let asked = Asked {
        target: target.unwrap_or_else(|| panic!("{first}")).to_owned(),
        head: lines[1..].to_vec(),
    };
    let before = {
        let mut log = log.lock().expect("nobody panics with it");
        log.push(asked.clone());
        log.len() - 1
    };
    let sent = answer(&asked, before);
    let stream = stream.get_mut();
    stream.write_all(&sent.bytes)?;
    if sent.is_whole {
        stream.conn.send_close_notify();
    }
    stream.flush()
}
