//! Finds the entry of a code address.

use super::RETURN_ADDRESS;
use super::bytes::Bytes;
use crate::objects::Object;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The part that many functions share (common information entry).
pub(super) struct Cie {
    pub(super) code_align: u64,
    pub(super) data_align: i64,
    pub(super) pointer_encoding: u8,
    pub(super) has_augmentation: bool,
    pub(super) is_signal: bool,
    pub(super) instructions: Bytes,
}

/// The entry of one function.
pub(super) struct Fde {
    pub(super) start: usize,
    pub(super) instructions: Bytes,
    pub(super) cie: Cie,
}

/// Finds the entry that covers `pc`.
#[inline(always)]
pub(super) fn find(object: &Object, pc: usize) -> Option<Fde> {
    let (mut entry, cie) = entry_around(object, pc)?;
    let (start, length) = range(&mut entry, &cie)?;
    if pc.wrapping_sub(start) >= length {
        return None;
    }
    if cie.has_augmentation {
        let bytes = entry.uleb()?;
        entry.skip(bytes)?;
    }
    Some(Fde { start, instructions: entry, cie })
}

/// The first address that an entry covers, and how many bytes.
#[inline(always)]
pub(super) fn range(entry: &mut Bytes, cie: &Cie) -> Option<(usize, usize)> {
    let start = entry.pointer(cie.pointer_encoding)? as usize;
    Some((start, entry.stored(cie.pointer_encoding)? as usize))
}

/// The entry that covers `pc` if one does, from its range on, by the sorted table of `.eh_frame_hdr`.
#[inline(always)]
pub(super) fn entry_around(object: &Object, pc: usize) -> Option<(Bytes, Cie)> {
    let at = entry_before(object, pc)?;
    let mut bytes = Bytes::of(object, at)?;
    let mut entry = bytes.entry()?;
    let id_at = entry.at;
    let distance = entry.u32()? as usize;
    if distance == 0 {
        return None;
    }
    let cie = cie(Bytes::of(object, id_at.checked_sub(distance)?)?)?;
    Some((entry, cie))
}

/// A table of an object's functions: rows of two distances, of 4 bytes each and signed, to where a function and its entry begin.
struct Table {
    rows: Bytes,
    /// The base of relative distances.
    base: usize,
}

const ROW_BYTES: usize = 8;

/// The table that mallow made for a static executable whose linker made none: the executable's first byte, the
/// table's first byte and its end.
static OF_STATIC: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Notes a table for the object that begins at `start`.
///
/// # Safety
/// There are so many rows of 8 bytes, which stay.
pub unsafe fn note_table(start: usize, rows: usize, count: usize) {
    let words = [start, rows, rows + count * ROW_BYTES];
    OF_STATIC.iter().zip(words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
}

/// The table of `.eh_frame_hdr`, or the one that mallow made.
#[inline(always)]
fn table(object: &Object) -> Option<Table> {
    /// 4 bytes, signed, relative to the table's own address: what every linker writes.
    const TABLE_ENCODING: u8 = 0x3b;
    let header = object.eh_frame_header;
    if header == 0 {
        let [base, at, end] = OF_STATIC.each_ref().map(|place| place.load(Ordering::Relaxed));
        return (base == object.start).then_some(Table { rows: Bytes { at, end }, base });
    }
    let mut rows = Bytes::of(object, header)?;
    let [version, frames_encoding, count_encoding, table_encoding] = rows.take()?;
    if version != 1 || table_encoding != TABLE_ENCODING {
        return None;
    }
    rows.pointer(frames_encoding)?;
    let count = usize::try_from(rows.stored(count_encoding)?).ok()?;
    let bytes = count.min((rows.end - rows.at) / ROW_BYTES) * ROW_BYTES;
    Some(Table { rows: Bytes { end: rows.at + bytes, ..rows }, base: header })
}

/// Returns the address of the last entry that begins at or before `pc`.
fn entry_before(object: &Object, pc: usize) -> Option<usize> {
    let Table { rows, base } = table(object)?;
    let count = (rows.end - rows.at) / ROW_BYTES;
    let row = |index: usize| -> Option<(usize, usize)> {
        let mut row = Bytes { at: rows.at + index * ROW_BYTES, ..rows };
        let mut address = || Some(base.wrapping_add_signed(row.u32()? as i32 as isize));
        Some((address()?, address()?))
    };
    // All rows below `low` begin at or before `pc`, all from `high` on after it.
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if row(middle)?.0 <= pc { low = middle + 1 } else { high = middle }
    }
    row(low.checked_sub(1)?).map(|(_, entry)| entry)
}

fn cie(mut bytes: Bytes) -> Option<Cie> {
    let mut entry = bytes.entry()?;
    let (id, version) = (entry.u32()?, entry.u8()?);
    if id != 0 || !matches!(version, 1 | 3) {
        return None;
    }
    let mut letters = entry;
    while entry.u8()? != 0 {}
    let code_align = entry.uleb()?;
    let data_align = entry.sleb()?;
    let return_address = if version == 1 { entry.u8()?.into() } else { entry.uleb()? };
    if return_address != u64::from(RETURN_ADDRESS) {
        return None;
    }
    let mut cie = Cie {
        code_align,
        data_align,
        pointer_encoding: 0,
        has_augmentation: false,
        is_signal: false,
        instructions: entry,
    };
    match letters.u8()? {
        0 => return Some(cie),
        b'z' => cie.has_augmentation = true,
        _ => return None,
    }
    let bytes = entry.uleb()?;
    let mut data = entry.part(bytes)?;
    cie.instructions = entry;
    loop {
        match letters.u8()? {
            0 => return Some(cie),
            b'R' => cie.pointer_encoding = data.u8()?,
            b'S' => cie.is_signal = true,
            b'L' => _ = data.u8()?,
            b'P' => {
                let encoding = data.u8()?;
                data.stored(encoding)?;
            }
            // The following augmentation is unknown, and is skipped by its length.
            _ => return Some(cie),
        }
    }
}
