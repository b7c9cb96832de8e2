//! Why there is no answer: one sentence.

use std::path::Path;

/// A sentence for people that names the cause and, where there is one, the cure.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// A failure from its sentence, without `mallow: ` before it.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }

    /// A failure to create or write a file.
    pub fn writing(path: &Path, error: &std::io::Error) -> Self {
        Self(format!("cannot write {}: {}.", path.display(), reason(error)))
    }

    /// Returns the message.
    pub fn sentence(&self) -> &str {
        &self.0
    }
}

/// Every error of our own crates is a sentence already, but for its end.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let text = without_number(&error.to_string());
        let is_ended = text.ends_with(['.', '?', '!']);
        Self(if is_ended { text } else { text + "." })
    }
}

/// Cuts `(os error 2)`, the number of the words before it.
fn without_number(text: &str) -> String {
    match text.split_once(" (os error ") {
        Some((before, after)) => before.to_owned() + after.split_once(')').map_or("", |(_, rest)| rest),
        None => text.to_owned(),
    }
}

/// The system's words without `(os error 2)`.
pub fn reason(error: &std::io::Error) -> String {
    let words = without_number(&error.to_string());
    let mut characters = words.chars();
    match characters.next() {
        Some(first) => first.to_lowercase().chain(characters).collect(),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_once() {
        for (error, sentence) in
            [("it broke", "it broke."), ("it broke.", "it broke."), ("which one?", "which one?")]
        {
            assert_eq!(Failure::from(std::io::Error::other(error)).sentence(), sentence);
        }
    }

    #[test]
    fn a_reason_is_part_of_a_sentence() {
        assert_eq!(reason(&std::io::Error::from_raw_os_error(13)), "permission denied");
        let failure = Failure::writing(Path::new("/x/y"), &std::io::Error::from_raw_os_error(28));
        assert_eq!(failure.sentence(), "cannot write /x/y: no space left on device.");
    }
}
