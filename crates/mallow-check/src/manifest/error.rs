//! Why a manifest cannot be used, in one sentence that says where.

use crate::did_you_mean::nearest;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Why a manifest cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The file.
    pub path: PathBuf,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The error, as the end of a sentence.
    pub reason: String,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ManifestError { path, line, column, reason } = self;
        write!(f, "{}, line {line}, column {column}: {reason}", path.display())
    }
}

impl std::error::Error for ManifestError {}

impl ManifestError {
    /// The error at the bytes `span` of `text`.
    pub(super) fn at(path: &Path, text: &str, span: Range<usize>, reason: String) -> ManifestError {
        let (line, column) = position(text, span.start);
        ManifestError { path: path.to_owned(), line, column, reason }
    }

    /// The error that the TOML reader or one of our values gave.
    pub(super) fn from_toml(path: &Path, text: &str, error: &toml::de::Error) -> ManifestError {
        ManifestError::at(path, text, error.span().unwrap_or(0..0), readable_message(error.message()))
    }
}

fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    (line, column)
}

/// Rewrites serde's message for people: without the names of Rust's types, and with the key that was meant instead of
/// every possible key.
fn readable_message(message: &str) -> String {
    let message = message.replace('\n', ", ");
    if let Some((key, keys)) = unknown_field(&message) {
        if let Some(table) = elsewhere(key, &keys) {
            return format!("`{key}` is a key of {table}, not of this table");
        }
        return match meant(key, &keys) {
            Some(meant) => format!("there is no key `{key}` here; did you mean `{meant}`?"),
            None => format!("there is no key `{key}` here; there are {}", listed(&keys)),
        };
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("{key} is missing");
    }
    unexpected(&message).unwrap_or(message)
}

/// Keys of other tools, and their names here: too different to be a typing error.
const SYNONYMS: [(&str, &str); 3] = [("command", "cmd"), ("operations", "ops"), ("iterations", "ops")];

/// Keys that only `[gate]` has.
pub(super) const OF_GATE: [&str; 7] =
    ["baselines", "suites", "thresholds", "build", "c_flags", "cxx_flags", "rust_flags"];
/// Keys that only a `[[test]]` has.
pub(super) const OF_TEST: [&str; 9] =
    ["name", "cmd", "source", "args", "ops", "mode", "cwd", "flags", "libs"];

/// The table whose key it is, when this table is the other one.
fn elsewhere(key: &str, keys: &[&str]) -> Option<&'static str> {
    if OF_GATE.contains(&key) && keys.contains(&"cmd") {
        return Some("[gate]");
    }
    (OF_TEST.contains(&key) && keys.contains(&"baselines")).then_some("[[test]]")
}

fn meant<'a>(key: &str, keys: &[&'a str]) -> Option<&'a str> {
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == key).map(|(_, own)| *own);
    let known = synonym.and_then(|own| keys.iter().copied().find(|known| *known == own));
    known.or_else(|| nearest(key, keys.iter().copied()))
}

fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    let (key, rest) = message.strip_prefix("unknown field `")?.split_once("`, expected ")?;
    // Keys are between back quotes, with words between them.
    Some((key, rest.split('`').skip(1).step_by(2).collect()))
}

fn listed(keys: &[&str]) -> String {
    match keys {
        [] => "none".to_owned(),
        [only] => format!("`{only}`"),
        [first @ .., last] => format!("`{}` and `{last}`", first.join("`, `")),
    }
}

/// `invalid type: integer `5`, expected a string` and the like.
fn unexpected(message: &str) -> Option<String> {
    let rest = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))?;
    let (found, wanted) = rest.rsplit_once(", expected ")?;
    let wanted = match wanted {
        "i64" => "a whole number",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" => "a whole number from 0 on",
        "a string" => "a text in quotes",
        "a sequence" => "a list",
        "a map" => "a table",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    let found = match found {
        // `[test]` is easily written for `[[test]]`.
        "map" if wanted == "a list" => "a table; headings of tests have two brackets: [[test]]",
        "map" => "a table",
        "sequence" => "a list",
        other => ["integer ", "boolean ", "floating point ", "string "]
            .into_iter()
            .find_map(|kind| other.strip_prefix(kind))
            .unwrap_or(other)
            .trim_matches('`'),
    };
    Some(format!("here {wanted} is expected, not {found}"))
}
