//! The details of a test that is not OK: why, and which stacks changed, vary, or were left.
//!
//! The same lines are used below the table, in JUnit's failures and in the collapsed parts of the Markdown.

use super::blame;
use super::metrics::{change, operations};
use crate::columns::Columns;
use crate::{Style, grouped, plural, printable, wrapped};
use mallow_base::Bytes;
use mallow_gate::measurement::Metric;
use mallow_gate::result::{Outcome, Position, TestResult};
use mallow_view::check::{ChangeRow, changes, conclusion, lacks_lines, largest, left, site_metrics, varying};
use std::cmp::Reverse;

/// The minimum number of columns of a metric before a stack, so that sections are aligned.
const METRIC_COLUMNS_MIN: usize = 9;

/// The usual number of columns before a stack.
const STACK_INDENT: usize = METRIC_COLUMNS_MIN + 4;

/// A metric and its stack.
struct Row<'a> {
    metric: String,
    /// The mark before the stack if it was matched with one that is only similar.
    mark: &'static str,
    frames: Vec<&'a mallow_base::Frame>,
    /// The index of the frame to begin with.
    blamed: usize,
}

/// Returns the lines, without indentation, with at most `limit` stacks in a section.
pub(crate) fn lines(test: &TestResult, limit: usize, style: Style) -> Vec<String> {
    let mut out: Vec<String> =
        test.sentences.iter().flat_map(|sentence| printable_lines(sentence, style.width)).collect();
    let metrics = site_metrics(test);
    let is_left_listed = metrics.iter().any(|metric| is_left(*metric) && !has_reference(test, *metric));
    for metric in &metrics {
        if !is_left(*metric) || has_reference(test, *metric) {
            let has_heading = metrics.len() > 1 || *metric != Metric::Allocations;
            out.extend(changed(test, *metric, limit, has_heading, style));
            out.extend(largest_lines(test, *metric, limit, style));
        }
    }
    if lacks_lines(test) {
        let hint = "No line of the program is known: build it with line tables, `-g` in C and C++, `debug = \"line-tables-only\"` in \
                    Cargo's profile, and no baseline has to be made anew.";
        out.extend(printable_lines(hint, style.width).iter().map(|line| style.dim(line)));
    }
    out.extend(varying_lines(test, limit, style));
    if is_left_listed || may_have_kept(test) {
        out.extend(left_lines(test, limit, style));
    }
    out.extend(notes(test, style));
    out
}

/// Returns what a reader of the metrics should know, whatever the verdict.
pub(crate) fn notes(test: &TestResult, style: Style) -> Vec<String> {
    let notes = test.measurement.iter().flat_map(|measurement| &measurement.notes);
    let lines = notes.flat_map(|note| printable_lines(note, style.width));
    lines.map(|line| style.dim(&line)).collect()
}

/// Breaks a sentence into lines. It may quote a program's output, so control characters are removed.
pub(crate) fn printable_lines(sentence: &str, width: usize) -> Vec<String> {
    wrapped(sentence, width).iter().map(|line| printable(line)).collect()
}

fn is_left(metric: Metric) -> bool {
    matches!(metric, Metric::Remaining | Metric::RemainingBytes | Metric::Descriptors)
}

/// Returns whether the baseline has remaining blocks too, so that only the change is shown.
fn has_reference(test: &TestResult, metric: Metric) -> bool {
    conclusion(test, metric).and_then(|conclusion| conclusion.reference).is_some_and(|value| value > 0)
}

/// Returns whether remaining blocks are worth showing although no limit is exceeded: there is no baseline yet, or only some of the runs left any.
/// only some of its runs left something.
fn may_have_kept(test: &TestResult) -> bool {
    let differs = [Metric::Remaining, Metric::Descriptors].into_iter().any(|metric| {
        conclusion(test, metric).is_some_and(|conclusion| conclusion.spread.min < conclusion.spread.max)
    });
    let is_free = |conclusion: &mallow_gate::result::Conclusion| conclusion.position == Position::Free;
    match test.outcome {
        Outcome::Missing => conclusion(test, Metric::Remaining).is_none_or(is_free),
        Outcome::Flaky => differs,
        _ => false,
    }
}

/// Returns the stacks that changed. Those that look the same at this width are merged into one row.
fn changed(test: &TestResult, metric: Metric, limit: usize, has_heading: bool, style: Style) -> Vec<String> {
    let ops = operations(test);
    let all = changes(test, metric, usize::MAX);
    let width = style.width.saturating_sub(STACK_INDENT);
    let mut merged: Vec<(Vec<String>, i128, ChangeRow<'_>)> = Vec::new();
    for row in all.rows {
        let look = blame::lines(&row.frames, row.blamed, width);
        match merged.iter_mut().find(|(other, _, first)| *other == look && first.exact == row.exact) {
            Some((_, difference, _)) => *difference = difference.saturating_add(row.difference()),
            None => merged.push((look, row.difference(), row)),
        }
    }
    merged.retain(|(_, difference, _)| *difference != 0);
    merged.sort_by_key(|(_, difference, _)| (Reverse(difference.unsigned_abs()), *difference < 0));
    let rest = merged.split_off(limit.min(merged.len()));
    let rows: Vec<Row<'_>> = merged
        .into_iter()
        .map(|(_, difference, row)| Row {
            metric: change(metric, difference, ops),
            mark: if row.exact { "" } else { "≈ " },
            frames: row.frames,
            blamed: row.blamed,
        })
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let mut out = Vec::new();
    if has_heading {
        out.push(style.dim(&format!("{}, compared with the baseline:", subject(metric))));
    }
    out.extend(table(&rows, style));
    if !rest.is_empty() {
        let together = rest.iter().map(|(_, difference, _)| *difference).fold(0, i128::saturating_add);
        out.push(style.dim(&format!(
            "… {} more, {} together; totals are complete",
            grouped(rest.len() as u64),
            change(metric, together, ops)
        )));
    }
    out
}

/// Returns the largest stacks, if a limit is exceeded and there is no baseline to compare with.
fn largest_lines(test: &TestResult, metric: Metric, limit: usize, style: Style) -> Vec<String> {
    let ops = operations(test);
    let width = style.width.saturating_sub(STACK_INDENT);
    let (rows, more, together) =
        largest(test, metric, limit, |frames, blamed| blame::lines(frames, blamed, width));
    if rows.is_empty() {
        return Vec::new();
    }
    let amount = |value: u64| change(metric, i128::from(value), ops).trim_start_matches('+').to_owned();
    let rows: Vec<Row<'_>> = rows
        .into_iter()
        .map(|row| Row { metric: amount(row.value), mark: "", frames: row.frames, blamed: row.blamed })
        .collect();
    let mut out =
        vec![style.dim(&format!("{} by stack; there is no baseline to compare with:", subject(metric)))];
    out.extend(table(&rows, style));
    if more > 0 {
        let together = amount(together);
        out.push(
            style.dim(&format!("… {} more, {together} together; totals are complete", grouped(more as u64))),
        );
    }
    out
}

/// Returns what a metric counts, for the beginning of a line.
fn subject(metric: Metric) -> &'static str {
    match metric {
        Metric::Allocations => "allocations",
        Metric::Bytes => "bytes",
        Metric::Peak => "bytes at the peak",
        Metric::Remaining => "blocks left behind",
        Metric::RemainingBytes => "bytes left behind",
        Metric::Descriptors => "descriptors left open",
        Metric::Objects => "objects",
        Metric::ObjectBytes => "bytes of objects",
        Metric::RemainingObjects => "objects left behind",
        Metric::RemainingObjectBytes => "bytes of objects left behind",
        Metric::Temporary => "temporary allocations",
        Metric::PeakRss => "resident bytes at the peak",
        Metric::Wall => "time",
    }
}

fn varying_lines(test: &TestResult, limit: usize, style: Style) -> Vec<String> {
    let width = style.width.saturating_sub(STACK_INDENT);
    let (rows, more) = varying(test, limit, |frames| blame::lines(frames, 0, width));
    if rows.is_empty() {
        return Vec::new();
    }
    let rows: Vec<Row<'_>> = rows
        .into_iter()
        .map(|row| Row {
            metric: format!("{}…{}", grouped(row.allocations.min), grouped(row.allocations.max)),
            mark: "",
            frames: row.frames,
            blamed: 0,
        })
        .collect();
    let mut out = vec![style.dim("allocations that vary from run to run:")];
    out.extend(table(&rows, style));
    if more > 0 {
        out.push(style.dim(&format!("… {} more", grouped(more as u64))));
    }
    out
}

fn left_lines(test: &TestResult, limit: usize, style: Style) -> Vec<String> {
    let each = left(test, usize::MAX, <[_]>::to_vec).rows;
    let metrics = each.iter().map(|row| amount(row.blocks, row.bytes, row.descriptors).columns());
    let columns = metrics.max().unwrap_or(0).max(METRIC_COLUMNS_MIN);
    let width = style.width.saturating_sub(columns + 2);
    let left = left(test, limit, |frames| blame::lines(frames, 0, width));
    if left.rows.is_empty() {
        return Vec::new();
    }
    let rows: Vec<Row<'_>> = left
        .rows
        .iter()
        .map(|row| Row {
            metric: amount(row.blocks, row.bytes, row.descriptors),
            mark: "",
            frames: row.frames.clone(),
            blamed: 0,
        })
        .collect();
    let mut out = vec![style.dim("left behind in one run:")];
    out.extend(table(&rows, style));
    if left.more > 0 {
        let together = amount(left.more_blocks, left.more_bytes, left.more_descriptors);
        out.push(
            style.dim(&format!(
                "… {} more, {together} together; totals are complete",
                grouped(left.more as u64)
            )),
        );
    }
    out
}

/// Formats `10 blocks, 640 B`, `2 descriptors`.
fn amount(blocks: u64, bytes: u64, descriptors: u64) -> String {
    let mut parts = Vec::new();
    if blocks > 0 {
        parts.push(plural(blocks, "block"));
        parts.push(Bytes(bytes).to_string());
    }
    if descriptors > 0 {
        parts.push(plural(descriptors, "descriptor"));
    }
    parts.join(", ")
}

/// Formats metrics in a column, and stacks in the rest of the width.
fn table(rows: &[Row<'_>], style: Style) -> Vec<String> {
    let columns = rows.iter().map(|row| row.metric.columns()).max().unwrap_or(0).max(METRIC_COLUMNS_MIN);
    let of_row = |row: &Row<'_>| {
        let left = style.width.saturating_sub(columns + 2 + row.mark.columns());
        let mut stack = blame::lines(&row.frames, row.blamed, left).into_iter();
        let first = stack.next().unwrap_or_default();
        let mut lines =
            vec![format!("{}  {}{first}", style.bold(&format!("{:>columns$}", row.metric)), row.mark)];
        lines.extend(stack.map(|line| format!("{:columns$}  {line}", "")));
        lines
    };
    rows.iter().flat_map(of_row).collect()
}
