//! gperftools' heap profile, as `gperftools/src/heap-profile-table.cc` writes it, and its relatives of the same shape.
//!
//! ```text
//! heap profile:  10001: 14216320 [ 11501: 17216320] @ heapprofile
//!   8000:  6216000 [  8000:  6216000] @ 0x55c97d80b1f8 0x55c97d80b288 …
//!
//! MAPPED_LIBRARIES:
//! ```
//!
//! live blocks: bytes [allocated blocks: bytes] @ stack, innermost first. What stands behind the header's `@` tells how it was
//! made: `heapprofile` counted every allocation; `heap_v2/R` is a sample with a period of R bytes; `heap/R` one with a period
//! of R / 2, which Go writes too (`debug=1`).

use super::jemalloc_heap::{Figures, Heap, Mappings, Sampling, Symbols, addresses_of};
use crate::lines::Lines;
use crate::{Format, ImportError, Imported};

/// Reads a heap profile.
pub(super) fn read(mut lines: Lines<'_>) -> Result<Imported, ImportError> {
    let (symbols, header) = Symbols::read(&mut lines)?;
    let header = header.ok_or_else(|| lines.expected("heap profile:"))?;
    read_after_header(&header, lines, symbols)
}

/// Reads what stands behind the header.
pub(super) fn read_after_header(
    header: &str,
    mut lines: Lines<'_>,
    symbols: Symbols,
) -> Result<Imported, ImportError> {
    let sampling = sampling_of(header, &lines)?;
    let mut heap = Heap::new(symbols);
    while let Some(line) = lines.next_text()? {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line == "MAPPED_LIBRARIES:" {
            heap.mappings = Some(Mappings::read(&mut lines)?);
            break;
        }
        let entry =
            entry_of(line).ok_or_else(|| lines.expected("blocks: bytes [blocks: bytes] @ and a stack"))?;
        heap.add_stack(&entry.1, sampling.estimate(&entry.0));
    }
    let mut warnings = sampling.warnings("the program's allocator");
    if sampling != Sampling::None && !heap.has_frees() {
        heap.only_live = true;
        warnings
            .push(String::from("the file is a sample of what was live; it does not tell what was allocated"));
    }
    Ok(heap.imported(warnings))
}

/// How the profile was made, by its header.
fn sampling_of(header: &str, lines: &Lines<'_>) -> Result<Sampling, ImportError> {
    let expected = || lines.expected("heap profile: blocks: bytes [blocks: bytes] @ kind");
    let rest = header.trim().strip_prefix("heap profile:").ok_or_else(expected)?;
    let (figures, kind) = rest.split_once(']').ok_or_else(expected)?;
    Figures::of_text(figures).ok_or_else(expected)?;
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
                "it is of the kind \"{}\", which does not tell what the program allocated",
                kind.chars().take(40).collect::<String>().escape_default()
            ),
        }),
    }
}

/// `8000:  6216000 [  8000:  6216000] @ 0x55c97d80b1f8 0x55c97d80b288`
fn entry_of(line: &str) -> Option<(Figures, Vec<u64>)> {
    let (figures, rest) = line.split_once(']')?;
    let stack = rest.trim_start().strip_prefix('@')?;
    Some((Figures::of_text(figures)?, addresses_of(stack)?))
}
