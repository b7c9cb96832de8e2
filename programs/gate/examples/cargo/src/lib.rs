//! What the project is about: headers.

/// The parts of a header's value.
pub fn split(value: &str) -> Vec<String> {
    value.split(',').map(|part| part.trim().to_owned()).collect()
}
