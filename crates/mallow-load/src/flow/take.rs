//! Extracts a value from a response.

use hyper::HeaderMap;
use hyper::header::HeaderName;
use regex::bytes::Regex;
use serde_json::Value;
use std::sync::Arc;

/// A value of a response.
#[derive(Clone, Debug)]
pub(crate) struct Take {
    /// The index of the value.
    pub(crate) place: usize,
    pub(crate) from: From,
    /// The name of the failure if a response lacks it.
    pub(crate) missing: Arc<str>,
}

/// Where it is found.
#[derive(Clone, Debug)]
pub(crate) enum From {
    /// In a header.
    Header(HeaderName),
    /// The value of a cookie that the response sets.
    Cookie(String),
    /// In JSON, by a path of keys and indices.
    Json(Vec<String>),
    /// What the pattern matches: its first group, or the whole match.
    Pattern(Regex),
}

/// The parts of a response that are kept until its values are extracted.
#[derive(Debug, Default)]
pub(crate) struct ResponseParts {
    pub(crate) headers: HeaderMap,
    /// The beginning of the body, at most [`ResponseParts::BODY_BYTES_MAX`]; empty if no value is extracted from it.
    pub(crate) body: Vec<u8>,
    /// Whether the body is needed.
    pub(crate) wants_body: bool,
}

impl ResponseParts {
    /// The rest of a body is not searched.
    pub(crate) const BODY_BYTES_MAX: usize = 1 << 20;

    /// Appends a part of the body.
    pub(crate) fn add(&mut self, data: &[u8]) {
        if self.wants_body {
            let room = Self::BODY_BYTES_MAX.saturating_sub(self.body.len());
            self.body.extend_from_slice(&data[..data.len().min(room)]);
        }
    }

    /// Discards a response that failed.
    pub(crate) fn clear(&mut self) {
        self.headers.clear();
        self.body.clear();
    }
}

impl Take {
    /// Returns whether it is in the body.
    pub(crate) fn is_of_body(&self) -> bool {
        matches!(self.from, From::Json(_) | From::Pattern(_))
    }

    /// Returns the value, or `None` if the response does not have it. `cookie` looks a cookie up that was just set.
    pub(crate) fn of(
        &self,
        answer: &ResponseParts,
        cookie: impl Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let text = |bytes: &[u8]| Some(std::str::from_utf8(bytes).ok()?.to_owned());
        match &self.from {
            From::Header(name) => text(answer.headers.get(name)?.as_bytes()),
            From::Cookie(name) => cookie(name),
            From::Pattern(pattern) => {
                let found = pattern.captures(&answer.body)?;
                text(found.get(1).or_else(|| found.get(0))?.as_bytes())
            }
            From::Json(path) => {
                let mut at: &Value = &serde_json::from_slice(&answer.body).ok()?;
                for part in path {
                    at = match at {
                        Value::Array(list) => list.get(part.parse::<usize>().ok()?)?,
                        other => other.get(part)?,
                    };
                }
                match at {
                    Value::String(text) => Some(text.clone()),
                    Value::Number(_) | Value::Bool(_) => Some(at.to_string()),
                    Value::Null | Value::Array(_) | Value::Object(_) => None,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &str) -> ResponseParts {
        let mut answer = ResponseParts { wants_body: true, ..ResponseParts::default() };
        answer.headers.insert("x-token", "abc".parse().unwrap());
        answer.add(body.as_bytes());
        answer
    }

    fn taken(from: From, body: &str) -> Option<String> {
        let take = Take { place: 0, from, missing: "".into() };
        take.of(&answer(body), |name| (name == "id").then(|| "7".to_owned()))
    }

    fn json(path: &str) -> From {
        From::Json(path.split('.').map(str::to_owned).collect())
    }

    #[test]
    fn a_value_is_found_where_it_is_said_to_be() {
        let body = r#"{"data": {"list": [{"id": 5}, {"id": "x"}], "ok": true, "no": null}}"#;
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(taken(json("data.list.0.id"), body), some("5"));
        assert_eq!(taken(json("data.list.1.id"), body), some("x"));
        assert_eq!(taken(json("data.ok"), body), some("true"));
        for path in ["data", "data.no", "data.list", "data.list.2.id", "data.list.id", "x", "data.ok.x"] {
            assert_eq!(taken(json(path), body), None, "{path}");
        }
        assert_eq!(taken(json("data"), "no json"), None);
        assert_eq!(taken(From::Header("x-token".parse().unwrap()), ""), some("abc"));
        assert_eq!(taken(From::Header("x-other".parse().unwrap()), ""), None);
        assert_eq!(taken(From::Cookie("id".to_owned()), ""), some("7"));
        let pattern = |text: &str| From::Pattern(Regex::new(text).unwrap());
        assert_eq!(
            taken(pattern(r#"name="csrf" value="([^"]+)""#), r#"<input name="csrf" value="q1">"#),
            some("q1")
        );
        assert_eq!(taken(pattern("[0-9]+"), "a 12 b 13"), some("12"));
        assert_eq!(taken(pattern("z"), "a"), None);
    }

    #[test]
    fn only_the_beginning_of_a_body_is_kept_and_none_where_it_is_not_wanted() {
        let mut answer = answer("");
        answer.add(&vec![b'a'; ResponseParts::BODY_BYTES_MAX]);
        answer.add(b"b");
        assert_eq!(answer.body.len(), ResponseParts::BODY_BYTES_MAX);
        let mut unwanted = ResponseParts::default();
        unwanted.add(b"b");
        assert!(unwanted.body.is_empty());
    }
}
