//! Flows: requests that one user sends in sequence, with values that are extracted from responses and inserted into later requests.
//!
//! A flow is checked completely when it is read: an unknown value, an invalid pattern or a path without a slash is
//! reported with its line, before any request is sent.

mod raw;
mod take;
mod text;

use crate::LoadError;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderName};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

pub(crate) use take::{ResponseParts, Take};
pub(crate) use text::Text;

/// A flow is written by hand, so a larger file is refused.
const FLOW_BYTES_MAX: u64 = 1 << 20;

/// The values that every flow has: the number of the virtual user, and that of its pass through the flow, both from 1 on.
pub(crate) const GIVEN: [&str; 2] = ["user", "pass"];

/// The steps of a flow.
#[derive(Clone, Debug)]
pub struct Flow {
    pub(crate) steps: Vec<Step>,
    /// The number of values, those of [`GIVEN`] first.
    pub(crate) values: usize,
    /// The headers that every request has, in addition to its own.
    pub(crate) headers: HeaderMap,
}

/// One request of a flow, and what is extracted from its response.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) method: Method,
    pub(crate) path: Text,
    pub(crate) headers: Vec<(HeaderName, Text)>,
    pub(crate) body: Text,
    pub(crate) takes: Vec<Take>,
    /// The name of the failure if its request cannot be sent.
    pub(crate) unsendable: Arc<str>,
}

impl Flow {
    /// Returns the same flow with headers that every request has, unless it sets them itself.
    #[must_use]
    pub fn with_headers(self, headers: HeaderMap) -> Flow {
        Flow { headers, ..self }
    }

    /// The names of the steps, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(|step| step.name.as_str())
    }
}

/// Reads a flow from a file.
///
/// # Errors
/// If it cannot be read, has no step, or has an invalid line.
pub fn read_flow(path: &Path) -> Result<Flow, LoadError> {
    let cannot = |cause| LoadError::CannotRead { path: path.to_owned(), cause };
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(FLOW_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(cannot)?;
    if text.len() as u64 > FLOW_BYTES_MAX {
        return Err(cannot(std::io::Error::other("it is larger than 1 MiB, which no flow is")));
    }
    parse_flow(&text, path)
}

/// Parses a flow from text; `path` names it in errors.
///
/// # Errors
/// As [`read_flow`].
pub fn parse_flow(text: &str, path: &Path) -> Result<Flow, LoadError> {
    raw::parse(text, path)
}

#[cfg(test)]
mod tests;
