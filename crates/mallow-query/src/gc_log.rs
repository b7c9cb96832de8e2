//! From a log to evidence and a conclusion: which lines count, and what they run over.

use crate::failure::Failure;
use mallow_formats::gc_log::{Choice, GcEvent, GcLog, GcRow, ResidentUnit};
use mallow_formats::open_gc_log;
use mallow_growth::{Evidence, Observation, Rules};
use mallow_view::gc_log::{Axis, GcReport, JudgedLines, ResidentColumn, SLOT_BYTES};
use std::path::Path;

/// So many lines of full collections are enough to leave the others out.
const FULL_MIN: usize = 20;

/// Reads and judges a log.
///
/// # Errors
/// The file cannot be read, or is no such log.
pub fn judge(file: &Path, choice: &Choice) -> Result<GcReport, Failure> {
    let log =
        open_gc_log(file, choice).map_err(|error| Failure::new(format!("{}: {error}.", file.display())))?;
    Ok(judged(&file.display().to_string(), &log))
}

/// Judges a log that was read.
pub fn judged(file: &str, log: &GcLog) -> GcReport {
    let (lines, rows) = judged_rows(log);
    let axis = axis(log, &rows);
    let observation = |(index, row): (usize, &&GcRow)| {
        let objects = Some(row.live_slots.saturating_mul(SLOT_BYTES));
        Observation {
            requests: place(log, &axis, index, row),
            seconds: log.seconds(row).unwrap_or(0.0),
            // Lines without a full collection are an upper bound, and judged as such.
            live_bytes: if lines == JudgedLines::Full { None } else { objects },
            managed_bytes: if lines == JudgedLines::Full { objects } else { None },
            resident_bytes: row.resident_bytes.unwrap_or(0),
            ..Observation::default()
        }
    };
    let observations = rows.iter().enumerate().map(observation).collect();
    let evidence = Evidence { observations, uncollected: lines != JudgedLines::Full, ..Evidence::default() };
    GcReport {
        file: file.to_owned(),
        conclusion: mallow_growth::judge(&evidence, &rules(&axis)),
        lines,
        lines_total: log.rows.len(),
        slots_column: log.slots_column.clone(),
        resident: log.resident.as_ref().map(|(name, unit, is_peak)| ResidentColumn {
            name: name.clone(),
            is_in_kib: *unit == ResidentUnit::Kibibytes,
            is_peak: *is_peak,
        }),
        seconds: log.rows.last().and_then(|last| log.seconds(last)),
        evidence,
        axis,
        warnings: log.warnings.clone(),
    }
}

/// Returns the most reliable lines: those after full collections, or after any, or all.
fn judged_rows(log: &GcLog) -> (JudgedLines, Vec<&GcRow>) {
    let swept: Vec<&GcRow> = log.rows.iter().filter(|row| row.event == GcEvent::EndSweep).collect();
    let full: Vec<&GcRow> = swept.iter().copied().filter(|row| row.is_major == Some(true)).collect();
    if full.len() >= FULL_MIN {
        (JudgedLines::Full, full)
    } else if swept.len() >= FULL_MIN {
        (JudgedLines::Swept, swept)
    } else {
        (JudgedLines::All, log.rows.iter().collect())
    }
}

fn axis(log: &GcLog, rows: &[&GcRow]) -> Axis {
    let counted = |row: Option<&&GcRow>| row.and_then(|row| row.requests).unwrap_or(0);
    match &log.requests_column {
        Some(column) if counted(rows.last()) > counted(rows.first()) => Axis::Requests(column.clone()),
        _ if log.rows.first().and_then(|row| log.seconds(row)).is_some() => Axis::Seconds,
        _ => Axis::Collections,
    }
}

fn place(log: &GcLog, axis: &Axis, index: usize, row: &GcRow) -> u64 {
    match axis {
        Axis::Requests(_) => row.requests.unwrap_or(0),
        // Not a number and what lies before the first line become 0.
        Axis::Seconds => (log.seconds(row).unwrap_or(0.0) * 1_000.0) as u64,
        Axis::Collections => row.collections.unwrap_or(index as u64),
    }
}

/// Returns the thresholds of growth, in the units of the judge: requests, milliseconds, collections.
fn rules(axis: &Axis) -> Rules {
    let rules = Rules::default();
    let per_ms = rules.idle_per_hour_min / 3_600_000.0;
    let (objects, resident) = match axis {
        Axis::Requests(_) => return rules,
        Axis::Seconds => (per_ms, per_ms),
        // One object, and one page.
        Axis::Collections => (SLOT_BYTES as f64, 4_096.0),
    };
    Rules { heap_per_request_min: objects, resident_per_request_min: resident, ..rules }
}
