//! Files that list requests: URL lists in siege's and vegeta's formats, and access logs.

mod log;
mod origin;
mod siege;
mod vegeta;

use crate::lines::line_of;
use crate::{LoadError, Target, Url};
use origin::Origin;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// A URL list is read into memory; a larger file is refused.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// The contents of such a file.
#[derive(Clone, Debug, Default)]
pub struct UrlFile {
    /// The requests, in the order of the file, or those of a log by frequency.
    pub targets: Vec<Target>,
    /// The server; `None` if the file names no host.
    pub base: Option<Url>,
    /// Notes for the user, as sentences.
    pub notes: Vec<String>,
}

/// Reads a list of URLs: siege's `urls.txt`, or vegeta's targets in either format. `base`, if given, replaces every
/// host in it.
///
/// Body files are searched beside the list first, then in the current folder.
///
/// # Errors
/// If the file or one that it names cannot be read, is empty, or has an invalid line, and, without a base, if it
/// names more than one host or one that may not be loaded.
pub fn read_urls(path: &Path, base: Option<&Url>, allow_remote: bool) -> Result<UrlFile, LoadError> {
    let cannot = |cause| LoadError::CannotRead { path: path.to_owned(), cause };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LIST_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(cannot)?;
    if bytes.len() as u64 > LIST_BYTES_MAX {
        return Err(cannot(std::io::Error::other("it is larger than 256 MiB, which no list of URLs is")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = line_of(error.as_bytes(), error.utf8_error().valid_up_to());
        LoadError::BadLine { path: path.to_owned(), line, what: "it is not UTF-8".to_owned() }
    })?;
    let beside = path.parent().unwrap_or(Path::new(""));
    parse_urls(&text, path, base, allow_remote, &mut |name| {
        let mut bytes = Vec::new();
        let file = File::open(beside.join(name)).or_else(|_| File::open(name))?;
        file.take(LIST_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    })
}

/// Parses a list of URLs from text; `attach` reads a file that it names.
///
/// # Errors
/// As [`read_urls`].
pub fn parse_urls(
    text: &str,
    path: &Path,
    base: Option<&Url>,
    allow_remote: bool,
    attach: &mut dyn FnMut(&Path) -> std::io::Result<Vec<u8>>,
) -> Result<UrlFile, LoadError> {
    let mut origin = Origin::new(path, base, allow_remote);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first =
        text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or("");
    let targets = if first.starts_with('{') {
        vegeta::json(text, &mut origin)?
    } else if vegeta::is_request(first) {
        vegeta::http(text, &mut origin, attach)?
    } else {
        siege::urls(text, &mut origin, attach)?
    };
    if targets.is_empty() {
        return Err(LoadError::NoTargets { path: path.to_owned(), hint: "write one URL on each line" });
    }
    Ok(UrlFile { targets, base: origin.base(), notes: Vec::new() })
}

/// Reads a web server's log in the common or the combined format, or as JSON lines, and weighs each request by its
/// frequency. Only GET and HEAD are used, unless `all_methods`: a log has no bodies.
///
/// # Errors
/// If the file cannot be read or holds no request.
pub fn read_access_log(path: &Path, all_methods: bool) -> Result<UrlFile, LoadError> {
    let file = File::open(path).map_err(|cause| LoadError::CannotRead { path: path.to_owned(), cause })?;
    parse_access_log(BufReader::with_capacity(1 << 16, file), path, all_methods)
}

/// Parses an access log from any reader.
///
/// # Errors
/// As [`read_access_log`].
pub fn parse_access_log(reader: impl BufRead, path: &Path, all_methods: bool) -> Result<UrlFile, LoadError> {
    log::read(reader, path, all_methods)
}

#[cfg(test)]
mod tests;
