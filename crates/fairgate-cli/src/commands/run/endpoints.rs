//! Where `fairgate run` offers its API and its metrics.

use std::path::PathBuf;

use fairgate_live::{Address, Endpoint, EndpointError, Endpoints, Offer};

/// Options that replace the keys of the same names in `[run]`.
#[derive(clap::Args)]
#[command(next_help_heading = "API and metrics")]
pub(crate) struct EndpointArgs {
    /// Control the run over HTTP at a unix socket (unix:PATH), or at an address with TLS and tokens
    #[arg(long, value_name = "ADDRESS")]
    api: Option<Address>,

    /// A group that may use the unix socket, besides root and this user
    #[arg(long, value_name = "GROUP", requires = "api")]
    api_group: Option<String>,

    /// The file with the tokens: a name and a token in each line, mode 0600
    #[arg(long, value_name = "FILE", requires = "api")]
    api_token: Option<PathBuf>,

    /// The same for those who may only read
    #[arg(long, value_name = "FILE", requires = "api")]
    api_read_token: Option<PathBuf>,

    /// The certificate, and those that lead to its authority (PEM)
    #[arg(long, value_name = "FILE", requires = "api")]
    api_certificate: Option<PathBuf>,

    /// The private key of the certificate (PEM), mode 0600
    #[arg(long, value_name = "FILE", requires = "api")]
    api_key: Option<PathBuf>,

    /// Let Prometheus read the counters at this address, as 127.0.0.1:9095
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<Address>,

    /// The same for metrics
    #[arg(long, value_name = "FILE", requires = "metrics")]
    metrics_token: Option<PathBuf>,

    /// The same for metrics
    #[arg(long, value_name = "FILE", requires = "metrics")]
    metrics_certificate: Option<PathBuf>,

    /// The same for metrics
    #[arg(long, value_name = "FILE", requires = "metrics")]
    metrics_key: Option<PathBuf>,
}

impl EndpointArgs {
    /// Returns whether an option is given. A dry run has none.
    pub(super) fn is_given(&self) -> bool {
        self.api.is_some() || self.metrics.is_some()
    }

    /// Replaces the endpoints of a file by those that are given.
    pub(super) fn apply(&self, endpoints: &mut Endpoints) -> Result<(), EndpointError> {
        if let Some(address) = &self.api {
            let endpoint = Endpoint {
                address: address.clone(),
                group: self.api_group.clone(),
                token: self.api_token.clone(),
                read_token: self.api_read_token.clone(),
                certificate: self.api_certificate.clone(),
                key: self.api_key.clone(),
            };
            endpoint.check(Offer::Api)?;
            endpoints.api = Some(endpoint);
        }
        if let Some(address) = &self.metrics {
            let endpoint = Endpoint {
                address: address.clone(),
                group: None,
                token: self.metrics_token.clone(),
                read_token: None,
                certificate: self.metrics_certificate.clone(),
                key: self.metrics_key.clone(),
            };
            endpoint.check(Offer::Metrics)?;
            endpoints.metrics = Some(endpoint);
        }
        Ok(())
    }
}
