//! Single checks of a server apart from a load: whether the endpoint is valid, and whether the server responds.

use crate::engine::connector::Connector;
use crate::{Amount, Endpoint, Generator, Load, LoadError, Order, Protocol, Target};
use std::time::Duration;

/// Checks an endpoint before there is a server.
///
/// # Errors
/// If the certificate file or the name cannot be used.
pub fn check_endpoint(endpoint: &Endpoint) -> Result<(), LoadError> {
    Connector::new(endpoint, None).map(drop)
}

/// Returns the status of a GET, over a connection of its own.
///
/// # Errors
/// If there is no response.
pub fn status_of(
    endpoint: &Endpoint,
    protocol: Option<Protocol>,
    path: &str,
    timeout: Duration,
) -> Result<u16, LoadError> {
    let mut generator = Generator::start(Load {
        flow: None,
        endpoint: endpoint.clone(),
        targets: vec![Target::get(path)],
        order: Order::Once,
        protocol,
        connections: 1,
        keep_alive: false,
        rate: None,
        timeout,
        threads: Some(1),
    })?;
    let metrics = generator.run(Amount::Requests(1), None);
    let why = || metrics.failures.keys().next().cloned().unwrap_or_default();
    let status = metrics.statuses.keys().next().copied();
    status.ok_or_else(|| LoadError::NoAnswer { endpoint: endpoint.to_string(), what: why() })
}
