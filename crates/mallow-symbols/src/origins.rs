//! Units whose entries name the functions of other units.
//!
//! Where a compiler works on several units as one (link time optimisation, Rust's codegen units), a function that is inlined into another unit's has
//! its name where it was written: its entry refers to one of any unit, which may refer on. Whoever reads names follows these references and no others.
//!
//! Layouts: DWARF 5, sections 7.5.3 (abbreviations) and 7.5.5.4 (references).

use std::collections::hash_map::Entry;
use std::rc::Rc;

use gimli::{
    Abbreviation, Abbreviations, AttributeValue, DebugAbbrev, DebugInfoOffset, EndianSlice, EntriesRaw,
    Reader, RunTimeEndian, UnitOffset,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::declarations::read_declaration;
use crate::headers::Unit;
use crate::reader::Slice;

/// More than this is not gone through for references: parsing all units costs no more then.
const SCANNED_BYTES_MAX: usize = 16 << 20;
/// How far a name is followed; readers go no further.
const STEPS_MAX: usize = 16;

type Bytes<'a> = EndianSlice<'a, RunTimeEndian>;

/// The abbreviations of some units.
pub(crate) struct Table {
    pub(crate) entries: Abbreviations,
    /// Whether one of them may refer to the name of another unit's entry.
    refers: bool,
}

/// Finds them, unit by unit. What is none, is damaged, or too much.
pub(crate) struct Origins<'u, 'a> {
    units: &'u [Unit<'a>],
    /// All abbreviations, as bytes and to be looked up.
    bytes: Slice<'a>,
    tables: DebugAbbrev<Bytes<'a>>,
    known: FxHashMap<usize, Rc<Table>>,
    scanned_bytes: usize,
    /// Entries that were read.
    followed: FxHashSet<usize>,
    found: FxHashSet<usize>,
}

impl<'u, 'a> Origins<'u, 'a> {
    pub(crate) fn new(units: &'u [Unit<'a>], abbreviations: Slice<'a>) -> Origins<'u, 'a> {
        Origins {
            units,
            bytes: abbreviations,
            tables: DebugAbbrev::new(abbreviations.slice(), RunTimeEndian::Little),
            known: FxHashMap::default(),
            scanned_bytes: 0,
            followed: FxHashSet::default(),
            found: FxHashSet::default(),
        }
    }

    /// Where the units begin that were found.
    pub(crate) fn into_found(self) -> FxHashSet<usize> {
        self.found
    }

    /// The abbreviations of a unit.
    pub(crate) fn table(&mut self, unit: &Unit<'a>) -> Option<Rc<Table>> {
        let place = match self.known.entry(unit.header.debug_abbrev_offset().0) {
            Entry::Occupied(known) => return Some(Rc::clone(known.get())),
            Entry::Vacant(place) => place,
        };
        let entries = unit.header.abbreviations(&self.tables).ok()?;
        let refers = has_one_that_refers(self.bytes, unit.header.debug_abbrev_offset().0)?;
        Some(Rc::clone(place.insert(Rc::new(Table { entries, refers }))))
    }

    /// Finds those that a unit's entries have names in.
    pub(crate) fn scan(&mut self, unit: &Unit<'a>) -> Option<()> {
        let table = self.table(unit)?;
        if !table.refers {
            return Some(());
        }
        self.scanned_bytes += unit.range.len();
        if self.scanned_bytes > SCANNED_BYTES_MAX {
            return None;
        }
        let mut entries = unit.header.entries_raw(&table.entries, None).ok()?;
        while !entries.is_empty() {
            match entries.read_abbreviation().ok()? {
                Some(abbreviation) if refers(abbreviation) => {
                    if let Some(AttributeValue::DebugInfoRef(place)) = origin(&mut entries, abbreviation)? {
                        self.follow(place)?;
                    }
                }
                Some(abbreviation) => entries.skip_attributes(abbreviation.attributes()).ok()?,
                None => {}
            }
        }
        Some(())
    }

    /// Follows a name from an entry of any unit.
    fn follow(&mut self, mut place: DebugInfoOffset) -> Option<()> {
        for _ in 0..STEPS_MAX {
            if !self.followed.insert(place.0) {
                return Some(());
            }
            let after = self.units.partition_point(|unit| unit.range.start <= place.0);
            let unit = self.units.get(after.checked_sub(1)?).filter(|unit| place.0 < unit.range.end)?;
            self.found.insert(unit.range.start);
            let table = self.table(unit)?;
            let own = UnitOffset(place.0 - unit.range.start);
            let mut entries = unit.header.entries_raw(&table.entries, Some(own)).ok()?;
            let abbreviation = entries.read_abbreviation().ok()??;
            place = match origin(&mut entries, abbreviation)? {
                Some(AttributeValue::DebugInfoRef(next)) => next,
                Some(AttributeValue::UnitRef(next)) => DebugInfoOffset(unit.range.start.checked_add(next.0)?),
                _ => return Some(()),
            };
        }
        Some(())
    }
}

fn is_of_name(name: gimli::DwAt) -> bool {
    [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification].contains(&name)
}

/// Whether the name that an attribute of this form says may be another unit's. An indirect form stands beside the value, and may be any.
fn is_elsewhere(name: gimli::DwAt, form: gimli::DwForm) -> bool {
    is_of_name(name) && [gimli::DW_FORM_ref_addr, gimli::DW_FORM_indirect].contains(&form)
}

fn refers(abbreviation: &Abbreviation) -> bool {
    abbreviation.attributes().iter().any(|it| is_elsewhere(it.name(), it.form()))
}

/// Whether a table of abbreviations has one that refers to another unit's name.
fn has_one_that_refers(abbreviations: Slice<'_>, offset: usize) -> Option<bool> {
    let mut table = abbreviations;
    table.skip(offset).ok()?;
    let mut refers = false;
    while !refers && read_declaration(&mut table, |name, form| refers |= is_elsewhere(name, form))? {}
    Some(refers)
}

/// Reads an entry: where it has its name, if that is not its own. None inside where it has none, outside where it cannot be read.
fn origin<'a>(
    entries: &mut EntriesRaw<'_, Bytes<'a>>,
    abbreviation: &Abbreviation,
) -> Option<Option<AttributeValue<Bytes<'a>>>> {
    let mut found = None;
    for specification in abbreviation.attributes() {
        let attribute = entries.read_attribute(*specification).ok()?;
        if is_of_name(attribute.name()) {
            found = Some(attribute.value());
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_refers_to_names_of_other_units_is_told_from_one_that_does_not() {
        let table = |name: gimli::DwAt, form: gimli::DwForm| {
            [1, gimli::DW_TAG_inlined_subroutine.0 as u8, 0, name.0 as u8, form.0 as u8, 0, 0, 0]
        };
        let refers = |bytes: &[u8]| has_one_that_refers(Slice::little(bytes), 0);
        let origin = |form| table(gimli::DW_AT_abstract_origin, form);
        assert_eq!(refers(&origin(gimli::DW_FORM_ref4)), Some(false));
        assert_eq!(refers(&origin(gimli::DW_FORM_ref_addr)), Some(true));
        assert_eq!(refers(&origin(gimli::DW_FORM_indirect)), Some(true));
        assert_eq!(refers(&table(gimli::DW_AT_type, gimli::DW_FORM_ref_addr)), Some(false));
        assert_eq!(refers(&origin(gimli::DW_FORM_ref_addr)[..4]), None);
        let constant = [1, 0x34, 0, 0x3a, gimli::DW_FORM_implicit_const.0 as u8, 0x10, 0, 0, 0];
        assert_eq!(refers(&constant), Some(false));
    }
}
