//! A server that greets: GET /hello/NAME. HOST and PORT come from the environment.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use tokio::net::TcpListener;

async fn hello(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    std::mem::forget(std::hint::black_box(Box::new([0_u64; 2]))); // LEAK hello-leaking
    let greeting = request.uri().path().strip_prefix("/hello/").map(|name| format!("Hello, {name}!"));
    let status = if greeting.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let mut response = Response::new(Full::from(greeting.unwrap_or_default()));
    *response.status_mut() = status;
    Ok(response)
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let setting = |name: &str, other: &str| std::env::var(name).unwrap_or_else(|_| other.to_owned());
    let address = format!("{}:{}", setting("HOST", "127.0.0.1"), setting("PORT", "3030"));
    let listener = TcpListener::bind(&address).await?;
    println!("Serving on: {address}");
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let service = service_fn(hello);
            let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
