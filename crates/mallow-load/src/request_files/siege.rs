//! siege's `urls.txt` (`man siege`, "URL FORMAT", and the comments of the file that it installs).
//!
//! One URL per line, `#` begins a comment line, `NAME = value` sets a variable that `$(NAME)` or `${NAME}` expands
//! to, a backslash escapes a dollar sign. `URL POST text` and `URL POST <file` (and PUT) have bodies.

use super::origin::Origin;
use crate::{LoadError, Target};
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method};
use std::collections::BTreeMap;
use std::path::Path;

type Variables = BTreeMap<String, String>;

/// The maximum length of a line after expansion: each variable could double the one before it.
const LINE_BYTES_MAX: usize = 1 << 20;

pub(super) fn urls(
    text: &str,
    origin: &mut Origin<'_>,
    attach: &mut dyn FnMut(&Path) -> std::io::Result<Vec<u8>>,
) -> Result<Vec<Target>, LoadError> {
    let mut variables = Variables::new();
    let mut targets = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let assignment = assignment(line);
        let line = assignment.map_or(line, |(_, value)| value);
        let line = expanded(line, &variables).map_err(|what| origin.bad(number, what))?;
        match assignment {
            Some((name, _)) => {
                variables.insert(name.to_owned(), line);
            }
            None => targets.push(target(&line, number, origin, attach)?),
        }
    }
    Ok(targets)
}

/// Parses `NAME = value`. The query of a URL contains an equals sign too, but no URL begins with a bare word before one.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_name)).then(|| (name, value.trim_start()))
}

/// Returns the line with its variables expanded and its escapes resolved.
fn expanded(line: &str, variables: &Variables) -> Result<String, String> {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['\\', '$']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(plain) = rest.strip_prefix("\\$") {
            text.push('$');
            rest = plain;
            continue;
        }
        let closing = match rest.as_bytes().get(1) {
            Some(b'(') if rest.starts_with('$') => ')',
            Some(b'{') if rest.starts_with('$') => '}',
            _ => {
                text.push_str(&rest[..1]);
                rest = &rest[1..];
                continue;
            }
        };
        let (name, after) =
            rest[2..].split_once(closing).ok_or_else(|| format!("'{rest}' has no '{closing}'"))?;
        text.push_str(variables.get(name).ok_or_else(|| format!("the variable '{name}' has no value yet"))?);
        if text.len() > LINE_BYTES_MAX {
            return Err("with its variables put in, the line is longer than 1 MiB".to_owned());
        }
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

fn target(
    line: &str,
    number: usize,
    origin: &mut Origin<'_>,
    attach: &mut dyn FnMut(&Path) -> std::io::Result<Vec<u8>>,
) -> Result<Target, LoadError> {
    let (url, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let path = origin.path_of(url, number)?;
    let rest = rest.trim();
    if rest.is_empty() {
        return Ok(Target::get(&path));
    }
    let (word, body) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let method = match word {
        "GET" => Method::GET,
        "HEAD" => Method::HEAD,
        "POST" => Method::POST,
        "PUT" => Method::PUT,
        "PATCH" => Method::PATCH,
        "DELETE" => Method::DELETE,
        _ => return Err(origin.bad(number, format!("'{word}' is no method; a URL has no blanks in it"))),
    };
    let body = body.trim_start();
    let (body, kind) = match body.strip_prefix('<') {
        Some(name) => {
            let name = name.trim();
            (origin.attached(name, attach(Path::new(name)), number)?, kind_of(name))
        }
        None => (Bytes::copy_from_slice(body.as_bytes()), "application/x-www-form-urlencoded"),
    };
    let mut headers = HeaderMap::new();
    if !body.is_empty() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    Ok(Target { method, path, headers, body, weight: 1 })
}

/// Returns the content type of a file, by its name.
fn kind_of(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or("") {
        "json" => "application/json",
        "xml" => "application/xml",
        "txt" => "text/plain",
        "html" | "htm" => "text/html",
        _ => "application/octet-stream",
    }
}
