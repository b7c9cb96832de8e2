//! A flow as it is written in its file, and its conversion.

use super::take::From;
use super::text::{Encoding, is_name};
use super::{Flow, GIVEN, Step, Take, Text};
use crate::LoadError;
use crate::lines::line_of;
use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use regex::bytes::Regex;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFlow {
    #[serde(default)]
    step: Vec<Spanned<RawStep>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    name: Option<String>,
    get: Option<String>,
    post: Option<String>,
    put: Option<String>,
    patch: Option<String>,
    delete: Option<String>,
    head: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    form: Option<BTreeMap<String, String>>,
    json: Option<serde_json::Value>,
    body: Option<String>,
    #[serde(default)]
    take: BTreeMap<String, RawTake>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTake {
    header: Option<String>,
    cookie: Option<String>,
    json: Option<String>,
    regex: Option<String>,
}

/// Parses the whole file.
pub(super) fn parse(text: &str, path: &Path) -> Result<Flow, LoadError> {
    let wrong = |span: Option<Range<usize>>, what: String| LoadError::BadLine {
        path: path.to_owned(),
        line: line_of(text.as_bytes(), span.map_or(0, |span| span.start).min(text.len())),
        what,
    };
    let raw: RawFlow =
        toml::from_str(text).map_err(|error| wrong(error.span(), error.message().to_owned()))?;
    if raw.step.is_empty() {
        return Err(LoadError::NoTargets {
            path: path.to_owned(),
            hint: "write a [[step]] with get = \"/path\" or post = \"/path\" for each",
        });
    }
    let mut names: Vec<String> = GIVEN.map(str::to_owned).to_vec();
    let mut steps = Vec::new();
    for (index, raw) in raw.step.iter().enumerate() {
        let step = step(raw.as_ref(), index, &mut names).map_err(|what| wrong(Some(raw.span()), what))?;
        steps.push(step);
    }
    Ok(Flow { steps, values: names.len(), headers: HeaderMap::new() })
}

/// Converts a step of the flow. Later steps may use the values that it extracts.
fn step(raw: &RawStep, index: usize, names: &mut Vec<String>) -> Result<Step, String> {
    let (method, path) = request(raw)?;
    let name = raw.name.clone().unwrap_or_else(|| format!("{method} {path}"));
    if !path.starts_with('/') {
        return Err(format!("the path {path:?} begins with no slash; the server is the one of --url"));
    }
    let text = |text: &str, encoding| {
        let place_of = |name: &str| names.iter().position(|known| known == name);
        Text::parse(text, encoding, &place_of).map_err(|unknown| {
            format!("`{{{unknown}}}` is taken by no step before this one (a brace by itself is `{{{{`)")
        })
    };
    let path = text(path, Encoding::Percent)?;
    let mut headers = Vec::new();
    let (body, kind) = body(raw, &text)?;
    if let Some(kind) =
        kind.filter(|_| !raw.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")))
    {
        headers.push((CONTENT_TYPE, text(kind, Encoding::Raw)?));
    }
    for (name, value) in &raw.headers {
        let header: HeaderName = name.parse().map_err(|_| format!("{name:?} is no header's name"))?;
        HeaderValue::from_str(value).map_err(|_| format!("{value:?} is no header's value"))?;
        headers.push((header, text(value, Encoding::Raw)?));
    }
    let mut takes = Vec::new();
    let mut taken = names.clone();
    for (value, raw) in &raw.take {
        if !is_name(value) || GIVEN.contains(&value.as_str()) {
            return Err(format!(
                "a value cannot be called {value:?}: names are letters, digits and `_`, and `user` and `pass` are there already"
            ));
        }
        let known = taken.iter().position(|known| known == value);
        let place = known.unwrap_or_else(|| {
            taken.push(value.clone());
            taken.len() - 1
        });
        let (from, place_in_words) = from(value, raw)?;
        let missing = format!("step {} ({name}): no `{value}` in the answer ({place_in_words})", index + 1);
        takes.push(Take { place, from, missing: missing.into() });
    }
    *names = taken;
    let unsendable = format!("step {} ({name}): a value cannot stand in its request", index + 1).into();
    Ok(Step { name, method, path, headers, body, takes, unsendable })
}

/// Returns the method and the path.
fn request(raw: &RawStep) -> Result<(Method, &str), String> {
    let all = [
        (Method::GET, &raw.get),
        (Method::POST, &raw.post),
        (Method::PUT, &raw.put),
        (Method::PATCH, &raw.patch),
        (Method::DELETE, &raw.delete),
        (Method::HEAD, &raw.head),
    ];
    let mut given = all.into_iter().filter_map(|(method, path)| Some((method, path.as_deref()?)));
    match (given.next(), given.next()) {
        (Some(request), None) => Ok(request),
        (None, _) => {
            Err("a step needs a request: get, post, put, patch, delete or head, with its path".to_owned())
        }
        (Some(_), Some(_)) => Err("a step is one request; write a [[step]] for each".to_owned()),
    }
}

/// Returns the body and its implied `Content-Type`.
fn body(
    raw: &RawStep,
    text: &dyn Fn(&str, Encoding) -> Result<Text, String>,
) -> Result<(Text, Option<&'static str>), String> {
    match (&raw.form, &raw.json, &raw.body) {
        (None, None, None) => Ok((Text::empty(), None)),
        (Some(form), None, None) => {
            let mut fields = Vec::new();
            for (name, value) in form {
                fields.push((name.clone(), text(value, Encoding::Raw)?));
            }
            Ok((Text::form(&fields), Some("application/x-www-form-urlencoded")))
        }
        // A brace in JSON is followed by a quote, so only intended names are replaced.
        (None, Some(json), None) => Ok((text(&json.to_string(), Encoding::Json)?, Some("application/json"))),
        (None, None, Some(body)) => Ok((text(body, Encoding::Raw)?, None)),
        _ => Err("a step has one body: form, json or body".to_owned()),
    }
}

/// Returns where a value is found, and the same in words.
fn from(value: &str, raw: &RawTake) -> Result<(From, String), String> {
    match (&raw.header, &raw.cookie, &raw.json, &raw.regex) {
        (Some(name), None, None, None) => {
            let header = name.parse().map_err(|_| format!("{name:?} is no header's name"))?;
            Ok((From::Header(header), format!("header {name}")))
        }
        (None, Some(name), None, None) => Ok((From::Cookie(name.clone()), format!("cookie {name}"))),
        (None, None, Some(path), None) => {
            let parts = path.split('.').map(str::to_owned).collect();
            Ok((From::Json(parts), format!("json {path}")))
        }
        (None, None, None, Some(pattern)) => {
            let regex = Regex::new(pattern)
                .map_err(|error| format!("the pattern of `{value}` makes no sense: {error}"))?;
            Ok((From::Pattern(regex), format!("regex {pattern}")))
        }
        _ => Err(format!("`take.{value}` needs one place: header, cookie, json or regex")),
    }
}
