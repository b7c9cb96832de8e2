//! What all threads of a generator share.

use super::connector::Connector;
use super::prepared::Prepared;
use crate::{Load, LoadError, Protocol};
use std::time::Duration;

/// What all threads share.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) connector: Connector,
    pub(crate) prepared: Prepared,
    pub(crate) protocol: Protocol,
    pub(crate) keep_alive: bool,
    pub(crate) timeout: Duration,
    pub(crate) connections: u32,
    pub(crate) threads: u32,
    /// Whether requests have a rate.
    pub(crate) is_scheduled: bool,
}

impl Setup {
    /// # Errors
    /// If the load is invalid, or a certificate file cannot be used.
    pub(crate) fn of(load: &Load, protocol: Protocol, threads: u32) -> Result<Setup, LoadError> {
        Ok(Setup {
            connector: Connector::new(&load.endpoint, Some(protocol))?,
            prepared: Prepared::of(load, protocol)?,
            protocol,
            keep_alive: load.keep_alive,
            timeout: load.timeout,
            connections: load.connections,
            threads,
            is_scheduled: load.rate.is_some(),
        })
    }
}
