//! A server as somebody reaches it: where it listens, by what name, and whether TLS lies between.

use crate::tls::Tls;
use std::fmt;
use std::net::SocketAddr;

/// Where load goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Where it listens.
    pub address: SocketAddr,
    /// The `host` header: with the port, unless that goes without saying.
    pub host: String,
    /// How its certificate is judged; none for a server without TLS.
    pub tls: Option<Tls>,
}

impl Endpoint {
    /// A server without TLS.
    pub fn plain(address: SocketAddr, host: &str) -> Endpoint {
        Endpoint { address, host: host.to_owned(), tls: None }
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

impl fmt::Display for Endpoint {
    /// `https://localhost:8443`, to which a path can be added.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.host)
    }
}
