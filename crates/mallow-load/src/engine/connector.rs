//! Connections to one server, with TLS or without.

use super::prompt::{AckState, Prompt};
use crate::tls::{Offer, words};
use crate::{Endpoint, LoadError, Protocol};
use rustls::pki_types::ServerName;
use std::fmt::{self, Debug};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A stream of bytes in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Debug + Unpin {}

impl<T: AsyncRead + AsyncWrite + Debug + Unpin> Stream for T {}

/// A stream with TLS or without.
pub(crate) type AnyStream = Box<dyn Stream>;

/// Opens connections.
pub(crate) struct Connector {
    address: SocketAddr,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// Why a connection could not be opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// The TCP connection failed.
    Connecting(io::Error),
    /// The TCP connection was established, and the TLS handshake failed.
    Handshake(io::Error),
}

/// An open connection.
pub(crate) struct Opened {
    pub(crate) stream: AnyStream,
    /// Requests acknowledgements of what was read.
    pub(crate) ack_state: Arc<AckState>,
    /// The protocol that the server chose in the handshake; without TLS nothing is negotiated.
    pub(crate) chosen: Option<Protocol>,
}

const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";

impl Connector {
    /// Returns a connector that offers this protocol, or both.
    ///
    /// # Errors
    /// If the certificate file or the name cannot be used.
    pub(crate) fn new(endpoint: &Endpoint, protocol: Option<Protocol>) -> Result<Connector, LoadError> {
        let offer: Offer = match protocol {
            Some(Protocol::Http1) => &[HTTP1],
            Some(Protocol::Http2) => &[HTTP2],
            None => &[HTTP2, HTTP1],
        };
        let tls = match &endpoint.tls {
            Some(tls) => Some((TlsConnector::from(Arc::new(tls.config(offer)?)), tls.server_name()?)),
            None => None,
        };
        Ok(Connector { address: endpoint.address, tls })
    }

    /// Opens a connection with Nagle's algorithm turned off, which would delay the second part of a request.
    pub(crate) async fn open(&self) -> Result<Opened, OpenError> {
        let stream = TcpStream::connect(self.address).await.map_err(OpenError::Connecting)?;
        stream.set_nodelay(true).map_err(OpenError::Connecting)?;
        let (stream, ack_state) = Prompt::new(stream);
        let Some((connector, name)) = &self.tls else {
            return Ok(Opened { stream: Box::new(stream), ack_state, chosen: None });
        };
        let stream = connector.connect(name.clone(), stream).await.map_err(OpenError::Handshake)?;
        let chosen = match stream.get_ref().1.alpn_protocol() {
            Some(HTTP2) => Protocol::Http2,
            _ => Protocol::Http1,
        };
        Ok(Opened { stream: Box::new(stream), ack_state, chosen: Some(chosen) })
    }
}

impl Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("address", &self.address).finish_non_exhaustive()
    }
}

impl OpenError {
    /// Converts it into an error message, for a caller that needs this one connection.
    pub(crate) fn load_error(&self, endpoint: &Endpoint) -> LoadError {
        let name = endpoint.to_string();
        match (self, &endpoint.tls) {
            (OpenError::Handshake(error), Some(tls)) => {
                LoadError::NoTls { endpoint: name, what: words::why(error, tls) }
            }
            (OpenError::Handshake(error) | OpenError::Connecting(error), _) => {
                LoadError::NoAnswer { endpoint: name, what: error.to_string() }
            }
        }
    }
}
