//! Stacks of a file in proportion to its size.

use mallow_stacks::{Site, Stacks};
use std::path::Path;

/// What the frames of all sites may come to in any file, and for each byte of it: real ones have a tenth of it.
const FRAMES_ALLOWED: u64 = 2_000_000;
const FRAMES_PER_BYTE: u64 = 16;

/// Cuts stacks whose frames come to far more than their file's size; says so.
pub(crate) fn keep_in_proportion<W>(
    path: &Path,
    stacks: &mut Stacks,
    sites: &[Site<W>],
    warnings: &mut Vec<String>,
) {
    // What comes by stdin has no size beforehand.
    if path.as_os_str() == mallow_files::STREAM {
        return;
    }
    let file_bytes = std::fs::metadata(path).map_or(0, |found| found.len());
    let frames_max = FRAMES_ALLOWED.max(file_bytes.saturating_mul(FRAMES_PER_BYTE));
    if let Some(left) = stacks.cut_to(frames_max, sites) {
        warnings.push(format!(
            "the stacks of {} come to far more frames than its size allows, so they are cut: of each, up to {left} frames are left, and \
             their callers are missing",
            path.display()
        ));
    }
}
