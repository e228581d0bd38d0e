//! What is said if the API can't be used, or is none.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;

use fairgate_run::client::{Access, ClientError, Remote};
use rcgen::{BasicConstraints, IsCa};

use super::stage::{Stage, TOKEN, secret};

fn remote(address: &str) -> Remote {
    Remote::at(address.parse().unwrap(), &Access::default()).unwrap()
}

#[test]
fn without_its_token_nobody_is_answered() {
    let stage = Stage::tls("fifo");
    let folder = stage.folder.path();
    let with = |token: Option<&str>| {
        let access = Access {
            token: token.map(|text| secret(folder, "mine", text)),
            ..stage.access()
        };
        stage.remote_with(&access).unwrap().status(true)
    };
    assert!(with(Some(TOKEN)).is_ok());
    for token in [None, Some("fedcba9876543210fedcba9876543210")] {
        let error = with(token).unwrap_err();
        assert!(error.to_string().contains("token"), "{error}");
        assert!(!error.is_bad_input());
    }
}

/// The token is sent to nobody whose certificate is not trusted.
#[test]
fn a_stranger_is_not_trusted() {
    let (stage, other) = (Stage::tls("fifo"), Stage::tls("fifo"));
    let access = Access {
        ca: other.access().ca,
        ..stage.access()
    };
    let error = stage.remote_with(&access).unwrap().status(true).unwrap_err();
    assert!(matches!(error, ClientError::Insecure(_)), "{error:?}");
    // The certificate is for another name.
    let address = stage.address.replace("localhost", "127.0.0.1");
    let named = Remote::at(address.parse().unwrap(), &stage.access()).unwrap();
    let error = named.status(true).unwrap_err();
    assert!(matches!(error, ClientError::Insecure(_)), "{error:?}");
    // No TLS at all.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let answering = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut heard = [0; 1024];
        let length = client.read(&mut heard).unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        heard[..length].to_vec()
    });
    let plain = Remote::at(address.parse().unwrap(), &stage.access()).unwrap();
    assert!(matches!(plain.status(true), Err(ClientError::Insecure(_))));
    let heard = answering.join().unwrap();
    assert!(!String::from_utf8_lossy(&heard).contains(TOKEN));
}

/// `openssl req -x509` makes such certificates.
#[test]
fn a_certificate_that_may_sign_others_is_known_by_itself() {
    let authority = || IsCa::Ca(BasicConstraints::Unconstrained);
    let stage = Stage::tls_with("fifo", authority());
    assert!(stage.remote().status(true).is_ok());
    // Neither for another name, nor if another one is known.
    let address = stage.address.replace("localhost", "127.0.0.1");
    let named = Remote::at(address.parse().unwrap(), &stage.access()).unwrap();
    let other = Stage::tls_with("fifo", authority());
    let access = Access {
        ca: other.access().ca,
        ..stage.access()
    };
    for remote in [named, stage.remote_with(&access).unwrap()] {
        let error = remote.status(true).unwrap_err();
        assert!(matches!(error, ClientError::Insecure(_)), "{error:?}");
    }
}

#[test]
fn files_without_certificates_are_refused() {
    let stage = Stage::tls("fifo");
    for (text, why) in [
        ("", "has no certificate"),
        ("-----BEGIN CERTIFICATE-----\n!\n", "PEM"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "can't be used",
        ),
    ] {
        let access = Access {
            ca: Some(secret(stage.folder.path(), "ca", text)),
            ..stage.access()
        };
        let error = stage.remote_with(&access).unwrap_err();
        assert!(error.to_string().contains(why), "{text}: {error}");
    }
    let access = Access {
        ca: Some(stage.folder.path().join("missing")),
        ..stage.access()
    };
    let error = stage.remote_with(&access).unwrap_err();
    assert!(matches!(error, ClientError::Unreadable { .. }), "{error:?}");
}

#[test]
fn where_nobody_listens_nobody_is_reached() {
    let folder = tempfile::tempdir().unwrap();
    let missing = format!("unix:{}", folder.path().join("api.sock").display());
    assert!(matches!(
        remote(&missing).status(true),
        Err(ClientError::Unreachable(_))
    ));
    let status = |path: PathBuf| Remote::from(path).status(true).unwrap_err();
    let error = status(folder.path().join("run.sock"));
    assert!(matches!(error, ClientError::Socket(_)), "{error:?}");
    assert_eq!(error.to_string(), "No such file or directory (os error 2)");
    let error = status(PathBuf::from(format!("/tmp/{}", "x".repeat(120))));
    assert_eq!(
        error.to_string(),
        "the path of the socket has 125 bytes, but may have at most 107 bytes"
    );
}

/// Answers of a server that is no run, or that breaks in the middle.
#[test]
fn rubbish_is_told_from_an_answer() {
    type Check = fn(&ClientError) -> bool;
    let unexpected: Check = |error| matches!(error, ClientError::Unexpected(_));
    let cut: Check = |error| matches!(error, ClientError::Cut(_));
    let cases: [(&str, Check); 8] = [
        ("", cut),
        ("rubbish\r\n\r\n", cut),
        ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", cut),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n",
            cut,
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", unexpected),
        ("HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno", unexpected),
        (
            "HTTP/1.1 302 Go\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
            unexpected,
        ),
        (
            "HTTP/1.1 422 No\r\nContent-Type: application/problem+json\r\nContent-Length: 2\r\n\r\n[]",
            unexpected,
        ),
    ];
    for (answer, is_right) in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let answering = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut heard = [0; 4096];
            let length = client.read(&mut heard).unwrap();
            assert!(heard[..length].starts_with(b"GET /v1/status?used=true HTTP/1.1\r\n"));
            client.write_all(answer.as_bytes()).unwrap();
        });
        let error = remote(&format!("unix:{}", path.display()))
            .status(true)
            .unwrap_err();
        assert!(is_right(&error), "{answer:?}: {error:?}");
        answering.join().unwrap();
    }
}
