//! Memory over time as a plot, and the sites that hold it.

use super::bars::bars;
use super::{GUTTER, Page};
use crate::columns::Columns;
use crate::{grouped, metric, printable};
use mallow_base::{Bytes, Count};
use mallow_profile::LiveSample;
use mallow_profile::analysis::{Slice, Slices};
use mallow_view::Measure;
use mallow_view::timeline::OverTime;
use mallow_view::{ProcessTimeline, TimelineRows};

/// Rows of the largest plot.
const ROWS: usize = 8;
/// Columns of a site's own plot.
const SPARK: usize = 24;

/// Returns the plots of one process.
pub(super) fn timeline(page: &Page<'_>, found: &ProcessTimeline<'_>) -> Vec<String> {
    let mut out = Vec::new();
    let processes = page.profile.processes.len();
    if processes > 1 {
        let process = found.process;
        let text = format!("process {} of {processes}: {}", process.pid, printable(&process.command));
        out.push(crate::cut_end(&text, page.style.width));
    }
    match &found.rows {
        TimelineRows::Events(lines) => out.extend(of_events(page, lines)),
        TimelineRows::Samples { time, live } => out.extend(of_samples(page, time, live)),
    }
    out
}

fn of_events(page: &Page<'_>, found: &OverTime) -> Vec<String> {
    let of = |value: fn(&Slice) -> u64| found.slices.iter().map(value).collect::<Vec<u64>>();
    let peak = format!("live bytes, highest {} at {}", Bytes(found.peak_bytes), page.time(found.peak_us));
    let mut out = vec![page.style.bold(&peak)];
    out.extend(plot(&of(|slice| slice.live_bytes_max), found.peak_bytes));
    out.push(axis(page, &found.time));
    let blocks = of(|slice| slice.live_blocks_max);
    let count = |value: u64| metric(Measure::Allocations, value);
    out.extend(line(page, "live blocks", &blocks, &count));
    let seconds = found.time.length_us() as f64 / found.time.count() as f64 / 1e6;
    let rate = |value: u64| format!("{}/s", Count((value as f64 / seconds) as u64));
    out.extend(line(page, "allocations", &of(|slice| slice.allocations), &rate));
    let bytes_rate = |value: u64| format!("{}/s", Bytes((value as f64 / seconds) as u64));
    out.extend(line(page, "bytes allocated", &of(|slice| slice.bytes), &bytes_rate));
    let rss: Vec<u64> = found.rss_bytes.iter().map(|rss| rss.unwrap_or(0)).collect();
    if found.rss_bytes.iter().any(Option::is_some) {
        out.extend(line(page, "resident memory (RSS)", &rss, &|value| Bytes(value).to_string()));
    }
    out.extend(sites(page, found));
    out
}

fn of_samples(page: &Page<'_>, time: &Slices, live: &[Option<LiveSample>]) -> Vec<String> {
    let of = |value: fn(&LiveSample) -> u64| {
        live.iter().map(|sample| sample.as_ref().map_or(0, value)).collect::<Vec<u64>>()
    };
    let bytes = of(|sample| sample.live_bytes);
    let highest = bytes.iter().copied().max().unwrap_or(0);
    let mut out = vec![page.style.bold(&format!("live bytes by samples, highest {}", Bytes(highest)))];
    out.extend(plot(&bytes, highest));
    out.push(axis(page, time));
    type OfSample = fn(&LiveSample) -> u64;
    let others: [(&str, OfSample); 2] = [
        ("the allocator's own (headers, rounding)", |sample| sample.overhead_bytes),
        ("stacks", |sample| sample.stack_bytes),
    ];
    for (name, value) in others {
        let values = of(value);
        if values.iter().any(|&value| value > 0) {
            out.extend(line(page, name, &values, &|value| Bytes(value).to_string()));
        }
    }
    out
}

/// Draws a plot of several rows; its labels are the maximum, half of it, and 0.
fn plot(values: &[u64], highest: u64) -> Vec<String> {
    let label = |row: usize| match row {
        0 => Bytes(highest).to_string(),
        _ if row == ROWS / 2 => Bytes(highest / 2).to_string(),
        _ => String::new(),
    };
    let rows = bars(values, highest, ROWS).into_iter().enumerate();
    let width = GUTTER - 1;
    rows.map(|(row, bars)| format!("{:>width$}│{bars}", label(row)).trim_end().to_owned()).collect()
}

/// Returns the labels below a plot: start, middle and end of the time.
fn axis(page: &Page<'_>, time: &Slices) -> String {
    let at = |slice: usize| page.time(time.begin_us(slice));
    // The last slice ends a microsecond after the last event.
    let end_us = time.begin_us(time.count()).saturating_sub(1);
    let [start, middle, end] = [at(0), at(time.count() / 2), page.time(end_us)];
    let width = |text: &str| text.columns();
    let columns = time.count();
    let before = (columns / 2).saturating_sub(width(&start) + width(&middle) / 2);
    let after = columns.saturating_sub(width(&start) + before + width(&middle) + width(&end));
    format!("{:>9}└{start}{}{middle}{}{end}", "0", " ".repeat(before), " ".repeat(after))
}

/// Draws a plot of one row, with its name and its maximum above.
fn line(page: &Page<'_>, name: &str, values: &[u64], text: &dyn Fn(u64) -> String) -> Vec<String> {
    let highest = values.iter().copied().max().unwrap_or(0);
    let heading = format!("{:GUTTER$}{}", "", page.style.dim(name));
    let width = GUTTER - 1;
    let bars = bars(values, highest, 1).concat();
    let label = text(highest);
    // A label as wide as the gutter gives up the blank before its unit, or the line would be a column too long.
    let label = if label.columns() > width { label.replace(' ', "") } else { label };
    vec![heading, format!("{label:>width$} {bars}").trim_end().to_owned()]
}

/// Returns what the sites held at the peak and at the end, and their own plots, each scaled to its own maximum.
fn sites(page: &Page<'_>, found: &OverTime) -> Vec<String> {
    if found.rows.is_empty() {
        return Vec::new();
    }
    let mut out = vec![
        String::new(),
        page.style.dim(&format!("{:>10}{:>11}  {:<SPARK$}  site", "at peak", "at end", "over time")),
    ];
    for row in found.rows.iter().take(page.limit()) {
        let held = &row.metrics;
        let spark = bars(&narrowed(&held.live_bytes, SPARK), held.highest_bytes(), 1).concat();
        out.push(format!(
            "{:>10}{:>11}  {spark:<SPARK$}  {}",
            Bytes(held.peak_bytes).to_string(),
            Bytes(held.end_bytes()).to_string(),
            page.name(row, 25 + SPARK)
        ));
    }
    let rest = found.rows.get(page.limit()..).unwrap_or(&[]);
    if !rest.is_empty() {
        let peak = rest.iter().fold(0u64, |sum, row| sum.saturating_add(row.metrics.peak_bytes));
        let end = rest.iter().fold(0u64, |sum, row| sum.saturating_add(row.metrics.end_bytes()));
        out.push(format!(
            "{:>10}{:>11}  at {} more sites; use --top to see more",
            Bytes(peak).to_string(),
            Bytes(end).to_string(),
            grouped(rest.len() as u64)
        ));
    }
    out
}

/// Reduces the number of columns: each becomes the maximum of those that are merged.
fn narrowed(values: &[u64], columns: usize) -> Vec<u64> {
    let columns = columns.min(values.len());
    let part =
        |column: usize| &values[column * values.len() / columns..(column + 1) * values.len() / columns];
    (0..columns).map(|column| part(column).iter().copied().max().unwrap_or(0)).collect()
}
