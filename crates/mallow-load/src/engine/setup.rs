//! What all threads of a generator know.

use super::prepared::Prepared;
use crate::{Load, Protocol};
use std::net::SocketAddr;
use std::time::Duration;

/// What all threads know.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) address: SocketAddr,
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
    pub(crate) fn of(load: &Load, prepared: Prepared, threads: u32) -> Setup {
        Setup {
            address: load.address,
            prepared,
            protocol: load.protocol,
            keep_alive: load.keep_alive,
            timeout: load.timeout,
            connections: load.connections,
            threads,
            is_scheduled: load.rate.is_some(),
        }
    }
}
