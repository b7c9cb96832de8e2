//! The report of `mallow import` for an allocator's own statistics.

use crate::columns::Columns;
use crate::{Style, cut_end, grouped, printable};
use mallow_base::Bytes;
use mallow_profile::{AllocatorMetrics, AllocatorState, Arena, Bin};
use mallow_view::{allocator_arenas, allocator_bins, allocator_notes, allocator_rows};

/// Rows of each table.
const LIMIT: usize = 10;
/// Columns before the explanation of a metric.
const MEANING_COLUMN: usize = 28;

/// Returns the whole report.
pub fn page(state: &AllocatorState, style: Style) -> String {
    let mut out = vec![title(state, style), String::new()];
    for row in allocator_rows(state) {
        let head = format!("  {:<14}{:>10}  ", row.word, Bytes(row.bytes).to_string());
        out.extend(hanging(&head, row.meaning, style.width));
    }
    out.push(String::new());
    for note in allocator_notes(state) {
        out.extend(hanging("  ", &note, style.width));
    }
    out.extend(bins(state, style));
    out.extend(arenas(state, style));
    out.join("\n") + "\n"
}

fn title(state: &AllocatorState, style: Style) -> String {
    // jemalloc's version contains the commit that it was built from.
    let version = state.version.split("-g").next().unwrap_or_default().trim_end_matches("-0");
    let name = format!("{} {}", state.allocator.name(), printable(version));
    style.bold(&cut_end(name.trim_end(), style.width))
}

/// Formats a text after a label; its further lines are aligned with its first one.
fn hanging(head: &str, text: &str, width: usize) -> Vec<String> {
    let indent = head.columns().min(MEANING_COLUMN);
    let room = width.saturating_sub(indent).max(20);
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.columns() + 1 + word.columns() > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    let prefix = |index: usize| if index == 0 { head.to_owned() } else { " ".repeat(indent) };
    lines.iter().enumerate().map(|(index, line)| format!("{}{line}", prefix(index))).collect()
}

fn bins(state: &AllocatorState, style: Style) -> Vec<String> {
    let bins = allocator_bins(state);
    if bins.is_empty() {
        return Vec::new();
    }
    let is_classes = bins.iter().any(|bin| bin.blocks.is_some());
    let heading = if is_classes { "size classes by waste" } else { "free chunks by size" };
    let mut lines = vec![String::new(), style.bold(heading)];
    lines.push(if is_classes {
        format!(
            "  {:>16} {:>12} {:>12} {:>10} {:>8}  {:>10}",
            "size", "blocks", "free places", "slabs", "used", "waste"
        )
    } else {
        format!("  {:>24} {:>12}  {:>10}", "size", "chunks", "free")
    });
    lines.extend(bins.iter().take(LIMIT).map(|bin| if is_classes { class_row(bin) } else { chunk_row(bin) }));
    if bins.len() > LIMIT {
        lines.push(style.dim(&format!("  and {} more", grouped((bins.len() - LIMIT) as u64))));
    }
    lines
}

fn class_row(bin: &Bin) -> String {
    let blocks = bin.blocks.unwrap_or(0);
    let used = mallow_base::Percent { part: blocks, whole: blocks.saturating_add(bin.free_blocks) };
    format!(
        "  {:>16} {:>12} {:>12} {:>10} {:>8}  {:>10}",
        Bytes(bin.size_max).to_string(),
        grouped(blocks),
        grouped(bin.free_blocks),
        grouped(bin.slabs.unwrap_or(0)),
        used.to_string(),
        Bytes(bin.waste_bytes).to_string(),
    )
}

fn chunk_row(bin: &Bin) -> String {
    let size = if bin.size_min == bin.size_max {
        grouped(bin.size_min)
    } else {
        format!("{} to {}", grouped(bin.size_min), grouped(bin.size_max))
    };
    format!("  {size:>24} {:>12}  {:>10}", grouped(bin.free_blocks), Bytes(bin.waste_bytes).to_string())
}

fn arenas(state: &AllocatorState, style: Style) -> Vec<String> {
    let arenas = allocator_arenas(state);
    if arenas.len() < 2 {
        return Vec::new();
    }
    type OfArena = fn(&AllocatorMetrics) -> Option<u64>;
    let all: [(&str, OfArena); 6] = [
        ("allocated", |f| f.allocated),
        ("active", |f| f.active),
        ("free", |f| f.free),
        ("resident", |f| f.resident),
        ("mapped", |f| f.mapped),
        ("retained", |f| f.retained),
    ];
    let is_told = |of: &OfArena| arenas.iter().any(|arena| of(&arena.metrics).is_some_and(|bytes| bytes > 0));
    let columns: Vec<_> = all.into_iter().filter(|(_, of)| is_told(of)).collect();
    let heading: String = columns.iter().map(|(word, _)| format!(" {word:>11}")).collect();
    let row = |arena: &&Arena| {
        let metric = |of: &OfArena| {
            of(&arena.metrics).map_or_else(|| "-".to_owned(), |bytes| Bytes(bytes).to_string())
        };
        let metrics: String = columns.iter().map(|(_, of)| format!(" {:>11}", metric(of))).collect();
        format!("  {:<8}{metrics}", cut_end(&printable(&arena.name), 8))
    };
    let count = grouped(arenas.len() as u64);
    let mut lines = vec![String::new(), style.bold(&format!("{count} arenas"))];
    lines.push(format!("  {:<8}{heading}", "arena"));
    lines.extend(arenas.iter().take(LIMIT).map(row));
    if arenas.len() > LIMIT {
        lines.push(style.dim(&format!("  and {} more", grouped((arenas.len() - LIMIT) as u64))));
    }
    lines
}

#[cfg(test)]
#[path = "allocator_tests.rs"]
mod tests;
