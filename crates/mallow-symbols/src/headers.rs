//! The units of a section of functions, and where each of them lies. Nothing behind their headers is read.

use crate::declarations::read_declaration;
use crate::reader::Slice;
use gimli::{
    Abbreviations, AttributeValue, DebugAbbrev, DebugAbbrevOffset, DebugInfo, EndianSlice, Reader,
    RunTimeEndian, UnitHeader,
};
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

/// The first abbreviation of a unit, and none else: with most compilers it is that of the unit's own entry. Parsing all of them, for each of a thousand units of
/// which only that entry is read, takes as long as everything else. None where it cannot be read.
pub(crate) fn first_abbreviation(unit: &Unit<'_>, abbreviations: Slice<'_>) -> Option<Abbreviations> {
    let mut rest = abbreviations;
    rest.skip(unit.header.debug_abbrev_offset().0).ok()?;
    let whole = rest;
    read_declaration(&mut rest, |_, _| {})?.then_some(())?;
    let mut alone = whole.slice()[..whole.len() - rest.len()].to_vec();
    // The code behind the last one.
    alone.push(0);
    let table = DebugAbbrev::new(&alone, RunTimeEndian::Little);
    table.abbreviations(DebugAbbrevOffset(0)).ok()
}

/// What a unit says of itself.
pub(crate) struct Root {
    /// Whether it has code, or another file has the rest of it.
    pub(crate) has_code: bool,
    /// Where the lines of its source begin; none where it has none.
    pub(crate) line_program: Option<usize>,
}

/// Reads the entry of a unit itself. None where it cannot be read, or `table` does not have its abbreviation.
pub(crate) fn root(unit: &Unit<'_>, table: &Abbreviations) -> Option<Root> {
    let of_code = [
        gimli::DW_AT_low_pc,
        gimli::DW_AT_high_pc,
        gimli::DW_AT_ranges,
        gimli::DW_AT_dwo_name,
        gimli::DW_AT_GNU_dwo_name,
        gimli::DW_AT_GNU_dwo_id,
    ];
    let mut entries = unit.header.entries_raw(table, None).ok()?;
    let abbreviation = entries.read_abbreviation().ok()??;
    let mut root = Root { has_code: false, line_program: None };
    for specification in abbreviation.attributes() {
        let attribute = entries.read_attribute(*specification).ok()?;
        root.has_code |= of_code.contains(&attribute.name());
        if attribute.name() == gimli::DW_AT_stmt_list {
            let AttributeValue::DebugLineRef(place) = attribute.value() else { return None };
            root.line_program = Some(place.0);
        }
    }
    Some(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_abbreviation_is_read_alone() {
        // A unit of DWARF 4 whose abbreviations begin behind two bytes; it has one entry, of abbreviation 7.
        let info = [8, 0, 0, 0, 4, 0, 2, 0, 0, 0, 8, 7];
        let constant = gimli::DW_FORM_implicit_const.0 as u8;
        let table =
            [9, 9, 7, 0x11, 1, 0x03, 0x08, 0x3a, constant, 0x7f, 0, 0, 8, 0x2e, 0, 0x03, 0x08, 0, 0, 0];
        let units = units_in(&info).unwrap();
        let first = |bytes| first_abbreviation(&units[0], Slice::little(bytes));
        let abbreviations = first(&table).unwrap();
        let root = abbreviations.get(7).unwrap();
        assert_eq!((root.tag(), root.attributes().len()), (gimli::DW_TAG_compile_unit, 2));
        assert!(abbreviations.get(8).is_none());
        assert!(first(&table[..9]).is_none(), "cut off within it");
        assert!(first(&[9, 9, 0]).is_none(), "no abbreviation");
    }
}
