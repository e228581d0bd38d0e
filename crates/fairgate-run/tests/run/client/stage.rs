//! A rehearsal with its status socket, or with its API at a unix socket or an address with TLS.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairgate_live::{Address, Endpoint, Endpoints};
use fairgate_run::client::{Access, ClientError, Remote};
use fairgate_run::rehearsal::Rehearsal;
use fairgate_run::{Doors, ServerHandle};
use rcgen::{CertificateParams, IsCa, KeyPair};
use tempfile::TempDir;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

pub(crate) struct Stage {
    pub(crate) run: Rehearsal,
    pub(crate) address: String,
    pub(crate) folder: TempDir,
    _control: ServerHandle,
}

impl Stage {
    pub(crate) fn status_socket(tree: &str) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.sock");
        let doors = Doors::open(&Endpoints::default()).unwrap();
        let doors = doors.with_status_socket(&path).unwrap();
        // The log of a run does not list it among what is offered.
        assert_eq!(doors.offered().count(), 0);
        Stage::serve(tree, folder, doors, path.display().to_string())
    }

    pub(crate) fn unix(tree: &str) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.sock");
        Stage::open(tree, folder, Endpoint::at(Address::Unix(path)))
    }

    pub(crate) fn tls(tree: &str) -> Stage {
        Stage::tls_with(tree, IsCa::NoCa)
    }

    /// Its certificate may sign others or not.
    pub(crate) fn tls_with(tree: &str, is_ca: IsCa) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let mut certificate = CertificateParams::new(["localhost".to_owned()]).unwrap();
        certificate.is_ca = is_ca;
        let certificate = certificate.self_signed(&key).unwrap();
        let file = |name: &str, text: String| secret(folder.path(), name, &text);
        let endpoint = Endpoint {
            certificate: Some(file("certificate", certificate.pem())),
            key: Some(file("key", key.serialize_pem())),
            token: Some(file("token", format!("alice {TOKEN}\n"))),
            ..Endpoint::at(Address::Tcp("127.0.0.1:0".parse().unwrap()))
        };
        Stage::open(tree, folder, endpoint)
    }

    fn open(tree: &str, folder: TempDir, endpoint: Endpoint) -> Stage {
        let endpoints = Endpoints {
            api: Some(endpoint),
            metrics: None,
        };
        let doors = Doors::open(&endpoints).unwrap();
        let sentence = doors.offered().next().unwrap();
        let address = sentence
            .strip_prefix("The API is at ")
            .unwrap()
            .trim_end_matches('.');
        // The certificate has this name.
        let address = address.replace("127.0.0.1", "localhost");
        Stage::serve(tree, folder, doors, address)
    }

    fn serve(tree: &str, folder: TempDir, doors: Doors, address: String) -> Stage {
        let run = Rehearsal::new(tree).unwrap();
        Stage {
            _control: doors.serve(Arc::new(run.clone()), run.audit(), None).unwrap(),
            run,
            address,
            folder,
        }
    }

    pub(crate) fn access(&self) -> Access {
        match self.address.starts_with("https:") {
            false => Access::default(),
            true => Access {
                token: Some(self.folder.path().join("token")),
                ca: Some(self.folder.path().join("certificate")),
            },
        }
    }

    pub(crate) fn remote(&self) -> Remote {
        self.remote_with(&self.access()).unwrap()
    }

    pub(crate) fn remote_with(&self, access: &Access) -> Result<Remote, ClientError> {
        match self.address.starts_with('/') {
            true => Ok(PathBuf::from(&self.address).into()),
            false => Remote::at(self.address.parse().unwrap(), access),
        }
    }
}

/// Writes a file that only this user may read.
pub(crate) fn secret(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path
}
