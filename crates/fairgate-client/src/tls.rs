//! Whom a client believes that it is the host.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::error::ClientError;

/// Returns what makes TLS connections to hosts whose certificates lead to one of this file, or to one that
/// the system trusts.
pub(crate) fn config(ca: Option<&Path>) -> Result<Arc<ClientConfig>, ClientError> {
    let roots = match ca {
        Some(path) => read(path)?,
        None => of_system()?,
    };
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider speaks TLS 1.2 and 1.3");
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read(path: &Path) -> Result<RootCertStore, ClientError> {
    let wrong = |why: String| ClientError::Authority {
        path: path.to_path_buf(),
        why,
    };
    let text = fs::read(path).map_err(|source| ClientError::Unreadable {
        path: path.to_path_buf(),
        source,
    })?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| wrong(format!("it is not PEM: {error}")))?;
        let added = roots.add(certificate);
        added.map_err(|error| wrong(format!("a certificate in it can't be used: {error}")))?;
    }
    match roots.is_empty() {
        true => Err(wrong("it has no certificate".to_owned())),
        false => Ok(roots),
    }
}

/// Certificates of the system that can't be used are left out: it has hundreds.
fn of_system() -> Result<RootCertStore, ClientError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match roots.is_empty() {
        true => Err(ClientError::NoAuthorities),
        false => Ok(roots),
    }
}
