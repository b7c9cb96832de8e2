//! A process's figures as the recording's end folded them, so that a report need not replay events.

use super::varint::{DecodeError, Reader, put, zigzag};
use alloc::vec::Vec;

/// A process's figures, as the counting rules define them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the profile's totals, which document them")]
pub struct FoldedTotals {
    pub allocations: u64,
    pub bytes: u64,
    pub frees: u64,
    pub reallocations: u64,
    pub temporary: u64,
    pub failed: u64,
    pub peak_bytes: u64,
    pub peak_blocks: u64,
    pub leaked_bytes: u64,
    pub leaked_blocks: u64,
}

/// A thread's figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldedThread {
    /// Its successful allocating calls.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
}

/// A site's figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the profile's site totals, which document them")]
pub struct FoldedSite {
    /// The stack's id in its process; `u32::MAX` when no stack was taken.
    pub stack: u32,
    pub allocations: u64,
    pub bytes: u64,
    pub reallocations: u64,
    pub temporary: u64,
    pub failed: u64,
    pub peak_bytes: u64,
    pub peak_blocks: u64,
    pub leaked_bytes: u64,
    pub leaked_blocks: u64,
    pub live_bytes_max: u64,
    pub live_blocks_at_max: u64,
    pub lifetime_us_sum: u64,
    pub first_us: u64,
    pub last_us: u64,
}

/// A process's figures and those of its sites and threads.
///
/// Layout: the ten totals in the order of their fields · peak_us · frees_unmatched · list of threads (allocations · bytes) · list of
/// sites: the stack id as a signed difference to the one before (0), the figures in the order of their fields up to
/// first_us without live_blocks_at_max, and last_us as a signed difference to first_us · live_blocks_at_max of each site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoldedProcess {
    /// The process's totals.
    pub totals: FoldedTotals,
    /// When live bytes were highest, in microseconds since the recording's start.
    pub peak_us: u64,
    /// Frees of blocks whose allocation was not seen.
    pub frees_unmatched: u64,
    /// By thread index.
    pub threads: Vec<FoldedThread>,
    /// Sites, best in the order of stack ids.
    pub sites: Vec<FoldedSite>,
}

impl FoldedProcess {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_with(self.sites.iter().copied(), out);
    }

    /// The same with these sites in place of its own, so that a large table need not be copied to be written.
    pub fn encode_with(&self, sites: impl ExactSizeIterator<Item = FoldedSite> + Clone, out: &mut Vec<u8>) {
        let totals = &self.totals;
        let figures = [
            totals.allocations,
            totals.bytes,
            totals.frees,
            totals.reallocations,
            totals.temporary,
            totals.failed,
            totals.peak_bytes,
            totals.peak_blocks,
            totals.leaked_bytes,
            totals.leaked_blocks,
            self.peak_us,
            self.frees_unmatched,
        ];
        figures.iter().for_each(|&figure| put(out, figure));
        put(out, self.threads.len() as u64);
        for thread in &self.threads {
            put(out, thread.allocations);
            put(out, thread.bytes);
        }
        put(out, sites.len() as u64);
        let mut stack = 0;
        for site in sites.clone() {
            site.encode(stack, out);
            stack = site.stack;
        }
        sites.for_each(|site| put(out, site.live_blocks_at_max));
    }

    /// Reads a payload. Stack ids are not checked.
    pub fn decode(payload: &[u8]) -> Result<FoldedProcess, DecodeError> {
        let mut reader = Reader::new(payload);
        let totals = FoldedTotals {
            allocations: reader.varint("the allocations")?,
            bytes: reader.varint("the bytes")?,
            frees: reader.varint("the frees")?,
            reallocations: reader.varint("the reallocations")?,
            temporary: reader.varint("the temporary blocks")?,
            failed: reader.varint("the failed calls")?,
            peak_bytes: reader.varint("the peak's bytes")?,
            peak_blocks: reader.varint("the peak's blocks")?,
            leaked_bytes: reader.varint("the leaked bytes")?,
            leaked_blocks: reader.varint("the leaked blocks")?,
        };
        let peak_us = reader.varint("the peak's time")?;
        let frees_unmatched = reader.varint("the unmatched frees")?;
        let threads = reader.list(2, "the threads' figures", |reader| {
            let allocations = reader.varint("a thread's allocations")?;
            Ok(FoldedThread { allocations, bytes: reader.varint("a thread's bytes")? })
        })?;
        let mut stack = 0;
        let mut sites = reader.list(14, "the sites", |reader| {
            let site = FoldedSite::decode(stack, reader)?;
            stack = site.stack;
            Ok(site)
        })?;
        // The first traces end here.
        if !reader.is_at_end() {
            for site in &mut sites {
                site.live_blocks_at_max = reader.varint("a site's blocks at its own maximum")?;
            }
        }
        Ok(FoldedProcess { totals, peak_us, frees_unmatched, threads, sites })
    }
}

impl FoldedSite {
    fn encode(&self, stack_before: u32, out: &mut Vec<u8>) {
        put(out, zigzag(u64::from(self.stack).wrapping_sub(u64::from(stack_before))));
        let figures = [
            self.allocations,
            self.bytes,
            self.reallocations,
            self.temporary,
            self.failed,
            self.peak_bytes,
            self.peak_blocks,
            self.leaked_bytes,
            self.leaked_blocks,
            self.live_bytes_max,
            self.lifetime_us_sum,
            self.first_us,
            zigzag(self.last_us.wrapping_sub(self.first_us)),
        ];
        figures.iter().for_each(|&figure| put(out, figure));
    }

    fn decode(stack_before: u32, reader: &mut Reader) -> Result<FoldedSite, DecodeError> {
        let start = *reader;
        let stack = u64::from(stack_before).wrapping_add(reader.signed("a site's stack")?);
        let mut site = FoldedSite {
            stack: u32::try_from(stack).map_err(|_| start.expected("a stack id of 32 bits"))?,
            allocations: reader.varint("a site's allocations")?,
            bytes: reader.varint("a site's bytes")?,
            reallocations: reader.varint("a site's reallocations")?,
            temporary: reader.varint("a site's temporary blocks")?,
            failed: reader.varint("a site's failed calls")?,
            peak_bytes: reader.varint("a site's bytes at the peak")?,
            peak_blocks: reader.varint("a site's blocks at the peak")?,
            leaked_bytes: reader.varint("a site's leaked bytes")?,
            leaked_blocks: reader.varint("a site's leaked blocks")?,
            live_bytes_max: reader.varint("a site's maximum of live bytes")?,
            lifetime_us_sum: reader.varint("a site's lifetimes")?,
            first_us: reader.varint("a site's first allocation")?,
            ..FoldedSite::default()
        };
        site.last_us = site.first_us.wrapping_add(reader.signed("a site's last allocation")?);
        Ok(site)
    }
}
