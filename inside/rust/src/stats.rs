//! Sums of a recording, as a test wants them.

use mallow_profile::Totals;

/// What was allocated since the begin. The rules are those of `mallow record`: a `realloc` is a free and an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Successful calls that allocate.
    pub allocations: u64,
    /// The bytes that they asked for.
    pub bytes: u64,
    /// Those of them that were `realloc` of a live block.
    pub reallocations: u64,
    /// Blocks that the thread that allocated them freed before it allocated again.
    pub temporary: u64,
    /// The most bytes that lived at a time.
    pub peak_bytes: u64,
    /// The blocks that lived then.
    pub peak_blocks: u64,
    /// Bytes that live now.
    pub live_bytes: u64,
    /// Blocks that live now.
    pub live_blocks: u64,
}

impl From<Totals> for Stats {
    fn from(totals: Totals) -> Stats {
        Stats {
            allocations: totals.allocations,
            bytes: totals.bytes,
            reallocations: totals.reallocations,
            temporary: totals.temporary,
            peak_bytes: totals.peak_bytes,
            peak_blocks: totals.peak_blocks,
            live_bytes: totals.leaked_bytes,
            live_blocks: totals.leaked_blocks,
        }
    }
}
