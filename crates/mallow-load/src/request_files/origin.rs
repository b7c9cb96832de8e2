//! The file that is being read: its name in errors, and the one host that its URLs share.

use crate::address::{Parts, parts_of};
use crate::{LoadError, Url, parse_url};
use std::path::Path;

/// Where targets come from.
pub(super) struct Origin<'a> {
    path: &'a Path,
    /// Replaces every host.
    base: Option<&'a Url>,
    allow_remote: bool,
    /// The first host in the file, as written, and its resolved URL.
    found: Option<(String, Url)>,
}

impl<'a> Origin<'a> {
    pub(super) fn new(path: &'a Path, base: Option<&'a Url>, allow_remote: bool) -> Origin<'a> {
        Origin { path, base, allow_remote, found: None }
    }

    /// Returns the server of the requests.
    pub(super) fn base(self) -> Option<Url> {
        self.base.cloned().or(self.found.map(|(_, url)| url))
    }

    /// Returns the error of a line, counted from 1.
    pub(super) fn bad(&self, line: usize, what: impl Into<String>) -> LoadError {
        LoadError::BadLine { path: self.path.to_owned(), line, what: what.into() }
    }

    /// Returns the path of a URL on a line. All URLs must have the same host, unless a base replaces it.
    pub(super) fn path_of(&mut self, url: &str, line: usize) -> Result<String, LoadError> {
        let Parts { host, is_tls, path } =
            parts_of(url).map_err(|what| self.bad(line, format!("'{url}': {what}")))?;
        let (None, Some(host)) = (self.base, host) else { return Ok(path) };
        let host = if is_tls { format!("https://{host}") } else { host };
        match &self.found {
            Some((first, _)) if *first == host => {}
            Some((first, _)) => {
                let what = format!(
                    "'{host}' is another server than '{first}' above; only one can be loaded at a time"
                );
                return Err(self.bad(line, what));
            }
            None => {
                let url = parse_url(&host, self.allow_remote).map_err(|error| match error {
                    LoadError::BadUrl { what, .. } => self.bad(line, what),
                    error => error,
                })?;
                self.found = Some((host, url));
            }
        }
        Ok(path)
    }

    /// Handles the result of reading a file that a line names.
    pub(super) fn attached(
        &self,
        name: &str,
        bytes: std::io::Result<Vec<u8>>,
        line: usize,
    ) -> Result<bytes::Bytes, LoadError> {
        bytes.map(Into::into).map_err(|cause| self.bad(line, format!("cannot read '{name}': {cause}")))
    }
}
