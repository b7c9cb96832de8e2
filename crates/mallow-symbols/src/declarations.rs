//! Declarations of abbreviations, as they follow each other in a table.
//!
//! Layout: DWARF 5, section 7.5.3.

use crate::reader::Slice;
use gimli::{DwAt, DwForm, Reader};

/// Reads one declaration, with each of its attributes. Returns whether there was one: false behind the last one of a table. None where it is damaged or cut off.
pub(crate) fn read_declaration(
    table: &mut Slice<'_>,
    mut attribute: impl FnMut(DwAt, DwForm),
) -> Option<bool> {
    // The code, 0 behind the last; the tag; whether it has children.
    if table.read_uleb128().ok()? == 0 {
        return Some(false);
    }
    table.read_uleb128().ok()?;
    table.read_u8().ok()?;
    // Attributes, up to one without name and form.
    loop {
        let name = DwAt(table.read_uleb128_u16().ok()?);
        let form = DwForm(table.read_uleb128_u16().ok()?);
        if (name.0, form.0) == (0, 0) {
            return Some(true);
        }
        if form == gimli::DW_FORM_implicit_const {
            table.read_sleb128().ok()?;
        }
        attribute(name, form);
    }
}

/// Where the table ends that begins at `start`. None where it does not end.
pub(crate) fn end_of_table(abbreviations: Slice<'_>, start: usize) -> Option<usize> {
    let mut table = abbreviations;
    table.skip(start).ok()?;
    while read_declaration(&mut table, |_, _| {})? {}
    Some(abbreviations.len() - table.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_ends_behind_its_last_declaration() {
        let constant = gimli::DW_FORM_implicit_const.0 as u8;
        // Something else, a declaration with a name and a constant, one without attributes, the end; another table.
        let bytes = [9, 7, 0x11, 1, 0x03, 0x08, 0x3a, constant, 0x7f, 0, 0, 8, 0x2e, 0, 0, 0, 0, 1, 0x11];
        let slice = |bytes| Slice::little(bytes);
        assert_eq!(end_of_table(slice(&bytes), 1), Some(17));
        assert_eq!(end_of_table(slice(&bytes), 16), Some(17), "an empty one");
        assert_eq!(end_of_table(slice(&bytes), 17), None, "cut off");
        assert!((1..17).all(|end| end_of_table(slice(&bytes[..end]), 1).is_none()), "cut off anywhere");
        assert_eq!(end_of_table(slice(&bytes), 99), None);
    }
}
