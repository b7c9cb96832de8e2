//! The state of an allocator at a moment: what it holds, what of that the program uses, and where the rest is.
//!
//! Metrics are bytes. One that a source does not tell is none; nothing is guessed.

/// Which allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Allocator {
    /// jemalloc.
    Jemalloc,
    /// The C library's.
    Glibc,
}

impl Allocator {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Allocator::Jemalloc => "jemalloc",
            Allocator::Glibc => "glibc malloc",
        }
    }
}

/// An allocator's own statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocatorState {
    /// The allocator.
    pub allocator: Allocator,
    /// Its version; empty if it does not report it.
    pub version: String,
    /// Of the whole process.
    pub totals: AllocatorMetrics,
    /// Arenas: parts of the allocator with locks of their own, among which threads are spread.
    pub arenas: Vec<Arena>,
    /// Size classes, or free chunks by size; by size.
    pub bins: Vec<Bin>,
    /// Sentences about what is missing or doubtful.
    pub warnings: Vec<String>,
}

/// Metrics of an allocator or of an arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocatorMetrics {
    /// In allocated blocks, rounded up to size classes; those in threads' caches count as allocated.
    pub allocated: Option<u64>,
    /// In pages that hold at least one block.
    pub active: Option<u64>,
    /// For the allocator's own books.
    pub metadata: Option<u64>,
    /// In pages that the kernel has given memory to, as far as the allocator knows.
    pub resident: Option<u64>,
    /// In pages that are mapped for the allocator and not retained.
    pub mapped: Option<u64>,
    /// Address space that is kept for later without memory behind it.
    pub retained: Option<u64>,
    /// In pages without a block that still have memory and will be returned to the kernel.
    pub dirty: Option<u64>,
    /// In pages that the kernel may reclaim.
    pub muzzy: Option<u64>,
    /// In blocks in threads' caches.
    pub thread_caches: Option<u64>,
    /// In free blocks that are kept for later.
    pub free: Option<u64>,
    /// In blocks that have a mapping of their own.
    pub own_mappings: Option<u64>,
    /// The most that was ever taken from the kernel at once.
    pub mapped_max: Option<u64>,
}

/// A part of an allocator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arena {
    /// Its number, or what the allocator calls it.
    pub name: String,
    /// How many threads use it.
    pub threads: Option<u64>,
    /// Its metrics.
    pub metrics: AllocatorMetrics,
}

/// Blocks of one size, or free chunks of a range of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// The smallest size in bytes.
    pub size_min: u64,
    /// The largest size in bytes; equal to the smallest for a size class.
    pub size_max: u64,
    /// Allocated blocks; `None` if only free chunks are reported.
    pub blocks: Option<u64>,
    /// Runs of pages that hold only blocks of this size.
    pub slabs: Option<u64>,
    /// Free places.
    pub free_blocks: u64,
    /// Bytes of the free places, which no other size can use before a whole slab is empty.
    pub waste_bytes: u64,
}

impl Bin {
    /// The bytes of its blocks.
    pub fn allocated_bytes(&self) -> Option<u64> {
        self.blocks.map(|blocks| blocks.saturating_mul(self.size_max))
    }
}
