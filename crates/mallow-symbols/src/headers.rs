//! The units of a section of functions, and where each of them lies. Nothing behind their headers is read.

use gimli::{DebugInfo, EndianSlice, RunTimeEndian, UnitHeader};
use std::ops::Range;

/// A unit, and where it lies.
pub(crate) struct Unit<'a> {
    pub(crate) range: Range<usize>,
    pub(crate) header: UnitHeader<EndianSlice<'a, RunTimeEndian>>,
}

/// All of them; none where one is damaged. The bytes must be little-endian.
pub(crate) fn units_in(info: &[u8]) -> Option<Vec<Unit<'_>>> {
    let mut units = Vec::new();
    let mut headers = DebugInfo::new(info, RunTimeEndian::Little).units();
    while let Some(header) = headers.next().ok()? {
        let start = header.debug_info_offset()?.0;
        let end = start.checked_add(header.length_including_self())?;
        units.push(Unit { range: start..end, header });
    }
    Some(units)
}
