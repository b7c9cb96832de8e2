//! What is sent to a server, and how.

use crate::{Endpoint, Flow};
use bytes::Bytes;
use hyper::{HeaderMap, Method};
use std::time::Duration;

/// One request.
#[derive(Clone, Debug)]
pub struct Target {
    /// The method.
    pub method: Method,
    /// Path and query, such as `/hello/you?a=1`.
    pub path: String,
    /// Headers in addition to `host`.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
    /// How often it is requested, relative to the others.
    pub weight: u32,
}

impl Target {
    /// Returns a GET without headers of its own.
    pub fn get(path: &str) -> Target {
        Target {
            method: Method::GET,
            path: path.to_owned(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            weight: 1,
        }
    }
}

/// The order in which targets are requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// In their order, repeatedly, each as often as its weight; every connection starts at a different one.
    #[default]
    Sequential,
    /// Random, with this seed.
    Random(u64),
    /// In their order, once.
    Once,
}

/// The protocol of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2; without TLS it is not negotiated (prior knowledge).
    Http2,
}

/// A load.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server.
    pub endpoint: Endpoint,
    /// The requests; at least one, unless there is a flow.
    pub targets: Vec<Target>,
    /// The order of the targets.
    pub order: Order,
    /// The flow that each connection executes instead of the targets, one request after the other.
    pub flow: Option<Flow>,
    /// The protocol; `None` for what the server chooses: with TLS both are offered (ALPN), without TLS it is HTTP/1.1.
    pub protocol: Option<Protocol>,
    /// Concurrent requests; over HTTP/1.1 each has a connection of its own.
    pub connections: u32,
    /// Keep connections open between requests.
    pub keep_alive: bool,
    /// Requests a second over all connections on a fixed schedule (open loop); `None` for as many as the server answers.
    pub rate: Option<f64>,
    /// How long a response may take before it counts as an error.
    pub timeout: Duration,
    /// Threads of the generator; `None` for one for each processor that we may use.
    pub threads: Option<u32>,
}

/// The length of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Exactly this number of requests.
    Requests(u64),
    /// As many as start within this time.
    Duration(Duration),
}
