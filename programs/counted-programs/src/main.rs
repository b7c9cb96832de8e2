//! An HTTP server on mimalloc that counts its own allocations, with its clients: four threads that send as many requests as it is told, each over one
//! connection of the loopback device. Each answer lists words of the request's text, with their numbers.

mod counted;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use tokio::net::TcpListener;

#[global_allocator]
static ALLOCATOR: counted::Counted<mimalloc::MiMalloc> = counted::Counted(mimalloc::MiMalloc);

const CLIENTS: usize = 4;

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let text = request.into_body().collect().await?.to_bytes();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut words: BTreeMap<String, usize> = BTreeMap::new();
    text.split(' ').for_each(|word| *words.entry(word.to_lowercase()).or_default() += 1);
    let lines: Vec<String> = words.iter().map(|(word, count)| format!("{word} {count}")).collect();
    Ok(Response::new(Full::new(Bytes::from(lines.join("\n")))))
}

async fn serve(listener: TcpListener) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut connections = Vec::new();
    for _ in 0..CLIENTS {
        let (stream, _) = listener.accept().await?;
        let http = hyper::server::conn::http1::Builder::new();
        connections.push(tokio::spawn(http.serve_connection(TokioIo::new(stream), service_fn(answer))));
    }
    for connection in connections {
        connection.await??;
    }
    Ok(())
}

/// Sends requests, and returns the bytes of the answers' bodies.
fn ask(address: SocketAddr, client: usize, requests: usize) -> std::io::Result<usize> {
    let mut stream = TcpStream::connect(address)?;
    let mut answers = BufReader::new(stream.try_clone()?);
    let mut sum = 0;
    for request in 0..requests {
        let words: Vec<String> =
            (0..20 + request % 30).map(|word| format!("Word{}", word * client % 17)).collect();
        let text = words.join(" ");
        let head = format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", text.len());
        stream.write_all((head + &text).as_bytes())?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            answers.read_line(&mut line)?;
            let value =
                line.to_lowercase().strip_prefix("content-length: ").map(|value| value.trim().to_owned());
            length = value.and_then(|value| value.parse().ok()).unwrap_or(length);
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        answers.read_exact(&mut body)?;
        sum += body.len();
    }
    Ok(sum)
}

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let requests = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(500);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_io().build()?;
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
    let address = listener.local_addr()?;
    let clients: Vec<_> =
        (0..CLIENTS).map(|client| std::thread::spawn(move || ask(address, client + 1, requests))).collect();
    runtime.block_on(serve(listener))?;
    let mut sum = 0;
    for client in clients {
        sum += client.join().map_err(|_| "a client panicked")??;
    }
    println!("{sum} bytes");
    Ok(())
}
