//! Frames of scripts in the memory that a process shares with the collector: how the node table names them, and the log of the
//! code that they run.
//!
//! An event has one node. Where a thread runs a script, that is a *pair*: its parent is the native stack, and its key names the node of
//! the script's own stack. The collector weaves the two into one.
//!
//! ```text
//!             63      49  48  47  46 45              22 21          0
//! a frame   |     0     | 1 | 1 | e |      code        |   place    |
//! a pair    |     1     | 1 | 1 | 0 |       node of the script      |
//! ```
//!
//! Where a runtime's frames are those of the native stack, as in a JVM, they stand in it with such keys. A frame's code may be a *chain* there, which
//! the log has as several frames: those that a compiler has put within each other.
//!
//! No program has code at an address with bit 47. `e` marks an *entry*: the frame was entered by a call of the interpreter's own, so
//! one native frame of it stands for this frame and those further in, up to the next entry. Code 0 is no code: an entry alone.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// A program counter, as in the key of every node: nothing is subtracted from it.
pub(crate) const EXACT: u64 = 1 << 48;
const PLACE_BITS: u32 = 22;
/// The highest place in a piece of code that a frame can have.
pub const PLACE_MAX: u32 = (1 << PLACE_BITS) - 1;
/// The highest number that a piece of code can have.
pub const CODE_MAX: u32 = (1 << 21) - 1;
const ENTRY: u64 = 1 << 46;
const SCRIPT: u64 = 1 << 47;
const PAIR: u64 = 1 << 49;
const MARKS: u64 = !0 << 47;

/// The key of a frame's node: which code, where in it, and whether it is an entry.
#[inline(always)]
pub const fn script_key(code: u32, place: u32, is_entry: bool) -> u64 {
    let place = if place > PLACE_MAX { PLACE_MAX } else { place };
    SCRIPT | EXACT | (is_entry as u64) << 46 | (code as u64) << PLACE_BITS | place as u64
}

/// The key of the node of a native stack with a script's.
#[inline(always)]
pub const fn pair_key(script: u32) -> u64 {
    PAIR | SCRIPT | EXACT | script as u64
}

/// The node of the script's stack in a pair's key; none when it is the key of something else.
#[inline(always)]
pub const fn pair_script(key: u64) -> Option<u32> {
    if key & MARKS == PAIR | SCRIPT | EXACT { Some(key as u32 & ((1 << 28) - 1)) } else { None }
}

/// A script's frame, decoded from its node's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptFrame {
    /// The number of its code in the log; 0 for none.
    pub code: u32,
    /// The place in the code: the number of the instruction, as the runtime counts them.
    pub place: u32,
    /// The interpreter was called for it.
    pub is_entry: bool,
}

/// Returns whether a node's key is that of a script's frame.
#[inline(always)]
pub const fn is_script_key(key: u64) -> bool {
    key & MARKS == SCRIPT | EXACT
}

/// The frame in a node's key; none when it is the key of something else.
#[inline(always)]
pub const fn script_frame(key: u64) -> Option<ScriptFrame> {
    if !is_script_key(key) {
        return None;
    }
    Some(ScriptFrame {
        code: (key >> PLACE_BITS) as u32 & ((1 << 24) - 1),
        place: key as u32 & PLACE_MAX,
        is_entry: key & ENTRY != 0,
    })
}

/// Bytes of the log of code.
pub const CODE_LOG_BYTES: usize = 32 << 20;

/// The header's counters of scripts.
#[repr(C)]
#[derive(Debug)]
pub struct Scripts {
    /// Bytes of the log that have been reserved.
    pub log_reserved: AtomicU64,
    /// How many numbers were assigned to code.
    pub codes: AtomicU32,
    /// How often code could not be logged or read: its frames are omitted.
    pub codes_unread: AtomicU32,
    /// Events whose script's stack was deeper than is followed: they have their native stack.
    pub events_too_deep: AtomicU64,
    /// Stacks that a recorder which checks itself compared with those from scratch.
    pub verify_stacks: AtomicU64,
    /// Those of them that differed.
    pub verify_mismatches: AtomicU64,
}

/// CPython. In [`RecordHead::runtime`].
pub const RUNTIME_CPYTHON: u16 = 1;
/// CRuby. In [`RecordHead::runtime`].
pub const RUNTIME_RUBY: u16 = 2;
/// HotSpot, a JVM. In [`RecordHead::runtime`].
pub const RUNTIME_HOTSPOT: u16 = 3;

/// The scripts' frames are read. In [`RuntimeRecord::unread`].
pub const READ: u32 = 0;
/// They are not read: the version's layout is unknown.
pub const UNREAD_VERSION: u32 = 1;
/// They are not: threads of this build run scripts at the same time.
pub const UNREAD_FREE_THREADED: u32 = 2;
/// They are not read: the module hides required symbols.
pub const UNREAD_SYMBOLS: u32 = 3;
/// They are not: what lies where this version keeps its frames is something else.
pub const UNREAD_LAYOUT: u32 = 4;
/// They are not read: the module was loaded while the program ran, so that its thread-local storage cannot be found
/// without a call.
pub const UNREAD_LATE: u32 = 5;

/// A kind of record.
pub const RECORD_RUNTIME: u16 = 1;
/// A kind of record.
pub const RECORD_CODE: u16 = 2;
/// A kind of record.
pub const RECORD_CHAIN: u16 = 3;

/// The head of each record of the log.
#[repr(C)]
#[derive(Debug)]
pub struct RecordHead {
    /// The whole record's length in bytes, a multiple of 8, written last; with [`crate::shared::UNFILLED`] before that.
    pub record_bytes: AtomicU32,
    /// [`RECORD_RUNTIME`], [`RECORD_CODE`], [`RECORD_CHAIN`]; others are skipped.
    pub kind: u16,
    /// [`RUNTIME_CPYTHON`], [`RUNTIME_RUBY`], [`RUNTIME_HOTSPOT`].
    pub runtime: u16,
}

/// A runtime that was seen.
#[repr(C)]
#[derive(Debug)]
pub struct RuntimeRecord {
    /// Kind [`RECORD_RUNTIME`].
    pub head: RecordHead,
    /// Major version `<< 8 |` minor version; 0 when it is not known.
    pub version: u32,
    /// [`READ`], or why not.
    pub unread: u32,
    /// The code of the function that interprets: what it begins with, and a part that the compiler put elsewhere. From and up to, as
    /// mapped; empty ranges are none.
    pub interpreter: [[u64; 2]; 2],
}

/// A piece of code: a function, a module's or a class's body. It is followed by the file's name, the qualified name and the table of lines.
#[repr(C)]
#[derive(Debug)]
pub struct CodeRecord {
    /// Kind [`RECORD_CODE`].
    pub head: RecordHead,
    /// Its number.
    pub code: u32,
    /// The runtime's version, as in [`RuntimeRecord::version`].
    pub version: u32,
    /// The line at which it begins.
    pub first_line: u32,
    /// Bytes of the file's name.
    pub file_bytes: u32,
    /// Bytes of the name.
    pub name_bytes: u32,
    /// Bytes of the table of lines.
    pub lines_bytes: u32,
    /// Bytes of a character of the file's name: 1 for Latin-1, 2, 4; 0 for UTF-8.
    pub file_width: u8,
    /// Bytes of a character of the name.
    pub name_width: u8,
    /// Pad.
    pub pad: [u8; 6],
}

/// Inlined frames in one piece of compiled code. It is followed by them, innermost first, each as the number of its
/// code and its place.
#[repr(C)]
#[derive(Debug)]
pub struct ChainRecord {
    /// Kind [`RECORD_CHAIN`].
    pub head: RecordHead,
    /// Its number, of those that code has.
    pub code: u32,
    /// The number of frames.
    pub count: u32,
}

const _: () = assert!(size_of::<RuntimeRecord>() == 48 && size_of::<CodeRecord>() == 40);
const _: () = assert!(size_of::<ChainRecord>() == 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip_and_are_distinct() {
        for frame in [
            ScriptFrame { code: 0, place: 0, is_entry: true },
            ScriptFrame { code: 7, place: PLACE_MAX, is_entry: false },
            ScriptFrame { code: CODE_MAX, place: 3, is_entry: true },
        ] {
            let key = script_key(frame.code, frame.place, frame.is_entry);
            assert_eq!((script_frame(key), pair_script(key)), (Some(frame), None));
        }
        let pair = pair_key((1 << 23) + 5);
        assert_eq!((script_frame(pair), pair_script(pair)), (None, Some((1 << 23) + 5)));
        for native in [0x7fff_ffff_ffff | EXACT | 5 << 49, 0x7fff_ffff_ffff | 1 << 49] {
            assert_eq!((script_frame(native), pair_script(native)), (None, None));
        }
    }
}
