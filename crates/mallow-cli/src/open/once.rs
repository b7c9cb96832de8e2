//! Serves one document over HTTP on this machine, until it was fetched once: to requests that know its path, and of web pages only to one origin.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use mallow_query::Failure;
use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// The timeout of a connection, which is local.
const PATIENCE: Duration = Duration::from_secs(60);
/// The maximum number of connections. A page needs two.
const CONNECTIONS_MAX: usize = 16;

/// What is served.
pub(super) struct Offer {
    /// A secret path.
    pub(super) path: String,
    /// The page that may read it.
    pub(super) origin: &'static str,
    /// The required `Host` header. A foreign page whose name resolves to this address (DNS rebinding) sends another one.
    pub(super) host: String,
    pub(super) profile: Vec<u8>,
}

/// Waits until it was fetched.
pub(super) fn offer(listener: TcpListener, offer: Offer) -> Result<(), Failure> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(until_fetched(listener, Arc::new(Shared::of(offer))))?)
}

struct Shared {
    offer: Offer,
    body: Bytes,
}

impl Shared {
    fn of(mut offer: Offer) -> Shared {
        let body = std::mem::take(&mut offer.profile).into();
        Shared { offer, body }
    }
}

async fn until_fetched(listener: TcpListener, shared: Arc<Shared>) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let (fetched, mut was_fetched) = unbounded_channel();
    let room = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return Ok(()) };
        let connection = tokio::select! {
            _ = was_fetched.recv() => return Ok(()),
            accepted = listener.accept() => accepted?.0,
        };
        let (shared, fetched) = (Arc::clone(&shared), fetched.clone());
        tokio::spawn(async move {
            let _ = tokio::time::timeout(PATIENCE, served(connection, shared, fetched)).await;
            drop(place);
        });
    }
}

/// Answers the requests of one connection, and reports when the whole document was sent over it.
async fn served(connection: TcpStream, shared: Arc<Shared>, fetched: UnboundedSender<()>) {
    let is_given = AtomicBool::new(false);
    let answer = |request: Request<hyper::body::Incoming>| {
        let response =
            answered(&shared.offer, &shared.body, request.method(), request.uri().path(), request.headers());
        if response.status() == StatusCode::OK && request.method() == Method::GET {
            is_given.store(true, Ordering::Relaxed);
        }
        std::future::ready(Ok::<_, Infallible>(response))
    };
    let mut http = http1::Builder::new();
    let ended = http.keep_alive(false).serve_connection(TokioIo::new(connection), service_fn(answer)).await;
    if ended.is_ok() && is_given.load(Ordering::Relaxed) {
        let _ = fetched.send(());
    }
}

fn answered(
    offer: &Offer,
    body: &Bytes,
    method: &Method,
    path: &str,
    asked: &HeaderMap,
) -> Response<Full<Bytes>> {
    let is_for_us = asked.get(header::HOST).is_some_and(|host| host == offer.host.as_str());
    let origin = asked.get(header::ORIGIN);
    let is_the_page = origin.is_none_or(|origin| origin == offer.origin);
    let is_known = path.len() == offer.path.len()
        && path.bytes().zip(offer.path.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0;
    let (status, body) = match *method {
        _ if !(is_for_us && is_the_page && is_known) => (StatusCode::NOT_FOUND, Bytes::new()),
        Method::GET | Method::HEAD => (StatusCode::OK, body.clone()),
        // The preflight request of a page that wants to access a private network.
        Method::OPTIONS => (StatusCode::NO_CONTENT, Bytes::new()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, Bytes::new()),
    };
    let is_given = status.is_success();
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if is_given {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static(offer.origin));
        headers.insert(header::VARY, HeaderValue::from_static("origin"));
        headers.insert("access-control-allow-private-network", HeaderValue::from_static("true"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/00ff/profile.json";
    const HOST: &str = "127.0.0.1:4242";
    const PAGE: &str = "https://profiler.firefox.com";

    fn status(method: Method, path: &str, headers: &[(&'static str, &'static str)]) -> (u16, Option<String>) {
        let offer = Offer { path: PATH.into(), origin: PAGE, host: HOST.into(), profile: Vec::new() };
        let mut asked = HeaderMap::new();
        for (name, value) in headers {
            asked.insert(*name, HeaderValue::from_static(value));
        }
        let response = answered(&offer, &Bytes::from_static(b"{}"), &method, path, &asked);
        let allowed = response.headers().get(header::ACCESS_CONTROL_ALLOW_ORIGIN);
        (response.status().as_u16(), allowed.map(|value| value.to_str().unwrap().to_owned()))
    }

    #[test]
    fn only_the_page_that_was_told_the_path_is_answered() {
        let page = Some(PAGE.to_owned());
        let host = ("host", HOST);
        assert_eq!(status(Method::GET, PATH, &[host, ("origin", PAGE)]), (200, page.clone()));
        assert_eq!(status(Method::OPTIONS, PATH, &[host, ("origin", PAGE)]), (204, page.clone()));
        // curl sends no origin.
        assert_eq!(status(Method::GET, PATH, &[host]), (200, page));
        for (method, path, headers) in [
            (Method::GET, "/", &[host][..]),
            (Method::GET, "/00fe/profile.json", &[host]),
            (Method::GET, PATH, &[host, ("origin", "https://evil.example")]),
            (Method::GET, PATH, &[host, ("origin", "null")]),
            (Method::OPTIONS, PATH, &[host, ("origin", "https://evil.example")]),
            (Method::GET, PATH, &[("host", "evil.example:4242")]),
            (Method::GET, PATH, &[]),
        ] {
            assert_eq!(status(method, path, headers), (404, None), "{path} {headers:?}");
        }
        assert_eq!(status(Method::POST, PATH, &[host]), (405, None));
    }
}
