//! The module log of the shared memory: what was loaded where, and when.

use crate::node::GENERATION_COUNT;
use core::sync::atomic::AtomicU32;

/// Bytes of the module log.
pub const MODULE_LOG_BYTES: usize = 1 << 20;

/// A record of the module log. It is followed by `path_bytes` and `build_id_bytes` bytes, and padded to 8
/// bytes.
///
/// The log is appended by whichever thread first meets a module, so a module may stand in it twice. One that is the same as an
/// earlier one in all but its generation may be a [`ModuleAgain`].
#[repr(C)]
#[derive(Debug)]
pub struct ModuleRecord {
    /// The whole record's length in bytes, written last, with [`UNFILLED`](crate::shared::UNFILLED) before that.
    pub record_bytes: AtomicU32,
    /// Bytes of the path that follows.
    pub path_bytes: u16,
    /// Bytes of the build id that follows the path.
    pub build_id_bytes: u16,
    /// The generation in which the module was met.
    pub generation: u64,
    /// Where the module's first byte is mapped.
    pub start_avma: u64,
    /// Behind its last byte.
    pub end_avma: u64,
    /// What is added to an address in the file to get the mapped one.
    pub bias: u64,
}

const _: () = assert!(size_of::<ModuleRecord>() == 40);

/// A record of the module log in place of a [`ModuleRecord`]; its length tells them apart. Plug-ins that come and go in each of all
/// generations have room in the log with it.
#[repr(C)]
#[derive(Debug)]
pub struct ModuleAgain {
    /// The length of this, written last.
    pub record_bytes: AtomicU32,
    /// Where in the log the module's own record begins.
    pub offset: u32,
    /// The generation in which the module was met again.
    pub generation: u64,
}

const _: () = assert!(GENERATION_COUNT as usize * size_of::<ModuleAgain>() <= MODULE_LOG_BYTES / 2);
