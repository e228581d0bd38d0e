//! Whom a client believes that it is the host.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::error::ClientError;

/// Returns what makes TLS connections to hosts whose certificates lead to one of this file, or to one that
/// the system trusts.
pub(crate) fn config(ca: Option<&Path>) -> Result<Arc<ClientConfig>, ClientError> {
    let provider = Arc::new(default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider speaks TLS 1.2 and 1.3");
    let mut config = match ca {
        None => config.with_root_certificates(of_system()?).with_no_client_auth(),
        Some(path) => {
            let known = read(path)?;
            let verifier = Verifier::new(path, known, provider)?;
            let config = config.dangerous();
            config
                .with_custom_certificate_verifier(Arc::new(verifier))
                .with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Believes certificates that lead to one of a file, and those that are in the file.
///
/// `openssl req -x509` makes certificates that may sign others. webpki takes no such certificate for that of
/// a host, whoever trusts it. If it is in the file, the user knows that very certificate: only its name is
/// checked then.
#[derive(Debug)]
struct Verifier {
    known: Vec<CertificateDer<'static>>,
    chains: Arc<WebPkiServerVerifier>,
}

impl Verifier {
    fn new(
        path: &Path,
        known: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Verifier, ClientError> {
        let wrong = |why: String| ClientError::Authority {
            path: path.to_path_buf(),
            why,
        };
        let mut roots = RootCertStore::empty();
        for certificate in &known {
            let added = roots.add(certificate.clone());
            added.map_err(|error| wrong(format!("a certificate in it can't be used: {error}")))?;
        }
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let chains = chains.build().map_err(|error| wrong(error.to_string()))?;
        Ok(Verifier { known, chains })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.known.iter().any(|known| known == end_entity) {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.chains
            .verify_server_cert(end_entity, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

/// Returns the certificates in a file.
fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let wrong = |why: String| ClientError::Authority {
        path: path.to_path_buf(),
        why,
    };
    let text = fs::read(path).map_err(|source| ClientError::Unreadable {
        path: path.to_path_buf(),
        source,
    })?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let read = read.map_err(|error| wrong(format!("it is not PEM: {error}")))?;
    match read.is_empty() {
        true => Err(wrong("it has no certificate".to_owned())),
        false => Ok(read.into_iter().map(CertificateDer::into_owned).collect()),
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
