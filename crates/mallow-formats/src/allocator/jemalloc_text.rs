//! jemalloc's statistics as text, as `jemalloc/src/stats.c` writes them.
//!
//! ```text
//! ___ Begin jemalloc statistics ___
//! Version: "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c"
//! Page size: 4096
//! Allocated: 15577088, active: 15589376, metadata: 2986368 (n_thp 0), resident: …, mapped: …, retained: …
//! Merged arenas stats:                        then arenas[0]:, arenas[1]:, …
//! assigned threads: 1
//! decaying:  time       npages   …
//!    dirty:   N/A            8   …
//! small:          15400960   …                allocated first
//! mapped:                      24010752
//! bins:           size ind    allocated   …   columns by name; they differ between versions
//!                  320  13        20480   …
//! --- End jemalloc statistics ---
//! ```
//!
//! A file may contain several of them, among other output on stderr; the last one counts.

use super::parts::{bin, damaged, several};
use super::{Allocator, AllocatorMetrics, AllocatorState, Arena};
use crate::{Format, ImportError, Position};
use mallow_profile::Bin;

const BEGIN: &str = "___ Begin jemalloc statistics ___";
const END: &str = "--- End jemalloc statistics ---";

pub(super) fn read(bytes: &[u8]) -> Result<AllocatorState, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    let count = text.matches(BEGIN).count();
    let start = text.rfind(BEGIN).unwrap_or_default();
    let line = text[..start].matches('\n').count() as u64 + 1;
    let mut reader = Reader::default();
    let mut is_whole = false;
    for line in text[start..].lines() {
        if line.starts_with(END) {
            is_whole = true;
            break;
        }
        reader.take(line);
    }
    if reader.totals.allocated.is_none() {
        let expected = "a line that begins with \"Allocated:\" in the statistics that begin here";
        return Err(damaged(Format::JemallocStats, Position::Line(line), expected));
    }
    let mut warnings = several(count);
    if !is_whole {
        warnings
            .push(String::from("the statistics end before their last line; what is missing is not shown"));
    }
    Ok(reader.state(warnings))
}

/// The part that the lines belong to.
#[derive(Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    General,
    Merged,
    /// The last of the arenas.
    Arena,
    /// Merged metrics of destroyed arenas, which are included in the merged ones.
    Other,
}

#[derive(Debug, Default)]
struct Reader {
    version: String,
    page_bytes: Option<u64>,
    totals: AllocatorMetrics,
    part: Part,
    merged: AllocatorMetrics,
    arenas: Vec<Arena>,
    bins: Vec<Bin>,
    /// The columns of the table of bins, while its rows are read.
    columns: Option<Columns>,
}

impl Reader {
    fn take(&mut self, line: &str) {
        if let Some(columns) = &self.columns {
            let is_row = line.starts_with(' ');
            if is_row && self.part == Part::Merged {
                self.bins.extend(columns.bin(line).filter(|bin| bin.slabs != Some(0)));
            }
            if !is_row {
                self.columns = None;
            }
        }
        let Some((key, rest)) = line.trim().split_once(':') else { return };
        match key {
            "Version" => self.version = rest.trim().trim_matches('"').to_owned(),
            "Page size" => self.page_bytes = rest.trim().parse().ok(),
            "Allocated" if self.part == Part::General => self.totals = totals_of(line),
            "Merged arenas stats" => self.part = Part::Merged,
            "Destroyed arenas stats" => self.part = Part::Other,
            "bins" => self.columns = Columns::of(rest),
            _ if key.starts_with("arenas[") => {
                self.part = Part::Arena;
                let name = key["arenas[".len()..].trim_end_matches(']').to_owned();
                self.arenas.push(Arena { name, ..Arena::default() });
            }
            _ => self.take_metric(key, rest),
        }
    }

    fn take_metric(&mut self, key: &str, rest: &str) {
        let mut numbers = rest.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
        let first = numbers.next().flatten();
        let page_bytes = self.page_bytes.unwrap_or(4096);
        let pages = |pages: Option<u64>| pages.map(|pages| pages.saturating_mul(page_bytes));
        let metrics = match self.part {
            Part::Merged => &mut self.merged,
            Part::Arena => {
                let Some(arena) = self.arenas.last_mut() else { return };
                if key == "assigned threads" {
                    arena.threads = first;
                }
                &mut arena.metrics
            }
            Part::General | Part::Other => return,
        };
        match key {
            // The first column is a time.
            "dirty" => metrics.dirty = pages(numbers.next().flatten()),
            "muzzy" => metrics.muzzy = pages(numbers.next().flatten()),
            "total" if metrics.allocated.is_none() => metrics.allocated = first,
            "active" => metrics.active = first,
            "mapped" => metrics.mapped = first,
            "retained" => metrics.retained = first,
            "base" | "internal" => {
                metrics.metadata = first.map(|bytes| bytes.saturating_add(metrics.metadata.unwrap_or(0)));
            }
            "tcache_bytes" => metrics.thread_caches = first,
            "resident" => metrics.resident = first,
            _ => {}
        }
    }

    fn state(self, warnings: Vec<String>) -> AllocatorState {
        let totals = AllocatorMetrics {
            dirty: self.merged.dirty,
            muzzy: self.merged.muzzy,
            thread_caches: self.merged.thread_caches,
            ..self.totals
        };
        let allocator = Allocator::Jemalloc;
        AllocatorState {
            allocator,
            version: self.version,
            totals,
            arenas: self.arenas,
            bins: self.bins,
            warnings,
        }
    }
}

/// Parses `Allocated: 1, active: 2, metadata: 3 (n_thp 0), resident: 4, mapped: 5, retained: 6`.
fn totals_of(line: &str) -> AllocatorMetrics {
    let mut metrics = AllocatorMetrics::default();
    for part in line.split(',') {
        let Some((key, rest)) = part.split_once(':') else { continue };
        let value = rest.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
        match key.trim() {
            "Allocated" => metrics.allocated = value,
            "active" => metrics.active = value,
            "metadata" => metrics.metadata = value,
            "resident" => metrics.resident = value,
            "mapped" => metrics.mapped = value,
            "retained" => metrics.retained = value,
            _ => {}
        }
    }
    metrics
}

/// The positions of the columns in a row of the table of bins.
#[derive(Debug)]
struct Columns {
    size: usize,
    blocks: usize,
    slabs: usize,
    blocks_per_slab: usize,
}

impl Columns {
    fn of(header: &str) -> Option<Columns> {
        let names: Vec<&str> = header.split_ascii_whitespace().collect();
        let at = |name: &str| names.iter().position(|&column| column == name);
        Some(Columns {
            size: at("size")?,
            blocks: at("curregs")?,
            slabs: at("curslabs")?,
            blocks_per_slab: at("regs")?,
        })
    }

    /// Returns `None` for lines that represent empty bins.
    fn bin(&self, row: &str) -> Option<Bin> {
        let words: Vec<&str> = row.split_ascii_whitespace().collect();
        let number = |column: usize| words.get(column)?.parse::<u64>().ok();
        Some(bin(
            number(self.size)?,
            number(self.blocks)?,
            number(self.slabs)?,
            number(self.blocks_per_slab)?,
        ))
    }
}
