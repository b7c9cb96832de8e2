//! The socket of the scripts: their connections, requests and responses.
//!
//! A request is the line `collect` or `snapshot PATH`, a response one line of JSON. Several requests may be pending
//! on one connection if a process was too busy to respond in time; the last response counts.

use mallow_evidence::RuntimeMetrics;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// Longer than any response; a peer that sends more is not one of our scripts.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// All connections.
pub(super) struct Hooks {
    name: String,
    listener: UnixListener,
    connections: Vec<Connection>,
}

struct Connection {
    stream: UnixStream,
    /// As the kernel reports it, in our own pid namespace.
    pid: u32,
    /// The beginning of a line that is not complete.
    unread: Vec<u8>,
    /// The number of requests without a response.
    owed: u32,
    /// The response to the last request.
    answer: Option<RuntimeMetrics>,
    /// The result of the last snapshot: success, or why there is none.
    snapshot: Option<Result<(), String>>,
}

/// A response. Metrics that are not numbers are left out.
#[derive(Deserialize)]
struct Answer {
    runtime: String,
    managed_bytes: u64,
    objects: Option<u64>,
    in_malloc: bool,
    #[serde(default)]
    #[serde(rename = "figures")]
    metrics: BTreeMap<String, serde_json::Value>,
}

/// A line that a script sends.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Metrics(Answer),
    /// The result of a snapshot: null, or why there is none.
    Snapshot {
        snapshot: Option<String>,
    },
}

impl Hooks {
    /// Listens at an abstract address.
    ///
    /// # Errors
    /// If it is in use, or the system has no such addresses.
    pub(super) fn listen(name: String) -> io::Result<Hooks> {
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        listener.set_nonblocking(true)?;
        Ok(Hooks { name, listener, connections: Vec::new() })
    }

    /// Returns the address, without its leading zero byte.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Requests a collection from every process of `pids`.
    pub(super) fn ask(&mut self, pids: &[u32]) {
        self.connections.retain(|connection| is_alive(connection.pid));
        for connection in &mut self.connections {
            connection.answer = None;
            connection.ask(pids);
        }
        self.accept(pids);
    }

    /// Returns the responses that arrive until `deadline`.
    pub(super) fn answers(&mut self, pids: &[u32], deadline: Instant) -> Vec<RuntimeMetrics> {
        loop {
            self.accept(pids);
            self.connections.retain_mut(|connection| connection.read().is_ok());
            let left = deadline.saturating_duration_since(Instant::now());
            let owes = |connection: &Connection| connection.owed > 0 && pids.contains(&connection.pid);
            if left.is_zero() || !self.connections.iter().any(owes) {
                break;
            }
            self.wait(left);
        }
        let asked = self.connections.iter_mut().filter(|connection| pids.contains(&connection.pid));
        // A process that has connected twice (its first descriptor was closed) counts once.
        let answers = asked.filter_map(|connection| connection.answer.take());
        answers.map(|answer| (answer.pid, answer)).collect::<BTreeMap<_, _>>().into_values().collect()
    }

    /// Makes a process write a snapshot of its heap, and waits for it; `None` if it has no hook.
    pub(super) fn snapshot(&mut self, pid: u32, path: &str, deadline: Instant) -> Option<Result<(), String>> {
        let of = |connection: &Connection| connection.pid == pid;
        // The newest connection: the descriptor of an earlier one was closed.
        let connection = self.connections.iter_mut().rfind(|connection| of(connection))?;
        connection.snapshot = None;
        if path.contains('\n') || !connection.say(&format!("snapshot {path}\n")) {
            return Some(Err("it cannot be asked".to_owned()));
        }
        loop {
            self.connections.retain_mut(|connection| connection.read().is_ok());
            let Some(connection) = self.connections.iter_mut().rfind(|connection| of(connection)) else {
                return Some(Err("it has ended, or closed its connection".to_owned()));
            };
            if let Some(done) = connection.snapshot.take() {
                return Some(done);
            }
            if connection.owed == 0 {
                return Some(Err("it writes none".to_owned()));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(Err("it does not answer".to_owned()));
            }
            self.wait(left);
        }
    }

    /// Accepts pending connections, and sends each a request at once.
    fn accept(&mut self, pids: &[u32]) {
        while let Ok((stream, _)) = self.listener.accept() {
            let peer = rustix::net::sockopt::socket_peercred(&stream);
            let Ok(peer) = peer else { continue };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let pid = peer.pid.as_raw_nonzero().get().unsigned_abs();
            let mut connection =
                Connection { stream, pid, unread: Vec::new(), owed: 0, answer: None, snapshot: None };
            connection.ask(pids);
            self.connections.push(connection);
        }
    }

    fn wait(&self, left: Duration) {
        let mut watched = vec![PollFd::new(&self.listener, PollFlags::IN)];
        let owing = self.connections.iter().filter(|connection| connection.owed > 0);
        watched.extend(owing.map(|connection| PollFd::new(&connection.stream, PollFlags::IN)));
        // Interrupted or not, the caller checks the clock again.
        let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let _ = poll(&mut watched, Some(&left));
    }
}

impl Connection {
    fn ask(&mut self, pids: &[u32]) {
        if pids.contains(&self.pid) {
            self.say("collect\n");
        }
    }

    /// Sends a request; returns whether that succeeded.
    fn say(&mut self, request: &str) -> bool {
        let is_said = self.stream.write_all(request.as_bytes()).is_ok();
        self.owed += u32::from(is_said);
        is_said
    }

    /// Reads what has arrived.
    ///
    /// # Errors
    /// If the connection has ended, or what arrives is not a response.
    fn read(&mut self) -> io::Result<()> {
        let mut piece = [0; 4096];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.unread.extend_from_slice(&piece[..n]),
                Err(fault) if fault.kind() == ErrorKind::WouldBlock => break,
                Err(fault) if fault.kind() == ErrorKind::Interrupted => {}
                Err(fault) => return Err(fault),
            }
            if self.unread.len() > ANSWER_BYTES_MAX {
                return Err(ErrorKind::InvalidData.into());
            }
        }
        while let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            let said: Line = serde_json::from_slice(&line)?;
            self.owed = self.owed.saturating_sub(1);
            match said {
                Line::Snapshot { snapshot } => self.snapshot = Some(snapshot.map_or(Ok(()), Err)),
                Line::Metrics(answer) if self.owed == 0 => self.answer = Some(answer.of(self.pid)),
                Line::Metrics(_) => {}
            }
        }
        Ok(())
    }
}

impl Answer {
    fn of(self, pid: u32) -> RuntimeMetrics {
        let numbers = self.metrics.into_iter().filter_map(|(name, value)| Some((name, value.as_f64()?)));
        RuntimeMetrics {
            name: self.runtime,
            pid,
            managed_bytes: self.managed_bytes,
            objects: self.objects,
            in_malloc: self.in_malloc,
            metrics: numbers.collect(),
        }
    }
}

fn is_alive(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}
