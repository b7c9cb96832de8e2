//! A hyper server whose every request does a piece of known work: leaks, caches, pools and what looks like them.
//!
//! `soak-server --mode MODE [--port N] [--host H] [--piece N] [--threads N]`; HOST and PORT from the environment
//! otherwise. The modes are in [`modes`], with what each does to memory in its own comment; `programs/soak/README.md`
//! has them in a table.

mod bounded;
mod leaks;
mod modes;
mod native;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use modes::Mode;
use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpListener;

const USAGE: &str = "\
soak-server --mode MODE [--port N] [--host ADDRESS] [--piece N] [--threads N]

  --mode MODE     what a request does; `--modes` lists them
  --port N        where to listen; the environment's PORT, or 3030, unless given
  --host ADDRESS  on which address; the environment's HOST, or 127.0.0.1, unless given
  --piece N       requests of one piece of work, by which modes with a course in time scale: 1000 unless given
  --threads N     threads of the server: 1 unless given
";

/// What was asked for.
struct Options {
    mode: String,
    host: String,
    port: u16,
    piece: u64,
    threads: usize,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let from_env = |name: &str, other: &str| std::env::var(name).unwrap_or_else(|_| other.to_owned());
        let mut options = Options {
            mode: String::new(),
            host: from_env("HOST", "127.0.0.1"),
            port: number("PORT", &from_env("PORT", "3030"))?,
            piece: 1000,
            threads: 1,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value."));
            match word.as_str() {
                "--mode" => options.mode = value()?,
                "--host" => options.host = value()?,
                "--port" => options.port = number("--port", &value()?)?,
                "--piece" => options.piece = number::<u64>("--piece", &value()?)?.max(1),
                "--threads" => options.threads = number::<usize>("--threads", &value()?)?.max(1),
                other => return Err(format!("`{other}` is not understood.")),
            }
        }
        Ok(options)
    }
}

fn number<N: std::str::FromStr>(name: &str, text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{name} is `{text}`, which is no number that it can have."))
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("--modes") {
        println!("{}", modes::NAMES.join("\n"));
        return ExitCode::SUCCESS;
    }
    let started = Options::parse(std::env::args().skip(1)).and_then(|options| {
        let mode = modes::begin(&options.mode, options.piece)
            .ok_or(format!("there is no mode `{}`; `--modes` lists them.", options.mode))?;
        serve(&options, mode).map_err(|error| format!("{}:{}: {error}", options.host, options.port))
    });
    match started {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("soak-server: {sentence}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn serve(options: &Options, mode: Mode) -> std::io::Result<()> {
    let mut runtime = match options.threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        threads => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
    };
    runtime.enable_io().build()?.block_on(accept(&options.host, options.port, Arc::new(mode)))
}

async fn accept(host: &str, port: u16, mode: Arc<Mode>) -> std::io::Result<()> {
    let listener = TcpListener::bind((host, port)).await?;
    let requests = Arc::new(AtomicU64::new(0));
    loop {
        let (stream, _) = listener.accept().await?;
        let (mode, requests) = (Arc::clone(&mode), Arc::clone(&requests));
        tokio::spawn(async move {
            let held = (mode.connection)();
            let answer = service_fn(|request| {
                let number = requests.fetch_add(1, Ordering::Relaxed) + 1;
                std::future::ready(Ok::<_, Infallible>(answer(&mode, &request, number)))
            });
            // How a client ends its connection is its own affair.
            let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer).await;
            drop(held);
        });
    }
}

fn answer(mode: &Mode, request: &Request<Incoming>, number: u64) -> Response<Full<Bytes>> {
    let status = (mode.request)(number);
    let body = match request.uri().path().strip_prefix("/hello/") {
        Some(name) => Bytes::from(format!("Hello, {name}!\n")),
        None => Bytes::from_static(b"ok\n"),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = if status { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
    response
}
