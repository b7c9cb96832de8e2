//! jemalloc's statistics as JSON (`stats_print_opts:J`), as `jemalloc/src/stats.c` writes them.
//!
//! With `stats_interval` a file contains several documents; the last complete one counts. Options leave parts out,
//! and versions differ in keys, so every key may be missing.

use super::parts::{bin, damaged, several};
use super::{Allocator, AllocatorMetrics, AllocatorState, Arena};
use crate::{Format, ImportError, Position};
use mallow_profile::Bin;
use serde_json::Value;

/// The page size if a document does not have it.
const PAGE_BYTES: u64 = 4096;

pub(super) fn read(bytes: &[u8]) -> Result<AllocatorState, ImportError> {
    let mut documents = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    let (mut last, mut count, mut end) = (None, 0, 0);
    let mut broken = None;
    while let Some(document) = documents.next() {
        match document {
            Ok(document) => {
                end = documents.byte_offset();
                (last, count) = (Some(document), count + 1);
            }
            Err(error) => {
                broken = Some(line_of(bytes, end, error.line()));
                break;
            }
        }
    }
    let expected = || damaged(Format::JemallocStats, Position::Line(broken.unwrap_or(1)), "a JSON document");
    let last = last.ok_or_else(expected)?;
    let root = last.get("jemalloc").filter(|root| root.get("stats").is_some());
    let root = root.ok_or_else(|| damaged(Format::JemallocStats, Position::Line(1), "jemalloc.stats"))?;
    let mut state = state_of(root);
    state.warnings = several(count);
    if let Some(line) = broken {
        state
            .warnings
            .push(format!("what stands behind the last whole document, from line {line} on, is left out"));
    }
    Ok(state)
}

/// Returns the line number. serde_json counts lines from the beginning of the file, unless it does not know.
fn line_of(bytes: &[u8], end: usize, line: usize) -> u64 {
    let before = bytes[..end.min(bytes.len())].iter().filter(|&&byte| byte == b'\n').count() + 1;
    before.max(line) as u64
}

fn state_of(root: &Value) -> AllocatorState {
    let page_bytes = root.pointer("/arenas/page").and_then(Value::as_u64).unwrap_or(PAGE_BYTES);
    let arenas = root.get("stats.arenas").and_then(Value::as_object);
    let merged = arenas.and_then(|arenas| arenas.get("merged"));
    let mut totals = metrics_of(&root["stats"], page_bytes);
    if let Some(merged) = merged {
        let of_merged = metrics_of(merged, page_bytes);
        totals.dirty = of_merged.dirty;
        totals.muzzy = of_merged.muzzy;
        totals.thread_caches = of_merged.thread_caches;
    }
    let is_single = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let arena = |(name, value): (&String, &Value)| Arena {
        name: name.clone(),
        threads: value.get("nthreads").and_then(Value::as_u64),
        metrics: metrics_of(value, page_bytes),
    };
    let single = arenas.into_iter().flatten().filter(|(name, _)| is_single(name));
    let mut single: Vec<Arena> = single.map(arena).collect();
    single.sort_by_key(|arena| arena.name.parse::<u64>().unwrap_or(u64::MAX));
    AllocatorState {
        allocator: Allocator::Jemalloc,
        version: root.get("version").and_then(Value::as_str).unwrap_or_default().to_owned(),
        totals,
        arenas: single,
        bins: merged.map(|merged| bins_of(root, merged)).unwrap_or_default(),
        warnings: Vec::new(),
    }
}

/// Returns the metrics of the whole, or of an arena, which counts pages and splits what is allocated.
fn metrics_of(value: &Value, page_bytes: u64) -> AllocatorMetrics {
    let number = |key: &str| value.get(key).and_then(Value::as_u64);
    let pages = |key: &str| number(key).map(|pages| pages.saturating_mul(page_bytes));
    let part = |key: &str| value.pointer(&format!("/{key}/allocated")).and_then(Value::as_u64);
    let parts = || Some(part("small")?.saturating_add(part("large")?));
    let books = || Some(number("base")?.saturating_add(number("internal")?));
    AllocatorMetrics {
        allocated: number("allocated").or_else(parts),
        active: number("active").or_else(|| pages("pactive")),
        metadata: number("metadata").or_else(books),
        resident: number("resident"),
        mapped: number("mapped"),
        retained: number("retained"),
        dirty: pages("pdirty"),
        muzzy: pages("pmuzzy"),
        thread_caches: number("tcache_bytes"),
        ..AllocatorMetrics::default()
    }
}

/// Returns the merged arenas' bins, whose sizes are in a separate list with the same index.
fn bins_of(root: &Value, merged: &Value) -> Vec<Bin> {
    let classes = root.pointer("/arenas/bin").and_then(Value::as_array);
    let bins = merged.get("bins").and_then(Value::as_array);
    let (Some(classes), Some(bins)) = (classes, bins) else { return Vec::new() };
    let of_one = |(class, value): (&Value, &Value)| {
        let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64);
        Some(bin(
            number(class, "size")?,
            number(value, "curregs")?,
            number(value, "curslabs")?,
            number(class, "nregs")?,
        ))
    };
    classes.iter().zip(bins).filter_map(of_one).filter(|bin| bin.slabs != Some(0)).collect()
}
