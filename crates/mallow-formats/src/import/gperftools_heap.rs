//! gperftools' heap profile, as `gperftools/src/heap-profile-table.cc` writes it, and related formats.
//!
//! ```text
//! heap profile:  10001: 14216320 [ 11501: 17216320] @ heapprofile
//!   8000:  6216000 [  8000:  6216000] @ 0x55c97d80b1f8 0x55c97d80b288 …
//!
//! MAPPED_LIBRARIES:
//! ```
//!
//! or `--- Memory map: ---`, with lines such as `  00400000-00fcb000: $source/server` after `  source=/srv/demo`.
//!
//!
//! live blocks: bytes [allocated blocks: bytes] @ stack, innermost first. The text after the header's `@` says how it
//! was made: `heapprofile` counted every allocation; `heap_v2/R` is a sample with a period of R bytes; `heap/R` one
//! with a period of R / 2. Go writes the last one too (`debug=1`), with names after each stack, tabs in between, and
//! without mappings:
//!
//! ```text
//! 48: 491520 [48: 491520] @ 0x47c32c 0x47f249 0x4d9bd4 0x4d9ba0 0x484081
//! #   0x4d9bd3   main.block+0x53   heaps/heaps.go:19
//! ```

use super::jemalloc_heap::{Heap, Mappings, Metrics, Sampling, Symbols, addresses_of};
use crate::lines::Lines;
use crate::{Format, ImportError, Imported};
use mallow_base::Frame;
use rustc_hash::FxHashSet;

/// Parses a heap profile.
pub(super) fn read(mut lines: Lines<'_>) -> Result<Imported, ImportError> {
    let (symbols, header) = Symbols::read(&mut lines)?;
    let header = header.ok_or_else(|| lines.expected("heap profile:"))?;
    read_after_header(&header, lines, symbols)
}

/// Parses what follows the header.
pub(super) fn read_after_header(
    header: &str,
    mut lines: Lines<'_>,
    symbols: Symbols,
) -> Result<Imported, ImportError> {
    let sampling = sampling_of(header, &lines)?;
    let mut heap = Heap::new(symbols);
    let mut entry = Entry::default();
    while let Some(line) = lines.next_text()? {
        let line = line.trim();
        if matches!(line, "MAPPED_LIBRARIES:" | "--- Memory map: ---") {
            heap.mappings = Some(Mappings::read(&mut lines)?);
            break;
        }
        if line.starts_with("# runtime.MemStats") {
            // Go writes no stacks and no mappings after this line.
            heap.mappings = Some(Mappings::default());
        }
        if let Some(comment) = line.strip_prefix('#') {
            if let Some((call, frame)) = named_call(comment) {
                heap.symbols.add_frame(call, frame);
                entry.named.insert(call);
            }
        } else if !line.is_empty() {
            let next = Entry::of(line);
            let next = next.ok_or_else(|| lines.expected("blocks: bytes [blocks: bytes] @ and a stack"))?;
            std::mem::replace(&mut entry, next).add_to(&mut heap, sampling);
        }
    }
    entry.add_to(&mut heap, sampling);
    let mut warnings = sampling.warnings("the program's allocator");
    if sampling != Sampling::None && !heap.has_frees() {
        heap.only_live = true;
        warnings.push(String::from(
            "the file is a sample of what was live; it does not contain what was allocated",
        ));
    }
    Ok(heap.imported(warnings))
}

/// Returns how the profile was made, by its header.
fn sampling_of(header: &str, lines: &Lines<'_>) -> Result<Sampling, ImportError> {
    let expected = || lines.expected("heap profile: blocks: bytes [blocks: bytes] @ kind");
    let rest = header.trim().strip_prefix("heap profile:").ok_or_else(expected)?;
    let (metrics, kind) = rest.split_once(']').ok_or_else(expected)?;
    Metrics::of_text(metrics).ok_or_else(expected)?;
    let kind = kind.trim().strip_prefix('@').unwrap_or_default().trim();
    let (kind, period) = kind.split_once('/').unwrap_or((kind, ""));
    let period =
        || -> Result<u64, ImportError> { period.parse().map_err(|_| lines.expected("the sampling period")) };
    match kind {
        "heapprofile" | "" => Ok(Sampling::None),
        "heap_v2" | "heapz_v2" => Ok(Sampling::of_period(period()?)),
        "heap" => Ok(Sampling::of_period(period()? / 2)),
        _ => Err(ImportError::Unsupported {
            format: Format::GperftoolsHeap,
            reason: format!(
                "it is of the kind \"{}\", which does not contain what the program allocated",
                kind.chars().take(40).collect::<String>().escape_default()
            ),
        }),
    }
}

/// A stack with its metrics, and the calls on it that were named after it.
#[derive(Default)]
struct Entry {
    addresses: Vec<u64>,
    raw: Metrics,
    named: FxHashSet<u64>,
}

impl Entry {
    /// Parses `8000:  6216000 [  8000:  6216000] @ 0x55c97d80b1f8 0x55c97d80b288`.
    fn of(line: &str) -> Option<Entry> {
        let (metrics, rest) = line.split_once(']')?;
        let addresses = addresses_of(rest.trim_start().strip_prefix('@')?)?;
        Some(Entry { addresses, raw: Metrics::of_text(metrics)?, named: FxHashSet::default() })
    }

    /// Adds it to the heap. Go names all calls except those of its own runtime that only pass an allocation on, or start a thread.
    fn add_to(mut self, heap: &mut Heap, sampling: Sampling) {
        if !self.named.is_empty() {
            self.addresses.retain(|address| self.named.contains(&address.wrapping_sub(1)));
        }
        heap.add_stack(&self.addresses, sampling.estimate(&self.raw));
    }
}

/// Parses `0x4d9bd3 main.block+0x53 heaps/heaps.go:19`, separated by tabs.
fn named_call(comment: &str) -> Option<(u64, Frame)> {
    let mut words = comment.split('\t').map(str::trim).filter(|word| !word.is_empty());
    let call = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    let function = words.next()?;
    let function = function.rsplit_once("+0x").map_or(function, |(name, _)| name).to_owned();
    let place = words.next().and_then(|place| place.rsplit_once(':'));
    let (file, line) = place.map_or((None, None), |(file, line)| (Some(file.to_owned()), line.parse().ok()));
    Some((call, Frame { function, file, line, ..Frame::default() }))
}
