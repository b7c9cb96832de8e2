//! Patches: functions of an allocator that is linked into a program, whose first instructions are to lead to the recorder.
//!
//! mallow finds and decodes them before the start and writes a *plan*, a file that the recorder maps. It needs no decoder:
//!
//! ```text
//! PlanHeader, then for each image: ImagePlan, and its Patch[patch_count] and NamedFunction[name_count]
//! ```
//!
//! A program is an image of the plan when its ELF header is the same, byte for byte; and nothing of it is written unless all
//! places hold what was displaced in the plan.

/// The environment variable that names the plan's file.
pub const PATCHES_VARIABLE: &str = "MALLOW_PATCHES";

/// "mallowpl", little endian.
pub const PLAN_MAGIC: u64 = u64::from_le_bytes(*b"mallowpl");
/// Both sides travel in one binary: a difference means that a child was started by another mallow.
pub const PLAN_VERSION: u32 = 5;
/// The longest plan.
pub const PLAN_BYTES_MAX: usize = 1 << 20;

/// Bytes of an ELF header.
pub const ELF_HEADER_BYTES: usize = 64;
/// Bytes of the jump that is written over a function's first instructions.
pub const JUMP_BYTES: usize = 5;
/// The most bytes that are displaced: the last instruction may begin at the jump's last byte and be 15 bytes long.
pub const DISPLACED_BYTES_MAX: usize = 22;
/// The maximal size of the moved instructions, with the jump back.
pub const MOVED_BYTES_MAX: usize = 64;
/// The maximal number of moved instructions: the displaced ones, each at least one byte long, and a jump back; a call
/// becomes two.
pub const STEPS_MAX: usize = JUMP_BYTES + 1;
/// Each of them may hold a distance, and a call two and an address.
pub const FIXUPS_MAX: usize = STEPS_MAX + 2;
/// The most patches of one image.
pub const PATCHES_MAX: usize = 200;

/// The first bytes of a plan.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanHeader {
    /// [`PLAN_MAGIC`].
    pub magic: u64,
    /// [`PLAN_VERSION`].
    pub version: u32,
    /// How many images follow.
    pub image_count: u32,
}

/// An executable or library.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImagePlan {
    /// Its ELF header.
    pub elf_header: [u8; ELF_HEADER_BYTES],
    /// How many patches follow.
    pub patch_count: u32,
    /// How many of its functions cannot be patched, and will not be recorded.
    pub unseen_count: u32,
    /// How many names follow after them. Only for static executables, whose symbols no loader has.
    pub name_count: u32,
    /// The index of the object in the request. 0 in a plan that was made without a request: that of the executable.
    pub object: u32,
}

/// The maximal length of the name of a [`NamedFunction`], with a zero byte.
pub const NAME_BYTES: usize = 40;

/// A function of a static executable for which the recorder has one of its own, or which it calls.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedFunction {
    /// Its first instruction.
    pub svma: u64,
    /// Its name, and zeros.
    pub name: [u8; NAME_BYTES],
}

/// The effect of a call on the heap.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Returns a block, or null: `malloc`.
    Allocate = 1,
    /// The same, and may throw: `operator new`.
    AllocateOrThrow = 2,
    /// Writes a block's address to its first argument, and returns 0: `posix_memalign`.
    AllocateInto = 3,
    /// Frees a block: `free`.
    Free = 4,
    /// Returns a block in place of another, or null: `realloc`.
    Reallocate = 5,
    /// The same, and if it returns null the block is freed: `reallocf`.
    ReallocateOrFree = 6,
    /// Resizes a block in place, and returns its true size: `xallocx`.
    Resize = 7,
    /// Part of the allocator, whatever it calls: how glibc frees a thread's cache.
    Inner = 8,
    /// A function of a static executable, of which the recorder has one of the same name ([`NamedFunction`]).
    Interposed = 9,
}

impl Call {
    /// The call of a number; none when there is no such.
    pub const fn from_number(number: u32) -> Option<Call> {
        Some(match number {
            1 => Call::Allocate,
            2 => Call::AllocateOrThrow,
            3 => Call::AllocateInto,
            4 => Call::Free,
            5 => Call::Reallocate,
            6 => Call::ReallocateOrFree,
            7 => Call::Resize,
            8 => Call::Inner,
            9 => Call::Interposed,
            _ => return None,
        })
    }
}

/// Marks an argument that a function does not have.
pub const NO_ARGUMENT: u8 = 0xff;
/// Functions have at most so many arguments.
pub const ARGUMENTS_MAX: usize = 5;

/// The roles of a function's arguments, counted from 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// The block.
    pub block: u8,
    /// The size in bytes that is wanted.
    pub size: u8,
    /// The number of elements of that size.
    pub count: u8,
    /// The kind of record that says that it allocated a block: [`Kind::Alloc`](crate::event::Kind::Alloc),
    /// [`Zeroed`](crate::event::Kind::Zeroed) or [`Aligned`](crate::event::Kind::Aligned).
    pub record: u8,
}

/// In a [`Fixup`]'s `kind`: a distance of 32 bits.
pub const FIXUP_DISTANCE: u8 = 0;
/// In a [`Fixup`]'s `kind`: an address of 64 bits.
pub const FIXUP_ADDRESS: u8 = 1;

/// A distance or an address within the moved bytes, to be filled in where they lie.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixup {
    /// Its target.
    pub target_svma: u64,
    /// Its offset.
    pub at: u8,
    /// The end of its instruction, from which a distance is counted.
    pub end: u8,
    /// [`FIXUP_DISTANCE`] or [`FIXUP_ADDRESS`].
    pub kind: u8,
    /// Unused.
    pub spare: [u8; 5],
}

/// The original offset of an instruction, and its offset among the moved bytes. The jump back counts as what follows
/// the displaced ones.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// From the function's entry.
    pub displaced: u8,
    /// From the first moved byte.
    pub moved: u8,
}

/// A function, and what is written over its first instructions.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Its first instruction.
    pub entry_svma: u64,
    /// A [`Call`].
    pub call: u32,
    /// Its arguments.
    pub arguments: Arguments,
    /// Used ones of `displaced`.
    pub displaced_bytes: u8,
    /// Used ones of `moved`.
    pub moved_bytes: u8,
    /// Used ones of `fixups`.
    pub fixup_count: u8,
    /// Used ones of `steps`.
    pub step_count: u8,
    /// Unused.
    pub spare: [u8; 2],
    /// Where the displaced instructions are.
    pub steps: [Step; STEPS_MAX],
    /// Their bytes in the file.
    pub displaced: [u8; DISPLACED_BYTES_MAX],
    /// The same instructions for another place, and a jump back.
    pub moved: [u8; MOVED_BYTES_MAX],
    /// The parts that depend on that place.
    pub fixups: [Fixup; FIXUPS_MAX],
}

const _: () = assert!(
    size_of::<PlanHeader>() == 16 && size_of::<ImagePlan>() == 80 && size_of::<NamedFunction>() == 48
);
const _: () = assert!(
    size_of::<Patch>() == 16 + 6 + 2 * STEPS_MAX + DISPLACED_BYTES_MAX + MOVED_BYTES_MAX + 16 * FIXUPS_MAX
);

/// In the header's `patches_state`: the plan has nothing for this executable.
pub const PATCHES_NONE: u32 = 0;
/// All patches of the executable were made.
pub const PATCHES_MADE: u32 = 1;
/// The functions in memory are not those of the file.
pub const PATCHES_DIFFER: u32 = 2;
/// There is no room near the executable.
pub const PATCHES_NO_ROOM: u32 = 3;
/// The system does not let code be changed.
pub const PATCHES_REFUSED: u32 = 4;
/// The process had other threads by then, which might be inside the functions.
pub const PATCHES_THREADS: u32 = 5;

/// The most images of one plan.
pub const IMAGES_MAX: usize = 256;
