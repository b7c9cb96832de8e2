//! What a process has mapped, by what it is for.

/// Resident bytes of a process's mappings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MappedMemory {
    /// All of it.
    pub resident_bytes: u64,
    /// Swapped bytes.
    pub swap_bytes: u64,
    /// Memory of `brk`: the heap of the C library's first arena.
    pub brk_bytes: u64,
    /// Memory of glibc's other arenas.
    pub arena_bytes: u64,
    /// Stacks of threads: mappings above a guard page, and the first thread's.
    pub stack_bytes: u64,
    /// How many of them there are.
    pub stacks: u64,
    /// Executables, libraries and other files, with what was written over them.
    pub file_bytes: u64,
    /// Memory that other processes may share.
    pub shared_bytes: u64,
    /// Every other mapping without a file.
    pub anonymous_bytes: u64,
}
