//! A block while it lives, how it ends, and tables by the site or thread that it is of.

/// A site's place in the tables of one pass.
pub(super) type SiteIndex = usize;

/// A live block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// Requested bytes.
    pub(super) size: u64,
    /// When it was allocated.
    pub(super) born_us: u64,
    /// Its thread's how manyth allocation it is.
    pub(super) number: u64,
    /// See [`SiteIndex`].
    pub(super) site: u32,
    /// The thread that allocated it.
    pub(super) thread: u32,
}

/// The end of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Death {
    pub(super) time_us: u64,
    /// The thread that freed it.
    pub(super) thread: u32,
    /// How many allocations its own thread had made since.
    pub(super) allocations_since: u64,
}

impl Block {
    pub(super) fn site(&self) -> SiteIndex {
        self.site as usize
    }
}

impl Death {
    pub(super) fn by_own_thread(&self, block: &Block) -> bool {
        self.thread == block.thread
    }

    /// Returns how long the block had lived. A CPU's clock may be some nanoseconds behind another's.
    pub(super) fn lifetime_us(&self, block: &Block) -> u64 {
        self.time_us.saturating_sub(block.born_us)
    }
}

/// Returns the entry of a site or thread in a table that grows on demand.
pub(super) fn entry<T: Clone + Default>(table: &mut Vec<T>, index: usize) -> &mut T {
    if index >= table.len() {
        table.resize(index + 1, T::default());
    }
    &mut table[index]
}
