//! A stand-in on loopback for the parts of GitHub and GitLab that a job talks to: comments, artifacts, files to download.
//!
//! It answers as their documentation says, refuses a wrong token, and keeps every request, so that a test sees what was asked.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The token that may write comments.
pub const TOKEN: &str = "a-token-of-the-test";

/// Whose interface it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// GitHub's.
    GitHub,
    /// GitLab's.
    GitLab,
}

/// A comment on the one request that there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Its number.
    pub id: u64,
    /// The account that wrote it; the token's is [`Forge::own_author`].
    pub author: String,
    /// Its text.
    pub body: String,
}

#[derive(Debug, Default)]
struct State {
    comments: Vec<Comment>,
    /// What can be had at a path, with all of its letters, by `GET`.
    files: BTreeMap<String, Vec<u8>>,
    /// `METHOD PATH` of each request.
    asked: Vec<String>,
    may_write: bool,
}

/// The stand-in. It answers until it is dropped.
pub struct Forge {
    kind: Kind,
    port: u16,
    state: Arc<Mutex<State>>,
}

impl Forge {
    /// Starts one without comments and files.
    ///
    /// # Panics
    /// When loopback has no free port.
    #[must_use]
    pub fn start(kind: Kind) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let state = Arc::new(Mutex::new(State { may_write: true, ..State::default() }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // The last connection is the one that `drop` makes.
                if Arc::strong_count(&shared) == 1 {
                    break;
                }
                // What a client does wrong shows in its own end.
                let _ = answer(kind, &shared, stream);
            }
        });
        Self { kind, port, state }
    }

    /// The address that the interface's paths follow.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The account that the token belongs to.
    #[must_use]
    pub fn own_author(&self) -> &'static str {
        own_author(self.kind)
    }

    /// Adds a comment that others have written.
    pub fn add_comment(&self, author: &str, body: &str) {
        add(&mut self.lock().comments, author, body);
    }

    /// All comments, oldest first.
    #[must_use]
    pub fn comments(&self) -> Vec<Comment> {
        self.lock().comments.clone()
    }

    /// Serves a file.
    pub fn put_file(&self, path: &str, bytes: Vec<u8>) {
        self.lock().files.insert(path.to_owned(), bytes);
    }

    /// Refuses to take comments from now on, as for a request from a fork.
    pub fn refuse_comments(&self) {
        self.lock().may_write = false;
    }

    /// What was asked since the last call.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().asked)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the state")
    }
}

impl Drop for Forge {
    fn drop(&mut self) {
        self.state = Arc::default();
        // Wakes the thread, which then sees that it is alone.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn own_author(kind: Kind) -> &'static str {
    match kind {
        Kind::GitHub => "github-actions[bot]",
        Kind::GitLab => "7",
    }
}

fn add(comments: &mut Vec<Comment>, author: &str, body: &str) -> Comment {
    let comment =
        Comment { id: 1000 + comments.len() as u64, author: author.to_owned(), body: body.to_owned() };
    comments.push(comment.clone());
    comment
}

struct Request {
    method: String,
    target: String,
    /// Lines of the head, as they came.
    headers: Vec<String>,
    body: Vec<u8>,
}

fn read(stream: &TcpStream) -> std::io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        headers.push(line.trim().to_owned());
    }
    let length = headers.iter().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.and_then(|text| text.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok(Request { method, target, headers, body })
}

fn answer(kind: Kind, state: &Mutex<State>, mut stream: TcpStream) -> std::io::Result<()> {
    let request = read(&stream)?;
    let (status, body) = {
        let mut state = state.lock().expect("no thread panics while it holds the state");
        state.asked.push(format!("{} {}", request.method, request.target));
        reply(kind, &mut state, &request)
    };
    let head =
        format!("HTTP/1.1 {status} Said\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)?;
    stream.shutdown(Shutdown::Write)
}

fn reply(kind: Kind, state: &mut State, request: &Request) -> (u16, Vec<u8>) {
    if request.method == "GET"
        && let Some(bytes) = state.files.get(&request.target)
    {
        return (200, bytes.clone());
    }
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let (all, one, token) = match kind {
        Kind::GitHub => (
            "/repos/some/project/issues/12/comments",
            "/repos/some/project/issues/comments/",
            format!("Authorization: Bearer {TOKEN}"),
        ),
        Kind::GitLab => (
            "/projects/3/merge_requests/12/notes",
            "/projects/3/merge_requests/12/notes/",
            format!("PRIVATE-TOKEN: {TOKEN}"),
        ),
    };
    if !request.headers.contains(&token) {
        return (401, Vec::new());
    }
    let changes = if kind == Kind::GitHub { "PATCH" } else { "PUT" };
    let sent = serde_json::from_slice::<Value>(&request.body).unwrap_or_default();
    let text = sent["body"].as_str();
    match (request.method.as_str(), text) {
        ("GET", _) if path == "/user" && kind == Kind::GitLab => (200, br#"{"id":7}"#.to_vec()),
        ("GET", _) if path == all => (200, page(kind, &state.comments, query)),
        ("POST", _) if path == all && !state.may_write => (403, Vec::new()),
        ("POST", Some(text)) if path == all => {
            let comment = add(&mut state.comments, own_author(kind), text);
            (201, shown(kind, &comment).to_string().into_bytes())
        }
        (method, Some(text)) if method == changes => {
            let id = path.strip_prefix(one).and_then(|id| id.parse::<u64>().ok());
            let Some(comment) = state.comments.iter_mut().find(|comment| Some(comment.id) == id) else {
                return (404, Vec::new());
            };
            comment.body = text.to_owned();
            (200, shown(kind, comment).to_string().into_bytes())
        }
        _ => (404, Vec::new()),
    }
}

fn page(kind: Kind, comments: &[Comment], query: &str) -> Vec<u8> {
    let number = |key: &str, otherwise: usize| {
        let value = query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        value.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    // Both give at most 100, and 30 or 20 where nobody says how many.
    let size = number("per_page", 20).min(100);
    let rows = comments.iter().skip((number("page", 1).max(1) - 1) * size).take(size);
    Value::from_iter(rows.map(|comment| shown(kind, comment))).to_string().into_bytes()
}

fn shown(kind: Kind, comment: &Comment) -> Value {
    let Comment { id, author, body } = comment;
    match kind {
        Kind::GitHub => json!({ "id": id, "user": { "login": author }, "body": body }),
        Kind::GitLab => {
            json!({ "id": id, "author": { "id": author.parse::<u64>().unwrap_or(0) }, "body": body })
        }
    }
}
