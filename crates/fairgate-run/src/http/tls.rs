//! TLS with a certificate from a file.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::http::error::ControlError;
use crate::http::tokens::secret;

/// Returns what accepts TLS connections with this certificate and its private key.
pub(crate) fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, ControlError> {
    let wrong = |path: &Path, message: String| ControlError::Certificate {
        path: path.to_path_buf(),
        message,
    };
    let text = fs::read(certificate).map_err(|source| ControlError::Unreadable {
        path: certificate.to_path_buf(),
        source,
    })?;
    let chain: Result<Vec<CertificateDer<'_>>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| wrong(certificate, format!("it is not PEM: {error}")))?;
    if chain.is_empty() {
        return Err(wrong(certificate, "it has no certificate".to_owned()));
    }
    let chain: Vec<CertificateDer<'static>> = chain.into_iter().map(CertificateDer::into_owned).collect();
    // A group of its own may read a key, as Debian's `ssl-cert` does.
    let private = secret(key, 0o007)?;
    let private = PrivateKeyDer::from_pem_slice(&private)
        .map_err(|error| wrong(key, format!("it has no private key: {error}")))?;
    let unfit = |error: rustls::Error| wrong(certificate, format!("TLS can't use it with the key: {error}"));
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unfit)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(unfit)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
