//! Files that say what to ask: lists of URLs as siege and vegeta have them, and logs of what was asked before.

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

/// A list of URLs is read whole; one beyond this is no list that somebody wrote.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// What a file asks for.
#[derive(Clone, Debug, Default)]
pub struct UrlFile {
    /// The requests, in the order of the file, or those of a log by how often they occur.
    pub targets: Vec<Target>,
    /// Where they go; none when the file names no host.
    pub base: Option<Url>,
    /// What the reader of the result should know, as sentences.
    pub notes: Vec<String>,
}

/// Reads a list of URLs: siege's `urls.txt`, or vegeta's targets in either format. `base`, when given, stands for
/// every host in it.
///
/// Bodies that it takes from files are looked for beside the list first, then in the current folder.
///
/// # Errors
/// When the file or one that it names cannot be read, holds nothing, or has a line that makes no sense, and, without a
/// base, when it names more than one host or one that may not be loaded.
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

/// The same of a text that was read already; `attach` reads a file that it names.
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

/// Reads a web server's log in the common or the combined format, or as JSON lines, and weighs each request by how
/// often it occurs. Only what reads is taken, GET and HEAD, unless `all_methods`: a log has no bodies.
///
/// # Errors
/// When the file cannot be read or holds no request.
pub fn read_access_log(path: &Path, all_methods: bool) -> Result<UrlFile, LoadError> {
    let file = File::open(path).map_err(|cause| LoadError::CannotRead { path: path.to_owned(), cause })?;
    parse_access_log(BufReader::with_capacity(1 << 16, file), path, all_methods)
}

/// The same of anything that can be read line by line.
///
/// # Errors
/// As [`read_access_log`].
pub fn parse_access_log(reader: impl BufRead, path: &Path, all_methods: bool) -> Result<UrlFile, LoadError> {
    log::read(reader, path, all_methods)
}

#[cfg(test)]
mod tests;
