//! Which units of a file's DWARF are needed for some addresses, so that the others need not be parsed.
//!
//! `.debug_aranges` says which unit holds an address. Units that it lists and that hold none of the addresses are covered by the
//! header of a type unit, which a reader of functions passes over: everything else stays where it is, so that offsets hold. Units
//! that it does not list (other compilers write none) are all kept. A unit may name its functions by those of any other one; where
//! a unit that is kept has the form for that, all of them are.
//!
//! Layouts: DWARF 5, sections 7.5.1 (unit headers), 7.5.3 (abbreviations) and 7.21 (address ranges).

use std::ops::Range;

use gimli::{DebugAranges, DebugInfo, Reader, UnitType};
use rustc_hash::FxHashSet;

use crate::reader::Slice;

/// Bytes of the header that covers units: length 4, version 2, unit type 1, address size 1, abbreviations 4, signature 8, type 4.
const COVER_BYTES: usize = 24;
const COVER_BYTES_MAX: usize = 0xffff_ff00;

/// Runs of units of `.debug_info` that none of `svmas` (sorted) lies in, each to be covered. None where that is not known, or would
/// not be safe; the bytes must be little-endian.
pub(crate) fn unneeded(
    info: &[u8],
    aranges: Slice<'_>,
    abbreviations: Slice<'_>,
    svmas: &[u64],
) -> Option<Vec<Range<usize>>> {
    let (listed, needed) = units_of(aranges, svmas)?;
    runs(info, abbreviations, |unit| needed.contains(&unit) || !listed.contains(&unit))
}

/// The units that `.debug_aranges` lists, and those of them that hold some of the addresses.
fn units_of(aranges: Slice<'_>, svmas: &[u64]) -> Option<(FxHashSet<usize>, FxHashSet<usize>)> {
    let (mut listed, mut needed) = (FxHashSet::default(), FxHashSet::default());
    let mut headers = DebugAranges::from(aranges).headers();
    while let Some(header) = headers.next().ok()? {
        let unit = header.debug_info_offset().0;
        listed.insert(unit);
        let mut entries = header.entries();
        while let Some(entry) = entries.next().ok()? {
            let Range { start, end } = entry.address()..entry.address().checked_add(entry.length())?;
            let first = svmas.partition_point(|svma| *svma < start);
            if svmas.get(first).is_some_and(|svma| *svma < end) {
                needed.insert(unit);
            }
        }
    }
    (!listed.is_empty()).then_some((listed, needed))
}

/// Runs of units that are not kept; none where a unit that is kept may refer to another one.
fn runs(info: &[u8], abbreviations: Slice<'_>, is_kept: impl Fn(usize) -> bool) -> Option<Vec<Range<usize>>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut harmless = FxHashSet::default();
    let mut units = DebugInfo::new(info, gimli::RunTimeEndian::Little).units();
    while let Some(header) = units.next().ok()? {
        let start = header.debug_info_offset()?.0;
        let end = start.checked_add(header.length_including_self())?;
        if header.type_() == UnitType::Compilation && !is_kept(start) {
            match runs.last_mut() {
                Some(before) if before.end == start && end - before.start <= COVER_BYTES_MAX => {
                    before.end = end
                }
                _ => runs.push(start..end),
            }
        } else if harmless.insert(header.debug_abbrev_offset().0)
            && refers_to_units(abbreviations, header.debug_abbrev_offset().0)?
        {
            return None;
        }
    }
    runs.retain(|units| (COVER_BYTES..=COVER_BYTES_MAX).contains(&units.len()));
    Some(runs)
}

/// Returns whether a table of abbreviations has an attribute that refers to an entry of any unit.
fn refers_to_units(abbreviations: Slice<'_>, offset: usize) -> Option<bool> {
    let mut table = abbreviations;
    table.skip(offset).ok()?;
    loop {
        // The code, 0 behind the last; the tag; whether it has children.
        if table.read_uleb128().ok()? == 0 {
            return Some(false);
        }
        table.read_uleb128().ok()?;
        table.read_u8().ok()?;
        loop {
            let (name, form) = (table.read_uleb128().ok()?, table.read_uleb128().ok()?);
            // An indirect form stands beside the value, and may be any.
            if [gimli::DW_FORM_ref_addr, gimli::DW_FORM_indirect]
                .iter()
                .any(|other| u64::from(other.0) == form)
            {
                return Some(true);
            }
            if form == u64::from(gimli::DW_FORM_implicit_const.0) {
                table.read_sleb128().ok()?;
            }
            if (name, form) == (0, 0) {
                break;
            }
        }
    }
}

/// Writes the header of a type unit over the first of some units; it reaches over all of them.
pub(crate) fn cover(units: &mut [u8]) {
    const UNIT_TYPE: u8 = gimli::DW_UT_type.0;
    const ADDRESS_BYTES: u8 = 8;
    let length = units.len() as u32 - 4;
    units[..COVER_BYTES].fill(0);
    units[..4].copy_from_slice(&length.to_le_bytes());
    units[4..8].copy_from_slice(&[5, 0, UNIT_TYPE, ADDRESS_BYTES]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ObjectSection};

    fn slice(bytes: &[u8]) -> Slice<'_> {
        Slice::new(bytes, gimli::RunTimeEndian::Little)
    }

    #[test]
    fn units_that_are_listed_and_not_needed_are_covered_and_no_other() {
        let scratch = tempfile::tempdir().unwrap();
        let app = scratch.path().join("app");
        let source = |name: &str| {
            let path = scratch.path().join(format!("{name}.c"));
            std::fs::write(&path, format!("int {name}(int x) {{ return x + 1; }}\n")).unwrap();
            path
        };
        let status = std::process::Command::new("cc")
            .args(["-g", "-O0", "-shared", "-fPIC", "-gz=none", "-o"])
            .arg(&app)
            .args(["first", "second", "third"].map(source))
            .status();
        assert!(status.unwrap().success());
        let bytes = std::fs::read(&app).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let section = |name: &str| file.section_by_name(name).unwrap().uncompressed_data().unwrap();
        let (info, aranges, abbreviations) =
            (section(".debug_info"), section(".debug_aranges"), section(".debug_abbrev"));
        let address = |name: &[u8]| {
            use object::ObjectSymbol;
            file.symbols().find(|symbol| symbol.name_bytes() == Ok(name)).unwrap().address()
        };
        let mut units = DebugInfo::new(&info, gimli::RunTimeEndian::Little).units();
        let mut starts = Vec::new();
        while let Some(header) = units.next().unwrap() {
            starts.push(header.debug_info_offset().unwrap().0);
        }
        assert_eq!(starts.len(), 3);
        let unneeded = |svmas: &[u64]| unneeded(&info, slice(&aranges), slice(&abbreviations), svmas);
        let second = address(b"second");
        assert_eq!(unneeded(&[second, second + 1]), Some(vec![0..starts[1], starts[2]..info.len()]));
        assert_eq!(unneeded(&[address(b"first"), second, address(b"third")]), Some(vec![]));
        let all = std::iter::once(0..info.len()).collect();
        assert_eq!(unneeded(&[1]), Some(all));
        assert!(super::unneeded(&info, slice(&[]), slice(&abbreviations), &[second]).is_none());
        // A reader finds one unit where there were two, and it has no functions.
        let mut covered = info.to_vec();
        cover(&mut covered[starts[1]..]);
        let mut units = DebugInfo::new(&covered, gimli::RunTimeEndian::Little).units();
        assert_eq!(units.next().unwrap().unwrap().type_(), UnitType::Compilation);
        let last = units.next().unwrap().unwrap();
        assert!(matches!(last.type_(), UnitType::Type { .. }));
        assert_eq!(last.length_including_self(), info.len() - starts[1]);
        assert!(units.next().unwrap().is_none());
    }

    #[test]
    fn a_table_that_refers_to_other_units_is_told_from_one_that_does_not() {
        let table = |form: gimli::DwForm| {
            let [name, form] = [gimli::DW_AT_abstract_origin.0 as u8, form.0 as u8];
            [1, gimli::DW_TAG_inlined_subroutine.0 as u8, 0, name, form, 0, 0, 0]
        };
        let refers = |bytes: &[u8]| refers_to_units(slice(bytes), 0);
        assert_eq!(refers(&table(gimli::DW_FORM_ref4)), Some(false));
        assert_eq!(refers(&table(gimli::DW_FORM_ref_addr)), Some(true));
        assert_eq!(refers(&table(gimli::DW_FORM_indirect)), Some(true));
        assert_eq!(refers(&table(gimli::DW_FORM_ref_addr)[..4]), None);
        let constant = [1, 0x34, 0, 0x3a, gimli::DW_FORM_implicit_const.0 as u8, 0x10, 0, 0, 0];
        assert_eq!(refers(&constant), Some(false));
    }
}
