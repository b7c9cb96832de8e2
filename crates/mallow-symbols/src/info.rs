//! The section of functions, of a packed one no more than lookups need.

use crate::sections::{SectionError, section_data};
use crate::unpacking::Unpacking;
use gimli::SectionId;
use std::borrow::Cow;

/// Its bytes.
pub(crate) struct Info<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Whether it has all units.
    pub(crate) is_whole: bool,
}

impl<'a> Info<'a> {
    /// Reads it; up to the end of the unit that begins at `last_unit`, where only that is wanted and less work.
    pub(crate) fn of(file: &object::File<'a>, last_unit: Option<usize>) -> Result<Info<'a>, SectionError> {
        let beginning = last_unit
            .and_then(|last_unit| Unpacking::of(SectionId::DebugInfo, file)?.up_to_length_at(last_unit));
        match beginning {
            Some(bytes) => Ok(Info { bytes: bytes.into(), is_whole: false }),
            None => Ok(Info { bytes: section_data(SectionId::DebugInfo.name(), file)?, is_whole: true }),
        }
    }
}
