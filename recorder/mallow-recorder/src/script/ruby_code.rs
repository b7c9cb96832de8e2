//! What a piece of CRuby's code is: its names, its first line and its table of lines, read by checked copies.

use super::code_log::Found;
use super::ruby_layout::*;
use super::structures::words_at;
use mallow_wire::script::{PLACE_MAX, RUNTIME_RUBY};

/// Reads code by checked copies: the numbers in front of its table of lines, and the rest.
pub(super) fn describe<const V: usize>(version: u32, body: usize) -> Option<([u32; 2], Found)> {
    const ENTRIES_MAX: usize = 1 << 16;
    /// How many places the index stores individually, how many to a word, and how many each block after them has.
    const SINGLE: usize = 54;
    const SINGLE_BYTES: usize = SINGLE / 9 * 8;
    const BLOCK: usize = 512;
    const BLOCK_BYTES: usize = 80;
    let layout = LAYOUTS[V];
    let words: [usize; BODY_WORDS] = words_at(body)?;
    let field = |offset: usize| *crate::bounds::at(&words, offset / 8);
    let size = words[0] >> 32;
    let entry_count = field(layout.entry_count) & 0xffff_ffff;
    if size > PLACE_MAX as usize || entry_count > ENTRIES_MAX {
        return None;
    }
    let first_line = if layout.first_line_tagged { field(FIRST_LINE) >> 1 } else { field(FIRST_LINE) };
    let index_bytes = match size {
        // One entry needs none.
        _ if entry_count <= 1 => 0,
        ..SINGLE => size.div_ceil(9) * 8,
        _ => SINGLE_BYTES + (size - SINGLE).div_ceil(BLOCK) * BLOCK_BYTES,
    };
    let found = Found {
        runtime: RUNTIME_RUBY,
        version,
        first_line: first_line as u32,
        pieces: [
            file::<V>(field(FILE))?,
            text::<V>(field(NAME))?,
            [0; 2],
            [field(layout.entries), entry_count * layout.entry_bytes],
            [field(layout.index), index_bytes],
        ],
        widths: [0; 2],
    };
    Some(([entry_count as u32, size as u32], found))
}

/// Returns the name of a file: a string, or a pair of it as given and as resolved.
fn file<const V: usize>(object: usize) -> Option<[usize; 2]> {
    const LIST: usize = 7;
    const IS_SHORT: usize = 1 << 13;
    let head: [usize; 5] = words_at(object)?;
    if head[0] & 0x1f != LIST {
        return text::<V>(object);
    }
    let [given, real] = if head[0] & IS_SHORT != 0 { [head[2], head[3]] } else { words_at(head[4])? };
    // Code that no file holds has no other name.
    text::<V>(real).or_else(|| text::<V>(given))
}

/// Returns the address and length of a string's bytes.
fn text<const V: usize>(object: usize) -> Option<[usize; 2]> {
    const STRING: usize = 5;
    const IS_LONG: usize = 1 << 13;
    const BYTES_MAX: usize = 4 << 10;
    let head: [usize; 4] = words_at(object)?;
    let [at, bytes] = match head[0] {
        flags if flags & 0x1f != STRING => return None,
        flags if flags & IS_LONG != 0 => [head[3], head[2]],
        flags if LAYOUTS[V].short_in_flags => [object + 16, flags >> 14 & 31],
        _ => [object + 24, head[2]],
    };
    Some([at, bytes.min(BYTES_MAX)])
}
