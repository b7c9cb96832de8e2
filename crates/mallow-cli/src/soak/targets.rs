//! The requests: one URL with the method, headers and body of the flags, a list of them, or an access log.

use crate::args::{LowHttp, LowSoak};
use bytes::Bytes;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use mallow_load::{
    Endpoint, Flow, Order, Protocol, Target, Trust, Url, read_access_log, read_flow, read_urls,
};
use mallow_query::{Failure, reason};
use mallow_soak::{Ready, Work};
use std::io::Read;

/// Targets, and their server.
pub(crate) struct Asked {
    pub(crate) url: Url,
    pub(crate) targets: Vec<Target>,
    /// Used instead of the targets.
    pub(crate) flow: Option<Flow>,
    pub(crate) notes: Vec<String>,
}

/// Returns the requests. `base` is the URL that was given; `default` is asked for one where no file names a server.
pub(crate) fn asked(
    low: &LowSoak,
    base: Option<Url>,
    default: &dyn Fn() -> Result<Url, Failure>,
) -> Result<Asked, Failure> {
    let remote = low.request.allow_remote;
    let list = match (&low.load.urls, &low.load.access_log) {
        (Some(path), _) => Some(read_urls(path, base.as_ref(), remote)?),
        (None, Some(path)) => Some(read_access_log(path, low.request.all_methods)?),
        (None, None) => None,
    };
    if let Some(path) = &low.load.flow {
        let url = base.map_or_else(default, Ok)?;
        if url.path != "/" {
            return Err(Failure::new(format!(
                "--flow has the paths that are asked for, so --url names the server alone, without {}.",
                url.path
            )));
        }
        let flow = read_flow(path)?.with_headers(headers(low)?);
        return Ok(Asked { url, targets: Vec::new(), flow: Some(flow), notes: Vec::new() });
    }
    let Some(list) = list else {
        let url = base.map_or_else(default, Ok)?;
        let targets = vec![single(low, &url)?];
        return Ok(Asked { url, targets, flow: None, notes: Vec::new() });
    };
    let url = base.or(list.base).map_or_else(default, Ok)?;
    let extra = headers(low)?;
    let mut targets = list.targets;
    for target in &mut targets {
        for (name, value) in &extra {
            target.headers.append(name, value.clone());
        }
    }
    Ok(Asked { url, targets, flow: None, notes: list.notes })
}

/// Returns the order of the flags. The order of an access log means nothing over several connections.
pub(crate) fn order(low: &LowSoak) -> Order {
    low.request.random.map_or(Order::Sequential, Order::Random)
}

pub(crate) fn protocol(low: &LowSoak) -> Option<Protocol> {
    match (low.request.http2, low.request.http1) {
        (true, _) => Some(Protocol::Http2),
        (_, true) => Some(Protocol::Http1),
        _ => None,
    }
}

/// Returns the server of a URL, and which certificates are trusted.
pub(crate) fn endpoint(low: &LowHttp, url: &Url) -> Endpoint {
    let trust = match &low.cacert {
        Some(path) => Trust::File(path.clone()),
        None if low.insecure => Trust::AnyCertificate,
        None => Trust::System,
    };
    url.endpoint(trust, low.sni.clone())
}

/// Refuses flags about TLS if no connection uses it.
pub(crate) fn check_tls(low: &LowHttp, work: &Work, ready: &Ready) -> Result<(), Failure> {
    let is_spoken = matches!(work, Work::Http(load) if load.endpoint.tls.is_some())
        || matches!(ready, Ready::Answers(endpoint, _) if endpoint.tls.is_some());
    let flags =
        [("--cacert", low.cacert.is_some()), ("--insecure", low.insecure), ("--sni", low.sni.is_some())];
    match flags.iter().find(|(_, is_given)| *is_given && !is_spoken) {
        Some((flag, _)) => {
            Err(Failure::new(format!("{flag} is for a server with TLS; write --url https://….",)))
        }
        None => Ok(()),
    }
}

/// Returns one request with the settings of the flags.
fn single(low: &LowSoak, url: &Url) -> Result<Target, Failure> {
    let body = match (&low.request.body, &low.request.body_file) {
        (Some(text), _) => Some(Bytes::from(text.clone())),
        (None, Some(path)) => {
            let mut bytes = Vec::new();
            let read = mallow_files::open_input(path).and_then(|mut file| file.read_to_end(&mut bytes));
            read.map_err(|error| {
                Failure::new(format!("cannot read {}: {}.", path.display(), reason(&error)))
            })?;
            Some(Bytes::from(bytes))
        }
        (None, None) => None,
    };
    let method = match (&low.request.method, &body) {
        (Some(name), _) => Method::from_bytes(name.to_uppercase().as_bytes())
            .map_err(|_| Failure::new(format!("`{name}` is not a method of HTTP.")))?,
        (None, Some(_)) => Method::POST,
        (None, None) => Method::GET,
    };
    Ok(Target {
        method,
        path: url.path.clone(),
        headers: headers(low)?,
        body: body.unwrap_or_default(),
        weight: 1,
    })
}

fn headers(low: &LowSoak) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for line in &low.request.header {
        let bad = || Failure::new(format!("`{line}` is not a header; write -H 'name: value'."));
        let (name, value) = line.split_once(':').ok_or_else(bad)?;
        let name: HeaderName = name.trim().parse().map_err(|_| bad())?;
        let value: HeaderValue = value.trim().parse().map_err(|_| bad())?;
        headers.append(name, value);
    }
    Ok(headers)
}
