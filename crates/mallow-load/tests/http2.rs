//! The generator over HTTP/2, against hyper's server.

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mallow_load::{Amount, Endpoint, Generator, Load, Order, Protocol, Target, parse_flow};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;

#[derive(Default)]
struct Counts {
    connections: AtomicU64,
    open: AtomicU64,
    requests: AtomicU64,
    last: Mutex<String>,
}

struct Server {
    address: SocketAddr,
    counts: Arc<Counts>,
}

impl Server {
    /// Starts a server that closes a connection with GOAWAY after this number of requests.
    fn start(requests_max: u64) -> Server {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    tokio::spawn(serve(stream, Arc::clone(&shared), requests_max));
                }
            });
        });
        Server { address, counts }
    }

    fn get(&self, count: fn(&Counts) -> &AtomicU64) -> u64 {
        count(&self.counts).load(Ordering::SeqCst)
    }
}

async fn serve(stream: tokio::net::TcpStream, counts: Arc<Counts>, requests_max: u64) {
    counts.connections.fetch_add(1, Ordering::SeqCst);
    counts.open.fetch_add(1, Ordering::SeqCst);
    let (full, is_full) = tokio::sync::oneshot::channel::<()>();
    let full = Arc::new(Mutex::new(Some(full)));
    let here = Arc::new(AtomicU64::new(0));
    let shared = Arc::clone(&counts);
    let service = service_fn(move |request: Request<Incoming>| {
        if here.fetch_add(1, Ordering::SeqCst) + 1 == requests_max {
            full.lock().unwrap().take();
        }
        answer(request, Arc::clone(&shared))
    });
    let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => {}
        _ = is_full => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
    counts.open.fetch_sub(1, Ordering::SeqCst);
}

async fn answer(
    request: Request<Incoming>,
    counts: Arc<Counts>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    counts.requests.fetch_add(1, Ordering::SeqCst);
    let line = format!("{} {} {:?}", request.method(), request.uri(), request.headers());
    let query = request.uri().query().unwrap_or_default().to_owned();
    let cookie = request.headers().get("cookie").and_then(|cookie| cookie.to_str().ok()).unwrap_or_default();
    let is_login = request.uri().path() == "/login";
    let status = match request.uri().path() {
        "/account" if cookie != format!("id={query}") => 403,
        "/missing" => 404,
        "/slow" => {
            tokio::time::sleep(Duration::from_secs(5)).await;
            200
        }
        _ => 200,
    };
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    *counts.last.lock().unwrap() = format!("{line} {body:?}");
    let mut response = Response::new(Full::new(Bytes::from_static(b"hello")));
    if is_login {
        response.headers_mut().insert("set-cookie", format!("id={query}").parse().unwrap());
    }
    *response.status_mut() = status.try_into().unwrap();
    Ok(response)
}

fn load(address: SocketAddr, connections: u32) -> Load {
    Load {
        flow: None,
        endpoint: Endpoint::plain(address, "test.example"),
        targets: vec![Target::get("/hello?a=1")],
        order: Order::Sequential,
        protocol: Some(Protocol::Http2),
        connections,
        keep_alive: true,
        rate: None,
        timeout: Duration::from_secs(10),
        threads: Some(2),
    }
}

#[test]
fn many_requests_share_a_connection() {
    let server = Server::start(u64::MAX);
    let mut generator = Generator::start(load(server.address, 20)).unwrap();
    let metrics = generator.run(Amount::Requests(1000), None);
    assert_eq!((metrics.requests, metrics.succeeded, metrics.body_bytes), (1000, 1000, 5000));
    // One for each thread.
    assert_eq!((server.get(|it| &it.requests), server.get(|it| &it.connections)), (1000, 2));
    assert_eq!(generator.run(Amount::Requests(100), None).succeeded, 100);
    assert_eq!(server.get(|it| &it.connections), 2);
    generator.close();
    let end = std::time::Instant::now() + Duration::from_secs(5);
    while server.get(|it| &it.open) > 0 && std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(server.get(|it| &it.open), 0);
    assert_eq!(generator.run(Amount::Requests(100), None).succeeded, 100);
    assert_eq!(server.get(|it| &it.connections), 4);
}

#[test]
fn bodies_and_headers_arrive() {
    let server = Server::start(u64::MAX);
    let mut post = Target::get("/missing");
    post.method = "POST".parse().unwrap();
    post.body = "a body".into();
    post.headers.insert("x-id", "7".parse().unwrap());
    let metrics = Generator::start(Load { targets: vec![post], ..load(server.address, 1) })
        .unwrap()
        .run(Amount::Requests(1), None);
    assert_eq!((metrics.statuses.get(&404), metrics.failed()), (Some(&1), 1));
    let expected =
        "POST http://test.example/missing {\"x-id\": \"7\", \"content-length\": \"6\"} b\"a body\"";
    assert_eq!(*server.counts.last.lock().unwrap(), expected);
}

#[test]
fn without_keeping_each_request_has_a_connection() {
    let server = Server::start(u64::MAX);
    let load = Load { keep_alive: false, ..load(server.address, 3) };
    assert_eq!(Generator::start(load).unwrap().run(Amount::Requests(30), None).succeeded, 30);
    assert_eq!((server.get(|it| &it.requests), server.get(|it| &it.connections)), (30, 30));
}

#[test]
fn who_does_not_answer_in_time_is_given_up() {
    let server = Server::start(u64::MAX);
    let targets = vec![Target::get("/slow"), Target::get("/")];
    let load = Load { targets, timeout: Duration::from_millis(150), ..load(server.address, 1) };
    let metrics = Generator::start(load).unwrap().run(Amount::Requests(4), None);
    assert_eq!((metrics.succeeded, metrics.failures.get("timeout")), (2, Some(&2)));
    assert_eq!(server.get(|it| &it.connections), 1);
}

#[test]
fn a_server_that_says_goodbye_is_connected_to_again() {
    let server = Server::start(10);
    let metrics = Generator::start(load(server.address, 4)).unwrap().run(Amount::Requests(200), None);
    assert_eq!((metrics.succeeded, metrics.failures.len()), (200, 0), "{:?}", metrics.failures);
    assert!(server.get(|it| &it.connections) > 10, "{}", server.get(|it| &it.connections));
}

#[test]
fn a_server_that_speaks_something_else_gives_a_bad_answer() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            use std::io::{Read, Write};
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    let metrics = Generator::start(load(address, 1)).unwrap().run(Amount::Requests(3), None);
    assert_eq!((metrics.requests, metrics.succeeded), (3, 0));
    assert_eq!(metrics.failures.values().sum::<u64>(), 3, "{:?}", metrics.failures);
}

#[test]
fn users_of_a_flow_share_a_connection_and_no_cookie() {
    let server = Server::start(u64::MAX);
    let text = "[[step]]\nget = \"/login?u{user}p{pass}\"\ntake.greeting = { regex = \"^hello$\" }\n\
                [[step]]\nget = \"/account?u{user}p{pass}\"\nheaders = { X-Greeting = \"{greeting}\" }\n";
    let flow = Some(parse_flow(text, Path::new("flow.toml")).unwrap());
    let load = Load { flow, targets: Vec::new(), threads: Some(1), ..load(server.address, 7) };
    let metrics = Generator::start(load).unwrap().run(Amount::Requests(700), None);
    assert_eq!(
        (metrics.requests, metrics.succeeded, server.get(|it| &it.connections)),
        (700, 700, 1),
        "{metrics:?}"
    );
}
