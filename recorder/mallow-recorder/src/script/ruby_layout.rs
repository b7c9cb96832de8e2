//! Where the versions of CRuby keep what is read of them.

/// The layout of a version. All offsets in bytes.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// Of a frame.
    pub(super) frame_bytes: usize,
    /// What the thread-local word names.
    pub(super) named: Named,
    /// From the context to its fiber, and to its thread.
    pub(super) context_fiber: usize,
    pub(super) context_thread: usize,
    /// From the thread to its context.
    pub(super) thread_context: usize,
    /// From the thread to the name that the system has for it, or to what has it.
    pub(super) thread_native: usize,
    /// From there to the name.
    pub(super) through: Option<usize>,
    /// Of the line at which code begins; whether it is a tagged number.
    pub(super) first_line_tagged: bool,
    /// From the code to what its instructions are: entries, how many, and the index of their places.
    pub(super) entries: usize,
    pub(super) entry_count: usize,
    pub(super) index: usize,
    /// How many bytes an entry has.
    pub(super) entry_bytes: usize,
    /// From what is left of a moved object to its new place.
    pub(super) moved_to: usize,
    /// A short string's length is in its flags.
    pub(super) short_in_flags: bool,
}

/// What the thread-local word names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// The context.
    Context,
    /// The thread, which names its context.
    Thread,
}

pub(super) const OLD: Layout = Layout {
    frame_bytes: 64,
    named: Named::Context,
    context_fiber: 40,
    context_thread: 48,
    thread_context: 40,
    thread_native: 80,
    through: None,
    first_line_tagged: true,
    entries: 120,
    entry_count: 136,
    index: 144,
    entry_bytes: 12,
    moved_to: 16,
    short_in_flags: true,
};

pub(super) const LAYOUTS: [Layout; 3] = [
    OLD,
    Layout {
        frame_bytes: 56,
        thread_context: 48,
        thread_native: 40,
        through: Some(16),
        first_line_tagged: false,
        entries: 112,
        entry_count: 128,
        index: 136,
        short_in_flags: false,
        ..OLD
    },
    Layout {
        frame_bytes: 56,
        named: Named::Thread,
        context_fiber: 48,
        context_thread: 56,
        thread_context: 32,
        thread_native: 72,
        entry_bytes: 8,
        moved_to: 8,
        ..OLD
    },
];

/// The layout of each version.
pub(super) const VERSIONS: [(u32, usize); 4] =
    [(2 << 8 | 7, 2), (3 << 8 | 1, 0), (3 << 8 | 3, 1), (3 << 8 | 4, 1)];

// Of a context, which begins with the array of frames and its length in words.
pub(super) const INNERMOST: usize = 16;
pub(super) const CONTEXT_WORDS: usize = 8;

// Of a frame.
pub(super) const CODE: usize = 16;
pub(super) const SCOPE: usize = 32;

/// A bit in the first word of a frame's scope: the interpreter's function was called for it.
pub(super) const ENTRY: usize = 0x20;
/// It is one of a C function, which has no program counter; compiled code leaves an old one there.
pub(super) const OF_C: usize = 0x80;

/// The kind of what is left of a moved object, in the lowest five bits of its first word.
pub(super) const MOVED: usize = 0x1e;

// Of an object, and of what code has beside it.
pub(super) const BODY: usize = 16;
pub(super) const BODY_WORDS: usize = 19;
pub(super) const FILE: usize = 64;
pub(super) const NAME: usize = 80;
pub(super) const FIRST_LINE: usize = 88;

/// Returns whether an object's first word is that of code.
pub(super) fn is_code(flags: usize) -> bool {
    const INTERNAL: usize = 0x1a;
    const CODE_KIND: usize = 7;
    flags & 0x1f == INTERNAL && flags >> 12 & 15 == CODE_KIND
}

/// The innermost frame, and the end of those of scripts, of an array of so many words; none without frames.
#[inline(always)]
pub(super) fn within(
    array: usize,
    words: usize,
    innermost: usize,
    frame_bytes: usize,
) -> Option<(usize, usize)> {
    let bytes = (words << 3).saturating_sub(frame_bytes);
    let has_frames = array != 0 && innermost.wrapping_sub(array) < bytes;
    has_frames.then_some((innermost, array + bytes))
}
