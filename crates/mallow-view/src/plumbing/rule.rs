//! A row of the table of plumbing.

/// Why a frame is plumbing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The language or library whose plumbing it is.
    pub language: &'static str,
    pub(super) pattern: Pattern,
    /// What such a frame does.
    pub reason: &'static str,
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

pub(super) const fn rule(language: &'static str, pattern: Pattern, reason: &'static str) -> Rule {
    Rule { language, pattern, reason }
}
