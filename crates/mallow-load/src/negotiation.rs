//! Finds out which protocol a server uses: a handshake negotiates it before the first request.

use crate::engine::connector::{Connector, OpenError};
use crate::engine::http1::GOODBYE_MAX;
use crate::engine::worker_thread;
use crate::{Endpoint, LoadError, Protocol};
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// Returns the protocol that a server uses. With TLS it is negotiated by a handshake and nothing more; `wanted`, if
/// given, is all that is offered.
///
/// # Errors
/// If the server does not respond in time, its certificate is not valid, or it does not support `wanted`.
pub(crate) fn negotiate(
    endpoint: &Endpoint,
    wanted: Option<Protocol>,
    timeout: Duration,
) -> Result<Protocol, LoadError> {
    if endpoint.tls.is_none() {
        return Ok(wanted.unwrap_or(Protocol::Http1));
    }
    let connector = Connector::new(endpoint, wanted)?;
    let runtime = worker_thread::runtime()
        .map_err(|cause| LoadError::System { what: "wait for its connections", cause })?;
    let handshake = async {
        let mut opened = connector.open().await?;
        let chosen = opened.chosen.unwrap_or(Protocol::Http1);
        // Shut down in both directions: unread data would reset the connection.
        let goodbye = async {
            opened.stream.shutdown().await?;
            tokio::io::copy(&mut opened.stream, &mut tokio::io::sink()).await
        };
        let _ = tokio::time::timeout(GOODBYE_MAX, goodbye).await;
        Ok(chosen)
    };
    let chosen = runtime.block_on(async { tokio::time::timeout(timeout, handshake).await });
    let chosen = chosen.map_err(|_| LoadError::NoAnswer {
        endpoint: endpoint.to_string(),
        what: format!("no handshake in {timeout:?}"),
    })?;
    let chosen = chosen.map_err(|error: OpenError| error.load_error(endpoint))?;
    match wanted {
        Some(Protocol::Http2) if chosen != Protocol::Http2 => Err(LoadError::NoTls {
            endpoint: endpoint.to_string(),
            what: "the server speaks no HTTP/2 over it (ALPN); leave out --http2".to_owned(),
        }),
        _ => Ok(chosen),
    }
}
