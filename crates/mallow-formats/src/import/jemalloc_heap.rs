//! jemalloc's heap profile, `heap_v2`, as `jemalloc/src/prof_data.c` writes it, plain or with `jeprof --raw`'s names.
//!
//! ```text
//! heap_v2/16384                               the sampling period in bytes
//!   t*: 335: 1356217 [665: 1837996]           all threads: live blocks: bytes [allocated blocks: bytes]
//!   t0: 237: 2507072 [237: 2507072] name      each thread
//! @ 0x7f2a9c4a2630 0x7f2a9c4a2d21 …           a stack, innermost first, return addresses
//!   t*: 55: 49382 [55: 49382]                 the same metrics of that stack
//!   t1: 55: 49382 [55: 49382]
//!
//! MAPPED_LIBRARIES:                           /proc/PID/maps
//! ```
//!
//! The stored numbers are those of the samples. They are not additive: each line is scaled up separately (see
//! [`Sampling`]), and only then may lines be added. The totals at the top are never used.

mod heap;
mod mappings;
mod sampling;
mod symbols;

pub(super) use heap::{Heap, Metrics, addresses_of};
pub(super) use mappings::Mappings;
pub(crate) use mappings::NO_ADDRESS;
pub(super) use mappings::bias_of;
pub(super) use sampling::Sampling;
pub(super) use symbols::Symbols;

/// The name that our own exports write for sites without a stack.
pub(crate) const NO_STACK: &str = "[no stack was taken]";

use crate::lines::Lines;
use crate::{ImportError, Imported};

/// Parses a heap profile of either kind: a file with jeprof's names may be gperftools'.
pub(super) fn read(mut lines: Lines<'_>) -> Result<Imported, ImportError> {
    let (symbols, header) = Symbols::read(&mut lines)?;
    match header {
        Some(header) if header.trim_start().starts_with("heap profile:") => {
            super::gperftools_heap::read_after_header(&header, lines, symbols)
        }
        Some(header) => read_after_header(&header, lines, symbols),
        None => Err(lines.expected("heap_v2/ and the sampling period")),
    }
}

fn read_after_header(header: &str, mut lines: Lines<'_>, symbols: Symbols) -> Result<Imported, ImportError> {
    let period = header.trim().strip_prefix("heap_v2/").and_then(|period| period.parse().ok());
    let period: u64 = period.ok_or_else(|| lines.expected("heap_v2/ and the sampling period"))?;
    let sampling = Sampling::of_period(period);
    let mut heap = Heap::new(symbols);
    let mut stack = None;
    while let Some(line) = lines.next_text()? {
        let line = line.trim();
        if line.is_empty() || line == "---" {
            continue;
        }
        if line == "MAPPED_LIBRARIES:" {
            heap.mappings = Some(Mappings::read(&mut lines)?);
            break;
        }
        if let Some(addresses) = line.strip_prefix('@') {
            stack = Some(addresses_of(addresses).ok_or_else(|| lines.expected("a stack of addresses"))?);
            continue;
        }
        let entry = Entry::of(line)
            .ok_or_else(|| lines.expected("t, a thread, and blocks: bytes [blocks: bytes]"))?;
        add(&mut heap, entry, stack.as_deref(), sampling);
    }
    let mut warnings = sampling.warnings("jemalloc");
    if !heap.is_accumulated() {
        warnings.push(String::from(
            "the file tells what was live and not what was allocated; jemalloc keeps that too with prof_accum:true",
        ));
    }
    warnings.push(String::from(
        "sizes are what jemalloc set aside, its size classes, and not what the program asked for",
    ));
    Ok(heap.imported(warnings))
}

/// A line of metrics.
struct Entry<'a> {
    /// `None` for all threads together.
    thread: Option<u64>,
    raw: Metrics,
    name: &'a str,
}

impl<'a> Entry<'a> {
    /// Parses `t1: 55: 49382 [55: 49382] name`.
    fn of(line: &'a str) -> Option<Entry<'a>> {
        let (thread, rest) = line.strip_prefix('t')?.split_once(':')?;
        let thread = if thread == "*" { None } else { Some(thread.parse().ok()?) };
        let (metrics, name) = rest.split_once(']')?;
        Some(Entry { thread, raw: Metrics::of_text(metrics)?, name: name.trim() })
    }
}

fn add(heap: &mut Heap, entry: Entry<'_>, stack: Option<&[u64]>, sampling: Sampling) {
    let metrics = sampling.estimate(&entry.raw);
    match (stack, entry.thread) {
        // The totals at the top: the samples of all stacks, from which nothing can be estimated.
        (None, None) => {}
        (None, Some(thread)) => heap.name_thread(thread, entry.name),
        (Some(stack), None) => heap.add_stack(stack, metrics),
        (Some(_), Some(thread)) => heap.add_to_thread(thread, metrics),
    }
}
