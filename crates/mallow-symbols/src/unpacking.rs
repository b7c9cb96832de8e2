//! Packed sections, unpacked from their beginning no further than lookups need.
//!
//! Of a C library's debug file a program mostly needs the unit that calls `main`, which is one of the first. Unpacking all two thousand, with their
//! abbreviations and lines, takes longer than everything else that is done for it.
//!
//! Layouts: DWARF 5, section 7.4 (initial lengths).

use crate::declarations::end_of_table;
use crate::reader::Slice;
use crate::sections::is_credible;
use flate2::read::ZlibDecoder;
use gimli::{Reader, SectionId};
use object::{CompressionFormat, Object, ObjectSection};
use std::io::Read;

/// A little-endian section that is packed with zlib, and its beginning.
pub(crate) struct Unpacking<'a> {
    bytes: Vec<u8>,
    rest: ZlibDecoder<&'a [u8]>,
    /// Its size, as it says itself.
    bytes_max: usize,
}

impl<'a> Unpacking<'a> {
    /// None where there is no such section, it is not packed with zlib, or cannot be as large as it says.
    pub(crate) fn of(id: SectionId, file: &object::File<'a>) -> Option<Unpacking<'a>> {
        let packed = file.section_by_name(id.name())?.compressed_data().ok()?;
        let bytes_max = usize::try_from(packed.uncompressed_size).ok()?;
        let can_be = packed.format == CompressionFormat::Zlib && is_credible(&packed);
        can_be.then(|| Unpacking::new(packed.data, bytes_max))
    }

    fn new(packed: &'a [u8], bytes_max: usize) -> Unpacking<'a> {
        Unpacking { bytes: Vec::new(), rest: ZlibDecoder::new(packed), bytes_max }
    }

    /// Its size when it is unpacked, as it says itself.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Unpacks it up to the end of the unit or the line program that begins at `start`: both begin with their length. None where it does not reach so far.
    pub(crate) fn up_to_length_at(mut self, start: usize) -> Option<Vec<u8>> {
        self.up_to(start.checked_add(LENGTH_BYTES_MAX)?)?;
        let end = end_of_length_at(&self.bytes, start)?;
        self.up_to(end)?;
        self.ending_at(end)
    }

    /// Unpacks abbreviations up to the end of the table that begins at `start`. None where it does not end.
    pub(crate) fn up_to_table_at(mut self, start: usize) -> Option<Vec<u8>> {
        let mut room = TABLE_BYTES;
        loop {
            let unpacked = self.up_to(start.checked_add(room)?)?;
            if let Some(end) = end_of_table(Slice::little(unpacked), start) {
                return self.ending_at(end);
            }
            if start.checked_add(room)? >= self.bytes_max {
                return None;
            }
            room = room.checked_mul(2)?;
        }
    }

    /// Unpacks it up to `end`, or whole where it ends before.
    fn up_to(&mut self, end: usize) -> Option<&[u8]> {
        let missing = end.min(self.bytes_max).saturating_sub(self.bytes.len());
        self.bytes.reserve_exact(missing);
        self.rest.by_ref().take(missing as u64).read_to_end(&mut self.bytes).ok()?;
        Some(&self.bytes)
    }

    fn ending_at(mut self, end: usize) -> Option<Vec<u8>> {
        (self.bytes.len() >= end).then(|| {
            self.bytes.truncate(end);
            self.bytes
        })
    }
}

/// Bytes of an initial length of the 64-bit format.
const LENGTH_BYTES_MAX: usize = 12;
/// Most tables are smaller.
const TABLE_BYTES: usize = 4 << 10;

fn end_of_length_at(section: &[u8], start: usize) -> Option<usize> {
    let mut rest = Slice::little(section);
    rest.skip(start).ok()?;
    let (length, _) = rest.read_initial_length().ok()?;
    (section.len() - rest.len()).checked_add(length)
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
        let within =
            |packed: &[u8], unit: usize, bytes_max| Unpacking::new(packed, bytes_max).up_to_length_at(unit);
        let up_to = |unit: usize| within(&packed(&info), unit, info.len());
        assert_eq!(up_to(0).as_deref(), Some(&info[..7]));
        assert_eq!(up_to(7).as_deref(), Some(&info[..21]));
        assert_eq!(up_to(21).as_deref(), Some(&info[..]));
        assert_eq!(up_to(24), None, "no whole length");
        assert_eq!(up_to(99), None, "behind the end");
        assert_eq!(within(&packed(&info), 7, 20), None, "more than the section says that it has");
        assert_eq!(within(&packed(&info)[..12], 7, info.len()), None, "cut off");
    }

    #[test]
    fn abbreviations_are_unpacked_to_the_end_of_a_table_of_any_size() {
        let mut tables = vec![1, 0x11, 0, 0, 0, 0];
        // A table of 20 KB.
        for _ in 0..4000 {
            tables.extend([1, 0x11, 0, 0, 0]);
        }
        tables.push(0);
        let long = tables.len();
        tables.extend([1, 0x11, 0, 0, 0, 0]);
        let within = |start: usize, bytes_max| {
            Unpacking::new(&packed(&tables), bytes_max).up_to_table_at(start).map(|bytes| bytes.len())
        };
        let up_to = |start: usize| within(start, tables.len());
        assert_eq!([up_to(0), up_to(6), up_to(long)], [Some(6), Some(long), Some(long + 6)]);
        assert_eq!(up_to(tables.len()), None, "no table");
        assert_eq!(within(6, long - 1), None, "more than the section says that it has");
    }
}
