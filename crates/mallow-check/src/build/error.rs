//! Why a test cannot be built or run.

use std::fmt;

/// Why a test cannot be built or run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    /// The error message.
    pub sentence: String,
    /// The whole output of the compiler or the command; empty if nothing was run.
    pub output: String,
}

impl BuildError {
    pub(super) fn new(sentence: String) -> BuildError {
        BuildError { sentence, output: String::new() }
    }

    /// One for several, with everything that was printed; none for none.
    pub(super) fn joined(errors: Vec<BuildError>) -> Option<BuildError> {
        errors.into_iter().reduce(|mut first, next| {
            first.sentence = format!("{}; {}", first.sentence, next.sentence);
            first.output.push_str(&next.output);
            first
        })
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for BuildError {}
