//! vegeta's targets (<https://github.com/tsenart/vegeta>, "-format"), in its `http` format and as JSON lines.

use super::origin::Origin;
use crate::base64;
use crate::{LoadError, Target};
use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Returns whether a line is `METHOD URL`.
pub(super) fn is_request(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let (Some(method), Some(url), None) = (words.next(), words.next(), words.next()) else { return false };
    method.chars().all(|c| c.is_ascii_uppercase()) && !matches!(url, "POST" | "PUT" | "GET" | "HEAD")
}

/// Parses `METHOD URL`, then headers, then `@file` with the body. The next such line begins the next request.
pub(super) fn http(
    text: &str,
    origin: &mut Origin<'_>,
    attach: &mut dyn FnMut(&Path) -> std::io::Result<Vec<u8>>,
) -> Result<Vec<Target>, LoadError> {
    let mut targets: Vec<Target> = Vec::new();
    // Headers and a body belong to the request above them until a blank line.
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.starts_with('#') {
            continue;
        }
        if line.is_empty() {
            is_open = false;
        } else if is_request(line) && !line.contains(": ") {
            let (method, url) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let method = method_of(method, number, origin)?;
            let path = origin.path_of(url.trim(), number)?;
            targets.push(Target { method, ..Target::get(&path) });
            is_open = true;
        } else if let Some(target) = targets.last_mut().filter(|_| is_open) {
            if let Some(name) = line.strip_prefix('@') {
                target.body = origin.attached(name, attach(Path::new(name)), number)?;
            } else {
                let header = line.split_once(':').ok_or_else(|| {
                    origin
                        .bad(number, format!("'{line}' is neither a header (NAME: VALUE) nor a body (@FILE)"))
                })?;
                add(&mut target.headers, header.0, header.1, number, origin)?;
            }
        } else {
            return Err(origin.bad(number, format!("'{line}' is no request; one is METHOD URL")));
        }
    }
    Ok(targets)
}

/// A target as a line of JSON.
#[derive(Deserialize)]
struct Line {
    method: String,
    url: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    header: Option<BTreeMap<String, Vec<String>>>,
}

/// Parses one JSON target per line, its body in base64.
pub(super) fn json(text: &str, origin: &mut Origin<'_>) -> Result<Vec<Target>, LoadError> {
    let mut targets = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line: Line = serde_json::from_str(line)
            .map_err(|error| origin.bad(number, format!("this is no target of vegeta: {error}")))?;
        let mut headers = HeaderMap::new();
        for (name, values) in line.header.iter().flatten() {
            for value in values {
                add(&mut headers, name, value, number, origin)?;
            }
        }
        let body = base64::decode(line.body.as_deref().unwrap_or(""));
        let body = body.ok_or_else(|| origin.bad(number, "the body is not in base64"))?;
        targets.push(Target {
            method: method_of(&line.method, number, origin)?,
            path: origin.path_of(&line.url, number)?,
            headers,
            body: Bytes::from(body),
            weight: 1,
        });
    }
    Ok(targets)
}

fn method_of(name: &str, line: usize, origin: &Origin<'_>) -> Result<Method, LoadError> {
    Method::from_bytes(name.as_bytes()).map_err(|_| origin.bad(line, format!("'{name}' is no method")))
}

fn add(
    headers: &mut HeaderMap,
    name: &str,
    value: &str,
    line: usize,
    origin: &Origin<'_>,
) -> Result<(), LoadError> {
    let bad = || origin.bad(line, format!("'{name}: {value}' is no header", value = value.trim()));
    let key = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| bad())?;
    let value = HeaderValue::from_str(value.trim()).map_err(|_| bad())?;
    headers.try_append(key, value).map_err(|_| bad())?;
    Ok(())
}
