//! `mallow diff --compat`: comparisons in the output format of other tools' scripts.

use crate::args::Compat;
use crate::{exit_code, output};
use mallow_formats::stackdiff::{self, Counted};
use mallow_query::{Failure, refused};
use std::path::Path;

/// Compares two files.
pub(super) fn run(compat: Compat, before: &Path, after: &Path) -> Result<u8, Failure> {
    let (before, after) = (read(before)?, read(after)?);
    match compat {
        Compat::Nio => output::to_stdout(|out| stackdiff::nio(&before, &after, out))?,
    }
    Ok(exit_code::FINE)
}

fn read(path: &Path) -> Result<Vec<Counted>, Failure> {
    let (stacks, warnings) = stackdiff::of_file(path).map_err(|error| refused(path, &error))?;
    let warnings: Vec<String> =
        warnings.iter().map(|sentence| format!("{}: {sentence}", path.display())).collect();
    output::warn(&warnings);
    Ok(stacks)
}
