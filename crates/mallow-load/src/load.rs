//! What is asked of a server, and how.

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
    /// Headers beside `host`.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
    /// How often it is asked for, relative to the others.
    pub weight: u32,
}

impl Target {
    /// A GET without headers of its own.
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

/// In what order targets are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As they stand, over and over, each as often as its weight says; every connection begins at another one.
    #[default]
    Sequential,
    /// By chance, with this seed.
    Random(u64),
    /// As they stand, once.
    Once,
}

/// How requests travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2; without TLS without a negotiation (prior knowledge).
    Http2,
}

/// A load.
#[derive(Clone, Debug)]
pub struct Load {
    /// Where it goes.
    pub endpoint: Endpoint,
    /// What is asked; at least one, where there is no flow.
    pub targets: Vec<Target>,
    /// In what order.
    pub order: Order,
    /// What each connection asks for in the place of the targets, one request after the other; none for the targets.
    pub flow: Option<Flow>,
    /// How requests travel; none for what the server chooses: with TLS it is offered both (ALPN), without it is HTTP/1.1.
    pub protocol: Option<Protocol>,
    /// Requests under way at once; over HTTP/1.1 each has a connection of its own.
    pub connections: u32,
    /// Keep connections open between requests.
    pub keep_alive: bool,
    /// Requests a second over all connections on a fixed schedule; none for as many as the server answers.
    pub rate: Option<f64>,
    /// How long an answer may take before it counts as an error.
    pub timeout: Duration,
    /// Threads of the generator; none for one for each processor that we may use.
    pub threads: Option<u32>,
}

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Exactly so many requests.
    Requests(u64),
    /// As many as begin within this time.
    Duration(Duration),
}
