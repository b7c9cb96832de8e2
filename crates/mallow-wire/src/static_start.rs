//! The start of a static executable with the recorder's library mapped into it.
//!
//! No loader is there that could do it. So mallow maps the library while the program stands before its first instruction, and has it go on
//! at [`ENTRY`], with the address of a [`StaticStart`] as its first argument. What the library asks a loader for, and what a loader would
//! take from libc, is given by names of its own: [`OWN`] in front of the name.

/// The library's function that a static program begins with.
pub const ENTRY: &str = "mallow_start_static";

/// What stands in front of the name of a function of the library's own that does what libc's does.
pub const OWN: &str = "mallow_";

/// What the library is told.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticStart {
    /// The executable's first instruction.
    pub entry: u64,
    /// The stack pointer as the kernel set it: it points at the number of words, behind which words, environment and auxiliary vector stand.
    pub stack: u64,
    /// Where the executable's table of unwind information is, sorted by address, for one whose linker has made none: for each function
    /// where it begins and where its entry begins, of 4 bytes each, counted from the executable's first byte.
    pub frames: u64,
    /// How many functions.
    pub frame_count: u64,
    /// The executable, and the library.
    pub objects: [MappedObject; 2],
}

/// An object in memory, as `struct dl_phdr_info` describes one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MappedObject {
    /// What is added to an address in the file to get the mapped one.
    pub bias: u64,
    /// Where its path is; it ends with a zero. Empty for the executable.
    pub name: u64,
    /// Where its program headers are.
    pub headers: u64,
    /// How many of them there are.
    pub header_count: u64,
    /// Objects that were ever loaded and unloaded, the number of thread-local storage and its place: nobody asks.
    pub spare: [u64; 4],
}

/// In bytes, of [`StaticStart`]'s fields, for whoever reads it without a compiler's help.
pub const ENTRY_OFFSET: usize = core::mem::offset_of!(StaticStart, entry);
/// As above.
pub const STACK_OFFSET: usize = core::mem::offset_of!(StaticStart, stack);

const _: () = assert!(size_of::<MappedObject>() == 64 && size_of::<StaticStart>() == 32 + 2 * 64);
