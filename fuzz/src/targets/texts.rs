//! Any bytes given to the readers of what allocators, collectors and scripts print end in what they hold or in one named
//! error: never a panic, never an endless loop, never more than the input justifies.

use super::said::said;
use mallow_formats::gc_log::{self, Choice};
use mallow_formats::stackdiff::{aggregation, nio};

/// Statistics that allocators print of themselves.
pub(super) fn allocator_state(data: &[u8]) {
    said(mallow_formats::allocator::read(data).err());
}

/// Logs of Ruby's gc_tracer: never more rows than the input has lines.
pub(super) fn gc_log(data: &[u8]) {
    match gc_log::read(data, &Choice::default()) {
        Ok(log) => assert!(log.rows.len() < data.len()),
        Err(error) => said(Some(error)),
    }
}

/// Two texts, parted by a zero byte, compared as SwiftNIO's script does.
pub(super) fn stackdiff(data: &[u8]) {
    let middle = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (before, after) = data.split_at(middle);
    let (before, after) = (aggregation(before), aggregation(after));
    let mut out = Vec::new();
    // Memory takes everything.
    assert!(nio(&before, &after, &mut out).is_ok());
    assert!(out.starts_with(b"\n### only in AFTER\n"));
}
