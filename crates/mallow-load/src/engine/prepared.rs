//! Requests that are built once and cloned for every sending.
//!
//! A clone shares the body, the path and the header values. It allocates only the map of headers, which hyper reuses
//! for the headers of the response.

use super::sequence::Sequence;
use crate::{Flow, Load, LoadError, Protocol};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONNECTION, HOST, HeaderValue};
use hyper::{HeaderMap, Method, Request, Uri};

/// The body type of a request.
pub(crate) type Body = Full<Bytes>;

/// The request of every target, and their order.
#[derive(Debug)]
pub(crate) struct Prepared {
    requests: Vec<Template>,
    pub(crate) sequence: Sequence,
    /// Used instead of the requests.
    pub(crate) flow: Option<PreparedFlow>,
}

/// A flow, and the headers that all of its requests have.
#[derive(Debug)]
pub(crate) struct PreparedFlow {
    pub(crate) flow: Flow,
    /// The host, and the headers of the flags.
    pub(crate) headers: HeaderMap,
    pub(crate) protocol: Protocol,
    pub(crate) scheme: &'static str,
    pub(crate) host: String,
}

/// One request.
#[derive(Debug)]
pub(crate) struct Template {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl Prepared {
    /// # Errors
    /// If there is nothing to request, or something that cannot be sent.
    pub(crate) fn of(load: &Load, protocol: Protocol) -> Result<Prepared, LoadError> {
        let bad = |what: &str| LoadError::BadLoad { what: what.to_owned() };
        if load.targets.is_empty() && load.flow.is_none() {
            return Err(bad("there is nothing to ask for"));
        }
        if load.connections == 0 {
            return Err(bad("it needs at least one connection"));
        }
        if load.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            return Err(bad("a rate is a number of requests a second above 0"));
        }
        let requests = load
            .targets
            .iter()
            .map(|target| Template::of(load, protocol, target))
            .collect::<Result<_, _>>()?;
        let flow = load.flow.as_ref().map(|flow| {
            let headers = headers(load, protocol, &flow.headers)?;
            let (scheme, host) = (load.endpoint.scheme(), load.endpoint.host.clone());
            Ok(PreparedFlow { flow: flow.clone(), headers, protocol, scheme, host })
        });
        Ok(Prepared { requests, sequence: Sequence::new(load.order, &load.targets), flow: flow.transpose()? })
    }

    /// Returns the number of requests, if each target is requested once.
    pub(crate) fn requests_max(&self) -> Option<u64> {
        self.sequence.requests_max()
    }

    /// Returns the template of the target `index`.
    pub(crate) fn template(&self, index: usize) -> &Template {
        &self.requests[index]
    }
}

impl Template {
    fn of(load: &Load, protocol: Protocol, target: &crate::Target) -> Result<Template, LoadError> {
        let bad_url = |what: &str| LoadError::BadUrl { url: target.path.clone(), what: what.to_owned() };
        if !target.path.starts_with('/') {
            return Err(bad_url("a path begins with a slash"));
        }
        let builder = Uri::builder().path_and_query(target.path.as_str());
        let uri = match protocol {
            Protocol::Http1 => builder.build(),
            Protocol::Http2 => {
                builder.scheme(load.endpoint.scheme()).authority(load.endpoint.host.as_str()).build()
            }
        };
        let uri = uri.map_err(|error| bad_url(&error.to_string()))?;
        let headers = headers(load, protocol, &target.headers)?;
        Ok(Template { method: target.method.clone(), uri, headers, body: target.body.clone() })
    }

    /// Returns a template that is sent once.
    pub(crate) fn new(method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Template {
        Template { method, uri, headers, body }
    }

    /// Returns a request to send.
    pub(crate) fn request(&self) -> Request<Body> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// Returns whether sending it twice has the same effect as sending it once (RFC 9110, section 9.2.2).
    pub(crate) fn is_idempotent(&self) -> bool {
        self.method.is_idempotent()
    }
}

/// Merges a request's own headers with those that every request has.
fn headers(load: &Load, protocol: Protocol, own: &HeaderMap) -> Result<HeaderMap, LoadError> {
    let mut headers = own.clone();
    if protocol == Protocol::Http1 {
        if !headers.contains_key(HOST) {
            let host = HeaderValue::from_str(&load.endpoint.host)
                .map_err(|_| LoadError::BadLoad { what: format!("'{}' is no host", load.endpoint.host) })?;
            headers.insert(HOST, host);
        }
        if !load.keep_alive {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
    Ok(headers)
}

impl PreparedFlow {
    /// Returns the URI of a path, or `None` if it is not a valid path.
    pub(crate) fn uri(&self, path: &str) -> Option<Uri> {
        let builder = Uri::builder().path_and_query(path);
        match self.protocol {
            Protocol::Http1 => builder.build().ok(),
            Protocol::Http2 => builder.scheme(self.scheme).authority(self.host.as_str()).build().ok(),
        }
    }
}
