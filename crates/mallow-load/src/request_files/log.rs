//! Converts a web server's log into requests with their frequencies.
//!
//! Logs are long, so one line is read at a time, and memory is bounded by the number of different requests.

use super::UrlFile;
use crate::address::path_of;
use crate::{LoadError, Target};
use hyper::Method;
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::path::Path;

/// The maximum number of different requests that are used: the most frequent ones.
const TARGETS_MAX: usize = 100_000;
/// The maximum number of different requests that are counted. In a log that is not sorted, one that first occurs
/// after that many cannot be among the frequent ones.
const COUNTED_MAX: usize = 4 * TARGETS_MAX;
/// A longer line cannot be a request that a server accepted.
const LINE_BYTES_MAX: u64 = 1 << 16;

/// The counts.
#[derive(Default)]
struct Counts {
    lines: u64,
    requests: HashMap<(Method, String), u64>,
    /// Lines without a request, and the first of them.
    unread: u64,
    first_unread: Option<u64>,
    /// Requests with excluded methods.
    other_methods: BTreeMap<String, u64>,
    /// Requests that came when the table was full.
    uncounted: u64,
    /// Requests whose line does not name a method.
    unnamed: u64,
}

/// A request in a log.
struct Asked {
    method: Option<String>,
    path: String,
}

pub(super) fn read(mut reader: impl BufRead, path: &Path, all_methods: bool) -> Result<UrlFile, LoadError> {
    let cannot = |cause| LoadError::CannotRead { path: path.to_owned(), cause };
    let mut counts = Counts::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(cannot)?;
        if length == 0 {
            break;
        }
        if counts.lines == 0 && line.starts_with(&[0x1f, 0x8b]) {
            return Err(cannot(std::io::Error::other("it is compressed; unpack it with gunzip first")));
        }
        if line.last() != Some(&b'\n') && length as u64 == LINE_BYTES_MAX {
            skip_line(&mut reader).map_err(cannot)?;
        }
        counts.add(&String::from_utf8_lossy(&line), all_methods);
    }
    counts.into_file(path)
}

fn skip_line(reader: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        let (used, is_end) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        reader.consume(used);
        if is_end {
            return Ok(());
        }
    }
}

impl Counts {
    fn add(&mut self, line: &str, all_methods: bool) {
        self.lines += 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return;
        }
        let asked = if line.starts_with('{') { of_json(line) } else { of_text(line) };
        let Some((method, path)) = asked.and_then(|asked| self.understood(asked)) else {
            self.unread += 1;
            self.first_unread.get_or_insert(self.lines);
            return;
        };
        if !all_methods && method != Method::GET && method != Method::HEAD {
            *self.other_methods.entry(method.to_string()).or_insert(0) += 1;
            return;
        }
        let has_room = self.requests.len() < COUNTED_MAX;
        let key = (method, path);
        match self.requests.get_mut(&key) {
            Some(count) => *count += 1,
            None if has_room => {
                self.requests.insert(key, 1);
            }
            None => self.uncounted += 1,
        }
    }

    fn understood(&mut self, asked: Asked) -> Option<(Method, String)> {
        // A proxy's log has whole URLs.
        let path = match asked.path.split_once("://") {
            Some((scheme, rest)) if !scheme.contains('/') => rest.find('/').map_or("/", |at| &rest[at..]),
            _ => asked.path.as_str(),
        };
        if !path.starts_with('/') {
            return None;
        }
        let path = path_of(path).ok()?;
        let method = match asked.method {
            Some(name) => name.parse().ok()?,
            None => {
                self.unnamed += 1;
                Method::GET
            }
        };
        Some((method, path))
    }

    fn into_file(self, path: &Path) -> Result<UrlFile, LoadError> {
        let notes = self.notes();
        let mut requests: Vec<((Method, String), u64)> = self.requests.into_iter().collect();
        if requests.is_empty() {
            let hint = if self.other_methods.is_empty() {
                "a log in the common or combined format, or with a line of JSON for each request, is understood"
            } else {
                "only GET and HEAD are taken from a log, unless all methods are requested"
            };
            return Err(LoadError::NoTargets { path: path.to_owned(), hint });
        }
        requests.sort_by(|a, b| {
            b.1.cmp(&a.1).then_with(|| a.0.1.cmp(&b.0.1)).then_with(|| a.0.0.as_str().cmp(b.0.0.as_str()))
        });
        let mut file = UrlFile { notes, ..UrlFile::default() };
        if requests.len() > TARGETS_MAX {
            let rare: u64 = requests[TARGETS_MAX..].iter().map(|(_, count)| count).sum();
            file.notes.push(format!("{rare} requests left out that are rarer than {TARGETS_MAX} others"));
            requests.truncate(TARGETS_MAX);
        }
        let target = |((method, path), count): ((Method, String), u64)| Target {
            method,
            weight: u32::try_from(count).unwrap_or(u32::MAX),
            ..Target::get(&path)
        };
        file.targets = requests.into_iter().map(target).collect();
        Ok(file)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.other_methods.is_empty() {
            let methods: Vec<String> =
                self.other_methods.iter().map(|(method, count)| format!("{count} of {method}")).collect();
            notes.push(format!(
                "requests left out, because they may change something: {}",
                methods.join(", ")
            ));
        }
        if let Some(first) = self.first_unread {
            notes.push(format!(
                "{} of {} lines hold no request; the first is line {first}",
                self.unread, self.lines
            ));
        }
        if self.unnamed > 0 {
            notes.push(format!("{} requests name no method and are treated as GET", self.unnamed));
        }
        if self.uncounted > 0 {
            notes.push(format!("{} requests left out: the log has too many different ones", self.uncounted));
        }
        if self.requests.keys().any(|(method, _)| *method != Method::GET && *method != Method::HEAD) {
            notes.push("a log has no bodies: what it posted is posted empty".to_owned());
        }
        notes
    }
}

/// Parses the common log format, and every format that has the request line in quotes, as nginx and Apache write it.
fn of_text(line: &str) -> Option<Asked> {
    let mut rest = line;
    while let Some(start) = rest.find('"') {
        let (quoted, after) = quoted(&rest[start + 1..])?;
        if let Some(asked) = of_request_line(&quoted) {
            return Some(asked);
        }
        rest = after;
    }
    None
}

/// Returns the text up to the closing quote, with nginx's and Apache's escapes resolved, and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut plain = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return Some((String::from_utf8_lossy(&plain).into_owned(), &text[at + 1..])),
            b'\\' if bytes.get(at + 1) == Some(&b'x') => {
                let code = text.get(at + 2..at + 4).and_then(|code| u8::from_str_radix(code, 16).ok())?;
                plain.push(code);
                at += 4;
            }
            b'\\' => {
                plain.push(*bytes.get(at + 1)?);
                at += 2;
            }
            byte => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    None
}

/// Parses `GET /path HTTP/1.1`; the version is absent in HTTP/0.9.
fn of_request_line(text: &str) -> Option<Asked> {
    let mut words = text.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_path = path.starts_with('/') || path.starts_with("http://") || path.starts_with("https://");
    let is_end = words.next().is_none_or(|version| version.starts_with("HTTP/")) && words.next().is_none();
    (is_method && is_path && is_end).then(|| Asked { method: Some(method.to_owned()), path: path.to_owned() })
}

const METHOD_KEYS: [&str; 6] =
    ["method", "request_method", "http_method", "requestMethod", "verb", "RequestMethod"];
const PATH_KEYS: [&str; 9] =
    ["request_uri", "uri", "path", "url", "requestUrl", "RequestPath", "target", "request_path", "http_path"];
const QUERY_KEYS: [&str; 4] = ["query_string", "query", "args", "request_query"];

/// Parses a line of JSON, as nginx (`log_format json`), caddy (`request.uri`), traefik and others write it.
fn of_json(line: &str) -> Option<Asked> {
    let object: Value = serde_json::from_str(line).ok()?;
    if let Some(asked) = object.get("request").and_then(Value::as_str).and_then(of_request_line) {
        return Some(asked);
    }
    let nested = ["request", "httpRequest", "http", "req"].iter().filter_map(|key| object.get(key));
    std::iter::once(&object).chain(nested).find_map(of_object)
}

fn of_object(object: &Value) -> Option<Asked> {
    let text = |keys: &[&str]| {
        keys.iter()
            .find_map(|key| object.get(key)?.as_str())
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let mut path = text(&PATH_KEYS)?;
    if !path.contains('?')
        && let Some(query) = text(&QUERY_KEYS)
    {
        path.push('?');
        path.push_str(query.trim_start_matches('?'));
    }
    Some(Asked { method: text(&METHOD_KEYS), path })
}
