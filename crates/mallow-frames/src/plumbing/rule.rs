//! The plumbing of a language or a library.

/// Which frames of a language or a library are plumbing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The language or library whose plumbing it is.
    pub language: &'static str,
    pub(super) patterns: &'static [Pattern],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// The whole name.
    Is(&'static str),
    /// The beginning of the name.
    Starts(&'static str),
    /// The beginning of the name, and something further on in it.
    StartsAndHas(&'static str, &'static str),
    /// Part of the source file's path. Line tables alone name inlined calls without their namespace (`to_vec`), so
    /// that only the file tells whose they are.
    File(&'static str),
}
