//! An earlier soak, read back from the document that `--json` printed.

use super::{MetricsJson, SCHEMA};
use crate::spelling::is_word;
use mallow_growth::Verdict;
use mallow_view::soak::Side;
use serde::Deserialize;

/// The versions before, which differ in how verdicts are spelled.
const BEFORE: [&str; 2] = ["mallow.soak/1", "mallow.soak/2"];

/// The part of the document that counts.
#[derive(Deserialize)]
struct Document {
    schema: String,
    verdict: String,
    #[serde(rename = "figures")]
    metrics: MetricsJson,
}

/// Why a document cannot be compared with: a sentence.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct EarlierError(String);

/// The metrics of an earlier soak. `name` is the file's, for the error.
///
/// # Errors
/// It is no such document, or one of a soak that proves nothing.
pub fn earlier(text: &str, name: &str) -> Result<Side, EarlierError> {
    let document: Document = serde_json::from_str(text)
        .map_err(|error| EarlierError(format!("{name} is not what `mallow soak --json` prints: {error}.")))?;
    if document.schema != SCHEMA && !BEFORE.contains(&document.schema.as_str()) {
        return Err(EarlierError(format!(
            "{name} has the schema {}; {SCHEMA} was expected.",
            document.schema
        )));
    }
    if is_word(&document.verdict, Verdict::Invalid.word()) {
        return Err(EarlierError(format!(
            "{name} is of a soak that proves nothing (INVALID); make another one."
        )));
    }
    Ok(document.metrics.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::SoakJson;
    use mallow_samples::soak as sample;
    use mallow_text::soak::text::Page;

    fn read_text(text: &str) -> Result<Side, String> {
        earlier(text, "FILE").map_err(|error| error.to_string())
    }

    #[test]
    fn a_document_is_read_back() {
        let report = sample::leaking();
        let text = serde_json::to_string(&SoakJson::of(&Page::of(&report))).unwrap_or_default();
        assert_eq!(read_text(&text), Ok(Side::of(&report)));
        let before = text.replace("mallow.soak/3", "mallow.soak/2").replace("\"leaking\"", "\"LEAKING\"");
        assert_eq!(read_text(&before), Ok(Side::of(&report)), "the version before");
    }

    #[test]
    fn other_files_are_refused() {
        let invalid = sample::invalid();
        let text = serde_json::to_string(&SoakJson::of(&Page::of(&invalid))).unwrap_or_default();
        assert!(read_text(&text).is_err_and(|sentence| sentence.contains("INVALID")));
        let before = text.replace("mallow.soak/3", "mallow.soak/2").replace("\"invalid\"", "\"INVALID\"");
        assert!(read_text(&before).is_err_and(|sentence| sentence.contains("INVALID")));
        let other = text.replace("mallow.soak/3", "mallow.soak/9");
        assert_eq!(
            read_text(&other),
            Err("FILE has the schema mallow.soak/9; mallow.soak/3 was expected.".into())
        );
        assert!(
            read_text("{}")
                .is_err_and(|sentence| sentence.starts_with("FILE is not what `mallow soak --json` prints"))
        );
    }
}
