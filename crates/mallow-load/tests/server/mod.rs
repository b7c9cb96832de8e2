//! A server that responds as a test says and remembers the requests.

#![allow(dead_code, reason = "each of the tests' programs uses a part of it")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A request as it arrived.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReceivedRequest {
    /// `GET /path`.
    pub(crate) line: String,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// Counted from 0 over all connections.
    pub(crate) number: usize,
    /// Counted from 0.
    pub(crate) connection: usize,
}

/// How to respond.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A status and a body.
    Answer(u16, &'static str),
    /// A status, headers that each end with a line break, and a body.
    Headed(u16, String, String),
    /// A response, and the end of the connection, which is announced or not.
    Last { announced: bool },
    /// Wait first.
    Late(Duration),
    /// Head and body in two pieces; Nagle's algorithm delays the second.
    TwoPieces,
    /// These bytes, and the end of the connection.
    Raw(&'static str),
    /// A TCP reset.
    Reset,
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    open: AtomicUsize,
    requests: AtomicUsize,
    seen: Mutex<Vec<ReceivedRequest>>,
}

/// A server on a free port, which lives as long as the test's process.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    counts: Arc<Counts>,
}

impl Server {
    pub(crate) fn start(reply: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::new(Counts::default());
        let (shared, reply) = (Arc::clone(&counts), Arc::new(reply));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (counts, reply) = (Arc::clone(&shared), Arc::clone(&reply));
                let connection = counts.connections.fetch_add(1, Ordering::SeqCst);
                counts.open.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    // The thread ends with its connection, however that ends.
                    let _ = serve(stream.unwrap(), connection, &counts, &*reply);
                    counts.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Server { address, counts }
    }

    /// Returns the number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::SeqCst)
    }

    /// Returns the number of requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.counts.requests.load(Ordering::SeqCst)
    }

    /// Returns the requests so far, in the order in which they came.
    pub(crate) fn seen(&self) -> Vec<ReceivedRequest> {
        let mut seen = self.counts.seen.lock().unwrap().clone();
        seen.sort_by_key(|seen| seen.number);
        seen
    }

    /// Waits until this number of connections is open; returns how many are open after a timeout.
    pub(crate) fn settles_at(&self, open: usize) -> usize {
        let end = Instant::now() + Duration::from_secs(5);
        while self.counts.open.load(Ordering::SeqCst) != open && Instant::now() < end {
            thread::sleep(Duration::from_millis(2));
        }
        self.counts.open.load(Ordering::SeqCst)
    }
}

fn serve(
    stream: TcpStream,
    connection: usize,
    counts: &Counts,
    reply: &(dyn Fn(&ReceivedRequest) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = &stream;
    while let Some(mut seen) = read(&mut reader)? {
        seen.number = counts.requests.fetch_add(1, Ordering::SeqCst);
        seen.connection = connection;
        let is_head = seen.line.starts_with("HEAD ");
        let what = reply(&seen);
        // Long runs are counted, not stored.
        if seen.number < 1000 {
            counts.seen.lock().unwrap().push(seen);
        }
        match what {
            Reply::Answer(status, body) => writer.write_all(answer(status, body, is_head, "").as_bytes())?,
            Reply::Headed(status, headers, body) => {
                writer.write_all(answer(status, &body, is_head, &headers).as_bytes())?;
            }
            Reply::TwoPieces => {
                stream.set_nodelay(false)?;
                let whole = answer(200, "two", is_head, "");
                let (head, body) = whole.split_at(whole.len() - 3);
                writer.write_all(head.as_bytes())?;
                writer.write_all(body.as_bytes())?;
            }
            Reply::Late(time) => {
                thread::sleep(time);
                writer.write_all(answer(200, "late", is_head, "").as_bytes())?;
            }
            Reply::Last { announced } => {
                let extra = if announced { "Connection: close\r\n" } else { "" };
                return writer.write_all(answer(200, "last", is_head, extra).as_bytes());
            }
            Reply::Raw(text) => return writer.write_all(text.as_bytes()),
            Reply::Reset => {
                rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
                return Ok(());
            }
        }
    }
    Ok(())
}

fn answer(status: u16, body: &str, is_head: bool, extra: &str) -> String {
    let length = body.len();
    let body = if is_head { "" } else { body };
    format!("HTTP/1.1 {status} As Said\r\nContent-Length: {length}\r\n{extra}\r\n{body}")
}

fn read(reader: &mut impl BufRead) -> std::io::Result<Option<ReceivedRequest>> {
    let mut seen = ReceivedRequest::default();
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let Some(start) = line.strip_suffix(" HTTP/1.1\r\n") else { return Ok(None) };
    seen.line = start.to_owned();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        seen.headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = seen.headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    seen.body.resize(length, 0);
    reader.read_exact(&mut seen.body)?;
    Ok(Some(seen))
}
