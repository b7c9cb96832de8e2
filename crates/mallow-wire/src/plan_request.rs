//! What a process asks of mallow about the objects that are loaded into it: whether functions of theirs are to be patched.
//!
//! It asks over a socket of its own, a file beside that of the session ([`PATH_END`]), one question a connection: a [`PlanRequest`] with the addresses at which
//! files begin in its memory. mallow finds out which files those are. Its answer is an [`PlanReply`], with a plan beside it where there is
//! something to patch ([`crate::patches`]; images are known by the places of their addresses in the question). The process patches them and
//! says what came of each image: one of the `PATCHES_` numbers, four bytes each.

/// The suffix of the path of the socket for requests, after that of the session's socket.
pub const PATH_END: &str = ".plans";

/// "mallow??", little endian.
pub const PLAN_REQUEST_MAGIC: u64 = u64::from_le_bytes(*b"mallow??");

/// The maximal number of addresses in a request; for more objects there are several.
pub const ADDRESSES_MAX: usize = 160;

/// The first bytes of a question.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanRequest {
    /// [`PLAN_REQUEST_MAGIC`].
    pub magic: u64,
    /// [`crate::patches::PLAN_VERSION`] of the sender.
    pub version: u32,
    /// How many addresses follow, of 8 bytes each.
    pub count: u32,
    /// The session's token.
    pub token: [u8; 16],
}

/// An answer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanReply {
    /// [`PLAN_REQUEST_MAGIC`].
    pub magic: u64,
    /// Bytes of the plan, whose file descriptor is sent with it; 0 if there is nothing to patch.
    pub plan_bytes: u64,
}

/// Bytes of the longest question.
pub const REQUEST_BYTES_MAX: usize = size_of::<PlanRequest>() + 8 * ADDRESSES_MAX;

const _: () = assert!(size_of::<PlanRequest>() == 32 && size_of::<PlanReply>() == 16);
