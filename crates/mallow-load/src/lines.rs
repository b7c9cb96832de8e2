//! Line numbers for error messages.

/// Returns the line of a position, counted from 1.
pub(crate) fn line_of(bytes: &[u8], position: usize) -> usize {
    1 + bytes[..position].iter().filter(|byte| **byte == b'\n').count()
}
