//! Profiles as other tools' files, one file per format.
//!
//! A format that cannot hold a figure leaves it out, and the writer says so in its warnings; `docs/guide/formats.md` lists it too.

pub mod flamegraph;

use mallow_profile::{Measure, Profile};
use std::io::{self, Write};

/// A kind of file that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExportFormat {
    /// Our own trace, without events.
    Mallow,
}

impl ExportFormat {
    /// Every format.
    pub const ALL: [ExportFormat; 1] = [ExportFormat::Mallow];

    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            ExportFormat::Mallow => "mallow",
        }
    }

    /// The format of the word.
    pub fn of_word(word: &str) -> Option<ExportFormat> {
        ExportFormat::ALL.into_iter().find(|format| format.word() == word)
    }
}

/// What can be chosen. A format takes what it has a use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// The figure of a format that holds only one.
    pub measure: Measure,
}

/// Writes a profile; gives sentences about what the format could not hold.
///
/// # Errors
/// What `out` refused.
pub fn write(
    profile: &Profile,
    format: ExportFormat,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    let _ = options;
    match format {
        ExportFormat::Mallow => crate::native::write(profile, "mallow", out).map(|()| Vec::new()),
    }
}
