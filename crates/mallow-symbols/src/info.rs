//! The section of functions, of a packed one no more than lookups need.
//!
//! Of a C library's debug file a program mostly needs the unit that calls `main`, which is one of the first. Unpacking all two thousand takes
//! longer than everything else that is done for it.
//!
//! Layouts: DWARF 5, sections 7.4 (initial lengths) and 7.5.1 (unit headers).

use crate::sections::{SectionError, section_data};
use flate2::read::ZlibDecoder;
use gimli::SectionId;
use object::{CompressionFormat, Object, ObjectSection};
use std::borrow::Cow;
use std::io::Read;

/// Its bytes.
pub(crate) struct Info<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Whether it has all units.
    pub(crate) is_whole: bool,
}

impl<'a> Info<'a> {
    /// Reads it; up to the end of the unit that begins at `last_unit`, where only that is wanted and less work.
    pub(crate) fn of(file: &object::File<'a>, last_unit: Option<usize>) -> Result<Info<'a>, SectionError> {
        match last_unit.and_then(|last_unit| unpacked_up_to(file, last_unit)) {
            Some(bytes) => Ok(Info { bytes: bytes.into(), is_whole: false }),
            None => Ok(Info { bytes: section_data(SectionId::DebugInfo.name(), file)?, is_whole: true }),
        }
    }
}

/// Unpacks it up to the end of the unit that begins at `last_unit`. None where it is not packed, or in another way than with zlib, or does not reach so far.
fn unpacked_up_to(file: &object::File<'_>, last_unit: usize) -> Option<Vec<u8>> {
    let packed = file.section_by_name(SectionId::DebugInfo.name())?.compressed_data().ok()?;
    if packed.format != CompressionFormat::Zlib {
        return None;
    }
    beginning(packed.data, last_unit, usize::try_from(packed.uncompressed_size).ok()?)
}

fn beginning(packed: &[u8], last_unit: usize, bytes_max: usize) -> Option<Vec<u8>> {
    let mut unpacked = Vec::new();
    let mut rest = ZlibDecoder::new(packed);
    let mut unpack_to = |end: usize, unpacked: &mut Vec<u8>| {
        let missing = end.min(bytes_max).saturating_sub(unpacked.len()) as u64;
        rest.by_ref().take(missing).read_to_end(unpacked).ok()
    };
    unpack_to(last_unit.checked_add(LENGTH_BYTES_MAX)?, &mut unpacked)?;
    let end = end_of_unit(&unpacked, last_unit)?;
    unpack_to(end, &mut unpacked)?;
    (unpacked.len() >= end).then(|| {
        unpacked.truncate(end);
        unpacked
    })
}

/// Bytes of an initial length of the 64-bit format.
const LENGTH_BYTES_MAX: usize = 12;

fn end_of_unit(info: &[u8], start: usize) -> Option<usize> {
    let header = info.get(start..)?;
    let of_32_bits = u32::from_le_bytes(*header.first_chunk()?);
    let (length, of_length) = match of_32_bits {
        u32::MAX => (u64::from_le_bytes(*header.get(4..)?.first_chunk()?), LENGTH_BYTES_MAX),
        _ => (u64::from(of_32_bits), 4),
    };
    start.checked_add(of_length)?.checked_add(usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn a_packed_section_is_unpacked_to_the_end_of_a_unit() {
        let mut info = vec![3, 0, 0, 0, 1, 2, 3];
        // Of the 64-bit format, then one more.
        info.extend([0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 7, 8]);
        info.extend([1, 0, 0, 0, 9]);
        let up_to = |unit: usize| beginning(&packed(&info), unit, info.len());
        assert_eq!(up_to(0).as_deref(), Some(&info[..7]));
        assert_eq!(up_to(7).as_deref(), Some(&info[..21]));
        assert_eq!(up_to(21).as_deref(), Some(&info[..]));
        assert_eq!(up_to(24), None, "no whole length");
        assert_eq!(up_to(99), None, "behind the end");
        assert_eq!(beginning(&packed(&info), 7, 20), None, "more than the section says that it has");
        assert_eq!(beginning(&packed(&info)[..12], 7, info.len()), None, "cut off");
    }
}
