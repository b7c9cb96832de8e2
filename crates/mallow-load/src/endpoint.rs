//! A server as a client reaches it: its address, its name, and whether it uses TLS.

use crate::tls::Tls;
use std::fmt;
use std::net::SocketAddr;

/// The destination of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address on which it listens.
    pub address: SocketAddr,
    /// The `host` header: with the port, unless that is the scheme's default.
    pub host: String,
    /// How its certificate is verified; `None` for a server without TLS.
    pub tls: Option<Tls>,
}

impl Endpoint {
    /// Returns a server without TLS.
    pub fn plain(address: SocketAddr, host: &str) -> Endpoint {
        Endpoint { address, host: host.to_owned(), tls: None }
    }

    /// Returns `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

impl fmt::Display for Endpoint {
    /// Formats it as `https://localhost:8443`, to which a path can be appended.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.host)
    }
}
