//! Sizes and lifetimes as bars.

use super::Page;
use super::bars::bar;
use crate::{grouped, metric, plural};
use mallow_base::{Bytes, Micros, Percent};
use mallow_view::Measure;
use mallow_view::histogram::{HistogramRow, Histograms, sum};

/// Returns both histograms.
pub(super) fn histograms(page: &Page<'_>, found: &Histograms) -> Vec<String> {
    let sizes = sum(&found.sizes);
    let lifetimes = sum(&found.lifetimes);
    let mut out = vec![format!(
        "{}: {}, {}",
        page.style.bold("sizes"),
        plural(sizes.blocks, "allocation"),
        Bytes(sizes.bytes)
    )];
    out.extend(table(page, "bytes each", &found.sizes, size));
    out.push(String::new());
    if !found.has_lifetimes {
        out.push("Lifetimes are unknown.".to_owned());
        return out;
    }
    let left = match found.never_freed.blocks {
        0 => String::new(),
        blocks => format!("; {} never freed", plural(blocks, "block")),
    };
    out.push(format!("{}: {} freed{left}", page.style.bold("lifetimes"), plural(lifetimes.blocks, "block")));
    out.extend(table(page, "lived", &found.lifetimes, lifetime));
    out
}

fn table(
    page: &Page<'_>,
    what: &str,
    rows: &[HistogramRow],
    label: impl Fn(&HistogramRow) -> String,
) -> Vec<String> {
    const TAKEN: usize = 56;
    if rows.is_empty() {
        return Vec::new();
    }
    let all = sum(rows).blocks;
    let most = rows.iter().map(|row| row.bucket.blocks).max().unwrap_or(0);
    let head = format!("{what:>21}{:>13}{:>8}{:>12}", "blocks", "share", "bytes");
    let mut out = vec![page.style.dim(&head)];
    out.extend(rows.iter().map(|row| {
        let share = Percent { part: row.bucket.blocks, whole: all }.to_string();
        let line = format!(
            "{:>21}{:>13}{share:>8}{:>12}  {}",
            label(row),
            metric(Measure::Allocations, row.bucket.blocks),
            Bytes(row.bucket.bytes).to_string(),
            bar(row.bucket.blocks, most, page.style.width.saturating_sub(TAKEN))
        );
        line.trim_end().to_owned()
    }));
    out
}

/// Formats `33 – 64`, and `33 KiB – 64 KiB` for numbers with many digits.
fn size(row: &HistogramRow) -> String {
    let HistogramRow { least, greatest, .. } = *row;
    match greatest {
        0..=2 => greatest.to_string(),
        3..=8192 => format!("{} – {}", grouped(least), grouped(greatest)),
        _ => format!("up to {}", Bytes(greatest)),
    }
}

fn lifetime(row: &HistogramRow) -> String {
    let HistogramRow { least, greatest, .. } = *row;
    match greatest {
        0 => "below 1 µs".to_owned(),
        1..=2 => format!("{greatest} µs"),
        3..=512 => format!("{least} – {greatest} µs"),
        _ => format!("up to {}", Micros(greatest)),
    }
}
