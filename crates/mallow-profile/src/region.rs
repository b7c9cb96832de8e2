//! Regions: what a program did between two of its own marks, exactly.
//!
//! Every allocation has a serial number. A region that begins notes the next number, and a block belongs to it when
//! its own is not smaller. So what remains is counted without a balance of calls: a block that was born before
//! the region and is freed within it changes nothing, and a block that is freed after the region has ended no longer
//! can.
//!
//! Regions may overlap. Memory is bounded by live blocks and by the stacks that allocated in open regions.

use crate::{BlockId, StackId};
use mallow_base::add_fields;
use rustc_hash::FxHashMap;

/// The metrics of a region, or of one stack in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionMetrics {
    /// Successful allocating calls, `realloc` included.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// Those of the calls that were `realloc` of a live block.
    pub reallocations: u64,
    /// The highest sum of bytes that were born here and lived. Not known of single stacks, and 0 there.
    pub peak_bytes: u64,
    /// Blocks that were allocated in it and are live.
    pub remaining_blocks: u64,
    /// Their bytes.
    pub remaining_bytes: u64,
    /// Blocks that were born here and freed here, by their own thread before it allocated again.
    pub temporary: u64,
}

impl RegionMetrics {
    /// Adds another stack's metrics.
    pub fn add(&mut self, other: &RegionMetrics) {
        add_fields!(
            self, other;
            allocations, bytes, reallocations, peak_bytes, remaining_blocks, remaining_bytes, temporary
        );
    }

    /// Adds a block that was allocated.
    pub fn born(&mut self, size: u64, by_realloc: bool) {
        self.allocations += 1;
        self.bytes = self.bytes.wrapping_add(size);
        self.reallocations += u64::from(by_realloc);
        self.remaining_blocks += 1;
        self.remaining_bytes = self.remaining_bytes.wrapping_add(size);
    }

    /// Removes a block that was added and is freed.
    pub fn gone(&mut self, size: u64, is_temporary: bool) {
        self.remaining_blocks -= 1;
        self.remaining_bytes = self.remaining_bytes.wrapping_sub(size);
        self.temporary += u64::from(is_temporary);
    }
}

/// A region that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionTotals {
    /// Its name in the program.
    pub name: String,
    /// The whole.
    pub metrics: RegionMetrics,
    /// Each stack that allocated in it, in the order of first calls.
    pub sites: Vec<(StackId, RegionMetrics)>,
}

/// The open regions of one process.
#[derive(Debug, Default)]
pub struct Regions {
    /// The number of the next allocation.
    next_serial: u64,
    /// For each live block: when it was allocated, by which stack, and its size.
    births: Vec<Option<Birth>>,
    open: Vec<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Birth {
    serial: u64,
    size: u64,
    stack: StackId,
}

#[derive(Debug)]
struct Open {
    name: String,
    first_serial: u64,
    metrics: RegionMetrics,
    places: FxHashMap<StackId, usize>,
    sites: Vec<(StackId, RegionMetrics)>,
}

impl Open {
    fn site(&mut self, stack: StackId) -> &mut RegionMetrics {
        let next = self.sites.len();
        let place = *self.places.entry(stack).or_insert(next);
        if place == next {
            self.sites.push((stack, RegionMetrics::default()));
        }
        &mut self.sites[place].1
    }
}

impl Regions {
    /// A region begins.
    pub fn begin(&mut self, name: &str) {
        self.open.push(Open {
            name: name.to_owned(),
            first_serial: self.next_serial,
            metrics: RegionMetrics::default(),
            places: FxHashMap::default(),
            sites: Vec::new(),
        });
    }

    /// Returns whether a region of this name is open.
    pub fn is_open(&self, name: &str) -> bool {
        self.open.iter().any(|open| open.name == name)
    }

    /// The names of all open regions, the last that began at the end.
    pub fn names(&self) -> Vec<String> {
        self.open.iter().map(|open| open.name.clone()).collect()
    }

    /// Returns how many are open.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Returns about how many bytes of memory this holds.
    pub fn held_bytes(&self) -> u64 {
        const SITE_BYTES: usize = size_of::<(StackId, RegionMetrics)>() + size_of::<(StackId, usize)>() * 2;
        let sites: usize = self.open.iter().map(|open| open.sites.len()).sum();
        (self.births.len() * size_of::<Option<Birth>>() + sites * SITE_BYTES) as u64
    }

    /// Returns the metrics of the open region of this name, so far.
    pub fn metrics(&self, name: &str) -> Option<RegionMetrics> {
        self.open.iter().rev().find(|open| open.name == name).map(|open| open.metrics)
    }

    /// Ends the region of this name that began last; none when none is open.
    pub fn end(&mut self, name: &str) -> Option<RegionTotals> {
        let at = self.open.iter().rposition(|open| open.name == name)?;
        let open = self.open.remove(at);
        Some(RegionTotals { name: open.name, metrics: open.metrics, sites: open.sites })
    }

    /// A block was allocated. Ids are dense: a table is indexed by them.
    pub fn born(&mut self, block: BlockId, stack: StackId, size: u64, by_realloc: bool) {
        let at = block.0 as usize;
        if self.births.len() <= at {
            self.births.resize(at + 1, None);
        }
        self.births[at] = Some(Birth { serial: self.next_serial, size, stack });
        self.next_serial += 1;
        for open in &mut self.open {
            open.metrics.born(size, by_realloc);
            open.metrics.peak_bytes = open.metrics.peak_bytes.max(open.metrics.remaining_bytes);
            open.site(stack).born(size, by_realloc);
        }
    }

    /// A block was freed; whether it was temporary is known to [`Aggregator::is_latest`](crate::Aggregator::is_latest).
    pub fn gone(&mut self, block: BlockId, is_temporary: bool) {
        let Some(birth) = self.births.get_mut(block.0 as usize).and_then(Option::take) else { return };
        for open in self.open.iter_mut().filter(|open| open.first_serial <= birth.serial) {
            open.metrics.gone(birth.size, is_temporary);
            open.site(birth.stack).gone(birth.size, is_temporary);
        }
    }
}

#[cfg(test)]
#[path = "region_tests.rs"]
mod tests;
