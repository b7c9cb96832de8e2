//! TLS: which servers are trusted, and how certificates are verified.
//!
//! rustls verifies certificates. This module decides which authorities count ([`Trust`]), makes the one exception
//! that people expect ([`verifier`]), and turns every refusal into a sentence with a cure ([`words`]).

mod verifier;
pub(crate) mod words;

use crate::LoadError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use verifier::{AnyCertificate, GivenOrSigned};

/// Which certificates are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those that an authority of this system has signed.
    #[default]
    System,
    /// Those in this PEM file, and those that one of them has signed.
    File(PathBuf),
    /// All: nothing is verified.
    AnyCertificate,
}

/// The TLS settings for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Which certificates are trusted.
    pub trust: Trust,
    /// The name that the certificate must be valid for, which is also sent to the server (SNI), or an address.
    pub name: String,
}

/// The protocols that are offered (ALPN), in order of preference.
pub(crate) type Offer = &'static [&'static [u8]];

impl Tls {
    /// Returns the name in rustls's type.
    ///
    /// # Errors
    /// If it is neither a name nor an address.
    pub(crate) fn server_name(&self) -> Result<ServerName<'static>, LoadError> {
        let name = self.name.trim_start_matches('[').trim_end_matches(']');
        ServerName::try_from(name.to_owned()).map_err(|_| LoadError::BadLoad {
            what: format!("'{}' is no name that a certificate could be for", self.name),
        })
    }

    /// # Errors
    /// If the file of authorities cannot be used.
    pub(crate) fn config(&self, offer: Offer) -> Result<ClientConfig, LoadError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| LoadError::BadLoad { what: error.to_string() })?;
        let builder = match &self.trust {
            Trust::System => builder.with_root_certificates(of_system()),
            Trust::File(path) => builder.dangerous().with_custom_certificate_verifier(Arc::new(
                GivenOrSigned::new(path, of_file(path)?, provider)?,
            )),
            Trust::AnyCertificate => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate::new(&provider)))
            }
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = offer.iter().map(|name| name.to_vec()).collect();
        Ok(config)
    }
}

/// Returns the system's authorities. If there are none, nothing is trusted, and the error about the certificate says so.
fn of_system() -> RootCertStore {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    store
}

fn of_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let unusable = |what: String| LoadError::BadAuthority { path: path.to_owned(), what };
    let pem = std::fs::read(path).map_err(|cause| LoadError::CannotRead { path: path.to_owned(), cause })?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(format!("it is not in PEM form ({error})")))?;
    match certificates.is_empty() {
        true => {
            Err(unusable("it holds no certificate in PEM form (`-----BEGIN CERTIFICATE-----`)".to_owned()))
        }
        false => Ok(certificates),
    }
}
