//! Which units of a file's DWARF are needed for some addresses, so that the others need not be parsed.
//!
//! `.debug_aranges` says which unit holds an address. Units that it lists and that hold none of the addresses are covered by the
//! header of a type unit, which a reader of functions passes over: everything else stays where it is, so that offsets hold. Units
//! that it does not list (other compilers write none) are kept, but for those that have no code: there are more of them than of all others where
//! crates of Rust are optimised as one. A unit may name its functions by those of any other one, which is kept too (`origins.rs`).
//!
//! Layouts: DWARF 5, sections 6.2.4 (headers of line programs), 7.5.1 (unit headers) and 7.21 (address ranges).

use std::ops::Range;

use gimli::{Abbreviations, DebugAranges, Reader, UnitType};
use rustc_hash::FxHashSet;

use crate::headers::{Unit, first_abbreviation, root, units_in};
use crate::origins::Origins;
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
    lines: Slice<'_>,
    svmas: &[u64],
) -> Option<Vec<Range<usize>>> {
    let (listed, needed) = units_of(aranges, svmas, |_| ())?;
    let units = units_in(info)?;
    let mut origins = Origins::new(&units, abbreviations);
    let mut kept = FxHashSet::default();
    for unit in units.iter().filter(|unit| unit.header.type_() == UnitType::Compilation) {
        let start = unit.range.start;
        let is_read = match listed.contains(&start) {
            true => needed.contains(&start),
            false => {
                let by_first = first_abbreviation(unit, abbreviations)
                    .and_then(|table| has_no_code(unit, &table, lines));
                !match by_first {
                    Some(has_none) => has_none,
                    None => has_no_code(unit, &origins.table(unit)?.entries, lines)?,
                }
            }
        };
        if is_read {
            kept.insert(start);
            origins.scan(unit)?;
        }
    }
    kept.extend(origins.into_found());
    Some(runs(&units, |unit| {
        unit.header.type_() != UnitType::Compilation || kept.contains(&unit.range.start)
    }))
}

/// Where the last unit begins that lookups of `svmas` (sorted) need, if `.debug_aranges` says of each of them which units hold it. The names of functions may be
/// in later ones.
pub(crate) fn last_needed(aranges: Slice<'_>, svmas: &[u64]) -> Option<usize> {
    let mut is_held = vec![false; svmas.len()];
    let (_, needed) = units_of(aranges, svmas, |held| is_held[held].fill(true))?;
    needed.into_iter().max().filter(|_| is_held.iter().all(|is_held| *is_held))
}

/// Whether a unit says of itself that it has no code, and no line of its source has an address.
fn has_no_code(unit: &Unit<'_>, table: &Abbreviations, lines: Slice<'_>) -> Option<bool> {
    let root = root(unit, table)?;
    match root.line_program {
        _ if root.has_code => Some(false),
        Some(place) => has_no_lines(lines, place),
        None => Some(true),
    }
}

/// Whether a line program is a header and nothing behind it.
fn has_no_lines(mut lines: Slice<'_>, place: usize) -> Option<bool> {
    lines.skip(place).ok()?;
    let (length, format) = lines.read_initial_length().ok()?;
    let mut program = lines.split(length).ok()?;
    if program.read_u16().ok()? >= 5 {
        // Sizes of an address and of a segment selector.
        program.skip(2).ok()?;
    }
    Some(program.read_length(format).ok()? == program.len())
}

/// The units that `.debug_aranges` lists, and those of them that hold some of the addresses; `held` is called with the indices of these.
fn units_of(
    aranges: Slice<'_>,
    svmas: &[u64],
    mut held: impl FnMut(Range<usize>),
) -> Option<(FxHashSet<usize>, FxHashSet<usize>)> {
    let (mut listed, mut needed) = (FxHashSet::default(), FxHashSet::default());
    let mut headers = DebugAranges::from(aranges).headers();
    while let Some(header) = headers.next().ok()? {
        let unit = header.debug_info_offset().0;
        listed.insert(unit);
        let mut entries = header.entries();
        while let Some(entry) = entries.next().ok()? {
            let Range { start, end } = entry.address()..entry.address().checked_add(entry.length())?;
            let first = svmas.partition_point(|svma| *svma < start);
            let behind = first + svmas[first..].partition_point(|svma| *svma < end);
            if first < behind {
                needed.insert(unit);
                held(first..behind);
            }
        }
    }
    (!listed.is_empty()).then_some((listed, needed))
}

/// Runs of units that are not kept.
fn runs(units: &[Unit<'_>], is_kept: impl Fn(&Unit<'_>) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for Unit { range: Range { start, end }, .. } in units.iter().filter(|unit| !is_kept(unit)) {
        match runs.last_mut() {
            Some(before) if before.end == *start && end - before.start <= COVER_BYTES_MAX => {
                before.end = *end
            }
            _ => runs.push(*start..*end),
        }
    }
    runs.retain(|units| (COVER_BYTES..=COVER_BYTES_MAX).contains(&units.len()));
    runs
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
        let [info, aranges, abbreviations, lines] =
            [".debug_info", ".debug_aranges", ".debug_abbrev", ".debug_line"].map(section);
        let address = |name: &[u8]| {
            use object::ObjectSymbol;
            file.symbols().find(|symbol| symbol.name_bytes() == Ok(name)).unwrap().address()
        };
        let mut units = gimli::DebugInfo::new(&info, gimli::RunTimeEndian::Little).units();
        let mut starts = Vec::new();
        while let Some(header) = units.next().unwrap() {
            starts.push(header.debug_info_offset().unwrap().0);
        }
        assert_eq!(starts.len(), 3);
        let with = |aranges: &[u8], svmas: &[u64]| {
            unneeded(&info, slice(aranges), slice(&abbreviations), slice(&lines), svmas)
        };
        let unneeded = |svmas: &[u64]| with(&aranges, svmas);
        let second = address(b"second");
        assert_eq!(unneeded(&[second, second + 1]), Some(vec![0..starts[1], starts[2]..info.len()]));
        assert_eq!(unneeded(&[address(b"first"), second, address(b"third")]), Some(vec![]));
        let all = std::iter::once(0..info.len()).collect();
        assert_eq!(unneeded(&[1]), Some(all));
        assert!(with(&[], &[second]).is_none());
        // Of a unit that is not listed: it has code.
        let list = u32::from_le_bytes(aranges[..4].try_into().unwrap()) as usize + 4;
        assert_eq!(with(&aranges[list..], &[second]), Some(std::iter::once(starts[2]..info.len()).collect()));
        // A reader finds one unit where there were two, and it has no functions.
        let mut covered = info.to_vec();
        cover(&mut covered[starts[1]..]);
        let mut units = gimli::DebugInfo::new(&covered, gimli::RunTimeEndian::Little).units();
        assert_eq!(units.next().unwrap().unwrap().type_(), UnitType::Compilation);
        let last = units.next().unwrap().unwrap();
        assert!(matches!(last.type_(), UnitType::Type { .. }));
        assert_eq!(last.length_including_self(), info.len() - starts[1]);
        assert!(units.next().unwrap().is_none());
    }
}
