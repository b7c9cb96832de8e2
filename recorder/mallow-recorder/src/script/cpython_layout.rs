//! Where the versions of CPython keep what is read of them. The offsets are those of release builds for x86-64, as their debug information has them, which is
//! also what memray, pystack and OpenTelemetry's profiler use.

use super::structures::ADDRESS_END;

/// Of a frame's word for its code: from 3.14 on its lowest bits say who counts it.
pub(super) const CODE_BITS: usize = (ADDRESS_END - 1) & !3;
/// Whose a frame is: from here on upwards it is no script's.
pub(super) const SHIM: usize = 3;

/// The layout of a version. All offsets in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(super) minor: u32,
    /// From the thread's state to the frame, or to what points at it.
    pub(super) state_frame: usize,
    /// From there to the frame.
    pub(super) through: Option<usize>,
    pub(super) state_thread_id: usize,
    pub(super) frame_code: usize,
    pub(super) frame_outward: usize,
    pub(super) frame_place: usize,
    pub(super) place: Place,
    pub(super) entry: Entry,
    pub(super) code_first_line: usize,
    pub(super) code_file: usize,
    pub(super) code_name: usize,
    pub(super) code_lines: usize,
    /// From the code to its first instruction, where places are addresses.
    pub(super) code_first: usize,
    pub(super) ascii_text: usize,
    pub(super) other_text: usize,
}

/// How a frame stores its current instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Bytes from the first instruction, four bytes of it.
    Bytes,
    /// Instructions, four bytes of it.
    Instructions,
    /// An address.
    Address,
}

/// How a frame shows that the interpreter's function was called for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// Each is one.
    Every,
    /// By a byte at this offset that is 1 and not 0.
    Flag(usize),
    /// A frame of its own stands around them, with the byte 3 at this offset, and is no script's. In 3.14 a byte of 4 marks the frame at
    /// the end of all, which is no script's either and stands for no call.
    Shim(usize),
    /// The same, but the frame at the end of all has the byte 3 too.
    ShimAndEnd(usize),
}

impl Entry {
    /// Whether a frame that is no script's, as its byte says, stands for a call.
    #[inline(always)]
    pub(super) fn is_call(self, owner: usize, outward: usize) -> bool {
        owner == SHIM && (outward != 0 || !matches!(self, Entry::ShimAndEnd(_)))
    }
}

const OLD: Layout = Layout {
    minor: 8,
    state_frame: 24,
    through: None,
    state_thread_id: 176,
    frame_code: 32,
    frame_outward: 24,
    frame_place: 104,
    place: Place::Bytes,
    entry: Entry::Every,
    code_first_line: 40,
    code_file: 104,
    code_name: 112,
    code_lines: 120,
    code_first: 0,
    ascii_text: 48,
    other_text: 72,
};

pub(crate) const LAYOUTS: [Layout; 8] = [
    OLD,
    Layout { minor: 9, ..OLD },
    Layout { minor: 10, frame_place: 96, place: Place::Instructions, ..OLD },
    Layout {
        minor: 11,
        state_frame: 56,
        through: Some(8),
        state_thread_id: 152,
        frame_code: 32,
        frame_outward: 48,
        entry: Entry::Flag(68),
        code_first_line: 72,
        code_first: 184,
        ascii_text: 48,
        other_text: 72,
        ..NEW
    },
    NEW,
    NEWER,
    Layout { minor: 14, entry: Entry::Shim(74), code_first: 208, ..NEWER },
    Layout { minor: 15, state_thread_id: 176, entry: Entry::ShimAndEnd(74), code_first: 208, ..NEWER },
];

const NEWER: Layout =
    Layout { minor: 13, state_frame: 72, through: None, state_thread_id: 152, code_first: 200, ..NEW };

const NEW: Layout = Layout {
    minor: 12,
    state_frame: 56,
    through: Some(0),
    state_thread_id: 136,
    frame_code: 0,
    frame_outward: 8,
    frame_place: 56,
    place: Place::Address,
    entry: Entry::Shim(70),
    code_first_line: 68,
    code_file: 112,
    code_name: 128,
    code_lines: 136,
    code_first: 192,
    ascii_text: 40,
    other_text: 56,
};
