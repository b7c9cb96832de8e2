//! Where a JSON text goes wrong, in the words of people.

/// The cause and the place: `missing field ... (line 3, column 7)`.
pub fn placed(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let cause = text.rfind(" at line ").map_or(text.as_str(), |at| &text[..at]);
    format!("{cause} (line {}, column {})", error.line(), error.column())
}
