//! A process's metrics as they were at the recording's end, so that a report need not replay events.
//!
//! Layout: the ten totals · peak_us · frees_unmatched · list of threads (allocations · bytes) · list of sites: the stack id as a
//! signed difference to the one before (0; `u32::MAX` when no stack was taken), the twelve figures of [`site_columns`], and last_us as
//! a signed difference to first_us · live_blocks_at_max of each site · if requests are told apart: list of the stacks that have made more than plain
//! ones: the stack id as above · allocations and bytes of zeroed memory · the same of aligned memory.
//!
//! Sites are best in the order of stack ids, and stack ids are not checked.

use crate::column::Column;
use crate::varint::{DecodeError, Reader, put, zigzag};
use crate::{ChunkKind, Payload};
use mallow_profile::{
    Ended, RequestTotals, SiteSummary, SiteTotals, StackId, Summary, ThreadSummary, Totals,
};

/// A metric, and what a reader expects there.
type Named<'a> = (&'a mut u64, &'static str);

/// The columns of a process's totals.
fn columns(totals: &mut Totals) -> [Named<'_>; 10] {
    [
        (&mut totals.allocations, "the allocations"),
        (&mut totals.bytes, "the bytes"),
        (&mut totals.frees, "the frees"),
        (&mut totals.reallocations, "the reallocations"),
        (&mut totals.temporary, "the temporary blocks"),
        (&mut totals.failed, "the failed calls"),
        (&mut totals.peak_bytes, "the peak's bytes"),
        (&mut totals.peak_blocks, "the peak's blocks"),
        (&mut totals.leaked_bytes, "the leaked bytes"),
        (&mut totals.leaked_blocks, "the leaked blocks"),
    ]
}

/// The entries of a site's row: its stack, its columns, and last_us.
const ROW_ENTRIES: usize = 14;

/// The columns of a site that are written unchanged.
fn site_columns(totals: &mut SiteTotals) -> [Named<'_>; 12] {
    [
        (&mut totals.allocations, "a site's allocations"),
        (&mut totals.bytes, "a site's bytes"),
        (&mut totals.reallocations, "a site's reallocations"),
        (&mut totals.temporary, "a site's temporary blocks"),
        (&mut totals.failed, "a site's failed calls"),
        (&mut totals.peak_bytes, "a site's bytes at the peak"),
        (&mut totals.peak_blocks, "a site's blocks at the peak"),
        (&mut totals.leaked_bytes, "a site's leaked bytes"),
        (&mut totals.leaked_blocks, "a site's leaked blocks"),
        (&mut totals.live_bytes_max, "a site's maximum of live bytes"),
        (&mut totals.lifetime_us_sum, "a site's lifetimes"),
        (&mut totals.first_us, "a site's first allocation"),
    ]
}

/// The columns of a site's requests.
fn request_columns(totals: &mut RequestTotals) -> [Named<'_>; 4] {
    [
        (&mut totals.zeroed.allocations, "the allocations of zeroed memory"),
        (&mut totals.zeroed.bytes, "the bytes of zeroed memory"),
        (&mut totals.aligned.allocations, "the allocations of aligned memory"),
        (&mut totals.aligned.bytes, "the bytes of aligned memory"),
    ]
}

impl Payload for Summary {
    const KIND: ChunkKind = ChunkKind::FOLDED;

    fn encode(&self, out: &mut Vec<u8>) {
        put_process(out, &self.totals, [self.peak_us, self.frees_unmatched], &self.threads);
        put_sites(out, self.sites.iter().copied());
        let Some(requests) = &self.requests else { return };
        put_requests(out, requests.len(), requests.iter().copied());
    }

    fn decode(payload: &[u8]) -> Result<Summary, DecodeError> {
        let mut reader = Reader::new(payload);
        let mut summary = Summary::default();
        for (metric, expected) in columns(&mut summary.totals) {
            *metric = reader.varint(expected)?;
        }
        summary.peak_us = reader.varint("the peak's time")?;
        summary.frees_unmatched = reader.varint("the unmatched frees")?;
        summary.threads = reader.list(2, "the threads' metrics", |reader| {
            let allocations = reader.varint("a thread's allocations")?;
            Ok(ThreadSummary { allocations, bytes: reader.varint("a thread's bytes")? })
        })?;
        let mut stack = 0u64;
        summary.sites = reader.list(ROW_ENTRIES, "the sites", |reader| {
            let stack = next_stack(&mut stack, reader)?;
            let mut totals = SiteTotals::default();
            for (metric, expected) in site_columns(&mut totals) {
                *metric = reader.varint(expected)?;
            }
            totals.last_us = totals.first_us.wrapping_add(reader.signed("a site's last allocation")?);
            Ok(SiteSummary { stack, totals })
        })?;
        // The first traces end here.
        if !reader.is_at_end() {
            for site in &mut summary.sites {
                site.totals.live_blocks_at_max = reader.varint("a site's blocks at its own maximum")?;
            }
        }
        if !reader.is_at_end() {
            let mut stack = 0u64;
            summary.requests = Some(reader.list(5, "the requests", |reader| {
                let (stack, mut totals) = (next_stack(&mut stack, reader)?, RequestTotals::default());
                for (metric, expected) in request_columns(&mut totals) {
                    *metric = reader.varint(expected)?;
                }
                Ok((stack, totals))
            })?);
        }
        Ok(summary)
    }
}

/// Appends the payload of the [`Summary`] that is made of a process's figures, without making it.
pub fn encode_ended(ended: &Ended, out: &mut Vec<u8>) {
    put_process(out, &ended.totals, [ended.peak_us, ended.frees_unmatched], &ended.threads);
    put_sites(out, ended.sites());
    if let (Some(count), Some(requests)) = (ended.request_count(), ended.requests()) {
        put_requests(out, count, requests);
    }
}

fn put_process(out: &mut Vec<u8>, totals: &Totals, peak_and_unmatched: [u64; 2], threads: &[ThreadSummary]) {
    columns(&mut totals.clone()).iter().for_each(|(metric, _)| put(out, **metric));
    peak_and_unmatched.iter().for_each(|metric| put(out, *metric));
    put(out, threads.len() as u64);
    for thread in threads {
        put(out, thread.allocations);
        put(out, thread.bytes);
    }
}

fn put_sites(out: &mut Vec<u8>, sites: impl ExactSizeIterator<Item = SiteSummary>) {
    put(out, sites.len() as u64);
    // The last column is behind all others.
    let (mut row, mut blocks_at_max) = (Column::new(ROW_ENTRIES), Column::new(sites.len()));
    let mut before = 0;
    for SiteSummary { stack, mut totals } in sites {
        let stack = u64::from(stack.0);
        row.clear();
        row.put(zigzag(stack.wrapping_sub(before)));
        site_columns(&mut totals).iter().for_each(|(metric, _)| row.put(**metric));
        row.put(zigzag(totals.last_us.wrapping_sub(totals.first_us)));
        out.extend_from_slice(row.bytes());
        blocks_at_max.put(totals.live_blocks_at_max);
        before = stack;
    }
    out.extend_from_slice(blocks_at_max.bytes());
}

fn put_requests(out: &mut Vec<u8>, count: usize, requests: impl Iterator<Item = (StackId, RequestTotals)>) {
    put(out, count as u64);
    let mut before = 0;
    for (stack, mut totals) in requests {
        put(out, zigzag(u64::from(stack.0).wrapping_sub(before)));
        request_columns(&mut totals).iter().for_each(|(metric, _)| put(out, **metric));
        before = u64::from(stack.0);
    }
}

/// Reads a stack's id, which is written as its difference to the one before.
fn next_stack(before: &mut u64, reader: &mut Reader<'_>) -> Result<StackId, DecodeError> {
    let start = *reader;
    *before = before.wrapping_add(reader.signed("a site's stack")?);
    u32::try_from(*before).map(StackId).map_err(|_| start.expected("a stack id of 32 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_profile::{Aggregator, Request, ThreadIndex};

    #[test]
    fn a_process_that_has_ended_is_written_as_the_summary_that_is_made_of_it() {
        for told in [false, true] {
            let events = || {
                let mut fold = Aggregator::new();
                if told {
                    fold = fold.told_requests();
                }
                let mut live = Vec::new();
                for i in 0..2_000u32 {
                    let (thread, stack) = (ThreadIndex(i % 3), StackId(i * 7919 % 300));
                    let stack = if i % 11 == 0 { Aggregator::NO_STACK } else { stack };
                    let (size, time_us) = (u64::from(i) << (i % 40), 5 * u64::from(i));
                    if i % 5 == 0 {
                        fold.requested(stack, Request::Zeroed, size);
                    }
                    live.push(fold.alloc(thread, stack, size, time_us));
                    if i % 3 != 0 {
                        fold.free(thread, live.swap_remove(i as usize * 31 % live.len()), time_us + 2);
                    }
                }
                fold
            };
            let (mut of_ended, mut of_summary) = (Vec::new(), Vec::new());
            encode_ended(&events().end(20_000), &mut of_ended);
            events().finish(20_000).encode(&mut of_summary);
            assert_eq!(of_ended, of_summary);
            assert_eq!(Summary::decode(&of_ended).unwrap(), events().finish(20_000));
        }
    }
}
