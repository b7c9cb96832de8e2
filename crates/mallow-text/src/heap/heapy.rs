//! The text of heapy 0.2.0 (`heapy read FILE`, `heapy diff A B [C]`), for scripts that read it.
//!
//! Two things differ from heapy. It shows 0.0 kb for objects that were not traced and leaves them out of the total:
//! here their true sizes are shown. And it takes every object at a known address for a known one: here a new object
//! at the address of an old one is new.

use mallow_view::heap::{Generations, HeapDiff};
use std::collections::HashMap;

/// Returns the generations of a heap. Roots and free slots count among the objects without one.
pub fn heapy_read(generations: &Generations) -> String {
    let mut out = vec![String::new(), "Analyzing Heap".to_owned(), "==============".to_owned()];
    let name = |generation: Option<u32>| generation.map_or_else(|| "nil".to_owned(), |at| at.to_string());
    let width = generations.rows.iter().map(|row| name(row.generation).len()).max().unwrap_or(0).max(3);
    let (mut count, mut bytes) = (0, 0);
    for row in &generations.rows {
        let others = if row.generation.is_none() { generations.other_lines } else { 0 };
        let objects = row.sum.objects + others;
        (count, bytes) = (count + objects, bytes + row.sum.bytes);
        let generation = name(row.generation);
        out.push(format!(
            "Generation: {generation:>width$} object count: {objects}, mem: {} kb",
            kib(row.sum.bytes)
        ));
    }
    out.extend([String::new(), "Heap total".to_owned(), "==============".to_owned()]);
    out.push(format!("Generations (active): {}", generations.rows.len()));
    out.push(format!("Count: {count}"));
    out.push(format!("Memory: {} kb", kib(bytes)));
    out.join("\n") + "\n"
}

/// Formats kibibytes with one decimal, rounded half up as Ruby does.
fn kib(bytes: u64) -> String {
    format!("{:.1}", (bytes as f64 / 1024.0 * 10.0).round() / 10.0)
}

/// Returns the new objects; `is_retained` if there were three dumps.
pub fn heapy_diff(diff: &HeapDiff, is_retained: bool) -> String {
    let mut groups: Vec<(&str, &str, u64, u64)> = Vec::new();
    let mut known = HashMap::new();
    for new in &diff.new {
        let site = new.site.as_deref().unwrap_or(":");
        let at = *known.entry((&new.kind, site)).or_insert_with(|| {
            groups.push((&new.kind, site, 0, 0));
            groups.len() - 1
        });
        groups[at].2 += new.sum.objects;
        groups[at].3 += new.sum.bytes;
    }
    groups.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| (a.0, a.1).cmp(&(b.0, b.1))));
    let total: u64 = groups.iter().map(|group| group.3).sum();
    let word = if is_retained { "Retained" } else { "Allocated" };
    let line = |(kind, site, objects, bytes): &(&str, &str, u64, u64)| {
        format!("{word} {kind} {objects} objects of size {bytes}/{total} (in bytes) at: {site}\n")
    };
    groups.iter().map(line).collect()
}
